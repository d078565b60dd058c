"""Corrections (GDPR, Article 16): taken in, carried out in data sets and models, and proved."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
from backends import copy_of
from contexts import scan, visits, write_csv
from crashes import count, die_at, referred_to
from traces import numbers_in

from effort import in_turn
from erasable.core._interruptions import explained
from erasable.core.errors import (
    InvalidDataError,
    InvalidIdsError,
    NotInWorkspaceError,
    TamperedError,
    WorkspaceError,
)
from erasable.workspace import Workspace
from erasable.workspace.evidence import receipts
from erasable.workspace.ledger.schema import request as request_table
from erasable.workspace.models import catalogue, following, training
from erasable.workspace.requests import answering, corrections, failures, steps
from erasable.workspace.requests import process as processing

WRONG, RIGHT = 61.1234567890123, 62.9876543210987
ON: dict[str, Any] = {"datasets": ["visits"], "features": ["age", "weight"]}
KINDS = {
    "ridge": ("linear_model.Ridge", "sick"),
    "bayes": ("naive_bayes.GaussianNB", "sick"),
    "scaled": ("preprocessing.StandardScaler,linear_model.Ridge", "sick"),
    "near": ("neighbors.KNeighborsClassifier", "sick"),
    "groups": ("preprocessing.StandardScaler,cluster.KMeans", None),
    "other": ("sklearn.tree.DecisionTreeClassifier", "sick"),
}
FOLLOW = {"ridge", "bayes", "scaled", "near", "groups"}


def source(n: int = 60, *, right: bool = False) -> dict[str, list[Any]]:
    made = visits(n)
    made["note"][7] = "right-marker" if right else "wrong-marker"
    made["weight"][7] = RIGHT if right else WRONG
    return made


def make(folder: Path, name: str = "ws", *, right: bool = False) -> Workspace:
    workspace = Workspace.create(folder / name)
    write_csv(folder / f"{name}.csv", source(right=right))
    workspace.add_dataset(
        "visits", folder / f"{name}.csv", id_column="visit", subjects=["patient", "doctor"]
    )
    return workspace


def fit(workspace: Workspace, *names: str, **more: Any) -> None:
    for name in names:
        kind, target = KINDS[name]
        params = None
        if name == "groups":
            params = {"kmeans__n_clusters": "2", "kmeans__random_state": "0"}
        workspace.fit(name, kind, target=target, params=params, **ON, **more)


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    return make(tmp_path)


def correct(workspace: Workspace, **more: Any) -> str:
    values = {"note": "right-marker", "weight": RIGHT}
    request, warnings = workspace.correct("visits", ids=["v7"], values=values, **more)
    assert warnings == []
    return request.id


def digests(workspace: Workspace) -> dict[str, str]:
    found = {}
    with workspace.context.ledger.reading() as connection:
        for each in catalogue.every(connection):
            version = catalogue.current(connection, each)
            if version is not None and each.kind == "estimator":
                data = workspace.context.store.open(version.stored)
                found[each.name] = training.from_bytes(data).digest()
    return found


def check(workspace: Workspace) -> None:
    assert {each.verdict for each in workspace.verify()} <= {"equal"}
    assert workspace.verify_log() == []
    with workspace.context.lock():
        workspace.context.clean()
    assert sorted(workspace.context.store.list()) == sorted(referred_to(workspace))


def state_of(workspace: Workspace, request: str) -> tuple[str, int | None]:
    (found,) = [each for each in workspace.requests() if each.id == request]
    return found.state, found.matched


@pytest.mark.backend("sqlite", "postgres", "objects")
def test_data_and_models_are_as_if_it_had_never_been_wrong(
    workspace: Workspace, tmp_path: Path
) -> None:
    fit(workspace, *KINDS)
    assert scan(tmp_path / "ws", "wrong-marker")  # the control of what is looked for below
    assert numbers_in(tmp_path / "ws", {WRONG})
    request = correct(workspace)
    assert state_of(workspace, request) == ("pending", None)
    done = workspace.process()
    treated = {each["model"]: each["treatment"] for each in done.treatments}
    assert {treated[name] for name in FOLLOW} == {"corrected"}
    assert treated["other"] == "refitted"
    assert (done.n_corrected, done.n_records, done.n_unmatched) == (1, 0, 0)
    assert state_of(workspace, request) == ("completed", 1)
    check(workspace)
    assert scan(tmp_path / "ws", "wrong-marker") == []
    assert numbers_in(tmp_path / "ws", {WRONG}) == set()
    assert scan(tmp_path / "ws", "right-marker")
    other = make(tmp_path, "other", right=True)
    fit(other, *FOLLOW)
    mine, others = digests(workspace), digests(other)
    assert {name: mine[name] for name in FOLLOW} == others
    # It is deleted from as from any model.
    workspace.request(["marker-patient-3"])
    assert {each["treatment"] for each in workspace.process().treatments} >= {"deleted"}
    check(workspace)


def sizes(workspace: Workspace) -> list[int]:
    """Return the sizes of the files that models lie in with their records, ready to be changed."""
    return sorted(each.stat().st_size for each in workspace.context.root.rglob("arrays"))


@pytest.mark.backend("sqlite")
@pytest.mark.parametrize("in_place", [True, False])
def test_corrected_records_take_their_own_places(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch, in_place: bool
) -> None:
    """Or all that is kept of each record would be copied, to be one longer."""
    names = FOLLOW - {"groups"}  # k-means keeps more once a record has left
    fit(workspace, *names)
    before = sizes(workspace)
    assert len(before) == len(names)
    if not in_place:
        monkeypatch.setattr(following, "_let_go", lambda *given, **more: False)
    correct(workspace)
    workspace.process()
    assert (sizes(workspace) == before) is in_place
    check(workspace)


def test_the_receipt_names_columns_and_no_value(workspace: Workspace, tmp_path: Path) -> None:
    fit(workspace, "ridge")
    workspace.register("elsewhere", datasets=["visits"])
    request = correct(workspace)
    assert workspace.requests()[0].due_at is not None
    workspace.process()
    body = workspace.receipt(request)
    assert receipts.check(body, workspace.public_key).request == request
    said = receipts.show(body)
    assert said["outcome"] == "corrected"
    assert said["corrected"] == {"dataset": "visits", "columns": ["weight", "note"]}
    assert (said["records"], said["in_time"], said["not_covered"]) == (1, True, ["elsewhere"])
    assert [each["treatment"] for each in said["datasets"]] == ["corrected"]
    for marker in ("wrong-marker", "right-marker", str(WRONG), str(RIGHT), "v7"):
        assert f'"{marker}"' not in json.dumps(said)
    kinds = [each["kind"] for each in workspace.log_entries() if each["subject"] == request]
    assert kinds == [
        "request-acknowledged", "request-started", "request-corrected", "request-completed"
    ]  # fmt: skip
    workspace.report(tmp_path / "report.html")
    assert '<td data-of="asks for">correction</td>' in (tmp_path / "report.html").read_text()


def test_every_version_that_is_kept_is_corrected(workspace: Workspace, tmp_path: Path) -> None:
    """A model that never follows has learned from an older version, in which it is wrong, too."""
    fit(workspace, "near", policy="never")
    longer = source(70)
    longer["age"][8] = 99  # of the same person: the file of the record is another one
    write_csv(tmp_path / "ws.csv", longer)
    workspace.sync("visits")
    fit(workspace, "ridge")
    correct(workspace)
    workspace.process()
    assert scan(tmp_path / "ws", "wrong-marker") == []
    assert numbers_in(tmp_path / "ws", {WRONG}) == set()
    assert workspace.model("near")["state"] == "stale"
    check(workspace)


@pytest.mark.parametrize("policy", ["refresh", "never"])
def test_a_value_that_an_older_version_cannot_hold(
    workspace: Workspace, tmp_path: Path, policy: str
) -> None:
    """Whole numbers that became any numbers: a model may still need them as they were."""
    fit(workspace, "near", policy=policy)
    wider: dict[str, Any] = source(62)
    wider["age"] = [*wider["age"][:60], 30.5, 31.25]
    write_csv(tmp_path / "ws.csv", wider)
    workspace.sync("visits")
    fit(workspace, "ridge")
    with pytest.raises(InvalidDataError, match=r"'near' .*version 1 of 'visits' has int64") as told:
        workspace.correct("visits", ids=["v7"], values={"age": 27.75})
    assert "\n" not in str(told.value)
    assert ("model policy near refresh" in str(told.value)) is (policy == "never")
    assert workspace.requests() == []
    workspace.correct("visits", ids=["v7"], values={"age": 28})  # which both versions can hold
    workspace.process()
    check(workspace)
    if policy == "never":  # as the message says
        workspace.set_policy("near", "refresh")
    workspace.refresh(["near"])
    request = workspace.correct("visits", ids=["v7"], values={"age": 27.75})[0].id
    workspace.process()
    assert state_of(workspace, request) == ("completed", 1)
    check(workspace)


REFUSED = [
    ("linear_model.Ridge", math.inf), ("linear_model.Ridge", 1e308),
    ("naive_bayes.MultinomialNB", -1.0), ("sklearn.tree.DecisionTreeClassifier", math.inf),
    ("sklearn.tree.DecisionTreeClassifier", 1e39), ("ensemble.BaggingClassifier", 1e39),
]  # fmt: skip
"""Estimators, and what they do not learn from."""


def fit_one(workspace: Workspace, kind: str, name: str = "strict") -> None:
    tree = {"estimator": "sklearn.tree.DecisionTreeClassifier"}
    params = tree if kind.startswith("ensemble") else None
    workspace.fit(name, kind, target="sick", params=params, **ON)


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("kind", "value"), REFUSED)
def test_a_value_that_a_model_does_not_learn_from(
    workspace: Workspace, kind: str, value: float
) -> None:
    fit_one(workspace, kind)
    before = workspace.model("strict")["version"]
    with pytest.raises(InvalidDataError, match="'strict' could not learn from") as told:
        workspace.correct("visits", ids=["v7"], values={"weight": value})
    assert "\n" not in str(told.value)
    assert workspace.requests() == []
    assert (workspace.model("strict")["state"], workspace.model("strict")["version"]) == (
        "ready", before,
    )  # fmt: skip
    workspace.correct("visits", ids=["v7"], values={"weight": 1000.5})
    workspace.process()
    check(workspace)


def bad(workspace: Workspace, patched: pytest.MonkeyPatch, **values: Any) -> str:
    """Take a correction in that cannot be carried out, as if nobody had looked."""
    with patched.context() as blind:
        blind.setattr(corrections, "_check_models", lambda *given: None)
        return workspace.correct("visits", ids=["v8"], values=values)[0].id


@pytest.mark.filterwarnings("ignore:overflow encountered in cast")
@pytest.mark.parametrize("by", ["process", "work"])
@pytest.mark.parametrize(("kind", "value"), REFUSED[1::3])
def test_what_cannot_be_carried_out_is_set_aside_alone(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch, by: str, kind: str, value: float
) -> None:
    fit_one(workspace, kind)
    workspace.fit("ages", "naive_bayes.GaussianNB", datasets=["visits"], features=["age"],
                  target="sick")  # fmt: skip
    good, wrong = correct(workspace), bad(workspace, monkeypatch, weight=value)
    (erasure,) = workspace.request(["marker-patient-9"])
    if by == "process":
        (told,) = workspace.process().warnings
        assert wrong in told
        assert "'strict'" in told
    else:
        workspace.work(drain=True)
    assert state_of(workspace, good) == ("completed", 1)
    assert state_of(workspace, erasure.id) == ("completed", 3)
    assert state_of(workspace, wrong) == ("pending", None)
    (waits,) = [each for each in workspace.requests() if each.id == wrong]
    assert waits.label == "on hold"
    assert "model 'strict' cannot follow it" in str(waits.hold)
    assert {each["state"] for each in workspace.models()} == {"ready"}
    check(workspace)
    workspace.request(["marker-patient-10"])
    workspace.process()
    workspace.resume(wrong)  # it is on hold again
    assert [wrong in each for each in workspace.process().warnings] == [True]
    workspace.cancel(wrong)
    check(workspace)


def test_who_is_not_set_aside_keeps_others_waiting(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    fit_one(workspace, REFUSED[1][0])
    bad(workspace, monkeypatch, weight=REFUSED[1][1])
    (erasure,) = workspace.request(["marker-patient-9"])
    monkeypatch.setattr(failures.BatchFailure, "is_in_doubt", False)
    monkeypatch.setattr(failures.BatchFailure, "is_of_values", False)
    with pytest.raises(WorkspaceError, match="'strict'"):
        workspace.process()
    assert state_of(workspace, erasure.id) == ("pending", None)


@pytest.mark.parametrize("by", ["process", "work"])
def test_a_program_that_fails_for_a_correction(
    workspace: Workspace, tmp_path: Path, by: str
) -> None:
    """Nobody can say of it whether another attempt would do; erasures do not wait for that."""
    command = "sh -c 'grep -q bad-marker {data} && exit 3; cp {data} {out}'"
    workspace.register("copy", datasets=["visits"], retrain=command)
    wrong = workspace.correct("visits", ids=["v8"], values={"note": "bad-marker"})[0].id
    (erasure,) = workspace.request(["marker-patient-9"])
    if by == "process":
        said = rf"exited with 3.*model retire copy.*{wrong} waits.*1 other request was carried out"
        with pytest.raises(WorkspaceError, match=said):
            workspace.process()
    else:
        workspace.work(drain=True, attempts=2, backoff=0.01)
        assert workspace.requests(["pending"])[0].label == "on hold"
    assert state_of(workspace, erasure.id) == ("completed", 3)
    assert state_of(workspace, wrong) == ("pending", None)
    (later,) = workspace.request(["marker-patient-10"])
    if by == "process":
        with pytest.raises(WorkspaceError, match="exited with 3"):
            workspace.process()
    else:
        workspace.work(drain=True)
    assert state_of(workspace, later.id) == ("completed", 3)
    assert workspace.verify_log() == []


def test_an_erasure_does_not_wait_until_a_correction_is_tried_again(workspace: Workspace) -> None:
    command = "sh -c 'grep -q bad-marker {data} && exit 3; cp {data} {out}'"
    workspace.register("copy", datasets=["visits"], retrain=command)
    wrong = workspace.correct("visits", ids=["v8"], values={"note": "bad-marker"})[0].id
    patience = failures.RetryPolicy(5, 3600.0)
    processing.carry_out(workspace.context, patience=patience)
    assert len(workspace.tasks()["failed"]) == 1
    (erasure,) = workspace.request(["marker-patient-9"])
    processing.carry_out(workspace.context, patience=patience)
    assert state_of(workspace, erasure.id) == ("completed", 3)
    assert state_of(workspace, wrong) == ("pending", None)
    assert workspace.verify_log() == []


@pytest.mark.parametrize("answer", ["cancel", "hold"])
def test_a_correction_that_is_answered_before_it_is_put_on_hold(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch, answer: str
) -> None:
    fit_one(workspace, REFUSED[0][0])
    wrong = bad(workspace, monkeypatch, weight=REFUSED[0][1])
    real = processing.put_back

    def answered(context: Any, name: str) -> str | None:
        state = real(context, name)
        workspace.cancel(wrong) if answer == "cancel" else workspace.hold(wrong, "in doubt")
        return state

    monkeypatch.setattr(processing, "put_back", answered)
    (told,) = workspace.process().warnings
    assert "meanwhile" in told
    (found,) = workspace.requests()
    assert (found.state, found.hold) == (
        ("cancelled", None) if answer == "cancel" else ("pending", "in doubt")
    )
    check(workspace)


def test_an_interruption_says_that_others_are_carried_out(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    fit_one(workspace, REFUSED[0][0])
    wrong = bad(workspace, monkeypatch, weight=REFUSED[0][1])
    (erasure,) = workspace.request(["marker-patient-9"])
    real = steps.prepare_batch

    def interrupted(context: Any, batch: Any, **more: Any) -> Any:
        if list(batch.requests) == [wrong]:
            raise KeyboardInterrupt
        return real(context, batch, **more)

    monkeypatch.setattr(steps, "prepare_batch", interrupted)
    with pytest.raises(KeyboardInterrupt) as told:
        workspace.process()
    assert state_of(workspace, erasure.id) == ("completed", 3)
    assert state_of(workspace, wrong) == ("pending", None)
    assert "some requests are carried out" in explained(told.value)


@pytest.mark.filterwarnings("ignore:overflow encountered in cast")
def test_what_comes_so_that_a_model_cannot_learn(workspace: Workspace, tmp_path: Path) -> None:
    """It is refused by name, and the models that can follow do."""
    fit(workspace, "other")
    fit(workspace, "near")
    far = source(70)
    far["weight"][65] = 1e39
    write_csv(tmp_path / "ws.csv", far)
    with pytest.raises(WorkspaceError, match=r"'other' cannot follow its data .*too large"):
        workspace.sync("visits", update_models=True)
    assert workspace.datasets()[0]["n_records"] == 60
    workspace.sync("visits")
    with pytest.raises(WorkspaceError, match=r"'other' cannot follow its data .*too large"):
        workspace.refresh()
    assert {each["name"]: each["state"] for each in workspace.models()} == {
        "near": "ready", "other": "stale",
    }  # fmt: skip
    workspace.request(["marker-patient-9"])
    workspace.process()
    check(workspace)


def test_erasures_and_corrections_of_one_batch(workspace: Workspace) -> None:
    fit(workspace, *KINDS)
    first = correct(workspace)
    second, _ = workspace.correct("visits", ids=["v7", "v8"], values={"age": "77"})
    (erasure,) = workspace.request(["marker-patient-2"])  # whose records v6, v7 and v8 are
    (other,) = workspace.request(["marker-patient-9"])
    third, _ = workspace.correct("visits", ids=["v40"], values={"sick": 1 - source()["sick"][40]})
    done = workspace.process()
    assert (done.n_records, done.n_corrected, done.n_needless) == (6, 1, 2)
    assert state_of(workspace, first) == state_of(workspace, second.id) == ("no_match", 0)
    assert state_of(workspace, erasure.id) == state_of(workspace, other.id) == ("completed", 3)
    assert state_of(workspace, third.id) == ("completed", 1)
    assert receipts.show(workspace.receipt(first))["outcome"] == "nothing to correct"
    assert receipts.show(workspace.receipt(third.id))["models"][0]["treatment"] == "corrected"
    assert receipts.show(workspace.receipt(other.id))["models"][0]["treatment"] == "deleted"
    check(workspace)


def test_the_later_of_two_corrections_counts(workspace: Workspace, tmp_path: Path) -> None:
    fit(workspace, "ridge")
    workspace.correct("visits", ids=["v7"], values={"note": "half-marker", "weight": 1.5})
    correct(workspace)
    workspace.process()
    assert scan(tmp_path / "ws", "wrong-marker", "half-marker") == []
    other = make(tmp_path, "other", right=True)
    fit(other, "ridge")
    assert digests(workspace) == digests(other)


OLDER = {"note": "half-marker", "weight": 1.5, "age": 3}


@pytest.mark.parametrize("waits", ["older", "newer", "left out"])
@pytest.mark.backend("sqlite", "postgres")
def test_the_later_of_two_corrections_counts_in_either_order(
    workspace: Workspace, tmp_path: Path, waits: str
) -> None:
    """An older one that waits longer takes nothing back that a newer one says."""
    fit(workspace, "ridge")
    older, _ = workspace.correct("visits", ids=["v7", "v9"], values=OLDER)
    newer = correct(workspace)
    if waits == "left out":
        workspace.process([newer])
    else:
        held = {"older": older.id, "newer": newer}[waits]
        workspace.hold(held, "in doubt")
        workspace.process()
        workspace.resume(held)
    workspace.process()
    assert {each.state for each in workspace.requests()} == {"completed"}
    check(workspace)
    other = make(tmp_path, "other", right=True)
    other.correct("visits", ids=["v7"], values={"age": 3})
    other.correct("visits", ids=["v9"], values=OLDER)
    other.process()
    fit(other, "ridge")
    assert digests(workspace) == digests(other)
    assert scan(tmp_path / "ws", "wrong-marker") == []


def test_a_file(workspace: Workspace, tmp_path: Path) -> None:
    fit(workspace, "ridge", "near")
    (tmp_path / "right.csv").write_text(f"weight,visit,note\n{RIGHT!r},v7,right-marker\n,v9,x\n")
    with pytest.raises(InvalidDataError, match=r"'near' could not learn .* gaps"):
        workspace.correct("visits", tmp_path / "right.csv")
    assert workspace.requests() == []
    (tmp_path / "right.csv").write_text(f"weight,visit,note\n{RIGHT!r},v7,right-marker\n5,v9,x\n")
    workspace.correct("visits", tmp_path / "right.csv")
    assert workspace.process().n_corrected == 2
    check(workspace)


@pytest.mark.parametrize("kind", ["naive_bayes.GaussianNB", "linear_model.LogisticRegression"])
@pytest.mark.parametrize("scaled", [False, True], ids=["alone", "scaled"])
def test_a_class_that_a_model_leaves_out(workspace: Workspace, kind: str, scaled: bool) -> None:
    """It is found when the correction is taken in, and not when the batch is carried out."""
    prefix = kind.rpartition(".")[2].lower() + "__" if scaled else ""
    workspace.fit(
        "few", f"preprocessing.StandardScaler,{kind}" if scaled else kind, target="sick",
        params={f"{prefix}classes": [0, 1]}, **ON,
    )  # fmt: skip
    with pytest.raises(InvalidDataError, match=r"'few' could not learn .* classes="):
        workspace.correct("visits", ids=["v7"], values={"sick": 7})
    assert workspace.requests() == []
    workspace.correct("visits", ids=["v7"], values={"sick": 1})
    workspace.correct("visits", ids=["v8"], values={"sick": 0})
    workspace.process()
    check(workspace)
    workspace.retire("few")
    workspace.fit("every", kind, target="sick", **ON)  # the control: it leaves no class out
    workspace.correct("visits", ids=["v7"], values={"sick": 7})
    workspace.process()
    assert {each.verdict for each in workspace.verify()} == {"equal", "retired"}


@pytest.mark.parametrize(
    ("given", "error", "said"),
    [
        ({"ids": ["v7", "v999"], "values": {"age": 1}}, InvalidIdsError, "1 of 2 records"),
        ({"ids": ["v7", "v7"], "values": {"age": 1}}, InvalidIdsError, "twice"),
        ({"ids": ["v7"], "values": {"size": 1}}, InvalidDataError, "no columns 'size'"),
        ({"ids": ["v7"], "values": {"patient": "me"}}, InvalidDataError, "say whose"),
        ({"ids": ["v7"], "values": {"visit": "v8"}}, InvalidDataError, "one twice"),
        (
            {"ids": ["v7"], "values": {"age": "old"}},
            InvalidDataError,
            "holds 'old'; expected whole",
        ),
        ({"ids": ["v7"], "values": {"age": 2.5}}, InvalidDataError, r"holds 2.5 \(double\)"),
        ({"ids": ["v7"], "values": {"weight": WRONG}}, WorkspaceError, "already"),
        ({"ids": ["v7"]}, InvalidIdsError, "neither or both"),
        ({"values": {"age": 1}}, InvalidIdsError, "neither or both"),
    ],
)
def test_what_is_refused(
    workspace: Workspace, given: dict[str, Any], error: type[Exception], said: str
) -> None:
    files = sorted(workspace.context.store.list())
    with pytest.raises(error, match=said) as told:
        workspace.correct("visits", **given)
    assert "\n" not in str(told.value)
    assert (workspace.requests(), sorted(workspace.context.store.list())) == ([], files)


def test_there_is_no_such_data_set(workspace: Workspace) -> None:
    with pytest.raises(NotInWorkspaceError, match="no data set 'letters'"):
        workspace.correct("letters", ids=["v7"], values={"age": 1})


def test_who_waits_to_be_erased(workspace: Workspace) -> None:
    workspace.request(["marker-patient-2"], hold="a duty to keep them")
    _, warnings = workspace.correct("visits", ids=["v7", "v30"], values={"age": 3})
    assert len(warnings) == 1
    assert "erasure of 1 of 2 records" in warnings[0]
    workspace.process()  # the erasure is on hold: until then what is kept is to be right
    assert workspace.requests(["completed"])[0].matched == 2


@pytest.mark.backend("sqlite", "objects")
def test_one_that_is_cancelled_leaves_nothing(workspace: Workspace, tmp_path: Path) -> None:
    request = correct(workspace)
    assert scan(tmp_path / "ws", "right-marker")
    workspace.hold(request, "who asks is in doubt")
    assert workspace.process().requests == []
    workspace.cancel(request)
    assert scan(tmp_path / "ws", "right-marker") == []
    assert scan(tmp_path / "ws", "wrong-marker")
    check(workspace)


@pytest.mark.backend("sqlite", "postgres")
def test_one_that_waits_forgets_who_is_erased(workspace: Workspace, tmp_path: Path) -> None:
    """What is to be corrected is a copy of a record, too."""
    values = {"note": "right-marker", "weight": RIGHT}
    request, _ = workspace.correct("visits", ids=["v7", "v30"], values=values, hold="in doubt")
    assert numbers_in(tmp_path / "ws", {RIGHT})  # the control of what is looked for below
    only, _ = workspace.correct("visits", ids=["v7"], values={"age": 3}, hold="in doubt")
    workspace.request(["marker-patient-2", "marker-patient-10"])
    workspace.process()
    assert scan(tmp_path / "ws", "wrong-marker", "right-marker") == []
    assert numbers_in(tmp_path / "ws", {WRONG, RIGHT}) == set()
    kinds = [each["kind"] for each in workspace.log_entries()]
    assert kinds.count("request-narrowed") == 2
    check(workspace)
    workspace.resume(request.id)
    workspace.resume(only.id)
    assert workspace.process().n_needless == 2
    check(workspace)


@pytest.mark.parametrize("changed", ["patient", "doctor"])
def test_one_that_waits_is_of_a_record_of_the_same_person(
    workspace: Workspace, tmp_path: Path, changed: str
) -> None:
    """A record that a sync gives to somebody else does not get what was said of another's."""
    request = correct(workspace)
    of_another = source()
    of_another[changed][7] = "another"
    write_csv(tmp_path / "ws.csv", of_another)
    workspace.sync("visits")
    workspace.process()
    stays = changed == "doctor"  # the control: it is about who it was about
    assert state_of(workspace, request) == ("completed" if stays else "no_match", int(stays))
    assert bool(numbers_in(tmp_path / "ws", {RIGHT})) == stays
    check(workspace)


