"""NN-H: heart disease, figures 4a to 6a, 11, 12a to 14a and 17, tables 7, 8, 11 and 12.

Usage: ``python experiments/selection/nn_h.py [--quick]``.
"""

from __future__ import annotations

import sys
from typing import Any

import command
import comparisons
import data
import numpy as np
from comparisons import Case, name_of
from figures import panel
from simulations import NearestClassifier, NearestUtility, class_blocks, f1

from erasable.selection import (
    BetaBinomial,
    Certain,
    NearestNeighbor,
    PerClass,
    PointMass,
    Uniform,
)

SEED = 2
UTILITY = NearestNeighbor("sqeuclidean")
SIMULATIONS, BY_DELETIONS, SAMPLES = 2500, 500, 5_000
RUNS, FRESH = 50, 10_000
BETAS = [BetaBinomial(10, 10), BetaBinomial(4, 16), BetaBinomial(16, 4), BetaBinomial(1, 1)]
SIZES = {
    200: [PointMass(100), Uniform(100, 200), Uniform(0, 99), *BETAS],
    300: [PointMass(150), Uniform(150, 300), Uniform(0, 150), *BETAS],
}
ALPHAS = (0.2, 0.4, 0.6, 0.8)
COUNTS = (20, 50, 80, 110, 140, 170, 200, 230, 260, 300)
OTHER_SPLITS = 20


def positives(s: float) -> dict[int, float]:
    """Return staying probabilities: those without the disease always stay."""
    return {0: 1.0, 1: s}


def named(models: Any) -> dict[str, Any]:
    """Return staying models by their names."""
    return {name_of(model): model for model in models}


def case_of(split: int) -> Case:
    """Read the data, with patients set aside for validation by a split's number."""
    read = data.heart(split)

    def measure(selected: Any) -> NearestClassifier:
        return NearestClassifier(read.X, read.y, read.X_new, read.y_new, f1, selected)

    utility = comparisons.Prepared(UTILITY, read.X, read.y)
    return Case(read.X, read.y, utility, measure, "F1", SEED)


def other_splits(numbers: range) -> dict[str, Any]:
    """Count in how many splits EDADS has the higher expected utility, for each row."""
    rows: dict[tuple[int, str], int] = {}
    for split in numbers:
        case = case_of(split)
        for k, models in SIZES.items():
            plain = case.select(k)
            for name, model in named(models).items():
                more = case.expected(case.select(k, model), model) > case.expected(plain, model)
                rows[k, name] = rows.get((k, name), 0) + more
    n = len(numbers)
    return {
        "head": ["who stays", *(f"k = {k}" for k in SIZES)],
        "rows": [
            [" or ".join(dict.fromkeys(f"`{name_of(models[row])}`" for models in SIZES.values()))]
            + [f"{rows[k, name_of(models[row])]} of {n}" for k, models in SIZES.items()]
            for row in range(len(SIZES[200]))
        ],
    }


def positives_chosen(case: Case, counts: Any, stays: dict[str, Any]) -> dict[str, Any]:
    """Return figure 11: how many of the chosen have the disease."""
    lines = []
    for label, staying in stays.items():
        chosen = case.y[case.select(max(counts), staying)]
        y = [int(chosen[:k].sum()) for k in counts]
        lines.append({"label": label, "x": list(counts), "y": y, "error": [0.0] * len(y)})
    return {
        "kind": "lines",
        "title": "Figure 11: how many of the chosen have the disease",
        "x": "chosen",
        "y": "with the disease",
        "panels": [panel("", lines)],
    }


