"""Everything beside the stream: quality over seeds, the papers' sweeps, growth with n."""

from __future__ import annotations

import gc
from collections.abc import Sequence
from typing import Any

import contenders
import data as data_sets
import measures
import numpy as np
import sklearn.cluster
from contenders import ITERATIONS
from data import DataSet
from stream import Stream, clocked

EPSILONS = tuple(2.0**power for power in (-8, -6, -5, -4, -3, -2, -1, 0))
WIDTHS = tuple(2**power for power in range(1, 9))
SWEEP_SEEDS = 3
SWEEP_BUDGET = 5.0  # seconds that one stream of a runtime sweep may take
SIZES = (1_000, 3_000, 10_000, 30_000, 100_000, 300_000, 1_000_000)
GROWTH_DELETIONS = 200


def quality(data: DataSet, names: Sequence[str], seeds: int) -> dict[str, Any]:
    """Compare losses with scikit-learn's greedy k-means++ over seeds, same `max_iter`.

    Returns losses by model, and for KMeans the relative differences from scikit-learn started
    from the same seeds (``init=model.init_centers_``).
    """
    names = [name for name in names if name != "pipeline"]
    losses: dict[str, list[float]] = {name: [] for name in ("scikit-learn", *names)}
    differences = []
    for seed in range(seeds):
        peer = contenders.make_peer("kmeans", data.k, seed).fit(data.X)
        losses["scikit-learn"].append(measures.loss(data.X, peer.cluster_centers_))
        for name in names:
            gc.collect()
            model = contenders.make(name, data.k, seed).fit(data.X)
            losses[name].append(measures.loss(data.X, contenders.centers(model)))
            if name == "kmeans":
                twin = sklearn.cluster.KMeans(
                    data.k, init=model.init_centers_, n_init=1, max_iter=ITERATIONS, tol=0
                ).fit(data.X)
                differences.append(abs(model.inertia_ / twin.inertia_ - 1.0))
    return {"losses": losses, "differences": differences}


def loss_sweep(data: DataSet, name: str, parameter: str, values: Sequence[Any]) -> dict[str, Any]:
    """Measure the loss ratio as one parameter changes (figures 3 and 4)."""
    baseline = [
        contenders.make_peer("kmeans", data.k, seed, contenders.UNTIL_CONVERGENCE).fit(data.X)
        for seed in range(SWEEP_SEEDS)
    ]
    base = float(np.mean([measures.loss(data.X, model.cluster_centers_) for model in baseline]))
    ratios = []
    for value in values:
        losses = []
        for seed in range(SWEEP_SEEDS):
            gc.collect()
            model = contenders.make(name, data.k, seed, **{parameter: value}).fit(data.X)
            losses.append(measures.loss(data.X, contenders.centers(model)))
        ratios.append([loss / base for loss in losses])
    return {"parameter": parameter, "values": list(values), "ratios": ratios}


class _Tuned(Stream):
    """A stream of a model with one parameter set."""

    def __init__(self, name: str, data: DataSet, seed: int, params: dict[str, Any]) -> None:
        self._params = params
        super().__init__(name, data, seed, SWEEP_BUDGET)

    def make(self) -> Any:
        return contenders.make(self.name, self._data.k, self._seed, **self._params)


def runtime_sweep(
    data: DataSet, name: str, parameter: str, values: Sequence[Any], deletions: int
) -> dict[str, Any]:
    """Measure the amortised runtime as one parameter changes (figures 5 and 6)."""
    amortised = []
    for value in values:
        runs = []
        for seed in range(SWEEP_SEEDS):
            stream = _Tuned(name, data, seed, {parameter: value})
            stream.delete(np.random.default_rng([2019, seed]).permutation(len(data.X))[:deletions])
            runs.append(stream.fits[0] / deletions + float(np.mean(stream.seconds)))
        amortised.append(runs)
    return {"parameter": parameter, "values": list(values), "amortised": amortised}


def growth(names: Sequence[str], sizes: Sequence[int] = SIZES) -> dict[str, Any]:
    """Measure how the cost of a deletion grows with the number of records."""
    result: dict[str, Any] = {}
    for kind, draw in (("separated", data_sets.separated), ("gaussian", data_sets.gaussian)):
        curves: dict[str, Any] = {
            name: {"fit": [], "median": [], "mean": [], "touched": []} for name in names
        }
        refits = []
        for n in sizes:
            X, labels = draw(n)
            data = DataSet(kind, X, labels, int(labels.max()) + 1)
            repeats = 3 if n <= 10_000 else 1
            peers = [contenders.make_peer("kmeans", data.k, seed) for seed in range(3)]
            gc.collect()
            refits.append(float(np.mean([clocked(lambda p=p: p.fit(X))[0] for p in peers])))  # noqa: B023
            for name in names:
                streams = [Stream(name, data, seed, 10 * SWEEP_BUDGET) for seed in range(repeats)]
                records = np.random.default_rng(n).permutation(n)[: min(GROWTH_DELETIONS, n // 10)]
                for stream in streams:
                    stream.delete(records)
                # The first deletion builds what the others use.
                seconds = np.concatenate([stream.seconds[1:] for stream in streams])
                touched = np.concatenate([stream.touched[1:] for stream in streams])
                curves[name]["fit"].append(float(np.mean([s.fits[0] for s in streams])))
                curves[name]["median"].append(float(np.median(seconds)))
                curves[name]["mean"].append(float(seconds.mean()))
                curves[name]["touched"].append(float(touched.mean()))
        result[kind] = {"n": list(sizes), "models": curves, "refit": refits}
    return result
