"""What users hand in: arrays, lists, frames, sparse matrices, read into one plain table.

The caller's arrays are never kept: a table is always a copy, so that erasing a record touches
nothing that belongs to the caller. Error messages name columns and count values; they never
print a value, because a value may be personal.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils import get_tags

from erasable.core._column_choice import Columns
from erasable.core._unused_columns import blanks_of, replaced
from erasable.core.errors import InvalidDataError, InvalidIdsError
from erasable.core.frames import (
    as_frame,
    as_series,
    index_of,
    is_numeric,
    refuse_missing_column,
    refuse_other_index,
    refuse_other_names,
    types_of,
    without_index,
)
from erasable.core.ids import as_id_array, refuse_repeats
from erasable.core.protocol import Learner
from erasable.core.sparse import take_rows
from erasable.core.targets import check_target, read_target, read_weights
from erasable.core.undecided_types import are_rounded, find_unsettled, refuse_rounded
from erasable.core.unencodable import refuse_surrogates
from erasable.core.values import ANYTHING, Accepts, Values, read_values, refuse_unsuited

if TYPE_CHECKING:
    from erasable.core.records import Records

__all__ = [
    "RecordArrays",
    "read_labels",
    "read_matrix",
    "read_table",
    "refuse_masked",
    "refuse_records",
]

_FROM_INDEX = (
    "they came from the frame's index: call .reset_index(drop=True), or name a column with ids="
)


@dataclass(frozen=True)
class RecordArrays:
    """Records as plain arrays, none of them the caller's.

    Attributes
    ----------
    matrix : ndarray of shape (n_records, n_features), float64, float32 or object; or csr_array
        C-contiguous; a sparse one is in canonical form.
    y : ndarray of shape (n_records,) or (n_records, n_outputs), or None
        int64, uint64, float64, bool, or object where targets are strings.
    weights : ndarray of shape (n_records,), float64, or None
    ids : ndarray of shape (n_records,), int64, uint64 or object
    groups : ndarray of shape (n_records,), int64, uint64 or object, or None
    feature_names : list of str, or None
    numeric : ndarray of shape (n_features,), bool, or None
        Which columns the frame declares to hold numbers, where `matrix` is one of objects.
    unsettled : frozenset of {"X", "y", "rounded"}
        See `erasable.core.undecided_types.find_unsettled`.
    unread : dict of int to float or str
        What stands in columns that the model they were read for does not look at.
    types : tuple of str, or None
        Names of the types of the columns of a frame of pandas.

    Examples
    --------
    >>> read_table([[1.0, 2.0]], groups=["anna"]).groups
    array(['anna'], dtype=object)
    """

    matrix: Values
    y: NDArray[Any] | None
    ids: NDArray[Any]
    groups: NDArray[Any] | None
    feature_names: list[str] | None
    weights: NDArray[np.float64] | None = None
    numeric: NDArray[np.bool_] | None = None
    unsettled: frozenset[str] = frozenset()
    unread: Mapping[int, float | str] = field(default_factory=dict)
    types: tuple[str, ...] | None = None

    def take(self, rows: Any, matrix: Values | None = None) -> RecordArrays:
        """Copy some rows; `matrix` holds their values, if that is known."""
        return RecordArrays(
            matrix=take_rows(self.matrix, rows) if matrix is None else matrix,
            y=None if self.y is None else self.y[rows],
            ids=self.ids[rows],
            groups=None if self.groups is None else self.groups[rows],
            feature_names=self.feature_names,
            weights=None if self.weights is None else self.weights[rows],
            numeric=self.numeric,
            unsettled=self.unsettled,
            unread=self.unread,
            types=self.types,
        )


def read_table(
    X: Any,
    y: Any = None,
    *,
    sample_weight: Any = None,
    ids: str | Iterable[Any] | None = None,
    groups: str | Iterable[Any] | None = None,
    estimator: BaseEstimator | None = None,
    accepts: Accepts | None = None,
    unread: Mapping[int, float | str] | BaseEstimator | None = None,
) -> RecordArrays:
    """Read records, checked and copied.

    Parameters
    ----------
    X : array-like, frame or sparse matrix of shape (n_records, n_features), or list of str
        Finite numbers; float32 stays float32, everything else becomes float64. Where the
        estimator takes them, or there is none, NaN, text and documents, too.
    y : array-like of shape (n_records,) or (n_records, n_outputs), default=None
        Targets: numbers, booleans or strings.
    sample_weight : array-like of shape (n_records,) or float, default=None
        How much each record counts.
    ids : array-like of int or str, or the name of a column, default=None
        Which record each row is. By default a pandas frame's index, or 0..n-1. A column that is
        named is not a feature.
    groups : array-like of int or str, or the name of a column, default=None
        Which records leave together.
    estimator : scikit-learn estimator, default=None
        Gets `n_features_in_` and `feature_names_in_`, and is named in messages.
    accepts : Accepts, default=None
        What is taken as X; by default what the estimator takes, or anything without one.
    unread : dict or estimator, default=None
        Positions of columns that are not read, and what is to stand there; or an estimator, by
        default the same, which does not look at them.

    Returns
    -------
    Table
        Copies of everything.

    Raises
    ------
    InvalidDataError
        Values that the estimator does not take, or no values at all.
    InvalidIdsError
        Ids or groups that repeat, have a wrong type, or do not match the rows.

    Examples
    --------
    >>> table = read_table([[1, 2], [3, 4]], ids=["a", "b"])
    >>> table.matrix.dtype, table.ids
    (dtype('float64'), array(['a', 'b'], dtype=object))
    """
    reader = _Reader() if estimator is None else estimator
    refuse_masked(X)
    X = without_index(X, keep=[name for name in (ids, groups) if isinstance(name, str)])
    frame, series = as_frame(X), as_series(X)
    if series is not None and not is_numeric(series.dtype):
        X = series.to_list()
    dropped = sorted({name for name in (ids, groups) if isinstance(name, str)})
    for name in dropped:
        refuse_missing_column(X, frame, name, "ids" if name == ids else "groups")
    for name, values in (("ids", ids), ("groups", groups), ("y", y)):
        refuse_other_index(frame if series is None else series, values, name)
    id_values: Any = frame[ids] if isinstance(ids, str) else ids
    group_values: Any = frame[groups] if isinstance(groups, str) else groups
    advice = ""
    if frame is not None and dropped:
        frame = frame.drop(dropped)
        X = frame.to_native()
    labelled = frame if series is None else series
    if ids is None and labelled is not None and (index := index_of(labelled)) is not None:
        id_values, advice = index, _FROM_INDEX
    if accepts is None:  # records of no estimator yet may hold any values
        accepts = ANYTHING if estimator is None else Accepts.of(estimator)
    types = None if frame is None else types_of(frame)
    blanks = _blanks(reader if unread is None else unread, X, frame)
    X, frame = replaced(X, frame, blanks)
    matrix = read_values(reader, X, frame, accepts, reset=True, copy=True)
    n_records = matrix.shape[0]
    numeric = None
    if frame is not None and matrix.dtype == object:
        numeric = np.array([is_numeric(dtype) for dtype in frame.schema.values()])
    target = None if y is None else read_target(y, n_records)
    if target is not None and estimator is not None:
        target = check_target(estimator, target)
    weights = None if sample_weight is None else read_weights(sample_weight, n_records)
    if id_values is None:
        id_array = np.arange(n_records, dtype=np.int64)
    else:
        id_array = read_labels(id_values, n_records, "ids", advice)
        refuse_repeats(id_array, advice=advice)
    group_array = None if groups is None else read_labels(group_values, n_records, "groups")
    names = getattr(reader, "feature_names_in_", None)
    if names is not None:
        refuse_surrogates(names.tolist(), "the names of columns hold")
    return RecordArrays(
        matrix=matrix,
        y=target,
        ids=id_array,
        groups=group_array,
        feature_names=None if names is None else names.tolist(),
        weights=weights,
        numeric=numeric,
        unsettled=find_unsettled(X, frame, matrix, accepts, y, target),
        unread=blanks,
        types=types,
    )


def _blanks(reader: Any, X: Any, frame: Any) -> Mapping[int, float | str]:
    """Return what is to stand in columns that an estimator does not look at."""
    if isinstance(reader, Mapping):
        return reader
    if not isinstance(reader, Learner):
        return {}
    names, types, n_columns = None, None, 0
    if frame is not None:
        n_columns, types = len(frame.columns), types_of(frame)
        named = all(isinstance(name, str) for name in frame.columns)
        names = frame.columns if named else None
    elif hasattr(X, "shape"):
        n_columns = X.shape[1] if len(X.shape) == 2 else 0
    elif isinstance(X, list | tuple) and X and isinstance(X[0], list | tuple):
        n_columns = len(X[0])
    # Another error tells what is wrong with the width.
    if not n_columns or n_columns != getattr(reader, "n_features_in_", n_columns):
        return {}
    unread = reader._unread(Columns(n_columns, names, types))
    text = reader._marks_unread_text and Accepts.of(reader).objects
    return blanks_of(frame, unread, text=text) if unread else {}


def read_matrix(estimator: BaseEstimator, X: Any) -> Values:
    """Read the rows that a fitted estimator is asked about; a copy is made only where needed.

    Returns
    -------
    ndarray of shape (n_rows, n_features_in_), float64, float32 or object; or csr_array

    Raises
    ------
    InvalidDataError
        Values that it does not take, another width, or other feature names than at `fit`.

    Examples
    --------
    >>> from sklearn.cluster import KMeans
    >>> model = KMeans(n_clusters=1).fit([[0.0, 1.0], [2.0, 3.0]])
    >>> read_matrix(model, [[4, 5]])
    array([[4., 5.]])
    """
    refuse_masked(X)
    X = without_index(X)
    frame = as_frame(X)
    if frame is not None:
        names = getattr(estimator, "feature_names_in_", None)
        if names is not None:
            refuse_other_names(frame, names.tolist())
    X, frame = replaced(X, frame, _blanks(estimator, X, frame))
    accepts = Accepts.of(estimator)
    if accepts.documents and (series := as_series(X)) is not None:
        X = series.to_list()
    matrix = read_values(estimator, X, frame, accepts, reset=False, copy=False)
    if accepts.exact and are_rounded(X, frame, matrix):
        refuse_rounded(type(estimator).__name__)
    return matrix


def refuse_records(estimator: BaseEstimator, records: Records) -> None:
    """Raise InvalidDataError where an estimator takes no such values or targets of `Records`.

    Examples
    --------
    >>> from sklearn.svm import SVR
    >>> from erasable import Records
    >>> refuse_records(SVR(), Records([[1.0], [2.0]], ["a", "b"]))
    Traceback (most recent call last):
    erasable.core.errors.InvalidDataError: y holds strings; expected numbers, because SVR is ...
    """
    live = ~records._withdrawn  # what other models have deleted does not count
    y = records.y if get_tags(estimator).target_tags.required else None
    if y is not None and check_target(estimator, y if live.all() else y[live]).ndim < y.ndim:
        raise InvalidDataError(
            f"the records have targets of shape {y.shape}; expected ({records.n_rows},); "
            "pass y.ravel() to Records"
        )
    refuse_unsuited(estimator, records.matrix, live, records.feature_names)


class _Reader(BaseEstimator):
    """Stands in for an estimator where records are read before there is one."""


_Reader.__name__ = "Records"


def read_labels(values: Any, n_records: int, name: str, advice: str = "") -> NDArray[Any]:
    """Read the ids or groups of rows, one for each.

    Raises
    ------
    InvalidIdsError
        There are fewer or more, or some are neither integers nor strings.

    Examples
    --------
    >>> read_labels(["a", "b"], 2, "ids")
    array(['a', 'b'], dtype=object)
    """
    if isinstance(values, Set | Mapping):
        raise InvalidIdsError(
            f"{name} are a {type(values).__name__}, which has no order of its own; expected one "
            f"for each row; pass a list of {name} in the order of the rows"
        )
    try:
        labels = as_id_array(values, name=name)
    except InvalidIdsError as error:
        if not advice:
            raise
        raise InvalidIdsError(f"{error}; {advice}") from None
    if labels.shape[0] != n_records:
        raise InvalidIdsError(
            f"{labels.shape[0]} {name} for {n_records} rows; expected one for each row; "
            f"pass {name} in the order of the rows"
        )
    return labels


def refuse_masked(X: Any) -> None:
    """Raise InvalidDataError where values are hidden under a mask.

    Examples
    --------
    >>> refuse_masked(np.ma.masked_less([[1.0], [-1.0]], 0.0))
    Traceback (most recent call last):
    erasable.core.errors.InvalidDataError: X hides 1 values under a mask; ...
    """
    if isinstance(X, np.ma.MaskedArray) and np.ma.is_masked(X):
        raise InvalidDataError(
            f"X hides {int(np.ma.getmaskarray(X).sum())} values under a mask; expected a value "
            "everywhere; drop those rows, or fill them in with X.filled(...)"
        )
