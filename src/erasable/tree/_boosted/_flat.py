"""Trees of boosting as plain arrays: for files, hashes and predictions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from typing import ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from erasable.core._schema import Array, Fields
from erasable.core.arrays import Flags, Floats, Ints, Ints32
from erasable.core.digest import LeafHash
from erasable.tree._boosted._layout import ALL_VALUES, EDGE, GAPS_LEFT, TreeArrays
from erasable.tree._boosted._losses import MOST_VALUE
from erasable.tree._flat import PlainTree, hash_arrays, in_preorder, trees_schema
from erasable.tree._flat_kernels import EQUAL_LEFT, NAN_LEFT
from erasable.tree._layout import ANY_VALUE, FEATURE


@dataclass(frozen=True, eq=False)
class FlatBoostedTree(PlainTree):
    """A tree whose leaves hold what they add to predictions.

    >>> features = np.array([0, -1, -1], np.int32)
    >>> flags, values = np.array([1], np.uint8), np.array([-2, 3], np.int32)
    >>> stump = FlatBoostedTree(features, np.array([0.5]), flags, values)
    >>> out = np.zeros(3, np.int64)
    >>> stump.add(np.array([[0.0], [1.0], [np.nan]]), out)
    >>> out
    array([-2,  3, -2])
    """

    split_arrays: ClassVar[dict[str, str]] = {"thresholds": "float64", "flags": "uint8"}
    leaf_arrays: ClassVar[dict[str, str]] = {"values": "int32"}

    flags: NDArray[np.uint8]  # (n_splits,); `NAN_LEFT` or `EQUAL_LEFT`, or both
    values: Ints32  # (n_leaves,); in units

    @classmethod
    def of(cls, tree: TreeArrays, edges: Floats, categorical: Flags) -> Self:
        """Flatten a tree."""
        nodes = tree.nodes
        features, splits, ends = in_preorder(nodes, tree.sums, nodes.shape[0])
        own, places = nodes[splits, FEATURE], nodes[splits, EDGE]
        every = places == ALL_VALUES
        thresholds = np.where(every, ANY_VALUE, edges[own, np.where(every, 0, places)])
        flags = np.where(categorical[own] & ~every, EQUAL_LEFT, 0).astype(np.uint8)
        flags[nodes[splits, GAPS_LEFT] == 1] |= NAN_LEFT
        return cls(features, thresholds, flags, tree.values[ends])

    def add(self, X: Floats, out: Ints) -> None:
        """Add the value of each row's leaf."""
        out += self.values.take(self.find(X, self.flags), mode="clip")

    @cached_property
    def hash(self) -> bytes:
        """Hash the tree."""
        start = b"boosted tree" + self.features.size.to_bytes(8, "little")
        return hash_arrays(start, self.features, self.thresholds, self.flags, self.values)


def boosting_hash(flats: Sequence[FlatBoostedTree]) -> LeafHash:
    """Hash trees."""
    return LeafHash(sha256(b"boosted trees" + b"".join(flat.hash for flat in flats)).digest())


def boosted_schema(n_features: int) -> Fields:
    """Return the part for what `to_arrays` gives."""
    return trees_schema(
        FlatBoostedTree,
        n_features,
        None,
        flags=Array("uint8", (None,), least=0, most=int(EQUAL_LEFT | NAN_LEFT)),
        values=Array("int32", (None,), least=-MOST_VALUE, most=MOST_VALUE),
    )
