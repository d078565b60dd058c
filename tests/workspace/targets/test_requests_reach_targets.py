"""Requests reach targets: what they owe, what receipts say of it, and what fails."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from refusals import refused
from sqlalchemy import delete, select, update

from erasable.core.errors import (
    InvalidParameterError,
    NotInWorkspaceError,
    TamperedError,
    WorkspaceError,
)
from erasable.workspace import Workspace
from erasable.workspace.evidence import receipts
from erasable.workspace.ledger.schema import request as request_table
from erasable.workspace.ledger.schema import suppression, target, task
from erasable.workspace.ledger.treatments import NOT_COVERED
from erasable.workspace.requests import owed, reaching
from erasable.workspace.requests.failures import RetryPolicy
from erasable.workspace.targets import adding, catalogue, steps
from erasable.workspace.targets.verdicts import NOT_PROVED, NOTHING, PURGED

PLUGIN = Path(__file__).parent / "plugin"
N = 12


@pytest.fixture(autouse=True)
def _plugin(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(PLUGIN)


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    """A folder of notes, two of each person."""
    folder = tmp_path / "notes"
    folder.mkdir()
    for i in range(N):
        for j in range(2):
            said = {"mail": f"p{i}@example.org", "text": f"what person {i} has said, part {j}"}
            (folder / f"{i}-{j}.json").write_text(json.dumps(said))
    return folder


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    path = tmp_path / "visits.csv"
    lines = [f"{i},p{i}@example.org,{i % 3}.5" for i in range(N - 2)]  # two are in notes alone
    path.write_text("\n".join(["id,mail,dose", *lines]) + "\n")
    made = Workspace.create(tmp_path / "workspace")
    made.add_dataset("visits", path, id_column="id", subjects=["mail:email"])
    return made


def left(folder: Path) -> set[str]:
    return {path.name.partition("-")[0] for path in folder.glob("*.json")}


def said(workspace: Workspace, request: str) -> dict[str, Any]:
    body = workspace.receipt(request)
    receipts.check(body, workspace.context.keys.public_pem)
    return receipts.show(body)


def holds(workspace: Workspace) -> None:
    assert workspace.verify_log() == []


def test_one_request_erases_everywhere(workspace: Workspace, notes: Path) -> None:
    added = workspace.add_target("notes", f"notes:{notes}", ["mail:email"])
    assert added.place == f"notes:{notes}"
    (request,) = workspace.request(["p3@example.org"])
    done = workspace.process()
    assert done.requests == [request.id]
    assert [each["verdict"] for each in done.targets] == [PURGED]
    assert left(notes) == {str(i) for i in range(N)} - {"3"}
    says = said(workspace, request.id)
    assert says["targets"] == [{"name": "notes", "verdict": PURGED, "reason": None, "records": 2}]
    assert says["records"] == 3
    holds(workspace)


def test_the_preview_says_what_happens(workspace: Workspace, notes: Path) -> None:
    workspace.add_target("notes", f"notes:{notes}", ["mail:email"])
    people = ["p3@example.org", f"p{N - 1}@example.org", "nobody@example.org"]
    foreseen = workspace.preview(people)
    effects = {(each.target, each.name): each.n_records for each in foreseen.effects}
    assert effects == {("dataset", "visits"): 1, ("target", "notes"): 4}
    assert (foreseen.n_unmatched, foreseen.unseen) == (1, ())
    assert workspace.subject(f"p{N - 1}@example.org")["targets"] == {"notes": 2}
    assert len(left(notes)) == N
    workspace.request(people)
    done = workspace.process()
    assert [each["n_records"] for each in done.targets] == [4]
    assert done.n_unmatched == 1
    notes.rename(notes.with_name("moved"))
    assert "is no folder" in workspace.preview(["p4@example.org"]).unseen[0]


def test_the_preview_counts_what_the_batch_does(workspace: Workspace, tmp_path: Path) -> None:
    path = tmp_path / "shop.db"
    with closing(sqlite3.connect(path)) as shop:
        shop.executescript("""
            create table people (id integer primary key, mail text);
            create table orders (id integer primary key, who references people on delete cascade);
            insert into people values (1, 'p1@example.org'), (2, 'p2@example.org');
            insert into orders values (1, 1), (2, 1), (3, 2);
        """)
    workspace.add_target("shop", f"sqlite:///{path}", ["people.mail:email"])
    (foreseen,) = (
        each for each in workspace.preview(["p1@example.org"]).effects if each.target == "target"
    )
    workspace.request(["p1@example.org"])
    (done,) = workspace.process().targets
    assert (
        (foreseen.n_records, foreseen.n_others) == (done["n_records"], done["n_others"]) == (1, 2)
    )


@pytest.fixture
def shop(workspace: Workspace, tmp_path: Path) -> Path:
    """A database of which two tables are targets of their own, people and letters."""
    path = tmp_path / "shop.db"
    with closing(sqlite3.connect(path)) as made:
        for table in ("people", "letters"):
            made.execute(f"create table {table} (id integer primary key, mail text, said text)")
            told = ((i, f"p{i}@example.org", f"{table} of {i}, whole") for i in range(N))
            made.executemany(f"insert into {table} values (?, ?, ?)", told)
        made.commit()
    for table in ("people", "letters"):
        workspace.add_target(table, f"sqlite:///{path}", [f"{table}.mail:email"])
    return path


def test_targets_over_the_same_files_are_searched_once_all_are_erased_from(
    workspace: Workspace, shop: Path
) -> None:
    (request,) = workspace.request(["p3@example.org"])
    assert {each["verdict"] for each in workspace.process().targets} == {PURGED}
    assert [each["records"] for each in said(workspace, request.id)["targets"]] == [1, 1]
    assert b"p3@example.org" not in shop.read_bytes()
    holds(workspace)


def test_a_process_dies_once_people_have_left_all_targets_over_the_same_files(
    workspace: Workspace, shop: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before any was judged: the next one knows what to search for, and how many there were."""

    def dies(*_: Any) -> None:
        raise KeyboardInterrupt

    (request,) = workspace.request(["p3@example.org"])
    with monkeypatch.context() as patch:
        patch.setattr(steps, "erase", dies)
        with pytest.raises(KeyboardInterrupt):
            workspace.process()
    with closing(sqlite3.connect(shop)) as found:
        for table in ("people", "letters"):
            assert found.execute(f"select count(*) from {table}").fetchone() == (N - 1,)
    done = workspace.process()
    assert [(each["verdict"], each["n_records"]) for each in done.targets] == [(PURGED, 1)] * 2
    assert [each["records"] for each in said(workspace, request.id)["targets"]] == [1, 1]
    holds(workspace)


