"""Fitting an estimator of scikit-learn so that the result depends on nothing but the records.

Four other influences are excluded: the seeds of its generators are replaced; the caller fixes the
order of the rows; there is one thread, because their number changes the order of sums; and threads
that draw from a generator of the whole process wait for each other.
"""

from __future__ import annotations

import functools
import os
import random
import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any

import numpy as np
from joblib import parallel_config
from joblib.parallel import get_active_backend
from numpy.typing import NDArray
from scipy.sparse import coo_array, issparse
from sklearn import config_context
from sklearn.base import BaseEstimator, clone
from sklearn.exceptions import NotFittedError
from sklearn.utils import _param_validation as sklearn_validation
from threadpoolctl import ThreadpoolController

from erasable.core._grid_kernels import MAX_TOP
from erasable.core.digest import flatten, leaf_hash
from erasable.core.errors import (
    InvalidDataError,
    InvalidParameterError,
    MagnitudeError,
    UnlearnableError,
)
from erasable.core.ids import shorten
from erasable.core.matrices import entries
from erasable.core.tape import Tape
from erasable.refit._boosters import in_one_order
from erasable.refit._names import Known, is_foreign, parts_of

_FLOAT32 = float(np.finfo(np.float32).max)
_NUMBERS = (int, float, np.number)
_BELOW_SEED = 2**32  # of NumPy's old generators, which scikit-learn uses
_LOCK = threading.RLock()


def _renew_lock() -> None:
    global _LOCK
    _LOCK = threading.RLock()


if hasattr(os, "register_at_fork"):  # the thread that held it is not in the child
    os.register_at_fork(after_in_child=_renew_lock)


def seeds_of(estimator: BaseEstimator, tape: Tape) -> dict[str, int]:
    """Draw a value for every parameter ``random_state``, those of parts included."""
    names = [
        name
        for name in estimator.get_params(deep=True)
        if name.rpartition("__")[2] == "random_state"
    ]
    return {name: tape.child("random_state", name).seed % _BELOW_SEED for name in names}


def seeded(template: BaseEstimator, tape: Tape) -> BaseEstimator:
    """Copy an estimator, not fitted, and give it the seeds of a tape."""
    estimator: BaseEstimator = clone(template)
    estimator.set_params(**seeds_of(estimator, tape))
    in_one_order(estimator)
    return estimator


def learn(
    estimator: BaseEstimator, method: str, X: Any, y: NDArray[Any] | None, **named: Any
) -> BaseEstimator:
    """Fit (or `partial_fit`) an estimator, in one thread; its errors become ours, on one line.

    Raise UnlearnableError if it cannot learn from these records, MagnitudeError if there are also
    numbers beyond ``2**480``, InvalidParameterError if it refuses its own parameters.
    """
    name = type(estimator).__name__
    given = (X,) if y is None else (X, y)
    # A pipeline takes weights by the name of a step, but refuses them where it routes metadata.
    routes = config_context(enable_metadata_routing=False) if named else nullcontext()
    try:
        with _undisturbed(estimator), one_thread(estimator), routes:
            return getattr(estimator, method)(*given, **named)
    except sklearn_validation.InvalidParameterError as error:
        raise InvalidParameterError(
            f"{name} refuses a parameter: {_text(error, whole=True)}; expected parameters that it "
            "takes; set others"
        ) from None
    except (ValueError, TypeError, ArithmeticError) as error:
        if _is_huge(X):
            raise MagnitudeError(
                f"{name} cannot learn from values beyond 2**{MAX_TOP} (it says: {_text(error)}); "
                "expected smaller magnitudes; divide such columns by a constant"
            ) from None
        raise UnlearnableError(
            f"{name} cannot learn from n_samples={_size(X)} ({type(error).__name__}: "
            f"{_text(error)}); expected records that it can learn from, and enough of them; "
            "give it more or other records, or other parameters"
        ) from None


def ask(
    estimator: BaseEstimator,
    method: str,
    given: Any,
    *others: Any,
    matrix: Any,
    names: Sequence[str] | None = None,
    columns: NDArray[Any] | None = None,
) -> Any:
    """Have an estimator predict for rows `given` in its form; `matrix` is for messages.

    Raise MagnitudeError if it fails and numbers exceed float32, InvalidDataError if it fails
    otherwise.
    """
    flags: dict[str, int] = {}
    try:
        with np.errstate(over="call", invalid="call", call=flags.__setitem__):
            answer = getattr(estimator, method)(given, *others)
        for kind in flags:  # where it fails instead, the error says it
            warnings.warn(f"{kind} encountered in {method}", RuntimeWarning, stacklevel=3)
        return answer
    except NotFittedError:
        raise
    except (ValueError, ArithmeticError) as error:
        name = type(estimator).__name__
        place = _beyond_float32(matrix, names, columns) if "float32" in str(error) else ""
        if place:
            raise MagnitudeError(
                f"{name} cannot answer {method} for a value beyond float32, in {place} of X; "
                "expected numbers up to 3.4e38; divide such columns by a constant, and fit again"
            ) from None
        raise InvalidDataError(
            f"{name} cannot answer {method} ({type(error).__name__}: {_text(error)}); expected "
            "rows, and targets, as it was fitted on"
        ) from None


