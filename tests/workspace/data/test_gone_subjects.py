"""Whoever has no record left has no pseudonym left, but on the suppression list."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import delete, insert, select

from erasable.workspace import Workspace
from erasable.workspace.data import gone_subjects
from erasable.workspace.ledger.schema import fragment, holding, identity, vacated

LEFT = "of people of whom no record is left"


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    return Workspace.create(tmp_path / "ws")


def add(workspace: Workspace, rows: str, *subjects: str, name: str = "visits") -> None:
    source = write(workspace, rows, name)
    workspace.add_dataset(name, source, id_column="n", subjects=subjects)


def write(workspace: Workspace, rows: str, name: str = "visits") -> Path:
    source = workspace.context.root.parent / f"{name}.csv"
    source.write_text("\n".join(rows.split()) + "\n")
    return source


def token(workspace: Workspace, who: str) -> str:
    type, _, value = who.rpartition(":")
    return workspace.context.keys.token(type, value)


def kept(workspace: Workspace) -> tuple[set[str], set[str], set[str]]:
    """Return the tokens in `identity`, in `holding`, and on the suppression list."""
    with workspace.context.ledger.reading() as connection:
        known, where = (
            set(connection.execute(select(table.c.token)).scalars())
            for table in (identity, holding)
        )
    return known, where, {each["token"] for each in workspace.suppressed()}


TWO = "n,who,mail 1,p1,p1@x.org 2,p1,P1@x.org 3,p2,p2@x.org 4,p3,home@x.org 5,p4,home@x.org"
"""Who has one address in two spellings; two people of one household."""


@pytest.mark.parametrize("asked", ["p1", "p1@x.org"])
def test_all_identities_of_whoever_asked_are_on_the_list_and_nowhere_else(
    workspace: Workspace, asked: str
) -> None:
    add(workspace, TWO, "who:id", "mail:email")
    theirs = {token(workspace, "id:p1"), token(workspace, "email:p1@x.org")}
    (request,) = workspace.request([asked])
    assert workspace.process().n_records == 2
    known, where, listed = kept(workspace)
    assert (known & theirs, where & theirs, listed) == (set(), set(), theirs)
    assert {each["request_id"] for each in workspace.suppressed()} == {request.id}
    assert workspace.verify_log() == []
    later = write(workspace, "n,mail 1,p1@X.org 2,p2@x.org", "letters")
    added = workspace.add_dataset("letters", later, id_column="n", subjects=["mail:email"])
    assert (added.n_suppressed, added.n_records) == (1, 1)


def test_an_identity_that_others_share_stays_until_the_last_has_left(workspace: Workspace) -> None:
    add(workspace, TWO, "who:id", "mail:email")
    home = token(workspace, "email:home@x.org")
    workspace.request(["p3"], reach=0)
    workspace.process()
    assert [home in each for each in kept(workspace)] == [True, True, False]
    workspace.request(["p4"])
    workspace.process()
    assert [home in each for each in kept(workspace)] == [False, False, True]
    assert workspace.verify_log() == []


@pytest.mark.parametrize(
    "subjects",
    [("who:email", "mail:email"), ("who:staff/id", "mail:email"), ("who:id", "mail:staff/email")],
    ids=["of one type", "of two namespaces", "of the other namespace"],
)
def test_who_shared_a_record_and_did_not_ask_is_forgotten_and_not_kept_out(
    workspace: Workspace, subjects: tuple[str, str]
) -> None:
    add(workspace, "n,who,mail 1,a@x.org,b@x.org 2,c@x.org,d@x.org", *subjects)
    who, mail = (each.partition(":")[2] for each in subjects)
    asked, other = token(workspace, f"{who}:a@x.org"), token(workspace, f"{mail}:b@x.org")
    workspace.request(["a@x.org"], type=who)
    workspace.process()
    known, where, listed = kept(workspace)
    assert (other in known, other in where, listed) == (False, False, {asked})
    assert workspace.verify_log() == []


def test_an_identity_with_records_elsewhere_stays_where_it_was_not_followed(
    workspace: Workspace,
) -> None:
    add(workspace, TWO, "who:id", "mail:email")
    add(workspace, "n,mail 1,p1@x.org", "mail:email", name="letters")
    mail = token(workspace, "email:p1@x.org")
    workspace.request(["p1"], reach=0)
    workspace.process()
    assert [mail in each for each in kept(workspace)] == [True, True, False]
    assert workspace.subject("p1@x.org")["datasets"] == {"letters": 1}
    workspace.request(["p1@x.org"])
    workspace.process()
    assert [mail in each for each in kept(workspace)] == [False, False, True]


def test_what_was_linked_to_one_that_asked_alone_leaves_no_pseudonym(workspace: Workspace) -> None:
    add(workspace, TWO, "who:id", "mail:email")
    workspace.link("p1@x.org", "old@x.org", type="email", other_type="email")
    workspace.request(["p1@x.org"], reach=0)
    workspace.process()
    assert kept(workspace)[2] == {token(workspace, "email:p1@x.org")}
    assert token(workspace, "email:old@x.org") not in kept(workspace)[0]
    assert workspace.verify_log() == []


def test_what_was_linked_to_a_companion_is_kept_out_with_it(workspace: Workspace) -> None:
    add(workspace, TWO, "who:id", "mail:email")
    workspace.link("p1@x.org", "old@x.org", type="email", other_type="email")
    workspace.request(["p1"])
    workspace.process()
    names = ("id:p1", "email:p1@x.org", "email:old@x.org")
    assert kept(workspace)[2] == {token(workspace, name) for name in names}
    assert not {token(workspace, name) for name in names} & kept(workspace)[0]


def test_a_condition_leaves_no_pseudonym_of_who_has_no_record_left(workspace: Workspace) -> None:
    add(workspace, TWO, "who:id", "mail:email")
    workspace.request(where="n < '4'")
    workspace.process()
    left = {token(workspace, f"id:{who}") for who in ("p3", "p4")}
    left.add(token(workspace, "email:home@x.org"))
    assert kept(workspace)[:2] == (left, left)
    assert workspace.verify_log() == []


@pytest.mark.parametrize("with_model", [False, True], ids=["alone", "with a model"])
def test_who_leaves_with_a_sync_has_no_pseudonym_left(
    workspace: Workspace, with_model: bool
) -> None:
    """But while a model is of the version before, its records are there."""
    rows = "n,who,mail,dose 1,p1,p1@x.org,1.5 3,p2,p2@x.org,2.5 4,p3,home@x.org,3.5"
    add(workspace, rows, "who:id", "mail:email")
    if with_model:
        workspace.fit(
            "mean", "preprocessing.StandardScaler", datasets=["visits"], features=["dose"]
        )
    theirs = {token(workspace, "id:p1"), token(workspace, "email:p1@x.org")}
    workspace.sync("visits", write(workspace, rows.replace(" 1,p1,p1@x.org,1.5", "")))
    if with_model:
        assert theirs <= kept(workspace)[0] & kept(workspace)[1]
        assert workspace.verify_log() == []
        workspace.fit("mean")
    known, where, listed = kept(workspace)
    assert (known & theirs, where & theirs, listed) == (set(), set(), set())
    assert len(known) == len(where) == 4
    assert workspace.verify_log() == []


def leave_behind(workspace: Workspace, *tables: Any) -> str:
    """Put a token back that has no record, as earlier versions left it."""
    left = token(workspace, "email:left@x.org")
    with workspace.context.ledger.transaction() as connection:
        (number,) = connection.execute(select(fragment.c.dataset_id).distinct()).scalars()
        rows = {
            "identity": {"token": left, "type": "email", "subject": "5d" * 16},
            "holding": {"token": left, "dataset_id": number, "bucket": 0},
        }
        for table in tables:
            connection.execute(insert(table).values(rows[table.name]))
    return left


@pytest.mark.parametrize("tables", [(identity, holding), (identity,)], ids=["both", "identity"])
def test_what_an_earlier_version_left_is_told_and_removed_by_the_next_batch(
    workspace: Workspace, tables: Any
) -> None:
    add(workspace, TWO, "who:id", "mail:email")
    left = leave_behind(workspace, *tables)
    (line, *_) = workspace.verify_log()
    assert LEFT in line
    assert "restore the ledger" in line
    with workspace.context.ledger.transaction() as connection:  # as the migration does
        connection.execute(insert(vacated).values(dataset_id=1, bucket=0))
    assert "run `erasable process`" in workspace.verify_log()[0]
    (told,) = workspace.process().warnings
    assert f"1 pseudonyms {LEFT}" in told
    known, where, listed = kept(workspace)
    assert left not in known | where | listed
    assert (workspace.verify_log(), workspace.process().warnings) == ([], [])


@pytest.mark.parametrize("breaks", ["forget_holdings", "forget_unheld"])
def test_without_either_step_pseudonyms_stay(
    workspace: Workspace, breaks: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A negative control."""
    add(workspace, TWO, "who:id", "mail:email")
    monkeypatch.setattr(gone_subjects, breaks, lambda *_: 0)
    workspace.request(["p1"], reach=0)
    workspace.process()
    assert any(LEFT in line for line in workspace.verify_log())


def test_a_sync_that_is_cut_off_is_tidied_by_the_next_batch(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    add(workspace, TWO, "who:id", "mail:email")
    with monkeypatch.context() as patched:
        patched.setattr(gone_subjects, "tidy", lambda *_: 0)
        workspace.sync("visits", write(workspace, "n,who,mail 3,p2,p2@x.org"))
    assert LEFT in workspace.verify_log()[0]
    workspace.process()
    assert len(kept(workspace)[0]) == len(kept(workspace)[1]) == 2
    with workspace.context.ledger.transaction() as connection:
        assert connection.execute(delete(vacated)).rowcount == 0
    assert workspace.verify_log() == []
