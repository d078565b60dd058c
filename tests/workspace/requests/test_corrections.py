"""Corrections (GDPR, Article 16): taken in, carried out in data sets and models, and proved."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from backends import copy_of
from contexts import scan, visits, write_csv
from crashes import count, die_at, referred_to
from traces import numbers_in

from effort import in_turn
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
from erasable.workspace.models import catalogue, training

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
                found[each.name] = training.of_bytes(data).digest()
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
    assert "<td>correction</td>" in (tmp_path / "report.html").read_text()


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


def test_a_value_that_an_older_version_cannot_hold(workspace: Workspace, tmp_path: Path) -> None:
    """Whole numbers that became any numbers: a model may still need them as they were."""
    fit(workspace, "near")
    wider: dict[str, Any] = source(62)
    wider["age"] = [*wider["age"][:60], 30.5, 31.25]
    write_csv(tmp_path / "ws.csv", wider)
    workspace.sync("visits")
    fit(workspace, "ridge")
    request = workspace.correct("visits", ids=["v7"], values={"age": 27.75})[0].id
    with pytest.raises(WorkspaceError, match="in version 1 of 'visits'") as told:
        workspace.process()
    assert "\n" not in str(told.value)
    assert state_of(workspace, request) == ("pending", None)
    check(workspace)
    workspace.refresh()
    workspace.process()
    assert state_of(workspace, request) == ("completed", 1)
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
        ({"ids": ["v7"], "values": {"age": "old"}}, InvalidDataError, "cannot be int64"),
        ({"ids": ["v7"], "values": {"age": 2.5}}, InvalidDataError, "cannot be int64"),
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
