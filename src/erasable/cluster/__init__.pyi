from ._density import DBSCAN
from ._divide import DivideAndConquerKMeans
from ._kmeans import KMeans
from ._quantized import QuantizedKMeans

__all__ = ["DBSCAN", "DivideAndConquerKMeans", "KMeans", "QuantizedKMeans"]
