from ._linear import LinearRegression, Ridge
from ._logistic import LogisticRegression
from ._segmented import SegmentedRegression

__all__ = ["LinearRegression", "LogisticRegression", "Ridge", "SegmentedRegression"]
