"""What needs a process of its own: peers that may crash, and peak memory.

Run as a script, this is one such process; it prints one line of JSON.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from importlib.metadata import version
from typing import Any

import numpy as np
import selection_data as data
from processes import status

from erasable.selection import NearestNeighbor, SubsetSelector

PEERS = {"apricot": "apricot-select", "submodlib": "submodlib-py"}
NEIGHBORS = 32
STAYING = (1.0, 0.6)


def fresh(*arguments: Any) -> dict[str, Any]:
    """Run this file, and read what it prints; a crash is a result, too."""
    done = subprocess.run(
        [sys.executable, __file__, *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode == 0:
        found: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
        return found
    told = (done.stderr.strip() or "nothing").splitlines()[-1]
    return {"failed": f"exit status {done.returncode}: {told}"}


def took(call: Callable[[], Any]) -> tuple[float, Any]:
    """Return the processor time of a call, and what it returned."""
    began = time.process_time()
    found = call()
    return time.process_time() - began, found


def ours(kernel: np.ndarray, k: int, staying: Any = 1.0) -> SubsetSelector:
    return SubsetSelector(NearestNeighbor("precomputed"), k=k, staying=staying).fit(kernel)


def _apricot(kernel: np.ndarray, k: int) -> np.ndarray:
    from apricot import FacilityLocationSelection

    model = FacilityLocationSelection(k, metric="precomputed", optimizer="lazy")
    return np.asarray(model.fit(kernel).ranking)


def _submodlib(kernel: np.ndarray, k: int) -> np.ndarray:
    from submodlib import FacilityLocationFunction

    function = FacilityLocationFunction(len(kernel), "dense", sijs=kernel, separate_rep=False)
    chosen = function.maximize(k, optimizer="LazyGreedy", show_progress=False)
    return np.array([j for j, _ in chosen])


def peer(name: str, n: int, k: int, rounds: int) -> dict[str, Any]:
    """Time a library and ourselves in turns."""
    kernel = data.similarities(data.fashion()[0][:n])
    choose = {"apricot": _apricot, "submodlib": _submodlib}[name]
    choose(kernel[:200, :200].copy(), 5)
    ours(kernel[:200, :200].copy(), 5)
    theirs, mine = [], []
    for _ in range(rounds):
        seconds, chosen = took(lambda: choose(kernel, k))
        theirs.append(seconds)
        seconds, model = took(lambda: ours(kernel, k))
        mine.append(seconds)
    return {
        "name": f"{PEERS[name]} {version(PEERS[name])}",
        "seconds": min(theirs),
        "ours": min(mine),
        "value": data.value(kernel, chosen),
        "our value": data.value(kernel, model.selected_),
    }


def whole(k: int, staying: float) -> dict[str, Any]:
    """Select from all of Fashion-MNIST, class by class, and say what memory it took."""
    X, y = data.fashion()
    ours(data.similarities(X[:100]), 5, staying)
    before = status("VmHWM")
    selector = SubsetSelector(NearestNeighbor(), k=k, staying=staying)
    seconds, _ = took(lambda: selector.fit(X, y))
    return {
        "n": len(X), "d": X.shape[1], "k": k, "staying": staying, "seconds": seconds,
        "before": before, "peak": status("VmHWM"), "value": selector.utility_,
    }  # fmt: skip


def million(n: int, k: int) -> list[dict[str, Any]]:
    """Select from many records by the nearest of each, found approximately, and once."""
    from pynndescent import PyNNDescentTransformer

    spent: list[float] = []
    graphs: dict[int, Any] = {}

    class Once(PyNNDescentTransformer):  # type: ignore[misc]
        def fit_transform(self, X: Any, y: Any = None, **params: Any) -> Any:
            if len(X) not in graphs:
                search = super().fit_transform
                seconds, graphs[len(X)] = took(lambda: search(X, y, **params))
                spent.append(seconds)
            return graphs[len(X)]

    X = data.bent(n)
    finder = Once(n_neighbors=NEIGHBORS, metric="euclidean", random_state=0, n_jobs=1)
    utility = NearestNeighbor(neighbors=finder)
    for staying in STAYING:
        SubsetSelector(utility, k=5, staying=staying).fit(X[:2000])  # compiles
    rng = np.random.default_rng(0)
    some = X[rng.permutation(n)[:20_000]]  # of the targets: all would take as long as all pairs
    by_chance = data.mean_distance(some, X[rng.permutation(n)[:k]])
    runs = []
    for staying in STAYING:
        spent.clear()
        selector = SubsetSelector(utility, k=k, staying=staying)
        before = status("VmHWM")
        seconds, _ = took(partial(selector.fit, X))
        runs.append({
            "n": n, "d": X.shape[1], "k": k, "staying": staying, "neighbors": NEIGHBORS,
            "search": sum(spent), "select": seconds - sum(spent), "before": before,
            "peak": status("VmHWM"), "pynndescent": version("pynndescent"), "random": by_chance,
        })  # fmt: skip
        runs[-1]["selected"] = data.mean_distance(some, X[selector.selected_])
    return runs


if __name__ == "__main__":
    what, *rest = sys.argv[1:]
    if what == "peer":
        answer = peer(rest[0], *map(int, rest[1:]))
    elif what == "whole":
        answer = whole(int(rest[0]), float(rest[1]))
    else:
        answer = {"runs": million(int(rest[0]), int(rest[1]))}
    print(json.dumps(answer))
    sys.stdout.flush()
    os._exit(0)  # a peer that crashes as it is taken down has answered all the same
