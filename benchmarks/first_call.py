"""What a first call waits for: import, fit and deletion of each estimator with nothing compiled.

    python benchmarks/first_call.py [--only KMeans Ridge ...]

Each estimator has a process of its own and an empty folder for compiled kernels. It learns from 300
small records, with default parameters or the few of `PARAMS`, and deletes one of them; a second
deletion shows what is left to wait for afterwards. A line of JSON tells the seconds by the clock
and by the processor, and how many functions, for how many combinations of types, were compiled in
each step. On a machine with other work the seconds by the processor say more.
"""

# ruff: noqa: E402
from __future__ import annotations

import os

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ[_name] = "1"
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # a user's Python keeps its bytecode

import argparse
import importlib
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any

import numpy as np

RECORDS, FEATURES = 300, 5
PARAMS: dict[str, dict[str, Any]] = {
    "DivideAndConquerKMeans": {"n_clusters": 3, "random_state": 0},
    "ExtraTreesClassifier": {"n_estimators": 5, "random_state": 0},
    "ExtraTreesRegressor": {"n_estimators": 5, "random_state": 0},
    "HistGradientBoostingClassifier": {"max_iter": 5, "random_state": 0},
    "HistGradientBoostingRegressor": {"max_iter": 5, "random_state": 0},
    "KMeans": {"n_clusters": 3, "random_state": 0},
    "QuantizedKMeans": {"n_clusters": 3, "random_state": 0},
    "RandomForestClassifier": {"n_estimators": 5, "random_state": 0},
    "RandomForestRegressor": {"n_estimators": 5, "random_state": 0},
}
COUNTS = ("CategoricalNB", "ItemNeighbors", "MultinomialNB", "OneHotEncoder", "OrdinalEncoder")
TEXTS = ("CountVectorizer", "TfidfVectorizer")


def draw(name: str, kind: str) -> tuple[Any, ...]:
    """Draw small records that the estimator takes, and a target if it needs one."""
    rng = np.random.default_rng(0)
    X: Any = rng.normal(size=(RECORDS, FEATURES))
    amount = X @ np.arange(1.0, FEATURES + 1)
    if name in COUNTS:
        X = rng.integers(0, 5, size=(RECORDS, FEATURES))
    if name in TEXTS:
        X = [" ".join(f"word{i}" for i in row) for row in rng.integers(0, 40, (RECORDS, 12))]
    targets = {"classifier": (amount > 0).astype(np.int64), "regressor": amount}
    return (X, targets[kind]) if kind in targets else (X,)


def _home(cls: type[Any]) -> str:
    """Return the public package of an estimator, whose module may be in a package of its own."""
    return ".".join(cls.__module__.split(".")[:2])


def made(name: str, home: str) -> Any:
    """Import an estimator and make one; those that are made of others are made of their kind."""
    cls = getattr(importlib.import_module(home), name)
    if name == "Pipeline":
        from erasable.preprocessing import StandardScaler

        cluster = importlib.import_module("erasable.cluster")
        return cls([("scale", StandardScaler()), ("cluster", cluster.KMeans(3, random_state=0))])
    if name == "ColumnTransformer":
        from erasable.preprocessing import StandardScaler

        return cls([("scale", StandardScaler(), [0, 1])])
    if name in ("BaggingClassifier", "ShardedClassifier"):
        from sklearn.tree import DecisionTreeClassifier

        return cls(DecisionTreeClassifier(max_depth=3), random_state=0)
    if name in ("BaggingRegressor", "ShardedRegressor", "Refit"):
        from sklearn.tree import DecisionTreeRegressor

        return cls(DecisionTreeRegressor(max_depth=3), random_state=0)
    return cls(**PARAMS.get(name, {}))


def once(name: str, home: str, kind: str) -> dict[str, Any]:
    """Measure the steps of an estimator, in this process."""
    data = draw(name, kind)
    found: dict[str, Any] = {"estimator": name}
    models: list[Any] = []
    compiled: list[Any] = []

    def start() -> None:
        from numba.core import event

        class Listener(event.Listener):
            def on_start(self, event: Any) -> None:
                compiled.append(event.data["dispatcher"].py_func)

            def on_end(self, event: Any) -> None:
                pass

        event.register("numba:compile", Listener())
        models.append(made(name, home))

    steps: dict[str, Callable[[], Any]] = {
        "import": start,
        "fit": lambda: models[0].fit(*data),
        "deletion": lambda: models[0].delete([3]),
        "second deletion": lambda: models[0].delete([5]),
    }
    for step, act in steps.items():
        compiled.clear()
        began, used = time.perf_counter(), time.process_time()
        act()
        found[step] = {
            "seconds": round(time.perf_counter() - began, 3),
            "cpu": round(time.process_time() - used, 3),
            "functions": len({id(each) for each in compiled}),
            "signatures": len(compiled),
        }
    return found


def apart(name: str, home: str, kind: str) -> dict[str, Any]:
    """Measure an estimator in a process of its own, with an empty folder for kernels."""
    with tempfile.TemporaryDirectory() as folder:
        run = [sys.executable, __file__, "--child", name, home, kind]
        env = os.environ | {"NUMBA_CACHE_DIR": folder}
        done = subprocess.run(run, env=env, check=True, stdout=subprocess.PIPE, text=True)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def main() -> None:
    """Read the command line, and measure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="+", metavar="NAME")
    parser.add_argument("--child", nargs=3, help=argparse.SUPPRESS)
    said = parser.parse_args()
    if said.child:
        print(json.dumps(once(*said.child)))
        return
    import erasable

    known = {
        name: (_home(cls), "regressor" if name == "Refit" else tags["kind"])
        for name, cls, tags in erasable.all_estimators()
    }
    if unknown := sorted(set(said.only or ()) - set(known)):
        parser.error(f"no estimator is named {', '.join(unknown)}")
    for name in said.only or known:
        print(json.dumps(apart(name, *known[name])), flush=True)


if __name__ == "__main__":
    main()
