"""Base of the naive Bayes classifiers: classes that come and go, priors, and predictions."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from dataclasses import dataclass
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import Tags
from sklearn.utils._param_validation import Interval

from erasable.core._class_sums import ByClass, log_shares
from erasable.core._schema import (
    Depending,
    Fields,
    FieldType,
    Sizes,
    classes,
    refuse,
    refuse_many,
    weight_sums,
)
from erasable.core._weighted_moments import LEAST_WEIGHT, ClassWeights
from erasable.core.arrays import Floats, Ints, Values
from erasable.core.classes import Classes, check_classes
from erasable.core.errors import (
    InvalidDataError,
    InvalidInputError,
    InvalidParameterError,
    TooFewRecordsError,
)
from erasable.core.matrices import entries
from erasable.core.partial import PartialClassifier
from erasable.core.passes import Block, Pass, run
from erasable.core.tables import Table


def _weigh_something(value: dict[str, Any], at: str, sizes: Sizes) -> None:
    if not value["weights"]["sums"].any():
        refuse("weights.sums", "zeros", "a class that weighs more")


def totals_of(state: dict[str, Any]) -> Ints:
    """Return the number of records of each class in a state, or the sum of their weights."""
    totals: Ints = state["weights"]["sums"] if "weights" in state else state["classes"]["counts"]
    return totals


class NaiveBayes(ByClass, PartialClassifier):
    """Base of the classifiers; a subclass says what it counts, and how likely that makes a row.

    A subclass implements ``_check_settings``, ``_derive`` and ``_likelihoods``, and names what
    counts, and the parameter that holds its prior.
    """

    classes: Any
    _kinds: ClassVar[tuple[type[Any], type[Any]]]
    """What counts records without weights, and with them; each has a `schema` of its state."""
    _prior_name: ClassVar[str]
    _least_weight = LEAST_WEIGHT
    _prior: Floats | None
    _derived: _Derived

    # -- what a subclass implements ------------------------------------------------------------

    def _count(self, table: Table) -> Any:
        return self._kinds[table.weights is not None].fit(table)

    def _counted_from(self, state: dict[str, Any]) -> Any:
        """Rebuild from a state what `_count` gave."""
        return self._kinds["weights" in state].from_state(state, self._counts)

    def _counted_schema(self, *, weighted: bool) -> Fields:
        """Return the schema of what `_count` gives of records, with weights or without."""
        schema: Fields = self._kinds[weighted].schema
        return schema

    def _check_settings(self) -> None:
        """Check the parameters, as they were at `fit`, against the width of the data."""
        return None

    @abstractmethod
    def _derive(self) -> Any:
        """Compute what predictions need of the counts, once for all of them."""

    @abstractmethod
    def _likelihoods(self, matrix: Values, derived: Any) -> Floats:
        """Log-likelihood of every row in every class, without the prior; -inf if impossible."""

    @abstractmethod
    def _log_prior(self) -> Floats:
        """Logarithm of the prior of every class."""

    # -- learning and forgetting ---------------------------------------------------------------

    def _fit_rows(self) -> None:
        self._check_settings()
        self._refuse_weightless(np.empty(0, dtype=np.int64))
        self._prior = self._read_prior()
        held = self._attached()
        live, target, weights = held.live_rows(), held.records.y, held.records.weights
        assert target is not None
        classes = Classes.fit(target, live, self._at_fit("classes"))
        self._weights = None if weights is None else ClassWeights.fit(weights, live, classes)
        self._learn(classes)
        self._refuse_prior_of_others()

    def _check_targets(self, y: Any) -> None:
        check_classes(y, self.classes)

    def _take(self, classes: Classes) -> None:
        super()._take(classes)
        self._derived = _Derived()

    def _check_deletion(self, rows: Ints) -> None:
        self._refuse_weightless(rows)
        if self._prior is None or self._at_fit("classes") is not None:
            return
        left = self._accelerator.left(rows)
        if left < self._labels.size:
            raise TooFewRecordsError(
                f"deleting {rows.size} records would leave {left} of {self._labels.size} classes, "
                f"and {self._prior_name}= holds a probability for each; expected a record of each "
                "class; delete fewer, or fit with classes= to keep classes without records"
            )

    # -- keeping -------------------------------------------------------------------------------

    def _schema(self) -> FieldType:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # they were given at fit
            self._check_settings()
        refuse_many(self._n_records)
        prior = self._read_prior()

        def suit_the_prior(value: dict[str, Any], at: str, sizes: Sizes) -> None:
            if prior is not None and prior.size != sizes["n_classes"]:
                labels = value["classes"]["labels"]
                refuse("classes.labels", labels, f"{prior.size}, as in the prior")

        known = {"classes": classes(fixed=self._at_fit("classes") is not None)}
        plain = Fields(known, relations=(suit_the_prior,))
        weighted = plain.joined(
            Fields({"weights": weight_sums("n_classes")}, relations=(_weigh_something,))
        )
        return Depending(
            "weights",
            plain.joined(self._counted_schema(weighted=False)),
            weighted.joined(self._counted_schema(weighted=True)),
        )

    def _restore(self, state: dict[str, Any]) -> None:
        super()._restore(state)
        self._prior = self._read_prior()
        self._weights = ClassWeights.from_state(state["weights"]) if "weights" in state else None
        self._counted = self._counted_from(state)
        self._derived = _Derived()

    # -- parameters ----------------------------------------------------------------------------

    def _read_prior(self) -> Floats | None:
        return _read_prior(self._at_fit(self._prior_name), self._prior_name)

    def _refuse_prior_of_others(self) -> None:
        """Refuse a prior that is not of these classes."""
        prior, n_classes = self._prior, self._labels.size
        if prior is None or prior.size == n_classes:
            return
        fault = (
            f"{self._prior_name}= holds {prior.size} probabilities, and there are {n_classes} "
            "classes; expected as many (Number of priors must match number of classes.)"
        )
        if prior.size > n_classes and self._at_fit("classes") is None:
            raise TooFewRecordsError(f"{fault}; name all classes with classes=, or leave some out")
        raise InvalidInputError(f"{fault}; give one for each class, in their sorted order")

    # -- what is known of the classes ----------------------------------------------------------

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
        return log_shares(self._possible(self.predict_joint_log_proba(X)))

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
    """Cache until the next deletion: a prediction changes no attribute of an estimator."""

    tables: Any = None


def logs(values: NDArray[Any]) -> Floats:
    """Natural logarithms; -inf of 0, without a warning."""
    with np.errstate(divide="ignore"):
        found: Floats = np.log(values)
    return found


def _read_prior(given: Any, name: str) -> Floats | None:
    """Read the parameter `name`, which holds a probability for each class, or None."""
    if given is None:
        return None
    try:
        prior = np.array(given, dtype=np.float64)
    except (TypeError, ValueError):
        prior = np.empty((0, 0))
    if prior.ndim != 1 or not (np.isfinite(prior) & (prior >= 0)).all() or not prior.any():
        raise InvalidParameterError(
            f"{name}= is a {type(given).__name__} that is no list of "
            "probabilities; expected a number for each class, none of them negative, not all "
            "of them 0 (Priors must be non-negative.); pass one for each of the sorted classes"
        )
    return prior


_LEAST_ALPHA = 1e-10


class DiscreteNB(NaiveBayes):
    """Base of the classifiers that count."""

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "alpha": [Interval(Real, 0, None, closed="left"), "array-like"],
        "force_alpha": ["boolean"],
        "fit_prior": ["boolean"],
        "class_prior": ["array-like", None],
        "classes": ["array-like", None],
    }
    _prior_name = "class_prior"

    def _check_settings(self) -> None:
        self._smoothing()
        if np.min(self._at_fit("alpha")) < _LEAST_ALPHA and not self._at_fit("force_alpha"):
            warnings.warn(
                f"alpha too small will result in numeric errors, setting alpha = {_LEAST_ALPHA}; "
                "pass force_alpha=True to keep it unchanged",
                stacklevel=2,
            )

    def _smoothing(self) -> Floats:
        """Return alpha as it is used, a number or one for each feature."""
        given = self._at_fit("alpha")
        try:
            alpha = np.array(given, dtype=np.float64)
        except (TypeError, ValueError):
            alpha = np.empty((0, 0))
        if alpha.ndim > 1 or not (np.isfinite(alpha) & (alpha >= 0)).all():
            raise InvalidParameterError(
                f"alpha is a {type(given).__name__} that is no number, nor a list of numbers; "
                "expected 0 or more; pass 1.0, or one for each feature"
            )
        if alpha.ndim == 1 and alpha.size != self.n_features_in_:
            raise InvalidInputError(
                f"alpha holds {alpha.size} numbers, and X has {self.n_features_in_} features; "
                "expected as many; pass one for each feature, or one number for all"
            )
        least = 0.0 if self._at_fit("force_alpha") else _LEAST_ALPHA
        return np.maximum(alpha, least)

    @property
    def class_log_prior_(self) -> Floats:
        """Logarithm of the probability of each class."""
        self._check_fitted()
        if self._prior is not None:
            return logs(self._prior)
        if self._at_fit("fit_prior"):
            return logs(self._shares)
        return np.full(self._labels.size, -np.log(self._labels.size))

    def _log_prior(self) -> Floats:
        return self.class_log_prior_

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = True
        return tags


class TableNB(DiscreteNB):
    """Base of those whose counts, and their logarithms, are a table of classes and features."""

    _sees_storage: ClassVar[bool] = False
    _as_if_dense: ClassVar[bool] = True

    @abstractmethod
    def _log_probabilities(self) -> Floats:
        """Return the logarithm of the probability of each feature, for each class."""

    @property
    def feature_count_(self) -> Floats:
        """What was counted of each feature in each class."""
        self._check_fitted()
        counts: Floats = self._counted.counts(self._quantum)
        return counts

    @property
    def feature_log_prob_(self) -> Floats:
        """Logarithm of the smoothed probability of each feature in each class."""
        self._check_fitted()
        return self._log_probabilities()

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


def weighed(matrix: Values, logarithms: Floats) -> Floats:
    """Multiply rows of non-negative numbers with logarithms, where 0 times -inf is 0."""
    never = np.isneginf(logarithms)
    if not never.any():
        out: Floats = matrix @ logarithms.T
        return out
    out = matrix @ np.where(never, 0.0, logarithms).T
    out[((matrix > 0) @ never.T.astype(np.float64)) > 0] = -np.inf
    return out


class _CountNegative(Pass[int]):
    """Count the values below 0."""

    def of_block(self, block: Block) -> int:
        rows: Any = block.matrix
        values = entries(rows)
        if values.size == 0 or values.min() >= 0:
            return 0
        if not block.every:
            rows = rows[block.rows]
            values = entries(rows)
        return int(np.count_nonzero(values < 0))

    def merge(self, one: int, other: int) -> int:
        return one + other


def refuse_negative(name: str, matrix: Any, live: Any = None) -> None:
    """Raise InvalidDataError if (live) rows hold negative values."""
    negative = run(_CountNegative(), matrix, live)
    if negative:
        raise InvalidDataError(
            f"Negative values in data passed to {name}: {negative} of them; expected 0 or more; "
            "pass counts, or scale the columns with MinMaxScaler"
        )
