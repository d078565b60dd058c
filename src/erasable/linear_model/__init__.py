"""Linear models, from which a record can be deleted.

After `delete` a model is, bit for bit, the one that a fit without those records makes.
`LinearRegression` and `Ridge` are exact sums of products (`erasable.core.gram`), from which those
of a record are subtracted; so is every segment of `SegmentedRegression`. `LogisticRegression`
publishes the point of a lattice that is nearest to the optimum, wherever it has started from.
"""

from erasable.linear_model._linear import LinearRegression, Ridge
from erasable.linear_model._logistic import LogisticRegression
from erasable.linear_model._segmented import SegmentedRegression

__all__ = ["LinearRegression", "LogisticRegression", "Ridge", "SegmentedRegression"]
