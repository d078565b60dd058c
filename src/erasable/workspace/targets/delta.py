"""Delta tables as a target: rows are deleted, then the files and the log of older versions.

The law kept here: the log keeps each of its versions, so that a writer who works on an older one
still meets a conflict; what they say of values is taken out. Older versions cannot be read then.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from deltalake import DeltaTable
from deltalake.exceptions import CommitFailedError, TableNotFoundError

from erasable.core.errors import SourceError
from erasable.workspace.targets.blobs import Blob, ChangedError, Store
from erasable.workspace.targets.columns import Keys, is_text
from erasable.workspace.targets.halving import Ranges, hull
from erasable.workspace.targets.lakes import LakeTarget
from erasable.workspace.targets.overwriting import MASK, is_kept
from erasable.workspace.targets.protocol import Settings
from erasable.workspace.targets.records import in_parts
from erasable.workspace.targets.stores import opened_store

_AT_ONCE = 1 << 16  # rows
_FEATURES = {
    "appendOnly", "changeDataFeed", "checkConstraints", "domainMetadata", "generatedColumns",
    "invariants", "timestampNtz",
}  # fmt: skip
_TOLD = ("mode", "partitionBy", "status")  # parameters of a commit without values of rows
_RANGED = str | int | date  # types of values, in predicates
_CUT = timedelta(seconds=1)  # more than a log cuts off the greatest time of a file
_LOG = "_delta_log/"
_COMMIT = re.compile(r"_delta_log/(\d{20})\.json")
_CHECKPOINT = re.compile(r"_delta_log/(\d{20})\.checkpoint(\.[\w.-]+)?\.(parquet|json)")
_NOTES = re.compile(r"_delta_log/(?:\d{20}\.)?(\d{20})\.(crc|compacted\.json)")
_WRITTEN = re.compile(r"(?:part|cdc)-\d{5}-[0-9a-f]{8}-[\w.-]+\.parquet")
_STAGED = re.compile(r"_delta_log/(?:(\d{20})\.[\w.]+|_last_checkpoint)#\d+")  # of deltalake


@dataclass(frozen=True, slots=True)
class _Living:
    """The files of a version as a checkpoint has them, their partitions, and the schema."""

    paths: set[str]
    folders: set[str]
    partitions: set[frozenset[tuple[str, str | None]]]
    metadata: dict[str, Any]  # an action of the log

    @classmethod
    def of(cls, checkpoint: pa.Table) -> _Living:
        """Return those of a checkpoint."""
        adds = checkpoint.filter(pc.is_valid(checkpoint["add"]))["add"]
        paths = pc.struct_field(adds, "path").to_pylist()
        values = pc.struct_field(adds, "partitionValues").to_pylist()
        metadata = next(filter(None, checkpoint["metaData"].to_pylist()))
        metadata["configuration"] = dict(metadata["configuration"] or ())
        metadata["format"]["options"] = dict(metadata["format"].get("options") or ())
        return cls(
            {unquote(each) for each in paths},
            {"", *map(_folder_of, paths)},
            {*map(_partition, values)},
            {"metaData": {name: value for name, value in metadata.items() if value is not None}},
        )

    def has(self, file: dict[str, Any]) -> bool:
        """Tell whether a file is in the partition of one of them: else it may name people."""
        values = file.get("partitionValues")
        is_known = not values or _partition(values) in self.partitions
        return is_known and _folder_of(file["path"]) in self.folders


class DeltaTarget(LakeTarget):
    """A Delta table; see the module."""

    expected = "a whole table, of features that deltalake has, in a place to read and write"
    no_table = "there is no Delta table at {}; expected a folder with _delta_log"
    absent = (TableNotFoundError,)
    conflicts = (CommitFailedError,)

    def __init__(self, place: str, settings: Settings) -> None:
        self._url = place.partition(":")[2]
        super().__init__(f"delta:{self._url}", settings)
        self.name = self._url.rstrip("/").rpartition("/")[2] or "table"
        self._store = opened_store(self._url)
        with self._explained("read"):
            self._check_table(self._table())

    def compact(self) -> list[str]:
        """Remove the files of older versions, and what the log says of their values."""
        self._until(self._is_clean)
        with self._explained("cleaned"):
            return self._kept_elsewhere()

    # -- rows --------------------------------------------------------------------------------------

    def _table(self) -> DeltaTable:
        return DeltaTable(self._url)

    def _batches(self, table: DeltaTable) -> Iterable[pa.RecordBatch]:
        found: Iterable[pa.RecordBatch] = table.to_pyarrow_dataset().to_batches(batch_size=_AT_ONCE)
        return found

    def _stores(self) -> list[Store]:
        return [self._store]

    def _check_table(self, table: DeltaTable) -> None:
        protocol, settings = table.protocol(), table.metadata().configuration
        used = {*(protocol.reader_features or ()), *(protocol.writer_features or ())}
        if settings.get("delta.columnMapping.mode", "none") != "none":
            used.add("columnMapping")
        if protocol.min_writer_version == 6:
            used.add("identityColumns")
        if unknown := sorted(used - _FEATURES):
            raise SourceError(
                f"the table {self.shown!r} uses {', '.join(unknown)}; expected one without these "
                "features, which cannot be erased from: rewrite it as a table that lacks them"
            )
        if settings.get("delta.appendOnly", "").lower() == "true":
            raise SourceError(
                f"the table {self.shown!r} takes new rows alone (delta.appendOnly); expected one "
                "whose rows may be deleted"
            )
        schema = pa.schema(table.schema().to_arrow())
        self._check(schema)
        if within := [each for each in self.settings.keep if each not in schema.names]:
            raise SourceError(
                f"the table {self.shown!r} has no column {within[0]!r}, which is to be kept; "
                f"expected one of {', '.join(schema.names)}"
            )

    def _where(self, keys: Keys) -> str:
        names = [each.name for each in self._table().schema().fields]
        parts = []
        for number, subject in enumerate(self.settings.subjects):
            if wanted := [value for each, value in keys if each == number]:
                name, path = in_parts(subject.field, names) or (subject.field, [])
                column = _quoted(name) + "".join(f"[{_literal(each)}]" for each in path)
                parts.append(f"{column} IN ({', '.join(map(_literal, wanted))})")
        return " OR ".join(parts)

    def _narrowed(self, where: str, files: Sequence[Ranges]) -> str:
        return f"({where}) AND {_within(files)}"

    def _ranges(self, table: DeltaTable) -> list[Ranges]:
        return _ranges(table)

    def _change(self, table: DeltaTable, where: str) -> None:
        if self.settings.action == "delete":
            table.delete(where)
            return
        changes = {
            _quoted(field.name): _literal(MASK)
            if self.settings.action == "mask" and is_text(field.type)
            else "NULL"
            for field in pa.schema(table.schema().to_arrow())
            if not is_kept(field.name, self.settings.keep)
        }
        table.update(updates=changes, predicate=where)

    # -- the log -----------------------------------------------------------------------------------

    def _is_clean(self) -> bool:
        """Clean the table as it is now; tell whether no other writer made checkpoints meanwhile."""
        with self._explained("cleaned"):
            self._committed(_vacuum)
            table = self._table()
            table.create_checkpoint()
            version = table.version()
            self._remove_uncommitted(table)
            try:
                self._clean_log(version, self._without_removals(version))
            except ChangedError:
                return False
        return True

    def _remove_uncommitted(self, table: DeltaTable) -> None:
        """Remove data files that a process has left which died before it committed them.

        They are older than a writer may take, which is a setting of the table. Other folders within
        that of the table may be of other programs.
        """
        columns = table.metadata().partition_columns
        for path in table.vacuum(dry_run=True, full=True):
            *folders, name = path.split("/")
            names = [unquote(each.partition("=")[0]) for each in folders]
            if names in (columns, ["_change_data", *columns]) and _WRITTEN.fullmatch(name):
                self._store.remove(Blob(path, 0))

    def _without_removals(self, version: int) -> _Living:
        """Take removed files out of a checkpoint, as they may name people; return the others."""
        name = f"{_LOG}{version:020}.checkpoint.parquet"
        with self._store.opened(Blob(name, 0)) as (file, state):
            opened = pq.ParquetFile(file, pre_buffer=False)
            table = opened.read(use_threads=False)
            table = table.filter(pc.is_null(table["remove"]))
            with self._store.replacing(name, state) as new:
                pq.write_table(table, new)
                size = new.tell()
        last = f"{_LOG}_last_checkpoint"
        with self._store.opened(Blob(last, 0)) as (file, state):
            told = json.load(file)
            if told["version"] == version:  # else another writer has made a later one
                told |= {"size": table.num_rows, "sizeInBytes": size}
                told.pop("checksum", None)
                with self._store.replacing(last, state) as new:
                    new.write(json.dumps(told).encode())
        return _Living.of(table)

    def _clean_log(self, version: int, living: _Living) -> None:
        """Remove what versions up to one had, but for the log's own account of which files.

        Files that a process was about to put into the log when it died go as well: their versions
        are there, by others.
        """
        for blob in self._store.blobs():
            if blob.version is not None or not blob.name.startswith(_LOG):
                continue
            if (commit := _COMMIT.fullmatch(blob.name)) and int(commit[1]) <= version:
                self._clean_commit(blob, living)
            elif (
                ((old := _CHECKPOINT.fullmatch(blob.name)) and int(old[1]) < version)
                or ((notes := _NOTES.fullmatch(blob.name)) and int(notes[1]) <= version)
                or ((staged := _STAGED.fullmatch(blob.name)) and int(staged[1] or 0) <= version)
            ):
                self._store.remove(blob)

    def _clean_commit(self, blob: Blob, living: _Living) -> None:
        with self._store.opened(blob) as (file, state):
            before = file.read()
            actions = [json.loads(line) for line in before.splitlines() if line.strip()]
            for path in _gone(actions):
                if path not in living.paths:
                    self._store.remove(Blob(path, 0))
            kept = list(_cleaned(actions, living))
            after = "".join(json.dumps(each, separators=(",", ":")) + "\n" for each in kept)
            if kept != actions:
                with self._store.replacing(blob.name, state) as new:
                    new.write(after.encode())


def _ranges(table: DeltaTable) -> list[Ranges]:
    """Return the ranges of the files, as the log has them, those of the oldest first."""
    found = list[Ranges]()
    files = pa.table(table.get_add_actions()).to_pylist()
    for file in sorted(files, key=lambda each: (each["modification_time"], each["path"])):
        least, greatest, n_null = (file.get(each) or {} for each in ("min", "max", "null_count"))
        ends = {name: (value, value) for name, value in (file.get("partition") or {}).items()}
        for name, low in least.items():
            if n_null.get(name) == 0 and not isinstance(low, str):  # which may be cut off
                ends[name] = low, greatest.get(name)
        found.append(
            {name: each for name, each in ends.items() if all(isinstance(v, _RANGED) for v in each)}
        )
    return found


def _within(files: Sequence[Ranges]) -> str:
    """Return a predicate that is true of the rows of some files, of few others if it can be."""
    parts = ["TRUE"]
    for name, (low, high) in hull(files).items():
        if isinstance(high, datetime):
            high += min(_CUT, datetime.max.replace(tzinfo=high.tzinfo) - high)
        parts.append(f"{_quoted(name)} BETWEEN {_literal(low)} AND {_literal(high)}")
    return " AND ".join(parts)


def _vacuum(table: DeltaTable) -> None:
    table.vacuum(retention_hours=0, dry_run=False, enforce_retention_duration=False)


def _folder_of(path: str) -> str:
    return unquote(path).rpartition("/")[0] if "=" in path else ""


def _partition(values: Any) -> frozenset[tuple[str, str | None]]:
    return frozenset((name, value or None) for name, value in dict(values or ()).items())


def _gone(actions: Iterable[Any]) -> Iterator[str]:
    """Return files that commits have removed, and those that say what they changed."""
    for action in actions:
        for kind in ("remove", "cdc"):
            path = action.get(kind, {}).get("path", "://")
            if "://" not in path:
                yield unquote(path)


def _cleaned(actions: Sequence[Any], living: _Living) -> Iterator[Any]:
    """Return the actions of a commit without values of rows.

    A removal that is left out is made good by the schema as it is: who works on a version before
    meets a conflict, as all who began before a change of the schema do.
    """
    is_noted = any("metaData" in action for action in actions)
    for action in actions:
        (kind, body), *_ = action.items()
        if kind == "cdc":
            continue
        if kind in ("add", "remove"):
            body = {name: value for name, value in body.items() if name != "stats"}
            if not living.has(body):
                if kind == "remove" and not is_noted:
                    is_noted = True
                    yield living.metadata
                continue
        elif kind == "commitInfo" and isinstance(body.get("operationParameters"), dict):
            told = body["operationParameters"]
            body = body | {"operationParameters": {k: v for k, v in told.items() if k in _TOLD}}
        yield {kind: body}


def _quoted(name: str) -> str:
    doubled = name.replace('"', '""')
    return f'"{doubled}"'


def _literal(value: Any) -> str:
    if isinstance(value, str):
        doubled = value.replace("'", "''")
        return f"'{doubled}'"
    return str(value) if isinstance(value, int | float) else f"'{value}'"
