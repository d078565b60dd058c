"""Files with changed fields, by the ten thousand: ``python tests/soak/files.py --seed 2``.

Files are used by other processes: one that a signal ends, or that computes for more than five
seconds, counts as a failure and is replaced. Ends with 1 where there was any.
"""

from __future__ import annotations

import argparse
import os
import resource
import signal
import sys
import time
from collections import Counter
from dataclasses import dataclass
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(_name, "1")
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

LIMIT, PATIENCE = 5.0, 60.0
"""Seconds that a process may compute for one file, and that it may take on a machine under load."""
MEMORY = 8 * 2**30
"""Bytes of address space: whoever asks for more gets a MemoryError."""


def main(arguments: list[str] | None = None) -> int:
    """Use the files; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--files", type=int, default=10_000)
    parser.add_argument("--first", type=int, default=0, help="number of the first")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=None, help="stop after so many")
    parser.add_argument("--only", default="", help="cases whose name holds this")
    parser.add_argument("--without", default=None, help="no cases whose name begins with this")
    parser.add_argument("--verbose", action="store_true", help="tell of every failure")
    chosen = parser.parse_args(arguments)
    cases = _prepare(chosen.only, chosen.without)
    names = [case.name for case in cases]
    wrong, n_done = _run(cases, range(chosen.first, chosen.first + chosen.files), chosen)
    kinds: Counter[str] = Counter()
    for number, case, told, what in wrong:
        kinds[_kind(what)] += 1
        if chosen.verbose or kinds[_kind(what)] <= 3:
            print(f"{number}: {names[case]}: {told}\n    {what}")
    print(f"files: {n_done:,} of {len(names)} models from seed {chosen.seed}, {len(wrong)} wrong")
    for kind, count in kinds.most_common():
        print(f"  {count} {kind}")
    return int(bool(wrong) or n_done == 0)


def _kind(what: str) -> str:
    if what.startswith(("signal", "hang")):
        return what.partition(" in ")[0]
    return what.partition(": ")[0].partition("raised ")[2]


def _prepare(only: str, without: str | None) -> list[Any]:
    """Fit models, and use their files as they are: kernels are compiled and loaded after that."""
    from strangers.cases import cases, prepare
    from strangers.using import hold

    chosen = [
        prepare(case)
        for case in cases()
        if only in case.name and not (without and case.name.startswith(without))
    ]
    for case in chosen:
        wrong = hold(case, case.file)
        if wrong is not None:
            raise SystemExit(f"{case.name}, unchanged: {wrong}")
    return chosen


@dataclass
class _Worker:
    process: Any
    pipe: Connection
    number: int = -1
    told: str = ""
    case: int = -1
    since: float = 0.0
    computed: float = 0.0

    def begin(self) -> None:
        """Start the clocks."""
        self.since, self.computed = time.monotonic(), self._cpu()

    def hangs(self) -> bool:
        """Tell whether it has taken too long for a file."""
        took = time.monotonic() - self.since
        return took > LIMIT and (took > PATIENCE or self._cpu() - self.computed > LIMIT)

    def _cpu(self) -> float:
        """Return the seconds that the process has computed; how long it is there, elsewhere."""
        try:
            fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            return time.monotonic()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _run(
    cases: list[Any], numbers: range, chosen: argparse.Namespace
) -> tuple[list[tuple[int, int, str, str]], int]:
    """Hand out numbers to workers; return what was wrong, and how many files were used."""
    ahead = iter(numbers)
    wrong: list[tuple[int, int, str, str]] = []
    n_done = 0
    end = None if chosen.seconds is None else time.monotonic() + chosen.seconds
    workers = [_start(cases, chosen.seed) for _ in range(chosen.workers)]
    while workers:
        for pipe in wait([worker.pipe for worker in workers], timeout=0.2):
            worker = next(worker for worker in workers if worker.pipe is pipe)
            try:
                kind, *rest = worker.pipe.recv()
            except EOFError:
                worker.process.join()
                code = worker.process.exitcode
                name = signal.Signals(-code).name if code < 0 else f"exit {code}"
                wrong.append((worker.number, worker.case, worker.told, f"signal {name}"))
                n_done += 1
                workers[workers.index(worker)] = _start(cases, chosen.seed)
                continue
            if kind == "begins":
                worker.case, worker.told = rest
                continue
            if kind == "done":
                n_done += 1
                if rest[0] is not None:
                    wrong.append((worker.number, worker.case, worker.told, rest[0]))
            worker.number = -1 if end is not None and time.monotonic() > end else next(ahead, -1)
            worker.begin()
            worker.pipe.send(worker.number)
            if worker.number < 0:
                worker.process.join()
                workers.remove(worker)
        for worker in list(workers):
            if worker.hangs():
                worker.process.kill()
                worker.process.join()
                wrong.append((worker.number, worker.case, worker.told, "hang"))
                n_done += 1
                workers[workers.index(worker)] = _start(cases, chosen.seed)
    return wrong, n_done


def _start(cases: list[Any], seed: int) -> _Worker:
    context = get_context("fork")  # all that is imported and compiled is there
    ours, theirs = context.Pipe()
    process = context.Process(target=_work, args=(theirs, cases, seed), daemon=True)
    process.start()
    theirs.close()
    worker = _Worker(process, ours)
    worker.begin()
    return worker


def _work(pipe: Connection, cases: list[Any], seed: int) -> None:
    """Use files until there is none left."""
    import numpy as np

    from strangers.using import hold, mutated

    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    pipe.send(("ready",))
    while (number := pipe.recv()) >= 0:
        which = int(np.random.default_rng([seed, number, 1]).integers(len(cases)))
        file, told = mutated(cases[which], seed, number)
        pipe.send(("begins", which, told))
        pipe.send(("done", hold(cases[which], file)))


if __name__ == "__main__":
    sys.exit(main())
