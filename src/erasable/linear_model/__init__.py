"""Linear models, from which a record can be deleted.

After `delete` a model is, bit for bit, the one that a fit without those records makes.
`LinearRegression` and `Ridge` are exact sums of products (`erasable.core.gram`), from which those
of a record are subtracted; so is every segment of `SegmentedRegression`. `LogisticRegression`
publishes the point of a lattice that is nearest to the optimum, wherever it has started from.
"""

import lazy_loader as _lazy_loader

__getattr__, __dir__, __all__ = _lazy_loader.attach_stub(__name__, __file__)
