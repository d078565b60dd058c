"""Ensembles from which records can be deleted.

The law they keep is that of every room: after `delete` a model is, bit for bit, the one that a fit
without those records makes. Members of an ensemble learn from some of the records each, and those
learn again that had one of the deleted.
"""

from erasable.ensemble._bagging import BaggingClassifier, BaggingRegressor
from erasable.ensemble._sharded import ShardedClassifier, ShardedRegressor

__all__ = ["BaggingClassifier", "BaggingRegressor", "ShardedClassifier", "ShardedRegressor"]
