"""Scaling to a range: the state is two values of each column, which few deletions change."""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from erasable.core._schema import Array, Fields, Sizes, refuse
from erasable.core.arrays import Floats
from erasable.core.changes import Affine
from erasable.core.errors import InvalidParameterError, MagnitudeError
from erasable.core.ids import shorten
from erasable.core.threads import N_JOBS
from erasable.preprocessing._scaler import NARROWEST, ExtremesScaler

_FARTHEST = 2.0**62  # so that a range over the narrowest spread is finite


class MinMaxScaler(ExtremesScaler):
    """Scale every column to a range, and forget records exactly.

    A deletion costs O(n_features) a record, unless it takes the last record at a column's
    minimum or maximum: then that column is scanned again. The other columns keep their scale,
    bit for bit.

    Parameters
    ----------
    feature_range : tuple (min, max), default=(0, 1)
        Range of the transformed training data, within ``2**62`` of 0.
    clip : bool, default=False
        Keep transformed values of other data within `feature_range`?
    n_jobs : int or None, default=None
        Threads that read the records: None is one, -1 all cores. The model is the same with any
        number.

    Attributes
    ----------
    data_min_, data_max_, data_range_ : ndarray of shape (n_features,), float64
        Extremes of each column over the records held, and their difference.
    scale_ : ndarray of shape (n_features,), float64
        ``(max - min) / data_range_``; ``max - min`` in constant columns.
    min_ : ndarray of shape (n_features,), float64
        ``min - data_min_ * scale_``, what 0 is mapped to.
    n_samples_seen_ : int
        Number of records held.

    Raises
    ------
    InvalidParameterError
        From `fit`, for an invalid `feature_range`.
    MagnitudeError
        From `fit`, if the range of a column overflows float64.

    See Also
    --------
    StandardScaler : Scales to mean 0 and variance 1.

    Notes
    -----
    Differs from scikit-learn's in its last bits (``(x - data_min_) * scale_ + min`` is computed,
    so that a minimum is mapped to `min` itself), and for ranges below ``2e-15``, which are scaled
    too; only one below ``2**-960`` counts as constant.

    The state is extremes alone. So ``load(path, records)`` cannot tell if values between them were
    changed since: the scaler is the same, with the same digest.

    Examples
    --------
    >>> from erasable.preprocessing import MinMaxScaler
    >>> X = [[1.0, 10.0], [2.0, 30.0], [5.0, 20.0]]
    >>> scaler = MinMaxScaler().fit(X, ids=["a", "b", "c"])
    >>> scaler.transform([[3.0, 15.0]])
    array([[0.5 , 0.25]])
    >>> scaler.delete(["c"]).counts["columns_changed"]
    1
    >>> scaler.transform([[3.0, 15.0]])
    array([[2.  , 0.25]])
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "feature_range": [tuple],
        "clip": ["boolean"],
        "n_jobs": N_JOBS,
    }
    _without_effect = ("n_jobs",)
    _reads_blocks = True
    _names = "data_min", "data_max"

    def __init__(
        self,
        feature_range: tuple[float, float] = (0, 1),
        *,
        clip: bool = False,
        n_jobs: int | None = None,
    ) -> None:
        self.feature_range = feature_range
        self.clip = clip
        self.n_jobs = n_jobs

    # -- what is learned -----------------------------------------------------------------------

    def _validate_params(self) -> None:
        super()._validate_params()
        limits = self.feature_range
        numbers = [x for x in limits if isinstance(x, Real) and not isinstance(x, bool)]
        if not (len(limits) == len(numbers) == 2 and limits[0] < limits[1]):
            fault = "Minimum of desired feature range must be smaller than maximum"
        elif not max(map(abs, limits)) <= _FARTHEST:
            fault = "feature_range must lie within 2**62 of 0, so that what is scaled stays finite"
        else:
            return
        raise InvalidParameterError(f"{fault}. Got {shorten(limits)}; pass a tuple like (0, 1)")

    def _fit_rows(self) -> None:
        super()._fit_rows()
        with np.errstate(over="ignore"):
            endless = ~np.isfinite(self._bounds[1] - self._bounds[0])
        if endless.any():
            raise MagnitudeError(
                f"the range of {int(endless.sum())} columns overflows float64 "
                f"(column {int(np.flatnonzero(endless)[0])}); expected a finite difference of "
                "maximum and minimum; divide such columns by a constant"
            )

    def _schema(self) -> Fields:
        def check(value: dict[str, Any], at: str, sizes: Sizes) -> None:
            with np.errstate(over="ignore"):
                spread = value["data_max"] - value["data_min"]
            if not ((spread >= 0) & np.isfinite(spread)).all():
                refuse("data_max", "less than data_min, or too much", "a finite range")

        column = Array("float64", ("n_features",))
        return Fields({"data_min": column, "data_max": column}, relations=(check,))

    # -- what follows --------------------------------------------------------------------------

    @property
    def data_min_(self) -> Floats:
        """Minimum of each column."""
        self._check_fitted()
        low: Floats = self._mapped(self._bounds[0].copy())
        return low

    @property
    def data_max_(self) -> Floats:
        """Maximum of each column."""
        self._check_fitted()
        high: Floats = self._mapped(self._bounds[1].copy())
        return high

    @property
    def data_range_(self) -> Floats:
        """Maximum minus minimum of each column."""
        return self.data_max_ - self.data_min_

    @property
    def scale_(self) -> Floats:
        """Factor of each column."""
        low, high = self._at_fit("feature_range")
        spread = self.data_range_
        spread[spread < NARROWEST] = 1.0
        scale: Floats = (high - low) / spread
        return scale

    @property
    def min_(self) -> Floats:
        """What 0 is mapped to in each column."""
        low: float = self._at_fit("feature_range")[0]
        return low - self.data_min_ * self.scale_

    def _forward(self, matrix: NDArray[Any]) -> Floats:
        low, high = self._at_fit("feature_range")
        out: Floats = np.subtract(matrix, self.data_min_)
        out *= self.scale_
        if low != 0:
            out += low
        return np.clip(out, low, high, out=out) if self._at_fit("clip") else out

    def _backward(self, matrix: NDArray[Any]) -> Floats:
        out: Floats = np.subtract(matrix, np.float64(self._at_fit("feature_range")[0]))
        out /= self.scale_
        out += self.data_min_
        return out

    @property
    def _is_map(self) -> bool:
        return not self._at_fit("clip")

    def _affine(self) -> Affine:
        scale = 1.0 / self.scale_
        return Affine(self.data_min_ - self._at_fit("feature_range")[0] * scale, scale)
