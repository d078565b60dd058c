"""Which records are chosen from: their ids, and which of them are held already."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from erasable.core.errors import InvalidIdsError, InvalidInputError
from erasable.core.frames import as_frame, index_of, refuse_missing_column, refuse_other_index
from erasable.core.ids import as_id_array, is_missing, name_some, refuse_repeats, shorten

__all__ = ["codes_of", "places_of", "read_costs", "read_ids", "rows_of"]


def read_ids(X: Any, ids: Any, **others: Any) -> tuple[Any, NDArray[Any]]:
    """Return X without a column of ids, and the id of each row.

    Raises
    ------
    InvalidIdsError
        Ids that repeat, or do not match the rows.
    InvalidInputError
        One of the others, such as `y`, is a series with another index than the frame's.
    """
    frame = as_frame(X)
    for name, other in others.items():
        refuse_other_index(frame, other, name)
    if isinstance(ids, str):
        refuse_missing_column(X, frame, ids, "ids")
        values: Any = frame[ids]
        X = frame.drop(ids).to_native()
    else:
        refuse_other_index(frame, ids, "ids")
        values = index_of(frame) if ids is None and frame is not None else ids
    n = n_rows(X)
    if values is None:
        return X, np.arange(n, dtype=np.int64)
    read = as_id_array(values)
    if len(read) != n:
        raise InvalidIdsError(
            f"{len(read)} ids for {n} rows; expected one for each row; pass them in the order of "
            "the rows"
        )
    refuse_repeats(read)
    return X, read


def n_rows(X: Any) -> int:
    """Return how many rows X has."""
    shape = getattr(X, "shape", None)
    if shape is not None and len(shape):
        return int(shape[0])
    if not isinstance(X, Iterable) or isinstance(X, str | bytes):
        raise InvalidInputError(
            f"X is a {type(X).__name__}; expected a row for each record; pass an array or a frame"
        )
    return len(list(X))


def places_of(wanted: Any, ids: NDArray[Any]) -> NDArray[np.int64]:
    """Return the rows of some ids.

    Raises
    ------
    InvalidIdsError
        There is no such record, or one is named twice.
    """
    named = as_id_array(wanted, name="selected")
    refuse_repeats(named, name="selected")
    place = {each: row for row, each in enumerate(ids.tolist())}
    unknown = [each for each in named.tolist() if each not in place]
    if unknown:
        raise InvalidIdsError(
            f"selected names {name_some(unknown)}, which are no records; expected ids of rows; "
            "pass X with the records that are held, too"
        )
    return np.array([place[each] for each in named.tolist()], dtype=np.int64)


def read_costs(costs: Any, n: int) -> NDArray[np.float64]:
    """Return what each record costs.

    Raises
    ------
    InvalidInputError
        Not one number above 0 for each record.
    """
    try:
        given = np.asarray(costs, dtype=np.float64)
    except (TypeError, ValueError):
        raise InvalidInputError(
            f"costs={shorten(costs)}; expected a number above 0 for each record; pass an array"
        ) from None
    if given.shape != (n,):
        raise InvalidInputError(
            f"costs have shape {given.shape} for {n} records; expected a number above 0 for each; "
            "pass them in the order of the rows"
        )
    wrong = int((~((given > 0) & (given < np.inf))).sum())
    if wrong:
        raise InvalidInputError(
            f"costs hold {wrong} of {n} that are 0, below, NaN or infinite; expected a number "
            "above 0 for each record; leave out who cannot be had, and hold who costs nothing"
        )
    return given


def codes_of(values: NDArray[Any], name: str) -> NDArray[np.int64]:
    """Return classes, groups or categories as numbers from 0, those that are equal as one.

    Raises
    ------
    InvalidInputError
        Values are missing.
    """
    given = values.tolist() if values.dtype.kind in "OfcmM" else []
    missing = sum(is_missing(each) for each in given)
    if missing:
        raise InvalidInputError(
            f"{name}: {missing} of {len(values)} values are missing (None or NaN); expected one "
            "for each record; fill them in, or leave those records out"
        )
    try:
        return np.unique(values, return_inverse=True)[1].astype(np.int64)
    except TypeError:  # numbers and texts, which have no order
        codes: dict[Any, int] = {}
        return np.array([codes.setdefault(each, len(codes)) for each in given], dtype=np.int64)


def rows_of(X: Any, rows: NDArray[np.int64]) -> Any:
    """Return some rows of X, of the kind that it is."""
    frame = as_frame(X)
    if frame is not None:
        return frame[rows.tolist()].to_native()
    if hasattr(X, "iloc"):
        return X.iloc[rows]  # not by label
    if hasattr(X, "shape"):
        return X[rows]
    given = list(X)
    return [given[row] for row in rows.tolist()]
