"""Working state of a logistic regression: an accelerator that learns and forgets.

The published model is a function of the live records; everything here may depend on history, and
only decides how fast the published numbers are found. Nothing of a deleted record is kept: its
weight, its class and its logits are overwritten.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from erasable.core._grid_kernels import BITS, MAX_TOP, brackets
from erasable.core._grid_passes import sampled_values, skewed_columns
from erasable.core._jit import kernel
from erasable.core.arrays import Flags, Floats, Indices, Ints, Ints32
from erasable.core.attachment import Attachment
from erasable.core.changes import Delta
from erasable.core.errors import MagnitudeError
from erasable.core.extremes import Extremes
from erasable.core.grid import warn_of_skew
from erasable.core.passes import storage
from erasable.core.sparse import parts
from erasable.core.sparse_grid import SparseGrid, tops
from erasable.core.summaries import Summary
from erasable.core.tables import Table
from erasable.core.tape import Tape
from erasable.linear_model._conjugate import ConjugateSolver
from erasable.linear_model._logistic_classes import TrainingClasses, power_near_sum
from erasable.linear_model._logistic_published import PublishedModel
from erasable.linear_model._newton import NewtonSolver
from erasable.linear_model._softmax_dense import DenseDesign
from erasable.linear_model._softmax_design import SoftmaxDesign
from erasable.linear_model._softmax_problem import SoftmaxProblem
from erasable.linear_model._softmax_sparse import SparseDesign
from erasable.linear_model._solver import Solver

_SAMPLE, _PART = 2500, 40
"""Least number of records of the sample from which a fit starts, and their share of all."""
_BROUGHT = 2**16
"""Most of that share where records are on workers: the driver alone learns from them."""
_WIDE = 200
"""Number of coefficients from which conjugate gradients lead near the optimum first."""


@dataclass(slots=True)
class Start:
    """Coefficients to start from, in the units of the records, for some classes."""

    labels: list[Any]
    slopes: Floats
    constants: Floats

    @classmethod
    def of(cls, labels: list[Any], values: Floats, origin: Floats, unit: Floats) -> Self:
        """Return the start that coefficients of the records in other units are."""
        if values.shape[0] == 1:  # one class against the other
            values = np.vstack([-0.5 * values, 0.5 * values])
        d = unit.size
        slopes = values[:, :d] * unit
        constants = values[:, d] if values.shape[1] > d else np.zeros(values.shape[0])
        return cls(list(labels), slopes, constants - slopes @ origin)

    def coefficients(self, labels: list[Any], problem: SoftmaxProblem) -> Floats:
        """Return what a problem of these classes is to start from."""
        design = problem.design
        slopes = np.zeros((len(labels), design.unit.size))
        constants = np.zeros(len(labels))
        for k, label in enumerate(labels):
            if label in self.labels:
                before = self.labels.index(label)
                slopes[k], constants[k] = self.slopes[before], self.constants[before]
        constants = constants + slopes @ design.origin
        slopes = slopes / design.unit
        rows = np.column_stack([slopes, constants]) if design.intercept else slopes
        if problem.shape[0] == 1 and not problem.coupled:
            return np.asarray(rows[1:] - rows[:1])
        return problem.from_classes(rows - rows.mean(axis=0))


def from_sample(problem: SoftmaxProblem, training: TrainingClasses, made: type[Solver]) -> Solver:
    """Come near the optimum: by some of the records, where there are many."""
    design = problem.design
    solver = made(problem, np.zeros(problem.shape))
    n = int(training.counts.sum())
    share = n // _PART
    if Table(design.matrix).is_remote:
        share = min(share, _BROUGHT)
    wanted = max(_SAMPLE, 10 * solver.theta.size, share)
    if n < 4 * wanted:
        _approach(problem, solver)
        return solver
    rows, weights = [], []
    for code in range(training.n_used):
        own = np.flatnonzero(training.used & (design.codes == code))
        step = max(1, min(n // wanted, own.size // 100))
        rows.append(own[::step].copy())
        weights.append(design.weights[rows[-1]] * (own.size / rows[-1].size))
    sample = design.take(np.concatenate(rows), np.concatenate(weights))
    storage(design.matrix).drop_copies()
    part = SoftmaxProblem(sample, problem.strengths, problem.coupled)
    small = made(part, solver.theta, certifies=False)
    _approach(part, small)
    small.approach(0.1)
    solver.theta = small.theta
    if isinstance(solver, NewtonSolver) and isinstance(small, NewtonSolver) and small.metric:
        solver.metric = small.metric.as_guess()
    return solver


def _approach(problem: SoftmaxProblem, solver: Solver) -> None:
    """Spare a solver some of its Hessians where these are large."""
    if isinstance(solver, NewtonSolver) and solver.theta.size >= _WIDE:
        rough = ConjugateSolver(problem, solver.theta, certifies=False)
        rough.approach(0.1)
        solver.theta = rough.theta


class LogisticColumns(Summary):
    """Origin and top exponent of every column: ``|x - origin| <= 2**top``; set by `set_units`.

    `free`: an intercept makes up for any origin. It is not `Gridded`, because it sums nothing, and
    its origins depend on the earlier steps of a pipeline, too.
    """

    origin: Floats
    top: Ints

    def __init__(self, bounds: Any, free: bool) -> None:
        self._bounds, self._free = bounds, free
        self._warned = self._grid()[1]

    @classmethod
    def fit(cls, table: Table, free: bool) -> LogisticColumns:
        """Find the extremes of the rows that count."""
        if table.is_sparse:
            return _SparseColumns(SparseGrid.fit(table.matrix, table.live_rows()), free)
        extremes = Extremes.fit(table.matrix, table.live_rows(), n_jobs=table.n_jobs)
        _refuse_huge(extremes)
        return cls(extremes, free)

    def _grid(self) -> tuple[Floats, Ints]:
        """Return origins and exponents as they follow from the extremes alone."""
        low, high = self._bounds.low, self._bounds.high
        origin, top = np.zeros(low.size), np.zeros(low.size, dtype=np.int64)
        if not self._free:
            return origin, tops(np.maximum(np.abs(low), np.abs(high)))
        brackets(low, high, origin, top, np.zeros(top.size))
        return origin, top

    def warn(self, table: Table, *, grown: bool = False) -> None:
        """Warn of columns in which many small values become 0; or of those that have `grown`."""
        origin, top = self._grid()
        wanted = top > self._warned if grown else np.ones(top.size, dtype=np.bool_)
        self._warned = top
        if wanted.any():
            quantum = np.ldexp(1.0, top - BITS)
            sampled = sampled_values(table.matrix, table.live_rows(), origin, quantum)
            skewed = skewed_columns(sampled)
            warn_of_skew(skewed[wanted[skewed]], table.names)

    def add(self, table: Table, rows: Ints) -> int:
        """See `Summary`."""
        if self._bounds.add(table, rows) is not None:
            _refuse_huge(self._bounds)
        return 0

    def subtract(self, table: Table, rows: Ints) -> int:
        """See `Summary`."""
        scanned = self._bounds.subtract(table, rows)
        return 0 if scanned is None else int(scanned.sum())

    def state(self) -> dict[str, Any]:
        """Return copies of the origins and exponents."""
        return {"origin": self.origin.copy(), "top": self.top.copy()}

    def set_units(self, table: Table, shift: Floats | None) -> None:
        """Derive origins and exponents from the extremes.

        `shift` is what earlier steps of a pipeline subtract: without an intercept it must be the
        origin.
        """
        self.origin, self.top = self._grid()
        if shift is not None and not self._free:
            self.origin = shift.copy()
            low, high = np.abs(self._bounds.low - shift), np.abs(self._bounds.high - shift)
            self.top = tops(np.maximum(low, high))

    @property
    def unit(self) -> Floats:
        """``2**-top``."""
        return np.ldexp(1.0, -self.top)


class _SparseColumns(LogisticColumns):
    """The same for sparse rows: a column has an origin if all its values are stored."""

    def _grid(self) -> tuple[Floats, Ints]:
        return self._bounds.origin, self._bounds.top.copy()

    def add(self, table: Table, rows: Ints) -> int:
        """See `Summary`."""
        self._bounds.add(table, rows)
        return 0

    def subtract(self, table: Table, rows: Ints) -> int:
        """See `Summary`."""
        return int(self._bounds.subtract(table, rows).extremes.sum())

    def set_units(self, table: Table, shift: Floats | None) -> None:
        """See `LogisticColumns`."""
        self.origin, self.top = self._grid()
        full = self._bounds.counts[1] == self._bounds.n_rows
        if self._free and full.any():
            self._center(full, *_extremes_of(table))
        elif not self._free and shift is not None and shift.any():
            self._shift(shift, full, *_extremes_of(table))

    def _center(self, full: Flags, low: Floats, high: Floats) -> None:
        """Give columns without zeros the origins they would have in a dense matrix."""
        origin, top = np.zeros(int(full.sum())), np.zeros(int(full.sum()), dtype=np.int64)
        brackets(low[full], high[full], origin, top, np.zeros(origin.size))
        self.origin[full], self.top[full] = origin, top

    def _shift(self, shift: Floats, full: Flags, low: Floats, high: Floats) -> None:
        """Put the origins where the steps before put them, also of columns with zeros."""
        moved = shift != 0
        low[~full], high[~full] = np.minimum(low[~full], 0.0), np.maximum(high[~full], 0.0)
        self.origin[moved] = shift[moved]
        farthest = np.maximum(np.abs(low - shift), np.abs(high - shift))
        self.top[moved] = tops(farthest[moved])


def _extremes_of(table: Table) -> tuple[Floats, Floats]:
    """Return the extremes of the stored values of sparse columns."""
    low, high = np.full(table.n_features, np.inf), np.full(table.n_features, -np.inf)
    _widen(*parts(table.matrix), table.live_rows(), low, high)
    return low, high


@kernel
def _widen(
    data: Floats, indices: Indices, indptr: Indices, rows: Ints, low: Floats, high: Floats
) -> None:
    """Widen `low` and `high` to the extremes of the values that are stored."""
    for i in range(rows.size):
        for e in range(indptr[rows[i]], indptr[rows[i] + 1]):
            value, j = np.float64(data[e]), indices[e]
            low[j] = value if value < low[j] else low[j]
            high[j] = value if value > high[j] else high[j]


def _refuse_huge(bounds: Extremes) -> None:
    huge = np.maximum(np.abs(bounds.low), np.abs(bounds.high)) > 2.0**MAX_TOP
    if huge.any():
        raise MagnitudeError(
            f"{int(huge.sum())} columns hold values beyond 2**{MAX_TOP}; products of such values "
            "overflow; divide these columns by a constant"
        )


MOST = 1500
"""Most coefficients for which a dense Hessian is made."""

_LEAST_SHARE, _LEAST_SHARE_OF_MANY = 2.0**-60, 2.0**-40
"""Least penalty of a coefficient in units, for a total weight of 1, with a Hessian and without.

