"""A hook that runs a command of erasable on its own workspace: it is answered, or refused."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from contexts import make_context, visits, write_csv

from erasable.core.errors import WorkspaceBusyError, WorkspaceError
from erasable.workspace import Workspace, locking
from erasable.workspace.context import Context
from erasable.workspace.models import training

SAVE = """
import json, subprocess, sys
words = [sys.executable, "-m", "erasable", *sys.argv[2:]]
done = subprocess.run(words, capture_output=True, text=True)
json.dump([done.returncode, done.stderr], open(sys.argv[1], "w"))
"""


class Scene:
    """A workspace with a model whose hook runs a command, and writes down what it said."""

    def __init__(self, folder: Path, args: list[str]) -> None:
        context, _ = make_context(folder / "ws")
        self.workspace = Workspace(context)
        self.said = folder / "said.json"
        (folder / "save.py").write_text(SAVE)
        write_csv(folder / "visits.csv", visits(60))
        self.workspace.add_dataset(
            "visits", folder / "visits.csv", id_column="visit", subjects=["patient"]
        )
        words = [sys.executable, folder / "save.py", self.said, *args, "--workspace", context.root]
        on: dict[str, Any] = {"datasets": ["visits"], "features": ["age", "weight"]}
        self.workspace.fit("scale", "preprocessing.StandardScaler", **on,
                           hook=" ".join(map(str, words)))  # fmt: skip

    def process(self) -> tuple[int, str]:
        """Carry out a request; return what the command within it said."""
        self.workspace.request(["marker-patient-3"])
        assert self.workspace.process().hooks == ["scale"]
        code, told = json.loads(self.said.read_text())
        return code, told


OTHERS = ["work --drain", "dataset sync visits", "model fit scale"]


@pytest.mark.parametrize(
    "args", ["process", *(pytest.param(each, marks=pytest.mark.soak) for each in OTHERS)]
)
def test_what_would_wait_for_its_end_is_refused(tmp_path: Path, args: str) -> None:
    code, told = Scene(tmp_path, args.split()).process()
    assert code == 2
    (line,) = [each for each in told.splitlines() if each.startswith("error: ")]
    assert line.startswith("error: this command was run by a hook or command of the workspace")
    assert "expected one that only looks, or takes a request in" in line


LOOKS = ["log verify", "requests", "request somebody"]


@pytest.mark.parametrize(
    "args", ["status", *(pytest.param(each, marks=pytest.mark.soak) for each in LOOKS)]
)
def test_what_only_looks_or_asks_is_answered(tmp_path: Path, args: str) -> None:
    scene = Scene(tmp_path, args.split())
    assert scene.process()[0] == 0
    assert scene.workspace.verify_log() == []
    assert len(scene.workspace.requests()) == 1 + args.startswith("request ")


def test_another_workspace_is_none_of_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def run_by(*folders: Path) -> None:
        monkeypatch.delenv("ERASABLE_RUN_BY", raising=False)
        for folder in folders:
            monkeypatch.setenv("ERASABLE_RUN_BY", locking.environment(folder)["ERASABLE_RUN_BY"])

    context, _ = make_context(tmp_path / "one")
    other = Context.open(context.root, wait=0.0)
    with context.lock():
        run_by(tmp_path / "two")
        with pytest.raises(WorkspaceBusyError), other.lock():
            pass
        for folders in (
            [context.root],
            [context.root, tmp_path / "two"],
            [tmp_path / "two", context.root],
        ):
            run_by(*folders)
            with pytest.raises(WorkspaceError, match="run by a hook") as told, other.lock():
                pass
            assert not isinstance(told.value, WorkspaceBusyError)
    with other.lock():
        pass
    other.ledger.close()


@pytest.mark.soak  # it waits
def test_without_a_word_of_it_they_would_wait_for_each_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The negative control."""
    monkeypatch.setattr(training, "environment", lambda root: None)
    code, told = Scene(tmp_path, ["process"]).process()
    assert code == 2
    assert "expected it to end within 10 seconds" in told
