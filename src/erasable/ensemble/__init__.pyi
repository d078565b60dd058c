from erasable.ensemble._bagging import BaggingClassifier, BaggingRegressor
from erasable.ensemble._boosting._classifier import HistGradientBoostingClassifier
from erasable.ensemble._boosting._regressor import HistGradientBoostingRegressor
from erasable.ensemble._forest import (
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from erasable.ensemble._sharded import ShardedClassifier, ShardedRegressor

__all__ = [
    "BaggingClassifier",
    "BaggingRegressor",
    "ExtraTreesClassifier",
    "ExtraTreesRegressor",
    "HistGradientBoostingClassifier",
    "HistGradientBoostingRegressor",
    "RandomForestClassifier",
    "RandomForestRegressor",
    "ShardedClassifier",
    "ShardedRegressor",
]
