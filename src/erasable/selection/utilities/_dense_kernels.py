"""The expected largest similarity where similarities are dense: gains in shares, and additions.

The formulas are those of `_ranked_kernels`. Targets are dealt with in groups of `width`, and what
a record adds is the sum of its shares, one of each group, in a fixed order. A share that is out
of date is a bound of what it would be now. So one share after another is brought up to date, until
the record's bound falls below another's: most records are put off after a few shares.

Of how many of the chosen a similarity is exceeded is counted, and kept: the next time a share is
computed only who was chosen since is compared, which is one pass over contiguous rows for each.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from erasable.core._jit import borrowing, inlined
from erasable.core.arrays import Floats, Ints, Ints32
from erasable.selection.utilities._heap_kernels import sink


class DenseTargets(NamedTuple):
    """The targets of one class in groups of some width, the last filled up with zeros.

    Attributes
    ----------
    dense : ndarray of shape (n_records, n_targets), float32 or float64
        Similarities.
    near : ndarray of shape (n_groups, k, width), of the type of the similarities
        Similarities to the chosen in the order of their choice, side by side. Of no groups where
        one rank counts.
    counts : ndarray of shape (n_records, n_targets), of an unsigned integer
        How many of the chosen are at least as similar to the target, as of the share. Of one row
        where there is no memory for all: then they are counted anew. Of none where one rank counts.
    seen : ndarray of shape (n_records, n_groups), int32
        How many were chosen when the share was computed; -1 before it was.
    shares : ndarray of shape (n_records, n_groups), float64
        What the record adds, or added, over the group, were it certain to stay.
    ranks : ndarray of shape (n_groups, n_ranks, width), of the type of the similarities
        Similarities to the chosen in descending order.
    stays : ndarray of the shape of `ranks`, float64
        With which probability they stay; of no groups where owners are alike.
    a : ndarray of shape (n_groups, n_ranks + 1, width); or (1, n_ranks + 1, 1) for owners alike
    t : ndarray of shape (n_groups, n_ranks + 1, width)
    depth : ndarray of shape (n_groups,), int64
        How many ranks are filled.
    carry : ndarray of shape (2, width), float64
        Room to work in.
    """

    dense: NDArray[np.floating]
    near: NDArray[np.floating]
    counts: NDArray[np.unsignedinteger]
    seen: Ints32
    shares: Floats
    ranks: NDArray[np.floating]
    stays: Floats
    a: Floats
    t: Floats
    depth: Ints
    carry: Floats


@inlined
def _count(
    row: NDArray[np.floating], chosen: NDArray[np.floating], counts: NDArray[np.unsignedinteger]
) -> None:
    """Count of how many of the chosen a record's similarities are exceeded, or equalled.

    Eight of the chosen at a time: to read and write the counts takes as long as to compare one.
    """
    whole = len(chosen) - len(chosen) % 8
    for e in range(0, whole, 8):
        c = chosen[e : e + 8]
        for i in range(len(row)):
            w = row[i]
            counts[i] += (((c[0, i] >= w) + (c[1, i] >= w)) + ((c[2, i] >= w) + (c[3, i] >= w))) + (
                ((c[4, i] >= w) + (c[5, i] >= w)) + ((c[6, i] >= w) + (c[7, i] >= w))
            )
    for e in range(whole, len(chosen)):
        one = chosen[e]
        for i in range(len(row)):
            counts[i] += one[i] >= row[i]


@inlined
def _above(w: float, best: float) -> float:
    more: float = np.float64(w) - np.float64(best)
    return more if more > 0.0 else 0.0


@inlined
def nearer(row: NDArray[np.floating], best: NDArray[np.floating], room: Floats) -> float:
    """Return how much nearer than the best so far a record is, summed.

    In 32 sums side by side, which the processor adds to several at a time.
    """
    whole, lanes = len(row) - len(row) % 128, len(row) - len(row) % 32
    total = 0.0
    if lanes > 0:
        for lane in range(32):
            room[lane] = 0.0
        for low in range(0, whole, 128):
            w, b = row[low : low + 128], best[low : low + 128]
            for i in range(32):
                room[i] += (_above(w[i], b[i]) + _above(w[i + 32], b[i + 32])) + (
                    _above(w[i + 64], b[i + 64]) + _above(w[i + 96], b[i + 96])
                )
        for low in range(whole, lanes, 32):
            w, b = row[low : low + 32], best[low : low + 32]
            for i in range(32):
                room[i] += _above(w[i], b[i])
        for lane in range(32):
            total += room[lane]
    for i in range(lanes, len(row)):
        total += _above(row[i], best[i])
    return total


@inlined
def _share(j: int, b: int, n_chosen: int, of: DenseTargets) -> float:
    """Return what record j adds over a group of targets, were it certain to stay."""
    low = b * of.t.shape[2]
    high = min(of.dense.shape[1], low + of.t.shape[2])
    row = of.dense[j, low:high]
    alike = len(of.stays) == 0
    if of.ranks.shape[1] == 1 and alike:
        gain: float = of.a[0, 0, 0] * nearer(row, of.ranks[b, 0], of.carry[0])
        return gain
    kept = len(of.counts) > 1
    counts = of.counts[j if kept else 0, low:high]
    first = max(of.seen[j, b], 0) if kept else 0
    if not kept:
        counts[:] = 0
    _count(row, of.near[b, first:n_chosen], counts)
    n, t, total = of.depth[b], of.t[b], 0.0
    if alike:
        weights = of.a[0, :, 0]
        for i in range(len(row)):
            q = np.uint64(min(np.int64(counts[i]), n))
            total += weights[q] * row[i] - t[q, i]
    else:
        a = of.a[b]
        for i in range(len(row)):
            q = np.uint64(min(np.int64(counts[i]), n))
            total += a[q, i] * row[i] - t[q, i]
    return total


@inlined
def _refresh(j: int, b: int, n_chosen: int, of: DenseTargets) -> None:
    of.shares[j, b] = _share(j, b, n_chosen, of)
    of.seen[j, b] = n_chosen


@inlined
def _total(shares: Floats) -> float:
    total = 0.0
    for b in range(len(shares)):
        total += shares[b]
    return total


@inlined
def _oldest(seen: Ints32) -> int:
    oldest = 0
    for b in range(1, len(seen)):
        if seen[b] < seen[oldest]:
            oldest = b
    return oldest


@borrowing
def gains(items: Ints, factor: Floats, n_chosen: int, of: DenseTargets, out: Floats) -> None:
    """Write into `out` what each of some records adds, `factor` times, all shares up to date."""
    for e in range(len(items)):
        j = items[e]
        for b in range(of.seen.shape[1]):
            if of.seen[j, b] != n_chosen:
                _refresh(j, b, n_chosen, of)
        out[e] = factor[j] * _total(of.shares[j])


@borrowing
def pick(n: int, bound: Floats, heap: Ints, factor: Floats, n_chosen: int, of: DenseTargets) -> int:
    """Bring the record of the largest gain to the top of the heap, share by share.

    Parameters
    ----------
    n : int
        How many entries of the heap there are.
    bound : ndarray of shape (n_records,)
        Changed: of records that are looked at, to the sum of shares, some of them older.
    heap : ndarray of shape (n_records,)
        Changed.
    factor : ndarray of shape (n_records,)
        What the sum of shares is taken times.
    n_chosen : int
    of : DenseTargets

    Returns
    -------
    int
        How many shares were computed.
    """
    count = 0
    while n > 0:
        j = heap[0]
        oldest = _oldest(of.seen[j])
        if of.seen[j, oldest] == n_chosen:
            break
        _refresh(j, oldest, n_chosen, of)
        count += 1
        bound[j] = factor[j] * _total(of.shares[j])
        sink(0, n, bound, heap)
    return count


@inlined
def _insert_alike(b: int, n: int, of: DenseTargets) -> None:
    """Insert what is carried among n ranks, and sum from the last: no gain grows by rounding."""
    carry = of.carry[0]
    for r in range(n):
        ranks = of.ranks[b, r]
        for lane in range(len(ranks)):
            w, here = carry[lane], ranks[lane]
            ranks[lane] = w if w > here else here
            carry[lane] = here if w > here else w
    for r in range(n - 1, -1, -1):
        step = of.a[0, r, 0] - of.a[0, r + 1, 0]
        ranks, t, beyond = of.ranks[b, r], of.t[b, r], of.t[b, r + 1]
        for lane in range(len(ranks)):
            t[lane] = beyond[lane] + step * ranks[lane]


@inlined
def _weigh_independent(b: int, n: int, negligible: float, of: DenseTargets) -> int:
    """Return how many ranks matter: a later one is hardly ever the nearest that stays."""
    of.a[b, 0, :] = 1.0
    for r in range(n):
        a, then, stays = of.a[b, r], of.a[b, r + 1], of.stays[b, r]
        largest = 0.0
        for lane in range(len(a)):
            then[lane] = a[lane] * (1.0 - stays[lane])
        for lane in range(len(a)):
            largest = then[lane] if then[lane] > largest else largest
        if largest <= negligible:
            n = r + 1
            of.a[b, n, :] = 0.0
            break
    of.t[b, n, :] = 0.0
    for r in range(n - 1, -1, -1):
        a, stays, ranks = of.a[b, r], of.stays[b, r], of.ranks[b, r]
        t, beyond = of.t[b, r], of.t[b, r + 1]
        for lane in range(len(a)):
            t[lane] = beyond[lane] + a[lane] * stays[lane] * ranks[lane]
    return n


@inlined
def _insert_independent(b: int, n: int, of: DenseTargets) -> None:
    """Insert what is carried among n ranks; what falls out at their end is carried on."""
    carry, carried = of.carry[0], of.carry[1]
    for r in range(n):
        ranks, stays = of.ranks[b, r], of.stays[b, r]
        for lane in range(len(ranks)):
            w, here = carry[lane], ranks[lane]
            s, of_here = carried[lane], stays[lane]
            ranks[lane] = w if w > here else here
            stays[lane] = s if w > here else of_here
            carry[lane] = here if w > here else w
            carried[lane] = of_here if w > here else s


@borrowing
def add(j: int, s: float, n_chosen: int, negligible: float, of: DenseTargets) -> None:
    """Choose record j, which stays with probability s, into the order of each target.

    Parameters
    ----------
    j : int
    s : float
    n_chosen : int
        How many were chosen before.
    negligible : float
        Ranks that count less are left out.
    of : DenseTargets
        `near`, `ranks`, `stays`, `a`, `t` and `depth` are changed.
    """
    n_ranks, width = of.ranks.shape[1], of.t.shape[2]
    for b in range(of.t.shape[0]):
        row = of.dense[j, b * width : min(of.dense.shape[1], (b + 1) * width)]
        if len(of.near) == 0:
            best = of.ranks[b, 0]
            for i in range(len(row)):
                best[i] = row[i] if row[i] > best[i] else best[i]
            continue
        near, n = of.near[b, n_chosen], of.depth[b]
        for i in range(len(row)):
            near[i] = row[i]
        for lane in range(width):
            of.carry[0, lane], of.carry[1, lane] = near[lane], s
        if len(of.stays) == 0:
            n = min(n + 1, n_ranks)
            _insert_alike(b, n, of)
        else:
            _insert_independent(b, n, of)
            if n < n_ranks:
                for lane in range(width):
                    of.ranks[b, n, lane] = of.carry[0, lane]
                    of.stays[b, n, lane] = of.carry[1, lane]
                n += 1
            n = _weigh_independent(b, n, negligible, of)
        of.depth[b] = n
