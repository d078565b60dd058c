"""Categorical naive Bayes: the state is how often each category occurs in every class."""

from __future__ import annotations

from dataclasses import dataclass, field
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.utils import Tags
from sklearn.utils._param_validation import Interval

from erasable.core import _class_kernels as kernels
from erasable.core._schema import Array, Fields, Sizes, refuse
from erasable.core.arrays import Flags, Floats, Ints, Ints32, Values
from erasable.core.errors import (
    InvalidDataError,
    InvalidInputError,
    InvalidParameterError,
    MagnitudeError,
)
from erasable.core.ids import name_some
from erasable.core.passes import Block, Pass, run
from erasable.core.summaries import Summary
from erasable.core.tables import Table
from erasable.naive_bayes._classifier import DiscreteNB, logs, totals_of

MOST_COUNTS = 2**27
"""Most counts there can be: a GiB of them."""


@dataclass(eq=False, slots=True)
class CategoryCounts(Summary):
    """Counts of the categories of every column in each class."""

    least: Ints  # least number of categories of each column, 1 or more
    n_categories: Ints  # of each column
    counts: Ints  # shape (n_classes, n_categories.sum()), column by column; or quanta of weights
    present: Ints  # records of each category, n_classes or 1 rows; `counts` itself without weights
    starts: Ints = field(init=False)  # where the categories of each column begin

    def __post_init__(self) -> None:
        """Find the columns."""
        self.starts = np.cumsum(self.n_categories) - self.n_categories

    @classmethod
    def fit(cls, table: Table, least: Ints, largest: Floats) -> Self:
        """Count the live rows, of which `survey` has found the largest categories."""
        n_classes, names = table.classes.labels.size, table.names
        sizes = np.maximum(largest + 1.0, least)
        if n_classes * sizes.sum() > MOST_COUNTS:
            widest = np.argsort(-sizes)[:3].tolist()
            where = name_some(widest if names is None else [str(names[j]) for j in widest])
            raise MagnitudeError(
                f"the categories of {sizes.size} columns (most in {where}) and {n_classes} classes "
                f"make more than {MOST_COUNTS} counts; expected categories numbered 0, 1, ... "
                "without gaps; encode them with OrdinalEncoder"
            )
        n_categories = sizes.astype(np.int64)
        counts = np.zeros((n_classes, int(n_categories.sum())), dtype=np.int64)
        weighted = table.weights is not None
        present = np.zeros((1, counts.shape[1]), dtype=np.int64) if weighted else counts
        made = cls(least, n_categories, counts, present)
        made._add(table, table.live_rows(), 1)
        return made

    def state(self) -> dict[str, Any]:
        """Return the counts and how they belong to columns."""
        state = {"n_categories": self.n_categories, "categories": self.counts}
        return state if self.present is self.counts else {**state, "present": self.present}

    def keep_classes(self, kept: Flags) -> None:
        """Keep only the lines of these classes."""
        self._cut(kept, np.ones(self.counts.shape[1], dtype=np.bool_))

    def subtract(self, table: Table, rows: Ints) -> int:
        """See `Summary`; the highest categories of a column go with their last rows."""
        self._add(table, rows, -1)
        starts = self.starts
        highest = self.present[:, starts + self.n_categories - 1]
        shrinking = ~highest.any(axis=0) & (self.n_categories > self.least)
        if not shrinking.any():
            return 0
        occurs: Flags = np.asarray(self.present.any(axis=0))
        n_categories = self.n_categories.copy()
        kept = np.ones(occurs.size, dtype=np.bool_)
        for j in np.flatnonzero(shrinking).tolist():
            end = starts[j] + n_categories[j]
            present = np.flatnonzero(occurs[starts[j] : end])
            n_categories[j] = max(int(self.least[j]), int(present[-1]) + 1 if present.size else 1)
            kept[starts[j] + n_categories[j] : end] = False
        self.n_categories = n_categories
        self._cut(np.ones(self.counts.shape[0], dtype=np.bool_), kept)
        self.starts = np.cumsum(n_categories) - n_categories
        return int(shrinking.sum())

    def add(self, table: Table, rows: Ints) -> int | None:
        """See `Summary`; None if a row has a category beyond those that there are."""
        if (survey(table.matrix[rows], np.arange(rows.size)) >= self.n_categories).any():
            return None
        self._add(table, rows, 1)
        return 0

    def _cut(self, classes: Flags, categories: Flags) -> None:
        weighted = self.present is not self.counts
        self.counts = self.counts[classes][:, categories]
        self.present = self.present[:, categories] if weighted else self.counts

    def _add(self, table: Table, rows: Ints, sign: int) -> None:
        table.add(_count, rows, self.counts, self.starts, sign, few=sign < 0)
        if table.weights is not None:
            table.add(_count_all, rows, self.present, self.starts, sign, few=sign < 0)


def _count(*given: Any) -> None:
    kernels.count_categories(*given)


