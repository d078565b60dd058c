"""A forest that loses few records deletes: with its accelerator, and without one."""

from __future__ import annotations

from pathlib import Path

import pytest
from contexts import visits as visit_records
from contexts import write_csv

from erasable.ensemble import ExtraTreesRegressor, RandomForestClassifier
from erasable.tree import DecisionTreeClassifier
from erasable.workspace import Workspace

N = 1000
FOREST = "ensemble.RandomForestClassifier"


@pytest.fixture(params=["folder", "objects"])
def workspace(request: pytest.FixtureRequest, tmp_path: Path) -> Workspace:
    store = None if request.param == "folder" else f"memory://forests-{tmp_path.name}"
    made = Workspace.create(tmp_path / "ws", store=store)
    write_csv(tmp_path / "visits.csv", visit_records(N))
    made.add_dataset("visits", tmp_path / "visits.csv", id_column="visit", subjects=["patient"])
    params = {"n_estimators": 3, "random_state": 0}
    made.fit("risk", FOREST, datasets=["visits"], target="sick", features=["age"], params=params)
    return made


def _treatments(workspace: Workspace, *people: str) -> list[str]:
    """Return how the forest is treated, as it is foreseen and as it is."""
    foreseen = [each.treatment for each in workspace.preview(people).effects if each.name == "risk"]
    workspace.request(people)
    return foreseen + [each["treatment"] for each in workspace.process().treatments]


def _person(number: int) -> str:
    return f"marker-patient-{number}"


def test_a_forest_that_loses_a_person_deletes(workspace: Workspace, tmp_path: Path) -> None:
    for number in (1, 2):  # right after the fit, and after a deletion
        assert _treatments(workspace, _person(number)) == ["deleted", "deleted"]
    more = {name: values[N:] for name, values in visit_records(N + 100).items()}
    write_csv(tmp_path / "more.csv", more)
    workspace.append("visits", tmp_path / "more.csv")
    assert _treatments(workspace, _person(3)) == ["deleted", "deleted"]
    assert {each.verdict for each in workspace.verify()} == {"equal"}


def test_one_that_loses_many_is_grown_anew_where_it_has_to_be_loaded(
    workspace: Workspace,
) -> None:
    is_at_rest = (workspace.context.root / "accelerators").is_dir()
    found = _treatments(workspace, *(_person(each) for each in range(40)))
    assert found == ["deleted" if is_at_rest else "refitted"] * 2
    assert {each.verdict for each in workspace.verify()} == {"equal"}


@pytest.mark.parametrize("kind", [DecisionTreeClassifier, RandomForestClassifier])
def test_what_is_few(kind: type) -> None:
    for n_records in (1000, 100_000):
        assert not kind()._fits_sooner(10, n_records)
    assert not ExtraTreesRegressor()._fits_sooner(200, 100_000)
    assert kind()._fits_sooner(1000, 100_000)
