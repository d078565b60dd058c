"""Workers: every request is done once, what fails keeps nobody else waiting, and is told."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from contexts import visits, write_csv
from sqlalchemy import select, text

from erasable.core.errors import NotInWorkspaceError, WorkspaceBusyError, WorkspaceServerError
from erasable.workspace import Workspace
from erasable.workspace.ledger.schema import step
from erasable.workspace.models import deleting
from erasable.workspace.requests import process, steps
from erasable.workspace.requests.failures import RetryPolicy
from erasable.workspace.requests.worker import Done, Worker

SOON = RetryPolicy(attempts=3, backoff=0.0)
MODELS = 3


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    """Patients 0 to 19 in "visits", with models; 20 to 29 in "others", with a command."""
    made = Workspace.create(tmp_path / "ws")
    for name, start in (("visits", 0), ("others", 60)):
        write_csv(tmp_path / f"{name}.csv", visits(60 if start == 0 else 30, start=start))
        made.add_dataset(
            name, tmp_path / f"{name}.csv", id_column="visit", subjects=["patient"]
        )  # fmt: skip
    made.fit("risk", "naive_bayes.GaussianNB", datasets=["visits"], target="sick")
    made.fit("scale", "preprocessing.StandardScaler", datasets=["visits"])
    made.fit("tree", "sklearn.tree.DecisionTreeClassifier", datasets=["visits"], target="sick")
    flag = tmp_path / "broken"
    made.register(
        "ranker", datasets=["others"], retrain=f"sh -c 'test ! -e {flag} && cp {{data}} {{out}}'"
    )
    return made


def states(workspace: Workspace) -> list[str]:
    return [each.state for each in sorted(workspace.requests(), key=lambda one: one.received_at)]


def work(workspace: Workspace, patience: RetryPolicy = SOON) -> list[Done]:
    told: list[Done] = []
    Worker(workspace.context, patience, poll=0.01, tell=told.append).run(drain=True)
    return told


def holds(workspace: Workspace) -> None:
    told = {each.model: each.verdict for each in workspace.verify() if each.verdict != "retired"}
    assert {name: verdict for name, verdict in told.items() if name != "ranker"} == {
        name: "equal" for name in told if name != "ranker"
    }
    assert workspace.verify_log() == []
    with workspace.context.ledger.reading() as connection:
        assert connection.execute(select(step)).all() == []
        done = connection.execute(
            text("SELECT subject FROM log_entry WHERE kind = 'request-erased'")
        )
        subjects = [subject for (subject,) in done]
    assert sorted(subjects) == sorted(
        each.id for each in workspace.requests() if each.state == "completed"
    )


def test_requests_are_carried_out(workspace: Workspace) -> None:
    workspace.request(["marker-patient-1", "marker-patient-2", "marker-patient-21"])
    (told,) = work(workspace)
    assert told.processed is not None
    assert len(told.processed.requests) == 3
    assert states(workspace) == ["completed"] * 3
    assert {each["model"] for each in told.processed.treatments} == {
        "ranker", "risk", "scale", "tree"
    }  # fmt: skip
    holds(workspace)
    assert work(workspace) == []


def test_what_fails_keeps_nobody_else_waiting(workspace: Workspace, tmp_path: Path) -> None:
    (tmp_path / "broken").touch()
    workspace.request(["marker-patient-21"])
    workspace.request(["marker-patient-1"])
    workspace.request(["marker-patient-22", "marker-patient-2"])
    told = work(workspace)
    # One batch of all fails first; then of those who are in "ranker", twice.
    attempts = [each.failure.attempts for each in told if each.failure is not None]
    assert attempts == [1, 2, 3]
    assert states(workspace) == ["pending", "completed", "pending", "completed"]
    (failed,) = workspace.tasks()["failed"]
    assert (failed.target, failed.name, failed.state) == ("model", "ranker", "dead")
    assert (failed.attempts, failed.n_requests) == (3, 2)
    assert "exited with 1" in failed.error
    assert workspace.status()["failed"] == {"waiting": 0, "dead": 1}
    assert work(workspace) == []  # it is left alone
    holds(workspace)

    (tmp_path / "broken").unlink()
    assert [each.name for each in workspace.retry(["ranker"])] == ["ranker"]
    work(workspace)
    assert states(workspace) == ["completed"] * 4
    assert workspace.tasks()["failed"] == []
    holds(workspace)


def test_a_failure_is_tried_again_later(
    workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "broken").touch()
    workspace.request(["marker-patient-21"])
    worker = Worker(workspace.context, RetryPolicy(attempts=5, backoff=60.0))
    assert worker.turn().failure is not None
    assert not worker.turn()
    (failed,) = workspace.tasks()["failed"]
    assert failed.state == "waiting"
    assert failed.again_at - failed.failed_at == timedelta(seconds=60)
    now = workspace.context.now
    monkeypatch.setattr(workspace.context, "now", lambda: now() + timedelta(seconds=61))
    told = worker.turn().failure
    assert told is not None
    assert told.again_at is not None
    assert told.again_at - told.failed_at == timedelta(seconds=120)


def test_at_a_desk_all_is_tried_and_a_model_may_be_given_up(
    workspace: Workspace, tmp_path: Path
) -> None:
    (tmp_path / "broken").touch()
    workspace.request(["marker-patient-21"])
    work(workspace)
    (tmp_path / "broken").unlink()
    assert len(workspace.process().requests) == 1
    assert workspace.tasks()["failed"] == []
    (tmp_path / "broken").touch()
    workspace.request(["marker-patient-22"])
    work(workspace)
    workspace.retire("ranker")
    work(workspace)
    assert states(workspace) == ["completed"] * 2


def test_a_damaged_data_set_keeps_nobody_else_waiting(workspace: Workspace) -> None:
    workspace.request(["marker-patient-1"])
    workspace.request(["marker-patient-21"])
    folder = workspace.context.root / "artifacts" / "data" / "others"
    whole = {path: path.read_bytes() for path in folder.iterdir()}
    for path, data in whole.items():
        path.write_bytes(data[:-1])
    work(workspace)
    assert states(workspace) == ["completed", "pending"]
    (failed,) = workspace.tasks()["failed"]
    assert (failed.target, failed.name, failed.state) == ("dataset", "others", "dead")
    for path, data in whole.items():
        path.write_bytes(data)
    workspace.retry()
    work(workspace)
    assert states(workspace) == ["completed"] * 2
    holds(workspace)


def test_a_request_that_is_denied_waits_for_nothing(workspace: Workspace, tmp_path: Path) -> None:
    (tmp_path / "broken").touch()
    one, two = workspace.request(["marker-patient-21", "marker-patient-22"])
    work(workspace)
    assert [each.n_requests for each in workspace.tasks()["failed"]] == [2]
    workspace.deny(one.id, "a reason")
    assert [each.n_requests for each in workspace.tasks()["failed"]] == [1]
    (tmp_path / "broken").unlink()
    workspace.retry()
    work(workspace)
    assert states(workspace) == ["denied", "completed"]
    assert workspace.receipt(two.id)


def test_nothing_to_try_again(workspace: Workspace) -> None:
    assert workspace.retry() == []
    with pytest.raises(NotInWorkspaceError, match="no task of 'risk' has failed; expected"):
        workspace.retry(["risk"])


def test_a_worker_that_is_stopped_ends(workspace: Workspace) -> None:
    stopped = threading.Event()
    told = []

    def tell(done: Done) -> None:
        told.append(done)
        stopped.set()

    workspace.request(["marker-patient-1"])
    workspace.work(poll=0.01, tell=tell, stopped=stopped)
    assert len(told) == 1


@pytest.mark.backend("postgres")
class TestSeveral:
    """On one workspace in PostgreSQL, which several may work on."""

    def test_models_are_prepared_by_others(
        self, workspace: Workspace, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Here whoever has the batch prepares none."""
        help_out = steps.help_out
        first = threading.current_thread()

        def by_others(*given: Any) -> int:
            return 0 if threading.current_thread() is first else help_out(*given)

        monkeypatch.setattr(steps, "help_out", by_others)
        workspace.request(["marker-patient-1"])
        stopped = threading.Event()
        told: list[Done] = []
        helper = Workspace.open(workspace.context.root)
        thread = threading.Thread(
            target=helper.work, kwargs={"poll": 0.01, "tell": told.append, "stopped": stopped}
        )
        monkeypatch.setattr(Worker, "_waits", lambda worker: worker.context is workspace.context)
        thread.start()
        try:
            done = Worker(workspace.context).turn()
        finally:
            stopped.set()
            thread.join(60)
        assert done.processed is not None
        assert len(done.processed.treatments) == sum(each.n_models for each in told) == MODELS
        holds(workspace)

    def test_who_waits_for_others_notices_that_they_have_the_batch(
        self, workspace: Workspace, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A process that was suspended; it must not look for ever for steps that are gone."""
        other = Workspace.open(workspace.context.root)
        help_out, looks = steps.help_out, []

        def overtaken(context: Any, *given: Any) -> int:
            if context is not workspace.context:
                return help_out(context, *given)
            looks.append(context)
            assert len(looks) < 50, "it waits for ever"
            if len(looks) == 1:
                with context.ledger.reading() as connection:
                    connection.execute(
                        text(
                            "SELECT pg_terminate_backend(l.pid, 5000) FROM lease JOIN pg_locks l "
                            "ON (l.classid::bigint << 32) | l.objid::bigint = number "
                            "WHERE l.locktype = 'advisory'"
                        )
                    ).all()
                assert Worker(other.context, SOON).turn().processed is not None
            return 0

        monkeypatch.setattr(steps, "help_out", overtaken)
        workspace.request(["marker-patient-1"])
        worker = Worker(workspace.context, SOON)
        assert worker.turn() == Done(busy=True)
        assert len(looks) == 1
        assert states(workspace) == ["completed"]
        monkeypatch.undo()
        workspace.request(["marker-patient-2"])
        assert worker.turn().processed is not None
        holds(workspace)
        other.context.ledger.close()

    def test_a_worker_that_loses_its_lease_hands_in_nothing(
        self, workspace: Workspace, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Its session ends while it prepares a model: the model is prepared again."""
        prepare = deleting.prepare_model
        prepared: list[str] = []

        def cut_off(context: Any, model: Any, *given: Any) -> deleting.Prepared:
            prepared.append(model.name)
            if prepared.count("risk") == 1 and model.name == "risk":
                with workspace.context.ledger.reading() as connection:
                    connection.execute(
                        text(
                            "SELECT pg_terminate_backend(l.pid, 5000) FROM lease JOIN pg_locks l "
                            "ON (l.classid::bigint << 32) | l.objid::bigint = number "
                            "WHERE l.locktype = 'advisory' AND resource LIKE 'step:%'"
                        )
                    ).all()
                with Workspace.open(workspace.context.root).context.lock([_claim(workspace)]):
                    pass  # it is taken
            return prepare(context, model, *given)

        monkeypatch.setattr(deleting, "prepare_model", cut_off)
        workspace.request(["marker-patient-1"])
        worker = Worker(workspace.context, SOON, poll=0.01)
        assert not worker.turn()  # it was told that it lost what it had
        assert states(workspace) == ["pending"]
        assert worker.turn().processed is not None
        assert prepared.count("risk") == 2
        holds(workspace)

    def test_what_a_dead_batch_left_is_cleared(
        self, workspace: Workspace, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        class PowerFailure(BaseException):
            pass

        def die(*given: Any) -> None:
            raise PowerFailure

        workspace.request(["marker-patient-1"])
        with monkeypatch.context() as patched:
            patched.setattr(deleting, "prepare_model", die)
            patched.setattr(steps, "_take_back", lambda *given: None)
            patched.setattr(process, "put_back", lambda *given: None)
            with pytest.raises(PowerFailure):
                Worker(workspace.context).turn()
        assert states(workspace) == ["in_progress"]
        assert [each.n_models for each in work(workspace)] == [0]  # none for who has died
        assert states(workspace) == ["completed"]
        workspace.context.clean()
        assert not (workspace.context.root / "artifacts" / "batches").exists() or not list(
            (workspace.context.root / "artifacts" / "batches").iterdir()
        )
        holds(workspace)

    def test_models_are_fitted_beside_a_batch_that_does_not_concern_them(
        self, workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        other = Workspace.open(workspace.context.root)
        other.context._wait = 0.0
        seen: list[str] = []
        prepare: Callable[..., Any] = deleting.prepare_model

        def look(*given: Any) -> Any:
            if not seen:
                other.fit("new", "preprocessing.StandardScaler", datasets=["others"])
                seen.append("fitted")
                for refused in (
                    lambda: other.fit("risk"),
                    lambda: other.append("visits", tmp_path / "more.csv"),
                    other.process,
                ):
                    with pytest.raises(WorkspaceBusyError):
                        refused()
            return prepare(*given)

        write_csv(tmp_path / "more.csv", visits(3, start=900))
        monkeypatch.setattr(deleting, "prepare_model", look)
        workspace.request(["marker-patient-1"])
        work(workspace)
        assert seen == ["fitted"]
        assert states(workspace) == ["completed"]
        holds(workspace)

    def test_it_waits_for_who_has_what_it_takes(self, workspace: Workspace) -> None:
        other = Workspace.open(workspace.context.root)
        other.context._wait = 0.01
        workspace.request(["marker-patient-1"])
        told: list[Done] = []
        thread = threading.Thread(
            target=other.work, kwargs={"drain": True, "poll": 0.01, "tell": told.append}
        )
        with workspace.context.lock(reads=["dataset:visits"]):
            assert Worker(other.context).turn().busy
            thread.start()
            thread.join(0.3)
            assert thread.is_alive()
        thread.join(60)
        assert [len(each.processed.requests) for each in told if each.processed] == [1]


def _claim(workspace: Workspace) -> str:
    with workspace.context.ledger.reading() as connection:
        found = connection.execute(
            text("SELECT resource FROM lease WHERE resource LIKE 'step:%'")
        ).scalar_one()
    return str(found)


def test_a_server_that_does_not_answer_is_asked_again(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    away = ["once", "twice"]
    waits = Worker._waits

    def asked(worker: Worker) -> bool:
        if away:
            raise WorkspaceServerError(f"{away.pop(0)} away; expected it there; start it")
        return waits(worker)

    monkeypatch.setattr(Worker, "_waits", asked)
    workspace.request(["marker-patient-1"])
    with pytest.raises(WorkspaceServerError, match="once away"):
        workspace.work(drain=True)
    told: list[Done] = []
    stopped = threading.Event()

    def tell(done: Done) -> None:
        told.append(done)
        if done.processed is not None:
            stopped.set()

    Worker(workspace.context, SOON, poll=0.0, tell=tell, stopped=stopped).run()
    assert [each.error for each in told[:-1]] == ["twice away; expected it there; start it"]
    assert states(workspace) == ["completed"]
