"""What the experiments on removal share: with those on selection, and among themselves."""

from __future__ import annotations

import importlib
import sys
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from erasable.removal import DomainRemoval, RemovalWarning

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
for folder in (HERE.parent / "selection", ROOT):
    sys.path.append(str(folder))
data_sets: Any = importlib.import_module("data").data_sets
command: Any = importlib.import_module("command")
figures: Any = importlib.import_module("figures")
report: Any = importlib.import_module("report")

# One look for a score in all figures; those that are not the paper's own are dashed.
STYLES = {
    "random": ("#999999", ":"),
    "density-ratio": ("#000000", "-"),
    "mu2-distance": ("#0072b2", "-"),
    "cos-mu2": ("#0072b2", "-"),
    "maha-mu2": ("#56b4e9", "-"),
    "lr-cos": ("#009e73", "-"),
    "lr-maha": ("#d55e00", "-"),
    "knn-ratio": ("#cc79a7", "-"),
    "norm": ("#e69f00", "-"),
    "coreset": ("#0072b2", "--"),
    "k-center": ("#009e73", "--"),
    "craig": ("#d55e00", "--"),
    "gradmatch": ("#cc79a7", "--"),
    "ccs": ("#e69f00", "--"),
    "density-ratio, SVD": ("#000000", "--"),
    "cos-mu2, SVD": ("#0072b2", "--"),
    "lr-cos, SVD": ("#009e73", "--"),
    "toxic first": ("#000000", "-."),
}


@dataclass(frozen=True)
class Ranked:
    """An order of the forget set, its trust, the share that goes by default, and `frontier_`."""

    order: Any
    trust: float = float("nan")
    share: float = float("nan")
    alpha: Any = None


OWN: dict[str, Any] = {}
"""Scores of the user's, by name."""


def chosen(scores: dict[str, Any] | None, names: Any) -> list[str]:
    """Return the names of given scores, and random; by default other names."""
    if scores is None:
        return list(names)
    for name, score in scores.items():
        if score is not name:
            OWN[name] = score() if isinstance(score, type) else score
    return list(dict.fromkeys(["random", *scores]))


def ranked(name: str, forget: Any, retain: Any, seed: int) -> Ranked:
    """Rank by a score of the library, or one of `OWN`."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RemovalWarning)  # its trust is in the tables
        score = OWN.get(name, name)
        try:
            removal = DomainRemoval(score, random_state=seed).fit(forget, retain)
        except Exception as error:
            error.add_note(f"score {name}")
            raise
    share = len(removal.selected_) / len(removal.order_)
    return Ranked(removal.order_, removal.trust_, share, removal.frontier_.alpha)


def spread(values: Any, digits: int = 1, scale: float = 1.0) -> str:
    """Write a mean with its standard error."""
    values = np.asarray(values, float) * scale
    if not np.isfinite(values).all():
        return f"not in {int((~np.isfinite(values)).sum())} of {len(values)} splits"
    error = values.std(ddof=1) / np.sqrt(len(values)) if len(values) > 1 else 0.0
    return f"{values.mean():.{digits}f} ± {error:.{digits}f}"


def line(label: str, x: Any, runs: Any) -> dict[str, Any]:
    """Make a line of a figure: means over runs, with their standard errors."""
    runs = np.asarray(runs, float)
    many = len(runs) > 1
    error = runs.std(axis=0, ddof=1) / np.sqrt(len(runs)) if many else np.zeros(runs.shape[1])
    return {"label": label, "x": x, "y": runs.mean(axis=0), "error": error, "runs": runs}


def exact_line(label: str, x: Any, y: Any) -> dict[str, Any]:
    """Make a line of what has no error."""
    return {"label": label, "x": x, "y": y, "error": np.zeros(len(y))}
