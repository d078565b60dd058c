"""Staying models of exchangeable owners: only the number who stay is uncertain (section 3.2)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from erasable.core._schema import LARGEST
from erasable.core.errors import InvalidInputError, InvalidParameterError
from erasable.core.ids import shorten
from erasable.core.seeds import is_number
from erasable.selection.staying._model import Bound, Staying, check_probabilities
from erasable.selection.staying._sizes import BetaBinomialSizes, GivenSizes, Sizes

_SUM = 1e-6  # as far as probabilities may be from a sum of 1


class _SizeModel(Staying):
    """Base of models in which one distribution of sizes holds for all records."""

    def bind(self, n: int, *, k: int | None = None, labels: Any = None) -> Bound:
        law = self.sizes(n if k is None else k)
        probability = law.rank_weights(1)[0] if n else 1.0
        return Bound(np.full(n, probability), np.zeros(n, dtype=np.int64), [law])


@dataclass(frozen=True)
class Exchangeable(_SizeModel):
    """Given probabilities of the number of owners who stay.

    Parameters
    ----------
    r : array-like of shape (k + 1,)
        `r[a]` is the probability that a of the k chosen owners stay; they sum to 1.

    Raises
    ------
    InvalidInputError
        Values outside of [0, 1], or that do not sum to 1.

    References
    ----------
    Sim et al., Deletion-Anticipative Data Selection with a Limited Budget, section 3.2.

    Examples
    --------
    >>> Exchangeable([0.0, 0.5, 0.5]).subset_pmf(1, k=2)
    array([0.25, 0.75])
    """

    r: Any = field()

    def __post_init__(self) -> None:
        is_list = isinstance(self.r, Iterable) and not isinstance(self.r, np.ndarray)
        given = check_probabilities(list(self.r) if is_list else self.r, "r")
        if len(given) < 2 or abs(given.sum() - 1) > _SUM:
            fault = f"sums to {given.sum():.6g}" if len(given) >= 2 else f"has {len(given)} values"
            raise InvalidInputError(
                f"r {fault}; expected k + 1 probabilities that sum to 1; divide them by their sum"
            )
        object.__setattr__(self, "r", tuple((given / given.sum()).tolist()))

    def sizes(self, k: int | None = None) -> Sizes:
        if k is not None and k != len(self.r) - 1:
            raise InvalidParameterError(
                f"r has {len(self.r)} values for k={k}; expected k + 1, one for each number of "
                f"owners that may stay; choose k={len(self.r) - 1}, or pass another r"
            )
        return GivenSizes(np.array(self.r))


@dataclass(frozen=True)
class Uniform(_SizeModel):
    """The number of owners who stay is uniform from `low` to `high`.

    ``Uniform(k - z, k)`` expects up to z deletions of k, ``Uniform(0, k - z - 1)`` more.

    Parameters
    ----------
    low, high : int
        The fewest and the most owners that stay, both possible.

    Examples
    --------
    >>> Uniform(1, 2).size_pmf(2)
    array([0. , 0.5, 0.5])
    """

    low: int
    high: int

    def __post_init__(self) -> None:
        for name in ("low", "high"):
            object.__setattr__(self, name, _check_count(getattr(self, name), name))
        if self.low > self.high:
            raise InvalidParameterError(
                f"low={self.low} is above high={self.high}; expected low <= high; exchange them"
            )

    def sizes(self, k: int | None = None) -> Sizes:
        k = self.high if k is None else k
        _refuse_more_than(k, self.high, "high")
        r = np.zeros(max(k, 1) + 1)
        r[self.low : self.high + 1] = 1 / (self.high + 1 - self.low)
        return GivenSizes(r)


@dataclass(frozen=True)
class PointMass(_SizeModel):
    """Exactly `a` of the chosen owners stay; all sets of `a` are equally likely.

    Parameters
    ----------
    a : int

    Examples
    --------
    >>> PointMass(1).subset_pmf(2)
    array([0. , 0.5, 0. ])
    """

    a: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "a", _check_count(self.a, "a"))

    def sizes(self, k: int | None = None) -> Sizes:
        k = self.a if k is None else k
        _refuse_more_than(k, self.a, "a")
        r = np.zeros(max(k, 1) + 1)
        r[self.a] = 1.0
        return GivenSizes(r)


@dataclass(frozen=True)
class BetaBinomial(_SizeModel):
    """All owners stay with one probability, which is itself uncertain: Beta(alpha, beta).

    The probability is alpha / (alpha + beta) on average, and the more certain the larger they are:
    as if alpha owners had been observed to stay and beta to leave. So one that leaves makes it more
    likely that others do.

    Parameters
    ----------
    alpha, beta : float
        Above 0.

    Examples
    --------
    >>> BetaBinomial(1, 1).size_pmf(3)
    array([0.25, 0.25, 0.25, 0.25])
    """

    alpha: float
    beta: float

    def __post_init__(self) -> None:
        for name in ("alpha", "beta"):
            value = getattr(self, name)
            if not is_number(value) or not 0 < value <= LARGEST:
                raise InvalidParameterError(
                    f"{name}={shorten(value)}; expected a number above 0; count who stayed "
                    "(alpha) and who left (beta), and add 1 to each"
                )
            object.__setattr__(self, name, float(value))

    def sizes(self, k: int | None = None) -> Sizes:
        return BetaBinomialSizes(self.alpha, self.beta)


def _check_count(value: Any, name: str) -> int:
    if not isinstance(value, int | np.integer) or isinstance(value, bool) or value < 0:
        raise InvalidParameterError(
            f"{name}={shorten(value)}; expected a number of owners, 0 or more; pass an integer"
        )
    return int(value)


def _refuse_more_than(k: int, most: int, name: str) -> None:
    if most > k:
        raise InvalidParameterError(
            f"{name}={most} owners stay of k={k} that are chosen; expected no more than k; choose "
            f"k={most} or more, or pass a smaller {name}"
        )
