"""Which utilities are submodular, by listing all subsets, and what optimisers may trust."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF

from erasable import selection
from erasable.selection import (
    Custom,
    Expected,
    MutualInformation,
    NaiveBayes,
    NearestNeighbor,
    NeuralVariance,
    SubsetSelector,
    VarianceReduction,
)
from erasable.selection.utilities import Problem, Utility
from selection import enumeration

N, N_DRAWN = 6, 40
CLOSE = 1e-9


class Pairs:
    """A record is worth 1, and 1 more for each before it: gains grow."""

    def __init__(self, X: Any, y: Any) -> None:
        self.n = 0

    def gain(self, j: int) -> float:
        return 1.0 + self.n

    def add(self, j: int) -> None:
        self.n += 1


def _features(rng: np.random.Generator) -> np.ndarray:
    return rng.normal(size=(N, 2))


def _kernel(rng: np.random.Generator) -> np.ndarray:
    G = rng.normal(size=(N, N))
    return G @ G.T


PROBLEMS: dict[str, tuple[Utility, Callable[[np.random.Generator], Problem]]] = {
    type(utility).__name__ + extra: (utility, make)
    for utility, extra, make in [
        (NearestNeighbor(), "", lambda rng: NearestNeighbor().problem(_features(rng))),
        (
            NaiveBayes(), "",
            lambda rng: NaiveBayes().problem(rng.integers(0, 2, (N, 3)), rng.integers(0, 2, N)),
        ),
        (
            MutualInformation(), "",
            lambda rng: MutualInformation("precomputed").problem(_kernel(rng)),
        ),
        (
            VarianceReduction(), "",
            lambda rng: VarianceReduction("precomputed", noise=0.1).problem(_kernel(rng)),
        ),
        (
            VarianceReduction(), " of features",
            lambda rng: VarianceReduction(RBF(), noise=0.1).problem(_features(rng)),
        ),
        (
            NeuralVariance(), "",
            lambda rng: NeuralVariance(noise=0.1).problem(_kernel(rng)),
        ),
        (Custom(Pairs), "", lambda rng: Custom(Pairs).problem(np.zeros((N, 1)))),
    ]
}  # fmt: skip


def _values(problem: Problem) -> dict[frozenset[int], float]:
    return {
        frozenset(stay): problem.value(np.array(stay, dtype=np.int64))
        for stay in enumeration.subsets(range(N))
    }


def _grows(values: dict[frozenset[int], float]) -> bool:
    """Say whether some record adds more once another one is there."""
    for base, i, j in itertools.product(values, range(N), range(N)):
        if i == j or {i, j} & base:
            continue
        alone = values[base | {j}] - values[base]
        after = values[base | {i, j}] - values[base | {i}]
        if after > alone + CLOSE:
            return True
    return False


@pytest.mark.parametrize("name", PROBLEMS)
def test_what_a_utility_says_of_itself_is_so(name: str) -> None:
    """No counterexample where it says that it is submodular; elsewhere one in each kernel."""
    utility, make = PROBLEMS[name]
    drawn = [_values(make(np.random.default_rng(seed))) for seed in range(N_DRAWN)]
    counterexamples = sum(map(_grows, drawn))
    assert counterexamples == (0 if utility.is_submodular else N_DRAWN)
    for values in drawn:  # all of them are monotone
        least = min(
            values[base | {j}] - values[base] for base in values for j in range(N) if j not in base
        )
        assert least >= -CLOSE


def test_every_utility_is_held_to_what_it_says() -> None:
    there = {
        name
        for name in selection.__all__
        if isinstance(each := getattr(selection, name), type) and issubclass(each, Utility)
    }
    assert {type(utility).__name__ for utility, _ in PROBLEMS.values()} == there


def test_a_sum_of_two_signals() -> None:
    """By hand: the records are z + e and e, each seen with noise 0.1, and the target is z."""
    problem = VarianceReduction(
        "precomputed", noise=0.1, targets=np.array([[1.0], [0.0]])
    ).problem(np.array([[2.0, 1.0], [1.0, 1.0]]))  # fmt: skip
    of = {rows: problem.value(np.array(rows, dtype=np.int64)) for rows in ((1,), (0,), (0, 1))}
    assert of[(1,)] == 0
    assert of[(0,)] == pytest.approx(1 / 2.1)
    assert of[(0, 1)] == pytest.approx(1.1 / (2.1 * 1.1 - 1))
    assert of[(0, 1)] - of[(0,)] > 0.3 > of[(1,)]


def _greedily(problem: Problem, k: int) -> list[int]:
    chosen: list[int] = []
    for _ in range(k):
        worth = [
            -np.inf if j in chosen else problem.value(np.array([*chosen, j]))
            for j in range(problem.n)
        ]
        chosen.append(int(np.argmax(worth)))
    return chosen


def _chosen(
    utility: Utility, kernel: np.ndarray, k: int, staying: float = 1.0
) -> dict[str, list[int]]:
    return {
        optimizer: SubsetSelector(
            utility, k=k, staying=staying, objective=Expected(200), optimizer=optimizer,
            random_state=0,
        ).fit(kernel).selected_.tolist()
        for optimizer in ("auto", "greedy", "lazy")
    }  # fmt: skip


@pytest.mark.parametrize("kind", [VarianceReduction, NeuralVariance])
def test_auto_looks_at_every_gain_where_lazy_misses_one(kind: type[Utility]) -> None:
    """The records z + e, e and w; the targets are z, and another that w tells 0.2 of.

    Alone e is worth nothing, and after z + e it is worth 0.36: more than w, at which lazy stops.
    Where nobody leaves all gains are known after each choice, and lazy misses none of them.
    """
    kernel = np.array([[2.0, 1.0, 0.0], [1.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
    targets = np.array([[1.0, 0.0], [0.0, 0.0], [0.0, np.sqrt(0.2 * 1.1)]])
    utility = kind("precomputed", noise=0.1, targets=targets)  # type: ignore[call-arg]
    assert _greedily(utility.problem(kernel), 2) == [0, 1]
    chosen = _chosen(utility, kernel, 2, staying=0.9)
    assert chosen == {"auto": [0, 1], "greedy": [0, 1], "lazy": [0, 2]}
    assert _chosen(utility, kernel, 2) == {each: [0, 1] for each in chosen}


def test_lazy_misses_none_of_a_submodular_utility() -> None:
    for seed in range(10):
        kernel = _kernel(np.random.default_rng(seed))
        by_hand = _greedily(MutualInformation("precomputed").problem(kernel), 4)
        chosen = _chosen(MutualInformation("precomputed"), kernel, 4)
        assert all(each == by_hand for each in chosen.values())


def test_auto_goes_by_what_the_utility_says() -> None:
    rng = np.random.default_rng(0)
    X, y = rng.integers(0, 2, (8, 3)), rng.integers(0, 2, 8)
    used = {
        type(utility).__name__: SubsetSelector(utility, k=2).fit(X, y).optimizer_
        for utility in (NearestNeighbor(), NaiveBayes(), MutualInformation(), VarianceReduction(),
                        Custom(Pairs))
    }  # fmt: skip
    assert used == {
        "NearestNeighbor": "lazy", "NaiveBayes": "lazy", "MutualInformation": "lazy",
        "VarianceReduction": "greedy", "Custom": "greedy",
    }  # fmt: skip
    assert SubsetSelector(k=2, optimizer="greedy").fit(X).optimizer_ == "greedy"
