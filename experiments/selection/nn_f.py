"""NN-F: Fashion-MNIST, figures 4b, 5b, 12b to 14b and table 9.

Usage: ``python experiments/selection/nn_f.py [--quick]``. It takes 4 GB of memory. Figure 6b and
table 13 are those of ``nn_f_risk.py``.
"""

from __future__ import annotations

import functools
import sys
from typing import Any

import command
import comparisons
import numpy as np
from comparisons import Case, name_of
from data import fashion
from simulations import accuracy
from sklearn.metrics import euclidean_distances

from erasable.selection import BetaBinomial, NearestNeighbor, PointMass, Uniform
from erasable.selection.staying import Staying

UTILITY = NearestNeighbor("sqeuclidean")
SIMULATIONS, BY_DELETIONS = 2500, 500
BETAS = [BetaBinomial(10, 10), BetaBinomial(4, 16), BetaBinomial(16, 4), BetaBinomial(1, 1)]
SIZES = [PointMass(300), Uniform(300, 600), Uniform(0, 299)]
COUNTS = (100, 200, 300, 400, 500, 600, 700, 800, 900, 1000)
K, SEED = 600, 0
MODELS = {name_of(model): model for model in [*SIZES, *BETAS]}
ANTICIPATED = {f"EDADS {s:g}": s for s in (0.8, 0.6)}
SIMULATED = {f"s = {s:g}": s for s in (1.0, 0.8, 0.6)}


@functools.cache
def case_of(n_class: int | None) -> Case:
    """Read the images and compute their similarities; of each class the first n_class alone."""
    return own_case(functools.partial(fashion, n_class))


@functools.cache
def own_case(read: Any, utility: Any = None, estimator: Any = None) -> Case:
    """Read data, and compute their similarities."""
    found = read()
    command.say(f"similarities of {len(found.y):,} images")
    return comparisons.case_of(
        found, UTILITY, ("accuracy", accuracy), SEED, utility, estimator
    )  # fmt: skip


def by_sorting(case: Case, selected: Any, models: list[Staying]) -> list[float]:
    """Return expected utilities by another way: distances in float64, sorted for each target.

    The expected largest of those who stay is the sum of similarities in descending order, weighted
    with p_r(1) of each rank r: that of r owners in a row only the last one stays.
    """
    k = len(selected)
    weights = [np.array([model.subset_pmf(r, k=k)[1] for r in range(1, k + 1)]) for model in models]
    distances, largest = [], 0.0
    for label in np.unique(case.y):
        records = np.flatnonzero(case.y == label)
        pixels = case.X[records].astype(np.float64)
        chosen = case.X[selected[case.y[selected] == label]].astype(np.float64)
        distances.append(euclidean_distances(pixels, chosen, squared=True))
        largest = max(largest, *(
            euclidean_distances(pixels[at : at + 1000], pixels, squared=True).max()
            for at in range(0, len(pixels), 1000)
        ))  # fmt: skip
    totals = np.zeros(len(models))
    for each in distances:
        similar = largest - np.sort(each, axis=1)
        for at, weight in enumerate(weights):
            totals[at] += float((similar @ weight[: similar.shape[1]]).sum())
    return totals.tolist()


def images(quick: bool, data: Any = None, utility: Any = None, estimator: Any = None) -> Case:
    """Return the images, read once for all the parts; or data of the user's."""
    n_class = 500 if quick else None
    if data is None and utility is None and estimator is None:
        return case_of(n_class)
    return own_case(data or functools.partial(fashion, n_class), utility, estimator)


def tables(quick: bool) -> dict[str, Any]:
    """Measure table 9."""
    case, simulations = images(quick), 100 if quick else SIMULATIONS
    return {
        "settings": {
            "data": f"Fashion-MNIST: {len(case.y):,} training images to choose from, 10,000 test "
            "images for validation; pixels from 0 to 255",
            "metric": "accuracy of the nearest neighbour's class, Euclidean, on the test images",
            "simulations": f"{SIMULATIONS:,}; {BY_DELETIONS:,} for each number of deletions",
        },
        "tables": {"9": comparisons.expected_table(case, K, MODELS, simulations)},
    }


def by_deletions(quick: bool, **own: Any) -> dict[str, Any]:
    """Measure figures 5b and 14b."""
    groups = {
        "tolerance (I)": {name_of(model): model for model in SIZES},
        "uncertainty (II)": {name_of(BETAS[at]): BETAS[at] for at in (2, 0, 1, 3)},
    }
    figure = comparisons.after_deletions(
        images(quick, **own), K, groups, range(0, 600, 40), 20 if quick else BY_DELETIONS,
        "Figures 5b and 14b: accuracy against the number of deletions, k = 600",
    )  # fmt: skip
    return {"figures": {"5": figure}}


def by_number(quick: bool, budgets: Any = None, **own: Any) -> dict[str, Any]:
    """Measure figures 4b, 12b and 13b."""
    case = images(quick, **own)
    counts = command.counts(budgets, COUNTS[::4] if quick else COUNTS)
    return {
        "figures": {
            "4": comparisons.by_number_chosen(
                case, counts, ANTICIPATED, SIMULATED, 100 if quick else SIMULATIONS,
                "Figures 4b and 12b: accuracy against how many were chosen, where owners stay "
                "with probability s",
            ),
            "13": comparisons.objective_differences(
                case, counts, ANTICIPATED, SIMULATED,
                "Figure 13b: expected utility of EDADS less that of DS",
            ),
        }
    }  # fmt: skip


def precision(quick: bool) -> dict[str, Any]:
    """Compare expected utilities, by similarities in float32, with those by sorting in float64."""
    case, models = images(quick), list(MODELS.values())
    plain = case.select(K)
    again = by_sorting(case, plain, models)
    ours = [case.expected(plain, model) for model in models]
    off = max(abs(a / b - 1) for a, b in zip(again, ours, strict=True))
    return {"facts": {"off": f"{off:.0e}"}}


PARTS = {
    "tables": tables,
    "deletions": by_deletions,
    "number": by_number,
    "precision": precision,
}
OWN = ("folder", "data", "utilities", "estimators")
TAKES = dict.fromkeys(PARTS, ("folder",)) | {"deletions": OWN, "number": (*OWN, "budgets")}

if __name__ == "__main__":
    sys.exit(command.run("nn-f", __doc__, PARTS, takes=TAKES))
