"""Parquet, text and Arrow files, read and written with pyarrow; no other module does that.

The law kept here: no thread of Arrow's holds a Python object. To release one, a thread takes
Python's lock; when a process ends, Python ends the thread there, and C++ aborts the process
although the command has succeeded (exit code 134). So Parquet is read in the calling thread, by
`ParquetFile` and never by `read_table`, which always begins a thread. The readers of text and of
Arrow's own format always begin one, too: they get files and buffers of Arrow's, none of Python's.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.ipc
import pyarrow.parquet as pq

CSV_NULLS: frozenset[str] = frozenset(pa.csv.ConvertOptions().null_values)
"""Gaps in columns of text files, but for columns of text."""

_Rows = TypeVar("_Rows", pa.Table, pa.RecordBatch)
_AT_ONCE = 1 << 16  # records of a batch, at most
_BYTES = 1 << 24  # bytes of a batch in the file
_BUFFER = 1 << 18  # bytes of each column that are read ahead


def parquet_table(data: bytes, columns: Sequence[str] | None = None) -> pa.Table:
    """Read a Parquet file, `columns` of it in this order; raise if it is damaged or lacks a column.

    pyarrow.ArrowException, OSError and ValueError are what pyarrow raises for these.
    """
    file = pq.ParquetFile(pa.BufferReader(data), pre_buffer=False)
    if columns is None:
        return _without_views(file.read(use_threads=False))
    wanted, there = list(columns), file.schema_arrow.names
    if missing := [name for name in wanted if name not in there]:
        raise ValueError(f"the file has no column {missing[0]!r}")
    # The file returns them in its own order.
    return _without_views(file.read(wanted, use_threads=False).select(wanted))


def table_bytes(table: pa.Table) -> pa.Buffer:
    """Write a table in Arrow's own format, without metadata, in one batch.

    >>> one, two = (pa.chunked_array(each) for each in ([[1, 2]], [[1], [2]]))
    >>> table_bytes(pa.table({"id": one})) == table_bytes(pa.table({"id": two}))
    True
    """
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema.remove_metadata()) as writer:
        writer.write_table(table.combine_chunks())
    return sink.getvalue()


def table_of(data: bytes) -> pa.Table:
    """Read a table that `table_bytes` has written."""
    return pa.ipc.open_stream(_arrows_own(data)).read_all()


def whole(part: pa.RecordBatch | pa.Array) -> pa.Table | pa.ChunkedArray:
    """Return a batch as a table, or an array as a column of one."""
    if isinstance(part, pa.Array):
        return pa.chunked_array([part])
    return pa.Table.from_batches([part])


def array_of_texts(texts: Sequence[str]) -> pa.StringArray:
    """Make an Arrow array of texts; unlike `pyarrow.array`, this does not import pandas."""
    encoded = [each.encode() for each in texts]
    ends = np.zeros(len(encoded) + 1, np.int32)
    np.cumsum([len(each) for each in encoded], dtype=np.int32, out=ends[1:])
    buffers = [None, pa.py_buffer(ends), pa.py_buffer(b"".join(encoded))]
    return pa.Array.from_buffers(pa.string(), len(encoded), buffers)


def parquet_schema(file: pa.NativeFile) -> pa.Schema:
    """Return the columns and types of a Parquet file, without metadata."""
    return plain_schema(pq.ParquetFile(file, pre_buffer=False).schema_arrow)


def plain_schema(schema: pa.Schema) -> pa.Schema:
    """Return the columns and types read from a file, without metadata; text views become text."""
    plain = [
        field.with_type(pa.string()) if pa.types.is_string_view(field.type) else field
        for field in schema
    ]
    return pa.schema(plain)


def _without_views(table: _Rows) -> _Rows:
    plain = plain_schema(table.schema)
    return table if plain.types == table.schema.types else table.cast(plain)


def parquet_footer(path: str) -> pq.FileMetaData:
    """Read the footer of a Parquet file."""
    return pq.ParquetFile(path, pre_buffer=False).metadata


def parquet_row_group(
    path: str, footer: pq.FileMetaData, number: int, columns: Sequence[str]
) -> pa.Table:
    """Read some columns of a row group, in the calling thread."""
    file = pq.ParquetFile(path, metadata=footer, pre_buffer=False)
    return _without_views(file.read_row_group(number, list(columns), use_threads=False))


def refuse_encrypted(file: Any) -> None:
    """Raise OSError if columns of a Parquet file, or of a Python file of one, are encrypted.

    Arrow ends the process where it is asked for their metadata.
    """
    parquet = pq.ParquetFile(file, buffer_size=_BUFFER, pre_buffer=False)
    next(parquet.iter_batches(1, use_threads=False), None)


def parquet_batches(file: pa.NativeFile) -> Iterator[pa.RecordBatch]:
    """Read a Parquet file, or a Python file of one, in batches of at most 65,536 records."""
    parquet = pq.ParquetFile(file, buffer_size=_BUFFER, pre_buffer=False)
    known = parquet.metadata
    groups = [known.row_group(at) for at in range(known.num_row_groups)]
    each = max((g.total_byte_size // max(1, g.num_rows) for g in groups), default=1)
    del groups
    at_once = max(1, min(_AT_ONCE, _BYTES // max(1, each)))
    for batch in parquet.iter_batches(at_once, use_threads=False):
        yield _without_views(batch)


def parquet_bytes(table: pa.Table, *, use_dictionary: bool) -> memoryview:
    """Return a table as Parquet, uncompressed and, without a dictionary, plain."""
    sink = pa.BufferOutputStream()
    if use_dictionary:
        pq.write_table(table, sink, compression="none")
    else:
        pq.write_table(
            table, sink, compression="none", use_dictionary=False, write_statistics=False
        )
    return memoryview(sink.getvalue())


def write_parquet(table: pa.Table, path: Path) -> None:
    """Write a table into a Parquet file."""
    pq.write_table(table, path)


def csv_reader(
    source: Path | bytes | pa.Buffer,
    separator: str,
    types: Mapping[str, pa.DataType],
    block_size: int,
    skip_rows: int = 0,
) -> pa.csv.CSVStreamingReader:
    """Read a text file with separators and a header, block by block.

    `types` are those of some columns; the first block suggests the others. A row ends within
    `block_size` bytes. `skip_rows` lines come before the header. One thread parses, so that errors
    name the number of the row; another reads ahead.
    """
    if isinstance(source, bytes):
        source = _arrows_own(source)
    return pa.csv.open_csv(
        str(source) if isinstance(source, Path) else pa.BufferReader(source),
        read_options=pa.csv.ReadOptions(
            use_threads=False, block_size=block_size, skip_rows=skip_rows
        ),
        parse_options=pa.csv.ParseOptions(delimiter=separator, newlines_in_values=True),
        # NA and the like are gaps in columns of numbers, and text in those of text: there they
        # may be names of people.
        convert_options=pa.csv.ConvertOptions(column_types=dict(types), strings_can_be_null=False),
    )


def _arrows_own(data: bytes) -> pa.Buffer:
    return buffer_of([data])


def buffer_of(parts: Iterable[bytes]) -> pa.Buffer:
    """Copy bytes into memory that a thread frees without Python."""
    sink = pa.BufferOutputStream()
    for part in parts:
        sink.write(part)
    return sink.getvalue()


def write_csv(table: pa.Table, path: Path) -> None:
    """Write a table into a text file with commas and a header."""
    pa.csv.write_csv(table, path)


def ipc_writer(file: BinaryIO, schema: pa.Schema) -> pa.ipc.RecordBatchFileWriter:
    """Yield a writer of batches into a file in Arrow's own format, in the calling thread."""
    return pa.ipc.new_file(file, schema)


def ipc_batches(path: Path, numbers: Sequence[int]) -> list[pa.RecordBatch]:
    """Return some of the batches of a file that `ipc_writer` filled, by their numbers."""
    with pa.OSFile(str(path)) as file:
        reader = pa.ipc.open_file(file)
        return [reader.get_batch(number) for number in numbers]
