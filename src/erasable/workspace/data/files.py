"""Read tables from files; say in one line what is wrong with one, without repeating its values."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.dataset

from erasable.core.errors import SourceError

__all__ = ["is_folder", "read_csv", "read_parquet"]

_BLOCK = 1 << 24  # bytes of a CSV file that are parsed at once: no row may be longer
_RAGGED = re.compile(r"(?:Row #(\d+): )?Expected (\d+) columns, got (\d+)")


def is_folder(path: Path) -> bool:
    """Tell whether a path is that of a folder; one that cannot be is not."""
    try:
        return path.is_dir()
    except OSError:  # a name too long
        return False


def read_csv(path: Path, separator: str, text_columns: Iterable[str]) -> pa.Table:
    """Read a text file with a header; see `erasable.workspace.data.sources.Source.read`."""
    _check_there(path)
    try:
        if _is_utf16(path):
            raise _misencoded(path)
        # One thread: its complaints come with the number of the row.
        table = pa.csv.read_csv(
            path,
            read_options=pa.csv.ReadOptions(use_threads=False, block_size=_BLOCK),
            parse_options=pa.csv.ParseOptions(delimiter=separator, newlines_in_values=True),
            # NA and the like are gaps in columns of numbers, and text in those of text: there they
            # may be what somebody is called.
            convert_options=pa.csv.ConvertOptions(
                column_types=dict.fromkeys(text_columns, pa.string()), strings_can_be_null=False
            ),
        )
        names = table.column_names
    except SourceError:
        raise
    except UnicodeDecodeError:
        raise _misencoded(path) from None
    except (pa.ArrowException, OSError, ValueError) as error:
        raise _csv_complaint(path, str(error)) from None
    if any("\0" in name for name in names) or any(map(pa.types.is_binary, table.schema.types)):
        raise _misencoded(path)
    return table


def read_parquet(path: Path) -> pa.Table:
    """Read a Parquet file, or all of those in a folder, which have the same columns."""
    _check_there(path)
    try:
        found = pa.dataset.dataset(path, format="parquet", partitioning="hive")
        if not found.files:
            raise SourceError(
                f"{str(path)!r} holds no Parquet files; expected one or more; name their folder"
            )
        schemas = [part.physical_schema for part in found.get_fragments()]
        _check_alike(path, schemas)
        whole = pa.unify_schemas([found.schema, *schemas], promote_options="permissive")
        read = pa.dataset.dataset(
            path, schema=whole, format="parquet", partitioning="hive"
        ).to_table()
        read.validate(full=True)  # what is called text in a damaged file may be none
        return read
    except SourceError:
        raise
    except (pa.ArrowException, OSError, ValueError, TypeError) as error:
        raise _parquet_complaint(path, error) from None


def _check_there(path: Path) -> None:
    try:
        there = path.exists()
    except OSError:
        there = False
    if not there:
        raise SourceError(
            f"{str(path)!r} is not there; expected a file or folder; correct the path"
        )


def _is_utf16(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(2) in (b"\xff\xfe", b"\xfe\xff")


def _check_alike(path: Path, schemas: Sequence[pa.Schema]) -> None:
    for schema in schemas:
        differing = set(schema.names) ^ set(schemas[0].names)
        if differing:
            raise SourceError(
                f"the files in {str(path)!r} differ in the columns "
                f"{', '.join(map(repr, sorted(differing)[:5]))}; expected the same in each; "
                "write them alike, or add them as several data sets"
            )


def _misencoded(path: Path) -> SourceError:
    return SourceError(
        f"{str(path)!r} is not encoded in UTF-8; expected that; convert it, as with "
        "`iconv -f latin1 -t utf-8`"
    )


def _csv_complaint(path: Path, told: str) -> SourceError:
    if "invalid UTF8" in told or "codec can't" in told:
        return _misencoded(path)
    if "Empty CSV" in told:
        return SourceError(
            f"{str(path)!r} is empty; expected a line of column names and records; "
            "check that it is whole"
        )
    if ragged := _RAGGED.search(told):
        row = f"row {ragged[1]}" if ragged[1] else "a row"
        return SourceError(
            f"{str(path)!r} has {ragged[3]} columns in {row}; expected {ragged[2]}; mend that "
            "row: a separator in a value needs quotes around the value"
        )
    if "straddl" in told:
        return SourceError(
            f"{str(path)!r} has a row of over {_BLOCK >> 20} MB, or a quote that does not end; "
            "expected shorter rows; mend the quotes"
        )
    return SourceError(
        f"{str(path)!r} cannot be read as a table; expected text with separators, whole, that you "
        "may read; check its format and permissions"
    )


def _parquet_complaint(path: Path, error: Exception) -> SourceError:
    if isinstance(error, PermissionError):
        told = "cannot be opened; expected files that you may read; check their permissions"
    elif "duplicate field names" in str(error):
        told = "has a column more than once; expected each once; rename one of them"
    elif isinstance(error, pa.ArrowTypeError):
        told = (
            "has files whose columns differ in type; expected the same types; write them alike, "
            "or add them as several data sets"
        )
    else:
        told = (
            "is not Parquet, or is damaged; expected whole Parquet files and no others; "
            "write it again, or name it after its format"
        )
    return SourceError(f"{str(path)!r} {told}")
