"""Ids and values that neither floats nor signed integers hold: corrected, erased, appended."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from erasable.workspace import Workspace
from erasable.workspace.data.catalogue import find, read_version

MODELS = {
    "bayes": "naive_bayes.GaussianNB",
    "near": "neighbors.KNeighborsClassifier",
    "other": "sklearn.tree.DecisionTreeClassifier",
    "ridge": "linear_model.Ridge",
}


def made(
    first: int, kind: pa.DataType, start: int = 0, n: int = 20, *, right: int | None = None
) -> pa.Table:
    at = range(start, start + n)
    return pa.table(
        {
            "id": pa.array([first + i for i in at], kind),
            "who": [f"p{i}" for i in at],
            "big": pa.array([first + 7 * i if i != right else first for i in at], kind),
            "x": [float(i) for i in at],
            "y": [i % 2 for i in at],
        }
    )


def add(folder: Path, name: str, rows: pa.Table) -> Workspace:
    workspace = Workspace.create(folder / name)
    pq.write_table(rows, folder / f"{name}.parquet")
    workspace.add_dataset("d", folder / f"{name}.parquet", id_column="id", subjects=["who"])
    for model, kind in MODELS.items():
        workspace.fit(model, kind, datasets=["d"], features=["x", "big"], target="y")
    return workspace


def contents(workspace: Workspace) -> Any:
    with workspace.context.ledger.reading() as connection:
        whole = read_version(workspace.context, connection, find(connection, "d").id)
    return whole.drop_columns(["who"]).sort_by("id").to_pydict()


@pytest.mark.parametrize(
    ("first", "kind"),
    [(2**53 + 1, pa.int64()), (2**63 + 1, pa.uint64()), (2**64 - 200, pa.uint64()),
     (-(2**63), pa.int64())],
)  # fmt: skip
def test_large_whole_numbers_are_corrected_and_erased(
    tmp_path: Path, first: int, kind: pa.DataType
) -> None:
    workspace = add(tmp_path, "ws", made(first, kind))
    workspace.correct("d", ids=[first + 3], values={"big": first})
    held = workspace.correct("d", ids=[str(first + 4)], values={"big": str(first)}, hold="later")
    workspace.request(["p5", "p4"])
    done = workspace.process()
    assert (done.n_corrected, done.n_records) == (1, 2)
    assert {each.verdict for each in workspace.verify()} == {"equal"}
    workspace.cancel(held[0].id)
    (tmp_path / "c.csv").write_text(f"id,big\n{first + 6},{first + 42}\n{first + 8},{first}\n")
    workspace.correct("d", tmp_path / "c.csv")
    assert workspace.process().n_corrected == 1
    pq.write_table(made(first, kind, 20, 3), tmp_path / "more.parquet")
    workspace.append("d", tmp_path / "more.parquet", update_models=True)
    workspace.request(where=f"big = {first + 7 * 21}", dataset="d")
    assert workspace.process().n_records == 1
    assert {each.verdict for each in workspace.verify()} == {"equal"}
    assert workspace.verify_log() == []
    gone = {4, 5, 21}
    expected = [i for i in range(23) if i not in gone]
    found = contents(workspace)
    assert found["id"] == [first + i for i in expected]
    assert found["big"] == [first + (0 if i in (3, 8) else 7 * i) for i in expected]
