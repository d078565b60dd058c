"""Ensembles from which records can be deleted.

After `delete` a model is, bit for bit, the one that a fit without those records makes. Which
members learn from a record is drawn for that record (or its group) alone. Trees of a forest take a
record out of themselves; members that are estimators of scikit-learn learn again, those that had
one of the deleted.
"""

from erasable.ensemble._bagging import BaggingClassifier, BaggingRegressor
from erasable.ensemble._forest import RandomForestClassifier, RandomForestRegressor
from erasable.ensemble._forest_extra import ExtraTreesClassifier, ExtraTreesRegressor
from erasable.ensemble._sharded import ShardedClassifier, ShardedRegressor

__all__ = [
    "BaggingClassifier",
    "BaggingRegressor",
    "ExtraTreesClassifier",
    "ExtraTreesRegressor",
    "RandomForestClassifier",
    "RandomForestRegressor",
    "ShardedClassifier",
    "ShardedRegressor",
]
