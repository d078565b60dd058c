"""A process that dies, and a disk that fails, at every point on the way of a request."""

from __future__ import annotations

import errno
import gc
import importlib
import inspect
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from backends import copy_of
from contexts import visits, write_csv
from crashes import (
    count,
    die_at,
    fail_at,
    look_before_restart,
    make_workspace,
    referred_to,
    restart_and_check,
)
from sqlalchemy import select

from effort import in_turn
from erasable.core.errors import ErasableError, WorkspaceServerError
from erasable.workspace import Workspace
from erasable.workspace.data import gone_subjects
from erasable.workspace.data.datasets import NextVersion
from erasable.workspace.data.operation import Operation
from erasable.workspace.evidence.envelope import seal
from erasable.workspace.identity import external_files
from erasable.workspace.ledger.schema import PASSING, metadata
from erasable.workspace.store import crash_points

PROCESS_POINTS = {"sqlite": 120, "postgres": 115, "objects": 23, "s3": 23}
"""The last two are SQLite with an object store: one made of files, and a server that speaks S3."""

TURNS = 8
"""Of the points that `make test` leaves out, every so many is tried by one soak."""

EVERY = [(name, number) for name, n in PROCESS_POINTS.items() for number in range(1, n + 1)]


def every_point(steps: Mapping[str, int]) -> Any:
    """Every so many points of each backend, and others in `make soak`: of SQLite, all."""
    cases = [
        pytest.param(
            backend,
            number,
            marks=[pytest.mark.soak] if number % steps.get(backend, 1) else [],
        )
        for backend, number in EVERY
        if steps.get(backend, 1)
        and (backend == "sqlite" or number % steps.get(backend, 5) == 0 or in_turn(number, TURNS))
    ]
    return pytest.mark.parametrize(("backend", "number"), cases, indirect=["backend"])


