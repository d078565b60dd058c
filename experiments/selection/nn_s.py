"""NN-S: what is chosen of two drawn classes, figures 3, 9, 10, 15, 16 and 19.

Usage: ``python experiments/selection/nn_s.py [--quick]``.
"""

from __future__ import annotations

import functools
import sys
from typing import Any

import command
import data
import numpy as np
from figures import panel as panel_of_lines
from sklearn.metrics import euclidean_distances

from erasable.selection import (
    BetaBinomial,
    CVaR,
    NearestNeighbor,
    PointMass,
    SubsetSelector,
    Uniform,
)

K, SEED = 10, 0
UTILITY = NearestNeighbor("sqeuclidean")
SIZES = (
    PointMass(10),
    Uniform(5, 10),
    PointMass(5),
    Uniform(0, 4),
    BetaBinomial(16, 4),
    BetaBinomial(10, 10),
    BetaBinomial(4, 16),
    BetaBinomial(1, 1),
)
SMALL = np.arange(100) >= 85  # the smaller cluster of class 1


def name_of(model: Any) -> str:
    """Return the name of a staying model in the paper's terms."""
    values = ", ".join(f"{value:g}" for value in vars(model).values())
    return f"{type(model).__name__}({values})"


def panel(title: str, drawn: data.Data, utility: Any = UTILITY, **given: Any) -> dict[str, Any]:
    """Choose, and describe who was chosen."""
    selector = SubsetSelector(utility, k=K, random_state=SEED, **given).fit(drawn.X, drawn.y)
    chosen = selector.selected_
    of_class = [int((drawn.y[chosen] == label).sum()) for label in (0, 1)]
    small = int(SMALL[chosen].sum())
    return {
        "title": f"{title}\n{of_class[0]} blue, {of_class[1] - small} + {small} green",
        "chosen": chosen,
        "apart": _apart(drawn.X[chosen][~SMALL[chosen]], drawn.y[chosen][~SMALL[chosen]]),
        "of": [of_class[0], of_class[1] - small, small],
    }


def _apart(points: Any, classes: Any) -> float:
    """Return how far the chosen of a cluster are from one another, on average."""
    distances = []
    for label in np.unique(classes):
        of_class = euclidean_distances(points[classes == label])
        distances += of_class[np.triu_indices(len(of_class), 1)].tolist()
    return float(np.mean(distances)) if distances else 0.0


def weights() -> dict[str, Any]:
    """Return figure 16: how likely each number of owners who stay is in the laws of figure 15."""
    panels = []
    for heading, models in (("sizes given", SIZES[:4]), ("beta-binomial", SIZES[4:])):
        lines = [
            {
                "label": name_of(model),
                "x": list(range(K + 1)),
                "y": model.size_pmf(K),
                "error": np.zeros(K + 1),
            }
            for model in models
        ]
        panels.append(panel_of_lines(heading, lines))
    title = f"Figure 16: the probability that so many of k = {K} stay, in the laws of figure 15"
    return {
        "kind": "lines", "title": title, "x": "number staying", "y": "probability",
        "panels": panels,
    }  # fmt: skip


def measure(quick: bool, utility: Any = None) -> dict[str, Any]:
    """Choose for all the figures."""
    draw = functools.partial(panel, utility=utility() if utility else UTILITY)
    drawn = data.synthetic(SEED)
    likely = np.random.default_rng([SEED, 10]).random(100)
    n_samples = 500 if quick else 5000
    panels = {
        "3": [draw(f"s = {s:g}", drawn, staying=s) for s in (0.2, 0.5, 0.8, 1.0)],
        "9": [draw(f"s green = {s:g}", drawn, staying={0: 1.0, 1: s}) for s in (0.2, 0.5, 0.8, 1)],
        "10": [draw("darker: likelier to stay", drawn, staying=likely)],
        "15": [draw(name_of(model), drawn, staying=model) for model in SIZES],
        "19": [
            draw(
                f"alpha = {alpha:g}",
                drawn,
                staying=0.5,
                objective=CVaR(alpha, n_samples, n_judged=0),
            )
            for alpha in (0.3, 0.5, 0.7, 1.0)
        ],
    }
    titles = {
        "3": "Figure 3: ten points chosen where all stay with probability s",
        "9": "Figure 9: ten points chosen where green points stay with probability s, blue ones "
        "always",
        "10": "Figure 10: ten points chosen where owners differ",
        "15": "Figure 15: ten points chosen where the number of owners who stay has a law",
        "19": "Figure 19: ten points chosen for the worst share alpha of cases, s = 0.5",
    }
    shared = {"kind": "points", "points": drawn.X, "classes": drawn.y}
    figures: dict[str, Any] = {
        number: {**shared, "title": titles[number], "panels": drawn_panels}
        for number, drawn_panels in panels.items()
    }
    figures["10"]["opacity"] = 0.1 + 0.9 * likely
    figures["16"] = weights()
    rows = [
        [number, *each["title"].split("\n")[:1], *map(str, each["of"]), f"{each['apart']:.2f}"]
        for number in ("3", "9", "15", "19")
        for each in panels[number]
    ]
    head = ["figure", "who stays", "blue", "green", "green, small cluster", "mean distance"]
    chosen = np.array(panels["10"][0]["chosen"])
    return {
        "settings": {
            "data": "100 points drawn: blue 50 around one centre, green 35 and 15 around two; "
            "standard deviation 0.8",
            "chosen": f"k = {K}",
            "similarity": "the largest squared distance within a class less the squared distance",
            "samples for CVaR": f"{n_samples:,}",
        },
        "tables": {},
        "figures": figures,
        "notes": {"chosen": {"head": head, "rows": rows}},
        "facts": {
            "likely_all": f"{likely.mean():.2f}",
            "likely_chosen": f"{likely[chosen].mean():.2f}",
        },
    }


if __name__ == "__main__":
    sys.exit(command.run("nn-s", __doc__, {"points": measure}, takes=("utilities",)))
