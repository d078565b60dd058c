"""Kernels that solve the normal equations: Cholesky in float64, refined with exact residuals.

Every column is in its own unit, the quantum of its grid. Powers of two change no rounding, so
this is as good as equilibrating. All sums run in a fixed order, and nothing here comes from a
library: equal moments give equal coefficients on every machine.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from erasable.core._centring_kernels import add, add_outer, centre, means, multiply, ratio
from erasable.core._jit import kernel, subroutine
from erasable.core._moment_kernels import two_product, two_sum
from erasable.core.arrays import Floats

EPSILON = 2.0**-53
SUSPECT = 2.0**-10
ROUNDS = 30


class LeastSquares(NamedTuple):
    """A least-squares problem without its sums."""

    n_features: int
    n_targets: int
    first_target: int  # column of the first target among the moments
    weighted: bool  # is column `n_features` the root of the weights?
    intercept: bool
    about_mean: bool  # predict relative to the means, and not to 0? Not where rows are sparse
    inner: Floats  # origins of the grids, in quanta, shape (p,)
    offset: Floats  # origins of the data less `shift`, in `unit`: high and low part, shape (2, p)
    unit: Floats  # powers of two: what 1 is in the columns that are solved, shape (p,)
    shift: Floats  # of the map before the model: coefficients are of (x - shift) / scale
    scale: Floats  # shape (n_features,), like `shift`
    # of each coefficient's square, in quanta squared, shape (1 or n_targets, n_features)
    penalties: Floats


class SolveScratch(NamedTuple):
    """Arrays in which a problem is solved, once or for many rows."""

    high: Floats  # the moments that are solved, shape (p, p)
    low: Floats  # their low parts
    mean: Floats  # of the columns: high and low parts, shape (2, p)
    x: Floats  # coefficients in the units of the columns, shape (n_targets, n_features)
    slope: Floats  # those of the features
    constant: Floats  # this, base and middle are those of `Solution`
    base: Floats
    middle: Floats

    @classmethod
    def of(cls, problem: LeastSquares) -> SolveScratch:
        """Make them for a problem."""
        d, o, p = problem.n_features, problem.n_targets, problem.unit.size
        high, low = np.zeros((2, p, p))
        x, slope = np.zeros((2, o, d))
        constant, base = np.zeros((2, o))
        return cls(high, low, np.zeros((2, p)), x, slope, constant, base, np.zeros(d))


@subroutine
def assemble(
    n_rows: float, sums: Floats, products: Floats, problem: LeastSquares, scratch: SolveScratch
) -> None:
    """Fill `high` + `low` with the moments that are to be solved, and `mean` with the means.

    With weights w, the columns are products with ``sqrt(w)``, which itself is column `n_features`;
    `inner` are the origins of their grids, and that column is eliminated. Without an intercept
    the moments are about 0, which lies `offset` before the origin of a column, and not about the
    mean. `offset` and `mean`, of shape (2, p), are high and low parts.
    """
    high, low, mean = scratch.high, scratch.low, scratch.mean
    n_features, inner, offset = problem.n_features, problem.inner, problem.offset
    p = sums.size
    centre(n_rows, sums, products, high, low)
    means(n_rows, sums, mean[0], mean[1])
    total, rest = n_rows, 0.0
    if problem.weighted:
        for j in range(p):
            mean[0, j], mean[1, j] = add(mean[0, j], mean[1, j], inner[j], 0.0)
        add_outer(n_rows, 0.0, mean[0], mean[1], high, low)
        total, rest = high[n_features, n_features], low[n_features, n_features]
        for j in range(p):
            mean[0, j], mean[1, j] = ratio(high[n_features, j], low[n_features, j], total, rest)
        add_outer(-total, -rest, mean[0], mean[1], high, low)
    for j in range(p):
        mean[0, j], mean[1, j] = add(mean[0, j], mean[1, j], offset[0, j], offset[1, j])
    if not problem.intercept:
        add_outer(total, rest, mean[0], mean[1], high, low)


@kernel
def factorise(
    high: Floats, penalty: Floats, n_rows: float, factor: Floats, inverse: Floats, silent: Floats
) -> int:
    """Fill both triangles of `factor` with the Cholesky factor, `inverse` with 1 / its diagonal.

    A column that the columns before it determine, but for what rounding to the grid and rounding
    here may add, is left out, and so is one of zeros: its `inverse` is 0. Returns how many columns
    are determined by others; the combinations that do not vary are the first rows of `silent`.
    """
    d = inverse.size
    found = 0
    for j in range(d):
        row, source = factor[j], high[j]
        for k in range(j, d):
            row[k] = source[k]
        factor[j, j] += penalty[j]
    for first in range(0, d, 4):
        last = min(first + 4, d)
        for j in range(first, last):
            inverse[j] = 0.0
            if high[j, j] != 0.0:
                pivot, whole = factor[j, j], high[j, j] + penalty[j]
                # Only where most of a column is determined it matters how much rounding adds.
                if not pivot > SUSPECT * whole and not pivot > rounding(
                    high, penalty, n_rows, factor, inverse, j, silent[found]
                ):
                    found += 1
                else:
                    inverse[j] = 1.0 / np.sqrt(pivot)
            row = factor[j, j:]
            for k in range(row.size):
                row[k] *= inverse[j]
            for k in range(1, row.size):
                factor[j + k, j] = row[k]
            for i in range(j + 1, last):
                times = factor[j, i]
                row, target = factor[j, i:], factor[i, i:]
                for k in range(row.size):
                    target[k] -= times * row[k]
        if last == first + 4:  # four rows at a time: a quarter of the traffic
            for i in range(last, d):
                a, b = factor[first, i:], factor[first + 1, i:]
                c, e = factor[first + 2, i:], factor[first + 3, i:]
                target = factor[i, i:]
                times_a, times_b, times_c, times_e = a[0], b[0], c[0], e[0]
                for k in range(target.size):
                    rest = target[k] - times_a * a[k] - times_b * b[k]
                    target[k] = rest - times_c * c[k] - times_e * e[k]
    return found


@subroutine
def rounding(
    high: Floats,
    penalty: Floats,
    n_rows: float,
    factor: Floats,
    inverse: Floats,
    j: int,
    combination: Floats,
) -> float:
    """Return what rounding may add to what is left of column `j` without those before it.

    `combination` becomes the one that is left. Each value was rounded by half a quantum at most.
    """
    d = inverse.size
    share = 4.0 * d * EPSILON
    for k in range(d):
        combination[k] = -factor[j, k] if k < j else 0.0
    combination[j] = 1.0
    total: float = n_rows / 4.0 + share * (high[j, j] + penalty[j])
    for i in range(j - 1, -1, -1):
        combination[i] *= inverse[i]
        part = combination[i]
        if part != 0.0:
            row = factor[i]
            for k in range(i):
                combination[k] -= part * row[k]
            total += part * part * (n_rows / 4.0 + share * (high[i, i] + penalty[i]))
    return total


@kernel
def substitute(factor: Floats, inverse: Floats, x: Floats) -> None:
    """Solve in place, by the factor and by its transpose."""
    d = inverse.size
    for j in range(d):
        x[j] *= inverse[j]
        times, row, rest = x[j], factor[j, j + 1 :], x[j + 1 :]
        for k in range(rest.size):
            rest[k] -= times * row[k]
    for j in range(d - 1, -1, -1):
        x[j] *= inverse[j]
        times, row = x[j], factor[j]
        for k in range(j):
            x[k] -= times * row[k]


@kernel
def residual(
    high: Floats, low: Floats, penalty: Floats, target: int, x: Floats, out: Floats, rest: Floats
) -> None:
    """Fill `out` with ``b - (A + penalty) x``, rounded once; b is row `target` of the moments."""
    d = x.size
    for k in range(d):
        out[k] = high[target, k]
    for k in range(d):
        product, error = two_product(penalty[k], x[k])
        out[k], lost = two_sum(out[k], -product)
        rest[k] = low[target, k] + lost - error
    for j in range(d):
        times, high_j, low_j = x[j], high[j], low[j]
        for k in range(d):
            product, error = two_product(high_j[k], times)
            out[k], lost = two_sum(out[k], -product)
            rest[k] += lost - error - low_j[k] * times
    for k in range(d):
        out[k] += rest[k]


@kernel
def size_of(x: Floats, high: Floats) -> float:
    """Return the size of coefficients, each times the deviation of its column."""
    total = 0.0
    for j in range(x.size):
        total += abs(x[j]) * np.sqrt(high[j, j])
    return total


@subroutine
def refine(
    high: Floats,
    low: Floats,
    penalty: Floats,
    target: int,
    factor: Floats,
    inverse: Floats,
    x: Floats,
) -> bool:
    """Solve for one target to the last digits; false where the factor is too coarse for that."""
    d = x.size
    step, rest = np.empty(d), np.empty(d)
    for j in range(d):
        x[j] = high[target, j]
    substitute(factor, inverse, x)
    before = size_of(x, high)
    if before == 0.0:
        return True
    for _ in range(ROUNDS):
        residual(high, low, penalty, target, x, step, rest)
        substitute(factor, inverse, step)
        for j in range(d):
            x[j] += step[j]
        size, moved = size_of(x, high), size_of(step, high)
        shrinks = moved / before
        if not shrinks < 0.5:
            return moved <= 8.0 * EPSILON * size
        if moved * shrinks <= EPSILON * size:
            return True
        before = moved
    return False


@subroutine
def solve_targets(n_rows: float, problem: LeastSquares, scratch: SolveScratch) -> bool:
    """Fill ``x[i]`` with the coefficients for target i; false where some are not determined.

    `penalties` has one row for all targets, or one for each. They decide between collinear
    columns, but not between columns that only rounding has made to differ.
    """
    high, low, x, penalties = scratch.high, scratch.low, scratch.x, problem.penalties
    o, d = x.shape
    factor, inverse, silent = np.empty((d, d)), np.empty(d), np.empty((d, d))
    nothing = np.zeros(d)
    charged = False
    for i in range(o):
        penalty = penalties[i if penalties.shape[0] > 1 else 0]
        if i == 0 or penalties.shape[0] > 1:
            charged = penalty.max() > 0.0
            found = 0
            if not charged or (i == 0 and n_rows > d):
                if n_rows < d:
                    return False
                found += factorise(high, nothing, n_rows, factor, inverse, silent)
            if charged and found == 0:
                found += factorise(high, penalty, 0.0, factor, inverse, silent)
            if found > 0:
                return False
        if not refine(high, low, penalty, problem.first_target + i, factor, inverse, x[i]):
            return False
    return True


@kernel
def finish(problem: LeastSquares, scratch: SolveScratch) -> None:
    """Make slopes and constants, in the units of the data, of coefficients in quanta.

    `mean` are the means, in quanta, of what the columns are after `shift` is taken away. A row is
    predicted as ``base + slope (row - middle)``: with large offsets that keeps digits which
    ``constant + slope row`` has not.
    """
    unit, shift, intercept = problem.unit, problem.shift, problem.intercept
    x, mean, slope, middle = scratch.x, scratch.mean, scratch.slope, scratch.middle
    o, d = x.shape
    for j in range(d):
        middle[j] = shift[j]
        if problem.about_mean:
            middle[j] = shift[j] + mean[0, j] * unit[j]
    for i in range(o):
        t = problem.first_target + i
        high, low = 0.0, 0.0
        if intercept:
            high, low = mean[0, t] * unit[t], mean[1, t] * unit[t]
        for j in range(d):
            slope[i, j] = x[i, j] * (unit[t] / unit[j])
            if intercept:
                product, error = multiply(
                    mean[0, j] * unit[j], mean[1, j] * unit[j], slope[i, j], 0.0
                )
                high, low = add(high, low, -product, -error)
        scratch.constant[i] = high + low
        for j in range(d):
            away, error = two_sum(middle[j], -shift[j])
            product, error = multiply(away, error, slope[i, j], 0.0)
            high, low = add(high, low, product, error)
        scratch.base[i] = high + low


@subroutine
def solve(
    n_rows: float, sums: Floats, products: Floats, problem: LeastSquares, scratch: SolveScratch
) -> bool:
    """Go from sums to slopes; false, after `assemble`, where coefficients are not determined."""
    assemble(n_rows, sums, products, problem, scratch)
    if not solve_targets(n_rows, problem, scratch):
        return False
    finish(problem, scratch)
    return True


@kernel
def solve_anew(
    n_rows: float, sums: Floats, products: Floats, problem: LeastSquares
) -> tuple[bool, SolveScratch]:
    """Do so in arrays that are made here, which is faster than by `SolveScratch.of`."""
    d, o, p = problem.n_features, problem.n_targets, problem.unit.size
    scratch = SolveScratch(
        np.zeros((p, p)), np.zeros((p, p)), np.zeros((2, p)), np.zeros((o, d)), np.zeros((o, d)),
        np.zeros(o), np.zeros(o), np.zeros(d),
    )  # fmt: skip
    return solve(n_rows, sums, products, problem, scratch), scratch
