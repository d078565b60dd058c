"""Tools about estimators: find them all, and check that one of your own keeps the law."""

from erasable.utils.discovery import all_estimators

__all__ = ["all_estimators"]
