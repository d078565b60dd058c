"""Bases of the estimators that have `partial_fit`, for records with ids."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from erasable.core.attachment import Attachment
from erasable.core.changes import Affine
from erasable.core.errors import InvalidDataError, InvalidIdsError
from erasable.core.estimator import Erasable
from erasable.core.ids import name_some
from erasable.core.messages import refuse_parameters
from erasable.core.weighted import Weighted

__all__ = ["PartialClassifier", "PartialTransformer", "WeightedTransformer", "fit_or_add"]

_Model = TypeVar("_Model", bound=Erasable)


class PartialTransformer(Erasable):
    """Base of the transformers that have `partial_fit`.

    Examples
    --------
    >>> from erasable.preprocessing import MinMaxScaler
    >>> scaler = MinMaxScaler().partial_fit([[1.0], [2.0]], ids=["a", "b"])
    >>> scaler.partial_fit([[5.0]], ids=["c"]).data_max_
    array([5.])
    """

    def partial_fit(
        self,
        X: Any,
        y: Any = None,
        *,
        ids: str | Iterable[Any] | None = None,
        groups: str | Iterable[Any] | None = None,
        **params: Any,
    ) -> Self:
        """Learn from more records: `fit` in the first call, and `add` afterwards.

        Parameters
        ----------
        X, groups, **params
            As in `fit`.
        y : ignored
        ids : array-like of int or str, or the name of a column
            Which record each row is; none of them there already. Optional in the first call, as in
            `fit`.

        Returns
        -------
        self
            The model that one `fit` on all records gives, in any order and any batches.
        """
        refuse_parameters(self, "partial_fit", params)
        return fit_or_add(self, X, y, None, ids, groups)


class WeightedTransformer(Weighted):
    """Base of the transformers that have `partial_fit` and take weights.

    A step of a pipeline uses them only where they are passed to it by name (`_weighs`).

    Examples
    --------
    >>> from erasable.preprocessing import StandardScaler
    >>> scaler = StandardScaler().partial_fit([[1.0], [2.0]], sample_weight=[3.0, 1.0])
    >>> scaler.partial_fit([[5.0]], sample_weight=[0.0], ids=[2]).mean_
    array([1.25])
    """

    _weighs: bool = True

    def partial_fit(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        *,
        ids: str | Iterable[Any] | None = None,
        groups: str | Iterable[Any] | None = None,
        **params: Any,
    ) -> Self:
        """Learn from more records: `fit` in the first call, and `add` afterwards.

        Parameters
        ----------
        X, sample_weight, groups, **params
            As in `fit`.
        y : ignored
        ids : array-like of int or str, or the name of a column
            Which record each row is; none of them there already. Optional in the first call, as in
            `fit`.

        Returns
        -------
        self
            The model that one `fit` on all records gives, in any order and any batches.
        """
        refuse_parameters(self, "partial_fit", params)
        return fit_or_add(self, X, y, sample_weight, ids, groups)

    def _counted_weights(self) -> NDArray[np.float64] | None:
        return super()._counted_weights() if self._weighs else None

    def _learns_from(self) -> set[str]:
        return super()._learns_from() - (set() if self._weighs else {"sample_weight"})

    def _begin_again(self, held: Attachment, affine: Affine | None = None) -> None:
        weighs = self.__dict__.get("_weighs", False)  # not set: a step without weights of its own
        super()._begin_again(held, affine)
        self._weighs = weighs

    def _fit_rows(self) -> None:
        self._weighs = self._weighs  # for `_begin_again`
        self._refuse_weightless(np.empty(0, dtype=np.int64))

    def _check_deletion(self, rows: NDArray[np.int64]) -> None:
        self._refuse_weightless(rows)


class PartialClassifier(Weighted):
    """Base of the classifiers that have `partial_fit`.

    Examples
    --------
    >>> from erasable.naive_bayes import GaussianNB
    >>> model = GaussianNB().partial_fit([[1.0], [2.0]], [0, 1], ids=["a", "b"])
    >>> model.partial_fit([[5.0]], [1], ids=["c"]).theta_
    array([[1. ],
           [3.5]])
    """

    def partial_fit(
        self,
        X: Any,
        y: Any,
        classes: Any = None,
        sample_weight: Any = None,
        *,
        ids: str | Iterable[Any] | None = None,
        groups: str | Iterable[Any] | None = None,
    ) -> Self:
        """Learn from more records: `fit` in the first call, and `add` afterwards.

        Parameters
        ----------
        X, sample_weight, groups
            As in `fit`.
        y : array-like of shape (n_records,)
            Classes, which may be new in any call.
        classes : array-like of shape (n_classes,), default=None
            Classes that `y` may have, which is checked. It does not change the model: one that
            knows classes without records has a parameter of that name.
        ids : array-like of int or str, or the name of a column
            Which record each row is; none of them there already. Optional in the first call, as in
            `fit`.

        Returns
        -------
        self
            The model that one `fit` on all records gives, in any order and any batches.

        Raises
        ------
        InvalidDataError
            Targets that are not among `classes`; for other errors, see `fit` and `add`.
        """
        _refuse_others(y, classes)
        return fit_or_add(self, X, y, sample_weight, ids, groups)


def fit_or_add(model: _Model, X: Any, y: Any, sample_weight: Any, ids: Any, groups: Any) -> _Model:
    """Fit a model that has not been fitted, or add records to it.

    Examples
    --------
    >>> from erasable.preprocessing import MinMaxScaler
    >>> fit_or_add(MinMaxScaler(), [[1.0], [2.0]], None, None, ["a", "b"], None).data_max_
    array([2.])
    """
    weighed = {} if sample_weight is None else {"sample_weight": sample_weight}
    if not model.__sklearn_is_fitted__():
        return model.fit(X, y, ids=ids, groups=groups, **weighed)
    if ids is None:
        raise _nameless(model, X)
    model.add(X, y, ids=ids, groups=groups, digest=False, **weighed)
    return model


def _nameless(model: Erasable, X: Any) -> InvalidIdsError:
    model._read_matrix(X)  # raises first where X is wrong
    return InvalidIdsError(
        "ids are missing; expected one for each row, as records are there already"
    )


def _refuse_others(y: Any, classes: Any) -> None:
    if classes is None or y is None:
        return
    known = set(np.asarray(classes).ravel().tolist())
    strange = sorted({str(each) for each in np.asarray(y).ravel().tolist() if each not in known})
    if strange:
        raise InvalidDataError(
            f"y holds {len(strange)} classes that are not among classes=: {name_some(strange)}; "
            "expected no others"
        )
