"""The theory of *Making AI Forget You* beside what is measured: stability, loss, and an adversary.

Usage: ``python experiments/deletion/stability.py [--quick] [--parts NAME ...]``.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import sklearn.cluster

sys.path.append(str(Path(__file__).resolve().parent.parent / "removal"))

import deletion_bounds as bounds
import deletion_page
from shared import command, exact_line, figures, line, spread
from threadpoolctl import threadpool_limits

from erasable.cluster import DivideAndConquerKMeans, KMeans, QuantizedKMeans

D, K, N_ITER, GAMMA = 2, 3, 5, 0.2
SIZES = (1_000, 3_000, 10_000, 30_000, 100_000)
EPSILONS = (2.0**-2, 2.0**-4, 2.0**-6)
DELETIONS, REPLICATES = 1_000, 5  # a quarter of the records at most
ADVERSARY_N, ADVERSARY_DELETIONS = 20_000, 60


def mixture(n: int, seed: int) -> Any:
    """Draw records of five clusters in the unit cube."""
    rng = np.random.default_rng([seed, n])
    centers = np.random.default_rng(1).uniform(0.2, 0.8, (K, D))
    return np.clip(centers[rng.integers(0, K, n)] + rng.normal(0.0, 0.08, (n, D)), 0.0, 1.0)


def share_changed(n: int, epsilon: float, seed: int, n_deleted: int) -> float:
    """Delete records that are no seeds, one at a time; return how many changed a centroid."""
    X = mixture(n, seed)
    model = QuantizedKMeans(K, max_iter=N_ITER, epsilon=epsilon, gamma=GAMMA, random_state=seed)
    model.fit(X)
    started, held = model.init_centers_, seeds(model, X)
    changed = done = 0
    for record in np.random.default_rng([seed, 7]).permutation(n).tolist():
        if done == min(n_deleted, n // 4):
            break
        if not np.array_equal(started, model.init_centers_):
            started, held = model.init_centers_, seeds(model, X)
        if record in held:
            continue
        before = model.cluster_centers_.copy()
        model.delete([record], digest=False)
        changed += not np.array_equal(before, model.cluster_centers_)
        done += 1
    return changed / done


def seeds(model: Any, X: Any) -> list[int]:
    """Return the records that a model is seeded with, which it holds rounded to its grid."""
    live = np.asarray(model.ids_)
    far = np.abs(X[live, None, :] - model.init_centers_[None, :, :]).max(axis=2)
    return [int(each) for each in live[far.argmin(axis=0)]]


def stability(quick: bool, seeds: int | None = None) -> dict[str, Any]:
    """Measure how often a deletion changes a centroid, and set the bound beside it."""
    sizes = SIZES[:2] if quick else SIZES
    n_deleted, replicates = (20, 2) if quick else (DELETIONS, REPLICATES)
    replicates = seeds or replicates
    panels, rows = [], []
    for epsilon in EPSILONS:
        runs = np.array([
            [share_changed(n, epsilon, seed, n_deleted) for n in sizes]
            for seed in range(replicates)
        ])  # fmt: skip
        command.say(f"epsilon {epsilon:g}")
        given = [(n, D, K, N_ITER, epsilon, GAMMA) for n in sizes]
        sharp = [bounds.unstable_bound(*each) for each in given]
        printed = [bounds.unstable_as_printed(*each) for each in given]
        x = np.log10(sizes)
        panels.append(figures.panel(f"epsilon = {epsilon:g}", [
            line("measured", x, runs),
            exact_line("bound", x, sharp),
            exact_line("as printed", x, printed),
        ]))  # fmt: skip
        rows += [
            [f"{epsilon:g}", f"{n:,}", spread(runs[:, i], 1, 100), f"{100 * sharp[i]:.1f}",
             f"{100 * printed[i]:.1f}"]
            for i, n in enumerate(sizes)
        ]  # fmt: skip
    head = ["epsilon", "records", "measured, %", "bound, %", "as printed, %"]
    return {
        "settings": {
            "data": f"{K} clusters of standard deviation 0.08 in the unit cube, {D} features",
            "model": f"`QuantizedKMeans`, {N_ITER} iterations, gamma = {GAMMA}",
            "stability": f"{n_deleted} deletions of one record each that is no seed, {replicates} "
            "replicates; a deletion is unstable if a centroid of the model differs after it",
        },
        "notes": {"stability": {"head": head, "rows": rows}},
        "figures": {
            "1": {
                "kind": "lines", "title": "Deletions that change a centroid",
                "x": "log10 of the number of records", "y": "share of deletions",
                "across": 3, "columns": 3, "panels": panels, "styles": {
                    "measured": ("#000000", "-"), "bound": ("#0072b2", "--"),
                    "as printed": ("#d55e00", ":"),
                },
            }
        },
    }  # fmt: skip


def losses(quick: bool, seeds: int | None = None) -> dict[str, Any]:
    """Measure the loss of QuantizedKMeans, and set corollary 4.1.1 beside it."""
    n, replicates = (1_000, 2) if quick else (10_000, 10)
    replicates = seeds or replicates
    X = mixture(n, 0)
    best = min(
        sklearn.cluster.KMeans(K, n_init=10, random_state=seed).fit(X).inertia_
        for seed in range(replicates)
    )
    rows = []
    for epsilon in (0.0, *EPSILONS[::-1]):
        found = []
        for seed in range(replicates):
            lloyd = KMeans(K, max_iter=N_ITER, random_state=seed)
            quantized = QuantizedKMeans(
                K, max_iter=N_ITER, epsilon=epsilon or None, gamma=GAMMA, random_state=seed
            )
            found.append((quantized if epsilon else lloyd).fit(X).inertia_ / best)
        bound = bounds.loss_bound(best, n, D, K, epsilon) / best
        name = f"{epsilon:g}" if epsilon else "0 (`KMeans`)"
        rows.append([name, spread(found, 3), f"{bound:.1f}"])
    return {
        "notes": {"losses": {"head": ["epsilon", "measured", "bound"], "rows": rows}},
        "facts": {"n_losses": f"{n:,}"},
    }


def adversary(quick: bool) -> dict[str, Any]:
    """Delete records at random, and those that the model was seeded with."""
    n, n_deleted = (2_000, 10) if quick else (ADVERSARY_N, ADVERSARY_DELETIONS)
    X = mixture(n, 3)
    kinds = {
        "KMeans": KMeans(K, max_iter=N_ITER, random_state=0),
        "QuantizedKMeans": QuantizedKMeans(K, max_iter=N_ITER, gamma=GAMMA, random_state=0),
        "DivideAndConquerKMeans": DivideAndConquerKMeans(K, max_iter=N_ITER, random_state=0),
    }
    spent = []
    for seed in range(5):
        peer = sklearn.cluster.KMeans(K, n_init=1, max_iter=N_ITER, tol=0, random_state=seed)
        began = time.process_time()
        with threadpool_limits(1):
            peer.fit(X)
        spent.append(time.process_time() - began)
    refit = float(np.median(spent))
    rows = []
    for name, model in kinds.items():
        cells = [f"`{name}`"]
        for chosen in (False, True):
            if chosen and not hasattr(model, "init_centers_"):
                cells += ["-", "-"]
                continue
            seconds, refits = _stream(model.fit(X), X, n_deleted, chosen)
            cells += [f"{1000 * seconds:.2f} ({seconds / refit:.2f})", f"{refits} of {n_deleted}"]
        rows.append(cells)
    head = ["model", "random: ms (of a fit)", "learned again", "seeds: ms (of a fit)",
            "learned again"]  # fmt: skip
    return {
        "notes": {"adversary": {"head": head, "rows": rows}},
        "facts": {"n_adversary": f"{n:,}", "refit": f"{1000 * refit:.1f}"},
    }


def _stream(model: Any, X: Any, n_deleted: int, chosen: bool) -> tuple[float, int]:
    """Delete one at a time; return the mean processor time, and how often all was learned again."""
    order = np.random.default_rng(5).permutation(len(X)).tolist()
    spent, refits = 0.0, 0
    for _ in range(n_deleted):
        if chosen:
            order = seeds(model, X)[:1]
        began = time.process_time()
        deletion = model.delete([order.pop()], digest=False)
        spent += time.process_time() - began
        refits += deletion.action != "updated"
    return spent / n_deleted, refits


PARTS = {"stability": stability, "losses": losses, "adversary": adversary}

if __name__ == "__main__":
    takes = dict.fromkeys(("stability", "losses"), ("seeds",))
    sys.exit(command.run("stability", __doc__, PARTS, deletion_page, takes=takes))
