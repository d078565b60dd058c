from erasable.neighbors._centroid import NearestCentroid
from erasable.neighbors._classification import KNeighborsClassifier
from erasable.neighbors._density import KernelDensity
from erasable.neighbors._regression import KNeighborsRegressor

__all__ = ["KNeighborsClassifier", "KNeighborsRegressor", "KernelDensity", "NearestCentroid"]
