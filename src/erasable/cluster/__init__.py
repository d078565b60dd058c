"""Clustering models that can delete records.

A deletion goes from `_kmeans.ModelRun.exchange` to `_run.LloydRun`; `_lloyd` processes its levels.
"""

from ._density import DBSCAN
from ._divide import DivideAndConquerKMeans
from ._kmeans import KMeans
from ._quantized import QuantizedKMeans

__all__ = ["DBSCAN", "DivideAndConquerKMeans", "KMeans", "QuantizedKMeans"]
