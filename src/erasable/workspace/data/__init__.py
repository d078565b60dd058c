"""Data sets: their sources, files, versions, and erasure."""
