from __future__ import annotations

import json
import sys

import pytest
from sqlalchemy import select

import operations
from erasable.core.errors import (
    InvalidDataError,
    InvalidParameterError,
    NotInWorkspaceError,
    TooFewRecordsError,
    WorkspaceError,
)
from erasable.workspace.evidence import log
from erasable.workspace.ledger import schema
from erasable.workspace.models import overview
from workspace_models import add_visits, found, keys_in, loaded, rows_of_visits

TRAIN = (
    "import sys, pyarrow.parquet as p; t = p.read_table(sys.argv[1]); "
    "open(sys.argv[2], 'w').write(','.join(map(str, t['visit'].to_pylist())))"
)
COMMAND = f'{sys.executable} -c "{TRAIN}" {{data}} {{out}}'


def logged(context, kind):
    with context.ledger.reading() as connection:
        return [each for each in log.entries(connection) if each["kind"] == kind]


def everything(context):
    """What the ledger and the store hold; to tell that nothing has changed."""
    with context.ledger.reading() as connection:
        rows = {
            name: [tuple(row) for row in connection.execute(select(table))]
            for name, table in schema.metadata.tables.items()
        }
    return repr(rows), keys_in(context)


def test_a_fit_is_in_the_ledger_the_store_and_the_log(visits):
    fitted = operations.fit(
        visits, "risk", "linear_model.LogisticRegression",
        datasets=["visits"], target="sick", params={"C": "0.5"}, prepare="none",
    )  # fmt: skip
    model, version = found(visits, "risk")
    assert (fitted.version, fitted.n_records, version.n_records) == (1, 120, 120)
    assert model.features == fitted.features == ["age", "dose", "treated", "cost"]
    assert (model.kind, model.target, model.state) == ("estimator", "sick", "ready")
    assert loaded(visits, "risk").get_params()["C"] == 0.5
    (entry,) = logged(visits, "model-fitted")
    assert entry["subject"] == "risk"
    assert entry["commitment"] == version.commitment == fitted.commitment
    whole = json.dumps([each for each in logged(visits, "model-fitted")])
    digest = loaded(visits, "risk").digest().partition(":")[2]
    assert digest not in whole


def test_a_model_is_that_of_a_fit_outside_of_the_workspace(visits, tmp_path):
    import pandas as pd

    from erasable.cluster import KMeans
    from erasable.pipeline import make_pipeline
    from erasable.preprocessing import StandardScaler

    operations.fit(
        visits, "groups", "preprocessing.StandardScaler->cluster.KMeans", datasets=["visits"],
        features=["age", "dose"], params={"kmeans__n_clusters": 3, "kmeans__random_state": 4},
    )  # fmt: skip
    frame = pd.read_csv(tmp_path / "visits.csv").sample(frac=1, random_state=0)
    outside = make_pipeline(StandardScaler(), KMeans(3, random_state=4))
    outside.fit(frame[["age", "dose"]], ids=frame["visit"].tolist())
    assert loaded(visits, "groups").digest() == outside.digest()


def test_a_second_fit_supersedes_the_first_and_keeps_its_seed(visits):
    operations.fit(visits, "k", "cluster.KMeans", datasets=["visits"], params={"n_clusters": 3})
    before, first = found(visits, "k")
    again = operations.fit(visits, "k")
    after, second = found(visits, "k")
    assert again.version == after.version == second.number == 2
    assert after.recipe == before.recipe
    assert "kmeans__random_state" in after.recipe["seeds"]
    assert second.salt != first.salt
    visits.clean()
    assert {key for key in keys_in(visits) if key.startswith("models/")} == {second.key}
    with visits.ledger.reading() as connection:
        old = connection.execute(
            select(schema.model_version).where(schema.model_version.c.number == 1)
        ).one()
    assert (old.key, old.sha256, old.salt) == (None, None, None)
    assert old.superseded_at is not None
    assert old.commitment == first.commitment


def test_another_estimator_under_the_name_replaces_the_recipe(visits):
    operations.fit(visits, "m", "cluster.KMeans", datasets=["visits"], params={"n_clusters": 2})
    operations.fit(visits, "m", "naive_bayes.GaussianNB", target="sick", features=["age"])
    model, _ = found(visits, "m")
    assert model.recipe["estimator"] == ["erasable.naive_bayes.GaussianNB"]
    assert (model.features, model.target) == (["age"], "sick")


def test_several_data_sets_train_one_model(visits, tmp_path):
    add_visits(visits, tmp_path, "more", range(50, 90))
    operations.fit(visits, "both", "linear_model.Ridge", datasets=["visits", "more"], target="cost")
    _, version = found(visits, "both")
    assert (version.n_records, version.dataset_versions) == (160, [1, 1])


