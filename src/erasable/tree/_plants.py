"""The arrays of one tree: made, and made longer or shorter."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from erasable.tree._layout import (
    BUSY,
    CACHE,
    CAPACITY,
    FREE,
    KEPT_ABOVE,
    KEPT_BYTES,
    LEFT,
    N_COUNTERS,
    N_FIELDS,
    NONE,
    UPTO,
    USED,
    GrowingTree,
    Rules,
)

Bag: TypeAlias = NDArray[np.uint32]
"""Rows and their weights, as in `GrowingTree.rows`."""


def bare(bag: Bag, rules: Rules, n_stats: int) -> GrowingTree:
    """Return a tree of one node, with room for all that may grow."""
    n = bag.size
    q, s = rules.max_features, rules.sample
    # There are about 3 n / m nodes of more than m records, in trees as they grow.
    upto = max(KEPT_ABOVE, 3 * q * s * (12 + 8 * n_stats) // KEPT_BYTES)
    slots, kept = 2 * n + 2, 4 * (n // upto) + 1 if n > upto else 0
    plant = GrowingTree(
        nodes=np.zeros((slots, N_FIELDS), dtype=np.int32),
        stats=np.zeros((slots, n_stats), dtype=np.int64),
        gains=np.full(slots if rules.min_decrease > 0 else 0, -np.inf),
        rows=bag.copy(),
        free=np.zeros(slots // 2, dtype=np.int32),
        counters=np.zeros(N_COUNTERS, dtype=np.int64),
        features=np.zeros((kept, q), dtype=np.int32),
        found=np.zeros((kept, q, 3), dtype=np.int32),
        codes=np.zeros((kept, q, s), dtype=np.int32),
        counts=np.zeros((kept, q, s, 2), dtype=np.int32),
        lefts=np.zeros((kept, q, s, n_stats), dtype=np.int64),
        free_kept=np.zeros(kept, dtype=np.int32),
    )
    plant.counters[USED], plant.counters[UPTO] = 1, upto
    plant.nodes[0, CAPACITY], plant.nodes[0, CACHE] = n, -1
    plant.nodes[0, : LEFT + 1] = -1
    return plant


def _resized(array: NDArray[Any], size: int, used: int, fill: float = 0.0) -> NDArray[Any]:
    """Copy the first lines of an array into one of another length."""
    copy = np.zeros((size, *array.shape[1:]), dtype=array.dtype)  # untouched pages cost nothing
    if fill:
        copy[:] = fill
    copy[:used] = array[:used]
    return copy


def with_slots(plant: GrowingTree, slots: int) -> GrowingTree:
    """Copy a tree into arrays with another number of slots for nodes."""
    used = int(plant.counters[USED])
    return plant._replace(
        nodes=_resized(plant.nodes, slots, used),
        stats=_resized(plant.stats, slots, used),
        gains=_resized(plant.gains, slots if plant.gains.size else 0, used, -np.inf),
        free=_resized(plant.free, slots // 2 + 1, int(plant.counters[FREE])),
    )


def with_kept(plant: GrowingTree, kept: int) -> GrowingTree:
    """Copy a tree into arrays with another number of slots for counts that are kept."""
    names = ("features", "found", "codes", "counts", "lefts", "free_kept")
    busy = int(plant.counters[BUSY])
    return plant._replace(**{name: _resized(getattr(plant, name), kept, busy) for name in names})


def with_places(plant: GrowingTree, more: int) -> GrowingTree:
    """Copy a tree's rows into an array with places for some more, and for others to come."""
    n = plant.rows.size
    rows = np.full(n + more + n // 8 + 16, NONE, dtype=np.uint32)
    rows[:n] = plant.rows
    plant.nodes[0, CAPACITY] = rows.size
    return plant._replace(rows=rows)
