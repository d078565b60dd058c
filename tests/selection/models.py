"""Staying models over seven records of which five are chosen, each with an oracle."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction

import numpy as np

from erasable.selection import (
    BetaBinomial,
    Certain,
    Exchangeable,
    Groups,
    Independent,
    PerClass,
    PointMass,
    Uniform,
)
from erasable.selection.staying import Staying
from selection import enumeration

N, K = 7, 5


def oracle(
    staying: Staying, chosen: Sequence[int], classes: Sequence[int]
) -> Callable[[tuple[int, ...]], float]:
    """The probability that exactly some of the chosen stay, from first principles."""
    if isinstance(staying, Groups):
        owners = {staying.labels[j] for j in chosen}

        def together(stay: tuple[int, ...]) -> float:
            stayed = {staying.labels[j] for j in stay}
            if stayed & {staying.labels[j] for j in chosen if j not in stay}:
                return 0.0
            return float(np.prod([
                staying.s[o] if o in stayed else 1 - staying.s[o] for o in sorted(owners)
            ]))  # fmt: skip

        return together
    if isinstance(staying, PerClass):
        parts = {label: [j for j in chosen if classes[j] == label] for label in staying.models}

        def apart(stay: tuple[int, ...]) -> float:
            return float(np.prod([
                oracle(staying.models[label], part, classes)(
                    tuple(j for j in stay if j in part)
                )
                for label, part in parts.items()
            ]))  # fmt: skip

        return apart
    if isinstance(staying, Independent):
        s = [staying.s] * N if isinstance(staying.s, float) else staying.s
        return enumeration.independent(s, chosen)
    if isinstance(staying, Certain):
        return enumeration.independent([1.0] * N, chosen)
    if isinstance(staying, BetaBinomial):
        size = BetaBinomial(staying.alpha, staying.beta).subset_pmf(len(chosen))
        return enumeration.alike(list(size))
    pmf = staying.size_pmf(K, k=K)  # held against the numbers given, in test_staying
    table = enumeration.recursion([Fraction(each).limit_denominator(10**9) for each in pmf])
    return enumeration.alike([float(each) for each in table[len(chosen)]])


MODELS: list[Staying] = [
    Certain(),
    Independent(0.6),
    Independent(np.array([0.0, 1.0, 0.3, 0.9, 0.5, 0.05, 0.7])),
    Exchangeable([0.1, 0.3, 0.0, 0.2, 0.3, 0.1]),
    Uniform(2, 5),
    Uniform(0, 2),
    PointMass(3),
    BetaBinomial(4, 2),
    BetaBinomial(0.5, 0.7),
    Groups([0, 1, 0, 1, 2, 2, 0], {0: 0.3, 1: 0.9, 2: 0.6}),
]
CLASSED: list[Staying] = [*MODELS, PerClass({0: BetaBinomial(1, 2), 1: 0.8})]
NAMES = [f"{type(each).__name__}{i}" for i, each in enumerate(CLASSED)]
