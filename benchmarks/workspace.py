"""A workspace at scale: one batch of requests against refits of scikit-learn's models.

    python benchmarks/workspace.py [--records 200000] [--subjects 20000] [--requests 200]

Writes benchmarks/results/workspace.json, and the section "Measured" of docs/workspace.md. One
thread. The refits are of scikit-learn's estimators with the same parameters, on arrays that are in
memory already, without the records that are erased; the batch includes reading the data sets,
rewriting them, and everything else that `erasable process` does.
"""

# ruff: noqa: E402
from __future__ import annotations

import os

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ[_name] = "1"

import argparse
import json
import platform
import re
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from sklearn.base import BaseEstimator
from sklearn.cluster import KMeans
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from erasable.workspace import Workspace

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "benchmarks" / "results" / "workspace.json"
PAGE = ROOT / "docs" / "workspace.md"
N_FEATURES, N_WORDS, WORDS_EACH = 20, 30_000, 40
FEATURES = [f"x{j:02d}" for j in range(N_FEATURES)]
ITERATIONS = 10

# name: (recipe, parameters, target, features, scikit-learn's twin)
MODELS: dict[str, tuple[str, dict[str, Any], str | None, list[str], BaseEstimator]] = {
    "segments": (
        "cluster.KMeans", {"n_clusters": 8, "max_iter": ITERATIONS}, None, FEATURES,
        KMeans(8, n_init=1, max_iter=ITERATIONS, tol=0, random_state=0),
    ),
    "scaled segments": (
        "preprocessing.StandardScaler,cluster.KMeans",
        {"kmeans__n_clusters": 8, "kmeans__max_iter": ITERATIONS}, None, FEATURES,
        make_pipeline(
            StandardScaler(), KMeans(8, n_init=1, max_iter=ITERATIONS, tol=0, random_state=0)
        ),
    ),
    "value": ("linear_model.Ridge", {}, "value", FEATURES, Ridge()),
    "risk": ("linear_model.LogisticRegression", {}, "risk", FEATURES, LogisticRegression()),
    "bayes": ("naive_bayes.GaussianNB", {}, "risk", FEATURES, GaussianNB()),
    "texts": (
        "feature_extraction.TfidfVectorizer,linear_model.LogisticRegression", {}, "risk",
        ["text"], make_pipeline(TfidfVectorizer(), LogisticRegression()),
    ),
}  # fmt: skip


def make_records(n: int, n_subjects: int, seed: int = 0) -> pa.Table:
    """Draw records: overlapping clusters, a linear and a logistic target, texts by Zipf's law."""
    draw = np.random.default_rng(seed)
    centers = draw.normal(scale=1.2, size=(8, N_FEATURES))
    X = centers[draw.integers(8, size=n)] + draw.normal(size=(n, N_FEATURES))
    X *= draw.lognormal(sigma=1.0, size=N_FEATURES)
    weights = draw.normal(size=N_FEATURES) / X.std(axis=0)
    value = X @ weights + draw.normal(size=n)
    risk = (value + draw.normal(scale=3.0, size=n) > value.mean()).astype(np.int64)
    words = np.array([f"w{j:x}" for j in range(N_WORDS)], dtype=object)
    shares = 1.0 / np.arange(2, N_WORDS + 2)
    lengths = np.maximum(3, draw.lognormal(np.log(WORDS_EACH) - 0.3, 0.7, size=n)).astype(int)
    drawn = words[draw.choice(N_WORDS, size=int(lengths.sum()), p=shares / shares.sum())]
    ends = np.cumsum(lengths)
    texts = [" ".join(drawn[end - k : end]) for end, k in zip(ends, lengths, strict=True)]
    numbers = np.arange(n)
    return pa.table(
        {
            "record": pa.array([f"record-{i:07d}" for i in numbers]),
            "person": pa.array([f"person-{i:06d}" for i in draw.integers(n_subjects, size=n)]),
            **{name: X[:, j] for j, name in enumerate(FEATURES)},
            "value": value,
            "risk": risk,
            "text": pa.array(texts),
        }
    )


def timed(action: Any) -> tuple[float, Any]:
    """Run an action; return its seconds, and what it returned."""
    began = time.perf_counter()
    done = action()
    return time.perf_counter() - began, done


def refit(twin: BaseEstimator, table: pa.Table, features: list[str], target: str | None) -> float:
    """Fit scikit-learn's estimator on records that are in memory; return the seconds."""
    if features == ["text"]:
        X: Any = table["text"].to_pylist()
    else:
        X = np.column_stack([table[name].to_numpy() for name in features])
    y = None if target is None else table[target].to_numpy()
    return timed(lambda: twin.fit(X, y))[0]


def starts(folder: Path, *command: str) -> float:
    """Return the median seconds that a command of a new process takes."""
    line = [sys.executable, "-m", "erasable", *command, "--workspace", str(folder)]
    run = lambda: subprocess.run(line, check=True, capture_output=True)  # noqa: E731
    run()
    return statistics.median(timed(run)[0] for _ in range(5))


