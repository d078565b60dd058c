"""Subjects, known by keyed hashes alone: no identity is kept.

The law kept here: two spellings of one identity have one token, and two identities never share
one. Without the workspace's keys a token says nothing.
"""