@pytest.fixture(scope="module")
def prepared(backend: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_workspace(tmp_path_factory.mktemp("crashes"))


def process(workspace: Workspace) -> None:
    workspace.process()


@pytest.mark.backend("sqlite", "postgres", "objects")
def test_the_number_of_points_is_known(prepared: Path, tmp_path: Path, backend: str) -> None:
    """Where this fails, change the number: the cases below are one per point."""
    assert count(process, copy_of(prepared, tmp_path / "ws")) == PROCESS_POINTS[backend]


@pytest.mark.sampled(3)
@every_point({"sqlite": 10, "postgres": 38, "objects": 16, "s3": 1000})
def test_killed_while_processing(prepared: Path, tmp_path: Path, number: int) -> None:
    path = copy_of(prepared, tmp_path / "ws")
    assert die_at(number, process, path)
    look_before_restart(path)
    restart_and_check(path)


@pytest.mark.soak
@every_point({"postgres": 7, "objects": 7, "s3": 0})
def test_killed_twice(prepared: Path, tmp_path: Path, number: int) -> None:
    path = copy_of(prepared, tmp_path / "ws")
    assert die_at(number, process, path)
    die_at(number // 2 + 1, process, path)
    look_before_restart(path)
    restart_and_check(path)


def full_and_broken() -> list[Any]:
    """Either at every point; every sixth one that is full is tried by `make test`.

    Of those on PostgreSQL, every 20th, and fewer with an object store.
    """
    often = {"sqlite": 6, "postgres": 20, "objects": 24}
    return [
        pytest.param(
            backend,
            number,
            error,
            id=f"{backend}-{said}-{number}",
            marks=[pytest.mark.soak] if said == "broken" or number % often[backend] else (),
        )
        for said, error in (("full", errno.ENOSPC), ("broken", errno.EIO))
        for backend, number in EVERY
        if backend in often
        and (
            backend == "sqlite"
            or (said == "full" and number % often[backend] == 0)
            or in_turn(number, TURNS)
        )
    ]


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("backend", "number", "error"), full_and_broken(), indirect=["backend"])
def test_a_disk_that_fails_while_processing(
    prepared: Path, tmp_path: Path, number: int, error: int
) -> None:
    path = copy_of(prepared, tmp_path / "ws")
    told = OSError(error, os.strerror(error))
    said = fail_at(number, told, process, path)
    assert said is None or (isinstance(said, ErasableError) and "\n" not in str(said))
    look_before_restart(path)
    restart_and_check(path)


@pytest.mark.sampled(3)
@pytest.mark.backend("postgres")
@pytest.mark.parametrize("nth", [1, 2, 3, 4, 5])
def test_the_server_dies_while_processing(
    prepared: Path, tmp_path: Path, server: Any, nth: int
) -> None:
    """At a purge, at each commit, at the purge again: as if its machine had lost power."""
    path = copy_of(prepared, tmp_path / "ws")
    passed = 0

    def kill(effect: str, where: str) -> None:
        nonlocal passed
        passed += effect == "commit"
        if passed == nth and effect == "commit":
            server.stop(signal.SIGQUIT)

    workspace = Workspace.open(path)
    try:
        with crash_points.watch(kill), pytest.raises(WorkspaceServerError) as told:
            workspace.process()
    finally:
        server.start()
    assert "\n" not in str(told.value)
    look_before_restart(path)
    restart_and_check(path)


def append(workspace: Workspace) -> None:
    folder = workspace.context.root.parent
    write_csv(folder / "more.csv", visits(9, start=500))
    workspace.append("visits", folder / "more.csv")


def sync(workspace: Workspace) -> None:
    folder = workspace.context.root.parent
    write_csv(folder / "more.csv", visits(90, start=40))
    workspace.sync("visits", folder / "more.csv")


def append_with_models(workspace: Workspace) -> None:
    folder = workspace.context.root.parent
    write_csv(folder / "more.csv", visits(9, start=700))
    workspace.append("visits", folder / "more.csv", update_models=True)


def sync_with_models(workspace: Workspace) -> None:
    folder = workspace.context.root.parent
    write_csv(folder / "more.csv", visits(90, start=30))
    workspace.sync("visits", folder / "more.csv", update_models=True)


def refresh(workspace: Workspace) -> None:
    folder = workspace.context.root.parent
    write_csv(folder / "more.csv", visits(9, start=800))
    workspace.append("visits", folder / "more.csv")
    workspace.refresh()


def import_list(workspace: Workspace) -> None:
    """Take in a list of two who were erased since a backup was made: one is there, one is not."""
    token, since = workspace.context.keys.token, "2026-03-01T00:00:00+00:00"
    with workspace.context.ledger.reading() as connection:
        name = workspace.context.ledger.get(connection, "workspace")
    entries = [
        {"token": token("id", person), "type": "id", "request_id": request, "since": since}
        for person, request in (("marker-patient-022", "R-1"), ("marker-patient-900", "R-2"))
    ]
    kept = {
        "version": 1, "workspace": name, "secret": workspace.context.keys.fingerprint,
        "entries": entries,
    }  # fmt: skip
    payload, signer = json.dumps(kept).encode(), workspace.context.keys.signer
    workspace.import_suppression_list(seal(signer, payload, external_files.PAYLOAD_TYPE))


def add(workspace: Workspace) -> None:
    folder = workspace.context.root.parent
    write_csv(folder / "others.csv", visits(9, start=900))
    workspace.add_dataset("others", folder / "others.csv", id_column="visit", subjects=["patient"])


OTHERS: dict[str, Callable[[Workspace], object]] = {
    "correct": lambda workspace: workspace.correct("visits", ids=["v100"], values={"age": 44}),
    "add": add,
    "append": append,
    "sync": sync,
    "append with models": append_with_models,
    "sync with models": sync_with_models,
    "refresh": refresh,
    "policy": lambda workspace: workspace.set_policy("tree", "never"),
    "fit again": lambda workspace: workspace.fit("risk"),
    "register": lambda workspace: workspace.register("theirs", datasets=["visits"], retrain=COPY),
    "retire": lambda workspace: workspace.retire("tree"),
    "request": lambda workspace: workspace.request(["marker-patient-020", "marker-patient-021"]),
    "import": import_list,
    "deny": lambda workspace: workspace.deny(workspace.requests()[0].id, "a reason"),
    "head": lambda workspace: workspace.head(),
}

COPY = "cp {data} {out}"

# Of people who have no record any more, `process` takes the pseudonyms away.
TAKES_PEOPLE_AWAY = {"sync", "sync with models"}


def content(path: Path) -> dict[str, list[tuple[object, ...]]]:
    """Return all rows of the ledger but those that only say when."""
    workspace = Workspace.open(path)
    with workspace.context.ledger.reading() as connection:
        return {
            table.name: sorted(map(tuple, connection.execute(select(table))), key=repr)
            for table in metadata.sorted_tables
            if table.name not in PASSING | {"garbage"}
        }


def points_of(name: str, path: Path) -> list[str]:
    """Return the effects of a command, in order."""
    passed: list[str] = []
    workspace = Workspace.open(path)
    with crash_points.watch(lambda effect, where: passed.append(effect)):
        OTHERS[name](workspace)
    return passed


def interrupt_at(number: int, action: Callable[[Workspace], object], path: Path) -> bool:
    """Interrupt an action at a point; return whether it got there."""
    return isinstance(fail_at(number, KeyboardInterrupt(), action, path), KeyboardInterrupt)


def stop_and_check(
    prepared: Path, folder: Path, name: str, number: int, stop: Callable[..., bool] = die_at
) -> bool:
    """Stop a command at a point, and return whether it was done; it is, or it is not."""
    gc.collect()  # interrupted commands: their connections to a server end with them
    path = copy_of(prepared, folder / str(number) / "ws")
    assert stop(number, OTHERS[name], path)
    done = content(path) != content(prepared)
    workspace = Workspace.open(path)
    if not done and stop is interrupt_at:  # no file is left of what was not done
        assert sorted(workspace.context.store.list()) == sorted(referred_to(workspace))
    left = workspace.verify_log()
    if name in TAKES_PEOPLE_AWAY and done:
        left = [
            line for line in left if not line.endswith("`erasable process`, which removes them")
        ]
    assert left == []
    with workspace.context.lock():
        gone_subjects.tidy(workspace.context)
        workspace.context.clean()
    assert workspace.verify_log() == []
    assert sorted(workspace.context.store.list()) == sorted(referred_to(workspace))
    if not done:
        OTHERS[name](workspace)
        assert workspace.verify_log() == []
    verdicts = {verdict.model: verdict.verdict for verdict in workspace.verify(retrain=True)}
    retired = {"tree"} if name == "retire" else set()
    assert {model for model, verdict in verdicts.items() if verdict == "retired"} == retired
    assert {*verdicts.values()} - {"retired"} == {"equal"}
    return done


@pytest.mark.backend("sqlite")
def test_every_operation_is_among_the_commands(
    prepared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran: set[type] = set()

    def note(kind: type[Any]) -> None:
        before = kind.commit
        monkeypatch.setattr(kind, "commit", lambda self, c: ran.add(type(self)) or before(self, c))

    for name in ("models.fitting", "models.updating", "requests.corrections"):
        importlib.import_module(f"erasable.workspace.{name}")  # the facade imports them later
    kinds = [
        each
        for each in descendants(Operation)
        if not inspect.isabstract(each) and each.__module__.startswith("erasable.")
    ]
    for kind in [each for each in kinds if "commit" in vars(each)] + [NextVersion]:
        note(kind)
    workspace = Workspace.open(copy_of(prepared, tmp_path / "ws"))
    for action in OTHERS.values():
        action(workspace)
    assert ran == set(kinds)


def descendants(kind: type[Any]) -> set[type[Any]]:
    return {below for each in kind.__subclasses__() for below in {each, *descendants(each)}}


@pytest.mark.backend(soak="postgres")
@pytest.mark.parametrize("name", OTHERS)
def test_other_commands_are_not_done_before_they_commit(
    prepared: Path, tmp_path: Path, name: str
) -> None:
    effects = points_of(name, copy_of(prepared, tmp_path / "count" / "ws"))
    assert not stop_and_check(prepared, tmp_path, name, effects.index("commit") + 1)


@pytest.mark.sampled(4)
@pytest.mark.backend("sqlite")
@pytest.mark.parametrize("after", [0, 1])
@pytest.mark.parametrize("name", OTHERS)
def test_other_commands_that_are_interrupted(
    prepared: Path, tmp_path: Path, name: str, after: int
) -> None:
    """At their first commit, and at the effect after it, if there is one."""
    effects = points_of(name, copy_of(prepared, tmp_path / "count" / "ws"))
    number = effects.index("commit") + 1 + after
    if number <= len(effects):
        done = stop_and_check(prepared, tmp_path, name, number, interrupt_at)
        assert done is bool(after)


@pytest.mark.soak
@pytest.mark.backend("sqlite", "postgres", "objects")
@pytest.mark.parametrize("stop", [die_at, interrupt_at])
@pytest.mark.parametrize("name", OTHERS)
def test_other_commands_are_done_or_not(
    prepared: Path, tmp_path: Path, name: str, stop: Callable[..., bool]
) -> None:
    effects = points_of(name, copy_of(prepared, tmp_path / "count" / "ws"))
    numbers = range(1, len(effects) + 1)
    done = [stop_and_check(prepared, tmp_path, name, number, stop) for number in numbers]
    assert done == sorted(done)  # once it is done it stays so
    assert not done[effects.index("commit")]


WATCH = """
import sys
from pathlib import Path

sys.path[:0] = sys.argv[2:]
root = str(Path(sys.argv[1]).resolve())
strays, seen = [], set()

from erasable.workspace import Workspace
from erasable.workspace.store import crash_points

WRITING = {"os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.truncate", "os.link",
           "os.symlink", "shutil.rmtree", "sqlite3.connect", "os.chmod", "shutil.move"}

def watch(event, arguments):
    if event == "open":
        path, mode, flags = arguments
        writes = bool(flags & 0o3) or (isinstance(mode, str) and set(mode) & set("wax+"))
    elif event in WRITING:
        path, writes = arguments[0], True
    else:
        return
    if writes and isinstance(path, (str, bytes)) and root in str(path):
        seen.add(event)
        if not crash_points.inside():
            strays.append((event, str(path)))

sys.addaudithook(watch)
from sqlalchemy import Engine, event

@event.listens_for(Engine, "commit")
def commit(connection):
    if connection.get_execution_options().get("erasable_writes"):
        seen.add("commit")
        if not crash_points.inside():
            strays.append(("commit", ""))

import test_crashes

def act():
    for name, action in test_crashes.OTHERS.items():
        action(Workspace.open(root))
    Workspace.open(root).process()

if "careless" in sys.argv[1]:
    Path(root, "artifacts", "stray").write_text("x")
act()
print(sorted(seen))
print(strays)
"""


@pytest.mark.backend(soak="postgres")
@pytest.mark.parametrize(
    "careless",
    [
        pytest.param(False, id="ours"),
        pytest.param(True, id="one that bypasses the points", marks=pytest.mark.soak),
    ],
)
def test_no_effect_bypasses_the_points(
    prepared: Path, tmp_path: Path, backend: str, careless: bool
) -> None:
    path = copy_of(prepared, tmp_path / ("careless" if careless else "ws"))
    folders = [str(Path(__file__).parent), str(Path(__file__).parent.parent)]
    ran = subprocess.run(
        [sys.executable, "-c", WATCH, str(path), *folders],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    seen, strays = ran.stdout.splitlines()[-2:]
    kinds = ["commit", "open", "os.mkdir", "os.remove", "os.rename", "os.rmdir"]
    if backend == "sqlite":
        kinds.append("sqlite3.connect")
    assert seen == str(kinds)
    assert (strays == "[]") is not careless
