"""Base of the scalers: a map of each column on its own, and its inverse."""

from __future__ import annotations

from functools import partial
from typing import Any, ClassVar

import numpy as np
from scipy.sparse import issparse
from sklearn.base import OneToOneFeatureMixin, TransformerMixin, clone
from sklearn.utils import Tags

from erasable.core.arrays import Floats, Ints, Values
from erasable.core.changes import NOTHING, Delta, TableChange
from erasable.core.deletion import Outcome
from erasable.core.estimator import Erasable
from erasable.core.extremes import Extremes
from erasable.core.inputs import read_matrix
from erasable.core.partial import PartialTransformer
from erasable.core.sparse import by_column, canonical
from erasable.core.tables import Table
from erasable.core.values import Accepts

NARROWEST = 2.0**-960
"""A spread below this counts as none: dividing by it could overflow."""


class Scaler(OneToOneFeatureMixin, TransformerMixin, Erasable):
    """Base of the scalers: ``z = (x - shift) / scale`` in every column, in float64.

    Behind an affine step of a pipeline a scaler learns from the records as they are, and says
    what it would have learned from mapped ones: it is a map of a map, and costs no table.
    """

    _takes_map = True
    _attaches_by_learning = True

    @property
    def n_samples_seen_(self) -> int:
        """Number of records that the scaler holds."""
        self._check_fitted()
        return self._n_records

    def transform(self, X: Any) -> Values:
        """Scale columns.

        Parameters
        ----------
        X : array-like, frame or sparse matrix of shape (n_rows, n_features)
            Finite numbers; sparse ones where the scaler subtracts nothing.

        Returns
        -------
        ndarray or csr_array of shape (n_rows, n_features), float64 or float32 as `X`
            A new array, or the container of `set_output`.
        """
        matrix = self._read_matrix(X)
        if not self._comes_mapped(X):
            matrix = self._mapped(matrix)
        if issparse(matrix) and not Accepts.of(self).sparse:  # a step put it beside sparse columns
            return canonical(self._forward(matrix.toarray()))
        return self._forward(matrix).astype(matrix.dtype, copy=False)

    def inverse_transform(self, X: Any) -> Values:
        """Scale columns back.

        Parameters
        ----------
        X : array-like, frame or sparse matrix of shape (n_rows, n_features)
            Scaled values.

        Returns
        -------
        ndarray or csr_array of shape (n_rows, n_features), float64 or float32 as `X`

        Raises
        ------
        InvalidDataError
            Values that are not finite numbers, or another width.
        """
        self._check_fitted()
        nameless = clone(self)  # what transform returned may have names or not
        nameless.n_features_in_ = self.n_features_in_
        matrix = read_matrix(nameless, X.to_numpy() if hasattr(X, "to_numpy") else X)
        return self._backward(matrix).astype(matrix.dtype, copy=False)

    def _forward(self, matrix: Values) -> Values:
        """Return scaled rows: what ``(x - shift) / scale`` is of them, unless overridden."""
        shift, scale = self._affine()
        if issparse(matrix):
            return by_column(np.divide, matrix, scale)
        out: Floats = np.subtract(matrix, shift)
        out /= scale
        return out

    def _backward(self, matrix: Values) -> Values:
        shift, scale = self._affine()
        if issparse(matrix):
            return by_column(np.multiply, matrix, scale)
        out: Floats = np.multiply(matrix, scale)
        out += shift
        return out

    @property
    def _is_map(self) -> bool:
        return True

    def _live_matrix(self) -> tuple[Values, Ints]:
        held = self._attached()
        return held.records.matrix, held.live_rows()

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


class ExtremesScaler(Scaler, PartialTransformer):
    """Base of the scalers whose state is the extremes of each column.

    A subclass names them in its state.
    """

    _names: ClassVar[tuple[str, str]]
    _bounds: Floats  # lowest and highest value of each column, or its magnitude with both signs

    def _extremes_of(self, matrix: Values) -> Any:
        """Return what finds the extremes of such a matrix, for `_accelerator`."""
        return partial(Extremes.fit, n_jobs=self._n_jobs)

    def _fit_rows(self) -> None:
        matrix, live = self._live_matrix()
        found = self._accelerator = self._extremes_of(matrix)(matrix, live)
        self._bounds = np.stack([found.low, found.high])

    def _update(self, delta: Delta) -> Outcome | None:
        found, table, n_read = self._accelerator, Table.of(self._attached()), 0
        lost = come = None
        if delta.leaving.size:
            lost = found.subtract(table.without(delta.arriving), delta.leaving)
            n_read = 0 if lost is None else self._attached().n_live
        if delta.arriving.size:
            come = found.add(table, delta.arriving)
        if lost is None and come is None:
            self._change = NOTHING
            return Outcome("updated", 0, {"columns_changed": 0})
        before, self._bounds = self._bounds, np.stack([found.low, found.high])
        changed = (before != self._bounds).any(axis=0)
        self._change = TableChange(columns=changed)
        return Outcome("updated", n_read, {"columns_changed": int(changed.sum())})

    def _state(self) -> dict[str, Any]:
        return dict(zip(self._names, self._bounds, strict=True))

    def _restore(self, state: dict[str, Any]) -> None:
        self._bounds = np.stack([state[name] for name in self._names])
