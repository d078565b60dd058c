"""The steps that a network has learned by, and how they follow records that leave and arrive."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

import erasable.neural_network._kernels as kernels
from erasable.core.arrays import Flags, Floats, Ints32, Words
from erasable.core.tape import Stream
from erasable.neural_network._kernels import Batch, Rule, Shape

_APART = 16
"""Steps between two before which the weights are kept."""


class Plan(NamedTuple):
    """What fixes the steps, besides the records."""

    shape: Shape
    rule: Rule
    lengths: Floats  # of a move, for each step
    rate: float  # share of records that take part in a step
    seed: np.uint64
    keys: Words  # of the weights
    start: Floats  # the weights before the first step


@dataclass(eq=False)
class Trajectory:
    """Exact sums of gradients of every step, and the moves of the weights that follow from them.

    A step moves the weights down the mean gradient of the records that take part in it, rounded
    to a lattice with a random offset. Whether a record takes part is drawn by its key, and how the
    moves are rounded by the key of the weight, so that a step is a function of the records that
    take part, and of the weights before it.
    """

    plan: Plan

    def __post_init__(self) -> None:
        n_steps, n_weights = self.plan.lengths.size, self.plan.start.size
        self.sums = np.zeros((n_steps, n_weights))
        self.counts = np.zeros(n_steps, dtype=np.int64)
        self.moves = np.zeros((n_steps, n_weights), dtype=np.int32)
        self._kept = np.zeros((-(-n_steps // _APART), n_weights))  # before steps 0, _APART, ...
        self._kept[0] = self.plan.start
        self.weights = self.plan.start

    def _taking_part(self, keys: Words, steps: range) -> Flags:
        """Return which records take part in which of some steps, shape (n_records, n_steps)."""
        out, plan = np.zeros((keys.size, len(steps)), dtype=np.bool_), self.plan
        stream, first = np.uint32(Stream.BATCH), steps.start
        kernels.taking_part(plan.seed, keys, stream, first, plan.rate, out)
        return out

    def learn(self, batch: Batch, keys: Words, first: int = 0) -> None:
        """Take the steps from the first one on, with all records."""
        plan = self.plan
        weights = self._before(first)
        for t in range(first, plan.lengths.size):
            if t % _APART == 0:
                self._kept[t // _APART] = weights
            chosen = np.flatnonzero(self._taking_part(keys, range(t, t + 1)))
            self.sums[t] = 0.0
            kernels.add_gradients(plan.shape, weights, batch, chosen, 1.0, self.sums[t])
            self.counts[t] = chosen.size
            self._move(t, weights, self.moves[t])
            kernels.advance(self.moves[t : t + 1], plan.lengths[t : t + 1], weights)
        self.weights = weights

    def change(self, leaving: tuple[Batch, Words], arriving: tuple[Batch, Words]) -> int | None:
        """Follow records that leave and arrive up to the first step whose moves change.

        Return that step, after which the steps are to be taken again; None if no move changes.
        """
        plan = self.plan
        steps = range(plan.lengths.size)
        parts = [self._taking_part(keys, steps) for _, keys in (leaving, arriving)]
        moves = np.zeros(plan.start.size, dtype=np.int32)
        for t in np.flatnonzero(parts[0].any(axis=0) | parts[1].any(axis=0)).tolist():
            weights = self._before(t)
            for (batch, _), part, sign in zip((leaving, arriving), parts, (-1, 1), strict=True):
                chosen = np.flatnonzero(part[:, t])
                kernels.add_gradients(plan.shape, weights, batch, chosen, float(sign), self.sums[t])
                self.counts[t] += sign * chosen.size
            self._move(t, weights, moves)
            if not np.array_equal(moves, self.moves[t]):
                self.moves[t] = moves
                return t
        return None

    def _before(self, step: int) -> Floats:
        """Return the weights before a step."""
        kept = max(step - 1, 0) // _APART  # what is kept before the step itself may be outdated
        weights: Floats = self._kept[kept].copy()
        between = slice(kept * _APART, step)
        kernels.advance(self.moves[between], self.plan.lengths[between], weights)
        return weights

    def _move(self, t: int, weights: Floats, out: Ints32) -> None:
        plan = self.plan
        kernels.moves_of(
            plan.rule, weights, self.sums[t], int(self.counts[t]), plan.seed, plan.keys,
            np.uint32(Stream.PHASE), np.uint32(t + 1), out,
        )  # fmt: skip
