"""Commands `erasable work`, `tasks` and `retry`: workers, their tasks, and failures."""

from __future__ import annotations

import json
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

import typer

import erasable.cli.show as show
from erasable.cli.frame import command, opened
from erasable.cli.interrupts import Stopped
from erasable.cli.options import DASK, FOLDER, JSON, argument, number, option, switch, whole
from erasable.cli.requests import besides, counted

app = typer.Typer()

PANEL = "Requests"
_KINDS = {"dataset": "data set"}


@command(app, "work", example="erasable work", panel=PANEL)
def work(
    drain: bool = switch("--drain", "End when there is nothing left to do."),
    poll: str = option("SECONDS", "Seconds between two looks for requests.", default="1"),
    attempts: str = option("N", "A model is dead after this many attempts.", default="5"),
    backoff: str = option(
        "SECONDS", "Seconds before the second attempt; they double with each attempt.", default="5"
    ),
    dask: str | None = DASK,
    folder: str = FOLDER,
    as_json: bool = JSON,
) -> None:
    """Carry out requests as they come; start any number of workers, on any machine."""
    seconds = number(poll, "--poll")
    tries, first = whole(attempts, "--attempts"), number(backoff, "--backoff")
    found = opened(folder, dask=dask)
    turns: list[Any] = []
    with _until_stopped(found.context.root) as stopped:

        def tell(done: Any) -> None:
            turns.append(done)
            if not as_json:
                _say(done)
            elif not drain:
                print(json.dumps(_as_json([done]), default=str), flush=True)

        if not as_json:
            show.line(f"working on {show.one_line(str(found.context.root))}; stop with Ctrl-C")
        found.work(
            drain=drain, poll=seconds, attempts=tries, backoff=first, tell=tell, stopped=stopped
        )
    if as_json and drain:
        show.print_json(_as_json(turns))
    elif not as_json:
        n = sum(len(each.processed.requests) for each in turns if each.processed)
        show.line(f"stopped; completed {show.words(n, 'request')}")


@command(app, "tasks", example="erasable tasks", panel=PANEL)
def tasks(folder: str = FOLDER, as_json: bool = JSON) -> None:
    """List workers and their tasks, and what failed: waiting for another attempt, or dead."""
    found = opened(folder).tasks()
    if show.printed(as_json, found):
        return
    now = datetime.now(UTC)
    if found["at_work"]:
        rows = [
            (each.label, ", ".join(each.resources), show.seconds((now - each.since).seconds))
            for each in found["at_work"]
        ]
        show.table(["at work", "on", "for"], rows, right="for")
        show.line()
    if not found["failed"]:
        show.line("no task has failed")
        return
    rows_of = [
        (
            f"{_KINDS.get(each.target, each.target)} {each.name}", each.state,
            show.count(each.attempts), show.count(each.n_requests), _again(each, now),
        )
        for each in found["failed"]
    ]  # fmt: skip
    show.table(["failed", "state", "attempts", "requests", "again"], rows_of)
    for each in found["failed"]:
        show.line(f"{each.name}: {show.one_line(each.error)}")
    dead = {each.target for each in found["failed"] if each.state == "dead"}
    if dead:
        show.line(f"fix the cause, then `erasable retry`{_given_up(dead)}")


@command(app, "retry", example="erasable retry risk", panel=PANEL)
def retry(
    names: list[str] | None = argument(
        "NAME", "Models, data sets and targets; by default all.", default=None
    ),
    folder: str = FOLDER,
    as_json: bool = JSON,
) -> None:
    """Try failed tasks again at once, also dead ones."""
    done = opened(folder).retry(names or ())
    if show.printed(as_json, {"tried_again": [each.name for each in done]}):
        return
    named = ", ".join(each.name for each in done)
    show.line(f"to be tried again: {named}" if done else "no task has failed")


def _given_up(dead: set[str]) -> str:
    """Say how what has failed for good is given up."""
    how = {"model": "`erasable model retire NAME`", "target": "`erasable target remove --give-up`"}
    ways = [way for kind, way in how.items() if kind in dead]
    return f"; or {', or '.join(ways)}" if ways else ""


def _again(failed: Any, now: datetime) -> str:
    if failed.again_at is None:
        return "after `erasable retry`"
    wait = (failed.again_at - now).total_seconds()
    return "now" if wait <= 0 else f"in {show.seconds(wait)}"


def _say(done: Any) -> None:
    at = datetime.now().astimezone().strftime("%H:%M:%S")
    if done.processed is not None:
        show.warn(done.processed.warnings)
        for line in besides(done.processed):
            show.line(f"{at} {line}")
        n_carried_out = len(done.processed.requests) - done.processed.n_resumed
        if n_carried_out:
            show.line(
                f"{at} completed {show.words(n_carried_out, 'request')}: "
                f"{counted(done.processed)} {'in' if done.processed.n_corrected else 'from'} "
                f"{show.words(len(done.processed.treatments), 'model')} in "
                f"{show.seconds(done.processed.seconds)}"
            )
    if done.n_models:
        show.line(f"{at} prepared {show.words(done.n_models, 'model')} for another worker")
    if done.failure is not None:
        failed = done.failure
        show.warn(
            [
                f"{at} {failed.target} {failed.name} failed, attempt {failed.attempts}"
                f"{', and is dead' if failed.state == 'dead' else ''}: {failed.error}"
            ]
        )
    if done.error is not None:
        show.warn([f"{at} {done.error}; trying again"])


def _as_json(turns: list[Any]) -> dict[str, Any]:
    batches = [each.processed for each in turns if each.processed is not None]
    return {
        "completed": [request for each in batches for request in each.requests],
        "n_records": sum(each.n_records for each in batches),
        "resumed": sum(each.n_resumed for each in batches),
        "hooks": [name for each in batches for name in each.hooks],
        "n_models": sum(len(each.treatments) for each in batches),
        "n_helped": sum(each.n_models for each in turns),
        "failed": [
            show.picked(each.failure, "target", "name", "state", "error")
            for each in turns
            if each.failure is not None
        ],
        "errors": [each.error for each in turns if each.error is not None],
        "warnings": [warning for each in batches for warning in each.warnings],
    }  # fmt: skip


@contextmanager
def _until_stopped(place: Any) -> Iterator[threading.Event]:
    """Have the first signal end the work after the current task, and a second one at once."""
    stopped = threading.Event()
    before = {}

    def stop(number: int, frame: Any) -> None:
        if stopped.is_set():
            raise Stopped(number)
        stopped.set()
        show.warn(["stopping after the current task; once more stops at once, and loses nothing"])

    for each in (signal.SIGINT, signal.SIGTERM):
        try:
            before[each] = signal.signal(each, stop)
        except ValueError:  # not the main thread
            continue
    try:
        yield stopped
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)
