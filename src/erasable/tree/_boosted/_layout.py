"""The layout of trees of boosting in memory, and the parameters of their kernels.

A record in a tree is a pair of whole numbers: its gradient, and its Hessian and a 1 packed into
one. Sums of pairs have no order, so that a record can be subtracted without a trace.
"""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from erasable.core.arrays import Flags, Floats, Ints, Ints32, Words

Whole: TypeAlias = int | np.integer[Any]
"""A whole number in a kernel."""

N_CODES = 256
GAP = np.int64(255)
"""Code of a missing value."""
ALL_VALUES = np.int64(254)
"""The edge that every value is below, and no gap."""

COUNT_BITS = np.int64(28)
COUNT_MASK = np.int64((1 << 28) - 1)

# Columns of `TreeArrays.nodes`, beside `FEATURE` and `LEFT` of trees of all kinds: a node's split
# (-1 in a leaf), its left child (the right one is the next), its candidates, and which won.
EDGE, GAPS_LEFT, FIRST, N_CANDIDATES, BEST, DEPTH = 1, 2, 4, 5, 6, 7
N_FIELDS = 8


class Bins(NamedTuple):
    """The features as codes."""

    # (n_rows, n_features); how many edges are below a value; `GAP` for NaN. Of a categorical
    # feature the place of the edge that equals it; the number of edges where none does.
    codes: NDArray[np.uint8]
    sizes: Ints  # (n_features,); number of edges
    # (n_features, n_edges_at_most + 1); of the edges, and of the candidate that divides gaps from
    # values
    hashes: Words
    categorical: Flags  # (n_features,)


class BoostingRules(NamedTuple):
    """What the parameters come to."""

    min_leaf: int
    max_depth: int
    sample: int
    max_leaves: int  # 0 for any number. Otherwise the node with the best split is split first.
    l2: float  # in units of the Hessian's codes
    offset: float  # what is added to every gain, so that those that are noise are much alike
    step: float  # units of a leaf's value that one unit of gradient by one of Hessian makes
    most: int  # largest value of a leaf


class TreeArrays(NamedTuple):
    """One tree, with what a deletion needs."""

    nodes: Ints32  # (n_nodes, N_FIELDS)
    keys: Words  # (n_nodes,); from which a node's draws come
    sums: Ints  # (n_nodes, 2); of the pairs of a node's records
    scores: Floats  # (n_nodes,); of a node's best candidate; 0 if it has none
    values: Ints32  # (n_nodes,); what a leaf adds to the predictions, in units
    tried: Ints32  # (n_candidates, 2); feature and edge of each candidate
    lefts: Ints  # (n_candidates, 2); sums of the pairs on its left, without gaps
    factors: Floats  # (n_candidates,); drawn for it


class BoostingScratch(NamedTuple):
    """Memory that trees are grown in."""

    # rows, right: (n_records,)
    rows: Ints32
    right: Ints32
    sums: Ints  # (n_slots, n_features, N_CODES, 2); sums of pairs by code, of nodes that wait
    # low, high: (n_slots, n_features); candidates of such a node are edges from `low` on, below
    # `high`
    low: Ints
    high: Ints
    gaps: Flags  # (n_features,); whether any record of the tree has a gap
    waiting: Ints  # (n_slots + 2, 4); nodes that may be split: number, first and last row, slot
    hashes: Words  # (N_CODES,)
    lowest: Words  # (sample,)
