"""How many of each class and value of a feature stay, where records leave by groups.

The chosen of a cell that are of one group count together or not at all. What one more record of a
group adds depends on how many of the other groups' stay, and on how many of its own are chosen.
"""

from __future__ import annotations

import numpy as np

from erasable.core._jit import kernel
from erasable.core.arrays import Floats, Ints
from erasable.selection._functions import SetFunction
from erasable.selection._memory import check_memory
from erasable.selection.staying import Bound


class ExpectedGroupCounts(SetFunction):
    """The expected logarithm of how many of each cell stay, of groups that decide on their own.

    Parameters
    ----------
    cells : ndarray of shape (n_records, n_features), int64
    weights : ndarray of shape (n_cells,), float64
    logarithms : ndarray of shape (most + 1,), float64
        What 0..most records of a cell are worth; `most` is one more than can be chosen.
    bound : Bound
        With units, and without blocks.

    Raises
    ------
    InvalidInputError
        It would not fit into memory.
    """

    sweeps = True

    def __init__(self, cells: Ints, weights: Floats, logarithms: Floats, bound: Bound) -> None:
        assert bound.unit is not None
        self.cells, self.weights, self.n = cells, weights, len(cells)
        self.probability, self.unit = bound.probability, bound.unit
        self.steps = np.diff(logarithms)  # what one more adds to the logarithm
        n_groups = min(len(logarithms) - 2, int(bound.unit.max()) + 1)
        check_memory(
            16.0 * (n_groups + 1) * len(weights), f"counts of {n_groups:,} groups",
            "choose fewer records",
        )  # fmt: skip
        # Row 0 is for all groups without a chosen record: their counts are equal.
        self.row_of = np.zeros(int(bound.unit.max()) + 1, dtype=np.int64)
        self.stays = np.zeros(n_groups + 1)
        self.counts = np.zeros((n_groups + 1, len(weights)), dtype=np.int64)
        self.worth = np.tile(weights * self.steps[0], (n_groups + 1, 1))
        self.n_rows = 1

    def gains(self, items: Ints) -> Floats:
        self.n_evaluations += len(items)
        out = np.empty(len(items))
        _gains_of_groups(items, self.cells, self.row_of[self.unit[items]], self.worth, out)
        return out * self.probability[items]

    def _add(self, j: int) -> None:
        if self.probability[j] == 0:  # it never stays, and is not counted
            return
        row = self.row_of[self.unit[j]]
        if row == 0:
            row = self.row_of[self.unit[j]] = self.n_rows
            self.stays[row] = self.probability[j]
            self.n_rows += 1
        for cell in self.cells[j].tolist():
            self.counts[row, cell] += 1
            here = np.flatnonzero(self.counts[:, cell])
            out = np.empty(len(here) + 1)
            _weigh(self.counts[here, cell], self.stays[here], self.steps, out)
            self.worth[:, cell] = self.weights[cell] * out[-1]
            self.worth[here, cell] = self.weights[cell] * out[:-1]


@kernel
def _gains_of_groups(items: Ints, cells: Ints, rows: Ints, worth: Floats, out: Floats) -> None:
    """Write what each of some records would add, were they to stay."""
    for at in range(len(items)):
        total = 0.0
        for feature in range(cells.shape[1]):
            total += worth[rows[at], cells[items[at], feature]]
        out[at] = total


@kernel
def _weigh(counts: Ints, stays: Floats, steps: Floats, out: Floats) -> None:
    """Write what one more record of a cell adds: for each of its groups, then for any other.

    A group of which one more is chosen stays where that counts, and its own count is sure. For the
    others before it the law of how many stay is kept, and for those after it the expected step as
    a function of how many there are without them.
    """
    n, total = len(counts), counts.sum()
    after = np.empty((n + 1, total + 1))
    after[n] = steps[: total + 1]
    before = total
    for g in range(n - 1, -1, -1):
        m, s = counts[g], stays[g]
        before -= m
        for c in range(before + 1):
            after[g, c] = (1.0 - s) * after[g + 1, c] + s * after[g + 1, c + m]
    out[n] = after[0, 0]
    law = np.zeros(total + 1)
    law[0] = 1.0
    before = 0
    for g in range(n):
        m, s = counts[g], stays[g]
        value = 0.0
        for c in range(before + 1):
            value += law[c] * after[g + 1, c + m]
        out[g] = value
        before += m
        for c in range(before, -1, -1):
            law[c] = (1.0 - s) * law[c] + (s * law[c - m] if c >= m else 0.0)
