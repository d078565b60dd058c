"""Places of each kind of targets, small, with people who leave; each is read by its own client."""

from __future__ import annotations

import csv
import gzip
import json
import re
import shutil
import sqlite3
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Iterator
from contextlib import ExitStack, closing
from importlib import import_module
from pathlib import Path
from typing import Any
from urllib.parse import quote

import mariadb_server
import postgres_server
import pyarrow as pa
import pyarrow.parquet as pq
import target_stores
from corpus import data_of
from effects import FILES, SOCKETS
from lakes import texts_in
from target_stores import MAILS, STORES, TEXTS, VECTORS, WIDTH

from erasable.workspace.targets import kinds
from erasable.workspace.targets.protocol import Settings, Subject, Target

__all__ = ["GONE", "PLACES", "N", "Place", "Row"]

N = 120
GONE = [at for at in range(N) if at % 20 in (0, 7, 9)]

Row = tuple[int | None, Any]
"""Whose record it is, None of nobody's, and all of it."""


class Place(ABC):
    """A place of a kind of targets.

    Parameters
    ----------
    name : str
    folder : Path
        Where it may keep its files.
    """

    module: str  # of the target, and of its client
    calls: Collection[str] = FILES
    subject = Subject("mail", "email")
    cascade: tuple[str, ...] = ()
    is_coded = False  # files of Parquet and Avro
    has_vectors = True

    def __init__(self, name: str, folder: Path) -> None:
        self.name = name
        self.folder = folder / "now"
        self._made = folder / "made"

    @property
    def settings(self) -> Settings:
        """As a workspace opens a target."""
        return Settings((self.subject,), cascade=self.cascade, may_lack_subject=True)

    @property
    @abstractmethod
    def address(self) -> str:
        """The place as a target has it."""

    @abstractmethod
    def make(self) -> None:
        """Write the records; called once, in a process of its own."""

    @abstractmethod
    def read(self) -> list[Row]:
        """Return all records, by the place's own client, in an order of their own."""

    def opened(self) -> Target:
        """Open it as a target."""
        return kinds.opened(self.address, self.settings)

    def import_clients(self) -> None:
        """Import what forks need, but open nothing."""
        import_module(f"erasable.workspace.targets.{self.module}")

    def keep(self) -> None:
        """Keep what was made, for copies."""
        shutil.copytree(self.folder, self._made, symlinks=True)

    def renew(self) -> None:
        """Have everything as it was made."""
        shutil.rmtree(self.folder)
        shutil.copytree(self._made, self.folder, symlinks=True)

    def close(self) -> None:  # noqa: B027 - most places run nothing
        """Stop what runs."""

    def names(self) -> list[str]:
        """Return the names of all files or tables."""
        return [str(each.relative_to(self.folder)) for each in sorted(self.folder.rglob("*"))]

    def parts(self) -> list[bytes]:
        """Return what all files hold, not by code of the library."""
        coded = texts_in(self.folder).values() if self.is_coded else ()
        return [*data_of([self.folder]), *(each.encode("latin-1", "replace") for each in coded)]

    def has_files(self) -> bool:
        """Tell whether files can be looked through."""
        return True

    def left(self, people: Iterable[int]) -> int:
        """Count people of whom a file has something."""
        parts = self.parts()
        return sum(any(mark in part for part in parts for mark in self.marks(at)) for at in people)

    def marks(self, at: int) -> list[bytes]:
        """Return what files have of a person."""
        texts = [MAILS[at].encode(), TEXTS[at][:16].encode(), TEXTS[at][-16:].encode()]
        vectors = [VECTORS[at].tobytes()] if self.has_vectors else []
        return [*texts, *vectors]


class _Measured(Place):
    """A place as the benchmark of targets makes it."""

    def make(self) -> None:
        self.folder.mkdir()
        STORES[self.name].make(self.folder, N)

    @property
    def address(self) -> str:
        return STORES[self.name].place.format(folder=self.folder)

    def import_clients(self) -> None:
        super().import_clients()
        for each in STORES[self.name].clients:
            import_module(each)


