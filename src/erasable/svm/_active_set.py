"""The optimum of a loss of squared gaps: which records are active, and linear equations for these.

The objective is ``F = theta' P theta / 2 + sum_i s_i gap_i**2``, with the gaps of
`_active_kernels`. It is strictly convex, and quadratic wherever the active records stay the same:
there the optimum is the solution of linear equations, whose sums over the active records are kept
in double-double. A deletion changes the sums by one record, and few others become active or cease
to be.

The law kept here: a point of the lattice is called certain only when it is the nearest to the
optimum. Let A be the matrix of the equations, ``g = A theta - b`` their residual, and
``(1 - e) B**-1 <= A`` with the matrix B that is held; norms are those of ``B**-1``. Take a ball of
radius R around theta, and leave out of A and b all records that may change sides within it. The
Hessian is at least A there. What was left out adds to the gradient at theta, for a gap of at most
h, ``2 s h |u|`` at most. So with l, the norm of the gradient, the optimum is within
``D = l / (1 - e)`` of theta if D < R: on the ball's surface the gradient would point outwards.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

import erasable.svm._active_kernels as kernels
from erasable.core.arrays import Floats, Ints
from erasable.core.passes import Portion, storage
from erasable.core.persistent import Persistent
from erasable.core.row_arrays import padded
from erasable.core.tables import Table
from erasable.linear_model._lattice import Pair, pair_sum, pair_times, round_intervals
from erasable.linear_model._metric import InverseHessian, invert, invert_precisely
from erasable.linear_model._softmax_kernels import dots, tile

UNIT = 2.0**-53
FINER = 2.0**8
"""How many points of the lattice there are for one of that of logistic regression."""
_BLOCK = 512
"""Records whose products are summed up at once; the coarse ones without error."""
_FEW = 4096
"""Records whose products are added one by one, in double-double."""
_MOST_STEPS, _FEW_STEPS, _ROUNDED_STEPS = 200, 8, 40
"""Steps altogether, those without a look at all records, and those with scores in float64."""
_WORN = 0.05
"""Share of a matrix that may have changed since it was inverted."""


class ActiveRows(Persistent):
    """Records in units of their columns, with their weights: ``u = (x - origin) * unit``."""

    def __init__(
        self,
        matrix: Any,
        weights: Floats,
        origin: Floats,
        unit: Floats,
        intercept: bool,
        n_jobs: int | None = None,
    ) -> None:
        self.matrix, self.weights = matrix, weights  # weights are 0 for rows that do not count
        self.origin, self.unit, self.intercept = origin, unit, intercept
        self.n_jobs = n_jobs
        self.norms = np.zeros(weights.size)  # bounds of the Euclidean norms
        self._plain = False
        self.take_matrix(matrix)
        self._measure()

    def _kept_attributes(self) -> dict[str, Any]:
        return {name: each for name, each in vars(self).items() if name != "n_jobs"}

    def _after_reading(self) -> None:
        self.n_jobs = None

    @property
    def width(self) -> int:
        """Number of coefficients, the intercept included."""
        return int(self.unit.size) + int(self.intercept)

    def take_matrix(self, matrix: Any) -> None:
        """Refer to another matrix of the records, with room for others."""
        self.matrix = matrix
        self.weights = padded(self.weights, matrix.shape[0])
        self.norms = padded(self.norms, matrix.shape[0])
        dense = not Table(matrix).is_sparse
        # Values are used as they are, also those of rows that do not count.
        self._plain = dense and matrix.dtype == np.float64 and not self.origin.any()

    def _tiles(self, portion: Portion, step: int = 2 * _BLOCK) -> Any:
        """Yield blocks of rows of a portion, dense, but for those in which nothing counts."""
        for start in range(portion.rows.start, portion.rows.stop, step):
            part = slice(start, min(start + step, portion.rows.stop))
            if self.weights[part].any():
                yield part, _dense(portion.of(part))

    def _in_units(self, part: slice, block: Floats, ones: bool) -> Floats:
        counts = (self.weights[part] > 0).astype(np.float64)
        out = np.zeros((counts.size, self.width if ones else self.unit.size))
        tile(block, self.origin, self.unit, counts, ones and self.intercept, out)
        return out

    def _measure(self) -> None:
        def of_portion(portion: Portion) -> None:
            for part, block in self._tiles(portion):
                units = self._in_units(part, block, True)
                self.norms[part] = 1.001 * np.sqrt(np.einsum("ij,ij->i", units, units))

        for _ in storage(self.matrix).portions(of_portion, self.weights, self.n_jobs):
            pass

    def scores(self, theta: Floats) -> Floats:
        """Return the score of each row; those of rows that do not count mean nothing."""
        out = np.zeros((self.weights.size, 1))
        d = self.unit.size
        own = theta[None, :d] * self.unit if self._plain else theta[None, :d].copy()
        last = theta[d:].copy() if self.intercept else np.zeros(1)

        def of_portion(portion: Portion) -> None:
            for part, block in self._tiles(portion, 8 * _BLOCK):
                rows = block if self._plain else self._in_units(part, block, False)
                dots(rows, own, last, out[part])

        for _ in storage(self.matrix).portions(of_portion, self.weights, self.n_jobs):
            pass
        return out[:, 0]

    def score_error(self, theta: Floats) -> float:
        """Bound the error of a score, for a row of norm 1."""
        size = float(np.sqrt(theta @ theta))
        return 1.01 * (self.width / 8 + 24) * UNIT * size

    def pairs(self, rows: Ints) -> Pair:
        """Return some rows in units, as pairs."""
        high, low = np.zeros((2, rows.size, self.width))
        block = _dense(self.matrix[rows])
        kernels.pairs(block, self.origin, self.unit, self.intercept, high, low)
        return high, low

    @property
    def scale(self) -> float:
        """A power of two that no weight exceeds."""
        share, exponent = np.frexp(self.weights.max())
        return float(np.ldexp(1.0, int(exponent) - int(share == 0.5)))

    def products(self, sides: NDArray[np.int8], targets: Targets) -> tuple[Floats, Floats]:
        """Return sums of weighted products of the active rows of each side, and their low parts.

        Their coarse parts are added without error, in any order.
        """
        width = self.width + 1
        scale = self.scale

        def of_portion(portion: Portion) -> tuple[Floats, Floats]:
            sums, rests = np.zeros((2, 2, width, width))
            for part, block in self._tiles(portion, 8 * _BLOCK):
                for side in (1, 2):
                    places = np.flatnonzero(sides[part] == side)
                    for start in range(0, places.size, _BLOCK):
                        some = places[start : start + _BLOCK]
                        coarse, fine, heavy, light = np.zeros((4, some.size, width))
                        rows = part.start + some
                        kernels.split(
                            block[some], self.origin, self.unit, self.intercept,
                            targets.of(rows, side), self.weights[rows], scale, coarse, fine,
                            heavy, light,
                        )  # fmt: skip
                        low = coarse.T @ light + fine.T @ (heavy + light)
                        both = pair_sum((sums[side - 1], rests[side - 1]), (coarse.T @ heavy, low))
                        sums[side - 1], rests[side - 1] = both
            return sums, rests

        total: Pair = (np.zeros((2, width, width)), np.zeros((2, width, width)))
        for each in storage(self.matrix).portions(of_portion, self.weights, self.n_jobs):
            total = pair_sum(total, each)
        return total

    def in_order(self, rows: Ints) -> ActiveRows:
        """Return some rows, in an order of their own."""
        matrix = storage(self.matrix).in_order(rows)
        return ActiveRows(matrix, self.weights[rows], self.origin, self.unit, self.intercept, 1)

    def learn(self, rows: Ints, weights: Floats) -> None:
        """Have rows count."""
        self.weights[rows] = weights
        high = self.pairs(rows)[0]
        self.norms[rows] = 1.001 * np.sqrt(np.einsum("ij,ij->i", high, high))

    def forget(self, rows: Ints) -> None:
        """Overwrite what is known of rows, which do not count any more."""
        self.weights[rows] = 0.0
        self.norms[rows] = 0.0


def _dense(block: Any) -> Any:
    return block.toarray() if Table(block).is_sparse else block


@dataclass(slots=True)
class Targets:
    """What scores are to be: 1 or -1 of records in and out of a class, or numbers.

    The memory of `values` may be that of several equations.
    """

    values: Any  # codes of classes, int32; or numbers, float64
    positive: int = -1  # the code of the class
    epsilon: float = -1.0  # half the width of the interval; below 0 for classes

    def at(self, rows: Any = ...) -> Floats:
        """Return the targets of some rows."""
        if self.epsilon >= 0.0:
            found: Floats = self.values[rows]
            return found
        return np.where(self.values[rows] == self.positive, 1.0, -1.0)

    def of(self, rows: Ints, side: Any) -> Floats:
        """Return the end of the interval from which rows on a side have their gap."""
        values = self.at(rows)
        if self.epsilon > 0.0:
            values = np.where(side == 1, values - self.epsilon, values + self.epsilon)
        return values

    @property
    def largest(self) -> float:
        """Bound of the magnitudes of the ends."""
        return 1.0 + max(self.epsilon, 0.0)


@dataclass(slots=True)
class Penalty:
    """``P = diag(strengths) + strength bent bent'``, and by what each side's loss is multiplied."""

    strengths: Floats
    bent: Floats
    strength: float
    factors: Floats  # shape (2,)

    def equals(self, other: Penalty) -> bool:
        """Tell whether this is the same."""
        return (
            self.strength == other.strength
            and np.array_equal(self.strengths, other.strengths)
            and np.array_equal(self.bent, other.bent)
            and np.array_equal(self.factors, other.factors)
        )

    def slope(self, theta: Floats, away: Floats) -> float:
        """Return how steep the penalty is along a line."""
        along = self.strength * float(self.bent @ theta) * float(self.bent @ away)
        return float((self.strengths * theta) @ away) + along


@dataclass(slots=True)
class Equation:
    """Coefficients of one score, and what is known of the records at those of `reference`."""

    theta: Pair
    targets: Targets
    sides: NDArray[np.int8] = field(default_factory=lambda: np.zeros(0, np.int8))
    slack: Floats = field(default_factory=lambda: np.zeros(0))  # inf for rows that do not count
    scores: Floats = field(default_factory=lambda: np.zeros(0))
    reference: Floats | None = None
    sums: Floats = field(default_factory=lambda: np.zeros(0))
    rests: Floats = field(default_factory=lambda: np.zeros(0))
    wrong: Floats = field(default_factory=lambda: np.zeros(2))  # bounds of the sums' errors
    mass: Floats = field(default_factory=lambda: np.zeros(2))  # sums of the sides' weights
    precise: bool = False
    metric: InverseHessian | None = None
    penalty: Penalty | None = None  # with which the metric was made
    drift: float = 0.0  # of the equations since then, relative to them


@dataclass(slots=True)
class _Found:
    """Where the solution of the equations is."""

    metric: InverseHessian
    size: float  # bound of the norm of the residual
    error: float  # how wrong the metric is, below 1


class ActiveSet:
    """Finds the optimum of an equation."""

    def __init__(self, rows: ActiveRows, penalty: Penalty, *, careful: bool = False) -> None:
        self.rows, self.penalty = rows, penalty
        self.careful = careful  # no sum depends on anything but the order of the records

    def nearest(self, equation: Equation, margin: float) -> tuple[Floats, bool]:
        """Find the point of the lattice nearest to the optimum; tell whether it is certain."""
        while True:
            half = self._settle(equation)
            values, certain = equation.theta[0], False
            if half is not None:
                high, low = equation.theta
                values, certain = round_intervals(high * FINER, low * FINER, margin * half * FINER)
            if certain:
                return values / FINER, True
            if equation.precise:
                return np.rint(equation.theta[0] * (FINER * 2**20)) / (FINER * 2**20) + 0.0, False
            self._sum_up(equation, precisely=True)

    def approach(self, equation: Equation) -> None:
        """Come near the optimum."""
        self._settle(equation, rough=True)

    # -- sums ----------------------------------------------------------------------------------

    def _sum_up(self, equation: Equation, *, precisely: bool = False) -> None:
        """Sum up the active records anew."""
        rows, width = self.rows, self.rows.width + 1
        active = np.flatnonzero(equation.sides)
        weights = rows.weights[active]
        sides = equation.sides[active]
        equation.mass = 1.01 * np.array([float(weights[sides == side].sum()) for side in (1, 2)])
        equation.metric = None
        if precisely or self.careful or active.size <= _FEW:
            equation.sums, equation.rests = np.zeros((2, 2, width, width))
            equation.wrong, equation.precise = np.zeros(2), True
            self._add(equation, active, 1.0)
            return
        equation.sums, equation.rests = rows.products(equation.sides, equation.targets)
        # Of each of two products a factor is below 2**-23, and rounding has up to _BLOCK + 5 steps.
        equation.wrong = np.full(2, active.size * rows.scale * 2.02 * (_BLOCK + 16) * 2.0**-76)
        equation.precise = False

    def _add(self, equation: Equation, active: Ints, sign: float) -> None:
        """Add active records to the sums of their sides, or subtract them."""
        rows, targets = self.rows, equation.targets
        for start in range(0, active.size, _BLOCK):
            some = active[start : start + _BLOCK]
            high, low = rows.pairs(some)
            sides, weights = equation.sides[some], rows.weights[some]
            kernels.add_products(
                high, low, targets.of(some, sides), sign * weights,
                sides.astype(np.int64) - 1, equation.sums, equation.rests,
            )  # fmt: skip
            for side in (1, 2):
                own = float(weights[sides == side].sum()) * 1.01
                if sign > 0:
                    equation.mass[side - 1] += own
                n = int((sides == side).sum())
                equation.wrong[side - 1] += (n + 1) * 2.0**-102 * equation.mass[side - 1]
            if equation.metric is not None and equation.penalty is not None:
                scale = 2.0 * float(equation.penalty.factors.max())
                lengths = ((high @ equation.metric.inverse) * high).sum(axis=1)
                equation.drift += 1.02 * scale * float(np.abs(lengths) @ weights)

    def change(self, equation: Equation, rows: Ints, sides: NDArray[np.int8]) -> None:
        """Move records to other sides."""
        if rows.size > max(_FEW, int(np.count_nonzero(equation.sides)) // 8) or (
            not equation.sums.size
        ):
            equation.sides[rows] = sides
            self._sum_up(equation)
            return
        self._add(equation, rows[equation.sides[rows] > 0], -1.0)
        equation.sides[rows] = sides
        self._add(equation, rows[sides > 0], 1.0)

    # -- equations -----------------------------------------------------------------------------

    def _solve(self, equation: Equation) -> _Found | None:
        """Go where the equations are solved, as well as it can be told."""
        width = self.rows.width
        matrix, matrix_low = np.zeros((2, width, width))
        right, right_low = np.zeros((2, width))
        penalty = self.penalty
        kernels.normal_equations(
            equation.sums, equation.rests, penalty.factors, penalty.strengths, penalty.bent,
            penalty.strength, matrix, matrix_low, right, right_low,
        )  # fmt: skip
        if equation.penalty is None or not penalty.equals(equation.penalty):
            equation.metric = None
        wrong = 2.02 * float(penalty.factors @ equation.wrong)
        if equation.metric is None or equation.metric.error + equation.drift > _WORN:
            metric = _invert((matrix, matrix_low), penalty.strengths)
            if metric is None:
                return None
            equation.metric, equation.drift, equation.penalty = metric, 0.0, penalty
        metric = equation.metric
        theta, best = equation.theta, np.inf
        out, sizes = np.zeros((2, width))
        for _ in range(60):
            kernels.residual(matrix, matrix_low, right, right_low, *theta, out, sizes)
            decrement, step, rounding = metric.decrement(out)
            errors = (width + 16) * 2.0**-101 * sizes + UNIT * np.abs(out)
            errors += wrong * (1.001 * float(np.abs(theta[0]).sum()) + equation.targets.largest)
            noise = metric.noise(errors)[0] + rounding
            slow = not decrement + noise < 0.5 * best
            if decrement + noise < best:
                equation.theta, best = theta, decrement + noise
            if slow or decrement <= noise:
                break
            theta = pair_sum(theta, (-step, np.zeros_like(step)))
        error = metric.error + equation.drift + wrong * float(metric.spread.sum()) ** 2
        return _Found(metric, best, error)

    # -- which records are active --------------------------------------------------------------

    def _settle(self, equation: Equation, *, rough: bool = False) -> Floats | None:
        """Find the active records and the optimum; return half the widths of intervals for it."""
        rows = self.rows
        if equation.reference is None:
            self._look_at_all(equation)
        n_used, n_examined = int(np.count_nonzero(rows.weights)), 0
        flags = np.zeros(rows.weights.size, dtype=np.bool_)
        widened, least = 0.0, None
        for step in range(_MOST_STEPS):
            if step == _ROUNDED_STEPS:  # it may be rounding that leads round and round
                if rough or not equation.precise:
                    return None
                self._descend(equation)
                least = equation.theta
            found = self._solve(equation)
            if found is None or not found.error < 0.5:
                if found is None or equation.precise:
                    return None
                self._sum_up(equation, precisely=True)
                continue
            radius = max(4.0 * found.size, widened)
            reach = 2.0 * radius * float(np.sqrt(np.trace(found.metric.inverse)))
            n_near = kernels.near(equation.slack, self._moved(equation, reach), flags)
            many = n_near > max(64, n_used // 64) or n_examined > _FEW_STEPS
            if many and self._moved(equation, 0.0) > 0.0:
                n_changed = self._look_at_all(equation)
                if rough and n_changed is not None and n_changed <= n_used // 100:
                    return None
                if n_changed is None or n_changed > 0:
                    if least is not None:
                        break
                    continue
                n_near = kernels.near(equation.slack, self._moved(equation, reach), flags)
            extra = self._examine(equation, found, np.flatnonzero(flags), reach) if n_near else 0.0
            if extra is None:
                if least is not None:
                    break
                n_examined += 1
                if n_examined == _FEW_STEPS:  # to and fro: from here on, no step leads up
                    assert equation.reference is not None
                    equation.theta = equation.reference, np.zeros(rows.width)
                    self._look_at_all(equation)
                continue
            bound = 1.01 * (found.size + extra) / (1.0 - found.error)
            if bound < radius:
                theta = np.abs(equation.theta[0])
                half: Floats = bound / (1.0 - found.error) * found.metric.spread + 2.0**-100 * theta
                return half
            widened = 2.0 * bound
        if least is not None:  # what follows is decided by rounding
            equation.theta = least
        return None

    def _descend(self, equation: Equation) -> None:
        """Find the active records, step by step, with scores in pairs.

        A step ends where the objective is least on the line to the solution of the equations.
        """
        rows, targets, penalty = self.rows, equation.targets, self.penalty
        values, theta = targets.at(), equation.theta
        scores, sides = self._sides_exactly(equation)
        for _ in range(_MOST_STEPS):
            moving = np.flatnonzero(sides != equation.sides)
            if moving.size:
                self.change(equation, moving, sides[moving])
            if self._solve(equation) is None:
                break
            away = pair_sum(equation.theta, (-theta[0], -theta[1]))
            after, wanted = self._sides_exactly(equation)
            if np.array_equal(wanted, sides):
                break
            change = pair_sum(after, (-scores[0], -scores[1]))

            def slope(
                share: float,
                start: Pair = theta,
                away: Pair = away,
                scores: Pair = scores,
                change: Pair = change,
            ) -> float:
                loss = kernels.slope_exactly(
                    *scores, *change, share, values, rows.weights, targets.epsilon, penalty.factors
                )
                return loss + penalty.slope(start[0] + share * away[0], away[0])

            share = _least(slope)
            if share == 0.0:
                equation.theta = theta
                break
            theta = pair_sum(theta, pair_times(away, share))
            equation.theta = theta
            scores, sides = (after, wanted) if share == 1.0 else self._sides_exactly(equation)
        self._look_at_all(equation, sides)

    def _sides_exactly(self, equation: Equation) -> tuple[Pair, NDArray[np.int8]]:
        """Return the scores of all records in pairs, and their sides."""
        rows, theta, targets = self.rows, equation.theta, equation.targets
        size = float(np.sqrt(theta[0] @ theta[0]))
        n = rows.weights.size
        scores, scores_low = np.zeros((2, n))
        sides, gaps = np.zeros(n, dtype=np.int8), np.zeros(_BLOCK)
        for start in range(0, n, _BLOCK):
            part = slice(start, start + _BLOCK)
            some = np.flatnonzero(rows.weights[part] > 0) + start
            own, high, low = np.zeros(some.size, dtype=np.int8), *np.zeros((2, some.size))
            kernels.scores_exactly(*rows.pairs(some), *theta, high, low)
            limit = 2.0**-96 * (targets.largest + rows.width * rows.norms[some] * (1.0 + size))
            kernels.decide_exactly(
                high, low, targets.at(some), limit, limit, targets.epsilon, own, gaps
            )
            if targets.epsilon == 0.0:
                own[:] = 1
            scores[some], scores_low[some], sides[some] = high, low, own
        return (scores, scores_low), sides

    def _moved(self, equation: Equation, reach: float) -> float:
        """Bound how far coefficients in reach are from the reference."""
        assert equation.reference is not None
        away = equation.theta[0] - equation.reference
        return 1.001 * float(np.sqrt(away @ away)) + reach

    def _examine(self, equation: Equation, found: _Found, near: Ints, reach: float) -> float | None:
        """Find the sides of some records; None if any has changed.

        Return what the gradient's norm may be of those of which it is not certain, which are left
        out.
        """
        rows, theta, targets, changed = self.rows, equation.theta, equation.targets, []
        size = float(np.sqrt(theta[0] @ theta[0]))
        largest, unsure = targets.largest, []
        for start in range(0, near.size, _BLOCK):
            some = near[start : start + _BLOCK]
            sides, slack = np.zeros(some.size, dtype=np.int8), np.zeros(some.size)
            kernels.decide(
                rows.pairs(some)[0] @ theta[0], targets.at(some), rows.weights[some],
                rows.norms[some], targets.epsilon, 1.01 * (rows.width + 16) * UNIT * size,
                4.0 * UNIT * largest, sides, slack,
            )  # fmt: skip
            changed.append(sides)
            unsure.append(np.flatnonzero(slack <= reach) + start)
        sides, left, extra = np.concatenate(changed), np.concatenate(unsure), 0.0
        inverse = np.abs(found.metric.inverse)
        for start in range(0, left.size, _BLOCK):
            places = left[start : start + _BLOCK]
            some = near[places]
            high, low = rows.pairs(some)
            scores, scores_low, gaps = np.zeros((3, some.size))
            kernels.scores_exactly(high, low, *theta, scores, scores_low)
            norms, own = rows.norms[some], np.zeros(some.size, dtype=np.int8)
            limit = 2.0**-96 * (largest + rows.width * norms * (1.0 + size))
            kernels.decide_exactly(
                scores, scores_low, targets.at(some), limit, limit + norms * reach,
                targets.epsilon, own, gaps,
            )  # fmt: skip
            sides[places] = own
            if (gaps > 0).any():
                lengths = np.sqrt(((np.abs(high) @ inverse) * np.abs(high)).sum(axis=1))
                sizes = 2.02 * rows.weights[some] * gaps * float(self.penalty.factors.max())
                extra += float(sizes @ lengths)
        moving = sides != equation.sides[near]
        if moving.any():
            self.change(equation, near[moving], sides[moving])
            equation.slack[near[moving]] = 0.0  # their sides are not those at the reference
            return None
        return extra

    def _look_at_all(self, equation: Equation, known: NDArray[np.int8] | None = None) -> int | None:
        """Find the sides of all records; return how many changed, None after a shorter step.

        Where it is not certain, a side stays what it was, or is what is `known`; no step is made
        shorter then.
        """
        rows, targets = self.rows, equation.targets
        theta = equation.theta[0]
        scores, values = rows.scores(theta), targets.at()
        shorter = False
        if equation.reference is not None and known is None:
            share = self._length(equation, scores, values)
            if share < 1.0:
                shorter = True
                theta = equation.reference + share * (theta - equation.reference)
                equation.theta = theta, np.zeros_like(theta)
                scores = rows.scores(theta)
        n, before = rows.weights.size, equation.sides
        sides = np.zeros(n, dtype=np.int8)
        if before.size == n:
            sides[:] = before if known is None else known
        slack = np.zeros(n)
        kernels.decide(
            scores, values, rows.weights, rows.norms, targets.epsilon, rows.score_error(theta),
            4.0 * UNIT * targets.largest, sides, slack,
        )  # fmt: skip
        equation.reference, equation.scores, equation.slack = theta.copy(), scores, slack
        if before.size != n:
            equation.sides = sides
            self._sum_up(equation)
            return n
        moving = np.flatnonzero(sides != before)
        if moving.size:
            self.change(equation, moving, sides[moving])
        return None if shorter else int(moving.size)

    def _length(self, equation: Equation, scores: Floats, values: Floats) -> float:
        """Return a share of a step from the reference, up to which the objective falls."""
        weights, penalty, start = self.rows.weights, self.penalty, equation.reference
        assert start is not None
        away = equation.theta[0] - start
        change = scores - equation.scores

        def slope(share: float) -> float:
            loss = kernels.slope(
                equation.scores, change, share, values, weights, equation.targets.epsilon,
                penalty.factors,
            )  # fmt: skip
            return loss + penalty.slope(start + share * away, away)

        return _least(slope) or 1.0

    # -- records that come and go --------------------------------------------------------------

    def make_room(self, equation: Equation) -> None:
        """Have room for records that were added."""
        n = self.rows.weights.size
        if equation.reference is not None:
            equation.sides = padded(equation.sides, n)
            equation.slack = padded(equation.slack, n, np.inf)
            equation.scores = padded(equation.scores, n)

    def take_out(self, equation: Equation, rows: Ints) -> None:
        """Take records out; they can still be read, and still have their weights."""
        if equation.reference is None:
            return
        self.change(equation, rows, np.zeros(rows.size, dtype=np.int8))
        equation.slack[rows], equation.scores[rows] = np.inf, 0.0

    def take_in(self, equation: Equation, rows: Ints) -> None:
        """Take records in, which have their weights already: they are examined later."""
        if equation.reference is None:
            return
        equation.slack[rows] = 0.0
        equation.scores[rows] = self.rows.pairs(rows)[0] @ equation.reference
        if equation.targets.epsilon == 0.0:
            self.change(equation, rows, np.ones(rows.size, dtype=np.int8))
            equation.slack[rows] = np.inf


def _least(slope: Callable[[float], float]) -> float:
    """Return a share of a step up to which a convex function falls, from its slope; 0 if none."""
    descent = -slope(0.0)
    if not descent > 0.0:
        return 0.0
    if not slope(1.0) > 1e-8 * descent:
        return 1.0
    shortest, longest = 0.0, 1.0
    for _ in range(40):
        share = 0.5 * (shortest + longest)
        rise = slope(share)
        if rise > 0.0:
            longest = share
            continue
        shortest = share
        if rise > -0.1 * descent:
            break
    return shortest


def _invert(matrix: Pair, strengths: Floats) -> InverseHessian | None:
    nothing = np.zeros((0, 1)), np.zeros(0)
    found = invert(matrix[0].copy(), 2 * UNIT, *nothing, strengths)
    if found is None or not found.error < _WORN / 2:
        precise = invert_precisely(matrix, 0.0, *nothing, strengths)
        return found if precise is None else precise
    return found
