"""Added and corrected records, read as they would be read together with those that are there.

Where the result would depend on which of them came first, the addition is refused.
"""

from __future__ import annotations

from dataclasses import replace
from math import isfinite
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from erasable.core.arrays import Values
from erasable.core.errors import InvalidDataError, InvalidIdsError, InvalidInputError
from erasable.core.frames import as_frame, difference
from erasable.core.ids import name_some, refuse_repeats, shorten
from erasable.core.inputs import RecordArrays, read_labels, read_table
from erasable.core.targets import mixes_numbers, read_target, read_weights
from erasable.core.values import ANYTHING, Accepts

if TYPE_CHECKING:
    from erasable.core.attachment import HeldRecords

_AS_OBJECTS = Accepts(missing=True, objects=True)
_AS_NUMBERS = Accepts(sparse=True, missing=True)
_EXACT = 2.0**53
_NUMBERS = {"i": "integers", "u": "integers", "f": "floats", "b": "booleans", "O": "strings"}


def read_addition(
    records: HeldRecords, X: Any, y: Any, sample_weight: Any, ids: Any, groups: Any
) -> RecordArrays:
    """Read records that join others, in the types that all of them have together; needs ids."""
    if ids is None:
        raise InvalidIdsError("records were added without ids; expected one for each row")
    _refuse_missing_parts(records, y, groups)
    if _are_plain(records, X, ids, groups):
        return _plain_table(records, X, y, sample_weight, ids, groups)
    objects = records.matrix.dtype == object
    listed = objects and isinstance(X, list | tuple) and not _is_text(X)
    if listed or (objects and isinstance(X, np.ndarray) and X.ndim == 2):
        X = np.array(X, dtype=object)
    is_frame, accepts = as_frame(X) is not None, ANYTHING
    if objects and isinstance(X, np.ndarray) and X.ndim == 2:
        accepts = _AS_OBJECTS
    elif is_frame and not objects:
        accepts = _AS_NUMBERS
    table = read_table(
        X, y, sample_weight=sample_weight, ids=ids, groups=groups, accepts=accepts,
        unread=records.unread,
    )  # fmt: skip
    _refuse_other_columns(records, table, is_frame=is_frame)
    unsettled = table.unsettled - {"X"}
    if listed and not all(any(type(cell) is str for cell in row) for row in table.matrix.tolist()):
        unsettled |= {"X"}
    if records.is_stored:
        matrix = _as_stored(records, table.matrix)
    else:
        matrix = _of_type(records.matrix, table.matrix, declared=not isinstance(X, list | tuple))
    return _joining(records, replace(table, matrix=matrix, unsettled=frozenset(unsettled)))


def _joining(records: HeldRecords, table: RecordArrays) -> RecordArrays:
    """Give targets the type that they have together with others, and tell what is unsettled."""
    target = None if records.y is None else _like(records.y, table.y)
    unsettled = table.unsettled | records.unsettled
    if records.y is not None and target is not None and target.dtype != records.y.dtype:
        unsettled |= {"y"}  # integers are floats from now on
    if target is table.y and unsettled == table.unsettled:
        return table
    return replace(table, y=target, unsettled=unsettled)


def _are_plain(records: HeldRecords, X: Any, ids: Any, groups: Any) -> bool:
    """Tell whether rows are a finite array like that of the records: these are read faster."""
    return bool(
        type(X) is np.ndarray
        and isinstance(records.matrix, np.ndarray)
        and X.dtype == records.matrix.dtype
        and X.dtype.kind == "f"
        and X.shape[1:] == records.matrix.shape[1:]
        and X.size > 0
        and records.feature_names is None
        and not records.unread
        and not isinstance(ids, str)
        and not isinstance(groups, str)
        and isfinite(np.add.reduce(X, axis=None))
    )


