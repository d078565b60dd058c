"""Inverse Hessians with bounds of their errors.

The law kept here: ``(1 - error) A <= H <= (1 + error) A``, where A is the exact inverse of the
matrix that is held, and H the exact Hessian at the logits and with the weights of the records and
of the penalty, which are held as well: those of the problem may have changed since.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import lapack

from erasable.core._centring_kernels import add as add_double
from erasable.core._centring_kernels import multiply as times_double
from erasable.core._jit import kernel
from erasable.core.arrays import Floats, Ints
from erasable.core.threads import over_rows
from erasable.linear_model._certificate import compounded
from erasable.linear_model._lattice import Pair
from erasable.linear_model._softmax_design import UNIT, SoftmaxDesign
from erasable.linear_model._softmax_exact import divide_double
from erasable.linear_model._softmax_kernels import shares


@dataclass(slots=True)
class InverseHessian:
    """The inverse B of an approximate Hessian."""

    inverse: Floats  # B, shape (p, p)
    logits: Floats  # where the Hessian was taken, shape (n, m); 0 for rows that do not count
    error: float
    condition: float  # bound of sum_j B_jj A_jj, which magnifies errors relative to the diagonal
    weights: Floats  # of the records, with which the Hessian was made
    strengths: Floats  # those of the penalty

    @property
    def is_guess(self) -> bool:
        """Whether nothing is known of it."""
        return self.logits.size == 0

    @property
    def spread(self) -> Floats:
        """Roots of the diagonal of B."""
        return np.sqrt(np.diagonal(self.inverse))

    def decrement(self, gradient: Floats) -> tuple[float, Floats, float]:
        """Return a gradient's norm, the Newton step, and bounds of the norm of their rounding."""
        flat = gradient.ravel()
        step = self.inverse @ flat
        size = float(self.spread @ np.abs(flat))
        p = flat.size
        square = max(float(flat @ step), 0.0) + 4 * (p + 2) * UNIT * size * size
        rounding = (p + 2) * UNIT * size * float(np.sqrt(p * self.condition))
        return float(np.sqrt(square)), step.reshape(gradient.shape), rounding

    def noise(self, errors: Floats) -> tuple[float, Floats]:
        """Bound the norm of a vector within `errors`, and the components of B times it."""
        flat = errors.ravel()
        moved = 1.001 * (np.abs(self.inverse) @ flat)
        return 1.001 * float(np.sqrt(flat @ moved)), moved.reshape(errors.shape)

    def _correlation(self) -> float:
        """Bound the largest eigenvalue of B scaled to a diagonal of 1."""
        scaled = np.abs(self.inverse) / self.spread
        return float((scaled.sum(axis=1) / self.spread).max())

    def reach(self, design: SoftmaxDesign) -> float:
        """Bound the range of any record's change of logits over the norm of the change."""
        m = design.n_logits
        traces = np.sort(np.diagonal(self.inverse).reshape(m, -1).sum(axis=1))[::-1]
        by_columns = self._correlation() * float(traces[:2].sum())
        largest = float(np.abs(self.inverse).sum(axis=1).max())
        by_rows = largest * design.row_norm**2 * (1 if m == 1 else 2)
        return 1.001 * float(np.sqrt(min(by_columns, by_rows)))

    def drift(self, design: SoftmaxDesign, logits: Floats) -> float:
        """Return the largest range of a record's change of logits since the Hessian was taken."""

        def of_portion(rows: slice) -> float:
            change = logits[rows] - self.logits[rows]
            if change.shape[1] == 1:
                ranges = np.abs(change[:, 0])
            else:
                high, low = change.max(axis=1), change.min(axis=1)
                if design.reference:
                    high, low = np.maximum(high, 0.0), np.minimum(low, 0.0)
                ranges = high - low
            return float(ranges.max(where=design.weights[rows] > 0, initial=0.0))

        return max(over_rows(of_portion, design.n_rows, design.n_jobs, design.portion))

    def as_guess(self) -> InverseHessian:
        """Return an inverse for the same coefficients, without any bound of its error."""
        return InverseHessian(
            self.inverse, np.zeros((0, 0)), np.inf, 1.0, np.zeros(0), self.strengths
        )

    def downdate(self, design: SoftmaxDesign, rows: Ints, units: Floats) -> bool:
        """Take rows, given in units, out of the Hessian; false where that is not worth it.

        A Hessian that loses ``G G'`` has the inverse ``B + B G (1 - G' B G)^-1 G' B``.
        """
        m = design.n_logits
        roots = _roots(self.logits[rows], self.weights[rows], design.reference)
        used = self.weights[rows] > 0
        columns = np.einsum("ikl,ij->kjil", roots[used], units[used])
        factor = columns.reshape(m * units.shape[1], -1)
        if factor.shape[1] == 0:
            return True
        if 4 * factor.shape[1] > factor.shape[0]:
            return self._downdate_many(design, rows[used])
        terms = float((self.spread @ np.abs(factor)).sum())
        moved = self.inverse @ factor
        leverage = factor.T @ moved
        rest = np.eye(leverage.shape[0]) - 0.5 * (leverage + leverage.T)
        share = float(np.abs(leverage).sum(axis=1).max())
        if share > 0.5:
            return False
        gain = moved @ np.linalg.inv(rest)
        change = gain @ moved.T
        self.inverse += 0.5 * (change + change.T)
        rounding = _rounding_of_update(terms, factor.shape, m, self.condition)
        self.error = compounded(self.error / (1.0 - 1.01 * share), rounding)
        self.condition *= 1.0 + 2.0 * float(np.trace(leverage))
        self._clear(rows)
        return True

    def update(self, design: SoftmaxDesign, rows: Ints, units: Floats, logits: Floats) -> bool:
        """Put rows, given in units and with logits, into the Hessian; false if it is not worth it.

        A Hessian that gains ``G G'`` has the inverse ``B - B G (1 + G' B G)^-1 G' B``. An error
        relative to A is not larger relative to ``A + G G'``.
        """
        m = design.n_logits
        self.logits[rows], self.weights[rows] = logits, design.weights[rows]
        roots = _roots(logits, self.weights[rows], design.reference)
        columns = np.einsum("ikl,ij->kjil", roots, units)
        factor = columns.reshape(m * units.shape[1], -1)
        if 4 * factor.shape[1] > factor.shape[0]:
            return False
        terms = float((self.spread @ np.abs(factor)).sum())
        moved = self.inverse @ factor
        leverage = factor.T @ moved
        share = float(np.abs(leverage).sum(axis=1).max())
        if share > 0.5:
            return False
        gain = moved @ np.linalg.inv(np.eye(leverage.shape[0]) + 0.5 * (leverage + leverage.T))
        change = gain @ moved.T
        self.inverse -= 0.5 * (change + change.T)
        # With ``G G' <= A / 2`` elements of the diagonal of B fall by a third at most.
        rounding = 2.0 * _rounding_of_update(terms, factor.shape, m, self.condition)
        self.error = compounded(self.error, rounding)
        self.condition *= 1.0 + 1.01 * share
        return True

    def _clear(self, rows: Ints) -> None:
        """Erase what is known of rows that have been taken out."""
        self.logits[rows] = 0.0
        self.weights[rows] = 0.0

    def _downdate_many(self, design: SoftmaxDesign, rows: Ints) -> bool:
        """Take away the Hessian of many rows, T, from A, and invert what is left.

        With ``T <= share A`` an error e of A is one of ``e / (1 - share)`` of A - T.
        """
        again = invert(self.inverse.copy(), 0.0, self.logits, self.weights, self.strengths)
        if again is None or not again.error < 0.01:
            return False
        part = design.take(rows, self.weights[rows])
        taken = part.hessian(self.logits[rows])
        roots = self.spread
        products = np.abs(self.inverse @ taken) / roots[:, None] * roots
        terms = float(roots @ np.sqrt(np.diagonal(taken)))
        share = float(products.sum(axis=1).max())
        share += (roots.size * UNIT + 2 * part.hessian_error + 128 * UNIT) * terms * terms
        share *= 1.01 / (1.0 - again.error)
        if not share < 0.5:
            return False
        # A diagonal element of what is left is at least half of what it was.
        rounding = 2 * (part.hessian_error + 128 * UNIT)
        left = invert(again.inverse - taken, rounding, self.logits, self.weights, self.strengths)
        if left is None or not left.error < 0.5:
            return False
        before = (self.error + again.error) / (1.0 - again.error)
        self.error = compounded(left.error, before / (1.0 - share))
        self.inverse, self.condition = left.inverse, left.condition
        self._clear(rows)
        return True


