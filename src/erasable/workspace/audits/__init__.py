"""Audits of a workspace's models: whether they reveal records, and whether they forgot them."""
