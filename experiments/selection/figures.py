"""Draws the figures of a result as small SVG files.

A figure of kind ``lines`` has panels with lines: `label`, `x`, `y` and, drawn as a band, twice the
standard error `error`. One of kind ``points`` has `points` with their `classes`, and panels of
those chosen; with `opacity`, points are the darker the likelier they stay. One of kind ``map`` has
cells of one `width`, as `runs` of row, first and last column, and panels with `marks` on them, by
label; a line is where one half of the map ends. Of lines, `across` says
how many panels are beside each other, `columns` how many entries of the legend are, and `styles`
has colours and styles by label.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np

mpl.use("Agg")
import matplotlib.pyplot as plt

STYLE = {
    "axes.grid": True,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlesize": 9,
    "font.size": 8,
    "grid.alpha": 0.3,
    "legend.frameon": False,
    "path.simplify": False,  # which would drop dots
    "svg.fonttype": "none",
    "svg.hashsalt": "erasable",
}
FIXED = {"DS": ("#555555", "--"), "random": ("#999999", ":")}
OTHERS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")
CLASSES = ("#0072b2", "#009e73")
CHOSEN = "#d00000"
MARKS = (("#0072b2", "o"), ("#d00000", "x"))  # of selections on a map


def panel(title: str, lines: list[dict[str, Any]], y: str | None = None) -> dict[str, Any]:
    """Make a panel of a figure of lines; `y` where its axis is not the figure's."""
    return {"title": title, "lines": lines} | ({} if y is None else {"y": y})


def line(label: str, x: Any, outcomes: Any) -> dict[str, Any]:
    """Make a line of Outcomes."""
    return {
        "label": label,
        "x": list(x),
        "y": [each.mean for each in outcomes],
        "error": [each.error for each in outcomes],
    }


def draw(name: str, result: dict[str, Any], folder: Path, paper: str = "selection") -> list[str]:
    """Draw all the figures of an experiment; return the names of the files."""
    folder.mkdir(parents=True, exist_ok=True)
    files = []
    with mpl.rc_context(STYLE):
        for number, figure in result["figures"].items():
            drawn = {"lines": _lines, "points": _points, "map": _map}[figure["kind"]](figure)
            file = file_of(name, number, paper)
            drawn.savefig(folder / file, metadata={"Date": None}, transparent=False)
            plt.close(drawn)
            _shorten(folder / file)
            files.append(file)
    return files


def file_of(name: str, number: str, paper: str = "selection") -> str:
    """Return the name of a figure's file."""
    return f"{paper}-{name}-{number}.svg"


def _shorten(path: Path) -> None:
    """Round coordinates to hundredths of a point, and drop spaces at the ends of lines."""

    def rounded(attribute: re.Match[str]) -> str:
        return re.sub(r"\d+\.\d{3,}", lambda found: f"{float(found[0]):.2f}", attribute[0])

    text = re.sub(r'="[^"]*"', rounded, path.read_text(encoding="utf-8"))
    lines = [each.rstrip() for each in text.splitlines()]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def _panels(n: int, height: float, sharey: bool, across: int = 4) -> tuple[Any, Any]:
    across = min(n, across)
    down = -(-n // across)
    figure, axes = plt.subplots(
        down, across, figsize=(2.6 * across + 0.6, height * down + 0.5), layout="constrained",
        sharey=sharey, squeeze=False,
    )  # fmt: skip
    for axis in axes.flat[n:]:
        axis.set_axis_off()
    return figure, axes.flat


def _lines(given: dict[str, Any]) -> Any:
    sharey = not any("y" in each for each in given["panels"])
    figure, axes = _panels(len(given["panels"]), 2.4, sharey, given.get("across", 4))
    labels = list(
        dict.fromkeys(each["label"] for part in given["panels"] for each in part["lines"])
    )
    fixed = FIXED | given.get("styles", {})
    own = [label for label in labels if label not in fixed]
    styles = fixed | {
        label: (OTHERS[i % len(OTHERS)], "-" if i < len(OTHERS) else "-.")
        for i, label in enumerate(own)
    }
    entries: dict[str, Any] = {}
    for axis, part in zip(axes, given["panels"], strict=False):
        for each in part["lines"]:
            color, style = styles[each["label"]]
            x, y, error = (np.array(each[key], float) for key in ("x", "y", "error"))
            (entries[each["label"]],) = axis.plot(x, y, style, color=color, linewidth=1.1)
            if error.any():
                axis.fill_between(
                    x, y - 2 * error, y + 2 * error, color=color, alpha=0.2, linewidth=0
                )
        axis.set_title(part["title"])
        axis.set_xlabel(part.get("x", given["x"]))
        if "y" in part:
            axis.set_ylabel(part["y"])
    if sharey:
        axes[0].set_ylabel(given["y"])
    if len(entries) > 1:
        figure.legend(
            entries.values(), entries.keys(), loc="outside upper center",
            ncols=min(len(entries), given.get("columns", 3 if len(given["panels"]) < 3 else 6)),
        )  # fmt: skip
    return figure


def _points(given: dict[str, Any]) -> Any:
    figure, axes = _panels(len(given["panels"]), 2.2, sharey=True)
    points, classes = np.array(given["points"], float), np.array(given["classes"])
    opacity = np.array(given["opacity"], float) if "opacity" in given else None
    for axis, part in zip(axes, given["panels"], strict=False):
        for label in np.unique(classes):
            of_class = classes == label
            if opacity is None:
                _dots(axis, points[of_class], CLASSES[label])
            else:
                axis.scatter(
                    *points[of_class].T, s=9, color=CLASSES[label], alpha=opacity[of_class],
                    linewidths=0, clip_on=False,
                )  # fmt: skip
        axis.scatter(*points[part["chosen"]].T, s=26, color=CHOSEN, marker="x", linewidths=1.2)
        axis.set_title(part["title"])
        axis.set(xticks=[], yticks=[])
        axis.set_aspect("equal")
    return figure


def _map(given: dict[str, Any]) -> Any:
    figure, axes = _panels(len(given["panels"]), 3.0, sharey=True)
    runs, width = np.array(given["runs"]), given["width"]
    side = int(runs.max()) + 1
    cells = np.ones((side, side, 3))
    for row, first, last in runs:
        cells[row, first : last + 1] = 0.85
    end = side * width
    for axis, part in zip(axes, given["panels"], strict=False):
        axis.imshow(cells, origin="lower", extent=(0, end, 0, end), interpolation="none")
        axis.axvline(end / 2, color="#777777", linewidth=0.8, linestyle="--")
        for (label, points), (color, shape) in zip(part["marks"].items(), MARKS, strict=False):
            filled = {} if shape == "x" else {"facecolors": "none"}
            axis.scatter(
                *np.array(points).T, s=22, color=color, marker=shape, linewidths=1.1, label=label,
                **filled,
            )  # fmt: skip
        axis.set_title(part["title"])
        axis.set(xticks=[0, end / 2, end], yticks=[], xlabel="x0")
        axis.grid(visible=False)
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=2)
    return figure


def _dots(axis: Any, points: Any, color: str) -> None:
    """Draw dots as one path of very short lines, which have round ends: a small file."""
    twice = np.repeat(points, 3, axis=0)
    twice[1::3, 0] += np.ptp(points[:, 0]) / 500
    twice[2::3] = np.nan
    style = {"linewidth": 3, "solid_capstyle": "round", "snap": False}
    axis.plot(*twice.T, color=color, alpha=0.45, **style)
