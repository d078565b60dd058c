"""The JSON files of the benchmark, as the page and the figures read them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from contenders import TITLES
from data import SOURCES

NONE = "–"  # noqa: RUF001


class Results:
    """Whatever has been measured; what has not is None."""

    def __init__(self, folder: Path) -> None:
        self.cells: dict[str, Any] = {
            path.stem: json.loads(path.read_text(encoding="utf-8"), object_hook=_numbers)
            for path in sorted(folder.glob("*.json"))
        }

    def __getitem__(self, cell: str) -> Any:
        return self.cells.get(cell)

    def stream(self, data: str, model: str) -> dict[str, Any] | None:
        """Return the stream of a model on a data set."""
        return self[f"stream-{data}-{model}"]

    def any_stream(self, data: str) -> dict[str, Any] | None:
        """Return some stream whose peer is scikit-learn's plain KMeans, unscaled."""
        found = (self.stream(data, model) for model in TITLES if model != "pipeline")
        return next((cell for cell in found if cell), None)

    def measured(self) -> list[tuple[str, str]]:
        """Return the pairs of data set and model that have a stream."""
        return [(d, m) for d in SOURCES for m in TITLES if self.stream(d, m)]


def _numbers(entry: dict[str, Any]) -> dict[str, Any]:
    """Read null as not a number."""
    return {key: float("nan") if value is None else value for key, value in entry.items()}


def over(cell: dict[str, Any] | None, read: Callable[[dict[str, Any]], float]) -> list[float]:
    """Read one number from every replicate."""
    return [] if cell is None else [read(run) for run in cell["replicates"]]


def significant(value: float, digits: int = 3) -> str:
    """Write a number with some digits, never in scientific notation."""
    if not np.isfinite(value):
        return NONE
    if value == 0:
        return "0"
    decimals = max(0, digits - 1 - int(np.floor(np.log10(abs(value)))))
    return f"{value:,.{decimals}f}"


def spread(values: Sequence[float], digits: int = 3, unit: str = "") -> str:
    """Write mean and standard deviation."""
    if not values:
        return NONE
    mean, deviation = float(np.mean(values)), float(np.std(values))
    text = significant(mean, digits)
    decimals = len(text.partition(".")[2])
    return f"{text} ± {deviation:,.{decimals}f}{unit}"


def mean(values: Sequence[float], digits: int = 3, unit: str = "") -> str:
    """Write the mean."""
    return f"{significant(float(np.mean(values)), digits)}{unit}" if values else NONE


def fixed(values: Sequence[float]) -> str:
    """Write mean and standard deviation with three decimals, as the paper does."""
    return f"{np.mean(values):.3f} ± {np.std(values):.3f}" if values else NONE


def table(header: Sequence[str], rows: Iterable[Sequence[str]], left: Sequence[int] = (0,)) -> str:
    """Write a Markdown table; columns of words stand to the left."""
    rule = "".join("|---" if column in left else "|---:" for column in range(len(header)))
    lines = ["| " + " | ".join(header) + " |", rule + "|"]
    lines += ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join(lines)
