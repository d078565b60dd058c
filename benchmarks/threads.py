"""How much faster fits are with several threads: ``python benchmarks/threads.py``.

Fits of each estimator with one thread and with several take turns, on the same records, and the
best of each are compared: what else runs on the machine then disturbs both alike. How much of the
processors others took is printed, too; on a machine that is not quiet the ratios mean little.

*by cpu* says more there: processor seconds of a fit with one thread, over those of the calling
thread with several (which does its share) or their mean, whichever is more. Time in which a thread
waits for another, or for Python's lock, is not in it.
"""

# ruff: noqa: E402
from __future__ import annotations

import os

for _library in ("OMP", "OPENBLAS", "MKL"):
    os.environ.setdefault(f"{_library}_NUM_THREADS", "1")  # so that only our threads count

import argparse
import gc
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from erasable.cluster import DivideAndConquerKMeans, KMeans, QuantizedKMeans
from erasable.decomposition import PCA
from erasable.ensemble import RandomForestClassifier
from erasable.linear_model import LinearRegression, LogisticRegression, Ridge
from erasable.naive_bayes import GaussianNB
from erasable.neighbors import NearestCentroid
from erasable.preprocessing import MinMaxScaler, StandardScaler

FITS: dict[str, Callable[[], Any]] = {
    "Ridge": Ridge,
    "LinearRegression": LinearRegression,
    "PCA": PCA,
    "LogisticRegression": LogisticRegression,
    "KMeans": lambda: KMeans(8, random_state=0),
    "QuantizedKMeans": lambda: QuantizedKMeans(8, random_state=0),
    "DivideAndConquerKMeans": lambda: DivideAndConquerKMeans(8, random_state=0),
    "RandomForestClassifier": lambda: RandomForestClassifier(4, max_depth=8, random_state=0),
    "GaussianNB": GaussianNB,
    "NearestCentroid": NearestCentroid,
    "StandardScaler": StandardScaler,
    "MinMaxScaler": MinMaxScaler,
}
TICK = os.sysconf("SC_CLK_TCK")


@dataclass
class Timed:
    """Seconds of fits, and the processors that other programs kept busy during the fastest."""

    seconds: list[float] = field(default_factory=list)
    others: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)

    def time(self, call: Callable[[], Any], jobs: int) -> str:
        """Time a fit; return the digest of the model."""
        gc.collect()
        caller = time.thread_time()
        all_before, own_before, start = busy(), own(), time.perf_counter()
        model = call()
        seconds = time.perf_counter() - start
        self.seconds.append(seconds)
        self.others.append(max(busy() - all_before - (own() - own_before), 0.0) / seconds)
        self.cpu.append(max(time.thread_time() - caller, (own() - own_before) / jobs))
        return str(model.digest())

    @property
    def best(self) -> float:
        """Seconds of the fastest fit."""
        return min(self.seconds)

    @property
    def disturbed(self) -> float:
        """Processors that other programs kept busy during the fastest fit."""
        return self.others[self.seconds.index(self.best)]


def own() -> float:
    """Return the processor time of this program, in seconds."""
    times = os.times()
    return times.user + times.system


def busy() -> float:
    """Return the time that processors were busy for anybody, in seconds; 0 where it is unknown."""
    told = Path("/proc/stat")
    if not told.exists():
        return 0.0
    user, nice, system, _, _, *interrupts = map(int, told.read_text().split()[1:8])
    return (user + nice + system + sum(interrupts)) / TICK


def records(n: int, d: int) -> tuple[Any, Any]:
    """Return standard normal records, and classes that depend on them by a logistic model."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, d))
    return X, (X @ rng.normal(size=d) + rng.logistic(size=n) > 0).astype(int)


def compare(make: Callable[[], Any], X: Any, y: Any, jobs: int, rounds: int) -> tuple[Timed, Timed]:
    """Time fits with one thread and with several, in turns."""

    def fit(n_jobs: int, rows: slice = slice(None)) -> Any:
        return make().set_params(n_jobs=n_jobs).fit(X[rows], y[rows])

    for n_jobs in (1, jobs):
        fit(n_jobs, slice(100_000))  # compiles
    one, several, digests = Timed(), Timed(), set()
    for _ in range(rounds):
        digests.add(one.time(lambda: fit(1), 1))
        digests.add(several.time(lambda: fit(jobs), jobs))
    if len(digests) > 1:
        raise AssertionError(f"threads show in the digests: {sorted(digests)}")
    return one, several


def main() -> None:
    """Print a line for each estimator that has `n_jobs`."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="of estimators; all by default")
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--columns", type=int, default=20)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=7)
    given = parser.parse_args()
    X, y = records(given.rows, given.columns)
    print(f"{given.rows:,} x {given.columns}, best of {given.rounds}; busy: by other programs")
    several = f"{given.jobs} threads"
    print(f"{'fit of':24}{'1 thread':>10}{several:>11}{'ratio':>7}{'busy':>12}{'by cpu':>9}")
    for name, make in FITS.items():
        if (given.names and name not in given.names) or "n_jobs" not in make().get_params():
            continue
        one, several = compare(make, X, y, given.jobs, given.rounds)
        print(
            f"{name:24}{one.best:8.3f} s{several.best:9.3f} s{one.best / several.best:7.2f}"
            f"{one.disturbed:6.1f}{several.disturbed:6.1f}{min(one.cpu) / min(several.cpu):9.2f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
