"""Classifiers whose state is sums over the records of each class.

What is counted or summed is a function of the set of live records: a deletion subtracts a record's
terms, and a class without records goes, unless the user has named it.
"""

from __future__ import annotations

import warnings
from abc import abstractmethod
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin

from erasable.core.arrays import Flags, Floats, Ints
from erasable.core.changes import Delta
from erasable.core.classes import Classes
from erasable.core.deletion import Outcome
from erasable.core.estimator import Erasable
from erasable.core.grid import PrecisionWarning
from erasable.core.tables import Table


class SumsByClass(Protocol):
    """A `Summary` with a line for each class; weighted records count by their quanta."""

    def add(self, table: Table, rows: Ints) -> int | None:
        """See `erasable.core.summaries.Summary`."""

    def subtract(self, table: Table, rows: Ints) -> int:
        """See `erasable.core.summaries.Summary`."""

    def keep_classes(self, kept: Flags) -> None:
        """Keep only the lines of these classes."""

    def state(self) -> dict[str, Any]:
        """Return them as arrays."""


class ByClass(ClassifierMixin, Erasable):
    """Base of classifiers whose state is sums over the records of each class.

    A subclass implements `_count` and ``predict_log_proba``; its ``_fit_rows`` finds the classes
    and gives them to `_learn`.
    """

    _attaches_by_learning = True
    _labels: NDArray[Any]
    _counts: Ints
    _counted: Any
    _weights: Any = None

    @abstractmethod
    def _count(self, table: Table) -> SumsByClass:
        """Count the live rows by class; refuse those that cannot be counted."""

    def _learn(self, classes: Classes) -> None:
        """Count the records of these classes."""
        self._counted = self._count(self._table(classes))
        self._take(classes)

    def _table(self, classes: Classes) -> Table:
        return Table.of(self._attached(), classes, self._weights, self._n_jobs)

    def _take(self, classes: Classes) -> None:
        self._labels, self._counts = classes.labels, classes.counts
        self._accelerator = classes

    def _update(self, delta: Delta) -> Outcome | None:
        held, classes, weights = self._attached(), self._accelerator, self._weights
        leaving, arriving = delta.leaving, delta.arriving
        if delta.moved and weights is not None:
            weights.weights = held.records.weights
        table = self._table(classes)
        scanned, coarse = 0, False
        if leaving.size:
            stay = table.without(arriving)
            scanned = self._counted.subtract(stay, leaving)
            coarse = weights is not None and weights.subtract(stay, leaving) > 0
            kept = classes.remove(leaving)
            if kept is not None:
                self._counted.keep_classes(kept)
                if weights is not None:
                    weights.keep_classes(kept)
        if arriving.size:
            assert held.records.y is not None
            if not classes.add(held.records.y, arriving):
                return None
            coarse |= weights is not None and weights.add(table, arriving) > 0
            more = 0 if coarse else self._counted.add(table, arriving)
            if more is None:
                return None
            scanned += more
        if coarse:
            scanned = self._count_again(table)
        self._take(classes)
        return Outcome("updated", held.n_live if scanned else 0, {"columns_scanned": scanned})

    def _count_again(self, table: Table) -> int:
        """Count what is left, because the grid of the weights has changed; count the columns."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", PrecisionWarning)  # it was given at fit
            self._counted = self._count(table)
        return self.n_features_in_

    def _state(self) -> dict[str, Any]:
        of_weights = {} if self._weights is None else {"weights": self._weights.state()}
        told = {"labels": self._labels, "counts": self._counts}
        return {"classes": told, **of_weights, **self._counted.state()}

    def _restore(self, state: dict[str, Any]) -> None:
        self._labels, self._counts = state["classes"]["labels"], state["classes"]["counts"]

    @property
    def classes_(self) -> NDArray[Any]:
        """Labels of the classes, sorted."""
        self._check_fitted()
        return self._labels.copy()

    @abstractmethod
    def predict_log_proba(self, X: Any) -> Floats:
        """Return the logarithms of `predict_proba`."""

    def predict_proba(self, X: Any) -> Floats:
        """Return the probability of every class, for every row.

        Parameters
        ----------
        X : array-like or frame of shape (n_rows, n_features)

        Returns
        -------
        ndarray of shape (n_rows, n_classes), float64
            A column for each of `classes_`; rows add up to 1.
        """
        return np.exp(self.predict_log_proba(X))


def log_shares(scores: Floats) -> Floats:
    """Turn log-weights of classes into logarithms of their shares, in place."""
    scores -= scores.max(axis=1, keepdims=True)
    scores -= np.log(np.exp(scores).sum(axis=1, keepdims=True))
    return scores
