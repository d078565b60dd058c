"""People of a workspace, told from others by the tokens of values."""

from __future__ import annotations

from uuid import UUID

import pyarrow as pa
import pyarrow.csv
import pytest

from erasable.workspace import Workspace
from erasable.workspace.targets.people import Asked, Suppressed
from erasable.workspace.targets.protocol import Subject

SOMEBODY = UUID("01234567-89ab-cdef-0123-456789abcdef")


@pytest.fixture(scope="module")
def known(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    folder = tmp_path_factory.mktemp("known")
    people = {"visit": [1, 2], "mail": ["ann@x.org", "bob@x.org"], "who": ["7", str(SOMEBODY)]}
    pyarrow.csv.write_csv(pa.table(people), folder / "visits.csv")
    workspace = Workspace.create(folder / "ws")
    workspace.add_dataset(
        "visits", folder / "visits.csv", id_column="visit", subjects=["mail:email", "who"]
    )
    workspace.request(["ann@x.org"], type="email")
    workspace.request([7, str(SOMEBODY)], type="id")
    workspace.process()
    return workspace


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
