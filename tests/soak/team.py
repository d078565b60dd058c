"""One workspace in PostgreSQL that several are at work on at once, and a server that goes down.

In a turn a command is run by one child, or requests are carried out by two or three workers, with
or without a command beside them. Some are killed; one is stopped, until others have what it had;
or the server is killed, and started again. Whoever is left goes on.
"""

from __future__ import annotations

import random
import signal
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import actions
import psycopg
from alone import CLEANING, FULL_LOOK_EVERY, WEIGHTS, Alone, WrongError
from backends import database_of
from children import Child, Watch, steps_in_child
from expected import Expected
from postgres_server import Server

__all__ = ["Team"]

WORK = [{"do": "work"}]
BESIDE = ("request", "where", "append", "sync", "fit", "process", "head", "verify")
STOPPABLE = ("append", "sync", "fit", "process", "work")
MANY = 40  # records of a data set, of which no turn leaves too few for a model
SOON, LATER = 0.5, 3.0  # seconds that a child is stopped: less than its lease, or more


class Team(Alone):
    """A workspace, what is expected of it, and those who are at work on it at once."""

    WEIGHTS: ClassVar = WEIGHTS | {"request": 4, "process": 2, "work": 14}
    WAYS: ClassVar = {"point": 6, "time": 5, "stop": 3, "server": 2, "not": 1}

    def __init__(self, folder: Path, seed: int, server: Server) -> None:
        self.server = server
        self.overtaken = 0
        self.swept = 0
        self.told_of: Counter[str] = Counter()
        super().__init__(folder, seed)

    def _work(self, rng: random.Random) -> list[dict[str, Any]]:
        """Where there is nothing to do, somebody asks for it first."""
        return WORK if self.expected.waiting() else self._request(rng)

    # -- a turn ------------------------------------------------------------------------------------

    def turn(self, number: int) -> None:
        """Have children do something, harm some of them or the server, and look."""
        rng = random.Random(f"{self.seed}/{number}")
        steps = self.choose(rng)
        client = None if steps is WORK else steps
        alone = client is not None and (not self._goes_beside(client) or rng.random() < 0.4)
        n_workers = 0 if alone else rng.choice([2, 3])
        turn = _Turn(self, rng, client, n_workers)
        self.doing = f"{turn.way}, with {n_workers} workers: {steps}"
        turn.run()
        self.n_commands += 1
        self._note(turn)
        if client is not None:
            self._hear(client, turn.told)
        self._look(rng, turn.outcomes(self.expected))
        if turn.crashed:
            self.swept += self.server.sweep(self.database)
        if alone and turn.ended and client is not None and client[0]["do"] in CLEANING:
            self._check_leftovers()
        if not alone or turn.harmed or number % 5 == 0:
            self._check_residue()
        if (number + 1) % FULL_LOOK_EVERY == 0:
            self.look_at_all()

    def _goes_beside(self, steps: list[dict[str, Any]]) -> bool:
        """Tell whether a command goes well whatever workers do meanwhile."""
        kind = steps[0]["do"]
        if kind == "fit":
            return len(self.expected.records[actions.MODELS[steps[0]["name"]]]) >= MANY
        # Whom a request was for is not known any more where it was carried out, but not told.
        if any(each.get("update") for each in steps):  # models may be at work for long, or too few
            return False
        return kind in BESIDE and all(len(each.get("values", ())) < 2 for each in steps)

    def _note(self, turn: _Turn) -> None:
        """Remember how long things take, and count."""
        for child, kind in turn.children:
            if child.code == -signal.SIGKILL:
                self.kills[kind] += 1
            elif child.code == 0 and not turn.harmed:
                self.points[kind] = max(self.points[kind], child.said("points")[-1])
                known = self.seconds.get(kind, child.seconds)
                self.seconds[kind] = 0.8 * known + 0.2 * child.seconds
        self.kills["server"] += turn.crashed
        self.overtaken += turn.taken
        self.told_of[turn.way] += 1

    def _check_dropped(self, step: dict[str, Any], said: list[int]) -> None:
        """How many it is depends on who came first; see `_Turn.outcomes`."""

    def _keep_a_copy(self) -> None:
        """The tables would be missing; those of the server are kept."""

    def look_at_all(self) -> None:
        """Do that, and ask the server who waits for whom."""
        super().look_at_all()
        self._check_leftovers()
        query = f"SELECT deadlocks FROM pg_stat_database WHERE datname = '{self.database}'"
        if self.server.run(query) != [(0,)]:
            raise WrongError("the server had to end a deadlock")

    def ask(self, query: str) -> list[tuple[Any, ...]]:
        """Ask the database something, as its administrator."""
        with psycopg.connect(self.server.url(self.database)) as connection:
            return connection.execute(query).fetchall()  # type: ignore[arg-type]

    @property
    def database(self) -> str:
        """The name of the database."""
        name = database_of(self.path)
        assert name is not None
        return name

    def summary(self) -> str:
        """Say what has happened besides kills."""
        stopped = f"{self.told_of['stop']} were stopped, {self.overtaken} of them lost their leases"
        return (
            f"{super().summary()}; {stopped}; {self.swept} files that the server left when it was "
            "killed"
        )


