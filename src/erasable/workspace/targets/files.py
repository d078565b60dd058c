"""Files as a target: a file, a folder, or a prefix of an object store, of Parquet, CSV, JSON lines.

Compressed text files (.gz, .zst, .bz2, .xz) are read and written as such. The names of folders may
give columns, as in ``country=de/``. A file is replaced only if nobody has changed it since it was
read; all files are read whole before one is changed.
"""

from __future__ import annotations

import codecs
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from urllib.parse import unquote

import pyarrow as pa

from erasable.core.errors import SourceError
from erasable.workspace.targets import residue
from erasable.workspace.targets.blobs import ENDING, Blob, ChangedError, Store
from erasable.workspace.targets.columns import Batch, Keys, find_all
from erasable.workspace.targets.marks import Marks
from erasable.workspace.targets.parquet_files import ParquetFormat
from erasable.workspace.targets.protocol import People, Plan, Settings, Target
from erasable.workspace.targets.residue import Found
from erasable.workspace.targets.stores import linked, opened_store, search
from erasable.workspace.targets.text_files import (
    CsvFormat,
    Format,
    Given,
    JsonFormat,
    unpacked_name,
)

_ATTEMPTS = 5  # where other programs change a file while it is written
_PARQUET = (".parquet", ".pq", ".parq")
_JSON = (".jsonl", ".ndjson")
_CSV = (".csv", ".tsv")
_GAP = "__HIVE_DEFAULT_PARTITION__"
_SUMMARIES = ("_metadata", "_common_metadata")  # of Parquet, about other files of a folder
_TABLES = {
    "_delta_log": "a Delta table; expected it as delta:PLACE",
    ".hoodie": "a Hudi table; expected files that belong to no table",
    "_versions": "a Lance table; expected it as lancedb:FOLDER#TABLE",
}


