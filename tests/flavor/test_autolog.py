"""Fits and changes of records are logged by themselves, and nothing of a record is."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from joblib import Parallel, delayed, parallel_config
from sklearn.model_selection import GridSearchCV, cross_val_score

from erasable import Records
from erasable.audit import refit
from erasable.cluster import KMeans
from erasable.core.errors import UnknownIdError
from erasable.ensemble import ShardedRegressor
from erasable.linear_model import LogisticRegression, Ridge
from erasable.naive_bayes import GaussianNB
from erasable.neighbors import KNeighborsClassifier
from erasable.pipeline import make_pipeline
from erasable.preprocessing import OneHotEncoder, StandardScaler

mlflow = pytest.importorskip("mlflow")
flavor = pytest.importorskip("erasable.mlflow")
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")

RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 3))
Y = X[:, 0] + 0.5
LABELS = np.where(Y > 0, "yes", "no")
IDS = [f"marker-patient-{i}" for i in range(40)]


@pytest.fixture(autouse=True)
def logging(store: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Log, with errors of ours raised instead of told as a warning."""
    monkeypatch.setenv("MLFLOW_AUTOLOGGING_TESTING", "true")
    flavor.autolog()
    yield
    flavor.autolog(disable=True)


def runs() -> list[Any]:
    """Return the runs, the oldest first."""
    found = mlflow.search_runs(output_format="list", order_by=["attributes.start_time ASC"])
    return list(found)


def told(run: Any) -> dict[str, str]:
    return {
        name.removeprefix("erasable."): value
        for name, value in run.data.tags.items()
        if name.startswith("erasable.")
    }


def test_every_change_is_a_run_with_the_digests_of_its_report() -> None:
    model = Ridge(alpha=2.0).fit(X, Y, ids=IDS)
    fitted = model.digest()
    reports = [
        model.delete(IDS[:3]),
        model.add(X[:2], Y[:2], ids=["a", "b"]),
        model.correct(["a"], X[5:6]),
        model.replace(["a", "b"], X[:1], Y[:1], ids=["c"]),
    ]
    fit, *changes = runs()
    assert told(fit) == {
        "operation": "fit", "estimator": "erasable.linear_model.Ridge", "digest_after": fitted,
    }  # fmt: skip
    assert fit.data.params["alpha"] == "2.0"
    expected = {"n_records": 40.0, "training_score": model.fit(X, Y).score(X, Y)}
    assert fit.data.metrics == pytest.approx(expected)
    names = ["delete", "add", "correct", "replace"]
    for name, report, run in zip(names, reports, changes, strict=True):
        assert told(run) == {
            "operation": name, "estimator": "erasable.linear_model.Ridge",
            "digest_before": report.digest_before, "digest_after": report.digest_after,
            "action": "updated", "exactness": "bitwise",
        }  # fmt: skip
        assert run.info.status == "FINISHED"
        assert run.data.metrics["seconds"] == report.seconds
        assert run.data.tags["mlflow.autologging"] == "erasable"
    counts = [
        ("n_records_deleted", 3, 37), ("n_records_added", 2, 39), ("n_records_corrected", 1, 39),
        ("n_records_replaced", 3, 38),
    ]  # fmt: skip
    for (name, changed, left), run in zip(counts, changes, strict=True):
        assert (run.data.metrics[name], run.data.metrics["n_records"]) == (changed, left)
    chain = [fitted, *(told(run)["digest_after"] for run in changes)]
    assert [told(run)["digest_before"] for run in changes] == chain[:-1]
    without = Ridge(alpha=2.0)
    flavor.autolog(disable=True)
    assert chain[1] == without.fit(X[3:], Y[3:], ids=IDS[3:]).digest()


def test_no_id_and_no_value_of_a_record_is_logged(store: Any, tmp_path: Path) -> None:
    frame = pd.DataFrame({"city": [f"marker-city-{i % 4}" for i in range(40)], "id": IDS})
    encoder = OneHotEncoder(categories=[sorted(set(frame["city"]))], sparse_output=False)
    model = make_pipeline(encoder, GaussianNB(classes=["yes", "no", "marker-class"]))
    model.fit(frame, LABELS, ids="id")
    model.delete(IDS[:2])
    fit, deletion = runs()
    assert fit.data.params["onehotencoder__categories"] == "list"
    assert fit.data.params["gaussiannb__classes"] == "list"
    assert fit.data.params["onehotencoder"] == "erasable.preprocessing.OneHotEncoder"
    assert fit.data.metrics["training_score"] <= 1.0  # of the columns without the ids
    assert deletion.data.metrics["n_records_deleted"] == 2.0

    def published(word: bytes) -> bool:
        return any(word in each.read_bytes() for each in tmp_path.glob("mlflow.db*"))

    assert not published(b"marker-")
    mlflow.set_tag("control", IDS[0])
    assert published(b"marker-")


