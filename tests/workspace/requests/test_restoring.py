"""A backup that was restored brings people back; the list of the erased takes them out again."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from backends import copy_of
from contexts import scan
from sqlalchemy import delete, select, update

from erasable.core.errors import ErasableError, EvidenceError, TamperedError
from erasable.workspace import Workspace
from erasable.workspace.evidence import receipts
from erasable.workspace.ledger.schema import suppression, suppression_salt

PEOPLE = [f"marker-p{i}" for i in range(8)]
BACK = ["marker-p1", "marker-p2", "marker-p3"]


def rows(people: list[str]) -> str:
    lines = [
        f"v{i},{person},{person}@example.org,{20 + 7 * i % 50},{i % 2}"
        for i, person in enumerate(p for p in people for _ in range(3))
    ]
    return "\n".join(["visit,patient,mail,age,sick", *lines]) + "\n"


@pytest.fixture(scope="module")
def made(backend: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a workspace, a backup of it, and the list of whom the workspace erased since."""
    folder = tmp_path_factory.mktemp("restoring")
    (folder / "visits.csv").write_text(rows(PEOPLE))
    workspace = Workspace.create(folder / "ws")
    workspace.add_dataset(
        "visits", folder / "visits.csv", id_column="visit", subjects=["patient", "mail:email"]
    )
    workspace.fit("risk", "naive_bayes.GaussianNB", datasets=["visits"], features=["age"],
                  target="sick")  # fmt: skip
    workspace.request(["marker-p0"])
    workspace.process()
    workspace.request(["marker-p1"])  # pending when the backup is made
    workspace.context.ledger.close()
    copy_of(folder / "ws", folder / "backup")
    workspace = Workspace.open(folder / "ws")
    workspace.link("marker-p2", "marker-p2@example.org", other_type="email")
    workspace.request(["marker-p2", "marker-p3"])
    workspace.request(where="visit = 'v15'", dataset="visits")  # of marker-p5
    assert len(workspace.process().requests) == 4
    (folder / "erased.json").write_text(json.dumps(workspace.suppression_list()))
    workspace.context.ledger.close()
    return folder


@pytest.fixture
def backup(made: Path, tmp_path: Path) -> Workspace:
    copy_of(made / "backup", tmp_path / "ws")
    return Workspace.open(tmp_path / "ws")


