"""Models of a batch that are prepared in threads: the same comes out for any number of them."""

from __future__ import annotations

import shutil
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from contexts import visits, write_csv

from erasable.core.errors import InvalidInputError, WorkspaceError
from erasable.workspace import Workspace
from erasable.workspace.models import catalogue, deleting
from erasable.workspace.models.deleting import goes_alone

MODELS = {
    "bayes": ("naive_bayes.GaussianNB", "sick"),
    "forest": ("ensemble.RandomForestClassifier", "sick"),
    "groups": ("cluster.KMeans", None),
    "own-shards": ("ensemble.ShardedClassifier", "sick"),
    "pipe": ("preprocessing.StandardScaler,linear_model.Ridge", "weight"),
    "shards": ("ensemble.ShardedClassifier", "sick"),
    "theirs": ("sklearn.tree.DecisionTreeClassifier", "sick"),
    "tree": ("tree.DecisionTreeClassifier", "sick"),
}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("jobs")
    workspace = Workspace.create(place / "ws")
    write_csv(place / "visits.csv", visits(120))
    workspace.add_dataset("visits", place / "visits.csv", id_column="visit", subjects=["patient"])
    for name, (estimator, target) in MODELS.items():
        params: dict[str, Any] = {} if name in ("bayes", "pipe") else {"random_state": 0}
        params |= {"forest": {"n_estimators": 3}, "groups": {"n_clusters": 2}}.get(name, {})
        if name == "shards":
            params |= {"estimator": "sklearn.tree.DecisionTreeClassifier", "n_shards": 2}
        if name == "own-shards":
            boosting = "erasable.ensemble.HistGradientBoostingClassifier"
            params |= {"estimator": boosting, "estimator__max_iter": 2, "n_shards": 2}
        features = ["age", "weight"] if target == "sick" else ["age"]
        workspace.fit(
            name, estimator, datasets=["visits"], target=target, features=features, params=params
        )
    return place / "ws"


@pytest.fixture
def workspace(made: Path, tmp_path: Path) -> Workspace:
    return Workspace.open(shutil.copytree(made, tmp_path / "ws"))


def _models(workspace: Workspace) -> dict[str, bytes]:
    context = workspace.context
    with context.ledger.reading() as connection:
        versions = {
            name: catalogue.current(connection, catalogue.find(connection, name)) for name in MODELS
        }
    return {name: context.store.open(each.stored) for name, each in versions.items() if each}


def test_what_comes_out_is_the_same(made: Path, tmp_path: Path) -> None:
    told = {}
    for n_jobs in (1, 2, 8):
        workspace = Workspace.open(shutil.copytree(made, tmp_path / str(n_jobs)))
        before = _models(workspace)
        workspace.request(["marker-patient-3", "marker-patient-8"])
        done = workspace.process(n_jobs=n_jobs)
        rows = [
            {name: value for name, value in each.items() if name != "seconds"}
            for each in done.treatments
        ]
        after = _models(workspace)
        told[n_jobs] = (rows, after, sorted(done.phases))
        assert {f"model {name}" for name in MODELS} <= set(done.phases)
        assert all(before[name] != after[name] for name in MODELS)
    assert told[1] == told[2] == told[8]
    assert {each.verdict for each in workspace.verify()} == {"equal"}


def test_what_fails_is_the_same(workspace: Workspace, monkeypatch: Any) -> None:
    """The first of those that fail is told of, in the order of one thread, and nothing changes."""
    real, began = deleting.prepare_model, []

    def prepare(context: Any, model: Any, *rest: Any) -> Any:
        began.append(model.name)
        if model.name in ("groups", "tree", "theirs"):
            time.sleep({"groups": 0.0, "tree": 0.2, "theirs": 0.1}[model.name])
            raise WorkspaceError(f"{model.name} fails")
        return real(context, model, *rest)

    monkeypatch.setattr(deleting, "prepare_model", prepare)
    before = _models(workspace)
    workspace.request(["marker-patient-3"])
    messages = set()
    for n_jobs in (1, 3, 8):
        with pytest.raises(WorkspaceError) as raised:
            workspace.process(n_jobs=n_jobs)
        messages.add(str(raised.value))
        assert _models(workspace) == before
    assert len(messages) == 1
    assert began[0] in MODELS
    monkeypatch.undo()
    assert len(workspace.process(n_jobs=3).treatments) == len(MODELS)
    assert {each.verdict for each in workspace.verify()} == {"equal"}


def test_models_are_prepared_side_by_side(workspace: Workspace, monkeypatch: Any) -> None:
    """Those of others alone: their programs may change what all threads share."""
    real, at_work, most, lock = deleting.prepare_model, set(), {}, threading.Lock()

    def prepare(context: Any, model: Any, *rest: Any) -> Any:
        kind = goes_alone(model)
        with lock:
            at_work.add((kind, model.name))
            n = sum(each is kind for each, _ in at_work)
            most[kind] = max(most.get(kind, 0), n)
        time.sleep(0.05)
        try:
            return real(context, model, *rest)
        finally:
            with lock:
                at_work.discard((kind, model.name))

    monkeypatch.setattr(deleting, "prepare_model", prepare)
    workspace.request(["marker-patient-3"])
    workspace.process(n_jobs=8)
    assert most[False] > 1
    assert most[True] == 1


def test_who_goes_alone(workspace: Workspace) -> None:
    workspace.register("script", datasets=["visits"], retrain="cp {data} {out}")
    with workspace.context.ledger.reading() as connection:
        found = {name: goes_alone(catalogue.find(connection, name)) for name in [*MODELS, "script"]}
    assert {name for name, alone in found.items() if alone} == {
        "own-shards",
        "script",
        "shards",
        "theirs",
    }


def test_no_threads_are_refused(workspace: Workspace) -> None:
    for n_jobs in (0, -1):
        with pytest.raises(InvalidInputError, match=f"n_jobs is {n_jobs}; expected a whole number"):
            workspace.process(n_jobs=n_jobs)
