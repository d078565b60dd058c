"""Decision trees, from which records can be deleted.

After `delete` a tree is, bit for bit, the one that a fit without those records grows: features and
thresholds are drawn by hashes of names and values, and scores are formulas of exact counts.
Forests are in `erasable.ensemble`.
"""

from erasable.core.exports import from_stub as _from_stub

__getattr__, __dir__, __all__ = _from_stub(__name__)
