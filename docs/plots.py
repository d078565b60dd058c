"""Draw the figures of the pages: ``python docs/plots.py``.

The first figure shows results of the benchmarks. The others belong to the recipes and run the code
of the pages, so that a figure agrees with its page. They need the real data
(``ERASABLE_DATA``).
"""

from __future__ import annotations

import doctest
import json
import statistics
import sys
import time
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from sklearn.base import clone

ROOT = Path(__file__).resolve().parent.parent
FIGURES = ROOT / "docs" / "figures"
RESULTS = ROOT / "benchmarks" / "results"
ONE, TWO, GREY = "#00796b", "#e08214", "#7f8c8d"
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
    bars = axes.barh(list(times), list(times.values()), color=ONE, height=0.4)
    for place, name in enumerate(times):  # above its bar: a label beside it takes half the width
        axes.text(1.03, place + 0.28, name, fontsize=10)
    axes.set_yticks([])
    axes.bar_label(bars, [f"{value:,.0f} x" for value in times.values()], padding=4)
    axes.set_xscale("log")
    axes.set_xlim(1, max(times.values()) * 3)
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f} x")
    axes.set_xlabel("training again with scikit-learn, over one deletion")
    save(figure, "speedups")


def names_of(page: str, until: str = "") -> dict[str, Any]:
    """Run the examples of a recipe, up to one that contains `until`; return their names."""
    text = (ROOT / "docs" / "how-to" / f"{page}.md").read_text(encoding="utf-8")
    names: dict[str, Any] = {}
    for example in doctest.DocTestParser().get_examples(text):
        if until and until in example.source:
            break
        exec(compile(example.source, page, "exec"), names)
    return names


def patient() -> None:
    """Draw the risk of a patient as copies of the record are deleted, one by one."""
    names = names_of("patient", until="one = model.delete")
    model, own = names["model"], names["own"]
    risks = [model.predict_proba(own[:1])[0, 1]]
    for visit in own.index:
        model.delete([visit])
        risks.append(model.predict_proba(own[:1])[0, 1])
    figure, axes = plt.subplots(figsize=(6.5, 3.2))
    axes.plot(range(len(risks)), risks, "o-", color=ONE)
    axes.axhline(risks[-1], color=GREY, linestyle="--", linewidth=1)
    axes.annotate("never seen", (0, risks[-1]), (0, 5), textcoords="offset points", color=GREY)
    axes.set(xlabel="copies deleted", ylabel="risk that the model tells", ylim=(0.35, 0.68))
    save(figure, "patient")


def customer() -> None:
    """Draw the times of single deletions, and the time of training again."""
    names = names_of("customer", until="c00017")
    model, X, y = names["model"], names["X"], names["y"]
    clone(model).fit(X, y).delete(X.index[:1])  # compiles
    fits = []
    for _ in range(5):
        start = time.perf_counter()
        clone(model).fit(X, y)
        fits.append(time.perf_counter() - start)
    times = []
    for customer in np.random.default_rng(0).choice(X.index, 301, replace=False):
        start = time.perf_counter()
        model.delete([customer], digest=False)
        model.predict(X[:1])
        times.append(time.perf_counter() - start)
    fit, one = 1e3 * statistics.median(fits), 1e3 * np.array(times[1:])
    figure, axes = plt.subplots(figsize=(6.5, 3.2))
    axes.hist(one, bins=np.geomspace(one.min(), one.max() * 1.01, 30), color=ONE)
    axes.axvline(fit, color=TWO, linewidth=2)
    axes.annotate(f"training again: {fit:.0f} ms", (fit, axes.get_ylim()[1]), (-6, -12),
                  textcoords="offset points", ha="right", color=TWO)  # fmt: skip
    axes.set_xscale("log")
    axes.set_xlim(right=fit * 1.3)
    axes.set_xticks(
        [10, 20, 50, 100, 200, 400], ["10", "20", "50", "100", "200", "400"], minor=False
    )
    axes.minorticks_off()
    axes.set(xlabel="milliseconds for a deletion and the prediction after it", ylabel="customers")
    axes.set_title(f"a deletion: {np.median(one):.0f} ms in the median", fontsize=11)
    save(figure, "customer")


def author() -> None:
    """Draw the probability of the right group for each post, before and after."""
    names = names_of("author")
    figure, axes = plt.subplots(figsize=(4.6, 4.2))
    axes.plot([0, 1], [0, 1], color=GREY, linewidth=1)
    axes.scatter(names["before"], names["after"], color=ONE, s=22, alpha=0.7, linewidths=0)
    axes.set(xlabel="probability of the right group, before", ylabel="after", aspect="equal")
    low = min(names["after"].min(), names["before"].min()) - 0.05
    axes.set(xlim=(low, 1.02), ylim=(low, 1.02))
    save(figure, "author")


def spam() -> None:
    """Draw the recall of later spam against the share of the domain deleted."""
    names = names_of("spam", until="for score in")
    shares = [0.2, 0.4, 0.5, 0.6, 0.7, 0.75, 0.8, 0.85, 0.9]
    figure, axes = plt.subplots(figsize=(6.5, 3.6))
    for score, label, color in (("lr-maha", "chosen by lr-maha", ONE), ("random", "random", TWO)):
        found = [names["filter_without"](score, share)["fresh forget"] for share in shares]
        recall = [each.after["predicted_forget"] for each in found]
        recall = [found[0].before["predicted_forget"], *recall]
        axes.plot(np.array([0, *shares]) * 100, recall, "o-", color=color, label=label)
    axes.set(xlabel="spam deleted, %", ylabel="later spam that is found", ylim=(0, 1))
    axes.legend(frameon=False)
    save(figure, "spam")


def main() -> int:
    """Draw the named figures, or all."""
    style()
    for draw in (speedups, patient, customer, author, spam):
        if draw.__name__ in sys.argv[1:] or len(sys.argv) == 1:
            draw()
    return 0


if __name__ == "__main__":
    sys.exit(main())
