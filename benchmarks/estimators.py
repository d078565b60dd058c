"""What a deletion costs the everyday estimators, against fitting scikit-learn's twin again.

    python benchmarks/estimators.py                        everything, then the page
    python benchmarks/estimators.py --twins ridge logistic some of it
    python benchmarks/estimators.py --report               only the page, from the results

Each twin leaves a JSON file in ``benchmarks/results``; ``docs/estimators.md`` is written from them
and from the estimators themselves. Exit status 1 means that a model was not what a fit on the
remaining records gives.
"""

# ruff: noqa: E402
from __future__ import annotations

import os

# One thread, for everybody. The libraries read this when they are imported.
for _library in ("OMP", "OPENBLAS", "MKL", "NUMBA"):
    os.environ[f"{_library}_NUM_THREADS"] = "1"

import argparse
import gc
import json
import sys
import time
import warnings
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import estimators_page
import forests
import numpy as np
import shards
import sklearn.linear_model
from online_deletion import RESULTS, environment, tidy
from scipy import stats
from sklearn.base import clone
from twin_data import Data, numbers
from twins import TREES, TWINS, Twin

from erasable import linear_model
from erasable.model_selection import leave_one_out

SINGLE = 1_000
PERSON = 100
SECONDS = 20.0  # for one series of deletions
SHARES = (0.0, 0.01, 0.05, 0.1, 0.2)
# The defaults of trees and forests (how many thresholds, and where they lie) were chosen on the
# splits of the seeds 0 to 4: these are others.
FRESH_SPLITS = (8101, 8102, 8103, 8104, 8105)


def timed(call: Callable[[], Any]) -> tuple[float, Any]:
    """Time one call."""
    began = time.perf_counter()
    value = call()
    return time.perf_counter() - began, value


def fit_times(maker: Any, data: Data, repeats: int = 3) -> tuple[float, Any]:
    """Return the median time of a fit, and the last model."""
    times = []
    for _ in range(repeats):
        model = clone(maker)
        took, _ = timed(lambda model=model: model.fit(data.X, data.y))
        times.append(took)
    return float(np.median(times)), model


def deletions(
    model: Any, rows: np.ndarray, use: Callable[[Any], Any], *, digest: bool
) -> list[float]:
    """Delete records one by one, within a budget; return seconds for each."""
    times: list[float] = []
    began = time.perf_counter()
    for row in rows.tolist():
        before = time.perf_counter()
        model.delete([row], digest=digest)
        if digest:
            use(model)
        after = time.perf_counter()
        times.append(after - before)
        if after - began > SECONDS:
            break
    return times


def one(twin: Twin) -> dict[str, Any]:
    """Measure one twin."""
    small, data = twin.data(2_000), twin.data(None)
    mine, peer = twin.make()
    for maker in (mine, peer):
        warm = clone(maker).fit(small.X, small.y)  # compiles, and fills caches
        if maker is mine:
            for row in range(3):
                warm.delete([row])
                twin.use(warm)
            warm.delete(range(3, 203))
    n = len(data)
    order = np.random.default_rng(0).permutation(n)
    ours, model = fit_times(mine, data)
    theirs, other = fit_times(peer, data)
    asked = asking(model, other, data) if twin.lazy else None
    twin.use(model)
    result: dict[str, Any] = {"n": n, "d": int(model.n_features_in_), "fit": ours, "peer": theirs}
    result |= {} if asked is None else {"asked": asked}
    deletions(model, order[:10], twin.use, digest=False)  # the first may build what the rest use
    bare = deletions(model, order[10 : 10 + SINGLE], twin.use, digest=False)
    place = 10 + len(bare)
    twin.use(model)
    model.digest()
    used = deletions(model, order[place : place + 200], twin.use, digest=True)
    place += len(used)
    result["bare"], result["used"] = float(np.mean(bare)), float(np.mean(used))
    person, place = order[place : place + PERSON], place + PERSON
    result["person"] = timed(lambda: (model.delete(person, digest=False), twin.use(model)))[0]
    batch = order[place : place + SINGLE]
    result["batch"] = timed(lambda: (model.delete(batch, digest=False), twin.use(model)))[0]
    place += len(batch)
    result["shares"] = []
    for share in SHARES:
        if (reach := int(share * n)) > place:
            model.delete(order[place:reach], digest=False)
            place = reach
        times = deletions(model, order[place : place + 100], twin.use, digest=True)
        place += len(times)
        result["shares"].append([share, float(np.mean(times))])
    left = np.sort(order[place:])
    X, y = data.take(left)
    fresh = clone(mine).set_params(**model._seeds()).fit(X, y, ids=left)
    result["law"] = model.digest() == fresh.digest()
    result["hurtful"] = hurt(mine, data, twin)
    result["growth"] = growth(mine, twin, n)
    result["accuracy"] = accuracy(mine, peer, data)
    return result


def asking(model: Any, peer: Any, data: Data) -> dict[str, float]:
    """Time the predictions of a model that learns nothing, and its first digest."""
    queries = data.X[:1_000] + 0.01
    first = timed(lambda: model.predict(queries[:1]))[0]
    peer.predict(queries[:1])
    row, peer_row = (timed(lambda each=each: each.predict(queries))[0] for each in (model, peer))
    digest = timed(model.digest)[0]
    return {"first": first, "row": row / 1_000, "peer_row": peer_row / 1_000, "digest": digest}


