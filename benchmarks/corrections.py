"""Correct one record in a workspace of five models, and erase one person: seconds and memory.

``python benchmarks/corrections.py [--records 300000]`` prints a table. Each is the first change
after the models were fitted, in a process and a copy of the workspace of its own. Seconds are of
the processor, one thread; what a process holds before it carries the request out is told, too.
"""

# ruff: noqa: E402
from __future__ import annotations

import os

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ[_name] = "1"

import argparse
import json
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from erasable.workspace import Workspace
from erasable.workspace.requests import process

N_FEATURES, PER_PERSON = 12, 10
MODELS: dict[str, tuple[str, str | None, dict[str, Any]]] = {
    "ridge": ("linear_model.Ridge", "cost", {}),
    "bayes": ("naive_bayes.GaussianNB", "sick", {}),
    "risk": ("preprocessing.StandardScaler,linear_model.LogisticRegression", "sick", {}),
    "groups": ("cluster.KMeans", None, {"n_clusters": "5"}),
    "forest": ("ensemble.RandomForestClassifier", "sick", {"n_estimators": "10"}),
}


def build(folder: Path, n: int) -> dict[str, Any]:
    """Make the workspace, and fit its models."""
    rng = np.random.default_rng(0)
    X, ids = rng.normal(size=(n, N_FEATURES)), np.arange(n)
    cost = X.sum(axis=1) + rng.normal(size=n)
    features = [f"x{j}" for j in range(N_FEATURES)]
    columns = dict(zip(features, X.T, strict=True))
    table = {
        "id": ids,
        "who": ids // PER_PERSON,
        **columns,
        "cost": cost,
        "sick": (cost > 0).astype(int),
    }
    pq.write_table(pa.table(table), folder / "records.parquet")
    workspace = Workspace.create(folder / "made")
    workspace.add_dataset("records", folder / "records.parquet", id_column="id", subjects=["who"])
    for name, (kind, target, params) in MODELS.items():
        workspace.fit(
            name, kind, datasets=["records"], target=target, features=features, params=params
        )
    return {"records": n}


def change(folder: Path, what: str) -> dict[str, Any]:
    """Take one request in, and measure what it takes to carry it out."""
    workspace = Workspace.open(folder)
    if what == "erase":
        workspace.request([3])
    else:
        workspace.correct("records", ids=[5 * PER_PERSON], values={"x3": 0.25})
    before, began = _peak(), time.process_time()
    done = process.process(workspace.context)
    seconds = time.process_time() - began
    models = {each["model"]: each["treatment"] for each in done.treatments}
    return {"seconds": seconds, "before": before, "peak": _peak(), "models": models}


def _peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10


def main() -> None:
    """Print a line for each kind of request."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--records", type=int, default=300_000)
    parser.add_argument("--part", nargs=2, metavar=("WHAT", "FOLDER"), help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.part:
        what, folder = chosen.part[0], Path(chosen.part[1])
        made = build(folder, chosen.records) if what == "build" else change(folder, what)
        print(json.dumps(made))
        return
    print(f"{chosen.records:,} records of {N_FEATURES} columns, {len(MODELS)} models")
    print("| request | seconds | MB before | MB at most |\n|---|---|---|---|")
    with tempfile.TemporaryDirectory() as name:
        line = [sys.executable, __file__, "--records", str(chosen.records), "--part"]
        subprocess.run([*line, "build", name], check=True, stdout=subprocess.DEVNULL)
        for what in ("erase", "correct"):
            folder = Path(name, what)
            for _ in range(2):  # the first run compiles, or loads what was compiled
                shutil.rmtree(folder, ignore_errors=True)
                shutil.copytree(Path(name, "made"), folder)
                done = subprocess.run(
                    [*line, what, str(folder)], check=True, stdout=subprocess.PIPE, text=True
                )
            found = json.loads(done.stdout.splitlines()[-1])
            assert len(found["models"]) == len(MODELS)
            assert set(found["models"].values()) <= {"deleted", "corrected"}, found
            print(
                f"| {what} | {found['seconds']:.1f} | {found['before']:.0f} | {found['peak']:.0f} |"
            )


if __name__ == "__main__":
    main()
