"""What the trees in a file must be, so that kernels can walk through them."""

from __future__ import annotations

from typing import Any

import numpy as np

from erasable.core._schema import Fields, Sizes, join, refuse
from erasable.core._schema_arrays import Array
from erasable.core._schema_models import MOST_QUANTA
from erasable.core.grid import MAX_ROWS

__all__ = ["MOST_WEIGHT", "tree_schema"]

MOST_WEIGHT = 255
"""Of a record in the bag of a tree."""


def tree_schema(n_trees: int, n_features: int, weight: int, *, regression: bool) -> Fields:
    """Return the part for what `to_arrays` gives.

    Parameters
    ----------
    n_trees, n_features : int
    weight : int
        Most that all records together may weigh in a tree.
    regression : bool
        Whether a leaf holds a weight and a sum, or the weights of "n_classes" classes.
    """
    largest = min(weight, 2**35)
    limit = int(largest * 2 * MOST_QUANTA)
    leaves = (
        Array("int64", ("n_leaves", 2), least=-limit, most=limit)
        if regression
        else Array("int64", ("n_leaves", "n_classes"), least=0, most=largest)
    )

    def check(value: dict[str, Any], at: str, sizes: Sizes) -> None:
        features, n_nodes = value["features"], value["n_nodes"]
        if int(n_nodes.sum()) != features.size:
            refuse(join(at, "n_nodes"), f"{n_nodes.sum()} nodes", f"{features.size}, as features")
        # As many leaves as splits and one more, and never more of them before the end: a tree.
        height = np.cumsum(np.where(features < 0, -1, 1))
        tree = np.repeat(np.arange(n_trees), n_nodes)
        ends = np.cumsum(n_nodes) - 1
        height += tree
        if (height[ends] != -1).any() or np.count_nonzero(height < 0) != n_trees:
            refuse(join(at, "features"), "nodes that are no trees", "every node in its place")
        n_leaves = int(np.count_nonzero(features < 0))
        if n_leaves != sizes["n_leaves"]:
            refuse(join(at, "leaves"), f"{sizes['n_leaves']} lines", f"{n_leaves}, as leaves")
        if features.size - n_leaves != sizes["n_splits"]:
            held = f"{sizes['n_splits']} numbers"
            refuse(join(at, "thresholds"), held, f"{features.size - n_leaves}, as splits")
        weights = value["leaves"][:, 0] if regression else value["leaves"].sum(axis=1)
        if not ((weights > 0) & (weights <= largest)).all():
            refuse(join(at, "leaves"), "a leaf without records", f"weights up to {largest}")

    parts = {
        "features": Array("int32", (None,), least=-1, most=n_features - 1),
        "leaves": leaves,
        "n_nodes": Array("int64", (n_trees,), least=1, most=2 * MAX_ROWS),
        "thresholds": Array("float64", ("n_splits",)),
    }
    return Fields(parts, relations=(check,))
