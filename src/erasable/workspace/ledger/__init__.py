"""Ledger of a workspace: a database of all its state but data, models and keys."""
