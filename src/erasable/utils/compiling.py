"""Compile all kernels ahead, as `erasable compile` does: for an image of a container, say.

A kernel is compiled when it is first called, for the types that it is called with. So all there is
to do is what users do, with a few records: fit, predict, delete, and delete from a file.
"""

from __future__ import annotations

import contextlib
import importlib
import multiprocessing
import os
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from typing import Any

import numpy as np

import erasable
from erasable.core import _jit

__all__ = ["Compiled", "compile_kernels"]

_N, _D = 240, 4
_COUNTS = ("BernoulliNB", "CategoricalNB", "MultinomialNB", "OneHotEncoder", "OrdinalEncoder")
_TEXTS = ("CountVectorizer", "TfidfVectorizer")
_FORESTS = ("ExtraTrees", "RandomForest")
# The longest first, so that no process is left alone with one of them.
_LONG = ("KMeans", "RandomForestClassifier", "RandomForestRegressor", "QuantizedKMeans")


@dataclass(frozen=True)
class Compiled:
    """What was compiled for an estimator.

    Attributes
    ----------
    name : str
        The estimator.
    n_kernels : int
        Kernels compiled, for one combination of types each; 0 where all were there already.
    seconds : float

    Examples
    --------
    >>> Compiled("KMeans", 12, 9.5).n_kernels
    12
    """

    name: str
    n_kernels: int
    seconds: float


def compile_kernels(
    names: list[str] | None = None,
    *,
    n_jobs: int | None = None,
    tell: Callable[[Compiled], None] | None = None,
) -> list[Compiled]:
    """Compile what fitting, predicting and deleting need, and keep it for later processes.

    Parameters
    ----------
    names : list of str, optional
        Estimators; by default all.
    n_jobs : int, optional
        Processes; by default one for each core. (Threads would wait for each other.)
    tell : callable, optional
        Called with each estimator that is done.

    Returns
    -------
    list of Compiled
        In the order of the names.

    Examples
    --------
    >>> [each.name for each in compile_kernels(["MinMaxScaler"], n_jobs=1)]
    ['MinMaxScaler']
    """
    from erasable.utils.discovery import all_estimators

    known = {name: (cls.__module__, tags["kind"]) for name, cls, tags in all_estimators()}
    wanted = list(known) if names is None else names
    order = sorted(wanted, key=lambda name: _LONG.index(name) if name in _LONG else len(_LONG))
    found: dict[str, Compiled] = {}

    def add(each: Compiled) -> None:
        found[each.name] = each
        if tell is not None:
            tell(each)

    if n_jobs == 1:
        for name in order:
            add(_compile(name, *known[name]))
    else:
        processes = multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(n_jobs or _n_cores(), mp_context=processes) as pool:
            for future in as_completed(
                [pool.submit(_compile, name, *known[name]) for name in order]
            ):
                add(future.result())
    return [found[name] for name in wanted]


def _n_cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _compile(name: str, home: str, kind: str) -> Compiled:
    """Use an estimator in this process."""
    began, before = time.perf_counter(), _jit.n_compiled()
    with _jit.silence(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of 240 records, about which nobody asks
        cls = getattr(importlib.import_module(home), name)
        for estimator, X, y in _scenes(name, cls, kind):
            _use(estimator, X, y)
        _jit.wait()
    return Compiled(name, _jit.n_compiled() - before, time.perf_counter() - began)


def _use(estimator: Any, X: Any, y: Any) -> None:
    """Fit, predict and delete; then the same from files, with ids that are texts."""
    targets = () if y is None else (y,)
    model = estimator.fit(X, *targets)
    for method in ("transform", "predict", "predict_proba"):
        with contextlib.suppress(AttributeError, NotImplementedError):
            getattr(model, method)(X[:20])
    for ids in ([3], [5], [7, 8], [9]):
        model.delete(ids)
        _jit.wait()
    model.digest()
    named = np.array([f"visit-{i}" for i in range(_N)])
    model = estimator.fit(X, *targets, ids=named)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "model")
        model.save(path, records=True)
        for gone in (["visit-3"], ["visit-7", "visit-8"]):
            again = erasable.load(path, True)
            again.delete(gone)
            again.save(path, records=True)


def _scenes(name: str, cls: Any, kind: str) -> Iterator[tuple[Any, Any, Any]]:
    rng = np.random.default_rng(0)
    X: Any = rng.normal(size=(_N, _D))
    amount = X @ np.arange(1.0, _D + 1)
    y: Any = {"classifier": (amount > 0).astype(np.int64), "regressor": amount}.get(kind)
    if name in _COUNTS:
        X = rng.integers(0, 5, size=(_N, _D))
        if name == "CategoricalNB":
            X[:8] = 4  # those that leave are not the last of a category
    if name in _TEXTS:
        X = [" ".join(f"word{i}" for i in row) for row in rng.integers(0, 40, (_N, 12))]
    if name == "Refit":
        y = amount
    yield _made(name, cls), X, y


def _made(name: str, cls: Any) -> Any:
    if name.startswith(_FORESTS):
        return cls(n_estimators=3, random_state=0)
    if name.endswith("KMeans"):
        return cls(n_clusters=3, random_state=0)
    if name == "Pipeline":
        return importlib.import_module("erasable.pipeline").make_pipeline(
            _of("preprocessing", "StandardScaler"), _of("cluster", "KMeans", 3, random_state=0)
        )
    if name == "ColumnTransformer":
        return cls([("scale", _of("preprocessing", "StandardScaler"), [0, 1])])
    if name.startswith(("Bagging", "Sharded")) or name == "Refit":
        tree = "DecisionTreeClassifier" if name.endswith("Classifier") else "DecisionTreeRegressor"
        base = getattr(importlib.import_module("sklearn.tree"), tree)(max_depth=3)
        return cls(base, random_state=0)
    return cls()


def _of(home: str, name: str, *args: Any, **params: Any) -> Any:
    return getattr(importlib.import_module(f"erasable.{home}"), name)(*args, **params)
