"""Trees as plain arrays in an order of their own: for files, hashes and predictions."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import sha256
from typing import Any, ClassVar, TypeVar

import numpy as np
from numpy.typing import NDArray

from erasable.core._schema import Array, Fields, FieldType, Sizes, join, refuse
from erasable.core.arrays import Floats, Ints, Ints32
from erasable.core.digest import LeafHash, merkle_root
from erasable.core.grid import MAX_ROWS
from erasable.tree._flat_kernels import descend, find_flags, index, list_nodes
from erasable.tree._layout import GAPS_LEFT, SQUARES, TreeRules

HASH = 32
"""Bytes of a hash."""
UNIT = 512
"""Subtrees of at most so many records are hashed one by one; see `hashed_weight`."""

_TREE, _SUBTREE = b"tree", b"unit"
_SIZES = struct.Struct("<QQQ").pack
_NO_FLAGS = np.empty(0, dtype=np.uint8)
NO_SIDES = np.empty(0, dtype=np.uint8)
"""Sides of gaps in a tree in whose nodes there are none."""


@dataclass(frozen=True, eq=False)
class PlainTree:
    """Base: every node comes before those to its left, and these before those to its right."""

    split_arrays: ClassVar[dict[str, str]] = {"thresholds": "float64"}
    """Arrays that have a number for each split, and their types."""
    leaf_arrays: ClassVar[dict[str, str]]
    """Arrays that have a number or a line for each leaf, and their types."""
    optional_arrays: ClassVar[dict[str, str]] = {}
    """Arrays that have a number for each split, or are empty where all are 0, and their types."""

    features: Ints32  # (n_nodes,); feature that is compared; -1 in a leaf
    thresholds: Floats  # (n_splits,); records whose value is at most this go to the left

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

    def find(self, X: Floats, flags: NDArray[np.uint8] = _NO_FLAGS) -> Ints:
        """Return the leaf of every row."""
        found = np.empty(X.shape[0], dtype=np.int64)
        descend(X, self.features, self.thresholds, flags, self.rights, self.places, found)
        return found

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


@dataclass(frozen=True, eq=False)
class FlatTree(PlainTree):
    """A tree whose leaves hold what their records are.

    >>> counts = np.array([[2, 0], [0, 3]])
    >>> stump = FlatTree(np.array([0, -1, -1], np.int32), np.array([0.5]), counts)
    >>> stump.depth, stump.rights.tolist()
    (1, [2, -1, -1])
    """

    leaf_arrays: ClassVar[dict[str, str]] = {"leaves": "int64"}
    optional_arrays: ClassVar[dict[str, str]] = {"gap_sides": "uint8"}

    # (n_leaves, n_stats); weight of each class; or of all records, and their sum in quanta
    leaves: Ints
    # (n_splits,); where gaps of the node's records go: `NO_GAPS`, `GAPS_RIGHT` or `GAPS_LEFT`.
    # Empty where no node has any.
    gap_sides: NDArray[np.uint8] = field(default_factory=lambda: NO_SIDES)

    def flags(self, *, regression: bool) -> NDArray[np.uint8]:
        """Return where gaps go in predictions, for `find`; see `find_flags`."""
        weights = self.leaves[:, 0] if regression else self.leaves.sum(axis=1)
        flags = np.empty(self.thresholds.size, dtype=np.uint8)
        find_flags(self.features, np.ascontiguousarray(weights), self.gap_sides, flags)
        return flags

    def _sides(self, which: Any) -> NDArray[np.uint8]:
        return told_sides(self.gap_sides[which]) if self.gap_sides.size else NO_SIDES

    def hash(self, rules: TreeRules) -> LeafHash:
        """Hash the tree: its subtrees of at most `UNIT` records, and what is above them."""
        weights = self.leaves[:, 0] if rules.criterion == SQUARES else self.leaves.sum(axis=1)
        limit = hashed_weight(self.leaves.sum(axis=0), self.leaves.shape[0], rules)
        weighed = np.concatenate([[0], np.cumsum(weights)])  # before each leaf
        passed = np.concatenate([[0], np.cumsum(self.features < 0)])  # leaves before each node
        top, above, units = [], [], []
        waiting = [(0, self.features.size)]
        while waiting:
            node, end = waiting.pop()
            leaf, last = int(passed[node]), int(passed[end])
            feature, right = int(self.features[node]), int(self.rights[node])
            if feature >= 0 and weighed[last] - weighed[leaf] > limit:
                top.append(feature)
                above.append(node - leaf)
                waiting += [(right, end), (node + 1, right)]
                continue
            top.append(-1)
            splits = slice(node - leaf, end - last)
            subtree = FlatTree(
                self.features[node:end], self.thresholds[splits], self.leaves[leaf:last],
                self._sides(splits),
            )  # fmt: skip
            units.append(subtree.whole_hash())
        hashes = np.frombuffer(b"".join(units), dtype=np.uint8).reshape(-1, HASH)
        features = np.array(top, dtype=np.int32)
        return top_hash(features, self.thresholds[above], self._sides(above), hashes)

    def whole_hash(self) -> bytes:
        """Hash a subtree, all at once."""
        sizes = _SIZES(self.features.size, *self.leaves.shape)
        arrays = self.features, self.thresholds, self.leaves, self.gap_sides
        return hash_arrays(_SUBTREE + sizes, *arrays)


def told_sides(sides: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Return sides of gaps, or none where no split has gaps."""
    return sides if sides.any() else NO_SIDES


