"""The user's own program is told that a model has changed, whoever dies before it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from contexts import make_context, visits, write_csv

import erasable
from erasable.core.errors import WorkspaceDiskError, WorkspaceError
from erasable.workspace import Workspace
from erasable.workspace.context import Context
from erasable.workspace.models import hooks
from erasable.workspace.requests import process, swapping
from erasable.workspace.requests.failures import RetryPolicy
from erasable.workspace.requests.worker import Worker
from workspace_models import loaded

COPY = "import sys, shutil, pathlib; shutil.copy(sys.argv[1], sys.argv[2])"


@pytest.fixture
def copied(tmp_path: Path) -> Path:
    """Where the hook copies the model to, if the folder is there."""
    return tmp_path / "served" / "model"


@pytest.fixture
def workspace(tmp_path: Path, copied: Path) -> Workspace:
    copied.parent.mkdir()
    context, _ = make_context(tmp_path / "ws")
    workspace = Workspace(context)
    write_csv(tmp_path / "visits.csv", visits(60))
    workspace.add_dataset(
        "visits", tmp_path / "visits.csv", id_column="visit", subjects=["patient"]
    )
    hook = f'{sys.executable} -c "{COPY}" {{model}} {copied}'
    on: dict[str, Any] = {"datasets": ["visits"], "features": ["age", "weight"]}
    workspace.fit("risk", "naive_bayes.GaussianNB", target="sick", hook=hook, **on)
    workspace.fit("scale", "preprocessing.StandardScaler", **on)
    return workspace


def served_is_newest(workspace: Workspace, copied: Path) -> bool:
    return (
        copied.exists()
        and erasable.load(copied).digest() == loaded(workspace.context, "risk").digest()
    )


def test_a_hook_gets_the_model(workspace: Workspace, copied: Path) -> None:
    workspace.request(["marker-patient-3"])
    done = workspace.process()
    assert (done.hooks, done.warnings, done.n_resumed) == (["risk"], [], 0)
    assert served_is_newest(workspace, copied)
    assert list((workspace.context.root / "scratch").iterdir()) == []
    copied.unlink()
    assert workspace.process().hooks == []  # once for each change
    assert not copied.exists()


def test_a_hook_that_fails_is_told_and_runs_again(workspace: Workspace, copied: Path) -> None:
    copied.parent.rmdir()
    workspace.request(["marker-patient-3"])
    for _ in range(2):
        done = workspace.process()
        (warning,) = done.warnings
        assert "the hook of 'risk' failed, and is run again" in warning
        assert "exited with 1" in warning
        assert "\n" not in warning
        assert done.hooks == []
        assert workspace.status()["hooks_due"] == ["risk"]
    assert [each.state for each in workspace.requests()] == ["completed"]
    copied.parent.mkdir()
    assert workspace.process().hooks == ["risk"]
    assert workspace.status()["hooks_due"] == []
    assert served_is_newest(workspace, copied)


def cut_off(workspace: Workspace, monkeypatch: pytest.MonkeyPatch, *, when: str) -> None:
    """Carry out requests by a process that dies when all is in place, or when all is told."""
    real = process.finish

    def finish(context: Any) -> list[str]:
        if when == "told":
            real(context)
        raise WorkspaceDiskError("the power is gone")

    with monkeypatch.context() as patch:
        patch.setattr(process, "finish", finish)
        with pytest.raises(WorkspaceDiskError, match="power"):
            workspace.process()


@pytest.mark.parametrize("when", ["in place", "told"])
def test_who_dies_has_it_run_by_the_next(
    workspace: Workspace, copied: Path, monkeypatch: pytest.MonkeyPatch, when: str
) -> None:
    asked = workspace.request(["marker-patient-3", "marker-patient-4"])
    cut_off(workspace, monkeypatch, when=when)
    assert not copied.exists()
    assert workspace.status()["hooks_due"] == ["risk"]
    done = workspace.process()
    resumed = [each.id for each in asked] if when == "in place" else []
    assert (done.requests, done.n_resumed, done.n_records) == (resumed, len(resumed), 0)
    assert done.hooks == ["risk"]
    assert served_is_newest(workspace, copied)
    assert workspace.status()["hooks_due"] == []


def test_nobody_runs_what_is_not_written_down(
    workspace: Workspace, copied: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The negative control: as it was when only who carried out a batch knew of its hooks."""
    workspace.request(["marker-patient-3"])
    with monkeypatch.context() as patch:
        patch.setattr(swapping.hooks, "add", lambda *given: None)
        cut_off(workspace, monkeypatch, when="in place")
    assert workspace.process().hooks == []
    assert not copied.exists()


