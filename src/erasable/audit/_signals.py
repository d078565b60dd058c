"""Signals of a model on records: how sure it is of their targets."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_regressor

from erasable.audit._data import Sample
from erasable.core.arrays import Floats, Ints
from erasable.core.errors import InvalidInputError
from erasable.core.ids import shorten

__all__ = ["LEAST", "Signals", "predicts_numbers", "refuse_unknown_targets", "signals_of"]

LEAST = 1e-6
"""The least probability; smaller ones are raised to it: forests and neighbours give many zeros."""

_N_NAMED = 10

Signal = Callable[[Any, Any, NDArray[Any]], Floats]


@dataclass(frozen=True, eq=False)
class Signals:
    """How sure a model is of the target of each record."""

    # (n_records,): logarithm of the probability of the target, at a temperature; for a regressor,
    # minus half the squared error over the variance of the targets
    confidence: Floats
    # (n_records,): logarithm of the odds of the target, nearly normal over models (Carlini et al.
    # 2022, section IV.C); for a regressor, minus the squared error
    logit: Floats

    @classmethod
    def from_logs(cls, logs: Floats, columns: Ints, temperature: float = 1.0) -> Signals:
        """Return the signals from logarithms of the probabilities of all classes.

        `logs` have the shape (n_records, n_classes), up to a number for each record, and are
        divided by `temperature`; `columns` has the column of each record's target.
        """
        rows = np.arange(columns.size)
        warm = logs / temperature
        confidence = warm[rows, columns] - _log_sum(warm)
        others = logs.copy()
        others[rows, columns] = -np.inf
        return cls(confidence, logs[rows, columns] - _log_sum(others))


def _log_sum(logs: Floats) -> Floats:
    """Return logarithms of sums; SciPy's takes a third of a millisecond a call."""
    most = logs.max(axis=1)
    total: Floats = most + np.log(np.exp(logs - most[:, np.newaxis]).sum(axis=1))
    return total


def signals_of(
    model: Any,
    sample: Sample,
    *,
    temperature: float = 1.0,
    signal: Signal | None = None,
    knows_all: bool = True,
) -> Signals:
    """Ask a model for records and return how sure it is of their targets.

    Decisions are taken for log odds. ``signal(model, X, y)`` returns the log-likelihood of each
    target, for models without scores. With `knows_all`, targets that are no class of the model are
    refused; otherwise their probability is `LEAST`, as for a model of half the records that lacks a
    class.
    """
    if signal is not None:
        if not callable(signal):
            raise InvalidInputError(f"signal is {shorten(signal)}; expected a function")
        found = np.asarray(signal(model, sample.X, sample.y))
        if found.dtype.kind not in "iuf":
            raise InvalidInputError(
                f"signal returned values of dtype {found.dtype}; expected a number for each record"
            )
        found = found.astype(np.float64)
        if found.shape != (len(sample),) or not np.isfinite(found).all():
            raise InvalidInputError(
                f"signal returned an array of shape {found.shape} for {len(sample)} records; "
                "expected a finite number for each"
            )
        return Signals(found, found)
    _refuse_several_targets(model)
    logs = _logs_of(model, sample.X)
    if logs is not None:
        _refuse_answers(model, logs, (len(sample), len(model.classes_)))
        columns = _columns(model, sample)
        if knows_all:
            _refuse_unknown(model, sample, columns)
        if logs.shape[1] == 1 or np.any(columns < 0):  # one more class, unknown to the model
            logs = np.column_stack(
                [logs - _log_sum(logs)[:, np.newaxis], np.full(len(logs), np.log(LEAST))]
            )
        return Signals.from_logs(logs, columns, temperature)
    if predicts_numbers(model):
        predicted = np.asarray(model.predict(sample.X), dtype=np.float64)
        predicted = predicted[:, 0] if predicted.shape == (len(sample), 1) else predicted
        _refuse_answers(model, predicted, (len(sample),))
        y = _numbers(sample)
        squares = (predicted - y) ** 2
        return Signals(-squares / (2.0 * (float(np.var(y)) or 1.0)), -squares)
    raise InvalidInputError(
        f"a {type(model).__name__} has neither predict_proba nor decision_function and is no "
        "regressor; expected scores; pass signal=, which returns the log-likelihood of each target"
    )


