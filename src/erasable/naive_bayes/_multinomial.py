"""Multinomial naive Bayes: the state is exact sums of the counts in every class."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import Tags

from erasable.core import _class_kernels as kernels
from erasable.core import _unit_kernels as unit_kernels
from erasable.core._magnitudes import TopGrid
from erasable.core._schema import MOST_QUANTA, Array, Fields, grid
from erasable.core._sparse_kernels import add_to_groups
from erasable.core.arrays import Flags, Floats, Ints, Ints32, Values
from erasable.core.changes import Delta
from erasable.core.deletion import Outcome
from erasable.core.summaries import Gridded
from erasable.core.tables import Table
from erasable.naive_bayes._classifier import TableNB, logs, refuse_negative, weighed

_SHAPE = "n_classes", "n_features"


def _schema(sums: Array) -> Fields:
    return Fields({"grid": grid("n_features", sparse=True), "sums": sums})


@dataclass(eq=False, slots=True)
class ClassSums(Gridded):
    """Sums of the gridded values of every column, a line for each class."""

    schema: ClassVar[Fields] = _schema(
        Array("float64", _SHAPE, 0, MOST_QUANTA, per_record=True, whole=True)
    )
    grid: TopGrid  # of the rows of all classes
    sums: NDArray[Any]  # exact integers, in quanta; float64 of shape (n_classes, n_features)

    @classmethod
    def fit(cls, table: Table) -> Self:
        """Sum the live rows, which hold no negative values."""
        matrix, live = table.matrix, table.live_rows()
        made = cls(
            TopGrid.fit(matrix, live), cls._zeros(table.classes.labels.size, matrix.shape[1])
        )
        made.accumulate(table, live, 1)
        return made

    @classmethod
    def from_state(cls, state: dict[str, Any], counts: Ints) -> Self:
        """Rebuild them from what `state` returned."""
        return cls(TopGrid.from_top(state["grid"]["top"]), state["sums"])

    def state(self) -> dict[str, Any]:
        """Return the grid, and the sums in quanta."""
        return {"grid": {"top": self.grid.top}, "sums": self.sums}

    def counts(self, quantum: float) -> Floats:
        """Return the sums as they are to be read, where a row that counts once weighs `quantum`."""
        return self.sums * self.grid.quantum

    def accumulate(self, table: Table, rows: Ints, sign: int) -> None:
        """See `Gridded`."""
        how = self.grid.magic, self.grid.per_quantum, float(sign)
        table.add(_add, rows, self.sums, *how, sparse=_add_sparse, few=sign < 0)

    def sum_again(self, table: Table, columns: Flags) -> None:
        """See `Gridded`."""
        self.sums[..., columns] = 0
        how = columns, self.grid.magic, self.grid.per_quantum
        table.add(_add_columns, table.live_rows(), self.sums, *how, sparse=_add_columns_sparse)

    def keep_classes(self, kept: Flags) -> None:
        """Keep only the lines of these classes."""
        self.sums = self.sums[kept]

    @staticmethod
    def _zeros(n_classes: int, n_features: int) -> NDArray[Any]:
        return np.zeros((n_classes, n_features))


class WeightedSums(ClassSums):
    """Sums of rows times quanta of weight, in two int64 limbs of 26 bits, the high one first."""

    __slots__ = ()
    schema = _schema(Array("int64", (2, *_SHAPE), 0, MOST_QUANTA, per_record=True))

    def counts(self, quantum: float) -> Floats:
        """Return the sums, rounded once."""
        high, low = self.sums
        counts: Floats = (high * float(unit_kernels.LIMB) + low) * self.grid.quantum * quantum
        return counts

    def keep_classes(self, kept: Flags) -> None:
        """Keep only the lines of these classes."""
        self.sums = self.sums[:, kept]

    @staticmethod
    def _zeros(n_classes: int, n_features: int) -> NDArray[Any]:
        return np.zeros((2, n_classes, n_features), dtype=np.int64)

    def accumulate(self, table: Table, rows: Ints, sign: int) -> None:
        """See `Gridded`."""
        self._add_some(table, rows, np.ones(table.n_features, dtype=np.bool_), sign)

    def sum_again(self, table: Table, columns: Flags) -> None:
        """See `Gridded`."""
        self.sums[..., columns] = 0
        self._add_some(table, table.live_rows(), columns, 1)

    def _add_some(self, table: Table, rows: Ints, columns: Flags, sign: int) -> None:
        how = columns, self.grid.magic, self.grid.per_quantum, sign
        sparse = unit_kernels.add_rows_sparse
        table.add(_add_weighted, rows, self.sums, *how, sparse=sparse, few=sign < 0)


def _add(matrix: Any, own: Ints, codes: Ints32, units: Ints, *how: Any) -> None:
    kernels.add_rows(matrix, own, codes, *how)


def _add_sparse(
    data: Any, indices: Any, indptr: Any, own: Ints, codes: Ints32, units: Ints, *how: Any
) -> None:
    add_to_groups(data, indices, indptr, own, codes, *how)


def _add_columns(
    matrix: Any, own: Ints, codes: Ints32, units: Ints,
    columns: Flags, magic: Floats, per_quantum: Floats, sums: Floats,
) -> None:  # fmt: skip
    for j in np.flatnonzero(columns).tolist():
        kernels.add_column(matrix, own, codes, j, magic[j], per_quantum[j], sums)


def _add_columns_sparse(
    data: Any, indices: Any, indptr: Any, own: Ints, codes: Ints32, units: Ints, *how: Any
) -> None:
    kernels.add_columns_sparse(data, indices, indptr, own, codes, *how)


def _add_weighted(*given: Any) -> None:
    unit_kernels.add_rows(*given)


class MultinomialNB(TableNB):
    """Classify counts, of words for instance, and forget records exactly.

    A deletion costs time in the values of the record: they are subtracted from sums that are
    exact. A column that loses the last value of its highest power of two is read again. Dense and
    sparse rows of the same values give the same model.

    Parameters
    ----------
    alpha : float or array-like of shape (n_features,), default=1.0
        What is added to every count; 0 for no smoothing.
    force_alpha : bool, default=True
        Take an `alpha` below 1e-10 as it is? Otherwise 1e-10 takes its place.
    fit_prior : bool, default=True
        Learn the classes' probabilities? Otherwise they are equal.
    class_prior : array-like of shape (n_classes,), default=None
        Probability of each of the sorted classes. A deletion that takes the last record of a
        class is then refused, unless `classes` says that the class stays.
    classes : array-like of shape (n_classes,), default=None
        All classes there are. By default those of the records: a class goes with its last one.
        A class that is named here and has no records stays, with probability 0 whatever the
        prior says: it is never predicted.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Labels, sorted.
    class_count_ : ndarray of shape (n_classes,), float64
        Number of records of each class, or the sum of their weights.
    class_log_prior_ : ndarray of shape (n_classes,), float64
        Logarithm of the probability of each class.
    feature_count_ : ndarray of shape (n_classes, n_features), float64
        Sum of each feature over the records of each class, each times its weight.
    feature_log_prob_ : ndarray of shape (n_classes, n_features), float64
        ``log((feature_count_ + alpha) / (sum of these over the features))``.
    ids_, n_features_in_, feature_names_in_
        See `erasable.core.estimator.Erasable`.

    Raises
    ------
    InvalidDataError
        Negative values, from `fit` and from the predictions.
    InvalidInputError
        From `fit`, for a prior, classes or alphas that do not suit the records.
    TooFewRecordsError
        From `fit` and `delete`, if `class_prior` names more classes than have records.
    MagnitudeError
        From `fit`, if values exceed ``2**480``.

    Notes
    -----
    Columns are rounded once to 26 bits below their largest value: whole numbers up to ``2**26``
    stay as they are, and sums of others agree with scikit-learn's to about 1e-8 of that value for
    each record. Values that much smaller than the largest of their column count as 0.

    Weights are rounded once to 26 bits below the largest: those that are whole numbers up to
    ``2**26`` stay as they are. A class whose records all weigh 0 is like one without records.

    With ``alpha=0`` what a class has never had is impossible in it. A row that is impossible in
    every class gets the classes' shares of the records; scikit-learn answers NaN.

    Examples
    --------
    >>> from erasable.naive_bayes import MultinomialNB
    >>> X = [[2, 1, 0], [1, 0, 0], [0, 0, 3], [0, 1, 1]]
    >>> model = MultinomialNB().fit(X, ["ham", "ham", "spam", "spam"], ids=["a", "b", "c", "d"])
    >>> model.predict_proba([[0, 1, 1]]).round(3)
    array([[0.207, 0.793]])
    >>> model.delete(["c"]).action
    'updated'
    >>> model.feature_count_
    array([[3., 1., 0.],
           [0., 1., 1.]])
    """

    _reads_blocks = True
    _kinds = ClassSums, WeightedSums
    _counted: ClassSums

    def __init__(
        self,
        *,
        alpha: Any = 1.0,
        force_alpha: bool = True,
        fit_prior: bool = True,
        class_prior: Any = None,
        classes: Any = None,
    ) -> None:
        self.alpha = alpha
        self.force_alpha = force_alpha
        self.fit_prior = fit_prior
        self.class_prior = class_prior
        self.classes = classes

    def _count(self, table: Table) -> Any:
        refuse_negative("MultinomialNB", table.matrix, table.live_rows())
        return super()._count(table)

    def _update(self, delta: Delta) -> Outcome | None:
        if delta.arriving.size:
            refuse_negative("MultinomialNB", self._attached().records.matrix[delta.arriving])
        return super()._update(delta)

    def _log_probabilities(self) -> Floats:
        smoothed = self._counted.counts(self._quantum) + self._smoothing()
        total = smoothed.sum(axis=1, keepdims=True)
        return logs(smoothed) - np.log(np.where(total > 0, total, 1.0))

    def _derive(self) -> Floats:
        return self._log_probabilities()

    def _likelihoods(self, matrix: Values, derived: Any) -> Floats:
        return weighed(matrix, derived)

    def _rows_to_predict(self, X: Any) -> Values:
        matrix = super()._rows_to_predict(X)
        refuse_negative("MultinomialNB", matrix)
        return matrix

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = True
        return tags
