"""An inverse Hessian for problems whose Hessian float64 cannot invert: collinear columns, large C.

Products and sums are in double-double arithmetic. The weights of the records need not be: what is
wrong with a weight is relative, and changes the Hessian by no more than that share of itself.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from erasable.core._centring_kernels import add as add_double
from erasable.core._centring_kernels import multiply as times_double
from erasable.core._jit import kernel
from erasable.core.arrays import Floats, Ints
from erasable.linear_model._certificate import compounded
from erasable.linear_model._lattice import Pair
from erasable.linear_model._metric import Metric
from erasable.linear_model._softmax_design import UNIT, SoftmaxDesign
from erasable.linear_model._softmax_exact import divide_double

_UNIT = 2.0**-98


@dataclass(slots=True)
class PreciseMetric(Metric):
    """A metric that is held by its Cholesky factor, of about 100 bits.

    Attributes
    ----------
    factor : pair of ndarray of shape (p, p)
        L with ``A = L L'`` in scaled coordinates.
    scale : ndarray of shape (p,)
        Powers of two.
    diagonal : ndarray of shape (p,)
        Of A.
    solving : float
        Bound of the error of a solved step, relative to the step, in the norm of A.
    """

    factor: Pair
    scale: Floats
    diagonal: Floats
    solving: float

    def decrement(self, gradient: Floats) -> tuple[float, Floats, float]:
        """See `Metric`."""
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
        """See `Metric`; the inverse is rounded here."""
        flat, roots = errors.ravel(), self.spread
        moved = 1.001 * (np.abs(self.inverse) @ flat + self.solving * roots * (roots @ flat))
        return 1.001 * float(np.sqrt(flat @ moved)), moved.reshape(errors.shape)

    def reach(self, design: SoftmaxDesign) -> float:
        """See `Metric`."""
        largest = float(np.trace(self.inverse))
        return (
            1.001 * float(np.sqrt(largest * (1 if design.n_logits == 1 else 2))) * design.row_norm
        )

    def forget(self, design: SoftmaxDesign, rows: Ints, units: Floats) -> bool:
        """See `Metric`; there is no cheap way to follow."""
        return False


def invert_precisely(
    hessian: Pair, relative: float, logits: Floats, weights: Floats, strengths: Floats
) -> PreciseMetric | None:
    """Invert a Hessian that is a pair of arrays; return None where 100 bits are not enough, either.

    `relative` is the error of the records' weights.
    """
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
