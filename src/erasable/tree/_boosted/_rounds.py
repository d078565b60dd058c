"""The rounds of boosting, with records that leave and others that come.

Round t is a function of the predictions after round t - 1, of the targets, and of the codes and
keys. A record that leaves or comes is followed through the rounds. As long as no split and no leaf
changes, all other predictions stay, and so do all later trees but for the record itself. From the
first round that changes on, rounds are learned again.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from erasable.core.arrays import Floats, Ints, Ints32
from erasable.core.persistent import Persistent, attributes_of
from erasable.core.row_arrays import padded
from erasable.core.tape import Tape
from erasable.tree._boosted._bins import Binned
from erasable.tree._boosted._decide_kernels import factors_of
from erasable.tree._boosted._flat import FlatBoostedTree
from erasable.tree._boosted._grow_kernels import grow
from erasable.tree._boosted._layout import (
    N_CODES,
    N_FIELDS,
    BoostingRules,
    BoostingScratch,
    TreeArrays,
)
from erasable.tree._boosted._loss_kernels import Given, losses_of, pairs_of
from erasable.tree._boosted._losses import Loss
from erasable.tree._boosted._walk_kernels import OFTEN, SPLITS, add_values, move_rows


def empty_tree(n_nodes: int, n_candidates: int) -> TreeArrays:
    """Return arrays for so many nodes and candidates.

    >>> empty_tree(3, 5).lefts.shape
    (5, 2)
    """
    return TreeArrays(
        nodes=np.zeros((n_nodes, N_FIELDS), dtype=np.int32),
        keys=np.zeros(n_nodes, dtype=np.uint64),
        sums=np.zeros((n_nodes, 2), dtype=np.int64),
        scores=np.zeros(n_nodes),
        values=np.zeros(n_nodes, dtype=np.int32),
        tried=np.zeros((n_candidates, 2), dtype=np.int32),
        lefts=np.zeros((n_candidates, 2), dtype=np.int64),
        factors=np.zeros(n_candidates),
    )


def part_of(tree: TreeArrays, start: Sequence[int], end: Sequence[int]) -> TreeArrays:
    """Return views of what is between some numbers of nodes and of candidates."""
    own, tries = slice(start[0], end[0]), slice(start[1], end[1])
    return TreeArrays(
        nodes=tree.nodes[own],
        keys=tree.keys[own],
        sums=tree.sums[own],
        scores=tree.scores[own],
        values=tree.values[own],
        tried=tree.tried[tries],
        lefts=tree.lefts[tries],
        factors=tree.factors[tries],
    )


def _copy(tree: TreeArrays, to: TreeArrays) -> None:
    arrays: Iterable[tuple[NDArray[Any], NDArray[Any]]] = zip(tree, to, strict=True)
    for each, other in arrays:
        other[:] = each


@dataclass(eq=False, slots=True)
class Trees(Persistent):
    """Trees in order; of all but the last ones, which are cut off, everything stays where it is."""

    # as the model has them; None of those that nobody has asked for since they changed
    flats: list[FlatBoostedTree | None] = field(default_factory=list)
    _all: TreeArrays = field(default_factory=lambda: empty_tree(0, 0))
    _ends: Ints = field(default_factory=lambda: np.zeros((1, 2), dtype=np.int64))
    _high: tuple[int, int] = (0, 0)

    def __len__(self) -> int:
        """Return the number of trees."""
        return len(self.flats)

    @property
    def end_to_end(self) -> tuple[TreeArrays, Ints]:
        """Arrays of all trees, and where each ends: numbers of nodes and of candidates before."""
        return self._all, self._ends[: len(self) + 1]

    def tree(self, i: int) -> TreeArrays:
        """Return one of the trees, of which each array is a view."""
        return part_of(self._all, *self._ends[i : i + 2].tolist())

    def copy(self, i: int) -> TreeArrays:
        """Return a copy of one of the trees."""
        return TreeArrays._make(each.copy() for each in self.tree(i))

    def append(self, tree: TreeArrays) -> None:
        """Copy a tree behind the others."""
        n = len(self)
        self._make_room(tree)
        self._ends[n + 1] = self._ends[n] + (tree.keys.size, tree.factors.size)
        self.flats.append(None)
        _copy(tree, self.tree(n))

    def cut(self, n: int) -> None:
        """Drop all trees but the first n."""
        self._high = self._highest()
        del self.flats[n:]

    def overwrite(self) -> None:
        """Overwrite what is left of trees that were dropped, and have no other in their place."""
        (a, c), (b, d) = self._ends[len(self)].tolist(), self._highest()
        for each in part_of(self._all, (a, c), (b, d)):
            each[...] = 0
        self._high = a, c

    def _highest(self) -> tuple[int, int]:
        nodes, tries = self._ends[len(self)].tolist()
        return max(nodes, self._high[0]), max(tries, self._high[1])

    def _make_room(self, tree: TreeArrays) -> None:
        n = len(self)
        nodes, tries = self._ends[n].tolist()
        if n + 1 == len(self._ends):
            self._ends = np.concatenate([self._ends, np.zeros_like(self._ends)])
        wanted = nodes + tree.keys.size, tries + tree.factors.size
        if wanted[0] > self._all.keys.size or wanted[1] > self._all.factors.size:
            self._move(empty_tree(*(2 * most for most in wanted)))

    def _move(self, to: TreeArrays) -> None:
        ends = self._ends[len(self)].tolist()
        _copy(part_of(self._all, (0, 0), ends), part_of(to, (0, 0), ends))
        self._all, self._high = to, (0, 0)

    def _kept_attributes(self) -> dict[str, Any]:
        nodes, tries = self._ends[len(self)].tolist()
        if (nodes, tries) != (self._all.keys.size, self._all.factors.size):
            self._move(empty_tree(nodes, tries))
        return attributes_of(self)


NOISE = 0.3
"""Gains are multiplied by an exponential draw to the power of minus this."""
IGNORED, LEARNED, HELD_OUT = range(3)
"""What a row is for: nothing, to learn from, or to tell when to stop."""


class RoundParameters(NamedTuple):
    """The parameters of the rounds."""

    learning_rate: float
    max_iter: int
    max_depth: int
    max_leaves: int
    min_leaf: int
    n_thresholds: int
    l2: float  # by the power of two above the largest weight
    # rounds without a smaller loss of the rows held out, after which it ends; 0 for no end
    patience: int
    tol: float  # what counts as smaller, of the loss of a row

    def rules(self, loss: Loss) -> BoostingRules:
        """Return the rules of trees."""
        return BoostingRules(
            self.min_leaf,
            self.max_depth,
            self.n_thresholds,
            self.max_leaves,
            self.l2 * loss.hessian_one,
            loss.offset,
            loss.step(self.learning_rate),
            loss.most(self.learning_rate),
        )


@cache
def _factors() -> Floats:
    return factors_of(NOISE)


@dataclass(eq=False)
class Boosted(Persistent):
    """What boosting has learned, an accelerator."""

    plan: RoundParameters
    loss: Loss
    given: Given
    binned: Binned
    use: NDArray[np.uint8]  # (n_rows,); `IGNORED`, `LEARNED` or `HELD_OUT`
    seed: int
    # round by round, in each of them one for each output
    trees: Trees = field(default_factory=Trees)
    # of the rows held out, at the start and after each round
    losses: list[int] = field(default_factory=list)
    # (n_rows, n_outputs); predictions before rounds 0, 4, 8, ...
    before: list[Ints32] = field(default_factory=list)

    # -- learning ------------------------------------------------------------------------------

    def learn(self, start: int = 0, kept: dict[int, TreeArrays] | None = None) -> None:
        """Learn all rounds from `start` on; of that round, the trees `kept` are known."""
        loss, plan = self.loss, self.plan
        if not loss.start.size:  # of one class
            return
        learned, held_out = self._rows(LEARNED), self._rows(HELD_OUT)
        raws = self._predictions(start)
        self._cut(start)
        if not start:
            self.losses = [losses_of(loss.tables, self.given, raws, held_out)]
        n_outputs, n_rows = raws.shape
        grower = _Grower(self.binned, plan.rules(loss), learned)
        pairs = np.empty((n_outputs, n_rows, 2), dtype=np.int64)
        for t in range(start, plan.max_iter):
            if self._ends(t):
                break
            if t % OFTEN == 0:
                self.before.append(raws.T.copy())
            known = kept if kept is not None and t == start else {}
            if len(known) < n_outputs:
                pairs_of(loss.tables, self.given, raws, learned, t, pairs)
            for k in range(n_outputs):
                if k in known:
                    grown = known[k]
                    add_values(self.binned.bins, grown, learned, raws[k])
                else:
                    grown = grower.grow(pairs[k], self._key(t, k), raws[k])
                add_values(self.binned.bins, grown, held_out, raws[k])
                self.trees.append(grown)
            self.losses.append(losses_of(loss.tables, self.given, raws, held_out))
        self.trees.overwrite()

    def _cut(self, n: int) -> None:
        """Drop all rounds but the first n."""
        self.trees.cut(n * self.loss.start.size)
        del self.losses[n + 1 :], self.before[-(-n // OFTEN) :]

    def _rows(self, use: int) -> Ints32:
        return np.flatnonzero(self.use == use).astype(np.int32)

    def _key(self, t: int, k: int) -> np.uint64:
        return np.uint64(Tape(self.seed).child("tree", t, k).seed)

    def _predictions(self, t: int) -> Ints32:
        """Return the predictions of all rows before a round."""
        n_outputs = self.loss.start.size
        known = min(t // OFTEN, len(self.before) - 1)
        if t == 0 or known < 0:
            raws = np.zeros((n_outputs, self.use.size), dtype=np.int32)
            raws[:] = self.loss.start[:, np.newaxis]
            return raws
        raws = np.array(self.before[known].T, order="C")
        rows = np.flatnonzero(self.use != IGNORED).astype(np.int32)
        for i in range(known * OFTEN * n_outputs, t * n_outputs):
            add_values(self.binned.bins, self.trees.tree(i), rows, raws[i % n_outputs])
        return raws

    def _ends(self, t: int) -> bool:
        """Tell whether no round follows on the first t, as the loss gets no smaller."""
        patience, n = self.plan.patience, self._n_held_out
        if not patience or t < patience or not n:
            return False
        wanted = self.losses[t - patience] - self.plan.tol * self.loss.loss_one * n
        return all(lost >= wanted for lost in self.losses[t - patience + 1 : t + 1])

    @property
    def _n_held_out(self) -> int:
        return int(np.count_nonzero(self.use == HELD_OUT)) if self.plan.patience else 0

    # -- records that leave, and others that come ----------------------------------------------

    def take_in(self, rows: Ints, use: NDArray[np.uint8], given: Given) -> None:
        """Note rows, of which the codes are known; `move` or `learn` has to follow."""
        self.use[rows] = use
        self.given.put(rows, given)

    def make_room(self, n_rows: int) -> None:
        """Have room for so many rows."""
        self.binned.make_room(n_rows)
        y, weights, keys = self.given
        if weights.size:
            weights, keys = padded(weights, n_rows), padded(keys, n_rows)
        self.use, self.given = padded(self.use, n_rows), Given(padded(y, n_rows), weights, keys)
        self.before = [padded(raws, n_rows) for raws in self.before]

    def move(self, gone: Ints, come: Ints) -> int:
        """Forget rows, and learn from others; the edges and the start must be unchanged.

        Return how many rounds it has learned again.
        """
        gone_use = self.use[gone]
        moving = np.concatenate([gone[gone_use != IGNORED], come[self.use[come] != IGNORED]])
        use, n_gone = self.use[moving], int(np.count_nonzero(gone_use))
        self.use[gone] = IGNORED
        if not self.loss.start.size:
            self.erase(gone)
            return 0
        n = self.n_rounds
        first, kept = self._move_rows(moving, use, n_gone)
        self.erase(gone)
        ends = next((t for t in range(first) if self._ends(t)), first)
        if ends < first:
            self._cut(ends)
            self.trees.overwrite()
        elif first < n or (n < self.plan.max_iter and not self._ends(n)):
            self.learn(first, kept)
        return self.n_rounds - ends

    def _move_rows(
        self, moving: Ints, use: NDArray[np.uint8], n_gone: int
    ) -> tuple[int, dict[int, TreeArrays]]:
        """Follow rows, of which the first leave, round by round.

        Return the first round that changes, and its trees that stay.
        """
        loss, bins, rules = self.loss, self.binned.bins, self.plan.rules(self.loss)
        n_outputs, n = loss.start.size, self.n_rounds
        raws = np.repeat(loss.start.astype(np.int32)[:, np.newaxis], moving.size, axis=1)
        learned, held_out = (
            np.flatnonzero(use == of).astype(np.int32) for of in (LEARNED, HELD_OUT)
        )
        seen = np.zeros((len(self.before), *raws.shape), dtype=np.int32)
        losses, changes = np.zeros(n + 1, dtype=np.int64), np.zeros(n_outputs, dtype=np.int64)
        first = move_rows(
            bins._replace(codes=bins.codes[moving]), *self.trees.end_to_end, rules, loss.tables,
            self.given.part(moving), raws, n_gone, learned, held_out[held_out < n_gone],
            held_out[held_out >= n_gone], seen, losses, changes,
        )  # fmt: skip
        if n_gone < moving.size:
            for known, own in zip(self.before, seen, strict=True):
                known[moving[n_gone:]] = own[:, n_gone:].T
        if held_out.size:
            for t in range(first + 1):
                self.losses[t] += int(losses[t])
        kept = {}
        for k, change in enumerate(changes.tolist() if first < n else []):
            if change != SPLITS:
                kept[k] = self.trees.copy(first * n_outputs + k)
        return first, kept

    def erase(self, rows: Ints) -> None:
        """Overwrite what is kept of rows."""
        self.binned.erase(rows)
        self.given.erase(rows)
        for raws in self.before:
            raws[rows] = 0

    def flats(self) -> list[FlatBoostedTree]:
        """Return the trees as the model has them."""
        edges, categorical = self.binned.edges, self.binned.bins.categorical
        found = [
            FlatBoostedTree.of(self.trees.tree(i), edges, categorical) if flat is None else flat
            for i, flat in enumerate(self.trees.flats)
        ]
        self.trees.flats[:] = found
        return found

    @property
    def n_rounds(self) -> int:
        """Number of rounds."""
        return len(self.trees) // max(1, self.loss.start.size)


class _Grower:
    """Memory in which trees are grown, one after the other."""

    def __init__(self, binned: Binned, rules: BoostingRules, rows: Ints32) -> None:
        self.binned, self.rules, self.learned = binned, rules, rows
        d, sizes = binned.bins.sizes.size, binned.bins.sizes
        # A node that tries has two leaves' records at least.
        most = max(1, rows.size // rules.min_leaf)
        most_tries = min(most, 2 ** min(rules.max_depth, 40), 2 * rules.max_leaves or most)
        depth = min(rules.max_depth, most_tries)
        waiting = min(rules.max_leaves, most_tries) or depth
        slots, tries = waiting + 2, most_tries * (int(np.minimum(sizes, rules.sample).sum()) + d)
        n_nodes = 2 * most_tries + 1
        self.work = BoostingScratch(
            rows=np.empty(rows.size, dtype=np.int32),
            right=np.empty(rows.size, dtype=np.int32),
            sums=np.empty((slots, d, N_CODES, 2), dtype=np.int64),
            low=np.zeros((slots, d), dtype=np.int64),
            high=np.zeros((slots, d), dtype=np.int64),
            gaps=np.zeros(d, dtype=np.bool_),
            waiting=np.zeros((slots + 2, 4), dtype=np.int64),
            hashes=np.zeros(N_CODES, dtype=np.uint64),
            lowest=np.zeros(rules.sample, dtype=np.uint64),
        )
        self.tree = empty_tree(n_nodes, tries)
        self.report = np.zeros(2, dtype=np.int64)

    def grow(self, pairs: Ints, key: np.uint64, raws: Ints32) -> TreeArrays:
        """Grow a tree, which the next one overwrites, and add what it says to `raws`."""
        work, tree, binned = self.work, self.tree, self.binned
        work.rows[:] = self.learned
        tree.keys[0] = key
        grow(binned.bins, pairs, self.rules, _factors(), work, tree, raws, self.report)
        return part_of(tree, (0, 0), self.report.tolist())
