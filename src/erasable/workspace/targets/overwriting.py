"""Rows of tables that are overwritten, and tables without the values of rows that left."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from erasable.core.errors import SourceError
from erasable.workspace.targets.columns import is_text, without_views
from erasable.workspace.targets.protocol import Settings

MASK = "erased"


def is_kept(path: str, keep: Collection[str]) -> bool:
    """Tell whether a field stays as it is."""
    return any(path == each or path.startswith(f"{each}.") for each in keep)


def check_overwritten(
    schema: pa.Schema, settings: Settings, given: Collection[str], place: str
) -> None:
    """Refuse a table whose rows cannot be overwritten."""
    if settings.action == "delete":
        return
    for subject in settings.subjects:
        if subject.field in given or is_kept(subject.field, settings.keep):
            raise SourceError(
                f"the column {subject.field!r} of {place} says whose rows there are, and would "
                f"stay, as that of a folder or one to keep; expected one that {settings.action} "
                "changes; delete the rows instead"
            )
    for field in schema:
        as_text = settings.action == "mask" and is_text(field.type)
        if not (field.nullable or as_text or is_kept(field.name, settings.keep)):
            raise SourceError(
                f"the column {field.name!r} of {place} may not be null; expected one that can be "
                "overwritten; keep it, or delete the rows"
            )


def overwritten(table: pa.Table, rows: np.ndarray, settings: Settings) -> pa.Table:
    """Return a table with null or a mask in some rows, but in the fields to keep."""
    table = without_views(table)
    columns = [
        _overwritten(column.combine_chunks(), rows, field.name, settings)
        for column, field in zip(table.columns, table.schema, strict=True)
    ]
    return pa.Table.from_arrays(columns, schema=table.schema)


def _overwritten(array: Any, rows: np.ndarray, path: str, settings: Settings) -> Any:
    if isinstance(array, pa.ChunkedArray):
        array = pa.concat_arrays(array.chunks) if array.num_chunks else pa.array([], array.type)
    if is_kept(path, settings.keep):
        return array
    if settings.action == "mask" and is_text(array.type):
        kind = array.type.value_type if pa.types.is_dictionary(array.type) else array.type
        plain = array.cast(kind)
        where = pc.and_(pa.array(rows), plain.is_valid())
        masked = pc.if_else(where, pa.scalar(MASK, kind), plain)
        return masked.cast(array.type) if kind != array.type else masked
    within = any(each.startswith(f"{path}.") for each in settings.keep)
    if pa.types.is_struct(array.type) and (within or settings.action == "mask"):
        children = [
            _overwritten(child, rows, f"{path}.{field.name}", settings)
            for child, field in zip(array.flatten(), array.type, strict=True)
        ]
        return pa.StructArray.from_arrays(children, fields=list(array.type), mask=array.is_null())
    at = pa.array(np.arange(len(array)), mask=rows)
    return array.take(at)


def compacted(table: pa.Table) -> pa.Table:
    """Return a table whose dictionaries have no value that no row has."""
    for number, field in enumerate(table.schema):
        if pa.types.is_dictionary(field.type):
            chunks = [_compacted(each) for each in table.column(number).chunks]
            table = table.set_column(number, field, pa.chunked_array(chunks, field.type))
        elif (plain := _plain(field.type)) != field.type:
            table = table.set_column(number, field, table[number].cast(plain).cast(field.type))
    return table


def _plain(kind: pa.DataType) -> pa.DataType:
    """Return a type with values in the place of dictionaries of texts."""
    if pa.types.is_dictionary(kind):
        return kind.value_type if is_text(kind) else kind
    if pa.types.is_struct(kind):
        return pa.struct([each.with_type(_plain(each.type)) for each in kind])
    if pa.types.is_map(kind):
        return pa.map_(_plain(kind.key_type), _plain(kind.item_type), kind.keys_sorted)
    if pa.types.is_fixed_size_list(kind):
        return pa.list_(kind.value_field.with_type(_plain(kind.value_type)), kind.list_size)
    for is_kind, make in ((pa.types.is_list, pa.list_), (pa.types.is_large_list, pa.large_list)):
        if is_kind(kind):
            return make(kind.value_field.with_type(_plain(kind.value_type)))
    return kind


def _compacted(array: pa.DictionaryArray) -> pa.DictionaryArray:
    used = pc.drop_null(pc.unique(array.indices)).sort()
    words = array.dictionary.take(used)
    at = pc.index_in(array.indices, used).cast(array.type.index_type)
    return pa.DictionaryArray.from_arrays(at, words, ordered=array.type.ordered)
