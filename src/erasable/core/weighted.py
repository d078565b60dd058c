"""Base of the estimators that take weights of records."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from erasable.core.errors import TooFewRecordsError
from erasable.core.estimator import Erasable
from erasable.core.messages import refuse_parameters

__all__ = ["Weighted", "power_below", "weight_units"]


def power_below(value: float) -> int:
    """Return the exponent of the largest power of two that is not above a positive number.

    Examples
    --------
    >>> power_below(0.05), power_below(4.0)
    (-5, 2)
    """
    return math.frexp(value)[1] - 1


def weight_units(weights: NDArray[np.float64], exponent: int) -> NDArray[np.int64]:
    """Return weights in units of ``2**exponent``; what is above 0 is 1 at least.

    Examples
    --------
    >>> weight_units(np.array([0.0, 1e-9, 0.5, 1.0]), -15)
    array([    0,     1, 16384, 32768])
    """
    units = np.rint(np.ldexp(weights, -exponent)).astype(np.int64)
    return np.where(weights > 0, np.maximum(units, 1), 0)


class Weighted(Erasable):
    """Base of the estimators whose `fit` takes `sample_weight`.

    The weight of a record is part of the record: it is copied, shared and erased with it. A record
    of weight 0 is held, and can be deleted, but is not learned from.

    Examples
    --------
    >>> from erasable.linear_model import Ridge
    >>> model = Ridge(alpha=0.0).fit([[0.0], [1.0], [2.0]], [1.0, 3.0, 99.0], [1.0, 1.0, 0.0])
    >>> model.predict([[2.0]]).round(6)
    array([5.])
    """

    _takes_weights: ClassVar[bool] = True
    _least_weight: ClassVar[float] = 0.0
    """Weights up to this count as 0."""

    def fit(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        *,
        ids: str | Iterable[Any] | None = None,
        groups: str | Iterable[Any] | None = None,
        **params: Any,
    ) -> Self:
        """Learn from records.

        Parameters
        ----------
        X : array-like, frame, sparse matrix or Records of shape (n_records, n_features)
            Finite numbers, copied; `Records` are shared instead.
        y : array-like of shape (n_records,) or (n_records, n_outputs)
            Targets.
        sample_weight : array-like of shape (n_records,) or float, default=None
            How much each record counts, 0 or more; 1 by default.
        ids : array-like of int or str, or the name of a column, default=None
            Which record each row is. By default a pandas frame's index, or 0..n-1.
        groups : array-like of int or str, or the name of a column, default=None
            Which records leave together.
        **params : none
            Other parameters that scikit-learn's estimators take are refused, with advice.

        Returns
        -------
        self
            The fitted estimator. If anything raises, it is what it was before.

        Raises
        ------
        InvalidDataError
            Values that the estimator does not take, or none.
        InvalidIdsError
            Ids or groups that repeat, have a wrong type, or do not match the rows.
        TooFewRecordsError
            Fewer records than the model needs.
        """
        refuse_parameters(self, "fit", params)
        return self._fit(X, y, sample_weight, ids, groups)

    def _counted_weights(self) -> NDArray[np.float64] | None:
        """Return the weight of each row, if it is live; None if all count alike."""
        return self._attached().records.weights

    def _refuse_weightless(self, rows: NDArray[np.int64]) -> None:
        """Raise TooFewRecordsError if all records would weigh 0 without some live rows."""
        weights = self._counted_weights()
        if weights is None:
            return
        left = self._attached().live.copy()
        left[rows] = False
        if not (weights[left] > self._least_weight).any():
            raise TooFewRecordsError(
                f"the weights of all {int(left.sum())} records would be zero; "
                f"{type(self).__name__} needs at least 1 record with a positive weight; "
                "delete fewer, or change sample_weight"
            )
