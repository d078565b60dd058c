"""Nearest neighbours, from which a record can be deleted.

The law they keep is that of every room: after `delete` a model is, bit for bit, the one that a fit
without those records makes. Nothing is learned: the model is its records, and an index to find
them by, which is no part of it.
"""

from erasable.neighbors._classification import KNeighborsClassifier
from erasable.neighbors._regression import KNeighborsRegressor

__all__ = ["KNeighborsClassifier", "KNeighborsRegressor"]
