"""NB-A: Adult income, figures 4c, 5c, 12c to 14c and 18, tables 10 and 14.

Usage: ``python experiments/selection/nb_a.py [--quick] [--parts expected risk]``.
"""

from __future__ import annotations

import sys
from typing import Any

import command
import comparisons
import numpy as np
import report
from adult import BINS, Bins, adult
from command import say
from comparisons import Case, name_of
from counted import BayesClassifier, BayesUtility
from data import Data
from simulations import balanced_accuracy

from erasable.selection import BetaBinomial, NaiveBayes, PointMass, Uniform

SEED = 0
SMOOTHING = 0.01
SIMULATIONS, BY_DELETIONS, SAMPLES = 2500, 500, 10_000
RUNS, FRESH, THRESHOLDS = 50, 10_000, 12
K, K_RISK, S_RISK = 120, 140, 0.6
COUNTS = range(50, 501, 50)
ALPHAS = (0.2, 0.4, 0.6, 0.8)
TOLERANCE = [PointMass(60), Uniform(60, 120), Uniform(0, 59)]
UNCERTAINTY = [BetaBinomial(*of) for of in ((10, 10), (4, 16), (16, 4), (1, 1))]
OTHER_BINS: dict[str, Bins] = {
    "ages by ten years": BINS | {"age": range(20, 80, 10)},
    "above or below 50 years, 40 hours, no gain, no loss": {
        "age": (50,), "hours-per-week": (41,), "capital-gain": (1,), "capital-loss": (1,)
    },
    "finer: hours by five, six classes of gains and of losses": BINS | {
        "hours-per-week": range(5, 100, 5),
        "capital-gain": (1, 2500, 5000, 7500, 15000),
        "capital-loss": (1, 1500, 1750, 2000, 2500),
    },
}  # fmt: skip


def case_of(read: Data, smoothing: float = SMOOTHING) -> Case:
    """Compare on the data, with the class prior of the people to choose from."""
    positive = float(read.y.mean())

    def measure(selected: Any) -> BayesClassifier:
        return BayesClassifier(
            read.X, read.y, read.X_new, read.y_new, balanced_accuracy, selected,
            alpha=SMOOTHING, prior=(1 - positive, positive),
        )  # fmt: skip

    utility = comparisons.Prepared(NaiveBayes(smoothing), read.X, read.y)
    return Case(read.X, read.y, utility, measure, "balanced accuracy", SEED)


def constant(case: Case) -> float:
    """Return what the paper's table 10 leaves out: the sum of |M| log(1 / smoothing)."""
    return float(case.X.size * -np.log(SMOOTHING))


def named(models: Any) -> dict[str, Any]:
    """Return staying models by their names."""
    return {name_of(model): model for model in models}


def table_10(case: Case, n_simulations: int) -> dict[str, Any]:
    """Return table 10, with utilities as the paper counts them there."""
    made = comparisons.expected_table(case, K, named(TOLERANCE + UNCERTAINTY), n_simulations)
    for row in made["rows"].values():
        for each in row.values():
            each["utility"] = report.exact(float(each["utility"]) - constant(case))
    return made


def others(n_random: int) -> dict[str, Any]:
    """Choose with other classes of numbers, and with the default smoothing of the library."""
    lines = []
    for name, bins, smoothing in (
        ("as above", BINS, SMOOTHING),
        ("as above, smoothing = 1", BINS, 1.0),
        *((name, bins, SMOOTHING) for name, bins in OTHER_BINS.items()),
    ):
        say(f"other classes of numbers: {name}")
        read = adult(bins)
        case = case_of(read, smoothing)
        plain, models = case.select(K), TOLERANCE + UNCERTAINTY
        gains = []
        for model in models:
            less = case.expected(plain, model)
            gains.append(case.expected(case.select(K, model), model) / less - 1)
        half = models[0]
        scores = [case.left(case.select(K, each), half, n_random).mean for each in (half, 1.0)]
        lines.append([
            name, str(int((read.X.max(axis=0) + 1).sum())),
            f"{sum(gain > 0 for gain in gains)} of {len(gains)}",
            f"{100 * min(gains):.3f} to {100 * max(gains):.2f} %",
            f"{scores[0]:.4f}", f"{scores[1]:.4f}",
        ])  # fmt: skip
    head = [
        "classes of numbers", "categories", "rows in which EDADS has more",
        "more by", "balanced accuracy, half stay: EDADS", "DS",
    ]  # fmt: skip
    return {"head": head, "rows": lines}


