"""Sweeps: a metric against the number of deleted records, for several scores, over seeds.

Intervals are those of the median over seeds by order statistics: of n independent values with a
continuous distribution, the median lies between the j-th from below and the j-th from above with
probability ``1 - 2 P(B < j)``, B binomial of n and 1/2, and with no less where values tie. The
largest j that keeps the confidence is taken. Nothing is drawn, no distribution is assumed, and a
target that some seeds never reach is a value like others, infinity.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from hashlib import blake2b
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binom

from erasable.core._plots import axes
from erasable.core.arrays import Floats, Ints, of_objects
from erasable.core.display import Listing, table
from erasable.core.errors import InvalidInputError, InvalidParameterError
from erasable.core.ids import name_some, shorten
from erasable.core.messages import refuse_signature
from erasable.core.records import Records
from erasable.core.seeds import BELOW_SEED, integer_below, is_integer
from erasable.removal._frontier import trace
from erasable.removal._inputs import (
    as_array,
    as_numbers,
    read_count,
    read_number,
)
from erasable.removal._records import read_records, read_sets
from erasable.removal._sets import Sets
from erasable.removal.scores._drawn import in_order
from erasable.removal.scores._named import as_score
from erasable.removal.scores._score import Score

__all__ = [
    "DeletionsNeeded",
    "Sweep",
    "SweepPoint",
    "deletions_needed",
    "median_interval",
    "reached",
    "sweep",
]

Metric = Callable[[Ints], float | Mapping[str, float]]

_STEPS = 11  # budgets by default, from none to all
_ONE = "metric"  # the name of a metric that returns a number
_N_SEEDS = 10
_MOST_SEEDS = 10_000


@dataclass(frozen=True)
class SweepPoint:
    """A point of a curve: the median over seeds, and its interval.

    Attributes
    ----------
    score, metric : str
    n_deleted : int
        Of the records of forget; the mean over seeds where sets differ in size.
    share : float
        The same as a share of forget.
    median, low, high : float

    Examples
    --------
    >>> SweepPoint("random", "recall", 20, 0.2, 0.81, 0.78, 0.84).median
    0.81
    """

    score: str
    metric: str
    n_deleted: int
    share: float
    median: float
    low: float
    high: float


@dataclass(frozen=True)
class DeletionsNeeded:
    """The number of deletions after which a metric reaches a target.

    Attributes
    ----------
    score, metric : str
    target : float
        The median over seeds, where each has its own.
    n_deleted : float
        The median over seeds: a line between two budgets may reach the target between two whole
        numbers. Infinite where half of the seeds do not reach it.
    low, high : float
        The interval of the median.
    confidence : float
        How sure the interval is, at least: what was asked for or more; with too few seeds, less.
    by_seed : ndarray of shape (n_seeds,), float64
    n_forget : ndarray of shape (n_seeds,), int64
        Records of forget.

    Examples
    --------
    >>> curve = sweep({"first": [0, 1, 2, 3]}, [0, 2, 4], lambda kept: len(kept) / 4, seeds=6)
    >>> print(deletions_needed("first", 0.75, curve))
    first: 1 of 4 records (25 %) until metric reaches 0.75; from 1 to 1, 96.9 % sure
    """

    score: str
    metric: str
    target: float
    n_deleted: float
    low: float
    high: float
    confidence: float
    by_seed: Floats
    n_forget: Ints

    @property
    def shares(self) -> Floats:
        """The deletions of each seed as shares of forget."""
        return self.by_seed / self.n_forget

    def __str__(self) -> str:
        """Return a line; whole records."""
        n = int(np.median(self.n_forget))
        share = f" ({self.n_deleted / n:.0%})".replace("%", " %")
        least = _whole(self.n_deleted)
        reach = f"{least} of {n:,} records{share}" if np.isfinite(self.n_deleted) else "not by all"
        return (
            f"{self.score}: {reach} until {self.metric} reaches {self.target:g}; from "
            f"{_whole(self.low)} to {_whole(self.high)}, {100 * self.confidence:.1f} % sure"
        )

    def _repr_html_(self) -> str:
        names = ("score", "metric", "target", "n_deleted", "low", "high", "confidence")
        return table([{name: getattr(self, name) for name in names}])


@dataclass(frozen=True)
class Sweep:
    """What a metric is after deletions: tidy columns, a row for each score, metric, seed, budget.

    ``pandas.DataFrame(vars(sweep))`` is a frame of them.

    Attributes
    ----------
    score, metric : ndarray of shape (n_rows,), object
        Names.
    seed : ndarray of shape (n_rows,), uint64
    n_forget, n_deleted : ndarray of shape (n_rows,), int64
        n_forget is the number of records of forget, n_deleted of those that left.
    value : ndarray of shape (n_rows,), float64

    Examples
    --------
    >>> found = sweep({"first": [0, 1, 2, 3]}, [0, 0.5, 1.0], lambda kept: len(kept) / 4)
    >>> found.n_deleted[:3], found.value[:3]
    (array([0, 2, 4]), array([1. , 0.5, 0. ]))
    """

    score: NDArray[Any]
    metric: NDArray[Any]
    seed: Ints
    n_forget: Ints
    n_deleted: Ints
    value: Floats

    @classmethod
    def join(cls, sweeps: Iterable[Sweep]) -> Sweep:
        """Join sweeps of the same scores, metrics and budgets, each of other seeds.

        Parameters
        ----------
        sweeps : iterable of Sweep
            Of other data each, for example: one for each split.

        Returns
        -------
        Sweep

        Raises
        ------
        InvalidInputError
            They differ in scores, metrics or the number of budgets, or share a seed.

        Examples
        --------
        >>> parts = [sweep({"a": [0, 1]}, [0, 1], len, seeds=[seed]) for seed in (3, 4)]
        >>> Sweep.join(parts).values("a")
        array([[2., 1.],
               [2., 1.]])
        """
        parts = list(sweeps)
        if not parts or not all(isinstance(each, Sweep) for each in parts):
            raise InvalidInputError(f"sweeps={shorten(parts)}; expected one Sweep or more")
        kinds = {(each.scores, each.metrics, each.n_budgets) for each in parts}
        if len(kinds) > 1:
            raise InvalidInputError(
                "the sweeps differ in scores, metrics or the number of budgets; expected the same"
            )
        seeds = [seed for each in parts for seed in each.seeds]
        if len(set(seeds)) != len(seeds):
            raise InvalidInputError(
                f"the sweeps have the seeds {shorten(seeds)}; expected each once; pass seeds=[...]"
            )
        return cls(*(np.concatenate([getattr(p, f.name) for p in parts]) for f in fields(cls)))

    @property
    def scores(self) -> tuple[str, ...]:
        """Names of the scores."""
        return tuple(dict.fromkeys(self.score.tolist()))

    @property
    def metrics(self) -> tuple[str, ...]:
        """Names of the metrics; ``metric`` where it returned a number."""
        return tuple(dict.fromkeys(self.metric.tolist()))

    @property
    def seeds(self) -> tuple[int, ...]:
        """The seeds."""
        return tuple(dict.fromkeys(self.seed.tolist()))

    @property
    def n_budgets(self) -> int:
        """The number of budgets."""
        return len(self.value) // (len(self.scores) * len(self.metrics) * len(self.seeds))

    def values(self, score: Any, metric: str | None = None) -> Floats:
        """Return the values of a score, of shape (n_seeds, n_budgets).

        Parameters
        ----------
        score : str, score or function
            Its name, or what `sweep` was given.
        metric : str, default=None
            By default the only one.

        Returns
        -------
        ndarray of shape (n_seeds, n_budgets), float64

        Raises
        ------
        InvalidInputError
            There is no such score or metric; several metrics, and none was named.
        """
        return self.value[self._rows(score, metric)]

    def deletions(self, score: Any, metric: str | None = None) -> Ints:
        """Return the numbers of deletions of `values`, of the same shape."""
        return self.n_deleted[self._rows(score, metric)]

    def sizes(self, score: Any, metric: str | None = None) -> Ints:
        """Return the number of records of forget of each seed, of shape (n_seeds,)."""
        return self.n_forget[self._rows(score, metric)][:, 0]

    def _rows(self, score: Any, metric: str | None) -> Ints:
        name = _name_of(score)
        if name not in self.scores:
            names = name_some(list(self.scores))
            raise InvalidInputError(f"there is no score {shorten(name)}; expected one of {names}")
        here = (self.score == name) & (self.metric == self.named(metric))
        return np.flatnonzero(here).reshape(len(self.seeds), self.n_budgets)

    def named(self, metric: str | None) -> str:
        """Return the name of a metric: the only one for None."""
        if metric is None and len(self.metrics) == 1:
            return self.metrics[0]
        if not isinstance(metric, str) or metric not in self.metrics:
            raise InvalidInputError(
                f"metric={shorten(metric)}; expected one of {name_some(list(self.metrics))}"
            )
        return metric

    def points(self, metric: str | None = None, *, confidence: float = 0.95) -> Listing[SweepPoint]:
        """Return medians over seeds and their intervals, by score and budget.

        Parameters
        ----------
        metric : str, default=None
            By default all.
        confidence : float, default=0.95
            Of each interval, where there are enough seeds; see `median_interval`.

        Returns
        -------
        list of SweepPoint
        """
        found = Listing[SweepPoint]()
        for score in self.scores:
            for name in self.metrics if metric is None else (self.named(metric),):
                rows = self._rows(score, name)
                low, high, _ = median_interval(self.value[rows], confidence)
                middle = np.median(self.value[rows], axis=0)
                gone, all_ = self.n_deleted[rows], self.n_forget[rows]
                found += [
                    SweepPoint(score, name, *map(_plain, each))
                    for each in zip(
                        np.rint(gone.mean(axis=0)).astype(np.int64), (gone / all_).mean(axis=0),
                        middle, low, high, strict=True,
                    )
                ]  # fmt: skip
        return found

    def plot(self, metric: str | None = None, *, confidence: float = 0.95, ax: Any = None) -> Any:
        """Plot a metric against the number of deletions, with a line for each score.

        Parameters
        ----------
        metric : str, default=None
            By default the only one.
        confidence : float, default=0.95
            Of the bands, point by point.
        ax : matplotlib Axes, default=None
            By default a new one.

        Returns
        -------
        matplotlib Axes

        Raises
        ------
        MissingPackageError
            matplotlib is not installed.

        Examples
        --------
        >>> found = sweep({"first": [0, 1, 2, 3]}, [0, 2, 4], len)
        >>> found.plot().get_xlabel()
        'records deleted'
        """
        name = self.named(metric)
        points = self.points(name, confidence=confidence)
        ax = axes(ax)
        for score in self.scores:
            own = [each for each in points if each.score == score]
            x = [each.n_deleted for each in own]
            (line,) = ax.plot(x, [each.median for each in own], label=score)
            band = [each.low for each in own], [each.high for each in own]
            ax.fill_between(x, *band, alpha=0.2, color=line.get_color(), linewidth=0)
        ax.set_xlabel("records deleted")
        ax.set_ylabel(name)
        ax.legend(frameon=False)
        return ax

    def _repr_html_(self) -> str:
        return table([asdict(each) for each in self.points()])


def sweep(
    scores: Any,
    budgets: Any = None,
    metric: Metric | None = None,
    forget: Any = None,
    retain: Any = None,
    *,
    seeds: int | Sequence[int] = _N_SEEDS,
) -> Sweep:
    """Measure a metric after more and more deletions, for several scores, over seeds.

    Parameters
    ----------
    scores : score, sequence of scores or mapping of name to score
        As for `DomainRemoval`: a name of `SCORES`, a score or a function of forget and retain; or
        an order, which is rows of forget, all of them once, first to delete first.
    budgets : sequence of int or float, default=None
        Numbers of records to delete; floats are shares of forget. By default eleven steps from none
        to all.
    metric : callable, default=None
        ``metric(kept)`` of the rows of forget that are kept, ascending: a number, or a mapping of
        names to numbers. It is called once for each set of rows that is kept; see `RefitMetric`. By
        default ``alpha`` and ``epsilon``, the removal and the shift of `Frontier`.
    forget, retain : as for `DomainRemoval.fit`, default=None
        Not needed for orders with a metric.
    seeds : int or sequence of int, default=10
        Seeds of scores that draw; a number n is 0 to n - 1. With all data the same, intervals over
        seeds say how much those draws matter; where data are split at random, sweep each split
        with its own seed, and `Sweep.join` them.

    Returns
    -------
    Sweep

    Raises
    ------
    InvalidInputError, InvalidParameterError
        Scores, budgets, seeds or data that cannot be used; the metric is not callable, or returns
        what is not a finite number.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> forget, retain = rng.normal(0.0, 1.0, (200, 2)), rng.normal(1.0, 1.0, (200, 2))
    >>> found = sweep(["random", "lr-maha"], [0.1, 0.2], None, forget, retain, seeds=6)
    >>> selective, random = (found.values(name, "alpha") for name in ("lr-maha", "random"))
    >>> bool((selective > random).all())
    True
    """
    known = _read_scores(scores)
    drawn = _read_seeds(seeds)
    if metric is not None:
        if not callable(metric):
            raise InvalidParameterError(
                f"metric={shorten(metric)}; expected a function of the rows that are kept, or None"
            )
        refuse_signature(metric, "metric", "kept")
    sets = _read_data(forget, retain, known, metric is None)
    n = sets.forget.shape[0] if sets is not None else _length_of_orders(known)
    for name, each in known.items():
        if not isinstance(each, Score):
            _refuse_no_order(name, each, n)
    counts = _read_budgets(budgets, n)
    measured = None if metric is None else _Measured(metric)
    rows: list[tuple[str, str, int, Floats]] = []
    for name, each in known.items():
        for seed in drawn:
            if isinstance(each, Score):
                assert sets is not None
                ranking = each.rank_first(sets, seed, max(int(counts.max()), 1))
            else:
                ranking = in_order(each)
            if measured is not None:
                found = measured.curves(ranking.order, counts)
            else:
                assert sets is not None
                frontier = trace(sets, ranking.order, ranking.weights)
                found = {"alpha": frontier.alpha[counts], "epsilon": frontier.epsilon[counts]}
            rows += [(name, which, seed, values) for which, values in found.items()]
    names, metrics, of_seeds, values = zip(*rows, strict=True)
    size = counts.size
    return Sweep(
        np.repeat(of_objects(names), size), np.repeat(of_objects(metrics), size),
        np.repeat(np.array(of_seeds, dtype=np.uint64), size), np.full(size * len(rows), n),
        np.tile(counts, len(rows)), np.concatenate(values),
    )  # fmt: skip


def deletions_needed(
    score: Any,
    target: Any,
    sweep: Sweep,
    *,
    metric: str | None = None,
    rising: bool = False,
    confidence: float = 0.95,
) -> DeletionsNeeded:
    """Find how much must go until a metric reaches a target.

    Parameters
    ----------
    score : str, score or function
        One of the sweep: its name, or what `sweep` was given.
    target : float or array-like of shape (n_seeds,)
        One for all seeds, or one for each: half of its value before any deletion, for example.
    sweep : Sweep
    metric : str, default=None
        By default the only one.
    rising : bool, default=False
        Whether the metric is to rise to the target, as `alpha` is; by default it is to fall.
    confidence : float, default=0.95
        Of the interval, where there are enough seeds: 6 for 0.95.

    Returns
    -------
    DeletionsNeeded
        The first number of deletions, with a line between two budgets, at which each seed reaches
        its target; the median of seeds; and an interval of the median by order statistics, exact
        without an assumption or a draw. Few seeds give the whole range, and a lower `confidence`.

    Raises
    ------
    InvalidInputError, InvalidParameterError
        There is no such score or metric, or the target is no number.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> forget, retain = rng.normal(0.0, 1.0, (200, 2)), rng.normal(1.0, 1.0, (200, 2))
    >>> found = sweep(["random", "lr-maha"], None, None, forget, retain, seeds=6)
    >>> half = found.values("random", "alpha")[0, -1] / 2
    >>> few, many = (
    ...     deletions_needed(name, half, found, metric="alpha", rising=True)
    ...     for name in ("lr-maha", "random")
    ... )
    >>> few.high < many.low
    True
    """
    if not isinstance(sweep, Sweep):
        raise InvalidInputError(f"sweep={shorten(sweep)}; expected what `sweep` returned")
    values, gone = sweep.values(score, metric), sweep.deletions(score, metric)
    given = as_numbers(target)
    if given.shape not in ((), (len(values),)) or not np.isfinite(given).all():
        raise InvalidParameterError(
            f"target={shorten(target)}; expected a finite number, or one for each of "
            f"{len(values)} seeds"
        )
    targets = np.broadcast_to(given, len(values))
    each = zip(gone, values, targets, strict=True)
    by_seed = np.array([reached(*of_seed, rising=rising) for of_seed in each])
    low, high, sure = median_interval(by_seed, confidence)
    return DeletionsNeeded(
        _name_of(score), sweep.named(metric), float(np.median(targets)), float(np.median(by_seed)),
        float(low), float(high), sure, by_seed, sweep.sizes(score, metric),
    )  # fmt: skip


def reached(n_deleted: Any, values: Any, target: float, *, rising: bool = False) -> float:
    """Return the first number of deletions at which a curve, with lines between, is at a target.

    Parameters
    ----------
    n_deleted : array-like of shape (n_budgets,)
        Ascending numbers, or shares.
    values : array-like of shape (n_budgets,)
    target : float
    rising : bool, default=False
        Whether values are to be at the target or above it; by default at it or below.

    Returns
    -------
    float
        Infinite where the curve does not reach it.

    Examples
    --------
    >>> reached([0, 10, 20], [1.0, 0.8, 0.4], 0.6)
    15.0
    """
    at, curve = np.asarray(n_deleted, dtype=np.float64), np.asarray(values, dtype=np.float64)
    there = curve >= target if rising else curve <= target
    if not there.any():
        return math.inf
    first = int(np.argmax(there))
    if first == 0:
        return float(at[0])
    before, after = curve[first - 1], curve[first]
    part = (target - before) / (after - before)
    return float(at[first - 1] + part * (at[first] - at[first - 1]))


def median_interval(values: Any, confidence: float = 0.95) -> tuple[Any, Any, float]:
    """Return the interval of the median of independent values, and how sure it is.

    Parameters
    ----------
    values : array-like of shape (n_values, ...)
    confidence : float, default=0.95

    Returns
    -------
    low, high : float64, or ndarray of the shape of a value
        Order statistics: the j-th value from below and from above.
    confidence : float
        ``1 - 2 P(B < j)``, B binomial of n_values and 1/2; less than was asked for where that many
        values cannot give it: then the interval is the range, sure to ``1 - 2**(1 - n_values)``.

    Raises
    ------
    InvalidParameterError
        `confidence` is not above 0 and below 1.

    References
    ----------
    David and Nagaraja, Order Statistics, 3rd edition, section 7.1.

    Examples
    --------
    >>> median_interval([3.0, 1.0, 2.0, 6.0, 5.0, 4.0])
    (np.float64(1.0), np.float64(6.0), 0.96875)
    """
    wanted = read_number(confidence, "confidence", 0.0, 1.0, ends="()")
    ordered = np.sort(np.asarray(values, dtype=np.float64), axis=0)
    n = len(ordered)
    # P(B <= j) of j = 0.. at most the middle; the first value is the least there is.
    tails = binom.cdf(np.arange((n + 1) // 2), n, 0.5)
    j = max(int(np.searchsorted(tails, (1 - wanted) / 2, side="right")) - 1, 0)
    return ordered[j], ordered[n - 1 - j], max(1.0 - 2.0 * float(tails[j]), 0.0)


class _Measured:
    """A metric of the rows that are kept, called once for each set of them."""

    def __init__(self, metric: Metric) -> None:
        self._metric = metric
        self._known: dict[bytes, dict[str, float]] = {}
        self._names: set[str] | None = None

    def curves(self, order: Ints, counts: Ints) -> dict[str, Floats]:
        """Return, by metric, the values after the first deletions of an order."""
        found = [self._of(np.sort(order[n:])) for n in counts.tolist()]
        return {name: np.array([each[name] for each in found]) for name in found[0]}

    def _of(self, kept: Ints) -> dict[str, float]:
        key = blake2b(kept.tobytes()).digest()
        if key not in self._known:
            self._known[key] = self._read(self._metric(kept), kept.size)
        return self._known[key]

    def _read(self, given: Any, n: int) -> dict[str, float]:
        named = given if isinstance(given, Mapping) else {_ONE: given}
        numbers = {name: as_numbers(value) for name, value in named.items()}
        fine = all(each.shape == () and np.isfinite(each) for each in numbers.values())
        if not (numbers and fine and all(isinstance(name, str) for name in numbers)):
            raise InvalidInputError(
                f"metric returned {shorten(given)} for {n} records; expected a finite number, or a "
                "mapping of names to finite numbers"
            )
        if self._names is not None and self._names != set(numbers):
            raise InvalidInputError(
                f"metric returned {name_some(sorted(numbers))} for {n} records, and before "
                f"{name_some(sorted(self._names))}; expected the same names each time"
            )
        self._names = set(numbers)
        return {name: float(value) for name, value in numbers.items()}


def _read_scores(scores: Any) -> dict[str, Score | Ints]:
    """Return scores and orders by name."""
    if isinstance(scores, Mapping):
        given = list(scores.items())
    elif isinstance(scores, list | tuple):
        given = [(_name_of(each), each) for each in scores]
    else:
        given = [(_name_of(scores), scores)]
    names = [name for name, _ in given]
    if (
        not given
        or not all(isinstance(name, str) for name in names)
        or len(set(names)) < len(names)
    ):
        raise InvalidParameterError(
            f"scores={shorten(scores)}; expected one or more, each under its own name; pass a "
            "mapping of names to scores"
        )
    return {name: _read_score(name, each) for name, each in given}


def _name_of(score: Any) -> str:
    if isinstance(score, str):
        return score
    return repr(score) if isinstance(score, Score) else getattr(score, "__name__", "order")


def _read_score(name: str, score: Any) -> Score | Ints:
    """Return a score; or an order, which is checked later."""
    if isinstance(score, np.ndarray | list | tuple | range):
        order = as_array(score)
        if order.ndim != 1 or order.dtype.kind not in "iu":
            raise InvalidParameterError(
                f"the score {shorten(name)} is {shorten(score)}; expected a score, or an order: "
                "rows of forget, all of them once"
            )
        return order.astype(np.int64)
    return as_score(score)


def _refuse_no_order(name: str, order: Ints, n: int) -> None:
    if not np.array_equal(np.sort(order), np.arange(n)):
        raise InvalidInputError(
            f"the order {shorten(name)} has {order.size} rows of {n} records; expected each row "
            f"from 0 to {n - 1} once"
        )


def _read_seeds(seeds: Any) -> list[int]:
    """Return the seeds of a sweep, each once."""
    if is_integer(type(seeds)):
        given: list[Any] = list(range(read_count(seeds, "seeds", 1, _MOST_SEEDS)))
    else:
        given = list(seeds) if isinstance(seeds, Iterable) and not isinstance(seeds, str) else []
    found = [integer_below(each, BELOW_SEED) for each in given]
    if not found or None in found or len(set(found)) < len(found):
        raise InvalidParameterError(
            f"seeds={shorten(seeds)}; expected how many, or different whole numbers from 0 to "
            "2**64 - 1"
        )
    return [each for each in found if each is not None]


def _read_data(forget: Any, retain: Any, known: Mapping[str, Any], frontier: bool) -> Sets | None:
    """Return both sets where scores, or a frontier, need them."""
    ranked = {name: each for name, each in known.items() if isinstance(each, Score)}
    if forget is None:
        if not ranked and not frontier:
            return None
        what = f"the score {shorten(next(iter(ranked)))}" if ranked else "metric=None"
        raise InvalidInputError(
            f"no forget was given, and {what} needs records; expected those of the domain"
        )
    for name, each in ranked.items():
        if retain is None and each.needs_retain:
            raise InvalidInputError(
                f"no retain was given, and the score {shorten(name)} compares forget with it; "
                "expected records of what is to stay"
            )
        if isinstance(forget, Records) and not each.by_passes:
            raise InvalidInputError(
                f"the score {shorten(name)} looks at all records together, and Records are read "
                "where they lie; expected an array, such as records.in_memory().matrix"
            )
    if retain is None and frontier:
        raise InvalidInputError(
            "no retain was given, and metric=None compares what is left with it; expected records "
            "of what is to stay, or a metric"
        )
    if isinstance(forget, Records) or isinstance(retain, Records):
        return read_records(forget, retain, None, None)[0]
    return read_sets(forget, retain, None)[0]


def _length_of_orders(known: Mapping[str, Any]) -> int:
    """Return the number of records of orders, which come without records."""
    n = next(each.size for each in known.values())
    if n == 0:
        raise InvalidInputError("an order has no row; expected one or more records")
    return int(n)


def _read_budgets(budgets: Any, n: int) -> Ints:
    """Return numbers of deletions, ascending, each once; floats are shares."""
    if budgets is None:
        return np.unique(np.rint(np.linspace(0, n, _STEPS)).astype(np.int64))
    single = isinstance(budgets, str | bytes | Mapping) or not isinstance(budgets, Iterable)
    given = [] if single else list(budgets)
    found = [_read_budget(each, n) for each in given]
    if not found:
        raise InvalidParameterError(
            f"budgets={shorten(budgets)}; expected a list of numbers of records, or of shares"
        )
    return np.unique(np.array(found, dtype=np.int64))


def _read_budget(budget: Any, n: int) -> int:
    if is_integer(type(budget)) and 0 <= budget <= n:
        return int(budget)
    if isinstance(budget, float | np.floating) and 0 <= budget <= 1:
        return round(float(budget) * n)
    raise InvalidParameterError(
        f"budgets: {shorten(_plain(budget))}; expected whole numbers from 0 to {n}, or shares from "
        "0.0 to 1.0"
    )


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


def _whole(value: float) -> str:
    return f"{math.ceil(value):,}" if np.isfinite(value) else "not by all"