def test_one_of_two_targets_over_the_same_files_fails(workspace: Workspace, shop: Path) -> None:
    with closing(sqlite3.connect(shop)) as gone:
        gone.execute("alter table letters rename to kept")
    (request,) = workspace.request(["p3@example.org"])
    done = workspace.process()
    assert [(each["target"], each["verdict"]) for each in done.targets] == [("people", NOT_PROVED)]
    assert "still in shop.db" in str(done.targets[0]["reason"])
    (failed,) = workspace.tasks()["failed"]
    assert (failed.name, failed.attempts) == ("letters", 1)
    with closing(sqlite3.connect(shop)) as back:
        back.execute("alter table kept rename to letters")
    assert workspace.process().requests == [request.id]
    assert {each["verdict"] for each in said(workspace, request.id)["targets"]} == {
        NOT_PROVED, PURGED,
    }  # fmt: skip


def test_who_waits_to_leave_has_not_come_back(workspace: Workspace, notes: Path) -> None:
    workspace.request(["p2@example.org"])
    workspace.process()
    workspace.add_target("notes", f"notes:{notes}", ["mail:email"])
    kept = notes.rename(notes.with_name("moved"))
    workspace.request(["p3@example.org"])
    workspace.process()
    kept.rename(notes)
    (found,) = workspace.check_target()  # of both, who were erased here
    assert (found.n_people, found.n_records) == (1, 2)


