"""The values of X: numbers, dense or sparse, with or without gaps, columns of text, documents.

The scikit-learn tags of an estimator say what it takes; `Records` that are made before there is an
estimator take everything, and `refuse_unsuited` checks them when one is fitted on them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, issparse
from sklearn.base import BaseEstimator
from sklearn.utils import get_tags
from sklearn.utils.validation import validate_data

from erasable.core.arrays import Values, of_objects
from erasable.core.errors import InvalidDataError
from erasable.core.frames import is_numeric, of_numbers, texts_of
from erasable.core.ids import is_gap, name_some
from erasable.core.matrices import entries
from erasable.core.messages import as_our_error, refuse_dates, refuse_no_columns, refuse_no_texts
from erasable.core.protocol import Learner
from erasable.core.sparse import canonical
from erasable.core.threads import over_rows, several
from erasable.core.unencodable import refuse_surrogates

__all__ = ["ANYTHING", "Accepts", "cells_of", "read_values", "refuse_unsuited"]

_FLOATS = (np.float64, np.float32)


@dataclass(frozen=True, slots=True)
class Accepts:
    """Kinds of X that an estimator takes, besides finite numbers in a dense table.

    Attributes
    ----------
    sparse : bool
        Sparse matrices, which become CSR.
    missing : bool
        NaN.
    objects : bool
        Columns of text beside columns of numbers, read into a table of objects.
    documents : bool
        A list of texts, read into a table of one column, and nothing else.
    exact : bool
        Only whole numbers that floats have, so that categories can be told apart.

    Examples
    --------
    >>> from sklearn.feature_extraction.text import CountVectorizer
    >>> Accepts.of(CountVectorizer()).documents
    True
    """

    sparse: bool = False
    missing: bool = False
    objects: bool = False
    documents: bool = False
    exact: bool = False

    @classmethod
    def of(cls, estimator: BaseEstimator) -> Self:
        """Read the tags of an estimator."""
        tags = get_tags(estimator).input_tags
        # Categories that are not to be negative are numbered already.
        coded = tags.categorical and not tags.positive_only
        objects = coded or (tags.string and tags.two_d_array)
        ours = isinstance(estimator, Learner)
        return cls(
            sparse=tags.sparse,
            missing=tags.allow_nan or (ours and estimator._checks_gaps),
            objects=objects,
            documents=tags.string and not tags.two_d_array,
            exact=objects and not (ours and estimator._rounds_numbers),
        )


ANYTHING = Accepts(sparse=True, missing=True, objects=True)


def read_values(
    estimator: BaseEstimator,
    X: Any,
    frame: Any,
    accepts: Accepts,
    *,
    reset: bool,
    copy: bool,
) -> Values:
    """Read and check X.

    Parameters
    ----------
    estimator : estimator
        Gets `n_features_in_` and `feature_names_in_` where `reset`, else is asked for them.
    X : array-like, frame or sparse matrix of shape (n_rows, n_features), or list of str
    frame : what `erasable.core.frames.as_frame` made of `X`
    accepts : Accepts
    reset : bool
        Whether these are records to learn from, and not to be asked about.
    copy : bool
        Whether the result must share no memory with `X`.

    Returns
    -------
    ndarray of shape (n_rows, n_features), float64, float32 or object, C-contiguous; or csr_array
        In objects, every gap is NaN.

    Raises
    ------
    InvalidDataError
        Something that is not accepted.

    Examples
    --------
    >>> from sklearn.preprocessing import OneHotEncoder
    >>> encoder, X = OneHotEncoder(), [["Bonn", 1], [None, 2]]
    >>> read_values(encoder, X, None, Accepts(objects=True), reset=True, copy=True)
    array([['Bonn', 1],
           [nan, 2]], dtype=object)
    """
    if accepts.documents or (accepts is ANYTHING and _are_documents(X)):
        return _read_documents(estimator, X, reset)
    if frame is None:
        refuse_dates(X, "X")
    if accepts.objects and _has_text(X, frame, accepts):
        return _read_objects(estimator, X, frame, reset)
    if frame is not None:
        X = of_numbers(frame)
    matrix, finite = _read_numbers(estimator, X, accepts, reset=reset, copy=copy)
    if not finite:
        _refuse_not_finite(matrix, getattr(estimator, "feature_names_in_", None), accepts.missing)
    return matrix


def refuse_unsuited(
    estimator: BaseEstimator, matrix: Values, live: NDArray[np.bool_], names: list[str] | None
) -> None:
    """Raise InvalidDataError where an estimator does not take records that others may.

    Parameters
    ----------
    estimator : estimator
    matrix : ndarray or csr_array of shape (n_rows, n_features)
        Of `Records`.
    live : ndarray of shape (n_rows,), bool
        Rows that it is to learn from.
    names : list of str or None
        Names of the columns.

    Examples
    --------
    >>> from sklearn.cluster import KMeans
    >>> refuse_unsuited(KMeans(), np.array([["Bonn"]], dtype=object), np.array([True]), None)
    Traceback (most recent call last):
    erasable.core.errors.InvalidDataError: the records hold text; KMeans expected numbers; ...
    """
    accepts, name = Accepts.of(estimator), type(estimator).__name__
    refuse_no_columns(matrix, name)
    if issparse(matrix):
        if not accepts.sparse:
            raise InvalidDataError(
                f"Sparse data was passed to {name}, which takes dense data; expected an array; "
                "pass X.toarray(), or give an encoder that stands before it sparse_output=False"
            )
    elif matrix.dtype == object:
        if not (accepts.objects or accepts.documents):
            held, advice = "text", "encode or drop those columns"
            if isinstance(matrix, np.ndarray) and not _some_text(matrix[live]):
                held, advice = "objects", "make numbers of those columns, astype(float)"
            raise InvalidDataError(f"the records hold {held}; {name} expected numbers; {advice}")
    elif accepts.documents:
        raise InvalidDataError(
            f"the records hold numbers; {name} expected one text for each; pass a list of strings"
        )
    if accepts.documents and matrix.shape[1] > 1:
        raise InvalidDataError(
            f"the records have {matrix.shape[1]} columns; {name} expected one, of texts; put it in "
            "a ColumnTransformer that gives it one of them"
        )
    # Stored values are checked when they are read.
    in_memory = isinstance(matrix, np.ndarray | csr_array)
    if in_memory and matrix.dtype != object and not _is_finite(matrix):
        _refuse_not_finite(matrix[live], names, accepts.missing)


# -- numbers -------------------------------------------------------------------------------------


def _read_numbers(
    estimator: BaseEstimator, X: Any, accepts: Accepts, *, reset: bool, copy: bool
) -> tuple[Values, bool]:
    """Return the numbers, and whether they surely are finite."""
    plain = isinstance(X, np.ndarray)
    try:
        with np.errstate(invalid="ignore"):
            matrix = validate_data(
                estimator,
                X,
                reset=reset,
                dtype=_FLOATS,
                order="C",
                copy=copy and not plain,
                ensure_all_finite=False,
                accept_sparse="csr" if accepts.sparse else False,
            )
    except (TypeError, ValueError, OverflowError) as error:
        raise as_our_error(error, X) from None
    if issparse(matrix):
        matrix = canonical(matrix)
        return matrix, _is_finite(matrix.data)
    n_rows = matrix.shape[0]
    n_jobs = estimator._n_jobs if isinstance(estimator, Learner) else None
    if not copy:
        if not several(n_rows, n_jobs):
            return matrix, _is_finite(matrix)
        return matrix, all(over_rows(lambda rows: _is_finite(matrix[rows]), n_rows, n_jobs))
    # An array may be the caller's yet. A frame may hand over memory of its own, or memory that
    # cannot be written.
    shared = plain and np.may_share_memory(matrix, X)
    own = matrix.flags.owndata and matrix.flags.writeable and not shared
    made: NDArray[Any] = matrix if own else np.empty_like(matrix, subok=False)

    def add(rows: slice) -> bool:
        # -0.0 becomes 0.0: sums cannot tell which of the two was there first.
        return _is_finite(np.add(matrix[rows], 0.0, out=made[rows]))

    return made, all(list(over_rows(add, n_rows, n_jobs)))


def _is_finite(values: NDArray[Any]) -> bool:
    """Tell whether values surely are finite: by their sum, in a tenth of the time of a mask."""
    with np.errstate(over="ignore", invalid="ignore"):
        return bool(np.isfinite(values.sum()))


def _refuse_not_finite(matrix: Values, names: Any, missing: bool) -> None:
    """Raise InvalidDataError if a value is infinite, or NaN where none may be missing."""
    values = entries(matrix)
    wrong = np.isinf(values) if missing else ~np.isfinite(values)
    if not wrong.any():
        return
    if issparse(matrix):
        counts = np.bincount(matrix.indices[wrong], minlength=matrix.shape[1])
    else:
        counts = wrong.sum(axis=0)
    columns = np.flatnonzero(counts).tolist()
    named = columns if names is None else [str(names[column]) for column in columns]
    kinds = [
        kind
        for kind, present in (
            ("NaN", not missing and np.isnan(values).any()),
            ("inf", np.isinf(values).any()),
        )
        if present
    ]
    raise InvalidDataError(
        f"X contains {' and '.join(kinds)}: {int(counts.sum())} values in "
        f"{'column' if len(columns) == 1 else 'columns'} {name_some(named)}; "
        f"expected finite numbers{' or NaN' if missing else ''}; fill or drop them first"
    )


# -- text ----------------------------------------------------------------------------------------


def _has_text(X: Any, frame: Any, accepts: Accepts) -> bool:
    if frame is not None:
        return not all(is_numeric(dtype) for dtype in frame.schema.values())
    if isinstance(X, np.ndarray):
        if X.dtype != object:
            return X.dtype.kind in "UT"
        if accepts is not ANYTHING:  # so that no record decides how the others are read
            return True
        return _some_text(X)
    if isinstance(X, list | tuple):
        return any(
            isinstance(value, str)
            for row in X
            if isinstance(row, list | tuple | np.ndarray)
            for value in row
        )
    return False


def _some_text(cells: NDArray[Any]) -> bool:
    return any(isinstance(value, str) for value in cells.reshape(-1).tolist())


def _read_objects(estimator: BaseEstimator, X: Any, frame: Any, reset: bool) -> NDArray[Any]:
    if frame is not None:
        table = np.empty(frame.shape, dtype=object)
        unread = []
        for j, column in enumerate(frame.iter_columns()):
            texts = texts_of(column)
            if texts is None:
                unread.append(j)
            table[:, j] = column.to_list() if texts is None else texts
    else:
        unread = None
        try:
            table = np.array(X, dtype=object)
        except ValueError as error:
            raise as_our_error(error, X) from None
    try:
        validate_data(estimator, X, reset=reset, skip_check_array=True)
    except (TypeError, ValueError) as error:
        raise as_our_error(error, X) from None
    if table.ndim != 2 or 0 in table.shape:
        raise InvalidDataError(
            f"X has shape {table.shape}; expected 2D array of shape (n_records, n_features), "
            "neither of them 0; pass one row for each record"
        )
    names = getattr(estimator, "feature_names_in_", None)
    if unread is None:
        return _plain_cells(table, reset, names)
    if unread:
        told = None if names is None else names[unread]
        table[:, unread] = _plain_cells(table[:, unread], reset, told)
    return table


def cells_of(X: Any, matrix: Values) -> NDArray[Any] | None:
    """Return the cells of a list or an array of objects that was read as numbers.

    None of anything else, and where a cell is none that a table of objects keeps.

    Examples
    --------
    >>> X = np.array([[True, 2]], dtype=object)
    >>> cells_of(X, np.array([[1.0, 2.0]]))
    array([[True, 2]], dtype=object)
    """
    listed = isinstance(X, list | tuple) and isinstance(X[0], list | tuple)
    objects = isinstance(X, np.ndarray) and X.dtype == object
    if matrix.dtype == object or not (listed or objects):
        return None
    try:
        return _plain_cells(np.array(X, dtype=object), True, None)
    except InvalidDataError:  # fractions, say, which are numbers and no cells
        return None


def _plain_cells(table: NDArray[Any], reset: bool, names: Any) -> NDArray[Any]:
    cells = table.reshape(-1).tolist()
    if odd := set(map(type, cells)) - {str, int, bool}:
        try:
            cells = [_plain(value) if type(value) in odd else value for value in cells]
        except _OddCellError as error:
            raise _of_columns(error, table, names) from None
    if reset:
        refuse_surrogates([value for value in cells if type(value) is str], "X holds")
    return of_objects(cells).reshape(table.shape)


class _OddCellError(ValueError):
    """A cell that a table of objects does not keep; the message names {columns}."""


def _plain(value: Any) -> str | int | float | bool:
    """Turn a cell into a plain Python value; every kind of gap becomes NaN."""
    kind = type(value)
    if kind is str or kind is int or kind is bool:
        plain: str | int | bool = value
        return plain
    if kind is float and value - value == 0.0:  # most of them, and finite
        return float(value) + 0.0
    if isinstance(value, Decimal):
        return _plain(float(value))
    if isinstance(value, np.generic):
        return _plain(value.item()) if not isinstance(value, np.str_) else str(value)
    if is_gap(value):
        return np.nan
    if isinstance(value, float):
        if value in (np.inf, -np.inf):
            raise _OddCellError(
                "X contains inf in {columns} of objects; expected finite numbers, text or gaps; "
                "fill or drop them first"
            )
        return np.nan if value != value else value + 0.0
    if isinstance(value, str):
        return str(value)
    raise _OddCellError(
        f"X holds a value of type {kind.__name__} in {{columns}}; expected numbers, text or gaps; "
        "make text or numbers of it, or leave it out"
    )


def _of_columns(error: _OddCellError, table: NDArray[Any], names: Any) -> InvalidDataError:
    """Name the columns in which there are cells of this kind."""
    found = []
    for place, column in enumerate(table.T.tolist()):
        try:
            for cell in column:
                _plain(cell)
        except _OddCellError as other:
            if str(other) == str(error):
                found.append(place if names is None else str(names[place]))
    columns = f"{'column' if len(found) == 1 else 'columns'} {name_some(found)}"
    return InvalidDataError(str(error).format(columns=columns))


def _are_documents(X: Any) -> bool:
    if isinstance(X, np.ndarray):
        return X.ndim == 1 and X.dtype.kind in "OUT"
    return isinstance(X, list | tuple) and len(X) > 0 and isinstance(X[0], str)


def _read_documents(estimator: BaseEstimator, X: Any, reset: bool) -> NDArray[Any]:
    if isinstance(X, str | bytes) or not isinstance(X, Iterable):
        raise InvalidDataError(
            f"Iterable over raw text documents expected, {type(X).__name__} object received; "
            "expected one text for each record; pass a list of strings"
        )
    if isinstance(X, np.ndarray) and X.ndim == 2 and X.shape[1] == 1:
        X = X[:, 0]
    if hasattr(X, "columns"):  # a frame: iterating over it would give the names of its columns
        raise InvalidDataError(
            f"X is a {type(X).__name__}; expected one text for each record; pass one column of it"
        )
    texts = list(X.tolist() if isinstance(X, np.ndarray) else X)
    if not texts:
        raise InvalidDataError(
            "X holds no documents; expected one text for each record; pass a list of strings"
        )
    refuse_no_texts(texts)
    if reset:
        refuse_surrogates(texts, "X holds")
        estimator.n_features_in_ = 1
    return of_objects([text if type(text) is str else str(text) for text in texts]).reshape(-1, 1)
