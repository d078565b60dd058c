"""An identity in disguise is the same identity: spellings that look alike pass nobody by."""

from __future__ import annotations

from pathlib import Path

import pytest
from sqlalchemy import update

from erasable.core.errors import InvalidIdsError
from erasable.workspace import Workspace
from erasable.workspace.identity.canonical import canonical, former
from erasable.workspace.ledger.schema import suppression
from naming import named

DISGUISED = [
    ("id", "17", text) for text in ("17\u200b", "\ufeff17", "1\u00ad7", "\uff11\uff17", "17\u2060 ")
] + [
    ("id", "A7", text) for text in ("A\u200d7", "\uff217", "A\ufe0f7", "A7\x07", "A\u180e7")
] + [
    ("integer", "7", text) for text in ("\uff10\uff17", "7\u200b", "00\u20607")
] + [
    ("email", "u3@x.com", text)
    for text in (
        "u3@\uff58.com", "U3\uff20x.com", "u\u200b3@x.com", "mailto:u3@x.com", "MAILTO:U3%40x.com",
        "mailto:u3@x.com?subject=hi", "Ann <u3@x.com>", '"Smith, Ann" <mailto:u3@x.com>',
        "<u3@x.com>", "u3@x.com;", "\uff1cu3@x.com\uff1e",
        "u3@x.com.", "u3@x\u3002com", "u3@x\uff61com", "'u3@x.com'", "\u201cu3@x.com\u201d",
    )
] + [
    ("email", "u3@b\u00fccher.de", text)
    for text in (
        "u3@xn--bcher-kva.de", "U3@XN--BCHER-KVA.de.", "Ann <u3@xn--bcher-kva.de>",
        "u3@bu\u0308cher.de",
    )
]  # fmt: skip
SEVERAL = [
    "a@x.org, b@x.org", "a@x.org;b@x.org", "a@x.org b@x.org", "A <a@x.org>, B <b@x.org>",
    "a@x.org\uff0cb@x.org", "mailto:a@x.org,b@x.org", "<a@x.org><b@x.org>", "a@b@x.org",
]  # fmt: skip


@pytest.mark.parametrize(("type", "plain", "text"), DISGUISED, ids=named)
def test_it_has_one_spelling(type: str, plain: str, text: str) -> None:
    assert canonical(type, text) == canonical(f"staff/{type}", text) == plain
    assert former(type, plain) is None  # tokens of what is not in disguise are what they were
    assert canonical(type, canonical(type, text)) == plain


@pytest.mark.parametrize("label", ["xn--x-", "xn--", "xn--a", "xn--99999999999999", "xn-bcher-kva"])
def test_a_label_that_stands_for_no_other_stays(label: str) -> None:
    assert canonical("email", f"u3@{label}.de") == f"u3@{label}.de"


def test_a_name_with_an_apostrophe_stays() -> None:
    assert canonical("email", "o'neill@x.com") == "o'neill@x.com"


@pytest.mark.parametrize("text", SEVERAL, ids=named)
def test_several_addresses_are_refused(text: str) -> None:
    with pytest.raises(InvalidIdsError, match="expected one address") as told:
        canonical("email", text)
    assert "x.org" not in str(told.value)


@pytest.mark.parametrize("text", ["A7\u200b", "\uff217", "mailto:a@x.org"], ids=named)
def test_what_is_exact_and_ids_of_records_stay_apart(text: str) -> None:
    assert canonical("exact", text) == text
    assert canonical("record.visits/id", text) == text


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    return Workspace.create(tmp_path / "ws")


def add(workspace: Workspace, type: str, text: str, name: str = "visits") -> int:
    source = workspace.context.root.parent / f"{name}.csv"
    quoted = text.replace('"', '""')
    source.write_text(f'n,who\n1,"{quoted}"\n2,other\n', encoding="utf-8")
    if type == "integer":
        source.write_text(f"n,who\n1,{text}\n2,99\n", encoding="utf-8")
    made = workspace.add_dataset(name, source, id_column="n", subjects=[f"who:{type}"])
    return made.n_suppressed


@pytest.mark.parametrize(("type", "plain", "text"), DISGUISED[::3], ids=named)
def test_nobody_comes_back_in_disguise(
    workspace: Workspace, type: str, plain: str, text: str
) -> None:
    add(workspace, type, plain)
    workspace.request([text], type=type)
    assert workspace.process().n_records == 1
    assert add(workspace, type, text, "later") == 1


@pytest.mark.parametrize(("type", "plain", "text"), DISGUISED[:-1:4], ids=named)
def test_what_an_earlier_version_hashed_stays_valid(
    workspace: Workspace, type: str, plain: str, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its tokens are in the data, and, after the request, on the list."""
    before = former(type, text)
    if before is None:  # it was refused then
        return
    with monkeypatch.context() as patched:
        patched.setattr("erasable.workspace.identity.keys.canonical", lambda *_: before)
        old = workspace.context.keys.token(type, text)
    add(workspace, type, plain)
    new = workspace.context.keys.token(type, plain)
    assert old != new
    workspace.request([plain], type=type)
    workspace.process()
    with workspace.context.ledger.transaction() as connection:  # as if it had been erased then
        connection.execute(update(suppression).values(token=old))
    monkeypatch.setattr("erasable.workspace.evidence.suppressions.check_list", lambda _: None)
    assert add(workspace, type, plain, "plain") == 0
    assert add(workspace, type, text, "disguised") == 1


def test_a_person_of_two_spellings_is_found_by_both(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A token of an earlier version in one data set, one of this version in another."""
    text = "A7\u200b"
    with monkeypatch.context() as patched:
        hashed = "erasable.workspace.identity.keys.canonical"
        patched.setattr(hashed, lambda kind, value, *_: former(kind, value) or value)
        add(workspace, "id", text, "old")
    add(workspace, "id", text, "new")
    workspace.request([text])
    assert workspace.process().n_records == 2
    assert workspace.verify_log() == []
    workspace.release(text)
    assert workspace.suppressed() == []