ENTRY = """
from erasable.naive_bayes import GaussianNB

def ours(table):
    X = table.select(["age", "dose"])
    return GaussianNB().fit(X, table["sick"].to_pylist(), ids=table["visit"].to_pylist())

def plain(table):
    return ",".join(table["visit"].to_pylist()).encode()

def wrong(table):
    return 17
"""


@pytest.fixture
def entries(tmp_path, monkeypatch):
    (tmp_path / "their_training.py").write_text(ENTRY)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "their_training", raising=False)


@pytest.mark.usefixtures("entries")
def test_a_python_function_trains(visits):
    operations.fit(visits, "ours", "their_training:ours", datasets=["visits"])
    operations.fit(visits, "plain", "their_training:plain", datasets=["visits"])
    assert len(loaded(visits, "ours").classes_) == 2
    _, version = found(visits, "plain")
    data = visits.store.open(version.stored)
    assert data.decode().split(",") == sorted(f"v{i}" for i in range(120))
    before = everything(visits)
    with pytest.raises(WorkspaceError, match="returned a int"):
        operations.fit(visits, "wrong", "their_training:wrong", datasets=["visits"])
    assert everything(visits) == before


def test_a_command_trains_and_leaves_nothing_behind(visits):
    fitted = operations.register(visits, "theirs", datasets=["visits"], retrain=COMMAND)
    assert (fitted.version, fitted.n_records) == (1, 120)
    model, version = found(visits, "theirs")
    assert (model.kind, version.algorithm) == ("command", "command")
    assert b"v17" in visits.store.open(version.stored)
    assert not list((visits.root / "scratch").rglob("*"))


@pytest.mark.parametrize(
    ("command", "told"),
    [
        ("false {data} {out}", "exited with 1"),
        ("true {data} {out}", "wrote no model"),
        ("/no/such/program {data} {out}", "cannot be run"),
        ("'unclosed {data} {out}", "cannot be run"),
    ],
)
def test_a_command_that_fails_changes_nothing(visits, command, told):
    before = everything(visits)
    with pytest.raises(WorkspaceError, match=told):
        operations.register(visits, "theirs", datasets=["visits"], retrain=command)
    assert everything(visits) == before
    assert not list((visits.root / "scratch").rglob("*"))


def test_a_model_trained_elsewhere_is_registered_as_not_covered(visits):
    operations.register(visits, "far", datasets=["visits"])
    model, version = found(visits, "far")
    assert (model.state, model.version, version) == ("uncovered", 0, None)
    assert [each["subject"] for each in logged(visits, "model-registered")] == ["far"]
    with visits.ledger.reading() as connection:
        (shown,) = overview.models(connection)
    assert (shown["state"], shown["datasets"]) == ("uncovered", {"visits": None})
    with pytest.raises(WorkspaceError, match="already"):
        operations.register(visits, "far", datasets=["visits"])
    with pytest.raises(WorkspaceError, match="trained elsewhere"):
        operations.fit(visits, "far", "cluster.KMeans")


REFUSED = [
    ({"name": "../x", "estimator": "cluster.KMeans"}, WorkspaceError, "name of a model"),
    ({"name": "", "estimator": "cluster.KMeans"}, WorkspaceError, "name of a model"),
    ({"estimator": "cluster.KMaens"}, InvalidParameterError, "did you mean"),
    ({"estimator": None}, NotInWorkspaceError, "no model 'm'"),
    ({"estimator": None, "params": {"a": 1}}, InvalidParameterError, "without an estimator"),
    ({"estimator": "json:dumps", "params": {"a": 1}}, InvalidParameterError, "Python function"),
    ({"estimator": "cluster.KMeans", "datasets": ["no"]}, NotInWorkspaceError, "no data set 'no'"),
    ({"estimator": "cluster.KMeans", "datasets": []}, NotInWorkspaceError, "--dataset"),
    ({"estimator": "linear_model.Ridge"}, WorkspaceError, "--target"),
    ({"estimator": "cluster.KMeans", "features": ["nope"]}, WorkspaceError, "no column 'nope'"),
    ({"estimator": "cluster.KMeans", "features": ["patient"]}, WorkspaceError, "people"),
    (
        {"estimator": "cluster.KMeans", "features": ["ward"], "prepare": "none"},
        InvalidDataError,
        "text",
    ),
    (
        {"estimator": "cluster.KMeans", "params": {"n_clusters": "500"}},
        TooFewRecordsError,
        "n_samples=120",
    ),
    (
        {"estimator": "cluster.KMeans", "params": {"n_clusters": "-1"}},
        InvalidParameterError,
        "n_clusters",
    ),
]