def _of_table(table: pa.Table) -> list[Row]:
    return sorted((row["id"], tuple(map(str, row.values()))) for row in table.to_pylist())


# -- vector stores ---------------------------------------------------------------------------------


class _Chroma(_Measured):
    module = "chroma"

    def read(self) -> list[Row]:
        docs = import_module("chromadb").PersistentClient(str(self.folder / "chroma"))
        every = docs.get_collection("docs", embedding_function=None)
        found = every.get(include=["embeddings", "documents", "metadatas"])
        rows = zip(
            found["ids"], found["documents"], found["metadatas"], found["embeddings"], strict=True
        )
        near = every.query(query_embeddings=[VECTORS[1]], n_results=1)["ids"]
        assert near == [["doc-00001"]]
        return sorted(
            (int(id.removeprefix("doc-")), (text, data["mail"], vector.tobytes()))
            for id, text, data, vector in rows
        )


_OF_LANCE = r"/(data|_deletions)/[\w-]+\.(lance|arrow)$"


class _Lance(_Measured):
    module = "lance"

    def read(self) -> list[Row]:
        table = import_module("lancedb").connect(self.folder / "lance").open_table("docs")
        return _of_table(table.to_arrow())

    def names(self) -> list[str]:
        """Return names without those of parts: one that no version names may stay for days."""
        return [each for each in super().names() if not re.search(_OF_LANCE, each)]


class _Faiss(_Measured):
    module = "faiss"

    def read(self) -> list[Row]:
        faiss = import_module("faiss")
        index = faiss.read_index(str(self.folder / "docs.faiss"))
        lists = index.invlists
        ids = [
            each
            for at in range(lists.nlist)
            for each in faiss.rev_swig_ptr(lists.get_ids(at), lists.list_size(at)).tolist()
        ]
        index.set_direct_map_type(faiss.DirectMap.Hashtable)
        vectors = [(id, index.reconstruct(id).tobytes()) for id in ids]
        lines = (self.folder / "docs.faiss.jsonl").read_text().splitlines()
        return sorted([*vectors, *((json.loads(line)["id"], line.encode()) for line in lines)])


class _QdrantEdge(_Measured):
    module = "qdrant"

    def read(self) -> list[Row]:
        edge = import_module("qdrant_edge")
        shard = edge.EdgeShard.load(str(self.folder / "docs"))
        asked = edge.ScrollRequest(limit=10 * N, with_payload=True, with_vector=True)
        found, _ = shard.scroll(asked)
        shard.close()
        return sorted((each.id, (str(each.payload), str(each.vector))) for each in found)

    def names(self) -> list[str]:
        """Return names without those of whole segments, which may be more or fewer."""
        whole = [each.parent for each in self.folder.glob("docs/segments/*/version.info")]
        return [
            name
            for name in super().names()
            if not any((self.folder / name).is_relative_to(each) for each in whole)
        ]


class _QdrantLocal(Place):
    module = "qdrant"

    @property
    def address(self) -> str:
        return f"qdrant:{self.folder}#docs"

    def make(self) -> None:
        client, models = self._client()
        size = models.VectorParams(size=WIDTH, distance=models.Distance.DOT)
        client.create_collection("docs", vectors_config=size)
        points = [
            models.PointStruct(
                id=at, vector=VECTORS[at].tolist(), payload={"mail": MAILS[at], "text": TEXTS[at]}
            )
            for at in range(N)
        ]
        client.upsert("docs", points)
        client.close()

    def read(self) -> list[Row]:
        client, _ = self._client()
        found, _ = client.scroll("docs", limit=10 * N, with_payload=True, with_vectors=True)
        client.close()
        return sorted((each.id, (str(each.payload), str(each.vector))) for each in found)

    def _client(self) -> tuple[Any, Any]:
        module = import_module("qdrant_client")
        return module.QdrantClient(path=str(self.folder)), module.models


