"""Names of estimators and models.

The law kept here: a name chooses among the public estimators of erasable and scikit-learn, and
runs nothing else.
"""

from __future__ import annotations

import difflib
import importlib
import importlib.util
import inspect
import re
from types import ModuleType
from typing import Any

from sklearn.base import BaseEstimator
from sklearn.utils.discovery import all_estimators

import erasable
from erasable.core.errors import InvalidParameterError, WorkspaceError
from erasable.core.ids import shorten

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,199}")
_NETWORKS = "neural"  # which `erasable` does not list, because it needs torch


def find_estimator(name: str) -> type[BaseEstimator]:
    """Return the class of a dotted name.

    The name is below ``erasable.`` ("cluster.KMeans"), or full ("sklearn.svm.SVC"). A class of
    erasable may be named alone if only one has the name.

    >>> find_estimator("cluster.KMeans")
    <class 'erasable.cluster._kmeans.KMeans'>
    >>> find_estimator("cluster.KMaens")
    Traceback (most recent call last):
    erasable.core.errors.InvalidParameterError: there is no estimator 'cluster.KMaens'; ...
    """
    if name.startswith("sklearn."):
        found = _of_scikit_learn(name)
        if found is not None:
            return found
        known = names_of_scikit_learn()
    else:
        short = name.removeprefix("erasable.")
        home, _, last = short.partition(".")
        if home == _NETWORKS:
            _refuse_no_torch()
        if (home == _NETWORKS or home in dir(erasable)) and last in _exported(home):
            found = _member(home, last)
            if found is not None:
                return found  # and nothing else is imported
        ours = _ours()
        alone = [path for path in ours if path.rpartition(".")[2] == short]
        if len(alone) == 1:
            return ours[alone[0]]
        known = list(ours)
    raise InvalidParameterError(
        f"there is no estimator {shorten(name)}; expected one of erasable or scikit-learn; "
        f"{closest(name, known)}"
    )


def closest(name: str, known: list[str]) -> str:
    """Suggest known names for an unknown one.

    >>> closest("n_cluster", ["n_clusters", "max_iter"])
    'did you mean n_clusters?'
    >>> closest("nothing", ["n_clusters", "max_iter"])
    'choose from max_iter, n_clusters'
    """
    by_last: dict[str, list[str]] = {}
    for each in known:
        by_last.setdefault(_last(each), []).append(each)
    near = [_last(name)] if _last(name) in by_last else []
    near = near or difflib.get_close_matches(_last(name), by_last, 3)
    found = [each for last in near for each in by_last[last]]
    if found:
        return f"did you mean {' or '.join(found[:3])}?"
    return f"choose from {', '.join(sorted(known)[:40])}"


def _last(name: str) -> str:
    return name.rpartition(".")[2].rpartition("__")[2].lower()


def _packages() -> list[str]:
    """Name what may export estimators: networks are left out where torch is not installed."""
    networks = [_NETWORKS] if importlib.util.find_spec("torch") else []
    return [*dir(erasable), *networks]


def _refuse_no_torch() -> None:
    try:
        importlib.import_module(f"erasable.{_NETWORKS}")
    except ModuleNotFoundError as error:
        raise InvalidParameterError(str(error)) from None


def _ours() -> dict[str, type[BaseEstimator]]:
    return {
        f"{package}.{name}": found
        for package in _packages()
        for name in _exported(package)
        if (found := _member(package, name)) is not None
    }


def _module(package: str) -> Any:
    if package == _NETWORKS:
        return importlib.import_module(f"erasable.{package}")
    return getattr(erasable, package)


def _exported(package: str) -> list[str]:
    module = _module(package)
    return list(module.__all__) if isinstance(module, ModuleType) else []


def _member(package: str, name: str) -> type[BaseEstimator] | None:
    """Return an estimator that a package of erasable exports."""
    from erasable.core.estimator import Erasable

    value = getattr(_module(package), name)
    kind = BaseEstimator if package == _NETWORKS else Erasable  # one that learns is refitted
    return value if inspect.isclass(value) and issubclass(value, kind) else None


def _of_scikit_learn(name: str) -> type[BaseEstimator] | None:
    home, _, last = name.rpartition(".")
    if any(part.startswith("_") or part in ("tests", "conftest") for part in name.split(".")):
        return None
    try:
        found: Any = getattr(importlib.import_module(home), last, None)
    except ImportError:
        return None
    return found if inspect.isclass(found) and issubclass(found, BaseEstimator) else None


def names_of_scikit_learn() -> list[str]:
    """Return the full names of scikit-learn's estimators."""
    return [
        ".".join(part for part in cls.__module__.split(".") if not part.startswith("_"))
        + f".{name}"
        for name, cls in all_estimators()
    ]


def names_of_erasable() -> list[str]:
    """Return the names of erasable's estimators, without the "erasable." before them."""
    return list(_ours())


def check_name(name: str, what: str = "model") -> None:
    """Refuse a name of a model, or of `what`, that is empty, too long, or has other characters."""
    if not _NAME.fullmatch(name):
        raise WorkspaceError(
            f"{name[:60]!r} cannot be the name of a {what}; expected letters, digits, '.', '_' and "
            "'-', up to 200"
        )
