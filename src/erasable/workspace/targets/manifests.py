"""Manifests of Iceberg and their lists: bounds of columns, partitions, and names of files."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterable, Iterator
from typing import Any
from uuid import UUID

from erasable.workspace.targets.avro import AvroFile
from erasable.workspace.targets.inspection import Inspection, Parts, Summary
from erasable.workspace.targets.nested_values import compare_pairs

_MARK = b"format-version"
_RECORDS = ("manifest_entry", "manifest_file")
_BOUNDS, _SUMMARIES = ("lower_bounds", "upper_bounds"), ("lower_bound", "upper_bound")
_PATHS = ("file_path", "manifest_path", "referenced_data_file")
_ERRORS = (
    LookupError, TypeError, ValueError, AttributeError, EOFError, RecursionError, struct.error,
)  # fmt: skip
_LARGEST_SCALE = 38  # of a decimal
_OTHER = ("bucket", "void")  # transforms whose results are no values


def is_manifest(file: AvroFile) -> bool:
    """Tell whether a file of Avro is one of Iceberg's metadata."""
    return _MARK in file.metadata


def compare(file: AvroFile, n: int, block: bytes, name: str, inspection: Inspection) -> None:
    """Compare the values of the records of a block, if they have the form that Iceberg says."""
    try:
        found = _Manifest(file)
        kind = json.loads(file.metadata[b"avro.schema"])["name"]
        if kind not in _RECORDS:
            raise ValueError("its records are of another kind")
        if kind == _RECORDS[0]:
            inspection.parts[name] = found.parts
        found.compare(n, block, inspection)
    except _ERRORS:
        inspection.is_compared = False


def compare_summaries(summaries: Iterable[Summary], inspection: Inspection) -> None:
    """Compare values of a list of manifests, where these have told of which columns they are."""
    for manifest, at, value in summaries:
        names, every = None, None
        if manifest in inspection.parts:
            parts, every = inspection.parts[manifest]
            names = parts[at] if at < len(parts) else None
        inspection.compare([*_any_of(value)], names, every)


class _Manifest:
    """Columns of a manifest, by which its values are compared."""

    def __init__(self, file: AvroFile) -> None:
        self._file = file
        self._columns: dict[int, tuple[str, Any]] = {}  # name and type, by id
        self._note(json.loads(file.metadata.get(b"schema", b"null")))
        spec = json.loads(file.metadata.get(b"partition-spec", b"[]"))
        self._parts = {part["name"]: self._told_of(part) for part in spec}
        self._every = {name for name, _ in self._columns.values()}
        self.parts: Parts = [names for names, _ in self._parts.values()], self._every

    def compare(self, n: int, block: bytes, inspection: Inspection) -> None:
        """Compare the values of records."""
        column, manifest, at = None, "", -1
        for path, value in self._file.values(n, block):
            if path[-1] in _PATHS:
                compare_pairs(value, inspection)
                if path[-1] == "manifest_path":
                    manifest, at = value.rpartition("/")[2], -1
            elif path[-1] == "contains_null":
                at += 1
            elif path[-1] in _SUMMARIES:  # of a part that the manifest has
                inspection.summaries.append((manifest, at, value))
            elif "partition" in path[:-1]:
                names, kind = self._parts.get(path[-1], (None, None))
                inspection.compare([_plain(value, kind)], names, self._every)
            elif path[-2:-1] and path[-2] in _BOUNDS:
                if path[-1] == "key":
                    column = self._columns.get(value)
                elif column is None:  # it is not in the schema any more
                    inspection.compare([*_any_of(value)])
                else:
                    inspection.compare([_of_type(value, column[1])], {column[0]}, self._every)

    def _note(self, schema: Any) -> None:
        """Note the columns of a schema, also of those in others."""
        if isinstance(schema, dict):
            for id_, name, kind in (
                ("id", "name", "type"), ("element-id", None, "element"), ("key-id", None, "key"),
                ("value-id", None, "value"),
            ):  # fmt: skip
                if id_ in schema:
                    self._columns[schema[id_]] = (schema[name] if name else "", schema[kind])
            for each in schema.values():
                self._note(each)
        elif isinstance(schema, list):
            for each in schema:
                self._note(each)

    def _told_of(self, part: dict[str, Any]) -> tuple[set[str], Any]:
        """Return the names of the columns whose values a part has, and the type of the column."""
        name, kind = self._columns.get(part["source-id"], ("", None))
        is_other = part["transform"].startswith(_OTHER)
        return {part["name"]} if is_other else {part["name"], name}, kind


def _plain(value: Any, kind: Any) -> Any:
    """Return a value of a partition as tables have it."""
    if not isinstance(value, bytes):
        return value
    is_decimal = isinstance(kind, str) and kind.startswith("decimal")
    if len(value) == 16 and not is_decimal:
        return str(UUID(bytes=value))
    return _of_type(value, kind if is_decimal else "decimal(38, 0)")


def _of_type(data: bytes, kind: Any) -> Any:
    """Return a bound by the type of its column (Iceberg, Appendix D)."""
    if kind == "string":
        return data.decode(errors="replace")
    if kind in ("float", "double"):
        return struct.unpack("<f" if len(data) == 4 else "<d", data)[0]
    if kind == "uuid":
        return str(UUID(bytes=data))
    if isinstance(kind, str) and kind.startswith("decimal"):
        scale = int(kind.rstrip(") ").rpartition(",")[2])
        if scale > _LARGEST_SCALE:
            raise ValueError("a decimal has no such scale")
        return int.from_bytes(data, "big", signed=True) / 10**scale
    return int.from_bytes(data, "little", signed=True)


def _any_of(data: bytes) -> Iterator[Any]:
    """Return what a bound may be."""
    yield data.decode(errors="replace")
    yield int.from_bytes(data, "little", signed=True)
    yield int.from_bytes(data, "big", signed=True)
    if len(data) in (4, 8):
        yield _of_type(data, "double")
    if len(data) == 16:
        yield str(UUID(bytes=data))
