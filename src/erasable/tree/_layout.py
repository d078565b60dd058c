"""The layout of trees in memory: arrays that the kernels share, and names of their columns.

None of it is the model: which slot a node has, and which slots are free, depends on the deletions
there were. What the model is, `erasable.tree._flat_kernels` reads off in an order of its own.
"""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from erasable.core.arrays import Floats, Ints, Ints32, Words

Split: TypeAlias = tuple[Any, Any, Any]
"""Feature, code and score; the feature is -1 for none."""

# Columns of `GrowingTree.nodes`.
FEATURE, CODE, NEXT, LEFT, START, CAPACITY, COUNT, CACHE, DIRTY = range(9)
N_FIELDS = 9

# Places in `GrowingTree.counters`: node slots used, pairs of them that are free again, slots of the
# cache used, and free again, and how many nodes wanted one in vain;
# and up to how many records a node wants none.
USED, FREE, BUSY, FREE_BUSY, WANTED, UPTO = range(6)
N_COUNTERS = 6

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
BLOCK = 1024
"""So many records of a larger one are looked at together, which stay in the processor's cache."""


class TreeRules(NamedTuple):
    """What decides whether and how a node is split; numbers as the kernels take them.

    Attributes
    ----------
    criterion : int
        `GINI`, `ENTROPY` or `SQUARES`.
    min_split, min_leaf : int
        Records a node needs to be split, and each of its parts to exist.
    max_depth : int
    max_features : int
        Features that are looked at in a node.
    sample : int
        Distinct values that are drawn for each: one more than the thresholds that are tried.
    min_decrease : float
        Impurity decrease that a split needs, as a share of the whole tree's weight.
    scale : float
        What a squared difference of two sums' means is multiplied with: the grid's quantum squared.
    weighted : bool
        Whether records have weights,
    unit : int
        which count in ``2**unit``.
    """

    criterion: int
    min_split: int
    min_leaf: int
    max_depth: int
    max_features: int
    sample: int
    min_decrease: float
    scale: float
    weighted: bool = False
    unit: int = 0


class NodeCandidates(NamedTuple):
    """What a feature offers to a node: values drawn, and the counts there.

    Attributes
    ----------
    codes : ndarray of shape (sample,), int32
        Codes of the values drawn, ascending.
    counts : ndarray of shape (sample, 2), int32
        How many records have each value, and how many at most it.
    lefts : ndarray of shape (sample, n_stats), int64
        Stats of the latter.
    """

    codes: Ints32
    counts: Ints32
    lefts: Ints


class TreeRecords(NamedTuple):
    """The records as all trees see them.

    Attributes
    ----------
    packed : ndarray of shape (n_rows, n_features + 1), uint64
        Of every value its hash, in the upper 32 bits, and its code (`erasable.tree._codes`).
        Behind these the record's target. All of a record side by side: a small node, of which
        every record is far from the next, finds them where its parent has read before.
    n_values : ndarray of shape (n_features,), int64
        Codes are less than this.
    names : ndarray of shape (n_features,), uint64
        Keys of the features' names.
    ranks : ndarray of shape (n_features,), int64
        Places of the features among their sorted names, by which ties are broken.
    y : ndarray of shape (n_rows,), int64
        Class, or target on the grid in quanta: the last column of `packed`.
    class_weight : ndarray of shape (n_classes,), float64
        Empty where all classes weigh the same.
    by_column : ndarray of shape (n_rows, n_features + 1), uint64
        The same as `packed`, but all of a column side by side: a large node, which has most
        records, reads a column forwards. It is there while many trees of many records are grown;
        otherwise it has one row, and is not asked.
    units : ndarray of shape (n_rows,), int64
        Weights of the records, in ``2**Rules.unit``; empty where they have none.
    """

    packed: Words
    n_values: Ints
    names: Words
    ranks: Ints
    y: Ints
    class_weight: Floats
    by_column: Words
    units: Ints


