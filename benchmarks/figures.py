"""Figures 1 to 6 of the paper, and the growth of a deletion's cost, as small SVG files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from contenders import TITLES
from data import SOURCES
from results import Results

mpl.use("Agg")
import matplotlib.pyplot as plt

COLORS = {
    "kmeans": "#0072b2",
    "quantized": "#d55e00",
    "divide": "#009e73",
    "pipeline": "#cc79a7",
    "scikit-learn": "#555555",
}
STYLE = {
    "axes.grid": True,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlesize": 9,
    "font.size": 8,
    "grid.alpha": 0.3,
    "legend.frameon": False,
    "svg.fonttype": "none",
    "svg.hashsalt": "erasable",
}


def _save(figure: Any, folder: Path, name: str) -> None:
    for axis in figure.axes:
        axis.minorticks_off()
    figure.savefig(folder / f"{name}.svg", metadata={"Date": None}, transparent=False)
    plt.close(figure)


def _panels(results: Results, draw: Callable[[Any, str], bool], x: str, y: str) -> tuple[Any, bool]:
    """Draw one panel for each data set; the legend stands below them."""
    n_rows = -(-len(SOURCES) // 3)
    figure, axes = plt.subplots(n_rows, 3, figsize=(9, 2.7 * n_rows), layout="constrained")
    drawn = False
    for axis in axes.flat[len(SOURCES) :]:
        axis.set_axis_off()
    for axis, (name, source) in zip(axes.flat, SOURCES.items(), strict=False):
        axis.set_title(source.title)
        if draw(axis, name):
            drawn = True
        else:
            axis.set_axis_off()
    figure.supxlabel(x)
    figure.supylabel(y)
    entries = {
        label: line
        for axis in axes.flat
        for line, label in zip(*axis.get_legend_handles_labels(), strict=True)
    }
    if len(entries) > 1:
        figure.legend(
            entries.values(), entries.keys(), loc="outside upper center", ncols=len(entries)
        )
    return figure, drawn


def _mean(runs: list[dict[str, Any]], key: str) -> tuple[np.ndarray, np.ndarray]:
    """Average a curve over replicates, at the points that all of them have."""
    points = sorted(set.intersection(*(set(run["curve"]["deletions"]) for run in runs)))
    curves = [
        [run["curve"][key][run["curve"]["deletions"].index(point)] for point in points]
        for run in runs
    ]
    return np.array(points), np.mean(curves, axis=0)


def amortised(results: Results, folder: Path) -> bool:
    """Figure 1: amortised runtime against the number of deletions."""

    def draw(axis: Any, name: str) -> bool:
        plain = results.any_stream(name)
        if plain is not None:
            refit = np.mean([run["peer"]["mean"] for run in plain["replicates"]])
            points = np.geomspace(1, plain["deletions"], 20)
            color = COLORS["scikit-learn"]
            axis.plot(points, refit * (1 + 1 / points), "--", color=color, label="refits")
        for model, title in TITLES.items():
            cell = results.stream(name, model)
            if cell is not None:
                points, seconds = _mean(cell["replicates"], "seconds")
                axis.plot(points, seconds / points, color=COLORS.get(model), label=title)
        axis.set(xscale="log", yscale="log")
        return plain is not None

    figure, drawn = _panels(results, draw, "deletions", "seconds a deletion, training included")
    _save(figure, folder, "amortised")
    return drawn


def retrains(results: Results, folder: Path) -> bool:
    """Figure 2: how often quantised k-means was trained again, wholly or in part."""
    figure, axis = plt.subplots(figsize=(6, 3.6), layout="constrained")
    drawn = False
    for name, source in SOURCES.items():
        cell = results.stream(name, "quantized")
        if cell is not None:
            points, retrained = _mean(cell["replicates"], "retrained")
            axis.plot(points, retrained, label=source.title)
            drawn = True
    axis.set(xlabel="deletions", ylabel="times trained again")
    axis.set_yscale("symlog", linthresh=1)
    if drawn:
        axis.legend()
    _save(figure, folder, "retrains")
    return drawn


def loss(results: Results, folder: Path, parameter: str, model: str, name: str) -> bool:
    """Figures 3 and 4: loss ratio against one parameter, on all data sets."""
    figure, axis = plt.subplots(figsize=(6, 3.6), layout="constrained")
    drawn = False
    for data, source in SOURCES.items():
        cell = results[f"loss-{parameter}-{data}"]
        if cell is not None:
            ratios = np.array(cell["ratios"], float)
            axis.errorbar(
                cell["values"], ratios.mean(axis=1), ratios.std(axis=1),
                label=source.title, capsize=2, marker="o", markersize=3,
            )  # fmt: skip
            drawn = True
    axis.set_xscale("log", base=2)
    axis.set(xlabel=f"{parameter} of {TITLES[model]}", ylabel="loss / loss of k-means")
    if drawn:
        axis.legend()
    _save(figure, folder, name)
    return drawn


def runtime(results: Results, folder: Path, parameter: str, model: str, name: str) -> bool:
    """Figures 5 and 6: amortised runtime against one parameter, on covertype."""
    cell = results[f"runtime-{parameter}"]
    figure, axis = plt.subplots(figsize=(6, 3.2), layout="constrained")
    if cell is not None:
        seconds = 1e3 * np.array(cell["amortised"], float)
        axis.errorbar(
            cell["values"], seconds.mean(axis=1), seconds.std(axis=1),
            color=COLORS.get(model), capsize=2, marker="o", markersize=3,
        )  # fmt: skip
        axis.set_ylim(bottom=0)
    axis.set_xscale("log", base=2)
    axis.set(xlabel=f"{parameter} of {TITLES[model]}", ylabel="ms a deletion, with training")
    _save(figure, folder, name)
    return cell is not None


def growth(results: Results, folder: Path) -> bool:
    """Draw how the cost of a deletion grows with n."""
    cell = results["growth"]
    figure, axes = plt.subplots(1, 2, figsize=(8, 3.6), layout="constrained", sharey=True)
    titles = {"separated": "10 separated clusters, d = 10", "gaussian": "5 overlapping, d = 25"}
    for axis, (kind, title) in zip(axes, titles.items(), strict=True):
        axis.set_title(title)
        axis.set(xlabel="records", xscale="log", yscale="log")
        if cell is None:
            continue
        n = np.array(cell[kind]["n"])
        for model, curve in cell[kind]["models"].items():
            color = COLORS.get(model)
            axis.plot(n, 1e3 * np.array(curve["mean"]), color=color, label=TITLES[model])
            axis.plot(n, 1e3 * np.array(curve["median"]), ":", color=color)
        refit = 1e3 * np.array(cell[kind]["refit"])
        axis.plot(n, refit, "--", color=COLORS["scikit-learn"], label="refit")
    axes[0].set_ylabel("ms a deletion (dotted: median)")
    if cell is not None:
        axes[0].legend()
    _save(figure, folder, "growth")
    return cell is not None


def draw(results: Results, folder: Path) -> list[str]:
    """Draw everything; return the names of the figures that have something in them."""
    folder.mkdir(parents=True, exist_ok=True)
    with mpl.rc_context(STYLE):
        drawn = {
            "amortised": amortised(results, folder),
            "retrains": retrains(results, folder),
            "loss-epsilon": loss(results, folder, "epsilon", "quantized", "loss-epsilon"),
            "loss-width": loss(results, folder, "width", "divide", "loss-width"),
            "runtime-epsilon": runtime(results, folder, "epsilon", "quantized", "runtime-epsilon"),
            "runtime-width": runtime(results, folder, "width", "divide", "runtime-width"),
            "growth": growth(results, folder),
        }
    return [name for name, there in drawn.items() if there]
