"""What is left after simulated deletions: of a utility, or of a model's score on validation data.

A measure is made once for a selection, and then takes who stays, a mask of shape
``(n_simulations, n_selected)`` in the order of choice. `Counted` takes any function of the rows
that are left. The other two look only at the nearest who stays, which is found by going through
the chosen from near to far, sorted once: thousands of simulations take seconds.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import confusion_matrix, euclidean_distances

from erasable.core._jit import kernel
from erasable.selection.staying import as_staying

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]
Score = Callable[[NDArray[np.int64]], Floats]
"""Of confusion matrices, shape (n_simulations, n_classes, n_classes): true class, then found."""


class Measure(Protocol):
    """What is left of something, for a selection."""

    def __call__(self, stays: Mask) -> Floats:
        """Return the value in each simulation, shape (n_simulations,)."""


@dataclass(frozen=True)
class Outcome:
    """Mean, standard deviation and standard error over simulations."""

    mean: float
    deviation: float
    error: float

    @classmethod
    def of(cls, values: Floats) -> Outcome:
        """Describe values."""
        deviation = float(np.std(values, ddof=1)) if len(values) > 1 else 0.0
        return cls(float(np.mean(values)), deviation, deviation / len(values) ** 0.5)


class Counted:
    """Any function of the rows that are left, in ascending order."""

    def __init__(self, function: Callable[[Ints], float], selected: Ints) -> None:
        self.function, self.selected = function, np.asarray(selected)

    def __call__(self, stays: Mask) -> Floats:
        return np.array([self.function(np.sort(self.selected[mask])) for mask in stays])


class NearestClassifier:
    """Score of a classifier by the nearest neighbour (Euclidean) that is trained on who stays.

    A classifier without any records scores 0.

    Parameters
    ----------
    X, y : ndarray of shape (n_records, n_features), (n_records,)
        All the records, and their classes from 0.
    X_new, y_new : ndarray
        Validation data.
    score : callable
        See `accuracy`, `f1` and `balanced_accuracy`.
    selected : ndarray of shape (n_selected,), int64
    """

    def __init__(
        self, X: Any, y: Ints, X_new: Any, y_new: Ints, score: Score, selected: Ints
    ) -> None:
        self.score = score
        self.order = np.empty((len(X_new), len(selected)), dtype=np.int32)
        for start in range(0, len(X_new), 2000):
            part = slice(start, start + 2000)
            distances = euclidean_distances(X_new[part], X[selected])
            self.order[part] = np.argsort(distances, axis=1, kind="stable")
        self.classes, self.true = y[selected].astype(np.int64), y_new.astype(np.int64)
        self.n_classes = int(max(y.max(), y_new.max())) + 1

    def first(self, k: int) -> NearestClassifier:
        """Return the measure of the first k of the chosen."""
        part = copy.copy(self)
        part.order = self.order[self.order < k].reshape(len(self.order), k)
        part.classes = self.classes[:k]
        return part

    def __call__(self, stays: Mask) -> Floats:
        words = _words(stays)
        found = np.zeros((64 * len(words), self.n_classes, self.n_classes), dtype=np.int64)
        _confusion(self.order, self.classes, self.true, words, found)
        return self.score(found[: len(stays)])


class Trained:
    """Score of any classifier that is trained on who stays; of one class alone it finds that one.

    A classifier without any records scores 0. See `NearestClassifier` for the other parameters.

    Parameters
    ----------
    make : callable
        Makes an estimator of scikit-learn's kind.
    """

    def __init__(
        self, make: Callable[[], Any], X: Any, y: Ints, X_new: Any, y_new: Ints, score: Score,
        selected: Ints,
    ) -> None:  # fmt: skip
        self.make, self.X_new, self.score = make, X_new, score
        self.X, self.y, self.y_new = X[selected], y[selected], y_new
        self.classes = np.arange(int(max(y.max(), y_new.max())) + 1)

    def __call__(self, stays: Mask) -> Floats:
        found = np.zeros((len(stays), len(self.classes), len(self.classes)), dtype=np.int64)
        for matrix, mask in zip(found, stays, strict=True):
            y = self.y[mask]
            if len(y) == 0:
                continue
            one = (y == y[0]).all()
            said = np.full(len(self.y_new), y[0]) if one else self._said(mask)
            matrix[:] = confusion_matrix(self.y_new, said, labels=self.classes)
        return self.score(found)

    def _said(self, mask: Any) -> Any:
        return self.make().fit(self.X[mask], self.y[mask]).predict(self.X_new)


class NearestUtility:
    """The nearest neighbour utility of who stays: of each target the most similar one, summed.

    Parameters
    ----------
    blocks : list of (ndarray of int64, ndarray of shape (n_class, n_class))
        The records of each class, and the similarities between them.
    selected : ndarray of shape (n_selected,), int64
    """

    def __init__(self, blocks: Sequence[tuple[Ints, Any]], selected: Ints) -> None:
        self.parts = []
        for records, similarity in blocks:
            places = np.flatnonzero(np.isin(selected, records))
            rows = similarity[np.searchsorted(records, selected[places])]
            nearest = np.argsort(-rows, axis=0, kind="stable")
            values = np.take_along_axis(rows, nearest, axis=0).T
            order = np.ascontiguousarray(places[nearest].T.astype(np.int32))
            self.parts.append((order, np.ascontiguousarray(values)))

    def __call__(self, stays: Mask) -> Floats:
        words = _words(stays)
        total = np.zeros(64 * len(words))
        for order, values in self.parts:
            _largest(order, values, words, total)
        return total[: len(stays)]


def class_blocks(X: Any, y: Ints) -> list[tuple[Ints, Any]]:
    """Make similarities by class: the largest squared distance less the squared distance.

    The largest is that of any two records of one class, whichever class that is, as in the
    library.
    """
    blocks = []
    for label in range(int(y.max()) + 1):
        records = np.flatnonzero(y == label)
        blocks.append((records, euclidean_distances(X[records], squared=True)))
    largest = max(distances.max() for _, distances in blocks)
    for _, distances in blocks:
        np.subtract(largest, distances, out=distances)
    return blocks


# Who stays of 64 simulations is one word for each of the chosen: simulations that have found their
# nearest are taken out of a word all at once. Where a bit is, a product with _SPREAD says.
_ONE, _NONE, _ALL = np.uint64(1), np.uint64(0), np.uint64(2**64 - 1)
_SPREAD, _SHIFT = np.uint64(0x03F79D71B4CB0A89), np.uint64(58)
_PLACE = np.empty(64, dtype=np.int64)
for _bit in range(64):
    _PLACE[(0x03F79D71B4CB0A89 << _bit & 2**64 - 1) >> 58] = _bit


def _words(stays: Mask) -> NDArray[np.uint64]:
    """Pack masks into words of 64 simulations, shape (n_words, n_selected)."""
    n, k = stays.shape
    padded = np.zeros((-(-n // 64) * 64, k), dtype=np.uint8)
    padded[:n] = stays
    packed = np.packbits(padded.reshape(-1, 64, k), axis=1, bitorder="little")
    return np.ascontiguousarray(packed.transpose(0, 2, 1)).view("<u8")[:, :, 0]


@kernel
def _confusion(order: Any, classes: Ints, true: Ints, words: Any, found: Any) -> None:
    for c in range(len(words)):
        for i in range(len(order)):
            left = _ALL
            for j in order[i]:
                hits = left & words[c, j]
                left ^= hits
                while hits != _NONE:
                    lowest = hits & (~hits + _ONE)
                    hits ^= lowest
                    s = 64 * c + _PLACE[(lowest * _SPREAD) >> _SHIFT]
                    found[s, true[i], classes[j]] += 1
                if left == _NONE:
                    break


@kernel
def _largest(order: Any, values: Any, words: Any, total: Floats) -> None:
    for c in range(len(words)):
        for i in range(len(order)):
            left = _ALL
            for r in range(order.shape[1]):
                hits = left & words[c, order[i, r]]
                left ^= hits
                while hits != _NONE:
                    lowest = hits & (~hits + _ONE)
                    hits ^= lowest
                    total[64 * c + _PLACE[(lowest * _SPREAD) >> _SHIFT]] += values[i, r]
                if left == _NONE:
                    break


def accuracy(found: NDArray[np.int64]) -> Floats:
    """Return the share of validation records that are classified right."""
    of_all = _of_all(found)
    return np.asarray(np.trace(found, axis1=1, axis2=2) / of_all)


def f1(found: NDArray[np.int64]) -> Floats:
    """Return the F1 score of class 1: 2 tp / (2 tp + fp + fn), 0 where there is no model."""
    right = 2 * found[:, 1, 1]
    wrong = found[:, 0, 1] + found[:, 1, 0]
    there = found.sum(axis=(1, 2)) > 0
    return np.where(there, right / np.maximum(right + wrong, 1), 0.0)


def balanced_accuracy(found: NDArray[np.int64]) -> Floats:
    """Return the mean over classes of the share that is classified right."""
    of_class = np.maximum(found.sum(axis=2), 1)
    return np.asarray((np.diagonal(found, axis1=1, axis2=2) / of_class).mean(axis=1))


def _of_all(found: NDArray[np.int64]) -> Any:
    return np.maximum(found.sum(axis=(1, 2)), 1)


def after_departures(
    measure: Measure, staying: Any, n: int, n_simulations: int, *, labels: Any = None, seed: int = 0
) -> Outcome:
    """Measure what is left where owners stay as a model says.

    Parameters
    ----------
    measure : Measure
    staying : staying model, float, mapping or array-like
        Of the n chosen, in the order of their choice.
    n, n_simulations : int
    labels : array-like of shape (n,), default=None
        Classes of the chosen, for models that depend on them.
    """
    stays = as_staying(staying).sample(n, n_simulations, labels=labels, random_state=seed)
    return Outcome.of(measure(stays))


def by_deletions(
    measure: Measure,
    n: int,
    counts: Sequence[int],
    n_simulations: int,
    *,
    among: Any = None,
    seed: int = 0,
) -> list[Outcome]:
    """Measure what is left after so many random deletions, each time anew (figure 5).

    Parameters
    ----------
    measure : Measure
    n : int
        How many were chosen.
    counts : sequence of int
        Numbers of deletions.
    among : ndarray of shape (n,), bool, default=None
        Who may leave; by default all.
    """
    leaving = np.arange(n) if among is None else np.flatnonzero(among)
    rng = np.random.default_rng(seed)
    rank = np.full((n_simulations, n), n + 1)
    for simulation in range(n_simulations):
        rank[simulation, rng.permutation(leaving)] = np.arange(len(leaving))
    return [Outcome.of(measure(rank >= count)) for count in counts]


def worst_share(values: Floats, alpha: float) -> float:
    """Return the mean of the worst share alpha: the conditional value at risk."""
    count = max(1, round(alpha * len(values)))
    return float(np.mean(np.partition(values, count - 1)[:count]))


def cvar_runs(
    measures: Sequence[Measure],
    staying: Any,
    n: int,
    alphas: Sequence[float],
    *,
    n_runs: int = 50,
    n_simulations: int = 10_000,
    labels: Any = None,
    seed: int = 0,
) -> Floats:
    """Measure the conditional value at risk in several runs of fresh samples.

    All the measures see the same samples, and so do those of another call with the same seed: the
    owner of the same place in the order of choice stays.

    Returns
    -------
    ndarray of shape (n_alphas, n_measures, n_runs), float64
    """
    model = as_staying(staying)
    runs = np.empty((len(alphas), len(measures), n_runs))
    for run in range(n_runs):
        stays = model.sample(n, n_simulations, labels=labels, random_state=seed + run)
        for number, measure in enumerate(measures):
            values = measure(stays)
            for at, alpha in enumerate(alphas):
                runs[at, number, run] = worst_share(values, alpha)
    return runs
