"""Stored tables to which rows in memory were added.

The rows that were stored stay where they are. Added rows are one more block; a deleted one is
overwritten.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from erasable.core._mixed import Mixed, mixed_of, stacked
from erasable.core.arrays import Flags, Floats, Ints
from erasable.core.passes import Made, Partial, Pass, Remote, Stored
from erasable.core.persistent import Persistent

__all__ = ["Grown", "grown"]


class Grown(Stored, Persistent):
    """A stored table, and rows in memory that follow its own.

    `added` are numbers of the same dtype, or `Mixed` where the table has text.
    """

    def __init__(self, stored: Stored, added: Any, gone: Flags | None) -> None:
        self.stored, self.added = stored, added
        self.dtype, self.lasting = stored.dtype, stored.lasting
        self.shape = stored.shape[0] + len(added), stored.shape[1]
        self.starts = np.append(stored.starts, self.shape[0])
        if gone is not None:
            more = np.zeros(self.shape[0] - gone.size, dtype=np.bool_)
            self.gone = np.concatenate([gone, more])

    @property
    def kinds(self) -> str:
        """See `Stored`."""
        return self.stored.kinds

    def block(
        self, number: int, columns: Sequence[int] | None = None, *, gaps: bool = False
    ) -> Any:
        """See `Stored`."""
        if number < len(self.stored.starts) - 1:
            return self.stored.block(number, columns, gaps=gaps)
        if columns is None:
            return self.added
        if isinstance(self.added, Mixed):
            return self.added.chosen(columns)
        return np.ascontiguousarray(self.added[:, list(columns)])

    def __getitem__(self, rows: Any) -> Any:
        """See `Stored`."""
        n = self.stored.shape[0]
        own = rows >= n
        if own.all():
            found = self.added[rows - n]
            return found.own() if isinstance(found, Mixed) else found
        others = self.stored[rows[~own]]
        if not own.any():
            return others
        order = np.argsort(np.concatenate([np.flatnonzero(~own), np.flatnonzero(own)]))
        more = self.added[rows[own] - n]
        if isinstance(more, Mixed):
            return stacked([others, more])[order].own()
        return np.concatenate([others, more])[order]

    def bounds(self) -> tuple[Floats, Floats] | None:
        """See `Stored`."""
        told = self.stored.bounds()
        if told is None or not len(self.added):
            return told
        low, high = self.added.min(axis=0), self.added.max(axis=0)
        return np.minimum(told[0], low), np.maximum(told[1], high)

    def prepare(self, rows: Ints) -> None:
        """See `Stored`."""
        self.stored.prepare(rows[rows < self.stored.shape[0]])

    def forget(self, rows: Ints) -> None:
        """See `Stored`; added rows are overwritten."""
        super().forget(rows)
        n = self.stored.shape[0]
        self.stored.forget(rows[rows < n])
        own = rows[rows >= n] - n
        if isinstance(self.added, Mixed) and self.gone is not None:
            self.added.overwrite(own, ~self.gone[n:])
        else:
            self.added[own] = 0

    def drop_copies(self) -> None:
        """See `Stored`."""
        self.stored.drop_copies()

    def take(self, rows: Ints) -> Stored:
        """See `Stored`; added rows are copied, so that others do not remain in what is taken."""
        n = self.stored.shape[0]
        added = self.added[rows[rows >= n] - n]
        added = added.own() if isinstance(added, Mixed) else added
        gone = None if self.gone is None else self.gone[rows]
        return type(self)(self.stored.take(rows[rows < n]), added, gone)

    def memory(self) -> list[Any]:
        """Return the arrays of the rows that were added."""
        added = self.added
        return [added.numbers, *added.texts.values()] if isinstance(added, Mixed) else [added]


class RemoteGrown(Grown, Remote):
    """A table in other processes, and rows in this one that follow its own."""

    stored: Remote

    def run(
        self,
        pass_: Pass[Partial],
        live_rows: Ints | None = None,
        columns: Sequence[int] | None = None,
        n_jobs: int | None = None,
    ) -> Partial:
        """See `erasable.core.passes.run`."""
        own = self.read_block(len(self.starts) - 2, live_rows, columns, pass_.takes_gaps)
        n = self.stored.shape[0]
        others = None if live_rows is None else live_rows[live_rows < n]
        return pass_.merge(self.stored.run(pass_, others, columns), pass_.of_block(own))

    def call(self, functions: Iterable[Callable[[], Made]]) -> Iterator[Made]:
        """See `Remote`."""
        return self.stored.call(functions)

    @property
    def n_calls(self) -> int:
        """See `Remote`."""
        return self.stored.n_calls


def grown(matrix: Stored, rows: Any) -> Grown:
    """Return a stored table with more rows, copied: numbers of its dtype, or objects."""
    added = mixed_of(rows, matrix.kinds) if matrix.dtype == object else rows.copy()
    if isinstance(matrix, Grown):
        both = [matrix.added, added]
        joined = stacked(both) if matrix.dtype == object else np.concatenate(both)
        return type(matrix)(matrix.stored, joined, matrix.gone)
    kind = RemoteGrown if matrix.is_remote else Grown
    return kind(matrix, added, matrix.gone)
