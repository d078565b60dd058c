"""Records that come in while their people are erased elsewhere are erased too, or kept out."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from contexts import scan, visits, write_csv

from erasable.core.errors import WorkspaceBusyError
from erasable.workspace import Workspace, locking
from erasable.workspace.context import Context
from erasable.workspace.data import datasets
from erasable.workspace.models import updating
from erasable.workspace.requests import process

pytestmark = pytest.mark.backend("postgres")  # with SQLite there is one at work at a time
PERSON = "marker-patient-7"


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    """Patients 0 to 9 in "visits", 100 to 109 in "others"; more.csv has 7 and 8."""
    made = Workspace.create(tmp_path / "ws")
    for name, start in (("visits", 0), ("others", 300)):
        write_csv(tmp_path / f"{name}.csv", visits(30, start=start))
        made.add_dataset(name, tmp_path / f"{name}.csv", id_column="visit", subjects=["patient"])
    columns = visits(6, start=21) | {"visit": [f"n{i}" for i in range(6)]}
    write_csv(tmp_path / "more.csv", columns)
    made.request([PERSON])
    return made


def somebody_else(workspace: Workspace, wait: float = 60.0) -> Workspace:
    return Workspace(Context.open(workspace.context.root, wait=wait))


def sizes(workspace: Workspace) -> dict[str, int]:
    assert workspace.verify_log() == []
    return {each["name"]: each["n_records"] for each in workspace.datasets()}


@pytest.mark.parametrize("looks_again", [True, False], ids=["ours", "one that does not look again"])
def test_records_that_come_in_before_the_swap(
    workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, looks_again: bool
) -> None:
    prepare = process._find_and_prepare

    def late(*given: Any) -> None:
        prepare(*given)
        monkeypatch.setattr(process, "_find_and_prepare", prepare)
        somebody_else(workspace).append("others", tmp_path / "more.csv")

    monkeypatch.setattr(process, "_find_and_prepare", late)
    if not looks_again:
        monkeypatch.setattr(process, "check_claimed", lambda *given: None)
    workspace.process()
    assert {each.state for each in workspace.requests()} == {"completed"}
    assert (scan(workspace.context.root, PERSON) == []) is looks_again
    if looks_again:
        assert sizes(workspace) == {"visits": 27, "others": 33}


@pytest.mark.parametrize("looks_again", [True, False], ids=["ours", "one that does not look again"])
def test_an_identity_that_comes_in_before_the_swap_is_followed(
    workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, looks_again: bool
) -> None:
    """A data set that joins the person with a card, under which another one has a trip."""
    write_csv(tmp_path / "trips.csv", {"n": [1, 2], "card": ["c-7", "c-8"]})
    workspace.add_dataset("trips", tmp_path / "trips.csv", id_column="n", subjects=["card:exact"])
    cards = {"n": [1, 2], "patient": [PERSON, "marker-patient-8"], "card": ["c-7", "c-8"]}
    write_csv(tmp_path / "cards.csv", cards)
    prepare = process._find_and_prepare

    def late(*given: Any) -> None:
        prepare(*given)
        monkeypatch.setattr(process, "_find_and_prepare", prepare)
        somebody_else(workspace).add_dataset(
            "cards", tmp_path / "cards.csv", id_column="n", subjects=["patient", "card:exact"]
        )

    monkeypatch.setattr(process, "_find_and_prepare", late)
    if not looks_again:
        monkeypatch.setattr(process, "check_claimed", lambda *given: None)
    workspace.process()
    assert {each.state for each in workspace.requests()} == {"completed"}
    found = {each["name"]: each["n_records"] for each in workspace.datasets()}
    assert (found == {"visits": 27, "others": 30, "trips": 1, "cards": 1}) is looks_again


@pytest.mark.parametrize("waits", [True, False], ids=["ours", "one that does not wait"])
def test_records_that_are_coming_in_at_the_swap(
    workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, waits: bool
) -> None:
    put, done = datasets.put_parts, []

    def slowly(*given: Any) -> Any:
        try:
            done.append(somebody_else(workspace, 0.05 if waits else 60.0).process())
        except WorkspaceBusyError:
            assert {each.state for each in workspace.requests()} == {"pending"}
        return put(*given)

    monkeypatch.setattr(datasets, "put_parts", slowly)
    if not waits:
        names = {"datasets": locking.datasets, "models": locking.models}
        free = SimpleNamespace(**names, ADMISSION="nothing")
        monkeypatch.setattr(datasets, "locking", free)
        monkeypatch.setattr(updating, "locking", free)
    workspace.append("others", tmp_path / "more.csv")
    assert (done == []) is waits
    workspace.process()
    assert {each.state for each in workspace.requests()} == {"completed"}
    assert (scan(workspace.context.root, PERSON) == []) is waits
    if waits:
        assert sizes(workspace) == {"visits": 27, "others": 33}
