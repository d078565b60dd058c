"""Choices of columns, as a `ColumnTransformer` takes them: by name, position, mask, or type."""

from __future__ import annotations

import importlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from erasable.core.errors import InvalidInputError
from erasable.core.ids import name_some


@dataclass(frozen=True, slots=True)
class Columns:
    """The columns that there are to choose from."""

    size: int
    names: Sequence[str] | None = None
    types: Sequence[str] | None = None  # as pandas names them

    def at(self, places: list[int]) -> Columns:
        """Return some of them."""
        names, types = self.names, self.types
        return Columns(
            len(places),
            None if names is None else [names[place] for place in places],
            None if types is None else [types[place] for place in places],
        )


def is_selector(columns: Any) -> bool:
    """Tell whether columns are chosen by scikit-learn's `make_column_selector`."""
    kind = type(columns)
    return kind.__name__ == "make_column_selector" and kind.__module__.startswith("sklearn.compose")


def is_empty(columns: Any) -> bool:
    """Tell whether a choice is of no columns, before it is known which columns there are."""
    if isinstance(columns, str | int | slice) or callable(columns):
        return False
    values = np.asarray(columns)
    return values.size == 0 or (values.dtype == bool and not values.any())


def has_names(columns: Any) -> bool:
    """Tell whether a choice of columns is made by name.

    >>> has_names(["age"]), has_names(slice("age", None)), has_names([0, 1])
    (True, True, False)
    """
    if callable(columns):
        return True
    if isinstance(columns, slice):
        return isinstance(columns.start, str) or isinstance(columns.stop, str)
    wanted = [columns] if isinstance(columns, str | int) else np.asarray(columns).tolist()
    return any(isinstance(column, str) for column in wanted)


def positions(columns: Any, there: Columns, part: str) -> list[int]:
    """Find the positions of columns; a slice of names includes both. `part` is for messages."""
    n_features, names = there.size, there.names
    if isinstance(columns, slice):
        ends = [
            end if end is None or not isinstance(end, str) else _place(end, names, part)
            for end in (columns.start, columns.stop)
        ]
        if isinstance(columns.stop, str):
            ends[1] = int(ends[1]) + 1  # type: ignore[arg-type]
        return list(range(n_features))[slice(ends[0], ends[1], columns.step)]
    if is_selector(columns):
        return _selected(columns, there, part)
    if callable(columns):
        raise InvalidInputError(
            f"the columns of {part!r} are a function; expected names, positions or a "
            "make_column_selector, which a file can hold; pass what it returns for your frame"
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


def _selected(selector: Any, there: Columns, part: str) -> list[int]:
    """Choose columns by their types and names, as scikit-learn does."""
    if there.names is None:
        raise InvalidInputError(
            f"{part!r} selects columns by type or name, but X has no names; expected a frame; "
            "pass one, or positions of columns"
        )
    if selector.dtype_include is None and selector.dtype_exclude is None:
        pattern = selector.pattern
        found = [bool(pattern is None or re.search(pattern, name)) for name in there.names]
        return np.flatnonzero(found).tolist()
    if there.types is None:
        raise InvalidInputError(
            f"{part!r} selects columns by type, but X is no frame of pandas; expected one; pass "
            "it, or names of columns"
        )
    pandas = importlib.import_module("pandas")  # of which the types are
    empty = {
        name: pandas.Series([], dtype=kind)
        for name, kind in zip(there.names, there.types, strict=True)
    }
    names = list(there.names)
    return [names.index(name) for name in selector(pandas.DataFrame(empty))]


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
