"""Gradient boosting against scikit-learn's: fits, scores, deletions, batches, and models in files.

    python benchmarks/boosting.py [fit] [scores] [deletions] [curve] [batch] [rest] [stored]
        [--only adult] [--setting default]

Parts are chosen by name, all by default; `--setting` is one of those of scores and curves. What is
measured is written beside what was measured before, to ``results/boosting.json``. Times are seconds
of the processor, in one thread, so that other work on the machine counts little. A gain is the time
of a fit of scikit-learn's in the same process by that of a deletion.
"""

# ruff: noqa: E402
from __future__ import annotations

import os

for _library in ("OMP", "OPENBLAS", "MKL", "NUMBA"):
    os.environ[f"{_library}_NUM_THREADS"] = "1"

import json
import sys
import tempfile
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import sklearn.ensemble as peers
from sklearn.base import clone, is_classifier
from sklearn.metrics import roc_auc_score
from twin_data import Data, adult_codes, clusters, covertype, housing

import erasable
from erasable import Records
from erasable.ensemble import (
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    ShardedClassifier,
)

RESULTS = Path(__file__).resolve().parent / "results" / "boosting.json"
ROUNDS: dict[str, Any] = {"max_iter": 40, "learning_rate": 0.2}
SHORT: dict[str, Any] = {"max_iter": 20, "learning_rate": 0.3}
WIDE: dict[str, Any] = {"max_leaf_nodes": 31, "max_depth": None}
SETTINGS: dict[str, dict[str, Any]] = {
    "default": {},
    "31 leaves": WIDE,
    "31 leaves, 64 thresholds": {**WIDE, "n_thresholds": 64},
    "depth 8, 64 thresholds": {"max_depth": 8, "n_thresholds": 64},
    "depth 9, 64 thresholds": {"max_depth": 9, "n_thresholds": 64},
    "depth 10, 64 thresholds": {"max_depth": 10, "n_thresholds": 64},
    "20 rounds of 0.3": SHORT,
    "100 rounds of 0.1": {"max_iter": 100, "learning_rate": 0.1},
    "20 rounds of 0.3, depth 4": {**SHORT, "max_depth": 4},
}
"""What a table over settings shows; scikit-learn has the same rounds, and its 31 leaves."""


