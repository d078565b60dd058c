"""Separation of two groups by the scores of an attack, with tests and intervals."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations, islice
from typing import Any

import numpy as np
from scipy.optimize import brentq
from scipy.special import ndtri
from scipy.stats import beta, binom, hypergeom, mannwhitneyu, norm, rankdata

from erasable.audit._sample_sizes import records_for_rate
from erasable.core.arrays import Floats
from erasable.core.errors import TooFewRecordsError

__all__ = [
    "RATES",
    "Rate",
    "Separation",
    "clopper_pearson",
    "permute_models",
    "separate",
    "stands_out",
]

RATES = (0.01, 0.001)
"""False-positive rates that reports name."""

_FEW_VALUES, _N_DRAWS = 100, 4999


@dataclass(frozen=True, slots=True)
class Rate:
    """The share of members that an attack finds at a rate of false positives.

    Attributes
    ----------
    false_positives : float
        The share of others that it may suspect.
    estimate, low, high : float
        The share of members that it finds, with a Clopper-Pearson interval; NaN where there are
        too few others for the rate.
    p_value : float
        The probability of so many or more if nothing distinguishes members from others. Exact.
    n_needed : int
        Number of others that the rate needs.

    Examples
    --------
    >>> print(Rate(0.01, 0.2, 0.1, 0.3, 0.004, 100))
    20.0 % (10.0 to 30.0) at 1 % false positives
    """

    false_positives: float
    estimate: float
    low: float
    high: float
    p_value: float
    n_needed: int

    def __str__(self) -> str:
        """Return one line."""
        at = f"at {100 * self.false_positives:g} % false positives"
        if math.isnan(self.estimate):
            return f"not measured {at}: it needs {self.n_needed} records that were not learned from"
        return f"{100 * self.estimate:.1f} % ({100 * self.low:.1f} to {100 * self.high:.1f}) {at}"


@dataclass(frozen=True, slots=True, eq=False)
class Separation:
    """Separation of members from others by scores.

    Attributes
    ----------
    n_members, n_others : int
    area : float
        Area under the ROC curve: the probability that a member scores above another record, ties
        counted as half. 0.5 is chance; far below it leaks as much as far above.
    low, high : float
        Interval of the area: the wider ends of DeLong's and of Newcombe's, which holds with few
        records and near 1, too. It is for these models: other models were not drawn.
    rates : tuple of Rate
    p_value : float
        Of the two-sided test of the area and the tests of all rates, by Bonferroni. The test of the
        area is that of Mann and Whitney; of 100 different scores or fewer, groups are drawn anew
        4,999 times as well, and the larger p-value is taken.
    curve : ndarray of shape (n_points, 2), float64
        Rates of false and of true positives, both rising.

    Examples
    --------
    >>> found = separate([3.0, 4.0, 5.0], [1.0, 2.0, 3.0], rates=())
    >>> round(found.area, 3), round(found.p_value, 2)
    (0.944, 0.2)
    """

    n_members: int
    n_others: int
    area: float
    low: float
    high: float
    rates: tuple[Rate, ...]
    p_value: float
    curve: Floats

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, the curve left out."""
        rates = [
            {
                "false_positives": each.false_positives, "estimate": _plain(each.estimate),
                "low": _plain(each.low), "high": _plain(each.high), "n_needed": each.n_needed,
            }
            for each in self.rates
        ]  # fmt: skip
        return {
            "n_members": self.n_members, "n_others": self.n_others, "area": self.area,
            "low": self.low, "high": self.high, "p_value": self.p_value, "rates": rates,
        }  # fmt: skip


