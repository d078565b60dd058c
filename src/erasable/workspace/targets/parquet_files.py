"""Parquet files without the rows of people, with the schema and the settings of the old ones."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq

from erasable.core._arrow_files import refuse_encrypted
from erasable.core.errors import SourceError
from erasable.workspace.targets.columns import ArrowBatch, Batch, Keys, without_views
from erasable.workspace.targets.overwriting import compacted, overwritten
from erasable.workspace.targets.text_files import Format

_AT_ONCE = 1 << 16  # rows
_ENCODINGS = (
    "DELTA_BINARY_PACKED", "DELTA_BYTE_ARRAY", "DELTA_LENGTH_BYTE_ARRAY", "BYTE_STREAM_SPLIT",
)  # fmt: skip


class ParquetFormat(Format):
    """A Parquet file."""

    def batches(self, file: BinaryIO) -> Iterator[Batch]:
        """Read all rows; raise SourceError if the file is damaged or could not be written again."""
        row = 0
        with self._explained():
            opened = _opened(file)
            self._check(opened)
            try:
                for batch in opened.iter_batches(_AT_ONCE, use_threads=False):
                    batch.validate(full=True)
                    yield ArrowBatch(pa.Table.from_batches([batch]), self.given)
                    row += batch.num_rows
            except (pa.ArrowException, OSError, ValueError):
                raise SourceError(
                    f"{self.place} cannot be read from row {row + 1:,}; expected a whole Parquet "
                    "file; nothing was changed"
                ) from None

    def rewrite(self, file: BinaryIO, new: BinaryIO, keys: Keys) -> None:
        """Write a file without the rows of people, a row group for each that has others."""
        opened = _opened(file)
        subjects = self.settings.subjects
        with _writer(opened, new) as writer:
            for number in range(opened.num_row_groups):
                table = opened.read_row_group(number, use_threads=False)
                rows = ArrowBatch(table, self.given).rows_of(keys, subjects)
                if self.settings.action == "delete":
                    table = without_views(table).filter(pa.array(~rows))
                elif rows.any():
                    table = overwritten(table, rows, self.settings)
                if table.num_rows:
                    table = compacted(table.combine_chunks()).cast(opened.schema_arrow)
                    writer.write_table(table, table.num_rows)

    def _check(self, opened: pq.ParquetFile) -> None:
        self.check(opened.schema_arrow)
        trial = io.BytesIO()
        with _writer(opened, trial):
            pass
        if not pq.ParquetFile(trial, pre_buffer=False).schema.equals(opened.schema):
            raise SourceError(
                f"{self.place} has a schema that cannot be written again as it is; expected one "
                "that Arrow writes; nothing was changed"
            )

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except SourceError:
            raise
        except (pa.ArrowException, OSError, ValueError, TypeError):
            raise SourceError(
                f"{self.place} is no Parquet file, is damaged, or is encrypted; expected a whole "
                "Parquet file; nothing was changed"
            ) from None


def _opened(file: BinaryIO) -> pq.ParquetFile:
    refuse_encrypted(file)
    return pq.ParquetFile(file, pre_buffer=False)


def _writer(opened: pq.ParquetFile, to: Any) -> pq.ParquetWriter:
    """Open a file for writing, with the settings of another as far as these can be read."""
    meta = opened.metadata
    schema = opened.schema_arrow
    options: dict[str, Any] = {
        "version": meta.format_version if meta.format_version in ("1.0", "2.4", "2.6") else "2.6",
        "store_schema": b"ARROW:schema" in (meta.metadata or {}),
        "use_compliant_nested_type": not _has_items(opened.schema),
        "write_statistics": True,
        "use_deprecated_int96_timestamps": any(
            opened.schema.column(at).physical_type == "INT96" for at in range(meta.num_columns)
        ),
    }
    if meta.num_row_groups and meta.num_columns:
        options |= _settings_of(meta.row_group(0))
    return pq.ParquetWriter(to, schema, **options)


def _settings_of(group: Any) -> dict[str, Any]:
    columns = [group.column(at) for at in range(group.num_columns)]
    codecs = {each.path_in_schema: _codec(each.compression) for each in columns}
    dictionaries = [each.path_in_schema for each in columns if each.has_dictionary_page]
    encodings = {
        each.path_in_schema: encoding
        for each in columns
        for encoding in _ENCODINGS
        if encoding in each.encodings and not each.has_dictionary_page
    }
    found: dict[str, Any] = {
        "compression": codecs,
        "use_dictionary": dictionaries or False,
        "write_statistics": [e.path_in_schema for e in columns if e.is_stats_set] or False,
        "write_page_index": any(each.has_offset_index for each in columns),
        "sorting_columns": group.sorting_columns or None,
    }
    if encodings:
        found["column_encoding"] = encodings
    return found


def _codec(name: str) -> str:
    return {"UNCOMPRESSED": "none", "LZ4_RAW": "lz4"}.get(name, name).lower()


def _has_items(schema: Any) -> bool:
    return any(
        ".list.item" in schema.column(at).path for at in range(len(schema.names))
    )  # fmt: skip
