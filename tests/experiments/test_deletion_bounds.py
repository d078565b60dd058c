"""Bounds on deletions from quantised k-means, against movements and roundings counted plainly."""

from __future__ import annotations

import importlib
import math
import re
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from erasable.core.errors import InvalidParameterError

bounds: Any = importlib.import_module("deletion_bounds")
deletion_page: Any = importlib.import_module("deletion_page")
PAGE = Path(__file__).parents[2] / "docs" / "papers" / "deletion.md"


def centroid(values: Any, previous: float, floor: float) -> float:
    """A coordinate of a centroid of algorithm 4, with the balance correction as a mean."""
    mass = len(values)
    if mass >= floor:
        return math.fsum(values) / mass
    return (math.fsum(values) + (floor - mass) * previous) / floor


def moved(clusters: Any, previous: Any, gone: Any, gamma: float) -> float:
    """Sum over clusters how far a coordinate moves when `gone[c]` records leave cluster c."""
    k, n, m = len(clusters), sum(map(len, clusters)), sum(gone)
    total = 0.0
    for values, start, leaving in zip(clusters, previous, gone, strict=True):
        before = centroid(values, start, gamma * n / k)
        after = centroid(values[leaving:], start, gamma * (n - m) / k)
        total += abs(before - after)
    return total


unit = st.floats(0, 1)


@given(st.data(), st.floats(0.05, 1.0))
def test_centroids_move_by_no_more(data: Any, gamma: float) -> None:
    k = data.draw(st.integers(1, 4))
    clusters = data.draw(st.lists(st.lists(unit, max_size=12), min_size=k, max_size=k))
    previous = data.draw(st.lists(unit, min_size=k, max_size=k))
    gone = [data.draw(st.integers(0, len(values))) for values in clusters]
    n, m = sum(map(len, clusters)), sum(gone)
    if not 0 < m < n:
        return
    limit = m * (k / (gamma * n) + k / n)
    assert moved(clusters, previous, gone, gamma) <= limit * (1 + 1e-9)


def test_without_the_share_of_the_correction_they_may_move_by_more() -> None:
    # A light cluster at 1, whose correction is towards 0 and follows n, and one that loses half.
    clusters, previous = [[1.0] * 2, [1.0] * 6 + [0.0] * 14], [0.0, 0.0]
    gone, gamma = [0, 6], 1.0
    n, m, k = 22, 6, 2
    found = moved(clusters, previous, gone, gamma)
    lone = moved([*clusters[:1], []], previous, [0, 0], gamma)
    assert lone == 0.0
    light = abs(centroid([1.0] * 2, 0.0, 11.0) - centroid([1.0] * 2, 0.0, 8.0))
    assert light > 0.0  # although nobody leaves it
    assert light <= m / n
    assert found <= m * (k / (gamma * n) + k / n)


@given(unit, st.floats(-0.2, 0.2), st.sampled_from([0.25, 0.5, 1.0]))
def test_a_coordinate_is_rounded_elsewhere_as_often_as_it_moves(
    x: float, step: float, epsilon: float
) -> None:
    phases = (np.arange(10_000) + 0.5) / 10_000 - 0.5
    before = np.rint(x / epsilon - phases)
    after = np.rint((x + step) / epsilon - phases)
    assert (before != after).mean() == pytest.approx(min(1.0, abs(step) / epsilon), abs=2e-4)


@given(
    st.integers(100, 10**6), st.integers(1, 50), st.integers(1, 20), st.integers(1, 20),
    st.floats(1e-3, 1.0), st.floats(0.05, 1.0), st.integers(1, 50),
)  # fmt: skip
def test_the_bound_is_below_the_printed_one(
    n: int, d: int, k: int, n_iter: int, epsilon: float, gamma: float, m: int
) -> None:
    given_ = (n, d, k, n_iter, epsilon, gamma, m)
    sharp, printed = bounds.unstable_bound(*given_), bounds.unstable_as_printed(*given_)
    assert 0.0 < sharp <= printed <= 1.0
    if printed < 1.0:
        assert printed / sharp == pytest.approx(2 * math.sqrt(d) / (1 + gamma))


