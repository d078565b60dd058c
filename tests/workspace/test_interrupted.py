"""Ctrl-C, signals and exhausted memory at every step: what is said of the requests then holds."""

from __future__ import annotations

import gc
import inspect
import sys
from collections.abc import Callable, Iterator
from contextlib import _GeneratorContextManager, contextmanager
from pathlib import Path
from typing import Any

import pytest
from backends import copy_of
from crashes import ENDED, fail_at, make_workspace, restart_and_check
from sqlalchemy import update

import erasable
from effort import in_turn
from erasable.core._interruptions import explained
from erasable.core.errors import ErasableError, TamperedError
from erasable.workspace import Workspace
from erasable.workspace.ledger.engine import Ledger
from erasable.workspace.ledger.schema import request
from erasable.workspace.requests import batches, process
from erasable.workspace.store import crash_points

SOURCE = Path(erasable.__file__).parent / "workspace"
TRACED = tuple(str(SOURCE / name) for name in ("requests/", "ledger/engine.py", "domains/removing"))
"""What takes requests up, and puts them in place: interrupted before each of its lines."""

Action = Callable[[Workspace], object]


def carry_out(workspace: Workspace) -> None:
    workspace.process()


def work(workspace: Workspace) -> None:
    workspace.work(drain=True, backoff=0.01)


def remove(workspace: Workspace) -> None:
    plan = workspace.plan_removal("visits", where="age > 60", features=["age"], budget=3)
    workspace.remove_domain(plan)


def interrupt_at(number: int, action: Action, path: Path) -> tuple[int, BaseException | None]:
    """Run an action, interrupted at an event of the code above; return how many it passed."""
    passed = 0

    def watch(frame: Any, event: str, argument: Any) -> Any:
        nonlocal passed
        if not frame.f_code.co_filename.startswith(TRACED):
            return None
        # What is raised where a generator yields ends it, without what it has to do at its end.
        if event == "line" or (
            event == "return" and not frame.f_code.co_flags & inspect.CO_GENERATOR
        ):
            passed += 1
            if passed == number:
                sys.settrace(None)
                raise KeyboardInterrupt
        return watch

    workspace = Workspace.open(path)
    before = sys.gettrace()
    sys.settrace(watch)
    try:
        action(workspace)
    except BaseException as error:
        sys.settrace(before)
        error.__traceback__ = error.__context__ = None  # whose frames keep connections open,
        gc.collect()  # which end with the process of a command
        return passed, error
    finally:
        sys.settrace(before)
    return passed, None


def look(path: Path, error: BaseException, number: int) -> str:
    """Hold what was said against the requests; then have one cancelled, or all carried out."""
    workspace = Workspace.open(path)
    states = {each.state for each in workspace.requests()}
    told = explained(error)
    if "the others are pending again" in told:
        assert "pending" in states
        assert states & ENDED
    elif "pending again" in told:
        assert states == {"pending"}
    elif "carried out" in told:
        assert states <= {"swapped", "purged", *ENDED}
    else:
        assert "nothing is half-done" in told
        # A model for which the memory does not suffice keeps only its own requests waiting.
        waits = {"pending"} if type(error) is MemoryError else set[str]()
        assert states == {"pending"} or states <= {*ENDED, *waits}
    if states == {"pending"} and number % 2:
        chosen = workspace.requests()[0].id
        assert workspace.cancel(chosen).state == "cancelled"
        workspace.process()
        assert {each.state for each in workspace.requests()} == {"cancelled", *ENDED}
        assert workspace.verify_log() == []
    else:
        restart_and_check(path)
    return told


def look_at_removal(path: Path, error: BaseException, known: set[str]) -> str:
    """The request of a removal is cancelled, or in place; those of people wait as they did."""
    workspace = Workspace.open(path)
    own = {each.id: each.state for each in workspace.requests() if each.id not in known}
    people = {each.state for each in workspace.requests() if each.id in known}
    assert people == {"pending"}
    assert len(own) < 2
    told, n_records = explained(error), workspace.dataset("visits")["n_records"]
    if set(own.values()) <= {"cancelled"}:
        assert n_records == 120
        assert ("is cancelled" in told) is bool(own)
    else:
        assert set(own.values()) <= {"swapped", "purged", "completed"}
        assert n_records == 117
        assert "carried out" in told or "nothing is half-done" in told
    workspace.process()
    assert {each.state for each in workspace.requests()} <= {"cancelled", *ENDED}
    assert workspace.verify_log() == []
    return told


def tried(action: Action, n: int, few: int, turns: int) -> list[Any]:
    """Return numbers up to `n`: so many by `make test`, and those of its turn by each soak."""
    chosen = {1 + round(i * (n - 1) / (few - 1)) for i in range(few)}
    return [
        pytest.param(action, number, marks=() if number in chosen else pytest.mark.soak)
        for number in range(1, n + 1)
        if number in chosen or in_turn(number, turns)
    ]


