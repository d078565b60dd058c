"""The online deletion benchmark: train once, delete 1,000 records one at a time.

    python benchmarks/online_deletion.py                             everything, then the page
    python benchmarks/online_deletion.py --parts stream --data covertype --models kmeans \\
        --replicates 2 --deletions 200 --results /tmp/try            one small cell
    python benchmarks/online_deletion.py --data mine:irises --models mine:batches \\
        --results /tmp/mine                                          data and a method of your own
    python benchmarks/online_deletion.py --report                    only the page, from the results

Each part and data set leaves a small JSON file in ``benchmarks/results``; the page
``docs/benchmarks.md`` and its figures are written from them. Exit status 1 means that a model was
not what a fit on the remaining records gives.
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
import math
import platform
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import contenders
import data as data_sets
import numba
import numpy as np
import processes
import report
import sklearn
import stream
import sweeps
from data import ROOT, SOURCES
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_info

RESULTS = ROOT / "benchmarks" / "results"
SEEDS = 20
BUDGET = 60.0

Cell = tuple[str, dict[str, Any]]


def environment() -> dict[str, Any]:
    """Say what the measurements were made with."""
    cpuinfo = Path("/proc/cpuinfo")
    lines = cpuinfo.read_text(encoding="utf-8").splitlines() if cpuinfo.exists() else []
    models = [line.split(":")[1].strip() for line in lines if line.startswith("model name")]
    return {
        "processor": models[0] if models else platform.processor(),
        "cores": os.cpu_count(),
        "threads": max([1, *(pool["num_threads"] for pool in threadpool_info())]),
        "python": platform.python_version(),
        "numpy": np.__version__,
        "scikit-learn": sklearn.__version__,
        "numba": numba.__version__,
    }


def tidy(value: Any) -> Any:
    """Round floats to six digits; JSON has no NaN."""
    if isinstance(value, dict):
        return {str(key): tidy(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [tidy(entry) for entry in value]
    if isinstance(value, float | np.floating):
        return float(f"{value:.6g}") if math.isfinite(value) else None
    if isinstance(value, np.integer):
        return int(value)
    return value


def stream_cells(options: argparse.Namespace, names: list[str]) -> Iterator[Cell]:
    """Measure the stream of deletions: one cell for each data set and model."""
    for source in options.data:
        data = data_sets.load(source)
        most = stream.most_deletions(data)
        if options.deletions > most:
            raise SystemExit(
                f"{source}: {options.deletions} deletions one by one; {len(data.X)} records in "
                f"{data.k} clusters allow at most {most}, and as many at once"
            )
        contenders.warm_up(names, data.X, data.k)
        refits = options.refits or SOURCES[source].refits
        if options.full:
            refits = options.deletions
        budget = math.inf if options.full else options.budget
        plan = stream.Plan(options.replicates, options.deletions, refits, budget)
        runs = []
        for number in range(plan.replicates):
            began = time.perf_counter()
            runs.append(stream.replicate(data, names, number, plan))
            took = time.perf_counter() - began
            print(f"  {source}: replicate {number + 1} took {took:.0f} s", flush=True)
        for name in names:
            results = [run[name] for run in runs]
            yield (
                f"stream-{source}-{name}",
                {
                    "data": source,
                    "model": name,
                    "shape": list(data.X.shape),
                    "k": data.k,
                    "deletions": plan.deletions,
                    "replicates": results,
                },
            )
            _say(source, name, results)


def _say(source: str, name: str, results: list[dict[str, Any]]) -> None:
    speedup = np.mean([result["speedup"] for result in results])
    total = np.mean([result["total"] for result in results])
    fits = np.mean([np.mean(r["fit_seconds"]) for r in results])
    peer = np.mean([result["peer"]["mean"] for result in results])
    law = all(all(result["law"].values()) for result in results)
    print(
        f"  {source} {contenders.TITLES[name]}: {total:.2f} s, {speedup:.1f} x, "
        f"fit {fits / peer:.2f} of scikit-learn's, law {'kept' if law else 'BROKEN'}",
        flush=True,
    )


def quality_cells(options: argparse.Namespace, names: list[str]) -> Iterator[Cell]:
    """Measure the losses over seeds."""
    for source in options.data:
        data = data_sets.load(source)
        contenders.warm_up(names, data.X, data.k)
        yield f"quality-{source}", sweeps.quality(data, names, options.seeds)


def memory_cells(options: argparse.Namespace, names: list[str]) -> Iterator[Cell]:
    """Measure peak memory, one process for each data set and model."""
    peers = [f"peer:{kind}" for kind in sorted({contenders.peer_of(name) for name in names})]
    for source in options.data:
        data = data_sets.load(source)
        contenders.warm_up(names, data.X, data.k)
        peaks = processes.memory(data.X, data.k, [*names, *peers])
        yield f"memory-{source}", {"data": data.X.nbytes / 2**20, "peaks": peaks}


_SWEEPS = {"quantized": ("epsilon", sweeps.EPSILONS), "divide": ("width", sweeps.WIDTHS)}


def loss_cells(options: argparse.Namespace, names: list[str]) -> Iterator[Cell]:
    """Sweep the parameters of the paper's two algorithms: loss."""
    for source in options.data:
        data = data_sets.load(source)
        contenders.warm_up(names, data.X, data.k)
        for name, (parameter, values) in _SWEEPS.items():
            if name in names:
                cell = sweeps.loss_sweep(data, name, parameter, values)
                yield f"loss-{parameter}-{source}", cell


