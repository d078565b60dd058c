"""Data deletion for machine learning: take a record out of a model, and prove it.

>>> import erasable
>>> erasable.__version__
'0.2.0'

Importing `erasable` imports nothing else; what you name is imported when you name it.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from erasable.core.deletion import Deletion
    from erasable.core.estimator import load
    from erasable.core.records import Records
    from erasable.refit import Refit
    from erasable.utils.discovery import all_estimators

__all__ = ["Deletion", "Records", "Refit", "__version__", "all_estimators", "load"]
__version__ = "0.2.0"

_HOMES = {
    "Deletion": "erasable.core.deletion",
    "Records": "erasable.core.records",
    "Refit": "erasable.refit",
    "all_estimators": "erasable.utils.discovery",
    "load": "erasable.core.estimator",
}
_PACKAGES = (
    "audit",
    "cluster",
    "compose",
    "decomposition",
    "ensemble",
    "feature_extraction",
    "kernel",
    "linear_model",
    "model_selection",
    "naive_bayes",
    "neighbors",
    "neural_network",
    "pipeline",
    "preprocessing",
    "random_projection",
    "recommend",
    "removal",
    "selection",
    "svm",
    "tree",
    "utils",
)


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    if name in _PACKAGES:
        return importlib.import_module(f"erasable.{name}")
    raise AttributeError(f"module 'erasable' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*__all__, *_PACKAGES])
