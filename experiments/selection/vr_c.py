"""VR-C: blocks of California for how much surer they make the others, figure 24.

Usage: ``python experiments/selection/vr_c.py [--quick]``.
"""

from __future__ import annotations

import functools
import sys
from dataclasses import dataclass
from typing import Any

import command
import numpy as np
import paired
from gaussian import DensityLeft, Process, UtilityLeft
from housing import Housing, N, housing
from simulations import Floats

from erasable.selection import Expected, SubsetSelector, VarianceReduction

N_FITTED = 1000
COUNTS = tuple(range(50, 501, 50))
SAMPLES, SIMULATIONS, GREEDY, SEED = 300, 2500, 100, 0
METRIC = "log predictive density"


def stays_by(income: Floats) -> Floats:
    """Return staying probabilities by the median income, scaled to [0, 1]."""
    return np.asarray(0.5 - 0.5 * np.cos(4 * np.pi * income))


@dataclass(frozen=True)
class Study:
    """The data, the process that was fitted to them, and who stays."""

    read: Housing
    process: Process
    K: Floats
    staying: Floats


@functools.cache
def study_of(quick: bool) -> Study:
    """Read the data and fit the process."""
    read = housing(SEED, 300 if quick else N)
    command.say("hyperparameters")
    process = Process.fitted(read.X[:N_FITTED], read.y[:N_FITTED], with_slope=True)
    return Study(read, process, process.kernel(read.X), stays_by(read.income))


def lazy(quick: bool) -> dict[str, Any]:
    """Choose fewer with all the gains of each round, and count who is chosen otherwise."""
    study, k, samples = study_of(quick), 10 if quick else GREEDY, 20 if quick else SAMPLES
    utility = VarianceReduction("precomputed", noise=study.process.noise)
    chosen = {}
    for optimizer in ("lazy", "greedy"):
        command.say(f"{k} chosen by DAVR, {optimizer}")
        selector = SubsetSelector(
            utility, k=k, staying=study.staying, objective=Expected(samples), random_state=SEED,
            optimizer=optimizer,
        )  # fmt: skip
        chosen[optimizer] = selector.fit(study.K).selected_
    same = int((chosen["lazy"] == chosen["greedy"]).sum())
    return {"facts": {"lazy_same": same, "lazy_of": k}}


def measure(quick: bool, utility: Any = None, budgets: Any = None) -> dict[str, Any]:
    """Compare the selections."""
    samples, simulations, counts = (20, 30, COUNTS[:3]) if quick else (SAMPLES, SIMULATIONS, COUNTS)
    counts = command.counts(budgets, counts)
    study = study_of(quick)
    read, process, K, staying = study.read, study.process, study.K, study.staying
    made = utility() if utility else VarianceReduction("precomputed", noise=process.noise)
    chosen = paired.both("VR", made, K, staying, counts[-1], samples, SEED)
    found = [
        paired.left("density", lambda rows: DensityLeft(
            process, read.X[rows], read.y[rows], read.X_new, read.y_new, counts
        ), chosen, staying, simulations),
        paired.left("utility", lambda rows: UtilityLeft(
            K[np.ix_(rows, rows)], process.noise, counts, K[rows]
        ), chosen, staying, simulations),
    ]  # fmt: skip
    title = (
        "Figure 24: log predictive density, reduction of variance, and staying probabilities of "
        f"the {counts[-1]} chosen, where owners stay with s = fc(median income)"
    )
    return {
        "settings": {
            "data": f"California housing: {N:,} of 20,640 blocks to choose from and {N:,} others "
            "for validation",
            "process": "linear kernel for the median income, exponential kernel for the other 7 "
            f"features: {process.told()}; by maximum likelihood of {N_FITTED:,} of the blocks to "
            "choose from",
            "utility": f"reduction of the variance of all the {N:,} blocks to choose from",
            "metric": f"{METRIC} of validation data, their mean",
            "who stays": "s = 0.5 - 0.5 cos(4 pi x0), with x0 the median income scaled to [0, 1]",
            "samples": f"{SAMPLES:,} to choose by (in the paper 10,000); {SIMULATIONS:,} "
            "simulations of others to compare by, as in the paper",
        },
        "figures": {"24": paired.figure(title, METRIC, found, chosen, staying, counts)},
        "notes": {"paired": paired.table("VR", METRIC, found, counts)},
        "facts": paired.facts("VR", found, chosen, staying, counts),
    }


if __name__ == "__main__":
    takes = {"selections": ("folder", "utilities", "budgets"), "lazy": ("folder",)}
    sys.exit(command.run("vr-c", __doc__, {"selections": measure, "lazy": lazy}, takes=takes))
