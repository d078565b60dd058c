"""One column for every category: the state is the categories, which few deletions change."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from sklearn.utils._param_validation import StrOptions
from sklearn.utils._set_output import _get_output_config
from sklearn.utils.validation import _check_feature_names_in

from erasable.core.arrays import Ints, Ints32, Values
from erasable.core.changes import TableChange
from erasable.core.errors import InvalidDataError, InvalidInputError
from erasable.preprocessing._categories import find, name_of, plain
from erasable.preprocessing._encoder import Encoder


class OneHotEncoder(Encoder):
    """Turn every category of every column into a column of zeros and ones, and forget exactly.

    A deletion costs O(n_features) a record. When the last record of a category goes, its column
    goes; the others stay as they are, bit for bit.

    Parameters
    ----------
    categories : "auto" or list of array-like, default="auto"
        The categories of each column: those of the records, or fixed ones, which no deletion
        takes away. Fixed numbers ascend, text keeps its order, and a gap comes last.
    drop : {"first", "if_binary"} or array-like of shape (n_features,), default=None
        Which category of each column gets no column of its own: the first, the first of two, or
        the one that is named. One that no record has is not dropped; `fit` warns of it.
    sparse_output : bool, default=True
        Return CSR?
    dtype : type of number, default=float64
        Type of what is returned.
    handle_unknown : {"error", "ignore"}, default="error"
        What `transform` does with a category that no record has: refuse it, or return zeros.

    Attributes
    ----------
    categories_ : list of ndarray, float64 or object
        Categories of each column, sorted, a gap (NaN) last; objects where they are text.
    drop_idx_ : ndarray of shape (n_features,), object, or None
        Position in `categories_` of what is dropped, None where nothing is; None without `drop`.

    Raises
    ------
    InvalidInputError
        From `fit`, if `categories` or `drop` do not fit the columns.
    InvalidTypeError
        From `fit`, if a column holds text and numbers.

    See Also
    --------
    OrdinalEncoder : One number for each category.

    Notes
    -----
    Differs from scikit-learn's: an error does not print the categories that are unknown; numbers
    and booleans are read as floats, and whole ones are written without a point in the names of
    columns; a category named in `drop` may be missing, as its last record may have been deleted.
    There is no `min_frequency`.

    Examples
    --------
    >>> from erasable.preprocessing import OneHotEncoder
    >>> X = [["red", "s"], ["blue", "m"], ["red", "m"]]
    >>> encoder = OneHotEncoder(sparse_output=False).fit(X, ids=["a", "b", "c"])
    >>> encoder.get_feature_names_out(["colour", "size"]).tolist()
    ['colour_blue', 'colour_red', 'size_m', 'size_s']
    >>> encoder.transform([["red", "m"]])
    array([[0., 1., 1., 0.]])
    >>> encoder.delete(["b"]).counts["categories_gone"]
    1
    >>> encoder.transform([["red", "m"]])
    array([[1., 1., 0.]])
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "categories": [StrOptions({"auto"}), list],
        "drop": [StrOptions({"first", "if_binary"}), "array-like", None],
        "sparse_output": ["boolean"],
        "handle_unknown": [StrOptions({"error", "ignore"})],
    }
    _dropped: list[int | None]
    _places: Ints  # output column of every category of every column, or -1
    _width: int

    def __init__(
        self,
        *,
        categories: str | list[Any] = "auto",
        drop: str | Sequence[Any] | None = None,
        sparse_output: bool = True,
        dtype: Any = np.float64,
        handle_unknown: str = "error",
    ) -> None:
        self.categories = categories
        self.drop = drop
        self.sparse_output = sparse_output
        self.dtype = dtype
        self.handle_unknown = handle_unknown

    # -- what is learned -----------------------------------------------------------------------

    def _fit_rows(self) -> None:
        super()._fit_rows()
        drop = self._at_fit("drop")
        if drop is not None and not isinstance(drop, str):
            missing = sum(at is None for at in self._dropped)
            if missing:
                warnings.warn(
                    f"drop= names categories of {missing} columns that no record has; "
                    "nothing is dropped there",
                    stacklevel=4,
                )

    def _lay_out(self) -> None:
        self._dropped = [self._find_dropped(j) for j in range(len(self._labels))]
        sizes = [labels.size for labels in self._labels]
        start = np.cumsum([0, *sizes])
        kept = np.ones(start[-1], dtype=np.bool_)
        kept[[start[j] + at for j, at in enumerate(self._dropped) if at is not None]] = False
        self._places = np.where(kept, np.cumsum(kept) - 1, -1)
        self._starts = start[:-1]
        self._width = int(kept.sum())

    def _find_dropped(self, j: int) -> int | None:
        labels, drop = self._labels[j], self._at_fit("drop")
        if drop is None:
            return None
        if isinstance(drop, str):
            wanted = drop == "first" or labels.size == 2
            return 0 if wanted else None
        if len(drop) != len(self._labels):
            raise InvalidInputError(
                f"`drop` should have length equal to the number of features ({len(self._labels)}), "
                f"got {len(drop)}; name one category for each column"
            )
        value = np.empty(1, dtype=object)
        value[0] = plain(drop[j])
        at = int(find(labels, value)[0])
        return at if at >= 0 else None

    def _follow(self, moved: dict[int, Ints], codes: Ints32 | None) -> TableChange:
        places, starts = np.append(self._places, -1), self._starts
        self._lay_out()
        was = []
        for j, (labels, start) in enumerate(zip(self._labels, starts, strict=True)):
            former = moved.get(j, np.arange(labels.size))
            was.append(np.where(former >= 0, former + start, -1))
        origin = places[np.concatenate(was)][self._places >= 0]
        # A column is new where its category is, or was dropped until now.
        return TableChange(None, origin < 0, origin)

    @property
    def drop_idx_(self) -> NDArray[Any] | None:
        """Position of the category of each column that is dropped."""
        self._check_fitted()
        return None if self._at_fit("drop") is None else np.array(self._dropped, dtype=object)

    def transform(self, X: Any) -> Values:
        """Encode rows.

        Parameters
        ----------
        X : array-like or frame of shape (n_rows, n_features)
            Text, numbers and gaps.

        Returns
        -------
        csr_array or ndarray of shape (n_rows, n_features_out), of type `dtype`
            Or a frame, with `set_output`.

        Raises
        ------
        InvalidDataError
            Categories that no record has, where `handle_unknown` is "error"; another width.
        InvalidInputError
            `set_output` requests a frame, and the output is sparse.
        """
        container = _get_output_config("transform", estimator=self)["dense"]
        if container != "default" and self._at_fit("sparse_output"):
            raise InvalidInputError(
                f"{container} output does not support sparse data; expected "
                "sparse_output=False; set that, or set_output(transform='default')"
            )
        return super().transform(X)

    def _encode(self, codes: Ints32) -> Values:
        places = self._places[np.where(codes >= 0, codes + self._starts, 0)]
        shown = (codes >= 0) & (places >= 0)
        dtype = self._at_fit("dtype")
        if not self._at_fit("sparse_output"):
            out = np.zeros((codes.shape[0], self._width), dtype=dtype)
            rows, columns = np.nonzero(shown)
            out[rows, places[rows, columns]] = 1
            return out
        ends = np.zeros(codes.shape[0] + 1, dtype=np.int64)
        np.cumsum(shown.sum(axis=1), out=ends[1:])
        narrow = np.int32 if max(ends[-1], self._width) < 2**31 else np.int64
        data = np.ones(ends[-1], dtype=dtype)
        indices = places[shown].astype(narrow)
        return csr_array((data, indices, ends.astype(narrow)), shape=(codes.shape[0], self._width))

    def inverse_transform(self, X: Any) -> NDArray[Any]:
        """Turn encoded rows back into categories.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_rows, n_features_out)

        Returns
        -------
        ndarray of shape (n_rows, n_features), float64 or object
            Zeros everywhere are what was dropped, or, where nothing was and `handle_unknown` is
            "ignore", None.

        Raises
        ------
        InvalidDataError
            Another width; zeros everywhere in a column without a dropped category.
        """
        X = self._read_encoded(X, self._width, accept_sparse="csr", ensure_min_features=0)
        columns, unknown = [], []
        for j, labels in enumerate(self._labels):
            start, dropped = self._starts[j], self._dropped[j]
            kept = np.flatnonzero(self._places[start : start + labels.size] >= 0)
            first = int(self._places[start + kept[0]]) if kept.size else 0
            part = X[:, first : first + kept.size]
            blank = np.asarray(part.sum(axis=1)).ravel() == 0
            codes = np.zeros(X.shape[0], dtype=np.int64)
            if kept.size:
                codes[:] = kept[np.asarray(part.argmax(axis=1)).ravel()]
            if dropped is not None:
                codes[blank] = dropped
                blank[:] = False
            elif blank.any() and self._at_fit("handle_unknown") == "error":
                raise InvalidDataError(
                    f"{int(blank.sum())} samples can not be inverted: they contain all zeros in "
                    f"the columns of {self._call_columns()[j]!r}, of which no category is dropped; "
                    "expected a one in each; leave out those rows"
                )
            columns.append(labels[codes] if labels.size else np.full(codes.size, np.nan))
            unknown.append(blank)
        blanks = np.column_stack(unknown)
        out = np.column_stack(columns)
        if blanks.any():
            out = out.astype(object)
            out[blanks] = None
        return out

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """Name the columns that `transform` makes: the column's name, and the category.

        Parameters
        ----------
        input_features : array-like of str, default=None
            Names of the columns; those of `fit` by default.

        Returns
        -------
        ndarray of shape (n_features_out,), object
        """
        self._check_fitted()
        given = _check_feature_names_in(self, input_features)
        names = [
            f"{name}_{name_of(label)}"
            for name, labels, dropped in zip(given, self._labels, self._dropped, strict=True)
            for at, label in enumerate(labels.tolist())
            if at != dropped
        ]
        return np.array(names, dtype=object)
