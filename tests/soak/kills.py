"""Kill processes at random, by the hundred, on one workspace: ``python tests/soak/kills.py``.

Children run random commands; each is killed (kill -9) at a random point or time, or not at all.
After each the workspace is held against what is expected: what was acknowledged is there, what a
command does is done once or not at all, the log verifies and extends every head seen before, no
file is there that nothing refers to, and of a completed request no trace is left.

The seed decides commands, points and fractions of a command's time. What a time means depends on
the machine, so that a failure at a point is repeated by the seed, and one at a time is likely to.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")
HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent), str(HERE.parent / "workspace")]

import actions  # noqa: E402
from expected import FEWEST, Expected  # noqa: E402

ENOUGH, FULL_LOOK_EVERY = 500, 40
MOST_RECORDS = 150
WEIGHTS = {
    "request": 5, "where": 1, "process": 6, "append": 4, "sync": 2, "fit": 3, "deny": 1,
    "cancel": 1, "hold": 1, "resume": 1, "verify": 1, "head": 2,
}  # fmt: skip
CLEANING = {"process", "append", "sync", "fit"}


class WrongError(Exception):
    """The workspace is not what it should be."""


class Soak:
    """One workspace, what is expected of it, and the commands that it gets."""

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
        actions.in_child(lambda: actions.create(self.path, rows, self.sources))
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
            (kind,) = rng.choices(list(WEIGHTS), list(WEIGHTS.values()))
            steps = getattr(self, f"_{kind}", lambda rng, kind=kind: [{"do": kind}])(rng)
            if steps:
                return list(steps)

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
        return [{"do": "append", "dataset": dataset, "rows": rows, "revision": self.revision}]

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
        return [{"do": "sync", "dataset": dataset, "rows": rows, "revision": self.revision}]

    def _fit(self, rng: random.Random) -> list[dict[str, Any]]:
        """Any model that has enough records."""
        names = [
            name
            for name, dataset in sorted(actions.MODELS.items())
            if len(self.expected.records[dataset]) >= FEWEST
        ]
        return [{"do": "fit", "name": rng.choice(names)}] if names else []

    def _verify(self, rng: random.Random) -> list[dict[str, Any]]:
        return [{"do": "verify", "names": [rng.choice(["risk", "segments", "tree"])]}]

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
        shutil.rmtree(self.folder / "before", ignore_errors=True)
        shutil.copytree(self.path, self.folder / "before")
        child = actions.steps_in_child(self.path, steps, self.sources, die_at)
        code = child.wait(after)
        told = [each["done"] for each in child.told if "done" in each]
        errors = [each["error"] for each in child.told if "error" in each]
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
            if kind == "verify" and set(said) != {"equal"}:
                raise WrongError(f"verify said {said}")
            if kind in ("append", "sync"):
                here = self.expected.after(step).records[step["dataset"]]
                dropped = len(step["rows"].keys() - here.keys())
                if said != [dropped]:
                    raise WrongError(f"{said} records were suppressed, expected {dropped}")
            if kind == "request":
                self.acknowledged = [*getattr(self, "acknowledged", []), *said]

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
        if ended and steps[0]["do"] in CLEANING and self.seen["orphans"]:
            raise WrongError(f"nothing refers to {self.seen['orphans']}")
        people, records = self.expected.gone(self.seen)
        left = actions.in_child(lambda: actions.residue(self.path, people, records))
        if left:
            raise WrongError(f"completed, but still there: {left[:10]}")

    def _look(self, rng: random.Random, candidates: list[Expected] | None) -> None:
        heads = [*self.heads[-1:], *rng.sample(self.heads, min(2, len(self.heads)))]
        people = self.people()
        self.seen = actions.in_child(lambda: actions.observe(self.path, people, heads))
        if self.seen["problems"]:
            raise WrongError(f"the log: {self.seen['problems'][:5]}")
        told = []
        for state in candidates or [self.expected]:
            told.append(state.differences(self.seen))
            if not told[-1]:
                state.adopt(self.seen)
                self.expected = state
                break
        else:
            raise WrongError(f"neither before nor after: {told}")
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
        child = actions.steps_in_child(self.path, [{"do": "process"}], self.sources, None)
        if child.wait() != 0:
            raise WrongError(f"process failed: {child.told}")
        self._resolve(rng, [{"do": "process"}], 1, True)
        people, records = self.expected.gone(self.seen)
        asking = {each.what for each in self.expected.requests.values() if each.state == "held"}
        wrong = actions.in_child(
            lambda: actions.verify_all(
                self.path, people - asking, records, self.revision, self.heads, self.expected.thin
            )
        )
        if wrong:
            raise WrongError(f"full look: {wrong[:10]}")


def main(arguments: list[str] | None = None) -> int:
    """Run it; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seed", type=int, default=None, help="by default another each time")
    parser.add_argument("--kills", type=int, default=ENOUGH, help="how many make it pass")
    parser.add_argument("--minutes", type=float, default=20.0, help="how long it may take")
    chosen = parser.parse_args(arguments)
    seed = random.SystemRandom().randrange(10**6) if chosen.seed is None else chosen.seed
    folder = Path(tempfile.mkdtemp(prefix="erasable-soak-"))
    began, number, told = time.monotonic(), 0, ""
    print(f"killing processes, seed {seed}", flush=True)
    soak = None
    try:
        with tempfile.TemporaryDirectory() as warm:
            actions.warm_up(Path(warm))
        soak = Soak(folder, seed)
        while soak.kills.total() < chosen.kills:
            if time.monotonic() - began > 60 * chosen.minutes:
                told = f"only {soak.kills.total()} of {chosen.kills} kills in time"
                break
            soak.turn(number)
            number += 1
            if number % 50 == 0:
                print(f"  {soak.kills.total()} kills in {number} commands", flush=True)
        soak.look_at_all()
    except (WrongError, AssertionError) as failure:
        told = f"command {number} ({getattr(soak, 'doing', 'start')}): {failure}"
    took = time.monotonic() - began
    if soak is not None:
        each = ", ".join(f"{kind} {n}" for kind, n in soak.kills.most_common())
        print(
            f"{soak.kills.total()} kills in {soak.n_commands} commands ({each}), "
            f"{len(soak.seen.get('requests', ()))} requests, {len(soak.expected.out)} people "
            f"erased, {took:.0f} s"
        )
    if told:
        print(f"FAILED: {told}\nseed {seed}; the workspace, and as it was before: {folder}")
        return 1
    shutil.rmtree(folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