def separate(
    members: Any, others: Any, *, rates: Sequence[float] = RATES, level: float = 0.05
) -> Separation:
    """Compare the scores of records that a model has learned from with those of others.

    Higher scores say "member"; `rates` are rates of false positives; intervals hold with
    probability ``1 - level``. An empty group raises TooFewRecordsError. DeLong, DeLong and
    Clarke-Pearson, Biometrics 1988; Newcombe, Statistics in Medicine 2006, part 2, method 5.
    """
    a, b = (np.asarray(each, dtype=np.float64) for each in (members, others))
    if a.size == 0 or b.size == 0:
        raise TooFewRecordsError(
            f"there are {a.size} members and {b.size} other records; expected one of each at least"
        )
    # Each record's share of the other group that it outranks; the mean of both is the area.
    ranks = rankdata(np.concatenate([a, b]))
    above, below = _shares(a, b, ranks)
    area = float(above.mean())
    spread = sum(float(x.var(ddof=1)) / x.size if x.size > 1 else 0.25 for x in (above, below))
    deviations = float(ndtri(1 - level / 2))
    half = deviations * math.sqrt(spread)
    low, high = _score_interval(area, a.size, b.size, deviations)
    found = tuple(_rate(a, b, rate, level) for rate in rates)
    tests = [_p_value(a, b, ranks)]
    tests += [rate.p_value for rate in found if not math.isnan(rate.p_value)]
    return Separation(
        int(a.size), int(b.size), area, max(0.0, min(low, area - half)),
        min(1.0, max(high, area + half)), found, min(1.0, len(tests) * min(tests)), _curve(a, b),
    )  # fmt: skip


def _shares(a: Floats, b: Floats, ranks: Floats) -> tuple[Floats, Floats]:
    above = (ranks[: a.size] - rankdata(a)) / b.size
    below = 1.0 - (ranks[a.size :] - rankdata(b)) / a.size
    return above, below


def stands_out(
    members: Floats,
    others: Floats,
    control: tuple[Floats, Floats],
    *,
    rates: Sequence[float] = RATES,
    level: float = 0.05,
) -> bool:
    """Tell whether a model separates two groups better than one that has seen neither does.

    `control` has the scores of the same records on the other model. Of the tests of `separate` that
    find something, at least one has to be passed again by the difference: that of the areas by
    DeLong's test, that of a rate by McNemar's exact test of the members that only one of the two
    finds.
    """
    groups, found = ((members, others), control), []
    ranks = [rankdata(np.concatenate(each)) for each in groups]
    p_value = _p_value(members, others, ranks[0])
    (above, below), (above_less, below_less) = (
        _shares(a, b, each) for (a, b), each in zip(groups, ranks, strict=True)
    )
    sign = 1.0 if above.mean() >= 0.5 else -1.0
    gains = sign * (above - above_less), sign * (below - below_less)
    spread = sum(float(x.var(ddof=1)) / x.size if x.size > 1 else 0.25 for x in gains)
    gain = float(gains[0].mean())
    found.append((p_value, 0.0 if gain > spread == 0.0 else norm.sf(gain / math.sqrt(spread or 1))))
    for rate in rates:
        p_value = _rate(members, others, rate, level).p_value
        if not math.isnan(p_value):
            ours, theirs = (a > _bar(b, rate) for a, b in groups)
            only, other = int((ours & ~theirs).sum()), int((theirs & ~ours).sum())
            found.append((p_value, binom.sf(only - 1, only + other, 0.5)))
    return any(len(found) * p <= level and more <= level for p, more in found)


def _p_value(a: Floats, b: Floats, ranks: Floats) -> float:
    """Test the area; with heavy ties, p-values of the normal approximation alone are too small."""
    if not np.ptp(ranks):
        return 1.0
    p_value = float(mannwhitneyu(a, b).pvalue)
    values, counts = np.unique(ranks, return_counts=True)
    if len(values) > _FEW_VALUES or len(values) == len(ranks):
        return p_value
    middle = a.size * (len(ranks) + 1) / 2
    given = abs(float(ranks[: a.size].sum()) - middle)
    source = np.random.default_rng(0)
    drawn = source.multivariate_hypergeometric(counts, a.size, _N_DRAWS, method="marginals")
    n_as_large = int(np.count_nonzero(np.abs(drawn @ values - middle) >= given - 1e-9))
    return max(p_value, (1 + n_as_large) / (1 + _N_DRAWS))


