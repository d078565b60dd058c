"""How many of each class and value of a feature stay: expected, and in samples.

A cell is a class, a feature and a value of it. A record counts in one cell for each feature, and
what it adds is a sum over these. Nearly every gain shrinks with every choice, because a few values
are those of most records; bounds from earlier rounds then decide nothing, and all the gains are
looked at in each round.
"""

from __future__ import annotations

import numpy as np

from erasable.core._jit import kernel
from erasable.core.arrays import Flags, Floats, Ints
from erasable.selection._functions import SetFunction
from erasable.selection._memory import check_memory
from erasable.selection._sampled import Samples
from erasable.selection.staying import Bound


class ExpectedCounts(SetFunction):
    """The expected logarithm of how many of each cell stay.

    Where owners decide on their own, the law of how many stay is kept for each cell, and grows by
    one convolution when one is chosen; where they are alike it is a table by how many were chosen.

    Parameters
    ----------
    cells : ndarray of shape (n_records, n_features), int64
    weights : ndarray of shape (n_cells,), float64
        How many of all the records count in a cell.
    logarithms : ndarray of shape (most + 1,), float64
        What 0..most records of a cell are worth; `most` is one more than can be chosen.
    bound : Bound
        Without units, and with one law for all the records of a cell.
    """

    sweeps = True

    def __init__(self, cells: Ints, weights: Floats, logarithms: Floats, bound: Bound) -> None:
        self.cells, self.weights, self.bound, self.n = cells, weights, bound, len(cells)
        self.steps = np.diff(logarithms)  # what one more adds to the logarithm
        self.tables = [np.diff(law.expectations(logarithms[:-1])) for law in bound.laws]
        self.factor = np.where(bound.block < 0, bound.probability, 1.0)
        self.chosen = np.zeros(len(weights), dtype=np.int64)
        self.pmf: dict[int, Floats] = {}
        self.block_of = np.full(len(weights), -1, dtype=np.int64)
        self.block_of[cells] = bound.block[:, None]
        self.worth = np.empty(len(weights))
        for cell in range(len(weights)):
            self._weigh(cell)

    def _weigh(self, cell: int) -> None:
        """Compute what one more of the cell, who stays, adds."""
        block = self.block_of[cell]
        if block >= 0:
            step = self.tables[block][self.chosen[cell]]
        else:
            pmf = self.pmf.get(cell)
            step = self.steps[0] if pmf is None else pmf @ self.steps[: len(pmf)]
        self.worth[cell] = self.weights[cell] * step

    def gains(self, items: Ints) -> Floats:
        self.n_evaluations += len(items)
        out = np.empty(len(items))
        _gains_of_rows(items, self.cells, self.worth, self.factor, out)
        return out

    def _add(self, j: int) -> None:
        s = float(self.bound.probability[j])
        for cell in self.cells[j].tolist():
            self.chosen[cell] += 1
            if self.block_of[cell] < 0:
                self.pmf[cell] = np.convolve(self.pmf.get(cell, np.ones(1)), [1 - s, s])
            if self.chosen[cell] < len(self.steps) - 1:
                self._weigh(cell)


class CountSamples(Samples):
    """How many of each cell stay, in each sample, and what one more would add there.

    The parameters are those of `ExpectedCounts`, with how many samples there are.
    """

    def __init__(self, cells: Ints, weights: Floats, logarithms: Floats, n_samples: int) -> None:
        check_memory(
            12.0 * n_samples * len(weights),
            f"counts in {n_samples} samples", "draw fewer samples",
        )  # fmt: skip
        self.cells, self.weights, self.steps = cells, weights, np.diff(logarithms)
        self.counts = np.zeros((len(weights), n_samples), dtype=np.int32)
        self.worth = np.empty((len(weights), n_samples))
        self.worth[:] = (weights * self.steps[0])[:, None]

    def gains(self, j: int) -> Floats:
        out = np.zeros(self.worth.shape[1])
        _add_rows(self.worth, self.cells[j], out)
        return out

    def add(self, j: int, stays: Flags) -> None:
        for cell in self.cells[j].tolist():
            self.counts[cell] += stays
            self.worth[cell] = self.weights[cell] * self.steps[self.counts[cell]]

    def totals(self, weights: Floats) -> Floats:
        items, ones = np.arange(len(self.cells)), np.ones(len(self.cells))
        out = np.empty(len(items))
        _gains_of_rows(items, self.cells, self.worth @ weights, ones, out)
        return out


@kernel
def _gains_of_rows(items: Ints, cells: Ints, worth: Floats, factor: Floats, out: Floats) -> None:
    """Write what each of some records would add."""
    for at in range(len(items)):
        j = items[at]
        total = 0.0
        for feature in range(cells.shape[1]):
            total += worth[cells[j, feature]]
        out[at] = factor[j] * total


@kernel
def _add_rows(table: Floats, rows: Ints, out: Floats) -> None:
    """Add some rows of a table to `out`."""
    for at in range(len(rows)):
        for column in range(len(out)):
            out[column] += table[rows[at], column]
