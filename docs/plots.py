"""Draw the figure of the home page from the results of the benchmarks: ``python docs/plots.py``."""

from __future__ import annotations

import json
from pathlib import Path

import matplotlib.pyplot as plt

ROOT = Path(__file__).resolve().parent.parent
FIGURES = ROOT / "docs" / "figures"
RESULTS = ROOT / "benchmarks" / "results"
COLOR = "#00796b"
SHOWN = {
    "least-squares": "linear regression, 100,000 x 50",
    "categorical-bayes": "naive Bayes of categories, 100,000 x 50",
    "gaussian-bayes": "Gaussian naive Bayes, 100,000 x 50",
    "logistic": "logistic regression, 100,000 x 50",
    "forest-adult": "random forest, Adult: 30,162 x 14",
    "tree-adult": "decision tree, Adult: 30,162 x 14",
    "pca": "PCA, 100,000 x 50",
    "columns-logistic": "mixed columns → logistic regression, Adult",
    "tfidf-logistic": "TF-IDF → logistic regression, 5,574 texts",
    "sharded-boosting-adult": "32 shards of histogram boosting, Adult",
}


def style() -> None:
    """Set fonts and lines; text is kept as text, so that files are small and searchable."""
    plt.switch_backend("svg")
    plt.rcParams.update(
        {
            "svg.fonttype": "none",
            "svg.hashsalt": "erasable",
            "font.family": "sans-serif",
            "font.size": 11,
            "axes.spines.top": False,
            "axes.spines.right": False,
            "figure.facecolor": "white",
        }
    )


def save(figure: plt.Figure, name: str) -> None:
    """Write a figure, with the same bytes each time."""
    figure.savefig(FIGURES / f"{name}.svg", bbox_inches="tight", metadata={"Date": None})
    plt.close(figure)


def speedups() -> None:
    """Draw the ratios of training again to a deletion, from the results of the benchmarks."""
    cells = {name: json.loads((RESULTS / f"estimator-{name}.json").read_text()) for name in SHOWN}
    times = {SHOWN[name]: cell["peer"] / cell["used"] for name, cell in cells.items()}
    times = dict(sorted(times.items(), key=lambda each: each[1]))
    figure, axes = plt.subplots(figsize=(5.0, 5.4))
    bars = axes.barh(list(times), list(times.values()), color=COLOR, height=0.4)
    for place, name in enumerate(times):  # above its bar: a label beside it takes half the width
        axes.text(1.03, place + 0.28, name, fontsize=10)
    axes.set_yticks([])
    axes.bar_label(bars, [f"{value:,.0f} x" for value in times.values()], padding=4)
    axes.set_xscale("log")
    axes.set_xlim(1, max(times.values()) * 3)
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f} x")
    axes.set_xlabel("training again with scikit-learn, over one deletion")
    save(figure, "speedups")


if __name__ == "__main__":
    style()
    speedups()
