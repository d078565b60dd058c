"""EVGP-C: blocks of California by the tangent kernel of a network, figure 25.

Usage: ``python experiments/selection/evgp_c.py [--quick]``. The network is written in NumPy.
"""

from __future__ import annotations

import sys
from typing import Any

import command
import network
import numpy as np
import paired
from gaussian import UtilityLeft
from housing import N_PUBLIC, Housing, N, housing
from network import ErrorLeft, Weights
from simulations import Floats, Ints
from threadpoolctl import threadpool_limits

from erasable.selection import NeuralVariance

SIZES = (8, 128, 32, 1)
BEFORE, AFTER, RATE = 300, 100, 1e-3  # steps of training on the public blocks, and on the chosen
SHARES = ((0.8, 0.5), (0.5, 0.4), (0.9, 0.1))  # staying probabilities, and of how many owners
COUNTS = tuple(range(50, 301, 50))
SAMPLES, SIMULATIONS, SEED = 250, 2000, 0
RANDOM, BY_RANDOM = 10, 1000  # selections, and simulations of them all
NAME, METRIC = "EVGP", "negated MSE"


class Study:
    """The data, and a network that was trained on the public blocks.

    Attributes
    ----------
    weights : Weights
    K : ndarray of shape (n_records, n_records)
        The tangent kernel of the blocks to choose from.
    noise : float
    chosen : dict of str to ndarray
    """

    def __init__(self, read: Housing, counts: tuple[int, ...], samples: int) -> None:
        self.read, self.counts = read, counts
        n = len(read.y)
        probabilities = np.repeat([s for s, _ in SHARES], [round(share * n) for _, share in SHARES])
        self.staying = np.random.default_rng([SEED, 25]).permutation(probabilities)
        public = read.X_public.astype(np.float32), read.y_public.astype(np.float32)
        with threadpool_limits(1):
            self.weights = network.train(network.start(SIZES, SEED), *public, BEFORE, RATE)
        known = network.tangent_kernel(self.weights, read.X_public, read.X_public)
        self.noise = network.noise_of(known, read.y_public)
        self.K = network.tangent_kernel(self.weights, read.X, read.X)
        utility = NeuralVariance(noise=self.noise)
        self.chosen = paired.both(NAME, utility, self.K, self.staying, counts[-1], samples, SEED)

    def error_left(self, rows: Ints) -> ErrorLeft:
        """Return the measure of the metric."""
        read = self.read
        return ErrorLeft(
            self.weights, read.X[rows], read.y[rows], read.X_new, read.y_new, self.counts, AFTER,
            RATE,
        )  # fmt: skip

    def utility_left(self, rows: Ints) -> UtilityLeft:
        """Return the measure of the utility."""
        return UtilityLeft(self.K[np.ix_(rows, rows)], self.noise, self.counts, self.K[rows])

    def error_of(self, weights: Weights) -> float:
        """Return the mean squared error on validation data."""
        found = network.predict(weights, self.read.X_new.astype(np.float32))
        return float(np.mean((found - self.read.y_new) ** 2))


def study_of(quick: bool) -> Study:
    """Read the data, train the network, and choose."""
    n, counts, samples = (300, COUNTS[:2], 20) if quick else (N, COUNTS, SAMPLES)
    return Study(housing(SEED, n), counts, samples)


def random_left(study: Study, n_simulations: int) -> dict[str, dict[str, Floats]]:
    """Return the mean metric of each of several random selections, (n_selections, n_counts)."""
    k, n = study.counts[-1], len(study.staying)
    runs = []
    for run in range(RANDOM):
        rows = np.random.default_rng([SEED, 26, run]).permutation(n)[:k]
        runs.append(paired.left(
            "the metric", study.error_left, {"random": rows}, study.staying,
            -(-n_simulations // RANDOM),
        ))  # fmt: skip
    return {
        who: {"random": np.array([run[who]["random"].mean(axis=0) for run in runs])}
        for who in (paired.ALL, paired.SOME)
    }


def measure(quick: bool) -> dict[str, Any]:
    """Compare the selections."""
    study, simulations = study_of(quick), 20 if quick else SIMULATIONS
    chosen, staying, counts = study.chosen, study.staying, study.counts
    found = [
        paired.left("the metric", study.error_left, chosen, staying, simulations),
        paired.left("the utility", study.utility_left, chosen, staying, simulations),
    ]
    title = (
        "Figure 25: negated mean squared error, reduction of variance, and staying probabilities "
        f"of the {counts[-1]} chosen, where owners stay with s = 0.5, 0.8 or 0.9"
    )
    drawn = paired.figure(title, METRIC, found, chosen, staying, counts)
    beside = paired.lines_of(found[0], counts)
    beside += paired.lines_of(random_left(study, 20 if quick else BY_RANDOM), counts)
    drawn["panels"].insert(0, paired.panel("metric, with random", beside, METRIC))
    values = sorted(s for s, _ in SHARES)
    shares = {
        label: [f"{np.mean(staying[rows] == value):.0%}" for value in values]
        for label, rows in {"all": np.arange(len(staying)), **chosen}.items()
    }
    return {
        "settings": {
            "data": f"California housing: {N:,} of 20,640 blocks to choose from, {N:,} others for "
            f"validation, and {N_PUBLIC:,} others that are public",
            "network": "8 features, 128 and 32 rectified units, one output; Adam, rate "
            f"{RATE:g}, all the records in each step; {BEFORE:,} steps on the public blocks, then "
            f"{AFTER:,} on those of the chosen who stay",
            "utility": "reduction of the variance of all the blocks to choose from, by the "
            "empirical neural tangent kernel of the network after the public blocks; noise "
            f"{study.noise:.3g}, by maximum likelihood of the public blocks",
            "metric": "negated mean squared error on validation data",
            "who stays": "s = 0.8 for half of the owners, 0.5 for 40 %, 0.9 for 10 %, at random",
            "samples": f"{SAMPLES:,} to choose by (in the paper 10,000); {SIMULATIONS:,} "
            "simulations of others to compare by, as in the paper",
        },
        "figures": {"25": drawn},
        "notes": {
            "paired": paired.table(NAME, METRIC, found, counts),
            "shares": {
                "head": ["staying probability", *(f"{value:g}" for value in values)],
                "rows": [[label, *row] for label, row in shares.items()],
            },
        },
        "facts": {
            **paired.facts(NAME, found, chosen, staying, counts),
            "error_before": f"{study.error_of(study.weights):.3f}",
            "largest_variance": f"{study.K.diagonal().max() / np.median(study.K.diagonal()):,.0f}",
        },
    }


if __name__ == "__main__":
    sys.exit(command.run("evgp-c", __doc__, measure, takes=("folder",)))
