"""How many of each class the chosen show of each value of each feature: naive Bayes."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from erasable.core.errors import InvalidInputError
from erasable.selection._functions import SetFunction
from erasable.selection._memory import check_memory
from erasable.selection._sampled import Samples
from erasable.selection.staying import Bound
from erasable.selection.utilities._base import Problem, Utility
from erasable.selection.utilities._reading import read_categories, read_classes

__all__ = ["NaiveBayes"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class NaiveBayes(Utility):
    """How often each value of a feature is among the chosen of a class, in logarithms.

    The sum over classes, features and values of ``|M| log(1 + |S|)``, where `M` is all the records
    of that class and value, and `S` those chosen. A selection that is worth much by it trains a
    good naive Bayes classifier. It needs classes and categories; bin numbers first. Its expected
    value after deletions is exact where owners of a class decide on their own, or are alike.

    Notes
    -----
    The paper prints ``log |S|``, which is not defined for values that nobody chosen has.

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

    def problem(self, X: Any, y: Any = None) -> NaiveBayesProblem:
        table = read_categories(X)
        if y is None:
            raise InvalidInputError(
                "there are no labels, and naive Bayes counts by class; expected one for each "
                "record; pass y"
            )
        classes = read_classes(y, len(table))
        cells, n_cells = np.empty(table.shape, dtype=np.int64), 0
        for number, column in enumerate(table.T):
            _, codes = np.unique(column, return_inverse=True)
            pairs, cell = np.unique(classes * (codes.max() + 1) + codes, return_inverse=True)
            cells[:, number] = n_cells + cell
            n_cells += len(pairs)
        return NaiveBayesProblem(cells, n_cells, classes)


class NaiveBayesProblem(Problem):
    """Which cells, of a class, a feature and a value, each record counts in.

    Parameters
    ----------
    cells : ndarray of shape (n_records, n_features), int64
    n_cells : int
    classes : ndarray of shape (n_records,), int64
    """

    def __init__(self, cells: Ints, n_cells: int, classes: Ints) -> None:
        self.cells, self.n_cells, self.classes = cells, n_cells, classes
        self.n = len(cells)
        self.weights = np.bincount(cells.ravel(), minlength=n_cells).astype(np.float64)

    def expected(self, bound: Bound, k: int) -> SetFunction | None:
        if bound.unit is not None:
            return None
        mixed = any(
            len(np.unique(bound.block[self.classes == label])) > 1
            for label in range(int(self.classes.max()) + 1)
        )
        return None if mixed else ExpectedCounts(self, bound, k)

    def samples(self, n_samples: int, k: int) -> Samples:
        return _CountSamples(self, n_samples)

    def value(self, chosen: Ints) -> float:
        counts = np.bincount(self.cells[chosen].ravel(), minlength=self.n_cells)
        return float(self.weights @ np.log1p(counts))


class ExpectedCounts(SetFunction):
    """The expected logarithm of how many of each cell stay.

    Where owners decide on their own, the law of how many stay is kept for each cell, and grows by
    one convolution when one is chosen; where they are alike it is a table by how many were chosen.
    """

    def __init__(self, problem: NaiveBayesProblem, bound: Bound, k: int) -> None:
        self.problem, self.bound, self.n = problem, bound, problem.n
        self.value = 0.0
        logs = np.log1p(np.arange(k + 2))
        self.steps = np.diff(logs)  # what one more adds to the logarithm
        self.tables = [np.diff(law.expectations(logs[: k + 1])) for law in bound.laws]
        self.factor = np.where(bound.block < 0, bound.probability, 1.0)
        self.chosen = np.zeros(problem.n_cells, dtype=np.int64)
        self.pmf: dict[int, Floats] = {}
        self.block_of = np.full(problem.n_cells, -1, dtype=np.int64)
        self.block_of[problem.cells] = bound.block[:, None]
        self.worth = np.empty(problem.n_cells)
        for cell in range(problem.n_cells):
            self._weigh(cell)

    def _weigh(self, cell: int) -> None:
        """Compute what one more of the cell, who stays, adds."""
        block = self.block_of[cell]
        if block >= 0:
            step = self.tables[block][self.chosen[cell]]
        else:
            pmf = self.pmf.get(cell)
            step = self.steps[0] if pmf is None else pmf @ self.steps[: len(pmf)]
        self.worth[cell] = self.problem.weights[cell] * step

    def gains(self, items: Ints) -> Floats:
        self.n_evaluations += len(items)
        worth: Floats = self.worth[self.problem.cells[items]].sum(axis=1)
        return worth * self.factor[items]

    def add(self, j: int, gain: float | None = None) -> None:
        if gain is None:
            (gain,) = self.gains(np.array([j]))
        self.value += float(gain)
        s = float(self.bound.probability[j])
        for cell in self.problem.cells[j].tolist():
            self.chosen[cell] += 1
            if self.block_of[cell] < 0:
                self.pmf[cell] = np.convolve(self.pmf.get(cell, np.ones(1)), [1 - s, s])
            if self.chosen[cell] < len(self.steps) - 1:
                self._weigh(cell)


class _CountSamples(Samples):
    """How many of each cell stay, in each sample."""

    def __init__(self, problem: NaiveBayesProblem, n_samples: int) -> None:
        check_memory(
            4.0 * n_samples * problem.n_cells,
            f"counts in {n_samples} samples", "draw fewer samples",
        )  # fmt: skip
        self.problem = problem
        self.counts = np.zeros((problem.n_cells, n_samples), dtype=np.int32)

    def gains(self, j: int) -> Floats:
        cells = self.problem.cells[j]
        steps = np.log1p(1.0 / (1.0 + self.counts[cells]))
        gains: Floats = self.problem.weights[cells] @ steps
        return gains

    def add(self, j: int, stays: NDArray[np.bool_]) -> None:
        self.counts[self.problem.cells[j]] += stays
