from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import func, select, update

from effort import examples
from erasable.core.errors import InvalidIdsError, InvalidParameterError, NotInWorkspaceError
from erasable.workspace.evidence import log
from erasable.workspace.identity import subjects
from erasable.workspace.ledger.bulk import delete_in
from erasable.workspace.ledger.schema import identity, log_entry
from erasable.workspace.site import Site


def ensure(site, *identities):
    """Make subjects of (type, value) pairs, each one of its own."""
    with site.ledger.transaction() as connection:
        return subjects.ensure(
            site,
            connection,
            [(site.keys.token(type, value), type) for type, value in identities],
        )


def find(site, value, type=None):
    with site.ledger.reading() as connection:
        return subjects.find(site, connection, value, type)


def tokens(site, value, type=None):
    """Return the tokens of whoever a value identifies, in order, each with its type."""
    with site.ledger.reading() as connection:
        subject = subjects.find(site, connection, value, type)
        own = select(identity).where(identity.c.subject == subject).order_by(identity.c.token)
        return [(row.token, row.type) for row in connection.execute(own)]


def candidates(site, connection, value, types):
    (found,) = subjects.candidates_of(site, connection, [value], types)
    return found


def forget(connection, tokens):
    return delete_in(connection, identity.c.token, tokens)


def count(site):
    with site.ledger.reading() as connection:
        return connection.execute(select(func.count()).select_from(identity)).scalar_one()


def test_each_new_token_gets_a_subject_of_its_own(site):
    assert ensure(site, ("id", 17), ("id", 18), ("email", "a@x.com"), ("id", "17")) == 3
    assert ensure(site, ("id", 17), ("id", 19)) == 1
    names = {find(site, value) for value in (17, 18, 19, "a@x.com")}
    assert len(names) == count(site) == 4


def test_many_tokens_take_several_statements(site):
    pairs = [(f"{number:032x}", "id") for number in range(12_000)]
    with site.ledger.transaction() as connection:
        assert subjects.ensure(site, connection, pairs[:7_000]) == 7_000
    with site.ledger.transaction() as connection:
        assert subjects.ensure(site, connection, pairs) == 5_000
        assert forget(connection, [token for token, _ in pairs[1:]]) == 11_999
    assert count(site) == 1


def test_found_by_any_spelling_and_type(site):
    ensure(site, ("staff/id", 17))
    found = find(site, " 17.0 ")
    assert found == find(site, 17, "staff/id")
    assert tokens(site, 17) == [(site.keys.token("staff/id", 17), "staff/id")]
    assert find(site, 17, "id") is None
    assert find(site, 18) is None


def test_one_value_of_two_subjects_needs_its_type(site):
    ensure(site, ("staff/id", 17), ("customers/id", 17))
    with pytest.raises(InvalidIdsError, match=r"'customers/id', 'staff/id'; .*--type") as told:
        find(site, 17)
    assert "17" not in str(told.value)
    assert find(site, 17, "staff/id") != find(site, 17, "customers/id")


def test_candidates_of_a_known_value_are_what_it_is_known_as(site):
    ensure(site, ("staff/id", 17), ("customers/id", 18), ("email", "a@x.com"))
    with site.ledger.reading() as connection:
        known = candidates(site, connection, 17, subjects.types_in_use(connection))
        unknown = candidates(site, connection, 99, subjects.types_in_use(connection))
    assert known == [("staff/id", site.keys.token("staff/id", 17))]
    # A number is no email.
    assert sorted(kind for kind, _ in unknown) == ["customers/id", "staff/id"]


def test_candidates_of_many_are_those_of_each(site):
    ensure(site, ("staff/id", 17), ("customers/id", 18), ("email", "a@x.com"))
    values = [18, "A@x.com", 99, 17, 18]
    with site.ledger.reading() as connection:
        types = subjects.types_in_use(connection)
        alone = [candidates(site, connection, value, types) for value in values]
        assert subjects.candidates_of(site, connection, values, types) == alone
        assert alone[0] == [("customers/id", site.keys.token("customers/id", 18))]
    ensure(site, ("customers/id", 17))
    with site.ledger.reading() as connection, pytest.raises(InvalidIdsError, match="'staff/id'"):
        subjects.candidates_of(site, connection, values, types)


def test_candidates_in_an_empty_workspace_are_ids(site):
    with site.ledger.reading() as connection:
        assert candidates(site, connection, 7, subjects.types_in_use(connection)) == [
            ("id", site.keys.token("id", 7))
        ]


