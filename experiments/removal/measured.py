"""What the stored trainings of the experiment on images say, with resamples of their seeds."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from images import ALL, Job, Size, Store

from erasable.removal.sweeps import reached

N_RESAMPLES = 10_000
SELECTIVE = ("lr-maha", "maha-mu2", "lr-cos", "cos-mu2", "knn-ratio", "density-ratio")


@dataclass(frozen=True)
class Plan:
    """What is trained, the most telling first.

    Attributes
    ----------
    name : str
        Of the file of outcomes.
    size : Size
    seeds : int
    tiers : tuple of (methods, scores, shares)
        Of each, all are trained by all seeds before the next begins.
    """

    name: str
    size: Size
    seeds: int
    tiers: tuple[tuple[tuple[str, ...], tuple[str, ...], tuple[float, ...]], ...]

    def jobs(self) -> list[Job]:
        """List all trainings once, in their order."""
        found = [Job(seed, "first") for seed in range(self.seeds)]
        for methods, scores, shares in self.tiers:
            for share, method, score in itertools.product(shares, methods, scores):
                found += [job(seed, method, score, share) for seed in range(self.seeds)]
        return list(dict.fromkeys(found))


def job(seed: int, method: str, score: str, share: float) -> Job:
    """Return the training that gives a point of a curve; at its ends no score matters."""
    if share == 0:
        return Job(seed, "first")
    return Job(seed, method, ALL if share == 1 else score, share)


class Measured:
    """What the stored trainings say, by seed; only where every seed was trained."""

    def __init__(self, plan: Plan, store: Store) -> None:
        self.plan, self.store = plan, store
        self.shares = sorted({0.0, *(s for _, _, shares in plan.tiers for s in shares)})

    def has(self, method: str, score: str, share: float) -> bool:
        """Tell whether all seeds were trained."""
        return all(job(s, method, score, share) in self.store for s in range(self.plan.seeds))

    def at(self, method: str, score: str, share: float, what: str = "cats") -> Any:
        """Return an array of shape (seeds,)."""
        seeds = range(self.plan.seeds)
        return np.array([self.store[job(seed, method, score, share)][what] for seed in seeds])

    def curve(self, method: str, score: str, what: str = "cats") -> tuple[Any, Any]:
        """Return the shares that were measured, and an array of shape (seeds, shares)."""
        shares = [share for share in self.shares if self.has(method, score, share)]
        return np.array(shares), np.array([self.at(method, score, s, what) for s in shares]).T

    def scores(self, method: str) -> list[str]:
        """List the scores with a curve: with as many shares as random."""
        n = len(self.curve(method, "random")[0])
        names = dict.fromkeys(s for _, scores, _ in self.plan.tiers for s in scores if s != ALL)
        return [each for each in names if n > 2 and len(self.curve(method, each)[0]) == n]

    def selective(self, method: str, target: float) -> str | None:
        """Return the best of the paper's scores, by where the mean falls to a target."""
        names = [each for each in self.scores(method) if each in SELECTIVE]
        return min(names, key=lambda each: self.needed(method, each, target)) if names else None

    def needed(self, method: str, score: str, target: float, seeds: Any = None) -> float:
        """Return the share to delete until the mean over seeds falls to a target."""
        shares, runs = self.curve(method, score)
        return reached(shares, (runs if seeds is None else runs[seeds]).mean(axis=0), target)

    def resampled(self, method: str, scores: Sequence[str], target: float) -> Any:
        """Return what all need, of shape (resamples, scores): seeds drawn with replacement."""
        return np.array(
            [
                [self.needed(method, score, target, seeds) for score in scores]
                for seeds in resamples(self.plan.seeds)
            ]
        )


def resamples(n: int) -> Any:
    """Return draws of n out of n with replacement: all where these are few."""
    if n**n <= N_RESAMPLES:
        return np.array(list(itertools.product(range(n), repeat=n)))
    return np.random.default_rng(0).integers(n, size=(N_RESAMPLES, n))


def interval(values: Any) -> tuple[float, float]:
    """Return where 95 % of resamples lie; of infinite ones, as steps of the order."""
    low, high = np.quantile(values, [0.025, 0.975], method="inverted_cdf")
    return float(low), float(high)


def share(value: float) -> str:
    """Write a share in per cent."""
    return f"{100 * value:.0f}" if np.isfinite(value) else "not by 100"


def between(values: Any) -> str:
    """Write an interval of shares."""
    low, high = interval(values)
    return f"{share(low)} to {share(high)}"


def verdict(values: Any) -> str:
    """Say whether selective needs less: of pairs of what random and selective need."""
    less = float((values[:, 1] < values[:, 0]).mean())
    return f"{'yes' if less >= 0.975 else 'no' if less <= 0.025 else 'not certain'}, {less:.0%}"


def missed(mine: Any, other: Any) -> str:
    """Write by how much means differ, and whether within two standard errors of the difference."""
    apart = mine - other
    error = apart.std(ddof=1) / np.sqrt(len(apart))
    inside = abs(apart.mean()) <= 2 * error or not apart.any()
    return f"{100 * apart.mean():+.1f}{'' if inside else ' (more than 2 errors)'}"
