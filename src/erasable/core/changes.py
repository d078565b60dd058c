"""Changes that a deletion makes in a table of the records, besides the rows that go."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from erasable.core.arrays import Flags, Floats, Ints

__all__ = ["ANYTHING", "NOTHING", "VALUES", "Affine", "Delta", "TableChange", "union"]


_NO_ROWS: Ints = np.empty(0, dtype=np.int64)


class Affine(NamedTuple):
    """A map of each column: ``(x - shift) / scale``.

    Attributes
    ----------
    shift, scale : ndarray of shape (n_columns,), float64
        The scale is positive.

    Examples
    --------
    >>> first = Affine(np.array([1.0]), np.array([2.0]))
    >>> first.then(Affine(np.array([3.0]), np.array([4.0])))
    Affine(shift=array([7.]), scale=array([8.]))
    """

    shift: Floats
    scale: Floats

    def then(self, other: Affine) -> Affine:
        """Return the map that applies this one and then another."""
        return Affine(self.shift + self.scale * other.shift, self.scale * other.scale)


@dataclass(frozen=True, slots=True, eq=False)
class TableChange:
    """Changes in the rows of records that stay: independent parts, all at once.

    Attributes
    ----------
    rows : ndarray of int64, or None
        Positions of the rows with other values; None: any may have other values.
    columns : ndarray of bool, or None
        Columns, as they are now, with other values; None: any may have other values.
    origin : ndarray of int64, or None
        For each column, its position before, or -1 if it is new; None: all are where they were.
    known : bool
        Whether `origin` is right; if not, any column may be another one.

    Examples
    --------
    >>> bool(NOTHING), bool(TableChange(columns=np.array([False, False]))), bool(VALUES)
    (False, False, True)
    """

    rows: Ints | None = None
    columns: Flags | None = None
    origin: Ints | None = None
    known: bool = True

    @property
    def still(self) -> bool:
        """Whether the columns that were there before have the same values."""
        no_rows = self.rows is not None and self.rows.size == 0
        return no_rows or (self.columns is not None and not self.columns.any())

    def __bool__(self) -> bool:
        """Tell whether there is any change."""
        return not (self.still and self.origin is None and self.known)

    @property
    def in_place(self) -> bool:
        """Whether the table keeps its columns, and it is known which of its rows changed."""
        return self.known and self.origin is None and self.rows is not None

    def of_function(self) -> TableChange:
        """Return the change of a function of each row of the table.

        Where the table has lost columns, the change of the result is unknown.
        """
        rows = _NO_ROWS if self.still else self.rows
        return TableChange(rows, None, None, self.known and self.origin is None)

    def of_columns(self, columns: list[int]) -> TableChange:
        """Return the change of some columns of the table."""
        change = self.of_function()
        if self.columns is None or not change.known:
            return change
        return replace(change, columns=self.columns[columns])


NOTHING = TableChange(_NO_ROWS)
VALUES = TableChange()
"""Any value may be another one; the columns are where they were."""
ANYTHING = TableChange(known=False)


def union(changes: Iterable[TableChange]) -> TableChange:
    """Join changes of one table, of which one at most may know of columns that moved.

    Examples
    --------
    >>> union([TableChange(np.array([3])), TableChange(np.array([1]))]).rows
    array([1, 3])
    """
    rows: Ints | None = _NO_ROWS
    columns, origins = [], []
    known = True
    for change in changes:
        known &= change.known
        if change.origin is not None:
            origins.append(change.origin)
        if change.still:
            continue
        columns.append(change.columns)
        rows = None if rows is None or change.rows is None else np.union1d(rows, change.rows)
    known &= len(origins) < 2
    return TableChange(
        rows,
        columns[0] if len(columns) == 1 else None,
        origins[0] if origins and known else None,
        known,
    )


class Delta(NamedTuple):
    """Records that leave a model and others that arrive: positions of rows, ascending.

    Attributes
    ----------
    leaving : ndarray of int64
        They are not live any more, and can be read until the change is done.
    arriving : ndarray of int64
        They are live.
    moved : bool
        Whether the arrays of the records and of the attachment may be others, with more rows.
    table : TableChange, or None
        What has changed in the rows that stay, where steps of a pipeline have made them.
    before : ndarray, or None
        The values that ``table.rows`` had, if they are known.

    Examples
    --------
    >>> Delta(np.array([3])).arriving.size
    0
    """

    leaving: Ints
    arriving: Ints = _NO_ROWS
    moved: bool = False
    table: TableChange | None = None
    before: Any = None
