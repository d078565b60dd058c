"""What users hand in: arrays, lists, pandas and polars frames, read into one plain table.

The caller's arrays are never kept: a table is always a copy, so that erasing a record touches
nothing that belongs to somebody else. Error messages name columns and count values; they never
print a value, because a value may be personal.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import validate_data

from erasable.core.errors import InvalidDataError, InvalidIdsError
from erasable.core.ids import as_id_array, name_some, refuse_repeats

__all__ = ["Table", "read_matrix", "read_table"]

_FLOATS = (np.float64, np.float32)
_FROM_INDEX = (
    "they came from the frame's index: call .reset_index(drop=True), or name a column with ids="
)


@dataclass(frozen=True)
class Table:
    """Records as plain arrays, none of them the caller's.

    Attributes
    ----------
    matrix : ndarray of shape (n_records, n_features), float64 or float32, C-contiguous
    y : ndarray of shape (n_records,) or (n_records, n_outputs), or None
    ids : ndarray of shape (n_records,), int64, uint64 or object
    groups : ndarray of shape (n_records,), int64, uint64 or object, or None
    feature_names : list of str, or None

    Examples
    --------
    >>> read_table([[1.0, 2.0]], groups=["anna"]).groups
    array(['anna'], dtype=object)
    """

    matrix: NDArray[Any]
    y: NDArray[Any] | None
    ids: NDArray[Any]
    groups: NDArray[Any] | None
    feature_names: list[str] | None


def read_table(
    X: Any,
    y: Any = None,
    *,
    ids: str | Iterable[Any] | None = None,
    groups: str | Iterable[Any] | None = None,
    estimator: BaseEstimator | None = None,
) -> Table:
    """Read records, checked and copied.

    Parameters
    ----------
    X : array-like or frame of shape (n_records, n_features)
        Finite numbers. float32 stays float32; everything else becomes float64.
    y : array-like of shape (n_records,), default=None
        Targets.
    ids : array-like of int or str, or the name of a column, default=None
        Which record each row is. By default a pandas frame's index, or 0..n-1. A column that is
        named is not a feature.
    groups : array-like of int or str, or the name of a column, default=None
        Which records leave together.
    estimator : scikit-learn estimator, default=None
        Gets `n_features_in_` and `feature_names_in_`, and is named in messages.

    Returns
    -------
    Table
        Copies of everything.

    Raises
    ------
    InvalidDataError
        Values that are not finite numbers, or no values at all.
    InvalidIdsError
        Ids or groups that repeat, have a wrong type, or do not match the rows.

    Examples
    --------
    >>> table = read_table([[1, 2], [3, 4]], ids=["a", "b"])
    >>> table.matrix.dtype, table.ids
    (dtype('float64'), array(['a', 'b'], dtype=object))
    """
    reader = _Reader() if estimator is None else estimator
    _refuse_masked(X)
    frame = _as_frame(X)
    dropped = sorted({name for name in (ids, groups) if isinstance(name, str)})
    for name in dropped:
        _check_column(X, frame, name, "ids" if name == ids else "groups")
    id_values: Any = frame[ids] if isinstance(ids, str) else ids
    group_values: Any = frame[groups] if isinstance(groups, str) else groups
    advice = ""
    if frame is not None:
        if ids is None and (index := _index_of(frame)) is not None:
            id_values, advice = index, _FROM_INDEX
        if dropped:
            frame = frame.drop(dropped)
            X = frame.to_native()
        _refuse_text_columns(frame)
    matrix, target = _read_values(reader, X, y, reset=True, copy=True)
    n_records = matrix.shape[0]
    if id_values is None:
        id_array = np.arange(n_records, dtype=np.int64)
    else:
        id_array = _labels(id_values, n_records, "ids", advice)
        refuse_repeats(id_array, advice=advice)
    group_array = None if groups is None else _labels(group_values, n_records, "groups")
    names = getattr(reader, "feature_names_in_", None)
    return Table(
        matrix=matrix,
        y=target,
        ids=id_array,
        groups=group_array,
        feature_names=None if names is None else names.tolist(),
    )


def read_matrix(estimator: BaseEstimator, X: Any) -> NDArray[Any]:
    """Read the rows that a fitted estimator is asked about; a copy is made only where needed.

    Returns
    -------
    ndarray of shape (n_rows, n_features_in_), float64 or float32, C-contiguous

    Raises
    ------
    InvalidDataError
        Values that are not finite numbers, another width, or other feature names than at `fit`.

    Examples
    --------
    >>> from sklearn.cluster import KMeans
    >>> model = KMeans(n_clusters=1).fit([[0.0, 1.0], [2.0, 3.0]])
    >>> read_matrix(model, [[4, 5]])
    array([[4., 5.]])
    """
    frame = _as_frame(X)
    if frame is not None:
        _refuse_text_columns(frame)
    return _read_values(estimator, X, None, reset=False, copy=False)[0]


class _Reader(BaseEstimator):
    """Stands in for an estimator where records are read before there is one."""


_Reader.__name__ = "Records"


def _as_frame(X: Any) -> Any:
    """Wrap a pandas or polars frame for narwhals; None for everything else."""
    if isinstance(X, np.ndarray | list | tuple):
        return None
    import narwhals.stable.v1 as nw
    from narwhals.exceptions import NarwhalsError

    try:
        frame = nw.from_native(X, eager_only=True, pass_through=True)
    except NarwhalsError as error:
        raise InvalidDataError(
            f"X cannot be read as a frame: {' '.join(str(error).split())}; rename its columns"
        ) from None
    return frame if isinstance(frame, nw.DataFrame) else None


def _check_column(X: Any, frame: Any, column: str, name: str) -> None:
    if frame is None:
        raise InvalidIdsError(
            f"{name}={column!r} names a column, but X is a {type(X).__name__}; expected a frame; "
            f"pass a frame, or the {name} as a sequence"
        )
    if column not in frame.columns:
        raise InvalidIdsError(
            f"{name}={column!r} is not a column; expected one of {name_some(frame.columns)}; "
            "check the spelling"
        )


def _index_of(frame: Any) -> Any:
    """Return a pandas index, unless it merely counts 0..n-1."""
    import narwhals.stable.v1 as nw

    index = nw.maybe_get_index(frame)
    if index is None:
        return None
    if getattr(index, "start", None) == 0 and getattr(index, "step", None) == 1:
        return None
    return index


def _labels(values: Any, n_records: int, name: str, advice: str = "") -> NDArray[Any]:
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


def _refuse_masked(X: Any) -> None:
    if isinstance(X, np.ma.MaskedArray) and np.ma.is_masked(X):
        raise InvalidDataError(
            f"X hides {int(np.ma.getmaskarray(X).sum())} values under a mask; expected a value "
            "everywhere; drop those rows, or fill them in with X.filled(...)"
        )


def _refuse_text_columns(frame: Any) -> None:
    import narwhals.stable.v1 as nw

    refused = [
        name
        for name, dtype in frame.schema.items()
        if not (dtype.is_numeric() or dtype == nw.Boolean)
    ]
    if refused:
        raise InvalidDataError(
            f"{len(refused)} of {len(frame.columns)} columns hold no numbers: "
            f"{name_some(refused)}; expected numbers; encode or drop them, or name one with ids="
        )


def _read_values(
    estimator: BaseEstimator, X: ArrayLike, y: Any, *, reset: bool, copy: bool
) -> tuple[NDArray[Any], NDArray[Any] | None]:
    wanted: dict[str, Any] = {
        "dtype": _FLOATS,
        "order": "C",
        "copy": copy,
        "ensure_all_finite": False,
    }
    try:
        with np.errstate(invalid="ignore"):
            if y is None:
                matrix, target = validate_data(estimator, X, reset=reset, **wanted), None
            else:
                matrix, target = validate_data(estimator, X, y, reset=reset, **wanted)
    except ValueError as error:
        raise InvalidDataError(_without_values(str(error))) from None
    except TypeError as error:
        if "parse" not in str(error).lower():
            raise
        raise InvalidDataError(str(error)) from None
    if copy:
        # A frame may hand over memory of its own, or memory that cannot be written.
        if not (matrix.flags.owndata and matrix.flags.writeable):
            matrix = np.array(matrix, order="C")
        # -0.0 becomes 0.0: sums cannot tell which of the two was there first.
        matrix += 0.0
        target = None if target is None else np.array(target)
    _refuse_not_finite(matrix, getattr(estimator, "feature_names_in_", None))
    return matrix, target


def _without_values(message: str) -> str:
    """Take out of scikit-learn's messages the data that some of them print."""
    if message.startswith(("Expected 2D array", "Expected a 2-dimensional")):
        return (
            "X does not have 2 dimensions; expected 2D array of shape (n_records, n_features). "
            "Reshape your data with X.reshape(-1, 1) for one feature, X.reshape(1, -1) for one row"
        )
    if message.startswith("Complex data not supported"):
        return "Complex data not supported; expected real numbers; pass X.real or abs(X)"
    if message.startswith("could not convert"):
        return "X holds text that is not a number; expected numbers; encode or drop its columns"
    return message


def _refuse_not_finite(matrix: NDArray[Any], names: Any) -> None:
    with np.errstate(over="ignore", invalid="ignore"):
        # One sum tells whether to look closer, in a tenth of the time of a mask.
        if np.isfinite(matrix.sum()):
            return
    finite = np.isfinite(matrix)
    if finite.all():
        return
    counts = (~finite).sum(axis=0)
    columns = np.flatnonzero(counts).tolist()
    named = columns if names is None else [str(names[column]) for column in columns]
    kinds = [
        kind
        for kind, present in (("NaN", np.isnan(matrix).any()), ("inf", np.isinf(matrix).any()))
        if present
    ]
    raise InvalidDataError(
        f"X contains {' and '.join(kinds)}: {int(counts.sum())} values in "
        f"{'column' if len(columns) == 1 else 'columns'} {name_some(named)}; "
        "expected finite numbers; fill or drop them first"
    )
