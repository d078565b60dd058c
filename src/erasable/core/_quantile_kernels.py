"""Kernels of the quantiles: values leave windows of sorted runs or join them; ranks are found.

A window holds distinct values of one column in ascending order, and how many live values equal
each; it lacks no value between its first and its last. A cursor stands on one of them and knows
how many live values of the column are smaller. Arrays have shape (n_features, n_windows), those
of the runs a third axis.
"""

from __future__ import annotations

import math

import numpy as np

from erasable.core._jit import kernel, subroutine
from erasable.core.arrays import Flags, Floats, Ints, Matrix


@kernel
def forget(
    taken: Matrix,
    n_values: Ints,
    sizes: Ints,
    cursors: Ints,
    before: Ints,
    runs: Floats,
    counts: Ints,
) -> None:
    """Remove rows of values from the counts and the windows; NaN is no value."""
    for i in range(taken.shape[0]):
        for j in range(taken.shape[1]):
            value = np.float64(taken[i, j])
            if value != value:
                continue
            n_values[j] -= 1
            for w in range(sizes.shape[1]):
                size = sizes[j, w]
                if size == 0:
                    continue
                run = runs[j, w]
                if value < run[cursors[j, w]]:
                    before[j, w] -= 1
                if run[0] <= value <= run[size - 1]:
                    k = int(np.searchsorted(run[:size], value))
                    counts[j, w, k] -= 1
                    if counts[j, w, k] == 0:
                        _drop(j, w, k, sizes, cursors, before, runs, counts)


@kernel
def learn(
    taken: Matrix,
    n_values: Ints,
    sizes: Ints,
    cursors: Ints,
    before: Ints,
    runs: Floats,
    counts: Ints,
) -> None:
    """Add rows of values to the counts and the windows; NaN is no value."""
    for i in range(taken.shape[0]):
        for j in range(taken.shape[1]):
            value = np.float64(taken[i, j])
            if value != value:
                continue
            n_values[j] += 1
            for w in range(sizes.shape[1]):
                size = sizes[j, w]
                if size == 0:
                    continue
                run = runs[j, w]
                if value < run[cursors[j, w]]:
                    before[j, w] += 1
                if run[0] <= value <= run[size - 1]:
                    k = int(np.searchsorted(run[:size], value))
                    if run[k] == value:
                        counts[j, w, k] += 1
                    else:
                        _put(j, w, k, value, sizes, cursors, runs, counts)


@subroutine
def _put(
    j: int,
    w: int,
    k: int,
    value: float,
    sizes: Ints,
    cursors: Ints,
    runs: Floats,
    counts: Ints,
) -> None:
    """Make room for a run of one value; a full window loses the farther end."""
    size = sizes[j, w]
    if size == runs.shape[2] and 2 * cursors[j, w] >= size:
        for at in range(k - 1):
            runs[j, w, at] = runs[j, w, at + 1]
            counts[j, w, at] = counts[j, w, at + 1]
        runs[j, w, k - 1], counts[j, w, k - 1] = value, 1
        if cursors[j, w] < k:
            cursors[j, w] -= 1
        return
    if size < runs.shape[2]:
        size += 1
        sizes[j, w] = size
    for at in range(size - 1, k, -1):
        runs[j, w, at] = runs[j, w, at - 1]
        counts[j, w, at] = counts[j, w, at - 1]
    runs[j, w, k], counts[j, w, k] = value, 1
    if cursors[j, w] >= k:
        cursors[j, w] += 1


@subroutine
def _drop(
    j: int,
    w: int,
    k: int,
    sizes: Ints,
    cursors: Ints,
    before: Ints,
    runs: Floats,
    counts: Ints,
) -> None:
    """Close the gap of a run without values, and clear the end."""
    last = sizes[j, w] - 1
    for at in range(k, last):
        runs[j, w, at] = runs[j, w, at + 1]
        counts[j, w, at] = counts[j, w, at + 1]
    runs[j, w, last] = 0.0
    counts[j, w, last] = 0
    sizes[j, w] = last
    if k < cursors[j, w]:
        cursors[j, w] -= 1
    elif k == last and k == cursors[j, w] and last > 0:
        cursors[j, w] = last - 1
        before[j, w] -= counts[j, w, last - 1]


@kernel
def find(
    shares: Floats,
    n_values: Ints,
    sizes: Ints,
    cursors: Ints,
    before: Ints,
    runs: Floats,
    counts: Ints,
    bounds: Floats,
    weights: Floats,
    short: Flags,
) -> bool:
    """Find the two values on either side of every quantile, and the weight of the upper one.

    `bounds` has shape (2, n_features, n_windows). A column in which a window does not reach so
    far is flagged in `short`; the answer says whether there is one.
    """
    any_short = False
    for j in range(n_values.size):
        n = n_values[j]
        short[j] = False
        for w in range(shares.size):
            if n == 0:
                bounds[0, j, w] = bounds[1, j, w] = np.nan
                weights[j, w] = 0.0
                continue
            place = (n - 1) * shares[w]
            rank = math.floor(place)
            weights[j, w] = place - rank
            size, k, smaller = sizes[j, w], cursors[j, w], before[j, w]
            while size > 0 and k > 0 and rank < smaller:
                k -= 1
                smaller -= counts[j, w, k]
            while k + 1 < size and rank >= smaller + counts[j, w, k]:
                smaller += counts[j, w, k]
                k += 1
            reached = smaller + counts[j, w, k]
            if size == 0 or rank < smaller or rank >= reached:
                short[j] = True
                continue
            cursors[j, w], before[j, w] = k, smaller
            above = k if rank + 1 < reached or rank + 1 >= n else k + 1
            if above == size:
                short[j] = True
                continue
            bounds[0, j, w], bounds[1, j, w] = runs[j, w, k], runs[j, w, above]
        any_short |= short[j]
    return any_short


@kernel
def interpolate(bounds: Floats, weights: Floats, out: Floats) -> None:
    """Write the quantiles, of shape (n_windows, n_features), as `numpy.percentile` rounds them."""
    for j in range(weights.shape[0]):
        for w in range(weights.shape[1]):
            low, high, weight = bounds[0, j, w], bounds[1, j, w], weights[j, w]
            span = high - low
            if weight < 0.5:
                out[w, j] = low + span * weight
            else:
                out[w, j] = high - span * (1.0 - weight)


@kernel
def halve(low: Floats, high: Floats, weights: Floats, out: Floats) -> None:
    """Write the middle of the two values of each column, as `numpy.median` rounds it."""
    for j in range(out.size):
        if weights[j] == 0.0:
            out[j] = low[j]
            continue
        middle = (low[j] + high[j]) / 2.0
        out[j] = middle if abs(middle) < np.inf else low[j] / 2.0 + high[j] / 2.0
