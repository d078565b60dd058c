"""Times of day, nanoseconds, far days, and identities that show nothing or cannot be one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from erasable.core.errors import InvalidIdsError, SourceError
from erasable.workspace import Workspace
from erasable.workspace.data.catalogue import find, read_version

KINDS: dict[str, tuple[list[Any], str, str]] = {
    # values of the first file and of a later one, as text; the type; a condition on the first
    "clock": (["10:15", "23:59", "00:00", "10:15:30"], "time64[us]", "x = 10:15"),
    "fraction": (["10:15:00.5", "10:15:00.25", "09:00", "09:01"], "time64[us]", "x > 10:15:00.3"),
    "micro": (["2024-01-02 03:04:05.000001", "2024-01-02", "1999-12-31 23:59", "2024-01-02T03:04"],
              "timestamp[us]", "x = '2024-01-02 03:04:05.000001'"),
    "nano": (["2024-01-02 03:04:05.000000001", "2024-01-02", "2000-01-01", "2024-01-03 00:00:00.5"],
             "timestamp[ns]", "x = '2024-01-02 03:04:05.000000001'"),
    "far": (["9999-12-31 23:59:59.999", "0001-01-01", "1500-06-01 12:00", "2024-01-02 03:04:05"],
            "timestamp[us]", "x > 9000-01-01"),
    "day": (["9999-12-31", "0001-01-01", "1500-06-01", "2024-01-02"], "date32[day]",
            "x > 9000-01-01"),
}  # fmt: skip


def write(path: Path, rows: list[tuple[str, str]], texts: list[str]) -> Path:
    lines = [f"{name},{who},{text},1" for (name, who), text in zip(rows, texts, strict=True)]
    path.write_text("\n".join(["id,who,x,y", *lines]) + "\n")
    return path


def put(path: Path, rows: list[tuple[str, str]], texts: list[str], kind: str) -> Path:
    made = {"id": [name for name, _ in rows], "who": [who for _, who in rows]}
    if kind.startswith("time64"):
        days = pa.array([f"1970-01-01 {each}" for each in texts])
        column = days.cast(pa.timestamp("us")).cast(pa.time64("ns"))
    else:
        column = pa.array(texts).cast(pa.type_for_alias(kind))
    pq.write_table(pa.table({**made, "x": column, "y": pa.array([1] * len(texts))}), path)
    return path


def values(workspace: Workspace) -> Any:
    with workspace.context.ledger.reading() as connection:
        whole = read_version(workspace.context, connection, find(connection, "d").id)
    return whole.sort_by("id")["x"].cast(pa.string()).to_pylist()


ROWS = [("a", "p1"), ("b", "p2"), ("c", "p3"), ("e", "p4")]


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("first", ["csv", "parquet"])
def test_files_with_times_live_as_others_do(tmp_path: Path, name: str, first: str) -> None:
    texts, kind, condition = KINDS[name]
    workspace = Workspace.create(tmp_path / "ws")
    makers = {"csv": lambda p, r, t: write(p, r, t), "parquet": lambda p, r, t: put(p, r, t, kind)}
    other = "parquet" if first == "csv" else "csv"
    source = makers[first](tmp_path / f"d.{first}", ROWS[:3], texts[:3])
    workspace.add_dataset("d", source, id_column="id", subjects=["who"])
    types = {each["name"]: each["type"] for each in workspace.dataset("d")["columns"]}
    assert types["x"] == kind
    workspace.append("d", makers[other](tmp_path / f"more.{other}", ROWS[3:], texts[3:]))
    before = values(workspace)
    whole = makers[other](tmp_path / f"whole.{other}", ROWS, texts)
    assert workspace.sync("d", whole).version == 2  # nothing has changed
    workspace.correct("d", ids=["b"], values={"x": texts[3]})
    (tmp_path / "c.csv").write_text(f"id,x\n{ROWS[2][0]},{texts[3]}\n")
    held, _ = workspace.correct("d", tmp_path / "c.csv", hold="h")
    assert workspace.process().n_corrected == 1
    assert values(workspace) == [before[0], before[3], before[2], before[3]]
    (preview,) = workspace.preview(where=condition, dataset="d").effects
    assert preview.n_records == 1
    workspace.request(where=condition, dataset="d")
    assert workspace.process().n_records == 1
    workspace.resume(held.id)
    assert workspace.process().n_corrected == 1
    assert values(workspace) == [before[3]] * 3
    assert workspace.verify_log() == []


def refused(folder: Path, kind: str, told: pa.Table | str) -> str:
    path = folder / "d.parquet" if isinstance(told, pa.Table) else folder / "d.csv"
    pq.write_table(told, path) if isinstance(told, pa.Table) else path.write_text(told)
    workspace = Workspace.create(folder / "ws")
    with pytest.raises((SourceError, InvalidIdsError)) as error:
        workspace.add_dataset("d", path, id_column="id", subjects=[("who", kind)])
    assert "\n" not in str(error.value)
    return str(error.value)


def test_a_time_that_no_type_holds_is_refused_with_its_row(tmp_path: Path) -> None:
    far = pa.array([0, 10**15], pa.timestamp("s"))
    message = refused(tmp_path, "id", pa.table({"id": [1, 2], "who": ["a", "b"], "x": far}))
    assert "column 'x' holds " in message
    assert "(timestamp[ms]) in row 2; expected times, as in 2026-03-01 10:15:00 (timesta" in message


def test_a_bad_identity_is_refused_with_its_place(tmp_path: Path) -> None:
    message = refused(tmp_path, "integer", "id,who\n1,7\n2,Bloggs\n3,8\n4,Ann\n")
    assert message.startswith(
        "column 'who' has 2 values that cannot name a person in the rows up to 5, the first in "
        "row 3: an identity of type 'integer' is a str"
    )
    assert "Bloggs" not in message


@pytest.mark.parametrize(
    "shown", ["\u200b", "\ufeff", "\u00a0\u200d", "\u2062 ", "\u3164", "\u00ad", " \t"]
)
@pytest.mark.parametrize("kind", ["id", "integer", "email", "exact"])
def test_a_cell_that_shows_nothing_is_nobody(tmp_path: Path, shown: str, kind: str) -> None:
    workspace = Workspace.create(tmp_path / "ws")
    who = "17" if kind != "email" else "ann@x.org"
    (tmp_path / "d.csv").write_text(f'id,who\na,"{shown}"\nb,{who}\nc,\n')
    change = workspace.add_dataset(
        "d", tmp_path / "d.csv", id_column="id", subjects=[("who", kind)]
    )
    assert change.n_without_subject == 2
    assert "has 1 gaps" in refused(tmp_path / "ws", kind, f'id,who\n"{shown}",{who}\nb,{who}\n')
