"""Iceberg tables as a target: rows are deleted, then older snapshots and all that only they use.

The law kept here: a file is removed if the history of the table names it and nothing that is kept
does. What another writer has written and not yet committed is in no history. What an erasure
writes is noted before, so that the next one removes what it has not committed when it died.
"""

from __future__ import annotations

import json
import os
import re
import warnings
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any
from uuid import UUID

import pyarrow as pa
import sqlalchemy as sa
from pyiceberg.catalog import load_catalog
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.conversions import from_bytes
from pyiceberg.exceptions import (
    CommitFailedException,
    NoSuchNamespaceError,
    NoSuchTableError,
    ValidationException,
)
from pyiceberg.expressions import (
    AlwaysFalse,
    AlwaysTrue,
    And,
    GreaterThanOrEqual,
    In,
    LessThanOrEqual,
    Or,
)
from pyiceberg.manifest import ManifestEntryStatus
from pyiceberg.serializers import FromInputFile
from pyiceberg.types import DateType, IntegerType, LongType, TimestampType, TimestamptzType
from sqlalchemy.exc import ArgumentError

from erasable.core.errors import SourceError
from erasable.workspace.targets.blobs import Notes, Store, notes_in
from erasable.workspace.targets.columns import Keys
from erasable.workspace.targets.halving import Ranges, hull
from erasable.workspace.targets.lakes import LakeTarget
from erasable.workspace.targets.overwriting import overwritten
from erasable.workspace.targets.protocol import People, Plan, Settings
from erasable.workspace.targets.stores import opened_store

_RANGED = (DateType, IntegerType, LongType, TimestampType, TimestamptzType)  # whole numbers
_EXPECTED = "expected iceberg:CATALOG#NAMESPACE.TABLE, or iceberg:sqlite:///FILE#NAMESPACE.TABLE"


@dataclass(slots=True)
class _Files:
    """Files that a table names, in the order in which they are removed."""

    data: set[str] = field(default_factory=set)
    manifests: set[str] = field(default_factory=set)
    lists: set[str] = field(default_factory=set)
    others: set[str] = field(default_factory=set)  # statistics
    metadata: list[str] = field(default_factory=list)  # the oldest last

    def every(self) -> set[str]:
        """Return all of them."""
        return self.data | self.manifests | self.lists | self.others | {*self.metadata}