class GrowingTree(NamedTuple):
    """One tree.

    Attributes
    ----------
    nodes : ndarray of shape (n_slots, 9), int32
        Feature (-1 in a leaf), code of the largest value that goes to the left, and of the
        smallest that goes to the right; slot of the left child, the right one has the next; where
        the node's rows start, and how many places they have; how many there are; slot in the
        cache, or -1; whether it has changed since it was last hashed.
    stats : ndarray of shape (n_slots, n_stats), int64
        Weight of each class; or of all records, and their sum.
    gains : ndarray of shape (n_slots,), float64
        Of leaves that gain too little by a split: how much. Empty where all gains are enough.
    rows : ndarray of shape (n_bag,), uint32
        Rows of the tree's records, and how often each is in the bag, those of each node side by
        side.
    free : ndarray of int32
        Pairs of slots that are free.
    counters : ndarray of shape (6,), int64
    features : ndarray of shape (n_kept, max_features), int32
        Of nodes whose candidates are kept: the features that are looked at,
    found : ndarray of shape (n_kept, max_features, 3), int32
        how many values of each were drawn, the code of the last of them, and its draw,
    codes : ndarray of shape (n_kept, max_features, sample), int32
        their codes, ascending,
    counts : ndarray of shape (n_kept, max_features, sample, 2), int32
        how many records have the value, and how many have at most it,
    lefts : ndarray of shape (n_kept, max_features, sample, n_stats), int64
        and the stats of the latter.
    free_kept : ndarray of int32
        Slots of these that are free.
    """

    nodes: Ints32
    stats: Ints
    gains: Floats
    rows: NDArray[np.uint32]
    free: Ints32
    counters: Ints
    features: Ints32
    found: Ints32
    codes: Ints32
    counts: Ints32
    lefts: Ints
    free_kept: Ints32


class TreeScratch(NamedTuple):
    """Room in which one tree at a time is worked on; nothing in it outlives a call.

    Attributes
    ----------
    rows, y, weights : ndarray of shape (n,), int64
        Records of the node at hand.
    codes : ndarray of shape (n,), int32
        Their codes in a feature.
    hashes, bins : ndarray of shape (BLOCK,), uint32 and int32
        Of some of them: hashes of their values, and between which candidates their codes lie.
    bounds : ndarray of shape (sample + 4,), int32
        Codes of the candidates, and behind them some that are larger than any.
    tallies : ndarray of shape (2, 2 * sample + 1, n_stats + 1), int64
        What is counted between candidates, by every other record; the last is the number of
        records, where these have weights.
    side : ndarray of shape (n,), uint32
        Rows that go to the right.
    histogram : ndarray of shape (HISTOGRAM, n_stats), int64
    sizes : ndarray of shape (HISTOGRAM,), int64
    heads : ndarray of shape (HISTOGRAM,), uint64
    drawn : ndarray of shape (sample,), uint64
        Values drawn so far, ascending by priority.
    code : ndarray of shape (sample,), int32
    tally : ndarray of shape (sample, 2), int32
    left : ndarray of shape (sample, n_stats), int64
        As in `GrowingTree`, for one feature.
    sorted : ndarray of shape (SMALL,), uint64
        Codes of few records, and which of these have them.
    races : ndarray of shape (n_features,), uint64
    order : ndarray of shape (n_features,), int64
        The features by their draws.
    stack : ndarray of shape (n,), int64
        Nodes that wait to be cleared, or to be laid out.
    calls : ndarray of shape (n, 4), int64
    call_keys, call_constants : ndarray of shape (n,), uint64
        Nodes that wait to decide (see `erasable.tree._update_kernels.update_tree`); their keys;
        and bits for those of the first 64 features that are known to be constant in them.
    """

    rows: Ints
    y: Ints
    weights: Ints
    codes: Ints32
    hashes: NDArray[np.uint32]
    bins: Ints32
    bounds: Ints32
    tallies: Ints
    side: NDArray[np.uint32]
    histogram: Ints
    sizes: Ints
    heads: Words
    drawn: Words
    code: Ints32
    tally: Ints32
    left: Ints
    sorted: Words
    races: Words
    order: Ints
    stack: Ints
    calls: Ints
    call_keys: Words
    call_constants: Words


def beside(n_columns: int, n_rows: int) -> Words:
    """Allocate `TreeRecords.by_column`, not contiguous: kernels know one type of column."""
    return np.zeros((n_columns, n_rows + 1), dtype=np.uint64)[:, :n_rows].T  # not all is written


def work_for(n_rows: int, n_features: int, n_stats: int, sample: int) -> TreeScratch:
    """Make room for trees of some size; pages that are not touched cost nothing."""
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
        sorted=np.empty(SMALL, dtype=np.uint64),
        races=np.empty(n_features, dtype=np.uint64),
        order=np.empty(n_features, dtype=np.int64),
        stack=np.empty(n_rows + 2, dtype=np.int64),
        calls=np.empty((n_rows + 2, 4), dtype=np.int64),
        call_keys=np.empty(n_rows + 2, dtype=np.uint64),
        call_constants=np.empty(n_rows + 2, dtype=np.uint64),
    )
