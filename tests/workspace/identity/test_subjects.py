from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import func, select, update

from effort import examples
from erasable.core.errors import InvalidIdsError, InvalidParameterError, NotInWorkspaceError
from erasable.workspace.context import Context
from erasable.workspace.evidence import log
from erasable.workspace.identity import subjects
from erasable.workspace.ledger.bulk import delete_in
from erasable.workspace.ledger.schema import identity, log_entry


def ensure(context, *identities):
    """Make subjects of (type, value) pairs, each one of its own."""
    with context.ledger.transaction() as connection:
        return subjects.ensure(
            context,
            connection,
            [(context.keys.token(type, value), type) for type, value in identities],
        )


def find(context, value, type=None):
    with context.ledger.reading() as connection:
        return subjects.find(context, connection, value, type)


def tokens(context, value, type=None):
    """Return the tokens of whoever a value identifies, in order, each with its type."""
    with context.ledger.reading() as connection:
        subject = subjects.find(context, connection, value, type)
        own = select(identity).where(identity.c.subject == subject).order_by(identity.c.token)
        return [(row.token, row.type) for row in connection.execute(own)]


def candidates(context, connection, value, types):
    (found,) = subjects.candidates_of(context, connection, [value], types)
    return found


def forget(connection, tokens):
    return delete_in(connection, identity.c.token, tokens)


def count(context):
    with context.ledger.reading() as connection:
        return connection.execute(select(func.count()).select_from(identity)).scalar_one()


def test_each_new_token_gets_a_subject_of_its_own(context):
    assert ensure(context, ("id", 17), ("id", 18), ("email", "a@x.com"), ("id", "17")) == 3
    assert ensure(context, ("id", 17), ("id", 19)) == 1
    names = {find(context, value) for value in (17, 18, 19, "a@x.com")}
    assert len(names) == count(context) == 4


def test_many_tokens_take_several_statements(context):
    pairs = [(f"{number:032x}", "id") for number in range(12_000)]
    with context.ledger.transaction() as connection:
        assert subjects.ensure(context, connection, pairs[:7_000]) == 7_000
    with context.ledger.transaction() as connection:
        assert subjects.ensure(context, connection, pairs) == 5_000
        assert forget(connection, [token for token, _ in pairs[1:]]) == 11_999
    assert count(context) == 1


def test_found_by_any_spelling_and_type(context):
    ensure(context, ("staff/id", 17))
    found = find(context, " 17.0 ")
    assert found == find(context, 17, "staff/id")
    assert tokens(context, 17) == [(context.keys.token("staff/id", 17), "staff/id")]
    assert find(context, 17, "id") is None
    assert find(context, 18) is None


def test_one_value_of_two_subjects_needs_its_type(context):
    ensure(context, ("staff/id", 17), ("customers/id", 17))
    with pytest.raises(InvalidIdsError, match=r"'customers/id', 'staff/id'; .*--type") as told:
        find(context, 17)
    assert "17" not in str(told.value)
    assert find(context, 17, "staff/id") != find(context, 17, "customers/id")


def test_candidates_of_a_known_value_are_what_it_is_known_as(context):
    ensure(context, ("staff/id", 17), ("customers/id", 18), ("email", "a@x.com"))
    with context.ledger.reading() as connection:
        known = candidates(context, connection, 17, subjects.types_in_use(connection))
        unknown = candidates(context, connection, 99, subjects.types_in_use(connection))
    assert known == [("staff/id", context.keys.token("staff/id", 17))]
    # A number is no email.
    assert sorted(kind for kind, _ in unknown) == ["customers/id", "staff/id"]


def test_candidates_of_many_are_those_of_each(context):
    ensure(context, ("staff/id", 17), ("customers/id", 18), ("email", "a@x.com"))
    values = [18, "A@x.com", 99, 17, 18]
    with context.ledger.reading() as connection:
        types = subjects.types_in_use(connection)
        alone = [candidates(context, connection, value, types) for value in values]
        assert subjects.candidates_of(context, connection, values, types) == alone
        assert alone[0] == [("customers/id", context.keys.token("customers/id", 18))]
    ensure(context, ("customers/id", 17))
    with context.ledger.reading() as connection, pytest.raises(InvalidIdsError, match="'staff/id'"):
        subjects.candidates_of(context, connection, values, types)


def test_candidates_in_an_empty_workspace_are_ids(context):
    with context.ledger.reading() as connection:
        assert candidates(context, connection, 7, subjects.types_in_use(connection)) == [
            ("id", context.keys.token("id", 7))
        ]


