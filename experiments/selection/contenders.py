"""Contenders: other ways to choose, against those that anticipate deletions, on three data sets.

Usage: ``python experiments/selection/contenders.py [--quick]``. Quotas, GLISTER and selections
that are robust against the deletion of any few records are no part of the paper's experiments.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import adult
import command
import comparisons
import data
import nb_a
import nn_h
import numpy as np
from comparisons import Case
from counted import BayesUtility
from scipy.special import softmax
from scipy.stats import t
from simulations import (
    Floats,
    Ints,
    Mask,
    Measure,
    NearestClassifier,
    NearestUtility,
    accuracy,
    class_blocks,
    worst_share,
)

from erasable.selection import CVaR
from erasable.selection.staying import as_staying

SPLITS, DRAWS, WORST, SAMPLES, THRESHOLDS = 10, 1000, 0.2, 500, 3
RATES = (3.0, 10.0, 30.0, 100.0)  # of GLISTER: of all k steps together
N_CLASS, N_NEW, K_IMAGES = 200, 2000, 150
OURS = "EDADS"
COLUMNS = ("all stay", "owners leave", f"worst {WORST:g}", "an adversary")


class Gains(Protocol):
    """The utility of a set that grows, by what each record would add."""

    value: float

    def all(self) -> Floats:
        """Return what each record adds, shape (n_records,)."""

    def of(self, j: int) -> float:
        """Return what one record adds."""

    def add(self, j: int) -> None:
        """Add a record."""


class NearestGains:
    """Gains of the nearest neighbour utility, by dense similarities within each class."""

    def __init__(self, blocks: list[tuple[Ints, Any]], y: Ints) -> None:
        self.blocks, self.y, self.value = blocks, y, 0.0
        self.best = [np.zeros(len(records)) for records, _ in blocks]
        self.gains = np.empty(len(y))
        self.place = np.empty(len(y), dtype=np.int64)
        for label, (records, _) in enumerate(blocks):
            self.place[records] = np.arange(len(records))
            self._compute(label)

    def all(self) -> Floats:
        return self.gains

    def of(self, j: int) -> float:
        return float(self.gains[j])

    def add(self, j: int) -> None:
        label = int(self.y[j])
        self.value += float(self.gains[j])
        similar = self.blocks[label][1][self.place[j]]
        np.maximum(self.best[label], similar, out=self.best[label])
        self._compute(label)

    def _compute(self, label: int) -> None:
        records, similar = self.blocks[label]
        more = np.maximum(similar, self.best[label])
        self.gains[records] = more.sum(axis=1) - self.best[label].sum()


class BayesGains:
    """Gains of the naive Bayes utility, by counts of each class and category."""

    def __init__(self, X: Ints, y: Ints, smoothing: float) -> None:
        first = np.concatenate([[0], np.cumsum(X.max(axis=0) + 1)])
        self.cells = (X + first[:-1]) * 2 + y[:, None]
        self.weights = np.bincount(self.cells.ravel(), minlength=2 * first[-1]).astype(np.float64)
        self.counts, self.smoothing, self.value = np.zeros(2 * first[-1]), smoothing, 0.0
        self._compute()

    def all(self) -> Floats:
        return np.asarray(self.steps[self.cells].sum(axis=1))

    def of(self, j: int) -> float:
        return float(self.steps[self.cells[j]].sum())

    def add(self, j: int) -> None:
        self.value += self.of(j)
        self.counts[self.cells[j]] += 1
        self._compute()

    def _compute(self) -> None:
        logs = [np.log1p((self.counts + more) / self.smoothing) for more in (0, 1)]
        self.steps = self.weights * (logs[1] - logs[0])


@dataclass(frozen=True)
class Pool:
    """Records to choose from.

    Attributes
    ----------
    case : Case
    k : int
    staying : dict of int to float
        By class.
    features : ndarray of shape (n_records, n_features)
        Of the linear model of GLISTER.
    gains : callable
        Returns the Gains of an empty set.
    utility_left : callable
        Makes the Measure of the utility for chosen rows.
    """

    case: Case
    k: int
    staying: Mapping[int, float]
    features: Floats
    gains: Callable[[], Gains]
    utility_left: Callable[[Ints], Measure]

    @property
    def probability(self) -> Floats:
        """The staying probability of each record."""
        return np.array([self.staying[label] for label in self.case.y.tolist()])


def greedy(pool: Pool, items: Ints, k: int) -> list[int]:
    """Choose k of some records by gain, without deletions in mind."""
    state, chosen, left = pool.gains(), [], np.full(len(pool.case.y), -np.inf)
    left[items] = 0.0
    for _ in range(min(k, len(items))):
        j = int(np.argmax(state.all() + left))
        state.add(j)
        left[j] = -np.inf
        chosen.append(j)
    return chosen


def without(pool: Pool, chosen: list[int]) -> Ints:
    """Return the records that were not chosen."""
    return np.setdiff1d(np.arange(len(pool.case.y)), chosen)


def filled(pool: Pool, chosen: list[int]) -> Ints:
    """Add greedily chosen others, up to k, as all the robust selections do."""
    more = greedy(pool, without(pool, chosen), pool.k - len(chosen))
    return np.array([*chosen, *more])


def oblivious(pool: Pool) -> Ints:
    """Choose as OblivGreedy: as many of the largest single utilities as are expected to leave."""
    leaving = round(pool.k * (1 - pool.probability.mean()))
    singles = pool.gains().all()
    return filled(pool, np.argsort(-singles, kind="stable")[:leaving].tolist())


def bucket_sizes(robust: int) -> list[int]:
    """Return the sizes of buckets of partitions 0, 1, ...: twice as large, half as many."""
    levels = range(int(np.ceil(np.log2(robust))) + 1)
    return [2**i for i in levels for _ in range(-(-robust // 2**i))]


def most_robust(room: int) -> int:
    """Return the largest number of deletions whose buckets fit a number of records."""
    return max(n for n in range(1, room + 1) if n == 1 or sum(bucket_sizes(n)) <= room)


def partitioned(pool: Pool) -> Ints:
    """Choose as PRo: buckets, each greedy among the records left, and half of k for a greedy one.

    The buckets are for as many deletions as fit half of the budget.
    """
    chosen: list[int] = []
    for size in bucket_sizes(most_robust(pool.k // 2)):
        chosen += greedy(pool, without(pool, chosen), size)
    return filled(pool, chosen)


def thresholded(pool: Pool, rng: np.random.Generator) -> Ints:
    """Choose as STAR-T-Greedy: a stream fills buckets with what adds enough; a greedy the rest.

    A bucket of size m takes what adds 1 / m of half the greedy utility. In the original the buckets
    are a summary larger than k, from which k are chosen once the deletions are known.
    """
    sizes = bucket_sizes(most_robust(pool.k))
    reached = pool.gains()
    for j in greedy(pool, np.arange(len(pool.case.y)), max(sizes)):
        reached.add(j)
    buckets: list[tuple[int, Gains, list[int]]] = [(size, pool.gains(), []) for size in sizes]
    for j in rng.permutation(len(pool.case.y)).tolist():
        for size, state, held in buckets:
            if len(held) < size and state.of(j) >= reached.value / 2 / size:
                state.add(j)
                held.append(j)
                break
    return filled(pool, [j for _, _, held in buckets for j in held])


def repeated(pool: Pool) -> Ints:
    """Choose as Mirzasoleiman et al. for one deletion: two greedy selections without a common one.

    In the original each has k, and k are chosen once the deletions are known.
    """
    return filled(pool, greedy(pool, np.arange(len(pool.case.y)), pool.k // 2))


def quotas(pool: Pool) -> Ints:
    """Return how many to choose of each class, so that those who stay have the data's shares."""
    counts = np.bincount(pool.case.y)
    wanted = counts / np.array([pool.staying[label] for label in range(len(counts))])
    shares = pool.k * wanted / wanted.sum()
    found = np.floor(shares).astype(np.int64)
    found[np.argsort(found - shares, kind="stable")[: pool.k - found.sum()]] += 1
    return np.minimum(found, counts)