def _plain_table(
    records: HeldRecords, X: Any, y: Any, sample_weight: Any, ids: Any, groups: Any
) -> RecordArrays:
    n = X.shape[0]
    target = None if y is None else read_target(y, n)
    names = read_labels(ids, n, "ids")
    refuse_repeats(names)
    mixed = target is not None and target.dtype == np.float64 and mixes_numbers(y)
    table = RecordArrays(
        matrix=np.ascontiguousarray(X) + 0.0,  # -0.0 becomes 0.0
        y=target,
        ids=names,
        groups=None if groups is None else read_labels(groups, n, "groups"),
        feature_names=None,
        weights=None if sample_weight is None else read_weights(sample_weight, n),
        unsettled=frozenset({"y"} if mixed else ()),
    )
    return _joining(records, table)


def corrected(
    records: HeldRecords, was: RecordArrays, X: Any, y: Any, sample_weight: Any
) -> RecordArrays:
    """Read corrections of some records that were `was`; what is not given stays as it is."""
    if X is None and y is None and sample_weight is None:
        raise InvalidInputError("correct was given neither X, y nor sample_weight; expected one")
    if y is not None and records.y is None:
        raise _without("y", "targets")
    given = X is not None
    # Without a new X, zeros of the same width take its place; nothing reads them.
    told = read_addition(
        records if given else _numbers(records),
        X if given else np.zeros((was.ids.size, records.n_features)),
        was.y if y is None and records.y is not None else y,
        sample_weight,
        was.ids,
        was.groups,
    )
    told.numeric, told.feature_names = records.numeric, records.feature_names
    if sample_weight is None:
        told.weights = was.weights
    if not given:
        told.matrix = was.matrix
    return told


def _numbers(records: HeldRecords) -> HeldRecords:
    """Return the records as if they held numbers without names, where only targets are read."""
    shown = type(records).__new__(type(records))
    shown.__dict__.update(records.__dict__)
    shown.matrix = np.zeros((records.n_rows, records.n_features))
    shown.feature_names = shown.numeric = None
    return shown


def joined_names(some: NDArray[Any], others: NDArray[Any]) -> np.dtype[Any]:
    """Return the type of an array of both arrays of ids or groups."""
    if some.dtype == others.dtype or others.size == 0:
        return some.dtype
    if "O" in (some.dtype.kind, others.dtype.kind):
        return np.dtype(object)
    fits = min((int(each.min()) for each in (some, others) if each.size), default=0) >= 0
    return np.dtype(np.uint64 if fits else object)


def _as_stored(records: HeldRecords, matrix: Values) -> Values:
    """Give rows the type of stored ones, which was decided when these were made."""
    stored, names = records.matrix, records.feature_names
    columns: Any = names or range(records.n_features)
    if stored.dtype == object:
        for name, kind, column in zip(columns, stored.kinds, matrix.T, strict=True):
            for cell in column.tolist():
                if cell is None or cell != cell:
                    continue
                if isinstance(cell, str) != (kind == "t"):
                    wanted, given = ("text", "a number") if kind == "t" else ("numbers", "text")
                    raise InvalidDataError(
                        f"column {name!r} has {given}; expected {wanted}, as it has in the records"
                    )
                if kind == "i" and (cell != int(cell) or abs(cell) >= _EXACT):
                    raise InvalidDataError(
                        f"column {name!r} has {shorten(cell)}; expected whole numbers below "
                        "2**53, as it has in the records"
                    )
        return matrix
    with np.errstate(over="ignore"):
        told = matrix.astype(stored.dtype)
    if not np.array_equal(told, matrix, equal_nan=True):
        raise InvalidDataError(
            f"X has numbers that {stored.dtype} does not hold; expected those of {stored.dtype}, "
            "the type of the stored records; round them, or store the records as float64"
        )
    return told


def _without(name: str, what: str) -> InvalidDataError:
    return InvalidDataError(
        f"{name} was given, and the records came without {what}; expected none; leave it out, or "
        f"fit again with {what}"
    )


