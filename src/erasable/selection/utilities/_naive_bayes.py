"""How many of each class the chosen show of each value of each feature: naive Bayes."""

from __future__ import annotations

from typing import Any

import numpy as np

from erasable.core._schema import LARGEST
from erasable.core.arrays import Floats, Ints
from erasable.core.errors import InvalidInputError, InvalidParameterError
from erasable.core.ids import shorten
from erasable.core.seeds import is_number
from erasable.selection._functions import SetFunction
from erasable.selection._records import codes_of
from erasable.selection._sampled import Samples
from erasable.selection.staying import Bound
from erasable.selection.utilities._base import Problem, Utility
from erasable.selection.utilities._feature_counts import CountSamples, ExpectedCounts
from erasable.selection.utilities._group_counts import ExpectedGroupCounts
from erasable.selection.utilities._reading import read_categories, read_classes, refuse_measurements

_LEAST = 1e-200  # of a smoothing, by which counts are divided


class NaiveBayes(Utility):
    """How often each value of a feature is among the chosen of a class, in logarithms.

    The sum over classes, features and values of ``|M| log(1 + |S| / smoothing)``, where `M` is all
    the records of that class and value, and `S` those chosen. A selection that is worth much by it
    trains a good naive Bayes classifier. It needs classes and categories; bin numbers first. Its
    expected value after deletions is exact where owners of a class decide on their own, or are
    alike, or decide for groups of records.

    Parameters
    ----------
    smoothing : float, default=1.0
        How many records of each class and value are thought to be held already. The smaller it is,
        the more is it worth that a value has any record at all, against that it has several. To
        select for a classifier with a small `alpha`, pass that.

    Notes
    -----
    The paper prints ``log |S|``, which is not defined for values that no chosen record has. Its
    numbers are those of ``log(|S| + 0.01)``: this utility with ``smoothing=0.01``, but for a
    constant, which is taken away here so that nothing is worth nothing.

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
    """Which cells, of a class, a feature and a value, each record counts in.

    Parameters
    ----------
    cells : ndarray of shape (n_records, n_features), int64
    n_cells : int
    classes : ndarray of shape (n_records,), int64
    smoothing : float
    """

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
        """Return what 0..most records of a cell are worth, shape (most + 1,)."""
        return np.asarray(np.log1p(np.arange(most + 1) / self.smoothing))
