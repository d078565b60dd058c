"""Processes of a soak: they run steps, and are killed, or stopped for a while, or let be."""

from __future__ import annotations

import faulthandler
import heapq
import itertools
import json
import os
import select
import signal
import tempfile
import time
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import backends
from actions import do

from erasable.workspace import Workspace
from erasable.workspace.context import Context
from erasable.workspace.locking import leases
from erasable.workspace.store import crash_points

__all__ = ["Child", "Watch", "in_child", "steps_in_child"]

PATIENT = 60.0  # seconds that a child waits for others
SHORT_SPAN, SHORT_RENEWAL = 0.4, 0.1  # seconds, of the leases of a child that is to be stopped


class Child:
    """A process that runs something, and tells of it through a pipe."""

    def __init__(self, run: Callable[[Callable[[Any], None]], None]) -> None:
        reading, writing = os.pipe()
        self._stacks = tempfile.TemporaryFile("w+")  # noqa: SIM115 - closed with it
        self.pid = os.fork()
        if self.pid == 0:
            faulthandler.register(signal.SIGUSR1, self._stacks)
            os.close(reading)
            backends.after_fork()
            self._be_child(run, writing)
        os.close(writing)
        self._pipe = reading
        self._data = b""
        self.began = time.monotonic()
        self.seconds = 0.0
        self.code: int | None = None

    @staticmethod
    def _be_child(run: Callable[[Callable[[Any], None]], None], writing: int) -> None:
        code = 1

        def tell(what: Any) -> None:
            data = (json.dumps(what) + "\n").encode()
            while data:
                data = data[os.write(writing, data) :]

        try:
            run(tell)
            code = 0
        except BaseException as error:
            tell({"error": traceback.format_exc(), "kind": type(error).__name__})
        finally:
            os._exit(code)

    def fileno(self) -> int:
        """Return what to wait for: there is something to read, or it has ended."""
        return self._pipe

    def read(self) -> bool:
        """Hear what it says; return False when it has ended."""
        part = os.read(self._pipe, 1 << 16)
        self._data += part
        if part:
            return True
        os.close(self._pipe)
        self._stacks.close()
        _, status = os.waitpid(self.pid, 0)
        self.seconds = time.monotonic() - self.began
        self.code = os.waitstatus_to_exitcode(status)
        return False

    @property
    def told(self) -> list[Any]:
        """What it has told so far."""
        whole, _, _ = self._data.rpartition(b"\n")
        return [json.loads(line) for line in whole.splitlines()]

    def said(self, what: str) -> list[Any]:
        """Return what it has told of one kind."""
        return [each[what] for each in self.told if isinstance(each, dict) and what in each]

    def send(self, number: signal.Signals) -> None:
        """Send it a signal, unless it has ended."""
        if self.code is None:
            os.kill(self.pid, number)

    def wait_until_it_stops(self) -> None:
        """Wait until it is stopped, as it has said that it will be, or has ended."""
        if self.code is None:
            os.waitid(os.P_PID, self.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)

    def where(self) -> str:
        """Say whether it is stopped, and where it is in Python; it is let go on, and does."""
        state = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()[0]
        self.send(signal.SIGCONT)
        self.send(signal.SIGUSR1)
        time.sleep(1.0)
        with self._stacks:
            self._stacks.seek(0)
            return f"process in state {state}:\n{self._stacks.read()}"

    def wait(self, kill_after: float | None = None) -> int:
        """Wait for the end; return the exit code, or minus the signal."""
        watch = Watch()
        watch.join(self)
        if kill_after is not None:
            watch.at(kill_after, lambda: self.send(signal.SIGKILL))
        watch.run()
        assert self.code is not None
        return self.code


