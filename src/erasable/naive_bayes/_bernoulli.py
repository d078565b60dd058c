"""Bernoulli naive Bayes: the state is how many records of a class have each feature."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Real
from typing import Any, ClassVar, Self

import numpy as np
from scipy.sparse import csr_array, issparse
from sklearn.utils._param_validation import Interval

from erasable.core import _class_kernels as kernels
from erasable.core._schema import Array, Fields, Sizes, refuse
from erasable.core.arrays import Flags, Floats, Ints, Values
from erasable.core.changes import Delta
from erasable.core.deletion import Outcome
from erasable.core.errors import InvalidDataError
from erasable.core.matrices import entries, to_dense
from erasable.core.passes import Block, Pass, run
from erasable.core.summaries import Summary
from erasable.core.tables import Table
from erasable.naive_bayes._classifier import DiscreteNB, TableNB, logs, totals_of, weighed


class BernoulliNB(TableNB):
    """Classify by which features a record has, and forget records exactly.

    A deletion costs time in the values of the record: its features are
    subtracted from whole numbers. Dense and sparse rows of the same values give the same model.

    Parameters that are not listed here are those of `MultinomialNB`.

    Parameters
    ----------
    alpha : float or array-like of shape (n_features,), default=1.0
        What is added to the counts of records with a feature, and of those without; 0 for no
        smoothing.
    binarize : float or None, default=0.0
        A record has the features whose values are above this. None: all values are 0 or 1.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Labels, sorted.
    class_count_ : ndarray of shape (n_classes,), float64
        Number of records of each class, or the sum of their weights.
    class_log_prior_ : ndarray of shape (n_classes,), float64
        Logarithm of the probability of each class.
    feature_count_ : ndarray of shape (n_classes, n_features), float64
        Number of records of each class that have each feature, or the sum of their weights.
    feature_log_prob_ : ndarray of shape (n_classes, n_features), float64
        ``log((feature_count_ + alpha) / (class_count_ + 2 alpha))``.
    ids_, n_features_in_, feature_names_in_
        See `erasable.core.estimator.Erasable`.

    Raises
    ------
    InvalidDataError
        With ``binarize=None``, from `fit` and from the predictions: values other than 0 and 1.
    InvalidInputError
        From `fit`, for a prior, classes or alphas that do not suit the records.
    TooFewRecordsError
        From `fit` and `delete`, if `class_prior` names more classes than have records.

    Notes
    -----
    Differs from scikit-learn's in that ``binarize=None`` refuses other values than 0 and 1, in
    that `alpha` may be an array, and in that float32 values are compared with `binarize` as
    float64.

    Weights are rounded once to 26 bits below the largest: those that are whole numbers up to
    ``2**26`` stay as they are. A class whose records all weigh 0 is like one without records.

    With ``alpha=0`` what a class has never had is impossible in it. A row that is impossible in
    every class gets the classes' shares of the records; scikit-learn answers NaN.

    Examples
    --------
    >>> from erasable.naive_bayes import BernoulliNB
    >>> X = [[1, 0, 1], [1, 1, 0], [0, 0, 1], [0, 1, 1]]
    >>> model = BernoulliNB().fit(X, ["ill", "ill", "well", "well"], ids=["a", "b", "c", "d"])
    >>> model.predict([[1, 0, 0]])
    array(['ill'], dtype=object)
    >>> model.delete(["a"]).action
    'updated'
    >>> model.feature_count_
    array([[1., 1., 0.],
           [0., 1., 2.]])
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **DiscreteNB._parameter_constraints,
        "binarize": [None, Interval(Real, 0, None, closed="left")],
    }
    _reads_blocks = True
    _counted: ClassCounts

    def __init__(
        self,
        *,
        alpha: Any = 1.0,
        force_alpha: bool = True,
        binarize: float | None = 0.0,
        fit_prior: bool = True,
        class_prior: Any = None,
        classes: Any = None,
    ) -> None:
        self.alpha = alpha
        self.force_alpha = force_alpha
        self.binarize = binarize
        self.fit_prior = fit_prior
        self.class_prior = class_prior
        self.classes = classes

    @property
    def _threshold(self) -> float:
        threshold = self._at_fit("binarize")
        return 0.0 if threshold is None else float(threshold)

    def _count(self, table: Table) -> ClassCounts:
        if self._at_fit("binarize") is None:
            _refuse_not_binary(table.matrix, table.live_rows())
        return ClassCounts.fit(table, self._threshold)

    def _update(self, delta: Delta) -> Outcome | None:
        if delta.arriving.size and self._at_fit("binarize") is None:
            _refuse_not_binary(self._attached().records.matrix[delta.arriving])
        return super()._update(delta)

    def _counted_schema(self, *, weighted: bool) -> Fields:
        def check(value: dict[str, Any], at: str, sizes: Sizes) -> None:
            if (value["present"] > totals_of(value)[:, np.newaxis]).any():
                refuse("present", "more than a class has", "at most what it has")

        present = Array("int64", ("n_classes", "n_features"), least=0)
        return Fields({"present": present}, relations=(check,))

    def _counted_from(self, state: dict[str, Any]) -> ClassCounts:
        return ClassCounts(self._threshold, state["present"])

    def _log_probabilities(self) -> Floats:
        return self._log_shares(self._counted.present)

    def _log_shares(self, counts: Ints) -> Floats:
        """Logarithms of the smoothed shares that counts have of the records of their classes."""
        alpha, quantum = self._smoothing(), self._quantum
        total = self._totals[:, np.newaxis] * quantum + 2.0 * alpha
        return logs(counts * quantum + alpha) - np.log(np.where(total > 0, total, 1.0))

    def _derive(self) -> tuple[Floats, Floats]:
        """Return log-probabilities of each feature and of its absence, both from the counts."""
        present = self._counted.present
        return self._log_shares(present), self._log_shares(self._totals[:, np.newaxis] - present)

    def _likelihoods(self, matrix: Values, derived: Any) -> Floats:
        present, absent = derived
        has = self._features_of(matrix)
        if np.isneginf(absent).any() or np.isneginf(present).any():
            dense = to_dense(has)
            return weighed(dense, present) + weighed(1.0 - dense, absent)
        likely: Floats = has @ (present - absent).T
        likely += absent.sum(axis=1)
        return likely

    def _features_of(self, matrix: Values) -> Values:
        threshold = np.float64(self._threshold)
        if issparse(matrix):
            has = (matrix.data > threshold).astype(np.float64)
            return csr_array((has, matrix.indices, matrix.indptr), shape=matrix.shape)
        return (matrix > threshold).astype(np.float64)

    def _rows_to_predict(self, X: Any) -> Values:
        matrix = super()._rows_to_predict(X)
        if self._at_fit("binarize") is None:
            _refuse_not_binary(matrix)
        return matrix


