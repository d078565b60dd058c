"""How fast information and variance are selected by, against greedy choices written in NumPy.

    python benchmarks/selection_gaussian.py                 everything: some minutes
    python benchmarks/selection_gaussian.py --k 100         some of it

One thread; seconds are processor time, the least of the rounds, checks included. 2,000 records of
10 features in float64, a kernel that was computed before; each record stays for certain or with
probability 0.8. The NumPy choices keep the rows of one Cholesky factor for all records (of each
sample), take the products of the kernel where variance counts, and know the same samples. Ours
has the default optimiser: where variance counts, which is not submodular, both look at every gain;
where information does, ours is lazy. Exit status 1 means that picks or values differ.
"""

# ruff: noqa: E402
from __future__ import annotations

import os

# One thread, for both. The libraries read this when they are imported.
for _library in ("OMP", "OPENBLAS", "MKL", "NUMBA"):
    os.environ[f"{_library}_NUM_THREADS"] = "1"

import argparse
import sys
import time

import numpy as np
from sklearn.gaussian_process.kernels import RBF

from erasable.core.seeds import seed_from
from erasable.selection import Expected, MutualInformation, SubsetSelector, VarianceReduction
from erasable.selection.staying import Sampler, as_staying

N, D, NOISE, STAYING = 2_000, 10, 0.1, 0.8
SAMPLES = {100: 100, 1_000: 20}  # NumPy's rows of all records would not fit for many more
SAME = 1e-9  # of the value


def numpy_greedy(
    K: np.ndarray, noise: float, k: int, *, variance: bool, n_samples: int | None
) -> tuple[list[int], float]:
    """Choose greedily; the rows of the factor have shape (n_samples, k, n_records)."""
    n, samples = len(K), n_samples or 1
    bound = as_staying(1.0 if n_samples is None else STAYING).bind(n)
    probability = float(bound.probability[0])
    sampler = Sampler(bound, samples, int(seed_from(0)))
    Q = K @ K.T if variance else K
    left = np.tile(K.diagonal(), (samples, 1))
    moved = np.tile(Q.diagonal(), (samples, 1))
    rows = np.zeros((samples, k, n))
    sides = np.zeros((samples, k, n)) if variance else rows
    chosen: list[int] = []
    values = np.zeros(samples)
    for t in range(k):
        each = moved / (left + noise) if variance else np.log1p(left / noise)
        gains = probability * each.mean(axis=0)
        gains[chosen] = -np.inf
        j = int(np.argmax(gains))
        stays = sampler.add(j)
        values += np.where(stays, each[:, j], 0.0)
        deviation = np.sqrt(left[:, j, None] + noise)
        c = (K[j] - (rows[:, None, :t, j] @ rows[:, :t])[:, 0]) / deviation
        c *= stays[:, None]
        if variance:
            h = Q[j] - (rows[:, None, :t, j] @ sides[:, :t])[:, 0]
            h -= (sides[:, None, :t, j] @ rows[:, :t])[:, 0]
            h = h / deviation - c * (0.5 * moved[:, j, None] / deviation**2)
            h *= stays[:, None]
            sides[:, t] = h
            moved -= 2 * c * h
        rows[:, t] = c
        left -= c * c
        chosen.append(j)
    return chosen, float(values.mean())


def ours(
    K: np.ndarray, noise: float, k: int, *, variance: bool, n_samples: int | None
) -> tuple[list[int], float]:
    """Choose with the library."""
    found = SubsetSelector(
        VarianceReduction("precomputed", noise=noise)
        if variance
        else MutualInformation("precomputed", gamma=1 / noise),
        k=k,
        staying=1.0 if n_samples is None else STAYING,
        objective=Expected(n_samples),
        random_state=0,
    ).fit(K)
    return found.selected_.tolist(), found.utility_


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--k", type=int, nargs="*", default=list(SAMPLES), choices=list(SAMPLES))
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args(arguments)
    K = RBF(np.sqrt(D / 2))(np.random.default_rng(0).normal(size=(N, D)))
    small, differ = np.ascontiguousarray(K[:50, :50]), False
    print("| utility | k | staying | ours | NumPy | ratio | picks |")
    print("|---|---|---|---|---|---|---|")
    for k in options.k:
        for n_samples in (None, SAMPLES[k]):
            for variance in (False, True):
                ours(small, NOISE, 3, variance=variance, n_samples=n_samples)  # compiles
                seconds: dict[str, list[float]] = {"ours": [], "numpy": []}
                found = {}
                for _ in range(options.rounds):
                    for name, choose in (("ours", ours), ("numpy", numpy_greedy)):
                        start = time.process_time()
                        found[name] = choose(K, NOISE, k, variance=variance, n_samples=n_samples)
                        seconds[name].append(time.process_time() - start)
                (mine, value), (theirs, other) = found["ours"], found["numpy"]
                same = mine == theirs and abs(value - other) <= SAME * other
                differ |= not same
                a, b = min(seconds["ours"]), min(seconds["numpy"])
                print(
                    f"| {'variance' if variance else 'information'} | {k:,} | "
                    f"{'certain' if n_samples is None else f'{STAYING}, {n_samples} samples'} | "
                    f"{a:.3f} s | {b:.3f} s | {a / b:.2f} | {'same' if same else 'DIFFER'} |",
                    flush=True,
                )
    return int(differ)


if __name__ == "__main__":
    sys.exit(main())