@pytest.mark.parametrize("value", [None, "", 17.5, True, "\ud800"])
def test_what_suits_no_type_is_refused(site, value):
    for known in ([], [("email", "a@x.com")], [("integer", 3)]):
        ensure(site, *known)
        with pytest.raises(InvalidIdsError) as told:
            find(site, value)
        assert "\n" not in str(told.value)


def test_unknown_type_is_refused(site):
    with pytest.raises(InvalidParameterError):
        find(site, 17, "phone")


def test_linked_identities_are_one_subject(site):
    ensure(site, ("id", 17), ("email", "a@x.com"), ("email", "b@x.com"), ("id", 18))
    subjects.link(site, 17, "id", "A@x.com", "email")
    subjects.link(site, "b@x.com", None, 17, None)
    assert len(tokens(site, "b@x.com")) == 3
    assert tokens(site, "a@x.com") == tokens(site, 17) == tokens(site, "b@x.com")
    assert len(tokens(site, 18)) == 1


def test_subjects_of_the_same_value_may_be_linked(site):
    ensure(site, ("staff/id", 17), ("customers/id", 17))
    subjects.link(site, 17, "staff/id", 17, "customers/id")
    assert len(tokens(site, 17)) == 2


def test_a_new_identity_may_be_linked_to_a_known_one(site):
    ensure(site, ("id", 17))
    subjects.link(site, "a@x.com", "email", 17, None)
    assert find(site, "a@x.com") == find(site, 17) is not None
    with pytest.raises(NotInWorkspaceError, match="expected its type"):
        subjects.link(site, 17, None, "c@x.com", None)
    assert count(site) == 2


def test_two_unknown_identities_are_not_linked(site):
    ensure(site, ("id", 17))
    with pytest.raises(NotInWorkspaceError, match="neither identity is known"):
        subjects.link(site, 18, "id", "a@x.com", "email")
    assert count(site) == 1


def test_links_are_logged_once_and_without_identity(site):
    ensure(site, ("id", 17), ("email", "a@x.com"))
    for _ in range(2):
        subjects.link(site, 17, "id", "a@x.com", "email")
    with site.ledger.reading() as connection:
        bodies = connection.execute(
            select(log_entry.c.body).where(log_entry.c.kind == "subjects-linked")
        ).scalars()
        (body,) = list(bodies)
    assert json.loads(body).keys() == {"kind", "subject", "at"}
    for hidden in (find(site, 17), *(token for token, _ in tokens(site, 17)), "a@x.com"):
        assert hidden.encode() not in body
    assert log.verify_log(site) == []


def test_the_type_of_a_request_counts_and_not_what_the_ledger_says_of_its_token(site):
    """Somebody who alters the latter would have a request search other columns."""
    ensure(site, ("id", "17"))
    token = site.keys.token("id", "17")
    with site.ledger.transaction() as connection:
        connection.execute(update(identity).values(type="email"))
        assert subjects.expand(connection, [["id", token]]) == [("id", token)]


def test_expand_reaches_every_token_and_keeps_unknown_ones(site):
    ensure(site, ("id", 17), ("email", "a@x.com"), ("id", 18))
    subjects.link(site, 17, "id", "a@x.com", "email")
    t = site.keys.token
    with site.ledger.reading() as connection:
        found = subjects.expand(connection, [["id", t("id", 17)], ["id", t("id", 99)]])
    expected = {("id", t("id", 17)), ("email", t("email", "a@x.com")), ("id", t("id", 99))}
    assert set(found) == expected
    assert [token for _, token in found] == sorted(token for _, token in expected)


def test_forgotten_tokens_are_nobody(site):
    ensure(site, ("id", 17), ("id", 18))
    with site.ledger.transaction() as connection:
        assert forget(connection, [site.keys.token("id", value) for value in (17, 99)]) == 1
    assert find(site, 17) is None
    assert find(site, 18) is not None


def test_types_in_use_are_kept_when_their_last_identity_goes(site):
    ensure(site, ("staff/id", 17))
    ensure(site, ("email", "a@x.com"))
    with site.ledger.transaction() as connection:
        forget(connection, [site.keys.token("staff/id", 17)])
        assert subjects.types_in_use(connection) == ["email", "staff/id"]


@settings(max_examples=examples(15))
@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=12))
def test_links_join_like_an_oracle(tmp_path_factory, links):
    site = Site.create(tmp_path_factory.mktemp("links") / "w")
    ensure(site, *[("id", number) for number in range(10)])
    groups = {number: {number} for number in range(10)}
    for one, other in links:
        subjects.link(site, one, "id", other, "id")
        joined = groups[one] | groups[other]
        for number in joined:
            groups[number] = joined
    for number, group in groups.items():
        expected = sorted(site.keys.token("id", one) for one in group)
        assert [token for token, _ in tokens(site, number)] == expected
