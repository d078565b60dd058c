"""Scaling to mean 0 and variance 1: the state is exact sums, which every deletion changes.

Means and scales may be rounded to a lattice, which few deletions change.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from sklearn.utils import Tags

from erasable.core._jit import kernel
from erasable.core._schema import (
    Depending,
    Fields,
    FieldType,
    OneOf,
    Sizes,
    grid,
    moments,
    refuse,
    refuse_many,
    refuse_negative_variance,
    weight_sums,
    weighted_moments,
)
from erasable.core._tape_kernels import log
from erasable.core._weighted_moments import LEAST_WEIGHT, WeightedMoments, WeightUnits, joined
from erasable.core.arrays import Floats, Ints
from erasable.core.changes import Affine, Delta, TableChange
from erasable.core.deletion import Outcome
from erasable.core.grid import Grid
from erasable.core.moments import Moments
from erasable.core.partial import WeightedTransformer
from erasable.core.sparse_grid import SparseGrid
from erasable.core.tables import Table
from erasable.core.tape import Stream, Tape
from erasable.core.threads import N_JOBS
from erasable.preprocessing._scaler import Scaler


class StandardScaler(Scaler, WeightedTransformer):
    """Scale every column to mean 0 and variance 1, and forget records exactly.

    A deletion costs O(n_features) a record: its terms are subtracted from sums that are exact.
    Mean and variance are computed from the sums on access.

    Every deletion changes them by a little, and with them every scaled value. In a pipeline
    before `KMeans`, which takes such changes as they are, that costs little. Before a step that
    has to learn again from every changed table, use `quantize`.

    Parameters
    ----------
    with_mean : bool, default=True
        Subtract the mean? Sparse data is taken only without.
    with_std : bool, default=True
        Divide by the standard deviation?
    quantize : bool, default=False
        Divide by a power of two near the standard deviation, and subtract a point near the mean.
        Few deletions change these, and then those of one column. Deviations are then from 1/2 to
        2, and means from -2 to 2.
    random_state : int, RandomState or None, default=None
        With `quantize`, seed of the tape from which the phases of the lattices are drawn, by the
        columns' names. None draws one from the system, kept as ``seed_``.
    n_jobs : int or None, default=None
        Threads that read the records: None is one, -1 all cores. The model is the same with any
        number.

    Attributes
    ----------
    mean_ : ndarray of shape (n_features,), float64, or None
        Mean of each column; None if neither `with_mean` nor `with_std`.
    var_ : ndarray of shape (n_features,), float64, or None
        Population variance (divided by n); None unless `with_std`.
    scale_ : ndarray of shape (n_features,), float64, or None
        What is divided by: ``sqrt(var_)``, 1 in constant columns; None unless `with_std`. With
        `quantize`, ``2**floor(log2(sqrt(var_)) + phase)``.
    center_ : ndarray of shape (n_features,), float64, or None
        What is subtracted: `mean_`, or None unless `with_mean`. With `quantize`, the nearest
        ``(m + phase) * step`` with m an integer and a step of four times the quantised scale.
    n_samples_seen_ : int or float
        Number of records held, or the sum of their weights.
    seed_ : int, only with `quantize`

    Raises
    ------
    MagnitudeError
        From `fit`, if values or weights exceed ``2**480``.
    TooFewRecordsError
        From `fit` and `delete`, if all records would weigh 0.

    See Also
    --------
    MinMaxScaler : Scales to a range; most deletions leave it as it is.

    Notes
    -----
    Columns are rounded once to 26 bits below their largest magnitude (`erasable.core.grid`), so
    mean and standard deviation agree with scikit-learn's to about 1e-8 of that magnitude, or of
    the spread of columns with a large offset. Data are transformed as they are, unrounded.

    Weights are rounded once to 26 bits below the largest: those that are whole numbers up to
    ``2**26`` stay as they are, and count like copies of a record. A record of weight 0 is held, and
    changes nothing, not even how columns are rounded. A deletion costs as much as without weights,
    but for that of the last weight above half the largest power of two: all is summed again. In a
    pipeline the scaler takes weights where they are given in its name
    (``standardscaler__sample_weight``).

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

    On a lattice, most deletions change nothing that is scaled:

    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(5.0, 3.0, size=(1000, 4))
    >>> scaler = StandardScaler(quantize=True, random_state=0).fit(X)
    >>> before = scaler.transform(X)
    >>> scaler.delete(range(10)).counts["columns_changed"]
    0
    >>> bool(np.all(scaler.transform(X) == before))
    True
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "with_mean": ["boolean"],
        "with_std": ["boolean"],
        "quantize": ["boolean"],
        "n_jobs": N_JOBS,
    }
    _without_effect = ("n_jobs",)
    _reads_blocks = True
    _least_weight = LEAST_WEIGHT
    _moments: Moments | WeightedMoments
    _phases: tuple[Floats, Floats]
    _lattice: tuple[Floats, Floats]

    def __init__(
        self,
        *,
        with_mean: bool = True,
        with_std: bool = True,
        quantize: bool = False,
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.with_mean = with_mean
        self.with_std = with_std
        self.quantize = quantize
        self.random_state = random_state
        self.n_jobs = n_jobs

    # -- what is learned -----------------------------------------------------------------------

    @property
    def _needs_seed(self) -> bool:
        return bool(self._at_fit("quantize"))

    def _draw_seed(self) -> None:
        if self.quantize:
            super()._draw_seed()

    def _fit_rows(self) -> None:
        super()._fit_rows()
        self._moments = self._sum_up()
        self._accelerator = self._moments.grid
        self._set_lattice()

    def _table(self, weights: Any = None) -> Table:
        return Table.of(self._attached(), weights=weights, n_jobs=self._n_jobs)

    def _sum_up(self) -> Moments | WeightedMoments:
        weights, live = self._counted_weights(), self._attached().live_rows()
        if weights is not None:
            return WeightedMoments.fit(self._table(WeightUnits.of(weights, live)))
        return Moments.fit_with_grid(self._table(), warn=False)

    def _check_deletion(self, rows: Ints) -> None:
        if not (isinstance(self._moments, WeightedMoments) and self._moments.outweighs(rows)):
            super()._check_deletion(rows)

    def _update(self, delta: Delta) -> Outcome | None:
        held, moments = self._attached(), self._moments
        if delta.moved and isinstance(moments, WeightedMoments):
            assert held.records.weights is not None
            moments.weights.weights = held.records.weights
        scanned = moments.update(Table.of(held, n_jobs=self._n_jobs), delta) or 0
        counts = {"columns_scanned": scanned, **self._move_lattice()}
        return Outcome("updated", held.n_live if scanned else 0, counts)

    def _move_lattice(self) -> dict[str, int]:
        """Know what has changed in the output; count the columns."""
        if not self._at_fit("quantize"):
            return {}
        center, scale = self._lattice
        self._lattice = self._on_lattice()
        changed = (self._lattice[0] != center) | (self._lattice[1] != scale)
        self._change = TableChange(columns=changed)
        return {"columns_changed": int(changed.sum())}

    def _schema(self) -> FieldType:
        refuse_many(self._n_records)
        return _SCHEMA

    def _state(self) -> dict[str, Any]:
        moments, grid = self._moments, self._moments.grid.state()
        sums = moments.state()
        own = sums if isinstance(moments, WeightedMoments) else {"moments": sums}
        return {"grid": grid, **own}

    def _restore(self, state: dict[str, Any]) -> None:
        dense = "origin" in state["grid"]
        grid: Any = (Grid if dense else SparseGrid).from_state(state["grid"])
        if "weights" in state:
            self._moments = WeightedMoments.from_state(grid, state)
        else:
            self._moments = Moments.from_state(grid, self._n_records, state["moments"])
        self._weighs = True
        self._set_lattice()

    def _set_lattice(self) -> None:
        if self._at_fit("quantize"):
            self._phases = draw_phases(self._tape, self._call_columns())
            self._lattice = self._on_lattice()

    def _on_lattice(self) -> tuple[Floats, Floats]:
        scale = lattice_scale(self._variance(), self._phases[0])
        return lattice_center(self._mean(), scale, self._phases[1]), scale

    # -- what follows --------------------------------------------------------------------------

    @property
    def n_samples_seen_(self) -> int | float:  # type: ignore[override]
        """Number of records held, or the sum of their weights."""
        self._check_fitted()
        moments = self._moments
        if isinstance(moments, WeightedMoments):
            return moments.total * moments.weights.quantum
        return self._n_records

    def _mean(self) -> Floats:
        mean: Floats = self._mapped(self._moments.mean())
        return mean

    def _variance(self) -> Floats:
        variance = self._moments.variance()
        return variance if self._map is None else variance / (self._map.scale * self._map.scale)

    @property
    def mean_(self) -> Floats | None:
        """Mean of each column."""
        self._check_fitted()
        return self._mean() if self._at_fit("with_mean") or self._at_fit("with_std") else None

    @property
    def var_(self) -> Floats | None:
        """Population variance of each column."""
        self._check_fitted()
        return self._variance() if self._at_fit("with_std") else None

    @property
    def scale_(self) -> Floats | None:
        """What each column is divided by."""
        self._check_fitted()
        if not self._at_fit("with_std"):
            return None
        if self._at_fit("quantize"):
            return self._lattice[1].copy()
        scale = np.sqrt(self._variance())
        scale[scale == 0] = 1.0
        return scale

    @property
    def center_(self) -> Floats | None:
        """What is subtracted from each column."""
        self._check_fitted()
        if not self._at_fit("with_mean"):
            return None
        return self._lattice[0].copy() if self._at_fit("quantize") else self._mean()

    def _affine(self) -> Affine:
        center, scale = self.center_, self.scale_
        d = self.n_features_in_
        return Affine(
            np.zeros(d) if center is None else center, np.ones(d) if scale is None else scale
        )

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = not self._at_fit("with_mean")
        return tags


def _refuse_limbs(value: dict[str, Any], at: str, sizes: Sizes) -> None:
    """Refuse weighted sums with a negative variance of a column."""
    total = int(value["weights"]["sums"][0])
    first, second = joined(value["limbs"][:2]), joined(value["limbs"][2:])
    if (total * second < first * first).any():
        refuse("limbs", "squares that are too small for their sum", "those of numbers")


def _check_variance(value: dict[str, Any], at: str, sizes: Sizes) -> None:
    refuse_negative_variance(value["moments"], sizes["n_records"], "moments.hh")


_GRIDS = OneOf((grid("n_features"), grid("n_features", sparse=True)))
_SCHEMA = Depending(
    "weights",
    Fields({"grid": _GRIDS, "moments": moments("n_features")}, relations=(_check_variance,)),
    Fields(
        {
            "grid": _GRIDS,
            "weights": weight_sums(1, least=1),
            "limbs": weighted_moments("n_features"),
        },
        relations=(_refuse_limbs,),
    ),
)

_PER_LOG2 = 1.4426950408889634  # 1 / log(2)
_STEP = 4.0  # of the centres' lattice, in scales


def draw_phases(tape: Tape, names: list[str]) -> tuple[Floats, Floats]:
    """Draw the phases of the two lattices of each column, by its name, from 0 to 1."""
    own = tape.child("StandardScaler")
    keys = np.array([own.key_of(name) for name in names], dtype=np.uint64)
    return own.uniform(keys, Stream.PHASE, 0), own.uniform(keys, Stream.PHASE, 1)


def lattice_scale(variance: Floats, phase: Floats) -> Floats:
    """Return ``2**floor(log2(deviation) + phase)`` of each column, 1 where the variance is 0."""
    mantissa, exponent = np.frexp(variance)
    logs = np.zeros_like(variance)
    _fill_log(mantissa, logs)
    steps = np.floor((exponent + logs * _PER_LOG2) / 2.0 + phase)
    return np.where(variance > 0.0, np.ldexp(1.0, steps.astype(np.int64)), 1.0)


def lattice_center(mean: Floats, scale: Floats, phase: Floats) -> Floats:
    """Return the point of a lattice of four scales that is nearest to the mean."""
    step = _STEP * scale
    return (np.rint(mean / step - phase) + phase) * step


@kernel
def _fill_log(values: Floats, out: Floats) -> None:
    """Write the natural logarithm of every positive value.

    It is the tape's own: a value rounded the other way by another library would be another model.
    """
    for j in range(values.size):
        if values[j] > 0.0:
            out[j] = log(values[j])
