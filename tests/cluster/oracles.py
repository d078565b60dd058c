"""k-means by the book, in plain Python and NumPy: what the kernels are compared with.

Nothing here calls a kernel of `erasable.cluster`. Data handed to these functions lie on the grid
already; `on_grid` makes such data.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

RACE = 1  # number of the tape's stream of races, as published in the docstring of Stream
WORD = 2**32 - 1


def on_grid(X: Any, bits: int = 12) -> np.ndarray:
    """Round to multiples of ``2**-bits``: data of moderate size that the grid leaves alone."""
    return np.rint(np.asarray(X, np.float64) * 2.0**bits) / 2.0**bits


def top_exponents(X: np.ndarray) -> np.ndarray:
    """Smallest integers e with ``|x| <= 2**e`` in every column (0 for a column of zeros)."""
    tops = []
    for widest in np.abs(np.asarray(X, np.float64)).max(axis=0).tolist():
        e = -1100
        while Fraction(widest) > Fraction(2) ** e:
            e += 1
        tops.append(e if widest else 0)
    return np.array(tops, np.int64)


# -- the tape ----------------------------------------------------------------------------------


def philox(counter: tuple[int, int, int, int], key: tuple[int, int]) -> tuple[int, ...]:
    """Philox 4x32-10 on Python's integers, from the paper of Salmon et al. (SC 2011)."""
    a, b, c, d = counter
    e, f = key
    for _ in range(10):
        first, second = 0xD2511F53 * a, 0xCD9E8D57 * c
        a, b, c, d = (second >> 32) ^ b ^ e, second & WORD, (first >> 32) ^ d ^ f, first & WORD
        e, f = (e + 0x9E3779B9) & WORD, (f + 0xBB67AE85) & WORD
    return a, b, c, d


def race_uniform(seed: int, key: int, step: int, entry: int) -> float:
    """Uniform of one record in race `entry` of a seeding step.

    Four races share two blocks of the tape: the upper 32 bits are word ``entry % 4`` of the
    first, the lower 20 bits are the upper bits of the same word of the second.
    """
    block = step * 64 + 2 * (entry // 4)
    words = [
        philox((key & WORD, key >> 32, RACE, at), (seed & WORD, seed >> 32))[entry % 4]
        for at in (block, block + 1)
    ]
    return (float((words[0] << 20) | (words[1] >> 12)) + 0.5) * 2.0**-52


# -- distances ---------------------------------------------------------------------------------


def distance(x: Any, c: Any, weights: Any = None) -> float:
    """Squared distance, one feature after the other, in Python's floats."""
    total = 0.0
    for f, (a, b) in enumerate(zip(x, c, strict=True)):
        t = float(a) - float(b)
        total += t * t if weights is None else t * t * float(weights[f])
    return total


def distances(X: np.ndarray, centers: np.ndarray, weights: Any = None) -> np.ndarray:
    """`distance` of every record to every centroid, shape (n, k); the same bits."""
    total = np.zeros((len(X), len(centers)))
    for f in range(X.shape[1]):
        t = X[:, f, None].astype(np.float64) - centers[None, :, f]
        total += t * t if weights is None else t * t * weights[f]
    return total


def nearest(X: np.ndarray, centers: np.ndarray, weights: Any = None) -> np.ndarray:
    """Nearest centroid of every record; argmin gives the lower index of equals."""
    return distances(X, centers, weights).argmin(axis=1)


# -- seeding -----------------------------------------------------------------------------------


@dataclass
class Seeds:
    """What greedy k-means++ chose: positions, and the exact potentials of the candidates."""

    chosen: list[int]
    candidates: list[list[int]]
    potentials: list[list[int]]


def race_winner(seed: int, keys: list[int], stakes: list[float], step: int, entry: int) -> int:
    """Winner of one exponential race; fails where rounding could have decided it."""
    if not any(stakes):
        return min(range(len(keys)), key=lambda j: keys[j])
    scores = sorted(
        (-math.log(race_uniform(seed, key, step, entry)) / stake, j)
        for j, (key, stake) in enumerate(zip(keys, stakes, strict=True))
        if stake > 0.0
    )
    if len(scores) > 1:
        assert scores[1][0] > scores[0][0] * (1.0 + 1e-13), "too close for this oracle"
    return scores[0][1]


def greedy_seeds(
    X: np.ndarray,
    keys: list[int],
    seed: int,
    k: int,
    n_candidates: int,
    quantum: float,
    mass: Any = None,
    weights: Any = None,
) -> Seeds:
    """Greedy k-means++ (Arthur and Vassilvitskii 2007) by exponential races, step by step."""
    counts = [1] * len(X) if mass is None else [int(m) for m in mass]
    potential = [math.inf] * len(X)
    found = Seeds([], [], [])
    for step in range(k):
        stakes = [float(m) if step == 0 else p * m for p, m in zip(potential, counts, strict=True)]
        entries = 1 if step == 0 else n_candidates
        tried = [race_winner(seed, keys, stakes, step, entry) for entry in range(entries)]
        reached = [
            [min(p, distance(x, X[c], weights)) for p, x in zip(potential, X, strict=True)]
            for c in tried
        ]
        sums = [
            sum(m * round(p * quantum) for p, m in zip(line, counts, strict=True))
            for line in reached
        ]
        best = sums.index(min(sums))
        potential = reached[best]
        found.chosen.append(tried[best])
        found.candidates.append(tried)
        found.potentials.append(sums)
    return found


def quantum_of(X: np.ndarray) -> float:
    """The power of two with which no squared distance exceeds ``2**35``."""
    tops = top_exponents(X)
    return 2.0 ** (35 - (2 * (int(tops.max()) + 1) + math.ceil(math.log2(X.shape[1]))))


# -- Lloyd -------------------------------------------------------------------------------------


@dataclass
class Level:
    """One iteration: centroids, and the partition they make."""

    centers: np.ndarray
    labels: np.ndarray
    sums: list[list[Fraction]]
    counts: list[int]


def partition(X: np.ndarray, centers: np.ndarray, mass: Any = None, weights: Any = None) -> Level:
    """Assign every record and sum the clusters in exact arithmetic."""
    labels = nearest(X, centers, weights)
    counts = [1] * len(X) if mass is None else [int(m) for m in mass]
    k, d = centers.shape
    sums = [[Fraction(0)] * d for _ in range(k)]
    sizes = [0] * k
    for label, m, x in zip(labels.tolist(), counts, X.tolist(), strict=True):
        sizes[label] += m
        for f, value in enumerate(x):
            sums[label][f] += m * Fraction(value)
    return Level(centers, labels, sums, sizes)


def means(level: Level) -> np.ndarray:
    """Correctly rounded means; an empty cluster keeps its centroid."""
    centers = level.centers.copy()
    for c, (total, m) in enumerate(zip(level.sums, level.counts, strict=True)):
        if m:
            centers[c] = [float(s / m) for s in total]
    return centers


def lloyd(
    X: np.ndarray, seeds: np.ndarray, max_iter: int, mass: Any = None, weights: Any = None
) -> list[Level]:
    """All levels of Lloyd's algorithm, until nothing moves or `max_iter` iterations are made."""
    levels = [partition(X, np.asarray(seeds, np.float64), mass, weights)]
    while len(levels) <= max_iter:
        centers = means(levels[-1])
        if np.array_equal(centers, levels[-1].centers):
            break
        levels.append(partition(X, centers, mass, weights))
    return levels


def loss(X: np.ndarray, centers: np.ndarray) -> float:
    """Sum of the squared distances to the nearest centroids."""
    return math.fsum(distances(X, centers).min(axis=1))
