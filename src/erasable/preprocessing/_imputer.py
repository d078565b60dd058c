"""Filling gaps: the state is what each column is filled with, and how often it has a value."""

from __future__ import annotations

from dataclasses import replace
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.base import TransformerMixin
from sklearn.utils import Tags
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.validation import _check_feature_names_in, check_array

from erasable.core._changing import not_its_records
from erasable.core._schema import Fields
from erasable.core.arrays import Flags, Ints, Values
from erasable.core.changes import Delta, TableChange
from erasable.core.deletion import Outcome
from erasable.core.errors import InvalidDataError, InvalidInputError
from erasable.core.estimator import Erasable
from erasable.core.exported import Exported
from erasable.core.ids import shorten
from erasable.core.messages import as_our_error
from erasable.core.tables import Table
from erasable.preprocessing._categories import plain
from erasable.preprocessing._fills import (
    Constants,
    Fill,
    Gaps,
    Means,
    Medians,
    Modes,
    constant_of,
    refuse_strays,
)
from erasable.preprocessing._saved_state import imputer_schema
from erasable.preprocessing._sparse_fills import (
    SparseModes,
    fill_sparse,
    gaps_in,
    refuse_zeros_as_gaps,
)


def places_before(before: Ints, now: Ints) -> Ints:
    """Return where each of some ascending numbers was among others; -1 if it was not there."""
    places = np.searchsorted(before, now)
    found = np.isin(now, before)
    return np.where(found, places, -1)


def differ(one: NDArray[Any], two: NDArray[Any]) -> Flags:
    """Tell which elements differ in value or type; NaN does not differ from NaN."""
    if one.dtype == two.dtype != object:
        return np.asarray((one != two) & ((one == one) | (two == two)), dtype=np.bool_)
    pairs = zip(one.tolist(), two.tolist(), strict=True)
    return np.array(
        [type(a) is not type(b) or (a != b and not (a != a and b != b)) for a, b in pairs],
        dtype=np.bool_,
    )


_OF_OBJECTS = ("most_frequent", "constant")


