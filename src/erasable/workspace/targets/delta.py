"""Delta tables as a target: rows are deleted, then the files and the log of older versions.

The law kept here: the log keeps each of its versions, so that a writer who works on an older one
still meets a conflict; what they say of values is taken out. Older versions cannot be read then.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from deltalake import DeltaTable
from deltalake.exceptions import CommitFailedError, DeltaError, TableNotFoundError

from erasable.core.errors import SourceError
from erasable.workspace.targets.blobs import Blob, ChangedError
from erasable.workspace.targets.columns import (
    ArrowBatch,
    Batch,
    Keys,
    check_subjects,
    find_all,
    is_text,
)
from erasable.workspace.targets.halving import Ranges, change_by_halves, hull
from erasable.workspace.targets.marks import Marks
from erasable.workspace.targets.overwriting import MASK, check_overwritten, is_kept
from erasable.workspace.targets.protocol import People, Plan, Settings, Target
from erasable.workspace.targets.residue import Found
from erasable.workspace.targets.stores import opened_store, search

_ATTEMPTS = 20  # where others change the same rows meanwhile
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


@dataclass(frozen=True, slots=True)
class _Living:
    """The files of the current version, and the folders of partitions that they are in."""

    paths: set[str]
    folders: set[str]

    @classmethod
    def of(cls, table: DeltaTable) -> _Living:
        """Return those of a table."""
        paths = pa.table(table.get_add_actions())["path"].to_pylist()
        return cls({unquote(each) for each in paths}, {"", *map(_folder_of, paths)})


class DeltaTarget(Target):
    """A Delta table; see the module."""

    def __init__(self, place: str, settings: Settings) -> None:
        self._url = place.partition(":")[2]
        self.shown = f"delta:{self._url}"
        self._store = opened_store(self._url)
        self._settings = settings
        with self._explained("read"):
            self._check(self._table())

    def find(self, people: People) -> Plan:
        """Find the rows of people in the current version."""
        with self._explained("read"):
            data = self._table().to_pyarrow_dataset()

            def batches() -> Iterator[Batch]:
                for batch in data.to_batches(batch_size=_AT_ONCE):
                    if batch.num_rows:
                        yield ArrowBatch(pa.Table.from_batches([batch]))

            finder, counts = find_all({self._name: batches}, self._settings, people)
        plan = finder.finished()
        plan.changed = {name: n for name, n in counts.items() if n}
        return plan

    def erase(self, plan: Plan) -> None:
        """Delete rows, or overwrite them, in one commit if no other writer is faster."""
        if keys := plan.keys.get(self._name):
            where = self._predicate(keys)
            if not self._is_done(lambda table: self._change(table, where)):
                self._refuse_unless(
                    change_by_halves(
                        _ranges(self._table()),
                        lambda files: self._is_done(
                            lambda table: self._change(table, f"({where}) AND {_within(files)}")
                        ),
                        _ATTEMPTS,
                    )
                )

    def compact(self) -> list[str]:
        """Remove the files of older versions, and what the log says of their values."""
        with self._explained("cleaned"):
            self._refuse_unless(any(self._is_done(_vacuum) for _ in range(_ATTEMPTS)))
            table = self._table()
            table.create_checkpoint()
            version = table.version()
            self._without_removals(version)
            self._clean_log(version, _Living.of(table))
            reasons = self._store.clean()
            n = sum(blob.version is not None for blob in self._store.blobs())
        if n:
            reasons.append(f"the bucket keeps {n} older versions of objects")
        return reasons

    def scan(self, marks: Marks, living: Marks) -> Found:
        """Look for values in all files of the folder, those of the log included."""
        with self._explained("read"):
            return search(self._store, marks, living)

    # -- rows --------------------------------------------------------------------------------------

    @property
    def _name(self) -> str:
        return self._url.rstrip("/").rpartition("/")[2] or "table"

    def _table(self) -> DeltaTable:
        return DeltaTable(self._url)

    def _check(self, table: DeltaTable) -> None:
        protocol, settings = table.protocol(), table.metadata().configuration
        used = {*(protocol.reader_features or ()), *(protocol.writer_features or ())}
        if settings.get("delta.columnMapping.mode", "none") != "none":
            used.add("columnMapping")
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
        check_subjects(schema, self._settings.subjects, (), repr(self.shown))
        for subject in self._settings.subjects:
            check_subjects(schema, (subject,), (), repr(self.shown))
        check_overwritten(schema, self._settings, (), repr(self.shown))
        if within := [each for each in self._settings.keep if each not in schema.names]:
            raise SourceError(
                f"the table {self.shown!r} has no column {within[0]!r}, which is to be kept; "
                f"expected one of {', '.join(schema.names)}"
            )

    def _predicate(self, keys: Keys) -> str:
        parts = []
        for number, subject in enumerate(self._settings.subjects):
            if wanted := [value for each, value in keys if each == number]:
                names = self._path(subject.field)
                column = _quoted(names[0]) + "".join(f"[{_literal(each)}]" for each in names[1:])
                parts.append(f"{column} IN ({', '.join(map(_literal, wanted))})")
        return " OR ".join(parts)

    def _path(self, field: str) -> list[str]:
        names = [each.name for each in self._table().schema().fields]
        parts = field.split(".")
        n = next(n for n in range(len(parts), 0, -1) if ".".join(parts[:n]) in names)
        return [".".join(parts[:n]), *parts[n:]]

    def _change(self, table: DeltaTable, where: str) -> None:
        if self._settings.action == "delete":
            table.delete(where)
            return
        changes = {
            _quoted(field.name): _literal(MASK)
            if self._settings.action == "mask" and is_text(field.type)
            else "NULL"
            for field in pa.schema(table.schema().to_arrow())
            if not is_kept(field.name, self._settings.keep)
        }
        table.update(updates=changes, predicate=where)

    def _is_done(self, change: Callable[[DeltaTable], Any]) -> bool:
        """Change the table as it is now; tell whether no other writer was faster."""
        with self._explained("changed"):
            try:
                change(self._table())
            except CommitFailedError:
                return False
        return True

    def _refuse_unless(self, is_done: bool) -> None:
        if not is_done:
            raise SourceError(
                f"the table {self.shown!r} is changed by others again and again; expected a moment "
                "without; the next attempt erases what is left"
            )

    @contextmanager
    def _explained(self, what: str) -> Iterator[None]:
        try:
            yield
        except SourceError:
            raise
        except TableNotFoundError:
            raise SourceError(
                f"there is no Delta table at {self.shown!r}; expected a folder with _delta_log"
            ) from None
        except CommitFailedError:
            raise
        except (DeltaError, OSError, pa.ArrowException, ValueError, ChangedError) as error:
            raise SourceError(
                f"the table {self.shown!r} could not be {what} ({type(error).__name__}); expected "
                "a whole table, of features that deltalake has, in a place to read and write"
            ) from None
        except Exception as error:
            if type(error).__module__.partition(".")[0] not in (
                "deltalake",
                "builtins",
                "_internal",
            ):
                raise
            raise SourceError(
                f"the table {self.shown!r} could not be {what} ({type(error).__name__}); expected "
                "a whole table, of features that deltalake has, in a place to read and write"
            ) from None

    # -- the log -----------------------------------------------------------------------------------

    def _without_removals(self, version: int) -> None:
        """Take removed files out of a checkpoint: their folders may name people."""
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

    def _clean_log(self, version: int, living: _Living) -> None:
        """Remove what versions up to one had, but for the log's own account of which files."""
        for blob in self._store.blobs():
            if blob.version is not None or not blob.name.startswith(_LOG):
                continue
            if (commit := _COMMIT.fullmatch(blob.name)) and int(commit[1]) <= version:
                self._clean_commit(blob, living)
            elif ((old := _CHECKPOINT.fullmatch(blob.name)) and int(old[1]) < version) or (
                (notes := _NOTES.fullmatch(blob.name)) and int(notes[1]) <= version
            ):
                self._store.remove(blob)

    def _clean_commit(self, blob: Blob, living: _Living) -> None:
        with self._store.opened(blob) as (file, state):
            before = file.read()
            actions = [json.loads(line) for line in before.splitlines() if line.strip()]
            for path in _gone(actions):
                if path not in living.paths:
                    self._store.remove(Blob(path, 0))
            kept = [each for action in actions for each in _cleaned(action, living)]
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
        high = high + _CUT if isinstance(high, datetime) else high
        parts.append(f"{_quoted(name)} BETWEEN {_literal(low)} AND {_literal(high)}")
    return " AND ".join(parts)


def _vacuum(table: DeltaTable) -> None:
    table.vacuum(retention_hours=0, dry_run=False, enforce_retention_duration=False)


def _folder_of(path: str) -> str:
    return unquote(path).rpartition("/")[0] if "=" in path else ""


def _gone(actions: Iterable[Any]) -> Iterator[str]:
    """Return files that commits have removed, and those that say what they changed."""
    for action in actions:
        for kind in ("remove", "cdc"):
            path = action.get(kind, {}).get("path", "://")
            if "://" not in path:
                yield unquote(path)


def _cleaned(action: Any, living: _Living) -> Iterator[Any]:
    """Return an action of the log without values of rows."""
    (kind, body), *_ = action.items()
    if kind == "cdc":
        return
    if kind in ("add", "remove"):
        body = {name: value for name, value in body.items() if name != "stats"}
        if _folder_of(body["path"]) not in living.folders:  # its name may be a value of rows
            return
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
