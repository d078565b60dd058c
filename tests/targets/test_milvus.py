"""Collections of Milvus Lite as targets."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("milvus_lite", reason="Milvus is optional")
pytest.importorskip("pymilvus", reason="Milvus is optional")

import numpy as np
import pyarrow.parquet as pq
from apart import answer_apart
from corpus import (
    MANY,
    ONE,
    SOME,
    VECTORS,
    WIDTH,
    N,
    data_of,
    email,
    text,
    there,
)
from milvus_lite import MilvusLite, server_manager_instance
from pymilvus import DataType, MilvusClient
from refusals import refused

from erasable.workspace.targets import milvus
from erasable.workspace.targets.milvus import MilvusTarget
from erasable.workspace.targets.protocol import Settings, Subject
from erasable.workspace.targets.verdicts import NOT_PROVED, PURGED
from people import erased

pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
SETTINGS = Settings((Subject("user", "email"),))


def key(at: int) -> str:
    """Return the primary key of a record."""
    return f"key-{at:06d}"


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """Make a collection with an index, a dynamic field and two flushes."""
    folder = tmp_path / "m.db"
    client = MilvusClient(str(folder))
    schema = client.create_schema(auto_id=False, enable_dynamic_field=True)
    schema.add_field("id", DataType.VARCHAR, is_primary=True, max_length=40)
    schema.add_field("user", DataType.VARCHAR, max_length=80)
    schema.add_field("vector", DataType.FLOAT_VECTOR, dim=WIDTH)
    indexes = client.prepare_index_params()
    indexes.add_index("vector", index_type="HNSW", metric_type="COSINE", params={"M": 8})
    client.create_collection("docs", schema=schema, index_params=indexes)
    for half in (range(N // 2), range(N // 2, N)):
        client.insert("docs", [record(at) for at in half])
        client.flush("docs")
    client.close()
    server_manager_instance.release_server(str(folder))
    return folder


def record(at: int) -> dict[str, Any]:
    """Return a record; its text is a dynamic field."""
    return {"id": key(at), "user": email(at), "vector": VECTORS[at], "text": text(at)}


READS = """
import json, sys
from milvus_lite import MilvusLite
with MilvusLite(sys.argv[1]) as kept:
    found = kept.get_collection("docs")
    found.load()
    rows = found.query("id != ''", output_fields=["*"], limit=10_000)
    near = found.search([rows[0]["vector"]], top_k=1)
