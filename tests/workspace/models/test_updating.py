"""Models that follow their data sets: with an append or a sync, by a refresh, or never."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import pytest
from contexts import scan, visits, write_csv

from erasable.core.errors import InvalidParameterError, NotInWorkspaceError, WorkspaceError
from erasable.workspace import Workspace
from erasable.workspace.data.catalogue import find
from erasable.workspace.models import catalogue, reading, training

ON: dict[str, Any] = {"datasets": ["visits"], "features": ["age", "weight"]}
KINDS = {
    "ridge": ("linear_model.Ridge", "sick"),
    "bayes": ("naive_bayes.GaussianNB", "sick"),
    "scaled": ("preprocessing.StandardScaler,linear_model.Ridge", "sick"),
    "near": ("neighbors.KNeighborsClassifier", "sick"),
    "parts": ("decomposition.PCA", None),
    "groups": ("preprocessing.StandardScaler,cluster.KMeans", None),
    "logit": ("preprocessing.StandardScaler,linear_model.LogisticRegression", "sick"),
    "forest": ("ensemble.RandomForestClassifier", "sick"),
    "other": ("sklearn.tree.DecisionTreeClassifier", "sick"),
}
PARAMS = {
    "groups": {"kmeans__n_clusters": "2", "kmeans__random_state": "0"},
    "forest": {"n_estimators": "3"},
}
FOLLOW = {"ridge", "bayes", "scaled", "near", "parts", "groups"}
"""Those that need not learn again, at least."""


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    made = Workspace.create(tmp_path / "ws")
    write_csv(tmp_path / "visits.csv", visits(90))
    made.add_dataset(
        "visits", tmp_path / "visits.csv", id_column="visit", subjects=["patient", "doctor"]
    )
    return made


def fit(workspace: Workspace, *names: str, **more: Any) -> None:
    for name in names:
        kind, target = KINDS[name]
        workspace.fit(name, kind, target=target, params=PARAMS.get(name), **ON, **more)


def more_of(tmp_path: Path, n: int = 9, start: int = 90) -> Path:
    write_csv(tmp_path / "more.csv", visits(n, start=start))
    return tmp_path / "more.csv"


def states(workspace: Workspace) -> dict[str, str]:
    return {each["name"]: each["state"] for each in workspace.models()}


def check(workspace: Workspace) -> None:
    """Every model is the fit on the data as it is; ledger and log agree; no file is astray."""
    for each in workspace.verify():
        assert (each.verdict, each.detail) == ("equal", "")
    assert workspace.verify_log() == []


def bytes_of(workspace: Workspace, name: str) -> bytes:
    with workspace.context.ledger.reading() as connection:
        version = catalogue.current(connection, catalogue.find(connection, name))
    assert version is not None
    return workspace.context.store.open(version.stored)


@pytest.mark.backend("sqlite", "postgres")
def test_models_follow_an_append_and_are_what_a_new_fit_is(
    workspace: Workspace, tmp_path: Path
) -> None:
    fit(workspace, *KINDS)
    change = workspace.append("visits", more_of(tmp_path), update_models=True)
    treated = {each["model"]: each["treatment"] for each in change.models}
    assert treated.keys() == KINDS.keys()
    assert {treated[name] for name in FOLLOW} == {"updated"}
    assert treated["other"] == "refitted"
    assert change.stale == ()
    check(workspace)
    # The oracle: a workspace that has had all records from the start, with the same seeds.
    other = Workspace.create(tmp_path / "other")
    write_csv(tmp_path / "all.csv", visits(99))
    other.add_dataset(
        "visits", tmp_path / "all.csv", id_column="visit", subjects=["patient", "doctor"]
    )
    fit(other, "ridge", "bayes", "scaled", "parts", "groups")
    for name in ("ridge", "bayes", "scaled", "parts", "groups"):
        mine, others = (training.from_bytes(bytes_of(each, name)) for each in (workspace, other))
        assert mine.digest() == others.digest()


def test_a_model_that_did_not_follow_is_another(workspace: Workspace, tmp_path: Path) -> None:
    """The control of the test above: without following, the digests differ, and it is stale."""
    fit(workspace, "ridge")
    before = bytes_of(workspace, "ridge")
    change = workspace.append("visits", more_of(tmp_path))
    assert (change.models, change.stale) == ((), ("ridge",))
    assert bytes_of(workspace, "ridge") == before
    assert [(each.verdict, each.detail[:5]) for each in workspace.verify()] == [("equal", "stale")]
    workspace.refresh()
    assert bytes_of(workspace, "ridge") != before
    check(workspace)


def test_an_accelerator_follows_without_the_records(
    workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fit(workspace, *sorted(FOLLOW))

    def read(*args: Any) -> Any:
        raise AssertionError("records were read")

    for start in (90, 99):  # the accelerator that was written by the first is used by the second
        with monkeypatch.context() as patched:
            patched.setattr(reading, "read_parts", read)
            more = more_of(tmp_path, start=start)
            change = workspace.append("visits", more, update_models=True)
        assert {each["treatment"] for each in change.models} == {"updated"}
    workspace.request(["marker-patient-31"])
    assert {each["treatment"] for each in workspace.process().treatments} == {"deleted"}
    check(workspace)


def test_policies(workspace: Workspace, tmp_path: Path) -> None:
    fit(workspace, "ridge", policy="at-once")
    fit(workspace, "bayes")
    fit(workspace, "parts", policy="never")
    change = workspace.append("visits", more_of(tmp_path))
    assert [each["model"] for each in change.models] == ["ridge"]
    assert change.stale == ("bayes",)
    assert states(workspace) == {"bayes": "stale", "parts": "stale", "ridge": "ready"}
    done, _ = workspace.refresh()
    assert [each["model"] for each in done] == ["bayes"]
    with pytest.raises(WorkspaceError, match="'parts' never follows"):
        workspace.refresh(["parts"])
    change = workspace.append("visits", more_of(tmp_path, start=99), update_models=True)
    assert [each["model"] for each in change.models] == ["bayes", "ridge"]
    workspace.set_policy("parts", "refresh")
    assert [each["model"] for each in workspace.refresh(["parts"])[0]] == ["parts"]
    assert workspace.refresh()[0] == []
    check(workspace)
    workspace.fit("parts")
    assert workspace.model("parts")["policy"] == "refresh"  # a new fit leaves it as it was
    with pytest.raises(InvalidParameterError, match="expected one of: at-once"):
        workspace.set_policy("parts", "sometimes")
    with pytest.raises(NotInWorkspaceError):
        workspace.set_policy("nobody", "never")
    workspace.retire("parts")
    with pytest.raises(WorkspaceError, match="is retired"):
        workspace.refresh(["parts"])


def test_a_policy_that_was_altered_is_found(workspace: Workspace) -> None:
    fit(workspace, "ridge")
    with workspace.context.ledger.transaction() as connection:
        connection.execute(catalogue.schema.model.update().values(policy="never"))
    assert any("policy" in line for line in workspace.verify_log())


def test_sync_has_models_follow_what_changed_and_went(workspace: Workspace, tmp_path: Path) -> None:
    fit(workspace, *KINDS, policy="at-once")
    source = visits(95)
    source["age"][3] = 77
    source["patient"][8] = "marker-patient-77"  # another group, and another bucket
    for column in source.values():
        del column[40:44]
    write_csv(tmp_path / "visits.csv", source)
    change = workspace.sync("visits")
    assert (change.n_added, change.n_changed, change.n_removed) == (5, 2, 4)
    assert {each["treatment"] for each in change.models} == {"updated", "refitted"}
    check(workspace)
    assert states(workspace) == dict.fromkeys(KINDS, "ready")


@pytest.mark.backend("sqlite", "objects")
def test_what_changed_in_the_source_is_nowhere_any_more(
    workspace: Workspace, tmp_path: Path
) -> None:
    source = visits(90)
    source["note"][5] = "wrong-marker"
    write_csv(tmp_path / "visits.csv", source)
    workspace.sync("visits")
    fit(workspace, "ridge", "near")
    assert scan(tmp_path / "ws", "wrong-marker")
    write_csv(tmp_path / "visits.csv", visits(90))
    workspace.sync("visits")
    assert scan(tmp_path / "ws", "wrong-marker")  # the control: models still need that version
    workspace.refresh()
    assert scan(tmp_path / "ws", "wrong-marker") == []
    check(workspace)


def test_all_or_nothing(workspace: Workspace, tmp_path: Path) -> None:
    fit(workspace, "bayes", policy="at-once")
    source = visits(3, start=90)
    source["weight"] = [1.0, None, 2.0]  # of which naive Bayes can learn nothing
    write_csv(tmp_path / "gap.csv", source)
    before = bytes_of(workspace, "bayes"), workspace.datasets(), workspace.log_entries()
    files = sorted(workspace.context.store.list())
    with pytest.raises(WorkspaceError, match="'bayes' cannot follow its data") as told:
        workspace.append("visits", tmp_path / "gap.csv")
    assert "\n" not in str(told.value)
    assert before == (bytes_of(workspace, "bayes"), workspace.datasets(), workspace.log_entries())
    assert sorted(workspace.context.store.list()) == files
    check(workspace)
    workspace.set_policy("bayes", "refresh")
    workspace.append("visits", tmp_path / "gap.csv")
    with pytest.raises(WorkspaceError, match="'bayes' cannot follow"):
        workspace.refresh()


def test_a_refresh_names_each_model_that_cannot_follow(
    workspace: Workspace, tmp_path: Path
) -> None:
    fit(workspace, "bayes", "groups", "forest")
    workspace.fit("ridge", "linear_model.Ridge", target="sick", **{**ON, "features": ["age"]})
    source = visits(3, start=90)
    source["weight"] = [1.0, None, 2.0]
    write_csv(tmp_path / "gap.csv", source)
    workspace.append("visits", tmp_path / "gap.csv")
    each = "2 of 4 models cannot follow, 'bayes', 'groups': the model 'bayes' cannot"
    with pytest.raises(WorkspaceError, match=each):
        workspace.refresh()
    assert states(workspace)["ridge"] == "ready"


def test_a_sync_that_leaves_too_few_records_retires_no_model(
    workspace: Workspace, tmp_path: Path
) -> None:
    workspace.fit("near", "neighbors.KNeighborsClassifier", target="sick", policy="at-once", **ON)
    write_csv(tmp_path / "visits.csv", visits(2))
    with pytest.raises(WorkspaceError, match="would leave 2"):
        workspace.sync("visits")
    assert states(workspace) == {"near": "ready"}
    check(workspace)


def test_whole_numbers_that_become_others(workspace: Workspace, tmp_path: Path) -> None:
    fit(workspace, "ridge", "near", "scaled")
    source = visits(6, start=90)
    source["age"] = [30.5, 31.0, 32.25, 33.0, 34.0, 35.0]
    path = tmp_path / "shop.db"
    with sqlite3.connect(path) as connection:
        names = ", ".join(source)
        connection.execute(f"create table visits ({names})")
        connection.executemany(
            f"insert into visits values ({', '.join('?' * len(source))})",
            list(zip(*source.values(), strict=True)),
        )
    connection.close()
    change = workspace.append("visits", f"sqlite:///{path}#visits", update_models=True)
    assert len(change.models) == 3
    check(workspace)


def test_several_data_sets_and_words(workspace: Workspace, tmp_path: Path) -> None:
    for name in ("north", "south"):
        write_csv(tmp_path / f"{name}.csv", visits(30, start=0 if name == "north" else 300))
        workspace.add_dataset(name, tmp_path / f"{name}.csv", id_column="visit")
    both: dict[str, Any] = {"datasets": ["north", "south"]}
    workspace.fit("both", "linear_model.Ridge", target="sick", features=["age", "weight"], **both)
    workspace.fit(
        "words", "feature_extraction.CountVectorizer,naive_bayes.MultinomialNB", target="sick",
        features=["note"], **both,
    )  # fmt: skip
    workspace.append("south", more_of(tmp_path, start=600))
    assert states(workspace) == {"both": "stale", "words": "stale"}
    workspace.append("north", more_of(tmp_path, start=700), update_models=True)
    assert states(workspace) == {"both": "ready", "words": "ready"}
    check(workspace)


def test_a_program_is_run_again_and_a_hook_too(workspace: Workspace, tmp_path: Path) -> None:
    workspace.register("copy", datasets=["visits"], retrain="cp {data} {out}", policy="at-once")
    workspace.fit(
        "ridge", "linear_model.Ridge", target="sick", hook=f"cp {{model}} {tmp_path / 'seen'}", **ON
    )
    change = workspace.append("visits", more_of(tmp_path), update_models=True)
    treated = {each["model"]: each["treatment"] for each in change.models}
    assert treated == {"copy": "retrained", "ridge": "updated"}
    assert (tmp_path / "seen").exists()
    assert workspace.status()["hooks_due"] == []
    assert {each.verdict for each in workspace.verify(retrain=True)} == {"equal"}


def test_a_model_that_nobody_trains_here_is_left_alone(
    workspace: Workspace, tmp_path: Path
) -> None:
    workspace.register("elsewhere", datasets=["visits"])
    assert workspace.append("visits", more_of(tmp_path), update_models=True).models == ()
    with pytest.raises(WorkspaceError, match="trained elsewhere"):
        workspace.refresh(["elsewhere"])


def test_how_stale_a_model_is(workspace: Workspace, tmp_path: Path) -> None:
    fit(workspace, "ridge")
    workspace.append("visits", more_of(tmp_path))
    source = visits(98)
    source["age"][3] = 78
    write_csv(tmp_path / "visits.csv", source)
    workspace.sync("visits")
    (found,) = workspace.status()["staleness"]
    assert found == {
        "model": "ridge", "n_versions": 2, "n_added": 9, "n_changed": 1, "n_removed": 1
    }  # fmt: skip
    assert workspace.model("ridge")["staleness"] == "9 added, 1 changed, 1 removed"
    workspace.report(tmp_path / "report.html")
    assert "9 added, 1 changed, 1 removed" in (tmp_path / "report.html").read_text()
    with workspace.context.ledger.reading() as connection:
        assert find(connection, "visits").version == 3
    workspace.refresh()
    assert workspace.status()["staleness"] == []
    assert workspace.model("ridge")["staleness"] is None


def test_a_refresh_with_nothing_to_do_removes_what_a_killed_command_has_left(
    workspace: Workspace,
) -> None:
    fit(workspace, "ridge")
    before = sorted(workspace.context.store.list())
    workspace.context.store.put("models/ridge", b"of a command that was killed")
    assert sorted(workspace.context.store.list()) != before
    assert workspace.refresh() == ([], [])
    assert sorted(workspace.context.store.list()) == before
