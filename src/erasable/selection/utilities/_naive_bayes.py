"""The utility `NaiveBayes`: counts of the chosen by class, feature and value."""

from __future__ import annotations

from typing import Any

import numpy as np

from erasable.core._jit import kernel
from erasable.core._schema import LARGEST
from erasable.core.arrays import Flags, Floats, Ints
from erasable.core.errors import InvalidInputError, InvalidParameterError
from erasable.core.ids import shorten
from erasable.core.seeds import is_number
from erasable.selection._functions import SetFunction
from erasable.selection._memory import check_memory
from erasable.selection._records import codes_of
from erasable.selection._sampled import Samples
from erasable.selection.staying._model import Bound
from erasable.selection.utilities._inputs import read_categories, read_classes, refuse_measurements
from erasable.selection.utilities._utility import Problem, Utility


class ExpectedCounts(SetFunction):
    """The expected logarithm of the number in each cell who stay.

    Where owners decide independently, the distribution of this number is kept for each cell, and
    grows by one convolution with a choice; where they are exchangeable it is a table by the number
    chosen. `weights` counts all records of each cell; `logarithms`, shape (most + 1,), has the
    values of 0..most records of a cell, where `most` is one more than can be chosen. `bound` is
    without units, and has one law for all records of a cell.
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
        """Compute the gain of one more record of the cell, if it stays."""
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
    """The number in each cell who stay, in each sample; parameters as of `ExpectedCounts`."""

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
    """Write the gain of each of some records."""
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


class ExpectedGroupCounts(SetFunction):
    """The expected logarithm of the number in each cell who stay, of independent groups.

    Parameters are those of `ExpectedCounts`, but `bound` has units and no blocks.
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
    """Write the gain of each of some records, if it stays."""
    for at in range(len(items)):
        total = 0.0
        for feature in range(cells.shape[1]):
            total += worth[rows[at], cells[items[at], feature]]
        out[at] = total


@kernel
def _weigh(counts: Ints, stays: Floats, steps: Floats, out: Floats) -> None:
    """Write the gain of one more record of a cell: of each of its groups, then of any other.

    A gain counts where the group of the record stays, so the group's own count is certain. For the
    groups before it the distribution of the number who stay is kept, and for those after it the
    expected step as a function of the number without them.
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


_LEAST = 1e-200  # of a smoothing, by which counts are divided


class NaiveBayes(Utility):
    """Logarithms of the counts of each value of a feature among the chosen of a class.

    The sum over classes, features and values of ``|M| log(1 + |S| / smoothing)``, where `M` is all
    the records of that class and value, and `S` those chosen. A selection of a high utility
    trains a good naive Bayes classifier. It needs classes and categories; bin numbers first. Its
    expected value after deletions is exact where owners of a class are independent or exchangeable,
    also with groups of records.

    Parameters
    ----------
    smoothing : float, default=1.0
        Number of records of each class and value that are assumed to be held already. The smaller
        it is, the more does the first record of a value count against further ones. To select for a
        classifier with a small `alpha`, pass that.

    Notes
    -----
    The paper prints ``log |S|``, which is not defined for values that no chosen record has. Its
    numbers are those of ``log(|S| + 0.01)``: this utility with ``smoothing=0.01``, but for a
    constant, which is subtracted here so that the empty selection has the value 0.

    References
    ----------
    Wei, Iyer and Bilmes, Submodularity in data subset selection and active learning, ICML 2015.
    Sim et al., Deletion-Anticipative Data Selection with a Limited Budget, appendix C.2.

    Examples
    --------
    >>> problem = NaiveBayes().problem([["red"], ["red"], ["blue"]], [1, 1, 1])
    >>> round(problem.value(np.array([0, 2])), 4)  # 2 log 2 + 1 log 2
    2.0794
    """

    is_submodular = True

    def __init__(self, smoothing: float = 1.0) -> None:
        self.smoothing = smoothing

    def problem(self, X: Any, y: Any = None) -> NaiveBayesProblem:
        if not is_number(self.smoothing) or not _LEAST <= self.smoothing <= LARGEST:
            raise InvalidParameterError(
                f"smoothing={shorten(self.smoothing)}; expected a number above 0; pass 1, or the "
                "alpha of the classifier"
            )
        table = read_categories(X)
        if y is None:
            raise InvalidInputError(
                "there are no labels, and naive Bayes counts by class; expected one for each "
                "record; pass y"
            )
        classes = read_classes(y, len(table))
        cells, n_cells = np.empty(table.shape, dtype=np.int64), 0
        for number, column in enumerate(table.T):
            codes = codes_of(column, f"feature {number}")
            refuse_measurements(
                column, codes, f"feature {number}", "categories",
                "bin it, as with KBinsDiscretizer(encode='ordinal')",
            )  # fmt: skip
            pairs, cell = np.unique(classes * (codes.max() + 1) + codes, return_inverse=True)
            cells[:, number] = n_cells + cell
            n_cells += len(pairs)
        return NaiveBayesProblem(cells, n_cells, classes, float(self.smoothing))


class NaiveBayesProblem(Problem):
    """The cells, each of a class, a feature and a value, in which each record counts."""

    def __init__(self, cells: Ints, n_cells: int, classes: Ints, smoothing: float) -> None:
        self.cells, self.n_cells, self.classes = cells, n_cells, classes
        self.smoothing = smoothing
        self.n = len(cells)
        self.weights = np.bincount(cells.ravel(), minlength=n_cells).astype(np.float64)

    def expected(self, bound: Bound, k: int) -> SetFunction | None:
        if bound.unit is not None:
            if (bound.block >= 0).any():
                return None
            logarithms = self.logarithms(k + 1)
            return ExpectedGroupCounts(self.cells, self.weights, logarithms, bound)
        mixed = any(
            len(np.unique(bound.block[self.classes == label])) > 1
            for label in range(int(self.classes.max()) + 1)
        )
        if mixed:
            return None
        return ExpectedCounts(self.cells, self.weights, self.logarithms(k + 1), bound)

    def samples(self, n_samples: int, k: int) -> Samples:
        return CountSamples(self.cells, self.weights, self.logarithms(k + 1), n_samples)

    def value(self, chosen: Ints) -> float:
        counts = np.bincount(self.cells[chosen].ravel(), minlength=self.n_cells)
        return float(self.weights @ np.log1p(counts / self.smoothing))

    def logarithms(self, most: int) -> Floats:
        """Return the values of 0..most records of a cell, shape (most + 1,)."""
        return np.asarray(np.log1p(np.arange(most + 1) / self.smoothing))
