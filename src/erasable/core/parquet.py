"""Records whose numbers stay in Parquet files, and are read block by block.

The law kept here: the values read for a record do not depend on how records are divided into files
and row groups. The files belong to the caller: they are never written, and a file that has changed
since the records were made is refused, as a model would mix two versions.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from decimal import Decimal
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from erasable.core._arrow_files import parquet_footer, parquet_row_group, plain_schema
from erasable.core.errors import InvalidDataError, InvalidInputError
from erasable.core.ids import name_some, shorten
from erasable.core.inputs import RecordArrays
from erasable.core.mapped.disk import stat_of
from erasable.core.stored_table import StoredColumns, Uses, joint_type, kinds_of, refuse_others

__all__ = ["RowGroup", "table_of"]


class RowGroup(NamedTuple):
    """A row group of a Parquet file."""

    path: str
    signature: tuple[int, ...]  # of the file; it changes when the file is written
    file: int  # position among the files, sorted by path
    number: int  # of the row group in its file
    n_rows: int

    @property
    def lasting(self) -> bool:
        """Whether a model's files may refer to it: changed files are refused."""
        return True

    def check(self) -> None:
        """Refuse a file that has changed."""
        try:
            if stat_of(self.path) == self.signature:
                return
            told = "has changed since the records were made of it"
        except FileNotFoundError:
            told = "is not there any more"
        except OSError:
            told = "cannot be read any more"
        raise self._changed(told)

    def read(self, columns: Sequence[str]) -> pa.Table:
        """Read some columns; refuse a file that has changed."""
        self.check()
        try:
            footer = _footer(self.path, self.signature)
            return parquet_row_group(self.path, footer, self.number, columns)
        except (pa.ArrowException, OSError):
            raise self._changed("cannot be read any more") from None

    def bounds(self, columns: Sequence[str]) -> list[tuple[Any, Any]] | None:
        """Return the bounds in the footer of the file."""
        group = _footer(self.path, self.signature).row_group(self.number)
        told = {
            each.path_in_schema: each.statistics
            for each in (group.column(at) for at in range(group.num_columns))
            if each.is_stats_set and each.statistics.has_min_max
        }
        if not set(columns) <= told.keys():
            return None
        found = [(told[name].min, told[name].max) for name in columns]
        numbers = (int, float, Decimal)  # half floats are bytes
        return found if all(isinstance(x, numbers) for pair in found for x in pair) else None

    def _changed(self, told: str) -> InvalidDataError:
        return InvalidDataError(
            f"Parquet file {self.file + 1}, sorted by path, {told}; expected it unchanged while "
            "models learn from it; call Records.from_parquet again"
        )


@lru_cache(maxsize=64)
def _footer(path: str, signature: tuple[int, ...]) -> Any:
    return parquet_footer(path)


# -- from files to records -------------------------------------------------------------------------


def table_of(
    path: Any,
    ids: str | None,
    target: str | None,
    groups: str | None,
    sample_weight: str | None,
    features: Iterable[str] | None,
    memory: int | None,
) -> RecordArrays:
    """Read all but the features of Parquet files; see `Records.from_parquet`."""
    if memory is not None and not (isinstance(memory, int) and memory > 0):
        raise InvalidInputError(f"memory={shorten(memory)} was passed; expected bytes, 1 or more")
    files = _files(path)
    pieces, schema = _row_groups(files)
    uses = Uses(ids, target, groups, sample_weight, None if features is None else list(features))
    chosen = uses.chosen(schema, "the files")
    matrix = StoredColumns(pieces, chosen, joint_type(schema, chosen), kinds_of(schema, chosen))
    if memory is not None:
        _refuse_large(matrix, memory)

    def read(name: str) -> pa.ChunkedArray:
        columns = [piece.read([name])[name] for piece in pieces]
        return pa.chunked_array([chunk for column in columns for chunk in column.chunks])

    return uses.table(matrix, schema, chosen, read, "the files")


def _files(path: Any) -> list[str]:
    """List Parquet files, sorted; of a folder, all that are not hidden."""
    given = [path] if isinstance(path, str | os.PathLike) else path
    if not isinstance(given, list | tuple) or not all(
        isinstance(each, str | os.PathLike) and str(each) for each in given
    ):
        raise InvalidInputError(
            f"path is {shorten(path)}; expected the path of a Parquet file or folder, or a list of "
            "paths"
        )
    found: list[Path] = []
    for each in map(Path, given):
        if not each.is_dir():
            found.append(each)
            continue
        inside = [one for one in each.rglob("*") if one.is_file()]
        hidden = [
            any(part.startswith((".", "_")) for part in one.relative_to(each).parts)
            for one in inside
        ]
        found += [one for one, hide in zip(inside, hidden, strict=True) if not hide]
    if not given:
        raise InvalidInputError(
            "path is an empty list; expected the path of a Parquet file or folder, or a list of "
            "one or more"
        )
    if not found:
        raise InvalidInputError(
            f"there are no files in {name_some([str(each) for each in given])}; expected Parquet "
            "files, or folders of them"
        )
    return sorted({str(each.resolve()) for each in found})


def _row_groups(files: Sequence[str]) -> tuple[list[RowGroup], pa.Schema]:
    """Return the row groups of files, and their columns, which are the same in each."""
    schema: pa.Schema | None = None
    groups: list[RowGroup] = []
    for number, file in enumerate(files):
        try:
            signature, footer = stat_of(file), parquet_footer(file)
        except FileNotFoundError:
            raise InvalidInputError(f"{file!r} is not there; expected a Parquet file") from None
        except (pa.ArrowException, OSError) as error:
            raise InvalidDataError(
                f"{file!r} cannot be read ({type(error).__name__}); expected a Parquet file"
            ) from None
        written = footer.schema.to_arrow_schema()
        own = plain_schema(written)
        if repeated := sorted({name for name in own.names if own.names.count(name) > 1}):
            raise InvalidDataError(
                f"Parquet file {number + 1}, sorted by path, has the columns {name_some(repeated)} "
                "more than once; expected each once"
            )
        if schema is None:
            schema = own.with_metadata(written.metadata)
        refuse_others(
            schema, own, f"Parquet file {number + 1}, sorted by path,", "write them alike"
        )
        groups += [
            RowGroup(file, signature, number, group, footer.row_group(group).num_rows)
            for group in range(footer.num_row_groups)
        ]
    assert schema is not None
    return groups, schema


def _refuse_large(matrix: StoredColumns, memory: int) -> None:
    most = int(np.diff(matrix.starts).max(initial=0))
    a_row = 2 * matrix.shape[1] * matrix.dtype.itemsize  # in the file, and as an array
    if most * a_row > memory:
        raise InvalidDataError(
            f"a block of {most} rows takes {most * a_row} bytes while it is read; expected at most "
            f"memory={memory}; write the files with row_group_size={max(1, memory // a_row)}"
        )
