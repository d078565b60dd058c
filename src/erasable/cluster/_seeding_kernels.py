"""Kernels of k-means++ by exponential races."""

from __future__ import annotations

import numpy as np

from erasable.core._copying import copy
from erasable.core._jit import kernel, subroutine
from erasable.core._tape_kernels import _philox_round as philox_round
from erasable.core._tape_kernels import log
from erasable.core.arrays import Flags, Floats, Ints, Words

from ._distances import TILE, DistanceScratch, Points, measure

_LOW = np.uint64(0xFFFFFFFF)
_SHIFT = np.uint64(32)
_TWENTY = np.uint64(20)
_TWELVE = np.uint64(12)
_MANTISSA = 2**52 - 1


@subroutine
def fill_words(
    keys: Words, m: int, seed: np.uint64, stream: np.uint32, step: np.uint32, words: Words
) -> None:
    """Write four independent 32-bit words for each of the first `m` keys into ``words[i, r]``."""
    w0 = words[0]
    w1 = words[1]
    w2 = words[2]
    w3 = words[3]
    e0 = np.uint64(seed) & _LOW
    f0 = np.uint64(seed) >> _SHIFT
    c0 = np.uint64(stream)
    d0 = np.uint64(step)
    for r in range(m):
        a = keys[r] & _LOW
        b = keys[r] >> _SHIFT
        c = c0
        d = d0
        e = e0
        f = f0
        for _ in range(10):
            a, b, c, d, e, f = philox_round(a, b, c, d, e, f)
        w0[r] = a
        w1[r] = b
        w2[r] = c
        w3[r] = d


