"""List of every estimator of erasable, so that one test covers them all."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections.abc import Iterator
from types import ModuleType
from typing import Any

from sklearn.base import (
    ClassifierMixin,
    ClusterMixin,
    MetaEstimatorMixin,
    RegressorMixin,
    TransformerMixin,
)

import erasable
from erasable.core.estimator import Erasable
from erasable.core.params import class_path

__all__ = ["all_estimators"]

_WITHOUT = ("cli", "mlflow", "workspace")  # packages without estimators
# The first that fits: a clusterer may transform, too.
_KINDS = (
    ("classifier", ClassifierMixin),
    ("regressor", RegressorMixin),
    ("clusterer", ClusterMixin),
    ("transformer", TransformerMixin),
)


def all_estimators() -> list[tuple[str, type[Erasable], dict[str, Any]]]:
    """List the estimators of erasable: those that keep the law.

    `erasable.neural.ApproximateNetwork`, which does not, is left out.

    Returns
    -------
    list of (name, class, tags)
        Sorted by name. The tags are ``"exactness"`` (``"bitwise"`` or ``"converged"``),
        ``"kind"`` (``"classifier"``, ``"regressor"``, ``"clusterer"``,
        ``"transformer"`` or ``"other"``) and ``"meta"``, True for an estimator that is made of
        others and cannot be made without them.

    Examples
    --------
    >>> names = [name for name, _, tags in all_estimators() if tags["kind"] == "clusterer"]
    >>> "KMeans" in names
    True
    """
    found: dict[str, type[Erasable]] = {}
    for module in _public_modules(erasable):
        for name in getattr(module, "__all__", []):
            value = getattr(module, name, None)
            # Classes in `core` are bases of others.
            if (
                inspect.isclass(value)
                and issubclass(value, Erasable)
                and not value.__module__.startswith("erasable.core.")
                and value.exactness != "approximate"
            ):
                found[class_path(value)] = value
    estimators = [(cls.__name__, cls, _tags(cls)) for cls in found.values()]
    return sorted(estimators, key=lambda item: (item[0], class_path(item[1])))


def _public_modules(package: ModuleType) -> Iterator[ModuleType]:
    for entry in pkgutil.iter_modules(package.__path__, package.__name__ + "."):
        name = entry.name.rpartition(".")[2]
        if name.startswith("_") or name in _WITHOUT:
            continue
        try:
            module = importlib.import_module(entry.name)
        except ModuleNotFoundError as error:
            # A package whose optional dependency is not installed has no estimators here.
            if error.name is not None and error.name.partition(".")[0] != "erasable":
                continue
            raise
        yield module
        if entry.ispkg:
            yield from _public_modules(module)


def _tags(cls: type[Erasable]) -> dict[str, Any]:
    parameters = list(inspect.signature(cls).parameters.values())
    needs_some = any(
        parameter.default is parameter.empty
        and parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
        for parameter in parameters
    )
    return {
        "exactness": cls.exactness,
        "kind": next((kind for kind, mixin in _KINDS if issubclass(cls, mixin)), "other"),
        "meta": needs_some or issubclass(cls, MetaEstimatorMixin),
    }