class _Milvus(_Measured):
    module = "milvus"
    is_coded = True

    def read(self) -> list[Row]:
        """Return the records of a copy without indexes, one of which a kill may have torn."""
        with tempfile.TemporaryDirectory() as folder:
            copied = shutil.copytree(self.folder / "milvus.db", Path(folder, "milvus.db"))
            for indexes in copied.rglob("indexes"):
                shutil.rmtree(indexes)
            client = import_module("pymilvus").MilvusClient(str(copied))
            client.load_collection("docs")
            found = client.query("docs", filter="id >= 0", output_fields=["*"], limit=10 * N)
            client.close()
        return sorted((row["id"], str(sorted(row.items()))) for row in found)


# -- files and lakes -------------------------------------------------------------------------------


_OF_DELTA = r"docs/(_delta_log/\d+\.json|part-[\w.-]+\.parquet(#\d+)?)"


class _Delta(_Measured):
    module = "delta"
    is_coded = True

    def read(self) -> list[Row]:
        table = import_module("deltalake").DeltaTable(str(self.folder / "docs"))
        return _of_table(pa.table(table.to_pyarrow_table()))

    def names(self) -> list[str]:
        """Return names without versions, and parts: one that nobody has committed may stay."""
        return [each for each in super().names() if not re.fullmatch(_OF_DELTA, each)]


class _Iceberg(_Measured):
    module = "iceberg"
    is_coded = True

    def read(self) -> list[Row]:
        table = target_stores._iceberg(self.folder).load_table("bench.docs")
        return _of_table(table.scan().to_arrow())


class _Files(Place):
    """Parquet, CSV, packed JSON lines, and a folder for each of some people."""

    module = "files"
    is_coded = True

    @property
    def address(self) -> str:
        return str(self.folder)

    def make(self) -> None:
        self.folder.mkdir()
        rows = [{"id": at, "mail": MAILS[at], "text": TEXTS[at]} for at in range(N)]
        for name, some in (("a", rows[:30]), ("b", rows[30:50])):
            pq.write_table(pa.Table.from_pylist(some), self.folder / f"{name}.parquet")
        with (self.folder / "c.csv").open("w", newline="") as file:
            writer = csv.DictWriter(file, list(rows[0]))
            writer.writeheader()
            writer.writerows(rows[50:80])
        lines = [json.dumps(row) + "\n" for row in rows[80:110]]
        (self.folder / "d.jsonl").write_text("".join(lines[:15]))
        (self.folder / "e.jsonl.gz").write_bytes(gzip.compress("".join(lines[15:]).encode()))
        for row in rows[110:]:
            own = self.folder / f"mail={quote(row['mail'])}"
            own.mkdir()
            (own / "f.csv").write_text(f"id,text\n{row['id']},{row['text']}\n")

    def read(self) -> list[Row]:
        return sorted((int(row["id"]), str(row)) for row in self._rows())

    def _rows(self) -> Iterator[dict[str, Any]]:
        for path in sorted(self.folder.rglob("[!.]*.*")):
            if path.suffix == ".parquet":
                yield from pq.ParquetFile(path).read().to_pylist()
            elif path.suffix == ".csv":
                with path.open(newline="") as file:
                    yield from ({**row, "of": path.parent.name} for row in csv.DictReader(file))
            elif path.is_file():
                data = path.read_bytes()
                data = gzip.decompress(data) if path.suffix == ".gz" else data
                yield from map(json.loads, data.splitlines())

    def parts(self) -> list[bytes]:
        packed = [gzip.decompress(each.read_bytes()) for each in self.folder.glob("*.gz")]
        names = [quote(name, safe="=@/").encode() for name in self.names()]
        return [*super().parts(), *packed, *names]