@kernel
def race(
    points: Points,
    picks: Ints,
    potential: Floats,
    seed: np.uint64,
    stream: np.uint32,
    step: np.uint32,
    n_candidates: int,
    winner: Ints,
) -> None:
    """Run `n_candidates` races among ``picks`` and write the winners' local positions.

    Entrant ``j`` of a race draws ``e_j ~ Exp(1)`` from the tape by its key; the smallest
    ``e_j / u_j`` wins, ``u_j = mass_j * potential_j``, in the order (u = 0, e/u, key). Taking a
    loser away changes nothing; taking the winner away promotes the runner-up.

    Four races share the blocks ``step`` and ``step + 1`` of the tape: a uniform has its high 32
    bits from the first and its low 20 bits from the second, which is only drawn for the few
    entrants whose high bits do not already lose.
    """
    n = picks.shape[0]
    best = np.empty(4)
    best_key = np.empty(4, np.uint64)
    words = np.empty((4, TILE), np.uint64)
    low = np.empty((4, 1), np.uint64)
    here = np.empty(TILE, np.uint64)
    stake = np.empty(TILE)
    one = np.empty(1, np.uint64)
    for lot in range((n_candidates + 3) // 4):
        width = min(4, n_candidates - 4 * lot)
        number = np.uint32(step + np.uint32(2 * lot))
        for i in range(width):
            best[i] = np.inf
            best_key[i] = np.uint64(0)
            winner[4 * lot + i] = -1
        for start in range(0, n, TILE):
            m = min(TILE, n - start)
            for r in range(m):
                here[r] = points.keys[points.rows[picks[start + r]]]
                stake[r] = potential[start + r]
            if points.mass.size > 0:
                for r in range(m):
                    stake[r] *= points.mass[picks[start + r]]
            fill_words(here, m, seed, stream, number, words)
            for i in range(width):
                line = words[i]
                limit = best[i] * (1.0 + 1e-9)
                hopeful = 0
                for r in range(m):
                    # -log(v) >= 1 - v: most entrants cannot win and need no logarithm.
                    left = 1.0 - (np.float64(np.int64(line[r])) + 1.0) * 2.0**-32
                    hopeful += 0 if left > limit * stake[r] else 1
                if hopeful == 0:
                    continue
                for r in range(m):
                    u = stake[r]
                    left = 1.0 - (np.float64(np.int64(line[r])) + 1.0) * 2.0**-32
                    if left > best[i] * (1.0 + 1e-9) * u:
                        continue
                    one[0] = here[r]
                    fill_words(one, 1, seed, stream, np.uint32(number + np.uint32(1)), low)
                    bits = (line[r] << _TWENTY) | (low[i, 0] >> _TWELVE)
                    v = (np.float64(np.int64(bits)) + 0.5) * 2.0**-52
                    score = np.inf if u == 0.0 else -log(v) / u
                    if score < best[i] or (
                        score == best[i] and (winner[4 * lot + i] < 0 or here[r] < best_key[i])
                    ):
                        best[i] = score
                        best_key[i] = here[r]
                        winner[4 * lot + i] = picks[start + r]


@kernel
def lower_and_sum(
    points: Points,
    picks: Ints,
    centers: Floats,
    weights: Floats,
    quantum: float,
    potential: Floats,
    reached: Floats,
    sums: Ints,
    scratch: DistanceScratch,
) -> None:
    """Try every candidate centre: what the potential would be, and its exact integer sum.

    ``reached[c, j] = min(potential[j], distance(j, centers[c]))``, and
    ``sums[c] = sum_j mass_j * rint(reached[c, j] * quantum)``, whose terms are below 2**36.
    """
    n = picks.shape[0]
    k = centers.shape[0]
    terms = np.empty(TILE)
    bits = terms.view(np.int64)
    for c in range(k):
        sums[c] = 0
    for start in range(0, n, TILE):
        m = measure(points, picks, start, centers, weights, scratch)
        for c in range(k):
            row = scratch.distances[c]
            to = reached[c, start : start + m]
            limit = potential[start : start + m]
            for r in range(m):
                v = row[r] if row[r] < limit[r] else limit[r]
                to[r] = v
                # Adding 2**52 rounds to an integer, which then is in the lower bits.
                terms[r] = v * quantum + 2.0**52
            total = 0
            if points.mass.size > 0:
                for r in range(m):
                    total += int((terms[r] - 2.0**52) * points.mass[picks[start + r]])
            else:
                for r in range(m):
                    total += bits[r] & _MANTISSA
            sums[c] += total


@kernel
def nearest_distance(
    points: Points,
    picks: Ints,
    centers: Floats,
    weights: Floats,
    scratch: DistanceScratch,
    out: Floats,
) -> None:
    """Write the squared distance of every pick to the nearest centre."""
    for start in range(0, picks.shape[0], TILE):
        m = measure(points, picks, start, centers, weights, scratch)
        for r in range(m):
            out[start + r] = scratch.distances[0, r]
        for c in range(1, centers.shape[0]):
            for r in range(m):
                out[start + r] = min(out[start + r], scratch.distances[c, r])


@subroutine
def shift_potentials(
    points: Points,
    j: int,
    r: int,
    quantum: float,
    sign: int,
    chosen: Ints,
    candidates: Ints,
    potentials: Ints,
    scratch: DistanceScratch,
    nearest: Floats,
) -> None:
    """Add `sign` times what position `j` contributes to every potential.

    `r` is its place in the tile of `scratch`, with its distances to all candidates. `nearest` is
    overwritten with its squared distance to the nearest seed of the steps before each.
    """
    k, width = candidates.shape
    before = np.inf
    for s in range(k):
        nearest[s] = before
        reached = before
        for c in range(width):
            if candidates[s, c] >= 0:
                v = min(before, scratch.distances[s * width + c, r])
                term = np.rint(v * quantum)
                if points.mass.size > 0:
                    term *= points.mass[j]
                potentials[s, c] += sign * int(term)
                if candidates[s, c] == chosen[s]:
                    reached = v
        before = reached


@subroutine
def candidate_values(points: Points, candidates: Ints) -> Floats:
    """Return the rows of all candidates, zeros where there is none."""
    k, width = candidates.shape
    centers = np.zeros((k * width, points.X.shape[1]))
    for s in range(k):
        for c in range(width):
            if candidates[s, c] >= 0:
                copy(points.X[points.rows[candidates[s, c]]], centers[s * width + c])
    return centers


@subroutine
def leads(s: int, chosen: Ints, candidates: Ints, potentials: Ints) -> bool:
    """Tell whether the seed of a step still has its lowest potential, the first of equals."""
    best = 0
    for c in range(candidates.shape[1]):
        if potentials[s, c] < potentials[s, best]:
            best = c
    first: bool = candidates[s, best] == chosen[s]
    return first


@kernel
def retract(
    points: Points,
    gone: Ints,
    weights: Floats,
    quantum: float,
    chosen: Ints,
    candidates: Ints,
    potentials: Ints,
) -> bool:
    """Take what `gone` contributed out of every potential; tell whether the choice stands.

    It stands if no candidate is gone, and every seed still leads its step.
    """
    k, width = candidates.shape
    centers = candidate_values(points, candidates)
    scratch = DistanceScratch(np.empty((points.X.shape[1], TILE)), np.empty((k * width, TILE)))
    nearest = np.empty(k)
    for start in range(0, gone.shape[0], TILE):
        m = measure(points, gone, start, centers, weights, scratch)
        for r in range(m):
            shift_potentials(
                points, gone[start + r], r, quantum, -1, chosen, candidates, potentials, scratch,
                nearest,
            )  # fmt: skip
    for s in range(k):
        for c in range(width):
            for j in gone:
                if candidates[s, c] == j:
                    return False
        if not leads(s, chosen, candidates, potentials):
            return False
    return True


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
    scratch = DistanceScratch(np.empty((points.X.shape[1], TILE)), np.empty((k, TILE)))
    words = np.empty((5, 1), np.uint64)
    for s in range(k):
        n = 0
        while n < width and candidates[s, n] >= 0:
            n += 1
        if scores[s, 0] >= 0.0:
            continue
        measure(points, candidates[s, :n], 0, seeds, weights, scratch)
        for c in range(n):
            stake = 1.0
            if s > 0:
                stake = scratch.distances[0, c]
                for before in range(1, s):
                    stake = min(stake, scratch.distances[before, c])
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
    scratch = DistanceScratch(np.empty((points.X.shape[1], TILE)), np.empty((k * width, TILE)))
    words = np.empty((5, 1), np.uint64)
    nearest = np.empty(k)
    lost[:] = False
    for start in range(0, come.shape[0], TILE):
        m = measure(points, come, start, centers, weights, scratch)
        for r in range(m):
            j = come[start + r]
            shift_potentials(
                points, j, r, quantum, 1, chosen, candidates, potentials, scratch, nearest
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
