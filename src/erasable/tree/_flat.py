"""A tree as plain arrays in an order of its own: for files, hashes and predictions."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from erasable.core.arrays import Floats, Ints, Ints32
from erasable.core.digest import LeafHash, merkle_root
from erasable.tree._flat_kernels import index, outline_flat
from erasable.tree._layout import SQUARES, TreeRules

HASH = 32
"""Bytes of a hash."""
UNIT = 512
"""Subtrees of at most so many records are hashed one by one; see `hashed_weight`."""

_TREE, _SUBTREE = b"tree", b"unit"
_SIZES = struct.Struct("<QQQ").pack


@dataclass(frozen=True, eq=False)
class FlatTree:
    """One tree: every node comes before those to its left, and these before those to its right.

    >>> counts = np.array([[2, 0], [0, 3]])
    >>> stump = FlatTree(np.array([0, -1, -1], np.int32), np.array([0.5]), counts)
    >>> stump.depth, stump.rights.tolist()
    (1, [2, -1, -1])
    """

    features: Ints32  # (n_nodes,); feature that is compared; -1 in a leaf
    thresholds: Floats  # (n_splits,); records whose value is at most this go to the left
    # (n_leaves, n_stats); weight of each class; or of all records, and their sum in quanta
    leaves: Ints

    @cached_property
    def _index(self) -> tuple[Ints32, Ints32]:
        rights, places = np.empty((2, self.features.size), dtype=np.int32)
        index(self.features, rights, places)
        return rights, places

    @property
    def rights(self) -> Ints32:
        """Right child of every node, -1 of leaves."""
        return self._index[0]

    @property
    def places(self) -> Ints32:
        """Where a node's threshold is, or a leaf's line."""
        return self._index[1]

    @property
    def depth(self) -> int:
        """Splits on the longest way from the root to a leaf."""
        depths = [0] * self.features.size
        deepest = 0
        for node, (feature, right) in enumerate(
            zip(self.features.tolist(), self.rights.tolist(), strict=True)
        ):
            if feature >= 0:
                depths[node + 1] = depths[right] = depths[node] + 1
                deepest = max(deepest, depths[node] + 1)
        return deepest

    def hash(self, rules: TreeRules) -> LeafHash:
        """Hash the tree: its subtrees of at most `UNIT` records, and what is above them."""
        regression = rules.criterion == SQUARES
        limit = hashed_weight(self.leaves.sum(axis=0), self.leaves.shape[0], rules)
        top = np.empty(self.features.size, dtype=np.int32)
        starts = np.empty((self.features.size + 1, 3), dtype=np.int64)
        n, _ = outline_flat(self.features, self.leaves, regression, limit, top, starts)
        units, above = [], []
        places = starts[: n + 1].tolist()
        for (node, split, leaf), (end, end_split, end_leaf) in pairwise(places):
            if node < 0:
                above.append(split)
                continue
            end = end if end >= 0 else -1 - end
            units.append(
                unit_hash(
                    self.features[node:end],
                    self.thresholds[split:end_split],
                    self.leaves[leaf:end_leaf],
                )
            )
        hashes = np.frombuffer(b"".join(units), dtype=np.uint8).reshape(-1, HASH)
        return top_hash(top[:n], self.thresholds[above], hashes)


def hashed_weight(total: Ints, n_leaves: int, rules: TreeRules) -> int:
    """Return what a subtree weighs at most that is hashed as a whole.

    Where records have weights, it is `UNIT` times that of a leaf, which is rounded to a power of
    two, so that it is seldom another one after a deletion.
    """
    if not rules.weighted:
        return UNIT
    weight = int(total[0]) if rules.criterion == SQUARES else int(total.sum())
    return UNIT << (weight // n_leaves).bit_length()


def unit_hash(features: Ints32, thresholds: Floats, leaves: Ints) -> bytes:
    """Hash a subtree."""
    hasher = sha256(_SUBTREE + _SIZES(features.size, leaves.shape[0], leaves.shape[1]))
    for array, kind in ((features, "<i4"), (thresholds, "<f8"), (leaves, "<i8")):
        hasher.update(np.ascontiguousarray(array, dtype=kind).data)
    return hasher.digest()


def top_hash(features: Ints32, thresholds: Floats, units: NDArray[np.uint8]) -> LeafHash:
    """Hash a tree of which the subtrees are hashed, a line for each."""
    hasher = sha256(_TREE + _SIZES(features.size, thresholds.size, units.shape[0]))
    for array, kind in ((features, "<i4"), (thresholds, "<f8")):
        hasher.update(np.ascontiguousarray(array, dtype=kind).data)
    hasher.update(units.tobytes())
    return LeafHash(hasher.digest())


def forest_hash(trees: Sequence[LeafHash]) -> LeafHash:
    """Hash a forest of which the trees are hashed."""
    return LeafHash(merkle_root(list(trees)))


def to_arrays(flats: Sequence[FlatTree]) -> dict[str, Any]:
    """Lay the arrays of all trees end to end."""
    return {
        "features": np.concatenate([flat.features for flat in flats]),
        "leaves": np.concatenate([flat.leaves for flat in flats]),
        "n_nodes": np.array([flat.features.size for flat in flats], dtype=np.int64),
        "thresholds": np.concatenate([flat.thresholds for flat in flats]),
    }


def from_arrays(state: dict[str, Any]) -> list[FlatTree]:
    """Take the arrays of all trees apart again."""
    return list(_apart(state))


def _apart(state: dict[str, Any]) -> Iterator[FlatTree]:
    split = leaf = node = 0
    for size in state["n_nodes"].tolist():
        features = np.ascontiguousarray(state["features"][node : node + size], dtype=np.int32)
        n_leaves = int(np.count_nonzero(features < 0))
        yield FlatTree(
            features,
            state["thresholds"][split : split + size - n_leaves],
            state["leaves"][leaf : leaf + n_leaves],
        )
        node, split, leaf = node + size, split + size - n_leaves, leaf + n_leaves
