"""Selections of records to acquire from a table."""
