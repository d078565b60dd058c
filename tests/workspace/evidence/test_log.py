"""The log: appended with what it tells of, and every way to tamper with it is found."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection, delete, select, update

from erasable.core.errors import EvidenceError
from erasable.workspace.context import Context
from erasable.workspace.evidence import log
from erasable.workspace.evidence.envelope import read_head
from erasable.workspace.evidence.formats import pack
from erasable.workspace.evidence.merkle import leaf_hash, verify_consistency, verify_inclusion
from erasable.workspace.identity.keys import Keys
from erasable.workspace.ledger.schema import log_entry, meta

AT = datetime(2026, 11, 2, 9, 30, tzinfo=UTC)
N = 12


@pytest.fixture
def context(tmp_path: Path) -> Context:
    """A workspace whose log has N entries and a head."""
    context = Context.create(tmp_path / "ws")
    with context.ledger.transaction() as connection:
        for i in range(1, N):
            log.append(context, connection, "request-started", f"R-{i}", {"batch": "b"}, AT)
        log.head(context, connection)
    return context


def add(context: Context, n: int = 1) -> None:
    with context.ledger.transaction() as connection:
        what = [log.Entry("request-started", f"R-more-{i}", {}, AT) for i in range(n)]
        log.append_many(context, connection, what)


def test_an_entry_is_canonical_json_under_its_leaf(context: Context) -> None:
    with context.ledger.reading() as connection:
        row = connection.execute(select(log_entry).where(log_entry.c.position == 3)).one()
    assert row.body == (
        b'{"at":"2026-11-02T09:30:00.000000Z","batch":"b","kind":"request-started","subject":"R-3"}'
    )
    assert row.leaf == leaf_hash(row.body)


def test_entries_come_back_in_order(context: Context) -> None:
    with context.ledger.reading() as connection:
        found = list(log.entries(connection, since=2, limit=3))
        assert [one["position"] for one in found] == [2, 3, 4]
        assert found[0] == {
            "position": 2,
            "kind": "request-started",
            "subject": "R-2",
            "at": "2026-11-02T09:30:00.000000Z",
            "batch": "b",
        }
        assert len(list(log.entries(connection))) == log.next_position(context, connection) == N


def test_positions_are_returned(context: Context) -> None:
    with context.ledger.transaction() as connection:
        assert log.append(context, connection, "k", "s", {}, AT) == N
        assert log.append_many(context, connection, [log.Entry("k", "s", {}, AT)] * 3) == N + 1
        assert log.append_many(context, connection, []) == N + 4


def test_an_entry_is_there_with_what_it_tells_of_or_not_at_all(context: Context) -> None:
    def fail() -> None:
        with context.ledger.transaction() as connection:
            log.append(context, connection, "k", "s", {}, AT)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    with context.ledger.reading() as connection:
        assert log.next_position(context, connection) == N
    assert log.verify_log(context) == []


@pytest.mark.parametrize("name", ["kind", "subject", "at"])
def test_a_body_may_not_write_over_the_rest(context: Context, name: str) -> None:
    with context.ledger.transaction() as connection, pytest.raises(EvidenceError, match=name):
        log.append(context, connection, "k", "s", {name: "x"}, AT)


@pytest.mark.parametrize("value", [float("nan"), b"x", "\ud800"], ids=ascii)
def test_what_json_cannot_say_is_refused(context: Context, value: object) -> None:
    with context.ledger.transaction() as connection, pytest.raises(EvidenceError, match="JSON"):
        log.append(context, connection, "k", "s", {"value": value}, AT)


# -- heads and proofs ------------------------------------------------------------------------------


def test_a_head_is_checked_with_the_public_key_alone(context: Context) -> None:
    with context.ledger.transaction() as connection:
        made = log.head(context, connection)
        assert log.last_head(context, connection) == made
        assert made["workspace"] == context.ledger.get(connection, "workspace")
        assert (made["size"], made["root"]) == (N, log.tree(connection).root().hex())
    assert read_head(made["envelope"], context.keys.public_pem) == made
    with pytest.raises(EvidenceError, match="signature does not hold"):
        read_head(made["envelope"], Keys.new().public_pem)


def test_a_head_may_be_signed_over_and_over(context: Context) -> None:
    for _ in range(3):
        add(context)
        with context.ledger.transaction() as connection:
            log.head(context, connection)
        assert log.verify_log(context) == []


def test_every_entry_is_proved_under_a_head(context: Context) -> None:
    with context.ledger.reading() as connection:
        signed = log.last_head(context, connection)
        assert signed is not None
        root = bytes.fromhex(signed["root"])
        bodies = connection.execute(select(log_entry.c.body).order_by(log_entry.c.position))
        for position, body in enumerate(bodies.scalars()):
            proof = log.tree(connection).inclusion(position)
            assert verify_inclusion(leaf_hash(body), position, signed["size"], proof, root)


def test_a_head_is_consistent_with_a_longer_log(context: Context) -> None:
    with context.ledger.transaction() as connection:
        old = log.head(context, connection)
    add(context, 9)
    with context.ledger.transaction() as connection:
        new = log.head(context, connection)
        proof = log.tree(connection).consistency(old["size"])
    roots = bytes.fromhex(old["root"]), bytes.fromhex(new["root"])
    assert verify_consistency(old["size"], new["size"], *roots, proof)
    assert log.verify_since(context, old["envelope"]) == []


# -- tampering -------------------------------------------------------------------------------------


def alter_body(connection: Connection) -> None:
    body = {
        "kind": "request-started",
        "subject": "R-5",
        "at": "2026-11-02T09:30:00.000000Z",
        "batch": "c",
    }
    connection.execute(update(log_entry).where(log_entry.c.position == 5).values(body=pack(body)))


def alter_leaf(connection: Connection) -> None:
    connection.execute(
        update(log_entry).where(log_entry.c.position == 5).values(leaf=leaf_hash(b"other"))
    )


def alter_body_and_leaf(connection: Connection) -> None:
    alter_body(connection)
    body = connection.execute(select(log_entry.c.body).where(log_entry.c.position == 5)).scalar()
    connection.execute(
        update(log_entry).where(log_entry.c.position == 5).values(leaf=leaf_hash(body))
    )


def alter_kind(connection: Connection) -> None:
    connection.execute(
        update(log_entry).where(log_entry.c.position == 5).values(kind="request-denied")
    )


def alter_subject(connection: Connection) -> None:
    connection.execute(update(log_entry).where(log_entry.c.position == 5).values(subject="R-6"))


def garble(connection: Connection) -> None:
    connection.execute(update(log_entry).where(log_entry.c.position == 5).values(body=b"\xff{"))


def remove_first(connection: Connection) -> None:
    connection.execute(delete(log_entry).where(log_entry.c.position == 0))


def remove_middle(connection: Connection) -> None:
    connection.execute(delete(log_entry).where(log_entry.c.position == 5))


def remove_middle_and_close_up(connection: Connection) -> None:
    remove_middle(connection)
    for position in range(6, N):
        connection.execute(
            update(log_entry).where(log_entry.c.position == position).values(position=position - 1)
        )


def remove_last(connection: Connection) -> None:
    connection.execute(delete(log_entry).where(log_entry.c.position == N - 1))


def add_one(connection: Connection) -> None:
    body = pack({"kind": "k", "subject": "s", "at": "now"})
    row = {"position": N, "kind": "k", "subject": "s", "body": body, "leaf": leaf_hash(body)}
    connection.execute(log_entry.insert().values(**row))


def swap(connection: Connection) -> None:
    for old, new in ((4, 99), (5, 4), (99, 5)):
        connection.execute(
            update(log_entry).where(log_entry.c.position == old).values(position=new)
        )


def forget_frontier(connection: Connection) -> None:
    connection.execute(delete(meta).where(meta.c.name == "frontier"))


def damage_frontier(connection: Connection) -> None:
    connection.execute(update(meta).where(meta.c.name == "frontier").values(value={"size": 3}))


TAMPERED: list[tuple[Callable[[Connection], None], str, bool]] = [
    # what is done; what is said; whether a head tells, when the frontier is forged to match
    (alter_body, "entry 5 of the log was altered", True),
    (alter_leaf, "entry 5 of the log was altered", False),
    (alter_body_and_leaf, "altered, removed, added or reordered", True),
    (alter_kind, "entry 5 of the log was altered", False),
    (alter_subject, "entry 5 of the log was altered", False),
    (garble, "entry 5 of the log was altered", True),
    (remove_first, "entry 0 of the log is missing", True),
    (remove_middle, "entry 5 of the log is missing", True),
    (remove_middle_and_close_up, "altered, removed, added or reordered", True),
    (remove_last, "its end was cut off", True),
    (add_one, "altered, removed, added or reordered", False),
    (swap, "altered, removed, added or reordered", True),
    (forget_frontier, "altered, removed, added or reordered", False),
    (damage_frontier, "right edge", False),
]
CASES = pytest.mark.parametrize(
    ("tamper", "told", "by_the_head"), TAMPERED, ids=[one[0].__name__ for one in TAMPERED]
)


@CASES
def test_tampering_is_found(context: Context, tamper: Any, told: str, by_the_head: bool) -> None:
    assert log.verify_log(context) == []
    with context.ledger.transaction() as connection:
        tamper(connection)
    found = log.verify_log(context)
    assert any(told in line for line in found), found
    assert all("\n" not in line for line in found)


@CASES
def test_a_head_tells_even_when_the_ledger_is_forged_to_match(
    context: Context, tamper: Any, told: str, by_the_head: bool
) -> None:
    with context.ledger.reading() as connection:
        kept = log.last_head(context, connection)
    assert kept is not None
    with context.ledger.transaction() as connection:
        tamper(connection)
        forge(context, connection)
        context.ledger.set(connection, "signed_head", None)
    assert bool(log.verify_since(context, kept["envelope"])) == by_the_head


def forge(context: Context, connection: Connection) -> None:
    """Make leaves, positions and frontier anew, as whoever tampers would."""
    from erasable.workspace.evidence.merkle import MerkleFrontier

    rows = connection.execute(select(log_entry).order_by(log_entry.c.position)).all()
    frontier = MerkleFrontier()
    connection.execute(delete(log_entry))
    for position, row in enumerate(rows):
        leaf = leaf_hash(row.body)
        frontier.append(leaf)
        new = {**row._mapping, "position": position, "leaf": leaf}
        connection.execute(log_entry.insert().values(**new))
    context.ledger.set(connection, "frontier", frontier.to_json())


def test_a_cut_is_found_against_the_last_head_though_the_frontier_is_cut_too(
    context: Context,
) -> None:
    with context.ledger.transaction() as connection:
        remove_last(connection)
        forge(context, connection)
    assert log.verify_log(context) == [
        line for line in log.verify_log(context) if "its end was cut off" in line
    ]
    assert len(log.verify_log(context)) == 1


def test_a_forged_head_is_found(context: Context) -> None:
    other = Context.create(context.root.parent / "other")
    with other.ledger.transaction() as connection:
        foreign = log.head(other, connection)
    with context.ledger.transaction() as connection:
        context.ledger.set(connection, "signed_head", foreign["envelope"])
    assert "signature does not hold" in log.verify_log(context)[0]


def test_a_removed_head_is_found_once_a_request_was_completed(context: Context) -> None:
    with context.ledger.transaction() as connection:
        log.append(context, connection, "request-completed", "R-1", {}, AT)
        connection.execute(delete(meta).where(meta.c.name == "signed_head"))
    assert log.verify_log(context) == [
        "requests were completed, but the log has no signed head: it was removed"
    ]


def test_a_head_of_another_workspace_with_the_same_keys_is_told(context: Context) -> None:
    with context.ledger.transaction() as connection:
        kept = log.head(context, connection)
        context.ledger.set(connection, "workspace", "00" * 16)
    with pytest.raises(EvidenceError, match="another workspace"):
        log.verify_since(context, kept["envelope"])
    assert log.verify_log(context) == ["the last signed head of the log is of another workspace"]


@pytest.mark.parametrize(
    "value", [None, {}, [], "head", {"payload": "", "signatures": []}], ids=str
)
def test_what_is_no_head_is_told(context: Context, value: object) -> None:
    with pytest.raises(EvidenceError, match="envelope cannot be read"):
        log.verify_since(context, value)


def test_an_append_does_not_read_the_log(context: Context) -> None:
    # 5,000 entries in transactions of 10 must not cost more, each, the longer the log is. What an
    # append executes is counted, since a test on times would fail on a busy machine.
    from sqlalchemy import event

    executed: list[str] = []
    with context.ledger.transaction() as connection:
        event.listen(connection, "before_cursor_execute", lambda *a: executed.append(a[2]))
        log.append_many(context, connection, [log.Entry("k", "s", {}, AT)] * 10)
    # The frontier is read, the entries are written, then the frontier and its seal.
    assert len(executed) == 4
    assert not any("SELECT" in one and "log_entry" in one for one in executed)