def measure(n: int, n_subjects: int, n_requests: int) -> dict[str, Any]:
    """Run all of it in a folder that is removed."""
    table = make_records(n, n_subjects)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        pq.write_table(table, folder / "records.parquet")
        rehearse(folder)
        workspace = Workspace.create(folder / "ws")
        adding, _ = timed(
            lambda: workspace.add_dataset(
                "records", folder / "records.parquet", id_column="record", subjects=["person"]
            )
        )
        fits = fit_all(workspace)
        people = sorted(set(table["person"].to_pylist()))
        leaving = people[:: max(1, len(people) // n_requests)][:n_requests]
        asking = [leaving[start : start + 10] for start in range(0, len(leaving), 10)]
        took, _ = timed(lambda: [workspace.request(some) for some in asking])
        processing, done = timed(workspace.process)
        gone = pa.array(leaving)
        kept = table.filter(pa.compute.invert(pa.compute.is_in(table["person"], gone)))
        verdicts = {each.verdict for each in workspace.verify()}
        assert verdicts == {"equal"}, verdicts
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        refits = {
            name: refit(twin, kept, features, target)
            for name, (_, _, target, features, twin) in MODELS.items()
        }
        return {
            "records": n,
            "subjects": n_subjects,
            "requests": len(leaving),
            "erased": done.n_records,
            "machine": f"{platform.machine()}, Python {platform.python_version()}",
            "adding": adding,
            "acknowledged_per_second": len(leaving) / took,
            "process": processing,
            "prepare": {each["model"]: each["seconds"] for each in done.treatments},
            "fits": fits,
            "refits": refits,
            "peak_gib": peak,
            "status": starts(folder / "ws", "status"),
            "help": starts(folder / "ws", "status", "--help"),
        }


def fit_all(workspace: Workspace) -> dict[str, float]:
    """Fit all models; return their seconds, reading the data included."""
    return {
        name: timed(
            lambda recipe=recipe, params=params, target=target, features=features, name=name: (
                workspace.fit(
                    name.replace(" ", "-"), recipe, datasets=["records"], target=target,
                    features=features, params=params,
                )
            )
        )[0]
        for name, (recipe, params, target, features, _) in MODELS.items()
    }  # fmt: skip


def rehearse(folder: Path) -> None:
    """Do it once with few records, so that kernels are compiled and modules imported."""
    few = make_records(2000, 200)
    pq.write_table(few, folder / "few.parquet")
    workspace = Workspace.create(folder / "rehearsal")
    workspace.add_dataset(
        "records", folder / "few.parquet", id_column="record", subjects=["person"]
    )
    fit_all(workspace)
    workspace.request(few["person"].to_pylist()[:3])
    workspace.process()


def section(found: dict[str, Any]) -> str:
    """Write the section of the page."""
    total = sum(found["refits"].values())
    ratio = found["process"] / total
    rows = [
        f"| {name} | {found['fits'][name]:.2f} | {found['prepare'][name.replace(' ', '-')]:.2f} "
        f"| {found['refits'][name]:.2f} |"
        for name in MODELS
    ]
    aims = [
        (f"the batch takes {ratio:.2f} of the refits", ratio < 0.25, "a quarter"),
        (f"peak memory {found['peak_gib']:.2f} GiB", found["peak_gib"] < 2, "2 GiB"),
        (
            f"{found['acknowledged_per_second']:.0f} requests acknowledged a second, ten at a time",
            found["acknowledged_per_second"] >= 500,
            "500",
        ),
        (f"`status` takes {found['status']:.2f} s", found["status"] < 0.7, "0.7 s"),
    ]
    lines = [f"- {told} (aim {aim}{'' if met else '; **missed**'})" for told, met, aim in aims]
    return "\n".join(
        [
            "## Measured",
            "",
            "<!-- Written by benchmarks/workspace.py; do not edit. -->",
            "",
            f"{found['records']:,} records of {found['subjects']:,} people ({N_FEATURES} numbers, "
            f"two targets, a text of some {WORDS_EACH} words each), six models, one thread. "
            f"{found['requests']} requests as one batch erased {found['erased']:,} records from "
            f"the data set and all models in {found['process']:.2f} s; scikit-learn's refits of "
            f"the six, on arrays in memory, took {total:.2f} s.",
            "",
            *lines,
            "",
            "| seconds | fit | the batch | scikit-learn's refit |",
            "|---|---:|---:|---:|",
            *rows,
            "",
            f"What reads the data counts to the first model that needs it. {found['machine']}.",
            "",
        ]
    )


def main() -> None:
    """Measure, and write the results."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--records", type=int, default=200_000)
    parser.add_argument("--subjects", type=int, default=20_000)
    parser.add_argument("--requests", type=int, default=200)
    parser.add_argument("--dry", action="store_true", help="print, and write nothing")
    asked = parser.parse_args()
    found = measure(asked.records, asked.subjects, asked.requests)
    text = section(found)
    print(text)
    if asked.dry:
        return
    RESULTS.write_text(json.dumps(found, indent=1) + "\n")
    page = PAGE.read_text()
    page = re.sub(r"## Measured\n.*?(?=\n## |\Z)", "", page, flags=re.DOTALL).rstrip() + "\n\n"
    PAGE.write_text(page + text)


if __name__ == "__main__":
    main()