@pytest.mark.parametrize("value", [None, "", 17.5, True, "\ud800"])
def test_what_suits_no_type_is_refused(context, value):
    for known in ([], [("email", "a@x.com")], [("integer", 3)]):
        ensure(context, *known)
        with pytest.raises(InvalidIdsError) as told:
            find(context, value)
        assert "\n" not in str(told.value)


def test_unknown_type_is_refused(context):
    with pytest.raises(InvalidParameterError):
        find(context, 17, "telephone")


def test_linked_identities_are_one_subject(context):
    ensure(context, ("id", 17), ("email", "a@x.com"), ("email", "b@x.com"), ("id", 18))
    subjects.link(context, 17, "id", "A@x.com", "email")
    subjects.link(context, "b@x.com", None, 17, None)
    assert len(tokens(context, "b@x.com")) == 3
    assert tokens(context, "a@x.com") == tokens(context, 17) == tokens(context, "b@x.com")
    assert len(tokens(context, 18)) == 1


def test_subjects_of_the_same_value_may_be_linked(context):
    ensure(context, ("staff/id", 17), ("customers/id", 17))
    subjects.link(context, 17, "staff/id", 17, "customers/id")
    assert len(tokens(context, 17)) == 2


def test_a_new_identity_may_be_linked_to_a_known_one(context):
    ensure(context, ("id", 17))
    subjects.link(context, "a@x.com", "email", 17, None)
    assert find(context, "a@x.com") == find(context, 17) is not None
    with pytest.raises(NotInWorkspaceError, match="expected its type"):
        subjects.link(context, 17, None, "c@x.com", None)
    assert count(context) == 2


def test_two_unknown_identities_are_not_linked(context):
    ensure(context, ("id", 17))
    with pytest.raises(NotInWorkspaceError, match="neither identity is known"):
        subjects.link(context, 18, "id", "a@x.com", "email")
    assert count(context) == 1


def test_links_are_logged_once_and_without_identity(context):
    ensure(context, ("id", 17), ("email", "a@x.com"))
    for _ in range(2):
        subjects.link(context, 17, "id", "a@x.com", "email")
    with context.ledger.reading() as connection:
        bodies = connection.execute(
            select(log_entry.c.body).where(log_entry.c.kind == "subjects-linked")
        ).scalars()
        (body,) = list(bodies)
    assert json.loads(body).keys() == {"kind", "subject", "at"}
    for hidden in (find(context, 17), *(token for token, _ in tokens(context, 17)), "a@x.com"):
        assert hidden.encode() not in body
    assert log.verify_log(context) == []


def test_the_type_of_a_request_counts_and_not_what_the_ledger_says_of_its_token(context):
    """Somebody who alters the latter would have a request search other columns."""
    ensure(context, ("id", "17"))
    token = context.keys.token("id", "17")
    with context.ledger.transaction() as connection:
        connection.execute(update(identity).values(type="email"))
        assert subjects.expand(connection, [["id", token]]) == [("id", token)]


def test_expand_reaches_every_token_and_keeps_unknown_ones(context):
    ensure(context, ("id", 17), ("email", "a@x.com"), ("id", 18))
    subjects.link(context, 17, "id", "a@x.com", "email")
    t = context.keys.token
    with context.ledger.reading() as connection:
        found = subjects.expand(connection, [["id", t("id", 17)], ["id", t("id", 99)]])
    expected = {("id", t("id", 17)), ("email", t("email", "a@x.com")), ("id", t("id", 99))}
    assert set(found) == expected
    assert [token for _, token in found] == sorted(token for _, token in expected)


def test_forgotten_tokens_are_nobody(context):
    ensure(context, ("id", 17), ("id", 18))
    with context.ledger.transaction() as connection:
        assert forget(connection, [context.keys.token("id", value) for value in (17, 99)]) == 1
    assert find(context, 17) is None
    assert find(context, 18) is not None


def test_types_in_use_are_kept_when_their_last_identity_goes(context):
    ensure(context, ("staff/id", 17))
    ensure(context, ("email", "a@x.com"))
    with context.ledger.transaction() as connection:
        forget(connection, [context.keys.token("staff/id", 17)])
        assert subjects.types_in_use(connection) == ["email", "staff/id"]


@settings(max_examples=examples(15))
@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=12))
def test_links_join_like_an_oracle(tmp_path_factory, links):
    context = Context.create(tmp_path_factory.mktemp("links") / "w")
    ensure(context, *[("id", number) for number in range(10)])
    groups = {number: {number} for number in range(10)}
    for one, other in links:
        subjects.link(context, one, "id", other, "id")
        joined = groups[one] | groups[other]
        for number in joined:
            groups[number] = joined
    for number, group in groups.items():
        expected = sorted(context.keys.token("id", one) for one in group)
        assert [token for token, _ in tokens(context, number)] == expected
