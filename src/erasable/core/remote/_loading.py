"""Jobs that make blocks of the sources of records.

The law kept here: a block is a function of its source. A block that differs from its first reading
is not kept, and rows that were deleted are overwritten.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from erasable.core._arrow_files import table_bytes, table_of
from erasable.core._mixed import GAP, Mixed
from erasable.core.arrays import Ints
from erasable.core.errors import ErasableError
from erasable.core.remote._asking import overwrite
from erasable.core.remote._jobs import BlockSource, ColumnLayout, HeldBlock, Job, Shelf
from erasable.core.remote._masking import mask
from erasable.core.stored_table import StoredColumns
from erasable.core.threads import in_threads


@dataclass(frozen=True, repr=False)
class Describe(Job):
    """Read sources; return their columns, and their numbers of rows and bytes."""

    loads = True
    sources: Mapping[int, BlockSource]

    def run(self, shelf: Shelf, n_threads: int) -> dict[int, tuple[pa.Schema, int, int]]:
        """See `Job`."""
        numbers = list(self.sources)
        tables = in_threads(lambda number: _read(self.sources[number]), numbers, n_threads)
        shelf.tables |= dict(zip(numbers, tables, strict=True))
        return {
            number: (table.schema.remove_metadata(), table.num_rows, table.nbytes)
            for number, table in shelf.tables.items()
            if number in self.sources
        }


@dataclass(frozen=True, repr=False)
class Keep(Job):
    """Make blocks of the tables that were described, or of sources again; return their hashes."""

    loads = True
    layout: ColumnLayout
    sources: Mapping[int, BlockSource | None]  # None for those that were described
    # Expected; blocks with other hashes are not kept.
    hashes: Mapping[int, str] = field(default_factory=dict)
    gone: Mapping[int, Ints] = field(default_factory=dict)  # rows that were deleted

    def run(self, shelf: Shelf, n_threads: int) -> dict[int, str]:
        """See `Job`."""
        numbers = list(self.sources)
        return dict(zip(numbers, in_threads(self._keeper(shelf), numbers, n_threads), strict=True))

    def _keeper(self, shelf: Shelf) -> Any:
        def keep(number: int) -> str:
            source = self.sources[number]
            table = shelf.tables.pop(number) if source is None else _read(source)
            own, others = self.layout.features, self.layout.others
            if missing := set(own + others) - set(table.column_names):
                return f"without {len(missing)} columns"
            piece = _Whole(table)
            columns = StoredColumns([piece], own, self.layout.dtype, self.layout.kinds)
            matrix = columns.block(0, gaps=True)
            rest = table.select(others)
            found = _hash(matrix, rest)
            if found != self.hashes.get(number, found):
                return found
            if source is None:
                shelf.tables[number] = rest
            if (gone := self.gone.get(number)) is not None:
                overwrite(matrix, gone)
            shelf.blocks[number] = HeldBlock(matrix, np.ones(len(matrix), dtype=np.bool_))
            return found

        return keep


@dataclass(frozen=True, repr=False)
class Collect(Job):
    """Return the columns that are not features, in Arrow's format, masked with `pad`."""

    loads = True
    pad: int

    def run(self, shelf: Shelf, n_threads: int) -> dict[int, NDArray[np.uint8]]:
        """See `Job`."""
        found = {}
        while shelf.tables:
            number, table = shelf.tables.popitem()
            data = np.frombuffer(table_bytes(table), np.uint8).copy()
            mask(data, self.pad, number)
            found[number] = data
        return found


def collected(data: Any, pad: int, number: int) -> pa.Table:
    """Return the columns of a block in the answer of `Collect`."""
    data = np.array(data)
    mask(data, pad, number)
    return table_of(data.tobytes())


@dataclass(frozen=True)
class _Whole:
    """A table in memory, as the only piece of stored columns."""

    table: pa.Table
    lasting = False

    @property
    def n_rows(self) -> int:
        return int(self.table.num_rows)

    def check(self) -> None: ...

    def read(self, columns: Sequence[str]) -> pa.Table:
        return self.table.select(list(columns))

    def bounds(self, columns: Sequence[str]) -> None: ...


def _read(source: BlockSource) -> pa.Table:
    try:
        return source.table()
    except (ErasableError, MemoryError):
        raise
    except Exception as error:  # of the user's own code; its text may have values
        raise UnreadableError(type(error).__name__) from None


class UnreadableError(Exception):
    """The records could not be read; the message is the type of the error."""


def _hash(matrix: Any, others: pa.Table) -> str:
    mixed = isinstance(matrix, Mixed)
    made = sha256(np.ascontiguousarray(matrix.numbers if mixed else matrix).data)
    for texts in matrix.texts.values() if mixed else ():  # in the order in which they come
        words = [text.encode() for text in texts[GAP + 1 :].tolist()]
        made.update(b"".join(len(word).to_bytes(8) + word for word in words))
    made.update(table_bytes(others))
    return f"{matrix.shape} {made.hexdigest()}"
