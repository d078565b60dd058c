"""How much is tried: the beginning by ``make test``, all or more of it by ``make soak``."""

from __future__ import annotations

import os
from collections import Counter

import pytest

__all__ = ["THOROUGH", "examples", "few", "in_turn", "quarter", "sample", "skip"]

THOROUGH = os.environ.get("ERASABLE_THOROUGH", "0") != "0"
"""Whether everything is tried; ``make soak`` sets the variable."""

SEED = int(os.environ.get("ERASABLE_SEED", "1"))
"""Which soak it is; ``make soak SEED=2`` sets the variable."""

QUARTER = int(os.environ.get("ERASABLE_QUARTER") or 0)
"""Which quarter of the tests is run, from 1; ``make soak QUARTER=2`` sets the variable. 0: all."""

SHARE, LEAST = 10, 3


def examples(many: int) -> int:
    """Say how many examples hypothesis is to think of, where `many` are wanted in all."""
    return many if THOROUGH else min(many, max(many // SHARE, LEAST))


def few(many: int) -> int:
    """Say how often a thing is repeated with another seed, where `many` times are wanted in all."""
    return many if THOROUGH else -(-many // 3)


def skip(step: int) -> int:
    """Say how many steps on the next point is that is tried, where `step` are wanted in all."""
    return step if THOROUGH else 2 * step + 1


def in_turn(number: int, of: int) -> bool:
    """Tell whether a point is tried by this soak, which has no time for all: `of` soaks try all."""
    return (number + SEED) % of == 0


def sample(items: list[pytest.Item]) -> None:
    """Keep one in k of the parameters of a test that is marked ``sampled(k)``.

    Of each k that follow one another, another one: the first, then the second, so that every value
    of each parameter is tried where they are combined. Where everything is tried, all. They are all
    marked `thorough`, too.
    """
    seen: Counter[str] = Counter()
    kept = []
    for item in items:
        mark = item.get_closest_marker("sampled")
        turn, place = 0, 0
        if mark is not None:
            item.add_marker("thorough")
            name = item.nodeid.partition("[")[0]
            turn, place = divmod(seen[name], mark.args[0])
            seen[name] += 1
        if mark is None or THOROUGH or turn % mark.args[0] == place:
            kept.append(item)
    items[:] = kept


def quarter(items: list[pytest.Item]) -> list[pytest.Item]:
    """Return every fourth of them, from the next one in the next quarter; all without one."""
    return items[QUARTER - 1 :: 4] if QUARTER else items
