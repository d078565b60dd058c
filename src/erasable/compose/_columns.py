"""Which columns a part of a `ColumnTransformer` asks for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from erasable.core.errors import InvalidInputError
from erasable.core.ids import name_some
from erasable.core.values import ANYTHING, Accepts


def is_empty(columns: Any) -> bool:
    """Tell whether a choice of columns is none, before it is known which there are."""
    if isinstance(columns, str | int | slice) or callable(columns):
        return False
    values = np.asarray(columns)
    return values.size == 0 or (values.dtype == bool and not values.any())


def has_names(columns: Any) -> bool:
    """Tell whether a choice of columns is made by name.

    Examples
    --------
    >>> has_names(["age"]), has_names(slice("age", None)), has_names([0, 1])
    (True, True, False)
    """
    if isinstance(columns, slice):
        return isinstance(columns.start, str) or isinstance(columns.stop, str)
    wanted = [columns] if isinstance(columns, str | int) else np.asarray(columns).tolist()
    return any(isinstance(column, str) for column in wanted)


def positions(columns: Any, n_features: int, names: Sequence[str] | None, part: str) -> list[int]:
    """Find where columns are.

    Parameters
    ----------
    columns : str, int, slice, or array-like of str, int or bool
        A slice of names includes both ends.
    n_features : int
    names : sequence of str or None
        Of all columns, if they have any.
    part : str
        Name of the transformer, for messages.

    Returns
    -------
    list of int

    Raises
    ------
    InvalidInputError
        If there are no such columns.

    Examples
    --------
    >>> positions(["city", "age"], 3, ["age", "bmi", "city"], "numbers")
    [2, 0]
    >>> positions(slice(1, None), 3, None, "numbers"), positions(-1, 3, None, "last")
    ([1, 2], [2])
    """
    if isinstance(columns, slice):
        ends = [
            end if end is None or not isinstance(end, str) else _place(end, names, part)
            for end in (columns.start, columns.stop)
        ]
        if isinstance(columns.stop, str):
            ends[1] = int(ends[1]) + 1  # type: ignore[arg-type]
        return list(range(n_features))[slice(ends[0], ends[1], columns.step)]
    if callable(columns):
        raise InvalidInputError(
            f"the columns of {part!r} are a function; expected names or positions, which a file "
            "can hold; pass what it returns for your frame"
        )
    wanted = [columns] if isinstance(columns, str | int) else np.asarray(columns).tolist()
    if wanted and all(isinstance(column, bool) for column in wanted):
        if len(wanted) != n_features:
            raise InvalidInputError(
                f"the mask of the columns of {part!r} has {len(wanted)} entries; expected one for "
                f"each of {n_features} columns; pass names or positions"
            )
        return np.flatnonzero(wanted).tolist()
    found = []
    for column in wanted:
        if isinstance(column, str):
            found.append(_place(column, names, part))
        elif isinstance(column, int) and -n_features <= column < n_features:
            found.append(column % n_features)
        else:
            raise InvalidInputError(
                f"{part!r} asks for column {column!r} of {n_features}; expected names, or "
                f"positions from 0 to {n_features - 1}; check the columns"
            )
    return found


def _place(name: str, names: Sequence[str] | None, part: str) -> int:
    if names is None:
        raise InvalidInputError(
            f"{part!r} asks for the column {name!r}, but X has no names; expected a frame; "
            "pass one, or positions of columns"
        )
    if name not in names:
        raise InvalidInputError(
            f"{part!r} asks for the column {name!r}, which X does not have; expected some of "
            f"{name_some(list(names))}; check the spelling"
        )
    return list(names).index(name)


def accepts_of(name: str, part: Any, places: list[int]) -> Accepts:
    """Return what a part takes of the columns that it is given."""
    if not places:
        raise InvalidInputError(
            f"{name!r} has no columns; expected at least one; leave it out, or pass an empty list"
        )
    accepts = ANYTHING if isinstance(part, str) else Accepts.of(part)
    if accepts.documents and len(places) > 1:
        raise InvalidInputError(
            f"{name!r} reads texts and is given {len(places)} columns; expected one; "
            "make one transformer for each column"
        )
    return accepts