class _Turn:
    """Those who are at work at once, and what happens to them."""

    def __init__(
        self,
        team: Team,
        rng: random.Random,
        client: list[dict[str, Any]] | None,
        n_workers: int,
    ) -> None:
        self.team, self.rng, self.client = team, rng, client
        self.crashed = self.taken = False
        self._before_it_went_on: int | None = None
        self._leases: set[str] = set()
        self._watch: Watch
        self.kinds = ["work"] * n_workers
        self.all_steps = [WORK] * n_workers
        if client is not None:
            self.kinds.insert(0, client[0]["do"])
            self.all_steps.insert(0, client)
        self.way = rng.choices(list(team.WAYS), list(team.WAYS.values()))[0]
        self.victims = [rng.randrange(len(self.kinds))]
        if self.way == "stop" and (n_workers == 0 or self.kinds[self.victims[0]] not in STOPPABLE):
            self.way = "point"
        if len(self.kinds) == 3 and self.way in ("point", "time") and rng.random() < 0.6:
            self.victims = rng.sample(range(3), 2)
        self.children: list[tuple[Child, str]] = []
        self._n_new = 5 if len(self.kinds) > 1 and self.way in ("point", "time") else 0

    # -- what happens ------------------------------------------------------------------------------

    def run(self) -> None:
        """Start them, harm them, and wait until all have ended."""
        self._watch = Watch(self._before)
        self._watch.on_stop, self._watch.on_end = self._on_stop, self._on_end
        for i, (steps, kind) in enumerate(zip(self.all_steps, self.kinds, strict=True)):
            self._start(steps, kind, harmed=i in self.victims)
        in_time = self._watch.run()
        self._wait_for_sessions()
        if not in_time:
            told = [(kind, child.code, child.told) for child, kind in self.children]
            raise WrongError("\n".join([f"it does not end: {told}", *self._watch.left]))
        self._check_codes()

    def _start(self, steps: list[dict[str, Any]], kind: str, *, harmed: bool) -> None:
        harm = self._harm(kind) if harmed else {}
        child = steps_in_child(self.team.path, steps, self.team.sources, **harm.get("in", {}))
        self.children.append((child, kind))
        self._watch.join(child)
        if "after" in harm:
            harm["after"](self._watch, child)

    def _on_end(self, child: Child) -> None:
        """Start another in the place of a worker that was killed, as its supervisor would."""
        if child.code == -signal.SIGKILL and self._n_new and self.way in ("point", "time"):
            self._n_new -= 1
            self._start(WORK, "work", harmed=self._n_new > 0)

    def _harm(self, kind: str) -> dict[str, Any]:
        """Say what is done to a child: in it, or to it."""
        rng, share, way = self.rng, self.rng.random(), self.way
        if kind == "work":  # some carry a batch out, others help a little
            share *= rng.random()
        point = 1 + int(share * (self.team.points[kind] or 40))
        seconds = 1.1 * share * self.team.seconds.get(kind, 1.0)
        if way == "point":
            return {"in": {"die_at": point}}
        if way == "time":
            return {"after": lambda w, c: w.at(seconds, lambda: c.send(signal.SIGKILL))}
        if way == "server":
            down, at_once = 0.3 * rng.random(), rng.random() < 0.5
            return {"after": lambda w, c: w.at(seconds, lambda: self._crash(at_once, down))}
        if way == "stop":
            long, at_point = rng.random() < 0.8, rng.random() < 0.7
            span, inside = (LATER if long else SOON), {"lapses": long}
            if at_point:
                return {"in": {**inside, "stop_at": (1 + point // 3, span)}}
            return {"in": inside, "after": lambda w, c: w.at(seconds, lambda: w.stop(c, span))}
        return {}

    def _crash(self, at_once: bool, down: float) -> None:
        self.crashed = True
        if at_once:
            self.team.server.stop(signal.SIGQUIT)
        else:
            self.team.server.crash()
        time.sleep(down)
        self.team.server.start()

    @property
    def _victim(self) -> Child:
        return self.children[self.victims[0]][0]

    def _on_stop(self) -> None:
        self._leases = self._leases_of(self._victim)

    def _before(self) -> None:
        """See whether others have what the child had that is about to go on."""
        self.taken = bool(self._leases - self._leases_of(self._victim))
        others_ended = all(c.code is not None for c, _ in self.children if c is not self._victim)
        if self.taken and others_ended and self._victim is self.children[0][0] and self.client:
            self._before_it_went_on = self._n_entries()

    def _leases_of(self, child: Child) -> set[str]:
        rows = self.team.ask(
            f"SELECT owner FROM ws.lease WHERE granted AND label LIKE '%:{child.pid}'"
        )
        return {str(owner) for (owner,) in rows}

    def _n_entries(self) -> int:
        ((n,),) = self.team.ask("SELECT count(*) FROM ws.log_entry")
        assert isinstance(n, int)
        return n

    def _wait_for_sessions(self) -> None:
        """Wait until the server has seen that they are gone: one may be about to commit."""
        until = time.monotonic() + 30
        query = (
            "SELECT state, query FROM pg_stat_activity WHERE application_name = 'erasable' "
            f"AND datname = '{self.team.database}'"
        )
        while left := self.team.server.run(query):
            if time.monotonic() > until:
                raise WrongError(f"sessions are left: {left}")
            time.sleep(0.01)

    # -- what may come of it -----------------------------------------------------------------------

    @property
    def harmed(self) -> bool:
        """Tell whether anything but time passed."""
        return self.way != "not"

    @property
    def told(self) -> list[Any]:
        """What the command acknowledged."""
        return self.children[0][0].said("done")

    @property
    def ended(self) -> bool:
        """Tell whether all have ended well."""
        return all(child.code == 0 for child, _ in self.children)

    def _check_codes(self) -> None:
        for i, (child, kind) in enumerate(self.children):
            # A worker that is at work outlives the server.
            out = self.crashed and not (kind == "work" and child.said("opened"))
            allowed = {"WorkspaceServerError"} if out else set()
            if self.way == "stop" and i in self.victims:
                allowed |= {"WorkspaceBusyError", "OvertakenError"}
            kinds = child.said("kind")
            troubles = [] if self.crashed else child.said("trouble")
            if set(kinds) - allowed or troubles or child.said("failed"):
                raise WrongError(f"{kind}: {child.told[-3:]}")
            if child.code not in (0, -9, 1) or (child.code == 1 and not kinds):
                raise WrongError(f"{kind}: exit code {child.code}")
        if self._before_it_went_on not in (None, self._n_entries()):
            raise WrongError("it changed something when others had its leases")

    def outcomes(self, before: Expected) -> Iterator[Expected]:
        """Yield what the workspace may be like: whoever comes first, what was cut off or not."""
        steps = [] if self.client is None else list(self.client)
        workers = [child for child, kind in self.children if kind == "work"]
        must = any(child.code == 0 for child in workers) and self.client is None
        told = [] if self.client is None else self.told
        for n in range(len(told), 1 + min(len(steps), len(told) + 1)):
            if n > len(told) and self.children[0][0].code == 0:
                return
            done = list(steps[:n])
            for i, said in enumerate(told):
                if done[i]["do"] == "request":
                    done[i] = {**done[i], "ids": said}
            yield from _orders(before, done, told, bool(workers), must)


def _orders(
    state: Expected, steps: list[dict[str, Any]], told: list[Any], works: bool, must: bool
) -> Iterator[Expected]:
    """Yield what comes of steps, before, between and after which requests may be carried out."""
    states = [state]
    if works and state.waiting():
        processed = state.after({"do": "process"})
        states = [processed] if must and not steps else [state, processed]
    for each in states:
        if not steps:
            yield each
            continue
        step, then = steps[0], each.after(steps[0])
        if told and step["do"] in ("append", "sync"):
            here = then.records[step["dataset"]]
            if told[0] != [len(step["rows"].keys() - here.keys())]:
                continue
        yield from _orders(then, steps[1:], told[1:], works, must)
