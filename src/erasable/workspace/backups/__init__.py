"""Backups: a workspace in one file, and a workspace made of such a file.

The law kept here: a restored workspace can be used only when everybody who was erased since the
backup was made is erased from it, as far as a list kept elsewhere tells.
"""