@pytest.mark.parametrize(
    ("given", "error", "told"), REFUSED, ids=[str(i) for i in range(len(REFUSED))]
)
def test_what_is_refused_is_told_on_one_line_and_changes_nothing(visits, given, error, told):
    before = everything(visits)
    arguments = {"name": "m", "datasets": ["visits"], **given}
    name, estimator = arguments.pop("name"), arguments.pop("estimator")
    with pytest.raises(error, match=told) as caught:
        operations.fit(visits, name, estimator, **arguments)
    assert "\n" not in str(caught.value)
    assert everything(visits) == before


def test_gaps_are_refused_unless_the_estimator_takes_them(context, tmp_path):
    from erasable.workspace.data.sources import Source

    text = rows_of_visits(range(30)).replace("v7,p2,", "v7,p2,x").splitlines()
    text = [",".join(["v3", "p1", "", *line.split(",")[3:]]) if line.startswith("v3,") else line
            for line in text if not line.startswith("v7,")]  # fmt: skip
    (tmp_path / "gaps.csv").write_text("\n".join(text))
    source = Source.parse(str(tmp_path / "gaps.csv"), None)
    operations.add(context, "gaps", source, id_column="visit", subjects=[("patient", "id")])
    with pytest.raises(InvalidDataError, match="1 of 29 records have gaps, in 'age'"):
        operations.fit(
            context, "r", "linear_model.Ridge", datasets=["gaps"], target="cost", prepare="none"
        )
    operations.fit(
        context, "r", "preprocessing.SimpleImputer,linear_model.Ridge",
        datasets=["gaps"], target="cost",
    )  # fmt: skip


def test_models_are_described(visits):
    operations.fit(
        visits, "r", "preprocessing.StandardScaler,linear_model.Ridge", datasets=["visits"],
        target="cost", params={"ridge__alpha": 2}, hook="true {model}",
    )  # fmt: skip
    with visits.ledger.reading() as connection:
        (listed,) = overview.models(connection)
        shown = overview.model(connection, "r")
    assert shown.items() >= listed.items()
    assert listed["estimator"] == (
        "erasable.preprocessing.StandardScaler -> erasable.linear_model.Ridge"
    )
    assert (listed["params"], listed["datasets"]) == ({"ridge__alpha": 2}, {"visits": 1})
    assert [each["kind"] for each in shown["measurements"]] == ["fit"]
    assert [each["number"] for each in shown["versions"]] == [1]


def test_an_empty_target_is_no_class(context, tmp_path):
    """A cell of text that is empty is a gap: refused, and the advice works."""
    from erasable.workspace import Workspace
    from erasable.workspace.data.sources import Source

    rows = [f"v{i},p{i % 3},{i},{'yes' if i % 2 else 'no'}" for i in range(12)]
    rows[5], rows[7] = "v5,p2,5,", "v7,p1,7, "
    (tmp_path / "ill.csv").write_text("\n".join(["visit,patient,age,ill", *rows]))
    source = Source.parse(str(tmp_path / "ill.csv"), None)
    operations.add(context, "d", source, id_column="visit", subjects=[("patient", "id")])
    arguments = {"datasets": ["d"], "target": "ill"}
    before = everything(context)
    with pytest.raises(InvalidDataError, match=r"2 of 12 records .* in 'ill', first 'v5'") as told:
        operations.fit(context, "r", "naive_bayes.GaussianNB", **arguments)
    assert "`erasable correct d v5 --set ill=CLASS`" in str(told.value)
    assert everything(context) == before
    workspace = Workspace(context)
    workspace.correct("d", ids=["v5", "v7"], values={"ill": "yes"})
    workspace.process()
    operations.fit(context, "r", "naive_bayes.GaussianNB", **arguments)
    assert loaded(context, "r").classes_.tolist() == ["no", "yes"]
    for value in ("", None):
        with pytest.raises(InvalidDataError, match=r"'r' could not learn .* in 'ill'"):
            workspace.correct("d", ids=["v4"], values={"ill": value})
    workspace.correct("d", ids=["v4"], values={"ill": "yes"})  # the control
    workspace.process()
    assert loaded(context, "r").class_count_.tolist() == [5.0, 7.0]
    (tmp_path / "more.csv").write_text("visit,patient,age,ill\nv12,p1,4,\n")
    before = everything(context)
    with pytest.raises(
        WorkspaceError, match=r"'r' cannot follow its data .1 of 13 records have an empty"
    ):
        workspace.append("d", tmp_path / "more.csv", update_models=True)
    assert everything(context) == before
