"""What a deletion changes of the tables in a pipeline, besides the records that go."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

__all__ = ["ANYTHING", "NOTHING", "Change", "output_change", "union"]

Ints: TypeAlias = NDArray[np.int64]
_NO_ROWS: Ints = np.empty(0, dtype=np.int64)


@dataclass(frozen=True, slots=True, eq=False)
class Change:
    """Which rows and columns of a table are not what they were.

    Attributes
    ----------
    rows : ndarray of int64, or None
        Positions of the rows whose values changed; None where any may have.
    origin : ndarray of int64, or None
        For each column, where it was before, or -1 if it is new; None: all are where they were.
    known : bool
        Whether `origin` is right; if not, any column may be anything.
    """

    rows: Ints | None = None
    origin: Ints | None = None
    known: bool = True

    def __bool__(self) -> bool:
        """Tell whether there is any change."""
        still = self.rows is not None and self.rows.size == 0
        return not (still and self.origin is None and self.known)

    @property
    def in_place(self) -> bool:
        """Whether the table keeps its columns, and it is known which of its rows changed."""
        return self.known and self.origin is None and self.rows is not None

    def after(self, others: Iterable[Change]) -> Change:
        """Return the change of what is made of this table and of tables that others describe.

        Where these have lost columns, it is unknown what became of them on the way.
        """
        both = union([self, *others])
        return Change(both.rows, None, both.known and both.origin is None)


NOTHING = Change(_NO_ROWS)
ANYTHING = Change(None, None, known=False)


def union(changes: Iterable[Change]) -> Change:
    """Join changes, of which one at most may know of columns that moved."""
    rows: Ints | None = _NO_ROWS
    origins = []
    known = True
    for change in changes:
        known &= change.known
        if change.origin is not None:
            origins.append(change.origin)
        if rows is None or change.rows is None:
            rows = None
        elif change.rows.size:
            rows = np.union1d(rows, change.rows)
    known &= len(origins) < 2
    return Change(rows, origins[0] if origins and known else None, known)


def output_change(step: Any, *, raw: bool = False) -> Change:
    """Ask a step what its last deletion changed in its output, for records that stay."""
    whole: Change | None = step._raw_change if raw else step._whole_change
    if whole is not None:
        return whole
    columns, rows = step._changed_columns, step._changed_rows
    origin = step._origin
    if columns is not None and not columns.any():
        return Change(_NO_ROWS, origin)
    return Change(None if rows is None else np.asarray(rows, dtype=np.int64), origin)