def test_one_that_waits_forgets_what_it_says_of_a_record_that_is_anothers(
    workspace: Workspace, tmp_path: Path
) -> None:
    correct(workspace, hold="in doubt")
    of_another = source()
    of_another["patient"][7] = "another"
    assert numbers_in(tmp_path / "ws", {RIGHT})
    write_csv(tmp_path / "ws.csv", of_another)
    workspace.sync("visits")
    assert not numbers_in(tmp_path / "ws", {RIGHT})
    check(workspace)


def test_one_that_a_program_cannot_follow(workspace: Workspace, tmp_path: Path) -> None:
    workspace.register("copy", datasets=["visits"], retrain="cp {data} {out}")
    fit(workspace, "ridge")
    before = digests(workspace)
    request = correct(workspace)
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("PATH", "")
        with pytest.raises(WorkspaceError, match="model retire copy"):
            workspace.process()
    assert state_of(workspace, request) == ("pending", None)
    assert digests(workspace) == before
    assert scan(tmp_path / "ws", "wrong-marker")
    workspace.process()
    assert state_of(workspace, request) == ("completed", 1)
    assert scan(tmp_path / "ws", "wrong-marker") == []


@pytest.mark.backend("sqlite", "postgres")
def test_a_worker_carries_it_out(workspace: Workspace) -> None:
    fit(workspace, *KINDS)
    request = correct(workspace)
    workspace.request(["marker-patient-9"])
    workspace.work(drain=True)
    assert state_of(workspace, request) == ("completed", 1)
    check(workspace)


