"""Metrics of a model on groups of records, before and after a removal.

The groups are kept apart, because they answer different questions. Deleted records of forget say
what the model still knows of what it no longer holds; kept ones, what it goes on being trained on;
fresh ones, on which it never was, how far the domain is gone; and those of retain, what it cost.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.dummy import DummyClassifier
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import check_is_fitted

from erasable.core.arrays import Ints
from erasable.core.errors import InvalidDataError, InvalidInputError, InvalidParameterError
from erasable.core.ids import shorten
from erasable.removal._inputs import length_of, read_mask, refuse_label

__all__ = ["GROUPS", "Comparison", "RefitMetric", "RemovalReport", "measure", "removal_report"]

GROUPS = ("deleted forget", "kept forget", "retain", "fresh forget", "fresh retain")
"""The groups of `remove_domain`, and of a workspace."""

METRICS = {
    "accuracy": "accuracy",
    "predicted_forget": "predicted {label}",
    "log_loss": "log loss",
    "mean_absolute_error": "mean absolute error",
}
"""Names of metrics, and how a table heads them."""

Measures = Mapping[str, Mapping[str, float]]


@dataclass(frozen=True)
class Comparison:
    """One group of records, before and after.

    Attributes
    ----------
    group : str
    n_records : int
        0 of a group without records.
    before, after : dict of str to float
        Metrics by name; empty without records.

    Examples
    --------
    >>> Comparison("retain", 20, {"accuracy": 0.95}, {"accuracy": 0.9}).change("accuracy")
    -0.05
    """

    group: str
    n_records: int
    before: dict[str, float] = field(default_factory=dict)
    after: dict[str, float] = field(default_factory=dict)

    def change(self, metric: str) -> float:
        """Return the increase of a metric; NaN without records."""
        nothing = float("nan")
        return round(self.after.get(metric, nothing) - self.before.get(metric, nothing), 12)


@dataclass(frozen=True)
class RemovalReport:
    """Removal and preservation: what a model does on each group of records, before and after.

    Attributes
    ----------
    groups : tuple of Comparison
    forget_label : Any
        The class that `predicted_forget` counts, or None.
    method : dataclass or None
        The report of an approximate method; see `erasable.neural.approximate`.

    Examples
    --------
    >>> spam = Comparison("fresh forget", 40, {"accuracy": 0.9}, {"accuracy": 0.3})
    >>> print(RemovalReport((spam, Comparison("fresh retain", 0))))
                  records        accuracy
    fresh forget       40  0.900 -> 0.300
    fresh retain        0               -
    """

    groups: tuple[Comparison, ...]
    forget_label: Any = None
    method: Any = None

    def __getitem__(self, group: str) -> Comparison:
        """Return the comparison of a group."""
        for each in self.groups:
            if isinstance(group, str) and each.group == group:
                return each
        names = ", ".join(each.group for each in self.groups)
        raise InvalidInputError(f"there is no group {shorten(group)}; expected one of {names}")

    @property
    def metrics(self) -> tuple[str, ...]:
        """Names of the metrics, in the order of the table."""
        there = {name for each in self.groups for name in each.before}
        return tuple(name for name in METRICS if name in there)

    def heading(self, metric: str) -> str:
        """Return the heading of a metric in a table."""
        if not isinstance(metric, str) or metric not in METRICS:
            raise InvalidInputError(
                f"there is no metric {shorten(metric)}; expected one of {', '.join(METRICS)}"
            )
        return METRICS[metric].format(label=shorten(_plain(self.forget_label)))

    def to_dict(self) -> dict[str, Any]:
        """Return plain values: the label, and by group its size and its metrics.

        Examples
        --------
        >>> RemovalReport((Comparison("retain", 0),)).to_dict()
        {'forget_label': None, 'groups': {'retain': {'n_records': 0, 'before': {}, 'after': {}}}}
        """
        method = {} if self.method is None else {"method": asdict(self.method)}
        return method | {
            "forget_label": _plain(self.forget_label),
            "groups": {
                each.group: {
                    "n_records": each.n_records,
                    "before": dict(each.before),
                    "after": dict(each.after),
                }
                for each in self.groups
            },
        }

    def __str__(self) -> str:
        """Return a table."""
        rows = [["", "records", *(self.heading(name) for name in self.metrics)]]
        for each in self.groups:
            cells = [
                f"{each.before[name]:.3f} -> {each.after[name]:.3f}" if each.n_records else "-"
                for name in self.metrics
            ]
            rows.append([each.group, f"{each.n_records:,}", *cells])
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = [
            "  ".join(
                [row[0].ljust(widths[0])]
                + [cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True)]
            ).rstrip()
            for row in rows
        ]
        return "\n".join(lines if self.method is None else [*lines, str(self.method)])


def measure(
    model: Any, groups: Mapping[str, Any], *, forget_label: Any = None
) -> dict[str, dict[str, float]]:
    """Measure a model on groups of records.

    Parameters
    ----------
    model : fitted classifier or regressor
        Of erasable, or like those of scikit-learn.
    groups : mapping of str to (X, y), or None
        Records that the model can predict, with their targets; None for a group
        without records.
    forget_label : class label, default=None
        The class of the unwanted domain, where it is one: the share of records that are predicted
        to be of it is then a metric. In forget that is its recall, elsewhere false alarms.

    Returns
    -------
    dict of str to dict of str to float
        By group: for a classifier ``accuracy``, ``predicted_forget`` with a label, and ``log_loss``
        (nats; where there is ``predict_proba``) with a class that the model does not know at
        probability ``2**-52``; for a regressor ``mean_absolute_error``.

    Raises
    ------
    InvalidParameterError
        A model that predicts no target; a label with a regressor.
    InvalidDataError
        Records and targets of different numbers, or targets that are missing.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> X, y = [[0.0], [1.0], [3.0], [4.0]], ["ham", "ham", "spam", "spam"]
    >>> model = LogisticRegression().fit(X, y)
    >>> found = measure(model, {"retain": (X[:2], y[:2]), "fresh": None}, forget_label="spam")
    >>> sorted(found["retain"]), found["retain"]["predicted_forget"], found["fresh"]
    (['accuracy', 'log_loss', 'predicted_forget'], 0.0, {})
    """
    estimates = hasattr(model, "fit")
    if estimates:
        check_is_fitted(model)
    classifies = estimates and is_classifier(model)
    if not (classifies or (estimates and is_regressor(model))):
        raise InvalidParameterError(
            f"{type(model).__name__} predicts no target; expected a classifier or a regressor, "
            "which can be judged by what it predicts; pass one"
        )
    if forget_label is not None and not classifies:
        raise InvalidParameterError(
            f"forget_label={shorten(forget_label)} came with {type(model).__name__}, a regressor; "
            "expected it with a classifier alone; leave it out"
        )
    refuse_label(forget_label)
    read = {name: _read(name, group) for name, group in _mapping(groups).items()}
    found = {}
    for name, (X, y) in read.items():
        if not len(y):
            found[name] = dict[str, float]()
        elif classifies:
            found[name] = _of_classes(model, X, y, forget_label)
        else:
            errors = np.abs(np.asarray(model.predict(X), dtype=np.float64) - _numbers(name, y))
            found[name] = {"mean_absolute_error": float(errors.mean())}
    return found


def removal_report(
    before: Any, after: Any, groups: Mapping[str, Any], *, forget_label: Any = None
) -> RemovalReport:
    """Compare a model before a removal and after, on groups of records.

    Parameters
    ----------
    before, after : fitted model, or what `measure` returned for these groups
        A model that deletes changes in place: measure it before.
    groups : mapping of str to (X, y), or None
    forget_label : class label, default=None
        See `measure`.

    Returns
    -------
    RemovalReport

    Raises
    ------
    InvalidParameterError, InvalidDataError
        See `measure`; or measures of other groups.

    Examples
    --------
    >>> from erasable.naive_bayes import GaussianNB
    >>> X, y = [[0.0], [1.0], [3.0], [4.0], [0.9]], ["ham", "ham", "spam", "spam", "spam"]
    >>> model, groups = GaussianNB().fit(X, y), {"retain": (X[:2], y[:2])}
    >>> before = measure(model, groups)
    >>> _ = model.delete([4])
    >>> print(removal_report(before, model, groups))
            records        accuracy        log loss
    retain        2  1.000 -> 1.000  0.236 -> 0.000
    """
    sides = [
        each if isinstance(each, Mapping) else measure(each, groups, forget_label=forget_label)
        for each in (before, after)
    ]
    return _compared(sides[0], sides[1], _sizes(groups), forget_label)


class RefitMetric:
    """A metric of a sweep: what a model does that is fitted without some records of a domain.

    Parameters
    ----------
    model : classifier or regressor
        It is cloned, and fitted to the records that are kept. Estimators of erasable are the same
        after a deletion. Where one class is left, it is what a classifier always predicts.
    X, y : records and targets
    forget : array-like of bool, shape (n_records,)
        Which rows are of the domain; the others stay. Rows that a sweep deletes are counted among
        those of the domain.
    groups : mapping of str to (X, y)
        Groups of records to measure on; see `measure`.
    forget_label : class label, default=None
        See `measure`.

    Raises
    ------
    InvalidInputError
        `forget` is no mask of the records.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> from erasable.removal import sweep
    >>> rng = np.random.default_rng(0)
    >>> X = np.concatenate([rng.normal(0.0, 1.0, (90, 2)), rng.normal(2.0, 1.0, (90, 2))])
    >>> y = np.repeat(["spam", "ham"], 90)
    >>> fresh = {"fresh forget": (rng.normal(0.0, 1.0, (50, 2)), np.repeat("spam", 50))}
    >>> metric = RefitMetric(LogisticRegression(), X, y, forget=y == "spam", groups=fresh)
    >>> found = sweep("lr-maha", [0.0, 0.9], metric, X[:90], X[90:], seeds=1)
    >>> found.metrics
    ('fresh forget, accuracy', 'fresh forget, log_loss')
    >>> bool(found.values("lr-maha", "fresh forget, accuracy")[0, 1] < 0.5)
    True
    """

    def __init__(
        self, model: Any, X: Any, y: Any, *, forget: Any, groups: Any, forget_label: Any = None
    ) -> None:
        mask = read_mask(forget, length_of(X))
        if length_of(y) != mask.size:
            raise InvalidDataError(
                f"X has {mask.size} records and y {length_of(y)} targets; expected as many"
            )
        self.model, self.X, self.y = model, X, np.asarray(y)
        self.groups, self.forget_label = groups, forget_label
        self._own, self._other = np.flatnonzero(mask), np.flatnonzero(~mask)

    def __call__(self, kept: Ints) -> dict[str, float]:
        """Fit to what is left, and measure; names are ``group, metric``."""
        rows = np.sort(np.concatenate([self._own[kept], self._other]))
        y = self.y[rows]
        single = is_classifier(self.model) and len(np.unique(y)) == 1
        model = DummyClassifier() if single else clone(self.model)
        model.fit(_safe_indexing(self.X, rows), y)
        found = measure(model, self.groups, forget_label=self.forget_label)
        return {
            f"{group}, {name}": value
            for group, of_group in found.items()
            for name, value in of_group.items()
        }


def _compared(
    before: Measures, after: Measures, sizes: Mapping[str, int], forget_label: Any
) -> RemovalReport:
    """Pair the measures of the same groups before and after."""
    for name in sizes:
        if any(name not in side for side in (before, after)):
            raise InvalidInputError(
                f"there are no measures of the group {shorten(name)} on one side; expected those "
                "of the same groups; pass what measure returned for them"
            )
        first, second = before[name], after[name]
        if not (_are_measures(first) and _are_measures(second) and set(first) == set(second)):
            raise InvalidInputError(
                f"the measures of the group {shorten(name)} before and after are not the same "
                f"metrics; expected numbers by {', '.join(METRICS)}; pass what measure returned"
            )
    return RemovalReport(
        tuple(Comparison(n, sizes[n], dict(before[n]), dict(after[n])) for n in sizes),
        forget_label,
    )


def _are_measures(found: Any) -> bool:
    return isinstance(found, Mapping) and all(
        name in METRICS and isinstance(value, float | int | np.number)
        for name, value in found.items()
    )


def _plain(label: Any) -> Any:
    return label.item() if isinstance(label, np.generic) else label


def _of_classes(model: Any, X: Any, y: Any, forget_label: Any) -> dict[str, float]:
    predicted = np.asarray(model.predict(X))
    found = {"accuracy": float(np.mean(predicted == y))}
    if forget_label is not None:
        found["predicted_forget"] = float(np.mean(predicted == forget_label))
    if hasattr(model, "predict_proba"):
        found["log_loss"] = _log_loss(np.asarray(model.predict_proba(X)), model.classes_, y)
    return found


def _log_loss(shares: Any, classes: Any, y: Any) -> float:
    """Return the mean log-loss, also for classes that the model no longer has."""
    own = np.zeros(len(y))
    for place, label in enumerate(classes):
        rows = y == label
        own[rows] = shares[rows, place]
    return float(np.log(1.0 / np.clip(own, np.finfo(np.float64).eps, 1.0)).mean())


def _numbers(name: str, y: Any) -> Any:
    try:
        return y.astype(np.float64)
    except (TypeError, ValueError):
        raise InvalidDataError(
            f"the group {shorten(name)} has targets that are no numbers; expected numbers, which a "
            "regressor predicts; pass those"
        ) from None


def _read(name: str, group: Any) -> tuple[Any, Any]:
    if group is None:
        return None, np.empty(0)
    pair = isinstance(group, tuple | list) and len(group) == 2
    y = np.asarray(group[1]) if pair and group[1] is not None else None
    if y is None or y.ndim != 1:
        raise InvalidDataError(
            f"the group {shorten(name)} has no targets, or several for each record; expected a "
            "pair of records and one target for each; pass (X, y), or None without records"
        )
    X = group[0]
    n = length_of(X)
    if n != len(y):
        raise InvalidDataError(
            f"the group {shorten(name)} has {n} records and {len(y)} targets; expected as many; "
            "pass one target for each record"
        )
    return X, y


def _sizes(groups: Mapping[str, Any]) -> dict[str, int]:
    return {name: len(_read(name, group)[1]) for name, group in _mapping(groups).items()}


def _mapping(groups: Any) -> Mapping[str, Any]:
    if not isinstance(groups, Mapping):
        raise InvalidDataError(
            f"groups is {shorten(groups)}; expected a mapping of names to (X, y), or to None"
        )
    return groups
