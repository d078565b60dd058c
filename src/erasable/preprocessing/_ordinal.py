"""One number for every category: the state is the categories, which few deletions change."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import OneToOneFeatureMixin
from sklearn.utils._param_validation import StrOptions

from erasable.core.arrays import Flags, Ints, Ints32
from erasable.core.changes import TableChange
from erasable.core.errors import InvalidDataError, InvalidInputError, InvalidParameterError
from erasable.core.ids import shorten
from erasable.preprocessing._categories import UNKNOWN, has_gap
from erasable.preprocessing._encoder import Encoder


class OrdinalEncoder(OneToOneFeatureMixin, Encoder):
    """Turn the categories of every column into the numbers 0, 1, 2, ..., and forget exactly.

    A deletion costs O(n_features) a record. When the last record of a category goes, the
    categories above it move down by one: the rows that hold these change.

    Parameters
    ----------
    categories : "auto" or list of array-like, default="auto"
        The categories of each column: those of the records, or fixed ones, which no deletion
        takes away, so that no number ever moves. Fixed numbers ascend, text keeps its order, and
        a gap comes last.
    dtype : type of number, default=float64
        Type of what is returned.
    handle_unknown : {"error", "use_encoded_value"}, default="error"
        What `transform` does with a category that no record has: refuse it, or return
        `unknown_value`.
    unknown_value : int or NaN, default=None
        What unknown categories become; none of the numbers of categories.
    encoded_missing_value : int or NaN, default=NaN
        What gaps become; none of the numbers of categories.

    Attributes
    ----------
    categories_ : list of ndarray, float64 or object
        Categories of each column, sorted, a gap (NaN) last; objects where they are text.

    Raises
    ------
    InvalidInputError
        From `fit`, if `categories` do not fit the columns, or a number stands for two things.
    InvalidTypeError
        From `fit`, if a column holds text and numbers.

    See Also
    --------
    OneHotEncoder : One column for each category.

    Notes
    -----
    Differs from scikit-learn's: an error does not print the categories that are unknown; numbers
    and booleans are read as floats. There is no `min_frequency`.

    Examples
    --------
    >>> from erasable.preprocessing import OrdinalEncoder
    >>> encoder = OrdinalEncoder().fit([["s"], ["m"], ["l"], ["m"]], ids=["a", "b", "c", "d"])
    >>> encoder.transform([["m"], ["s"]]).ravel()
    array([1., 2.])
    >>> encoder.delete(["c"]).counts["categories_gone"]
    1
    >>> encoder.transform([["m"], ["s"]]).ravel()
    array([0., 1.])
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "categories": [StrOptions({"auto"}), list],
        "handle_unknown": [StrOptions({"error", "use_encoded_value"})],
        "unknown_value": [Integral, Real, None],
        "encoded_missing_value": [Integral, Real],
    }

    def __init__(
        self,
        *,
        categories: str | list[Any] = "auto",
        dtype: Any = np.float64,
        handle_unknown: str = "error",
        unknown_value: float | None = None,
        encoded_missing_value: float = np.nan,
    ) -> None:
        self.categories = categories
        self.dtype = dtype
        self.handle_unknown = handle_unknown
        self.unknown_value = unknown_value
        self.encoded_missing_value = encoded_missing_value

    # -- what is learned -----------------------------------------------------------------------

    def _validate_params(self) -> None:
        super()._validate_params()
        value, floats = self.unknown_value, np.dtype(self.dtype).kind == "f"
        if self.handle_unknown == "error":
            fits = value is None
            expected = "None where handle_unknown is 'error'"
        else:
            fits = isinstance(value, Integral) or (value is not None and value != value and floats)
            expected = "an integer, or NaN where dtype is a float"
        if not fits:
            raise InvalidParameterError(
                f"unknown_value should be {expected}. Got {shorten(value)} instead; pass another "
                "unknown_value"
            )

    def _lay_out(self) -> None:
        for name in ("unknown_value", "encoded_missing_value"):
            value = self._at_fit(name)
            taken = [
                column
                for column, labels in zip(self._call_columns(), self._labels, strict=True)
                if value is not None
                and value in range(labels.size - has_gap(labels))
                and (name == "unknown_value" or has_gap(labels))
            ]
            if taken:
                raise InvalidInputError(
                    f"{name} ({shorten(value)}) is already used to encode a known category in "
                    f"{len(taken)} columns; expected another number; pass a negative one"
                )
        gaps = any(has_gap(labels) for labels in self._labels)
        missing, dtype = self._at_fit("encoded_missing_value"), self._at_fit("dtype")
        if gaps and missing != missing and np.dtype(dtype).kind != "f":
            raise InvalidInputError(
                f"there are gaps, and encoded_missing_value is NaN, which dtype {dtype} "
                "cannot hold; expected a float type; pass another dtype, or another number for gaps"
            )

    def _follow(self, moved: dict[int, Ints], codes: Ints32 | None) -> TableChange:
        if any((former == UNKNOWN).any() for former in moved.values()):
            self._lay_out()
        columns = np.zeros(len(self._labels), dtype=np.bool_)
        rows = np.zeros(0 if codes is None else codes.shape[0], dtype=np.bool_)
        for j, former in moved.items():
            was = former[: former.size - has_gap(self._labels[j])]
            other = was != np.arange(was.size)
            columns[j] = other.any()
            if codes is not None and columns[j]:
                other &= was >= 0  # a new category moves no row
                rows |= np.append(other, [False] * 3)[np.minimum(codes[:, j], was.size)]
        return TableChange(None if codes is None else np.flatnonzero(rows), columns)

    def _encode(self, codes: Ints32) -> NDArray[Any]:
        out: NDArray[Any] = codes.astype(self._at_fit("dtype"), order="C")
        for j, labels in enumerate(self._labels):
            if has_gap(labels):
                out[codes[:, j] == labels.size - 1, j] = self._at_fit("encoded_missing_value")
        unknown = self._at_fit("unknown_value")
        if unknown is not None:
            out[codes == UNKNOWN] = unknown
        return out

    def inverse_transform(self, X: Any) -> NDArray[Any]:
        """Turn numbers back into categories.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
            Encoded rows.

        Returns
        -------
        ndarray of shape (n_rows, n_features), float64 or object
            `unknown_value` becomes None.

        Raises
        ------
        InvalidDataError
            Another width, or numbers that stand for no category.
        """
        X = self._read_encoded(X, len(self._labels), ensure_all_finite="allow-nan")
        columns = []
        unknown = np.zeros(X.shape, dtype=np.bool_)
        value = self._at_fit("unknown_value")
        if value is not None:
            unknown = _equal(X, value)
        for j, labels in enumerate(self._labels):
            codes = np.where(unknown[:, j], 0, X[:, j])
            if has_gap(labels):
                gaps = _equal(X[:, j], self._at_fit("encoded_missing_value"))
                codes = np.where(gaps, labels.size - 1, codes)
                unknown[:, j] &= ~gaps
            wrong = int(np.count_nonzero(~np.isin(codes, np.arange(labels.size))))
            if wrong:
                raise InvalidDataError(
                    f"{wrong} numbers of column {self._call_columns()[j]!r} stand for no category; "
                    f"expected whole ones from 0 to {labels.size - 1}; pass what transform returned"
                )
            columns.append(labels[codes.astype(np.int64)])
        out = np.column_stack(columns)
        if unknown.any():
            out = out.astype(object)
            out[unknown] = None
        return out


def _equal(values: NDArray[Any], number: float) -> Flags:
    same: Flags = np.isnan(values) if number != number else values == number
    return same
