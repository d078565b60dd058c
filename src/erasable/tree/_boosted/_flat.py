"""Trees of boosting as plain arrays in an order of their own: for files, hashes and predictions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from typing import Any

import numpy as np
from numpy.typing import NDArray

from erasable.core._jit import kernel
from erasable.core._schema import Array, Fields, Sizes, join, refuse
from erasable.core.arrays import Floats, Ints, Ints32
from erasable.core.digest import LeafHash
from erasable.core.grid import MAX_ROWS
from erasable.tree._boosted._layout import (
    ALL_VALUES,
    EDGE,
    FEATURE,
    GAPS_LEFT,
    LEFT,
    TreeArrays,
)
from erasable.tree._boosted._losses import MOST_VALUE
from erasable.tree._flat_kernels import index

_GAPS_LEFT, _EQUAL = 1, 2
_GAPS, _ALONE = np.uint8(_GAPS_LEFT), np.uint8(_EQUAL)
MOST_FLAGS = 3


@kernel
def _flatten(
    tree: TreeArrays, edges: Floats, categorical: NDArray[np.bool_], features: Ints32,
    thresholds: Floats, flags: NDArray[np.uint8], values: Ints32,
) -> tuple[int, int]:  # fmt: skip
    """Write a tree with every node before those to its left, and these before those to its right.

    Returns the number of splits and of leaves.
    """
    nodes = tree.nodes
    stack = np.empty(nodes.shape[0] + 1, dtype=np.int64)
    stack[0], waiting, n, splits, ends = 0, 1, 0, 0, 0
    while waiting:
        waiting -= 1
        node = stack[waiting]
        if nodes[node, LEFT] < 0:
            features[n] = -1
            values[ends] = tree.values[node]
            ends += 1
        else:
            f, edge = nodes[node, FEATURE], nodes[node, EDGE]
            features[n] = f
            flags[splits] = _GAPS if nodes[node, GAPS_LEFT] == 1 else np.uint8(0)
            if edge == ALL_VALUES:
                thresholds[splits] = np.finfo(np.float64).max
            else:
                thresholds[splits] = edges[f, edge]
                if categorical[f]:
                    flags[splits] |= _ALONE
            splits += 1
            stack[waiting], stack[waiting + 1] = nodes[node, LEFT] + 1, nodes[node, LEFT]
            waiting += 2
        n += 1
    return splits, ends


@kernel
def _descend(
    X: Floats, features: Ints32, thresholds: Floats, flags: NDArray[np.uint8], rights: Ints32,
    places: Ints32, values: Ints32, out: Ints,
) -> None:  # fmt: skip
    """Add the value of each row's leaf."""
    for i in range(X.shape[0]):
        node = 0
        while features[node] >= 0:
            x, place = X[i, features[node]], places[node]
            if x != x:
                left = (flags[place] & _GAPS) != 0
            elif flags[place] & _ALONE:
                left = x == thresholds[place]
            else:
                left = x <= thresholds[place]
            node = node + 1 if left else rights[node]
        out[i] += values[places[node]]


@dataclass(frozen=True, eq=False)
class FlatBoostedTree:
    """One tree.

    >>> features = np.array([0, -1, -1], np.int32)
    >>> flags, values = np.array([1], np.uint8), np.array([-2, 3], np.int32)
    >>> stump = FlatBoostedTree(features, np.array([0.5]), flags, values)
    >>> out = np.zeros(3, np.int64)
    >>> stump.add(np.array([[0.0], [1.0], [np.nan]]), out)
    >>> out
    array([-2,  3, -2])
    """

    features: Ints32  # (n_nodes,); feature that is compared; -1 in a leaf
    # (n_splits,); records whose value is at most this, or is this, go to the left
    thresholds: Floats
    flags: NDArray[np.uint8]  # (n_splits,); 1 where gaps go left, 2 where the value is to be equal
    values: Ints32  # (n_leaves,); in units

    @classmethod
    def of(cls, tree: TreeArrays, edges: Floats, categorical: NDArray[np.bool_]) -> FlatBoostedTree:
        """Flatten a tree."""
        n = tree.nodes.shape[0]
        features, values = np.empty(n, dtype=np.int32), np.empty(n, dtype=np.int32)
        thresholds, flags = np.empty(n), np.empty(n, dtype=np.uint8)
        splits, ends = _flatten(tree, edges, categorical, features, thresholds, flags, values)
        return cls(
            features, thresholds[:splits].copy(), flags[:splits].copy(), values[:ends].copy()
        )

    @cached_property
    def _index(self) -> tuple[Ints32, Ints32]:
        rights, places = np.empty((2, self.features.size), dtype=np.int32)
        index(self.features, rights, places)
        return rights, places

    def add(self, X: Floats, out: Ints) -> None:
        """Add the value of each row's leaf."""
        _descend(X, self.features, self.thresholds, self.flags, *self._index, self.values, out)

    @cached_property
    def hash(self) -> bytes:
        """Hash the tree."""
        hasher = sha256(b"boosted tree" + self.features.size.to_bytes(8, "little"))
        parts = (self.features, "<i4"), (self.thresholds, "<f8"), (self.flags, "u1")
        for array, kind in (*parts, (self.values, "<i4")):
            hasher.update(np.ascontiguousarray(array, dtype=kind).data)
        return hasher.digest()


