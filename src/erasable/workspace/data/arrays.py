"""Columns of arrays: a fixed number of numbers for each record, such as the pixels of an image.

They are kept as bytes, a number each, or as a list of float64; both of one length in the whole
column. The numbers lie in the fragments as the records do, so that they are erased with these.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from erasable.core.errors import SourceError

MOST = 1 << 22
"""The largest number of numbers in an array."""

_BYTES = re.compile(r"fixed_size_binary\[([0-9]+)\]")
_LIST = re.compile(r"fixed_size_list<item: double>\[([0-9]+)\]")


def type_of(text: str) -> pa.DataType:
    """Return the Arrow type of a column from the text in the ledger."""
    if found := _BYTES.fullmatch(text):
        return pa.binary(int(found[1]))
    if found := _LIST.fullmatch(text):
        return pa.list_(pa.float64(), int(found[1]))
    return pa.type_for_alias(text)


def width(kind: str) -> int | None:
    """Return how many numbers a record has in a column of a type; None where it is no array."""
    found = _BYTES.fullmatch(kind) or _LIST.fullmatch(kind)
    return int(found[1]) if found else None


def holds_arrays(kind: pa.DataType) -> bool:
    """Tell whether a column of this type may become one of arrays: bytes, or lists of numbers."""
    return _is_binary(kind) or _is_list(kind)


def plain_arrays(column: pa.ChunkedArray, name: str) -> pa.ChunkedArray:
    """Bring a column of bytes or lists to one of the two types that data sets keep.

    Lists of bytes and booleans become bytes, others lists of float64. The column is one of nulls
    where it holds no array and its type does not give their length.

    >>> plain_arrays(pa.chunked_array([[[1, 2], None]]), "scan").type
    FixedSizeListType(fixed_size_list<item: double>[2])
    >>> plain_arrays(pa.chunked_array([[[1, 2], [3]]]), "scan")
    Traceback (most recent call last):
    erasable.core.errors.SourceError: column 'scan' holds arrays of 1 to 2 numbers; expected ...
    """
    kind = column.type
    if width(str(kind)):
        if pa.types.is_fixed_size_list(kind):
            _refuse_gaps(pc.list_flatten(column), name)
        return column
    valid = pc.is_valid(column).to_numpy()
    n = _length(column, name)
    if n is None:
        return pa.chunked_array([pa.nulls(len(column))])
    if _is_binary(kind):
        flat = np.frombuffer(b"".join(column.drop_null().to_pylist()), np.uint8)
    else:
        items = pc.list_flatten(column)
        _refuse_gaps(items, name)
        small = pa.types.is_uint8(kind.value_type) or pa.types.is_boolean(kind.value_type)
        flat = items.cast(pa.uint8() if small else pa.float64()).to_numpy()
    return array_column(flat.reshape(-1, n), valid)


def array_column(rows: Any, valid: Any) -> pa.ChunkedArray:
    """Make a column of arrays from `rows`, of shape (n_valid, n) and dtype uint8 or float64.

    `valid` is a mask of the records that have an array; the others have a gap.
    """
    whole = np.zeros((len(valid), rows.shape[1]), rows.dtype)
    whole[valid] = rows
    gaps = None if valid.all() else pa.py_buffer(np.packbits(valid, bitorder="little").tobytes())
    data = pa.py_buffer(whole.tobytes())
    n, size = rows.shape[1], len(valid)
    if rows.dtype == np.uint8:
        made = pa.Array.from_buffers(pa.binary(n), size, [gaps, data])
    else:
        items = pa.Array.from_buffers(pa.float64(), size * n, [None, data])
        made = pa.Array.from_buffers(pa.list_(pa.float64(), n), size, [gaps], children=[items])
    return pa.chunked_array([made])


def array_rows(column: pa.ChunkedArray) -> Any:
    """Return a column of arrays as float64 of shape (n_records, n); a gap is a row of NaN."""
    n = width(str(column.type)) or 0
    found = np.full((len(column), n), np.nan)
    start = 0
    for chunk in column.chunks:
        part = found[start : start + len(chunk)]
        start += len(chunk)
        if pa.types.is_fixed_size_binary(chunk.type):
            end = chunk.offset + len(chunk)
            data = np.frombuffer(chunk.buffers()[1], np.uint8, n * end)[n * chunk.offset :]
            part[:] = data.reshape(-1, n)
            part[pc.is_null(chunk).to_numpy(zero_copy_only=False)] = np.nan
        else:
            part[pc.is_valid(chunk).to_numpy(zero_copy_only=False)] = (
                chunk.flatten().to_numpy(zero_copy_only=False).reshape(-1, n)
            )
    return found


def expand_arrays(table: pa.Table) -> pa.Table | Any:
    """Return a table with columns of arrays as a matrix, and any other as it is.

    Each number of an array is a column of the matrix; the other columns have to be numbers.

    >>> scans = pa.array([b"AB", b"CD"], pa.binary(2))
    >>> expand_arrays(pa.table({"age": [40, 50], "scan": scans})).tolist()
    [[40.0, 65.0, 66.0], [50.0, 67.0, 68.0]]
    """
    if not any(width(str(each.type)) for each in table.schema):
        return table
    widths = [width(str(each.type)) or 1 for each in table.schema]
    matrix = np.empty((table.num_rows, sum(widths)))
    start = 0
    for column, n in zip(table.columns, widths, strict=True):
        is_array = width(str(column.type))
        matrix[:, start : start + n] = (
            array_rows(column) if is_array else column.to_numpy().astype(np.float64)[:, None]
        )
        start += n
    return matrix


def _is_binary(kind: pa.DataType) -> bool:
    of_kind = (pa.types.is_binary, pa.types.is_large_binary, pa.types.is_fixed_size_binary)
    return any(fits(kind) for fits in of_kind)


def _is_list(kind: pa.DataType) -> bool:
    of_kind = (pa.types.is_list, pa.types.is_large_list, pa.types.is_fixed_size_list)
    if not any(fits(kind) for fits in of_kind):
        return False
    item = kind.value_type
    of_items = (pa.types.is_integer, pa.types.is_floating, pa.types.is_boolean)
    return any(fits(item) for fits in of_items)


def _length(column: pa.ChunkedArray, name: str) -> int | None:
    """Return how many numbers each array of a column has."""
    kind = column.type
    if pa.types.is_fixed_size_binary(kind):
        least = most = kind.byte_width
    elif pa.types.is_fixed_size_list(kind):
        least = most = kind.list_size
    else:
        lengths = pc.binary_length(column) if _is_binary(kind) else pc.list_value_length(column)
        least, most = pc.min_max(lengths).as_py().values()
    if least is None:
        return None
    if least < most:
        raise unequal_lengths(name, f"{least} to {most}")
    if not 1 <= most <= MOST:
        raise unequal_lengths(name, f"{most}")
    return int(most)


def unequal_lengths(name: str, told: str) -> SourceError:
    """Return the error for a column whose arrays differ in length."""
    return SourceError(
        f"column {name!r} holds arrays of {told} numbers; expected as many in each record, from 1 "
        f"to {MOST}; bring them to one size (names of files are read with --files)"
    )


def _refuse_gaps(items: Any, name: str) -> None:
    if items.null_count:
        raise SourceError(
            f"column {name!r} has {items.null_count} gaps inside its arrays; expected a number in "
            "every place; fill them in, or leave out the whole array"
        )
