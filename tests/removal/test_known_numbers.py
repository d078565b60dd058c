"""How much of p1 is to be deleted for half of the removal, where the answer is known.

N(0, 1) against N(mu, 1), 1,000 records of each, a Gaussian of unit variance refitted. The known
shares are of whole populations: random is ``1 - (sqrt(2) - 1)`` for every mu; the others solve for
the mean of a truncated Gaussian.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.stats import norm

from effort import few
from erasable.removal import SCORES, MinRemoval
from erasable.removal._frontier import trace
from erasable.removal._sets import Sets
from erasable.removal.budgets import Curve


def known(score: str, mu: float) -> float:
    """Solve for the share whose deletion leaves a mean of ``mu / sqrt(2)``."""
    if score == "random":
        return 2 - np.sqrt(2)

    def short(share: float) -> float:
        if score == "density-ratio":  # the lowest values leave
            left = norm.pdf(norm.ppf(share))
        else:  # those farther than r from mu leave: what is left lies between
            r = brentq(lambda r: norm.cdf(mu + r) - norm.cdf(mu - r) - (1 - share), 0, mu + 12)
            left = norm.pdf(mu - r) - norm.pdf(mu + r)
        return float((left + mu) / (2 - share) - mu / np.sqrt(2))

    return float(brentq(short, 1e-9, 1 - 1e-9))


def measured(score: str, mu: float, seed: int) -> float:
    """Count what `MinRemoval` takes for half of the removal of a whole deletion."""
    rng = np.random.default_rng(seed)
    forget, retain = rng.normal(size=(1000, 1)), rng.normal(size=(1000, 1)) + mu
    sets = Sets(forget, retain)
    ranking = SCORES[score].rank(sets, seed)
    frontier = trace(sets, ranking.order, ranking.weights)
    curve = Curve(ranking.order, ranking.weights, lambda: frontier)
    return len(MinRemoval(frontier.alpha[-1] / 2).choose(curve)) / 1000


@pytest.mark.sampled(2)
@pytest.mark.thorough
@pytest.mark.parametrize(
    ("score", "mu", "share"),
    [
        ("random", 0.5, 0.586), ("random", 2.5, 0.586), ("random", 5.0, 0.586),
        ("mu2-distance", 0.5, 0.130), ("mu2-distance", 2.5, 0.374), ("mu2-distance", 5.0, 0.475),
        ("density-ratio", 0.5, 0.099), ("density-ratio", 2.5, 0.374),
    ],
)  # fmt: skip
def test_half_of_the_removal(score: str, mu: float, share: float) -> None:
    assert known(score, mu) == pytest.approx(share, abs=2.5e-3)
    found: Any = np.mean([measured(score, mu, seed) for seed in range(20 if mu < 1 else few(20))])
    assert abs(found - share) < 0.015
    if (score, mu) == ("density-ratio", 0.5):
        assert found <= 0.105


def test_another_score_misses() -> None:
    """The control: deleting what is typical of forget needs six times as much."""
    found = np.mean([measured("coreset", 0.5, seed) for seed in range(3)])
    assert found > 0.5
