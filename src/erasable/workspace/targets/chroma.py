"""Collections of Chroma as targets, in a folder or at a server.

The law kept here: a vector is overwritten in the index before its record is deleted, since the
index keeps what is deleted. Each step is Chroma's own, but for one: what SQLite keeps of deleted
rows is removed in its file.
"""

from __future__ import annotations

import base64
import os
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, closing
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import SplitResult, parse_qs, unquote, urlsplit
from uuid import uuid4

import chromadb
import numpy as np
from chromadb.config import DEFAULT_DATABASE, DEFAULT_TENANT
from chromadb.config import Settings as ChromaSettings
from chromadb.errors import NotFoundError

from erasable.core.errors import SourceError
from erasable.workspace.targets import hnsw
from erasable.workspace.targets.addresses import refused_as
from erasable.workspace.targets.handles import locked, open_elsewhere
from erasable.workspace.targets.marks import Marks
from erasable.workspace.targets.protocol import People, Plan, Records, RecordTarget, Settings
from erasable.workspace.targets.records import is_any, places_of
from erasable.workspace.targets.residue import Found

_AT_ONCE = 500  # records of a request
_N_MODELS = 64  # vectors of others that the vectors of people are overwritten with mixtures of
_OWN = ("id", "document", "vector", "uri")  # fields besides the metadata
_FILE = "chroma.sqlite3"
_SYNC = 1_000  # changes after which Chroma writes its index, unless a collection says otherwise
_EXPECTED = "expected chroma:FOLDER#COLLECTION or chroma+http://HOST:PORT#COLLECTION"