def hash_of(flats: Sequence[FlatBoostedTree]) -> LeafHash:
    """Hash trees."""
    return LeafHash(sha256(b"boosted trees" + b"".join(flat.hash for flat in flats)).digest())


def to_arrays(flats: Sequence[FlatBoostedTree]) -> dict[str, Any]:
    """Lay the arrays of all trees end to end."""

    def joined(name: str, dtype: str) -> NDArray[Any]:
        return np.concatenate([np.empty(0, dtype), *(getattr(flat, name) for flat in flats)])

    return {
        "features": joined("features", "int32"),
        "flags": joined("flags", "uint8"),
        "n_nodes": np.array([flat.features.size for flat in flats], dtype=np.int64),
        "thresholds": joined("thresholds", "float64"),
        "values": joined("values", "int32"),
    }


def from_arrays(state: dict[str, Any]) -> list[FlatBoostedTree]:
    """Take the arrays of all trees apart again."""
    flats, node, split, leaf = [], 0, 0, 0
    for size in state["n_nodes"].tolist():
        features = np.ascontiguousarray(state["features"][node : node + size], dtype=np.int32)
        ends = int(np.count_nonzero(features < 0))
        some = slice(split, split + size - ends)
        values = state["values"][leaf : leaf + ends]
        flats.append(
            FlatBoostedTree(features, state["thresholds"][some], state["flags"][some], values)
        )
        node, split, leaf = node + size, some.stop, leaf + ends
    return flats


def flats_schema(n_features: int) -> Fields:
    """Return the part for what `to_arrays` gives."""

    def check(value: dict[str, Any], at: str, sizes: Sizes) -> None:
        features, n_nodes = value["features"], value["n_nodes"]
        n_trees = n_nodes.size
        if int(n_nodes.sum()) != features.size:
            refuse(join(at, "n_nodes"), f"{n_nodes.sum()} nodes", f"{features.size}, as features")
        if n_trees:
            # As many leaves as splits and one more, and never more of them before the end.
            height = np.cumsum(np.where(features < 0, -1, 1))
            height += np.repeat(np.arange(n_trees), n_nodes)
            ends = np.cumsum(n_nodes) - 1
            if (height[ends] != -1).any() or np.count_nonzero(height < 0) != n_trees:
                refuse(join(at, "features"), "nodes that are no trees", "every node in its place")
        n_leaves = int(np.count_nonzero(features < 0))
        for name, wanted in (
            ("values", n_leaves),
            ("thresholds", features.size - n_leaves),
            ("flags", features.size - n_leaves),
        ):
            if value[name].size != wanted:
                refuse(join(at, name), f"{value[name].size} numbers", f"{wanted}, as nodes")

    parts = {
        "features": Array("int32", (None,), least=-1, most=n_features - 1),
        "flags": Array("uint8", (None,), least=0, most=MOST_FLAGS),
        "n_nodes": Array("int64", (None,), least=1, most=2 * MAX_ROWS),
        "thresholds": Array("float64", (None,)),
        "values": Array("int32", (None,), least=-MOST_VALUE, most=MOST_VALUE),
    }
    return Fields(parts, relations=(check,))
