"""Nearest neighbours and kernel densities, from which a record can be deleted.

After `delete` a model is, bit for bit, the one that a fit without those records makes. Models of
the k nearest and densities learn nothing: they are their records, and an index to find them by,
which is not a part of the model. The nearest centroid is exact sums of the records of each class.
"""

from erasable.core.exports import from_stub as _from_stub

__getattr__, __dir__, __all__ = _from_stub(__name__)
