"""Records to choose from, and the selections that name some of them by ids or by rows.

Everywhere `selected` holds ids, and `rows` holds positions or a mask.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from erasable.core.errors import InvalidIdsError, InvalidInputError
from erasable.core.frames import as_frame, ids_of_rows, refuse_other_index, split_ids
from erasable.core.ids import as_id_array, is_missing, name_some, refuse_repeats, shorten
from erasable.core.records import Records
from erasable.core.tape import Tape

_LEAST_COST = 1e-200
"""Gains are divided by costs, and the ratios have to be finite."""


def read_ids(X: Any, ids: Any, **others: Any) -> tuple[Any, NDArray[Any]]:
    """Return X without a column of ids, and the id of each row, which are checked.

    Other inputs, such as `y`, that are series with another index than the frame's are refused.
    """
    frame = as_frame(X)
    for name, other in others.items():
        refuse_other_index(frame, other, name)
    X, values = split_ids(X, ids)
    return X, ids_of_rows(values, n_rows(X))


def keys_of(ids: NDArray[Any]) -> NDArray[np.uint64]:
    """Return a key of each id, by which random numbers are drawn: itself, or a hash of text."""
    if ids.dtype.kind in "iu":
        return ids.astype(np.uint64)
    return Tape(0).child("selection").record_keys(ids)


def n_rows(X: Any) -> int:
    """Return the number of rows of X."""
    shape = getattr(X, "shape", None)
    if shape is not None and len(shape):
        return int(shape[0])
    if shape == () or not isinstance(X, Iterable) or isinstance(X, str | bytes | type):
        raise InvalidInputError(
            f"X is a {type(X).__name__}; expected a row for each record; pass an array or a frame"
        )
    return len(list(X))


def read_selection(selected: Any, rows: Any, ids: NDArray[Any]) -> NDArray[np.int64]:
    """Return the rows of a selection; exactly one of `selected` and `rows` is given."""
    refuse_both(selected, rows)
    if rows is not None:
        return read_rows(rows, len(ids))
    named = read_selected(selected)
    place = {each: row for row, each in enumerate(ids.tolist())}
    unknown = [each for each in named.tolist() if each not in place]
    if unknown:
        raise InvalidIdsError(
            f"selected names {name_some(unknown)}, which do not exist; expected ids of records; "
            "pass rows= for positions, and X with the records that are held, too"
        )
    return np.array([place[each] for each in named.tolist()], dtype=np.int64)


def refuse_both(selected: Any, rows: Any) -> None:
    """Raise InvalidInputError unless exactly one of `selected` and `rows` is given."""
    if (selected is None) == (rows is None):
        given = "neither selected nor rows is" if rows is None else "both selected and rows are"
        raise InvalidInputError(
            f"{given} given; expected one of them: ids as selected, positions as rows"
        )


def read_selected(selected: Any) -> NDArray[Any]:
    """Return the ids of a selection, each of them once; a mask is refused."""
    if _is_mask(selected):
        raise InvalidIdsError(
            "selected is a boolean mask; expected ids of records; pass it as rows=mask"
        )
    named = as_id_array(selected, name="selected")
    refuse_repeats(named, name="selected")
    return named


def read_rows(rows: Any, n: int | None) -> NDArray[np.int64]:
    """Return positions: those given, or those where a mask is true; `n` may be unknown."""
    if np.ma.is_masked(rows):
        raise InvalidInputError("rows hide values under a mask; expected a value everywhere")
    if _is_mask(rows):
        mask = np.asarray(rows)
        if mask.ndim != 1 or (n is not None and len(mask) != n):
            raise InvalidInputError(
                f"rows is a boolean mask of shape {mask.shape} for {'?' if n is None else n} "
                "records; expected one value for each record"
            )
        return np.flatnonzero(mask)
    read = as_id_array(rows, name="rows")
    if read.dtype != np.int64:
        raise InvalidInputError(
            "rows hold text, or integers beyond 64 bits; expected positions; pass ids as selected"
        )
    refuse_repeats(read, name="rows", advice="a mask needs dtype bool")
    outside = read[(read < 0) | (read >= (np.inf if n is None else n))]
    if len(outside):
        expected = "0 or more" if n is None else f"from 0 to {n - 1}"
        raise InvalidInputError(
            f"rows has {int(outside[0])}; expected positions {expected}; pass ids as selected"
        )
    return read.astype(np.int64)


def read_held(
    records: Records, y: Any, ids: Any, selected: Any, rows: Any
) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """Return the ids of `Records` that no model has deleted, and the places of those held."""
    for name, given in (("y", y), ("ids", ids)):
        if given is not None:
            raise InvalidInputError(
                f"{name} came beside Records, which have their own; expected None; pass "
                f"{'target' if name == 'y' else 'ids'} where the records are made"
            )
    attachment = records.attach()
    live = attachment.live_rows()
    if selected is None and rows is None:
        return records.ids[live], np.zeros(0, dtype=np.int64)
    refuse_both(selected, rows)
    if rows is not None:
        return records.ids[live], read_rows(rows, live.size)
    held = attachment.rows(read_selected(selected).tolist())
    return records.ids[live], np.searchsorted(live, held)


def _is_mask(given: Any) -> bool:
    try:
        array = np.asarray(given)
    except ValueError:  # lists of different lengths
        return False
    return array.dtype == bool


def read_costs(costs: Any, n: int) -> NDArray[np.float64]:
    """Return the cost of each record: numbers above 0."""
    try:
        given = as_reals(costs)
    except (TypeError, ValueError):
        raise InvalidInputError(
            f"costs={shorten(costs)}; expected a number above 0 for each record; pass an array"
        ) from None
    if given.shape != (n,):
        raise InvalidInputError(
            f"costs have shape {given.shape} for {n} records; expected a number above 0 for each; "
            "pass them in the order of the rows"
        )
    wrong = int((~((given >= _LEAST_COST) & (given < np.inf))).sum())
    if wrong:
        raise InvalidInputError(
            f"costs hold {wrong} of {n} that are 0 (or within 1e-200 of it), below, NaN or "
            "infinite; expected a number above 0 for each record; leave out who cannot be had, "
            "and hold who costs nothing"
        )
    return given


def as_reals(values: Any) -> NDArray[np.float64]:
    """Return an array of float64; values that are no real numbers raise TypeError or ValueError."""
    if np.iscomplexobj(values):  # NumPy drops what is imaginary
        raise TypeError("complex numbers")
    try:
        return np.asarray(values, dtype=np.float64)
    except OverflowError:
        raise ValueError("integers that float64 cannot hold") from None


def as_labels(values: Any, name: str) -> NDArray[Any]:
    """Return an array of classes, groups or counts, of any shape and type."""
    try:
        return np.asarray(values)
    except ValueError:
        raise InvalidInputError(
            f"{name} holds lists of different lengths; expected one value for each record"
        ) from None


def codes_of(values: NDArray[Any], name: str) -> NDArray[np.int64]:
    """Return classes, groups or categories as numbers from 0; missing values are refused."""
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
    """Return some rows of X, of the type of X."""
    frame = as_frame(X)
    if frame is not None:
        return frame[rows.tolist()].to_native()
    if hasattr(X, "iloc"):
        return X.iloc[rows]  # not by label
    if hasattr(X, "shape"):
        return X[rows]
    given = list(X)
    return [given[row] for row in rows.tolist()]
