"""Classes and functions by name: what a file may bring back to life, and nothing else.

A file names classes of scikit-learn, which are made without running their constructors, a few
compiled ones that are made of numbers, and functions that only compute. Anything else that an
estimator holds must be among the parameters it was given, in this very process.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from erasable.core.errors import ArtifactError, InvalidParameterError
from erasable.core.params import find_function, function_path

Known = Mapping[str, Any]
"""Classes and functions among the parameters of an estimator, by name."""

CONSTRUCTED = ("sklearn._loss._loss", "sklearn.linear_model._sgd_fast", "sklearn.tree._tree")
"""Modules of compiled classes that are made by a call, with numbers."""

_HOMES = ("builtins", "numpy", "scipy", "sklearn")
_PLAIN_TYPES = {f"builtins.{kind.__name__}": kind for kind in (bool, int, float, str, object)}


def is_named(thing: Any) -> bool:
    """Tell whether something is a class or a function, which are known by their names."""
    return isinstance(thing, type | np.ufunc) or (
        callable(thing) and hasattr(thing, "__qualname__")
    )


def parts_of(estimator: BaseEstimator) -> Iterator[Any]:
    """Walk an estimator, its parameters, theirs, and what lists and dicts of them hold."""
    waiting: list[Any] = [estimator]
    seen: set[int] = set()
    while waiting:
        part = waiting.pop()
        if id(part) in seen:
            continue
        seen.add(id(part))
        yield part
        if isinstance(part, list | tuple):
            waiting += part
        elif isinstance(part, Mapping):
            waiting += [*part.keys(), *part.values()]
        elif isinstance(part, BaseEstimator):
            waiting += part.get_params(deep=False).values()


def known_to(estimator: BaseEstimator) -> dict[str, Any]:
    """Collect classes and functions of an estimator; InvalidParameterError for nameless ones."""
    found: dict[str, Any] = {}
    for part in parts_of(estimator):
        thing = type(part) if isinstance(part, BaseEstimator) else part
        if not is_named(thing):
            continue
        name = function_path(thing)
        if "<" in name and not isinstance(part, BaseEstimator):
            raise InvalidParameterError(
                f"{type(estimator).__name__} is given a function without a name of its own; "
                "expected one that can be told from others by its name; "
                "define it with def at the top of a module"
            )
        found[name] = thing
    return found


def is_foreign(thing: Any) -> bool:
    """Tell whether a class or function is neither Python's, NumPy's, SciPy's nor scikit-learn's."""
    return function_path(thing).partition(".")[0] not in _HOMES


def find(name: str, known: Known) -> Any:
    """Find a class or function by its name, if it is `known` or any file may name it."""
    found: Any = known.get(name, _find(name))
    if found is None:
        raise ArtifactError(
            f"the file names {name!r}; expected something of scikit-learn that only computes; "
            "fit again where it is at hand"
        )
    return found


def find_class(name: str, known: Known) -> Any:
    """Find a class of scikit-learn, or one that is `known`; raise ArtifactError for others."""
    found = find(name, known)
    if not isinstance(found, type) or not (name in known or name.startswith("sklearn.")):
        raise ArtifactError(
            f"the file holds a {name!r}; expected an object of scikit-learn; fit and save again"
        )
    return found


def resolves(thing: Any, known: Known) -> bool:
    """Tell whether `find` would find a class or function again by its name."""
    name = function_path(thing)
    return known.get(name, _find(name)) is thing


@functools.cache
def _find(name: str) -> Any:
    if name in _PLAIN_TYPES:
        return _PLAIN_TYPES[name]
    try:
        return find_function(name)
    except ArtifactError:
        pass
    home, _, last = name.rpartition(".")
    if not home.startswith("sklearn.") or ".tests" in home:
        return None
    try:
        found = getattr(importlib.import_module(home), last, None)
    except (ImportError, ValueError):
        return None
    own = isinstance(found, type) and found.__module__ == home
    return found if own else None
