"""Frontiers by searching a family itself: no multiplier, no line, no mean space."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.optimize import brentq, minimize
from scipy.special import log_softmax, softmax

STARTS = 5

__all__ = ["categories", "gaussians", "kl_of_categories", "kl_of_gaussians", "one_number"]


def one_number(
    divergence: Callable[[float, float], float],
    theta1: float,
    theta2: float,
    places: tuple[float, float],
    alpha: float,
    ends: tuple[float, float],
) -> float:
    """Search the parameter at which KL(p1, p) is alpha, on either side of p1.

    What is sought is its logarithm, or log-odds: `divergence(theta, place)` takes that, and
    `places` are those of p1 and p2.
    """
    if divergence(theta1, places[1]) >= alpha:
        return 0.0
    found = []
    for end in ends:
        if divergence(theta1, end) > alpha:
            place = brentq(lambda at: divergence(theta1, at) - alpha, places[0], end, xtol=1e-13)
            found.append(divergence(theta2, place))
    return min(found)


def kl_of_categories(p: np.ndarray, logits: np.ndarray) -> float:
    return float(p @ (np.log(p) - log_softmax(logits)))


def categories(p1: np.ndarray, p2: np.ndarray, alpha: float, rng: np.random.Generator) -> float:
    """Search all probabilities, by their logits, from many starts."""
    return _search(
        lambda x: kl_of_categories(p1, x),
        lambda x: kl_of_categories(p2, x),
        lambda x: softmax(x) - p1,
        lambda x: softmax(x) - p2,
        [np.log(p2) + rng.normal(size=len(p2)) for _ in range(STARTS)],
        alpha,
    )


def kl_of_gaussians(
    mean1: np.ndarray, cov1: np.ndarray, mean2: np.ndarray, cov2: np.ndarray
) -> float:
    """Compute it by the textbook: traces, inverses and determinants."""
    inverse, apart = np.linalg.inv(cov2), mean2 - mean1
    dets = np.linalg.slogdet(cov2)[1] - np.linalg.slogdet(cov1)[1]
    return float(np.trace(inverse @ cov1) - len(mean1) + apart @ inverse @ apart + dets) / 2


def gaussians(one: Any, two: Any, alpha: float, rng: np.random.Generator) -> float:
    """Search all means and all roots of a precision, whose diagonals are exponentials."""
    d = len(one[0])
    lower, diagonal = np.tril_indices(d), np.diag_indices(d)

    def unpack(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        root = np.zeros((d, d))
        root[lower] = x[d:]
        root[diagonal] = np.exp(root[diagonal])
        return x[:d], root

    def divergence(x: np.ndarray, mean: np.ndarray, covariance: np.ndarray) -> float:
        centre, root = unpack(x)
        second = covariance + np.outer(centre - mean, centre - mean)
        twice_logs = 2 * np.log(root[diagonal]).sum() + np.linalg.slogdet(covariance)[1]
        return float(((second @ root) * root).sum() - d - twice_logs) / 2

    def slope(x: np.ndarray, mean: np.ndarray, covariance: np.ndarray) -> np.ndarray:
        centre, root = unpack(x)
        of_root = (covariance + np.outer(centre - mean, centre - mean)) @ root
        of_root[diagonal] = of_root[diagonal] * root[diagonal] - 1
        return np.concatenate([root @ root.T @ (centre - mean), of_root[lower]])

    root = np.linalg.cholesky(np.linalg.inv(two[1]))
    root[diagonal] = np.log(root[diagonal])
    start = np.concatenate([two[0], root[lower]])
    return _search(
        lambda x: divergence(x, *one),
        lambda x: divergence(x, *two),
        lambda x: slope(x, *one),
        lambda x: slope(x, *two),
        [start + 0.5 * rng.normal(size=len(start)) for _ in range(STARTS)],
        alpha,
    )


def _search(
    removal: Any, cost: Any, slope_of_removal: Any, slope_of_cost: Any, starts: Any, alpha: float
) -> float:
    best = np.inf
    limit = {"type": "ineq", "fun": lambda x: removal(x) - alpha, "jac": slope_of_removal}
    for start in starts:
        found = minimize(
            cost, start, jac=slope_of_cost, method="SLSQP", constraints=[limit],
            options={"maxiter": 200, "ftol": 1e-12},
        )  # fmt: skip
        if removal(found.x) >= alpha - 1e-7:
            best = min(best, found.fun)
    return float(best)
