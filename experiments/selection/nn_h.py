"""NN-H: heart disease, figures 4a to 6a, 11, 12a to 14a and 17, tables 7, 8, 11 and 12.

Usage: ``python experiments/selection/nn_h.py [--quick]``.
"""

from __future__ import annotations

import functools
import sys
from typing import Any

import command
import comparisons
import numpy as np
from comparisons import Case, name_of
from data import heart
from figures import panel
from simulations import NearestUtility, Outcome, class_blocks, f1

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
OTHER_SPLITS = 10
METRIC = ("F1", f1)


def positives(s: float) -> dict[int, float]:
    """Return staying probabilities: those without the disease always stay."""
    return {0: 1.0, 1: s}


def named(models: Any) -> dict[str, Any]:
    """Return staying models by their names."""
    return {name_of(model): model for model in models}


BY_CLASS = {name_of(each): PerClass({0: Certain(), 1: each}) for each in BETAS}


def case_of(split: int, *, copies_together: bool = False) -> Case:
    """Read the data, with patients set aside for validation by a split's number."""
    read = heart(split, copies_together=copies_together)
    return comparisons.case_of(read, UTILITY, METRIC, SEED)


def other_splits(n_splits: int, simulations: int, *, copies_together: bool) -> dict[str, Any]:
    """Compare EDADS with DS on other splits: how often its utility is higher, and F1 by how much.

    Splits are drawn at random, or such that copies of a patient are on one side.
    """
    higher: dict[tuple[int, int], int] = {}
    more: dict[tuple[int, int], list[float]] = {}
    for split in range(100, 100 + n_splits):
        command.say(f"split {split}")
        case = case_of(split, copies_together=copies_together)
        for k, models in SIZES.items():
            plain = case.select(k)
            for row, model in enumerate(models):
                chosen = case.select(k, model)
                won = case.expected(chosen, model) > case.expected(plain, model)
                higher[k, row] = higher.get((k, row), 0) + won
                ours, theirs = (case.left(each, model, simulations) for each in (chosen, plain))
                more.setdefault((k, row), []).append(ours.mean - theirs.mean)
    rows = []
    for at in range(len(SIZES[200])):
        names = dict.fromkeys(f"`{name_of(models[at])}`" for models in SIZES.values())
        line = [" or ".join(names)]
        for k in SIZES:
            found = Outcome.of(np.array(more[k, at]))
            line += [f"{higher[k, at]} of {n_splits}", f"{found.mean:+.4f} ± {found.error:.4f}"]
        rows.append(line)
    head = ["who stays"]
    for k in SIZES:
        head += [f"k = {k}: higher utility", "F1, EDADS less DS"]
    return {"head": head, "rows": rows}


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


def copies(case: Case, X_new: Any) -> dict[str, Any]:
    """Count how many of the chosen are distinct, and who of the validation has a copy there."""
    selections = {"all": np.arange(len(case.y))}
    for k in SIZES:
        selections[f"DS, k = {k}"] = case.select(k)
        name = name_of(BETAS[0])
        selections[f"EDADS by {name}, k = {k}"] = case.select(k, BETAS[0])
    rows = []
    for name, chosen in selections.items():
        there = {row.tobytes() for row in np.ascontiguousarray(case.X[chosen])}
        found = sum(row.tobytes() in there for row in np.ascontiguousarray(X_new))
        rows.append([name, str(len(chosen)), str(len(there)), f"{found} of {len(X_new)}"])
    head = ["selection", "patients", "distinct", "validation patients with a copy among them"]
    return {"head": head, "rows": rows}


@functools.cache
def patients() -> Case:
    """Return the case of the split that is shown."""
    return case_of(SEED)