def _count_all(
    matrix: Any, own: Ints, codes: Ints32, units: Ints, starts: Ints, sign: int, present: Ints
) -> None:
    one, once = np.zeros_like(codes), np.ones_like(units)
    kernels.count_categories(matrix, own, one, once, starts, sign, present)


class _Survey(Pass[tuple[Floats, Ints]]):
    """Find the largest category of each column, and count what is no category."""

    def of_block(self, block: Block) -> tuple[Floats, Ints]:
        largest = np.zeros(block.matrix.shape[1])
        wrong = np.zeros((2, largest.size), dtype=np.int64)
        kernels.survey_categories(block.matrix, block.positions, largest, wrong)
        return largest, wrong

    def merge(self, one: tuple[Floats, Ints], other: tuple[Floats, Ints]) -> tuple[Floats, Ints]:
        return np.maximum(one[0], other[0]), one[1] + other[1]


def survey(matrix: Any, rows: Ints) -> Floats:
    """Find the largest category of each column; raise InvalidDataError for other values."""
    largest, wrong = run(_Survey(), matrix, rows)
    negative, broken = wrong.sum(axis=1).tolist()
    if negative:
        raise InvalidDataError(
            f"Negative values in data passed to CategoricalNB: {negative} of them; expected "
            "categories numbered 0, 1, ...; encode them with OrdinalEncoder"
        )
    if broken:
        raise InvalidDataError(
            f"X holds {broken} values that are no whole numbers; expected categories numbered "
            "0, 1, ...; encode them with OrdinalEncoder, or cut numbers into classes"
        )
    return largest


