"""Scaling to mean 0 and variance 1: the state is exact sums, which every deletion changes."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from erasable.core.deletion import Outcome
from erasable.core.errors import ArtifactError
from erasable.core.grid import Grid
from erasable.core.moments import Moments
from erasable.preprocessing._scaler import Floats, Scaler

__all__ = ["StandardScaler"]


class StandardScaler(Scaler):
    """Scale every column to mean 0 and variance 1, and forget records exactly.

    A deletion costs O(n_features) a record: its terms are subtracted from sums that are exact.
    Mean and variance follow from the sums when they are asked for.

    Parameters
    ----------
    with_mean : bool, default=True
        Subtract the mean?
    with_std : bool, default=True
        Divide by the standard deviation?

    Attributes
    ----------
    mean_ : ndarray of shape (n_features,), float64, or None
        Mean of each column; None if neither `with_mean` nor `with_std`.
    var_ : ndarray of shape (n_features,), float64, or None
        Population variance (divided by n); None unless `with_std`.
    scale_ : ndarray of shape (n_features,), float64, or None
        ``sqrt(var_)``, 1 in constant columns; None unless `with_std`.
    n_samples_seen_ : int
        Number of records held.

    Raises
    ------
    MagnitudeError
        From `fit`, if values exceed ``2**480``.

    See Also
    --------
    MinMaxScaler : Scales to a range; most deletions leave it as it is.

    Notes
    -----
    Columns are rounded once to 26 bits below their largest magnitude (`erasable.core.grid`), so
    mean and standard deviation agree with scikit-learn's to about 1e-8 of that magnitude, or of
    the spread of columns with a large offset. Data are transformed as they are, unrounded.

    Examples
    --------
    >>> from erasable.preprocessing import StandardScaler
    >>> scaler = StandardScaler().fit([[0.0], [2.0], [4.0], [90.0]], ids=["a", "b", "c", "d"])
    >>> print(scaler.delete(["d"], digest=False).action)
    updated
    >>> scaler.mean_, scaler.var_
    (array([2.]), array([2.66666667]))
    >>> scaler.digest() == StandardScaler().fit([[4.0], [0.0], [2.0]], ids=["c", "a", "b"]).digest()
    True
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "with_mean": ["boolean"],
        "with_std": ["boolean"],
    }
    _moments: Moments

    def __init__(self, *, with_mean: bool = True, with_std: bool = True) -> None:
        self.with_mean = with_mean
        self.with_std = with_std

    # -- what is learned -----------------------------------------------------------------------

    def _fit_rows(self) -> None:
        matrix, live = self._live_matrix()
        names = getattr(self, "feature_names_in_", None)
        grid = Grid.fit(matrix, live, names=names, warn=False)
        self._moments = Moments.fit(grid, matrix, live)
        self._accelerator = grid

    def _delete_rows(self, rows: NDArray[np.int64]) -> Outcome:
        held = self._attached()
        matrix, moments = held.records.matrix, self._moments
        moments.remove(matrix, rows)
        change = moments.grid.remove(matrix, rows, held.live_rows)
        if change.exponents:
            moments.rederive(matrix, held.live_rows(), change.columns)
        scanned = int(change.extremes.sum())
        return Outcome("updated", held.n_live if scanned else 0, {"columns_scanned": scanned})

    def _state(self) -> dict[str, Any]:
        return {"grid": self._moments.grid.state(), "moments": self._moments.state()}

    def _restore(self, state: dict[str, Any]) -> None:
        grid = Grid.from_state(state["grid"])
        self._moments = Moments.from_state(grid, self.n_samples_seen_, state["moments"])

    def _reattach(self) -> None:
        matrix, live = self._live_matrix()
        grid = Grid.fit(matrix, live, warn=False)
        moments = Moments.fit(grid, matrix, live)
        mine = self._moments
        same = np.array_equal(grid.top, mine.grid.top) and np.array_equal(moments.sums, mine.sums)
        if not (same and np.array_equal(grid.origin, mine.grid.origin)):
            raise ArtifactError(
                "the records have other sums than the scaler; expected those it was fitted on; "
                "pass unchanged records, or fit again"
            )
        self._moments, self._accelerator = moments, grid

    # -- what follows --------------------------------------------------------------------------

    @property
    def mean_(self) -> Floats | None:
        """Mean of each column."""
        self._check_fitted()
        return self._moments.mean() if self.with_mean or self.with_std else None

    @property
    def var_(self) -> Floats | None:
        """Population variance of each column."""
        self._check_fitted()
        return self._moments.variance() if self.with_std else None

    @property
    def scale_(self) -> Floats | None:
        """Standard deviation of each column, 1 where that is 0."""
        variance = self.var_
        if variance is None:
            return None
        scale = np.sqrt(variance)
        scale[scale == 0] = 1.0
        return scale

    def _forward(self, matrix: NDArray[Any]) -> Floats:
        shift, scale = self._affine()
        out: Floats = np.subtract(matrix, shift)
        out /= scale
        return out

    def _backward(self, matrix: NDArray[Any]) -> Floats:
        shift, scale = self._affine()
        out: Floats = np.multiply(matrix, scale)
        out += shift
        return out

    def _affine(self) -> tuple[Floats, Floats]:
        self._check_fitted()
        d = self.n_features_in_
        shift = self._moments.mean() if self.with_mean else np.zeros(d)
        scale = self.scale_
        return shift, np.ones(d) if scale is None else scale