def _score_interval(
    area: float, n_members: int, n_others: int, deviations: float
) -> tuple[float, float]:
    """Return the areas that are within some of their own deviations of a measured one."""
    pairs, n = n_members * n_others, (n_members + n_others) / 2

    def beyond(true: float) -> float:
        variance = true * (1 - true) / pairs
        variance *= 2 * n - 1 - (3 * n - 3) / ((2 - true) * (1 + true))
        return abs(true - area) - deviations * math.sqrt(max(0.0, variance))

    # 0 and 1 are trivial solutions, which are excluded.
    low = float(brentq(beyond, 0.0, min(area, 1.0 - 1e-9))) if area > 0.0 else 0.0
    high = float(brentq(beyond, max(area, 1e-9), 1.0)) if area < 1.0 else 1.0
    return low, high


def _rate(members: Floats, others: Floats, rate: float, level: float) -> Rate:
    needed = records_for_rate(rate)
    if others.size < needed:
        return Rate(rate, math.nan, math.nan, math.nan, math.nan, needed)
    allowed = _allowed(others, rate)
    n_found = int(np.count_nonzero(members > _bar(others, rate)))
    low, high = clopper_pearson(n_found, members.size, level)
    n = members.size + others.size
    # The probability that so many or more of the first records by score are members.
    p_value = float(hypergeom.sf(n_found - 1, n, members.size, n_found + allowed))
    return Rate(rate, n_found / members.size, low, high, p_value, needed)


def _allowed(others: Floats, rate: float) -> int:
    return math.floor(rate * others.size + 1e-9)


def _bar(others: Floats, rate: float) -> float:
    """Return the highest score of the others that may not be suspected."""
    place = others.size - _allowed(others, rate) - 1
    return float(np.partition(others, place)[place])


def _curve(members: Floats, others: Floats) -> Floats:
    bars = np.unique(np.concatenate([members, others]))[::-1]
    found = [
        (each.size - np.searchsorted(np.sort(each), bars, side="left")) / each.size
        for each in (others, members)
    ]
    return np.vstack([[0.0, 0.0], np.column_stack(found)])


def clopper_pearson(n_found: int, n: int, level: float = 0.05) -> tuple[float, float]:
    """Return an interval that holds a share with probability at least ``1 - level``."""
    low = float(beta.ppf(level / 2, n_found, n - n_found + 1)) if n_found else 0.0
    high = float(beta.ppf(1 - level / 2, n_found + 1, n - n_found)) if n_found < n else 1.0
    return low, high


def permute_models(
    first: Any,
    second: Any,
    statistic: Callable[[Any, Any], float],
    *,
    n_draws: int = 999,
    seed: int = 0,
) -> float:
    """Test whether two groups of models differ, by exchanging models between the groups.

    Records share the models, so records are not independent, and models are what may be exchanged.
    ``statistic(first, second)`` sees whole rows of shape (n_models, n_records), and is larger where
    they differ more. At most `n_draws` exchanges are drawn; if there are no more, all are made.
    Returns the share of exchanges, the given one among them, whose statistic is at least as large.
    """
    both = np.concatenate([np.asarray(first), np.asarray(second)])
    n, k = len(both), len(first)
    given = statistic(both[:k], both[k:])
    bar = given - 1e-12 * abs(given)  # ties count, up to rounding
    drawn = [np.asarray(each) for each in _exchanges(n, k, n_draws, seed)]
    chosen = np.zeros(n, dtype=bool)
    n_as_large = 1
    for rows in drawn:
        chosen[:] = False
        chosen[rows] = True
        n_as_large += bool(statistic(both[chosen], both[~chosen]) >= bar)
    return n_as_large / (len(drawn) + 1)


def _exchanges(n: int, k: int, n_draws: int, seed: int) -> Iterable[Any]:
    if math.comb(n, k) - 1 <= n_draws:
        return islice(combinations(range(n), k), 1, None)  # the first is the one that was given
    source = np.random.default_rng(seed)
    return (source.choice(n, size=k, replace=False) for _ in range(n_draws))


def _plain(value: float) -> float | None:
    return None if math.isnan(value) else value