def test_answers_call_it_a_correction(workspace: Workspace) -> None:
    fit(workspace, "ridge")
    workspace.fit("ages", "naive_bayes.GaussianNB", datasets=["visits"], features=["age"],
                  target="sick")  # fmt: skip
    request = correct(workspace)
    asked = workspace.request(["marker-patient-9"])[0].id
    for id, verb in ((request, "correct"), (asked, "erase")):
        notice = answering.extension_notice(workspace.extend(id, "many at once"), "many at once")
        assert f"Your request {id} to {verb} your data" in notice
    workspace.process()
    said = workspace.audit("ridge", deleted=request).sentence
    assert "of the values that the request corrected" in said
    assert "of the records that the request erased" in workspace.audit(
        "ridge", deleted=asked
    ).sentence  # fmt: skip


def test_only_what_is_on_hold_is_lifted(workspace: Workspace) -> None:
    request = correct(workspace)
    before = workspace.log_entries()
    with pytest.raises(WorkspaceError, match="is not on hold"):
        workspace.resume(request)
    assert workspace.log_entries() == before


@pytest.mark.parametrize("column", ["values_key", "values_sha256", "corrects"])
def test_one_that_was_altered_is_not_carried_out(workspace: Workspace, column: str) -> None:
    request = correct(workspace)
    other = workspace.correct("visits", ids=["v9"], values={"age": 3})[0].id
    with workspace.context.ledger.transaction() as connection:
        rows = {row.id: row for row in connection.execute(request_table.select())}
        given = {"corrects": {"dataset": "visits", "columns": ["age"]}}
        value = given.get(column, getattr(rows[other], column))
        connection.execute(
            request_table.update().where(request_table.c.id == request).values({column: value})
        )
    with pytest.raises((TamperedError, WorkspaceError)):
        workspace.process([request])