def test_a_restored_workspace_says_that_targets_are_real(
    workspace: Workspace, notes: Path, tmp_path: Path
) -> None:
    def restored(name: str) -> list[str]:
        backup = workspace.back_up(tmp_path / f"{name}.tar", with_keys=True)
        found = Workspace.restore(
            backup.path, tmp_path / name, suppressions=workspace.suppression_list()
        )
        return [each for each in found.warnings if "same targets" in each]

    assert restored("without") == []
    workspace.add_target("notes", f"notes:{notes}", ["mail:email"])
    (told,) = restored("with")
    assert "target remove" in told


def test_nothing_of_what_is_owed_stays(workspace: Workspace, notes: Path) -> None:
    workspace.add_target("notes", f"notes:{notes}", ["mail:email"])
    workspace.request(["p3@example.org"])
    workspace.process()
    with workspace.context.ledger.reading() as connection:
        (row,) = connection.execute(select(task).where(task.c.target == "target")).all()
        assert (row.tokens, row.seal) == (None, None)
        assert connection.execute(select(target.c.plan_key)).scalar() is None
    assert not list((workspace.context.root / "artifacts").rglob("targets/*"))


def test_who_is_in_a_target_alone_is_erased_and_kept_out(workspace: Workspace, notes: Path) -> None:
    workspace.add_target("notes", f"notes:{notes}", ["mail:email"])
    (request,) = workspace.request([f"p{N - 1}@example.org"])
    workspace.process()
    says = said(workspace, request.id)
    assert (says["outcome"], says["records"]) == ("erased", 2)
    with workspace.context.ledger.reading() as connection:
        assert set(connection.execute(select(suppression.c.request_id)).scalars()) == {request.id}
    holds(workspace)


def test_who_is_nowhere_is_no_match(workspace: Workspace, notes: Path) -> None:
    workspace.add_target("notes", f"notes:{notes}", ["mail:email"])
    (request,) = workspace.request(["nobody@example.org"])
    workspace.process()
    says = said(workspace, request.id)
    assert says["outcome"] == "no match"
    assert [each["verdict"] for each in says["targets"]] == [NOTHING]
    with workspace.context.ledger.reading() as connection:
        assert not connection.execute(select(suppression)).all()


def test_a_copy_that_is_left_is_not_called_purged(workspace: Workspace, notes: Path) -> None:
    (notes / "kept").touch()
    workspace.add_target("notes", f"notes:{notes}", ["mail:email"])
    (request,) = workspace.request(["p3@example.org"])
    workspace.process()
    (found,) = said(workspace, request.id)["targets"]
    assert found["verdict"] == NOT_PROVED
    assert "copy.bin" in found["reason"]
    page = workspace.receipt_page(request.id)
    assert "tag warn" in page
    assert "something may still have a copy" in page


