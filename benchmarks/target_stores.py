"""Stores of the benchmark of targets: one corpus, written, deleted from and cleaned by its client.

A step runs in a process of its own: ``python benchmarks/target_stores.py STORE STEP FOLDER N``.
"""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from datetime import timedelta
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

N, WIDTH = 2_000, 64
_RANDOM = np.random.default_rng(42)
VECTORS = _RANDOM.normal(size=(N, WIDTH)).astype(np.float32)
_WORDS = np.array(["river", "stone", "window", "garden", "letter", "morning", "copper", "engine"])
MAILS = [f"person{at:05}.{_RANDOM.bytes(4).hex()}@example.org" for at in range(N)]
TEXTS = [
    " ".join([_RANDOM.bytes(8).hex(), *_RANDOM.choice(_WORDS, 12), _RANDOM.bytes(8).hex()])
    for _ in range(N)
]
_N_PARTS = 4


def leaving(n: int) -> list[int]:
    """Return which records leave."""
    return sorted(np.random.default_rng(3).choice(N, n, replace=False).tolist())


@dataclass(frozen=True)
class Store:
    """A store as the benchmark uses it."""

    title: str
    clients: tuple[str, ...]  # modules that have to be there
    make: Callable[[Path, int], None]  # writes so many records
    delete: Callable[[Path, list[int]], None]  # its own deletion
    clean: Callable[[Path], None] | None  # what its documentation says to do then
    cleaning: str  # what that is
    place: str  # of the target, with {folder}
    field: str  # of the subject
    type: str = "email"
    has_texts: bool = True


def _table(rows: list[int]) -> pa.Table:
    vectors = pa.FixedSizeListArray.from_arrays(pa.array(VECTORS[rows].ravel()), WIDTH)
    return pa.table({
        "id": pa.array(rows, pa.int64()), "mail": [MAILS[at] for at in rows],
        "text": [TEXTS[at] for at in rows], "vector": vectors,
    })  # fmt: skip


def _lists(rows: list[int]) -> pa.Table:
    """Return the table for stores without lists of a fixed size."""
    table = _table(rows)
    vectors = table["vector"].combine_chunks().to_pylist()
    return table.set_column(3, "vector", pa.array(vectors, pa.list_(pa.float32())))


def _among(rows: list[int]) -> str:
    return "mail in (" + ", ".join(f"'{MAILS[at]}'" for at in rows) + ")"


def _parts(n: int) -> list[range]:
    step = n // _N_PARTS
    return [range(at, at + step) for at in range(0, n, step)]


# -- vector stores ---------------------------------------------------------------------------------


def _chroma(folder: Path) -> Any:
    client = import_module("chromadb").PersistentClient(str(folder / "chroma"))
    return client.get_or_create_collection("docs")


def _make_chroma(folder: Path, n: int) -> None:
    docs = _chroma(folder)
    for part in _parts(n):
        docs.add(
            ids=[f"doc-{at:05}" for at in part], embeddings=VECTORS[part.start : part.stop],
            documents=[TEXTS[at] for at in part], metadatas=[{"mail": MAILS[at]} for at in part],
        )  # fmt: skip


def _delete_chroma(folder: Path, rows: list[int]) -> None:
    _chroma(folder).delete(ids=[f"doc-{at:05}" for at in rows])


def _clean_chroma(folder: Path) -> None:
    command = [str(Path(sys.executable).with_name("chroma")), "vacuum", "--force", "--path"]
    subprocess.run([*command, str(folder / "chroma")], check=True, stdout=subprocess.DEVNULL)


def _lance(folder: Path) -> Any:
    return import_module("lancedb").connect(folder / "lance").open_table("docs")


def _make_lance(folder: Path, n: int) -> None:
    import_module("lancedb").connect(folder / "lance").create_table("docs", _table(list(range(n))))


def _delete_lance(folder: Path, rows: list[int]) -> None:
    _lance(folder).delete(_among(rows))


def _clean_lance(folder: Path) -> None:
    _lance(folder).optimize(cleanup_older_than=timedelta(0))


def _make_faiss(folder: Path, n: int) -> None:
    faiss = import_module("faiss")
    index = faiss.IndexIVFFlat(faiss.IndexFlatL2(WIDTH), WIDTH, 16)
    index.train(VECTORS[:n])
    index.add_with_ids(VECTORS[:n], np.arange(n))
    faiss.write_index(index, str(folder / "docs.faiss"))
    lines = (json.dumps({"id": at, "mail": MAILS[at], "text": TEXTS[at]}) for at in range(n))
    (folder / "docs.faiss.jsonl").write_text("".join(f"{line}\n" for line in lines))


