from erasable.cluster._density import DBSCAN
from erasable.cluster._divide import DivideAndConquerKMeans
from erasable.cluster._kmeans import KMeans
from erasable.cluster._quantized import QuantizedKMeans

__all__ = ["DBSCAN", "DivideAndConquerKMeans", "KMeans", "QuantizedKMeans"]