def test_what_is_resumed_is_not_counted_with_the_rest(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    workspace.request(["marker-patient-3"])
    cut_off(workspace, monkeypatch, when="in place")
    workspace.request(["marker-patient-5"])
    done = workspace.process()
    assert (len(done.requests), done.n_resumed, done.n_records) == (2, 1, 3)


def test_a_model_without_a_hook_by_now_is_let_go(
    workspace: Workspace, copied: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    workspace.request(["marker-patient-3"])
    cut_off(workspace, monkeypatch, when="told")
    workspace.retire("risk")
    assert workspace.status()["hooks_due"] == []
    assert workspace.process().hooks == []
    assert not copied.exists()


def test_a_model_that_somebody_fits_is_left_for_later(workspace: Workspace, copied: Path) -> None:
    context = workspace.context
    with context.ledger.transaction() as connection:
        hooks.add(context, connection, "risk")
        hooks.add(context, connection, "scale")
    other = Context.open(context.root)
    with context.lock(["model:risk"]):
        (told,) = hooks.run_due(other).values()
        assert "was not run, as the model is being changed" in str(told)
    assert hooks.run_due(other) == {"risk": None}
    assert hooks.run_due(other) == {}
    other.ledger.close()


def test_workers_run_what_is_due(
    workspace: Workspace, copied: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    workspace.request(["marker-patient-3"])
    cut_off(workspace, monkeypatch, when="told")
    told: list[Any] = []
    workspace.work(drain=True, tell=told.append)
    assert [each.processed.hooks for each in told] == [["risk"]]
    assert served_is_newest(workspace, copied)


def test_workers_try_again_ever_more_seldom(workspace: Workspace, copied: Path) -> None:
    copied.parent.rmdir()
    workspace.request(["marker-patient-3"])
    told: list[Any] = []
    workspace.work(drain=True, backoff=1000.0, tell=told.append)
    assert [bool(each.processed.requests) for each in told] == [True, False]
    assert all("is run again" in each.processed.warnings[0] for each in told)
    worker = Worker(workspace.context, RetryPolicy(backoff=0.0))
    assert [worker.turn().processed is not None for _ in range(3)] == [True] * 3
    worker = Worker(workspace.context, RetryPolicy(backoff=1000.0))
    assert [bool(worker.turn()) for _ in range(3)] == [True, False, False]


def test_a_batch_that_fails_keeps_no_hook_waiting(
    workspace: Workspace, copied: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "train.sh").write_text('cp "$1" "$2"')
    command = f"sh {tmp_path}/train.sh {{data}} {{out}}"
    workspace.register("ranker", datasets=["visits"], retrain=command)
    workspace.request(["marker-patient-3"])
    cut_off(workspace, monkeypatch, when="told")
    (tmp_path / "train.sh").unlink()
    workspace.request(["marker-patient-4"])
    with pytest.raises(WorkspaceError, match="ranker"):
        workspace.process()
    assert served_is_newest(workspace, copied)


def test_another_model_of_the_name_owes_nothing(
    workspace: Workspace, copied: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    workspace.request(["marker-patient-3"])
    cut_off(workspace, monkeypatch, when="told")
    workspace.retire("risk")
    workspace.fit("risk", "preprocessing.MinMaxScaler", datasets=["visits"],
                  features=["age"], hook=f"touch {copied}")  # fmt: skip
    assert workspace.process().hooks == []
    assert not copied.exists()
