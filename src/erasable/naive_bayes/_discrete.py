"""The base of naive Bayes on counts: smoothing, and a prior that is learned, given or uniform."""

from __future__ import annotations

import warnings
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from scipy.sparse import issparse
from sklearn.utils import Tags
from sklearn.utils._param_validation import Interval

from erasable.core.arrays import Floats
from erasable.core.errors import InvalidDataError, InvalidInputError, InvalidParameterError
from erasable.core.passes import Block, Pass, run
from erasable.core.values import Values
from erasable.naive_bayes._base import NaiveBayes, logs

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

    def _log_probabilities(self) -> Floats:
        raise NotImplementedError(f"{type(self).__name__} does not implement _log_probabilities()")

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
    """Multiply rows of non-negative numbers with logarithms, where 0 times -inf is 0.

    >>> weighed(np.array([[2.0, 0.0], [1.0, 1.0]]), np.array([[-1.0, -np.inf]]))
    array([[ -2.],
           [-inf]])
    """
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
        values = rows.data if issparse(rows) else rows
        if values.size == 0 or values.min() >= 0:
            return 0
        if not block.every:
            rows = rows[block.rows]
            values = rows.data if issparse(rows) else rows
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