class Watch:
    """Waits for children, and does things to them at their times.

    A child that says that it stops is let go on after a while, or when all others have ended.
    """

    def __init__(self, before: Callable[[], None] | None = None) -> None:
        self._living: list[Child] = []
        self._alarms: list[tuple[float, int, Callable[[], None]]] = []
        self._order = itertools.count()
        self._stopped: Child | None = None
        self._before = before  # called when a child that was stopped is about to go on
        self.left: list[str] = []  # where they were who took too long
        self.on_stop: Callable[[], None] = lambda: None
        self.on_end: Callable[[Child], None] = lambda child: None

    def join(self, child: Child) -> None:
        """Wait for this one, too."""
        self._living.append(child)

    def at(self, seconds: float, action: Callable[[], None]) -> None:
        """Do something so many seconds from now, if somebody lives then."""
        heapq.heappush(self._alarms, (time.monotonic() + seconds, next(self._order), action))

    def stop(self, child: Child, seconds: float) -> None:
        """Stop a child for at most so many seconds."""
        child.send(signal.SIGSTOP)
        self.hold(child, seconds)

    def hold(self, child: Child, seconds: float) -> None:
        """Let a child that has stopped go on, after at most so many seconds."""
        self._stopped = child
        self.on_stop()
        self.at(seconds, self._go_on)

    def run(self, limit: float = 150.0) -> bool:
        """Wait for all; return False if it takes too long: then they are killed."""
        until = time.monotonic() + limit
        while self._living:
            while self._alarms and self._alarms[0][0] <= time.monotonic():
                heapq.heappop(self._alarms)[2]()
            if self._living == [self._stopped]:
                self._go_on()
            rest = min([until, *(each[0] for each in self._alarms[:1])]) - time.monotonic()
            ready, _, _ = select.select(self._living, [], [], max(0.0, rest))
            for child in ready:
                self._hear(child)
            if time.monotonic() > until:
                self.left = [child.where() for child in self._living]
                for child in self._living:
                    child.send(signal.SIGKILL)
                return False
        return True

    def _hear(self, child: Child) -> None:
        before = len(child.said("stops"))
        if not child.read():
            self._living.remove(child)
            self.on_end(child)
        elif len(child.said("stops")) > before:
            self.hold(child, child.said("stops")[-1])

    def _go_on(self) -> None:
        child, self._stopped = self._stopped, None
        if child is not None and child.code is None:
            child.wait_until_it_stops()  # or it would stop after it was let go on, for ever
            if self._before is not None:
                self._before()
            child.send(signal.SIGCONT)


def steps_in_child(
    path: Path,
    steps: Sequence[dict[str, Any]],
    sources: Path,
    die_at: int | None = None,
    stop_at: tuple[int, float] | None = None,
    *,
    lapses: bool = False,
) -> Child:
    """Run steps in a child that tells of each when it has returned.

    It kills itself at a point; or stops for some seconds at the first point, from one on, where it
    has a lease and no transaction. With `lapses`, others may take its leases soon after that.
    """

    def run(tell: Callable[[Any], None]) -> None:
        passed, stops = 0, stop_at is not None
        context = None
        if lapses:
            leases.SPAN, leases._RENEWAL = SHORT_SPAN, SHORT_RENEWAL

        def watch(effect: str, where: str) -> None:
            nonlocal passed, stops
            passed += 1
            if passed == die_at:
                os.kill(os.getpid(), signal.SIGKILL)
            holds = context is not None and context.locks.owner and effect != "commit"
            if stops and stop_at is not None and passed >= stop_at[0] and holds:
                stops = False
                tell({"stops": stop_at[1]})
                os.kill(os.getpid(), signal.SIGSTOP)

        with crash_points.watch(watch):
            context = Context.open(path, wait=PATIENT)
            workspace = Workspace(context)
            tell({"opened": True})
            for step in steps:
                tell({"done": do(workspace, step, sources, tell)})
        tell({"points": passed})

    return Child(run)


def in_child(run: Callable[[], Any]) -> Any:
    """Return what a function says in a child; this process never opens a ledger itself."""
    child = Child(lambda tell: tell(run()))
    code = child.wait()
    if code != 0:
        raise AssertionError(child.told[-1]["error"] if child.told else f"exit code {code}")
    return child.told[-1]
