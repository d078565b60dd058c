"""Comparison of two models, bit for bit, with the first difference."""

from __future__ import annotations

import functools
import tempfile
import unittest
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from erasable.core.errors import ErasableError, InvalidDataError, TooFewRecordsError
from erasable.core.matrices import to_dense
from erasable.utils._checks.data_sets import STANDARD, DataSet, suited

_METHODS = (
    "predict",
    "transform",
    "predict_proba",
    "decision_function",
    "score_samples",
    "apply",
)


Check: TypeAlias = Callable[..., None]


def law_check(check: Check) -> Check:
    """Prefix the messages of a check with its name, and report errors of the estimator."""

    @functools.wraps(check)
    def named(estimator: Any, *args: Any, **kwargs: Any) -> None:
        try:
            check(estimator, *args, **kwargs)
        except unittest.SkipTest:
            raise
        except AssertionError as error:
            raise AssertionError(f"{check.__name__}: {error}") from error
        except Exception as error:
            told = f"{type(estimator).__name__} raised {type(error).__name__}: {error}"
            raise AssertionError(f"{check.__name__}: {told}") from error

    return named


def model_check(check: Callable[[Any, DataSet, Any], None]) -> Check:
    """Make a check of an estimator from one of a data set and a model fitted on it."""

    def of_all(estimator: Any, data_sets: Sequence[DataSet] = STANDARD) -> None:
        for data, model in trained(estimator, data_sets):
            check(estimator, data, model)

    of_all.__name__, of_all.__doc__ = check.__name__, check.__doc__
    return law_check(of_all)


def demand(condition: object, told: str) -> None:
    """Raise AssertionError unless the condition holds, under ``python -O`` as well."""
    if not condition:
        raise AssertionError(told)


def seeds(estimator: Any) -> dict[str, Any]:
    """Find every parameter ``random_state``, those of an estimator's parts included."""
    params = estimator.get_params(deep=True).items()
    return {name: value for name, value in params if name.split("__")[-1] == "random_state"}


def seeded(estimator: Any) -> Any:
    """Clone an estimator, with 0 for every ``random_state`` that is left to chance."""
    copy = clone(estimator)
    return copy.set_params(**{name: 0 for name, value in seeds(copy).items() if value is None})


def fit(estimator: Any, data: DataSet) -> Any:
    """Fit a seeded clone on a data set, with its ids and groups."""
    model = seeded(estimator)
    return model.fit(data.X.copy(), data.y.copy(), ids=data.ids.copy(), groups=_copy(data.groups))


def _copy(groups: NDArray[Any] | None) -> NDArray[Any] | None:
    return None if groups is None else groups.copy()


def trained(estimator: Any, data_sets: Iterable[DataSet]) -> Iterator[tuple[DataSet, Any]]:
    """Fit a clone on each data set, made suitable for the estimator; yield data set and model.

    Data sets that are too small are left out; raise AssertionError if all are.
    """
    tried = []
    fitted = 0
    for data in suited(list(data_sets), estimator):
        tried.append(f"{data.name} ({len(data)} records)")
        try:
            model = fit(estimator, data)
        except TooFewRecordsError:
            continue
        fitted += 1
        yield data, model
    demand(fitted, f"fit raised TooFewRecordsError on every data set: {', '.join(tried)}")


def leaves(state: object, prefix: str = "") -> dict[str, Any]:
    """Flatten a state into dotted names and values."""
    if isinstance(state, Mapping):
        flat: dict[str, Any] = {}
        for name, value in state.items():
            flat.update(leaves(value, f"{prefix}.{name}" if prefix else str(name)))
        return flat
    return {prefix: state}


def differing(left: object, right: object) -> str | None:
    """Describe how two values differ in type, shape or bits; None if they do not."""
    if isinstance(left, np.ndarray) or isinstance(right, np.ndarray):
        return _differing_arrays(left, right)
    if isinstance(left, Mapping) and isinstance(right, Mapping):
        if left.keys() != right.keys():
            return f"other names: {sorted(map(str, left.keys() ^ right.keys()))}"
        parts = ((name, differing(value, right[name])) for name, value in left.items())
        return next((f"at {name!r}: {how}" for name, how in parts if how is not None), None)
    if isinstance(left, Sequence) and not isinstance(left, str | bytes):
        if type(left) is not type(right) or len(left) != len(right):
            return f"{type(left).__name__} against {type(right).__name__}, or other lengths"
        for index, pair in enumerate(zip(left, right, strict=True)):
            if (told := differing(*pair)) is not None:
                return f"at {index}: {told}"
        return None
    if type(left) is not type(right):
        return f"{type(left).__name__} against {type(right).__name__}"
    if isinstance(left, float | np.floating):
        return _differing_arrays(np.asarray(left), np.asarray(right))
    return None if left == right else f"{left!r} against {right!r}"


def _differing_arrays(left: object, right: object) -> str | None:
    if not (isinstance(left, np.ndarray) and isinstance(right, np.ndarray)):
        return f"{type(left).__name__} against {type(right).__name__}"
    if left.dtype != right.dtype or left.shape != right.shape:
        return f"{left.dtype}{left.shape} against {right.dtype}{right.shape}"
    if left.dtype.hasobject:
        return differing(left.tolist(), right.tolist())
    if left.tobytes() == right.tobytes():
        return None
    cells = (
        np.frombuffer(array.tobytes(), dtype=np.uint8).reshape(array.size, -1)
        for array in (left, right)
    )
    wrong = np.flatnonzero((next(cells) != next(cells)).any(axis=1))
    where = tuple(int(axis) for axis in np.unravel_index(wrong[0], left.shape))
    return (
        f"{len(wrong)} of {left.size} elements differ, first at {where}: "
        f"{left[where]!r} against {right[where]!r}"
    )