def _delete_faiss(folder: Path, rows: list[int]) -> None:
    faiss = import_module("faiss")
    index = faiss.read_index(str(folder / "docs.faiss"))
    index.remove_ids(np.array(rows, dtype=np.int64))
    faiss.write_index(index, str(folder / "docs.faiss"))


def _qdrant(folder: Path) -> Any:
    return import_module("qdrant_edge").EdgeShard.load(str(folder / "docs"))


def _make_qdrant(folder: Path, n: int) -> None:
    edge = import_module("qdrant_edge")
    (folder / "docs").mkdir()
    vectors = edge.EdgeVectorParams(size=WIDTH, distance=edge.Distance.Dot)
    shard = edge.EdgeShard.create(str(folder / "docs"), edge.EdgeConfig(vectors=vectors))
    for part in _parts(n):
        points = [
            edge.Point(
                id=at, vector=VECTORS[at].tolist(), payload={"mail": MAILS[at], "text": TEXTS[at]}
            )
            for at in part
        ]
        shard.update(edge.UpdateOperation.upsert_points(points))
    shard.flush()
    shard.close()


def _delete_qdrant(folder: Path, rows: list[int]) -> None:
    shard = _qdrant(folder)
    shard.update(import_module("qdrant_edge").UpdateOperation.delete_points(rows))
    shard.flush()
    shard.close()


def _clean_qdrant(folder: Path) -> None:
    shard = _qdrant(folder)
    shard.optimize()
    shard.flush()
    shard.close()


def _milvus(folder: Path) -> Any:
    return import_module("pymilvus").MilvusClient(str(folder / "milvus.db"))


def _make_milvus(folder: Path, n: int) -> None:
    client = _milvus(folder)
    client.create_collection("docs", dimension=WIDTH, metric_type="L2")
    for part in _parts(n):
        rows = [
            {"id": at, "vector": VECTORS[at].tolist(), "mail": MAILS[at], "text": TEXTS[at]}
            for at in part
        ]
        client.insert("docs", rows)
    client.flush("docs")
    client.close()


def _delete_milvus(folder: Path, rows: list[int]) -> None:
    client = _milvus(folder)
    client.delete("docs", ids=rows)
    client.flush("docs")
    client.close()


def _clean_milvus(folder: Path) -> None:
    client = _milvus(folder)
    client.load_collection("docs")
    client.compact("docs")
    client.close()


# -- lakes and databases ---------------------------------------------------------------------------


def _make_delta(folder: Path, n: int) -> None:
    write = import_module("deltalake").write_deltalake
    for part in _parts(n):
        write(str(folder / "docs"), _lists(list(part)), mode="append")


def _delete_delta(folder: Path, rows: list[int]) -> None:
    import_module("deltalake").DeltaTable(str(folder / "docs")).delete(_among(rows))


def _clean_delta(folder: Path) -> None:
    table = import_module("deltalake").DeltaTable(str(folder / "docs"))
    table.optimize.compact()
    table.vacuum(dry_run=False)


def _iceberg(folder: Path) -> Any:
    catalog = import_module("pyiceberg.catalog.sql").SqlCatalog(
        "bench", uri=f"sqlite:///{folder}/catalog.db", warehouse=f"file://{folder}/warehouse"
    )
    catalog.create_namespace_if_not_exists("bench")
    return catalog


def _make_iceberg(folder: Path, n: int) -> None:
    table = _iceberg(folder).create_table("bench.docs", _lists([0]).schema)
    for part in _parts(n):
        table.append(_lists(list(part)))


def _delete_iceberg(folder: Path, rows: list[int]) -> None:
    of = import_module("pyiceberg.expressions")
    table = _iceberg(folder).load_table("bench.docs")
    table.delete(of.In("mail", {MAILS[at] for at in rows}))


def _clean_iceberg(folder: Path) -> None:
    table = _iceberg(folder).load_table("bench.docs")
    last = table.current_snapshot().snapshot_id
    old = [each.snapshot_id for each in table.snapshots() if each.snapshot_id != last]
    table.maintenance.expire_snapshots().by_ids(old).commit()


def _make_files(folder: Path, n: int) -> None:
    parquet = import_module("pyarrow.parquet")
    (folder / "docs").mkdir()
    for at, part in enumerate(_parts(n)):
        parquet.write_table(_lists(list(part)), folder / "docs" / f"part-{at}.parquet")


def _delete_files(folder: Path, rows: list[int]) -> None:
    parquet, compute = import_module("pyarrow.parquet"), import_module("pyarrow.compute")
    gone = pa.array([MAILS[at] for at in rows])
    for path in sorted((folder / "docs").iterdir()):
        table = parquet.read_table(path)
        keep = compute.invert(compute.is_in(table["mail"], gone))
        parquet.write_table(table.filter(keep), path)