def million() -> Data:
    """A million records of ten numbers, of which five tell the class."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1_000_000, 10))
    signal = X[:, 0] + X[:, 1] * X[:, 2] + np.sin(3 * X[:, 3]) + rng.normal(size=len(X))
    return Data(X, (signal > 0).astype(int), np.arange(200))


DATA: dict[str, Callable[[], Data]] = {
    "adult": lambda: adult_codes(None),
    "covertype": lambda: covertype(None),
    "housing": lambda: housing(None),
    "clusters": lambda: clusters(10_000),
    "million": million,
}


def pair(name: str, **settings: Any) -> tuple[Any, Any]:
    """Return our model and theirs."""
    rounds = ROUNDS | {key: settings[key] for key in ROUNDS if key in settings}
    if name == "housing":
        peer = peers.HistGradientBoostingRegressor(**rounds, early_stopping=False)
        return HistGradientBoostingRegressor(**{**rounds, **settings}), peer
    peer = peers.HistGradientBoostingClassifier(**rounds, early_stopping=False)
    return HistGradientBoostingClassifier(**{**rounds, **settings}), peer


def seconds(work: Callable[[], Any]) -> tuple[float, Any]:
    """Return how long the processor works, and what comes out."""
    began = time.process_time()
    made = work()
    return time.process_time() - began, made


def compiled(name: str, data: Data) -> None:
    """Have all kernels compiled."""
    few = slice(0, 600)
    model = clone(pair(name)[0]).set_params(max_iter=2).fit(data.X[few], data.y[few])
    model.delete([3])


def fits(name: str, repeats: int = 3) -> dict[str, Any]:
    """Measure fits of both, the fastest of some."""
    data, (mine, peer) = DATA[name](), pair(name, random_state=0)
    ours = min(seconds(lambda: clone(mine).fit(data.X, data.y))[0] for _ in range(repeats))
    theirs = min(seconds(lambda: clone(peer).fit(data.X, data.y))[0] for _ in range(repeats))
    return {"n": len(data.X), "ours": ours, "theirs": theirs, "ratio": ours / theirs}


def score(model: Any, name: str, X: Any, y: Any) -> float:
    """Return the AUC of two classes, or what `score` returns."""
    two = is_classifier(model) and len(model.classes_) == 2
    return float(roc_auc_score(y, model.predict_proba(X)[:, 1]) if two else model.score(X, y))


def divided(data: Data, split: int) -> tuple[Any, Any]:
    """Return rows to learn from, and a fifth that is kept back."""
    order = np.random.default_rng(split).permutation(len(data.X))
    cut = len(order) * 4 // 5
    return order[:cut], order[cut:]


def scores(name: str, setting: str, splits: int = 5) -> dict[str, Any]:
    """Compare what is predicted of records that were kept back, over settings."""
    data, table = DATA[name](), {}
    for title, settings in SETTINGS.items():
        if setting not in ("", title):
            continue
        found = []
        for split in range(splits):
            train, test = divided(data, split)
            models = pair(name, **settings, random_state=split)
            found.append(
                [
                    score(each.fit(data.X[train], data.y[train]), name, data.X[test], data.y[test])
                    for each in models
                ]
            )
        ours, theirs = np.mean(found, axis=0).tolist()
        table[title] = {"ours": ours, "theirs": theirs, "difference": ours - theirs}
        print(f"{name}, {title}: {ours:.4f}, scikit-learn {theirs:.4f}", flush=True)
    return table


def deletions(name: str, tapes: int = 10, each: int = 300, **settings: Any) -> dict[str, Any]:
    """Delete records one by one from models of several tapes."""
    data = DATA[name]()
    taken, actions, refits, means = [], [], [], []
    for tape in range(tapes):
        mine, peer = pair(name, **settings, random_state=tape)
        refits.append(seconds(lambda peer=peer: peer.fit(data.X, data.y))[0])
        model = mine.fit(data.X, data.y)
        own = []
        for row in np.random.default_rng(tape).choice(len(data.X), each, replace=False).tolist():
            took, told = seconds(lambda row=row, model=model: model.delete([row], digest=False))
            own.append(took)
            actions.append(told.action)
        taken += own
        means.append(refits[-1] / float(np.mean(own)))
    fit = float(np.mean(refits))
    shares = {action: actions.count(action) / len(actions) for action in sorted(set(actions))}
    levels = (0.1, 0.5, 0.9, 0.99)
    quantiles = dict(zip(map(str, levels), np.quantile(taken, levels).tolist(), strict=True))
    return {
        "n": len(data.X), "tapes": tapes, "each": each, "refit": fit, "actions": shares,
        "seconds": {"mean": float(np.mean(taken)), **quantiles},
        "gain": {"mean": fit / float(np.mean(taken)), "median": fit / quantiles["0.5"]},
        "mean gain by tape": {"least": min(means), "most": max(means)},
    }  # fmt: skip


SHARDS = {f"{n} shards of scikit-learn's": n for n in (5, 20)}
OWN_SHARDS = {f"{n} shards of the default": n for n in (5, 20)}


def curve(name: str, setting: str, splits: int = 3, each: int = 60) -> dict[str, Any]:
    """Find what models predict and what a deletion costs on average, over settings and designs."""
    data, table = DATA[name](), {}
    for title in [*SETTINGS, *SHARDS, *OWN_SHARDS]:
        if setting not in ("", title):
            continue
        found, taken, refits = [], [], []
        for split in range(splits):
            train, test = divided(data, split)
            X, y = data.X[train], data.y[train]
            model, peer = pair(name, **SETTINGS.get(title, {}), random_state=split)
            refits.append(seconds(lambda peer=peer, X=X, y=y: peer.fit(X, y))[0])
            if title in SHARDS:
                model = ShardedClassifier(clone(peer), SHARDS[title], random_state=split)
            if title in OWN_SHARDS:
                model = ShardedClassifier(clone(model), OWN_SHARDS[title], random_state=split)
            model.fit(X, y)
            found.append(score(model, name, data.X[test], data.y[test]))
            for row in range(each):
                gone = seconds(lambda model=model, row=row: model.delete([row], digest=False))
                taken.append(gone[0])
        mean, refit = float(np.mean(taken)), float(np.mean(refits))
        table[title] = {
            "score": float(np.mean(found)), "mean": mean, "median": float(np.median(taken)),
            "refit": refit, "gain": refit / mean, "deletions": len(taken),
        }  # fmt: skip
        print(f"{name}, {title}: {json.dumps(table[title])}", flush=True)
    return table


def batch(name: str, share: float = 0.01) -> dict[str, Any]:
    """Delete a share of the records at once, against a fit of ours on what is left."""
    data, (mine, _) = DATA[name](), pair(name, random_state=0)
    model = clone(mine).fit(data.X, data.y)
    gone = np.random.default_rng(0).choice(len(data.X), int(share * len(data.X)), replace=False)
    took, told = seconds(lambda: model.delete(gone.tolist(), digest=False))
    left = np.setdiff1d(np.arange(len(data.X)), gone)
    fit, fresh = seconds(lambda: clone(mine).fit(data.X[left], data.y[left], ids=left))
    equal = fresh.digest() == model.digest()
    return {"seconds": took, "fit": fit, "ratio": took / fit, "did": told.action, "equal": equal}


def rest(name: str) -> dict[str, Any]:
    """Load a model with its records from a file, delete one, and save it again."""
    data, (mine, peer) = DATA[name](), pair(name, random_state=0)
    refit = seconds(lambda: peer.fit(data.X, data.y))[0]
    model, taken = mine.fit(data.X, data.y), []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model"
        model.save(path, records=True)

        def visit(row: int) -> None:
            again = erasable.load(path, True)
            again.delete([row])
            again.save(path, records=True)

        rows = np.random.default_rng(1).choice(len(data.X), 12, replace=False).tolist()
        taken = [seconds(lambda row=row: visit(row))[0] for row in rows]
    told = {"mean": float(np.mean(taken)), "median": float(np.median(taken))}
    return {"refit": refit, "seconds": told, "ratio": told["mean"] / refit}


def stored(name: str, each: int = 30, group: int = 100_000) -> dict[str, Any]:
    """Fit and delete where the features stay in a Parquet file, against records in memory.

    Bytes are those of arrays: what is there after a fit, and the most while it goes on.
    """
    data, (mine, _) = DATA[name](), pair(name, random_state=0)
    n, names = len(data.X), [f"x{j}" for j in range(data.X.shape[1])]
    gone = np.random.default_rng(0).choice(n, each, replace=False).tolist()

    def lived(records: Records) -> tuple[str, dict[str, float]]:
        """Fit a model, and delete records one by one."""
        fits = [seconds(lambda: clone(mine).fit(records)) for _ in range(3)]
        model = fits[-1][1]
        taken = [seconds(lambda row=row: model.delete([row], digest=False))[0] for row in gone]
        told = {"fit": min(took for took, _ in fits), "deletion, mean": float(np.mean(taken))}
        return model.digest(), {**told, "deletion, median": float(np.median(taken))}

    with tempfile.TemporaryDirectory() as folder:
        columns = {column: data.X[:, j] for j, column in enumerate(names)}
        table = pa.table({**columns, "id": np.arange(n), "y": data.y})
        pq.write_table(table, f"{folder}/records.parquet", row_group_size=group)

        def in_files() -> Records:
            return Records.from_parquet(f"{folder}/records.parquet", ids="id", target="y")

        here, memory = lived(in_files().in_memory())
        there, files = lived(in_files())
        tracemalloc.start()
        records = in_files()
        own = tracemalloc.get_traced_memory()[0]
        model = clone(mine).fit(records)
        held, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    return {
        "n": n, "rounds": model.n_iter_, "equal": here == there, "memory": memory, "files": files,
        "ratio": files["fit"] / memory["fit"],
        "bytes a record": {"records": own / n, "model": (held - own) / n, "most": most / n},
    }  # fmt: skip


PARTS: dict[str, dict[str, Callable[..., Any]]] = {
    "fit": {name: lambda name=name: fits(name) for name in ("adult", "covertype", "million")},
    "scores": {
        name: lambda setting, name=name: scores(name, setting)
        for name in ("adult", "covertype", "housing", "clusters")
    },
    "deletions": {
        "adult": lambda: deletions("adult"),
        "adult, 20 rounds of 0.3": lambda: deletions("adult", **SHORT),
        "adult, 31 leaves": lambda: deletions("adult", tapes=3, each=60, **WIDE),
        "million": lambda: deletions("million", each=30),
    },
    "curve": {"adult": lambda setting: curve("adult", setting)},
    "batch": {name: lambda name=name: batch(name) for name in ("adult", "million")},
    "rest": {name: lambda name=name: rest(name) for name in ("adult", "million")},
    "stored": {name: lambda name=name: stored(name) for name in ("adult", "million")},
}


BY_SETTING = ("scores", "curve")


def main(arguments: list[str]) -> None:
    """Measure some parts, and write what was found."""
    only = arguments[arguments.index("--only") + 1] if "--only" in arguments else ""
    setting = arguments[arguments.index("--setting") + 1] if "--setting" in arguments else ""
    wanted = [each for each in arguments if each in PARTS] or list(PARTS)
    known = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    for part in wanted:
        for case, work in PARTS[part].items():
            if only and only != case:
                continue
            name = case.partition(",")[0]
            compiled(name, DATA[name]())
            if part in BY_SETTING:
                known.setdefault(part, {}).setdefault(case, {}).update(work(setting))
            else:
                known.setdefault(part, {})[case] = work()
            print(part, case, json.dumps(known[part][case]), flush=True)
            RESULTS.write_text(json.dumps(known, indent=1, sort_keys=True) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