def _beyond_float32(matrix: Any, names: Sequence[str] | None, columns: NDArray[Any] | None) -> str:
    """Name the first row and column with a number that float32 does not hold; "" if none has."""
    table: Any = coo_array(matrix) if issparse(matrix) else np.asarray(matrix)
    if table.dtype == object:
        numbers = [[x if isinstance(x, _NUMBERS) else 0.0 for x in row] for row in table]
        table = np.array(numbers, dtype=np.float64)
    if table.dtype.kind != "f":
        return ""
    if issparse(table):
        places = np.transpose(table.coords)[np.abs(table.data) > _FLOAT32]
    else:
        places = np.argwhere(np.abs(table) > _FLOAT32)
    if not len(places):
        return ""
    row, column = min(places.tolist())
    if names is not None:
        return f"row {row}, column {shorten(names[column])}"
    return f"row {row}, column {column if columns is None else columns[column]}"


def refuse_chance(template: BaseEstimator, known: Known, learned: Callable[[], Any]) -> None:
    """Refuse an estimator whose fits depend on more than the records and its seeds.

    `learned` learns from a few records and returns plain values; it is called twice, with the
    global generators in different states. Only estimators with parts from outside scikit-learn are
    tried; one that cannot learn from so few records is accepted.
    """
    if not any(is_foreign(part) for part in known.values()):
        return
    leaves = []
    for seed in (0, 1):
        try:
            with _LOCK, _global_chance(seed):
                tree = {"": learned()}
        except Exception:
            return
        leaves.append({name: leaf_hash(name, value) for name, value in flatten(tree)})
    one, two = leaves
    if one != two:
        differing = sorted(
            name for name in one.keys() | two.keys() if one.get(name) != two.get(name)
        )
        names = [name for name in ".".join(differing[:1]).split(".") if name.endswith("_")]
        raise InvalidParameterError(
            f"{type(template).__name__} is not deterministic: two fits to the same records differ"
            f"{f' in {names[0]}' if names else ''}; expected one that draws from its parameter "
            "random_state alone; let it do so, and change nothing global"
        )


def _packages(estimator: BaseEstimator) -> tuple[str, ...]:
    kinds = [type(part) for part in parts_of(estimator) if isinstance(part, BaseEstimator)]
    return tuple(sorted({kind.__module__.partition(".")[0] for kind in kinds}))


@functools.cache
def _controller(packages: tuple[str, ...]) -> ThreadpoolController:
    """Find the libraries with threads, once they are loaded by the packages that use them."""
    return ThreadpoolController()


@contextmanager
def one_thread(estimator: BaseEstimator) -> Iterator[None]:
    """Keep the libraries that an estimator computes with to one thread."""
    with _controller(_packages(estimator)).limit(limits=1):
        yield


def draws_from_process(estimator: BaseEstimator) -> bool:
    """Tell whether fits may draw from the process's generator; True for foreign estimators."""
    # Late, because sklearn.svm takes a while to import.
    from sklearn import svm
    from sklearn.calibration import CalibratedClassifierCV
    from sklearn.linear_model import LogisticRegression, LogisticRegressionCV

    # LIBLINEAR and LIBSVM have one generator for the process, which they seed at each fit.
    machines = tuple(
        getattr(svm, name) for name in svm.__all__ if isinstance(getattr(svm, name), type)
    )
    liblinear = logistic = False
    for part in parts_of(estimator):
        if isinstance(part, machines):
            return True
        if isinstance(part, CalibratedClassifierCV) and part.estimator is None:
            return True  # it takes a LinearSVC
        if isinstance(part, BaseEstimator) and is_foreign(type(part)):
            return True
        logistic |= isinstance(part, LogisticRegression | LogisticRegressionCV)
        liblinear |= isinstance(part, str) and part == "liblinear"  # in a grid to search, too
    return logistic and liblinear


@contextmanager
def _undisturbed(estimator: BaseEstimator) -> Iterator[None]:
    """Keep all other threads from what an estimator draws from, its own among them."""
    if not draws_from_process(estimator):
        yield
        return
    with _LOCK, _one_after_the_other(estimator):
        yield


def _one_after_the_other(estimator: BaseEstimator) -> Any:
    """Have an estimator that starts several jobs carry them out in one thread, or in processes."""
    backend, _ = get_active_backend()
    parts = [part for part in parts_of(estimator) if isinstance(part, BaseEstimator)]
    jobs = [part for part in parts if getattr(part, "n_jobs", None) not in (None, 1)]
    # What jobs of jobs are carried out in are threads of a process.
    if getattr(backend, "supports_sharedmem", False) or len(jobs) > 1:
        return parallel_config(backend="sequential", n_jobs=1)
    return nullcontext()


@contextmanager
def _global_chance(seed: int) -> Iterator[None]:
    before, before_numpy = random.getstate(), np.random.get_state()
    random.seed(seed)
    np.random.seed(seed)
    try:
        yield
    finally:
        random.setstate(before)
        np.random.set_state(before_numpy)


def _is_huge(X: Any) -> bool:
    values = entries(X)
    if isinstance(values, Sequence):  # documents
        return False
    try:
        numbers = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        return False
    with np.errstate(invalid="ignore"):
        return bool((np.abs(numbers) > 2.0**MAX_TOP).any())


def _size(X: Any) -> str:
    return f"{X.shape[0]}, n_features={X.shape[1]}" if hasattr(X, "shape") else f"{len(X)}"


def _text(error: Exception, *, whole: bool = False) -> str:
    """Quote an estimator's error up to the first colon or quote, after which may be a value."""
    text = " ".join(str(error).split())
    ends = () if whole else (":", "'", '"', "`", "[", "{")
    for end in (*ends, ". "):
        text = text.partition(end)[0]
    return text.strip().rstrip(".")[:200] or "nothing"
