"""Numbers of records and models that an audit needs, checked before it starts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from numbers import Real
from typing import Any

import numpy as np
from scipy.special import ndtri
from scipy.stats import beta, binom

from erasable.core.errors import InvalidInputError, InvalidParameterError
from erasable.core.ids import shorten
from erasable.core.seeds import is_integer
from erasable.core.threads import check_n_jobs

__all__ = [
    "ATTACKS",
    "detectable_rate",
    "discernible_area",
    "plan_of_method",
    "plan_of_model",
    "read_attacks",
    "records_for_rate",
    "refits_for_level",
    "refuse_numbers",
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


ATTACKS = ("U-LiRA", "KLoM")
_FEWEST = 4


def refuse_numbers(level: float, random_state: int, n_jobs: int) -> None:
    """Refuse a level that is no error, a seed that is no whole number, or no number of threads."""
    check_n_jobs(n_jobs)
    if not isinstance(level, float) or not 0.0 < level < 1.0:
        raise InvalidParameterError(
            f"level is {shorten(level)}; expected an error from 0 to 1, such as 0.05"
        )
    _refuse_count("random_state", random_state, 0)


def plan_of_model(
    level: float, n_refits: int | None, n_controls: int
) -> tuple[tuple[str, ...], int]:
    """Return the plan of an audit of a model, and the number of refits; too few are refused."""
    if n_refits is not None:
        _refuse_count("n_refits", n_refits, 1)
    _refuse_count("n_controls", n_controls, 0)
    if n_controls == 1:
        raise InvalidParameterError("n_controls is 1; expected 0, or 2 and more")
    n_tests = 2 if n_controls else 1
    needed = refits_for_level(level / n_tests)
    n_refits = needed if n_refits is None else int(n_refits)
    over = "one statistic" if n_tests == 1 else "two statistics"
    if n_refits < needed:
        raise InvalidParameterError(
            f"n_refits is {n_refits}; expected {needed} or more: with one model against {n_refits} "
            f"and {over}, no error is below {n_tests}/{n_refits + 1}, and the level is {level:g}"
        )
    plan = [
        f"an error of {level:g} with {over} needs {needed} models that are trained again; "
        f"{n_refits} are made"
    ]
    if n_controls:
        plan.append(
            f"{n_controls} models trained with all records tell whether the audit would find one"
        )
    return tuple(plan), n_refits


def read_attacks(attacks: Sequence[str]) -> tuple[str, ...]:
    """Return the attacks that were named."""
    named = tuple(attacks) if isinstance(attacks, list | tuple) else (attacks,)
    if not named or len(set(named)) < len(named) or set(named) - set(ATTACKS):
        raise InvalidParameterError(
            f"attacks is {shorten(attacks)}; expected one or both of {', '.join(ATTACKS)}"
        )
    return named


def plan_of_method(
    level: float, n_tests: int, n_models: int, n_retrained: int, n_exchanges: int, share: float
) -> tuple[str, ...]:
    """Return the plan of an audit of a method; too few models or exchanges are refused."""
    _refuse_count("n_models", n_models, _FEWEST)
    _refuse_count("n_retrained", n_retrained, _FEWEST)
    _refuse_count("n_exchanges", n_exchanges, 1)
    if not isinstance(share, Real) or not 0.0 < share <= 1.0:
        raise InvalidParameterError(
            f"share is {shorten(share)}; expected a number above 0, 1 at most"
        )
    needed = refits_for_level(level / n_tests, n_models)
    if n_retrained < needed:
        raise InvalidParameterError(
            f"n_retrained is {n_retrained}; expected {needed} or more: an error of {level:g} with "
            f"{n_tests} statistics needs them beside {n_models} models that deleted"
        )
    if (n_exchanges + 1) * level < n_tests - 1e-9:
        least = int(np.ceil(n_tests / level - 1e-9)) - 1
        raise InvalidParameterError(
            f"n_exchanges is {n_exchanges}; expected {least} or more: an error of {level:g} with "
            f"{n_tests} statistics needs them"
        )
    return (
        f"an error of {level:g} with {n_tests} statistics needs {max(needed, _FEWEST)} retrained "
        f"models beside {n_models} that deleted; there are {n_retrained}",
    )


def _refuse_count(name: str, value: int, least: int) -> None:
    if not is_integer(type(value)) or value < least:
        raise InvalidParameterError(
            f"{name} is {shorten(value)}; expected a whole number, {least} or more"
        )
