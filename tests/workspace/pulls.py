"""Records for tests of pulling, and what a workspace has of them."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import operations
from erasable.core import _arrow_files as arrow_files
from erasable.workspace.context import Context
from erasable.workspace.data import admission, catalogue, datasets, fragments, pulling
from erasable.workspace.data.sources import Source

SCHEMA = pa.schema(
    [("visit", pa.string()), ("patient", pa.string()), ("doctor", pa.string()),
     ("age", pa.int64()), ("dose", pa.float64()), ("note", pa.string())]
)  # fmt: skip
SUBJECTS = [("patient", "id"), ("doctor", "id")]
Row = dict[str, Any]


def record(number: int, draw: random.Random, who: str = "marker") -> Row:
    return {
        "visit": f"v{number}",
        "patient": draw.choice([None, *(f"{who}-{i}" for i in range(12))]),
        "doctor": draw.choice([None, f"{who}-doctor-1", f"{who}-doctor-2"]),
        "age": draw.choice([None, 20, 30, 40]),
        "dose": draw.choice([None, 0.5, 2.0]),
        "note": draw.choice([None, "", "well"]),
    }


def records(n: int, seed: int = 0, start: int = 0) -> list[Row]:
    draw = random.Random(seed)
    return [record(i, draw) for i in range(start, start + n)]


def put(folder: Path, *parts: list[Row], schema: pa.Schema = SCHEMA) -> Source:
    """Write each part into a file of its own."""
    for number, part in enumerate(parts):
        path = folder / f"{number}.parquet"
        path.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.Table.from_pylist(part, schema), path, row_group_size=5)
    return Source.parse(str(folder))


def add(context: Context, source: Source, name: str = "visits") -> datasets.DatasetChange:
    return operations.add(context, name, source, id_column="visit", subjects=SUBJECTS)


@contextmanager
def small(at_once: int = 3, held: int = 400, each: int = 4) -> Iterator[None]:
    """Have few records go to the disk, and into many buckets."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(arrow_files, "_AT_ONCE", at_once + 2)
        patch.setattr(pulling, "_AT_ONCE", at_once)
        patch.setattr(pulling, "_HELD", held)
        patch.setattr(fragments, "_RECORDS_EACH", each)
        patch.setattr(admission, "_LATELY", 5)
        yield


def contents(context: Context, name: str = "visits") -> dict[int, list[str]]:
    """Return the hashes of the fragments of the newest version, by bucket."""
    found: dict[int, list[str]] = {}
    with context.ledger.reading() as connection:
        known = catalogue.find(connection, name)
        for part in catalogue.fragment_rows(connection, known.id, known.version):
            found.setdefault(part.bucket, []).append(part.sha256)
    return found


def rows(context: Context, name: str = "visits") -> dict[str, Row]:
    with context.ledger.reading() as connection:
        table = catalogue.read_version(context, connection, catalogue.find(connection, name).id)
    return {row["visit"]: row for row in table.to_pylist()}


def as_kept(context: Context, row: Row) -> Row:
    """Return a record as a data set has it."""
    tokens = {
        column: None if row[column] is None else context.keys.token("id", row[column])
        for column, _ in SUBJECTS
    }
    return {**row, **tokens}


def nothing_beside(context: Context) -> None:
    """Hold that there is no scratch, and no file that the ledger does not know."""
    scratch = context.root / "scratch"
    assert not scratch.exists() or not list(scratch.iterdir())
    with context.ledger.reading() as connection:
        kept = {
            part.key
            for known in catalogue.all_datasets(connection)
            for part in catalogue.fragment_rows(connection, known.id)
        }
    assert set(context.store.list()) == kept


NAMES = iter(range(10**6))
"""No data set has the name of another, in a workspace that tests share."""
