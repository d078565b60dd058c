"""Backups: a workspace in one file, and a workspace made of such a file.

The law kept here: a restored workspace can be used when everybody is erased from it who was erased
since the backup was made, as far as a list kept elsewhere tells; not before.
"""
