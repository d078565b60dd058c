"""Gradient boosting from which records can be deleted: what `erasable.ensemble` shows of it.

Edges of bins, trees of integer sums, losses in whole numbers, and the estimators.
"""
