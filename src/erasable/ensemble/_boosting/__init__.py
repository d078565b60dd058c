"""Gradient boosting from which records can be deleted: the estimators."""
