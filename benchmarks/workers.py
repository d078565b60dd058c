"""How much faster several workers carry requests out than one, on one workspace in PostgreSQL.

    python benchmarks/workers.py [--database URL] [--records 20000] [--rounds 3]

Writes benchmarks/results/workers.json, and the section "Workers: measured" of docs/workspace.md;
some fifteen minutes. Without a URL it brings up a server of its own, that of the tests. One thread
per worker. Eight models of equal cost are refitted, with every batch of ten requests, by one, two
and four workers in turn, so that what else the machine does falls on all of them alike.
"""

# ruff: noqa: E402
from __future__ import annotations

import os

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ[_name] = "1"

import argparse
import contextlib
import json
import platform
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from workspace_mix import FEATURES, person, write_records

from erasable.workspace import Workspace
from erasable.workspace.context import Context
from erasable.workspace.ledger.address import Address

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "benchmarks" / "results" / "workers.json"
PAGE = ROOT / "docs" / "workspace.md"
HEADING = "## Workers: measured"
WORKERS = (1, 2, 4)
N_MODELS, PER_BATCH, PER_PERSON, N_BATCHES = 8, 10, 10, 3
ESTIMATOR, PARAMETERS = "sklearn.ensemble.GradientBoostingClassifier", {"n_estimators": 20}


@contextlib.contextmanager
def database(url: str | None) -> Iterator[str]:
    """Have a database inside the block: that of the URL, or one of a server of our own."""
    if url is not None:
        yield url
        return
    sys.path[:0] = [str(ROOT / "tests" / "workspace"), str(ROOT / "tests")]
    import postgres_server

    with postgres_server.running() as server:
        yield server.url(server.database())


def make(folder: Path, url: str, n_records: int) -> Workspace:
    """Make a workspace of one data set and eight models."""
    write_records(folder / "records.parquet", n_records, n_records // PER_PERSON)
    workspace = Workspace(Context.create(folder / "ws", Address.parse(url, "workers")))
    workspace.add_dataset(
        "records", folder / "records.parquet", id_column="record", subjects=["person"]
    )
    for i in range(N_MODELS):
        workspace.fit(
            f"model-{i}", ESTIMATOR, datasets=["records"], target="risk",
            features=FEATURES[i : i + 10], params=PARAMETERS,
        )  # fmt: skip
    return workspace


@contextlib.contextmanager
def workers(folder: Path, n: int) -> Iterator[None]:
    """Have processes of `erasable work` inside the block, which then are told to end."""
    line = [sys.executable, "-m", "erasable", "work", "--poll", "0.05", "--workspace", str(folder)]
    processes = [subprocess.Popen(line, stdout=subprocess.DEVNULL) for _ in range(n)]
    try:
        yield
    finally:
        for each in processes:
            each.send_signal(signal.SIGTERM)
        codes = [each.wait(timeout=120) for each in processes]
    if any(codes):
        raise SystemExit(f"workers ended with {codes}; their errors are above")


def batch(workspace: Workspace, people: list[str]) -> float:
    """Ask for people to be erased; return the seconds until all of it is completed."""
    began = time.perf_counter()
    asked = {each.id for each in workspace.request(people)}
    while True:
        states = {each.id: each.state for each in workspace.requests()}
        if all(states[id] == "completed" for id in asked):
            return time.perf_counter() - began
        time.sleep(0.02)


def measure(url: str, n_records: int, n_rounds: int) -> dict[str, Any]:
    """Run all of it in a folder that is removed."""
    people = [person(i) for i in range(n_records // PER_PERSON)]
    seconds: dict[int, list[float]] = {n: [] for n in WORKERS}
    with tempfile.TemporaryDirectory() as name:
        workspace = make(Path(name), url, n_records)
        for _ in range(n_rounds):
            for n in WORKERS:
                with workers(Path(name, "ws"), n):
                    for k in range(1 + N_BATCHES):
                        some = [people.pop() for _ in range(PER_BATCH)]
                        took = batch(workspace, some)
                        if k:  # with the first, modules are imported
                            seconds[n].append(took)
                print(f"{n} workers: {statistics.median(seconds[n]):.2f} s a batch", flush=True)
        verdicts = {each.verdict for each in workspace.verify()}
        assert verdicts == {"equal"}, verdicts
        costs = [workspace.model(f"model-{i}")["versions"][0]["seconds"] for i in range(N_MODELS)]
    return {
        "records": n_records, "models": N_MODELS, "requests": PER_BATCH,
        "batches": len(seconds[1]), "seconds": {str(n): seconds[n] for n in WORKERS},
        "costs": costs, "cores": len(os.sched_getaffinity(0)), "load": os.getloadavg()[2],
        "machine": f"{platform.machine()}, Python {platform.python_version()}",
    }  # fmt: skip


def section(found: dict[str, Any]) -> str:
    """Write the section of the page."""
    medians = {n: statistics.median(found["seconds"][str(n)]) for n in WORKERS}
    rows = [
        f"| {n} | {took:.2f} | {found['requests'] / took:.2f} | {found['models'] / took:.2f} "
        f"| {medians[1] / took:.2f} |"
        for n, took in medians.items()
    ]
    cores = found["cores"]
    return "\n".join(
        [
            HEADING,
            "",
            "<!-- Written by benchmarks/workers.py; do not edit. -->",
            "",
            f"{found['models']} models of equal cost (`{ESTIMATOR}`, refitted: "
            f"{statistics.median(found['costs']):.2f} s each) of {found['records']:,} records, in "
            f"one workspace in PostgreSQL; the median of {found['batches']} batches of "
            f"{found['requests']} requests, from the request to the receipts. One thread per "
            f"worker, {cores} cores, shared with the server and the client: more than {cores} "
            "workers cannot be faster here.",
            "",
            "| workers | seconds a batch | requests a second | model updates a second "
            "| against one |",
            "|---:|---:|---:|---:|---:|",
            *rows,
            "",
            "More requests in a batch cost little more: most of the time is for refitting the "
            f"models, once per batch. {found['machine']}.",
            "",
        ]
    )


def main() -> None:
    """Measure, and write the results."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--database", help="URL of PostgreSQL; by default a server of our own")
    parser.add_argument("--records", type=int, default=20_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--dry", action="store_true", help="print, and write nothing")
    asked = parser.parse_args()
    wanted = len(WORKERS) * asked.rounds * (1 + N_BATCHES) * PER_BATCH
    if asked.records // PER_PERSON < wanted:
        parser.error(f"{asked.rounds} rounds erase {wanted} people; give {wanted * PER_PERSON:,} "
                     "records or more")  # fmt: skip
    with database(asked.database) as url:
        found = measure(url, asked.records, asked.rounds)
    text = section(found)
    print(text)
    if asked.dry:
        return
    RESULTS.write_text(json.dumps(found, indent=1) + "\n")
    before, _, after = PAGE.read_text().partition(f"\n{HEADING}\n")
    rest = re.search(r"\n## .*", after, flags=re.DOTALL)
    PAGE.write_text(before.rstrip() + "\n\n" + text + (rest.group() if rest else ""))


if __name__ == "__main__":
    main()
