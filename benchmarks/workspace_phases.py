"""The phases of the workspace benchmark, each in a process of its own, so that its memory is seen.

    python benchmarks/workspace_phases.py PHASE '{"folder": ..., ...}'

Prints what was measured as JSON. Times are seconds on the wall; beside them stand those that this
process worked (cpu), so that what it waited for can be told from what it did.
"""

# ruff: noqa: E402
from __future__ import annotations

import os

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ[_name] = "1"

import importlib
import json
import multiprocessing
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from workspace_mix import MODELS, Model, leaving, write_records

from erasable.workspace import Workspace

TOGETHER = 10  # requests in a transaction


def timed(action: Callable[[], Any]) -> tuple[dict[str, float], Any]:
    """Run an action; return its seconds, on the wall and of this process, and what it returned."""
    began, worked = time.perf_counter(), time.process_time()
    done = action()
    return {"wall": time.perf_counter() - began, "cpu": time.process_time() - worked}, done


def draw(path: str, n: int, n_subjects: int) -> dict[str, Any]:
    """Draw the records."""
    write_records(Path(path), n, n_subjects)
    return {}


def add(folder: str, source: str, database: str | None = None) -> dict[str, Any]:
    """Make a workspace, and add the records to it."""
    workspace = Workspace.create(folder, database=database)
    took, _ = timed(
        lambda: workspace.add_dataset("records", source, id_column="record", subjects=["person"])
    )
    return took


def fit(folder: str) -> dict[str, Any]:
    """Fit all models."""
    workspace = Workspace.open(folder)
    return {"models": {name: timed(lambda n=name: _fit(workspace, n))[0] for name in MODELS}}


def _fit(workspace: Workspace, name: str) -> None:
    model = MODELS[name]
    workspace.fit(
        name, model.recipe, datasets=["records"], target=model.target, features=model.features,
        params=model.params,
    )  # fmt: skip


def ask(folder: str, n_subjects: int, n_requests: int) -> dict[str, Any]:
    """Take in the requests of the batch."""
    began, ended = _ask(folder, leaving(n_subjects, n_requests))
    return {"per_second": n_requests / (ended - began)}


def _ask(folder: str, people: list[str], barrier: Any = None) -> tuple[float, float]:
    """Take in requests; return when that began and when it ended."""
    workspace = Workspace.open(folder)
    workspace.status()  # whatever is opened on first use
    if barrier is not None:
        barrier.wait()
    began = time.time()
    for start in range(0, len(people), TOGETHER):
        workspace.request(people[start : start + TOGETHER])
    return began, time.time()


def acknowledge(
    folder: str, n_subjects: int, n_before: int, n_requests: int, clients: int
) -> dict[str, Any]:
    """Take in requests of several clients at once, each of other people; nobody carries them out.

    The people are those after the first `n_before`.
    """
    people = leaving(n_subjects, n_before + n_requests)[n_before:]
    shares = [people[k::clients] for k in range(clients)]
    if clients == 1:
        times = [_ask(folder, shares[0])]
    else:
        context = multiprocessing.get_context("spawn")
        with context.Manager() as manager, context.Pool(clients) as pool:
            barrier = manager.Barrier(clients)
            times = pool.starmap(_ask, [(folder, share, barrier) for share in shares], 1)
    took = max(end for _, end in times) - min(began for began, _ in times)
    return {"requests": len(people), "per_second": len(people) / took}


def process(folder: str) -> dict[str, Any]:
    """Carry the batch out."""
    workspace = Workspace.open(folder)
    # Imported before the clock runs, as scikit-learn is for its fits.
    importlib.import_module("erasable.workspace.requests.process")
    importlib.import_module("sklearn.ensemble")
    # What the workspace says of models and phases is then time of the processor, too.
    wall, time.perf_counter = time.perf_counter, time.process_time
    began = wall()
    took, done = timed(workspace.process)
    return {
        "wall": wall() - began,
        "cpu": took["cpu"],
        "phases": done.phases,
        "requests": len(done.requests),
        "records": done.n_records,
        "models": {each["model"]: each["seconds"] for each in done.treatments},
        "treatments": {each["model"]: each["treatment"] for each in done.treatments},
    }


def verify(folder: str) -> dict[str, Any]:
    """Train all models again, and hold the log and the index of people against the data."""
    workspace = Workspace.open(folder)
    took, verdicts = timed(workspace.verify)
    wrong = [f"{each.model}: {each.verdict}" for each in verdicts if each.verdict != "equal"]
    assert not wrong, wrong
    assert len(verdicts) == len(MODELS)
    assert not workspace.verify_log()
    return took


def start(folder: str) -> dict[str, Any]:
    """Measure how long commands take to begin."""
    found = {}
    for name, command in {"status": ["status"], "help": ["status", "--help"]}.items():
        line = [sys.executable, "-m", "erasable", *command, "--workspace", folder]
        run = lambda line=line: subprocess.run(line, check=True, capture_output=True)  # noqa: E731
        run()
        found[name] = statistics.median(timed(run)[0]["wall"] for _ in range(5))
    return found


def refit(source: str, out: str, n_subjects: int, n_requests: int) -> dict[str, Any]:
    """Do without a workspace: write the records without those people, and fit ten models anew."""
    reading, kept = timed(lambda: _rewritten(source, out, leaving(n_subjects, n_requests)))
    making, arrays = timed(partial(_arrays, kept))
    del kept
    models = {name: _refit(model, arrays) for name, model in MODELS.items()}
    return {"rewriting": reading, "making": making, "models": models}


def _rewritten(source: str, out: str, gone: list[str]) -> pa.Table:
    table = pq.read_table(source)
    kept = table.filter(pc.invert(pc.is_in(table["person"], pa.array(gone))))
    pq.write_table(kept, out)
    return kept


def _arrays(table: pa.Table) -> dict[str, Any]:
    made = {name: table[name].to_numpy() for name in ("value", "risk")}
    numbers = next(model.features for model in MODELS.values() if model.features != ["text"])
    made["numbers"] = np.column_stack([table[name].to_numpy() for name in numbers])
    made["text"] = table["text"].to_pylist()
    return made


def _refit(model: Model, arrays: dict[str, Any]) -> dict[str, float]:
    X = arrays["text" if model.features == ["text"] else "numbers"]
    y = None if model.target is None else arrays[model.target]
    return timed(lambda: model.twin.fit(X, y))[0]


PHASES = {
    each.__name__: each
    for each in (draw, add, fit, ask, acknowledge, process, verify, start, refit)
}


def main() -> None:
    """Run the phase that is named."""
    found = PHASES[sys.argv[1]](**json.loads(sys.argv[2]))
    found["peak_gib"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(json.dumps(found))


if __name__ == "__main__":
    main()