def saved(model: Any) -> bytes:
    """Return the bytes that ``model.save(path)`` writes."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model"
        model.save(path)
        return path.read_bytes()


def assert_same(left: Any, right: Any, told: str, *, save: bool = False) -> None:
    """Assert that two models have equal states and digests and, if asked, equal saved bytes.

    `told` says what was done, for the message: "after deleting 3 records from 'skewed'".
    """
    assert_same_state(left, right, told)
    demand(
        left.digest() == right.digest(),
        f"digest() differs {told}, though state() is equal: {left.digest()} "
        f"against {right.digest()}",
    )
    if save:
        demand(
            saved(left) == saved(right),
            f"the bytes of save() differ {told}, though state() and digest() are equal",
        )


def assert_same_state(left: Any, right: Any, told: str, *, but: str = "") -> None:
    """Demand that two models have equal states, but for components of one name."""
    mine, other = (
        {name: leaf for name, leaf in leaves(model.state()).items() if name.split(".")[-1] != but}
        for model in (left, right)
    )
    unshared = sorted(mine.keys() ^ other.keys())
    demand(not unshared, f"state() has other components {told}: {', '.join(unshared)}")
    for name in sorted(mine):
        difference = differing(mine[name], other[name])
        demand(difference is None, f"state()[{name!r}] differs {told}: {difference}")


def outputs(model: Any, data: DataSet) -> dict[str, Any]:
    """Call every prediction method that the model has; a named refusal is an answer, too."""
    told: dict[str, Any] = {}
    for name in _METHODS:
        if hasattr(model, name):
            try:
                made = getattr(model, name)(data.X)
            except InvalidDataError as error:  # a category that was deleted is unknown
                told[name] = type(error).__name__
                continue
            told[name] = np.asarray(to_dense(made))
    if hasattr(model, "score"):
        told["score"] = float(model.score(data.X, data.y))
    return told


def assert_same_outputs(left: Any, right: Any, data: DataSet, told: str) -> None:
    """Demand that two models predict, transform and score alike, bit for bit."""
    mine, other = outputs(left, data), outputs(right, data)
    unshared = sorted(mine.keys() ^ other.keys())
    demand(not unshared, f"other methods {told}: {', '.join(unshared)}")
    for name, value in mine.items():
        difference = differing(value, other[name])
        demand(difference is None, f"{name} differs {told}: {difference}")


def _holds_estimators(value: object) -> bool:
    if isinstance(value, list | tuple):
        return any(_holds_estimators(each) for each in value)
    return hasattr(value, "fit")


def attributes(model: Any) -> dict[str, Any]:
    """Collect the public fitted attributes (``labels_``) whose values can be compared."""
    names = {name for name in (*vars(model), *dir(type(model)))}
    found: dict[str, Any] = {}
    for name in sorted(names):
        if name.endswith("_") and not name.startswith("_"):
            value = getattr(model, name, None)
            if isinstance(value, np.ndarray | np.generic | int | float | str | list | tuple):
                if _holds_estimators(value):
                    continue  # estimators are equal to themselves alone
                found[name] = value
    return found


class Snapshot:
    """Public state and predictions of a fitted model, to prove that nothing changed it."""

    def __init__(self, model: Any, data: DataSet) -> None:
        self._model, self._data = model, data
        self._before = self._look()

    def _look(self) -> dict[str, Any]:
        model = self._model
        seen = {f"state()[{name!r}]": value for name, value in leaves(model.state()).items()}
        seen |= {"digest()": model.digest()}
        seen |= {f"get_params()[{name!r}]": v for name, v in model.get_params(deep=False).items()}
        seen |= {f"{name}(X)": value for name, value in outputs(model, self._data).items()}
        return seen | attributes(model)

    def assert_unchanged(self, told: str) -> None:
        """Assert that the model is unchanged; `told` says what was done, for the message."""
        try:
            after = self._look()
        except Exception as error:
            raise AssertionError(
                f"{told} broke the model: {type(error).__name__}: {error}"
            ) from error
        changed = sorted(self._before.keys() ^ after.keys())
        demand(not changed, f"{told} changed the model: {', '.join(changed)} came or went")
        for name, value in self._before.items():
            difference = differing(value, after[name])
            demand(difference is None, f"{told} changed the model: {name} differs: {difference}")


def assert_raises(
    expected: type[Exception] | tuple[type[Exception], ...],
    told: str,
    call: Callable[..., object],
    *args: Any,
    **kwargs: Any,
) -> None:
    """Assert that a call raises an error with a message of one line; `told` says what it does."""
    kinds = expected if isinstance(expected, tuple) else (expected,)
    names = " or ".join(kind.__name__ for kind in kinds)
    try:
        call(*args, **kwargs)
    except kinds as error:
        text = str(error.args[0]) if error.args else ""
        demand(text.strip(), f"{told} raised {type(error).__name__} without a message")
        single = not isinstance(error, ErasableError) or "\n" not in text.strip()
        demand(single, f"{told} raised {type(error).__name__} with a message of several lines")
    except Exception as error:
        raise AssertionError(
            f"{told} raised {type(error).__name__} ({error}); expected {names}"
        ) from error
    else:
        raise AssertionError(f"{told} raised nothing; expected {names}")
