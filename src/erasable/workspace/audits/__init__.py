"""Audits of models in a workspace: whether they reveal records, or have forgotten them."""
