"""Ensembles from which records can be deleted.

After `delete` a model is, bit for bit, the one that a fit without those records makes. The members
that learn from a record are drawn for that record (or its group) alone. Trees of a forest delete a
record themselves, and so do members that are estimators of erasable; members that are estimators of
scikit-learn are fitted again if they had one of the deleted records.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
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

# Imported as they are named: a forest needs nothing of what takes estimators of scikit-learn.
_HOMES = {
    "BaggingClassifier": "_bagging",
    "BaggingRegressor": "_bagging",
    "ExtraTreesClassifier": "_forest",
    "ExtraTreesRegressor": "_forest",
    "HistGradientBoostingClassifier": "_boosting._classifier",
    "HistGradientBoostingRegressor": "_boosting._regressor",
    "RandomForestClassifier": "_forest",
    "RandomForestRegressor": "_forest",
    "ShardedClassifier": "_sharded",
    "ShardedRegressor": "_sharded",
}


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
