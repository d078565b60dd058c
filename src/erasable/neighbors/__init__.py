"""Nearest neighbours and kernel densities, from which a record can be deleted.

After `delete` a model is, bit for bit, the one that a fit without those records makes. Models of
the k nearest and densities learn nothing: they are their records, and an index to find them by,
which is not a part of the model. The nearest centroid is exact sums of the records of each class.
"""

from erasable.neighbors._centroid import NearestCentroid
from erasable.neighbors._classification import KNeighborsClassifier
from erasable.neighbors._density import KernelDensity
from erasable.neighbors._regression import KNeighborsRegressor

__all__ = ["KNeighborsClassifier", "KNeighborsRegressor", "KernelDensity", "NearestCentroid"]
