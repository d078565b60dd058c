"""Tools about estimators: a list of all, and checks that an estimator keeps the law."""

from erasable.utils.discovery import all_estimators

__all__ = ["all_estimators"]
