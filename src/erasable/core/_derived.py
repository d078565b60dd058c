"""Tables made of stored ones, row by row, during a pass.

The law kept here: rows that do not count are not made, as a model must not depend on them.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Self, cast

import numpy as np
from scipy.sparse import issparse

from erasable.core.arrays import Flags, Floats, Ints
from erasable.core.block_cache import LastRead
from erasable.core.errors import InvalidDataError
from erasable.core.matrices import to_dense
from erasable.core.messages import refuse_not_finite
from erasable.core.passes import Block, Made, Partial, Pass, Remote, Stored
from erasable.core.row_arrays import PerRow, RowArray

_LARGEST = 2**31
"""Bytes of a new block, at most."""


class Derived(Stored):
    """A table of which each row is made of one row of a stored table.

    `make` makes rows of rows, can be pickled and does not change. `probe` are some rows that it has
    made: they give the dtype and the width. `live` flags the rows that count; its owner changes it
    in place. `sparse` says whether `make` returns sparse rows; here they are made dense.
    """

    def __init__(self, source: Stored, make: Callable[[Any], Any], probe: Any, live: Flags) -> None:
        self._source, self._make, self._live = source, make, live
        self.sparse = issparse(probe)
        self.starts, self.dtype = source.starts, np.dtype(probe.dtype)
        self.shape = source.shape[0], int(probe.shape[1])
        self._last: LastRead | None = None
        most = int(np.diff(self.starts).max(initial=0))
        size = most * self.shape[1] * self.dtype.itemsize
        if size > _LARGEST:
            raise InvalidDataError(
                f"a block of {most} rows takes {size} bytes with the {self.shape[1]} columns that "
                f"are made of it; expected at most {_LARGEST}; make blocks smaller, or columns "
                "fewer"
            )

    def over(self, source: Stored, live: Flags) -> Self:
        """Return the same table made of a source with more rows."""
        made = copy.copy(self)
        made._source, made._live, made._last = source, live, None
        made.starts, made.shape = source.starts, (source.shape[0], self.shape[1])
        return made

    def read_block(
        self, number: int, live_rows: Ints | None, columns: Sequence[int] | None, gaps: bool
    ) -> Block:
        """See `Stored`."""
        block = self._source.read_block(number, live_rows, None, True)
        live = self._live[block.first : block.first + len(block.matrix)]
        return self.plan(columns, gaps).of(block, None if live_rows is not None else live)

    def block(
        self, number: int, columns: Sequence[int] | None = None, *, gaps: bool = False
    ) -> Any:
        """See `Stored`; rows that do not count are blank."""
        return self.read_block(number, None, columns, gaps).matrix

    def plan(self, columns: Sequence[int] | None, gaps: bool) -> Making:
        """Return the plan by which blocks are made."""
        chosen = None if columns is None else tuple(columns)
        return Making(self._make, self.shape[1], self.dtype, chosen, gaps)

    def __getitem__(self, rows: Ints) -> Any:
        """Make rows, or return prepared ones."""
        if self._last is not None and (known := self._last.of(rows)) is not None:
            return known
        return self._made(rows)

    def _made(self, rows: Ints) -> Any:
        return self.plan(None, True).rows(self._source[rows])

    def prepare(self, rows: Ints) -> None:
        """Make rows before they are deleted, while the fitted steps still hold them."""
        self._last = LastRead(rows.copy(), self._made(rows))

    def forget(self, rows: Ints) -> None:
        """See `Stored`; rows that do not count are not made."""
        self.drop_copies()

    def drop_copies(self) -> None:
        """See `Stored`."""
        self._last = None


class RemoteDerived(Derived, Remote):
    """A table whose blocks are made in the processes that have the stored ones."""

    _mask: PerRow | None = None

    def run(
        self,
        pass_: Pass[Partial],
        live_rows: Ints | None = None,
        columns: Sequence[int] | None = None,
        n_jobs: int | None = None,
    ) -> Partial:
        """See `erasable.core.passes.run`."""
        mask = None
        if live_rows is None:
            if self._mask is None or not np.array_equal(self._mask.values, self._live):
                self._mask = PerRow(self._live.copy())
            mask = self._mask
        behind = Behind(pass_, self.plan(columns, pass_.takes_gaps), mask)
        return self._remote.run(behind, live_rows, None)

    def call(self, functions: Iterable[Callable[[], Made]]) -> Iterator[Made]:
        """See `Remote`."""
        return self._remote.call(functions)

    @property
    def n_calls(self) -> int:
        """See `Remote`."""
        return self._remote.n_calls

    @property
    def _remote(self) -> Remote:
        return cast(Remote, self._source)


class Making:
    """The plan by which blocks are made of others; see `Derived`."""

    def __init__(
        self,
        make: Callable[[Any], Any],
        width: int,
        dtype: np.dtype[Any],
        columns: tuple[int, ...] | None,
        gaps: bool,
    ) -> None:
        self._make, self._width, self._dtype = make, width, dtype
        self._columns, self._gaps = columns, gaps

    def rows(self, rows: Any) -> Any:
        """Make rows: all columns."""
        if len(rows) == 0:
            return np.empty((0, self._width), self._dtype)
        made = self._make(rows)
        return to_dense(made)

    def of(self, block: Block, live: Flags | None) -> Block:
        """Make a block; if all its rows count, make only its `live` rows."""
        positions = block.positions
        if block.every and live is not None:
            positions = np.flatnonzero(live)
        n_rows = len(block.matrix)
        whole = positions.size == n_rows
        made = self.rows(block.matrix if whole else block.matrix[positions])
        if self._columns is not None:
            made = np.ascontiguousarray(made[:, list(self._columns)])
        if not (self._gaps or made.dtype == object or np.isfinite(made.sum())):
            refuse_not_finite(made, [f"x{j}" for j in self._columns or range(self._width)])
        if not whole:
            blank = "" if made.dtype == object else 0
            table: Floats = np.full((n_rows, made.shape[1]), blank, dtype=made.dtype)
            table[positions] = made
            made = table
        return block._replace(matrix=made, columns=self._columns)


class Behind(Pass[Partial]):
    """A pass over a table made of the blocks of this pass."""

    takes_gaps = True

    def __init__(self, pass_: Pass[Partial], plan: Making, mask: PerRow | None) -> None:
        self._pass, self._plan, self._mask = pass_, plan, mask
        self.finds_records = pass_.finds_records

    def of_block(self, block: Block) -> Partial:
        """See `Pass`."""
        live = None if self._mask is None else self._mask.of(block)
        return self._pass.of_block(self._plan.of(block, live))

    def merge(self, one: Partial, other: Partial) -> Partial:
        """See `Pass`."""
        return self._pass.merge(one, other)

    def row_arrays(self) -> list[RowArray]:
        """See `Pass`."""
        own: list[RowArray] = [] if self._mask is None else [self._mask]
        return [*self._pass.row_arrays(), *own]