def invert(
    hessian: Floats, relative: float, logits: Floats, weights: Floats, strengths: Floats
) -> InverseHessian | None:
    """Invert a Hessian, which is overwritten, and find out how wrong the result is.

    `relative` bounds the error of element (i, j), relative to the root of (i, i) times (j, j); it
    is infinite where the error of the inverse is not needed. Return None if the Hessian is not
    positive definite in float64. An error of 1 or more means that nothing is known of the inverse.

    ``|B^1/2 H B^1/2 - 1| = rho(B H - 1) <= |B H - 1|_inf``, in coordinates in which the diagonal
    of H is near 1; powers of two, so that the change of coordinates is exact.
    """
    p = hessian.shape[0]
    diagonal = np.diagonal(hessian)
    guess = np.isinf(relative)
    if not (np.isfinite(hessian).all() and (diagonal > 0).all()):
        return None
    scale = np.ldexp(1.0, -((np.frexp(diagonal)[1]) // 2))
    scaled = hessian * scale[:, None] * scale
    factor, failed = lapack.dpotrf(scaled, lower=1)
    if failed:
        return None
    inverse, failed = lapack.dpotri(factor, lower=1)
    if failed:
        return None
    inverse = np.tril(inverse) + np.tril(inverse, -1).T
    if guess:
        inverse *= scale[:, None] * scale
        return InverseHessian(inverse, logits, np.inf, 1.0, weights, strengths)
    sizes = np.abs(inverse).sum(axis=1)
    rounding = (p + 2) * UNIT * float(sizes.max()) * float(np.abs(scaled).sum(axis=1).max())
    wrong = 1.0001 * float(np.abs(inverse @ scaled - np.eye(p)).sum(axis=1).max()) + rounding
    if not wrong < 1.0:
        error = condition = np.inf
    else:
        trace = float(np.trace(scaled))
        condition = float(np.diagonal(inverse) @ np.diagonal(scaled)) / (1.0 - wrong)
        largest = min(float(np.trace(inverse)), float(sizes.max())) / (1.0 - wrong)
        error = compounded(wrong, relative * trace * largest)
    inverse *= scale[:, None] * scale
    return InverseHessian(inverse, logits, error, condition, weights, strengths)


def _rounding_of_update(terms: float, shape: tuple[int, ...], m: int, condition: float) -> float:
    """Bound what rounding makes of the inverse of ``A - G G'``, relative to A - G G'.

    `terms` is the sum of ``sqrt(B_ii) |G_ik|``; `shape` is (p, k), that of G, whose elements are
    right but for m + 16 units or so; `m` is the number of logits.

    Errors of at most q times ``sqrt(B_ii B_jj)`` change a form by at most ``q p condition`` of
    itself, because ``(sum_i sqrt(B_ii) |x_i|)**2 <= p sum_i B_ii x_i**2``; those of G, relative to
    the diagonal of ``G G' <= A / 2``, likewise. The products with B are wrong by
    ``p u sqrt(B_ii) terms``, those of G with these by as much times `terms`, and the last, of k
    columns with a norm of ``sqrt(2 B_ii)`` at most, by ``2 k u``. The condition is at least p.
    """
    p, k = shape
    return (16 + m + 4 * k) * p * UNIT * (1.0 + terms) * (condition + terms)


def _roots(logits: Floats, weights: Floats, reference: bool) -> Floats:
    """Return G with ``G G'`` the Hessian of each record in its logits, shape (n, m, m).

    The Cholesky factor of ``diag(p) - p p'``, which needs no subtraction: its elements are right
    but for a few units each, however small a probability is.
    """
    n, m = logits.shape
    chances = shares(logits, reference)
    tails = np.cumsum(chances[:, ::-1], axis=1)[:, ::-1]  # of this class and all after it
    own = np.sqrt(weights[:, None] * chances[:, :m] * tails[:, 1:] / (tails[:, :m] * tails[:, :1]))
    roots = np.zeros((n, m, m))
    for k in range(m):
        roots[:, k, k] = own[:, k]
        others = chances[:, k + 1 : m]
        roots[:, k + 1 :, k] = -own[:, k, None] * others / tails[:, k + 1, None]
    return roots


_UNIT = 2.0**-98


@dataclass(slots=True)
class PreciseMetric(InverseHessian):
    """A metric that is held by its Cholesky factor, of about 100 bits."""

    factor: Pair  # L with A = L L', in scaled coordinates
    scale: Floats  # powers of two
    diagonal: Floats  # of A
    solving: float  # bound of the error of a solved step, relative to the step, in the norm of A

    def decrement(self, gradient: Floats) -> tuple[float, Floats, float]:
        """See `InverseHessian`."""
        flat = gradient.ravel() * self.scale
        half, step = np.zeros((2, flat.size)), np.zeros((2, flat.size))
        solve_lower(*self.factor, flat, np.zeros_like(flat), half[0], half[1])
        solve_upper(*self.factor, half[0], half[1], step[0], step[1])
        moved = step[0] * self.scale
        size = 1.0001 * (1.0 + self.solving) * float(np.sqrt(half[0] @ half[0]))
        rounding = 2 * UNIT * float(np.sqrt(self.diagonal) @ np.abs(moved)) + self.solving * size
        found: Floats = moved.reshape(gradient.shape)
        return size, found, rounding

    def noise(self, errors: Floats) -> tuple[float, Floats]:
        """See `InverseHessian`; the inverse is rounded here."""
        flat, roots = errors.ravel(), self.spread
        moved = 1.001 * (np.abs(self.inverse) @ flat + self.solving * roots * (roots @ flat))
        return 1.001 * float(np.sqrt(flat @ moved)), moved.reshape(errors.shape)

    def reach(self, design: SoftmaxDesign) -> float:
        """See `InverseHessian`."""
        largest = float(np.trace(self.inverse))
        return (
            1.001 * float(np.sqrt(largest * (1 if design.n_logits == 1 else 2))) * design.row_norm
        )

    def downdate(self, design: SoftmaxDesign, rows: Ints, units: Floats) -> bool:
        """See `InverseHessian`; there is no cheap way to follow."""
        return False


def invert_precisely(
    hessian: Pair, relative: float, logits: Floats, weights: Floats, strengths: Floats
) -> PreciseMetric | None:
    """Invert a pair of arrays; None if 100 bits are too few; `relative`: error of the weights."""
    p = hessian[0].shape[0]
    diagonal = np.diagonal(hessian[0]).copy()
    if not (np.isfinite(hessian[0]).all() and (diagonal > 0).all()):
        return None
    scale = np.ldexp(1.0, -((np.frexp(diagonal)[1]) // 2))
    high, low = (part * scale[:, None] * scale for part in hessian)
    trace = float(np.trace(high))
    if not factorise(high, low):
        return None
    inverse = np.zeros((p, p))
    invert_factor(high, low, inverse)
    rounding = (logits.shape[0] + 4 * p + 64) * _UNIT * trace * float(np.trace(inverse))
    if not rounding < 0.01:
        return None
    inverse = 0.5 * (inverse + inverse.T) * scale[:, None] * scale
    # Elements are wrong by up to this share of the roots of the diagonal, so that this is larger.
    places = np.arange(p)
    inverse[places, places] *= 1.0 + 2.0 * p * rounding
    error = compounded(relative, 2.0 * rounding)
    return PreciseMetric(
        inverse, logits, error, 1.0, weights, strengths, (high, low), scale, diagonal, rounding
    )


@kernel
def factorise(high: Floats, low: Floats) -> bool:
    """Replace the lower half of a matrix by its Cholesky factor; false if there is none."""
    p = high.shape[0]
    for j in range(p):
        a, b = high[j, j], low[j, j]
        for k in range(j):
            c, d = times_double(high[j, k], low[j, k], high[j, k], low[j, k])
            a, b = add_double(a, b, -c, -d)
        if not a > 0.0:
            return False
        root = np.sqrt(a)
        c, d = times_double(root, 0.0, root, 0.0)
        a, b = add_double(a, b, -c, -d)
        root, rest = add_double(root, 0.0, a / (2.0 * root), 0.0)
        high[j, j], low[j, j] = root, rest
        for i in range(j + 1, p):
            a, b = high[i, j], low[i, j]
            for k in range(j):
                c, d = times_double(high[i, k], low[i, k], high[j, k], low[j, k])
                a, b = add_double(a, b, -c, -d)
            high[i, j], low[i, j] = divide_double(a, b, root, rest)
    return True


@kernel
def solve_lower(
    high: Floats, low: Floats, b: Floats, b_low: Floats, out: Floats, out_low: Floats
) -> None:
    """Solve ``L x = b``."""
    for i in range(b.size):
        a, r = b[i], b_low[i]
        for k in range(i):
            c, d = times_double(high[i, k], low[i, k], out[k], out_low[k])
            a, r = add_double(a, r, -c, -d)
        out[i], out_low[i] = divide_double(a, r, high[i, i], low[i, i])


@kernel
def solve_upper(
    high: Floats, low: Floats, b: Floats, b_low: Floats, out: Floats, out_low: Floats
) -> None:
    """Solve ``L' x = b``."""
    p = b.size
    for i in range(p - 1, -1, -1):
        a, r = b[i], b_low[i]
        for k in range(i + 1, p):
            c, d = times_double(high[k, i], low[k, i], out[k], out_low[k])
            a, r = add_double(a, r, -c, -d)
        out[i], out_low[i] = divide_double(a, r, high[i, i], low[i, i])


@kernel
def invert_factor(high: Floats, low: Floats, out: Floats) -> None:
    """Fill `out` with the inverse of ``L L'``."""
    p = high.shape[0]
    unit, rest = np.zeros(p), np.zeros(p)
    half, half_low, column, column_low = np.zeros(p), np.zeros(p), np.zeros(p), np.zeros(p)
    for j in range(p):
        unit[j] = 1.0
        solve_lower(high, low, unit, rest, half, half_low)
        solve_upper(high, low, half, half_low, column, column_low)
        out[:, j] = column
        unit[j] = 0.0