def _refuse_missing_parts(records: HeldRecords, y: Any, groups: Any) -> None:
    if y is None and records.y is not None:
        raise InvalidDataError(
            "y is missing; expected one target for each row, as the records have them"
        )
    if y is not None and records.y is None:
        raise _without("y", "targets")
    if groups is None and records.groups is not None:
        raise InvalidIdsError(
            "groups are missing; expected one for each row, as the records have them"
        )
    if groups is not None and records.groups is None:
        raise InvalidIdsError(
            "groups were given, and the records came without groups; expected none; leave them "
            "out, or fit again with groups"
        )


def _is_text(X: Any) -> bool:
    return len(X) > 0 and isinstance(X[0], str)


def _refuse_other_columns(records: HeldRecords, table: RecordArrays, *, is_frame: bool) -> None:
    names, known = table.feature_names, records.feature_names
    if names != known:
        if names is None or known is None:
            given, wanted = ("names", "none") if known is None else ("no names", "names")
            raise InvalidDataError(
                f"the columns of X have {given}, and those of the records have {wanted}; expected "
                "the same of both; pass a frame where a frame was fitted, and an array otherwise"
            )
        raise InvalidDataError(
            f"X has {difference(names, known)}; expected {name_some(known)}, in this order"
        )
    if table.matrix.shape[1] != records.n_features:
        raise InvalidDataError(
            f"X has {table.matrix.shape[1]} columns; expected {records.n_features}, as the "
            "records have"
        )
    kinds = [_kind_of(each.matrix) for each in (table, records)]
    if kinds[0] != kinds[1]:
        raise InvalidDataError(f"X is {kinds[0]}; expected {kinds[1]}, as the records are")
    if is_frame and records.numeric is not None and table.numeric is not None:
        wrong = np.flatnonzero(table.numeric != records.numeric).tolist()
        if wrong and names is not None:
            raise InvalidDataError(
                f"the columns {name_some([names[j] for j in wrong])} of X hold numbers where those "
                "of the records hold text, or the other way round; expected the same of both"
            )


def _kind_of(matrix: Values) -> str:
    if issparse(matrix):
        return "a sparse matrix"
    return "a table of text" if matrix.dtype == object else "a table of numbers"


def _of_type(matrix: Values, arriving: Values, *, declared: bool) -> Values:
    """Give values the type that they have together with others; a list declares no type."""
    if arriving.dtype == matrix.dtype:
        return arriving
    if not declared:
        with np.errstate(over="ignore"):
            told = arriving.astype(matrix.dtype)
        if np.array_equal(np.isinf(told), np.isinf(arriving)):
            return told
    return arriving.astype(np.result_type(matrix.dtype, arriving.dtype))


def _like(y: NDArray[Any], arriving: NDArray[Any] | None) -> NDArray[Any]:
    """Give targets the shape of others, and the type that both have together."""
    assert arriving is not None
    if y.dtype == arriving.dtype and y.shape[1:] == arriving.shape[1:]:
        return arriving
    if y.ndim == 1 and arriving.shape[1:] == (1,):
        arriving = arriving[:, 0]
    if y.ndim == 2 and y.shape[1] == 1 and arriving.ndim == 1:
        arriving = arriving[:, np.newaxis]
    if arriving.shape[1:] != y.shape[1:]:
        raise InvalidDataError(
            f"y has shape {arriving.shape}; expected {(arriving.shape[0], *y.shape[1:])}, as the "
            "records have"
        )
    kinds = {y.dtype.kind, arriving.dtype.kind}
    if y.dtype == arriving.dtype:
        return arriving
    if kinds <= {"i", "u"}:
        joined = joined_names(y.ravel(), arriving.ravel())
        if joined.kind == "u":
            return arriving.astype(joined)
    elif kinds <= {"i", "u", "f"}:
        return arriving.astype(np.float64)
    told, wanted = (_NUMBERS[each.dtype.kind] for each in (arriving, y))
    raise InvalidDataError(f"y holds {told}; expected {wanted}, as the targets of the records are")
