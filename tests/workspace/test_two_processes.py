"""Two processes on one workspace: one waits, or is told clearly; nothing is corrupted."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from backends import copy_of, database_of
from crashes import ENDED, make_workspace, restart_and_check

from erasable.workspace import Workspace

HERE = Path(__file__).resolve().parent
ALL = 5


class Actor:
    """See `actor`."""

    def __init__(self) -> None:
        run = "import sys; sys.path[:0] = sys.argv[1:]; import actor; actor.main()"
        self.process = subprocess.Popen(
            [sys.executable, "-c", run, str(HERE), str(HERE.parent)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        assert self.hear()["event"] == "ready"

    def tell(self, **what: Any) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(what, default=str) + "\n")
        self.process.stdin.flush()

    def hear(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        return dict(json.loads(self.process.stdout.readline()))

    def begin(self, do: str, path: Path, **more: Any) -> None:
        self.tell(do=do, path=path, **more)
        assert self.hear() == {"event": "started"}

    def do(self, do: str, path: Path, **more: Any) -> dict[str, Any]:
        self.begin(do, path, **more)
        return self.hear()

    def stop(self, do: str, path: Path, effect: str, nth: int) -> None:
        if effect == "checkpoint" and database_of(path) is not None:  # it has none: the same, then
            effect, nth = "commit", 4
        self.begin(do, path, stop=[effect, nth])
        assert self.hear() == {"event": "stopped"}

    def go_on(self) -> None:
        self.tell()

    def kill(self) -> None:
        self.process.kill()
        self.process.communicate()


@pytest.fixture(scope="module")
def prepared(backend: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = make_workspace(tmp_path_factory.mktemp("two"))
    Workspace.open(path).context.ledger.close()
    return path


@pytest.fixture(scope="module")
def one() -> Iterator[Actor]:
    actor = Actor()
    yield actor
    actor.kill()


@pytest.fixture(scope="module")
def other() -> Iterator[Actor]:
    actor = Actor()
    yield actor
    actor.kill()


# At work between two transactions; about to commit the start; about to swap; about to purge.
STOPS = [
    ("write", 1),
    ("commit", 1),
    ("commit", 2),
    ("commit", 3),
    ("remove", 1),
    ("checkpoint", 1),
]


@pytest.mark.sampled(3)
@pytest.mark.backend(soak="postgres")
@pytest.mark.parametrize("stop", STOPS, ids=str)
def test_a_second_process_is_told_that_the_first_is_at_work(
    prepared: Path, tmp_path: Path, one: Actor, other: Actor, stop: tuple[str, int]
) -> None:
    path = copy_of(prepared, tmp_path / "ws")
    one.stop("process", path, *stop)
    for command in ("process", "append", "fit", "verify"):
        said = other.do(command, path, wait=0.05)
        assert said["event"] == "failed", command
        assert said["kind"] == "WorkspaceBusyError"
        assert said["message"].startswith("another process is at work on this workspace; expected")
        assert "\n" not in said["message"]
    one.go_on()
    assert len(one.hear()["told"]) == ALL
    restart_and_check(path)


@pytest.mark.sampled(3)
@pytest.mark.backend(soak="postgres")
@pytest.mark.parametrize(
    ("command", "stop"),
    [
        *((name, stop) for name in ("process", "append", "fit") for stop in STOPS),
        ("verify", STOPS[0]),
    ],
    ids=str,
)
def test_a_second_process_waits_for_the_first(
    prepared: Path, tmp_path: Path, one: Actor, other: Actor, command: str, stop: tuple[str, int]
) -> None:
    path = copy_of(prepared, tmp_path / "ws")
    one.stop("process", path, *stop)
    other.begin(command, path)
    one.go_on()
    first, second = one.hear(), other.hear()
    assert len(first["told"]) == ALL
    assert second["event"] == "done"
    if command == "process":
        assert second["told"] == []  # the requests were carried out once
    workspace = Workspace.open(path)
    assert workspace.verify_log() == []
    assert {each.verdict for each in workspace.verify()} == {"equal"}
    if command != "append":
        restart_and_check(path)


@pytest.mark.backend(soak="postgres")
@pytest.mark.parametrize("stop", STOPS, ids=str)
def test_a_request_is_taken_in_during_a_process(
    prepared: Path, tmp_path: Path, one: Actor, other: Actor, stop: tuple[str, int]
) -> None:
    """Between transactions at once; where one is about to be committed it waits for that."""
    path = copy_of(prepared, tmp_path / "ws")
    one.stop("process", path, *stop)
    other.begin("request", path, values=["nobody-else"])
    if stop[0] == "commit":
        one.go_on()
        (new,) = other.hear()["told"]
        first = one.hear()["told"]
    else:
        (new,) = other.hear()["told"]
        one.go_on()
        first = one.hear()["told"]
    assert len(set(first) - {new}) == ALL
    workspace = Workspace.open(path)
    states = {request.id: request.state for request in workspace.requests()}
    assert states.pop(new) == ("no_match" if new in first else "pending")
    assert set(states.values()) == ENDED
    workspace.process()
    assert {request.state for request in workspace.requests()} == ENDED
    assert workspace.verify_log() == []


@pytest.mark.backend(soak="postgres")
@pytest.mark.parametrize("stop", STOPS, ids=str)
def test_a_look_never_waits(
    prepared: Path, tmp_path: Path, one: Actor, other: Actor, stop: tuple[str, int]
) -> None:
    path = copy_of(prepared, tmp_path / "ws")
    one.stop("process", path, *stop)
    said = other.do("look", path)
    assert said["event"] == "done"
    assert said["told"] == [True, 2]
    one.go_on()
    assert len(one.hear()["told"]) == ALL
    restart_and_check(path)


@pytest.mark.backend(soak="postgres")
@pytest.mark.parametrize("stop", [STOPS[0], STOPS[2]], ids=str)
def test_what_a_killed_process_held_is_free_at_once(
    prepared: Path, tmp_path: Path, other: Actor, stop: tuple[str, int]
) -> None:
    path = copy_of(prepared, tmp_path / "ws")
    one = Actor()
    one.stop("process", path, *stop)
    assert other.do("process", path, wait=0)["event"] == "failed"
    one.kill()
    said = other.do("process", path, wait=0)
    assert said["event"] == "done"
    assert len(said["told"]) == ALL
    restart_and_check(path)


def test_fit_and_process(prepared: Path, tmp_path: Path, one: Actor, other: Actor) -> None:
    """A model that is being fitted on records is there before they are erased from it."""
    path = copy_of(prepared, tmp_path / "ws")
    one.stop("fit", path, "write", 1)
    assert other.do("process", path, wait=0.05)["kind"] == "WorkspaceBusyError"
    other.begin("process", path)
    one.go_on()
    assert one.hear()["event"] == "done"
    assert len(other.hear()["told"]) == ALL
    restart_and_check(path)