@pytest.mark.soak
def test_a_backup_has_corrections_that_are_open(workspace: Workspace, tmp_path: Path) -> None:
    fit(workspace, "ridge")
    correct(workspace, hold="in doubt")
    made = workspace.back_up(tmp_path / "one.tar", with_keys=True)
    Workspace.restore(made.path, tmp_path / "again", suppressions=None)
    again = Workspace.open(tmp_path / "again")
    (request,) = again.requests()
    again.resume(request.id)
    again.process()
    assert scan(tmp_path / "again", "wrong-marker") == []
    check(again)


@pytest.mark.backend("sqlite")
def test_a_restored_backup_tells_of_corrections_it_lacks(
    workspace: Workspace, tmp_path: Path
) -> None:
    fit(workspace, "ridge")
    early = workspace.correct("visits", ids=["v9"], values={"age": 71})[0].id
    workspace.process()
    made = workspace.back_up(tmp_path / "one.tar", with_keys=True)
    late = correct(workspace)
    workspace.process()
    listed, head = workspace.suppression_list(), workspace.head()
    for marker in ("right-marker", "wrong-marker"):
        assert marker not in json.dumps(listed)
    done = Workspace.restore(made.path, tmp_path / "again", suppressions=listed, head=head)
    told = [line for line in done.warnings if "has corrected" in line]
    assert len(told) == 1
    assert f"{late} has corrected weight, note in 'visits'" in told[0]
    assert early not in told[0]


