def write(folder, page): pass
