"""Records on their way into a data set: sorted into the parts of buckets, on the disk if many.

The law kept here: no more than `_HELD` bytes of records are in memory, and those of one part when
it is read. What is on the disk lies in the workspace's scratch, which is removed at the end and,
after a crash, by the next command.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from erasable.core._arrow_files import ipc_batches, ipc_writer
from erasable.core.errors import SourceError
from erasable.workspace.context import Context
from erasable.workspace.data.fragments import PARTS
from erasable.workspace.data.widening import Widening
from erasable.workspace.store.disk import disk_errors

_HELD = 1 << 25  # bytes of records in memory, before they go to the disk


class Spool:
    """Takes records in any order, and hands them out part by part; a context.

    Parameters
    ----------
    context : Context
    place : str
        What to call the source of the records.

    Attributes
    ----------
    wide : Widening
        The types of all records that came in.
    place : str

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder, Spool(Context.create(folder), "x") as spool:
    ...     spool.add(pa.table({"id": [1, 2, 3]}), pa.array([7, 0, 7], pa.int32()))
    ...     spool.read([7])["id"].to_pylist(), spool.read([0, 7]).num_rows
    ([1, 3], 3)
    """

    def __init__(self, context: Context, place: str) -> None:
        self.wide = Widening(place)
        self.place = place
        self._site = context
        self._held: list[tuple[pa.Table, pa.Array]] = []
        self._n_bytes = 0
        self._runs: list[_Run] = []
        self._rest: tuple[pa.Table, NDArray[np.int64]] | None = None
        self._open = ExitStack()
        self._folder: Path | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        self._held, self._rest = [], None
        self._open.close()

    def add(self, records: pa.Table, parts: pa.Array) -> None:
        """Take in records with the columns of those before, and the part of each.

        Their types are the same, or widen those before. `parts` are int32, from 0 to `PARTS` - 1.
        """
        self.wide.add(records.schema)
        self._held.append((records, parts))
        self._n_bytes += records.nbytes
        if self._n_bytes >= _HELD:
            self._spill()

    def read(self, parts: Iterable[int]) -> pa.Table:
        """Return the records of some parts, in the types of all."""
        if self._rest is None:
            self._rest = self._sorted()
        wanted = list(parts)
        found = [self._slice(*self._rest, part) for part in wanted]
        for run in self._runs:
            found += run.read(wanted)
        tables = [self.wide.cast(table) for table in found if table.num_rows]
        return pa.concat_tables([self.wide.schema.empty_table(), *tables])

    @staticmethod
    def _slice(table: pa.Table, bounds: NDArray[np.int64], part: int) -> pa.Table:
        return table.slice(bounds[part], bounds[part + 1] - bounds[part])

    def _sorted(self) -> tuple[pa.Table, NDArray[np.int64]]:
        """Bring what is held into the order of its parts; return where each begins."""
        held, self._held, self._n_bytes = self._held, [], 0
        parts = pa.concat_arrays([pa.array([], pa.int32()), *(each for _, each in held)])
        table = pa.concat_tables(
            [self.wide.schema.empty_table(), *(self.wide.cast(each) for each, _ in held)]
        )
        del held
        order = pc.sort_indices(parts)
        bounds = np.searchsorted(parts.take(order).to_numpy(), np.arange(PARTS + 1))
        with overflow_errors(self.place):
            return table.combine_chunks().take(order), bounds

    def _spill(self) -> None:
        if self._folder is None:
            self._folder = self._open.enter_context(self._site.scratch())
        path = self._folder / f"{len(self._runs)}.arrow"
        table, bounds = self._sorted()
        run = _Run(path)
        key = path.relative_to(self._site.root).as_posix()
        with self._site.disk.filling(key) as file, ipc_writer(file, table.schema) as writer:
            for part in range(PARTS):
                if bounds[part] < bounds[part + 1]:
                    batches = self._slice(table, bounds, part).to_batches()
                    run.note(part, len(batches))
                    for batch in batches:
                        writer.write_batch(batch)
        self._runs.append(run)


@contextmanager
def overflow_errors(place: str) -> Iterator[None]:
    """Raise SourceError where texts are more than Arrow can sort together."""
    try:
        yield
    except (pa.ArrowInvalid, pa.ArrowCapacityError):
        raise SourceError(
            f"{place!r} has a column with more than 2 GB of text in the records that are kept "
            "together, those of a person; expected less; leave the column out, or shorten its texts"
        ) from None


class _Run:
    """A file of records in the order of their parts."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._n_batches = 0
        self._batches: dict[int, range] = {}  # of each part

    def note(self, part: int, n_batches: int) -> None:
        """Remember that the next batches are of a part."""
        self._batches[part] = range(self._n_batches, self._n_batches + n_batches)
        self._n_batches += n_batches

    def read(self, parts: Iterable[int]) -> list[pa.Table]:
        """Return the records of some parts."""
        wanted = [number for part in parts for number in self._batches.get(part, ())]
        with disk_errors(self.path):
            return [pa.Table.from_batches([each]) for each in ipc_batches(self.path, wanted)]
