"""k-means: tables 1 to 4 and figures 1 and 3 to 6 of *Making AI Forget You*.

Usage: ``python experiments/deletion/kmeans.py [--quick] [--parts NAME ...]``. It runs
``benchmarks/online_deletion.py``, which measures more, and stores what its page is made from.
"""

from __future__ import annotations

import functools
import importlib
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import deletion_page
import numpy as np
from shared import ROOT, command, data_sets, figures, line, spread

printed_there: Any = importlib.import_module("benchmarks.paper")
BENCHMARK = ROOT / "benchmarks" / "online_deletion.py"
OURS = ("kmeans", "quantized", "divide")
FILES = {
    "covertype": ["covertype/covertype_train_15120.csv.gz"],
    "gaussian": [],
    "mnist": [f"mnist/{name}.gz" for name in data_sets.IMAGES[:2]],
}
METRICS = {"loss": printed_there.LOSS, "silhouette": printed_there.SILHOUETTE,
           "nmi": printed_there.NMI}  # fmt: skip
SPEEDUPS = {name: (None, *row[3:]) for name, row in printed_there.RUNTIME.items()}


def cells(part: str, source: str, models: Any, **options: Any) -> dict[str, Any]:
    """Run a part of the benchmark on a data set; return its cells by their names."""
    for file in FILES.get(source, []):
        data_sets.path(file)
    given = [word for key, value in options.items() for word in (f"--{key}", str(value))]
    with tempfile.TemporaryDirectory() as folder:
        words = ["--parts", part, "--data", source, "--models", *models, "--results", folder]
        done = subprocess.run(
            [sys.executable, str(BENCHMARK), *words, *given],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        if done.returncode:
            said = done.stderr.strip()
            error = RuntimeError(f"{BENCHMARK.name}: {said.rpartition(chr(10))[2]}")
            error.add_note(f"{BENCHMARK.name} said:\n{said}")
            raise error
        return {
            path.stem: json.loads(path.read_text(encoding="utf-8"))
            for path in sorted(Path(folder).glob("*.json"))
        }


def text_of(made: Any) -> str:
    """Return what names an object of the user's."""
    return f"{made.__module__}:{made.__name__}"


def stream(
    source: str,
    quick: bool,
    data: Any = None,
    estimator: Any = None,
    seeds: int | None = None,
    budgets: Any = None,
) -> dict[str, Any]:
    """Fit, and delete one record at a time: tables 1 to 4, and figure 1."""
    given = source if data is None else text_of(data)
    models = OURS if estimator is None else [text_of(estimator)]
    replicates, deletions, refits = (1, 200, 3) if quick else (5, 1_000, 100)
    deletions = command.counts(budgets, ())[0] if budgets else deletions
    found = cells("stream", given, models, replicates=seeds or replicates, deletions=deletions,
                  refits=refits)  # fmt: skip
    rows, lines, paper_rows = [], [], []
    for cell in found.values():
        runs = cell["replicates"]
        ratios = {"loss": [], "silhouette": [], "nmi": []}
        for number, run in enumerate(runs):
            last, base = run["judged"][str(deletions)], run["peer"]["converged"][str(deletions)]
            ratios["loss"].append(last["loss"] / base["loss"])
            ratios["silhouette"].append(last["silhouette"])
            ratios["nmi"].append(last["nmi"])
            kept = "yes" if all(run["law"].values()) else "no"
            rows.append([
                cell["model"], str(number), f"{run['speedup']:.1f}", f"{run['total']:.4g}",
                *(f"{values[-1]:.4f}" for values in ratios.values()), kept,
            ])  # fmt: skip
        amortised = [1000 * np.divide(run["curve"]["seconds"], run["curve"]["deletions"])
                     for run in runs]  # fmt: skip
        lines.append(line(cell["model"], np.log10(runs[0]["curve"]["deletions"]), amortised))
        ours = {"speed-up": [run["speedup"] for run in runs], **ratios}
        paper_rows.append([
            cell["model"],
            *(text for what, values in ours.items()
              for text in (there(what, source, cell["model"], data), spread(values, 3))),
        ])  # fmt: skip
    head = ["model", *(f"{who}{what}" for what in ours for who in ("paper: ", ""))]
    name = source if data is None else data.__name__
    figure = {
        "kind": "lines", "title": f"Figure 1: milliseconds a deletion, with the fit, {name}",
        "x": "log10 of the number of deletions", "y": "milliseconds",
        "panels": [figures.panel(name, lines)],
    }  # fmt: skip
    own = ["model", "replicate", "speed-up", "seconds", "loss ratio", "silhouette", "nmi", "exact"]
    return {
        "settings": {
            name: f"{len(rows) // len(found)} streams of {deletions:,} deletions; scikit-learn is "
            f"refitted {refits} times in each; losses are over those of k-means until convergence"
        },
        "figures": {f"1-{name}": figure},
        "notes": {
            f"stream-{name}": {"head": own, "rows": rows},
            f"paper-{name}": {"head": head, "rows": paper_rows},
        },
    }


def there(what: str, source: str, model: str, data: Any) -> str:
    """Return what the paper prints."""
    name = printed_there.NAMES.get(source)
    if data is not None or model not in OURS:
        return "-"
    printed = (SPEEDUPS if what == "speed-up" else METRICS[what])[name][OURS.index(model)]
    if printed is None:
        return "-"
    return f"{printed:.1f}" if what == "speed-up" else f"{printed[0]:g} ± {printed[1]:g}"


def sweep(part: str, quick: bool, budgets: Any = None) -> dict[str, Any]:
    """Change the parameters of both algorithms: loss (3 and 4), or time of a deletion (5 and 6)."""
    sources = list(FILES) if part == "loss" and not quick else ["covertype"]
    deletions = command.counts(budgets, ())[0] if budgets else 20 if quick else 1_000
    key, axis = {"loss": ("ratios", "loss ratio"), "runtime": ("amortised", "seconds")}[part]
    first = {"loss": 3, "runtime": 5}[part]
    drawn: dict[str, dict[str, Any]] = {"epsilon": {}, "width": {}}
    for source in sources:
        for cell in cells(part, source, OURS[1:], deletions=deletions).values():
            runs = np.array(cell[key], float).T
            made = line(source, np.log2(cell["values"]), runs)
            drawn[cell["parameter"]][source] = made
    return {
        "figures": {
            str(first + at): {
                "kind": "lines", "title": f"Figure {first + at}: {axis} against {parameter}",
                "x": f"log2 of {parameter}", "y": axis,
                "panels": [figures.panel("", list(by_source.values()))],
            }
            for at, (parameter, by_source) in enumerate(drawn.items())
        },
        "facts": {"deletions": deletions} if part == "runtime" else {},
    }  # fmt: skip


PARTS: dict[str, Any] = {
    "covertype": functools.partial(stream, "covertype"),
    "gaussian": functools.partial(stream, "gaussian"),
    "mnist": functools.partial(stream, "mnist"),
    "loss": functools.partial(sweep, "loss"),
    "runtime": functools.partial(sweep, "runtime"),
}
OWN = ("estimators", "seeds", "budgets")
TAKES = {
    "covertype": ("folder", "data", *OWN),
    "gaussian": OWN,
    "mnist": ("folder", *OWN),
    "loss": ("folder",),
    "runtime": ("folder", "budgets"),
}
PAGE = SimpleNamespace(RESULTS=None, printed=deletion_page.printed)

if __name__ == "__main__":
    sys.exit(command.run("k-means", __doc__, PARTS, PAGE, takes=TAKES))
