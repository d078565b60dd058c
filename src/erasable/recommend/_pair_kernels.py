"""Kernels of pairs of items: in how many sets each pair is, as the lower triangle of a matrix.

Sets are (starts, members): those of set r are ``members[starts[r]:starts[r + 1]]``, ascending. A
triangle is (starts, items, counts): row i has the pairs of item i with items up to i, ascending,
each in one set or more. The pair of an item with itself counts the sets that have the item.
"""

from __future__ import annotations

import math

import numpy as np

from erasable.core._jit import inlined, kernel
from erasable.core.arrays import Floats, Ints, Ints32

COSINE, JACCARD, LIFT = range(3)


@kernel
def find_places(starts: Ints, members: Ints32, ends: Ints, places: Ints, stops: Ints) -> None:
    """List the places of each item in the sets, and where these sets end.

    `ends` is where the list of each item begins, and becomes where it ends.
    """
    for r in range(starts.size - 1):
        for e in range(starts[r], starts[r + 1]):
            slot = ends[members[e]]
            places[slot], stops[slot] = e, starts[r + 1]
            ends[members[e]] = slot + 1


@kernel
def count_sizes(
    members: Ints32, ends: Ints, places: Ints, stops: Ints, seen: Ints32, sizes: Ints
) -> None:
    """Count the pairs in each row of the triangle; `seen`, one an item, and `sizes` start at 0."""
    p = 0
    for i in range(ends.size):
        while p < ends[i]:
            for e in range(places[p], stops[p]):
                j = members[e]
                if seen[j] != i + 1:
                    seen[j] = i + 1
                    sizes[j] += 1
            p += 1


@kernel
def count_pairs(
    members: Ints32,
    ends: Ints,
    places: Ints,
    stops: Ints,
    queue: Ints32,
    found: Ints32,
    tails: Ints,
    items: Ints32,
    counts: Ints32,
) -> None:
    """Write the triangle; `tails` are the starts of its rows, and become their ends.

    `queue` and `found` have one number an item; `found` starts and ends at 0.
    """
    p = 0
    for i in range(ends.size):
        n = 0
        while p < ends[i]:
            for e in range(places[p], stops[p]):
                j = members[e]
                if found[j] == 0:
                    queue[n] = j
                    n += 1
                found[j] += 1
            p += 1
        for q in range(n):
            j = queue[q]
            items[tails[j]], counts[tails[j]] = i, found[j]
            tails[j] += 1
            found[j] = 0


@inlined
def _find(items: Ints32, place: int, end: int, wanted: int) -> int:
    """Return the first place from `place` to `end` whose item is `wanted` or a later one."""
    while place < end:
        middle = (place + end) // 2
        if items[middle] < wanted:
            place = middle + 1
        else:
            end = middle
    return place


@kernel
def shift(
    starts: Ints, items: Ints32, counts: Ints32, set_starts: Ints, members: Ints32, step: int
) -> int:
    """Add `step` to the pairs of sets; return how often one of these is absent, or becomes 0."""
    odd = 0
    for r in range(set_starts.size - 1):
        for a in range(set_starts[r], set_starts[r + 1]):
            place, end = starts[members[a]], starts[members[a] + 1]
            for b in range(set_starts[r], a + 1):
                place = _find(items, place, end, members[b])
                if place == end or items[place] != members[b]:
                    odd += 1
                    continue
                counts[place] += step
                odd += counts[place] == 0
                place += 1
    return odd


@kernel
def drop_zeros(
    starts: Ints,
    items: Ints32,
    counts: Ints32,
    out_starts: Ints,
    out_items: Ints32,
    out_counts: Ints32,
) -> None:
    """Copy a triangle without the pairs whose count is 0."""
    place = 0
    for i in range(starts.size - 1):
        for e in range(starts[i], starts[i + 1]):
            if counts[e] > 0:
                out_items[place], out_counts[place] = items[e], counts[e]
                place += 1
        out_starts[i + 1] = place


@kernel
def merge(
    starts: Ints,
    items: Ints32,
    counts: Ints32,
    other_starts: Ints,
    other_items: Ints32,
    other_counts: Ints32,
    out_starts: Ints,
    out_items: Ints32,
    out_counts: Ints32,
) -> None:
    """Add two triangles; without `out_items`, write only the starts of the rows of the sum."""
    place, fill = 0, out_items.size > 0
    for i in range(starts.size - 1):
        a, b = starts[i], other_starts[i]
        while a < starts[i + 1] or b < other_starts[i + 1]:
            last = b == other_starts[i + 1]
            one = a < starts[i + 1] and (last or items[a] <= other_items[b])
            other = not last and (not one or items[a] == other_items[b])
            if fill:
                out_items[place] = items[a] if one else other_items[b]
                out_counts[place] = counts[a] if one else 0
                out_counts[place] += other_counts[b] if other else 0
            a, b, place = a + one, b + other, place + 1
        out_starts[i + 1] = place


@inlined
def _similarity(kind: int, n: float, both: float, one: float, other: float) -> float:
    """Compute the similarity of two items from the numbers of sets that have both, and each."""
    if kind == COSINE:
        return both / math.sqrt(one * other)
    if kind == JACCARD:
        return both / (one + other - both)
    return both * n / (one * other)


@kernel
def compare(kind: int, n: float, both: Ints32, one: float, others: Ints32, out: Floats) -> None:
    """Compute the similarities of an item with others."""
    for e in range(both.size):
        out[e] = _similarity(kind, n, np.float64(both[e]), one, np.float64(others[e]))


@kernel
def mirror(
    kind: int,
    n: float,
    starts: Ints,
    items: Ints32,
    counts: Ints32,
    singles: Ints32,
    tails: Ints,
    out_items: Ints32,
    out: Floats,
) -> None:
    """Write the similarities of each item with all others, ascending by item.

    `singles` is how many sets have each item. `tails` are the starts of the rows of the result, and
    become their ends; without `out_items`, they are 0, and become the sizes of the rows.
    """
    fill = out_items.size > 0
    for i in range(starts.size - 1):
        for e in range(starts[i], starts[i + 1]):
            j = items[e]
            if j == i:
                continue
            if fill:
                one, other = np.float64(singles[i]), np.float64(singles[j])
                value = _similarity(kind, n, np.float64(counts[e]), one, other)
                out_items[tails[i]], out[tails[i]] = j, value
                out_items[tails[j]], out[tails[j]] = i, value
            tails[i] += 1
            tails[j] += 1


@kernel
def keep_best(
    starts: Ints, items: Ints32, values: Floats, out_starts: Ints, out_items: Ints32, out: Floats
) -> None:
    """Write the largest values of each row, by falling value; of equal ones, the first items.

    `out_starts` says how many each row keeps.
    """
    for i in range(starts.size - 1):
        first, n = out_starts[i], 0
        most = out_starts[i + 1] - first
        for e in range(starts[i], starts[i + 1]):
            if n == most and values[e] <= out[first + n - 1]:
                continue
            n += n < most
            place = first + n - 1
            while place > first and out[place - 1] < values[e]:
                out_items[place], out[place] = out_items[place - 1], out[place - 1]
                place -= 1
            out_items[place], out[place] = items[e], values[e]


@kernel
def add_scores(
    starts: Ints, items: Ints32, values: Floats, members: Ints32, scores: Floats
) -> None:
    """Add up the values in the rows of the members of a set; the members themselves get 0."""
    for m in range(members.size):
        for e in range(starts[members[m]], starts[members[m] + 1]):
            scores[items[e]] += values[e]
    for m in range(members.size):
        scores[members[m]] = 0.0
