"""Parquet files, read some records at a time: one, or all of those in a folder or object store.

The law kept here: the result does not depend on how records are divided into files, but for the
columns that the names of folders give (``year=2024/part-0.parquet``), which all of the files have
or none. At most the records of one batch and the footer of one file are in memory.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.fs

from erasable.core import _arrow_files as arrow_files
from erasable.core.errors import SourceError
from erasable.workspace.data.column_types import cast_table
from erasable.workspace.data.files import check_there, store_unreachable

_GAP = "__HIVE_DEFAULT_PARTITION__"  # the folder of nulls of Hive and Spark


@dataclass(frozen=True, slots=True)
class _File:
    path: str
    partitions: dict[str, str | None]


def parquet_batches(
    place: str, text_columns: Sequence[str], store: pa.fs.FileSystem | None, path: str
) -> Iterator[pa.Table]:
    """Read a Parquet file, or all files of a folder, which have the same columns.

    `place` names it in messages; `store` is None for the files of this machine. Columns that come
    from the names of folders stay text if they are in `text_columns`: "007" is not 7. All batches
    have one schema; the first is empty, and has the columns.
    """
    if store is None:
        check_there(Path(path))
        store = pa.fs.LocalFileSystem()
    try:
        files = _files(store, path, place)
        schema = _schema(store, files, place)
        given = _partition_types(files, text_columns)
        own = [pa.field(name, kind) for name, kind in given.items() if name not in schema.names]
        whole = pa.schema([*schema, *own])
        yield whole.empty_table()
        for number, file in enumerate(files, 1):
            with _named(place, number, len(files)):
                for batch in _read(store, file.path):
                    yield _completed(batch, file, schema, own, place)
    except SourceError:
        raise
    except (pa.ArrowException, OSError, ValueError, TypeError) as error:
        raise _as_error(place, error) from None
    except Exception as error:  # of the drivers of stores, each with errors of its own
        if isinstance(store, pa.fs.LocalFileSystem):
            raise
        raise store_unreachable(place, error) from None


def _files(store: pa.fs.FileSystem, path: str, place: str) -> list[_File]:
    (info,) = store.get_file_info([path])
    if info.type == pa.fs.FileType.File:
        return [_File(path, {})]
    if info.type == pa.fs.FileType.NotFound:
        raise SourceError(f"{place!r} is not there; expected a file or folder")
    found = []
    for each in store.get_file_info(pa.fs.FileSelector(path, recursive=True)):
        within = each.path.removeprefix(info.path.rstrip("/")).strip("/").split("/")
        # Names that begin so are notes of the programs that wrote the files.
        if each.type == pa.fs.FileType.File and not any(n.startswith((".", "_")) for n in within):
            found.append(_File(each.path, _partitions_of(within[:-1])))
    if not found:
        raise SourceError(
            f"{place!r} holds no Parquet files; expected one or more; name their folder"
        )
    found.sort(key=lambda file: file.path)
    _check_layout(found, place)
    return found


def _partitions_of(folders: Sequence[str]) -> dict[str, str | None]:
    """Return the columns that names of folders give, as Hive writes them: key=value.

    >>> _partitions_of(["year=2024", "who=a%20b", "more"])
    {'year': '2024', 'who': 'a b'}
    """
    pairs = [folder.partition("=") for folder in folders if "=" in folder]
    return {unquote(key): None if value == _GAP else unquote(value) for key, _, value in pairs}


def _check_layout(files: Sequence[_File], place: str) -> None:
    first = files[0].partitions.keys()
    for file in files:
        differing = sorted(first ^ file.partitions.keys())
        if differing:
            raise SourceError(
                f"some files in {place!r} lie in folders of {', '.join(map(repr, differing[:5]))} "
                "and others do not; expected the same partitions of each; move them, or add them "
                "as several data sets"
            )


def _schema(store: pa.fs.FileSystem, files: Sequence[_File], place: str) -> pa.Schema:
    """Return the types that the files have in common."""
    whole: pa.Schema | None = None
    for number, file in enumerate(files, 1):
        with _named(place, number, len(files)), store.open_input_file(file.path) as opened:
            schema = _plain_text(arrow_files.parquet_schema(opened))
            if len(set(schema.names)) < len(schema.names):
                which = _which(number, len(files))
                raise SourceError(
                    f"{place!r}{which} has a column more than once; expected each once; rename one "
                    "of them"
                )
        if whole is None:
            whole = schema
        differing = sorted(set(schema.names) ^ set(whole.names))
        if differing:
            raise SourceError(
                f"the files in {place!r} differ in the columns "
                f"{', '.join(map(repr, differing[:5]))}; expected the same in each; "
                "write them alike, or add them as several data sets"
            )
        whole = pa.unify_schemas([whole, schema], promote_options="permissive")
    assert whole is not None
    return whole


def _plain_text(schema: pa.Schema) -> pa.Schema:
    """Return the types without dictionaries, which differ between files."""
    return pa.schema(
        [
            field.with_type(field.type.value_type) if pa.types.is_dictionary(field.type) else field
            for field in schema
        ]
    )


def _partition_types(files: Sequence[_File], text_columns: Sequence[str]) -> dict[str, pa.DataType]:
    """Return the types of the columns from folders: whole numbers, where all values are."""
    types = {}
    for name in files[0].partitions:
        partitions = {file.partitions[name] for file in files}
        values = pa.array([value for value in partitions if value is not None], pa.string())
        types[name] = pa.string()
        if name not in text_columns and len(values):
            try:
                types[name] = values.cast(pa.int64()).type
            except pa.ArrowInvalid:
                continue
    return types


def _read(store: pa.fs.FileSystem, path: str) -> Iterator[pa.RecordBatch]:
    with store.open_input_file(path) as opened:
        for batch in arrow_files.parquet_batches(opened):
            batch.validate(full=True)  # the text of a damaged file may be invalid
            yield batch


def _completed(
    batch: pa.RecordBatch, file: _File, schema: pa.Schema, own: Sequence[pa.Field], place: str
) -> pa.Table:
    """Bring a batch to the types of all files, and add the columns of its folder."""
    table = pa.Table.from_batches([batch])
    arrays = cast_table(table, schema, place).columns
    for name, value in file.partitions.items():
        if name in schema.names:
            _check_agrees(table[name], name, value, place)
    for field in own:
        value = pa.scalar(file.partitions[field.name], pa.string()).cast(field.type)
        arrays.append(pa.chunked_array([pa.repeat(value, len(batch))]))
    return pa.Table.from_arrays(arrays, schema=pa.schema([*schema, *own]))


def _check_agrees(column: pa.ChunkedArray, name: str, value: str | None, place: str) -> None:
    if value is None:
        agrees = column.null_count == len(column)
    else:
        try:
            same = pc.equal(column, pa.scalar(value).cast(column.type))
            agrees = column.null_count == 0 and bool(pc.all(same, min_count=0).as_py())
        except pa.ArrowException:
            agrees = False
    if not agrees:
        raise SourceError(
            f"a file in {place!r} has values of {name!r} that differ from the name of its folder; "
            "expected the same; move it, or leave the column out"
        )


@contextmanager
def _named(place: str, number: int, n: int) -> Iterator[None]:
    """Name the file of a folder that cannot be read; not by its path, which may name a person."""
    try:
        yield
    except SourceError:
        raise
    except (pa.ArrowException, OSError, ValueError, TypeError) as error:
        raise _as_error(place, error, _which(number, n)) from None


def _which(number: int, n: int) -> str:
    return f" (file {number} of {n}, sorted by path)" if n > 1 else ""


def _as_error(place: str, error: Exception, which: str = "") -> SourceError:
    if isinstance(error, PermissionError):
        message = "cannot be opened; expected files that you may read; check their permissions"
    elif isinstance(error, pa.ArrowTypeError):
        message = (
            "has files whose columns differ in type; expected the same types; write them alike, "
            "or add them as several data sets"
        )
    else:
        message = (
            "is not Parquet, is damaged, or is gone; expected whole Parquet files and no others; "
            "write it again, or name it after its format"
        )
    return SourceError(f"{place!r}{which} {message}")