def predicts_numbers(model: Any) -> bool:
    """Tell whether a model is a regressor; a model that scikit-learn does not know is not one."""
    return hasattr(model, "__sklearn_tags__") and bool(is_regressor(model))


def _logs_of(model: Any, X: Any) -> Floats | None:
    """Return logarithms of the probabilities of all classes, up to a number for each record."""
    if hasattr(model, "decision_function"):
        odds = np.asarray(model.decision_function(X), dtype=np.float64)
        if odds.ndim == 1:  # the margin of the second class is its log odds
            odds = np.column_stack([np.zeros_like(odds), odds])
        if odds.shape[1] == len(model.classes_):
            return odds
    if hasattr(model, "predict_proba"):
        return _logs(model.predict_proba(X))
    return None


def _logs(probabilities: Any) -> Floats:
    found: Floats = np.log(np.clip(np.asarray(probabilities, dtype=np.float64), LEAST, 1.0))
    return found


def _columns(model: Any, sample: Sample) -> Ints:
    """Return the class of each target, and -1 for one that the model does not know."""
    places = {label: k for k, label in enumerate(np.asarray(model.classes_).tolist())}
    return np.array([places.get(label, -1) for label in sample.y.tolist()], dtype=np.int64)


def refuse_unknown_targets(model: Any, sample: Sample, signal: Signal | None) -> None:
    """Refuse targets of one group of records that are no class of a model."""
    if signal is None and hasattr(model, "classes_"):
        _refuse_several_targets(model)
        _refuse_unknown(model, sample, _columns(model, sample))


def _refuse_unknown(model: Any, sample: Sample, columns: Ints) -> None:
    if np.any(columns < 0):
        unknown = sorted(set(sample.y[columns < 0].tolist()), key=str)
        known = np.asarray(model.classes_).tolist()
        raise InvalidInputError(
            f"{sample.name} has the targets {_some(unknown)}, and the model knows only the "
            f"classes {_some(known)}; expected records of these classes"
        )


def _refuse_several_targets(model: Any) -> None:
    classes = getattr(model, "classes_", None)
    if isinstance(classes, list) and any(np.ndim(each) for each in classes):
        raise InvalidInputError(
            f"a {type(model).__name__} has {len(classes)} targets for each record; expected one; "
            "audit the model of each target"
        )


def _refuse_answers(model: Any, answers: Floats, expected: tuple[int, ...]) -> None:
    if answers.shape != expected:
        raise InvalidInputError(
            f"a {type(model).__name__} answered with an array of shape {answers.shape}; expected "
            f"{expected}"
        )
    n_wrong = int((~np.isfinite(answers)).reshape(len(answers), -1).any(axis=1).sum())
    if n_wrong:
        raise InvalidInputError(
            f"a {type(model).__name__} gave no finite number for {n_wrong} of {len(answers)} "
            "records; expected one for each"
        )


def _numbers(sample: Sample) -> Floats:
    """Return targets of a regressor."""
    try:
        y = sample.y.astype(np.float64)
    except (TypeError, ValueError):
        y = np.full(len(sample), np.nan)
    if not np.isfinite(y).all():
        raise InvalidInputError(
            f"{sample.name} has targets that are no finite numbers; expected numbers for a "
            "regressor"
        )
    return y


def _some(labels: list[Any]) -> str:
    names = [shorten(each) for each in labels[:_N_NAMED]]
    return ", ".join(names) + (", ..." if len(labels) > _N_NAMED else "")