# -- databases -------------------------------------------------------------------------------------


class _Database(Place):
    """People, orders that leave with them, and notes that lose them."""

    module = "databases"
    subject = Subject("people.mail", "email")
    has_nulls = True
    binary = "blob"

    def statements(self) -> Iterator[tuple[str, list[tuple[Any, ...]]]]:
        """Return statements with the values of their rows."""
        on = "on delete cascade" if self.has_nulls else ""
        yield (
            "create table people (id integer primary key, mail varchar(80), body varchar(300), "
            f"vector {self.binary})",
            [],
        )
        yield (
            "create table orders (id integer primary key, who integer, "
            f"foreign key (who) references people (id) {on})",
            [],
        )
        who = "foreign key (who) references people (id) on delete set null"
        yield (
            "create table notes (id integer primary key, who integer, body varchar(80)"
            f"{', ' + who if self.has_nulls else ''})",
            [],
        )
        people = [(at, MAILS[at], TEXTS[at], VECTORS[at].tobytes()) for at in range(N)]
        yield "insert into people values (?, ?, ?, ?)", people
        yield "insert into orders values (?, ?)", [(at, at % N) for at in range(2 * N)]
        notes = [(at, at if self.has_nulls else None, f"note number {at}") for at in range(N)]
        yield "insert into notes values (?, ?, ?)", notes

    @abstractmethod
    def connected(self) -> Any:
        """Return a connection of the database's own client."""

    def filled(self, connection: Any, mark: str = "?") -> None:
        """Make the tables with their rows."""
        cursor = connection.cursor()
        for statement, rows in self.statements():
            if rows:
                cursor.executemany(statement.replace("?", mark), rows)
            else:
                cursor.execute(statement)
        connection.commit()

    def read(self) -> list[Row]:
        with closing(self.connected()) as connection:
            people, orders, notes = (
                self._rows(connection, f"select * from {name} order by id")
                for name in ("people", "orders", "notes")
            )
        own = [(row[0], ("people", row[0], row[1], row[2], bytes(row[3]))) for row in people]
        bought = [(row[1], ("orders", *row)) for row in orders]
        told = [(None, ("notes", row[0], row[2])) for row in notes]
        refer = [(row[1], ("refer", row[0])) for row in notes if row[1] is not None]
        return [*own, *bought, *told, *refer]

    def _rows(self, connection: Any, query: str) -> list[Any]:
        cursor = connection.cursor()
        cursor.execute(query)
        return list(cursor.fetchall())


class _Sqlite(_Database):
    @property
    def address(self) -> str:
        return f"sqlite:///{self.folder}/docs.db"

    def connected(self) -> Any:
        return sqlite3.connect(self.folder / "docs.db")

    def make(self) -> None:
        self.folder.mkdir()
        with closing(self.connected()) as connection:
            self.filled(connection)


class _SqliteWithLog(_Sqlite):
    def make(self) -> None:
        super().make()
        with closing(self.connected()) as connection:
            connection.execute("pragma journal_mode = wal")


class _DuckDB(_Database):
    has_nulls = False
    cascade = ("orders",)

    @property
    def address(self) -> str:
        return f"duckdb:///{self.folder}/docs.duckdb"

    def import_clients(self) -> None:
        super().import_clients()
        import_module("erasable.workspace.targets.duckdb_file")
        import_module("duckdb_engine")

    def connected(self) -> Any:
        return import_module("duckdb").connect(str(self.folder / "docs.duckdb"))

    def make(self) -> None:
        self.folder.mkdir()
        with closing(self.connected()) as connection:
            self.filled(connection)


