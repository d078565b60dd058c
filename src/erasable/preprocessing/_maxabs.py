"""Scaling by the largest magnitude: the state is the extremes of each column."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from scipy.sparse import issparse
from sklearn.utils import Tags

from erasable.core import _sparse_kernels as kernels
from erasable.core._schema import Array, Fields, Sizes, refuse
from erasable.core.arrays import Flags, Floats, Ints, Values
from erasable.core.changes import VALUES, Affine, Delta
from erasable.core.deletion import Outcome
from erasable.core.sparse import parts
from erasable.core.tables import Table
from erasable.core.threads import N_JOBS
from erasable.preprocessing._scaler import NARROWEST, ExtremesScaler


class MaxAbsScaler(ExtremesScaler):
    """Divide every column by its largest magnitude, and forget records exactly.

    Zeros stay zeros, so that sparse data stays sparse. A deletion costs O(n_features) a record, or
    O(values of the record) in sparse data, unless it takes the last record at a column's extreme:
    then that column is scanned again. The other columns keep their scale, bit for bit.

    Parameters
    ----------
    n_jobs : int or None, default=None
        Threads that read the records: None is one, -1 all cores. The model is the same with any
        number.

    Attributes
    ----------
    max_abs_ : ndarray of shape (n_features,), float64
        Largest magnitude of each column over the records held.
    scale_ : ndarray of shape (n_features,), float64
        What is divided by: `max_abs_`, or 1 where that is 0.
    n_samples_seen_ : int
        Number of records held.

    See Also
    --------
    MinMaxScaler : Scales to a range; moves zeros.

    Notes
    -----
    Differs from scikit-learn's for magnitudes below ``2e-15``, which are scaled too; only one
    below ``2**-960`` counts as 0. NaN is refused.

    The state is the extremes alone. So ``load(path, records)`` cannot tell if values between them
    were changed since: the scaler is the same, with the same digest.

    Examples
    --------
    >>> from erasable.preprocessing import MaxAbsScaler
    >>> X = [[1.0, -10.0], [2.0, 5.0], [-8.0, 0.0]]
    >>> scaler = MaxAbsScaler().fit(X, ids=["a", "b", "c"])
    >>> scaler.transform([[4.0, 5.0]])
    array([[0.5, 0.5]])
    >>> scaler.delete(["c"]).counts["columns_changed"]
    1
    >>> scaler.transform([[4.0, 5.0]])
    array([[2. , 0.5]])
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {"n_jobs": N_JOBS}
    _without_effect = ("n_jobs",)
    _reads_blocks = True
    _names = "low", "high"

    def __init__(self, *, n_jobs: int | None = None) -> None:
        self.n_jobs = n_jobs

    # -- what is learned -----------------------------------------------------------------------

    def _extremes_of(self, matrix: Values) -> Any:
        if not issparse(matrix):
            return super()._extremes_of(matrix)
        # Where the steps before subtract something, zeros have a magnitude, and signs matter.
        return _Peaks if self._map is None or not self._map.shift.any() else _SparseExtremes

    def _update(self, delta: Delta) -> Outcome | None:
        matrix = self._attached().records.matrix
        if not issparse(matrix) or isinstance(self._accelerator, self._extremes_of(matrix)):
            return super()._update(delta)
        self._fit_rows()  # the steps before subtract something now, or do not any more
        self._change = VALUES
        n_live = self._attached().n_live
        return Outcome("updated", n_live, {"columns_changed": self.n_features_in_})

    def _schema(self) -> Fields:
        def check(value: dict[str, Any], at: str, sizes: Sizes) -> None:
            if not (value["low"] <= value["high"]).all():
                refuse("high", "less than low", "as much, or more")

        column = Array("float64", ("n_features",))
        return Fields({"low": column, "high": column}, relations=(check,))

    # -- what follows --------------------------------------------------------------------------

    @property
    def max_abs_(self) -> Floats:
        """Largest magnitude of each column."""
        self._check_fitted()
        low, high = self._mapped(self._bounds)
        largest: Floats = np.maximum(np.abs(low), np.abs(high))
        return largest

    @property
    def scale_(self) -> Floats:
        """What each column is divided by."""
        peak = self.max_abs_
        peak[peak < NARROWEST] = 1.0
        return peak

    def _affine(self) -> Affine:
        return Affine(np.zeros(self.n_features_in_), self.scale_)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


class _Peaks:
    """Largest magnitude of each column of a sparse matrix; `Extremes` for CSR."""

    def __init__(self, matrix: Values, live_rows: Ints) -> None:
        d = matrix.shape[1]
        self.high, self.counts = np.zeros(d), np.zeros((2, d), dtype=np.int64)
        kernels.peaks(*parts(matrix), live_rows, self.high, self.counts)

    @property
    def low(self) -> Floats:
        return -self.high + 0.0  # no -0.0

    def add(self, table: Table, rows: Ints) -> Flags | None:
        """Add rows; return the columns whose peak changed, or None if none did."""
        before = self.high.copy()
        kernels.peaks(*parts(table.matrix), rows, self.high, self.counts)
        changed: Flags = self.high != before
        return changed if changed.any() else None

    def subtract(self, table: Table, rows: Ints) -> Flags | None:
        """Subtract rows; return the columns whose peak changed, or None if none did."""
        if not kernels.forget_peaks(*parts(table.matrix), rows, self.high, self.counts):
            return None
        changed: Flags = (self.counts[0] == 0) & (self.high > 0.0)
        self.high[changed] = 0.0
        scan = changed & (self.counts[1] > 0)
        if scan.any():
            kernels.rescan_peaks(
                *parts(table.matrix), table.live_rows(), scan, self.high, self.counts
            )
        return changed


class _SparseExtremes:
    """Lowest and highest value of each column of a sparse matrix, zeros included."""

    def __init__(self, matrix: Values, live_rows: Ints) -> None:
        live = matrix[live_rows]
        self.low: Floats = live.min(axis=0).toarray().ravel()
        self.high: Floats = live.max(axis=0).toarray().ravel()

    def add(self, table: Table, rows: Ints) -> Flags | None:
        """Add rows; return the columns that changed, or None if none did."""
        low, high = self.low, self.high
        others = _SparseExtremes(table.matrix, rows)
        self.low, self.high = np.minimum(low, others.low), np.maximum(high, others.high)
        changed: Flags = (low != self.low) | (high != self.high)
        return changed if changed.any() else None

    def subtract(self, table: Table, rows: Ints) -> Flags | None:
        """Subtract rows; return the columns that changed, or None if none did."""
        left = _SparseExtremes(table.matrix, table.live_rows())
        changed: Flags = (left.low != self.low) | (left.high != self.high)
        self.low, self.high = left.low, left.high
        return changed if changed.any() else None
