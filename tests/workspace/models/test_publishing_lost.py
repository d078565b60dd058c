"""A registry that is not found where it was, or is used no longer: nothing is forgotten."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from contexts import visits, write_csv

from erasable.workspace import Workspace
from erasable.workspace.evidence.envelope import peek

mlflow = pytest.importorskip("mlflow")
pytestmark = [
    pytest.mark.soak,
    pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning"),
]


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    """A model that is registered in `mlflow.db`, in the folder "registry"."""
    (tmp_path / "registry").mkdir()
    write_csv(tmp_path / "visits.csv", visits(30))
    made = Workspace.create(tmp_path / "ws")
    made.add_dataset("visits", tmp_path / "visits.csv", id_column="visit", subjects=["patient"])
    made.fit("risk", "naive_bayes.GaussianNB", datasets=["visits"], target="sick")
    made.publish("risk", "mlflow:risk", tracking_uri=uri(tmp_path))
    return made


def uri(folder: Path) -> str:
    return f"sqlite:///{folder}/registry/mlflow.db"


def tags(folder: Path) -> dict[str, dict[str, str]]:
    client: Any = mlflow.MlflowClient(uri(folder), uri(folder))
    found = client.search_model_versions("name='risk'")
    return {str(each.version): dict(each.tags) for each in found}


def registered(database: Path) -> list[Any]:
    client: Any = mlflow.MlflowClient(f"sqlite:///{database}", f"sqlite:///{database}")
    return list(client.search_registered_models())


def erase(workspace: Workspace, who: str) -> tuple[list[str], str]:
    (request,) = workspace.request([who])
    warnings = workspace.process().warnings
    return warnings, peek(json.loads(workspace.receipt(request.id))["envelope"]).decode()


@pytest.mark.parametrize("empty", [False, True], ids=["gone", "empty"])
def test_another_registry_is_not_taken_for_the_one_that_was(
    workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, empty: bool
) -> None:
    """Else the version in use there would stay, of whom was erased, and nobody would know."""
    monkeypatch.setenv("MLFLOW_TRACKING_URI", uri(tmp_path))
    workspace.publish("risk", "mlflow:risk")  # wherever the environment says
    other = tmp_path / "other.db"
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{other}")
    if empty:
        assert registered(other) == []
    (warning,), _ = erase(workspace, "marker-patient-2")
    assert "MLflow has no registered model 'risk'" in warning
    assert "expected the registry that has them; bring it back" in warning
    assert other.exists() is empty
    assert not empty or registered(other) == []
    assert workspace.status()["published"][0]["behind"]

    monkeypatch.setenv("MLFLOW_TRACKING_URI", uri(tmp_path))
    (warning,) = workspace.process().warnings
    assert "versions 1 of mlflow:risk were trained on records that are erased" in warning
    assert tags(tmp_path)["1"]["erasable.trained_on_erased_records"] == "true"
    assert sorted(tags(tmp_path)) == ["1", "2"]
    assert not workspace.status()["published"][0]["behind"]


def test_it_is_made_anew_where_that_is_said(workspace: Workspace, tmp_path: Path) -> None:
    client: Any = mlflow.MlflowClient(uri(tmp_path), uri(tmp_path))
    client.delete_registered_model("risk")
    (warning,), _ = erase(workspace, "marker-patient-2")
    assert "`erasable model publish risk --to mlflow:risk`" in warning
    done, _ = workspace.publish("risk", "mlflow:risk", tracking_uri=uri(tmp_path))
    assert (done.version, sorted(tags(tmp_path))) == (2, [done.registered])


def test_what_stays_where_it_was_published_is_out_of_reach(
    workspace: Workspace, tmp_path: Path
) -> None:
    left = "versions of mlflow:risk, where it is published no longer"
    assert left not in workspace.status()["unreached"]
    workspace.stop_publishing("risk")
    assert left in workspace.status()["unreached"]
    _, receipt = erase(workspace, "marker-patient-2")
    assert left in receipt
    workspace.publish("risk", "mlflow:other", tracking_uri=uri(tmp_path))
    assert left in workspace.status()["unreached"]
    workspace.publish("risk", "mlflow:risk", tracking_uri=uri(tmp_path))
    assert left not in workspace.status()["unreached"]
    assert any("mlflow:other, where" in each for each in workspace.status()["unreached"])
    assert workspace.verify_log() == []


@pytest.mark.parametrize("erases", [True, False])
def test_versions_from_before_a_pause_are_marked(
    workspace: Workspace, tmp_path: Path, erases: bool
) -> None:
    workspace.stop_publishing("risk")
    if erases:
        erase(workspace, "marker-patient-2")
    else:
        workspace.fit("risk")
    workspace.publish("risk", "mlflow:risk", tracking_uri=uri(tmp_path))
    marked = tags(tmp_path)
    assert marked["1"]["erasable.superseded_by"] == "2"
    assert ("erasable.trained_on_erased_records" in marked["1"]) is erases
    assert marked["2"]["erasable.requests"] == str(int(erases))
