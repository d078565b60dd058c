"""Kernels for the expected largest similarity where similarities are dense.

The formulas are those of `_ranked_kernels`. Targets are in groups of `width`, and the gain of a
record is the sum of its shares, one of each group, in a fixed order. An old share is an upper bound
of the present one. So one share after another is computed anew until the record's bound falls below
another's: most records are put off after a few shares.

The number of chosen records that are at least as similar to a target is kept with the share: to
compute a share anew, only the records chosen since are compared, one pass over contiguous rows
each.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from erasable.core._jit import borrowing, inlined
from erasable.core.arrays import Floats, Ints, Ints32
from erasable.selection.utilities._heap_kernels import sink


class DenseTargets(NamedTuple):
    """The targets of one class in groups of some width, the last filled up with zeros."""

    dense: NDArray[np.floating]  # (n_records, n_targets), float32 or float64: similarities
    # (n_groups, k, width), in the order of choice; no groups where one rank counts
    near: NDArray[np.floating]
    # (n_records, n_targets): how many of the chosen were at least as similar when the share was
    # computed; (1, n_targets) without memory for all; empty where one rank counts
    counts: NDArray[np.unsignedinteger]
    seen: Ints32  # (n_records, n_groups): number of chosen when the share was computed, -1 before
    # (n_records, n_groups): gain over the group if the record stayed, perhaps out of date
    shares: Floats
    # (n_groups, n_ranks, width): similarities to the chosen, descending
    ranks: NDArray[np.floating]
    stays: Floats  # shape of `ranks`: their probabilities; no groups where owners are exchangeable
    a: Floats  # (n_groups, n_ranks + 1, width); (1, n_ranks + 1, 1) for exchangeable owners
    t: Floats  # (n_groups, n_ranks + 1, width)
    depth: Ints  # (n_groups,): number of filled ranks
    carry: Floats  # (2, width): working memory


@inlined
def _count(
    row: NDArray[np.floating], chosen: NDArray[np.floating], counts: NDArray[np.unsignedinteger]
) -> None:
    """Add to `counts` how many of the chosen are at least as similar to each target.

    Eight of the chosen at a time: to read and write the counts takes as long as one comparison.
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
def nearer(row: NDArray[np.floating], best: NDArray[np.floating], buffer: Floats) -> float:
    """Return the sum over targets of how much nearer than the best so far a record is.

    In 32 sums side by side, which the processor adds to several at a time.
    """
    whole, lanes = len(row) - len(row) % 128, len(row) - len(row) % 32
    total = 0.0
    if lanes > 0:
        for lane in range(32):
            buffer[lane] = 0.0
        for low in range(0, whole, 128):
            w, b = row[low : low + 128], best[low : low + 128]
            for i in range(32):
                buffer[i] += (_above(w[i], b[i]) + _above(w[i + 32], b[i + 32])) + (
                    _above(w[i + 64], b[i + 64]) + _above(w[i + 96], b[i + 96])
                )
        for low in range(whole, lanes, 32):
            w, b = row[low : low + 32], best[low : low + 32]
            for i in range(32):
                buffer[i] += _above(w[i], b[i])
        for lane in range(32):
            total += buffer[lane]
    for i in range(lanes, len(row)):
        total += _above(row[i], best[i])
    return total


@inlined
def _share(j: int, b: int, n_chosen: int, of: DenseTargets) -> float:
    """Return what record j would add over a group of targets if it stayed."""
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
    """Write the gain of some records times `factor` into `out`, with all shares up to date."""
    for e in range(len(items)):
        j = items[e]
        for b in range(of.seen.shape[1]):
            if of.seen[j, b] != n_chosen:
                _refresh(j, b, n_chosen, of)
        out[e] = factor[j] * _total(of.shares[j])


@borrowing
def pick(n: int, bound: Floats, heap: Ints, factor: Floats, n_chosen: int, of: DenseTargets) -> int:
    """Bring the record of the largest gain to the top of the heap; return how many shares it took.

    `n` is the length of the heap; `bound` and `heap` are changed. Bounds of records that are looked
    at become the sums of their shares, some of them older, times `factor`.
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
    """Insert what is carried among n ranks; sums from the last let no gain grow by rounding."""
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

    `n_chosen` counts the records chosen before; ranks of a weight below `negligible` are left out.
    Changed in place: `near`, `ranks`, `stays`, `a`, `t` and `depth`.
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