def expected(quick: bool, budgets: Any = None) -> dict[str, Any]:
    """Compare expected utilities, and accuracy after departures."""
    simulations, by_deletions = (100, 20) if quick else (SIMULATIONS, BY_DELETIONS)
    counts = command.counts(budgets, COUNTS[::3] if quick else COUNTS)
    read = adult()
    case = case_of(read)
    anticipated = {f"EDADS {s:g}": s for s in (0.6, 0.4)}
    simulated = {f"s = {s:g}": s for s in (1.0, 0.6, 0.4)}
    groups = {"tolerance (I)": named(TOLERANCE), "uncertainty (II)": named(UNCERTAINTY)}
    figures = {
        "4": comparisons.by_number_chosen(
            case, counts, anticipated, simulated, simulations,
            "Figures 4c and 12c: balanced accuracy against how many were chosen, where owners stay "
            "with probability s",
        ),
        "5": comparisons.after_deletions(
            case, K, groups, range(0, 111, 10), by_deletions,
            f"Figures 5c and 14c: balanced accuracy against the number of deletions, k = {K}",
        ),
        "13": comparisons.objective_differences(
            case, counts, anticipated, simulated,
            "Figure 13c: expected utility of EDADS less that of DS",
        ),
    }  # fmt: skip
    chosen = {"ds": case.select(K), "edads": case.select(K, TOLERANCE[0])}
    return {
        "settings": {
            "data": f"Adult income, official split: {len(read.y):,} people to choose from "
            f"({int(read.y.sum()):,} earn more than 50k), {len(read.y_new):,} for validation; "
            f"{read.X.shape[1]} features with {int((read.X.max(axis=0) + 1).sum())} categories",
            "utility": f"sum of |M| log(1 + |S| / {SMOOTHING:g}) over classes and categories",
            "metric": f"balanced accuracy of CategoricalNB, alpha = {SMOOTHING:g}, with the class "
            "prior of the people to choose from; without any records everybody is found to earn "
            "less (0.5)",
            "simulations": f"{simulations:,}; {by_deletions:,} for each number of deletions",
        },
        "tables": {"10": table_10(case, simulations)},
        "figures": figures,
        "notes": {"others": others(simulations)},
        "facts": {
            "constant": f"{constant(case):,.0f}",
            "positive_ds": int(case.y[chosen["ds"]].sum()),
            "positive_edads": int(case.y[chosen["edads"]].sum()),
        },
    }


def risk(quick: bool) -> dict[str, Any]:
    """Compare selections for the worst cases."""
    samples, runs, fresh = (500, 3, 500) if quick else (SAMPLES, RUNS, FRESH)
    read = adult()
    case = case_of(read)
    case.n_judged = 10 * samples
    worst = {
        "k": K_RISK, "staying": S_RISK, "alphas": ALPHAS, "n_samples": samples,
        "n_thresholds": THRESHOLDS,
    }  # fmt: skip
    table = comparisons.risk_table(
        case, **worst,
        utility_left=lambda selected: BayesUtility(read.X, read.y, SMOOTHING, selected),
        n_runs=runs, n_fresh=fresh,
    )  # fmt: skip
    figure = comparisons.risk_figure(
        case, **worst, counts=range(0, 131, 10), n_simulations=20 if quick else BY_DELETIONS,
        title=f"Figure 18: balanced accuracy against the number of deletions, k = {K_RISK}",
    )  # fmt: skip
    told = (
        f"{samples:,} samples to choose by, {case.n_judged:,} others to choose between thresholds "
        f"by; compared in {runs} runs of {fresh:,} others"
    )
    return {"settings": {"CVaR": told}, "tables": {"14": table}, "figures": {"18": figure}}


if __name__ == "__main__":
    takes = {"expected": ("folder", "budgets"), "risk": ("folder",)}
    sys.exit(command.run("nb-a", __doc__, {"expected": expected, "risk": risk}, takes=takes))