def check(path: Path, error: BaseException, number: int, known: set[str], action: Action) -> str:
    if action is remove:
        return look_at_removal(path, error, known)
    return look(path, error, number)


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_workspace(tmp_path_factory.mktemp("interrupted"))


@pytest.fixture(scope="module")
def known(prepared: Path) -> set[str]:
    return {each.id for each in Workspace.open(prepared).requests()}


@pytest.mark.parametrize(
    ("action", "number"),
    [*tried(carry_out, 120, 6, 6), *tried(work, 120, 3, 6), *tried(remove, 87, 4, 6)],
)
@pytest.mark.parametrize("kind", [KeyboardInterrupt, MemoryError])
@pytest.mark.sampled(2)
def test_interrupted_at_an_effect(
    prepared: Path,
    tmp_path: Path,
    known: set[str],
    action: Action,
    number: int,
    kind: type[BaseException],
) -> None:
    path = copy_of(prepared, tmp_path / "ws")
    error = fail_at(number, kind(), action, path)
    if error is not None:
        assert type(error) is kind
        check(path, error, number, known, action)


@pytest.mark.parametrize(
    ("action", "number"),
    [*tried(carry_out, 3700, 6, 60), *tried(work, 3900, 3, 200), *tried(remove, 3600, 3, 200)],
)
def test_interrupted_before_a_line(
    prepared: Path, tmp_path: Path, known: set[str], action: Action, number: int
) -> None:
    """Of the code that takes requests up: there are about so many lines, and after them nothing."""
    path = copy_of(prepared, tmp_path / "ws")
    _, error = interrupt_at(number, action, path)
    if error is not None:
        assert type(error) is KeyboardInterrupt
        check(path, error, number, known, action)


class Entered(_GeneratorContextManager[Any]):
    """A transaction whose first step is done when the interruption comes."""

    left = 0

    def __enter__(self) -> Any:
        found = super().__enter__()
        Entered.left -= 1
        if Entered.left == 0:
            raise KeyboardInterrupt
        return found


@pytest.mark.parametrize(
    ("action", "number"),
    [(action, number) for action in (carry_out, work, remove) for number in range(1, 9)],
)
@pytest.mark.sampled(3)
def test_interrupted_on_its_way_into_a_transaction(
    prepared: Path,
    tmp_path: Path,
    known: set[str],
    monkeypatch: pytest.MonkeyPatch,
    action: Action,
    number: int,
) -> None:
    """It is open until the frames of the interruption go: nobody waits for that."""
    path = copy_of(prepared, tmp_path / "ws")
    opened, error = Workspace.open(path), None
    generator = Ledger.transaction.__wrapped__  # type: ignore[attr-defined]
    monkeypatch.setattr(Entered, "left", number)
    with monkeypatch.context() as patched:
        patched.setattr(Ledger, "transaction", lambda self: Entered(generator, (self,), {}))
        try:
            action(opened)
        except KeyboardInterrupt as caught:
            caught.__traceback__ = None
            error = caught
    if error is not None:
        check(path, error, number, known, action)


@contextmanager
def errors_alone(context: Any, name: str, *_: Any) -> Iterator[None]:
    try:
        yield
    except ErasableError:
        batches.put_back(context, name)
        raise


def all_of_it(context: Any, name: str) -> str:
    r = request.c
    with context.ledger.transaction() as connection:
        connection.execute(update(request).where(r.batch == name).values(state="pending"))
    return "pending"


@pytest.mark.parametrize(
    ("of", "broken", "after"),
    [("_waiting_again", errors_alone, 1), ("put_back", all_of_it, 2)],
    ids=["an interruption is no error", "what is in place waits again"],
)
def test_a_request_that_is_left_behind_is_noticed(
    prepared: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    of: str,
    broken: Any,
    after: int,
) -> None:
    """Interrupted after the commit that takes requests up, or the one that puts them in place."""
    effects: list[str] = []
    with crash_points.watch(lambda effect, where: effects.append(effect)):
        carry_out(Workspace.open(copy_of(prepared, tmp_path / "counted" / "ws")))
    commits = [number for number, effect in enumerate(effects, 1) if effect == "commit"]
    path = copy_of(prepared, tmp_path / "ws")
    monkeypatch.setattr(process, of, broken)
    error = fail_at(commits[after - 1] + 1, KeyboardInterrupt(), carry_out, path)
    assert type(error) is KeyboardInterrupt
    with pytest.raises((AssertionError, TamperedError)):
        look(path, error, 1)
