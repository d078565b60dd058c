from ._bagging import BaggingClassifier, BaggingRegressor
from ._boosting._classifier import HistGradientBoostingClassifier
from ._boosting._regressor import HistGradientBoostingRegressor
from ._forest import (
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from ._sharded import ShardedClassifier, ShardedRegressor

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