def runtime_cells(options: argparse.Namespace, names: list[str]) -> Iterator[Cell]:
    """Sweep the parameters of the paper's two algorithms on covertype: runtime."""
    data = data_sets.load("covertype")
    contenders.warm_up(names, data.X, data.k)
    for name, (parameter, values) in _SWEEPS.items():
        if name in names:
            cell = sweeps.runtime_sweep(data, name, parameter, values, options.deletions)
            yield f"runtime-{parameter}", cell


def growth_cells(options: argparse.Namespace, names: list[str]) -> Iterator[Cell]:
    """Measure how a deletion's cost grows with n."""
    X, _ = data_sets.separated(1_000)
    contenders.warm_up(names, X, 10)
    yield "growth", sweeps.growth(names)


def import_cells(options: argparse.Namespace, names: list[str]) -> Iterator[Cell]:
    """Time imports, and look for compiling in a second process."""
    yield "imports", processes.imports()


PARTS: dict[str, Callable[[argparse.Namespace, list[str]], Iterator[Cell]]] = {
    "stream": stream_cells,
    "quality": quality_cells,
    "memory": memory_cells,
    "loss": loss_cells,
    "runtime": runtime_cells,
    "growth": growth_cells,
    "imports": import_cells,
}


def parse(arguments: list[str] | None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--parts", nargs="+", choices=PARTS, default=list(PARTS), help="what to measure")
    given = "; or module:name of "
    add(
        "--data",
        nargs="+",
        type=data_sets.chosen,
        default=list(SOURCES),
        help=f"on which data sets: {', '.join(SOURCES)}{given}a function that returns X, labels",
    )
    models = list(contenders.TITLES)
    add(
        "--models",
        nargs="+",
        type=contenders.chosen,
        default=models,
        help=f"which estimators: {', '.join(models)}{given}what makes one, given k, max_iter and "
        "random_state",
    )
    add("--replicates", type=int, default=5, help="streams on each data set")
    add("--deletions", type=int, default=1_000, help="deletions in a stream")
    add("--seeds", type=int, default=SEEDS, help="seeds of the part 'quality'")
    add("--refits", type=int, help="scikit-learn's refits in a stream (default: by data set)")
    add("--full", action="store_true", help="all refits, and no budget")
    budget = "seconds a model may spend on one stream; what is left is then deleted at once, "
    add("--budget", type=float, default=BUDGET, help=budget + "and the total scaled up")
    add("--results", type=Path, default=RESULTS, help="where the JSON files go; the page goes "
        "there too, unless this is the default")  # fmt: skip
    add("--report", action="store_true", help="measure nothing; write the page")
    return parser.parse_args(arguments)


def main(arguments: list[str] | None = None) -> int:
    """Run what was asked for; 1 if a model broke the law."""
    options = parse(arguments)
    folder: Path = options.results
    page = ROOT / "docs" if folder.resolve() == RESULTS else folder
    kept = True
    if not options.report:
        folder.mkdir(parents=True, exist_ok=True)
        warnings.simplefilter("ignore", ConvergenceWarning)
        names = contenders.present(options.models)
        gc.disable()
        for part in options.parts:
            began = time.perf_counter()
            for cell, result in PARTS[part](options, names):
                text = json.dumps(tidy({"environment": environment(), **result}))
                (folder / f"{cell}.json").write_text(text + "\n", encoding="utf-8")
                runs = result.get("replicates", [])
                kept = kept and all(all(run["law"].values()) for run in runs)
            print(f"{part}: {time.perf_counter() - began:.0f} s", flush=True)
        gc.enable()
    report.write(folder, page)
    if not kept:
        print("A model is not what a fit on the remaining records gives.", file=sys.stderr)
    return 0 if kept else 1


if __name__ == "__main__":
    sys.exit(main())
