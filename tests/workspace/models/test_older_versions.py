"""Models of an older version of a data set, whose columns have other types by now."""

from __future__ import annotations

from pathlib import Path

import pytest

from erasable.core.errors import WorkspaceError
from erasable.workspace import Workspace

ROWS = [f"v{i},p{i // 2},{i % 7},{i % 5},{i % 2}" for i in range(40)]


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    found = Workspace.create(tmp_path / "ws")
    source = tmp_path / "visits.csv"
    source.write_text("\n".join(["visit,patient,a,b,sick", *ROWS]) + "\n")
    found.add_dataset("visits", source, id_column="visit", subjects=["patient"])
    return found


def widen(workspace: Workspace, folder: Path) -> None:
    """Append a record whose label and features are no whole numbers, and have gaps."""
    more = folder / "more.csv"
    more.write_text("visit,patient,a,b,sick\nw1,q1,0.5,,0.5\nw2,q2,1.5,2,1\n")
    workspace.append("visits", more)


@pytest.mark.parametrize(
    "estimator",
    [
        "naive_bayes.GaussianNB",
        "linear_model.LogisticRegression",
        "preprocessing.OneHotEncoder,linear_model.LogisticRegression",
        "sklearn.tree.DecisionTreeClassifier",
    ],
)
def test_a_model_of_whole_numbers_outlives_a_wider_version(
    workspace: Workspace, tmp_path: Path, estimator: str
) -> None:
    params = {"onehotencoder__handle_unknown": "ignore"} if "OneHot" in estimator else {}
    workspace.fit("m", estimator, datasets=["visits"], target="sick", params=params)
    widen(workspace, tmp_path)
    assert [each.verdict for each in workspace.verify()] == ["equal"]
    workspace.request(["p3", "q1"])
    (done,) = workspace.process().treatments
    assert done["n_records"] == 2
    assert [each.verdict for each in workspace.verify()] == ["equal"]
    assert workspace.verify_log() == []


def test_what_a_function_of_the_user_raises_is_its_own_fault(workspace: Workspace) -> None:
    with pytest.raises(WorkspaceError, match="json:dumps failed with TypeError"):
        workspace.fit("m", "json:dumps", datasets=["visits"])