class _Server(_Database):
    """A database of a server, which lives; its client is killed."""

    calls = SOCKETS

    def __init__(self, name: str, folder: Path) -> None:
        super().__init__(name, folder)
        self._running = ExitStack()

    def close(self) -> None:
        self._running.close()

    def keep(self) -> None:
        """Keep nothing: it is made again."""

    def renew(self) -> None:
        self.make()

    def names(self) -> list[str]:
        query = (
            "select table_schema, table_name from information_schema.tables where table_schema "
            "not in ('mysql', 'sys', 'performance_schema') order by 1, 2"
        )
        with closing(self.connected()) as connection:
            return [f"{schema}.{table}" for schema, table in self._rows(connection, query)]

    def parts(self) -> list[bytes]:
        """Return nothing: its files are its own."""
        return []

    def has_files(self) -> bool:
        return False


class _Postgres(_Server):
    binary = "bytea"

    def __init__(self, name: str, folder: Path) -> None:
        super().__init__(name, folder)
        self._server = self._running.enter_context(postgres_server.running())

    @property
    def address(self) -> str:
        return self._server.url("shop")

    def import_clients(self) -> None:
        super().import_clients()
        import_module("psycopg")

    def connected(self, database: str = "shop") -> Any:
        connect = import_module("psycopg").connect
        return connect(self._server.url(database), autocommit=database != "shop")

    def make(self) -> None:
        with closing(self.connected("postgres")) as connection:
            connection.execute("drop database if exists shop with (force)")
            connection.execute("create database shop")
        with closing(self.connected()) as connection:
            self.filled(connection, "%s")


class _MariaDB(_Server):
    def __init__(self, name: str, folder: Path) -> None:
        super().__init__(name, folder)
        self._socket = self._running.enter_context(mariadb_server.running())

    @property
    def address(self) -> str:
        return f"mysql+pymysql://root@/shop?unix_socket={quote(str(self._socket), safe='')}"

    def import_clients(self) -> None:
        super().import_clients()
        import_module("pymysql")

    def connected(self, database: str | None = "shop") -> Any:
        connect = import_module("pymysql").connect
        return connect(unix_socket=str(self._socket), user="root", database=database)

    def make(self) -> None:
        with closing(self.connected(None)) as connection:
            cursor = connection.cursor()
            cursor.execute("drop database if exists shop")
            cursor.execute("create database shop")
        with closing(self.connected()) as connection:
            self.filled(connection, "%s")


class _Redis(Place):
    """Keys of a server with an append-only file; its client is killed."""

    module = "redis"
    calls = SOCKETS

    def __init__(self, name: str, folder: Path) -> None:
        super().__init__(name, folder)
        server = import_module("redis_server").RedisServer
        self._server = server(self.folder, "--appendonly", "yes", "--rdbcompression", "no")

    @property
    def address(self) -> str:
        return str(self._server.place())

    def close(self) -> None:
        self._server.close()

    def make(self) -> None:
        client = self._server.client
        client.flushall()
        client.config_set("rdbcompression", "no")
        for at in range(N):
            held = {"mail": MAILS[at], "text": TEXTS[at], "vector": VECTORS[at].tobytes()}
            client.hset(f"doc:{at}", mapping=held)
            client.set(f"other:{at}", f"number {at}")
        client.save()

    def keep(self) -> None:
        """Keep nothing: it is made again."""

    def renew(self) -> None:
        self.make()

    def read(self) -> list[Row]:
        return sorted(
            (int(key.partition(b":")[2]) if key.startswith(b"doc:") else -1, (key, str(held)))
            for key, held in self._server.kept().items()
        )


PLACES: dict[str, type[Place]] = {
    "sqlite": _Sqlite, "sqlite-log": _SqliteWithLog, "duckdb": _DuckDB, "postgres": _Postgres,
    "mariadb": _MariaDB, "redis": _Redis, "files": _Files, "delta": _Delta, "iceberg": _Iceberg,
    "chroma": _Chroma, "lancedb": _Lance, "faiss": _Faiss, "qdrant": _QdrantEdge,
    "qdrant-local": _QdrantLocal, "milvus": _Milvus,
}  # fmt: skip
