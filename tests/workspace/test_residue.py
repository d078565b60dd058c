"""When a request is completed, no byte of its records is left in the workspace."""

from __future__ import annotations

import gzip
import shutil
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from backends import copy_of, files_of
from contexts import write_csv
from crashes import fork
from crowd import Crowd, build
from sqlalchemy import select
from traces import compressed, numbers_in, texts_in, tokens_in

from erasable.linear_model import Ridge
from erasable.workspace import Workspace
from erasable.workspace.context import Context
from erasable.workspace.ledger import sqlite
from erasable.workspace.ledger.schema import suppression
from erasable.workspace.store.disk import Disk

FEW = Crowd(300)
GONE = [i for i in range(300) if i % 5 in (2, 3)] + [0, 1, 4]


@pytest.fixture(scope="module")
def prepared(backend: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return prepare(tmp_path_factory.mktemp("residue"), 300)


def prepare(folder: Path, n: int) -> Path:
    workspace = build(folder, n)
    workspace.context.ledger.close()
    return workspace.context.root


def tokens(workspace: Workspace, crowd: Crowd, people: Iterable[int]) -> set[str]:
    found = workspace.context.keys.tokens("id", [crowd.person(i) for i in people])
    return {token for token in found if token is not None}


def erase(workspace: Workspace, crowd: Crowd, people: Iterable[int]) -> None:
    workspace.request([crowd.person(i) for i in people])
    workspace.process()
    assert {request.state for request in workspace.requests()} <= {"completed", "no_match"}


def left(path: Path, crowd: Crowd, people: list[int]) -> list[object]:
    """Return every trace of people: texts, numbers, tokens but for those that keep them out."""
    found = tokens_in(path, tokens(Workspace.open(path), crowd, people))
    texts = texts_in(path, crowd.texts(people))
    return [*sorted(texts | found), *sorted(numbers_in(path, crowd.numbers(people)))]


def everything(path: Path, crowd: Crowd, people: list[int]) -> list[object]:
    wanted = tokens(Workspace.open(path), crowd, people)
    return [*sorted(crowd.texts(people) | wanted), *sorted(crowd.numbers(people))]


@pytest.mark.backend(soak="postgres")
@pytest.mark.parametrize("n", [1000, pytest.param(5000, marks=pytest.mark.soak)])
def test_nothing_is_left_of_every_fifth(tmp_path: Path, n: int) -> None:
    crowd, people = Crowd(n), sorted({0, 1, 2, 3, *range(7, n, 5)})
    path = prepare(tmp_path, n)
    assert left(path, crowd, people) == everything(path, crowd, people)  # so they can be found
    workspace = Workspace.open(path)
    erase(workspace, crowd, people)
    treatments = {each["name"]: each["state"] for each in workspace.models()}
    assert len(treatments) == 10
    assert treatments["small"] == "retired"
    assert left(path, crowd, people) == []
    assert compressed(path) == []
    with workspace.context.ledger.reading() as connection:
        kept = set(connection.execute(select(suppression.c.token)).scalars())
    assert kept == tokens(workspace, crowd, people)
    verdicts = {each.model: each.verdict for each in workspace.verify(retrain=True)}
    assert set(verdicts.values()) == {"equal", "retired"}
    erased = set(people)  # a letter goes with its sender, and with its receiver
    others = [i for i in range(n) if not {i, crowd.friend(i)} & erased][:50]
    assert left(path, crowd, others) == everything(path, crowd, others)


def test_nothing_comes_back(prepared: Path, tmp_path: Path) -> None:
    """Append, sync, fit again, verify, register, predict: by people who were erased, or not."""
    path = copy_of(prepared, tmp_path / "ws")
    workspace = Workspace.open(path)
    erase(workspace, FEW, GONE)
    folder = prepared.parent
    change = workspace.sync("visits", folder / "visits.csv")
    assert change.n_suppressed == 2 * len(GONE)
    later = Crowd(400)
    new = later.visits(range(300, 320))
    again = {name: [*new[name], *FEW.visits(range(4))[name]] for name in new}
    write_csv(tmp_path / "more.csv", again)
    assert workspace.append("visits", tmp_path / "more.csv").n_suppressed == 8
    assert workspace.sync("letters").n_suppressed > 0
    for model in ("risk", "nearest", "words", "entry", "copy", "segments"):
        workspace.fit(model)
    workspace.predict("risk", tmp_path / "more.csv")
    workspace.verify(retrain=True)
    assert left(path, FEW, GONE) == []
    erase(workspace, later, [301])
    assert left(path, FEW, GONE) == []
    assert left(path, later, [301]) == []
    assert compressed(path) == []


def test_what_a_process_left_that_died_is_removed(prepared: Path, tmp_path: Path) -> None:
    path = copy_of(prepared, tmp_path / "ws")
    name, end = 3 * "0123abcd", 2 * "0123abcd"  # as erasable gives them
    for key in (
        f"scratch/{name}/data.parquet", f"artifacts/data/visits/.partial-7-{end}",
        f"artifacts/data/visits/{name}", f".partial-8-{end}",
    ):  # fmt: skip
        (path / key).parent.mkdir(parents=True, exist_ok=True)
        (path / key).write_text(FEW.person(GONE[0]))
    erase(Workspace.open(path), FEW, GONE)
    assert left(path, FEW, GONE) == []


# -- conditions ------------------------------------------------------------------------------------

LITERAL = FEW.visits(range(300))["note"][40]
WHERE = f"note = '{LITERAL}'"


@pytest.mark.parametrize("end", ["deny", "cancel"])
def test_the_literal_of_a_request_that_is_not_carried_out_is_gone(
    prepared: Path, tmp_path: Path, end: str
) -> None:
    path = copy_of(prepared, tmp_path / "ws")
    workspace = Workspace.open(path)
    (request,) = workspace.request(where="note = 'zqelsewhere000001'", dataset="visits")
    assert texts_in(path, ["zqelsewhere000001"])
    getattr(workspace, end)(request.id, "not ours")
    assert texts_in(path, ["zqelsewhere000001"]) == set()


def test_the_literal_is_gone_when_a_process_died_right_after_it_denied(
    prepared: Path, tmp_path: Path
) -> None:
    path = copy_of(prepared, tmp_path / "ws")

    def deny() -> None:
        workspace = Workspace.open(path)
        (request,) = workspace.request(where="note = 'zqelsewhere000001'", dataset="visits")
        workspace.context.ledger.purge = lambda: None  # type: ignore[method-assign]
        workspace.deny(request.id, "not ours")

    assert fork(deny) == 0
    assert texts_in(path, ["zqelsewhere000001"])
    workspace = Workspace.open(path)
    workspace.process()
    assert texts_in(path, ["zqelsewhere000001"]) == set()


def test_the_records_of_a_condition_are_gone_and_stay_out(prepared: Path, tmp_path: Path) -> None:
    path = copy_of(prepared, tmp_path / "ws")
    workspace = Workspace.open(path)
    workspace.request(where=WHERE, dataset="visits")
    assert workspace.process().n_records == 1
    marks = {"zqvisit000040", "zqnote000040", "zqremark000040"}
    assert texts_in(path, marks) == set()
    assert workspace.sync("visits").n_suppressed == 1
    assert texts_in(path, marks) == set()
    write_csv(tmp_path / "one.csv", {k: v[40:41] for k, v in FEW.visits(range(300)).items()})
    assert workspace.append("visits", tmp_path / "one.csv").n_suppressed == 1
    assert texts_in(path, marks) == set()


def test_no_token_is_left_of_somebody_whose_records_went_before(
    prepared: Path, tmp_path: Path
) -> None:
    """Their records left with the source; then they asked to be forgotten."""
    path = copy_of(prepared, tmp_path / "ws")
    workspace = Workspace.open(path)
    write_csv(tmp_path / "letters.csv", FEW.letters(range(10, 300)))
    write_csv(tmp_path / "visits.csv", FEW.visits(range(10, 300)))
    for name in ("letters", "visits"):
        workspace.sync(name, tmp_path / f"{name}.csv")
    for model in ("segments", "risk", "bayes", "wards", "words", "tree", "nearest", "entry"):
        workspace.fit(model)
    workspace.fit("copy")
    erase(workspace, FEW, [8])
    assert left(path, FEW, [8]) == []


# -- each part of it is needed ---------------------------------------------------------------------


@pytest.mark.backend("sqlite")
def test_without_secure_delete_and_clearing_unused_bytes_tokens_stay(
    prepared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lax = [each.replace("secure_delete = ON", "secure_delete = OFF") for each in sqlite._PRAGMAS]
    assert lax != list(sqlite._PRAGMAS)
    monkeypatch.setattr(sqlite, "_PRAGMAS", lax)
    monkeypatch.setattr(sqlite, "clear", lambda handle, roots: 0)
    path = copy_of(prepared, tmp_path / "ws")
    erase(Workspace.open(path), FEW, GONE)
    assert left(path, FEW, GONE) != []


@pytest.mark.backend("sqlite")
def test_without_a_checkpoint_tokens_stay(
    prepared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite.Sqlite, "empty_log", lambda self, pause: None)
    monkeypatch.setattr(sqlite, "_WAIT", 0.0)  # it is not empty before unused bytes are cleared
    path = copy_of(prepared, tmp_path / "ws")

    def in_a_process_that_dies() -> None:  # one that ends well would empty it
        erase(Workspace.open(path), FEW, GONE)

    assert fork(in_a_process_that_dies) == 0
    assert tokens_in(path, tokens(Workspace.open(path), FEW, GONE))


def test_rows_that_moved_leave_no_copies_in_unused_parts_of_pages(tmp_path: Path) -> None:
    """Deleted rows are overwritten where they are, but not where they were before they moved.

    Which rows move depends on the keys of a workspace: about every second one of these has some.
    """
    workspace = Workspace.create(tmp_path / "ws")
    crowd, people = Crowd(4000), range(4000)
    workspace.request([crowd.person(i) for i in people])
    looked_for = tokens(workspace, crowd, people)
    assert tokens_in(tmp_path / "ws", looked_for)  # the control of what is looked for below
    workspace.process()
    assert tokens_in(tmp_path / "ws", looked_for) == set()


def test_without_removing_garbage_records_stay(
    prepared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Context, "clean", lambda self: None)
    path = copy_of(prepared, tmp_path / "ws")
    erase(Workspace.open(path), FEW, GONE)
    found = set(left(path, FEW, GONE))
    assert found >= FEW.texts(GONE) | FEW.numbers(GONE)


def test_without_removing_scratch_records_stay(
    prepared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Disk, "remove_folder", lambda self, key: None)
    path = copy_of(prepared, tmp_path / "ws")
    workspace = Workspace.open(path)
    workspace.fit("copy")
    erase(workspace, FEW, GONE)
    assert f"zqnote{2 * GONE[0]:06d}" in left(path, FEW, GONE)


def test_what_is_compressed_is_found_out(tmp_path: Path) -> None:
    table = pa.table({"note": ["zqnote000001"] * 100})
    folder = tmp_path / "artifacts"
    folder.mkdir()
    pq.write_table(table, folder / "plain", compression="none")
    assert compressed(tmp_path) == []
    pq.write_table(table, folder / "packed", compression="snappy")
    (folder / "zipped").write_bytes(gzip.compress(b"zqnote000001"))
    shutil.make_archive(str(folder / "archive"), "zip", folder, "plain")
    names = ["artifacts/archive.zip", "artifacts/packed", "artifacts/zipped"]
    assert compressed(tmp_path) == names


def test_the_search_reads_small_arrays(tmp_path: Path) -> None:
    (tmp_path / "accelerators").mkdir()
    X, y = np.arange(60.0).reshape(20, 3) ** 2, np.arange(20.0)
    y[7] = 1234.5
    ids = [f"zqnote{n:06d}" for n in range(20)]
    Ridge().fit(X, y, ids=ids).save(tmp_path / "accelerators" / "risk", records=True)
    assert not any(np.float64(1234.5).tobytes() in path.read_bytes() for path in files_of(tmp_path))
    assert numbers_in(tmp_path, [1234.5, 1234.25]) == {1234.5}
    assert texts_in(tmp_path, [ids[0], "zqnote999999"]) == {ids[0]}


@pytest.mark.parametrize("coding", ["utf-8", "utf-16-le", "utf-32-le"])
def test_the_search_reads_every_coding(tmp_path: Path, coding: str) -> None:
    marks = ["zqnote000001", "zqnote000002"]
    (tmp_path / "a").write_bytes(b"\x07" + " zqnote000001,".encode(coding) + b"\x00zqnot")
    assert texts_in(tmp_path, marks) == {"zqnote000001"}
