"""Kill processes at random, by the hundred, on one workspace: ``python tests/soak/kills.py``.

Children run random commands; each is killed (kill -9) at a random point or time, or not at all.
After each the workspace is held against what is expected: what was acknowledged is there, what a
command does is done once or not at all, the log verifies and extends every head seen before, no
file is there that nothing refers to, and of a completed request no trace is left.

With ``--database postgres`` the ledger is on a server of the soak's own. There requests are carried
out by several workers at once, with or without a command beside them; the server is killed, too,
and children are stopped until others have what they had.

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
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")
HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent), str(HERE.parent / "workspace")]

import actions  # noqa: E402
import backends  # noqa: E402
import postgres_server  # noqa: E402
from alone import Alone, WrongError  # noqa: E402
from team import Team  # noqa: E402

ENOUGH = {"sqlite": 500, "postgres": 300}


def main(arguments: list[str] | None = None, folder: Path | None = None) -> int:
    """Run it, in a folder that is not there yet; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--database", choices=list(ENOUGH), default="sqlite")
    parser.add_argument("--seed", type=int, default=None, help="by default another each time")
    parser.add_argument("--kills", type=int, default=None, help="how many make it pass")
    parser.add_argument("--minutes", type=float, default=20.0, help="how long it may take")
    chosen = parser.parse_args(arguments)
    seed = random.SystemRandom().randrange(10**6) if chosen.seed is None else chosen.seed
    folder = folder or Path(tempfile.mkdtemp(prefix="erasable-soak-"))
    kills = ENOUGH[chosen.database] if chosen.kills is None else chosen.kills
    print(f"killing processes on {chosen.database}, seed {seed}", flush=True)
    if chosen.database == "sqlite":
        return run(folder, seed, kills, chosen.minutes, None)
    with postgres_server.running() as server, backends.on(server):
        code = run(folder, seed, kills, chosen.minutes, server)
        if code:  # what the server has in memory is written out, and all of it is kept
            server.stop()
            shutil.copytree(server.folder, folder / "server", ignore=shutil.ignore_patterns(".s.*"))
    return code


def run(
    folder: Path, seed: int, kills: int, minutes: float, server: postgres_server.Server | None
) -> int:
    """Kill so many in a new workspace in a folder, which stays if that goes wrong."""
    began, number, told = time.monotonic(), 0, ""
    soak: Alone | None = None
    try:
        with tempfile.TemporaryDirectory() as warm:
            actions.warm_up(Path(warm))
        soak = Alone(folder, seed) if server is None else Team(folder, seed, server)
        while soak.kills.total() < kills:
            if time.monotonic() - began > 60 * minutes:
                told = f"only {soak.kills.total()} of {kills} kills in time"
                break
            soak.turn(number)
            number += 1
            if number % 50 == 0:
                print(f"  {soak.kills.total()} kills in {number} commands", flush=True)
        soak.look_at_all()
    except (WrongError, AssertionError) as failure:
        told = f"command {number} ({getattr(soak, 'doing', 'start')}): {failure}"
    if soak is not None:
        print(f"{soak.summary()}, {time.monotonic() - began:.0f} s")
    if told:
        print(f"FAILED: {told}\nseed {seed}; the workspace, and as it was before: {folder}")
        return 1
    shutil.rmtree(folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
