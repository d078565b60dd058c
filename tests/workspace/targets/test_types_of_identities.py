"""Identities of each type, as each kind of place keeps them."""

from __future__ import annotations

import csv
import json
import sqlite3
import uuid
from collections.abc import Callable
from contextlib import closing
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from erasable.workspace import Workspace
from erasable.workspace.evidence import receipts
from erasable.workspace.targets.verdicts import NOTHING, PURGED

N = 24
UUIDS = [str(uuid.UUID(int=(i + 1) * 0x1234_5678_9ABC_DEF0_1234_5678_9ABC)) for i in range(N)]
PHONES = [f"+41 44 668 {i:02} {i:02}" for i in range(N)]

TYPES: dict[str, tuple[list[Any], Callable[[Any], Any]]] = {
    "integer": ([7_000_100 + i for i in range(N)], lambda value: f"0{value}"),
    "integer of texts": ([f"00{7_000_100 + i}" for i in range(N)], int),
    "id": ([f"user/{i:06}" for i in range(N)], lambda value: f" {value} "),
    "id of a uuid": (UUIDS, str),
    "exact": ([f"Ann-{i:05}" for i in range(N)], str),
    "phone": (PHONES, lambda value: "tel:" + value.replace(" ", "-")),
    "phone:CH": ([each.replace("+41 ", "0") for each in PHONES], lambda v: f"+41{v[1:]}"),
}
"""Of each type: how a place has identities, and how the person of one asks."""


def _csv(folder: Path, rows: list[dict[str, Any]]) -> tuple[str, str]:
    with (folder / "a.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, ["who", "text"])
        writer.writeheader()
        writer.writerows(rows)
    return str(folder), "who"


def _parquet(folder: Path, rows: list[dict[str, Any]]) -> tuple[str, str]:
    pq.write_table(pa.Table.from_pylist(rows), folder / "a.parquet")
    return str(folder), "who"


def _json(folder: Path, rows: list[dict[str, Any]]) -> tuple[str, str]:
    (folder / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(folder), "who"


def _sqlite(folder: Path, rows: list[dict[str, Any]]) -> tuple[str, str]:
    kind = "integer" if isinstance(rows[0]["who"], int) else "text"
    with closing(sqlite3.connect(folder / "a.db")) as base, base:
        base.execute(f"create table notes (n integer primary key, who {kind}, text text)")
        base.executemany("insert into notes (who, text) values (:who, :text)", rows)
    return f"sqlite:///{folder}/a.db", "notes.who"


def _chroma(folder: Path, rows: list[dict[str, Any]]) -> tuple[str, str]:
    import chromadb

    client = chromadb.PersistentClient(str(folder))
    made = client.create_collection("docs", embedding_function=None)
    made.add(
        ids=[f"note-{n:04}" for n in range(len(rows))], documents=[row["text"] for row in rows],
        embeddings=[[n + 0.25, 1.5 * n, -n - 0.125] for n in range(len(rows))],
        metadatas=[{"who": row["who"]} for row in rows],
    )  # fmt: skip
    client.close()
    return f"chroma:{folder}#docs", "who"


PLACES = {"csv": _csv, "parquet": _parquet, "json": _json, "sqlite": _sqlite, "chroma": _chroma}


def texts_of(kind: str, folder: Path) -> set[str]:
    """Return the texts that are left, by a reader of their own."""
    if kind == "csv":
        with (folder / "a.csv").open(newline="") as file:
            return {row["text"] for row in csv.DictReader(file)}
    if kind == "parquet":
        return {*pq.read_table(folder / "a.parquet")["text"].to_pylist()}
    if kind == "json":
        return {json.loads(line)["text"] for line in (folder / "a.jsonl").open()}
    if kind == "sqlite":
        with closing(sqlite3.connect(folder / "a.db")) as base:
            return {text for (text,) in base.execute("select text from notes")}
    import chromadb

    client = chromadb.PersistentClient(str(folder))
    found = {*client.get_collection("docs").get()["documents"]}
    client.close()
    return found


@pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.sampled(3)
@pytest.mark.parametrize("kind", PLACES)
@pytest.mark.parametrize("type_", TYPES)
def test_who_is_named_by_an_identity_of_a_type_is_erased(
    tmp_path: Path, kind: str, type_: str
) -> None:
    if kind == "chroma" and find_spec("chromadb") is None:
        pytest.skip("no client of Chroma to read with (extra: chroma)")
    given, asks = TYPES[type_]
    declared = type_.split()[0]
    rows = [{"who": given[n % N], "text": f"what number {n} has said, {n * 7919}"}
            for n in range(2 * N)]  # fmt: skip
    place, field = PLACES[kind](tmp_path, rows)
    workspace = Workspace.create(tmp_path.with_name(f"{tmp_path.name}-workspace"))
    workspace.add_target("place", place, [f"{field}:{declared}"])
    asked = workspace.request([asks(given[3]), asks(given[8])], type=declared.partition(":")[0])
    stranger = {"integer": 999, "phone": "+41 44 000 99 99"}.get(declared.partition(":")[0], "none")
    asked += workspace.request([stranger], type=declared.partition(":")[0])
    workspace.process()
    says = [receipts.show(workspace.receipt(each.id))["targets"][0] for each in asked]
    told = [(each["verdict"], each["records"] or 0, each["reason"]) for each in says]
    assert told == [(PURGED, 2, None), (PURGED, 2, None), (NOTHING, 0, None)]
    assert texts_of(kind, tmp_path) == {
        row["text"] for row in rows if row["who"] not in (given[3], given[8])
    }
    assert [each.n_records for each in workspace.check_target()] == [0]
