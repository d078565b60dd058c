"""Columns of Parquet, Arrow and ORC files: all values, dictionaries and statistics."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import BinaryIO

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import orc, parquet

from erasable.core._arrow_files import refuse_encrypted
from erasable.workspace.targets.embedded import look_for_frames
from erasable.workspace.targets.inspection import Inspection, Undecodable, is_bytes, leaves
from erasable.workspace.targets.nested_values import compare_document, document_in
from erasable.workspace.targets.text_lines import columns_of_folders, folders_of

_ROWS = 1 << 16
_TEXTS = ("STRING", "NONE", "JSON", "ENUM")


def look_at_parquet(file: BinaryIO, path: Path, inspection: Inspection, depth: int) -> None:
    """Look at all columns, at all entries of dictionaries, and at statistics."""
    try:
        refuse_encrypted(file)
        metadata = parquet.read_metadata(file)
        own = _with_dictionaries(metadata)
        with parquet.ParquetFile(file, read_dictionary=own, pre_buffer=False) as found:
            if "_delta_log" in folders_of(path, inspection):  # also within it, as sidecars are
                _look_at_log(found, inspection)
                return
            of_folders = columns_of_folders(path, inspection)
            _look_at_notes(found.schema_arrow, inspection)
            for batch in found.iter_batches(_ROWS, use_threads=False):
                look_at_batch(batch, inspection, of_folders)
            _look_at_statistics(found.metadata, inspection, of_folders)
    except (pa.ArrowException, OSError, ValueError) as error:
        raise Undecodable(f"it is damaged or encrypted Parquet ({type(error).__name__})") from error


def _with_dictionaries(metadata: parquet.FileMetaData) -> list[str]:
    """Return the columns of texts that can be read with all entries of their dictionaries."""
    found = []
    for at in range(metadata.num_columns):
        column = metadata.schema.column(at)
        if column.physical_type != "BYTE_ARRAY" or column.logical_type.type not in _TEXTS:
            continue
        encodings = {
            each
            for group in range(metadata.num_row_groups)
            for each in metadata.row_group(group).column(at).encodings
        }
        if not any(each.startswith("DELTA") for each in encodings):
            found.append(column.path)
    return found


def _look_at_log(found: parquet.ParquetFile, inspection: Inspection) -> None:
    """Look at a checkpoint of a Delta table, whose rows are documents."""
    for batch in found.iter_batches(_ROWS, use_threads=False):
        for column in batch.columns:
            inspection.look_at_array(column, {""})  # its values are compared below
        if inspection.has_exact:
            for row in batch.to_pylist(maps_as_pydicts="lossy"):
                compare_document(row, (), inspection)


def _look_at_statistics(
    metadata: parquet.FileMetaData, inspection: Inspection, of_folders: Sequence[str]
) -> None:
    every = frozenset([*metadata.schema.names, *of_folders])
    for group in map(metadata.row_group, range(metadata.num_row_groups)):
        for column in map(group.column, range(group.num_columns)):
            if column.is_stats_set and column.statistics.has_min_max:
                for each in (column.statistics.min, column.statistics.max):
                    if isinstance(each, int | float | str):
                        path = column.path_in_schema
                        inspection.compare([each], [path, *path.split(".")], every)


def look_at_arrow(file: BinaryIO, path: Path, inspection: Inspection, depth: int) -> None:
    """Look at all columns of an Arrow file, and at its bytes, which may have more."""
    try:
        with _mapped(file) as own, pa.ipc.open_file(own) as found:
            _look_at_notes(found.schema, inspection)
            for at in range(found.num_record_batches):
                look_at_batch(found.get_batch(at), inspection)
    except (pa.ArrowException, OSError, ValueError) as error:
        raise Undecodable(f"it is a damaged Arrow file ({type(error).__name__})") from error
    file.seek(0)
    look_for_frames(file, inspection)  # type: ignore[arg-type]


def _mapped(file: BinaryIO) -> pa.NativeFile:
    """Return a file of Arrow's own, which its threads may have."""
    return pa.memory_map(f"/dev/fd/{file.fileno()}")


def look_at_orc(file: BinaryIO, path: Path, inspection: Inspection, depth: int) -> None:
    """Look at all columns of an ORC file; its statistics may have more."""
    inspection.is_compared = False
    try:
        found = orc.ORCFile(file)
        for at in range(found.nstripes):
            look_at_batch(found.read_stripe(at), inspection)
    except (pa.ArrowException, OSError, ValueError) as error:
        raise Undecodable(f"it is a damaged ORC file ({type(error).__name__})") from error


def look_at_batch(
    batch: pa.RecordBatch, inspection: Inspection, of_folders: Sequence[str] = ()
) -> None:
    """Look at the columns of a table, which has others in the names of its folders."""
    paths = (path for field in batch.schema for path in _paths_in(field))
    every = frozenset([*paths, *of_folders])
    for field, own in zip(batch.schema, batch.columns, strict=True):
        for names, column in _members(field, own):
            if inspection.near:
                texts = [*_texts_in(column)]
                if pa.types.is_nested(column.type):  # keys of a map are names as well
                    there = {name for of in texts for name in _distinct(of)}
                    names |= inspection.near & there
                for of in texts:
                    _compare_documents(of, names, inspection)
            inspection.look_at_array(column, names, every)


def _members(field: pa.Field, column: pa.Array) -> Iterator[tuple[set[str], pa.Array]]:
    """Return the columns of structures one by one, with the names that lead to them."""
    if not isinstance(column, pa.StructArray):
        yield {*_names_in(field)}, column
        return
    for each, within in zip(field.type, column.flatten(), strict=True):
        for names, member in _members(each, within):
            yield {field.name, *names, *(f"{field.name}.{name}" for name in names)}, member


def _look_at_notes(schema: pa.Schema, inspection: Inspection) -> None:
    """Compare what a program has noted in a file besides its columns."""
    for name, value in (schema.metadata or {}).items() if inspection.near else ():
        if name != b"ARROW:schema":
            compare_document({_decoded(name): _decoded(value)}, (), inspection)


def _compare_documents(texts: pa.Array, names: set[str], inspection: Inspection) -> None:
    """Compare the values of documents of JSON in a column, where these have the name of a field."""
    for name in inspection.near:
        key = json.dumps(name).encode()
        there = texts.filter(pc.match_substring(texts, key))
        for text in pc.unique(there).drop_null().to_pylist():
            if (found := document_in(_decoded(text))) is not None:
                compare_document(found, names, inspection)


def _texts_in(column: pa.Array) -> Iterator[pa.Array]:
    for leaf in leaves(column):
        if is_bytes(leaf.type):
            yield leaf.cast(pa.large_binary())


def _distinct(texts: pa.Array) -> set[str]:
    return {_decoded(each) for each in pc.unique(texts).drop_null().to_pylist()}


def _decoded(data: bytes) -> str:
    return data.decode(errors="replace")


def _paths_in(field: pa.Field) -> Iterator[str]:
    """Return the name of a column, and those of columns in it after it."""
    yield field.name
    for at in range(field.type.num_fields):
        yield from (f"{field.name}.{path}" for path in _paths_in(field.type.field(at)))


def _names_in(field: pa.Field) -> Iterator[str]:
    """Return the name of a column, and those of columns in it, with and without its own."""
    yield field.name
    kind = field.type
    for at in range(kind.num_fields):
        for name in _names_in(kind.field(at)):
            yield name
            yield f"{field.name}.{name}"