def tables(quick: bool) -> dict[str, Any]:
    """Measure tables 7, 8 and 11."""
    case, simulations = patients(), 100 if quick else SIMULATIONS
    return {
        "settings": {
            "data": f"heart disease, combined: {len(case.y)} patients to choose from "
            f"({int(case.y.sum())} with the disease), 257 for validation; columns scaled to [0, 1]",
            "metric": "F1 of the nearest neighbour's class, Euclidean, on the validation patients",
            "simulations": f"{SIMULATIONS:,}; {BY_DELETIONS:,} for each number of deletions",
        },
        "tables": {
            "7": comparisons.expected_table(case, 200, named(SIZES[200]), simulations),
            "8": comparisons.expected_table(case, 300, named(SIZES[300]), simulations),
            "11": comparisons.expected_table(case, 200, BY_CLASS, simulations),
        },
        "notes": {"copies": copies(case, heart(SEED).X_new)},
        "facts": {
            "positive_ds": int(case.y[case.select(200)].sum()),
            "positive_edads": int(case.y[case.select(200, positives(0.5))].sum()),
        },
    }


def worst_cases(quick: bool) -> dict[str, Any]:
    """Measure table 12 and figure 6a."""
    case = patients()
    samples, runs, fresh = (200, 3, 500) if quick else (SAMPLES, RUNS, FRESH)
    worst = {"k": 240, "staying": positives(0.5), "alphas": ALPHAS, "n_samples": samples}
    blocks = class_blocks(case.X, case.y)
    table = comparisons.risk_table(
        case, **worst, utility_left=lambda selected: NearestUtility(blocks, selected),
        n_runs=runs, n_fresh=fresh,
    )  # fmt: skip
    figure = comparisons.risk_figure(
        case, **worst, counts=range(0, 121, 10), n_simulations=20 if quick else BY_DELETIONS,
        title="Figure 6a: F1 against deletions of patients with the disease, k = 240", among=1,
    )  # fmt: skip
    return {
        "settings": {
            "CVaR": f"{samples:,} samples to choose by; judged in {runs} runs of {fresh:,} others"
        },
        "tables": {"12": table},
        "figures": {"6": figure},
    }


def curves(
    quick: bool, data: Any = None, utility: Any = None, estimator: Any = None, budgets: Any = None
) -> dict[str, Any]:
    """Measure the other figures; own data have classes 0 and 1."""
    read = data() if data else heart(SEED)
    case = comparisons.case_of(read, UTILITY, METRIC, SEED, utility, estimator)
    counts = command.counts(budgets, COUNTS[::3] if quick else COUNTS)
    simulations, by_deletions = (100, 20) if quick else (SIMULATIONS, BY_DELETIONS)
    anticipated = {f"EDADS {s:g}": positives(s) for s in (0.6, 0.5)}
    simulated = {f"s+ = {s:g}": positives(s) for s in (1.0, 0.6, 0.5)}
    groups = {
        "tolerance (I)": named(SIZES[200][:3]),
        "uncertainty (II)": named([BETAS[2], BETAS[0], BETAS[1], BETAS[3]]),
    }
    few = min(int(case.y[case.select(200, each)].sum()) for each in (1.0, *BY_CLASS.values()))
    figures = {
        "4": comparisons.by_number_chosen(
            case, counts, anticipated, simulated, simulations,
            "Figures 4a and 12a: F1 against how many were chosen, where those with the disease "
            "stay with probability s+",
        ),
        "5": comparisons.after_deletions(
            case, 200, groups, range(0, 200, 20), by_deletions,
            "Figures 5a and 14a: F1 against the number of deletions, k = 200",
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
            case, 200, {"": BY_CLASS}, range(0, few + 1, 8), by_deletions,
            "Figure 17: F1 against deletions of patients with the disease, k = 200",
            among=1, with_random=False,
        ),
    }  # fmt: skip
    return {"figures": figures}


def splits(quick: bool) -> dict[str, Any]:
    """Compare on other splits of the patients."""
    n = 1 if quick else OTHER_SPLITS
    return {
        "notes": {
            "splits": other_splits(n, 250, copies_together=False),
            "apart": other_splits(n, 250, copies_together=True),
        }
    }


PARTS = {"tables": tables, "curves": curves, "worst": worst_cases, "splits": splits}
TAKES = dict.fromkeys(PARTS, ("folder",))
TAKES["curves"] = ("folder", "data", "utilities", "estimators", "budgets")

if __name__ == "__main__":
    sys.exit(command.run("nn-h", __doc__, PARTS, takes=TAKES))
