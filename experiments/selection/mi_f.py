"""MI-F: records of the Friedman data for the information they give, figure 23.

Usage: ``python experiments/selection/mi_f.py [--quick]``.
"""

from __future__ import annotations

import sys
from typing import Any

import command
import numpy as np
import paired
from data import Data
from gaussian import DensityLeft, Process, UtilityLeft
from sklearn.datasets import make_friedman1

from erasable.selection import MutualInformation

N, N_NEW, N_FITTED, DEVIATION = 3000, 2000, 1000, 0.8
COUNTS = tuple(range(50, 501, 50))
SAMPLES, SIMULATIONS, SEED = 1000, 2500, 0
METRIC = "log predictive density"


def friedman(n: int = N) -> tuple[Data, float]:
    """Draw the data; the output has mean 0 and variance 1 on the records to choose from.

    Also return the variance of the noise, which is known, on that scale.
    """
    X, y = make_friedman1(n + N_NEW, 5, noise=DEVIATION, random_state=SEED)
    scale = y[:n].std()
    y = (y - y[:n].mean()) / scale
    return Data(X[:n], y[:n], X[n:], y[n:]), float((DEVIATION / scale) ** 2)


def measure(quick: bool, utility: Any = None, budgets: Any = None) -> dict[str, Any]:
    """Run the experiment."""
    samples, simulations, counts = (50, 50, COUNTS[:3]) if quick else (SAMPLES, SIMULATIONS, COUNTS)
    counts = command.counts(budgets, counts)
    read, noise = friedman(300 if quick else N)
    if max(counts) > len(read.y):
        raise ValueError(f"{max(counts)} of {len(read.y)} records are to be chosen; expected fewer")
    command.say("hyperparameters")
    process = Process.fitted(read.X[:N_FITTED], read.y[:N_FITTED], noise=noise)
    K = process.kernel(read.X)
    staying = np.random.default_rng([SEED, 23]).random(len(read.y))
    made = utility() if utility else MutualInformation("precomputed", gamma=1 / noise)
    chosen = paired.both("MI", made, K, staying, counts[-1], samples, SEED)
    found = [
        paired.left("density", lambda rows: DensityLeft(
            process, read.X[rows], read.y[rows], read.X_new, read.y_new, counts
        ), chosen, staying, simulations),
        paired.left("utility", lambda rows: UtilityLeft(
            K[np.ix_(rows, rows)], noise, counts
        ), chosen, staying, simulations),
    ]  # fmt: skip
    title = (
        "Figure 23: log predictive density, mutual information, and staying probabilities of the "
        f"{counts[-1]} chosen, where owners stay with s from U(0, 1)"
    )
    return {
        "settings": {
            "data": f"Friedman's, drawn: {N:,} records to choose from, {N_NEW:,} for validation, "
            f"5 features, noise with a standard deviation of {DEVIATION:g}",
            "process": f"exponential kernel, {process.told()}; all but the noise, which is known, "
            f"by maximum likelihood of the first {N_FITTED:,} records to choose from",
            "utility": "log det(I + K / noise)",
            "metric": f"{METRIC} of validation data, their mean",
            "samples": f"{SAMPLES:,} to choose by (in the paper 10,000); {SIMULATIONS:,} "
            "simulations of others to compare by, as in the paper",
        },
        "figures": {"23": paired.figure(title, METRIC, found, chosen, staying, counts)},
        "notes": {"paired": paired.table("MI", METRIC, found, counts)},
        "facts": paired.facts("MI", found, chosen, staying, counts),
    }


if __name__ == "__main__":
    sys.exit(command.run("mi-f", __doc__, measure, takes=("utilities", "budgets")))