class IcebergTarget(LakeTarget):
    """A table of Iceberg; see the module."""

    expected = (
        "a catalog of the configuration of pyiceberg or of SQLite, and a table that it has, "
        "whole, in a place that can be read and written"
    )
    no_table = f"there is no table at {{}}; {_EXPECTED}"
    absent = (NoSuchTableError, NoSuchNamespaceError)
    conflicts = (CommitFailedException, ValidationException)

    def __init__(self, place: str, settings: Settings) -> None:
        catalog, mark, self.name = place.partition(":")[2].rpartition("#")
        if not mark or not catalog or "." not in self.name:
            raise SourceError(f"the place of an Iceberg table has no catalog or name; {_EXPECTED}")
        super().__init__(f"iceberg:{_shown(catalog)}#{self.name}", settings)
        with self._explained("opened"):
            self._catalog = self._opened(catalog)
            self._check(self._table().schema().as_arrow())

    def close(self) -> None:
        """Close the catalog."""
        self._catalog.close()

    def find(self, people: People) -> Plan:
        """Find the rows of people in the current version, and whether older ones are elsewhere.

        What is removed afterwards does not tell of it any more.
        """
        plan = super().find(people)
        if plan:
            with self._explained("read"):
                table = self._table()
                places = _places(table)
                if not all(_is_within_any(each, places) for each in _history(table).every()):
                    plan.reasons.append("files of earlier versions lie outside of its folder")
        return plan

    def compact(self) -> list[str]:
        """Expire older snapshots, and remove the files that only they name."""
        for change in (_renew, _expire):
            self._committed(change)
        with self._explained("cleaned"):
            return self._remove_files(self._table()) + self._kept_elsewhere()

    # -- the table ---------------------------------------------------------------------------------

    def _opened(self, catalog: str) -> Any:
        if "://" not in catalog:
            return load_catalog(catalog)
        url = sa.make_url(catalog)
        if url.get_backend_name() == "sqlite" and not Path(url.database or "").is_file():
            raise SourceError(f"there is no catalog at {self.shown!r}; expected a file of SQLite")
        namespace, _, name = self.name.rpartition(".")
        engine = sa.create_engine(url)
        try:
            with engine.connect() as connection:
                found = connection.execute(_CATALOGS, {"namespace": namespace, "name": name})
                names = list(found.scalars())
        finally:
            engine.dispose()
        if len(names) != 1:
            raise SourceError(
                f"there are {len(names)} tables at {self.shown!r}; expected one: several catalogs "
                "of a database are named in the configuration of pyiceberg"
            )
        endpoint = os.environ.get("AWS_ENDPOINT_URL")  # which Arrow does not look for
        own = {"s3.endpoint": endpoint} if endpoint else {}
        return SqlCatalog(names[0], uri=catalog, init_catalog_tables="false", **own)

    def _table(self) -> Any:
        return self._catalog.load_table(self.name)

    def _batches(self, table: Any) -> Iterable[pa.RecordBatch]:
        found: Iterable[pa.RecordBatch] = table.scan().to_arrow_batch_reader()
        return found

    def _stores(self) -> list[Store]:
        places = _places(self._table())
        return [opened_store(each) for each in places if "://" in each or Path(each).is_dir()]

    def _where(self, keys: Keys) -> Any:
        found: Any = AlwaysFalse()
        for number, subject in enumerate(self.settings.subjects):
            if wanted := [_plain(value) for each, value in keys if each == number]:
                found = Or(found, In(subject.field, wanted))
        return found

    def _narrowed(self, where: Any, files: Sequence[Ranges]) -> Any:
        return And(where, _within(files))

    def _ranges(self, table: Any) -> list[Ranges]:
        return _ranges(table)

    def _change(self, table: Any, where: Any) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # that nothing was there, or not in place
            if self.settings.action == "delete":
                table.delete(where)
                return
            rows = table.scan(row_filter=where).to_arrow()
            if rows.num_rows:
                every = pa.array([True] * rows.num_rows).to_numpy(zero_copy_only=False)
                table.overwrite(overwritten(rows, every, self.settings), where)

    def _notes(self, table: Any) -> AbstractContextManager[Notes]:
        """Have notes beside the metadata, where these are files of this machine."""
        folder = _folder(table.metadata_location)
        return nullcontext(Notes()) if "://" in folder else notes_in(Path(folder))

    @contextmanager
    def _attempt(self, table: Any) -> Iterator[None]:
        """Remove what a change has written inside the block if it fails, or if one died before."""
        true, written = table.io.new_output, list[str]()
        with self._notes(table) as notes:
            self._remove_uncommitted(notes.before)

            def new_output(location: str) -> Any:
                written.append(location)
                notes.add(location)
                return true(location)

            table.io.new_output = new_output
            try:
                yield
            except Exception as error:
                self._remove_uncommitted(written, is_sure=isinstance(error, self.conflicts))
                raise

    def _remove_uncommitted(self, written: Collection[str], *, is_sure: bool = False) -> None:
        """Remove those of the files that erasures have written which are in no history.

        With `is_sure` they are in none, which takes long to read.
        """
        if not written:
            return
        table, named = self._table(), set[str]()
        if not is_sure:
            named = _history(table).every()
        for location in written:
            if location not in named:
                with suppress(OSError):
                    table.io.delete(location)

    # -- files that nothing needs ------------------------------------------------------------------

    def _remove_files(self, table: Any) -> list[str]:
        kept = _Files()
        _add(kept, table.io, table.metadata, set(), living=True)
        history = _history(table)
        places, reasons = _places(table), list[str]()
        for gone, stay in (
            (history.data, kept.data), (history.manifests, kept.manifests),
            (history.lists, kept.lists), (history.others, kept.others),
            (history.metadata, {table.metadata_location}),
        ):  # fmt: skip
            for location in gone:
                if location not in stay and _is_within_any(location, places):
                    with suppress(FileNotFoundError):
                        table.io.delete(location)
        _remove_older_metadata(table)
        if others := sorted(table.refs().keys() - {"main"}):
            reasons.append(f"the branches and tags {', '.join(others)} keep older snapshots")
        summary = table.current_snapshot()
        n = int((summary.summary or {}).get("total-delete-files", 0)) if summary else 0
        if n:
            reasons.append(f"{n} files of deletions only hide rows of data files")
        if kept_entries := _deleted_entries(table):
            reasons.append(f"{kept_entries} entries of removed files are left in manifests")
        return reasons


