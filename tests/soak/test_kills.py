"""The soak test finds what is broken: each of its checks has something that it catches."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from erasable.core.errors import TooFewRecordsError
from erasable.workspace.context import Context
from erasable.workspace.data import admission
from erasable.workspace.evidence import issuing, log
from erasable.workspace.identity import suppression
from erasable.workspace.locking.leases import Leases
from erasable.workspace.models import deleting
from erasable.workspace.requests import process, swapping

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent), str(HERE.parent / "workspace")]

import postgres_server  # noqa: E402
import team  # noqa: E402

Script = Callable[[list[str]], int]
pytestmark = pytest.mark.soak


@pytest.fixture
def kills(tmp_path: Path) -> Script:
    """The script, which leaves what it finds in the folder of the test."""
    place = Path(__file__).with_name("kills.py")
    spec = importlib.util.spec_from_file_location("kills", place)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return lambda arguments: int(module.main(arguments, tmp_path / "soak"))


def test_too_few_kills_fail(kills: Script, capsys: pytest.CaptureFixture[str]) -> None:
    assert kills(["--kills", "500", "--minutes", "0"]) == 1
    assert "only 0 of 500 kills in time" in capsys.readouterr().out


def nothing_is_removed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Context, "clean", lambda self: None)


def completed_before_the_purge(monkeypatch: pytest.MonkeyPatch) -> None:
    def hasty(context: Context) -> list[str]:
        with context.ledger.reading() as connection:
            query = process.select(process.request_table.c.id)
            waiting = list(
                connection.execute(
                    query.where(process.request_table.c.state == "swapped")
                ).scalars()
            )
        with context.ledger.transaction() as connection:
            issuing.issue(context, connection, waiting, context.now())
        context.clean()
        return waiting

    monkeypatch.setattr(process, "finish", hasty)


def nobody_is_kept_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(admission.suppression, "every", lambda connection: [])


def models_are_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*given: object) -> None:
        raise TooFewRecordsError("no records are left; expected some; delete fewer")

    monkeypatch.setattr(deleting, "_without", never)


def nobody_is_suppressed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(suppression, "suppress", lambda *given: {})


@pytest.mark.parametrize(
    ("sabotage", "told"),
    [
        (nothing_is_removed, "nothing refers to|completed, but still there"),
        (completed_before_the_purge, "completed, but still there|full look"),
        # Who comes back is told at the sync, or, where that was killed, by what is there after it.
        (nobody_is_kept_out, "suppressed, expected|neither before nor after|still there"),
        (models_are_given_up, "is retired, with"),
        (nobody_is_suppressed, "kept out|suppressed, expected|still there"),
    ],
)
def test_what_is_broken_is_found(
    kills: Script,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    sabotage: Callable[[pytest.MonkeyPatch], None],
    told: str,
) -> None:
    sabotage(monkeypatch)
    assert kills(["--kills", "60", "--minutes", "4", "--seed", "3"]) == 1
    said = capsys.readouterr().out
    assert any(words in said for words in told.split("|")), said


# -- on PostgreSQL ---------------------------------------------------------------------------------


def a_lock_that_locks_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    @contextmanager
    def free(self: Leases, claim: object, wait: float) -> Iterator[None]:
        yield

    monkeypatch.setattr(Leases, "hold", free)


def a_fence_that_never_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Leases, "_fence", lambda self, connection: None)
    monkeypatch.setattr(team.Team, "WAYS", {"stop": 9, "point": 1})


def steps_are_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(swapping, "_forget_failures", lambda connection, batch: None)


def requests_are_carried_out_again(monkeypatch: pytest.MonkeyPatch) -> None:
    finish = process.finish

    def twice(context: Context) -> list[str]:
        done = finish(context)
        with context.ledger.transaction() as connection:
            for request in done:
                log.append(context, connection, "request-erased", request, {}, context.now())
        return done

    monkeypatch.setattr(process, "finish", twice)


@pytest.mark.skipif(not postgres_server.installed(), reason="no PostgreSQL to bring up")
@pytest.mark.parametrize(
    ("sabotage", "told"),
    [
        # Of two that carry out one batch, one may take away what the other waits for.
        (
            a_lock_that_locks_nothing,
            "Error|neither before nor after|nothing refers to|the log|it does not end|still there",
        ),
        (a_fence_that_never_fails, "when others had its leases|neither|the log|Error|still there"),
        (steps_are_left, "rows are left|still there"),
        (requests_are_carried_out_again, "the log"),
    ],
)
def test_what_is_broken_is_found_on_postgres(
    kills: Script,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    sabotage: Callable[[pytest.MonkeyPatch], None],
    told: str,
) -> None:
    sabotage(monkeypatch)
    few = ["--database", "postgres", "--kills", "80", "--minutes", "6", "--seed", "3"]
    assert kills(few) == 1
    said = capsys.readouterr().out
    assert any(words in said.partition("FAILED")[2] for words in told.split("|")), said
