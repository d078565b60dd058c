"""Gaussian domains: removal and shift at every budget, and what they are for infinitely many."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
from scipy.optimize import brentq
from scipy.stats import norm
from shared import ranked

bench: Any = importlib.import_module("benchmarks.removal")
CASES: Any = {case[0]: case for case in bench.CASES if case[3] == 1_000}
"""By title: title, draw, curve, number of records, of draws, and what the design expects."""

# Orders that are no cut: what is left of p1 is not zero on one side.
NO_CUT = ("k-center", "craig", "gradmatch", "ccs")
COSINES = ("cos-mu2", "lr-cos")  # signs, in one dimension
N_GRID = 2_000_001


def known_gaussians(mu: float, order: Any, forget: Any, retain: Any) -> tuple[Any, Any]:
    """Return alpha and epsilon at every budget; N(0, 1) and N(mu, 1) known, the mean refitted."""
    gone = np.concatenate([[0.0], np.cumsum(forget[order, 0])])
    left = len(forget) + len(retain) - np.arange(len(forget) + 1)
    mean = (forget.sum() + retain.sum() - gone) / left
    return mean**2 / 2, (mean - mu) ** 2 / 2


def half(title: str, n: int, seed: int, names: Any) -> dict[str, float]:
    """Return, by score, the share of forget to delete for half of the removal of all of it."""
    _, draw, curve, *_ = CASES[title]
    forget, retain, known = draw(np.random.default_rng(seed), n)
    found = {}
    for name in names:
        mixture = curve is bench.edited_mixture
        if (mixture and name in NO_CUT) or (forget.shape[1] == 1 and name in COSINES):
            continue
        if name == "known ratio":
            order = np.argsort(-known, kind="stable")
        elif mixture and name == "random":
            order = None
        else:
            order = ranked(name, forget, retain, seed).order
        alpha = curve(forget, retain, order)
        found[name] = float(np.argmax(alpha >= alpha[-1] / 2)) / n
    return found


def half_by_frontier(mu: float, n: int, seed: int, names: Any) -> dict[str, float]:
    """Return the same as the library tells it, by estimates of p1 and of the variance."""
    forget, retain, _ = CASES[f"1-D, mu {mu:g}"][1](np.random.default_rng(seed), n)
    found = {}
    for name in names:
        alpha = ranked(name, forget, retain, seed).alpha
        found[name] = float(np.argmax(alpha >= alpha[-1] / 2)) / n
    return found


def exact_half(score: str, mu: float) -> float:
    """Return the share for infinitely many records of N(0, 1) and of N(mu, 1), by quadrature."""
    x = np.linspace(-9, 9, N_GRID)
    mass = norm.pdf(x) * (x[1] - x[0])
    values = {
        "mu2-distance": np.abs(x - mu),
        "density-ratio": -x,
        "coreset": -np.abs(x),
        "norm": np.abs(x),
    }
    if score == "random":
        return float(2 - np.sqrt(2))
    order = np.argsort(-values[score], kind="stable")
    share = np.cumsum(mass[order])
    gone = np.cumsum((mass * x)[order])
    mean = (mu - gone) / (2 - share)
    return float(share[np.argmax(mean >= mu / np.sqrt(2))])


def exact_wide_random(d: int = 10, mu: float = 0.5, spread: float = 1.5) -> float:
    """Return what random needs where retain is wider, for infinitely many records.

    The Gaussian refitted has the mean and the covariance of what is left, both in closed form.
    """

    def removal(share: float) -> float:
        kept = (1 - share) / (2 - share)
        mean = (1 - kept) * mu
        variance = kept + (1 - kept) * spread**2
        first = variance + kept * (1 - kept) * mu**2
        across = (d - 1) * (1 / variance - 1 + np.log(variance))
        return float((1 + mean**2) / first - 1 + np.log(first) + across) / 2

    return float(brentq(lambda share: removal(share) - removal(1.0) / 2, 0, 1))
