"""Ensembles, from which a record can be deleted.

The law they keep is that of every room: after `delete` an ensemble is, bit for bit, the one that a
fit without those records makes. Which trees learn from a record is drawn for that record alone.
"""

from erasable.ensemble._forest import RandomForestClassifier, RandomForestRegressor
from erasable.ensemble._forest_extra import ExtraTreesClassifier, ExtraTreesRegressor

__all__ = [
    "ExtraTreesClassifier",
    "ExtraTreesRegressor",
    "RandomForestClassifier",
    "RandomForestRegressor",
]