# -- a process that dies ---------------------------------------------------------------------------


def process(workspace: Workspace) -> None:
    workspace.process()


@pytest.fixture(scope="module")
def prepared(backend: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("corrections")
    workspace = make(folder)
    fit(workspace, "ridge", "near", "groups", "other")
    correct(workspace)
    workspace.request(["marker-patient-9"])
    return folder / "ws"


POINTS = 130
"""As many as there are, or more: those beyond the last one are skipped."""


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    "number",
    [
        pytest.param(number, marks=[] if number % 12 == 0 else [pytest.mark.soak])
        for number in range(1, POINTS)
        if number % 12 == 0 or in_turn(number, 4)
    ],
)
def test_killed_while_correcting(prepared: Path, tmp_path: Path, number: int) -> None:
    path = copy_of(prepared, tmp_path / "ws")
    if not die_at(number, process, path):
        assert number > 60
        return
    workspace = Workspace.open(path)
    completed = [each.state for each in workspace.requests()] == ["completed", "completed"]
    assert not completed or scan(path, "wrong-marker") == []
    workspace.process()
    assert {each.state for each in workspace.requests()} == {"completed"}
    assert sorted(each.matched or 0 for each in workspace.requests()) == [1, 3]
    assert scan(path, "wrong-marker") == []
    assert numbers_in(path, {WRONG}) == set()
    check(workspace)


def test_there_are_no_more_points(prepared: Path, tmp_path: Path) -> None:
    assert count(process, copy_of(prepared, tmp_path / "ws")) < POINTS
