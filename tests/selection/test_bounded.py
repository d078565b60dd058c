"""A choice by bounds is the choice by all the gains."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from effort import examples
from erasable.selection import BetaBinomial, Groups, NaiveBayes, PerClass, PointMass, Uniform
from erasable.selection._functions import Queue
from erasable.selection._sampled import BoundedQueue, SampledFunction
from erasable.selection.staying import Sampler, as_staying
from selection.models import CLASSED, NAMES

K = 8
STAYING: list[Any] = [
    1.0, 0.5, {0: 0.9, 1: 0.2}, BetaBinomial(2, 2), PointMass(3), Uniform(0, K),
    PerClass({0: BetaBinomial(1, 2), 1: 0.8}),
]  # fmt: skip


def sampled(staying: Any, seed: int, threshold: float | None, n: int = 40) -> SampledFunction:
    rng = np.random.default_rng(seed)
    X, y = rng.integers(0, 3, (n, 3)), np.arange(n) % 2
    bound = as_staying(staying).bind(n, k=K, labels=y)
    samples = NaiveBayes(0.1).problem(X, y).samples(50, K)
    return SampledFunction(samples, Sampler(bound, 50, seed), n, threshold=threshold, alpha=0.4)


@pytest.mark.parametrize("costs", [None, np.array([1.0, 2.0, 1.5, 1.0, 3.0] * 8)])
@pytest.mark.parametrize("threshold", [None, 0.0, 60.0, 250.0, 1e6])
@pytest.mark.parametrize("staying", STAYING, ids=str)
def test_it_finds_the_largest_gain(
    staying: Any, threshold: float | None, costs: np.ndarray | None
) -> None:
    function = sampled(staying, 1, threshold)
    weights = np.ones(function.n) if costs is None else 1 / costs
    queue = function.queue(np.arange(function.n), weights)
    left = list(range(function.n))
    looked_at = 0
    for round in range(K):
        gains = function.gains(np.array(left)) * weights[left]
        before = function.n_evaluations
        j, gain = queue.pop()
        looked_at += function.n_evaluations - before
        at = left.index(j)
        assert gain * weights[j] == pytest.approx(gains[at], rel=1e-12)
        assert gains[at] >= gains.max() * (1 - 1e-10)
        assert not (gains[:at] == gains[at]).any()  # of those alike the first
        left.remove(j)
        if round % 3 < 2:  # in every third round it costs too much
            function.add(j, gain)
            queue.next_round()
    assert looked_at < function.n * K / 2


@settings(max_examples=examples(40), deadline=None)
@given(
    st.sampled_from(STAYING),
    st.sampled_from([None, 60.0, 250.0, 1e6]),
    st.none() | st.integers(0, 39),
    st.integers(0, K - 1),
)
def test_bounds_are_above_gains(
    staying: Any, threshold: float | None, near_best: int | None, n_chosen: int
) -> None:
    function = sampled(staying, 2, threshold)
    for j in range(n_chosen):
        function.add(j)
    left = np.arange(n_chosen, function.n)
    bounds, gains = function.bounds(near_best)[left], function.gains(left)
    assert (bounds >= gains - 1e-9).all()
    if near_best is not None and near_best >= n_chosen:  # and tight where they are asked to be
        at = near_best - n_chosen
        assert bounds[at] == pytest.approx(gains[at], abs=1e-9)


def test_a_bound_that_is_too_low_is_found_out() -> None:
    """The negative control: with bounds below the gains another record would be chosen."""
    function = sampled(0.5, 1, 60.0)
    right = function.queue(np.arange(function.n)).pop()
    true_bounds = function.bounds
    function.bounds = lambda near_best: np.where(  # type: ignore[method-assign]
        np.arange(function.n) == right[0], 0.0, true_bounds(near_best)
    )
    assert function.queue(np.arange(function.n)).pop() != right


@pytest.mark.parametrize("staying", CLASSED, ids=NAMES)
def test_who_leaves_together_is_not_bounded(staying: Any) -> None:
    y = [0, 1, 0, 0, 1, 1, 0]
    samples = NaiveBayes().problem(np.arange(14).reshape(7, 2) % 3, y).samples(10, 5)
    function = SampledFunction(samples, Sampler(staying.bind(7, k=5, labels=y), 10, 0), 7)
    kind = Queue if isinstance(staying, Groups) else BoundedQueue
    assert type(function.queue(np.arange(7))) is kind
