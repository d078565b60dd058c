"""Expected utilities by listing every subset: what the closed forms are held against."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from math import comb

import numpy as np


def recursion(r: Sequence[Fraction]) -> list[list[Fraction]]:
    """Return p[t][a] by corollary 1 as it is printed, in exact fractions."""
    k = len(r) - 1
    table = [[each / comb(k, a) for a, each in enumerate(r)]]
    while len(table[0]) > 1:
        above = table[0]
        table.insert(0, [above[a] + above[a + 1] for a in range(len(above) - 1)])
    return table


def subsets(items: Sequence[int]) -> Iterator[tuple[int, ...]]:
    for size in range(len(items) + 1):
        yield from itertools.combinations(items, size)


def expectation(
    chosen: Sequence[int],
    probability_of: Callable[[tuple[int, ...]], float],
    utility: Callable[[Sequence[int]], float],
) -> float:
    """Return the sum over all who may stay of the probability times the utility."""
    return float(sum(probability_of(stay) * utility(stay) for stay in subsets(chosen)))


def independent(s: Sequence[float], chosen: Sequence[int]) -> Callable[[tuple[int, ...]], float]:
    def probability(stay: tuple[int, ...]) -> float:
        return float(np.prod([s[j] if j in stay else 1 - s[j] for j in chosen]))

    return probability


def alike(p: Sequence[float]) -> Callable[[tuple[int, ...]], float]:
    """p[a]: that exactly a given subset of a stays."""
    return lambda stay: float(p[len(stay)])


def nearest(similarity: np.ndarray, classes: Sequence[int]) -> Callable[[Sequence[int]], float]:
    """u_NN as it is printed in appendix C.2."""

    def utility(stay: Sequence[int]) -> float:
        total = 0.0
        for i, label in enumerate(classes):
            total += max((similarity[j, i] for j in stay if classes[j] == label), default=0.0)
        return total

    return utility