@pytest.fixture
def listed(made: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((made / "erased.json").read_text())
    return found


def everything(workspace: Workspace) -> tuple[Any, ...]:
    return (
        workspace.suppressed(), workspace.requests(), workspace.log_entries(), workspace.datasets()
    )  # fmt: skip


def test_the_backup_holds_whom_the_list_names(backup: Workspace) -> None:
    """The control of what follows: without the list they are there, and can come in."""
    assert [backup.subject(person)["known"] for person in BACK] == [True, True, True]
    assert len(backup.suppressed()) == 2  # marker-p0 and the mail


def test_a_restored_backup_is_brought_up_to_date(
    backup: Workspace, listed: dict[str, Any], made: Path
) -> None:
    done = backup.import_suppression_list(listed)
    # marker-p0, p1, p2 and p3, each with its mail; record v15
    assert (done.n_listed, done.n_new, done.n_released, done.n_mended) == (9, 7, 0, 0)
    # p1 is asked for since before the backup
    assert done.n_waiting == 2
    assert len(done.requests) == 3
    assert {each.state for each in done.requests} == {"pending"}
    assert backup.verify_log() == []
    processed = backup.process()
    assert len(processed.requests) == 4
    assert processed.n_records == 10  # 3 of each of three people, and v15
    assert {row["name"]: row["n_records"] for row in backup.datasets()} == {"visits": 11}
    assert backup.verify_log() == []
    assert {each.verdict for each in backup.verify()} == {"equal"}
    assert scan(backup.context.root, *BACK) == []
    for each in done.requests:
        body = backup.receipt(each.id)
        assert receipts.check(body, backup.public_key).request == each.id
    with backup.context.ledger.reading() as connection:
        salts = list(connection.execute(select(suppression_salt.c.salt)).scalars())
    given_out = json.dumps([backup.log_entries(), backup.head(), backup.suppression_list()])
    given_out += "".join(backup.receipt(each.id).decode() for each in done.requests)
    assert len(salts) == 5  # of marker-p0 too; an erasure of who is kept out adds none
    assert not any(salt in given_out for salt in salts)
    kept_out = {each["token"] for each in backup.suppressed()}
    theirs = Workspace.open(made / "ws").suppressed()
    assert kept_out == {each["token"] for each in theirs}
    assert backup.sync("visits").n_suppressed == 13


def test_to_import_it_again_changes_nothing(backup: Workspace, listed: dict[str, Any]) -> None:
    backup.import_suppression_list(listed)
    before = everything(backup)
    again = backup.import_suppression_list(listed)
    assert (again.n_new, again.requests, again.n_waiting) == (0, (), 7)
    assert everything(backup) == before
    backup.process()
    before = everything(backup)
    again = backup.import_suppression_list(listed)
    assert (again.n_new, again.requests, again.n_waiting) == (0, (), 0)
    assert everything(backup) == before


def test_a_request_that_is_on_hold_stays_so(backup: Workspace, listed: dict[str, Any]) -> None:
    (waiting,) = backup.requests(["pending"])
    backup.hold(waiting.id, "a legal duty to keep them")
    backup.import_suppression_list(listed)
    backup.process()
    assert backup.subject("marker-p1")["known"]
    backup.cancel(waiting.id)
    assert len(backup.import_suppression_list(listed).requests) == 1


def test_the_workspace_itself_has_nothing_to_bring_up_to_date(
    made: Path, tmp_path: Path, listed: dict[str, Any]
) -> None:
    copy_of(made / "ws", tmp_path / "ws")
    workspace = Workspace.open(tmp_path / "ws")
    before = everything(workspace)
    done = workspace.import_suppression_list(listed)
    assert (done.n_listed, done.n_new, done.requests) == (9, 0, ())
    assert everything(workspace) == before
    workspace.release("marker-p3")
    workspace.sync("visits")  # they come in again, with a new consent
    done = workspace.import_suppression_list(listed)
    assert (done.n_released, done.requests) == (2, ())
    assert workspace.subject("marker-p3")["known"]


def test_whom_somebody_let_in_unseen_is_asked_for_again(
    made: Path, tmp_path: Path, listed: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the first of these leftovers was: a token is deleted, and its owner comes back."""
    copy_of(made / "ws", tmp_path / "ws")
    workspace = Workspace.open(tmp_path / "ws")
    token = workspace.context.keys.token
    theirs = [token("id", "marker-p3"), token("email", "marker-p3@example.org")]
    with workspace.context.ledger.transaction() as connection:
        connection.execute(delete(suppression).where(suppression.c.token.in_(theirs)))
    with pytest.raises(TamperedError, match="no identities, and not 2"):
        workspace.sync("visits")
    with monkeypatch.context() as patch:  # earlier versions did not look
        patch.setattr("erasable.workspace.evidence.suppressions.check_list", lambda _: None)
        workspace.sync("visits")
    assert workspace.subject("marker-p3")["known"]
    (line,) = workspace.verify_log()
    assert "no identities, and not 2" in line
    assert "erasable suppress import" in line
    done = workspace.import_suppression_list(listed)
    assert (done.n_new, done.n_mended, len(done.requests)) == (2, 1, 1)
    assert workspace.verify_log() == []
    workspace.process()
    assert not workspace.subject("marker-p3")["known"]
    assert workspace.verify_log() == []


def foreign(_: Workspace, folder: Path) -> Any:
    return Workspace.create(folder / "other").suppression_list()


def changed(workspace: Workspace, _: Path) -> Any:
    exported = workspace.suppression_list()
    exported["signatures"][0]["sig"] = "AAAA"
    return exported


def none(_: Workspace, __: Path) -> Any:
    return {"entries": []}


@pytest.mark.parametrize("make", [foreign, changed, none])
def test_what_is_no_list_of_this_workspace_changes_nothing(
    backup: Workspace, tmp_path: Path, make: Callable[[Workspace, Path], Any]
) -> None:
    before = everything(backup)
    with pytest.raises(EvidenceError) as told:
        backup.import_suppression_list(make(backup, tmp_path))
    assert "; expected " in str(told.value)
    assert "\n" not in str(told.value)
    assert everything(backup) == before


def test_it_is_one_transaction(
    backup: Workspace, listed: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    from erasable.workspace.requests import intake

    before = everything(backup)

    def fails(*_: Any) -> Any:
        raise EvidenceError("a fault; expected none; mend it")

    monkeypatch.setattr(intake, "enter_requests", fails)
    with pytest.raises(ErasableError, match="a fault"):
        backup.import_suppression_list(listed)
    assert everything(backup) == before


def test_a_list_holds_tokens_and_no_identity(made: Path) -> None:
    from base64 import b64decode

    payload = b64decode(json.loads((made / "erased.json").read_text())["payload"]).decode()
    workspace = Workspace.open(made / "ws")
    assert workspace.context.keys.token("id", "marker-p2") in payload
    assert "marker" not in payload
    assert "example.org" not in payload


def test_what_an_import_keeps_out_is_held_against_the_log(
    backup: Workspace, listed: dict[str, Any]
) -> None:
    backup.import_suppression_list(listed)
    with backup.context.ledger.reading() as connection:
        tokens = list(connection.execute(select(suppression.c.token)).scalars())
    with backup.context.ledger.transaction() as connection:
        at = suppression.c.token.in_(tokens)
        connection.execute(update(suppression).where(at).values(type="exact"))
    assert len(backup.verify_log()) == 5  # a line for each request