@dataclass(eq=False, slots=True)
class ClassCounts(Summary):
    """Counts, or quanta of weight, of the rows of each class above a threshold, by column."""

    threshold: float
    present: Ints

    @classmethod
    def fit(cls, table: Table, threshold: float) -> Self:
        """Count the live rows."""
        shape = table.classes.labels.size, table.matrix.shape[1]
        made = cls(threshold, np.zeros(shape, dtype=np.int64))
        made._add(table, table.live_rows(), 1)
        return made

    def state(self) -> dict[str, Any]:
        """Return the counts."""
        return {"present": self.present}

    def counts(self, quantum: float) -> Floats:
        """Return the counts as floats."""
        return self.present.astype(np.float64) * quantum

    def add(self, table: Table, rows: Ints) -> int:
        """See `Summary`; no count depends on other rows than its own."""
        self._add(table, rows, 1)
        return 0

    def subtract(self, table: Table, rows: Ints) -> int:
        """See `Summary`."""
        self._add(table, rows, -1)
        return 0

    def keep_classes(self, kept: Flags) -> None:
        """Keep only the lines of these classes."""
        self.present = self.present[kept]

    def _add(self, table: Table, rows: Ints, sign: int) -> None:
        sparse = kernels.count_above_sparse
        table.add(_count, rows, self.present, self.threshold, sign, sparse=sparse, few=sign < 0)


def _count(*given: Any) -> None:
    kernels.count_above(*given)


class _CountOthers(Pass[int]):
    """Count the values that are neither 0 nor 1."""

    def of_block(self, block: Block) -> int:
        rows: Any = block.matrix if block.every else block.matrix[block.rows]
        values = entries(rows)
        return int(np.count_nonzero((values != 0) & (values != 1)))

    def merge(self, one: int, other: int) -> int:
        return one + other


def _refuse_not_binary(matrix: Any, live: Any = None) -> None:
    other = run(_CountOthers(), matrix, live)
    if other:
        raise InvalidDataError(
            f"X holds {other} values other than 0 and 1, and binarize=None says that it is "
            "binary; expected 0 and 1; pass a threshold as binarize"
        )
