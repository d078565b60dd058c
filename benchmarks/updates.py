"""Append 1 % to a workspace, with its models at rest: what that costs of fitting them again.

``python benchmarks/updates.py`` prints a table. Seconds are of the processor, one thread; what is
compared is the update of each model alone, and its fit, as the ledger measures neither reading of
the source nor writing the data set. Each model is appended to once before, which compiles, and
makes room in its file. What the process holds from before is kept from the garbage collector: to
look at all of that takes longer than an append.
"""

from __future__ import annotations

import argparse
import gc
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from erasable.workspace import Workspace

MODELS = {
    "Ridge": ("linear_model.Ridge", "cost", {}),
    "GaussianNB": ("naive_bayes.GaussianNB", "sick", {}),
    "StandardScaler, PCA": ("preprocessing.StandardScaler,decomposition.PCA", None, {}),
    "KNeighborsClassifier": ("neighbors.KNeighborsClassifier", "sick", {}),
    "StandardScaler, KMeans": (
        "preprocessing.StandardScaler,cluster.KMeans", None, {"kmeans__n_clusters": "5"},
    ),
    "StandardScaler, LogisticRegression": (
        "preprocessing.StandardScaler,linear_model.LogisticRegression", "sick", {},
    ),
    "RandomForestClassifier": ("ensemble.RandomForestClassifier", "sick", {"n_estimators": "5"}),
}  # fmt: skip


def write(path: Path, first: int, n: int, d: int) -> None:
    """Write records of some ids."""
    rng = np.random.default_rng(first)
    X = rng.normal(size=(n, d))
    columns = {f"x{j}": X[:, j] for j in range(d)}
    ids = np.arange(first, first + n)
    cost = X @ np.ones(d) + rng.normal(size=n)
    table = {"id": ids, "who": ids // 10, **columns, "cost": cost, "sick": (cost > 0).astype(int)}
    pq.write_table(pa.table(table), path)


def main() -> None:
    """Print a line for each model."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--records", type=int, default=100_000)
    parser.add_argument("--columns", type=int, default=20)
    parser.add_argument("--models", nargs="*", default=list(MODELS))
    chosen = parser.parse_args()
    n, d = chosen.records, chosen.columns
    features = [f"x{j}" for j in range(d)]
    print(f"{n:,} records of {d} columns, {n // 100:,} appended; seconds of the processor")
    print("| model | treatment | fit again | append 1 % | share | again |")
    print("|---|---|---:|---:|---:|---:|")
    for label in chosen.models:
        kind, target, params = MODELS[label]
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            for number in range(3):
                write(folder / f"{number}.parquet", n + number * n, n // 100, d)
            write(folder / "all.parquet", 0, n, d)
            workspace = Workspace.create(folder / "ws")
            workspace.add_dataset("data", folder / "all.parquet", id_column="id", subjects=["who"])
            fitted = {"datasets": ["data"], "target": target, "features": features}
            workspace.fit("model", kind, params=params, **fitted)  # type: ignore[arg-type]
            workspace.append("data", folder / "0.parquet", update_models=True)  # and compiles
            took, treatment = [], ""
            for number in (1, 2):
                workspace.append("data", folder / f"{number}.parquet")
                gc.freeze()
                began = time.process_time()
                done, _ = workspace.refresh()
                took.append(time.process_time() - began)
                treatment = str(done[0]["treatment"])
            gc.freeze()
            began = time.process_time()
            workspace.fit("model")
            again = time.process_time() - began
            shares = [f"{each / again:.2f}" for each in took]
            print(f"| {label} | {treatment} | {again:.2f} | {took[0]:.2f} | {' | '.join(shares)} |")


if __name__ == "__main__":
    main()
