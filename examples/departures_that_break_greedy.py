"""Distributions of who stays for which greedy selection has no guarantee: the paper's appendix D.1.

Greedy selection is near the optimum if additional records never reduce the value (monotone), and if
the gain of a record never grows with the other records (submodular). The utility here is both. Its
expectation after departures is both, too, if the distribution (law) of who stays is consistent: if
for some records it is the marginal of the distribution for all records. The example shows two laws
that are not consistent, and the failures; then the staying models of the library, which are
consistent. Everything is checked over all sets of records that may be chosen and may stay, without
the library. The exit status is 1 if one of the two laws causes no failure, if a model of the
library does, or if the library's expected utility is not the sum over all cases of who stays.

Sim et al., Deletion-Anticipative Data Selection with a Limited Budget, proposition 1 and
appendix D.1.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from itertools import combinations
from math import comb
from typing import Any

import numpy as np
from scipy.stats import betabinom, binom

from erasable.selection import (
    BetaBinomial,
    Independent,
    NearestNeighbor,
    PointMass,
    Uniform,
    expected_utility,
)

Records = frozenset[int]
Law = Callable[[Records, Records], float]
"""For the chosen records and a subset: the probability that exactly the subset stays."""

N = 5
MODELS = (
    (Independent(0.3), binom.pmf(range(N + 1), N, 0.3)),
    (BetaBinomial(2, 3), betabinom.pmf(range(N + 1), N, 2, 3)),
    (PointMass(2), [0, 0, 1, 0, 0, 0]),
    (Uniform(0, 2), [1 / 3, 1 / 3, 1 / 3, 0, 0, 0]),
    (Uniform(3, 5), [0, 0, 0, 1 / 3, 1 / 3, 1 / 3]),
)
"""Staying models, and their probabilities that 0 to 5 of five stay."""
ROUNDING = 1e-9
ROW = "  {:<36}{:<13}{:<11}{}"


def parts(of: Records) -> Iterator[Records]:
    """Return all subsets of some records."""
    for size in range(len(of) + 1):
        yield from map(frozenset, combinations(sorted(of), size))


def expected(chosen: Records, law: Law, similarity: np.ndarray) -> float:
    """Return the expected utility: the sum of similarities to the nearest remaining record."""
    total = 0.0
    for stay in parts(chosen):
        if stay:
            total += law(chosen, stay) * similarity[sorted(stay)].max(axis=0).sum()
    return float(total)


def properties(law: Law, similarity: np.ndarray) -> tuple[bool, bool, bool]:
    """Say whether a law is consistent, and the expected utility monotone and submodular."""
    records = frozenset(range(len(similarity)))
    value = {chosen: expected(chosen, law, similarity) for chosen in parts(records)}
    consistent = monotone = submodular = True
    for chosen in value:
        for stay in parts(chosen):
            by_all = sum(law(records, stay | others) for others in parts(records - chosen))
            consistent &= abs(law(chosen, stay) - by_all) < ROUNDING
        for j in records - chosen:
            gain = value[chosen | {j}] - value[chosen]
            monotone &= gain > -ROUNDING
            for i in records - chosen - {j}:
                later = value[chosen | {i, j}] - value[chosen | {i}]
                submodular &= later < gain + ROUNDING
    return consistent, monotone, submodular


def crowd(chosen: Records, stay: Records) -> float:
    """Return the first law: all stay, but if three are chosen only record 0 does."""
    return float(stay == (chosen if len(chosen) < 3 else {0}))


def company(chosen: Records, stay: Records) -> float:
    """Return the second law: record 1 leaves; record 0 stays with it, and rarely without it."""
    stays = {0: 1.0 if 1 in chosen else 0.1, 1: 0.0}
    return float(np.prod([stays[j] if j in stay else 1 - stays[j] for j in chosen]))


def law_of(model: Any) -> Law:
    """Return the law of a staying model of the library, which depends on the number who stay."""
    given = [model.subset_pmf(t, k=N) for t in range(N + 1)]
    return lambda chosen, stay: float(given[len(chosen)][len(stay)])


def show(name: object, found: tuple[bool, bool, bool]) -> None:
    """Print a row."""
    print(ROW.format(str(name), *("yes" if each else "NO" for each in found)))


def main() -> int:
    """Run the example."""
    print(ROW.format("who stays", "consistent", "monotone", "submodular"))
    three = np.full((3, 3), 0.2) + 0.8 * np.eye(3)
    two = np.diag([1.0, 0.0])  # record 1 has no value
    first, second = properties(crowd, three), properties(company, two)
    show("of three, one alone", first)
    show("likelier beside another", second)
    right = not first[0] and not first[1] and not second[0] and not second[2]

    places = np.random.default_rng(0).random(N)
    similarity = 1 - np.abs(places[:, None] - places)
    records = frozenset(range(N))
    for model, sizes in MODELS:
        found = properties(law_of(model), similarity)
        show(model, found)
        of_all = [share / comb(N, a) for a, share in enumerate(sizes)]
        by_sum = expected(records, lambda _, stay, p=of_all: p[len(stay)], similarity)
        utility = NearestNeighbor("precomputed")
        ours = expected_utility(range(N), similarity, utility=utility, staying=model).value
        right &= all(found) and abs(ours - by_sum) < ROUNDING

    pair, all_three = (expected(frozenset(range(k)), crowd, three) for k in (2, 3))
    alone = expected(frozenset({0}), company, two)
    beside = expected(frozenset({0, 1}), company, two) - expected(frozenset({1}), company, two)
    print(f"\nOf three, one alone: two records are worth {pair:.1f}, all three {all_three:.1f}.")
    print(f"Likelier beside another: record 0 adds {alone:.1f} to none, {beside:.1f} to record 1.")
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main())
