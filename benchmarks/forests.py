"""What forests take: memory, files, and deletions that are chosen to hurt.

Each case runs in a process of its own, whose memory is then the forest's. Run as a script, this is
one such process: ``python benchmarks/forests.py adult``.
"""

# ruff: noqa: E402
from __future__ import annotations

import os

for _library in ("OMP", "OPENBLAS", "MKL", "NUMBA"):
    os.environ[f"{_library}_NUM_THREADS"] = "1"

import gc
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import sklearn.ensemble
from processes import status
from sklearn.base import clone, is_classifier
from twin_data import Data, adult_codes, clusters, housing

import erasable
from erasable import ensemble

SINGLE = 100
SECONDS = 30.0  # for one series of deletions
MEGABYTE = 1e6


@dataclass(frozen=True)
class Case:
    """A forest of 100 trees on some records, and scikit-learn's."""

    title: str
    kind: str
    data: Callable[[], Data]
    repeats: int = 3

    def make(self) -> tuple[Any, Any]:
        """Return our forest and theirs."""
        mine, peer = (getattr(room, self.kind) for room in (ensemble, sklearn.ensemble))
        return mine(100, random_state=0), peer(100, random_state=0)


CLASSIFIER = "RandomForestClassifier"
CASES = {
    "adult": Case(f"{CLASSIFIER} (Adult)", CLASSIFIER, lambda: adult_codes(None)),
    "clusters": Case(CLASSIFIER, CLASSIFIER, lambda: clusters(10_000)),
    "clusters-100k": Case(CLASSIFIER, CLASSIFIER, lambda: clusters(100_000), repeats=1),
    "housing": Case(
        "RandomForestRegressor (housing)", "RandomForestRegressor", lambda: housing(None)
    ),
    "extra-adult": Case(
        "ExtraTreesClassifier (Adult)", "ExtraTreesClassifier", lambda: adult_codes(None)
    ),
    "extra-housing": Case(
        "ExtraTreesRegressor (housing)", "ExtraTreesRegressor", lambda: housing(None)
    ),
}


def measure(name: str) -> dict[str, Any]:
    """Measure a case in a process of its own."""
    command = [sys.executable, __file__, name]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    found: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return found


def roots(model: Any, data: Data) -> list[int]:
    """Find, for each tree, a record on whose value the threshold of its root hangs.

    Thresholds lie between two values of the records. Of the records that have one of these two,
    one is taken whose value the fewest others have.
    """
    trees = model.state()["trees"]
    nodes = np.concatenate([[0], np.cumsum(trees["n_nodes"])[:-1]])
    splits = np.cumsum(trees["features"] >= 0) - 1
    found: dict[int, None] = {}
    for node in nodes.tolist():
        feature = int(trees["features"][node])
        if feature < 0:
            continue
        column, threshold = data.X[:, feature], trees["thresholds"][splits[node]]
        below, above = column <= threshold, column > threshold
        sides = [
            np.flatnonzero(column == column[below].max()),
            np.flatnonzero(column == column[above].min()),
        ]
        found[int(min(sides, key=len)[0])] = None
    return list(found)


def one(name: str) -> dict[str, Any]:
    """Measure a case here."""
    case = CASES[name]
    mine, peer = case.make()
    data, n = case.data(), len(case.data())
    small = clone(mine).fit(data.X[:2_000], data.y[:2_000])  # compiles
    small.delete([1_999])
    small.digest()
    _kept(small, Data(data.X[:2_000], data.y[:2_000], data.hurtful))  # compiles what loads
    del small
    gc.collect()
    before = status("VmRSS")
    ours, model = _fit(mine, data, 1)
    gc.collect()
    result: dict[str, Any] = {"n": n, "d": data.X.shape[1], "title": case.title}
    result |= {"megabytes": status("VmRSS") - before, "peak": status("VmHWM")}
    order = np.random.default_rng(0).permutation(n)
    _singles(model, order[:3])
    bare = _singles(model, order[3 : 3 + SINGLE])
    result["bare"], held = float(np.mean(bare)), status("VmRSS")
    result |= {"resident": held, "after_deletions": held - before, **_kept(model, data)}
    result["roots"] = _spread(_singles(model, _live(model, roots(model, data))))
    left = model.ids_
    fresh = clone(mine).set_params(**model._seeds()).fit(*data.take(left), ids=left)
    result["law"] = model.digest() == fresh.digest()
    del fresh
    if is_classifier(mine):
        gone = model.ids_[data.y[model.ids_] == model.classes_[0]]
        result["class"] = {"records": gone.size, "seconds": _singles(model, [gone])[0]}
    else:
        largest = np.argsort(-data.y, kind="stable")[:SINGLE].tolist()
        result["largest"] = _spread(_singles(model, _live(model, largest)))
    del model
    if case.repeats > 1:
        ours = float(np.median([ours, *(_fit(mine, data, 1)[0] for _ in range(case.repeats - 1))]))
    result["fit"], result["peer"] = ours, _fit(peer, data, case.repeats)[0]
    return result


def _fit(maker: Any, data: Data, repeats: int) -> tuple[float, Any]:
    times = []
    for _ in range(repeats):
        model = clone(maker)
        began = time.perf_counter()
        model.fit(data.X, data.y)
        times.append(time.perf_counter() - began)
    return float(np.median(times)), model


def _singles(model: Any, records: Any) -> list[float]:
    """Delete records, or lists of them, one after the other; return seconds for each."""
    times: list[float] = []
    for record in records:
        began = time.perf_counter()
        model.delete(np.atleast_1d(record), digest=False)
        times.append(time.perf_counter() - began)
        if sum(times) > SECONDS:
            break
    return times


def _live(model: Any, records: list[int]) -> list[int]:
    held = set(model.ids_.tolist())
    return [record for record in records if record in held]


def _spread(times: list[float]) -> dict[str, float]:
    return {"n": len(times), "mean": float(np.mean(times)), "worst": float(np.max(times))}


def _kept(model: Any, data: Data) -> dict[str, Any]:
    """Save a forest, load it with its records, and delete one."""
    held = model.ids_
    X, y = data.take(held)
    records = erasable.Records(X, y, ids=held)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "forest"
        began = time.perf_counter()
        model.save(path)
        saved = time.perf_counter()
        again = erasable.load(path, records)
        loaded = time.perf_counter()
        size = path.stat().st_size
    first = _singles(again, held[:1])[0]
    return {
        "save": saved - began,
        "load": loaded - saved,
        "first": first,
        "file": size / MEGABYTE,
    }


if __name__ == "__main__":
    print(json.dumps(one(sys.argv[1])))
