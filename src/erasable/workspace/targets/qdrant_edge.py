"""Shards of Qdrant Edge as stores of a target.

The law kept here: a deleted record leaves the files by Qdrant's own means. Segments with a deleted
record are written anew by its optimizer, under thresholds that let nothing pass; the write-ahead
log is filled with updates of no record until its old files are gone. The log must not be removed:
its numbers would start again, and Qdrant ignores updates that have a lower number than a record.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any
from uuid import UUID

import numpy as np
from qdrant_edge import (
    EdgeShard,
    Filter,
    HasIdCondition,
    ScrollRequest,
    UpdateOperation,
)

from erasable.core.artifact import sync_folder
from erasable.core.errors import SourceError
from erasable.workspace.targets.addresses import refused_as

Point = tuple[Any, dict[str, Any], dict[str, Any]]
"""The id of a point, its payload, and its vectors by their names."""

_AT_ONCE = 1_000  # points of a batch
_CONFIG, _KEPT = "edge_config.json", "edge_config.json.before-erasure"
_TO_THE_LAST = {"deleted_threshold": 1e-9, "vacuum_min_vector_number": 1}
_FILLING = " " * (1 << 22)  # a part of a file of the log, which has 32 MiB
_FILLINGS, _ROUNDS = 9, 4
_NOBODY = UUID("ffffffff-ffff-4fff-bfff-ffffffffffff")
_BUILDING, _BESIDE = "temp_segments/*", ".atomicwrite*"  # folders
_HEADER = 64  # bytes of a file of the log, at most, before its entries


class EdgeStore:
    """A shard in a folder."""

    def __init__(self, folder: Path, shown: str) -> None:
        """Open the shard."""
        self._folder = folder
        self._shown = shown
        self._shard: EdgeShard | None = None
        if not (folder / _CONFIG).is_file() and not (folder / _KEPT).is_file():
            raise SourceError(
                f"{shown!r}: there is no collection; expected the folder of a shard of Qdrant "
                "Edge, or of qdrant-client with a collection of this name"
            )
        self._opened()

    def close(self) -> None:
        """Write everything to the files, and let go of them."""
        if self._shard is not None:
            shard, self._shard = self._shard, None
            shard.close()

    def points(self) -> Iterator[list[Point]]:
        """Return all points, some at a time."""
        offset = None
        while True:
            with self._refused("could not be read"):
                found, offset = self._opened().scroll(
                    ScrollRequest(
                        limit=_AT_ONCE, offset=offset, with_payload=True, with_vector=True
                    )
                )
            yield [(_key(each.id), each.payload or {}, named(each.vector)) for each in found]
            if offset is None:
                return

    def delete(self, keys: Sequence[Any]) -> None:
        """Delete points."""
        with self._refused("could not be changed"):
            for at in range(0, len(keys), _AT_ONCE):
                some = list(keys[at : at + _AT_ONCE])
                self._opened().update(UpdateOperation.delete_points(some))
            self._opened().flush()

    def compact(self) -> list[str]:
        """Write segments with deleted points anew, and fill the log."""
        with self._refused("could not be compacted"):
            self.close()
            self._lower_thresholds()
            shard = self._opened(restored=False)
            self._remove_unfinished()
            shard.optimize()
            shard.flush()
            renewed = self._renew_log()
            self._restore()
        return [] if renewed else ["the write-ahead log keeps what was written before"]

    def files(self) -> Iterable[Path]:
        """Return all files of the shard, which is closed."""
        self.close()
        return sorted(each for each in self._folder.rglob("*") if each.is_file())

    def _refused(self, came: str) -> AbstractContextManager[None]:
        expected = "a shard of this major version of Qdrant Edge, which no other program has open"
        return refused_as(repr(self._shown), came, expected)

    def _opened(self, *, restored: bool = True) -> EdgeShard:
        if self._shard is None:
            with self._refused("could not be opened"):
                if restored:
                    self._restore()
                self._shard = EdgeShard.load(str(self._folder))
        return self._shard

    # -- thresholds of the optimizer, in the file of the settings -----------------------------

    def _lower_thresholds(self) -> None:
        """Have the optimizer write each segment anew that has a deleted point."""
        self._restore()
        given = (self._folder / _CONFIG).read_bytes()
        settings = json.loads(given)
        settings["optimizers"] = (settings.get("optimizers") or {}) | _TO_THE_LAST
        _write(self._folder / _KEPT, given)
        _write(self._folder / _CONFIG, json.dumps(settings).encode())

    def _restore(self) -> None:
        """Put the settings back that this attempt, or one that was killed, has set aside."""
        if (self._folder / _KEPT).is_file():
            self.close()
            os.replace(self._folder / _KEPT, self._folder / _CONFIG)
            sync_folder(self._folder)

    def _remove_unfinished(self) -> None:
        """Remove what a process that was killed has not finished; nobody else has the shard.

        Qdrant Edge leaves segments that it was building, with points, and files that were to
        replace others.
        """
        for each in [*self._folder.glob(_BUILDING), *self._folder.rglob(_BESIDE)]:
            shutil.rmtree(each, ignore_errors=True)

    # -- the write-ahead log ------------------------------------------------------------------

    def _renew_log(self) -> bool:
        """Fill the log until none of the files is left that have an entry; tell whether it is so.

        The entries set a field of a point that is not there.
        """
        self.close()
        old = self._log()
        for _ in range(_ROUNDS):
            if not old & self._log():
                return True
            shard = self._opened(restored=False)
            nobody = Filter(must=[HasIdCondition({_NOBODY})])
            for _ in range(_FILLINGS):
                shard.update(UpdateOperation.set_payload_by_filter(nobody, {"x": _FILLING}))
            shard.flush()
            self.close()
        return not old & self._log()

    def _log(self) -> set[int]:
        """Return the files of the log that have an entry."""
        return {
            path.stat().st_ino
            for path in self._folder.glob("wal/*-*")
            if path.name != "first-index" and np.fromfile(path, np.uint8, offset=_HEADER).any()
        }


def _key(given: Any) -> Any:
    return str(given) if isinstance(given, UUID) else given


def named(vectors: Any) -> dict[str, Any]:
    """Return vectors with their names, sparse ones as their numbers."""
    found = vectors if isinstance(vectors, dict) else {"": vectors}
    return {
        name: each.values if hasattr(each, "values") and hasattr(each, "indices") else each
        for name, each in found.items()
        if each is not None
    }


def _write(path: Path, data: bytes) -> None:
    """Replace a file atomically: it is the old or the new one, also after a crash."""
    beside = path.with_name(path.name + ".tmp")
    with beside.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    os.replace(beside, path)
    sync_folder(path.parent)
