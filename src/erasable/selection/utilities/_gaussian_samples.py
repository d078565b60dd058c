"""A Gaussian process observed at the records that stay, in many samples of who stays.

Of each sample the inverse of the Cholesky factor of ``K_SS + noise I`` is kept, as many rows as
records were chosen; those of records that leave the sample are 0. What is left of a record's
variance is kept, too, and a row takes from it the square of its product with the record's kernel:
gains are brought up to date, not computed anew. Samples lie side by side in memory, so that the
processor deals with several at a time.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from erasable.core._jit import inlined, kernel
from erasable.core.arrays import Flags, Floats, Ints
from erasable.core.threads import n_threads, over_rows
from erasable.selection._memory import check_memory
from erasable.selection._sampled import Samples
from erasable.selection.utilities._gaussian_factor import NOTHING, worth

_MUCH = 2**22  # products that are worth several threads
_WIDTH = 256  # samples that are dealt with together: what they take fits into a fast cache


class _Factors(NamedTuple):
    """Inverse Cholesky factors, and what they leave of each record, in each sample.

    Attributes
    ----------
    K, Q : ndarray of shape (n_records, n_records)
        As for one factor; Q may be empty.
    noise : float
    rows : ndarray of shape (k (k + 1) / 2, n_samples)
        The lower triangles of the inverse factors, row by row: weights of the chosen.
    sides : ndarray of the shape of `rows`, or (0, 0)
        Further weights of the chosen: of what a row takes from the products.
    seen : ndarray of shape (n_records,), int64
    variance : ndarray of shape (n_records, n_samples)
    moved : ndarray of shape (n_records, n_samples), or (0, 0)
    chosen : ndarray of shape (k,), int64
    """

    K: Floats
    noise: float
    Q: Floats
    rows: Floats
    sides: Floats
    seen: Ints
    variance: Floats
    moved: Floats
    chosen: Ints


class FactorSamples(Samples):
    """What is learned from those of the chosen who stay.

    The parameters and errors are those of `FactorFunction`, with how many samples there are.
    """

    def __init__(self, K: Floats, noise: float, Q: Floats | None, n_samples: int, k: int) -> None:
        n, triangle = len(K), k * (k + 1) // 2
        tables = 1 if Q is None else 2
        check_memory(
            8.0 * tables * n_samples * (triangle + n),
            f"factors of {k:,} of {n:,} records in {n_samples:,} samples",
            "draw fewer samples, or choose fewer records",
        )
        none = np.zeros((0, 0))
        self.size, self.most = 0, k
        self.factors = _Factors(
            K=K,
            noise=noise,
            Q=none if Q is None else Q,
            rows=np.empty((triangle, n_samples)),
            sides=none if Q is None else np.empty((triangle, n_samples)),
            seen=np.zeros(n, dtype=np.int64),
            variance=np.repeat(K.diagonal()[:, None], n_samples, axis=1),
            moved=none if Q is None else np.repeat(Q.diagonal()[:, None], n_samples, axis=1),
            chosen=np.zeros(k, dtype=np.int64),
        )

    def prepare(self, items: Ints) -> None:
        of = self.factors
        items = np.unique(items[of.seen[items] < self.size])  # twice would be taken off twice
        if not len(items):
            return
        size, n_samples = self.size, of.rows.shape[1]
        # What is found in a sample depends on no other: how they are shared out does not show.
        share = n_samples
        if items.size * size**2 * n_samples > _MUCH:
            share = -(-n_samples // (_WIDTH * n_threads(self.n_jobs))) * _WIDTH
        for _ in over_rows(
            lambda some: _refresh(items, size, some.start, some.stop, of),
            n_samples, self.n_jobs, share,
        ):  # fmt: skip
            pass
        of.seen[items] = size

    def gains(self, j: int) -> Floats:
        of = self.factors
        if of.seen[j] < self.size:
            self.prepare(np.array([j]))
        if not len(of.Q):
            return worth(of.variance[j], of.noise)
        return worth(of.variance[j], of.noise, of.moved[j], of.Q[j, j])

    def add(self, j: int, stays: Flags) -> None:
        if self.size == self.most:
            raise IndexError(
                f"{self.most} records were added; expected no more; make the samples for a larger k"
            )
        self.prepare(np.array([j]))
        _append(j, self.size, stays, self.factors)
        self.size += 1


@inlined
def _add(weights: Floats, rows: Floats, out: Floats) -> None:
    """Add rows times their weights: four of them at a time, in the order that they have."""
    whole = len(rows) - len(rows) % 4
    for a in range(0, whole, 4):
        q, r, s, t = rows[a], rows[a + 1], rows[a + 2], rows[a + 3]
        u, v, w, x = weights[a], weights[a + 1], weights[a + 2], weights[a + 3]
        for i in range(len(out)):
            out[i] += (u * q[i] + v * r[i]) + (w * s[i] + x * t[i])
    for a in range(whole, len(rows)):
        q, u = rows[a], weights[a]
        for i in range(len(out)):
            out[i] += u * q[i]


@inlined
def _entries(near: Floats, t: int, low: int, high: int, of: _Factors, c: Floats, h: Floats) -> None:
    """Write what row t has of a record in some samples: its entry in the factor, and its side.

    `near` has the kernel of the record with the chosen, and their products.
    """
    first = t * (t + 1) // 2
    rows = of.rows[first : first + t + 1, low:high]
    c[:] = 0.0
    _add(near[0], rows, c)
    if len(of.Q) > 0:
        h[:] = 0.0
        _add(near[1], rows, h)
        _add(near[0], of.sides[first : first + t + 1, low:high], h)


@inlined
def _read(j: int, size: int, of: _Factors, near: Floats) -> None:
    for a in range(size):
        near[0, a] = of.K[j, of.chosen[a]]
        if len(of.Q) > 0:
            near[1, a] = of.Q[j, of.chosen[a]]


@kernel
def _refresh(items: Ints, size: int, first: int, stop: int, of: _Factors) -> None:
    """Take from some records what was chosen since they were last brought up to date.

    In the samples from `first` to `stop`; `seen` is left to the caller.
    """
    room, near = np.empty((2, _WIDTH)), np.empty((2, size))
    for low in range(first, stop, _WIDTH):
        high = min(low + _WIDTH, stop)
        c, h = room[0, : high - low], room[1, : high - low]
        for at in range(len(items)):
            j = items[at]
            if of.seen[j] < size:
                _read(j, size, of, near)
            for t in range(of.seen[j], size):
                _entries(near, t, low, high, of, c, h)
                variance = of.variance[j, low:high]
                for s in range(len(c)):
                    variance[s] -= c[s] * c[s]
                if len(of.Q) > 0:
                    moved = of.moved[j, low:high]
                    for s in range(len(c)):
                        moved[s] -= 2.0 * c[s] * h[s]


@kernel
def _append(j: int, size: int, stays: Flags, of: _Factors) -> None:
    """Append the row of record j, number `size`, to the samples in which it stays."""
    first = size * (size + 1) // 2
    room, near = np.empty((2, _WIDTH)), np.empty((2, size))
    _read(j, size, of, near)
    weights, others = np.empty((size, _WIDTH)), np.empty((size, _WIDTH))
    for low in range(0, of.rows.shape[1], _WIDTH):
        high = min(low + _WIDTH, of.rows.shape[1])
        c, h = room[0, : high - low], room[1, : high - low]
        weights[:] = 0.0
        others[:] = 0.0
        for t in range(size):
            _entries(near, t, low, high, of, c, h)
            for a in range(t + 1):
                place, weight, other = t * (t + 1) // 2 + a, weights[a], others[a]
                row = of.rows[place, low:high]
                for s in range(len(c)):
                    weight[s] += c[s] * row[s]
                if len(of.Q) > 0:
                    side = of.sides[place, low:high]
                    for s in range(len(c)):
                        other[s] += c[s] * side[s] + h[s] * row[s]
        for s in range(high - low):
            squared = of.noise + max(of.variance[j, low + s], 0.0)
            one = 1.0 / np.sqrt(squared) if stays[low + s] else 0.0
            for a in range(size):
                of.rows[first + a, low + s] = -weights[a, s] * one
            of.rows[first + size, low + s] = one
            if len(of.Q) > 0:
                moved = of.moved[j, low + s]
                half = 0.5 * moved / squared if moved > NOTHING * of.Q[j, j] else 0.0
                for a in range(size):
                    row = of.rows[first + a, low + s]
                    of.sides[first + a, low + s] = -others[a, s] * one - row * half
                of.sides[first + size, low + s] = -one * half
    of.chosen[size] = j
