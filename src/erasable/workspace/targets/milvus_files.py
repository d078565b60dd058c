"""Files of a collection of Milvus Lite, written anew without deleted records.

The law kept here: if the process dies, each file is the old or the new one, and both have the same
records. Records leave their files first, then the list of deleted records. Milvus Lite
does the same when it merges files, which it does for four files of one size alone.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from milvus_lite.schema.persistence import load_schema
from milvus_lite.storage.manifest import Manifest

from erasable.core.artifact import sync_folder

_SEQ = "_seq"  # the column with the number of the change that wrote a row


def compacted(folder: Path) -> list[str]:
    """Write the files of a collection anew that have deleted rows; return why that is not all.

    No other program may have the collection open.
    """
    if n := len(list(folder.glob("snapshots/metadata/*.json"))):
        return [f"{n} snapshots of the collection keep records; drop them, and try again"]
    _, schema = load_schema(str(folder / "schema.json"))
    key = next(field.name for field in schema.fields if field.is_primary)
    manifest = Manifest.load(str(folder))
    lists = manifest.get_all_delta_files()
    deleted = _latest(_tables(folder, lists, key), key)
    for partition, names in manifest.get_all_data_files().items():
        _rewrite(folder / "partitions" / partition, names, key, deleted)
    if any(lists.values()):
        for partition, names in lists.items():
            manifest.remove_delta_files(partition, names)
        manifest.save()  # which ends what the lists were for; those left are removed at opening
        for partition, names in lists.items():
            for name in names:
                (folder / "partitions" / partition / name).unlink(missing_ok=True)
    return []


def remove_ended_logs(folder: Path) -> None:
    """Remove write-ahead logs whose changes are in files, as a program left them that was killed.

    Milvus Lite would write these files again when it opens a collection, and not beside them: a
    second kill would tear one. No other program may have the folder open.
    """
    for log in folder.glob("collections/*/wal/wal_*_*.arrow"):
        active = Manifest.load(str(log.parent.parent)).active_wal_number
        if active is not None and int(log.stem.rpartition("_")[2]) < active:
            log.unlink()


def remove_indexes(folder: Path) -> None:
    """Remove the indexes of a collection; they are made again when it is loaded."""
    for index in folder.glob("partitions/*/indexes/*"):
        index.unlink()


def _tables(folder: Path, names: Mapping[str, Sequence[str]], key: str) -> Iterator[pa.Table]:
    for partition, own in names.items():
        for name in own:
            path = folder / "partitions" / partition / name
            if path.is_file():
                yield _read(path, [key, _SEQ])


def _read(path: Path, columns: Sequence[str] | None = None) -> pa.Table:
    file = pq.ParquetFile(path, pre_buffer=False)
    return file.read(columns, use_threads=False)


def _latest(tables: Iterator[pa.Table], key: str) -> dict[Any, int]:
    """Return the last change of each key."""
    found: dict[Any, int] = {}
    for table in tables:
        for value, seq in zip(table[key].to_pylist(), table[_SEQ].to_pylist(), strict=True):
            found[value] = max(seq, found.get(value, -1))
    return found


def _rewrite(folder: Path, names: Sequence[str], key: str, deleted: Mapping[Any, int]) -> None:
    """Leave rows out that were deleted, or that a later one replaces."""
    last = _latest(_tables(folder.parent.parent, {folder.name: names}, key), key)
    for name in names:
        path = folder / name
        columns = _read(path, [key, _SEQ])
        stays = pa.array(
            deleted.get(value, -1) <= seq == last[value]
            for value, seq in zip(columns[key].to_pylist(), columns[_SEQ].to_pylist(), strict=True)
        )
        if pc.all(stays).as_py() in (True, None):
            continue
        for index in folder.glob(f"indexes/{path.stem}.*"):  # made anew when it is loaded
            index.unlink()
        beside = path.with_name(path.name + ".tmp")
        pq.write_table(_read(path).filter(stays), beside)
        with beside.open("rb+") as file:
            os.fsync(file.fileno())
        os.replace(beside, path)
        sync_folder(path.parent)
