"""A metric of several selections as more and more owners leave (figure 5)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from erasable.core._plots import axes
from erasable.core.arrays import Floats, Ints
from erasable.core.errors import InvalidInputError, InvalidParameterError
from erasable.core.ids import shorten
from erasable.core.messages import refuse_signature
from erasable.core.seeds import seed_from
from erasable.selection._records import read_rows, read_selected, refuse_both

Metric = Callable[[NDArray[Any]], float]


@dataclass(frozen=True)
class Tradeoff:
    """A metric against the number of deletions.

    Attributes
    ----------
    n_deletions : ndarray of shape (n_steps,), int64
    mean, standard_error : ndarray of shape (n_steps,), float64
        Over simulations.

    Examples
    --------
    >>> Tradeoff(np.array([0]), np.array([0.9]), np.array([0.01])).mean
    array([0.9])
    """

    n_deletions: Ints
    mean: Floats
    standard_error: Floats


def tradeoff(
    selected: Any = None,
    metric: Metric | None = None,
    *,
    rows: Any = None,
    n_deletions: Sequence[int] | None = None,
    n_simulations: int = 100,
    random_state: Any = None,
) -> Tradeoff:
    """Measure a metric after random deletions.

    Parameters
    ----------
    selected : array-like of ids, default=None
        The records that were chosen.
    metric : callable
        ``metric(left)`` of those that are left, for instance the accuracy of a model that is
        trained on them: of their ids, in the order of `selected`; or, with `rows`, of their
        positions, in ascending order.
    rows : array-like of int, or boolean mask of shape (n_records,), default=None
        The positions of the records that were chosen, in place of `selected`.
    n_deletions : sequence of int, default=None
        By default eleven steps from none to all but one.
    n_simulations : int, default=100
        1 or more; the standard error of 1 is NaN.
    random_state : int, RandomState or None, default=None

    Returns
    -------
    Tradeoff

    Raises
    ------
    InvalidInputError, InvalidParameterError
        No record is selected, or there are more deletions than records; the metric is not
        callable, or returns what is not a number.

    See Also
    --------
    SubsetSelector.tradeoff : The same for the records that a selector chose.

    Examples
    --------
    >>> tradeoff([3, 5, 8], len, n_deletions=[0, 2], n_simulations=4, random_state=0).mean
    array([3., 1.])
    """
    refuse_both(selected, rows)
    chosen = read_selected(selected) if rows is None else np.sort(read_rows(rows, None))
    counts = _read_counts(n_deletions, len(chosen))
    _check_metric(metric)
    _check_simulations(n_simulations)
    assert metric is not None
    rng = np.random.default_rng(int(seed_from(random_state)))
    results = np.empty((n_simulations, len(counts)))
    for simulation in range(n_simulations):
        order = rng.permutation(len(chosen))
        for step, count in enumerate(counts):
            results[simulation, step] = _measured(metric, chosen[np.sort(order[count:])])
    error = np.full(len(counts), np.nan)
    if n_simulations > 1:
        error = results.std(axis=0, ddof=1) / np.sqrt(n_simulations)
    return Tradeoff(counts, results.mean(axis=0), error)


def _read_counts(n_deletions: Any, n: int) -> Ints:
    """Return the numbers of deletions, each once, in ascending order."""
    if not n:
        raise InvalidInputError("no record is selected; expected one or more")
    if n_deletions is None:
        return np.unique(np.linspace(0, n - 1, 11).astype(np.int64))
    try:
        given = np.asarray(n_deletions)
    except ValueError:
        given = np.zeros(0)
    if given.ndim != 1 or not len(given) or given.dtype.kind not in "iu":
        raise InvalidInputError(
            f"n_deletions={shorten(n_deletions)}; expected a list of integers from 0 to {n}"
        )
    if given.min() < 0 or given.max() > n:
        raise InvalidInputError(
            f"n_deletions goes from {given.min()} to {given.max()} for {n} chosen records; "
            f"expected 0 to {n}"
        )
    return np.unique(given.astype(np.int64))


def _check_metric(metric: Any) -> None:
    if not callable(metric):
        raise InvalidParameterError(
            f"metric={shorten(metric)}; expected a function of the records that are left"
        )
    refuse_signature(metric, "metric", "left")


def _check_simulations(value: Any) -> None:
    if not isinstance(value, int | np.integer) or isinstance(value, bool) or value < 1:
        raise InvalidParameterError(
            f"n_simulations={shorten(value)}; expected an integer of 1 or more"
        )


def _measured(metric: Metric, left: NDArray[Any]) -> float:
    value = metric(left)
    try:
        return float(value)
    except (OverflowError, TypeError, ValueError):
        raise InvalidInputError(
            f"metric returned {shorten(value)} for {len(left)} records; expected a number"
        ) from None


def plot_tradeoff(
    selected: Mapping[str, Any] | None = None,
    metric: Metric | None = None,
    *,
    rows: Mapping[str, Any] | None = None,
    n_deletions: Sequence[int] | None = None,
    n_simulations: int = 100,
    random_state: Any = None,
    ax: Any = None,
) -> Any:
    """Plot a metric of several selections as owners leave (figure 5).

    Parameters
    ----------
    selected : mapping of str to array-like of ids, default=None
        The records that were chosen, by the name in the legend.
    rows : mapping of str to array-like of int or boolean mask, default=None
        The positions of the records that were chosen, in place of `selected`.
    ax : matplotlib Axes, default=None
        By default a new one.
    metric, n_deletions, n_simulations, random_state
        As for `tradeoff`; the same owners' places leave in every selection.

    Returns
    -------
    matplotlib Axes
        With bands of two standard errors.

    Raises
    ------
    MissingPackageError
        matplotlib is not installed.
    InvalidInputError, InvalidParameterError
        Neither argument is a mapping, or as for `tradeoff`; nothing is drawn.

    Examples
    --------
    >>> ax = plot_tradeoff({"first": [0, 1], "last": [2, 3]}, lambda left: float(left.sum()))
    >>> ax.get_xlabel()
    'deletions'
    """
    refuse_both(selected, rows)
    name, given = ("rows", rows) if selected is None else ("selected", selected)
    if not isinstance(given, Mapping) or not given:
        raise InvalidInputError(
            f"{name}={shorten(given)}; expected a mapping of names to selections"
        )
    seed = int(seed_from(random_state)) % 2**32
    found = {
        label: tradeoff(
            metric=metric, n_deletions=n_deletions, n_simulations=n_simulations,
            random_state=seed, **{name: chosen},
        )
        for label, chosen in given.items()
    }  # fmt: skip
    ax = axes(ax)
    for label, each in found.items():
        (line,) = ax.plot(each.n_deletions, each.mean, label=label)
        band = 2 * each.standard_error
        ax.fill_between(
            each.n_deletions, each.mean - band, each.mean + band, alpha=0.2,
            color=line.get_color(),
        )  # fmt: skip
    ax.set_xlabel("deletions")
    ax.set_ylabel("metric")
    ax.legend(frameon=False)
    return ax
