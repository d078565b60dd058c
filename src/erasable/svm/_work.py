"""Working state of a linear support vector machine: an accelerator that learns and forgets.

The published model is a function of the live records; everything here may depend on history, and
only decides how fast the published numbers are found. Nothing of a deleted record is kept.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

import numpy as np

from erasable.core._grid_kernels import MAX_TOP
from erasable.core.arrays import Flags, Floats, Ints
from erasable.core.attachment import Attachment
from erasable.core.changes import Delta
from erasable.core.errors import InvalidDataError, MagnitudeError
from erasable.core.extremes import Extremes
from erasable.core.gram import MAX_FEATURES
from erasable.core.messages import refuse_huge_columns
from erasable.core.row_arrays import padded
from erasable.core.sparse_grid import tops
from erasable.core.tables import Table
from erasable.core.tape import Tape
from erasable.linear_model._logistic_classes import TrainingClasses, power_near_sum
from erasable.linear_model._logistic_published import Equations, PublishedModel
from erasable.linear_model._logistic_work import LogisticColumns
from erasable.svm._active_set import ActiveRows, ActiveSet, Equation, Penalty, Targets

_SAMPLE = 2500
"""Least number of records of the sample from which a fit starts."""
_LEAST_SHARE, _LARGEST_SHARE = 2.0**-60, 2.0**200
"""Least and largest penalty in units, for a total weight of 1."""
_MARGIN = 4.0
"""By how much a solution must be more certain than the canonical one to do without it."""
_ORDINARY = 2.0**100
"""Total weights further from 1 are brought near it, with the penalties, by a power of two."""


class SupportWork(ABC):
    """The accelerator; `settings` are the parameters at `fit`.

    Every equation has a *key*, by which it is found after a change.
    """

    def __init__(
        self, held: Attachment, settings: Mapping[str, Any], start: Equations | None = None
    ) -> None:
        self.held, self._settings = held, settings
        self._columns: LogisticColumns | None = None
        self._rows: ActiveRows | None = None
        self._equations: dict[Any, Equation] = {}
        self._start: dict[Any, tuple[Floats, float]] = {}  # slopes, and intercepts where x = 0
        self._penalty: Penalty | None = None
        if start is not None:
            for key, slopes, constant in zip(self._keys(), *start.equations(None), strict=True):
                self._start[key] = slopes, constant

    @property
    @abstractmethod
    def used(self) -> Flags:
        """Whether each row is live, with a positive weight."""

    @abstractmethod
    def _keys(self) -> list[Any]:
        """Return the keys of the equations, in their order."""

    @abstractmethod
    def _targets(self, key: Any) -> Targets:
        """Return what the scores of an equation are to be."""

    @abstractmethod
    def _factors(self, key: Any) -> Floats:
        """Return by what the losses of the two sides of an equation are multiplied."""

    @property
    def _scale(self) -> float:
        """The unit of the targets, a power of two."""
        return 1.0

    def used_rows(self) -> Ints:
        """Positions of the records that are used."""
        return np.flatnonzero(self.used)

    def open(self, n_jobs: int | None = None) -> None:
        """Look at the columns, once it is known that there are records enough."""
        width = self.held.records.matrix.shape[1]
        if width > MAX_FEATURES:
            raise InvalidDataError(
                f"X has {width} columns; expected at most {MAX_FEATURES} for the products of all "
                "pairs of columns; select or hash columns first"
            )
        self._columns = LogisticColumns.fit(self.table(n_jobs), self._settings["fit_intercept"])

    def table(self, n_jobs: int | None = None) -> Table:
        """Return the records that are used."""
        held = self.held
        return Table(held.records.matrix, self.used_rows, names=held.column_names, n_jobs=n_jobs)

    @property
    def columns(self) -> LogisticColumns:
        """Origins and units of the columns."""
        if self._columns is None:
            self.open()
        assert self._columns is not None
        return self._columns

    # -- records that come and go --------------------------------------------------------------

    def take_arrays(self) -> None:
        """Refer to the arrays of the records, which have room for others now."""
        if self._rows is not None:
            self._rows.take_matrix(self.held.records.matrix)
            for equation in self._known():
                self._solver().make_room(equation)

    def _known(self) -> list[Equation]:
        """Return the equations that there still are, with the targets of now."""
        keys = self._keys()
        self._equations = {key: each for key, each in self._equations.items() if key in keys}
        for key, equation in self._equations.items():
            equation.targets = self._targets(key)
        return list(self._equations.values())

    def _solver(self) -> ActiveSet:
        assert self._rows is not None
        assert self._penalty is not None
        return ActiveSet(self._rows, self._penalty)

    def add(self, rows: Ints) -> bool:
        """Take live rows in; false if one asks for another fit."""
        keys, columns = self._keys(), self.columns
        if not self._take(rows):
            return False
        some = rows[self.used[rows]]
        if some.size == 0:
            return True
        table = self.table()
        columns.add(table, some)
        columns.warn(table, grown=True)
        if self._keys() != keys:
            self._restart()
        if self._rows is not None:
            self._rows.learn(some, self._weights()[some])
            for equation in self._known():
                self._solver().take_in(equation, some)
        return True

    def remove(self, rows: Ints) -> int:
        """Forget rows that can still be read; return how many columns were scanned again."""
        some, columns = rows[self.used[rows]], self.columns
        if self._rows is not None and some.size:
            for equation in self._known():
                self._solver().take_out(equation, some)
            self._rows.forget(some)
        self._drop(rows)
        return columns.subtract(self.table(), some) if some.size else 0

    def resume(self, delta: Delta) -> bool:
        """Follow a change, and go on with another table; false if a class is new."""
        self._restart()
        if delta.moved:
            self.take_arrays()
        if delta.leaving.size:
            self._drop(delta.leaving)
        if delta.arriving.size and not self._take(delta.arriving):
            return False
        origin = None if delta.table is None else delta.table.origin
        if origin is not None:
            kept = origin >= 0
            for key, (before, constant) in self._start.items():
                slopes = np.zeros(origin.size)
                slopes[kept] = before[origin[kept]]
                self._start[key] = slopes, constant
        self.open()
        return True

    @abstractmethod
    def _take(self, rows: Ints) -> bool:
        """Count rows as records that are used, if they have a weight."""

    @abstractmethod
    def _drop(self, rows: Ints) -> None:
        """Count rows no more."""

    def _restart(self) -> None:
        """Keep of the equations only their solutions."""
        if self._rows is None:
            return
        d = self._rows.unit.size
        for key, equation in self._equations.items():
            theta = equation.theta[0] * self._scale
            slopes = theta[:d] * self._rows.unit
            constant = float(theta[d:].sum() - slopes @ self._rows.origin)
            self._start[key] = slopes, constant
        self._rows, self._equations = None, {}

    # -- publishing ----------------------------------------------------------------------------

    def publish(self, affine: tuple[Floats, Floats] | None, n_jobs: int | None = None) -> Equations:
        """Find the nearest point of the lattice; `affine` is (shift, scale) of the steps before."""
        columns = self.columns
        columns.set_units(self.table(), None if affine is None else affine[0])
        rows = self._rows
        if rows is not None and not (
            np.array_equal(rows.origin, columns.origin) and np.array_equal(rows.unit, columns.unit)
        ):
            self._restart()
        if self._rows is None:
            self._rows = ActiveRows(
                self.held.records.matrix, self._weights(), columns.origin, columns.unit,
                self._settings["fit_intercept"], n_jobs,
            )  # fmt: skip
        self._rows.n_jobs = n_jobs
        self._known()
        values = np.array([self._nearest(key, affine) for key in self._keys()])
        self._start = {}  # it may be of records that are deleted by now
        return self._published(values)

    @abstractmethod
    def _published(self, values: Floats) -> Equations:
        """Return the model of some points of the lattice."""

    def _nearest(self, key: Any, affine: tuple[Floats, Floats] | None) -> Floats:
        assert self._rows is not None
        targets, self._penalty = self._targets(key), self._penalty_of(key, affine)
        solver = self._solver()
        equation = self._equations.get(key)
        if equation is None:
            theta = self._beginning(key)
            equation = Equation((theta, np.zeros_like(theta)), targets)
            if key not in self._start:
                self._approach(equation, solver)
        equation.targets = targets
        self._equations[key] = equation
        values, certain = solver.nearest(equation, _MARGIN)
        if certain:
            return values
        values, _ = self._canonical(solver, targets)
        if not np.isfinite(values).all():
            raise MagnitudeError(
                "no finite coefficients fit these records; expected columns of values that "
                "differ by less; scale the columns or pass a smaller C"
            )
        return values

    def _beginning(self, key: Any) -> Floats:
        """Return the coefficients from which an equation starts."""
        rows = self._rows
        assert rows is not None
        theta, d = np.zeros(rows.width), rows.unit.size
        if key in self._start:
            slopes, constant = self._start[key]
            theta[:d] = slopes / rows.unit
            theta[d:] = constant + slopes @ rows.origin
        theta /= self._scale
        return theta if np.isfinite(theta).all() else np.zeros_like(theta)

    def _approach(self, equation: Equation, solver: ActiveSet) -> None:
        """Come near the optimum by some of the records, where there are many."""
        whole, used = solver.rows, self.used_rows()
        step = used.size // max(_SAMPLE, 10 * whole.width, used.size // 40)
        if step < 4:
            return
        some = used[::step].copy()
        rows = ActiveRows(
            whole.matrix[some], whole.weights[some] * step, whole.origin, whole.unit,
            whole.intercept,
        )  # fmt: skip
        targets = equation.targets
        part = Equation(
            equation.theta, Targets(targets.values[some], targets.positive, targets.epsilon)
        )
        ActiveSet(rows, solver.penalty).approach(part)
        if np.isfinite(part.theta[0]).all():
            equation.theta = part.theta[0], np.zeros(whole.width)

    def _canonical(self, solver: ActiveSet, targets: Targets) -> tuple[Floats, bool]:
        """Return a solution that depends on the records alone, even in its rounding.

        It decides where another is not certain of the nearest point, and its answer is published
        even if it is not certain either. It starts from 0, with records in the order of a hash of
        their ids.
        """
        rows = self.used_rows()
        keys = Tape(0).record_keys(self.held.records.ids[rows])
        rows = rows[np.argsort(keys, kind="stable")]
        ordered = solver.rows.in_order(rows)
        own = Targets(targets.values[rows], targets.positive, targets.epsilon)
        theta = np.zeros(ordered.width)
        equation = Equation((theta, np.zeros_like(theta)), own)
        return ActiveSet(ordered, solver.penalty, careful=True).nearest(equation, 1.0)

    def _penalty_of(self, key: Any, affine: tuple[Floats, Floats] | None) -> Penalty:
        """Return the penalty of coefficients in units, where steps before scale the columns.

        The intercept that is penalised is that of scaled columns, a sum of coefficients here.
        """
        columns, settings, factors = self.columns, self._settings, self._factors(key)
        shift = np.zeros(columns.unit.size) if affine is None else affine[0]
        root = columns.unit if affine is None else columns.unit * affine[1]
        total = self._total() * 2.0 ** math.frexp(float(factors.max()))[1]
        scale = 1.0 if 1.0 / _ORDINARY <= total <= _ORDINARY else 1.0 / total
        least, largest = _LEAST_SHARE * total * scale, _LARGEST_SHARE * total * scale
        with np.errstate(over="ignore", under="ignore"):
            strengths = np.clip(root * root / float(settings["C"]) * scale, least, largest)
            if not settings["fit_intercept"]:
                return Penalty(strengths, np.zeros(root.size), 0.0, factors * scale)
            scaling = float(settings["intercept_scaling"])
            squared = float(settings["C"]) * scaling * scaling
            strength = min(max(scale / squared if squared else np.inf, least), largest)
        bent = np.append((shift - columns.origin) * columns.unit, 1.0)
        return Penalty(np.append(strengths, 0.0), bent, float(strength), factors * scale)

    def _total(self) -> float:
        """Return a power of two near the total weight, in any order of the records."""
        assert self._rows is not None
        weights = self._rows.weights
        if self.held.records.weights is None:
            return math.ldexp(0.5, math.frexp(int(np.count_nonzero(weights)))[1])
        return power_near_sum(weights)

    def _weights(self) -> Floats:
        """Return the weight of each row, 0 for those that are not used."""
        found = self.used.astype(np.float64)
        if self.held.records.weights is not None:
            found *= self.held.records.weights
        return found


class ClassWork(SupportWork):
    """One class against the others, or against the other one."""

    def __init__(
        self, held: Attachment, settings: Mapping[str, Any], start: PublishedModel | None = None
    ) -> None:
        self.training = TrainingClasses(held, settings["classes"], settings["class_weight"])
        super().__init__(held, settings)
        if start is not None:
            known = start.labels[1:] if start.labels.size == 2 else start.labels
            for label, slopes, constant in zip(known.tolist(), *start.equations(None), strict=True):
                if np.isfinite(constant):
                    self._start[label] = slopes, constant

    @property
    def used(self) -> Flags:
        """See `SupportWork`."""
        return self.training.used

    def _keys(self) -> list[Any]:
        labels = self.training.classes.labels.tolist()
        return labels[1:] if len(labels) == 2 else self.training.labels

    def _code(self, key: Any) -> int:
        code: int = self.training.classes.labels.tolist().index(key)
        return code

    def _targets(self, key: Any) -> Targets:
        return Targets(self.training.classes.codes, self._code(key))

    def _factors(self, key: Any) -> Floats:
        weights = self.training.class_weights()
        own = weights[self._code(key)]
        return np.array([own, weights[0] if weights.size == 2 else 1.0])

    def take_arrays(self) -> None:
        """See `SupportWork`."""
        self.training.take_arrays()
        super().take_arrays()

    def _take(self, rows: Ints) -> bool:
        return self.training.add(rows)

    def _drop(self, rows: Ints) -> None:
        binary = self.training.classes.labels.size == 2
        self.training.remove(rows)
        if binary != (self.training.classes.labels.size == 2):
            self._restart()

    def _published(self, values: Floats) -> PublishedModel:
        classes = self.training.classes
        return PublishedModel(
            labels=classes.labels.copy(),
            counts=classes.counts.copy(),
            used_counts=self.training.counts.copy(),
            values=values,
            **self.columns.state(),
        )


class NumberWork(SupportWork):
    """Numbers, of which those within a distance cost nothing."""

    def __init__(
        self, held: Attachment, settings: Mapping[str, Any], start: Equations | None = None
    ) -> None:
        records = held.records
        assert records.y is not None
        self._used = held.live.copy()
        if records.weights is not None:
            self._used &= records.weights > 0
        self._numbers = records.y.reshape(-1, 1).astype(np.float64)
        self._scaled = np.zeros(self._used.size)
        self._bounds = Extremes.fit(self._numbers, np.flatnonzero(self._used))
        self._refuse_huge()
        self._fill()
        super().__init__(held, settings, start)

    @property
    def used(self) -> Flags:
        """See `SupportWork`."""
        return self._used

    @property
    def top(self) -> int:
        """The exponent of a power of two that no target exceeds."""
        return int(tops(np.maximum(np.abs(self._bounds.low), np.abs(self._bounds.high)))[0])

    @property
    def _scale(self) -> float:
        return math.ldexp(1.0, self._scaled_by)

    def _refuse_huge(self) -> None:
        huge = np.array([self.top > MAX_TOP])
        refuse_huge_columns(huge, f"2**{MAX_TOP}", "products need", ["y"])

    def _fill(self) -> None:
        """Scale the targets."""
        self._scaled_by = self.top
        used = self._used
        self._scaled[used] = np.ldexp(self._numbers[used, 0], -self._scaled_by)

    def _keys(self) -> list[Any]:
        return [0]

    def _targets(self, key: Any) -> Targets:
        share, exponent = math.frexp(float(self._settings["epsilon"]))
        exponent -= self._scaled_by  # from 1 on, as with 2, the optimum is 0
        epsilon = math.ldexp(share, exponent) if exponent < 2 else 2.0
        return Targets(self._scaled, epsilon=epsilon)

    def _factors(self, key: Any) -> Floats:
        return np.ones(2)

    def take_arrays(self) -> None:
        """See `SupportWork`."""
        n = self.held.records.n_rows
        self._used = padded(self._used, n)
        self._numbers, self._scaled = padded(self._numbers, n), padded(self._scaled, n)
        super().take_arrays()

    def _take(self, rows: Ints) -> bool:
        records = self.held.records
        assert records.y is not None
        self._numbers[rows, 0] = records.y[rows].reshape(-1)
        used = np.ones(rows.size, dtype=np.bool_)
        if records.weights is not None:
            used = records.weights[rows] > 0
        self._used[rows] = used
        some = rows[used]
        self._bounds.add(Table(self._numbers, self.used_rows), some)
        self._refuse_huge()
        self._scaled[some] = np.ldexp(self._numbers[some, 0], -self._scaled_by)
        return True

    def _drop(self, rows: Ints) -> None:
        some = rows[self._used[rows]]
        self._used[rows] = False
        if some.size:
            self._bounds.subtract(Table(self._numbers, self.used_rows), some)
        self._numbers[rows], self._scaled[rows] = 0.0, 0.0

    def publish(self, affine: tuple[Floats, Floats] | None, n_jobs: int | None = None) -> Equations:
        """See `SupportWork`."""
        if self.top != self._scaled_by:
            self._restart()
            self._fill()
        return super().publish(affine, n_jobs)

    def _published(self, values: Floats) -> Equations:
        return Equations(np.ldexp(values, self._scaled_by), **self.columns.state())
