"""One workspace that gets random commands, one after the other, and what is expected of it."""

from __future__ import annotations

import random
import shutil
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import actions
from children import in_child, steps_in_child
from expected import FEWEST, Expected

__all__ = ["Alone", "WrongError"]

FULL_LOOK_EVERY = 40
MOST_RECORDS = 150
WEIGHTS = {
    "request": 5, "where": 1, "process": 6, "append": 4, "sync": 2, "fit": 3,
    "refresh": 2, "correct": 2, "deny": 1,
    "cancel": 1, "hold": 1, "resume": 1, "verify": 1, "audit": 1, "head": 2,
}  # fmt: skip
CLEANING = {"process", "append", "sync", "fit", "refresh"}


class WrongError(Exception):
    """The workspace is not what it should be."""


class Alone:
    """One workspace, what is expected of it, and the commands that it gets."""

    WEIGHTS = WEIGHTS

    def __init__(self, folder: Path, seed: int) -> None:
        self.folder, self.seed = folder, seed
        self.path, self.sources = folder / "ws", folder / "sources"
        self.sources.mkdir(parents=True)
        self.expected = Expected()
        self.seen: dict[str, Any] = {}
        self.heads: list[Any] = []
        self.n_people = self.n_records = self.revision = 0
        self.points: Counter[str] = Counter()
        self.seconds: dict[str, float] = {}
        self.kills: Counter[str] = Counter()
        self.n_commands = 0
        self._verified: dict[str, str] = {}
        rng = random.Random(f"{seed}/start")
        rows = {
            "visits": self._rows(rng, "visits", 90, []),
            "letters": self._rows(rng, "letters", 30, []),
        }
        for name, each in rows.items():
            self.expected.records[name] = {}
            self.expected = self.expected.after(
                {"do": "append", "dataset": name, "rows": each, "revision": 0}
            )
        in_child(lambda: actions.create(self.path, rows, self.sources))
        self._look(rng, None)

    def people(self) -> list[str]:
        return [f"zp{i:06d}" for i in range(self.n_people)]

    def _rows(
        self, rng: random.Random, dataset: str, n: int, known: list[str]
    ) -> dict[str, list[str]]:
        """Make new records, of new people and of known ones."""
        rows = {}
        for _ in range(n):
            if not known or rng.random() < 0.5:
                self.n_people += 1
                known = [*known, f"zp{self.n_people - 1:06d}"]
            who = [rng.choice(known)] if dataset == "visits" else rng.choices(known, k=2)
            rows[f"zr{self.n_records:06d}"] = who
            self.n_records += 1
        return rows

    # -- commands ----------------------------------------------------------------------------------

    def choose(self, rng: random.Random) -> list[dict[str, Any]]:
        """Choose a command that suits what there is: one step, or several."""
        while True:
            (kind,) = rng.choices(list(self.WEIGHTS), list(self.WEIGHTS.values()))
            steps = getattr(self, f"_{kind}", lambda rng, kind=kind: [{"do": kind}])(rng)
            if steps:
                return steps  # type: ignore[no-any-return]

    def _request(self, rng: random.Random) -> list[dict[str, Any]]:
        present = sorted({p for r in self.expected.records.values() for w in r.values() for p in w})
        steps: list[dict[str, Any]] = []
        for _ in range(rng.randint(1, 3)):
            values = [
                rng.choice(present) if present and rng.random() < 0.8 else rng.choice(self.people())
                for _ in range(rng.randint(1, 3))
            ]
            step: dict[str, Any] = {"do": "request", "values": values}
            steps.append({**step, "hold": "a duty"} if rng.random() < 0.1 else step)
        return steps

    def _correct(self, rng: random.Random) -> list[dict[str, Any]]:
        """The weight of a record: it is one that no record has had."""
        ids = sorted(self.expected.records["visits"])
        if not ids:
            return []
        self.revision += 1
        return [{"do": "correct", "id": rng.choice(ids), "revision": self.revision}]

    def _where(self, rng: random.Random) -> list[dict[str, Any]]:
        ids = sorted(self.expected.records["visits"])
        return [{"do": "request", "where": f"visit = '{rng.choice(ids)}'"}] if ids else []

    def _append(self, rng: random.Random) -> list[dict[str, Any]]:
        """To the smaller data set rather, which erasures would use up."""
        small = min(
            sorted(self.expected.records), key=lambda name: len(self.expected.records[name])
        )
        dataset = rng.choice([small, "visits", "letters"])
        self.revision += 1
        rows = self._rows(rng, dataset, rng.randint(1, 12), rng.sample(self.people(), 5))
        step = {"do": "append", "dataset": dataset, "rows": rows, "revision": self.revision}
        return [self._with_models(rng, step)]

    def _with_models(self, rng: random.Random, step: dict[str, Any]) -> dict[str, Any]:
        """Have models follow, in half of the cases, where they can."""
        left = self.expected.after(step).records[step["dataset"]]
        return {**step, "update": len(left) >= FEWEST and rng.random() < 0.5}

    def _sync(self, rng: random.Random) -> list[dict[str, Any]]:
        """Everything that ever came may be in a source again, also what was erased."""
        dataset = rng.choice(["visits", "letters"])
        present = self.expected.records[dataset]
        ids = rng.sample(
            sorted(present), min(len(present), rng.randint(MOST_RECORDS // 2, MOST_RECORDS))
        )
        rows = {id: present[id] for id in ids}
        length = 1 if dataset == "visits" else 2
        past = [i for i, who in sorted(self.expected.owners.items())
                if len(who) == length and i not in rows and i not in present]  # fmt: skip
        for id in rng.sample(past, min(len(past), 8)):
            rows[id] = self.expected.owners[id]
        rows |= self._rows(rng, dataset, 10, rng.sample(self.people(), 5))
        self.revision += 1
        step = {"do": "sync", "dataset": dataset, "rows": rows, "revision": self.revision}
        return [self._with_models(rng, step)]

    def _fit(self, rng: random.Random) -> list[dict[str, Any]]:
        """Any model that has enough records."""
        names = [
            name
            for name, dataset in sorted(actions.MODELS.items())
            if len(self.expected.records[dataset]) >= FEWEST
        ]
        return [{"do": "fit", "name": rng.choice(names)}] if names else []

    def _refresh(self, rng: random.Random) -> list[dict[str, Any]]:
        """Those that are there, and have enough records."""
        names = [
            name
            for name, dataset in sorted(actions.MODELS.items())
            if len(self.expected.records[dataset]) >= FEWEST and self.seen["models"][name]
        ]
        return [{"do": "refresh", "names": names}] if names else []

    def _verify(self, rng: random.Random) -> list[dict[str, Any]]:
        return [{"do": "verify", "names": [rng.choice(["risk", "segments", "tree"])]}]

    def _audit(self, rng: random.Random) -> list[dict[str, Any]]:
        """With records that never come into the workspace, of people who may be in it."""
        return [{"do": "audit", "rows": self._rows(rng, "visits", 40, self.people())}]

    def _deny(self, rng: random.Random, kind: str = "deny") -> list[dict[str, Any]]:
        """Any request that is pending: one that a killed process has begun is not."""
        wanted = "held" if kind == "resume" else "open"
        ids = [
            id
            for id, each in sorted(self.expected.requests.items())
            if each.state == wanted and self.seen["requests"][id]["state"] == "pending"
        ]
        return [{"do": kind, "id": rng.choice(ids)}] if ids else []

    def _cancel(self, rng: random.Random) -> list[dict[str, Any]]:
        return self._deny(rng, "cancel")

    def _hold(self, rng: random.Random) -> list[dict[str, Any]]:
        return self._deny(rng, "hold")

    def _resume(self, rng: random.Random) -> list[dict[str, Any]]:
        return self._deny(rng, "resume")

    # -- one command, one kill ---------------------------------------------------------------------

    def turn(self, number: int) -> None:
        """Run a command, kill it perhaps, and look."""
        rng = random.Random(f"{self.seed}/{number}")
        steps = self.choose(rng)
        kind = steps[0]["do"]
        way = rng.choices(["point", "time", "not"], [5, 5, 1])[0]
        share = rng.random()
        die_at = 1 + int(share * (self.points[kind] or 40)) if way == "point" else None
        after = 1.1 * share * self.seconds.get(kind, 1.0) if way == "time" else None
        self.doing = f"{kind}, killed at {die_at or after or 'no'} {way}: {steps}"
        self._keep_a_copy()
        child = steps_in_child(self.path, steps, self.sources, die_at)
        code = child.wait(after)
        told, errors = child.said("done"), child.said("error")
        if errors or code not in (0, -9):
            raise WrongError(f"exit code {code}: {errors}")
        self.n_commands += 1
        if code == -9:
            self.kills[kind] += 1
        else:
            self.points[kind] = max(self.points[kind], child.told[-1]["points"])
            known = self.seconds.get(kind, child.seconds)
            self.seconds[kind] = 0.8 * known + 0.2 * child.seconds
        self._hear(steps, told)
        self._resolve(rng, steps, len(told), code == 0)
        if (number + 1) % FULL_LOOK_EVERY == 0:
            self.look_at_all()

    def _hear(self, steps: list[dict[str, Any]], told: list[Any]) -> None:
        for step, said in zip(steps, told, strict=False):
            kind = step["do"]
            if kind == "head":
                self.heads.append(said)
            if kind == "verify":
                self._verified = dict(zip(step["names"], said, strict=True))
            if kind in ("append", "sync"):
                self._check_dropped(step, said)
            if kind in ("request", "correct"):
                self.acknowledged = [*getattr(self, "acknowledged", []), *said]

    def _check_models(self, before: dict[str, Any]) -> None:
        """A model is retired if too few of its records are left, and `verify` says what it is."""
        now = self.seen["models"]
        for name, ids in now.items():
            dataset, known = actions.MODELS[name], before.get(name)
            if ids is not None or known is None:
                continue
            # What it had learned from when it was looked at last; or, if it was fitted since, the
            # newest version.
            left = self.expected.left(dataset, known)
            if len(left) >= FEWEST and len(self.expected.records[dataset]) >= FEWEST:
                raise WrongError(f"{name} is retired, with {len(left)} records left")
        for name, said in self._verified.items():
            lives = {"equal" if each[name] is not None else "retired" for each in (before, now)}
            if said not in lives:
                raise WrongError(f"verify said that {name} is {said}; expected {sorted(lives)}")
        self._verified = {}

    def _check_dropped(self, step: dict[str, Any], said: list[int]) -> None:
        here = self.expected.after(step).records[step["dataset"]]
        dropped = len(step["rows"].keys() - here.keys())
        if said != [dropped]:
            raise WrongError(f"{said} records were suppressed, expected {dropped}")

    def _resolve(
        self, rng: random.Random, steps: list[dict[str, Any]], n_told: int, ended: bool
    ) -> None:
        """Find out whether the step that was cut off was done; it was, or it was not."""
        state = self.expected
        for step in steps[:n_told]:
            state = state.after(step)
        candidates = [state]
        if not ended and n_told < len(steps):
            candidates.append(state.after(steps[n_told]))
        self._look(rng, candidates)
        states = [one["state"] for one in self.seen["requests"].values()]
        if n_told and steps[0]["do"] == "process" and {"swapped", "purged"} & set(states):
            raise WrongError("process has returned, but requests are not completed")
        if ended and steps[0]["do"] in CLEANING:
            self._check_leftovers()
        self._check_residue()

    def _keep_a_copy(self) -> None:
        """Keep the workspace as it is before a command, to be looked at if that goes wrong."""
        shutil.rmtree(self.folder / "before", ignore_errors=True)
        shutil.copytree(self.path, self.folder / "before")

    def _check_leftovers(self) -> None:
        if self.seen["orphans"]:
            raise WrongError(f"nothing refers to {self.seen['orphans']}")

    def _check_residue(self) -> None:
        people, records = self.expected.gone(self.seen)
        left = in_child(lambda: actions.residue(self.path, people, records))
        if left:
            raise WrongError(f"completed, but still there: {left[:10]}")

    def _look(self, rng: random.Random, candidates: Iterable[Expected] | None) -> None:
        heads = [*self.heads[-1:], *rng.sample(self.heads, min(2, len(self.heads)))]
        people = self.people()
        before = self.seen.get("models", {})
        self.seen = in_child(lambda: actions.observe(self.path, people, heads))
        if self.seen["problems"]:
            raise WrongError(f"the log: {self.seen['problems'][:5]}")
        told = []
        for state in [self.expected] if candidates is None else candidates:
            told.append(state.differences(self.seen))
            if not told[-1]:
                state.adopt(self.seen)
                self.expected = state
                break
        else:
            raise WrongError(f"neither before nor after: {told}")
        self._check_models(before)
        lost = set(getattr(self, "acknowledged", [])) - self.seen["requests"].keys()
        if lost:
            raise WrongError(f"acknowledged requests are lost: {sorted(lost)}")
        if set(self.seen["out"]) != self.expected.out:
            raise WrongError(
                f"kept out: {sorted(set(self.seen['out']) ^ self.expected.out)} differ"
            )
        if self.seen["n_out"] != len(self.expected.out) + len(self.expected.records_out):
            raise WrongError(f"{self.seen['n_out']} tokens are kept out")

    def look_at_all(self) -> None:
        """End what is under way; verify all models and heads, and search for numbers and tokens."""
        self.doing = "the full look"
        rng = random.Random(0)
        child = steps_in_child(self.path, [{"do": "process"}], self.sources, None)
        if child.wait() != 0:
            raise WrongError(f"process failed: {child.told}")
        self._resolve(rng, [{"do": "process"}], 1, True)
        if any(self.seen["rows"].values()):
            raise WrongError(f"rows are left: {self.seen['rows']}")
        people, records = self.expected.gone(self.seen)
        asking = {each.what for each in self.expected.requests.values() if each.state == "held"}
        retired = {name for name, ids in self.seen["models"].items() if ids is None}
        wrong = in_child(
            lambda: actions.verify_all(
                self.path, people - asking, records, self.revision, self.heads, retired
            )
        )
        if wrong:
            raise WrongError(f"full look: {wrong[:10]}")

    def summary(self) -> str:
        """Say what has happened."""
        each = ", ".join(f"{kind} {n}" for kind, n in self.kills.most_common())
        return (
            f"{self.kills.total()} kills in {self.n_commands} commands ({each}), "
            f"{len(self.seen.get('requests', ()))} requests, {len(self.expected.out)} people erased"
        )
