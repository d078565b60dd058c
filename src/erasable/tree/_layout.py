"""The layout of trees in memory: arrays that the kernels share, and names of their columns.

Slots of nodes depend on past deletions and are no part of the model, whose order is that of
`erasable.tree._flat_kernels`.
"""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from erasable.core.arrays import Floats, Ints, Ints32, Words

Split: TypeAlias = tuple[Any, Any, Any]
"""Feature, code and score; the feature is -1 for none.

The side of gaps is in the upper 32 bits of the code.
"""

# Columns of `GrowingTree.nodes`.
FEATURE, CODE, NEXT, LEFT, START, CAPACITY, COUNT, CACHE, DIRTY, GAP_SIDE = range(10)
N_FIELDS = 10

# Places in `GrowingTree.counters`: node slots used, pairs of them that are free again, slots of the
# cache used, and free again, and how many nodes wanted one in vain;
# and up to how many records a node wants none.
USED, FREE, BUSY, FREE_BUSY, WANTED, UPTO = range(6)
N_COUNTERS = 6

GAP = 2**31 - 2
"""Code of a missing value, larger than all others."""
ALL_VALUES = 2**31 - 3
"""Code that no value is above: of a split that divides the gaps from all values."""
ANY_VALUE = 1.7976931348623157e308
"""Threshold of such a split: the largest number."""
NO_GAPS, GAPS_RIGHT, GAPS_LEFT = range(3)
"""Sides of gaps in a split; the first where none of the node's records has one in its feature.

The last is by how much the code of a gap is moved on a circle to come before all others.
"""
CIRCLE = 2**31 - 1
"""Bits of a place on this circle."""

GINI, ENTROPY, SQUARES = range(3)
"""Criteria; the last is a regression's."""

ROW_BITS = 27
"""Bits of a row's number in `GrowingTree.rows`; those above say how often it is in the bag."""
NONE = 0xFFFFFFFF
"""What stands in `GrowingTree.rows` in the place of a deleted row."""
NO_DEPTH = 2**31 - 1
NOTHING = 2.0**-46
"""Where all targets are equal, a split gains at most so much, in quanta squared, for each weight:
both means are quotients of rounded numbers, and differ by 4 units in the last of 53 digits at most.
"""
KEPT_ABOVE = 256
"""Nodes with more records keep the counts of their candidates between deletions."""
KEPT_BYTES = 256
"""If counts take more than about this for each record of a tree, only larger nodes keep them."""
HISTOGRAM = 1024
"""Columns of at most so many values are counted value by value."""
SMALL = 24
"""Nodes of at most so many records sort them."""
WEIGHT_BITS = 16
"""The largest weight of a record is between ``2**15`` and ``2**16`` units."""
BLOCK = 1024
"""So many records of a larger one are looked at together, which stay in the processor's cache."""


class TreeRules(NamedTuple):
    """What decides whether and how a node is split; numbers as the kernels take them."""

    criterion: int  # `GINI`, `ENTROPY` or `SQUARES`
    # records a node needs to be split, and each of its parts to exist
    min_split: int
    min_leaf: int
    max_depth: int
    max_features: int  # features that are looked at in a node
    # distinct values that are drawn for each: one more than the thresholds that are tried
    sample: int
    # impurity decrease that a split needs, as a share of the whole tree's weight
    min_decrease: float
    # what a squared difference of two sums' means is multiplied with: the grid's quantum squared
    scale: float
    weighted: bool = False  # whether records have weights
    unit: int = 0  # weights count in ``2**unit``


class NodeCandidates(NamedTuple):
    """The candidates of a feature in a node: values drawn, and the counts there."""

    codes: Ints32  # (sample,); codes of the values drawn, ascending
    counts: Ints32  # (sample, 2); how many records have each value, and how many at most it
    lefts: Ints  # (sample, n_stats); stats of the latter
    # (n_stats + 1,); stats of the records without a value, and how many there are; anything where
    # the feature has no gaps
    gaps: Ints


class TreeRecords(NamedTuple):
    """The records as all trees see them."""

    # (n_rows, n_features + 1); of every value its hash, in the upper 32 bits, and its code
    # (`erasable.tree._codes`). Behind these the record's target. All of a record side by side: a
    # small node, of which every record is far from the next, finds them where its parent has read
    # before.
    packed: Words
    n_values: Ints  # (n_features,); codes are less than this
    n_gaps: Ints  # (n_features,); live records without a value
    names: Words  # (n_features,); keys of the features' names
    # (n_features,); places of the features among their sorted names, by which ties are broken
    ranks: Ints
    y: Ints  # (n_rows,); class, or target on the grid in quanta: the last column of `packed`
    class_weight: Floats  # (n_classes,); empty where all classes weigh the same
    # (n_rows, n_features + 1); the same as `packed`, but all of a column side by side: a large
    # node, which has most records, reads a column forwards. It is there while many trees of many
    # records are grown; otherwise it has one row, and is not read.
    by_column: Words
    # (n_rows,); weights of the records, in ``2**TreeRules.unit``; empty where they have none
    units: Ints