def test_calls_of_erasable_and_scikit_learn_are_not_logged() -> None:
    model = ShardedRegressor(Ridge(), 2, random_state=0).fit(X, Y, ids=IDS)
    assert len(runs()) == 1  # the shards are not
    refit(model)
    GridSearchCV(Ridge(), {"alpha": [1.0, 2.0]}, cv=2).fit(X, Y)
    assert len(runs()) == 1
    KMeans(2, random_state=0).fit_predict(X)  # by its own `fit`
    make_pipeline(StandardScaler(), Ridge()).fit(X, Y)
    assert [told(run)["estimator"].rpartition(".")[2] for run in runs()[1:]] == [
        "KMeans", "Pipeline",
    ]  # fmt: skip


def test_calls_in_threads_are_logged() -> None:
    """Those of joblib, too, which only hands on what was called."""
    models = [Ridge(alpha=each) for each in (1.0, 2.0, 3.0)]
    Parallel(2, "threading")(delayed(model.fit)(X, Y) for model in models)
    Parallel(2, "threading")(delayed(model.delete)([3]) for model in models)
    assert sorted(run.data.tags["erasable.operation"] for run in runs()) == 3 * ["delete"] + 3 * [
        "fit"
    ]
    cross_val_score(Ridge(), X, Y, cv=2, n_jobs=2)
    with parallel_config("threading"):
        cross_val_score(Ridge(), X, Y, cv=2, n_jobs=2)
        ShardedRegressor(Ridge(), 2, random_state=0, n_jobs=2).fit(X, Y)
    assert len(runs()) == 7


def test_transformers_alone_are_not_logged() -> None:
    StandardScaler().fit(X).delete([3])
    assert runs() == []


def test_changes_go_to_the_active_run() -> None:
    with mlflow.start_run() as active:
        model = Ridge().fit(X, Y)
        report = model.delete([3])
    (run,) = runs()
    assert run.info.run_id == active.info.run_id
    assert told(run)["digest_after"] == report.digest_after
    assert "mlflow.autologging" not in run.data.tags


def test_digests_that_were_not_asked_for_are_not_computed() -> None:
    model = Ridge().fit(X, Y)
    model.delete([3], digest=False)
    assert {"digest_before", "digest_after"} & told(runs()[-1]).keys() == set()


def test_a_change_that_is_refused_raises_its_error_and_fails_the_run() -> None:
    model = Ridge().fit(X, Y)
    before = model.digest()
    with pytest.raises(UnknownIdError):
        model.delete([99])
    assert runs()[-1].info.status == "FAILED"
    assert model.digest() == before


def test_a_store_that_fails_fails_no_deletion(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLFLOW_AUTOLOGGING_TESTING", "false")
    model = Ridge().fit(X, Y, ids=IDS)

    def fail(*_: Any, **__: Any) -> None:
        raise OSError("no store")

    for name in ("log_metrics", "start_run"):
        with monkeypatch.context() as patch:
            patch.setattr(mlflow, name, fail)
            gone = model.ids_[0]
            assert model.delete([gone]).ids.tolist() == [gone]
            assert gone not in model.ids_


def test_records_of_several_models_are_not_scored() -> None:
    Ridge().fit(Records(X, Y))
    assert runs()[-1].data.metrics == {"n_records": 40.0}


def test_a_score_may_take_too_long() -> None:
    flavor.autolog(log_training_score=False, extra_tags={"team": "wards"})
    KNeighborsClassifier().fit(X, LABELS)
    (run,) = runs()
    assert run.data.metrics == {"n_records": 40.0}
    assert run.data.tags["team"] == "wards"


def test_weights_count_in_the_score() -> None:
    weights = np.arange(1.0, 41.0)
    model = Ridge().fit(X, Y**2, weights)
    expected = model.score(X, Y**2, weights)
    assert runs()[-1].data.metrics["training_score"] == expected
    assert expected != model.score(X, Y**2)


def test_models_are_logged_where_that_was_asked_for() -> None:
    flavor.autolog(log_models=True, registered_model_name="risk")
    model = LogisticRegression().fit(X, LABELS)
    report = model.delete([3])
    assert flavor.load_model("models:/risk/1").digest() == report.digest_before
    assert flavor.load_model("models:/risk/2").digest() == report.digest_after


def test_nothing_is_logged_when_it_is_disabled() -> None:
    flavor.autolog(disable=True)
    Ridge().fit(X, Y).delete([3])
    assert runs() == []
