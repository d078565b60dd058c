"""People of a workspace, told from others by the tokens of values."""

from __future__ import annotations

from uuid import UUID

import pytest
from erased_people import erased_from

from erasable.workspace import Workspace
from erasable.workspace.targets.people import Asked, Suppressed
from erasable.workspace.targets.protocol import Subject

SOMEBODY = UUID("01234567-89ab-cdef-0123-456789abcdef")


@pytest.fixture(scope="module")
def known(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    folder = tmp_path_factory.mktemp("known")
    people = {"mail": ["ann@x.org", "bob@x.org"], "who": ["7", str(SOMEBODY)]}
    gone = {"email": ["ann@x.org"], "id": [7, str(SOMEBODY)]}
    return erased_from(folder, people, gone, ["mail:email", "who"])


def test_spellings_of_one_person_have_one_name(known: Workspace) -> None:
    spelled = ["Ann@X.org", " ann@x.org ", "Ann <ann@x.org>", "carl@x.org", "", 7, None, b"ann"]
    found = Suppressed(known.context).among(spelled, Subject("mail", "email"))
    assert set(found) == set(spelled[:3])
    assert len(set(found.values())) == 1


def test_values_of_other_types(known: Workspace) -> None:
    values = [7, "7", 7.0, SOMEBODY, "ann@x.org", 8, 7.5, True, float("nan"), "\ud800"]
    found = Suppressed(known.context).among(values, Subject("who", "id"))
    assert set(found) == {7, "7", SOMEBODY}  # 7 and 7.0 are one key of a mapping


def test_those_of_another_type_are_others(known: Workspace) -> None:
    assert not Suppressed(known.context).among(["ann@x.org", 7], Subject("who", "staff/id"))


def test_people_may_be_given_by_tokens(known: Workspace) -> None:
    token = known.context.keys.token("email", "bob@x.org")
    found = Asked(known.context, {token: "R-1"}).among(
        ["BOB@x.org", "ann@x.org"], Subject("mail", "email")
    )
    assert found == {"BOB@x.org": "R-1"}


def test_a_text_with_several_addresses_is_of_all(known: Workspace) -> None:
    values = [
        "Bob <bob@x.org>, Ann <ANN@x.org>",
        "carl@x.org; ann@x.org",
        "joann@x.org, a b",
        "@ @",
    ]
    field = Subject("mail", "email")
    assert set(Suppressed(known.context).among(values, field)) == set(values[:2])
    names = {"ann@x.org": "R-1|R-2", "bob@x.org": "R-2|R-3"}
    tokens = {known.context.keys.token("email", mail): name for mail, name in names.items()}
    found = Asked(known.context, tokens).among(values, field)
    assert {value: sorted(name.split("|")) for value, name in found.items()} == {
        values[0]: ["R-1", "R-2", "R-3"], values[1]: ["R-1", "R-2"],
    }  # fmt: skip
