"""Manifests of Iceberg and their lists: bounds of columns, partitions, and names of files."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator
from typing import Any
from uuid import UUID

from erasable.workspace.targets.avro import AvroFile
from erasable.workspace.targets.inspection import Inspection
from erasable.workspace.targets.text_lines import compare_pairs

_MARK = b"format-version"
_BOUNDS, _SUMMARIES = ("lower_bounds", "upper_bounds"), ("lower_bound", "upper_bound")
_PATHS = ("file_path", "manifest_path", "referenced_data_file")
_OTHER = ("bucket", "void")  # transforms whose results are no values


def is_manifest(file: AvroFile) -> bool:
    """Tell whether a file of Avro is one of Iceberg's metadata."""
    return _MARK in file.metadata


def compare(file: AvroFile, n: int, block: bytes, inspection: Inspection) -> None:
    """Compare the values of the records of a block, if they have the form that Iceberg says."""
    try:
        _Manifest(file).compare(n, block, inspection)
    except (LookupError, TypeError, ValueError, EOFError, struct.error):
        inspection.is_compared = False


class _Manifest:
    """Columns of a manifest, by which its values are compared."""

    def __init__(self, file: AvroFile) -> None:
        self._file = file
        self._columns: dict[int, tuple[str, Any]] = {}  # name and type, by id
        self._note(json.loads(file.metadata.get(b"schema", b"null")))
        spec = json.loads(file.metadata.get(b"partition-spec", b"[]"))
        self._parts = {part["name"]: self._names_of(part) for part in spec}
        self._every = {name for name, _ in self._columns.values()}

    def compare(self, n: int, block: bytes, inspection: Inspection) -> None:
        """Compare the values of records."""
        column = None
        for path, value in self._file.values(n, block):
            if path[-1] in _PATHS:
                compare_pairs(value, inspection)
            elif path[-1] in _SUMMARIES:  # of a part whose type is in another file
                inspection.compare([*_any_of(value)])
            elif "partition" in path[:-1]:
                inspection.compare([_plain(value)], self._parts.get(path[-1]), self._every)
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

    def _names_of(self, part: dict[str, Any]) -> set[str]:
        """Return the names of the columns whose values a part has."""
        name, _ = self._columns.get(part["source-id"], ("", None))
        return {part["name"]} if part["transform"].startswith(_OTHER) else {part["name"], name}


def _plain(value: Any) -> Any:
    """Return a value of a partition as tables have it."""
    if isinstance(value, bytes):
        is_uuid = len(value) == 16
        return str(UUID(bytes=value)) if is_uuid else int.from_bytes(value, "big", signed=True)
    return value


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
