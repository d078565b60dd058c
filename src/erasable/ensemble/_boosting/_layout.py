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
MOST_EDGES = 254

COUNT_BITS = np.int64(28)
COUNT_MASK = np.int64((1 << 28) - 1)

FEATURE, EDGE, GAPS_LEFT, LEFT, FIRST, N_CANDIDATES, BEST, DEPTH = range(8)
N_FIELDS = 8
"""Of a node: its split (-1 in a leaf), its left child (the right one is the next), its candidates,
and which of them won."""


class Bins(NamedTuple):
    """The features as codes.

    Attributes
    ----------
    codes : ndarray of shape (n_rows, n_features), uint8
        How many edges are below a value; `GAP` for NaN. Of a categorical feature the place of the
        edge that equals it; the number of edges where none does.
    sizes : ndarray of shape (n_features,), int64
        Number of edges.
    hashes : ndarray of shape (n_features, n_edges_at_most + 1), uint64
        Of the edges, and of the candidate that divides gaps from values.
    categorical : ndarray of shape (n_features,), bool
    """

    codes: NDArray[np.uint8]
    sizes: Ints
    hashes: Words
    categorical: Flags


class BoostingRules(NamedTuple):
    """What the parameters come to.

    Attributes
    ----------
    min_leaf, max_depth, sample : int
    max_leaves : int
        0 for any number. Otherwise the node with the best split is split first.
    l2 : float
        In units of the Hessian's codes.
    offset : float
        What is added to every gain, so that those that are noise are much alike.
    step : float
        Units of a leaf's value that one unit of gradient by one of Hessian makes.
    most : int
        Largest value of a leaf.
    """

    min_leaf: int
    max_depth: int
    sample: int
    max_leaves: int
    l2: float
    offset: float
    step: float
    most: int


class TreeArrays(NamedTuple):
    """One tree, with what a deletion needs.

    Attributes
    ----------
    nodes : ndarray of shape (n_nodes, N_FIELDS), int32
    keys : ndarray of shape (n_nodes,), uint64
        From which a node's draws come.
    sums : ndarray of shape (n_nodes, 2), int64
        Of the pairs of a node's records.
    scores : ndarray of shape (n_nodes,), float64
        Of a node's best candidate; 0 if it has none.
    values : ndarray of shape (n_nodes,), int32
        What a leaf adds to the predictions, in units.
    tried : ndarray of shape (n_candidates, 2), int32
        Feature and edge of each candidate.
    lefts : ndarray of shape (n_candidates, 2), int64
        Sums of the pairs on its left, without gaps.
    factors : ndarray of shape (n_candidates,), float64
        Drawn for it.
    """

    nodes: Ints32
    keys: Words
    sums: Ints
    scores: Floats
    values: Ints32
    tried: Ints32
    lefts: Ints
    factors: Floats


class BoostingScratch(NamedTuple):
    """Memory that trees are grown in.

    Attributes
    ----------
    rows, right : ndarray of shape (n_records,), int32
    sums : ndarray of shape (n_slots, n_features, N_CODES, 2), int64
        Sums of pairs by code, of nodes that wait.
    low, high : ndarray of shape (n_slots, n_features), int64
        Candidates of such a node are edges from `low` on, below `high`.
    waiting : ndarray of shape (n_slots + 2, 4), int64
        Nodes that may be split: number, first and last row, slot.
    hashes : ndarray of shape (N_CODES,), uint64
    lowest : ndarray of shape (sample,), uint64
    """

    rows: Ints32
    right: Ints32
    sums: Ints
    low: Ints
    high: Ints
    waiting: Ints
    hashes: Words
    lowest: Words