def _make_sqlite(folder: Path, n: int) -> None:
    with closing(sqlite3.connect(folder / "docs.db")) as connection, connection:
        connection.execute(
            "create table docs (id integer primary key, mail text, text text, vector blob)"
        )
        rows = ((at, MAILS[at], TEXTS[at], VECTORS[at].tobytes()) for at in range(n))
        connection.executemany("insert into docs values (?, ?, ?, ?)", rows)


def _delete_sqlite(folder: Path, rows: list[int]) -> None:
    with closing(sqlite3.connect(folder / "docs.db")) as connection, connection:
        connection.execute("pragma secure_delete = off").fetchall()
        connection.executemany("delete from docs where id = ?", [(at,) for at in rows])


def _clean_sqlite(folder: Path) -> None:
    with closing(sqlite3.connect(folder / "docs.db", isolation_level=None)) as connection:
        connection.execute("vacuum")


STORES = {
    "chroma": Store(
        "Chroma", ("chromadb",), _make_chroma, _delete_chroma, _clean_chroma, "`chroma vacuum`",
        "chroma:{folder}/chroma#docs", "mail",
    ),
    "lancedb": Store(
        "LanceDB", ("lancedb",), _make_lance, _delete_lance, _clean_lance,
        "`optimize(cleanup_older_than=0)`", "lancedb:{folder}/lance#docs", "mail",
    ),
    "faiss": Store(
        "FAISS, IVF", ("faiss",), _make_faiss, _delete_faiss, None, "none",
        "faiss:{folder}/docs.faiss", "mail",
    ),
    "qdrant": Store(
        "Qdrant Edge", ("qdrant_edge", "qdrant_client"), _make_qdrant, _delete_qdrant,
        _clean_qdrant, "`optimize()`", "qdrant:{folder}#docs", "mail",
    ),
    "milvus": Store(
        "Milvus Lite", ("pymilvus", "milvus_lite"), _make_milvus, _delete_milvus, _clean_milvus,
        "`compact()`", "milvus:{folder}/milvus.db#docs", "mail",
    ),
    "delta": Store(
        "Delta Lake", ("deltalake",), _make_delta, _delete_delta, _clean_delta,
        "`optimize.compact()`, `vacuum()`", "delta:{folder}/docs", "mail",
    ),
    "iceberg": Store(
        "Iceberg", ("pyiceberg",), _make_iceberg, _delete_iceberg, _clean_iceberg,
        "`expire_snapshots()`", "iceberg:sqlite:///{folder}/catalog.db#bench.docs", "mail",
    ),
    "files": Store(
        "Parquet files", ("pyarrow",), _make_files, _delete_files, None, "none",
        "{folder}/docs", "mail",
    ),
    "sqlite": Store(
        "SQLite", ("sqlalchemy",), _make_sqlite, _delete_sqlite, _clean_sqlite, "`vacuum`",
        "sqlite:///{folder}/docs.db", "docs.mail",
    ),
}  # fmt: skip


OURS = tuple(f"erasable.workspace.targets.{name}" for name in ("kinds", "protocol", "steps"))


class _Leaving:
    """People who leave, by their addresses."""

    def __init__(self, rows: list[int]) -> None:
        self._mails = {MAILS[at] for at in rows}

    def among(self, values: Any, subject: Any) -> dict[Any, str]:
        """Return the values that name one of them."""
        return {value: value for value in values if value in self._mails}


def erase(store: Store, folder: Path, rows: list[int]) -> dict[str, Any]:
    kinds, protocol, steps = map(import_module, OURS)
    settings = protocol.Settings((protocol.Subject(store.field, store.type),))
    plan = protocol.Plan()
    with kinds.opened(store.place.format(folder=folder), settings) as target:
        verdict = steps.erase(target, _Leaving(rows), plan)
    return {"word": verdict.word, "reason": verdict.reason, "people": len(plan.n_records)}


def main() -> None:
    """Run a step, and print its seconds and what it returned."""
    name, step, folder, n = sys.argv[1:]
    store, rows = STORES[name], leaving(int(n))
    for module in (*store.clients, *OURS) if step == "erase" else store.clients:
        import_module(module)
    begun = time.perf_counter()
    told = None
    if step == "make":
        store.make(Path(folder), N)
    elif step == "delete":
        store.delete(Path(folder), rows)
    elif step == "clean" and store.clean is not None:
        store.clean(Path(folder))
    elif step == "erase":
        told = erase(store, Path(folder), rows)
    print(json.dumps({"seconds": time.perf_counter() - begun, "told": told}))


if __name__ == "__main__":
    main()
