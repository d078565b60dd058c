"""Boosted trees of XGBoost and LightGBM: the bytes that their libraries write are the plain copy.

Neither library is imported here before an estimator of it is there. A fit is a function of records
and seed in one thread. LightGBM would time two ways of adding when it starts, and take the faster
one; it is set to add by rows.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from erasable.core.params import BOOSTED, function_path
from erasable.refit._names import parts_of

_NUMBERS = (bool, int, float, type(None))
_ROWS, _COLUMNS = "force_row_wise", "force_col_wise"
_THREADS = {"nthread", "nthreads", "num_thread", "num_threads"}
"""Other names of ``n_jobs``."""


def _of_xgboost(kind: Any, content: bytes) -> Any:
    made = kind()
    made.load_model(bytearray(content))
    return made


_BOOSTERS: Mapping[str, tuple[Callable[[Any], bytes], Callable[[Any, bytes], Any]]] = {
    "xgboost.core.Booster": (lambda booster: bytes(booster.save_raw("ubj")), _of_xgboost),
    "lightgbm.basic.Booster": (
        lambda booster: booster.model_to_string(num_iteration=-1).encode(),
        lambda kind, content: kind(model_str=content.decode()),
    ),
}
"""Writer and reader of each library."""


def is_booster(kind: type) -> bool:
    """Tell whether objects of a class are written by the library that has made them."""
    return function_path(kind) in _BOOSTERS


def encode_booster(booster: Any) -> dict[str, Any]:
    """Return what the library writes of fitted trees."""
    name = function_path(type(booster))
    content = _BOOSTERS[name][0](booster)
    return {"is": "booster", "class": name, "bytes": np.frombuffer(content, dtype=np.uint8)}


def decode_booster(tree: Mapping[str, Any]) -> Any:
    """Read what `encode_booster` returned."""
    home, _, name = tree["class"].rpartition(".")
    read = _BOOSTERS[tree["class"]][1]
    content: NDArray[np.uint8] = tree["bytes"]
    return read(getattr(importlib.import_module(home), name), content.tobytes())


def boosted_parts(estimator: BaseEstimator) -> list[Any]:
    """Return an estimator's parts, or itself, that are boosted trees of these libraries."""
    return [part for part in parts_of(estimator) if function_path(type(part)) in BOOSTED]


def in_one_order(estimator: BaseEstimator) -> None:
    """Have boosted trees add in one thread, and in one order."""
    for part in boosted_parts(estimator):
        given = part.get_params()
        part.set_params(n_jobs=1, **dict.fromkeys(_THREADS & given.keys(), 1))
        if type(part).__module__.startswith("lightgbm."):
            rows = {} if given.get(_ROWS) or given.get(_COLUMNS) else {_ROWS: True}
            part.set_params(deterministic=True, **rows)


def undeclared(part: Any) -> list[str]:
    """Return parameters that the constructor does not name, but numbers; some are files."""
    declared: set[str] = set()
    for base in type(part).__mro__[:-1]:  # constructors hand on what their bases name
        declared.update(inspect.signature(base).parameters)
    given = part.get_params(deep=False).items()
    return sorted(n for n, each in given if n not in declared and not isinstance(each, _NUMBERS))
