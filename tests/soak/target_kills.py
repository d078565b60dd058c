"""Kill erasures from each kind of target at random: ``python tests/soak/target_kills.py``.

A process erases people from a small place, and is killed (kill -9) before or after one of its
effects, of Python and of compiled clients alike; in a third of the lives the next one is killed,
too. Then one goes on as the workspace does, with what was found before. After that, and in
between, every record of others is there once and as it was; at the end nothing of the people is
left, in records or in bytes, the verdict is that of an erasure without a kill, and there is no file
or table that this one has not.

The seed decides places of kills. A client with threads may have its effects in another order.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import random
import re
import shutil
import sys
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")
HERE = Path(__file__).resolve().parent
TESTS = HERE.parent
sys.path[:0] = [str(each) for each in (HERE, TESTS, TESTS / "workspace", TESTS / "targets")]
sys.path.append(str(TESTS.parent / "benchmarks"))  # where some modules have names of others

from effects import Ended, Point, forked  # noqa: E402
from target_places import GONE, PLACES, N, Place, Row  # noqa: E402
from target_stores import MAILS  # noqa: E402

from erasable.core.artifact import sync_folder  # noqa: E402
from erasable.workspace.targets.protocol import Plan  # noqa: E402
from erasable.workspace.targets.steps import Verdict, erase  # noqa: E402
from people import Named  # noqa: E402

PEOPLE = Named(*(MAILS[at] for at in GONE))
OTHERS = [at for at in range(N) if at not in GONE][::5]  # who are searched for as a control
_TWICE, _LOOKED_AT = 1 / 3, 1 / 2  # of the lives
_EARLY = 1 / 5  # of the kills: while people are looked for


class WrongError(Exception):
    """Something is not as it has to be."""


@dataclass
class Told:
    """What became of the kills of a place."""

    n_kills: int = 0
    n_inside: int = 0  # after the erasure had found whom it erases
    seconds: float = 0.0
    faults: list[str] = field(default_factory=list)


class Killing:
    """Erasures from a place that are killed.

    Parameters
    ----------
    place : Place
    folder : Path
        Where plans are kept, and what children print.
    draw : random.Random
    """

    def __init__(self, place: Place, folder: Path, draw: random.Random) -> None:
        self._place, self._draw = place, draw
        self._plan, self._output = folder / "plan.json", folder / "output"
        place.import_clients()
        gc.freeze()
        self._do(place.make)
        self._do(place.keep)
        self._before: list[Row] = self._do(place.read)
        self._stay = [row for row in self._before if row[0] not in GONE]
        if self._do(place.has_files) and not self._do(lambda: place.left(GONE)):
            raise WrongError("the files are searched for people in vain before they are erased")
        self._first = forked(self._found, self._output, place.calls).calls
        self._do(place.renew)
        ended = forked(self._erased, self._output, place.calls)
        self._last = ended.calls
        self._verdict: Verdict = self._right(ended)
        self._files: tuple[int, Counter[str]] | None = None
        self._files = self._look_at_the_end()

    def live(self, told: Told, most: int) -> None:
        """Erase with a kill or two, at most so many, and once more; look at what there is."""
        n = min(most, 2 if self._draw.random() < _TWICE else 1)
        self._lived(told, (self._drawn() for _ in range(n)))

    def live_at_each(self, told: Told) -> None:
        """Erase with a kill before each effect, of each name one after the other."""
        for call in sorted(self._last):
            for number in range(self._first[call] + 1, self._last[call] + 1):
                self._lived(told, [Point(call, number)])

    def _lived(self, told: Told, points: Iterable[Point]) -> None:
        self._do(self._place.renew)
        self._plan.unlink(missing_ok=True)
        passed = []
        try:
            for point in points:
                passed.append(point)
                looked = self._draw.random() < _LOOKED_AT
                ended = forked(self._erased, self._output, self._place.calls, point)
                if not ended.was_killed:
                    self._right(ended)
                told.n_kills += ended.was_killed
                told.n_inside += ended.was_killed and self._plan.exists()
                if looked:
                    self._look_between()
            self._look_at_the_end()
        except (WrongError, TimeoutError) as fault:
            told.faults.append(f"{self._place.name}, {', then '.join(map(str, passed))}: {fault}")

    def _drawn(self) -> Point:
        if self._draw.random() < _EARLY and self._first:
            return Point.drawn(Counter(), self._first, self._draw)
        return Point.drawn(self._first, self._last, self._draw)

    # -- what is done in forks ---------------------------------------------------------------------

    def _do(self, run: Callable[[], Any]) -> Any:
        return self._right(forked(run, self._output))

    def _right(self, ended: Ended) -> Any:
        if ended.error:
            raise WrongError(ended.error)
        return ended.told

    def _erased(self) -> Verdict:
        """Erase as a workspace does: what was found is kept before it leaves."""
        plan = Plan()
        if self._plan.exists():
            plan = Plan.from_json(json.loads(self._plan.read_text()))
        with self._place.opened() as target:
            return erase(target, PEOPLE, plan, self._keep)

    def _keep(self, plan: Plan) -> None:
        beside = self._plan.with_suffix(".new")
        beside.write_text(json.dumps(plan.to_json()))
        beside.replace(self._plan)
        sync_folder(beside.parent)

    def _found(self) -> bool:
        with self._place.opened() as target:
            return bool(target.find(PEOPLE))

    def _finished(self) -> tuple[Verdict, bool]:
        return self._erased(), self._found()

    def _looked_through(self) -> tuple[int, int, Counter[str]]:
        """Return of how many people and of how many others files have something, and their names.

        The names are without numbers.
        """
        names = (re.sub(r"[0-9a-f]{8}[0-9a-f-]*|\d+", "#", each) for each in self._place.names())
        return self._place.left(GONE), self._place.left(OTHERS), Counter(names)

    # -- what has to be so -------------------------------------------------------------------------

    def _look_between(self) -> None:
        """Look whether others have all that is theirs, and the people no record more.

        Theirs may be overwritten by then.
        """
        found = self._do(self._place.read)
        self._same([row for row in found if row[0] not in GONE], "between")
        if more := Counter(row[0] for row in found) - Counter(row[0] for row in self._before):
            raise WrongError(f"between: there are records that were not there: {_some(more)}")

    def _look_at_the_end(self) -> tuple[int, Counter[str]]:
        """Erase without a kill, and look at everything.

        Return of how many others files have something, and the names of files.
        """
        verdict, is_found = self._do(self._finished)
        if is_found:
            raise WrongError("people are found again")
        if verdict.word != self._verdict.word:
            raise WrongError(f"the verdict is {verdict.word!r}: {verdict.reason}")
        self._same(self._do(self._place.read), "at the end")
        n_left, n_others, names = self._do(self._looked_through)
        if n_left:
            raise WrongError(f"files have something of {n_left} people")
        usual_others, usual_names = self._files or (n_others, names)
        if n_others < usual_others:
            raise WrongError("files have less of others than after an erasure without a kill")
        if more := names - usual_names:
            raise WrongError(f"more files or tables than without a kill: {_some(more)}")
        return n_others, names

    def _same(self, found: list[Row], when: str) -> None:
        found_, stay = Counter(found), Counter(self._stay)
        if lost := stay - found_:
            raise WrongError(f"{when}: {lost.total()} records of others are lost: {_some(lost)}")
        if more := found_ - stay:
            raise WrongError(f"{when}: {more.total()} records too many: {_some(more)}")


def _some(counts: Counter[Any]) -> str:
    return "; ".join(str(each)[:100] for each in list(counts)[:3])


def run(place: Place, folder: Path, seed: int, kills: int | None, seconds: float) -> Told:
    """Kill erasures from a place so many times, or at each effect once."""
    told, began = Told(), time.monotonic()
    with closing(place):
        try:
            killing = Killing(place, folder, random.Random(f"{seed} {place.name}"))
            if kills is None:
                killing.live_at_each(told)
            while kills is not None and told.n_kills < kills and time.monotonic() - began < seconds:
                killing.live(told, kills - told.n_kills)
        except WrongError as fault:
            told.faults.append(f"{place.name}, without a kill: {fault}")
    told.seconds = time.monotonic() - began
    return told


def main(arguments: list[str] | None = None) -> int:
    """Run it; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seed", type=int, default=1)
    how_many = parser.add_mutually_exclusive_group()
    how_many.add_argument("--kills", type=int, default=50, help="of each kind of targets")
    how_many.add_argument("--each", action="store_true", help="kill before each effect once")
    parser.add_argument("--only", nargs="+", choices=list(PLACES), default=list(PLACES))
    parser.add_argument("--minutes", type=float, default=15.0, help="for each kind of targets")
    chosen = parser.parse_args(arguments)
    print(f"killing erasures, seed {chosen.seed}\n{'target':<14}kills  inside  seconds  faults")
    faults: list[str] = []
    for name in chosen.only:
        folder = Path(tempfile.mkdtemp(prefix="erasable-soak-")).resolve()
        kills = None if chosen.each else chosen.kills
        told = run(PLACES[name](name, folder), folder, chosen.seed, kills, 60 * chosen.minutes)
        shutil.rmtree(folder)
        if not chosen.each and told.n_kills < chosen.kills and not told.faults:
            told.faults.append(f"{name}: only {told.n_kills} of {chosen.kills} kills in time")
        if 2 * told.n_inside <= told.n_kills:
            told.faults.append(f"{name}: most kills came before anybody was found")
        print(
            f"{name:<14}{told.n_kills:>5}{told.n_inside:>8}{told.seconds:>9.0f}"
            f"{len(told.faults):>8}",
            flush=True,
        )
        faults += told.faults
    for each in faults:
        print(f"FAILED: {each}")
    return int(bool(faults))


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    sys.exit(main())
