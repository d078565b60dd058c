"""Plans of audits of a deletion: what they need, checked before they start."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Real

import numpy as np

from erasable.audit._sample_sizes import refits_for_level
from erasable.core.errors import InvalidParameterError
from erasable.core.ids import shorten
from erasable.core.seeds import is_integer
from erasable.core.threads import check_n_jobs

__all__ = ["ATTACKS", "plan_of_method", "plan_of_model", "read_attacks", "refuse_numbers"]

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