def _shown(catalog: str) -> str:
    if "://" not in catalog:
        return catalog
    try:
        return str(sa.make_url(catalog).set(username=None, password=None))
    except ArgumentError:
        raise SourceError(f"the catalog of an Iceberg table is no URL; {_EXPECTED}") from None


_CATALOGS = sa.text(
    "select catalog_name from iceberg_tables where table_namespace = :namespace "
    "and table_name = :name"
)
_METADATA = re.compile(r"(\d+)-[0-9a-f]{8}-[0-9a-f-]{27}\.metadata\.json")
_PLACES = ("write.data.path", "write.metadata.path", "write.object-storage.path")


def _places(table: Any) -> list[str]:
    """Return the folders of a table, none within another."""
    own = [table.location(), _folder(table.metadata_location)]
    own += [table.properties.get(name) for name in _PLACES]
    found: list[str] = []
    for place in sorted({_path(each).rstrip("/") for each in own if each}):
        if not _is_within_any(place, found):
            found.append(place)
    return found


def _ranges(table: Any) -> list[Ranges]:
    """Return the ranges of the data files, as manifests have them, those of the oldest first."""
    snapshot = table.current_snapshot()
    entries = [
        entry
        for manifest in (snapshot.manifests(table.io) if snapshot else ())
        for entry in manifest.fetch_manifest_entry(table.io)
    ]
    columns = [each for each in table.schema().columns if isinstance(each.field_type, _RANGED)]
    found = list[Ranges]()
    for entry in sorted(entries, key=lambda each: each.sequence_number or 0):
        file, ends = entry.data_file, {}
        bounds = [file.null_value_counts or {}, file.lower_bounds or {}, file.upper_bounds or {}]
        for each in columns:
            n_null, low, high = (of.get(each.field_id) for of in bounds)
            if n_null == 0 and low and high:
                ends[each.name] = tuple(from_bytes(each.field_type, end) for end in (low, high))
        found.append(ends)
    return found


def _within(files: Sequence[Ranges]) -> Any:
    """Return a filter that is true of the rows of some files, of few others if it can be."""
    found: Any = AlwaysTrue()
    for name, (low, high) in hull(files).items():
        found = And(found, And(GreaterThanOrEqual(name, low), LessThanOrEqual(name, high)))
    return found


def _renew(table: Any) -> None:
    """Commit a snapshot without news: its manifests have no entries of removed files."""
    if _deleted_entries(table):
        table.append(table.schema().as_arrow().empty_table())


def _expire(table: Any) -> None:
    heads = {ref.snapshot_id for ref in table.refs().values()}
    gone = [each.snapshot_id for each in table.snapshots() if each.snapshot_id not in heads]
    for each in (*table.metadata.statistics, *table.metadata.partition_statistics):
        if each.snapshot_id in gone and each in table.metadata.statistics:
            with table.update_statistics() as update:
                update.remove_statistics(each.snapshot_id)
    if gone:
        table.maintenance.expire_snapshots().by_ids(gone).commit()


