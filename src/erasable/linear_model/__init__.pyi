from erasable.linear_model._linear import LinearRegression, Ridge
from erasable.linear_model._logistic import LogisticRegression
from erasable.linear_model._segmented import SegmentedRegression

__all__ = ["LinearRegression", "LogisticRegression", "Ridge", "SegmentedRegression"]