class ChromaTarget(RecordTarget):
    """Target of a Chroma collection.

    ``chroma:FOLDER#COLLECTION`` opens the folder, ``chroma+http://HOST:PORT#COLLECTION`` asks a
    server, also by https, with ``USER:PASSWORD@`` or ``TOKEN@`` before its name, and ``?tenant=``
    and ``?database=``. ``?path=FOLDER`` tells the folder of a server of this machine: without it,
    what the server keeps of deleted texts can neither be removed nor looked for.

    The subject is a key of the metadata, or ``id``. A key that is called as a field of every record
    (id, document, vector, uri) has ``metadata.`` before it.

    Chroma's index marks a vector as deleted and keeps it. So it is first overwritten, by a mixture
    of two vectors of others, which is then deleted in its place. The collection and its records
    stay as they are: its name, id and configuration, the order, and the bits of vectors. Then ids
    that no record has are deleted, until Chroma writes its index and empties its log. After that
    the text index is built anew and the file of SQLite is written without gaps. Into the room for
    more vectors Chroma writes memory that it has not cleared: in a folder it is filled with zeros;
    a server would write it again, so there a value in it is a reason.

    What is not erased: vectors of records that were deleted before by others (whose they were is
    not known any more), and values that other collections of the folder have.

    A program that has the folder open has the vectors in its memory, and writes them back when it
    next writes its index: this is a reason, where it can be seen, that is, on Linux. Close it, and
    open it afterwards. Clients of a server go on. Another process of erasable is refused meanwhile.

    Chroma has a SQLite of its own, whose locks end when that of Python closes the same file: its
    file is read by Python only while no client of this process has it open.

    Raises SourceError if there is no such folder, server or collection, if another version of
    Chroma wrote the folder, or if no record has a subject field.
    """

    def __init__(self, place: str, settings: Settings) -> None:
        """Open the collection; nothing is changed."""
        self.settings = settings
        self._url: SplitResult | None = None
        self._client: Any = None
        self._lock: int | None = None
        self._has_subject = False
        scheme, _, rest = place.partition(":")
        if scheme.lower() == "chroma":
            folder, _, self.name = rest.partition("#")
            self.shown = place
        else:
            self._url = _url(place)
            self.name = unquote(self._url.fragment)
            folder = _option(self._url, "path") or ""
            self.shown = _shown(self._url)
        self._folder = Path(folder) if folder else None
        if not self.name or (self._url is None and self._folder is None):
            raise SourceError(f"{self.shown!r} does not name a collection; {_EXPECTED}")
        if self._folder is not None and not (self._folder / _FILE).is_file():
            raise SourceError(f"{self.shown!r}: there is no {_FILE} in its folder; {_EXPECTED}")
        try:
            if self._folder is not None and self._url is None:
                self._lock = locked(self._folder, self.shown)
            self._id = str(self._collection.id)
            with self._told("opened"):
                self._indexes = self._folders_of_indexes()
                if self._folder is not None and not open_elsewhere(self._folder):
                    self._for_indexes(hnsw.mend_labels)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Close the folder, or the connection."""
        self._disconnect()
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def _disconnect(self) -> None:
        if self._client is not None:
            self._client.close()
            self._client = None

    def find(self, people: People) -> Plan:
        """Find the records of people."""
        plan = super().find(people)
        is_sure = self._has_subject or self.settings.may_lack_subject
        if not is_sure and self._collection.count():
            wanted = ", ".join(repr(subject.field) for subject in self.settings.subjects)
            raise SourceError(
                f"no record of {self.shown!r} has a field {wanted}: a collection without a subject "
                "field; expected a key of its metadata, or 'id'"
            )
        return plan

    def batches(self) -> Iterator[Records]:
        """Return all records with their fields."""
        for ids, found in self._pages("embeddings", "documents", "metadatas", "uris"):
            rows = [row or {} for row in found["metadatas"]]
            names = dict.fromkeys(name for row in rows for name in row)
            fields: dict[str, Sequence[Any]] = {
                "id": ids, "document": found["documents"], "uri": found["uris"],
                "vector": list(np.asarray(found["embeddings"], dtype=np.float32)),
            }  # fmt: skip
            for name in names:
                shown = f"metadata.{name}" if name in _OWN else name
                fields.update(places_of(shown, [row.get(name) for row in rows]))
            wanted = {subject.field for subject in self.settings.subjects}
            self._has_subject |= any(is_any(name, wanted) for name in fields)
            yield Records(ids, fields)

    def delete(self, keys: Sequence[Any]) -> None:
        """Overwrite the vectors of records, and delete these."""
        models = self._models(set(keys))
        random = np.random.default_rng()
        with self._told("changed"):
            for at in range(0, len(keys), _AT_ONCE):
                found = self._collection.get(ids=keys[at : at + _AT_ONCE], include=["embeddings"])
                if found["ids"]:
                    given = np.asarray(found["embeddings"], dtype=np.float32)
                    mixed = _mixed(given, models, random)
                    self._for_indexes(hnsw.keep_labels)
                    self._collection.update(ids=found["ids"], embeddings=mixed)
                    self._for_indexes(hnsw.keep_labels)
                    self._collection.delete(ids=found["ids"])

    def compact(self) -> list[str]:
        """Have Chroma write its index; remove what SQLite keeps of deleted rows."""
        with self._told("compacted"):
            self._sync()
            if self._folder is None:
                return []  # `scan` says that the files cannot be seen
            has_lengths = self._is_cosine()
            self._disconnect()
            _rewrite(self._folder / _FILE, self._id)
            self._for_indexes(hnsw.mend_labels)
            self._for_indexes(partial(hnsw.clear_unused, has_lengths=has_lengths))
        return []

    def files(self) -> Iterable[Path] | None:
        """Return the files of SQLite and of indexes, without those of other collections."""
        if self._folder is None:
            return None
        with self._told("read"):
            others = self._folders_of_indexes(others=True)
        return [
            path
            for path in sorted(self._folder.rglob("*"))
            if path.is_file() and path.relative_to(self._folder).parts[0] not in others
        ]

    def scan(self, marks: Marks, living: Marks) -> Found:
        """Look for values in all files, also for vectors that the index keeps with the length 1."""
        found = super().scan(marks, living)
        if self._folder is None or not self._is_cosine():
            return found
        with self._told("read"):
            for segment in self._indexes:
                left = hnsw.count_directions(self._folder / segment, marks)
                alive = hnsw.count_directions(self._folder / segment, living)
                if left is None or alive is None:
                    found.reasons.append("the index of vectors has a form that is not known")
                    continue
                found.n_living += alive
                if left and not found.n_left:
                    found.n_left, found.where = left, [hnsw.VECTORS]
                if len(living) and not alive:
                    found.reasons.append("the search does not find the vectors of others")
        return found

    def unreached(self) -> list[str]:
        """Return why vectors may come back, if so."""
        if self._url is None and self._folder is not None and open_elsewhere(self._folder):
            return ["another program has the folder open, and may write back what it has read"]
        return []

    @property
    def _collection(self) -> Any:
        """The collection, opened if it is not."""
        with self._told("opened"):
            if self._client is None:
                self._client = self._connected()
            try:  # without the embedding function: nothing is embedded here
                return self._client.get_collection(self.name, embedding_function=None)
            except NotFoundError:
                raise SourceError(
                    f"{self.shown!r}: there is no such collection; {_EXPECTED}"
                ) from None

    def _is_cosine(self) -> bool:
        """Tell whether the index keeps vectors with the length 1."""
        hnsw_ = self._collection.configuration_json.get("hnsw") or {}
        return bool(hnsw_.get("space") == "cosine")

    def _connected(self) -> Any:
        # "validate" refuses a folder of another version, which it would bring to its own
        quiet = ChromaSettings(anonymized_telemetry=False, migrations="validate")
        if self._url is None:
            return chromadb.PersistentClient(str(self._folder), settings=quiet)
        secure = self._url.scheme.endswith("https")
        return chromadb.HttpClient(
            self._url.hostname or "localhost", self._url.port or (443 if secure else 8000),
            ssl=secure, headers=_headers(self._url), settings=quiet,
            tenant=_option(self._url, "tenant") or DEFAULT_TENANT,
            database=_option(self._url, "database") or DEFAULT_DATABASE,
        )  # fmt: skip

    def _pages(self, *include: str) -> Iterator[tuple[list[str], Any]]:
        """Return records, some at a time, in an order that no deletion changes."""
        with self._told("read"):
            collection = self._collection
            every = collection.get(include=[])["ids"]
            for at in range(0, len(every), _AT_ONCE):
                found = collection.get(ids=every[at : at + _AT_ONCE], include=list(include))
                if found["ids"]:
                    yield found["ids"], found

    def _models(self, gone: set[str]) -> np.ndarray:
        """Return vectors of records that stay, none where there are none."""
        models: list[np.ndarray] = []
        for ids, found in self._pages("embeddings"):
            vectors = zip(ids, found["embeddings"], strict=True)
            models += [np.asarray(vector) for each, vector in vectors if each not in gone]
            if len(models) >= _N_MODELS:
                break
        return np.array(models[:_N_MODELS], dtype=np.float32)

    def _sync(self) -> None:
        """Have Chroma write its index, which it does after a number of changes and a question."""
        collection = self._collection
        config = collection.configuration_json.get("hnsw") or {}
        n = int(config.get("sync_threshold") or _SYNC) + 1
        nobody = f"erasable-{uuid4()}"
        for at in range(0, n, _AT_ONCE):
            some = range(at, min(n, at + _AT_ONCE))
            self._for_indexes(hnsw.keep_labels)
            collection.delete(ids=[f"{nobody}-{each}" for each in some])
        asked = collection.get(limit=1, include=["embeddings"])
        if asked["ids"]:
            self._for_indexes(hnsw.keep_labels)
            collection.query(query_embeddings=asked["embeddings"], n_results=1, include=[])

    def _for_indexes(self, do: Callable[[Path], None]) -> None:
        """Do something with the files of indexes, where this program has Chroma write them."""
        if self._folder is not None and self._url is None:
            for segment in self._indexes:
                do(self._folder / segment)

    def _folders_of_indexes(self, *, others: bool = False) -> set[str]:
        """Return the names of the folders of indexes, of the collection or of the others."""
        if self._folder is None:
            return set()
        if self._url is None:
            self._disconnect()
        return _segments(self._folder / _FILE, self._id, others=others)

    def _told(self, what: str) -> AbstractContextManager[None]:
        """Tell errors of Chroma in one line."""
        expected = (
            f"a collection that Chroma {chromadb.__version__} reads and writes, made by this "
            "version, which no other client of this process has open"
        )
        return refused_as(repr(self.shown), f"could not be {what}", expected)


def _mixed(given: np.ndarray, models: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """Return vectors to overwrite others with: mixtures of models, or noise of length 1."""
    if len(models) < 2:
        noise = random.normal(size=given.shape)
        noise /= np.linalg.norm(noise, axis=1, keepdims=True)
        return noise.astype(np.float32)
    pairs = np.array([random.choice(len(models), 2, replace=False) for _ in given])
    share = random.uniform(0.25, 0.75, size=(len(given), 1)).astype(np.float32)
    mixed: np.ndarray = share * models[pairs[:, 0]] + (1 - share) * models[pairs[:, 1]]
    return mixed


# -- places ----------------------------------------------------------------------------------------


def _url(place: str) -> SplitResult:
    try:
        url = urlsplit(place)
        _ = url.port
    except ValueError:
        url = SplitResult("", "", "", "", "")
    if url.scheme.lower() not in ("chroma+http", "chroma+https") or not url.hostname:
        raise SourceError(f"the place is not one of a server of Chroma; {_EXPECTED}")
    return url


def _shown(url: SplitResult) -> str:
    """Return a URL without credentials."""
    return url._replace(netloc=url.netloc.rpartition("@")[2]).geturl()


def _option(url: SplitResult, name: str) -> str | None:
    return parse_qs(url.query).get(name, [None])[0]


def _headers(url: SplitResult) -> dict[str, str] | None:
    """Return how a client says who it is."""
    if url.username is None:
        return None
    user = unquote(url.username)
    if url.password is None:
        return {"Authorization": f"Bearer {user}", "X-Chroma-Token": user}
    both = base64.b64encode(f"{user}:{unquote(url.password)}".encode()).decode()
    return {"Authorization": f"Basic {both}"}


# -- the file of SQLite ----------------------------------------------------------------------------


def _rewrite(file: Path, collection: str) -> None:
    """Remove from a file of SQLite what deleted records have left there.

    The last entry of the log stays: Chroma numbers the next one by it.
    """
    with closing(sqlite3.connect(file, isolation_level=None, timeout=60)) as connection:
        connection.execute("pragma secure_delete = on")
        connection.execute(
            "delete from embeddings_queue where topic like '%/' || ?1 and seq_id < ("
            "select min(coalesce(m.seq_id, 0)) from segments s left join max_seq_id m "
            "on m.segment_id = s.id where s.collection = ?1)",
            (collection,),
        )
        for command in ("rebuild", "optimize"):  # of the text index, which keeps words otherwise
            connection.execute(
                "insert into embedding_fulltext_search(embedding_fulltext_search) values (?)",
                (command,),
            )
        connection.execute("vacuum")
        connection.execute("pragma wal_checkpoint(truncate)")


def _segments(file: Path, collection: str, *, others: bool = False) -> set[str]:
    """Return the folders of the indexes of a collection, or of the others."""
    with closing(sqlite3.connect(file, timeout=60)) as connection:
        query = "select id from segments where (collection != ?) = ? and scope = 'VECTOR'"
        return {name for (name,) in connection.execute(query, (collection, others))}
