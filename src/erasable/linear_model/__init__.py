"""Linear models, from which a record can be deleted.

After `delete` a model is, bit for bit, the one that a fit without those records makes.
`LinearRegression` and `Ridge` are exact sums of products (`erasable.core.gram`), from which those
of a record are subtracted; so is every segment of `SegmentedRegression`. `LogisticRegression`
publishes the point of a lattice that is nearest to the optimum, wherever it has started from.
"""

from erasable.core.exports import from_stub as _from_stub

__getattr__, __dir__, __all__ = _from_stub(__name__)