@pytest.mark.parametrize(("n", "n_leaves"), [(1, 1), (3, 2), (5, 3), (6, 4)])
def test_the_size_of_a_records_leaf_is_that_of_enumeration(n: int, n_leaves: int) -> None:
    total = Fraction(0)
    for code in range(n_leaves**n):
        leaves = [code // n_leaves**i % n_leaves for i in range(n)]
        total += sum(leaves.count(leaf) for leaf in leaves)
    assert bounds.leaf_size(n, n_leaves) == pytest.approx(float(total / n / n_leaves**n))


def test_runtimes_are_of_the_order_that_the_corollaries_say() -> None:
    exponents = {}
    for rho in (0.3, 0.5, 0.7):
        costs = [bounds.divide_runtime(n, 1, 1, 1, round(n**rho)) for n in (10**6, 10**12)]
        exponents[rho] = math.log10(costs[1] / costs[0]) / 6
        assert exponents[rho] == pytest.approx(max(rho, 1 - rho), abs=0.05)
        # At the threshold a deletion costs what a training does, shared by all deletions.
        alpha = bounds.divide_threshold(rho)
        assert max(rho, 1 - rho) == pytest.approx(1 - alpha)
    for beta in (0.2, 0.5, 0.8):
        alpha = bounds.quantized_threshold(beta)
        total = [
            bounds.quantized_runtime(n, 1, 1, 1, n**-beta, 1.0, round(n**alpha))
            for n in (10**9, 10**15)
        ]
        # m^2 / epsilon, of which each deletion has m / epsilon
        assert math.log10(total[1] / total[0]) / 6 == pytest.approx(2 * alpha + beta, abs=0.01)
        least = bounds.least_runtime(10**9, 1, round((10**9) ** alpha))
        assert alpha + beta == pytest.approx(1 - alpha)
        assert least == pytest.approx((10**9) ** (1 - alpha), rel=2e-2)


def test_the_loss_is_bounded_by_that_of_the_seeds_without_a_lattice() -> None:
    assert bounds.loss_bound(7.0, 100, 3, 4, 0.0) == pytest.approx((8 * math.log(4) + 16) * 7)
    coarse = bounds.loss_bound(7.0, 100, 3, 4, 0.5)
    # Cauchy and Schwarz: all distances grow by epsilon / 2 in each coordinate.
    assert coarse == pytest.approx(
        (math.sqrt((8 * math.log(4) + 16) * 7) + math.sqrt(300) * 0.25) ** 2
    )


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda: bounds.unstable_bound(0, 1, 1, 1, 0.1, 0.2), "n=0"),
        (lambda: bounds.unstable_bound(9, 1, 1, 1, -0.1, 0.2), "epsilon=-0.1"),
        (lambda: bounds.loss_bound(-1.0, 9, 1, 1, 0.1), "optimum=-1.0"),
        (lambda: bounds.quantized_threshold(1.0), "beta=1.0"),
        (lambda: bounds.divide_threshold(math.nan), "rho=nan"),
    ],
)
def test_bad_input_is_told(call: Any, told: str) -> None:
    with pytest.raises(InvalidParameterError, match=told):
        call()


def test_the_page_is_that_of_the_results() -> None:
    results = deletion_page.load()
    page = PAGE.read_text(encoding="utf-8")
    assert page == deletion_page.text(results)
    assert "not measured" not in page
    for row in results["stability"]["notes"]["stability"]["rows"]:
        measured = float(row[2].split()[0])
        assert measured <= float(row[3]) <= float(row[4])
    named = re.findall(r"\{(\w+)\}", (deletion_page.WORDS / "stability.md").read_text())
    assert {"note_stability", "note_losses", "note_adversary", "figure_1"} <= set(named)