def _remove_older_metadata(table: Any) -> None:
    """Remove metadata that nobody can commit any more: their number is not above the current one.

    Another table may have its metadata in the same folder. A file that was cut off does not tell
    of which table it is, so it stays there.
    """
    folder, _, current = table.metadata_location.rpartition("/")
    numbered = _METADATA.fullmatch(current)
    if numbered is None:
        return
    of_table: dict[str, str | None] = {}
    for blob in opened_store(folder).blobs():
        if _METADATA.fullmatch(blob.name) and blob.version is None:
            of_table[blob.name] = _uuid_in(table.io, f"{folder}/{blob.name}")
    own = str(table.metadata.table_uuid)
    is_alone = set(of_table.values()) <= {own, None}
    for name, uuid in of_table.items():
        is_past = name != current and int(name.partition("-")[0]) <= int(numbered[1])
        if is_past and (uuid == own or (uuid is None and is_alone)):
            with suppress(FileNotFoundError):
                table.io.delete(f"{folder}/{name}")


def _uuid_in(io: Any, location: str) -> str | None:
    """Return of which table a file of metadata is; None if it does not say so."""
    try:
        with io.new_input(location).open() as file:
            return str(json.loads(file.read())["table-uuid"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _deleted_entries(table: Any) -> int:
    snapshot = table.current_snapshot()
    manifests = snapshot.manifests(table.io) if snapshot else ()
    return sum(
        entry.status == ManifestEntryStatus.DELETED
        for manifest in manifests
        for entry in manifest.fetch_manifest_entry(table.io, discard_deleted=False)
    )


def _history(table: Any) -> _Files:
    """Return all files that the table has ever named, as far as its metadata are still there."""
    found, read = _Files(), set[str]()
    seen: dict[str, None] = {table.metadata_location: None}
    waiting = [table.metadata_location]
    while waiting:
        location = waiting.pop()
        try:
            metadata = FromInputFile.table_metadata(table.io.new_input(location))
        except (FileNotFoundError, ValueError):
            continue
        _add(found, table.io, metadata, read, living=False)
        older = [each.metadata_file for each in metadata.metadata_log]
        waiting += [each for each in older if each not in seen]
        seen.update(dict.fromkeys(older))
    found.metadata = sorted(seen, reverse=True)
    return found


def _add(found: _Files, io: Any, metadata: Any, read: set[str], *, living: bool) -> None:
    """Add the files of all snapshots; `read` are the lists and manifests already read."""
    for each in (*metadata.statistics, *metadata.partition_statistics):
        found.others.add(each.statistics_path)
    for snapshot in metadata.snapshots:
        found.lists.add(snapshot.manifest_list)
        if snapshot.manifest_list in read:
            continue
        read.add(snapshot.manifest_list)
        for manifest in _read(partial(snapshot.manifests, io), living):
            found.manifests.add(manifest.manifest_path)
            if manifest.manifest_path in read:
                continue
            read.add(manifest.manifest_path)
            entries = _read(
                partial(manifest.fetch_manifest_entry, io, discard_deleted=living), living
            )
            found.data.update(entry.data_file.file_path for entry in entries)


def _read(reading: Callable[[], Iterable[Any]], living: bool) -> Iterable[Any]:
    """Read a list of files; one of an older snapshot may be gone already."""
    try:
        return reading()
    except FileNotFoundError:
        if living:
            raise
        return ()


def _is_within_any(location: str, places: Iterable[str]) -> bool:
    is_within = any(_path(location).startswith(f"{place}/") for place in places)
    return is_within and ".." not in location.split("/")


def _path(location: str) -> str:
    return location.removeprefix("file://")


def _folder(location: str) -> str:
    return _path(location).rpartition("/")[0]


def _plain(value: Any) -> Any:
    return UUID(bytes=value) if isinstance(value, bytes) else value
