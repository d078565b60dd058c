"""The suppression list against the log: no token leaves it, joins it or is altered unseen."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from kept_out import EARLY, LATE, listing, suppress
from sqlalchemy import Connection, delete, select, update

from erasable.workspace.context import Context
from erasable.workspace.evidence import log, suppressions
from erasable.workspace.evidence.commitments import commitment
from erasable.workspace.evidence.formats import pack, stamp
from erasable.workspace.identity import suppression
from erasable.workspace.ledger.schema import log_entry, suppression_salt
from erasable.workspace.ledger.schema import suppression as listed

PERSON = "anna.schmidt@example.org"


@pytest.fixture
def context(tmp_path: Path) -> Context:
    """R-1 keeps out two people, R-2 one, R-3 none any more."""
    made = Context.create(tmp_path / "ws")
    suppress(made, ("id", 1), ("id", 2))
    suppress(made, ("email", PERSON), request="R-2", now=LATE)
    suppress(made, ("id", 3), request="R-3")
    suppression.release(made, 3)
    return made


def of(context: Context, value: Any, type: str = "id") -> Any:
    return listed.c.token == context.keys.token(type, value)


def put_on(connection: Connection, request: str) -> None:
    row = {"token": "00" * 16, "type": "id", "request_id": request, "since": EARLY}
    connection.execute(listed.insert().values(row))


def salt(request: str) -> Any:
    return suppression_salt.c.request_id == request


TAMPERED: dict[str, tuple[Callable[[Context, Connection], object], str, str]] = {
    # what is done to the ledger, of which request it is told, what is told
    "one taken off": (
        lambda s, c: c.execute(delete(listed).where(of(s, 1))), "R-1", "1 identity, and not 2",
    ),
    "the only one taken off": (
        lambda s, c: c.execute(delete(listed).where(of(s, PERSON, "email"))),
        "R-2",
        "no identities, and not 1",
    ),
    "with its salt": (
        lambda s, c: (
            c.execute(delete(listed).where(of(s, PERSON, "email"))),
            c.execute(delete(suppression_salt).where(salt("R-2"))),
        ),
        "R-2",
        "no identities, and its salt is missing",
    ),
    "with the number": (
        lambda s, c: (
            c.execute(delete(listed).where(of(s, 1))),
            c.execute(update(suppression_salt).where(salt("R-1")).values(n_tokens=1)),
        ),
        "R-1",
        "1 identity, one of which, or the salt, was altered",
    ),
    "one put on": (lambda s, c: put_on(c, "R-2"), "R-2", "2 identities, and not 1"),
    "one put on again": (lambda s, c: put_on(c, "R-3"), "R-3", "1 identity, and not 0"),
    "of a request without an entry": (
        lambda s, c: put_on(c, "R-9"), "R-9", "1 identity that the log does not know of",
    ),
    "another token": (
        lambda s, c: c.execute(update(listed).where(of(s, 1)).values(token="00" * 16)),
        "R-1",
        "was altered",
    ),
    "another type": (
        lambda s, c: c.execute(update(listed).where(of(s, 1)).values(type="exact")),
        "R-1",
        "was altered",
    ),
    "another time": (
        lambda s, c: c.execute(update(listed).where(of(s, 1)).values(since=LATE)),
        "R-1",
        "was altered",
    ),
    "another salt": (
        lambda s, c: c.execute(update(suppression_salt).where(salt("R-1")).values(salt="00" * 32)),
        "R-1",
        "was altered",
    ),
    "no salt": (
        lambda s, c: c.execute(update(suppression_salt).where(salt("R-1")).values(salt="é")),
        "R-1",
        "was altered",
    ),
    "another number": (
        lambda s, c: c.execute(update(suppression_salt).where(salt("R-1")).values(n_tokens=5)),
        "R-1",
        "2 identities, and not 5",
    ),
}  # fmt: skip


def test_a_list_that_nobody_touched_is_what_the_log_says(context: Context) -> None:
    assert suppressions.compare_list_with_log(context) == []
    assert log.verify_log(context) == []


@pytest.mark.parametrize("what", TAMPERED)
def test_each_change_is_told_in_one_line(context: Context, what: str) -> None:
    change, request, told = TAMPERED[what]
    with context.ledger.transaction() as connection:
        change(context, connection)
    (line,) = suppressions.compare_list_with_log(context)
    assert f"for request '{request}' it holds " in line
    assert told in line
    assert "run `erasable suppress import`" in line
    assert "\n" not in line


def test_one_moved_to_another_request_is_told_of_both(context: Context) -> None:
    with context.ledger.transaction() as connection:
        connection.execute(update(listed).where(of(context, 1)).values(request_id="R-2"))
    lines = suppressions.compare_list_with_log(context)
    assert len(lines) == 2
    assert "'R-1' it holds 1 identity, and not 2" in lines[0]
    assert "'R-2' it holds 2 identities, and not 1" in lines[1]


def test_every_column_of_the_list_is_tampered_with_above() -> None:
    tried = {"token", "type", "since", "request_id"}
    assert {column.name for column in listed.columns} == tried
    assert {column.name for column in suppression_salt.columns} == {
        "request_id",
        "salt",
        "n_tokens",
    }


def test_an_entry_that_says_something_else_is_no_way_out(context: Context) -> None:
    """The log itself is told of, then."""
    with context.ledger.transaction() as connection:
        at = log_entry.c.kind == "request-erased"
        row = connection.execute(select(log_entry).where(at, log_entry.c.subject == "R-2")).one()
        body = pack({**json.loads(row.body), "suppressed": None})
        connection.execute(
            update(log_entry).where(log_entry.c.position == row.position).values(body=body)
        )
        connection.execute(delete(listed).where(of(context, PERSON, "email")))
    assert suppressions.compare_list_with_log(context) == []
    assert log.verify_log(context) != []


# -- evidence does not betray ----------------------------------------------------------------------

CANDIDATES = [f"{name}@example.org" for name in ("bob", "anna.schmidt", "carol", "dan")]


def guesses(context: Context, published: set[str], salts: set[str]) -> list[str]:
    """Commit to each candidate, as whoever has the keys and knows the time can; compare."""
    since = stamp(LATE)
    found = []
    for candidate in CANDIDATES:
        token = context.keys.token("email", candidate)
        text = pack({"n": 1, "rows": [[token, "email", since]]}).decode()
        found += [candidate for each in salts if commitment(each, text) in published]
    return found


def test_the_log_does_not_tell_who_is_kept_out(context: Context) -> None:
    with context.ledger.reading() as connection:
        bodies = list(connection.execute(select(log_entry.c.body)).scalars())
        (own,) = connection.execute(select(suppression_salt.c.salt).where(salt("R-2"))).scalars()
        every = list(connection.execute(select(suppression_salt.c.salt)).scalars())
    published = set(re.findall("[0-9a-f]{64}", b"".join(bodies).decode()))
    known = {"", "00" * 32, *published}  # what a salt could be to whoever has the log alone
    # The control: with the salt, which the ledger alone holds, the attack is good.
    assert guesses(context, published, {own}) == [PERSON]
    assert guesses(context, published, known) == []
    assert len({*every}) == 3
    assert published.isdisjoint(every)
    for each in listing(context):
        assert not any(each["token"].encode() in body for body in bodies)


def test_a_release_destroys_the_salt_that_was(context: Context) -> None:
    """Else the ledger and the log together would still tell who was let in again."""
    with context.ledger.reading() as connection:
        before = connection.execute(select(suppression_salt.c.salt).where(salt("R-1"))).scalar()
    suppression.release(context, 1)
    with context.ledger.reading() as connection:
        after = connection.execute(select(suppression_salt)).all()
    assert before not in {row.salt for row in after}
    assert {row.request_id: row.n_tokens for row in after} == {"R-1": 1, "R-2": 1, "R-3": 0}