class GrowingTree(NamedTuple):
    """One tree: of its records, a node keeps their row numbers and the sums of their targets.

    Large nodes keep the split candidates they have drawn, too. Values are in `TreeRecords`.
    """

    # (n_slots, 10); feature (-1 in a leaf), code of the largest value that goes to the left, and of
    # the smallest that goes to the right; slot of the left child, the right one has the next; where
    # the node's rows start, and how many places they have; how many there are; slot in the cache,
    # or -1; whether it has changed since it was last hashed; side of gaps
    nodes: Ints32
    stats: Ints  # (n_slots, n_stats); weight of each class; or of all records, and their sum
    # (n_slots,); of leaves that gain too little by a split: how much. Empty where all gains are
    # enough.
    gains: Floats
    # (n_bag,); rows of the tree's records, and how often each is in the bag, those of each node
    # side by side
    rows: NDArray[np.uint32]
    free: Ints32  # pairs of slots that are free
    counters: Ints  # (6,)
    # Of nodes whose candidates are kept, `n_kept` at most:
    # (n_kept, max_features); the features that are looked at
    features: Ints32
    # (n_kept, max_features, 3); how many values of each were drawn, the code of the last of them,
    # and its draw
    found: Ints32
    codes: Ints32  # (n_kept, max_features, sample); codes of these values, ascending
    # (n_kept, max_features, sample, 2); how many records have each value, and how many at most it
    counts: Ints32
    lefts: Ints  # (n_kept, max_features, sample, n_stats); stats of the latter
    gaps: Ints  # (n_kept, max_features, n_stats + 1); see `NodeCandidates`
    free_kept: Ints32  # free indices of these arrays


class TreeScratch(NamedTuple):
    """Scratch memory for one tree at a time; nothing in it outlives a call."""

    # rows, y, weights: (n,); records of the node at hand
    rows: Ints
    y: Ints
    weights: Ints
    codes: Ints32  # (n,); their codes in a feature
    # hashes, bins: (BLOCK,); of some of them: hashes of their values, and between which candidates
    # their codes lie
    hashes: NDArray[np.uint32]
    bins: Ints32
    # (sample + 4,); codes of the candidates, and behind them some that are larger than any
    bounds: Ints32
    # (2, 2 * sample + 1, n_stats + 1); what is counted between candidates, by every other record;
    # the last is the number of records, where these have weights
    tallies: Ints
    side: NDArray[np.uint32]  # (n,); rows that go to the right
    histogram: Ints  # (HISTOGRAM, n_stats)
    sizes: Ints  # (HISTOGRAM,)
    heads: Words  # (HISTOGRAM,)
    drawn: Words  # (sample,); values drawn so far, ascending by priority
    # code, tally, left, gaps: as `codes`, `counts`, `lefts` and `gaps` of `GrowingTree`, for one
    # feature
    code: Ints32  # (sample,)
    tally: Ints32  # (sample, 2)
    left: Ints  # (sample, n_stats)
    gaps: Ints  # (n_stats + 1,)
    sums: Ints  # (n_stats,); stats of what a candidate sends to the left
    sorted: Words  # (SMALL,); codes of few records, and which of these have them
    races: Words  # (n_features,)
    order: Ints  # (n_features,); the features by their draws
    stack: Ints  # (n,); nodes that wait to be cleared, or to be laid out
    calls: Ints  # (n, 4); nodes that wait to decide, see `_update_kernels.update_tree`
    call_keys: Words  # (n,); keys of these nodes
    # (n,); bits for those of the first 64 features that are known to be constant in these nodes
    call_constants: Words


def beside(n_columns: int, n_rows: int) -> Words:
    """Allocate `TreeRecords.by_column`, not contiguous: kernels know one type of column."""
    return np.zeros((n_columns, n_rows + 1), dtype=np.uint64)[:, :n_rows].T  # not all is written


def work_for(n_rows: int, n_features: int, n_stats: int, sample: int) -> TreeScratch:
    """Allocate memory for trees of some size; pages that are not touched cost nothing."""
    return TreeScratch(
        rows=np.empty(n_rows, dtype=np.int64),
        y=np.empty(n_rows, dtype=np.int64),
        weights=np.empty(n_rows, dtype=np.int64),
        codes=np.empty(n_rows, dtype=np.int32),
        hashes=np.empty(BLOCK, dtype=np.uint32),
        bins=np.empty(BLOCK, dtype=np.int32),
        bounds=np.empty(sample + 4, dtype=np.int32),
        tallies=np.empty((2, 2 * sample + 1, n_stats + 1), dtype=np.int64),
        side=np.empty(n_rows, dtype=np.uint32),
        histogram=np.empty((HISTOGRAM, n_stats), dtype=np.int64),
        sizes=np.empty(HISTOGRAM, dtype=np.int64),
        heads=np.empty(HISTOGRAM, dtype=np.uint64),
        drawn=np.empty(sample, dtype=np.uint64),
        code=np.empty(sample, dtype=np.int32),
        tally=np.empty((sample, 2), dtype=np.int32),
        left=np.empty((sample, n_stats), dtype=np.int64),
        gaps=np.zeros(n_stats + 1, dtype=np.int64),
        sums=np.empty(n_stats, dtype=np.int64),
        sorted=np.empty(SMALL, dtype=np.uint64),
        races=np.empty(n_features, dtype=np.uint64),
        order=np.empty(n_features, dtype=np.int64),
        stack=np.empty(n_rows + 2, dtype=np.int64),
        calls=np.empty((n_rows + 2, 4), dtype=np.int64),
        call_keys=np.empty(n_rows + 2, dtype=np.uint64),
        call_constants=np.empty(n_rows + 2, dtype=np.uint64),
    )