def test_a_search_that_finds_nobody_proves_nothing(
    workspace: Workspace, notes: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from notes_target import NotesTarget

    monkeypatch.setattr(NotesTarget, "files", lambda self: [])
    workspace.add_target("notes", f"notes:{notes}", ["mail:email"])
    (request,) = workspace.request(["p3@example.org"])
    workspace.process()
    (found,) = said(workspace, request.id)["targets"]
    assert found["verdict"] == NOT_PROVED
    assert "finds 0 of 20 texts of others" in found["reason"]


# -- what fails ------------------------------------------------------------------------------------


def test_a_target_that_fails_keeps_its_requests_open_and_no_others(
    workspace: Workspace, notes: Path
) -> None:
    workspace.add_target("notes", f"notes:{notes}", ["mail:email"])
    (notes / "full").touch()
    (first,) = workspace.request(["p3@example.org"])
    done = workspace.process()
    assert done.requests == []
    assert "room on the disk" in " ".join(done.warnings)
    (shown,) = workspace.requests()
    assert (shown.label, shown.waits_for) == ("waits for targets", ("notes",))
    assert "notes" in str(shown.note)
    (listed,) = workspace.targets()
    assert listed["waiting"] == 1
    assert "room" in listed["error"]
    (failed,) = workspace.tasks()["failed"]
    assert (failed.target, failed.name, failed.n_requests) == ("target", "notes", 1)
    with pytest.raises(WorkspaceError):
        workspace.receipt(first.id)
    assert "3" in left(notes)
    holds(workspace)
    workspace.request(where="dose > 2", dataset="visits")
    assert len(workspace.process().requests) == 1  # nobody waits for the target
    (notes / "full").unlink()
    assert workspace.process().requests == [first.id]
    assert "3" not in left(notes)
    assert workspace.tasks()["failed"] == []
    holds(workspace)


def test_attempts_come_later_and_later(workspace: Workspace, notes: Path) -> None:
    workspace.add_target("notes", f"notes:{notes}", ["mail:email"])
    (notes / "full").touch()
    workspace.request(["p3@example.org"])
    workspace.process()
    context = workspace.context
    patience = RetryPolicy(3, 10.0)
    waits = []
    for _ in range(2):
        with context.ledger.reading() as connection:
            (failed,) = workspace.tasks()["failed"]
            assert not owed.is_due(connection, failed.failed_at)
            if failed.again_at is not None:
                assert owed.is_due(connection, failed.again_at)
                waits.append(failed.again_at - failed.failed_at)
        with context.lock(["requests"]):
            assert reaching.carry_out(context, patience).warnings == []  # it is not due
            assert len(reaching.carry_out(context, None).warnings) == 1
    assert waits[1] == 2 * waits[0] == timedelta(seconds=10)
    assert [each.name for each in workspace.retry(["notes"])] == ["notes"]
    with context.ledger.reading() as connection:
        assert owed.is_due(connection, context.now())


def test_a_worker_erases_from_targets(workspace: Workspace, notes: Path) -> None:
    workspace.add_target("notes", f"notes:{notes}", ["mail:email"])
    (request,) = workspace.request(["p3@example.org"])
    workspace.work(drain=True)
    assert said(workspace, request.id)["targets"][0]["verdict"] == PURGED


def test_a_record_request_and_a_correction_are_not_covered(
    workspace: Workspace, notes: Path, tmp_path: Path
) -> None:
    workspace.add_target("notes", f"notes:{notes}", ["mail:email"])
    (request,) = workspace.request(where="dose > 2", dataset="visits")
    workspace.process()
    (found,) = said(workspace, request.id)["targets"]
    assert (found["verdict"], found["reason"]) == (NOT_COVERED.name, owed.NOBODY_NAMED)
    assert len(left(notes)) == N


def test_everything_of_one_person_is_asked_about(workspace: Workspace, tmp_path: Path) -> None:
    folder = tmp_path / "own"
    folder.mkdir()
    for i in range(10):
        (folder / f"{i}.json").write_text(json.dumps({"mail": "p3@example.org", "text": f"{i}"}))
    workspace.add_target("own", f"notes:{folder}", ["mail:email"])
    workspace.request(["p3@example.org"])
    done = workspace.process()
    assert "--all" in " ".join(done.warnings)
    assert len(list(folder.glob("*.json"))) == 10
    workspace.remove_target("own", give_up=True)
    workspace.add_target("own", f"notes:{folder}", ["mail:email"], may_empty=True)
    workspace.request(["p3@example.org"])
    workspace.process()
    assert not list(folder.glob("*.json"))


def test_the_last_of_those_with_the_field_may_leave(
    workspace: Workspace, notes: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for path in notes.glob("*.json"):
        if not path.name.startswith("3-"):
            path.write_text(json.dumps({"text": "of no person at all"}))
    workspace.add_target("notes", f"notes:{notes}", ["mail:email"])
    (request,) = workspace.request(["p3@example.org"])
    assert workspace.process().requests == [request.id]
    (request,) = workspace.request(["p4@example.org"])
    assert workspace.process().requests == [request.id]


# -- kills -----------------------------------------------------------------------------------------

_PROCESS = """
import sys
sys.path.insert(0, sys.argv[2])
from erasable.workspace import Workspace
Workspace.open(sys.argv[1]).process()
"""


@pytest.mark.parametrize("at", range(1, 10))
def test_who_dies_midway_is_followed_by_one_who_finishes(
    workspace: Workspace, notes: Path, at: int
) -> None:
    workspace.add_target("notes", f"notes:{notes}", ["mail:email"])
    first, second = workspace.request(["p3@example.org", "p4@example.org"])
    line = [sys.executable, "-c", _PROCESS, str(workspace.context.root), str(PLUGIN)]
    killed = subprocess.run(line, env={**os.environ, "KILLED_AT": str(at)}, check=False)
    assert killed.returncode == -signal.SIGKILL
    subprocess.run(line, check=True)
    assert left(notes) == {str(i) for i in range(N)} - {"3", "4"}
    for request in (first, second):
        (found,) = said(workspace, request.id)["targets"]
        assert found == {"name": "notes", "verdict": PURGED, "reason": None, "records": 2}
    holds(workspace)


# -- targets themselves ----------------------------------------------------------------------------


def test_people_who_came_back_are_found(workspace: Workspace, notes: Path) -> None:
    workspace.add_target("notes", f"notes:{notes}", ["mail:email"])
    workspace.request(["p3@example.org"])
    workspace.process()
    assert [each.n_people for each in workspace.check_target()] == [0]
    (notes / "back.json").write_text(json.dumps({"mail": "P3@example.org"}))
    (found,) = workspace.check_target("notes")
    assert (found.n_people, found.n_records, found.error) == (1, 1, None)


def test_a_target_goes_when_nobody_waits(workspace: Workspace, notes: Path) -> None:
    workspace.add_target("notes", f"notes:{notes}", ["mail:email"])
    (notes / "full").touch()
    (request,) = workspace.request(["p3@example.org"])
    workspace.process()
    with pytest.raises(WorkspaceError, match="--give-up"):
        workspace.remove_target("notes")
    assert workspace.remove_target("notes", give_up=True) == [request.id]
    assert workspace.process().requests == [request.id]
    (found,) = said(workspace, request.id)["targets"]
    assert found["verdict"] == NOT_COVERED.name
    assert workspace.targets() == []
    holds(workspace)
    (notes / "full").unlink()
    workspace.add_target("notes", f"notes:{notes}", ["mail:email"])
    assert [each["name"] for each in workspace.targets()] == ["notes"]
    holds(workspace)


def test_bad_targets_are_refused(workspace: Workspace, notes: Path, tmp_path: Path) -> None:
    place = f"notes:{notes}"
    with refused("no note has 'who'"):
        workspace.add_target("notes", place, ["who:email"])
    with refused("nothing opens 'unheard'"):
        workspace.add_target("notes", "unheard:of", ["mail:email"])
    with pytest.raises(InvalidParameterError, match="action"):
        workspace.add_target("notes", place, ["mail:email"], action="burn")
    with pytest.raises(InvalidParameterError, match="expected delete"):
        workspace.add_target("notes", place, ["mail:email"], action="mask")
    with pytest.raises(InvalidParameterError, match="no field"):
        workspace.add_target("notes", place, [])
    with pytest.raises(WorkspaceError, match="letters, digits"):
        workspace.add_target("a b", place, ["mail:email"])
    assert workspace.targets() == []
    workspace.add_target("notes", place, ["mail:email"])
    with pytest.raises(WorkspaceError, match="already"):
        workspace.add_target("notes", place, ["mail:email"])
    with pytest.raises(WorkspaceError, match="same records"):
        workspace.add_target("others", place, ["text"])
    with pytest.raises(NotInWorkspaceError, match="'other'"):
        workspace.remove_target("other")


def test_credentials_are_of_the_environment(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    bare = catalogue.without_credentials
    assert bare("redis://ann:secret@host:1/0#user:*") == "redis://host:1/0#user:*"
    assert bare("redis://:secret@host:1/0") == "redis://host:1/0"
    assert (
        bare("qdrant+http://h:6333?api_key=abc&path=x#docs") == "qdrant+http://h:6333?path=x#docs"
    )
    assert bare("postgresql:///shop") == "postgresql:///shop"
    assert bare("postgresql://ann@db/shop") == "postgresql://ann@db/shop"
    known = catalogue.TargetRow(
        1, "shop-2", "notes://host/x", catalogue.settings_of(["mail:email"])
    )
    monkeypatch.setenv("ERASABLE_TARGET_SHOP_2", "notes://a:b@host/y")
    with pytest.raises(WorkspaceError, match="another place"):
        adding.opened(known)


# -- what is tampered with -------------------------------------------------------------------------


def _altered(workspace: Workspace, change: Any) -> None:
    with workspace.context.ledger.transaction() as connection:
        connection.execute(change)


@pytest.mark.parametrize(
    "change",
    [
        update(target).values(place="notes:/elsewhere"),
        update(target).values(action="null"),
        update(target).values(subjects=[{"field": "text", "type": "id"}]),
        update(target).values(state="removed"),
        update(task).where(task.c.target == "target").values(tokens=[["email", "0" * 64]]),
        update(task).where(task.c.target == "target").values(state="done"),
        update(task).where(task.c.target == "target").values(exactness=PURGED, state="done"),
        delete(task).where(task.c.target == "target"),
    ],
)
def test_what_was_altered_is_not_carried_out(
    workspace: Workspace, notes: Path, change: Any
) -> None:
    workspace.add_target("notes", f"notes:{notes}", ["mail:email"])
    (notes / "full").touch()
    workspace.request(["p3@example.org"])
    workspace.process()
    (notes / "full").unlink()
    _altered(workspace, change)
    with pytest.raises(TamperedError):
        workspace.process()
    assert len(left(notes)) == N
    with workspace.context.ledger.reading() as connection:
        states = set(connection.execute(select(request_table.c.state)).scalars())
    assert "completed" not in states


# -- one place, spelled in several ways ------------------------------------------------------------


@pytest.mark.parametrize("kind", ["", "sqlite:///", "delta:"])
@pytest.mark.parametrize(
    "spelled", ["{0}/", "lake", "./other/../lake", "{0}/../link", "file://{0}", "file:///{0}/"]
)
def test_a_place_is_one_target_however_it_is_spelled(
    workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, spelled: str
) -> None:
    monkeypatch.chdir(tmp_path)
    lake = tmp_path / "lake"
    spelled = spelled.format(lake)
    if kind == "delta:":
        deltalake = pytest.importorskip("deltalake")
        deltalake.write_deltalake(str(lake), pa.table({"mail": ["a@example.org"]}))
    elif kind:
        if spelled.startswith("file:"):
            pytest.skip("no URL of SQLAlchemy has another one in it")
        kind, spelled = "sqlite+pysqlite:///", spelled.rstrip("/")
        with closing(sqlite3.connect(lake)) as base:
            base.execute("create table notes (mail text primary key)")
    else:
        lake.mkdir()
        (lake / "notes.csv").write_text("mail\na@example.org\n")
    (tmp_path / "link").symlink_to(lake)
    subject = "notes.mail:email" if kind.startswith("sqlite") else "mail:email"
    workspace.add_target("first", f"{kind}{lake}".replace("+pysqlite", ""), [subject])
    with pytest.raises(WorkspaceError, match=r"'first' is over the same records; expected one"):
        workspace.add_target("second", f"{kind}{spelled}", [subject])
    assert [each["name"] for each in workspace.targets()] == ["first"]
    holds(workspace)


@pytest.mark.parametrize("outer_first", [True, False])
def test_a_folder_in_another_is_over_the_same_records(
    workspace: Workspace, tmp_path: Path, outer_first: bool
) -> None:
    lake = tmp_path / "lake"
    (lake / "old").mkdir(parents=True)
    (lake / "old" / "notes.csv").write_text("mail\na@example.org\n")
    first, second = (lake, lake / "old")[:: 1 if outer_first else -1]
    workspace.add_target("first", str(first), ["mail:email"])
    with pytest.raises(WorkspaceError, match=r"'first' is over the same records; expected one"):
        workspace.add_target("second", f"{second}/", ["mail:email"])
    holds(workspace)


def test_places_that_are_not_the_same(workspace: Workspace, tmp_path: Path) -> None:
    for name in ("lake", "lake2"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "notes.csv").write_text("mail\na@example.org\n")
        workspace.add_target(name, str(tmp_path / name), ["mail:email"])
    assert len(workspace.targets()) == 2
