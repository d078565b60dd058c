"""Records that come into k-means++ by exponential races: see `_seeding`."""

from __future__ import annotations

import numpy as np

from erasable.core._copying import copy
from erasable.core._jit import kernel, subroutine
from erasable.core._tape_kernels import log
from erasable.core.arrays import Flags, Floats, Ints, Words

from ._distances import TILE, Points, Room, measure
from ._seeding_kernels import candidate_values, fill_words, leads, shift_potentials

_TWENTY = np.uint64(20)
_TWELVE = np.uint64(12)


@subroutine
def _score(
    key: np.uint64,
    stake: float,
    best: float,
    seed: np.uint64,
    stream: np.uint32,
    number: np.uint32,
    i: int,
    words: Words,
) -> float:
    """Return the score of an entrant in race `i` of four; infinity where it is surely above `best`.

    `words`, of shape (5, 1), is scratch space: its first four rows hold the block `number` of the
    key.
    """
    high = words[i, 0]
    left = 1.0 - (np.float64(np.int64(high)) + 1.0) * 2.0**-32
    if left > best * (1.0 + 1e-9) * stake:
        return np.inf
    one = words[4]
    one[0] = key
    low = np.empty((4, 1), np.uint64)
    fill_words(one, 1, seed, stream, np.uint32(number + np.uint32(1)), low)
    bits = (high << _TWENTY) | (low[i, 0] >> _TWELVE)
    v = (np.float64(np.int64(bits)) + 0.5) * 2.0**-52
    return np.inf if stake == 0.0 else -log(v) / stake


@subroutine
def _score_candidates(
    points: Points,
    seed: np.uint64,
    stream: np.uint32,
    weights: Floats,
    chosen: Ints,
    candidates: Ints,
    scores: Floats,
) -> None:
    """Write the scores with which candidates have won their races, where they are negative."""
    k, width = candidates.shape
    seeds = np.zeros((k, points.X.shape[1]))
    for s in range(k):
        copy(points.X[points.rows[chosen[s]]], seeds[s])
    room = Room(np.empty((points.X.shape[1], TILE)), np.empty((k, TILE)))
    words = np.empty((5, 1), np.uint64)
    for s in range(k):
        n = 0
        while n < width and candidates[s, n] >= 0:
            n += 1
        if scores[s, 0] >= 0.0:
            continue
        measure(points, candidates[s, :n], 0, seeds, weights, room)
        for c in range(n):
            stake = 1.0
            if s > 0:
                stake = room.distances[0, c]
                for before in range(1, s):
                    stake = min(stake, room.distances[before, c])
            if points.mass.size > 0:
                stake *= points.mass[candidates[s, c]]
            number = np.uint32(s * 64 + 2 * (c // 4))
            one = words[4]
            one[0] = points.keys[points.rows[candidates[s, c]]]
            fill_words(one, 1, seed, stream, number, words)
            scores[s, c] = _score(one[0], stake, np.inf, seed, stream, number, c % 4, words)


@kernel
def admit(
    points: Points,
    come: Ints,
    seed: np.uint64,
    stream: np.uint32,
    weights: Floats,
    quantum: float,
    chosen: Ints,
    candidates: Ints,
    potentials: Ints,
    scores: Floats,
    lost: Flags,
) -> bool:
    """Add what the positions `come` contribute to every potential, and enter them in all races.

    `scores`, of shape (k, n_candidates), are written where they are negative, which means unknown.
    `lost` is set for the steps in which a position wins a race. Return whether the choice stands:
    no position wins, and every seed still leads its step.
    """
    k, width = candidates.shape
    _score_candidates(points, seed, stream, weights, chosen, candidates, scores)
    centers = candidate_values(points, candidates)
    room = Room(np.empty((points.X.shape[1], TILE)), np.empty((k * width, TILE)))
    words = np.empty((5, 1), np.uint64)
    nearest = np.empty(k)
    lost[:] = False
    for start in range(0, come.shape[0], TILE):
        m = measure(points, come, start, centers, weights, room)
        for r in range(m):
            j = come[start + r]
            shift_potentials(
                points, j, r, quantum, 1, chosen, candidates, potentials, room, nearest
            )
            one = words[4]
            key = points.keys[points.rows[j]]
            for s in range(k):
                stake = 1.0 if s == 0 else nearest[s]
                if points.mass.size > 0:
                    stake *= points.mass[j]
                for c in range(width):
                    if candidates[s, c] < 0:
                        break
                    number = np.uint32(s * 64 + 2 * (c // 4))
                    if c % 4 == 0:
                        one[0] = key
                        fill_words(one, 1, seed, stream, number, words)
                    best = scores[s, c]
                    score = _score(key, stake, best, seed, stream, number, c % 4, words)
                    if score < best or (
                        score == best and key < points.keys[points.rows[candidates[s, c]]]
                    ):
                        lost[s] = True
    stands = True
    for s in range(k):
        stands = stands and not lost[s] and leads(s, chosen, candidates, potentials)
    return stands
