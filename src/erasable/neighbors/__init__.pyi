from ._centroid import NearestCentroid
from ._classification import KNeighborsClassifier
from ._density import KernelDensity
from ._regression import KNeighborsRegressor

__all__ = ["KNeighborsClassifier", "KNeighborsRegressor", "KernelDensity", "NearestCentroid"]
