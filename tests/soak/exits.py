"""End hundreds of processes on a busy machine: ``python tests/soak/exits.py``.

Each runs a command of `erasable`, and has to end with that command's exit code. A thread that is
alive when a process ends can abort it, after its command has succeeded; that takes a machine with
more to do than processors, and many processes. Most are forked from one that has imported what
commands import, which saves time, and end as any other: Python and C++ take down what there is.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

os.environ.setdefault("OMP_NUM_THREADS", "1")
HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent)]

from cli.running import make_tiny  # noqa: E402

__all__ = ["Command", "Forks", "afresh", "busy", "commands", "end", "how", "main"]

ENOUGH = 30
_EVERY = 8  # one process of so many is begun afresh, as from a shell
_SELECT = (
    "visits.csv", "--id", "visit", "--target", "sick", "--k", "5", "--staying", "0.6",
    "--features", "age,dose",
)  # fmt: skip

_LOOP = """
import os, time
parent, end = os.getppid(), time.monotonic() + {seconds}
while time.monotonic() < end and os.getppid() == parent:
    for _ in range(1_000_000):
        pass
"""

_FORKS = """
import gc, json, os, sys
{prelude}
gc.freeze()  # what is imported is not gone through again by each
for line in iter(sys.stdin.readline, ""):
    asked = json.loads(line)
    child = os.fork()
    if child == 0:
        os.chdir(asked["folder"])
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        output = os.open(asked["output"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(output, 1)
        os.dup2(output, 2)
        sys.argv = ["erasable", *asked["words"]]
        {program}
        sys.exit(0)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""
_IMPORTS = """
import erasable.cli.app, erasable.workspace.facade, erasable.workspace.data.sources
import erasable.workspace.models.fitting, erasable.workspace.requests.process
import pyarrow.parquet, pyarrow.csv, sklearn.tree, pandas
from erasable.cli import run as main
"""


@dataclass(frozen=True)
class Command:
    """A command line, and the exit code that it has to end with."""

    words: tuple[str, ...]
    code: int = 0


@contextmanager
def busy(loops: int, seconds: float) -> Iterator[None]:
    """Keep processors busy; the loops end with the block, with this process, or in time."""
    code = _LOOP.format(seconds=seconds)
    running = [subprocess.Popen([sys.executable, "-c", code]) for _ in range(loops)]
    try:
        yield
    finally:
        for each in running:
            each.kill()
            each.wait()


class Forks:
    """Runs commands, each in a fork of a process that has imported what they need; a context.

    Parameters
    ----------
    folder : Path
        Where commands run.
    output : Path
        What the last of them printed.
    prelude, program : str
        What to import, and what to run of it.
    """

    def __init__(
        self, folder: Path, output: Path, prelude: str = _IMPORTS, program: str = "main()"
    ) -> None:
        self._asked = {"folder": str(folder), "output": str(output)}
        self._code = _FORKS.format(prelude=prelude, program=program)

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(
            [sys.executable, "-W", "ignore", "-c", self._code],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        return self

    def __exit__(self, *raised: object) -> None:
        self._process.kill()
        self._process.communicate()

    def run(self, words: Sequence[str]) -> int:
        """Return the exit code, or minus the signal."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(json.dumps({**self._asked, "words": list(words)}), file=self._process.stdin)
        self._process.stdin.flush()
        return int(self._process.stdout.readline())


def afresh(folder: Path, output: Path, words: Sequence[str]) -> int:
    """Run a command in a process of its own, as from a shell; return what `Forks.run` does."""
    with output.open("wb") as file:
        return subprocess.run(
            [sys.executable, "-m", "erasable", *words],
            cwd=folder, stdin=subprocess.DEVNULL, stdout=file, stderr=file, check=False,
        ).returncode  # fmt: skip


def commands(seed: int, folder: Path) -> Iterator[Command]:
    """Think of commands for the workspace of `cli.running.make_tiny`, without end.

    Data sets are added from CSV, Parquet and a folder of it; people ask to leave, and do.
    """
    rng = random.Random(seed)
    (folder / "parts").mkdir()
    data = (folder / "more.parquet").read_bytes()
    (folder / "parts" / "0.parquet").write_bytes(data)
    lines = (folder / "visits.csv").read_text().splitlines()
    (folder / "ragged.csv").write_text("\n".join([*lines, "1,2"]) + "\n")
    (folder / "damaged.parquet").write_bytes(data[:-40] + bytes(36) + data[-4:])
    (folder / "other.pub").write_bytes(_other_key())
    options = ("--id", "visit", "--subject", "patient,mail:email")
    adds = ("visits.csv", "more.csv", "more.parquet", "parts")
    fails = ("ragged.csv", "damaged.parquet", "nowhere.csv", "visits.txt")
    patients = iter(range(7, 20))
    always = [
        *4 * [Command(("log", "verify"))],
        *4 * [Command(("request", "--where", "age < 30", "--dataset", "visits", "--dry-run"))],
        *2 * [Command(("verify",))],
        Command(("status",)),
        Command(("request", "patient-8", "--dry-run")),
        Command(("model", "predict", "risk", "more.parquet", "--output", "out.parquet")),
        Command(("model", "predict", "risk", "more.csv", "--output", "out.csv")),
        Command(("select", *_SELECT)),
        Command(("receipt", "check", "receipt.json", "--key", "other.pub"), 1),
        Command(("request", "--where", "height < 3", "--dataset", "visits", "--dry-run"), 2),
        Command(("status", "--workspace", "nowhere"), 2),
    ]
    n = 0
    while True:
        n += 1
        chosen = rng.choice([None, None, None, "adds", "adds", "leaves", "fails"])
        if chosen == "adds":
            yield Command(("dataset", "add", f"d{n}", rng.choice(adds), *options))
        elif chosen == "fails":
            yield Command(("dataset", "add", f"d{n}", rng.choice(fails), *options), 2)
        elif chosen == "leaves" and (patient := next(patients, None)) is not None:
            yield Command(("request", f"patient-{patient}"))
            yield Command(("process",))
        else:
            yield rng.choice(always)


def _other_key() -> bytes:
    key = Ed25519PrivateKey.generate().public_key()
    return key.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)


def how(code: int) -> str:
    """Say how a process ended.

    >>> how(-signal.SIGABRT), how(2)
    ('SIGABRT', 'exit code 2')
    """
    return signal.Signals(-code).name if code < 0 else f"exit code {code}"


def end(
    folder: Path, some: Iterable[Command], seconds: float, loops: int
) -> tuple[list[str], Counter[int]]:
    """Run commands beside busy loops, for at most so many seconds.

    Returns
    -------
    wrong : list of str
        Those that ended otherwise, and what they printed.
    codes : Counter
        How many ended with which code.
    """
    output, wrong, codes = folder.parent / "output", list[str](), Counter[int]()
    until = time.monotonic() + seconds
    with Forks(folder, output) as forks, busy(loops, 2 * seconds):
        for number, command in enumerate(some):
            if time.monotonic() > until:
                break
            fresh = number % _EVERY == 0
            code = afresh(folder, output, command.words) if fresh else forks.run(command.words)
            codes[code] += 1
            if code != command.code:
                told = output.read_text(errors="replace")[-2000:]
                wrong.append(f"erasable {' '.join(command.words)}: {how(code)}\n{told}")
    return wrong, codes


def main(arguments: list[str] | None = None) -> int:
    """Run it; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--processes", type=int, default=300)
    parser.add_argument("--loops", type=int, default=(os.cpu_count() or 1) + 1)
    parser.add_argument("--minutes", type=float, default=5.0, help="how long it may take")
    chosen = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="erasable-soak-") as name:
        folder = Path(name, "ws")
        folder.mkdir()
        make_tiny(folder)
        some = itertools.islice(commands(chosen.seed, folder), chosen.processes)
        wrong, codes = end(folder, some, 60 * chosen.minutes, chosen.loops)
    for each in wrong:
        print(each)
    ends = ", ".join(f"{n} with {how(code)}" for code, n in sorted(codes.items()))
    print(f"{codes.total()} processes ended beside {chosen.loops} busy loops: {ends}")
    enough = min(ENOUGH, chosen.processes)
    if codes.total() < enough:
        print(f"expected {enough} or more; give it more --minutes")
    print(f"{len(wrong)} ended otherwise than they should")
    return int(bool(wrong) or codes.total() < enough)


if __name__ == "__main__":
    sys.exit(main())
