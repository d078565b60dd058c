"""Input of users: arrays, lists, frames and sparse matrices, read into one plain table.

The caller's arrays are never kept: a table is always a copy, so that erasing a record touches
nothing that belongs to the caller. Error messages name columns and count values; they never
print a value, because a value may be personal.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from erasable.core._column_choice import Columns
from erasable.core._unused_columns import blanks_of, replaced
from erasable.core.arrays import Values
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
from erasable.core.matrices import take_rows
from erasable.core.protocol import Learner
from erasable.core.targets import check_target, read_target, read_weights
from erasable.core.undecided_types import are_rounded, find_unsettled, refuse_rounded
from erasable.core.unencodable import refuse_surrogates
from erasable.core.values import ANYTHING, Accepts, read_values

_FROM_INDEX = (
    "they came from the frame's index: call .reset_index(drop=True), or name a column with ids="
)


@dataclass(slots=True, eq=False)
class RecordArrays:
    """Records as plain arrays, none of them the caller's."""

    matrix: Values  # C-contiguous, or sparse in canonical form
    y: NDArray[Any] | None  # int64, uint64, float64, bool or object (str), in one column or more
    ids: NDArray[Any]  # see `ids.as_id_array`
    groups: NDArray[Any] | None
    feature_names: list[str] | None
    weights: NDArray[np.float64] | None = None
    numeric: NDArray[np.bool_] | None = None  # columns a frame declares as numbers, among objects
    unsettled: frozenset[str] = frozenset()  # see `undecided_types.find_unsettled`
    unread: Mapping[int, float | str] = field(default_factory=dict)  # constants, by column
    types: tuple[str, ...] | None = None  # of the columns of a pandas frame

    def take(self, rows: Any, matrix: Values | None = None) -> RecordArrays:
        """Copy some rows; `matrix` holds their values, if these are known."""
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
    """Read records, checked and copied; parameters are those of `Records`.

    float32 stays float32, other numbers become float64. The estimator gets `n_features_in_` and
    `feature_names_in_`, and is named in messages. By default X may be what it takes, or anything
    where there is none. `unread` has constants for columns by position, or is an estimator (by
    default the same) that tells which columns it does not read.
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
    if accepts is None:  # without an estimator, records may hold any values
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
    """Return the constants for columns that an estimator does not read."""
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
    # A wrong width raises another error.
    if not n_columns or n_columns != getattr(reader, "n_features_in_", n_columns):
        return {}
    unread = reader._unread(Columns(n_columns, names, types))
    text = reader._marks_unread_text and Accepts.of(reader).objects
    return blanks_of(frame, unread, text=text) if unread else {}


def read_matrix(estimator: BaseEstimator, X: Any) -> Values:
    """Read rows for a fitted estimator, which are copied only where needed.

    InvalidDataError: values that it does not take, another width, or other feature names.
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


class _Reader(BaseEstimator):
    """Takes the place of an estimator where records are read before there is one."""


_Reader.__name__ = "Records"


def read_labels(values: Any, n_records: int, name: str, advice: str = "") -> NDArray[Any]:
    """Read the ids or groups of rows, one for each."""
    if type(values) is not list and isinstance(values, Set | Mapping):
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
    """Raise InvalidDataError where values are hidden under a mask."""
    if isinstance(X, np.ma.MaskedArray) and np.ma.is_masked(X):
        raise InvalidDataError(
            f"X hides {int(np.ma.getmaskarray(X).sum())} values under a mask; expected a value "
            "everywhere; drop those rows, or fill them in with X.filled(...)"
        )
