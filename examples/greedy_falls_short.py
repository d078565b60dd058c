"""A case in which greedy anticipating selection is not optimal: the paper's appendix F.

There are four records: m1 and m2 are equal, e1 and e2 have similarity 0, and each m has similarity
v = 0.5 to each e. Three are chosen, by the similarity of all four to the nearest that stays. If
many leave, the greedy choice takes m2 second, as a replacement for m1; with three records the
spread set m, e1, e2 is better, unless still more leave. Between the two thresholds greedy selection
falls short. With probabilities s of staying they are::

    m2 is second         s < 1 / (2 - v) = 0.667
    m, e1, e2 is better  2 s - v s^2 > 1, which is s > (1 - sqrt(1 - v)) / v = 0.586

The paper prints 0.568 for the second. With a distribution by which at most one of three leaves,
each with probability r, m2 is second if r > (1 - v) / (3 - 2 v) = 0.25, and m, e1, e2 is always
better. The example computes both from sums over all cases of who stays, without the library, and
then with it. The exit status is 1 if thresholds differ, or if the choice or the expected utility of
the library differs.

Sim et al., Deletion-Anticipative Data Selection with a Limited Budget, appendix F.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from itertools import combinations
from math import comb, sqrt
from typing import Any

import numpy as np

from erasable.selection import Exchangeable, Independent, NearestNeighbor, SubsetSelector

V, K = 0.5, 3
NAMES = ("m1", "m2", "e1", "e2")
SIMILARITY = np.array([[1, 1, V, V], [1, 1, V, V], [V, V, 1, 0], [V, V, 0, 1]])
SPREAD, ALIKE = (0, 2, 3), (0, 1, 2)
ROW = "  {:<12}{:<13}{:<10}{:<13}{:<10}{}"
Rows = tuple[int, ...]


def expected(chosen: Rows, sizes: list[float]) -> float:
    """Return the expected utility, if a of three owners stay with probability ``sizes[a]``.

    If fewer than three are chosen, the others of the three have no value.
    """
    law = [share / comb(K, a) for a, share in enumerate(sizes)]
    total = 0.0
    for a in range(1, K + 1):
        for stay in combinations(range(K), a):
            left = [chosen[place] for place in stay if place < len(chosen)]
            if left:
                total += law[a] * SIMILARITY[left].max(axis=0).sum()
    return float(total)


def greedy(sizes: list[float]) -> Rows:
    """Choose three times the record with the largest gain; among equal gains the first."""
    chosen: Rows = ()
    for _ in range(K):
        others = [j for j in range(len(NAMES)) if j not in chosen]
        chosen += (max(others, key=lambda j: round(expected((*chosen, j), sizes), 9)),)
    return chosen


def independent(s: float) -> list[float]:
    """Return the probabilities that 0 to 3 of three stay, each with probability s."""
    return [comb(K, a) * s**a * (1 - s) ** (K - a) for a in range(K + 1)]


def tolerant(r: float) -> list[float]:
    """Return the same if at most one leaves, each with probability r."""
    return [0.0, 0.0, 3 * r, 1 - 3 * r]


def threshold(holds: Callable[[float], bool], low: float, high: float) -> float:
    """Return the threshold of a condition that holds at only one end."""
    first = holds(low)
    while high - low > 1e-9:
        middle = (low + high) / 2
        low, high = (middle, high) if holds(middle) == first else (low, middle)
    return low


def same_in_library(sizes: list[float], staying: Any) -> bool:
    """Say whether the library has the same choice and the same expected utility."""
    selector = SubsetSelector(NearestNeighbor("precomputed"), k=K, staying=staying).fit(SIMILARITY)
    chosen = tuple(selector.selected_.tolist())
    return chosen == greedy(sizes) and abs(selector.utility_ - expected(chosen, sizes)) < 1e-9


def show(label: str, sizes: list[float]) -> None:
    """Print the greedy choice, the best choice, and their values."""
    chosen = greedy(sizes)
    best = max(combinations(range(4), K), key=lambda rows: round(expected(rows, sizes), 9))
    worths = [expected(each, sizes) for each in (chosen, best)]
    texts = [" ".join(NAMES[j] for j in each) for each in (chosen, best)]
    short = "falls short" if worths[1] > worths[0] + 1e-9 else ""
    print(ROW.format(label, texts[0], f"{worths[0]:.4f}", texts[1], f"{worths[1]:.4f}", short))


def main() -> int:
    """Run the example."""
    print(ROW.format("", "greedy", "expected", "best", "expected", ""))
    right = True
    for s in (0.5, 0.575, 0.6, 0.65, 0.7, 0.9):
        show(f"s = {s}", independent(s))
        right &= same_in_library(independent(s), Independent(s))
    for r in (0.2, 0.26, 0.32):
        show(f"r = {r}", tolerant(r))
        right &= same_in_library(tolerant(r), Exchangeable(tolerant(r)))

    second = threshold(lambda s: greedy(independent(s))[1] == 1, 0.4, 0.9)
    better = threshold(
        lambda s: expected(SPREAD, independent(s)) > expected(ALIKE, independent(s)), 0.4, 0.9
    )
    by_rate = threshold(lambda r: greedy(tolerant(r))[1] == 1, 0.1, 1 / 3)
    print(f"\nGreedy selection falls short for s from {better:.3f} to {second:.3f},")
    print(f"and for r from {by_rate:.3f} to {1 / 3:.3f}.")
    for found, formula in (
        (second, 1 / (2 - V)),
        (better, (1 - sqrt(1 - V)) / V),
        (by_rate, (1 - V) / (3 - 2 * V)),
    ):
        right &= abs(found - formula) < 1e-6
    right &= abs(2 * better - V * better**2 - 1) < 1e-6
    right &= all(
        expected(SPREAD, tolerant(r)) > expected(ALIKE, tolerant(r))
        for r in np.linspace(0.01, 0.33, 33)
    )
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main())
