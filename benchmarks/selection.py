"""How fast records are selected, against NumPy and two libraries, and how much memory it takes.

    python benchmarks/selection.py                          everything, then the page
    python benchmarks/selection.py --parts heap peers       some of it
    python benchmarks/selection.py --report                 only the page, from the results

Each part leaves a JSON file in ``benchmarks/results``; ``docs/selection-benchmarks.md`` is written
from them. The libraries are those of the extra ``bench``; one that is missing or crashes is named
on the page, and the rest is measured. Exit status 1 means that two that should agree did not.
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
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import selection_data as data
import selection_page
from online_deletion import RESULTS, environment, tidy
from selection_processes import PEERS, STAYING, fresh, ours, took

from erasable.selection import BetaBinomial, Independent, NearestNeighbor, PointMass, SubsetSelector
from erasable.selection import Uniform as UniformSize

N, K = 6_000, 500
ROUNDS = 5
SIZES = (100_000, 1_000_000)
SAME = 1e-5  # of the value: sums of float32 part company
KEPT = (8, 16, 32, 64, 128, 256)


def staying_models(k: int) -> dict[str, tuple[Any, np.ndarray]]:
    """Return staying models, each with the weights of ranks by which its expectation is checked."""
    half = k // 2
    alike = np.where(np.arange(k + 1) >= half, 1 / (k - half + 1), 0.0)
    return {
        "Independent(0.6)": (Independent(0.6), data.ranks_of_independent(0.6, k)),
        f"Uniform({half}, {k})": (UniformSize(half, k), data.ranks_of_sizes(alike)),
        "BetaBinomial(4, 2)": (
            BetaBinomial(4, 2), data.ranks_of_sizes(data.beta_binomial(4, 2, k)),
        ),
        "BetaBinomial(1, 1)": (
            BetaBinomial(1, 1), data.ranks_of_sizes(data.beta_binomial(1, 1, k)),
        ),
        f"PointMass({half})": (PointMass(half), data.ranks_of_sizes(np.eye(k + 1)[half])),
    }  # fmt: skip


def heap(rounds: int = ROUNDS) -> dict[str, Any]:
    """Time plain and expected selection and the ten lines of NumPy, in turns."""
    kernel = data.similarities(data.fashion()[0][:N])
    models = staying_models(K)
    calls: dict[str, Callable[[], np.ndarray]] = {
        "heap": lambda: np.array(data.numpy_heap(kernel, K)),
        "plain": lambda: ours(kernel, K).selected_,
    }
    for name, (staying, _) in models.items():
        calls[name] = lambda staying=staying: ours(kernel, K, staying)  # type: ignore[misc]
    small = kernel[:600, :600].copy()
    for staying in (1.0, *(staying for staying, _ in models.values())):
        ours(small, K, staying)  # compiles
    seconds: dict[str, list[float]] = {name: [] for name in calls}
    found: dict[str, Any] = {}
    for _ in range(rounds):
        for name, call in calls.items():
            gc.collect()
            spent, found[name] = took(call)
            seconds[name].append(spent)
    lines = []
    for name, (_, weights) in models.items():
        lines.append(
            {
                "name": name,
                "seconds": min(seconds[name]),
                "value": found[name].utility_,
                "by ranks": data.expected_value(kernel, found[name].selected_, weights),
                "plain": data.expected_value(kernel, found["plain"], weights),
            }
        )
    return {
        "n": N, "d": data.SIDE, "k": K, "rounds": rounds, "heap": min(seconds["heap"]),
        "plain": min(seconds["plain"]), "heap value": data.value(kernel, found["heap"]),
        "plain value": data.value(kernel, found["plain"]), "expected": lines,
    }  # fmt: skip


def peers(rounds: int = ROUNDS) -> dict[str, Any]:
    """Time libraries, each in a process of its own."""
    found = [{"package": PEERS[name], **fresh("peer", name, N, K, rounds)} for name in PEERS]
    return {"n": N, "k": K, "rounds": rounds, "peers": found}


def fashion() -> dict[str, Any]:
    """Select from Fashion-MNIST as it is, class by class."""
    return {"runs": [fresh("whole", 1_000, staying) for staying in STAYING]}


def million() -> dict[str, Any]:
    """Select from 1,000,000 records by their nearest; and from fewer, to see how it grows."""
    runs: list[dict[str, Any]] = []
    for n in SIZES:
        found = fresh("million", n, 1_000)
        runs += found.get("runs", [{"n": n, **found}])
    return {"runs": runs}


def truncation() -> dict[str, Any]:
    """See what a selection loses by looking at the nearest alone: its value by all pairs."""
    cases = []
    for title, X, k in (
        (f"Fashion-MNIST, {N:,} records", data.fashion()[0][:N], K),
        ("10,000 x 64, drawn", data.bent(10_000), 500),
    ):
        kernel = data.similarities(X)
        for staying in STAYING:
            weights = data.ranks_of_independent(staying, k)
            chosen = ours(kernel, k, staying).selected_
            lines = []
            for m in KEPT:
                utility = NearestNeighbor(n_neighbors=m)
                some = SubsetSelector(utility, k=k, staying=staying).fit(X).selected_
                lines.append({"kept": m, "value": data.expected_value(kernel, some, weights)})
            rng = np.random.default_rng(0)
            drawn = [
                data.expected_value(kernel, rng.permutation(len(X))[:k], weights) for _ in range(10)
            ]
            cases.append(
                {
                    "title": title, "k": k, "staying": staying, "lines": lines,
                    "whole": data.expected_value(kernel, chosen, weights),
                    "random": float(np.mean(drawn)),
                }
            )  # fmt: skip
    return {"cases": cases}


PARTS: dict[str, Callable[..., dict[str, Any]]] = {
    "heap": heap,
    "peers": peers,
    "fashion": fashion,
    "million": million,
    "truncation": truncation,
}


def disagreements(name: str, cell: dict[str, Any]) -> list[str]:
    """Name what should be equal and is not."""
    pairs: list[tuple[str, float, float]] = []
    if name == "heap":
        pairs.append(("the ten lines of NumPy", cell["plain value"], cell["heap value"]))
        pairs += [(line["name"], line["value"], line["by ranks"]) for line in cell["expected"]]
    if name == "peers":
        done = [peer for peer in cell["peers"] if "failed" not in peer]
        pairs += [(peer["name"], peer["our value"], peer["value"]) for peer in done]
    return [
        f"{what}: {mine:.8g} and {other:.8g}"
        for what, mine, other in pairs
        if not abs(mine - other) <= SAME * abs(other)
    ]


def main(arguments: list[str] | None = None) -> int:
    """Run what was asked for; 1 if values differ."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--parts", nargs="+", choices=list(PARTS), default=list(PARTS))
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="of the contenders' turns")
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--report", action="store_true", help="measure nothing; write the page")
    options = parser.parse_args(arguments)
    wrong = []
    if not options.report:
        options.results.mkdir(parents=True, exist_ok=True)
        for name in options.parts:
            began = time.perf_counter()
            timed = name in ("heap", "peers")
            measured = PARTS[name](options.rounds) if timed else PARTS[name]()
            cell = tidy({"environment": environment(), **measured})
            path = options.results / f"selection-{name}.json"
            path.write_text(json.dumps(cell) + "\n", encoding="utf-8")
            wrong += disagreements(name, cell)
            print(f"{name}: {time.perf_counter() - began:.0f} s", flush=True)
    selection_page.write(options.results)
    for each in wrong:
        print(f"not the same: {each}", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
