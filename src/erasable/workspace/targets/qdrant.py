"""Collections of Qdrant as targets: shards in folders, qdrant-client's local mode, and servers."""

from __future__ import annotations

import os
import sqlite3
import struct
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, closing
from pathlib import Path
from typing import Any, Protocol
from uuid import UUID

from qdrant_client import QdrantClient
from qdrant_client.local.persistence import CollectionPersistence

from erasable.workspace.targets.addresses import Address, folder_and_name, no_collection, refused_as
from erasable.workspace.targets.protocol import Records, RecordTarget, Settings
from erasable.workspace.targets.qdrant_edge import EdgeStore, Point, named

_KEY = "QDRANT_API_KEY"  # the environment variable with a server's key
_AT_ONCE = 1_000  # points of a batch
_TIMEOUT = 60  # seconds that a server has for an answer
_ID = "id"


class Store(Protocol):
    """What keeps a collection."""

    def points(self) -> Iterator[list[Point]]:
        """Return all points, some at a time."""

    def delete(self, keys: Sequence[Any]) -> None:
        """Delete points; those that are not there are no error."""

    def compact(self) -> list[str]:
        """Free the room of deleted points; return why that is not all."""

    def files(self) -> Iterable[Path] | None:
        """Return all files, None where they cannot be seen."""

    def close(self) -> None:
        """Let go of the collection."""


class QdrantTarget(RecordTarget):
    """Points of a collection, whose payload names people.

    ``qdrant:FOLDER#COLLECTION`` is a shard of Qdrant Edge in ``FOLDER/COLLECTION`` (without
    ``#COLLECTION``, in ``FOLDER``), or a collection of qdrant-client's local mode in ``FOLDER``.
    ``qdrant+http://HOST:PORT#COLLECTION`` is one of a server, whose key is the password of the URL
    (``http://:KEY@HOST``) or the environment variable ``QDRANT_API_KEY``.

    The subject is a path in the payload, such as ``metadata.user``, or ``id``, that of the point.

    A shard is compacted by its own optimizer, and its write-ahead log is renewed; a database of
    the local mode is written anew. Files of a server, its snapshots and replicas are not seen.

    Raises SourceError if there is no such collection, if another program has it open, if it was
    written by another major version, or if no point has a subject field.
    """

    def __init__(self, place: str, settings: Settings) -> None:
        """Open the collection; nothing is changed."""
        self.settings = settings
        self._store: Store
        if place.partition(":")[0].lower() == "qdrant":
            folder, self.name = folder_and_name(place)
            self.shown = place
            if (Path(folder) / "meta.json").is_file():
                self._store = _LocalStore(Path(folder), self.name, place)
            else:
                self._store = EdgeStore(Path(folder) / self.name, place)
                self.name = self.name or Path(folder).name
        else:
            address = Address.parse(place)
            self.name, self.shown = address.name, address.shown
            self._store = _ServerStore(address)
        self._refuse_unknown()

    def close(self) -> None:
        """Let go of the collection."""
        self._store.close()

    def batches(self) -> Iterator[Records]:
        """Return the points with payload and vectors."""
        by_id = any(subject.field == _ID for subject in self.settings.subjects)
        for points in self._store.points():
            documents = []
            for key, payload, vectors in points:
                given: dict[str, Any] = {f"vector {name}": each for name, each in vectors.items()}
                if isinstance(key, str):  # a UUID, which files have as bytes
                    given["id as bytes"] = UUID(key).bytes
                if by_id or isinstance(key, str):
                    given[_ID] = key
                documents.append(given | payload)
            yield Records.of_documents(
                [key for key, *_ in points], documents, self.settings.subjects
            )

    def delete(self, keys: Sequence[Any]) -> None:
        """Delete points by their ids."""
        self._store.delete(keys)

    def compact(self) -> list[str]:
        """Have the collection free the room of deleted points."""
        return self._store.compact()

    def files(self) -> Iterable[Path] | None:
        """Return the files of the collection."""
        return self._store.files()


