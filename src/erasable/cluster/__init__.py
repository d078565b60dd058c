"""Clustering models that can delete records."""

from ._kmeans import KMeans
from ._quantized import QuantizedKMeans

__all__ = ["KMeans", "QuantizedKMeans"]