It bounds coefficients and the Hessian's condition, so that there are bits enough to tell the
optimum; a larger penalty is as it is given.
"""
_LARGEST_SHARE = 2.0**200
_LEAST_WEIGHT, _LEAST_WEIGHT_OF_MANY = 2.0**-60, 2.0**-30
"""Least weight of a record, for a total weight of 1; what weighs less weighs this."""
_MARGIN = 4.0
"""By how much a solver must be more certain than the canonical one to do without it.

What an interval's half is in the end follows from the records, but for the order of sums and the
point at which the last Hessian was taken: much less than this. So where any solver is certain, the
canonical one is, too, and both publish the true nearest point; elsewhere it always decides.
"""
_ORDINARY = 2**100
"""Total weights further from 1 are brought near it, with the penalties, by a power of two."""


class LogisticWork:
    """The accelerator of a logistic regression; `settings` are the parameters at `fit`."""

    def __init__(
        self, held: Attachment, settings: Mapping[str, Any], start: PublishedModel | None = None
    ) -> None:
        self.held, self._settings = held, settings
        self.training = TrainingClasses(held, settings["classes"], settings["class_weight"])
        self._columns: LogisticColumns | None = None
        self._solver: Solver | None = None
        self._total = 0.0
        self._solved: list[Any] = []
        self._start: Start | None = None
        if start is not None:
            labels = start.labels[start.used_counts > 0].tolist()
            self._start = Start.of(labels, start.values, start.origin, np.ldexp(1.0, -start.top))

    def open(self, n_jobs: int | None = None) -> None:
        """Look at the columns, once it is known that there are records enough, in threads."""
        self._columns = LogisticColumns.fit(self.table(n_jobs), self._settings["fit_intercept"])

    def table(self, n_jobs: int | None = None) -> Table:
        """Return the records that are used."""
        held = self.held
        return Table(
            held.records.matrix, self.training.rows, names=held.column_names, n_jobs=n_jobs
        )

    @property
    def columns(self) -> LogisticColumns:
        """Origins and units of the columns."""
        if self._columns is None:
            self.open()
        assert self._columns is not None
        return self._columns

    @property
    def _is_dense(self) -> bool:
        """Whether there are so few coefficients that a Hessian is made."""
        width = self.columns.top.size + int(self._settings["fit_intercept"])
        return (self.training.n_used - 1) * width <= MOST

    # -- taking in -----------------------------------------------------------------------------

    def take_arrays(self) -> None:
        """Refer to the arrays of the records, which have room for others now."""
        matrix = self.held.records.matrix
        self.training.take_arrays()
        if self._solver is not None and not self._solver.take_matrix(matrix):
            self._restart()

    def add(self, rows: Ints) -> bool:
        """Take live rows in; false if one has an unknown class."""
        training, columns = self.training, self.columns
        before = training.n_used
        if not training.add(rows):
            return False
        used_rows = rows[training.used[rows]]
        if used_rows.size == 0:
            return True
        table = self.table()
        columns.add(table, used_rows)
        columns.warn(table, grown=True)
        if training.n_used != before or training.is_weighted:
            self._restart()
        elif self._solver is not None:
            self._learn(self._solver, used_rows)
        return True

    def _learn(self, solver: Solver, rows: Ints) -> None:
        """Put rows in the problem, and take the Newton step that this asks for."""
        design = solver.problem.design
        design.learn(rows, self._codes(self.training.classes.labels.size == 2)[rows])
        if isinstance(solver, NewtonSolver) and solver.metric and not solver.metric.is_guess:
            units = design.rows(rows)
            logits = units @ solver.theta.T
            residuals, _ = design.residuals(logits, rows)
            if solver.metric.update(design, rows, units, logits):
                decrement, step, _ = solver.metric.decrement(residuals.T @ units)
                if decrement < 1.0:
                    solver.theta = solver.theta - step
            else:
                solver.metric = None

    # -- forgetting ----------------------------------------------------------------------------

    def remove(self, rows: Ints) -> int:
        """Forget rows that can still be read; return how many columns were scanned again."""
        used_rows = rows[self.training.used[rows]]
        columns = self.columns
        if self._solver is not None and used_rows.size:
            self._correct(self._solver, used_rows)
        if self.training.remove(rows):
            self._restart()
        if used_rows.size == 0:
            return 0
        return columns.subtract(self.table(), used_rows)

    def resume(self, delta: Delta) -> bool:
        """Follow a change, and go on with another table; false if a class is new."""
        self._restart()
        if delta.moved:
            self.training.take_arrays()
        if delta.leaving.size:
            self.training.remove(delta.leaving)
        if delta.arriving.size and not self.training.add(delta.arriving):
            return False
        origin = None if delta.table is None else delta.table.origin
        if self._start is not None and origin is not None:
            slopes = np.zeros((len(self._start.labels), origin.size))
            kept = origin >= 0
            slopes[:, kept] = self._start.slopes[:, origin[kept]]
            self._start.slopes = slopes
        self.open()
        return True

    def _correct(self, solver: Solver, rows: Ints) -> None:
        """Take rows out of the problem, and take the Newton step that this asks for."""
        design = solver.problem.design
        if isinstance(solver, NewtonSolver) and solver.metric and not solver.metric.is_guess:
            units = design.rows(rows)
            residuals, _ = design.residuals(units @ solver.theta.T, rows)
            if solver.metric.downdate(design, rows, units):
                decrement, step, _ = solver.metric.decrement(residuals.T @ units)
                if decrement < 1.0:  # a longer step would be a leap in the dark
                    solver.theta = solver.theta + step
            else:
                solver.metric = None
        design.forget(rows)

    def _restart(self) -> None:
        """Keep of the solver only where it stood."""
        if self._solver is None:
            return
        problem, theta = self._solver.problem, self._solver.theta
        values = problem.classes((theta, np.zeros_like(theta)))[0]
        design = problem.design
        self._start = Start.of(self._solved, values, design.origin, design.unit)
        self._solver = None

    # -- publishing ----------------------------------------------------------------------------

    def publish(
        self, affine: tuple[Floats, Floats] | None, n_jobs: int | None = None
    ) -> PublishedModel:
        """Find the nearest point of the lattice; `affine` is (shift, scale) of the steps before."""
        self.columns.set_units(self.table(), None if affine is None else affine[0])
        solver = self._solver
        if solver is not None:
            design = solver.problem.design
            same = np.array_equal(design.origin, self.columns.origin)
            if not (same and np.array_equal(design.unit, self.columns.unit)):
                self._restart()
        weights, total = self._record_weights()
        if self.training.is_weighted and total != self._total:
            self._restart()
        self._total = total
        strengths = self._strengths(None if affine is None else affine[1], total)
        if self._solver is None:
            self._solver = self._new_solver(strengths, weights, n_jobs)
        else:
            self._solver.problem.design.n_jobs = n_jobs
            self._update(self._solver.problem, strengths, weights)
        values, certain = self._solver.find_lattice_point(_MARGIN)
        if not certain:
            values, _ = self._canonical(self._solver.problem).find_lattice_point()
            if not np.isfinite(values).all():
                raise MagnitudeError(
                    "no finite coefficients fit these records; expected columns of values that "
                    "differ by less; scale the columns or pass a smaller C"
                )
        classes = self.training.classes
        return PublishedModel(
            labels=classes.labels.copy(),
            counts=classes.counts.copy(),
            used_counts=self.training.counts.copy(),
            values=values,
            **self.columns.state(),
        )

    def _canonical(self, problem: SoftmaxProblem) -> Solver:
        """Return a solver that depends on the records alone, even in its rounding.

        It decides where another is not certain of the nearest point, and its answer is published
        even if it is not certain either. It starts from 0, with records in the order of a hash of
        their ids. `_MARGIN` guards against it being uncertain where another was certain.
        """
        rows = self.training.rows()
        keys = Tape(0).record_keys(self.held.records.ids[rows])
        rows = rows[np.argsort(keys, kind="stable")]
        design = problem.design.in_order(rows, problem.design.weights[rows])
        same = SoftmaxProblem(design, problem.strengths, problem.coupled)
        made = NewtonSolver if self._is_dense else ConjugateSolver
        return made(same, np.zeros(problem.shape))

    def _strengths(self, scale: Floats | None, total: float) -> Floats:
        root = self.columns.unit if scale is None else self.columns.unit * scale
        least = _LEAST_SHARE if self._is_dense else _LEAST_SHARE_OF_MANY
        with np.errstate(over="ignore", under="ignore"):
            strengths = root * root / float(self._settings["C"]) * _scale(total)
            total *= _scale(total)
            strengths = np.clip(strengths, least * total, _LARGEST_SHARE * total)
        return np.append(strengths, 0.0) if self._settings["fit_intercept"] else strengths

    def _record_weights(self) -> tuple[Floats, float]:
        """Return the weights of rows, and a power of two near their sum in any order of rows."""
        if self._solver is not None and not self.training.is_weighted:  # they are 1, or 0
            total = math.ldexp(0.5, math.frexp(int(self.training.counts.sum()))[1])
            return self._solver.problem.design.weights, total
        weights = self.training.record_weights()
        total = power_near_sum(weights)
        if self.training.is_weighted:
            used = self.training.used
            least = _LEAST_WEIGHT if self._is_dense else _LEAST_WEIGHT_OF_MANY
            weights[used] = np.maximum(weights[used], least * total) * _scale(total)
        return weights, total

    def _update(self, problem: SoftmaxProblem, strengths: Floats, weights: Floats) -> None:
        problem.strengths = strengths
        known = problem.design.weights
        if weights is not known and not np.array_equal(weights, known):
            # Not written into the old ones, which are also those of a Hessian.
            problem.design.weights = weights

    def _new_solver(self, strengths: Floats, weights: Floats, n_jobs: int | None) -> Solver:
        training, columns = self.training, self.columns
        n_classes = training.n_used
        binary = training.classes.labels.size == 2
        dense = self._is_dense
        n_logits = n_classes - 1 if binary or dense else n_classes
        table = self.table()
        kind = SparseDesign if table.is_sparse else DenseDesign
        design: SoftmaxDesign = kind(
            table.matrix, weights, self._codes(binary), n_logits,
            binary or dense, self._settings["fit_intercept"], columns.origin, columns.unit,
            n_jobs,
        )  # fmt: skip
        problem = SoftmaxProblem(design, strengths, dense and not binary)
        self._solved = training.labels
        made = NewtonSolver if dense else ConjugateSolver
        start, self._start = self._start, None
        if start is not None:
            return made(problem, start.coefficients(self._solved, problem))
        return from_sample(problem, training, made)

    def _codes(self, binary: bool) -> Ints32:
        """Return the class of each row as a design counts them."""
        counts = self.training.counts
        place = np.full(counts.size + 1, -1, dtype=np.int32)  # the last one is for GONE
        place[:-1][counts > 0] = np.arange(self.training.n_used)
        if binary:
            place[:2] = [1, 0]
        return place[self.training.classes.codes]


def _scale(total: float) -> float:
    """Return by what weights and penalties are multiplied."""
    return 1.0 if 1.0 / _ORDINARY <= total <= _ORDINARY else 1.0 / total
