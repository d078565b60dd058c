"""Children of a soak that stop are let go on; those that do not end say where they are."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent), str(HERE.parent / "workspace")]

from children import Child, Watch  # noqa: E402

Tell = Callable[[Any], None]


def test_who_says_that_it_stops_is_let_go_on_when_it_has() -> None:
    def run(tell: Tell) -> None:
        tell({"stops": 0.0})
        time.sleep(0.2)  # as where others have the processors
        os.kill(os.getpid(), signal.SIGSTOP)
        tell("went on")

    child, watch = Child(run), Watch()
    watch.join(child)
    assert watch.run(limit=20.0)
    assert (child.told[1:], child.code) == (["went on"], 0)


def test_who_says_that_it_stops_and_ends_is_not_waited_for() -> None:
    child, watch = Child(lambda tell: tell({"stops": 0.0})), Watch()
    watch.join(child)
    assert watch.run(limit=20.0)


def test_where_those_are_who_do_not_end() -> None:
    def waits_for_ever(tell: Tell) -> None:
        tell("begun")
        os.kill(os.getpid(), signal.SIGSTOP)
        time.sleep(100)

    child, watch = Child(waits_for_ever), Watch()
    watch.join(child)
    assert not watch.run(limit=0.5)
    (told,) = watch.left
    assert "process in state T" in told
    assert "in waits_for_ever" in told
    os.waitpid(child.pid, 0)
