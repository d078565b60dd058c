"""Every score of a forget set as its definition reads, in plain NumPy, record by record."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np

__all__ = [
    "ORDERS",
    "SCORES",
    "any_weights",
    "gradmatch",
    "non_negative_weights",
    "oas",
    "shrunk_covariance",
]

Floats = Any


def oas(correlation: Floats, n: int) -> float:
    """Chen, Wiesel, Eldar and Hero (2010), eq. 23."""
    p = len(correlation)
    square, trace = np.trace(correlation @ correlation), np.trace(correlation)
    rho = (1 - 2 / p) * square + trace**2
    rho /= max((n + 1 - 2 / p) * (square - trace**2 / p), 1e-300)
    return float(min(1.0, rho))


def shrunk_covariance(X: Floats, shrinkage: float | None = None) -> Floats:
    """Shrink what correlations there are, and leave variances."""
    deviations = X - X.mean(axis=0)
    covariance = deviations.T @ deviations / (len(X) - 1)
    spread = np.sqrt(np.diag(covariance))
    correlation = covariance / np.outer(spread, spread)
    rho = oas(correlation, len(X) - 1) if shrinkage is None else shrinkage
    return ((1 - rho) * correlation + rho * np.eye(len(spread))) * np.outer(spread, spread)


def _cosine_distance(a: Floats, b: Floats) -> float:
    return float(1 - a @ b / np.sqrt((a @ a) * (b @ b)))


def _mahalanobis(x: Floats, m: Floats, covariance: Floats) -> float:
    return float(np.sqrt((x - m) @ np.linalg.solve(covariance, x - m)))


def _mu2(F: Floats, R: Floats) -> Floats:
    return [float(((x - R.mean(axis=0)) ** 2).sum()) for x in F]


def _cos(F: Floats, R: Floats) -> Floats:
    return [_cosine_distance(x, R.mean(axis=0)) for x in F]


def _lr_cos(F: Floats, R: Floats) -> Floats:
    m1, m2 = F.mean(axis=0), R.mean(axis=0)
    return [_cosine_distance(x, m2) - _cosine_distance(x, m1) for x in F]


def _maha(F: Floats, R: Floats) -> Floats:
    return [_mahalanobis(x, R.mean(axis=0), shrunk_covariance(R)) for x in F]


def _lr_maha(F: Floats, R: Floats) -> Floats:
    covariance = shrunk_covariance(R)
    m1, m2 = F.mean(axis=0), R.mean(axis=0)
    return [_mahalanobis(x, m2, covariance) - _mahalanobis(x, m1, covariance) for x in F]


def _knn(F: Floats, R: Floats) -> Floats:
    """Nearest-neighbour log ratio, in units of the mean squared distance within forget."""
    k1, k2 = min(10, len(F) - 1), min(10, len(R))
    own, other = [], []
    for i, x in enumerate(F):
        squares = ((np.delete(F, i, axis=0) - x) ** 2).sum(axis=1)
        own.append(np.sort(squares)[k1 - 1])
        other.append(np.sort(((R - x) ** 2).sum(axis=1))[k2 - 1])
    return (np.array(other) - np.array(own)) / np.mean(own)


def _norm(F: Floats, R: Floats) -> Floats:
    return [float(np.sqrt(x @ x)) for x in F]


def _coreset(F: Floats, R: Floats) -> Floats:
    return [-float(np.sqrt(((x - F.mean(axis=0)) ** 2).sum())) for x in F]


SCORES = {
    "mu2-distance": _mu2,
    "cos-mu2": _cos,
    "maha-mu2": _maha,
    "lr-cos": _lr_cos,
    "lr-maha": _lr_maha,
    "knn-ratio": _knn,
    "norm": _norm,
    "coreset": _coreset,
}


def _distances(F: Floats) -> Floats:
    return np.sqrt(((F[:, None] - F[None]) ** 2).sum(axis=2))


def _k_center(F: Floats) -> list[int]:
    apart = _distances(F)
    order = [int(np.argmin(((F - F.mean(axis=0)) ** 2).sum(axis=1)))]
    while len(order) < len(F):
        left = [i for i in range(len(F)) if i not in order]
        order.append(max(left, key=lambda i: (min(apart[i, j] for j in order), -i)))
    return order


def _craig(F: Floats) -> list[int]:
    """Greedy facility location by evaluating every set anew; the phantom is never nearer."""
    apart = _distances(F)
    far = 2 * np.sqrt(((F - F.mean(axis=0)) ** 2).sum(axis=1).max())

    def value(chosen: list[int]) -> float:
        return sum(far - min([far, *(apart[i, j] for j in chosen)]) for i in range(len(F)))

    order: list[int] = []
    while len(order) < len(F):
        left = [i for i in range(len(F)) if i not in order]
        order.append(max(left, key=lambda i: (round(value([*order, i]), 9), -i)))
    return order


def non_negative_weights(atoms: Floats, target: Floats, lam: float) -> Floats:
    """Return regularised least squares with weights of 0 or more, by trying every support."""
    k = atoms.shape[1]
    best, least = np.zeros(k), float(target @ target)
    for size in range(1, k + 1):
        for support in combinations(range(k), size):
            part = atoms[:, support]
            system = np.vstack([part, np.sqrt(lam) * np.eye(size)])
            found = np.linalg.lstsq(system, np.append(target, np.zeros(size)), rcond=None)[0]
            value = float(((target - part @ found) ** 2).sum() + lam * (found**2).sum())
            if (found >= 0).all() and value < least:
                best, least = np.zeros(k), value
                best[list(support)] = found
    return best


def any_weights(atoms: Floats, target: Floats, lam: float) -> Floats:
    """Return regularised least squares with weights of any sign."""
    system = np.vstack([atoms, np.sqrt(lam) * np.eye(atoms.shape[1])])
    right = np.append(target, np.zeros(atoms.shape[1]))
    return np.linalg.lstsq(system, right, rcond=None)[0]


def gradmatch(
    F: Floats, lam: float = 0.5, weigh: Any = non_negative_weights, sign: Any = float
) -> list[int]:
    """Pursuits of the summed gradient; `sign` says what counts of a record's product with it."""
    gradients = np.column_stack([F, np.ones(len(F))])
    order: list[int] = []
    while len(order) < len(F):
        left = [i for i in range(len(F)) if i not in order]
        target = gradients[left].sum(axis=0)
        taken: list[int] = []
        residual = target
        while len(taken) < min(len(target), len(left)):
            free = [i for i in left if i not in taken]
            place = max(free, key=lambda i: (sign(gradients[i] @ residual), -i))
            if taken and sign(gradients[place] @ residual) <= 0:
                break
            taken.append(place)
            residual = target - gradients[taken].T @ weigh(gradients[taken].T, target, lam)
        order += taken
    return order


ORDERS = {"k-center": _k_center, "craig": _craig, "gradmatch": gradmatch}
