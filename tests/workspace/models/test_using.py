from __future__ import annotations

import pytest

import erasable
import operations
from erasable.core.errors import NotInWorkspaceError, WorkspaceError
from erasable.workspace.models import using
from workspace_models import erased, loaded, rows_of_visits, visit


@pytest.fixture
def risk(visits):
    operations.fit(
        visits, "risk", "naive_bayes.GaussianNB", datasets=["visits"], target="sick",
        prepare="none",
    )  # fmt: skip
    return visits


def test_an_exported_model_predicts_elsewhere_and_cannot_delete(risk, tmp_path):
    from erasable.core.errors import DetachedError

    using.export(risk, "risk", tmp_path / "risk.model")
    model = erasable.load(tmp_path / "risk.model")
    assert model.digest() == loaded(risk, "risk").digest()
    with pytest.raises(DetachedError):
        model.delete(["v3"])
    data = (tmp_path / "risk.model").read_bytes()
    assert b"v17" not in data
    assert b"p17" not in data


def test_a_file_that_holds_records_by_its_nature_is_remarked_on(visits, tmp_path):
    vectors = "preprocessing.StandardScaler,sklearn.svm.SVC"
    operations.fit(visits, "svm", vectors, datasets=["visits"], target="sick")
    operations.fit(visits, "bayes", "sklearn.naive_bayes.GaussianNB", target="sick",
                datasets=["visits"])  # fmt: skip
    operations.fit(
        visits, "words", "feature_extraction.TfidfVectorizer,sklearn.neighbors.NearestNeighbors",
        datasets=["visits"], features=["note"],
    )  # fmt: skip
    for name, holds in (("svm", True), ("bayes", False), ("words", True)):
        told = using.export(visits, name, tmp_path / name)
        assert len(told) == holds
        assert all(line.startswith(f"{name!r} holds records it was trained on") for line in told)
        assert not any("\n" in line for line in told)


def test_predictions_have_the_ids_of_the_source(risk, tmp_path):
    columns = ["visit", "age", "dose", "treated", "cost"]
    (tmp_path / "new.csv").write_text(rows_of_visits(range(300, 310), columns))
    found = using.predict(risk, "risk", str(tmp_path / "new.csv"))
    assert found["visit"].to_pylist() == [f"v{i}" for i in range(300, 310)]
    frame = [
        [v[2], v[3], float(v[4] == "true"), v[8]] for v in map(visit, range(300, 310))
    ]  # fmt: skip
    model = erasable.naive_bayes.GaussianNB().fit(
        [[v[2], v[3], float(v[4] == "true"), v[8]] for v in map(visit, range(120))],
        [visit(i)[7] for i in range(120)],
    )
    assert found["prediction"].to_pylist() == model.predict(frame).tolist()
    (tmp_path / "less.csv").write_text(rows_of_visits(range(3), ["visit", "age"]))
    with pytest.raises(WorkspaceError, match="lacks the columns dose, treated, cost"):
        using.predict(risk, "risk", str(tmp_path / "less.csv"))


def test_documents_are_predicted(visits, tmp_path):
    operations.fit(
        visits, "w", "feature_extraction.TfidfVectorizer,linear_model.LogisticRegression",
        datasets=["visits"], target="sick", features=["note"],
    )  # fmt: skip
    (tmp_path / "new.csv").write_text(rows_of_visits(range(300, 304), ["note"]))
    found = using.predict(visits, "w", str(tmp_path / "new.csv"))
    assert found.column_names == ["prediction"]
    assert found.num_rows == 4


def test_what_cannot_be_used_is_told(visits, tmp_path):
    operations.fit(visits, "scale", "preprocessing.StandardScaler", datasets=["visits"])
    operations.register(visits, "far", datasets=["visits"])
    operations.fit(visits, "gone", "preprocessing.StandardScaler", datasets=["visits"])
    erased(visits, "gone", [f"v{i}" for i in range(120)])
    (tmp_path / "new.csv").write_text(rows_of_visits(range(3)))
    with pytest.raises(WorkspaceError, match="does not predict"):
        using.predict(visits, "scale", str(tmp_path / "new.csv"))
    for name in ("far", "gone"):
        with pytest.raises(NotInWorkspaceError, match="no file of the model"):
            using.export(visits, name, tmp_path / "out")
    with pytest.raises(NotInWorkspaceError, match="no model 'none'"):
        using.export(visits, "none", tmp_path / "out")
    with pytest.raises(WorkspaceError, match="is a folder"):
        using.export(visits, "scale", tmp_path)
    with pytest.raises(WorkspaceError, match="make it first"):
        using.export(visits, "scale", tmp_path / "no" / "out")


def test_a_file_with_a_value_of_one_record_names_its_field(visits, tmp_path):
    for name, steps in (
        ("extremes", "preprocessing.MinMaxScaler,sklearn.linear_model.LogisticRegression"),
        ("sums", "preprocessing.StandardScaler,sklearn.linear_model.LogisticRegression"),
    ):
        operations.fit(visits, name, steps, datasets=["visits"], target="sick")
    (told,) = using.export(visits, "extremes", tmp_path / "extremes")
    assert "holds values that one record alone has, in steps.minmaxscaler.data_m" in told
    assert "\n" not in told
    assert using.export(visits, "sums", tmp_path / "sums") == []  # a control