def by_quotas(pool: Pool, choose: Callable[[Ints, int], Any]) -> Ints:
    """Choose of each class as many as its quota."""
    parts = [
        choose(np.flatnonzero(pool.case.y == label), int(count))
        for label, count in enumerate(quotas(pool))
    ]
    return np.concatenate(parts).astype(np.int64)


def validation_loss(pool: Pool, weights: Floats) -> float:
    """Return the mean log loss of a linear softmax model on all the records."""
    logits = pool.features @ weights
    each = logits[np.arange(len(logits)), pool.case.y]
    return float(np.mean(np.log(np.exp(logits).sum(axis=1)) - each))


def residuals(pool: Pool, weights: Floats) -> Floats:
    """Return the classes less their probabilities: the gradient of each log likelihood, by x."""
    found = -softmax(pool.features @ weights, axis=1)
    found[np.arange(len(found)), pool.case.y] += 1
    return np.asarray(found)


def step_gains(pool: Pool, weights: Floats, rate: float) -> Floats:
    """Return by how much one gradient step on each record lowers the validation loss, linearly."""
    misses = residuals(pool, weights)
    rise = pool.features.T @ misses / len(misses)
    return np.asarray(rate * ((pool.features @ rise) * misses).sum(axis=1))


def glister(pool: Pool) -> Ints:
    """Choose as GLISTER: what lowers the validation loss most, after one gradient step on it.

    A linear softmax model, from 0; each choice is followed by its step. The validation data are all
    the records to choose from, which DS takes for targets, too. Of several rates it is the one with
    the least validation loss in the end.
    """
    found = [_glister(pool, rate / pool.k) for rate in RATES]
    return min(found, key=lambda pair: pair[0])[1]


