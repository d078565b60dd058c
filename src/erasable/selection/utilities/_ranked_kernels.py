"""The expected largest similarity of each target to who stays: marginal gains and additions.

Of each target `i` the similarities to the chosen are kept in descending order. Then the expected
maximum is an ordered weighted sum, and what record `j` adds depends on its rank `q` alone::

    gain_ij = a_q w_ij - t_q

Where owners decide on their own, ``a_q`` is the probability that all who are nearer than `q` leave
and ``t_q = sum over r >= q of a_r s_r w_r``; the gain is then taken `s_j` times. Where owners are
alike, ``a_q = c_q`` and ``t_q = sum over r >= q of (c_r - c_{r+1}) w_r``. Without deletions only
rank 0 counts. Sums are over targets in a fixed order, so that a selection can be repeated.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from erasable.core._jit import borrowing, inlined
from erasable.selection.utilities._heap_kernels import sink

__all__ = ["add", "gains", "pick"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@inlined
def _rank(w: float, i: int, ranks: Floats, n: int) -> int:
    """Return how many of the first n are at least w.

    All are looked at, several at a time: a search by halves takes three times as long, because
    every other of its branches is foretold wrongly.
    """
    count = 0
    for r in range(n):
        count += 1 if ranks[i, r] >= w else 0
    return count


@inlined
def _gain_at(
    w: float, i: int, unit: int, ranks: Floats, sizes: Ints, a: Floats, t: Floats, units: Ints
) -> float:
    """Return what a record of similarity w adds to the expected maximum of target i."""
    q = _rank(w, i, ranks, sizes[i])
    if w <= 0.0 or q == ranks.shape[1]:
        return 0.0
    here = i if a.shape[0] > 1 else 0
    gain: float = a[here, q] * w - t[i, q]
    if unit >= 0:
        for p in range(sizes[i]):
            if units[i, p] == unit:
                # Of the record's owner one is chosen already: what is nearer than it counts.
                if p < q:
                    return 0.0
                gain += t[i, p] - a[here, p] * ranks[i, p]
                break
    return gain


@borrowing
def _gain(
    j: int,
    dense: NDArray[np.floating],
    starts: Ints,
    targets: NDArray[np.int32],
    values: NDArray[np.floating],
    unit: int,
    ranks: Floats,
    sizes: Ints,
    a: Floats,
    t: Floats,
    units: Ints,
) -> float:
    """Return what record j adds over all the targets, were it certain to stay."""
    total = 0.0
    if len(starts) > 0:
        for e in range(starts[j], starts[j + 1]):
            total += _gain_at(values[e], targets[e], unit, ranks, sizes, a, t, units)
        return total
    for i in range(dense.shape[1]):
        total += _gain_at(dense[j, i], i, unit, ranks, sizes, a, t, units)
    return total


@inlined
def _insert(
    w: float, s: float, i: int, unit: int, ranks: Floats, stays: Floats, sizes: Ints, units: Ints
) -> int:
    """Put a record into the order of target i; return from which rank on the order has changed.

    Of an owner who is in the order already the nearest record counts.
    """
    n, most = sizes[i], ranks.shape[1]
    q = _rank(w, i, ranks, n)
    last = n
    if unit >= 0:
        for p in range(n):
            if units[i, p] == unit:
                if p < q:
                    return -1
                last = p
                break
    if last == n:
        if q == most:
            return -1
        if n < most:
            sizes[i] = n + 1
        else:
            last = most - 1
    for p in range(last, q, -1):
        ranks[i, p] = ranks[i, p - 1]
        stays[i, p] = stays[i, p - 1]
        units[i, p] = units[i, p - 1]
    ranks[i, q], stays[i, q], units[i, q] = w, s, unit
    return q


@inlined
def _weigh_independent(
    i: int,
    ranks: Floats,
    stays: Floats,
    sizes: Ints,
    a: Floats,
    t: Floats,
    negligible: float,
) -> None:
    n = sizes[i]
    a[i, 0] = 1.0
    for r in range(n):
        a[i, r + 1] = a[i, r] * (1.0 - stays[i, r])
        if a[i, r + 1] <= negligible:
            # What is further away would hardly ever be the nearest that stays.
            n = r + 1
            break
    sizes[i] = n
    t[i, n] = 0.0
    for r in range(n - 1, -1, -1):
        t[i, r] = t[i, r + 1] + a[i, r] * stays[i, r] * ranks[i, r]


@inlined
def _weigh_alike(i: int, ranks: Floats, sizes: Ints, c: Floats, t: Floats) -> None:
    n = sizes[i]
    t[i, n] = 0.0
    for r in range(n - 1, -1, -1):
        t[i, r] = t[i, r + 1] + (c[r] - c[r + 1]) * ranks[i, r]


@borrowing
def add(
    j: int,
    s: float,
    dense: NDArray[np.floating],
    starts: Ints,
    targets: NDArray[np.int32],
    values: NDArray[np.floating],
    unit: int,
    ranks: Floats,
    stays: Floats,
    sizes: Ints,
    a: Floats,
    t: Floats,
    units: Ints,
    negligible: float,
) -> None:
    """Choose record j, which stays with probability s; all arrays but the similarities change.

    Parameters
    ----------
    j : int
    s : float
    dense : ndarray of shape (n_records, n_targets), float32 or float64
        Similarities; of no records where they are sparse.
    starts, targets, values : ndarray
        The same in rows, compressed; `starts` is empty where they are dense.
    unit : int
        Who decides for the record, or -1 if nobody decides for two.
    ranks, stays, units : ndarray of shape (n_targets, n_ranks)
        Similarities to the chosen in descending order, their probabilities and units; what is
        free is 0.
    sizes : ndarray of shape (n_targets,)
        How many ranks are filled.
    a : ndarray of shape (n_targets, n_ranks + 1); or (1, n_ranks + 1) for owners that are alike
    t : ndarray of shape (n_targets, n_ranks + 1)
    negligible : float
        Ranks that count less are left out.
    """
    sparse = len(starts) > 0
    first, last = (starts[j], starts[j + 1]) if sparse else (0, dense.shape[1])
    for e in range(first, last):
        i = targets[e] if sparse else e
        w = np.float64(values[e]) if sparse else np.float64(dense[j, e])
        if w <= 0.0:
            continue
        if _insert(w, s, i, unit, ranks, stays, sizes, units) >= 0:
            if a.shape[0] > 1:
                _weigh_independent(i, ranks, stays, sizes, a, t, negligible)
            else:
                _weigh_alike(i, ranks, sizes, a[0], t)


@borrowing
def gains(
    items: Ints,
    probability: Floats,
    unit_of: Ints,
    dense: NDArray[np.floating],
    starts: Ints,
    targets: NDArray[np.int32],
    values: NDArray[np.floating],
    ranks: Floats,
    sizes: Ints,
    a: Floats,
    t: Floats,
    units: Ints,
    out: Floats,
) -> None:
    """Write into `out` what each of some records adds; see `add` for the arrays."""
    for e in range(len(items)):
        j = items[e]
        unit = unit_of[j] if len(unit_of) > 0 else -1
        out[e] = probability[j] * _gain(
            j, dense, starts, targets, values, unit, ranks, sizes, a, t, units
        )


@borrowing
def pick(
    n: int,
    bound: Floats,
    heap: Ints,
    probability: Floats,
    unit_of: Ints,
    dense: NDArray[np.floating],
    starts: Ints,
    targets: NDArray[np.int32],
    values: NDArray[np.floating],
    ranks: Floats,
    sizes: Ints,
    a: Floats,
    t: Floats,
    units: Ints,
    rounds: Ints,
    this_round: int,
) -> int:
    """Bring the record of the largest gain to the top of the heap (Minoux's lazy greedy).

    Gains never grow, so that an old gain is a bound: only records are looked at whose bound is
    larger than the largest gain seen.

    Parameters
    ----------
    n : int
        How many entries of the heap there are.
    bound : ndarray of shape (n_records,)
        Changed: gains, where they were computed anew.
    heap : ndarray of shape (n_records,)
        Changed.
    rounds : ndarray of shape (n_records,)
        In which round each gain was computed; changed.
    this_round : int

    Returns
    -------
    int
        How many gains were computed.
    """
    count = 0
    while n > 0 and rounds[heap[0]] != this_round:
        j = heap[0]
        unit = unit_of[j] if len(unit_of) > 0 else -1
        bound[j] = probability[j] * _gain(
            j, dense, starts, targets, values, unit, ranks, sizes, a, t, units
        )
        rounds[j] = this_round
        count += 1
        sink(0, n, bound, heap)
    return count