class FilesTarget(Target):
    """A file, or the files of a folder or prefix; see the module."""

    def __init__(self, place: str, settings: Settings) -> None:
        self._store: Store = opened_store(place)
        self.settings = settings
        self._has_removed = False
        self.shown = self._store.shown

    def find(self, people: People) -> Plan:
        """Find the rows of people; raise SourceError if any file cannot be read and written."""
        blobs = self._blobs()
        sources = {_label(blob): partial(self._batches, blob) for blob in blobs}
        with _explained(self.shown):
            try:
                plan = find_all(sources, self.settings, people)
            except ChangedError:
                raise SourceError(
                    f"files at {self.shown!r} are removed or replaced while they are read; "
                    "expected them to stay for as long; try it again"
                ) from None
        self._check_all_named(blobs)
        counts, plan.changed = plan.changed, {}
        for label, n in counts.items():
            only = self.shown.rpartition("/")[2] if label[:1] in ("", "\0") else ""
            name = residue.shown(_public_name(only + label), plan.marks)
            plan.changed[name] = plan.changed.get(name, 0) + n
        plan.reasons = linked([self._store]) if plan else []
        return plan

    def erase(self, plan: Plan) -> None:
        """Rewrite the files of a plan, and remove those of a folder that is of a person alone."""
        blobs = {_label(blob): blob for blob in self._blobs()}
        found = [(blobs[label], keys) for label, keys in plan.keys.items() if label in blobs]
        with _explained(self.shown):
            for blob, _ in found:
                if blob.version is None:
                    self._store.check_writable(blob.name)
            for blob, keys in found:
                self._erase(blob, keys)

    def compact(self) -> list[str]:
        """Remove what a killed attempt left; return what else may hold rows."""
        with _explained(self.shown):
            reasons = self._store.clean()
            names = [blob for blob in self._store.blobs() if not self._is_known(blob)]
            hidden = [blob.name for blob in names if blob.size and not self._is_text(blob)]
        if hidden:
            # without their names, which may be those of people
            reasons.append(f"files of no kind that can be read: {len(hidden)}")
        return reasons

    def scan(self, marks: Marks, living: Marks) -> Found:
        """Look for values in all files, and in their names."""
        with _explained(self.shown):
            return search([self._store], marks, living)

    # -- one file ----------------------------------------------------------------------------------

    def _blobs(self) -> list[Blob]:
        every = self._store.blobs()
        for blob in every:
            parts = blob.name.split("/")
            for mark, told in _TABLES.items():
                if mark in parts[:-1]:
                    raise SourceError(f"{self.shown!r} holds {told}")
            if parts[-1].endswith(".metadata.json") and "metadata" in parts[-2:-1]:
                raise SourceError(
                    f"{self.shown!r} holds an Iceberg table; expected it as "
                    "iceberg:CATALOG#NAMESPACE.TABLE"
                )
        found = [blob for blob in every if self._is_readable(blob)]
        if not found and not self._has_removed:
            raise SourceError(
                f"{self.shown!r} has no file that can be read; expected .parquet, .csv, .tsv, "
                ".jsonl or .ndjson, text also as .gz, .zst, .bz2 or .xz, or a database by URL, "
                "as in sqlite:///shop.db"
            )
        return found

    def _is_readable(self, blob: Blob) -> bool:
        name = self._file_name(blob)
        if name.startswith((".", "_")):
            return False
        return name.lower().endswith(_PARQUET) or unpacked_name(name).endswith((*_CSV, *_JSON))

    def _is_known(self, blob: Blob) -> bool:
        name = self._file_name(blob)
        return self._is_readable(blob) or name.endswith(ENDING) or name in _SUMMARIES

    def _file_name(self, blob: Blob) -> str:
        return (blob.name or self.shown).rpartition("/")[2]

    def _format(self, blob: Blob) -> Format:
        place = f"{blob.name!r} in {self.shown!r}" if blob.name else repr(self.shown)
        name = self._file_name(blob)
        kind: type[Format] = CsvFormat
        if name.lower().endswith(_PARQUET):
            kind = ParquetFormat
        elif unpacked_name(name).endswith(_JSON):
            kind = JsonFormat
        return kind(name, place, self.settings, given_by(blob.name))

    def _batches(self, blob: Blob) -> Iterator[Batch]:
        with self._store.opened(blob) as (file, _):
            yield from self._format(blob).batches(file)

    def _check_all_named(self, blobs: list[Blob]) -> None:
        """Refuse subjects that no file has."""
        if self._has_removed:  # maybe the last one that had them
            return
        for subject in self.settings.subjects:
            if not any(self._has(blob, subject.field) for blob in blobs):
                raise SourceError(
                    f"no file at {self.shown!r} has the column {subject.field!r}; expected one of "
                    "their own"
                )

    def _has(self, blob: Blob, field: str) -> bool:
        if field in given_by(blob.name):
            return True
        n_rows = 0
        is_json = unpacked_name(self._file_name(blob)).endswith(_JSON)
        for batch in self._batches(blob):
            n_rows += batch.n_rows
            if batch.has(field):
                return True
            if not is_json:
                return False
        return is_json and not n_rows  # a line would tell, and all have left

    def _erase(self, blob: Blob, keys: Keys) -> None:
        given = given_by(blob.name)
        whole = any(
            self.settings.subjects[number].field in given
            and given[self.settings.subjects[number].field] == value
            for number, value in keys
        )
        if blob.version is not None or whole:
            self._store.remove(blob)
            self._has_removed = True
        elif not self._rewritten(blob, keys):
            raise SourceError(
                f"{blob.name!r} in {self.shown!r} is changed by another program again and again; "
                "expected it to stay for as long as it is read; try it again"
            )
        self._remove_notes(blob)

    def _rewritten(self, blob: Blob, keys: Keys) -> bool:
        for _ in range(_ATTEMPTS):
            try:
                with (
                    self._store.opened(blob) as (file, state),
                    self._store.replacing(blob.name, state) as new,
                ):
                    self._format(blob).rewrite(file, new, keys)
            except ChangedError:
                if all(each.name != blob.name for each in self._store.blobs()):
                    return True  # it was removed
                continue
            return True
        return False

    def _remove_notes(self, blob: Blob) -> None:
        """Remove what other programs noted about a file: a checksum, statistics of the folder."""
        folder, slash, name = blob.name.rpartition("/")
        self._store.remove(Blob(f"{folder}{slash}.{name}.crc", 0))
        if name.lower().endswith(_PARQUET):
            parts = folder.split("/") if folder else []
            for n in range(len(parts) + 1):
                within = "/".join(parts[:n])
                self._store.remove(Blob(f"{within}/_metadata" if within else "_metadata", 0))

    def _is_text(self, blob: Blob) -> bool:
        """Tell whether a search of the bytes of a file finds all that it says."""
        decoder = codecs.getincrementaldecoder("utf-8")()
        try:
            with self._store.opened(blob) as (file, _):
                while part := file.read(1 << 20):
                    if b"\0" in part:
                        return False
                    decoder.decode(part)
        except UnicodeDecodeError:
            return False
        except ChangedError:
            return True
        return True


def given_by(name: str) -> Given:
    """Return the columns that the folders of a file give.

    >>> given_by("country=de/who=a%20b/part-0.parquet")
    {'country': 'de', 'who': 'a b'}
    """
    pairs = [part.partition("=") for part in name.split("/")[:-1] if "=" in part]
    return {unquote(key): None if value == _GAP else unquote(value) for key, _, value in pairs}


def _label(blob: Blob) -> str:
    return blob.name if blob.version is None else f"{blob.name}\0{blob.version}"


def _public_name(label: str) -> str:
    """Return a name that names nobody: without the values of folders."""
    name, _, version = label.partition("\0")
    parts = [f"{each.partition('=')[0]}=*" if "=" in each else each for each in name.split("/")]
    if parts[:-1] and any(each.endswith("=*") for each in parts[:-1]):
        parts[-1] = "*"
    return "/".join(parts) + (" (older version)" if version else "")


@contextmanager
def _explained(shown: str) -> Iterator[None]:
    """Turn errors of the disk into SourceError."""
    try:
        yield
    except SourceError:
        raise
    except (OSError, pa.ArrowException) as error:
        raise SourceError(
            f"the files at {shown!r} could not be read and written ({type(error).__name__}); "
            "expected a disk that works, with room for the largest of them; files that were not "
            "yet rewritten are as they were"
        ) from None