print(json.dumps([rows, near[0][0]["id"]], default=float))
"""


def read(folder: Path) -> dict[str, Any]:
    """Read a collection in another process; a record has to be found by its own vector."""
    rows, near = answer_apart(READS, folder)
    assert near == rows[0]["id"]
    return {row["id"]: row for row in rows}


def left(folder: Path, gone: list[int]) -> tuple[int, int, int]:
    """Count vectors, texts and keys that any file has, those of tables decoded."""
    parts = data_of([folder])
    for path in folder.rglob("*.parquet"):
        table = pq.read_table(path)
        columns = table.drop_columns([name for name in table.column_names if name == "vector"])
        parts.append(json.dumps(columns.to_pydict(), default=str).encode())
        if "vector" in table.column_names:
            vectors = np.array(table["vector"].to_pylist(), dtype="<f4")
            parts.append(vectors.tobytes())
    return (
        there(parts, [VECTORS[at].tobytes() for at in gone]),
        there(parts, [text(at).encode() for at in gone]),
        there(parts, [key(at).encode() for at in gone]),
    )


@pytest.mark.parametrize("gone", [ONE, SOME, MANY], ids=["0.05%", "5%", "15%"])
def test_the_files_keep_nothing_of_those_who_left(store: Path, gone: list[int]) -> None:
    before = read(store)
    assert left(store, gone) == (len(gone),) * 3
    with MilvusTarget(f"milvus:{store}#docs", SETTINGS) as target:
        plan, verdict = erased(target, *map(email, gone))
    assert verdict.reason is None
    assert plan.changed == {"docs": len(gone)}
    assert left(store, gone) == (0, 0, 0)
    stay = [at for at in range(N) if at not in set(gone)]
    assert left(store, stay[:50]) == (50, 50, 50)
    after = read(store)
    assert after == {key(at): before[key(at)] for at in stay}


def test_the_clean_up_that_is_documented_leaves_them(store: Path) -> None:
    """It is the control of the test above."""
    client = MilvusClient(str(store))
    client.delete("docs", ids=[key(at) for at in SOME])
    client.flush("docs")
    client.compact("docs")
    client.close()
    server_manager_instance.release_server(str(store))
    assert left(store, SOME) == (len(SOME),) * 3


def test_a_file_whose_records_all_leave(store: Path) -> None:
    """The first half of the records is one file."""
    before = read(store)
    gone = list(range(N // 2))
    with MilvusTarget(f"milvus:{store}#docs", SETTINGS) as target:
        erased(target, *map(email, gone))
    assert left(store, gone) == (0, 0, 0)
    assert read(store) == {key(at): before[key(at)] for at in range(N // 2, N)}


def test_earlier_versions_leave_as_well(store: Path) -> None:
    client = MilvusClient(str(store))
    client.upsert("docs", [record(7) | {"text": "another text of this person"}])
    client.close()
    server_manager_instance.release_server(str(store))
    with MilvusTarget(f"milvus:{store}#docs", SETTINGS) as target:
        erased(target, email(7))
    assert left(store, [7]) == (0, 0, 0)


def test_snapshots_keep_records(store: Path) -> None:
    with MilvusLite(str(store)) as kept:
        kept.create_snapshot("docs", "monday")
    with MilvusTarget(f"milvus:{store}#docs", SETTINGS) as target:
        _, verdict = erased(target, email(7))
    assert verdict.word == NOT_PROVED
    assert verdict.reason is not None
    assert "1 snapshots of the collection keep records" in verdict.reason


@pytest.mark.parametrize("share", [0.0, 0.5])
def test_an_index_that_a_killed_program_has_torn(store: Path, share: float) -> None:
    read(store)  # which writes the indexes
    torn = sorted(store.glob("collections/docs/partitions/*/indexes/*"))
    assert torn
    for index in torn:
        os.truncate(index, int(share * index.stat().st_size))
    with pytest.raises(AssertionError):
        read(store)
    _, verdict = erased(MilvusTarget(f"milvus:{store}#docs", SETTINGS), *map(email, SOME))
    assert verdict.word == PURGED
    assert read(store).keys() == {key(at) for at in range(N)} - {key(at) for at in SOME}


def test_logs_of_a_killed_program_are_read_once(store: Path, tmp_path: Path) -> None:
    """One whose changes are in files is removed: they would be written again, in their place."""
    killed = tmp_path / "killed.db"
    logs = "collections/docs/wal"
    with MilvusLite(str(store)) as kept:
        docs = kept.get_collection("docs")
        docs.delete([key(3)])
        shutil.copytree(store / logs, tmp_path / "ended")
        docs.flush()
        docs.delete([key(4)])
        shutil.copytree(store, killed)
    (_,) = (killed / logs).iterdir()
    shutil.copytree(tmp_path / "ended", killed / logs, dirs_exist_ok=True)
    ended = {path.name for path in (tmp_path / "ended").iterdir()}
    assert ended
    with MilvusTarget(f"milvus:{killed}#docs", SETTINGS) as target:
        assert not ended & {path.name for path in (killed / logs).iterdir()}
        found = {each for batch in target.batches() for each in batch.keys}
    assert found == {key(at) for at in range(N)} - {key(3), key(4)}


def test_an_alias_stands_for_the_collection(store: Path) -> None:
    with MilvusLite(str(store)) as kept:
        kept.create_alias("docs", "notes")
    with MilvusTarget(f"milvus:{store}#notes", SETTINGS) as target:
        plan, _ = erased(target, email(7))
    assert plan.changed == {"notes": 1}
    assert left(store, [7]) == (0, 0, 0)


def test_a_collection_that_another_program_has_open(store: Path) -> None:
    with (
        MilvusLite(str(store)),
        refused(r"could not be opened .*no other program has open"),
    ):
        MilvusTarget(f"milvus:{store}#docs", SETTINGS)


def test_there_is_no_collection(store: Path) -> None:
    with refused(r"no collection 'notes'; expected one of: 'docs'"):
        MilvusTarget(f"milvus:{store}#notes", SETTINGS)


def test_there_is_no_store(tmp_path: Path) -> None:
    with refused("there is no store; expected the folder"):
        MilvusTarget(f"milvus:{tmp_path / 'none.db'}#docs", SETTINGS)
    assert not list(tmp_path.iterdir())


def test_a_file_of_milvus_lite_2(tmp_path: Path) -> None:
    (tmp_path / "old.db").write_bytes(b"SQLite format 3\0")
    with refused("a file of Milvus Lite 2; expected a folder"):
        MilvusTarget(f"milvus:{tmp_path / 'old.db'}#docs", SETTINGS)


def test_no_record_has_the_subject(store: Path) -> None:
    with refused("no record of 'docs' has the field 'owner'"):
        MilvusTarget(f"milvus:{store}#docs", Settings((Subject("owner", "email"),)))


def test_a_server_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(milvus, "_CONNECTING", 1)
    with refused(r"could not be opened .*a user and password"):
        MilvusTarget("milvus+http://ann:geheim@127.0.0.1:1/shop#docs", SETTINGS)
