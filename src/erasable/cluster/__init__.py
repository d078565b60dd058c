"""Clustering models that can delete records.

A deletion goes from `_single.GriddedRun.remove` to `_run.LloydRun`, whose levels are in `_levels`.
"""

from ._density import DBSCAN
from ._divide import DivideAndConquerKMeans
from ._kmeans import KMeans
from ._quantized import QuantizedKMeans

__all__ = ["DBSCAN", "DivideAndConquerKMeans", "KMeans", "QuantizedKMeans"]
