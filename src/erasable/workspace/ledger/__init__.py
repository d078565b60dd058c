"""Ledger of a workspace, in a database: all it knows but data, models and keys."""
