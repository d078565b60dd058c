"""One tree in memory: grown from rows, and kept up to date as rows leave it or come to it."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import Any, NamedTuple, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from erasable.core.arrays import Floats, Ints, Ints32, Words
from erasable.core.digest import LeafHash
from erasable.core.persistent import Persistent
from erasable.tree._codes import ColumnCodes
from erasable.tree._columns import TreeColumns
from erasable.tree._flat import HASH, FlatTree, hashed_weight, in_preorder, told_sides, top_hash
from erasable.tree._flat_kernels import find_thresholds, restore
from erasable.tree._layout import (
    BUSY,
    CACHE,
    CAPACITY,
    COUNT,
    DIRTY,
    FREE,
    GAP_SIDE,
    KEPT_ABOVE,
    KEPT_BYTES,
    LEFT,
    N_COUNTERS,
    N_FIELDS,
    NONE,
    ROW_BITS,
    SQUARES,
    UPTO,
    USED,
    WANTED,
    GrowingTree,
    TreeRecords,
    TreeRules,
    TreeScratch,
    work_for,
)
from erasable.tree._score_kernels import weight_of
from erasable.tree._update_kernels import (
    leaves_that_gain,
    put_rows_in,
    recode_tree,
    take_rows_out,
    update_tree,
)

Bag: TypeAlias = NDArray[np.uint32]
"""Rows and their weights, as in `GrowingTree.rows`."""


_ROW = np.uint32((1 << ROW_BITS) - 1)
_BITS = np.uint32(ROW_BITS)
_GROW, _EVALUATE = (0, 0), (-1, -1)
_NO_ROWS: Bag = np.empty(0, dtype=np.uint32)
_NO_NODES: Ints = np.empty((0, 2), dtype=np.int64)
_NO_KEYS: Words = np.empty(0, dtype=np.uint64)


NO_UNITS: Ints = np.empty(0, dtype=np.int64)
"""Weights of records that have none."""


class TreeInputs(NamedTuple):
    """What trees are grown from: the records, the rules, and memory for one tree at a time."""

    table: TreeRecords
    rules: TreeRules
    work: TreeScratch

    @property
    def n_stats(self) -> int:
        """Numbers that a leaf holds."""
        return int(self.work.left.shape[1])

    def totals(self, bag: Bag) -> Ints:
        """Sum the stats of the records in a bag."""
        table, squares = self.table, self.rules.criterion == SQUARES
        rows, weights = bag & _ROW, (bag >> _BITS).astype(np.int64)
        if table.units.size:
            weights *= table.units[rows]
        totals = np.zeros(self.n_stats, dtype=np.int64)
        if squares:
            totals[0] = weights.sum()
            totals[1] = (weights * table.y[rows]).sum()
        else:
            np.add.at(totals, table.y[rows], weights)
        return totals


class PerThread(threading.local):
    """The inputs of the trees that a thread grows, with memory of its own."""

    def __init__(self, table: TreeRecords, rules: TreeRules, n_stats: int) -> None:
        work = work_for(table.y.size, table.names.size, n_stats, rules.sample)
        self.inputs = TreeInputs(table, rules, work)


def bare(bag: Bag, rules: TreeRules, n_stats: int) -> GrowingTree:
    """Return a tree of one node, with room for all that may grow."""
    n = bag.size
    q, s = rules.max_features, rules.sample
    # There are about 3 n / m nodes of more than m records, in trees as they grow.
    upto = max(KEPT_ABOVE, 3 * q * s * (12 + 8 * n_stats) // KEPT_BYTES)
    slots, kept = 2 * n + 2, 4 * (n // upto) + 1 if n > upto else 0
    growing = GrowingTree(
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
        gaps=np.zeros((kept, q, n_stats + 1), dtype=np.int64),
        free_kept=np.zeros(kept, dtype=np.int32),
    )
    growing.counters[USED], growing.counters[UPTO] = 1, upto
    growing.nodes[0, CAPACITY], growing.nodes[0, CACHE] = n, -1
    growing.nodes[0, : LEFT + 1] = -1
    return growing


def _resized(array: NDArray[Any], size: int, used: int, fill: float = 0.0) -> NDArray[Any]:
    """Copy the first lines of an array into one of another length."""
    copy = np.zeros((size, *array.shape[1:]), dtype=array.dtype)  # untouched pages cost nothing
    if fill:
        copy[:] = fill
    copy[:used] = array[:used]
    return copy


def with_slots(growing: GrowingTree, slots: int) -> GrowingTree:
    """Copy a tree into arrays with another number of slots for nodes."""
    used = int(growing.counters[USED])
    return growing._replace(
        nodes=_resized(growing.nodes, slots, used),
        stats=_resized(growing.stats, slots, used),
        gains=_resized(growing.gains, slots if growing.gains.size else 0, used, -np.inf),
        free=_resized(growing.free, slots // 2 + 1, int(growing.counters[FREE])),
    )


def with_kept(growing: GrowingTree, kept: int) -> GrowingTree:
    """Copy a tree into arrays with another number of slots for counts that are kept."""
    names = ("features", "found", "codes", "counts", "lefts", "gaps", "free_kept")
    busy = int(growing.counters[BUSY])
    return growing._replace(
        **{name: _resized(getattr(growing, name), kept, busy) for name in names}
    )


def with_places(growing: GrowingTree, more: int) -> GrowingTree:
    """Copy a tree's rows into an array with places for some more, and for others to come."""
    n = growing.rows.size
    rows = np.full(n + more + n // 8 + 16, NONE, dtype=np.uint32)
    rows[:n] = growing.rows
    growing.nodes[0, CAPACITY] = rows.size
    return growing._replace(rows=rows)


def bag_of(rows: Ints, times: NDArray[np.uint8] | None = None, units: Ints = NO_UNITS) -> Bag:
    """Pack rows and how often each is in a bag, once by default, without those that are not.

    Rows that weigh 0 are in none; `units` are the weights of all rows, if these have any.

    >>> bag_of(np.array([3, 5, 9]), np.array([1, 0, 2], dtype=np.uint8)) & _ROW
    array([3, 9], dtype=uint32)
    """
    if times is None:
        times = np.ones(rows.size, dtype=np.uint8)
    within = times > 0
    if units.size:
        within &= units[rows] > 0
    upper: Bag = times[within].astype(np.uint32) << _BITS
    return rows[within].astype(np.uint32) | upper


def bag_rows(bag: Bag) -> Bag:
    """Return the rows of a bag."""
    return bag & _ROW


def moved(bag: Bag, places: Ints) -> Bag:
    """Return a bag of the same records in a table where they have other places.

    >>> bag = bag_of(np.array([3, 9]), np.array([1, 2], dtype=np.uint8))
    >>> bag_rows(moved(bag, np.arange(10) - 3))
    array([0, 6], dtype=uint32)
    """
    rows: Bag = places[bag & _ROW].astype(np.uint32)
    return rows | (bag & ~_ROW)


class Units(NamedTuple):
    """Hashes of the subtrees that are hashed one by one."""

    nodes: Ints  # (n_units,); their roots
    hashes: NDArray[np.uint8]  # (n_units, 32)


_NO_UNITS = Units(np.empty(0, dtype=np.int64), np.empty((0, HASH), dtype=np.uint8))


@dataclass(eq=False, slots=True)
class UpdatableTree(Persistent):
    """A tree, an accelerator: what it is in the model, `flat` says."""

    growing: GrowingTree
    key: np.uint64  # from which all its draws come
    _flat: FlatTree | None = None
    _hash: LeafHash | None = None
    _units: Units = _NO_UNITS

    @classmethod
    def of(
        cls, bag: Bag, key: np.uint64, inputs: TreeInputs, depth: int = 0,
        whole: float | None = None,
    ) -> Self:  # fmt: skip
        """Grow a tree from a bag that is not empty, or what is below a node of one.

        `whole` is the weight of all records of the tree, by default of those in the bag.
        """
        tree = cls(bare(bag, inputs.rules, inputs.n_stats), key)
        tree.grow(bag, inputs, depth, whole)
        return tree

    @classmethod
    def restored(
        cls, flat: FlatTree, bag: Bag, key: np.uint64, inputs: TreeInputs, columns: TreeColumns
    ) -> Self | None:
        """Lay a known tree out over its bag; None if it does not fit."""
        if flat.leaves.shape[1] != inputs.n_stats:
            return None
        tree = cls(bare(bag, inputs.rules, inputs.n_stats), key)
        return tree if tree.lay_out(flat, bag, inputs, columns) else None

    def grow(self, bag: Bag, inputs: TreeInputs, depth: int, whole: float | None) -> None:
        """Grow a bare tree; see `of`."""
        if whole is None:
            whole = self._weight_of(inputs.totals(bag), inputs)
        self._grow(np.array([[0, depth]], dtype=np.int64), np.array([self.key]), inputs, whole)
        self._resize_arrays()

    def lay_out(self, flat: FlatTree, bag: Bag, inputs: TreeInputs, columns: TreeColumns) -> bool:
        """Make of a bare tree a known one; tell whether that fits its bag."""
        table, rules, work = inputs
        codes = columns.codes_below(flat.features[flat.features >= 0], flat.thresholds)
        if not restore(
            self.growing, table, rules, work, columns.codes, flat.features, flat.thresholds, codes,
            flat.gap_sides, flat.leaves,
        ):  # fmt: skip
            return False
        self._resize_arrays()
        if not self.growing.gains.size:
            return True
        # What a leaf would gain is not in the state: each has to be asked.
        whole = self._weight_of(inputs.totals(bag), inputs)
        leaves, keys = self._leaves(-np.inf, whole, work)
        return not self._update(leaves, keys, _EVALUATE, inputs, whole)[3]

    # -- forgetting ----------------------------------------------------------------------------

    def remove(self, gone: Bag, live: NDArray[np.bool_], inputs: TreeInputs) -> tuple[int, int]:
        """Take rows out, where others stay; their values and targets are still in the table.

        Return how many nodes decided otherwise than before, and how many records were below them.
        """
        # One look at all rows is cheaper than many at a leaf each.
        every = 64 * gone.size > self.growing.rows.size
        take_rows_out(self.growing, inputs.table, gone, live, every)
        return self._decide_again(gone, -1, inputs)

    def add(self, come: Bag, inputs: TreeInputs) -> tuple[int, int]:
        """Take rows in, whose values and targets are in the table; see `remove`.

        Rules may not have a least decrease, which others may miss as the tree gets heavier.
        """
        table, _, work = inputs
        placed = put_rows_in(self.growing, table, work, come, 0)
        while placed < come.size:
            self.growing = with_places(self.growing, come.size - placed)
            placed = put_rows_in(self.growing, table, work, come, placed)
        return self._decide_again(come, 1, inputs)

    def _decide_again(self, some: Bag, sign: int, inputs: TreeInputs) -> tuple[int, int]:
        """Have the nodes decide that rows have left or come to, and grow what is to be grown."""
        growing = self.growing
        totals = growing.stats[0] + sign * inputs.totals(some)
        whole = self._weight_of(totals, inputs)
        root, key = np.zeros((1, 2), dtype=np.int64), np.array([self.key])
        pending, keys = np.empty((some.size, 2), np.int64), np.empty(some.size, np.uint64)
        report = self._update(root, key, (0, some.size), inputs, whole, some, sign, pending, keys)
        pending, keys = pending[: report[0]], keys[: report[0]]
        if growing.gains.size:
            # Others gain enough now, because the tree has got lighter.
            leaves, leaf_keys = self._leaves(inputs.rules.min_decrease, whole, inputs.work)
            if leaves.size:
                self._units = _NO_UNITS
                report[1] += leaf_keys.size
                report[2] += int(growing.nodes[leaves[:, 0], COUNT].sum())
                pending, keys = np.concatenate([pending, leaves]), np.append(keys, leaf_keys)
        if keys.size:
            self._grow(pending, keys, inputs, whole)
        self._resize_arrays()
        self._flat = self._hash = None
        return int(report[1]), int(report[2])

    def recode(self, codes: ColumnCodes, other: Ints32, columns: NDArray[np.bool_]) -> None:
        """Write the codes that values have now; see `erasable.tree._codes.spread`."""
        recode_tree(self.growing, codes, other, columns)

    def _leaves(self, least: float, whole: float, work: TreeScratch) -> tuple[Ints, Words]:
        """Return slots, depths and keys of leaves that gain at least some share of the whole."""
        n = self.growing.nodes.shape[0]
        found, keys = np.empty((n, 2), dtype=np.int64), np.empty(n, dtype=np.uint64)
        n = leaves_that_gain(self.growing, work, self.key, least, whole, found, keys)
        return found[:n], keys[:n]

    def _grow(self, clear: Ints, keys: Words, inputs: TreeInputs, whole: float) -> None:
        """Grow the tree below nodes that are clear."""
        self._make_room(2 * int(self.growing.nodes[clear[:, 0], CAPACITY].sum()))
        self._update(clear, keys, _GROW, inputs, whole)

    def _update(
        self, nodes: Ints, keys: Words, mode: tuple[int, int], inputs: TreeInputs, whole: float,
        some: Bag = _NO_ROWS, sign: int = -1, pending: Ints = _NO_NODES,
        pending_keys: Words = _NO_KEYS,
    ) -> Ints:  # fmt: skip
        """Have some nodes decide."""
        table, rules, work = inputs
        work.calls[: keys.size, :2] = nodes
        work.calls[: keys.size, 2:] = mode
        work.call_keys[: keys.size] = keys
        work.call_constants[: keys.size] = 0
        report = np.zeros(4, dtype=np.int64)
        update_tree(
            self.growing, table, rules, work, keys.size, whole, some, sign, pending, pending_keys,
            report,
        )  # fmt: skip
        return report

    def keep_classes(self, kept: NDArray[np.bool_]) -> None:
        """Drop classes of which no record is left."""
        growing = self.growing
        self.growing = growing._replace(
            stats=np.ascontiguousarray(growing.stats[:, kept]),
            lefts=np.ascontiguousarray(growing.lefts[..., kept]),
            gaps=np.ascontiguousarray(growing.gaps[..., np.append(kept, True)]),
        )
        self._flat = self._hash = None
        self._units = _NO_UNITS

    def _weight_of(self, totals: Ints, inputs: TreeInputs) -> float:
        """Weigh what is in the tree, where a gain is held against it."""
        if not self.growing.gains.size:
            return 1.0
        return float(weight_of(totals, inputs.rules, inputs.table.class_weight))

    # -- what it is ----------------------------------------------------------------------------

    def flat(self, columns: TreeColumns) -> FlatTree:
        """Return the tree as the model has it."""
        if self._flat is None:
            self._flat = self._flattened(0, columns)
        return self._flat

    def hash(self, columns: TreeColumns, rules: TreeRules) -> LeafHash:
        """Hash the tree; of its subtrees, only those that have changed since the last time."""
        if self._hash is None:
            n, regression = int(self.growing.counters[USED]), rules.criterion == SQUARES
            n_leaves = (n - 2 * int(self.growing.counters[FREE])) // 2 + 1
            limit = hashed_weight(self.growing.stats[0], n_leaves, rules)
            nodes = self.growing.nodes
            stats = self.growing.stats
            top, splits, units = in_preorder(nodes, stats, n, 0, limit, regression)
            units = units.copy()  # they are kept, and not what is behind them in memory
            changed = nodes[units, DIRTY] > 0
            self._units = self._hashed(units, changed, columns)
            nodes[units[changed], DIRTY] = 0  # only now: their hashes are kept
            self._hash = top_hash(
                top, self._thresholds(splits, columns), self._sides(splits), self._units.hashes
            )
        return self._hash

    def _hashed(self, nodes: Ints, changed: NDArray[np.bool_], columns: TreeColumns) -> Units:
        """Hash subtrees that have changed, or were not hashed before."""
        known = {node: place for place, node in enumerate(self._units.nodes.tolist())}
        found = np.empty((nodes.size, HASH), dtype=np.uint8)
        for place, (node, new) in enumerate(zip(nodes.tolist(), changed.tolist(), strict=True)):
            before = None if new else known.get(node)
            if before is None:
                digest = self._flattened(node, columns).whole_hash()
                found[place] = np.frombuffer(digest, dtype=np.uint8)
            else:
                found[place] = self._units.hashes[before]
        return Units(nodes, found)

    def _kept_attributes(self) -> dict[str, Any]:
        """Leave out what takes longer to write than to make again; see `core.mapped.objects`."""
        return {
            "growing": self.growing,
            "key": self.key,
            "_hash": self._hash,
            "_units": self._units,
        }

    def _after_reading(self) -> None:
        self._flat = None

    def _flattened(self, node: int, columns: TreeColumns) -> FlatTree:
        growing = self.growing
        most = min(2 * int(growing.nodes[node, COUNT]), int(growing.counters[USED]))
        features, splits, ends = in_preorder(growing.nodes, growing.stats, most, node)
        return FlatTree(
            features, self._thresholds(splits, columns), growing.stats[ends], self._sides(splits)
        )

    def _sides(self, slots: Ints) -> NDArray[np.uint8]:
        """Return the sides of gaps in some nodes."""
        return told_sides(self.growing.nodes[slots, GAP_SIDE].astype(np.uint8))

    def _thresholds(self, slots: Ints, columns: TreeColumns) -> Floats:
        """Return the thresholds of some nodes."""
        thresholds = np.empty(slots.size)
        find_thresholds(self.growing.nodes, columns.codes, slots, thresholds)
        return thresholds

    @property
    def n_records(self) -> int:
        """Number of records it has learned from."""
        return int(self.growing.nodes[0, COUNT])

    # -- room ----------------------------------------------------------------------------------

    def _make_room(self, more: int) -> None:
        growing = self.growing
        free = (
            2 * int(growing.counters[FREE]) + growing.nodes.shape[0] - int(growing.counters[USED])
        )
        if free < more:
            self.growing = with_slots(growing, growing.nodes.shape[0] + more)

    def _resize_arrays(self) -> None:
        """Return room that was not needed, and make some where nodes wanted to keep counts."""
        growing = self.growing
        used = int(growing.counters[USED])
        roomy = used + used // 8 + 64
        if growing.nodes.shape[0] > 2 * roomy:
            self.growing = growing = with_slots(growing, roomy)
        kept, busy = growing.features.shape[0], int(growing.counters[BUSY])
        wanted = int(growing.counters[WANTED])
        if wanted or kept > busy + busy // 2 + 8:
            self.growing = with_kept(growing, busy + wanted + busy // 8 + 2)
        self.growing.counters[WANTED] = 0
