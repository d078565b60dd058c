"""What the naive Bayes classifiers share: classes that come and go, priors, and predictions."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin

from erasable.core._class_kernels import Codes
from erasable.core._deleting import learn_and_compare
from erasable.core._grid_kernels import Floats, Ints
from erasable.core._schema import Fields, Part
from erasable.core.classes import Classes
from erasable.core.deletion import Outcome
from erasable.core.errors import (
    InvalidInputError,
    TooFewRecordsError,
)
from erasable.core.grid import PrecisionWarning
from erasable.core.params import decode_params
from erasable.core.values import Values
from erasable.core.weighted import Weighted
from erasable.naive_bayes._magnitudes import LiveRows
from erasable.naive_bayes._priors import read_prior
from erasable.naive_bayes._schema import naive_bayes_schema
from erasable.naive_bayes._weights import LEAST_WEIGHT, ClassWeights

__all__ = ["Codes", "Counted", "Floats", "Ints", "LiveRows", "NaiveBayes", "logs"]


class Counted(Protocol):
    """What is counted or summed over the records of each class: a line for every class.

    Where the records have weights, a record counts as often as its weight has quanta.
    """

    def remove(
        self, matrix: Values, rows: Ints, codes: Codes, weights: ClassWeights | None
    ) -> None:
        """Take rows out of the lines of their classes."""

    def keep(self, kept: NDArray[np.bool_]) -> None:
        """Drop the lines of classes that are gone."""

    def settle(
        self,
        matrix: Values,
        rows: Ints,
        codes: Codes,
        live_rows: LiveRows,
        weights: ClassWeights | None,
    ) -> int:
        """Bring what depends on all records (a grid) up to date; count the columns read again.

        `codes` and `live_rows` are those of the records that stay.
        """

    def state(self) -> dict[str, Any]:
        """Return it as arrays."""


class NaiveBayes(ClassifierMixin, Weighted):
    """Base of the classifiers; a subclass says what it counts, and how likely that makes a row.

    A subclass implements ``_count``, ``_counted_from``, ``_check_settings``, ``_derive`` and
    ``_likelihoods``, and names the parameter that holds its prior.
    """

    classes: Any
    _prior_name: ClassVar[str]
    _least_weight = LEAST_WEIGHT
    _settings: dict[str, Any]
    _labels: NDArray[Any]
    _counts: Ints
    _weights: ClassWeights | None
    _counted: Any
    _prior: Floats | None
    _derived: _Derived

    # -- what a subclass implements ------------------------------------------------------------

    def _count(
        self, matrix: Values, live: Ints, classes: Classes, weights: ClassWeights | None
    ) -> Counted:
        """Count the live rows by class; refuse those that cannot be counted."""
        raise NotImplementedError(f"{type(self).__name__} does not implement _count()")

    def _counted_from(self, state: dict[str, Any]) -> Counted:
        """Rebuild from a state what `_count` gave."""
        raise NotImplementedError(f"{type(self).__name__} does not implement _counted_from()")

    def _check_settings(self) -> None:
        """Hold `_settings`, the parameters as they were at `fit`, against the width of the data."""
        return None

    def _derive(self) -> Any:
        """Compute what predictions need of the counts, once for all of them."""
        raise NotImplementedError(f"{type(self).__name__} does not implement _derive()")

    def _likelihoods(self, matrix: Values, derived: Any) -> Floats:
        """Log-likelihood of every row in every class, without the prior; -inf if impossible."""
        raise NotImplementedError(f"{type(self).__name__} does not implement _likelihoods()")

    def _log_prior(self) -> Floats:
        """Logarithm of the prior of every class."""
        raise NotImplementedError(f"{type(self).__name__} does not implement _log_prior()")

    # -- learning and forgetting ---------------------------------------------------------------

    def _fit_rows(self) -> None:
        self._take_settings()
        self._check_settings()
        self._refuse_weightless(np.empty(0, dtype=np.int64))
        self._prior = self._read_prior()
        classes, self._weights, self._counted = self._learned()
        self._labels, self._counts = classes.labels, classes.counts
        self._refuse_prior_of_others()
        self._accelerator = classes
        self._derived = _Derived()

    def _learned(self) -> tuple[Classes, ClassWeights | None, Counted]:
        held = self._attached()
        live, target, weights = held.live_rows(), held.records.y, held.records.weights
        assert target is not None
        classes = Classes.fit(target, live, self._settings["classes"])
        of_classes = None if weights is None else ClassWeights.fit(weights, live, classes)
        return classes, of_classes, self._count(held.records.matrix, live, classes, of_classes)

    def _check_deletion(self, rows: Ints) -> None:
        self._refuse_weightless(rows)
        if self._prior is None or self._settings["classes"] is not None:
            return
        left = self._accelerator.left(rows)
        if left < self._labels.size:
            raise TooFewRecordsError(
                f"deleting {rows.size} records would leave {left} of {self._labels.size} classes, "
                f"and {self._prior_name}= holds a probability for each; expected a record of each "
                "class; delete fewer, or fit with classes= to keep classes without records"
            )

    def _delete_rows(self, rows: Ints) -> Outcome:
        held, classes, weights = self._attached(), self._accelerator, self._weights
        matrix = held.records.matrix
        self._counted.remove(matrix, rows, classes.codes, weights)
        coarse = weights is not None and weights.remove(rows, classes.codes, held.live_rows)
        kept = classes.remove(rows)
        if kept is not None:
            self._counted.keep(kept)
            if weights is not None:
                weights.keep(kept)
        if coarse:
            scanned = self._count_again()
        else:
            scanned = self._counted.settle(matrix, rows, classes.codes, held.live_rows, weights)
        self._labels, self._counts = classes.labels, classes.counts
        self._derived = _Derived()
        return Outcome("updated", held.n_live if scanned else 0, {"columns_scanned": scanned})

    def _count_again(self) -> int:
        """Count what is left, because the grid of the weights has changed; count the columns."""
        held, classes, weights = self._attached(), self._accelerator, self._weights
        assert weights is not None
        live, matrix = held.live_rows(), held.records.matrix
        weights.add_up(live, classes)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", PrecisionWarning)  # it was given at fit
            self._counted = self._count(matrix, live, classes, weights)
        return int(matrix.shape[1])

    # -- keeping -------------------------------------------------------------------------------

    def _schema(self) -> Part:
        self._take_settings()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # they were given at fit
            self._check_settings()
        n_records, fixed = int(self._info.n_records or 0), self._settings["classes"] is not None
        counted = self._counted_schema
        return naive_bayes_schema(n_records, counted, self._read_prior(), fixed=fixed)

    def _counted_schema(self, n_records: int, weighted: bool) -> Fields:
        """Return the schema of what `_counted` gives of records, with weights or without."""
        raise NotImplementedError(f"{type(self).__name__} does not implement _counted_schema()")

    def _state(self) -> dict[str, Any]:
        return _described(self._labels, self._counts, self._weights, self._counted)

    def _restore(self, state: dict[str, Any]) -> None:
        self._take_settings()
        self._labels, self._counts = state["classes"]["labels"], state["classes"]["counts"]
        self._prior = self._read_prior()
        self._weights = ClassWeights.from_state(state["weights"]) if "weights" in state else None
        self._counted = self._counted_from(state)
        self._derived = _Derived()

    def _reattach(self) -> None:
        learn_and_compare(self)

    # -- parameters ----------------------------------------------------------------------------

    def _take_settings(self) -> None:
        """Go by the parameters of `fit` until the next one, whatever is set meanwhile."""
        self._settings = decode_params(self._info.params)

    def _read_prior(self) -> Floats | None:
        return read_prior(self._settings[self._prior_name], self._prior_name)

    def _refuse_prior_of_others(self) -> None:
        """Refuse a prior that is not of these classes."""
        prior, n_classes = self._prior, self._labels.size
        if prior is None or prior.size == n_classes:
            return
        told = (
            f"{self._prior_name}= holds {prior.size} probabilities, and there are {n_classes} "
            "classes; expected as many (Number of priors must match number of classes.)"
        )
        if prior.size > n_classes and self._settings["classes"] is None:
            raise TooFewRecordsError(f"{told}; name all classes with classes=, or leave some out")
        raise InvalidInputError(f"{told}; give one for each class, in their sorted order")

    # -- what is known of the classes ----------------------------------------------------------

    @property
    def classes_(self) -> NDArray[Any]:
        """Labels of the classes, sorted."""
        self._check_fitted()
        return self._labels.copy()

    @property
    def class_count_(self) -> Floats:
        """Number of records of each class, or the sum of their weights."""
        self._check_fitted()
        return self._totals.astype(np.float64) * self._quantum

    @property
    def _totals(self) -> Ints:
        """Number of records of each class, or the sum of their weights in quanta."""
        return self._counts if self._weights is None else self._weights.sums

    @property
    def _quantum(self) -> float:
        """How much a record weighs that counts once."""
        return 1.0 if self._weights is None else self._weights.quantum

    @property
    def _shares(self) -> Floats:
        """The classes' shares of the records, or of their weights."""
        shares: Floats = self._totals / self._totals.sum()
        return shares

    # -- predictions ---------------------------------------------------------------------------

    def predict_joint_log_proba(self, X: Any) -> Floats:
        """Return ``log P(x, c)``, the logarithm of the joint probability (or density).

        Parameters
        ----------
        X : array-like or frame of shape (n_rows, n_features)

        Returns
        -------
        ndarray of shape (n_rows, n_classes), float64
            A column for each of `classes_`; -inf where the class is impossible.
        """
        matrix = self._rows_to_predict(X)
        with np.errstate(over="ignore", invalid="ignore"):
            joint = self._likelihoods(matrix, self._tables())
        joint += self._log_prior()
        joint[:, self._totals == 0] = -np.inf
        return joint

    def predict_log_proba(self, X: Any) -> Floats:
        """Return the logarithms of `predict_proba`.

        Parameters
        ----------
        X : array-like or frame of shape (n_rows, n_features)

        Returns
        -------
        ndarray of shape (n_rows, n_classes), float64
            A column for each of `classes_`; -inf where the class is impossible.
        """
        joint = self._possible(self.predict_joint_log_proba(X))
        joint -= joint.max(axis=1, keepdims=True)
        joint -= np.log(np.exp(joint).sum(axis=1, keepdims=True))
        return joint

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

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the most probable class of every row; of several, the first in `classes_`.

        Parameters
        ----------
        X : array-like or frame of shape (n_rows, n_features)

        Returns
        -------
        ndarray of shape (n_rows,)
            Labels, of the type of `classes_`.
        """
        best = self._possible(self.predict_joint_log_proba(X)).argmax(axis=1)
        predicted: NDArray[Any] = self._labels[best]
        return predicted

    def _rows_to_predict(self, X: Any) -> Values:
        matrix = self._read_matrix(X)
        return matrix if self._comes_mapped(X) else self._mapped(matrix)

    def _tables(self) -> Any:
        self._check_fitted()
        if self._derived.tables is None:
            self._derived.tables = self._derive()
        return self._derived.tables

    def _possible(self, joint: Floats) -> Floats:
        """Give rows that are impossible in every class the shares of the classes, in place."""
        lost = np.isneginf(joint).all(axis=1)
        if lost.any():
            joint[lost] = logs(self._shares)
        return joint


@dataclass(eq=False, slots=True)
class _Derived:
    """What was computed for predictions, until the next deletion.

    An object of its own, because a prediction must not change the attributes of an estimator.
    """

    tables: Any = None


def _described(
    labels: NDArray[Any], counts: Ints, weights: ClassWeights | None, counted: Counted
) -> dict[str, Any]:
    of_weights = {} if weights is None else {"weights": weights.state()}
    return {"classes": {"labels": labels, "counts": counts}, **of_weights, **counted.state()}


def logs(values: NDArray[Any]) -> Floats:
    """Natural logarithms; -inf of 0, without a warning.

    Examples
    --------
    >>> logs(np.array([0.0, 1.0]))
    array([-inf,   0.])
    """
    with np.errstate(divide="ignore"):
        found: Floats = np.log(values)
    return found