def hurt(mine: Any, data: Data, twin: Twin) -> dict[str, float]:
    """Delete what should cost most: extremes, rare values, then a whole class."""
    model = clone(mine).fit(data.X, data.y)
    twin.use(model)
    times = deletions(model, data.hurtful[:200], twin.use, digest=True)
    found = {"mean": float(np.mean(times)), "worst": float(np.max(times))}
    classes = getattr(model, "classes_", None)
    if classes is not None and len(classes) > 2:
        held = model.ids_
        gone = held[data.y[held] == classes[0]]
        found["class"] = timed(lambda: (model.delete(gone, digest=False), twin.use(model)))[0]
    return found


def growth(mine: Any, twin: Twin, n: int) -> list[list[float]]:
    """Measure how a deletion grows with the number of records."""
    found = []
    for size in (1_000, 10_000, 100_000):
        if size > n:
            break
        data = twin.data(size)
        model = clone(mine).fit(data.X, data.y)
        deletions(model, np.arange(10), twin.use, digest=True)
        for digest in (False, True):
            times = deletions(model, np.arange(20, 120) + 200 * digest, twin.use, digest=digest)
            found.append([size, float(digest), float(np.mean(times))])
    return found


def accuracy(
    mine: Any, peer: Any, data: Data, seeds: Sequence[int] = range(5)
) -> dict[str, float] | None:
    """Compare scores on splits, the same for both."""
    if data.y is None or not (hasattr(mine, "predict") and hasattr(peer, "predict")):
        return None
    scores = []
    for seed in seeds:
        order = np.random.default_rng(seed).permutation(len(data))
        cut = len(data) * 4 // 5
        (X, y), (X_test, y_test) = data.take(np.sort(order[:cut])), data.take(order[cut:])
        scores.append([clone(m).fit(X, y).score(X_test, y_test) for m in (mine, peer)])
    left, right = np.array(scores).T
    same = bool(np.all(left == right))
    p = 1.0 if same else float(stats.ttest_rel(left, right).pvalue)
    error = float(stats.sem(left - right))
    return {"ours": float(left.mean()), "theirs": float(right.mean()), "p": p, "error": error}


def fresh_scores(twin: Twin) -> dict[str, Any]:
    """Compare scores on splits on which nothing was chosen."""
    mine, peer = twin.make()
    return {
        "n": len(twin.data(None)),
        **(accuracy(mine, peer, twin.data(None), FRESH_SPLITS) or {}),
    }


def without_each() -> dict[str, Any]:
    """Time leaving one of 20,000 records out of a ridge regression, each in turn."""
    data = numbers(20_000, "regression")
    leave_one_out(linear_model.Ridge(), data.X[:500], data.y[:500])
    took, found = timed(lambda: leave_one_out(linear_model.Ridge(), data.X, data.y))
    peer, some = sklearn.linear_model.Ridge(), np.arange(50)
    keep = np.ones(len(data), dtype=bool)
    refits, worst = [], 0.0
    for row in some.tolist():
        keep[row] = False
        seconds, model = timed(lambda: clone(peer).fit(data.X[keep], data.y[keep]))
        keep[row] = True
        refits.append(seconds)
        predicted = model.predict(data.X[row : row + 1])[0]
        worst = max(worst, abs(float(found.predictions[row]) - predicted))
    return {"n": len(data), "seconds": took, "refit": float(np.mean(refits)), "differs": worst}


def main(arguments: list[str] | None = None) -> int:
    """Run what was asked for; 1 if a model broke the law."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    more: dict[str, Callable[[], dict[str, Any]]] = {
        "leave-one-out": without_each,
        **{f"scores-{name}": partial(fresh_scores, TREES[name]) for name in TREES},
        **{f"forests-{name}": partial(forests.measure, name) for name in forests.CASES},
        **{f"shards-{name}": partial(shards.compare, case) for name, case in shards.CASES.items()},
        **{f"shard-cost-{name}": partial(shards.cost, *of) for name, of in shards.COSTS.items()},
    }
    names = [*TWINS, *more]
    parser.add_argument("--twins", nargs="+", choices=names, default=names)
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--report", action="store_true", help="measure nothing; write the page")
    options = parser.parse_args(arguments)
    kept = True
    if not options.report:
        options.results.mkdir(parents=True, exist_ok=True)
        warnings.simplefilter("ignore")
        gc.disable()
        for name in options.twins:
            began = time.perf_counter()
            result = more[name]() if name in more else one(TWINS[name])
            text = json.dumps(tidy({"environment": environment(), **result}))
            (options.results / f"estimator-{name}.json").write_text(text + "\n", encoding="utf-8")
            kept = kept and result.get("law", True)
            told = {k: v for k, v in tidy(result).items() if isinstance(v, float | int)}
            print(f"{name}: {time.perf_counter() - began:.0f} s {told}", flush=True)
            gc.collect()
        gc.enable()
    estimators_page.write(options.results)
    if not kept:
        print("A model is not what a fit on the remaining records gives.", file=sys.stderr)
    return 0 if kept else 1


if __name__ == "__main__":
    sys.exit(main())
