"""What a metric falls to as more and more owners leave, for several selections (figure 5)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from erasable.core.errors import InvalidInputError
from erasable.core.seeds import seed_from

__all__ = ["Tradeoff", "plot_tradeoff", "tradeoff"]

Floats = NDArray[np.float64]


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

    n_deletions: NDArray[np.int64]
    mean: Floats
    standard_error: Floats


def tradeoff(
    selected: Any,
    metric: Callable[[NDArray[np.int64]], float],
    *,
    n_deletions: Sequence[int] | None = None,
    n_simulations: int = 100,
    random_state: Any = None,
) -> Tradeoff:
    """Measure a metric after random deletions.

    Parameters
    ----------
    selected : array-like of int
        Rows that were chosen.
    metric : callable
        ``metric(rows)`` of the rows that are left, in ascending order: a utility, or the accuracy
        of a model that is trained on them.
    n_deletions : sequence of int, default=None
        By default eleven steps from none to all but one.
    n_simulations : int, default=100
    random_state : int, RandomState or None, default=None

    Returns
    -------
    Tradeoff

    Raises
    ------
    InvalidInputError
        More deletions than there are records.

    Examples
    --------
    >>> tradeoff([3, 5, 8], len, n_deletions=[0, 2], n_simulations=4, random_state=0).mean
    array([3., 1.])
    """
    rows = np.asarray(selected)
    steps = np.linspace(0, len(rows) - 1, 11) if n_deletions is None else n_deletions
    counts = np.unique(np.asarray(steps).astype(np.int64))
    if len(counts) == 0 or counts.min() < 0 or counts.max() > len(rows):
        raise InvalidInputError(
            f"n_deletions goes from {counts.min(initial=0)} to {counts.max(initial=0)} for "
            f"{len(rows)} chosen records; expected 0 to {len(rows)}; pass fewer"
        )
    rng = np.random.default_rng(int(seed_from(random_state)))
    results = np.empty((n_simulations, len(counts)))
    for simulation in range(n_simulations):
        order = rng.permutation(len(rows))
        for step, count in enumerate(counts):
            results[simulation, step] = metric(np.sort(rows[order[count:]]))
    error = results.std(axis=0, ddof=1) / np.sqrt(n_simulations) if n_simulations > 1 else 0.0
    return Tradeoff(counts, results.mean(axis=0), np.broadcast_to(error, counts.shape))


def plot_tradeoff(
    selections: Mapping[str, Any],
    metric: Callable[[NDArray[np.int64]], float],
    *,
    n_deletions: Sequence[int] | None = None,
    n_simulations: int = 100,
    random_state: Any = None,
    ax: Any = None,
) -> Any:
    """Draw what a metric falls to as owners leave, for several selections (figure 5).

    Parameters
    ----------
    selections : mapping of str to array-like of int
        Rows that were chosen, by the name in the legend.
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
    ImportError
        matplotlib is not there.

    Examples
    --------
    >>> ax = plot_tradeoff({"first": [0, 1], "last": [2, 3]}, lambda rows: float(rows.sum()))
    >>> ax.get_xlabel()
    'deletions'
    """
    if ax is None:
        from matplotlib.figure import Figure

        ax = Figure(figsize=(6, 4), layout="constrained").subplots()
    seed = int(seed_from(random_state))
    for name, selected in selections.items():
        found = tradeoff(
            selected, metric, n_deletions=n_deletions, n_simulations=n_simulations,
            random_state=seed % 2**32,
        )  # fmt: skip
        (line,) = ax.plot(found.n_deletions, found.mean, label=name)
        band = 2 * found.standard_error
        ax.fill_between(
            found.n_deletions, found.mean - band, found.mean + band, alpha=0.2,
            color=line.get_color(),
        )  # fmt: skip
    ax.set_xlabel("deletions")
    ax.set_ylabel("metric")
    ax.legend(frameon=False)
    return ax
