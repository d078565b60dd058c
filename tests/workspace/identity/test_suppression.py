from __future__ import annotations

import json

import pytest
from kept_out import EARLY, LATE, listing, suppress
from sqlalchemy import delete, select

from erasable.core.errors import EvidenceError, InvalidIdsError, NotInWorkspaceError
from erasable.workspace.evidence import log, suppressions
from erasable.workspace.identity import subjects, suppression
from erasable.workspace.ledger.schema import log_entry
from erasable.workspace.ledger.schema import suppression as suppression_table


def test_first_entry_of_a_token_stays(context):
    assert suppress(context, ("id", 17), ("id", "17"), ("email", "a@x.com")) == 2
    assert suppress(context, ("id", 17), ("id", 18), request="R-2", now=LATE) == 1
    kept = {entry["token"]: entry for entry in listing(context)}
    first = kept[context.keys.token("id", 17)]
    assert (first["request_id"], first["since"], first["type"]) == ("R-1", EARLY, "id")
    assert kept[context.keys.token("id", 18)]["request_id"] == "R-2"
    assert [entry["since"] for entry in listing(context)] == [EARLY, EARLY, LATE]


@pytest.mark.parametrize("n_asked", [1, 3, 50], ids=["fewer", "as many", "more"])
def test_suppressed_tokens_are_told_from_others(context, n_asked):
    suppress(context, *[("id", number) for number in range(3)])
    asked = [context.keys.token("id", number) for number in range(n_asked)]
    with context.ledger.reading() as connection:
        found = suppression.suppressed(connection, [*asked, asked[0]])
        assert suppression.suppressed(connection, [context.keys.token("email", "1")]) == set()
        assert suppression.suppressed(connection, []) == set()
    assert found == set(asked[:3])


def test_release_takes_one_identity_off(context):
    suppress(context, ("staff/id", 17), ("email", "a@x.com"))
    assert suppression.release(context, " 17.0") == "staff/id"
    assert [entry["type"] for entry in listing(context)] == ["email"]
    assert suppression.release(context, "A@X.COM", "email") == "email"
    assert listing(context) == []


@pytest.mark.parametrize(("value", "type"), [(17, "id"), ("A@X.com", "email")])
def test_release_takes_off_the_other_identity_of_the_records(context, value, type):
    suppress(context, ("id", 17), ("email", "a@x.com"), ("staff/id", 17))
    suppress(context, ("email", "b@x.com"), request="R-2")
    assert suppression.release(context, value, type) == type
    left = {context.keys.token("staff/id", 17), context.keys.token("email", "b@x.com")}
    assert {entry["token"] for entry in listing(context)} == left
    assert suppressions.compare_list_with_log(context) == []


def test_release_takes_off_one_record_of_a_condition(context):
    suppress(context, ("record.visits/id", 17), ("record.visits/id", 18))
    suppression.release(context, 17, "record.visits/id")
    assert [entry["token"] for entry in listing(context)] == [
        context.keys.token("record.visits/id", 18)
    ]


def test_release_is_logged_without_identity(context):
    suppress(context, ("id", 17), request="R-7")
    token = context.keys.token("id", 17)
    suppression.release(context, 17)
    with context.ledger.reading() as connection:
        (body,) = connection.execute(
            select(log_entry.c.body).where(log_entry.c.kind == "suppression-released")
        ).scalars()
    assert json.loads(body)["subject"] == "R-7"
    assert token.encode() not in body
    assert log.verify_log(context) == []


def test_release_of_what_is_not_there_changes_nothing(context):
    suppress(context, ("id", 17))
    with context.ledger.reading() as connection:
        before = log.next_position(context, connection)
    for value, type in [(18, None), (17, "email/id"), ("a@x.com", "email")]:
        with pytest.raises(NotInWorkspaceError, match="not on the suppression list"):
            suppression.release(context, value, type)
    with context.ledger.reading() as connection:
        assert log.next_position(context, connection) == before
    assert len(listing(context)) == 1


def test_release_under_two_types_needs_one(context):
    suppress(context, ("staff/id", 17), ("record.visits/id", 17))
    with pytest.raises(InvalidIdsError, match="--type"):
        suppression.release(context, 17)
    assert len(listing(context)) == 2
    assert suppression.release(context, 17, "record.visits/id") == "record.visits/id"


def test_suppression_does_not_add_to_the_types_that_requests_are_tried_under(context):
    suppress(context, ("record.visits/id", 17))
    with context.ledger.reading() as connection:
        assert subjects.types_in_use(connection) == []


def test_the_log_agrees_with_the_list_after_each_change(context):
    for change in (
        lambda: suppress(context, ("id", 1), ("id", 2)),
        lambda: suppress(context, ("id", 2), request="R-2"),
        lambda: suppress(context, ("id", 3), request="R-1"),  # a list was imported before the batch
        lambda: suppression.release(context, 2),
        lambda: suppression.release(context, 1),
        lambda: suppression.release(context, 3),
        lambda: suppress(context, ("id", 2), request="R-3"),
    ):
        change()
        assert suppressions.compare_list_with_log(context) == []
    assert len(listing(context)) == 1


def test_release_does_not_hide_what_was_taken_off(context):
    """Else the entry of the release would commit to the list as somebody left it."""
    suppress(context, ("id", 1), ("id", 2))
    with context.ledger.transaction() as connection:
        gone = suppression_table.c.token == context.keys.token("id", 1)
        connection.execute(delete(suppression_table).where(gone))
    with pytest.raises(
        EvidenceError, match="'R-1' it holds 1 identity, and not 2; expected"
    ) as told:
        suppression.release(context, 2)
    assert "\n" not in str(told.value)
    assert len(listing(context)) == 1
    assert len(suppressions.compare_list_with_log(context)) == 1


def test_a_batch_does_not_hide_what_was_put_on_under_its_name(context):
    with context.ledger.transaction() as connection:
        smuggled = {"token": "00" * 16, "type": "id", "request_id": "R-1", "since": EARLY}
        connection.execute(suppression_table.insert().values(smuggled))
    suppress(context, ("id", 1))
    (line,) = suppressions.compare_list_with_log(context)
    assert "'R-1' it holds 2 identities, and not 1" in line