class CategoricalNB(DiscreteNB):
    """Classify by categories, numbered 0, 1, ... in every column, and forget records exactly.

    A deletion costs O(n_features) a record: its categories are subtracted from whole numbers.
    When the last record with the highest category of a column goes, so does the category, and
    those below it that have no records. `min_categories` keeps them.

    Parameters that are not listed here are those of `MultinomialNB`.

    Parameters
    ----------
    alpha : float, default=1.0
        What is added to every count; 0 for no smoothing.
    min_categories : int or array-like of shape (n_features,), default=None
        Least number of categories of every column. Set it to the number there are, so that no
        deletion makes a category unknown to `predict`.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Labels, sorted.
    class_count_ : ndarray of shape (n_classes,), float64
        Number of records of each class, or the sum of their weights.
    class_log_prior_ : ndarray of shape (n_classes,), float64
        Logarithm of the probability of each class.
    category_count_ : list of n_features ndarrays of shape (n_classes, n_categories), float64
        Number of records of each class that have each category, or the sum of their weights.
    feature_log_prob_ : list of n_features ndarrays of shape (n_classes, n_categories), float64
        ``log((category_count_ + alpha) / (class_count_ + alpha * n_categories))``.
    n_categories_ : ndarray of shape (n_features,), int64
        Number of categories of each column.
    ids_, n_features_in_, feature_names_in_
        See `erasable.core.estimator.Erasable`.

    Raises
    ------
    InvalidDataError
        From `fit` and the predictions: values that are no whole numbers, or negative, or text.
        From the predictions: categories that the model does not know (any more).
    InvalidInputError
        From `fit`, for a prior, classes or minima that do not suit the records.
    MagnitudeError
        From `fit`, for so many categories that the counts would need more than 1 GiB.
    TooFewRecordsError
        From `fit` and `delete`, if `class_prior` names more classes than have records.

    Notes
    -----
    Differs from scikit-learn's in that values are not cut to whole numbers but refused, and in
    that an unknown category is not an IndexError but an InvalidDataError that names the column.

    Weights are rounded once to 26 bits below the largest: those that are whole numbers up to
    ``2**26`` stay as they are. A class whose records all weigh 0 is like one without records; the
    categories of such records are there all the same.

    With ``alpha=0`` what a class has never had is impossible in it. A row that is impossible in
    every class gets the classes' shares of the records; scikit-learn answers NaN.

    Examples
    --------
    >>> from erasable.naive_bayes import CategoricalNB
    >>> X = [[0, 2], [1, 0], [1, 1], [2, 1]]
    >>> model = CategoricalNB().fit(X, ["no", "no", "yes", "yes"], ids=["a", "b", "c", "d"])
    >>> model.predict([[1, 1]])
    array(['yes'], dtype=object)
    >>> model.delete(["a"]).counts["columns_scanned"]
    1
    >>> model.n_categories_
    array([3, 2])
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **DiscreteNB._parameter_constraints,
        "alpha": [Interval(Real, 0, None, closed="left")],
        "min_categories": [None, "array-like", Interval(Integral, 1, None, closed="left")],
    }
    _reads_blocks = True
    _counted: CategoryCounts

    def __init__(
        self,
        *,
        alpha: float = 1.0,
        force_alpha: bool = True,
        fit_prior: bool = True,
        class_prior: Any = None,
        min_categories: Any = None,
        classes: Any = None,
    ) -> None:
        self.alpha = alpha
        self.force_alpha = force_alpha
        self.fit_prior = fit_prior
        self.class_prior = class_prior
        self.min_categories = min_categories
        self.classes = classes

    # -- what is learned -----------------------------------------------------------------------

    def _check_settings(self) -> None:
        super()._check_settings()
        self._least_categories()

    def _least_categories(self) -> Ints:
        """Return the least number of categories of each column, 1 by default."""
        given, d = self._at_fit("min_categories"), self.n_features_in_
        if given is None:
            return np.broadcast_to(np.int64(1), d)  # a file may name more features than it has
        try:
            least = np.array(given)
        except ValueError:
            least = np.empty(0)
        if least.dtype.kind not in "iu" or (least < 1).any():
            raise InvalidParameterError(
                f"min_categories is a {type(given).__name__} that does not hold whole numbers of 1 "
                "or more; expected numbers of categories ('min_categories' should have integral "
                "type.); pass one for each column, or one for all"
            )
        if least.shape not in ((), (d,)):
            raise InvalidInputError(
                f"min_categories has shape {least.shape}, and X has {d} features; expected ({d},) "
                f"('min_categories' should have shape ({d},)); pass one for each column"
            )
        return np.broadcast_to(least.astype(np.int64), d)

    def _count(self, table: Table) -> CategoryCounts:
        largest = survey(table.matrix, table.live_rows())
        return CategoryCounts.fit(table, self._least_categories(), largest)

    def _counted_schema(self, *, weighted: bool) -> Fields:
        least = self._least_categories()

        def check(value: dict[str, Any], at: str, sizes: Sizes) -> None:
            n, counts = value["n_categories"], value["categories"]
            if (n < least).any() or int(n.sum()) != counts.shape[1]:
                refuse("n_categories", f"{n.sum()} categories", f"{counts.shape[1]}, as counted")
            of_columns = np.add.reduceat(counts, np.cumsum(n) - n, axis=1)
            if (of_columns != totals_of(value)[:, np.newaxis]).any():
                refuse("categories", "counts of other records", "those of every class")

        counts = Array("int64", ("n_classes", "n_counts"), least=0)
        n_categories = Array("int64", ("n_features",), least=1, most=MOST_COUNTS)
        parts = {"n_categories": n_categories, "categories": counts}
        if weighted:
            parts["present"] = Array("int64", (1, "n_counts"), 0, most=1, per_record=True)
        return Fields(parts, relations=(check,))

    def _counted_from(self, state: dict[str, Any]) -> CategoryCounts:
        n_categories, counts = state["n_categories"], state["categories"]
        present = state.get("present", counts)
        return CategoryCounts(self._least_categories(), n_categories, counts, present)

    # -- what follows --------------------------------------------------------------------------

    @property
    def n_categories_(self) -> Ints:
        """Number of categories of each column."""
        self._check_fitted()
        return self._counted.n_categories.copy()

    @property
    def category_count_(self) -> list[Floats]:
        """Number (or weight) of records of each class that have each category, by column."""
        self._check_fitted()
        return self._by_column(self._counted.counts.astype(np.float64) * self._quantum)

    @property
    def feature_log_prob_(self) -> list[Floats]:
        """Logarithm of the smoothed probability of each category in each class, by column."""
        return self._by_column(self._tables().T)

    def _by_column(self, table: Floats) -> list[Floats]:
        parts = np.split(table, self._counted.starts[1:], axis=1)
        return [part.copy() for part in parts]

    def _derive(self) -> Floats:
        """Return the logarithms of the probabilities, a line for each category of each column."""
        alpha, quantum = self._smoothing(), self._quantum
        sizes, counts = self._counted.n_categories, self._counted.counts * quantum
        total = self._totals[:, np.newaxis] * quantum + alpha * np.repeat(sizes, sizes)
        shares = logs(counts + alpha) - np.log(np.where(total > 0, total, 1.0))
        return np.ascontiguousarray(shares.T)

    def _likelihoods(self, matrix: Values, derived: Any) -> Floats:
        out = np.zeros((matrix.shape[0], self._labels.size))
        kernels.add_looked_up(matrix, self._counted.starts, derived, out)
        return out

    def _rows_to_predict(self, X: Any) -> Values:
        matrix = super()._rows_to_predict(X)
        largest = survey(matrix, np.arange(matrix.shape[0]))
        sizes = self._counted.n_categories
        unknown = np.flatnonzero(largest >= sizes)
        if unknown.size:
            names: Any = self._column_names or range(sizes.size)
            raise InvalidDataError(
                f"{unknown.size} columns ({name_some([names[j] for j in unknown.tolist()])}) hold "
                "categories that no record of the model has; expected 0 to "
                f"{name_some((sizes[unknown] - 1).tolist())} there; leave such rows out, or fit "
                "with min_categories= of all categories that may come"
            )
        return matrix

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.categorical = True
        tags.input_tags.positive_only = True
        return tags
