"""Random projections before k-means: what they cost in quality, and what a deletion takes.

``python benchmarks/projection.py`` writes benchmarks/results/projection.json, and the section
"Measured" of docs/how-to/projection.md from it; ten minutes on one core. `--quick` takes few
records, and writes nothing.

The clusters of a model are judged among the records before the projection: by the distances of the
records to the means of their clusters, and by the classes. Seconds are those of the processor.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from data import load
from measures import mutual_information
from parts import ROOT, Found, run
from sklearn.base import clone

from erasable.cluster import KMeans, QuantizedKMeans
from erasable.pipeline import make_pipeline
from erasable.random_projection import GaussianRandomProjection, SparseRandomProjection

PAGE = ROOT / "docs" / "how-to" / "projection.md"
SEEDS = 3
MODELS = {"`QuantizedKMeans`": QuantizedKMeans, "`KMeans`": KMeans}
HEADS: dict[str, Callable[[], list[Any]]] = {
    "none": list,
    "20 columns": lambda: [GaussianRandomProjection(20, random_state=0)],
    "50 columns": lambda: [GaussianRandomProjection(50, random_state=0)],
    "100 columns": lambda: [GaussianRandomProjection(100, random_state=0)],
    "200 columns": lambda: [GaussianRandomProjection(200, random_state=0)],
    "100 columns, sparse": lambda: [SparseRandomProjection(100, random_state=0)],
}


def timed(action: Callable[[], Any]) -> tuple[float, Any]:
    """Run an action; return the seconds of the processor, and what it returned."""
    start = time.process_time()
    done = action()
    return time.process_time() - start, done


def spread(X: Any, labels: Any) -> float:
    """Sum the squared distances of records to the means of their clusters."""
    counts = np.bincount(labels)
    sums = np.stack([X[labels == each].sum(axis=0) for each in np.flatnonzero(counts)])
    counts = counts[counts > 0]
    return float(np.einsum("ij,ij->", X, X) - np.sum(sums * sums / counts[:, None]))


def mnist(quick: bool) -> Found:
    """Measure both models behind each projection."""
    data = load("mnist")
    n, n_timed, seeds = (3000, 5, 1) if quick else (len(data.X), 50, SEEDS)
    X, classes = data.X[:n], data.labels[:n]
    left = np.arange(n_timed, n)
    rows = []
    for kind, cls in MODELS.items():
        for head, steps in HEADS.items():
            row: Found = {"model": kind, "projection": head}
            found: Found = {name: [] for name in ("fit", "loss", "nmi", "deletions")}
            for seed in range(seeds):
                unfitted = make_pipeline(*steps(), cls(data.k, random_state=seed))
                if steps():
                    unfitted.set_params(**{f"{unfitted.steps[0][0]}__random_state": seed})
                clone(unfitted).fit(X[:1000]).delete([0])  # compiles
                fit, model = timed(partial(clone(unfitted).fit, X))
                labels = model[-1].labels_
                done = [timed(partial(model.delete, [i], digest=False)) for i in range(n_timed)]
                found["fit"].append(fit)
                found["loss"].append(spread(X, labels))
                found["nmi"].append(mutual_information(classes, labels))
                found["deletions"] += [each[0] for each in done]
                fresh = clone(unfitted).fit(X[left], ids=left) if seed == 0 else None
                if fresh is not None:
                    row["equal"] = fresh.digest() == model.digest()
            rows.append(row | found)
            print(row, {name: np.mean(found[name]) for name in found if found[name]}, flush=True)
    return {"records": n, "columns": X.shape[1], "k": data.k, "seeds": seeds, "timed": n_timed,
            "rows": rows}  # fmt: skip


def section(found: Found) -> str:
    """Write what was measured."""
    of = found["mnist"]
    base = {row["model"]: row for row in of["rows"] if row["projection"] == "none"}
    lines = [
        "## Measured",
        "",
        "<!-- Written by benchmarks/projection.py; do not edit. -->",
        "",
        f"MNIST: {of['records']:,} images of {of['columns']} pixels, k = {of['k']}; means of "
        f"{of['seeds']} seeds, with {of['timed']} deletions of one record each. *Loss*: squared "
        "distances to the means of the clusters among the images themselves, as a ratio to the "
        "loss without a projection. *NMI*: agreement with the ten digits. *Longest*: of all "
        "deletions. Seconds of the processor, one thread.",
        "",
        "| model | projection | loss | NMI | fit | a deletion | longest |",
        "|---|---|---:|---:|---:|---:|---:|",
    ]  # fmt: skip
    for row in of["rows"]:
        ratio = np.array(row["loss"]) / np.array(base[row["model"]]["loss"])
        seconds = np.array(row["deletions"])
        cells = [row["model"], row["projection"], f"{ratio.mean():.3f}",
                 f"{np.mean(row['nmi']):.3f}", f"{np.mean(row['fit']):.2f} s",
                 f"{1e3 * seconds.mean():.1f} ms", f"{1e3 * seconds.max():.0f} ms"]  # fmt: skip
        lines.append(f"| {' | '.join(cells)} |")
    equal = all(row["equal"] for row in of["rows"])
    return "\n".join([
        *lines,
        "",
        f"{'All' if equal else '**Not all**'} models are equal to fits without the deleted "
        "records, bit for bit.",
    ]) + "\n"  # fmt: skip


if __name__ == "__main__":
    run("projection", PAGE, {"mnist": mnist}, section, __doc__)
