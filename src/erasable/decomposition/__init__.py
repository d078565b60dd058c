"""Projections of records on fewer columns, from which a record can be deleted."""

from erasable.decomposition._pca import PCA

__all__ = ["PCA"]
