"""What is left of a naive Bayes classifier, and of its utility, after simulated deletions.

Both need no more of who stays than how many there are of each class and value of a feature, which
is one product of matrices for all simulations.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from simulations import Floats, Ints, Mask, Score

from erasable.core._jit import kernel

_CHUNK = 64  # simulations at once: their sums stay in the cache


class BayesClassifier:
    """Score of a naive Bayes classifier of categories, that is trained on who stays.

    It is scikit-learn's ``CategoricalNB(alpha=alpha, class_prior=prior)`` for two classes, which
    knows all the categories, and both classes. A class of which nobody stays has equal
    probabilities; without any records everybody is found to be of the likelier class.

    Parameters
    ----------
    X, y : ndarray of shape (n_records, n_features), (n_records,), int64
        All the records: categories from 0, classes 0 and 1.
    X_new, y_new : ndarray
        Validation data.
    score : callable
        See `simulations.balanced_accuracy`.
    selected : ndarray of shape (n_selected,), int64
    alpha : float
        Laplace smoothing.
    prior : tuple of two floats
        Of the classes.
    """

    def __init__(
        self,
        X: Ints, y: Ints, X_new: Ints, y_new: Ints,
        score: Score,
        selected: Ints,
        alpha: float,
        prior: tuple[float, float],
    ) -> None:  # fmt: skip
        self.score, self.alpha, self.prior = score, alpha, prior
        self.sizes = np.maximum(X.max(axis=0), X_new.max(axis=0)) + 1
        first = np.concatenate([[0], np.cumsum(self.sizes)])
        codes = X[selected] + first[:-1]
        self.shows = np.zeros((2, len(selected), first[-1]), dtype=np.float32)
        for label in (0, 1):
            rows = np.flatnonzero(y[selected] == label)
            self.shows[label, rows[:, None], codes[rows]] = 1.0
        self.features = np.repeat(np.arange(len(self.sizes)), self.sizes)
        # Rows that are equal are looked at once; those in a row share sums over what they share.
        rows, place = np.unique(X_new + first[:-1], axis=0, return_inverse=True)
        self.rows = rows.astype(np.int32)
        changed = np.r_[np.ones((1, rows.shape[1]), dtype=bool), rows[1:] != rows[:-1]]
        self.starts = changed.argmax(axis=1)
        self.true = np.zeros((len(rows), 2), dtype=np.int64)
        np.add.at(self.true, (place.ravel(), y_new), 1)

    def __call__(self, stays: Mask) -> Floats:
        found = np.zeros((len(stays), 2, 2), dtype=np.int64)
        for start in range(0, len(stays), _CHUNK):
            part = slice(start, start + _CHUNK)
            odds, base = self._odds(stays[part].astype(np.float32))
            _confusion(self.rows, self.starts, self.true, odds, base, found[part])
        return self.score(found)

    def _odds(self, stays: Any) -> tuple[Floats, float]:
        """Return the log odds of class 1 by each category, (n_categories, n_simulations)."""
        logs = []
        for label in (0, 1):
            counts = (stays @ self.shows[label]).T.astype(np.float64)
            in_class = counts[: self.sizes[0]].sum(axis=0)
            of_all = in_class + self.alpha * self.sizes[self.features][:, None]
            logs.append(np.log(counts + self.alpha) - np.log(of_all))
        return logs[1] - logs[0], float(np.log(self.prior[1]) - np.log(self.prior[0]))


class BayesUtility:
    """The naive Bayes utility of who stays: |M| log(1 + |S| / smoothing), summed.

    Parameters
    ----------
    X, y : ndarray
        All the records.
    smoothing : float
    selected : ndarray of shape (n_selected,), int64
    """

    def __init__(self, X: Ints, y: Ints, smoothing: float, selected: Ints) -> None:
        sizes = X.max(axis=0) + 1
        first = np.concatenate([[0], np.cumsum(sizes)])
        cells = (X + first[:-1]) * 2 + y[:, None]
        self.weights = np.bincount(cells.ravel(), minlength=2 * first[-1]).astype(np.float64)
        self.shows = np.zeros((len(selected), len(self.weights)), dtype=np.float32)
        self.shows[np.arange(len(selected))[:, None], cells[selected]] = 1.0
        self.logs = np.log1p(np.arange(len(selected) + 1) / smoothing)

    def __call__(self, stays: Mask) -> Floats:
        counts = (stays.astype(np.float32) @ self.shows).astype(np.int64)
        return np.asarray(self.logs[counts] @ self.weights)


@kernel
def _confusion(rows: Any, starts: Ints, true: Ints, odds: Floats, base: float, found: Any) -> None:
    n, n_features = odds.shape[1], rows.shape[1]
    sums = np.empty((n_features + 1, n))
    sums[0] = base
    for i in range(len(rows)):
        for feature in range(starts[i], n_features):
            more = odds[rows[i, feature]]
            for s in range(n):
                sums[feature + 1, s] = sums[feature, s] + more[s]
        for s in range(n):
            label = 1 if sums[n_features, s] > 0.0 else 0
            found[s, 0, label] += true[i, 0]
            found[s, 1, label] += true[i, 1]
