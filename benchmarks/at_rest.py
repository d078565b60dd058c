"""A deletion from a model that sleeps on disk, against a fit of scikit-learn's in the same run.

    python benchmarks/at_rest.py models  [--records 100000 1000000] [--features 20]
    python benchmarks/at_rest.py process [--records 200000 1000000] [--features 12]

`models`: load, delete ten records and save, from the files of ``save(path, records=True)``.
`process`: one person of ten records leaves a workspace of five models: `erasable process` in a new
process, the start of Python included. Both print seconds and ratios; the first deletion, which is
apart, is the one that finds the disk still busy with what the fit has written.
"""

# ruff: noqa: E402
from __future__ import annotations

import os

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ[_name] = "1"
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # a user's Python keeps its bytecode

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import sklearn.cluster
import sklearn.decomposition
import sklearn.ensemble
import sklearn.linear_model
import sklearn.naive_bayes
import sklearn.neighbors
import sklearn.preprocessing

import erasable
from erasable import load

DELETIONS, EACH = 5, 10
MODELS: dict[str, tuple[str, dict[str, Any], str | None]] = {
    "StandardScaler": ("preprocessing", {}, None),
    "PCA": ("decomposition", {"n_components": 5}, None),
    "Ridge": ("linear_model", {}, "amount"),
    "GaussianNB": ("naive_bayes", {}, "label"),
    "KMeans": ("cluster", {"n_clusters": 8, "random_state": 0}, None),
    "LogisticRegression": ("linear_model", {}, "label"),
    "RandomForestClassifier": ("ensemble", {"n_estimators": 20, "random_state": 0}, "label"),
    "KNeighborsClassifier": ("neighbors", {}, "label"),
}
IN_WORKSPACE = ("KMeans", "LogisticRegression", "GaussianNB", "Ridge", "RandomForestClassifier")


def draw(n: int, d: int) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """Draw records of eight clusters, with a number and a label to predict."""
    rng = np.random.default_rng(0)
    centers = rng.normal(size=(8, d)) * 3
    X = centers[rng.integers(0, 8, n)] + rng.normal(size=(n, d))
    amount = X @ rng.normal(size=d) + rng.normal(size=n)
    label = (amount + rng.normal(size=n) * 5 > 0).astype(np.int64)
    return X, {"amount": amount, "label": label}


def seconds(action: Callable[[], Any]) -> float:
    """Return how long an action takes."""
    began = time.perf_counter()
    action()
    return time.perf_counter() - began


def theirs(name: str, X: np.ndarray, targets: dict[str, np.ndarray]) -> float:
    """Return how long scikit-learn's fit takes: the best of three, or of one that is long."""
    home, params, target = MODELS[name]
    y = None if target is None else targets[target]
    kind = getattr(getattr(sklearn, home), name)
    took = [seconds(lambda: kind(**params).fit(X, y))]
    while len(took) < 3 and sum(took) < 10:
        took.append(seconds(lambda: kind(**params).fit(X, y)))
    return min(took)


def from_files(name: str, X: np.ndarray, targets: dict[str, np.ndarray]) -> dict[str, Any]:
    """Measure load, delete and save, and hold what comes out against a fit."""
    home, params, target = MODELS[name]
    kind = getattr(getattr(erasable, home), name)
    y = [] if target is None else [targets[target]]
    gone = np.random.default_rng(1).permutation(len(X))[: DELETIONS * EACH].reshape(DELETIONS, EACH)
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/model"
        model = kind(**params)
        fit = seconds(lambda: model.fit(X, *y))
        save = seconds(lambda: model.save(path, records=True))
        model = None
        held = sum(each.stat().st_size for each in Path(f"{path}.records").iterdir())

        def once(ids: list[int]) -> None:
            again = load(path, True)
            again.delete(ids)
            again.save(path, records=True)

        took = [seconds(lambda i=ids: once(i)) for ids in gone.tolist()]
        digest = load(path, True).digest()
    left = np.delete(np.arange(len(X)), gone.ravel())
    same = kind(**params).fit(X[left], *(each[left] for each in y), ids=left).digest() == digest
    return {
        "model": name, "n": len(X), "fit": fit, "save": save, "first": took[0],
        "deletion": statistics.median(took[1:]), "bytes a record": held / len(X), "equal": same,
    }  # fmt: skip


def models(n: int, d: int, names: list[str]) -> None:
    """Print the first table."""
    X, targets = draw(n, d)
    for name in names:
        found = from_files(name, X, targets)
        found["scikit-learn"] = theirs(name, X, targets)
        found["ratio"] = found["deletion"] / found["scikit-learn"]
        tell(found)


def process(n: int, d: int) -> None:
    """Print how long one person takes in a workspace of five models."""
    X, targets = draw(n, d)
    columns = [f"x{j}" for j in range(d)]
    table = {"visit": np.arange(n), "person": [f"p{i // EACH}@example.org" for i in range(n)]}
    table |= {**dict(zip(columns, X.T, strict=True)), **targets}
    with tempfile.TemporaryDirectory() as folder:
        pq.write_table(pa.table(table), f"{folder}/visits.parquet")
        command(folder, "init")
        what = ["--id", "visit", "--subject", "person:email"]
        command(folder, "dataset", "add", "visits", "visits.parquet", *what)
        for name in IN_WORKSPACE:
            home, params, target = MODELS[name]
            said = [f"-p{key}={value}" for key, value in params.items()]
            said += [] if target is None else ["--target", target]
            place = f"{home}.{name}"
            given = ["--estimator", place, "--features", ",".join(columns), *said]
            command(folder, "model", "fit", name, "--dataset", "visits", *given)
        took, own = [], []
        for number in range(DELETIONS):
            command(folder, "request", f"p{number * 97}@example.org", "--type", "email")
            began = time.perf_counter()
            done = json.loads(command(folder, "process", "--json"))
            took.append(time.perf_counter() - began)
            own.append(sum(each["seconds"] for each in done["models"]))
        command(folder, "verify")
    reference = {name: theirs(name, X, targets) for name in IN_WORKSPACE}
    whole = sum(reference.values())
    tell(
        {
            "n": n, "process": statistics.median(took[1:]), "models": statistics.median(own[1:]),
            "scikit-learn": whole, "ratio": statistics.median(took[1:]) / whole,
            "ratio of models": statistics.median(own[1:]) / whole, "first": took[0],
            "of scikit-learn": {name: round(each, 2) for name, each in reference.items()},
        }
    )  # fmt: skip


def command(folder: str, *words: str) -> str:
    """Run a command of erasable's in a process of its own; return what it prints."""
    run = [sys.executable, "-m", "erasable", *words]
    return subprocess.run(run, cwd=folder, check=True, stdout=subprocess.PIPE, text=True).stdout


def tell(found: dict[str, Any]) -> None:
    """Print what was measured, a line for each thing."""
    rounded = {k: float(f"{v:.3g}") if isinstance(v, float) else v for k, v in found.items()}
    print(json.dumps(rounded), flush=True)


def main() -> None:
    """Read the command line, and measure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["models", "process"])
    parser.add_argument("--records", type=int, nargs="+")
    parser.add_argument("--features", type=int)
    parser.add_argument("--only", nargs="+", default=list(MODELS), choices=list(MODELS))
    said = parser.parse_args()
    if said.what == "models":
        for n in said.records or [100_000, 1_000_000]:
            models(n, said.features or 20, said.only)
    else:
        for n in said.records or [200_000, 1_000_000]:
            process(n, said.features or 12)


if __name__ == "__main__":
    main()
