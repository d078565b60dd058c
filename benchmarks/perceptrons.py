"""Perceptrons that delete: how often a deletion changes no step, against shards.

``python benchmarks/perceptrons.py`` writes benchmarks/results/perceptrons.json, and the section
"Measured" of docs/how-to/perceptrons.md from it; ten minutes on one core. `--parts` measures some
of it, `--quick` takes few records, and writes nothing.

Records leave one at a time, without digests. Seconds are those of the processor.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import sklearn.neural_network
from data import load
from parts import ROOT, Found, run
from sklearn.base import clone
from threadpoolctl import threadpool_limits

from erasable.ensemble import ShardedClassifier
from erasable.neural_network import MLPClassifier
from erasable.random_projection import GaussianRandomProjection

PAGE = ROOT / "docs" / "how-to" / "perceptrons.md"
LATTICES = (2.0**-20, 0.1, 0.3, 1.0)
SHARDS = (2, 8, 16)
UNITS, EPOCHS = 32, 5


def timed(action: Callable[[], Any]) -> tuple[float, Any]:
    """Run an action; return the seconds of the processor, and what it returned."""
    start = time.process_time()
    done = action()
    return time.process_time() - start, done


def measured(name: str, rate: float, length: float, quick: bool) -> Found:
    """Measure the lattices, shards and scikit-learn's network on one data set."""
    data = load(name)
    X = data.X
    if X.shape[1] > 100:
        X = GaussianRandomProjection(50, random_state=0).fit_transform(X)
    X = (X - X.mean(axis=0)) / X.std()
    order = np.random.default_rng(0).permutation(len(X))[: 4000 if quick else None]
    held, new = order[len(order) // 6 :], order[: len(order) // 6]
    n_timed = 3 if quick else 20
    network = MLPClassifier(
        (UNITS,), max_iter=EPOCHS, batch_size=rate, learning_rate_init=length, random_state=0
    )
    clone(network).fit(X[held[:500]], data.labels[held[:500]], ids=held[:500]).delete(held[:1])
    rows = []
    for step in LATTICES:
        unfitted = clone(network).set_params(lattice_step=step)
        rows.append(_of(unfitted, X, data.labels, held, new, n_timed) | {"lattice": step})
        print(rows[-1], flush=True)
    for n_shards in SHARDS:
        finest = clone(network).set_params(lattice_step=LATTICES[0])
        sharded = ShardedClassifier(finest, n_shards, random_state=0)
        rows.append(
            _of(sharded, X, data.labels, held, new, max(n_timed // 2, 1)) | {"shards": n_shards}
        )
        print(rows[-1], flush=True)
    twin = sklearn.neural_network.MLPClassifier((UNITS,), max_iter=EPOCHS, random_state=0)
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fit, _ = timed(lambda: twin.fit(X[held], data.labels[held]))
    twins = {"fit": fit, "score": float(twin.score(X[new], data.labels[new]))}
    return {
        "records": len(held), "columns": X.shape[1], "classes": data.k, "rate": rate,
        "length": length, "rows": rows, "twin": twins, "n_timed": n_timed,
    }  # fmt: skip


def _of(unfitted: Any, X: Any, y: Any, held: Any, new: Any, n_timed: int) -> Found:
    fit, model = timed(partial(clone(unfitted).fit, X[held], y[held], ids=held))
    score = float(model.score(X[new], y[new]))
    n_steps = round(EPOCHS / model.get_params(deep=True).get("batch_size", 1.0))
    done = [timed(partial(model.delete, [each], digest=False)) for each in held[:n_timed]]
    left = held[n_timed:]
    fresh = clone(unfitted).fit(X[left], y[left], ids=left)
    repeated = [report.counts.get("steps_repeated", 0) / n_steps for _, report in done]
    return {
        "fit": fit, "score": score, "seconds": [each for each, _ in done], "repeated": repeated,
        "stays": float(np.mean([report.action == "updated" for _, report in done])),
        "equal": model.digest() == fresh.digest(),
    }  # fmt: skip


def section(found: Found) -> str:
    """Write what was measured."""
    lines = [
        "## Measured",
        "",
        "<!-- Written by benchmarks/perceptrons.py; do not edit. -->",
        "",
        f"{UNITS} hidden units, {EPOCHS} epochs, one thread, seconds of the processor. *Accuracy*: "
        "of a sixth of the records, which was held out. *Stays*: deletions of one record that "
        "change no step. *Repeated*: mean share of the steps that a deletion takes again. *Mean* "
        "and *median*: of a deletion.",
    ]
    for name, of in found.items():
        twin = of["twin"]
        lines += [
            "",
            f"**{name}**: {of['records']:,} records of {of['columns']} columns, {of['classes']} "
            f"classes; `batch_size={of['rate']}`, `learning_rate_init={of['length']}`; "
            f"{of['n_timed']} deletions, and {of['n_timed'] // 2} from shards. scikit-learn's "
            f"`MLPClassifier` of as many epochs has an accuracy of {twin['score']:.3f}, in "
            f"{twin['fit']:.2f} s.",
            "",
            "| | accuracy | fit | stays | repeated | mean | median |",
            "|---|---:|---:|---:|---:|---:|---:|",
        ]
        for row in of["rows"]:
            seconds = np.array(row["seconds"])
            if "lattice" in row:
                fine = row["lattice"] < 1e-3
                title = "finest lattice" if fine else f"`lattice_step={row['lattice']}`"
                cells = [f"{row['stays']:.0%}", f"{np.mean(row['repeated']):.0%}"]
            else:
                title, cells = f"{row['shards']} shards, finest lattice", ["-", "-"]
            cells = [title, f"{row['score']:.3f}", f"{row['fit']:.2f} s", *cells]
            cells += [f"{1e3 * each:.1f} ms" for each in (seconds.mean(), np.median(seconds))]
            lines.append(f"| {' | '.join(cells)} |")
        lines += ["", _verdict(of["rows"])]
    equal = all(row["equal"] for of in found.values() for row in of["rows"])
    told = "All are" if equal else "**Not all are**"
    return "\n".join([*lines, "", f"{told} equal to fits without the records, bit for bit.", ""])


def _verdict(rows: list[Found]) -> str:
    """Compare the fastest lattice and the fastest shards that lose little accuracy."""
    least = rows[0]["score"] - 0.005
    good = [row for row in rows[1:] if row["score"] >= least]
    times = [
        min((np.mean(row["seconds"]) for row in good if kind in row), default=np.inf)
        for kind in ("lattice", "shards")
    ]
    if not np.isfinite(times[0]):
        return "No coarser lattice is within 0.005 of the accuracy of the finest: take shards."
    faster = "the lattice" if times[0] < times[1] else "shards"
    lattice, shards = (f"{1e3 * each:.0f} ms" for each in times)
    return (
        f"Within 0.005 of the accuracy of the finest lattice, a deletion takes {lattice} on "
        f"average with the best lattice, and {shards} with the best shards: {faster} are faster."
    ).replace("the lattice are", "the lattice is")


PARTS = {
    "Adult": partial(measured, "adult", 0.01, 0.5),
    "MNIST": partial(measured, "mnist", 0.01, 0.5),
}


if __name__ == "__main__":
    run("perceptrons", PAGE, PARTS, section, __doc__)