def in_preorder(
    nodes: Ints32, stats: Ints, most: int, root: int = 0, limit: int = -1, regression: bool = False
) -> tuple[Ints32, Ints, Ints]:
    """Return the features, splits and leaves of a subtree of at most so many nodes.

    See `list_nodes`.
    """
    features, (splits, ends) = np.empty(most, np.int32), np.empty((2, most), np.int64)
    n = list_nodes(nodes, stats, regression, limit, root, features, splits, ends)
    return features[: 2 * n + 1].copy(), splits[:n], ends[: n + 1]


def hashed_weight(total: Ints, n_leaves: int, rules: TreeRules) -> int:
    """Return what a subtree weighs at most that is hashed as a whole.

    Where records have weights, it is `UNIT` times that of a leaf, which is rounded to a power of
    two, so that it is seldom another one after a deletion.
    """
    if not rules.weighted:
        return UNIT
    weight = int(total[0]) if rules.criterion == SQUARES else int(total.sum())
    return UNIT << (weight // n_leaves).bit_length()


def hash_arrays(start: bytes, *arrays: NDArray[Any]) -> bytes:
    """Hash arrays behind some bytes."""
    hasher = sha256(start)
    for each in arrays:
        hasher.update(each.astype(each.dtype.newbyteorder("<"), copy=False).tobytes())
    return hasher.digest()


def top_hash(
    features: Ints32, thresholds: Floats, gap_sides: NDArray[np.uint8], units: NDArray[np.uint8]
) -> LeafHash:
    """Hash a tree of which the subtrees are hashed, a line for each."""
    sizes = _SIZES(features.size, thresholds.size, units.shape[0])
    return LeafHash(hash_arrays(_TREE + sizes, features, thresholds, units, gap_sides))


def forest_hash(trees: Sequence[LeafHash]) -> LeafHash:
    """Hash a forest of which the trees are hashed."""
    return LeafHash(merkle_root(list(trees)))


_Tree = TypeVar("_Tree", bound=PlainTree)


def to_arrays(kind: type[_Tree], flats: Sequence[_Tree]) -> dict[str, Any]:
    """Lay the arrays of all trees end to end."""
    kinds = {"features": "int32", **kind.split_arrays, **kind.leaf_arrays}
    n_nodes = np.array([flat.features.size for flat in flats], dtype=np.int64)
    if not flats:
        return {**{name: np.empty(0, dtype) for name, dtype in kinds.items()}, "n_nodes": n_nodes}
    arrays = {name: np.concatenate([getattr(flat, name) for flat in flats]) for name in kinds}
    for name, dtype in kind.optional_arrays.items():
        if any(getattr(flat, name).size for flat in flats):
            arrays[name] = np.zeros(arrays["thresholds"].size, dtype=dtype)
            ends = np.cumsum([flat.thresholds.size for flat in flats])
            for flat, end in zip(flats, ends.tolist(), strict=True):
                own = getattr(flat, name)
                arrays[name][end - own.size : end] = own
    return {**arrays, "n_nodes": n_nodes}


def from_arrays(kind: type[_Tree], state: dict[str, Any]) -> list[_Tree]:
    """Take the arrays of all trees apart again."""
    flats, node, split, leaf = [], 0, 0, 0
    for size in state["n_nodes"].tolist():
        features = np.ascontiguousarray(state["features"][node : node + size], dtype=np.int32)
        n_leaves = int(np.count_nonzero(features < 0))
        splits, leaves = slice(split, split + size - n_leaves), slice(leaf, leaf + n_leaves)
        own = {name: state[name][splits] for name in kind.split_arrays}
        own |= {name: state[name][leaves] for name in kind.leaf_arrays}
        for name in kind.optional_arrays.keys() & state.keys():
            if state[name][splits].any():
                own[name] = state[name][splits]
        flats.append(kind(features=features, **own))
        node, split, leaf = node + size, splits.stop, leaves.stop
    return flats


GAP_SIDES = Array("uint8", (None,), least=0, most=GAPS_LEFT)
"""Of `FlatTree`, in a file."""


def trees_schema(
    kind: type[PlainTree], n_features: int, n_trees: int | None, **others: FieldType
) -> Fields:
    """Return the part for what `to_arrays` gives; `others` are arrays of a kind alone."""

    def check(value: dict[str, Any], at: str, sizes: Sizes) -> None:
        features, n_nodes = value["features"], value["n_nodes"]
        if int(n_nodes.sum()) != features.size:
            refuse(join(at, "n_nodes"), f"{n_nodes.sum()} nodes", f"{features.size}, as features")
        if n_nodes.size:
            # As many leaves as splits and one more, and never more of them before the end.
            height = np.cumsum(np.where(features < 0, -1, 1))
            height += np.repeat(np.arange(n_nodes.size), n_nodes)
            ends = np.cumsum(n_nodes) - 1
            if (height[ends] != -1).any() or np.count_nonzero(height < 0) != n_nodes.size:
                refuse(join(at, "features"), "nodes that are no trees", "every node in its place")
        n_leaves = int(np.count_nonzero(features < 0))
        wanted = dict.fromkeys(kind.leaf_arrays, (n_leaves, "leaves"))
        split_arrays = [*kind.split_arrays, *(kind.optional_arrays.keys() & value.keys())]
        wanted |= dict.fromkeys(split_arrays, (features.size - n_leaves, "splits"))
        for name, (n, of) in wanted.items():
            if len(value[name]) != n:
                refuse(join(at, name), f"{len(value[name])} values", f"{n}, as {of}")
        for name in kind.optional_arrays.keys() & value.keys():
            if not value[name].any():
                refuse(join(at, name), "no side", "one of gaps, or no such field")

    parts = {
        "features": Array("int32", (None,), least=-1, most=n_features - 1),
        "n_nodes": Array("int64", (n_trees,), least=1, most=2 * MAX_ROWS),
        "thresholds": Array("float64", (None,)),
    }
    return Fields({**parts, **others}, relations=(check,))