class _LocalStore:
    """A collection of qdrant-client's local mode, whose points are pickled in SQLite."""

    def __init__(self, folder: Path, name: str, shown: str) -> None:
        self._folder, self._name, self._shown = folder, name, shown
        self._client: QdrantClient | None = None
        self._opened()

    def close(self) -> None:
        if self._client is not None:
            client, self._client = self._client, None
            client.close()

    def points(self) -> Iterator[list[Point]]:
        """Return the points as they are stored: the client rounds and scales vectors."""
        self._opened()
        with self._refused("could not be read"):
            kept = CollectionPersistence(str(self._path().parent))
            try:
                every = list(kept.load())
            finally:
                kept.close()
        for at in range(0, len(every), _AT_ONCE):
            yield [
                (each.id, each.payload or {}, dict(_as_pickled(each.vector)))
                for each in every[at : at + _AT_ONCE]
            ]

    def delete(self, keys: Sequence[Any]) -> None:
        with self._refused("could not be changed"):
            _delete(self._opened(), self._name, keys)

    def compact(self) -> list[str]:
        """Write the database anew."""
        self.close()
        try:
            with closing(sqlite3.connect(self._path(), isolation_level=None)) as connection:
                connection.execute("pragma secure_delete = on")
                connection.execute("vacuum")
                if connection.execute("pragma wal_checkpoint(truncate)").fetchone()[0]:
                    return ["another program reads the database"]
        except sqlite3.Error as error:
            return [f"the database could not be written anew ({type(error).__name__})"]
        return []

    def files(self) -> Iterable[Path]:
        self.close()
        return sorted(each for each in self._path().parent.iterdir() if each.is_file())

    def _path(self) -> Path:
        return self._folder / "collection" / self._name / "storage.sqlite"

    def _opened(self) -> QdrantClient:
        if self._client is None:
            with self._refused("could not be opened"), warnings.catch_warnings():
                warnings.simplefilter("ignore")  # that a collection is large
                self._client = QdrantClient(path=str(self._folder))
                known = sorted(each.name for each in self._client.get_collections().collections)
            if self._name not in known:
                self.close()
                raise no_collection(self._shown, self._name, known)
        return self._client

    def _refused(self, came: str) -> AbstractContextManager[None]:
        expected = "a folder of this version of qdrant-client, which no other program has open"
        return refused_as(repr(self._shown), came, expected)


class _ServerStore:
    """A collection of a server."""

    def __init__(self, address: Address) -> None:
        self._name, self._shown = address.name, address.shown
        with self._refused("could not be reached"), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of keys without encryption, and of versions
            self._client = QdrantClient(
                url=address.url, api_key=address.password or os.environ.get(_KEY),
                timeout=_TIMEOUT, check_compatibility=False,
            )  # fmt: skip
            known = sorted(each.name for each in self._client.get_collections().collections)
        if self._name not in known:
            raise no_collection(self._shown, self._name, known)

    def close(self) -> None:
        self._client.close()

    def points(self) -> Iterator[list[Point]]:
        offset = None
        while True:
            with self._refused("could not be read"):
                found, offset = self._client.scroll(
                    self._name, limit=_AT_ONCE, offset=offset, with_payload=True,
                    with_vectors=True,
                )  # fmt: skip
            yield [(each.id, each.payload or {}, named(each.vector)) for each in found]
            if offset is None:
                return

    def delete(self, keys: Sequence[Any]) -> None:
        with self._refused("could not be changed"):
            _delete(self._client, self._name, keys)

    def compact(self) -> list[str]:
        """Say what a server keeps: it compacts by its own thresholds."""
        reasons = ["the server keeps deleted points in its files until its optimizer acts"]
        with self._refused("could not be read"):
            if found := self._client.list_snapshots(self._name):
                reasons.append(f"{len(found)} snapshots of the collection may have these points")
        return reasons

    def files(self) -> None:
        return None

    def _refused(self, came: str) -> AbstractContextManager[None]:
        return refused_as(
            repr(self._shown), came, "a server of Qdrant that answers, and a key that it accepts"
        )


def _delete(client: QdrantClient, name: str, keys: Sequence[Any]) -> None:
    for at in range(0, len(keys), _AT_ONCE):
        client.delete(name, points_selector=list(keys[at : at + _AT_ONCE]), wait=True)


def _as_pickled(vectors: Any) -> Iterator[tuple[str, Any]]:
    """Return the first numbers of vectors by the bytes that a pickle has of them."""
    for name, each in named(vectors).items():
        first = list(each[:6])
        if all(isinstance(number, float) for number in first):
            yield name, b"".join(b"G" + struct.pack(">d", number) for number in first)
        else:  # integers, or several vectors
            yield name, each
