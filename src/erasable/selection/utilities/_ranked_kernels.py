"""Kernels of the expected largest similarity of each target to those who stay: gains and additions.

For each target `i` the similarities to the chosen are kept in descending order. The expected
maximum is an ordered weighted sum, and the gain of record `j` depends on its rank `q` alone::

    gain_ij = a_q w_ij - t_q

Where owners decide independently, ``a_q`` is the probability that all who are nearer than `q` leave
and ``t_q = sum over r >= q of a_r s_r w_r``; the gain is then multiplied by `s_j`. For exchangeable
owners, ``a_q = c_q`` and ``t_q = sum over r >= q of (c_r - c_{r+1}) w_r``. Without deletions only
rank 0 counts. Sums over targets have a fixed order, so that a selection can be repeated.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from erasable.core._jit import borrowing, inlined
from erasable.core.arrays import Floats, Ints, Ints32
from erasable.selection.utilities._heap_kernels import sink


class Ranks(NamedTuple):
    """The nearest of the chosen, for each target of one class."""

    # (n_records, n_targets): similarities; no records where they are sparse
    dense: NDArray[np.floating]
    starts: Ints  # of compressed rows of the same; empty where they are dense
    targets: Ints32
    values: NDArray[np.floating]
    unit_of: Ints  # (n_records,): empty if no unit has two records
    ranks: Floats  # (n_targets, n_ranks): similarities to the chosen, descending; 0 where free
    stays: Floats  # shape of `ranks`: their probabilities
    units: Ints  # shape of `ranks`: their units, -1 for none
    sizes: Ints  # (n_targets,): number of filled ranks
    a: Floats  # (n_targets, n_ranks + 1); (1, n_ranks + 1) for exchangeable owners
    t: Floats  # (n_targets, n_ranks + 1)


@inlined
def _rank(w: float, i: int, ranks: Floats, n: int) -> int:
    """Return how many of the first n are at least w.

    All are compared, several at a time: binary search takes three times as long, because every
    other of its branches is mispredicted.
    """
    count = 0
    for r in range(n):
        count += 1 if ranks[i, r] >= w else 0
    return count


@inlined
def _unit(j: int, of: Ranks) -> int:
    """Return the unit of record j, or -1 if no unit has two records."""
    return of.unit_of[j] if len(of.unit_of) > 0 else -1


@inlined
def _gain_at(w: float, i: int, unit: int, of: Ranks) -> float:
    """Return what a record of similarity w adds to the expected maximum of target i."""
    q = _rank(w, i, of.ranks, of.sizes[i])
    if w <= 0.0 or q == of.ranks.shape[1]:
        return 0.0
    here = i if of.a.shape[0] > 1 else 0
    gain: float = of.a[here, q] * w - of.t[i, q]
    if unit >= 0:
        for p in range(of.sizes[i]):
            if of.units[i, p] == unit:
                # Of the record's owner one is chosen already: what is nearer than it counts.
                if p < q:
                    return 0.0
                gain += of.t[i, p] - of.a[here, p] * of.ranks[i, p]
                break
    return gain


@borrowing
def _gain(j: int, of: Ranks) -> float:
    """Return what record j would add over all targets if it stayed."""
    total, unit = 0.0, _unit(j, of)
    if len(of.starts) > 0:
        for e in range(of.starts[j], of.starts[j + 1]):
            total += _gain_at(of.values[e], of.targets[e], unit, of)
        return total
    for i in range(of.dense.shape[1]):
        total += _gain_at(of.dense[j, i], i, unit, of)
    return total


@inlined
def _insert(w: float, s: float, i: int, unit: int, of: Ranks) -> int:
    """Insert a record into the order of target i; return the first rank that changed.

    Only the nearest record of an owner counts.
    """
    ranks, stays, units, sizes = of.ranks, of.stays, of.units, of.sizes
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
def _weigh_independent(i: int, of: Ranks, negligible: float) -> None:
    ranks, stays, a, t = of.ranks, of.stays, of.a, of.t
    n = of.sizes[i]
    a[i, 0] = 1.0
    for r in range(n):
        a[i, r + 1] = a[i, r] * (1.0 - stays[i, r])
        if a[i, r + 1] <= negligible:
            # What is further away would hardly ever be the nearest that stays.
            n = r + 1
            break
    of.sizes[i] = n
    t[i, n] = 0.0
    for r in range(n - 1, -1, -1):
        t[i, r] = t[i, r + 1] + a[i, r] * stays[i, r] * ranks[i, r]


@inlined
def _weigh_alike(i: int, of: Ranks) -> None:
    c, t, n = of.a[0], of.t, of.sizes[i]
    t[i, n] = 0.0
    for r in range(n - 1, -1, -1):
        t[i, r] = t[i, r + 1] + (c[r] - c[r + 1]) * of.ranks[i, r]


@borrowing
def add(j: int, s: float, negligible: float, of: Ranks) -> None:
    """Choose record j, which stays with probability s, into the order of its targets.

    Ranks of a weight below `negligible` are left out.
    """
    sparse, unit = len(of.starts) > 0, _unit(j, of)
    first, last = (of.starts[j], of.starts[j + 1]) if sparse else (0, of.dense.shape[1])
    for e in range(first, last):
        i = of.targets[e] if sparse else e
        w = np.float64(of.values[e]) if sparse else np.float64(of.dense[j, e])
        if w <= 0.0:
            continue
        if _insert(w, s, i, unit, of) >= 0:
            if of.a.shape[0] > 1:
                _weigh_independent(i, of, negligible)
            else:
                _weigh_alike(i, of)


@borrowing
def gains(items: Ints, factor: Floats, of: Ranks, out: Floats) -> None:
    """Write the gain of each of some records times `factor` into `out`."""
    for e in range(len(items)):
        out[e] = factor[items[e]] * _gain(items[e], of)


@borrowing
def pick(
    n: int, bound: Floats, heap: Ints, factor: Floats, of: Ranks, rounds: Ints, this_round: int
) -> int:
    """Bring the record of the largest gain to the top of the heap; return how many gains it took.

    `n` is the length of the heap; `bound`, `heap` and `rounds`, the round of each gain, are
    changed. Gains never grow, so an old gain is an upper bound (Minoux's lazy greedy): only records
    whose bound exceeds the largest gain so far are looked at.
    """
    count = 0
    while n > 0 and rounds[heap[0]] != this_round:
        j = heap[0]
        bound[j] = factor[j] * _gain(j, of)
        rounds[j] = this_round
        count += 1
        sink(0, n, bound, heap)
    return count