def measure(quick: bool) -> dict[str, Any]:
    """Run the experiment."""
    simulations, by_deletions = (100, 20) if quick else (SIMULATIONS, BY_DELETIONS)
    samples, runs, fresh = (200, 3, 500) if quick else (SAMPLES, RUNS, FRESH)
    counts = COUNTS[::3] if quick else COUNTS
    case = case_of(SEED)
    anticipated = {f"EDADS {s:g}": positives(s) for s in (0.6, 0.5)}
    simulated = {f"s+ = {s:g}": positives(s) for s in (1.0, 0.6, 0.5)}
    by_class = {name_of(each): PerClass({0: Certain(), 1: each}) for each in BETAS}
    steps = range(0, 200, 20)
    groups = {
        "tolerance (I)": named(SIZES[200][:3]),
        "uncertainty (II)": named([BETAS[2], BETAS[0], BETAS[1], BETAS[3]]),
    }
    chosen = {k: case.select(k, positives(0.5)) for k in (200, 240)}
    worst = {"k": 240, "staying": positives(0.5), "alphas": ALPHAS}
    few = min(int(case.y[case.select(200, each)].sum()) for each in (1.0, *by_class.values()))
    tables = {
        "7": comparisons.expected_table(case, 200, named(SIZES[200]), simulations),
        "8": comparisons.expected_table(case, 300, named(SIZES[300]), simulations),
        "11": comparisons.expected_table(case, 200, by_class, simulations),
    }
    blocks = class_blocks(case.X, case.y)
    tables["12"] = comparisons.risk_table(
        case, **worst, utility_left=lambda selected: NearestUtility(blocks, selected),
        n_samples=samples, n_runs=runs, n_fresh=fresh,
    )  # fmt: skip
    figures = {
        "4": comparisons.by_number_chosen(
            case, counts, anticipated, simulated, simulations,
            "Figures 4a and 12a: F1 against how many were chosen, where those with the disease "
            "stay with probability s+",
        ),
        "5": comparisons.after_deletions(
            case, 200, groups, steps, by_deletions,
            "Figures 5a and 14a: F1 against the number of deletions, k = 200",
        ),
        "6": comparisons.risk_figure(
            case, **worst, n_samples=samples, counts=range(0, 121, 10), n_simulations=by_deletions,
            title="Figure 6a: F1 against deletions of patients with the disease, k = 240",
            among=1,
        ),
        "11": positives_chosen(
            case, counts,
            {"DS": 1.0} | {f"EDADS {s:g}": positives(s) for s in (0.8, 0.6, 0.5)},
        ),
        "13": comparisons.objective_differences(
            case, counts, anticipated, simulated,
            "Figure 13a: expected utility of EDADS less that of DS",
        ),
        "17": comparisons.after_deletions(
            case, 200, {"": by_class}, range(0, few + 1, 8), by_deletions,
            "Figure 17: F1 against deletions of patients with the disease, k = 200",
            among=1, with_random=False,
        ),
    }  # fmt: skip
    return {
        "settings": {
            "data": f"heart disease, combined: {len(case.y)} patients to choose from "
            f"({int(case.y.sum())} with the disease), 257 for validation; columns scaled to [0, 1]",
            "metric": "F1 of the nearest neighbour's class, Euclidean, on the validation patients",
            "simulations": f"{simulations:,}; {by_deletions:,} for each number of deletions",
            "CVaR": f"{samples:,} samples to choose by; judged in {runs} runs of {fresh:,} others",
        },
        "tables": tables,
        "figures": figures,
        "notes": {"splits": other_splits(range(100, 100 + (2 if quick else OTHER_SPLITS)))},
        "facts": {
            "positive_ds": int(case.y[case.select(200)].sum()),
            "positive_edads": int(case.y[chosen[200]].sum()),
            "copies": copies(case_of(SEED), data.heart(SEED).X_new),
        },
    }


def copies(case: Case, X_new: Any) -> str:
    """Say how many validation patients have a copy among those to choose from."""
    there = {row.tobytes() for row in np.ascontiguousarray(case.X)}
    return f"{sum(row.tobytes() in there for row in np.ascontiguousarray(X_new))} of {len(X_new)}"


if __name__ == "__main__":
    sys.exit(command.run("nn-h", __doc__, measure))