def _glister(pool: Pool, rate: float) -> tuple[float, Ints]:
    weights = np.zeros((pool.features.shape[1], int(pool.case.y.max()) + 1))
    left, chosen = np.zeros(len(pool.case.y)), []
    for _ in range(pool.k):
        j = int(np.argmax(step_gains(pool, weights, rate) + left))
        weights += rate * np.outer(pool.features[j], residuals(pool, weights)[j])
        left[j] = -np.inf
        chosen.append(j)
    return validation_loss(pool, weights), np.array(chosen)


def scaled(X: Any) -> Floats:
    """Return features of a linear model, with a constant one, whose mean squared length is 1."""
    features = np.hstack([X, np.ones((len(X), 1))]).astype(np.float64)
    return np.asarray(features / np.sqrt((features**2).sum(axis=1).mean()))


def selections(pool: Pool, seed: int) -> dict[str, Ints]:
    """Choose by every contender."""
    rng = np.random.default_rng([seed, 30])
    n, k, case = len(pool.case.y), pool.k, pool.case
    averse = CVaR(WORST, SAMPLES, n_thresholds=THRESHOLDS)
    return {
        OURS: case.select(k, dict(pool.staying)),
        f"CVaR {WORST:g}": case.select(k, dict(pool.staying), averse),
        "DS": case.select(k),
        "random": rng.permutation(n)[:k],
        "stratified": case.random(k, 0),
        "random by quotas": by_quotas(pool, lambda rows, m: rng.permutation(rows)[:m]),
        "DS by quotas": by_quotas(pool, lambda rows, m: greedy(pool, rows, m)),
        "GLISTER": glister(pool),
        "OblivGreedy": oblivious(pool),
        "PRo": partitioned(pool),
        "STAR-T": thresholded(pool, rng),
        "two greedy": repeated(pool),
    }


