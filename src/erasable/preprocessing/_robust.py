"""Scaling by median and quantiles, which outliers hardly move.

The state is quantiles: each stands between two values of the column, or is one of them.
"""

from __future__ import annotations

from numbers import Real
from statistics import NormalDist
from typing import Any, ClassVar

import numpy as np
from sklearn.utils import Tags

from erasable.core._schema import Array, Fields, Sizes, refuse
from erasable.core.arrays import Floats, Ints, Values
from erasable.core.changes import Affine, Delta, TableChange
from erasable.core.deletion import Outcome
from erasable.core.errors import InvalidParameterError
from erasable.core.ids import shorten
from erasable.core.matrices import entries
from erasable.core.messages import refuse_huge_columns
from erasable.core.passes import Block, Pass, run
from erasable.core.quantiles import Quantiles
from erasable.core.tables import Table
from erasable.preprocessing._scaler import NARROWEST, Scaler

_LARGEST = 2.0**1020  # so that differences and sums of two values are finite


class RobustScaler(Scaler):
    """Scale every column by its median and a range of quantiles, and forget records exactly.

    A deletion costs O(n_features) a record. Around each quantile a window of sorted values is
    kept; when deletions have moved the quantile out of it, which takes hundreds on one side, the
    column is read again.

    Parameters
    ----------
    with_centering : bool, default=True
        Subtract the median? Sparse data is taken only without.
    with_scaling : bool, default=True
        Divide by the range between the two quantiles?
    quantile_range : tuple (low, high), 0 <= low <= high <= 100, default=(25.0, 75.0)
        The quantiles, in percent.
    unit_variance : bool, default=False
        Divide the scale by what it is for normal data of variance 1? `quantile_range` must then
        lie between 0 and 100, and not be empty.

    Attributes
    ----------
    center_ : ndarray of shape (n_features,), float64, or None
        Median of each column; None unless `with_centering`.
    scale_ : ndarray of shape (n_features,), float64, or None
        Range between the quantiles, 1 where that is 0; None unless `with_scaling`.
    n_samples_seen_ : int
        Number of records held.

    Raises
    ------
    InvalidParameterError
        From `fit`, for an invalid `quantile_range`.
    MagnitudeError
        From `fit`, if values exceed ``2**1020``.

    See Also
    --------
    StandardScaler : Scales by mean and standard deviation.

    Notes
    -----
    Median and quantiles are those of `numpy.median` and `numpy.percentile`, bit for bit. Differs
    from scikit-learn's for ranges below ``2e-15``, which are scaled too; only one below
    ``2**-960`` counts as constant. NaN is refused.

    Every deletion moves quantiles by a little, except in columns of few distinct values. The state
    is quantiles alone. So ``load(path, records)`` cannot tell if values that do not move them were
    changed since: the scaler is the same, with the same digest.

    Examples
    --------
    >>> from erasable.preprocessing import RobustScaler
    >>> scaler = RobustScaler().fit([[1.0], [2.0], [3.0], [5.0], [900.0]], ids=list("abcde"))
    >>> scaler.center_, scaler.scale_
    (array([3.]), array([3.]))
    >>> scaler.delete(["a"], digest=False).action
    'updated'
    >>> scaler.center_, scaler.scale_
    (array([4.]), array([226.]))
    >>> refit = RobustScaler().fit([[900.0], [5.0], [3.0], [2.0]], ids=["e", "d", "c", "b"])
    >>> scaler.digest() == refit.digest()
    True
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "with_centering": ["boolean"],
        "with_scaling": ["boolean"],
        "quantile_range": [tuple],
        "unit_variance": ["boolean"],
    }
    _reads_blocks = True
    _fields = ("_quantiles",)
    _quantiles: Floats  # (n_quantiles, n_features): median, lower and upper quantile, where wanted

    def __init__(
        self,
        *,
        with_centering: bool = True,
        with_scaling: bool = True,
        quantile_range: tuple[float, float] = (25.0, 75.0),
        unit_variance: bool = False,
    ) -> None:
        self.with_centering = with_centering
        self.with_scaling = with_scaling
        self.quantile_range = quantile_range
        self.unit_variance = unit_variance

    # -- what is learned -----------------------------------------------------------------------

    def _validate_params(self) -> None:
        super()._validate_params()
        limits = self.quantile_range
        numbers = [x for x in limits if isinstance(x, Real) and not isinstance(x, bool)]
        if not (len(limits) == len(numbers) == 2 and 0 <= limits[0] <= limits[1] <= 100):
            expected = "two numbers with 0 <= low <= high <= 100"
        elif self.unit_variance and not 0 < limits[0] < limits[1] < 100:
            expected = "0 < low < high < 100 with unit_variance"
        else:
            return
        raise InvalidParameterError(
            f"Invalid quantile range: {shorten(limits)}; expected {expected}; "
            "pass a tuple like (25.0, 75.0)"
        )

    def _fit_rows(self) -> None:
        table = Table.of(self._attached())
        _refuse_huge(table.matrix, table.live_rows())
        shares = [0.5] if self._at_fit("with_centering") else []
        if self._at_fit("with_scaling"):
            shares += [percent / 100.0 for percent in self._at_fit("quantile_range")]
        self._accelerator = Quantiles.fit(table, shares)
        self._quantiles = self._find()

    def _update(self, delta: Delta) -> Outcome | None:
        table, arriving = Table.of(self._attached()), delta.arriving
        if arriving.size:
            _refuse_huge(table.matrix[arriving], np.arange(arriving.size))
        scanned = self._accelerator.update(table, delta)
        before, self._quantiles = self._quantiles, self._find()
        changed = (self._quantiles != before).any(axis=0)
        self._change = TableChange(columns=changed)
        counts = {
            "columns_changed": int(changed.sum()),
            "columns_scanned": scanned,
        }
        return Outcome("updated", self._attached().n_live if scanned else 0, counts)

    def _find(self) -> Floats:
        quantiles = self._accelerator
        points: Floats = quantiles.linear()
        if self._at_fit("with_centering"):
            points[0] = quantiles.middle(0)
        return points

    def _schema(self) -> Fields:
        def check(value: dict[str, Any], at: str, sizes: Sizes) -> None:
            points = value["quantiles"]
            if self._at_fit("with_scaling") and not (points[-2] <= points[-1]).all():
                refuse("quantiles", "an upper one below the lower one", "as much, or more")

        n_points = bool(self._at_fit("with_centering")) + 2 * bool(self._at_fit("with_scaling"))
        points = Array("float64", (n_points, "n_features"), least=-_LARGEST, most=_LARGEST)
        return Fields({"quantiles": points}, relations=(check,))

    # -- what follows --------------------------------------------------------------------------

    @property
    def center_(self) -> Floats | None:
        """Median of each column."""
        self._check_fitted()
        if not self._at_fit("with_centering"):
            return None
        center: Floats = self._mapped(self._quantiles[0])
        return center.copy()

    @property
    def scale_(self) -> Floats | None:
        """What each column is divided by."""
        self._check_fitted()
        if not self._at_fit("with_scaling"):
            return None
        scale: Floats = self._quantiles[-1] - self._quantiles[-2]
        if self._map is not None:
            scale /= self._map.scale
        scale[scale < NARROWEST] = 1.0
        if self._at_fit("unit_variance"):
            low, high = (NormalDist().inv_cdf(x / 100.0) for x in self._at_fit("quantile_range"))
            scale /= high - low
        return scale

    def _affine(self) -> Affine:
        center, scale = self.center_, self.scale_
        d = self.n_features_in_
        return Affine(
            np.zeros(d) if center is None else center, np.ones(d) if scale is None else scale
        )

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = not self._at_fit("with_centering")
        return tags


class _CountHuge(Pass[Ints]):
    """Count the values of each column whose differences could overflow."""

    def of_block(self, block: Block) -> Ints:
        values: Any = entries(block.matrix)
        if values.size and max(-float(values.min()), float(values.max())) > _LARGEST:
            own: Any = block.matrix[block.positions]
            return np.asarray((abs(own) > _LARGEST).sum(axis=0)).ravel()
        return np.zeros(block.matrix.shape[1], dtype=np.int64)

    def merge(self, one: Ints, other: Ints) -> Ints:
        return one + other


def _refuse_huge(matrix: Values, live: Ints) -> None:
    """Raise MagnitudeError where differences of two values could overflow; no deletion does."""
    huge = run(_CountHuge(), matrix, live)
    refuse_huge_columns(huge, "2**1020", "expected")
