"""Numbers of records and models that an error and a power need."""

from __future__ import annotations

import math
from numbers import Real
from typing import Any

from scipy.special import ndtri
from scipy.stats import beta, binom

from erasable.core.errors import InvalidInputError, InvalidParameterError
from erasable.core.ids import shorten

__all__ = [
    "detectable_rate",
    "discernible_area",
    "records_for_rate",
    "refits_for_level",
    "refuse_probability",
]


def refuse_probability(name: str, value: Any) -> None:
    """Refuse anything but a number between 0 and 1."""
    if not (_is_number(value) and 0.0 < value < 1.0):
        raise InvalidParameterError(
            f"{name} is {shorten(value)}; expected a number between 0 and 1, such as 0.05"
        )


def records_for_rate(rate: float) -> int:
    """Return the number of records outside the training set that a false-positive rate needs."""
    if not (_is_number(rate) and 0.0 < rate < 1.0):
        raise InvalidInputError(
            f"a rate of false positives is {shorten(rate)}; expected one from 0 to 1"
        )
    return math.ceil(1.0 / rate - 1e-9)


def refits_for_level(level: float, n_audited: int = 1) -> int:
    """Return the number of retrained models that an error needs, because models are exchanged.

    `n_audited` is the number of models that were deleted from.
    """
    if not 0.0 < level < 1.0:
        raise InvalidInputError(f"level is {level}; expected an error from 0 to 1, such as 0.05")
    n = 1
    while math.comb(n_audited + n, n) * level < 1.0 - 1e-9:
        n += 1
    return n


def discernible_area(
    n_members: int, n_others: int, *, level: float = 0.05, power: float = 0.8
) -> float:
    """Return the smallest area under the curve that so many records find with a power.

    By the normal approximation of the Mann-Whitney test; 1 where no area is found. Noether, "Sample
    size determination for some common nonparametric tests", JASA 1987.
    """
    reach = float(ndtri(1 - level / 2) + ndtri(power))
    n = n_members + n_others
    return min(1.0, 0.5 + reach * math.sqrt((n + 1) / (12.0 * n_members * n_others)))


def detectable_rate(
    n_members: int, rate: float, *, level: float = 0.05, power: float = 0.8
) -> float:
    """Return the smallest share of members that a rate of false positives finds with a power."""
    bar = int(binom.isf(level, n_members, rate)) + 1
    if bar > n_members:
        return 1.0
    return float(beta.ppf(power, bar, n_members - bar + 1))


def _is_number(value: Any) -> bool:
    return isinstance(value, Real)