class SimpleImputer(TransformerMixin, Erasable):
    """Fill the gaps of every column with one value, and forget records exactly.

    A mean, a median or the most frequent value depends on the records it was made of. A deletion
    brings it up to date in O(n_features) a record; a column is read again when an extreme goes
    (mean) or after hundreds of deletions on one side (median).

    Parameters
    ----------
    missing_values : number, str or None, default=NaN
        What marks a gap. NaN and None are one; where another marker is given, NaN is refused.
    strategy : {"mean", "median", "most_frequent", "constant"}, default="mean"
        What gaps are filled with: statistics of the column's values, or `fill_value`. Of several
        values that are most frequent, the smallest. The last two take text.
    fill_value : number or str, default=None
        With "constant": what gaps are filled with; None is 0, or "missing_value" where the table
        holds text.
    keep_empty_features : bool, default=False
        Keep columns without any value, filled with 0 or `fill_value`? Otherwise they are left out,
        and a deletion that takes a column's last value takes the column.
    add_indicator : bool, default=False
        Append a column of zeros and ones for each column that has gaps in the records?

    Attributes
    ----------
    statistics_ : ndarray of shape (n_features,), float64 or object
        What each column is filled with; NaN for those that are left out.
    indicator_ : MissingIndicator or None
        That of scikit-learn, with `add_indicator`.

    Raises
    ------
    InvalidParameterError
        From `fit`, for a `fill_value` that the table cannot hold.
    InvalidInputError
        From `fit`, for text as `missing_values` in a table of numbers, or 0 in a sparse one.
    InvalidTypeError
        From `fit` with "most_frequent", if a column holds text and numbers.
    MagnitudeError
        From `fit` with "mean", if values exceed ``2**480``.

    Notes
    -----
    Means are of values rounded to 26 bits below the largest magnitude of their column
    (`erasable.core.grid`), and agree with scikit-learn's to about 1e-8 of that. Differs from
    scikit-learn's besides: takes no function as `strategy`; the most frequent of booleans among
    objects is a number, 1.0 or 0.0; there is no warning of columns that are
    left out (`get_feature_names_out` names those that are not). Sparse data gives the model of the
    same values in an array: what is not stored is 0, and no gap (so "constant", too, keeps columns
    in which scikit-learn, unless a zero is stored, sees gaps alone).

    Examples
    --------
    >>> import numpy as np
    >>> from erasable.preprocessing import SimpleImputer
    >>> X = [[1.0, 7.0], [np.nan, 8.0], [5.0, np.nan], [3.0, 9.0]]
    >>> imputer = SimpleImputer(strategy="median").fit(X, ids=["a", "b", "c", "d"])
    >>> imputer.transform([[np.nan, np.nan]])
    array([[3., 8.]])
    >>> imputer.delete(["c"]).counts["columns_changed"]
    1
    >>> imputer.transform([[np.nan, np.nan]])
    array([[2., 8.]])
    """

    _reads_blocks = True
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "missing_values": [Real, str, None],
        "strategy": [StrOptions({"mean", "median", "most_frequent", "constant"})],
        "keep_empty_features": ["boolean"],
        "add_indicator": ["boolean"],
    }
    _statistics: NDArray[Any]
    _n_values: Ints
    _fill: Fill
    _changed_inputs: Flags | None = None

    def __init__(
        self,
        *,
        missing_values: float | str | None = np.nan,
        strategy: str = "mean",
        fill_value: float | str | None = None,
        keep_empty_features: bool = False,
        add_indicator: bool = False,
    ) -> None:
        self.missing_values = missing_values
        self.strategy = strategy
        self.fill_value = fill_value
        self.keep_empty_features = keep_empty_features
        self.add_indicator = add_indicator

    # -- what is learned -----------------------------------------------------------------------

    def _fit_rows(self) -> None:
        matrix = self._attached().records.matrix
        self._take(*self._learn_fills(objects=bool(matrix.dtype == object)))

    @property
    def _heeds_objects(self) -> bool:
        return self._at_fit("strategy") in _OF_OBJECTS

    def _learn_fills(self, *, objects: bool) -> tuple[Fill, Gaps]:
        """Learn from the records, as from objects or from numbers.

        A model of objects may be loaded with `Records` of them, which are numbers without text.
        """
        table = Table.of(self._attached())
        marker = plain(self._at_fit("missing_values"))
        if not objects and isinstance(marker, str):
            raise InvalidInputError(
                "'X' and 'missing_values' types are expected to be both numerical: X holds "
                f"numbers, and missing_values is {shorten(marker)}; expected a number; pass np.nan"
            )
        sparse, strategy = table.is_sparse, self._at_fit("strategy")
        if sparse:
            refuse_zeros_as_gaps(marker)
        gaps = Gaps(table, marker)
        self._refuse_strays(gaps.strays)
        if strategy == "constant":
            value, dtype = constant_of(self._at_fit("fill_value"), objects=objects), object
            fills = np.full(table.n_features, value, dtype if objects else np.float64)
            return Constants(fills), gaps
        if strategy == "most_frequent" and not sparse:
            return Modes(table, marker, objects=objects), gaps
        kind: Any = {"mean": Means, "median": Medians, "most_frequent": SparseModes}[strategy]
        return kind(table, marker), gaps

    def _take(self, fill: Fill, gaps: Gaps) -> None:
        self._fill, self._accelerator = fill, gaps
        self._derive_outputs(fill.statistics(), gaps.n_values, self._attached().n_live)

    def _derive_outputs(self, statistics: NDArray[Any], n_values: Ints, n_records: int) -> None:
        """Say what follows from what was learned: the fills, and which columns there are."""
        empty = n_values == 0
        if not self._at_fit("keep_empty_features"):
            statistics[empty] = np.nan
        elif self._at_fit("strategy") != "constant":
            statistics[empty] = 0
        self._statistics, self._n_values = statistics, n_values
        self._kept = np.flatnonzero(~empty | self._at_fit("keep_empty_features"))
        self._marked = np.flatnonzero((n_values < n_records) & self._at_fit("add_indicator"))

    def _update(self, delta: Delta) -> Outcome | None:
        table, arriving = Table.of(self._attached()), delta.arriving
        if arriving.size and table.matrix.dtype == object:
            self._refuse_strays(gaps_in(table.matrix[arriving], np.nan))
        scanned = self._fill.update(table, delta)
        if scanned is None:
            return None
        self._accelerator.update(table, delta)
        return self._note_changes(scanned)

    def _note_changes(self, scanned: int) -> Outcome:
        """Know what has changed in the output."""
        held, before = self._attached(), self._statistics
        kept, marked = self._kept, self._marked
        self._take(self._fill, self._accelerator)
        # A column without gaps stays the same with any fill.
        changed = differ(self._statistics, before) & (self._n_values < held.n_live)
        self._changed_inputs = changed
        still = np.zeros(self._marked.size, dtype=np.bool_)
        columns, origin = np.concatenate([changed[self._kept], still]), None
        if not (np.array_equal(kept, self._kept) and np.array_equal(marked, self._marked)):
            marks = places_before(marked, self._marked)
            origin = np.append(places_before(kept, self._kept), marks + kept.size * (marks >= 0))
            columns |= origin < 0
        self._change = TableChange(None, columns, origin)
        counts = {"columns_changed": int(changed.sum()), "columns_scanned": scanned}
        return Outcome("updated", held.n_live if scanned else 0, counts)

    def _output_change(self) -> TableChange:
        # Rows with gaps in the columns whose fill changed are looked up only when they are needed.
        if self._changed_inputs is None or self._accelerator is None:
            return self._change
        return replace(self._change, rows=self._accelerator.rows(self._changed_inputs))

    def _schema(self) -> Fields:
        n_records, strategy = self._n_records, self._at_fit("strategy")
        return imputer_schema(n_records, strategy, plain(self._at_fit("missing_values")))

    def _state(self) -> dict[str, Any]:
        return {"n_values": self._n_values, **self._fill.state()}

    def _restore(self, state: dict[str, Any]) -> None:
        n_values = state["n_values"]
        fill: Fill = (
            Means.restored(state, n_values) if "sum" in state else Constants(state["statistics"])
        )
        self._fill = fill
        self._derive_outputs(fill.statistics(), n_values, self._n_records)

    def _reattach(self) -> None:
        fill, gaps = self._learn_fills(objects=bool(self._statistics.dtype == object))
        mine, found = self._state(), {"n_values": gaps.n_values, **fill.state()}
        if mine.keys() != found.keys() or any(differ(mine[n], found[n]).any() for n in mine):
            raise not_its_records(self)
        self._take(fill, gaps)

    # -- what follows --------------------------------------------------------------------------

    @property
    def statistics_(self) -> NDArray[Any]:
        """What each column is filled with."""
        self._check_fitted()
        return self._statistics.copy()

    indicator_ = Exported("Fitted `sklearn.impute.MissingIndicator`; None without `add_indicator`.")

    def transform(self, X: Any) -> Values:
        """Fill gaps.

        Parameters
        ----------
        X : array-like, frame or sparse matrix of shape (n_rows, n_features)

        Returns
        -------
        ndarray or csr_array of shape (n_rows, n_features_out), float64, float32 or object
            A new one, or the container of `set_output`; CSR where `X` is sparse.

        Raises
        ------
        InvalidDataError
            Text, where the imputer was fitted on numbers; NaN, where `missing_values` is another
            marker.
        """
        matrix = self._read_matrix(X)
        if issparse(matrix):
            if self._statistics.dtype == object:
                raise InvalidDataError(
                    "X is sparse, and the imputer was fitted on text; expected text; pass a table"
                )
            marker = plain(self._at_fit("missing_values"))
            return fill_sparse(matrix, marker, self._statistics, self._kept, self._marked)
        objects = self._statistics.dtype == object
        if matrix.dtype == object and not objects:
            if any(type(cell) is str for cell in matrix.ravel().tolist()):
                raise InvalidDataError(
                    "X holds text, and the imputer was fitted on numbers; expected numbers; "
                    "convert or drop those columns"
                )
            matrix = matrix.astype(np.float64)
        if objects:
            matrix = matrix.astype(object, copy=False)
        if matrix.dtype == object:
            self._refuse_strays(gaps_in(matrix, np.nan))
        gaps = gaps_in(matrix, plain(self._at_fit("missing_values")))
        out: NDArray[Any] = np.array(matrix[:, self._kept], order="C")
        rows, columns = np.nonzero(gaps[:, self._kept])
        out[rows, columns] = self._statistics[self._kept][columns]
        if self._marked.size:
            out = np.hstack([out, gaps[:, self._marked].astype(out.dtype)])
        return out

    def inverse_transform(self, X: Any) -> NDArray[Any]:
        """Put the gaps back that the indicators mark.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features_out)
            What `transform` returned.

        Returns
        -------
        ndarray of shape (n_rows, n_features), float64 or object
            Columns that were left out are gaps.

        Raises
        ------
        InvalidInputError
            There are no indicators: `add_indicator` is False.
        InvalidDataError
            Another width.
        """
        self._check_fitted()
        if not self._at_fit("add_indicator"):
            raise InvalidInputError(
                "'inverse_transform' works only when SimpleImputer has add_indicator=True; "
                "expected indicators of gaps; fit with add_indicator=True"
            )
        dtype = self._statistics.dtype
        try:
            matrix = check_array(X, dtype=dtype, ensure_all_finite=False)
        except (TypeError, ValueError) as error:
            raise as_our_error(error, X) from None
        width = self._kept.size + self._marked.size
        if matrix.shape[1] != width:
            raise InvalidDataError(
                f"X has {matrix.shape[1]} columns; expected {width}; pass what transform returned"
            )
        marker = plain(self._at_fit("missing_values"))
        out = np.full((matrix.shape[0], self.n_features_in_), marker, dtype=dtype)
        out[:, self._kept] = matrix[:, : self._kept.size]
        rows, columns = np.nonzero(matrix[:, self._kept.size :].astype(np.bool_))
        out[rows, self._marked[columns]] = marker
        return out

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """Name the columns that `transform` returns.

        Parameters
        ----------
        input_features : array-like of str, default=None
            Names of the columns; those of `fit` by default.

        Returns
        -------
        ndarray of shape (n_features_out,), object
        """
        self._check_fitted()
        names = _check_feature_names_in(self, input_features)
        marks = [f"missingindicator_{name}" for name in names[self._marked]]
        return np.array([*names[self._kept], *marks], dtype=object)

    def _refuse_strays(self, strays: NDArray[Any]) -> None:
        refuse_strays(strays, plain(self._at_fit("missing_values")), self._column_names)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        marker = plain(self._at_fit("missing_values"))
        tags.input_tags.allow_nan = bool(marker != marker)
        objects = self._at_fit("strategy") in _OF_OBJECTS
        tags.input_tags.categorical = tags.input_tags.string = objects
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags
