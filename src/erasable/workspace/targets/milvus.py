"""Collections of Milvus as targets: those of Milvus Lite in a folder, and those of servers."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from typing import Any

from milvus_lite import DataDirLockedError, MilvusLite, server_manager_instance
from pymilvus import MilvusClient, MilvusException

from erasable.core.errors import SourceError
from erasable.workspace.targets import milvus_files
from erasable.workspace.targets.addresses import Address, folder_and_name, no_collection, refused_as
from erasable.workspace.targets.protocol import Records, RecordTarget, Settings

_TOKEN = "MILVUS_TOKEN"  # the environment variable with a server's token
_AT_ONCE = 1_000  # records of a batch
_CONNECTING = 10  # seconds that a server has to answer at first


class MilvusTarget(RecordTarget):
    """Records of a collection; the subject is one of its fields, also a dynamic one.

    ``milvus:FILE.db#COLLECTION`` is a collection of Milvus Lite 3, whose file is a folder;
    ``milvus+http://USER:PASSWORD@HOST:PORT/DATABASE#COLLECTION`` one of a server, whose token is
    the environment variable ``MILVUS_TOKEN`` if the URL has no password.

    Files of Milvus Lite with deleted records are written anew, and indexes over them removed: they
    are made again when the collection is loaded. So are those of a collection that does not load
    otherwise, as after Milvus Lite was killed while it wrote one. Files of a server, its log and
    its object store are not seen.

    Raises SourceError if there is no such collection, if another program has it open, if it was
    written by another major version, or if no record has a subject field.
    """

    def __init__(self, place: str, settings: Settings) -> None:
        """Open the collection; nothing is changed."""
        self.settings = settings
        self._client: Any = None
        self._folder: Path | None = None
        if place.partition(":")[0].lower() == "milvus":
            folder, self.name = folder_and_name(place)
            self.shown, self._folder = place, Path(folder)
            self._options: dict[str, Any] = {"uri": folder}
            _check(self._folder, place)
            with (
                self._refused("could not be opened"),
                suppress(DataDirLockedError),
                MilvusLite(folder),
            ):
                milvus_files.remove_ended_logs(self._folder)
        else:
            address = Address.parse(place)
            base, _, database = address.url.partition("://")[2].partition("/")
            self.name, self.shown = address.name, address.shown
            self._options = {
                "uri": f"{address.url.partition('://')[0]}://{base}", "timeout": _CONNECTING,
                "user": address.user or "", "password": address.password or "",
                "token": "" if address.password else os.environ.get(_TOKEN, ""),
                "db_name": database,
            }  # fmt: skip
        try:
            with self._refused("could not be opened"):
                known = sorted(self._opened().list_collections())
                if not self._opened().has_collection(self.name):
                    raise no_collection(self.shown, self.name, known)
                described = self._opened().describe_collection(self.name)
            self._stored: str = described["collection_name"]  # an alias stands for another
            self._key = next(each["name"] for each in described["fields"] if each.get("is_primary"))
            self._refuse_unknown()
        except SourceError:
            self.close()
            raise

    def close(self) -> None:
        """Let go of the collection; Milvus Lite writes everything to its files."""
        if self._client is not None:
            client, self._client = self._client, None
            client.close()
            if self._folder is not None:
                server_manager_instance.release_server(str(self._folder))

    def batches(self) -> Iterator[Records]:
        """Return the records with all fields."""
        with self._refused("could not be read"):
            self._load()
            rows = self._opened().query_iterator(
                self.name, batch_size=_AT_ONCE, filter="", output_fields=["*"]
            )
            while found := [dict(each) for each in rows.next()]:
                keys = [each[self._key] for each in found]
                yield Records.of_documents(keys, found, self.settings.subjects)
            rows.close()

    def delete(self, keys: Sequence[Any]) -> None:
        """Delete records by their primary keys."""
        with self._refused("could not be changed"):
            for at in range(0, len(keys), _AT_ONCE):
                self._opened().delete(self.name, ids=list(keys[at : at + _AT_ONCE]))
            self._opened().flush(self.name)

    def compact(self) -> list[str]:
        """Write files with deleted records anew."""
        if self._folder is None:
            with self._refused("could not be compacted"):
                self._opened().compact(self.name)
            return ["the server keeps deleted records in its files and log until it needs no more"]
        self.close()
        with self._refused("could not be compacted"):
            try:
                with MilvusLite(str(self._folder)) as kept:  # which nobody else can open meanwhile
                    kept.get_collection(self._stored).flush()  # what a killed program has left
                with MilvusLite(str(self._folder)):
                    return milvus_files.compacted(self._place())
            except DataDirLockedError:
                return ["another program has the collection open"]

    def files(self) -> Iterable[Path] | None:
        """Return the files of the collection, which is closed."""
        self.close()
        if self._folder is None:
            return None
        return sorted(each for each in self._place().rglob("*") if each.is_file())

    def _load(self) -> None:
        """Load the collection, without its indexes in files that a killed program has torn."""
        try:
            self._opened().load_collection(self.name)
        except MilvusException:
            if self._folder is None:
                raise
            self.close()
            with MilvusLite(str(self._folder)):  # which nobody else can open meanwhile
                milvus_files.remove_indexes(self._place())
            self._opened().load_collection(self.name)

    def _place(self) -> Path:
        assert self._folder is not None
        return self._folder / "collections" / self._stored

    def _opened(self) -> Any:
        if self._client is None:
            self._client = MilvusClient(**self._options)
        return self._client

    def _refused(self, came: str) -> AbstractContextManager[None]:
        if self._folder is None:
            expected = "a server of Milvus that answers, and a user and password it accepts"
        else:
            expected = "a folder of Milvus Lite 3, which no other program has open"
        return refused_as(repr(self.shown), came, expected)


def _check(folder: Path, shown: str) -> None:
    if folder.is_file():
        raise SourceError(
            f"{shown!r} is a file of Milvus Lite 2; expected a folder, as Milvus Lite 3 has; "
            "copy its collections into one"
        )
    if not (folder / "collections").is_dir():
        raise SourceError(
            f"{shown!r}: there is no store; expected the folder of Milvus Lite 3, FILE.db"
        )