def adversary(measure: Measure, k: int, n_deletions: int) -> Mask:
    """Delete, one after another, whichever costs the most utility; return who is left."""
    stays = np.ones(k, dtype=bool)
    for _ in range(n_deletions):
        there = np.flatnonzero(stays)
        cases = np.repeat(stays[None, :], len(there), axis=0)
        cases[np.arange(len(there)), there] = False
        stays[there[int(np.argmin(measure(cases)))]] = False
    return stays


def judged(pool: Pool, rows: Ints, draws: Mask, n_deletions: int) -> Floats:
    """Return utility and metric, of shape (2, columns)."""
    utility, metric = pool.utility_left(rows), pool.case.measure(rows)
    stays = draws[:, rows]
    ends = np.stack([np.ones(len(rows), dtype=bool), adversary(utility, len(rows), n_deletions)])
    found = []
    for measure in (utility, metric):
        values, (whole, robbed) = measure(stays), measure(ends)
        found.append([whole, values.mean(), worst_share(values, WORST), robbed])
    return np.array(found)


def hearts(split: int, quick: bool) -> Pool:
    """Return heart disease; half of those with the disease leave, the others stay."""
    case = nn_h.case_of(100 + split)
    blocks = class_blocks(case.X, case.y)
    return Pool(
        case, 50 if quick else 100, {0: 1.0, 1: 0.5},
        scaled(case.X),
        lambda: NearestGains(blocks, case.y),
        lambda rows: NearestUtility(blocks, rows),
    )  # fmt: skip


def incomes(split: int, quick: bool) -> Pool:
    """Return a random half of the Adult data; who earns more leaves more often."""
    read = adult.adult()
    rng = np.random.default_rng([split, 31])
    part = rng.permutation(len(read.y))[: 500 if quick else len(read.y) // 2]
    new = rng.permutation(len(read.y_new))[: 500 if quick else len(read.y_new) // 2]
    case = nb_a.case_of(data.Data(read.X[part], read.y[part], read.X_new[new], read.y_new[new]))
    marks = [case.X[:, [f]] == np.arange(case.X[:, f].max() + 1) for f in range(case.X.shape[1])]
    return Pool(
        case, 40 if quick else 120, {0: 0.8, 1: 0.4}, scaled(np.hstack(marks)),
        lambda: BayesGains(case.X, case.y, nb_a.SMOOTHING),
        lambda rows: BayesUtility(case.X, case.y, nb_a.SMOOTHING, rows),
    )  # fmt: skip


def images(split: int, quick: bool) -> Pool:
    """Return images of Fashion-MNIST, of each class as many; of every second class most leave."""
    read = data.fashion()
    rng = np.random.default_rng([split, 32])
    n_class = 30 if quick else N_CLASS
    part = np.concatenate([
        rng.permutation(np.flatnonzero(read.y == label))[:n_class] for label in range(10)
    ])  # fmt: skip
    new = rng.permutation(len(read.y_new))[: 300 if quick else N_NEW]
    X, y, X_new, y_new = read.X[part], read.y[part], read.X_new[new], read.y_new[new]

    def measure(selected: Any) -> NearestClassifier:
        return NearestClassifier(X, y, X_new, y_new, accuracy, selected)

    utility = comparisons.Prepared(nn_h.UTILITY, X, y)
    case = Case(X, y, utility, measure, "accuracy", split)
    blocks = class_blocks(X, y)
    blocks = [(records, similar.astype(np.float64)) for records, similar in blocks]
    return Pool(
        case, 60 if quick else K_IMAGES, {label: 0.9 - 0.6 * (label % 2) for label in range(10)},
        scaled(X / 255.0),
        lambda: NearestGains(blocks, y),
        lambda rows: NearestUtility(blocks, rows),
    )  # fmt: skip


SETS: dict[str, Callable[[int, bool], Pool]] = {
    "heart": hearts,
    "adult": incomes,
    "fashion": images,
}


def interval(differences: Floats) -> float:
    """Return half the width of the 95 % interval of a mean, of few splits."""
    n = len(differences)
    return float(t.ppf(0.975, n - 1) * np.std(differences, ddof=1) / np.sqrt(n))


def told(differences: Floats, digits: int) -> str:
    """Write a mean difference and its interval; in bold, if it is above 0 for certain."""
    mean, half = float(differences.mean()), interval(differences)
    text = f"{mean:+.{digits}f} ± {half:.{digits}f}"
    return f"**{text}**" if mean - half > 0 else text


def table(found: Mapping[str, Floats], metric: str) -> dict[str, Any]:
    """Write results of shape (splits, 2, columns): of ours, and of others less ours."""
    ours = found[OURS]
    head = ["chosen by"]
    for what in ("utility, %", metric):
        head += [f"{what}: {column}" if at == 0 else column for at, column in enumerate(COLUMNS)]
    rows = [[f"{OURS}, itself", *["100"] * len(COLUMNS)]]
    rows[0] += [f"{each:.3f}" for each in ours[:, 1].mean(axis=0)]
    for name, values in found.items():
        if name == OURS:
            continue
        more = 100 * (values[:, 0] / ours[:, 0] - 1)
        apart = values[:, 1] - ours[:, 1]
        rows.append([
            name, *(told(more[:, at], 2) for at in range(len(COLUMNS))),
            *(told(apart[:, at], 3) for at in range(len(COLUMNS))),
        ])  # fmt: skip
    return {"head": head, "rows": rows}


def verdicts(found: Mapping[str, Floats], metric: str) -> dict[str, Any]:
    """Name the contenders that are above ours for certain, and those that may be as good."""
    ours, rows = found[OURS], []
    for what, title in enumerate(("utility", metric)):
        for at, column in enumerate(COLUMNS):
            sides: dict[int, list[str]] = {1: [], 0: [], -1: []}
            for name, values in found.items():
                if name != OURS:
                    apart = values[:, what, at] - ours[:, what, at]
                    mean, half = float(apart.mean()), interval(apart)
                    sides[int(mean > half) - int(mean < -half)].append(name)
            told = [", ".join(sides[side]) or "none" for side in (1, 0)]
            rows.append([f"{title}, {column}", *told, str(len(sides[-1]))])
    return {"head": ["measure", "above EDADS", "not distinguished", "below"], "rows": rows}


def measured(name: str, quick: bool) -> dict[str, Any]:
    """Compare all contenders on one data set."""
    found: dict[str, list[Floats]] = {}
    for split in range(2 if quick else SPLITS):
        pool = SETS[name](split, quick)
        command.say(f"{name}, split {split}: {len(pool.case.y):,} records")
        n_deletions = round(pool.k * (1 - pool.probability.mean()))
        draws = as_staying(pool.probability).sample(
            len(pool.probability), 50 if quick else DRAWS, random_state=1000 + split
        )
        for label, rows in selections(pool, split).items():
            found.setdefault(label, []).append(judged(pool, rows, draws, n_deletions))
    arrays = {label: np.array(values) for label, values in found.items()}
    metric = pool.case.metric
    return {
        "notes": {name: table(arrays, metric), f"{name}_verdicts": verdicts(arrays, metric)},
        "facts": {f"{name}_deletions": str(n_deletions), f"{name}_k": str(pool.k)},
    }


def on(name: str) -> Callable[[bool], dict[str, Any]]:
    """Return the part of an experiment that is on one data set."""
    return lambda quick: (
        measured(name, quick)
        | {
            "settings": {
                "compared": f"{SPLITS} splits of each data set; {DRAWS:,} draws of who stays, the "
                "same for all contenders",
                "CVaR": f"{SAMPLES:,} samples to choose by, {THRESHOLDS} thresholds",
                "adversary": "deletes as many as are expected to leave, each time the record whose "
                "deletion costs the most utility; a lower bound of the harm of the worst case",
            }
        }
    )


PARTS = {name: on(name) for name in SETS}

if __name__ == "__main__":
    sys.exit(command.run("contenders", __doc__, PARTS, takes=("folder",)))
