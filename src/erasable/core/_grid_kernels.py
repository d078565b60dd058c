"""Kernels of the grid: one pass over the rows each, no allocation, no reduction of floats.

All of them walk rows and, inside a row, columns; the inner loop writes one or two arrays, which
is what lets the compiler vectorise it. `rows` is read only where `every` is false. The
rounding is ``(v + c) - c`` with ``c`` of the sign of ``v`` and magnitude ``2**52`` quanta: the
sum has an ulp of one quantum, so IEEE rounding to nearest, ties to even, does the work; the
result is never ``-0.0``, and needs no instruction that an older processor lacks.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from erasable.core._jit import kernel, subroutine
from erasable.core.arrays import Flags, Floats, Ints, Matrix

BITS = 26
MIN_TOP = -480
MAX_TOP = 480
MAX_ROWS = 2**27
WIDTH = 512

NO_ROWS: Ints = np.empty(0, dtype=np.int64)
ZERO, ONE, MANY = np.int64(0), np.int64(1), np.int64(2**32)


@subroutine
def quantise(value: float, magic: float) -> float:
    """Round `value` to the grid whose quantum is ``magic * 2**-52``."""
    signed = magic if value >= 0.0 else -magic
    rounded = (value + signed) - signed
    return rounded if abs(value) < magic else value


@kernel
def ceil_log2(value: float) -> int:
    """Smallest integer e with ``value <= 2**e``, for a positive `value`."""
    fraction, exponent = math.frexp(value)
    return exponent - 1 if fraction == 0.5 else exponent


@kernel
def bracket(low: float, high: float) -> tuple[float, int]:
    """Origin and top exponent of a column, from its extremes.

    Taking rows away keeps `low` from falling and `high` from rising, so the span of the column
    only shrinks and its smallest magnitude, where an origin pays, only grows: once a column has
    an origin it keeps one, and its quantum never grows (but for a column that becomes constant,
    where every gridded value is 0).
    """
    if low == high:
        return low, (0 if low == 0.0 else max(ceil_log2(abs(low)), MIN_TOP))
    span = ceil_log2(high - low)
    smallest = min(abs(low), abs(high))
    if (low > 0.0 or high < 0.0) and span >= MIN_TOP and math.frexp(smallest)[1] - span >= 4:
        unit = math.ldexp(1.0, span)
        return np.rint((low + 0.5 * (high - low)) / unit) * unit, span
    return 0.0, max(ceil_log2(max(abs(low), abs(high))), MIN_TOP)


@kernel
def brackets(low: Floats, high: Floats, origin: Floats, top: Ints, magic: Floats) -> None:
    """Fill `origin`, `top` and `magic` of every column."""
    for j in range(low.size):
        origin[j], top[j] = bracket(low[j], high[j])
        magic[j] = math.ldexp(1.0, top[j] + BITS)


@kernel
def extremes(matrix: Matrix, rows: Ints, every: bool, low: Floats, high: Floats) -> None:
    """Widen `low` and `high` to the extremes of every column."""
    for i in range(matrix.shape[0] if every else rows.size):
        row = matrix[i if every else rows[i]]
        for j in range(row.size):
            value = np.float64(row[j])
            low[j] = value if value < low[j] else low[j]
            high[j] = value if value > high[j] else high[j]


@kernel
def count_reached(
    matrix: Matrix, rows: Ints, every: bool, low: Floats, high: Floats, packed: Ints
) -> None:
    """Count the values that equal `low`, and in the upper 32 bits those that equal `high`.

    Two counts share an integer (n <= 2**27), so that the loop writes one array.
    """
    for i in range(matrix.shape[0] if every else rows.size):
        row = matrix[i if every else rows[i]]
        for j in range(row.size):
            value = np.float64(row[j])
            packed[j] += (ONE if value == low[j] else ZERO) + (MANY if value == high[j] else ZERO)


@kernel
def count_coarse(
    matrix: Matrix, rows: Ints, every: bool, origin: Floats, magic: Floats, packed: Ints
) -> None:
    """Count the values that are off the grid, and in the upper 32 bits those beyond float32."""
    for i in range(matrix.shape[0] if every else rows.size):
        row = matrix[i if every else rows[i]]
        for j in range(row.size):
            value = np.float64(row[j]) - origin[j]
            lossy = ONE if quantise(value, magic[j]) != value else ZERO
            packed[j] += lossy + (MANY if np.float64(np.float32(value)) != value else ZERO)


@kernel
def to_grid(
    matrix: Matrix, rows: Ints, every: bool, origin: Floats, magic: Floats, out: Matrix
) -> None:
    """Write the gridded value of every element, relative to its column's origin, to `out`."""
    for i in range(matrix.shape[0] if every else rows.size):
        row = matrix[i if every else rows[i]]
        target = out[i]
        for j in range(row.size):
            target[j] = quantise(np.float64(row[j]) - origin[j], magic[j])


@kernel
def forget_reached(matrix: Matrix, rows: Ints, low: Floats, high: Floats, counts: Ints) -> bool:
    """Subtract `rows` from the counts at `low` and `high`; return True if one drops to 0."""
    for i in range(rows.size):
        row = matrix[rows[i]]
        for j in range(row.size):
            value = np.float64(row[j])
            counts[0, j] -= value == low[j]
            counts[1, j] -= value == high[j]
    gone = False
    for j in range(low.size):
        gone |= counts[0, j] == 0 or counts[1, j] == 0
    return gone


@kernel
def reach(
    matrix: Matrix, rows: Ints, low: Floats, high: Floats, counts: Ints, changed: Flags
) -> bool:
    """Add `rows` to `low`, `high` and the counts there; flag the columns that change."""
    found = False
    for i in range(rows.size):
        row = matrix[rows[i]]
        for j in range(row.size):
            value = np.float64(row[j]) + 0.0
            if value < low[j]:
                low[j], counts[0, j], changed[j], found = value, 0, True, True
            if value > high[j]:
                high[j], counts[1, j], changed[j], found = value, 0, True, True
            counts[0, j] += value == low[j]
            counts[1, j] += value == high[j]
    return found


@kernel
def meet_coarse(matrix: Matrix, rows: Ints, origin: Floats, magic: Floats, counts: Ints) -> None:
    """Add `rows` to the counts of values off the grid and beyond float32."""
    for i in range(rows.size):
        row = matrix[rows[i]]
        for j in range(row.size):
            value = np.float64(row[j]) - origin[j]
            counts[0, j] += quantise(value, magic[j]) != value
            counts[1, j] += np.float64(np.float32(value)) != value


@kernel
def forget_coarse(matrix: Matrix, rows: Ints, origin: Floats, magic: Floats, counts: Ints) -> None:
    """Subtract `rows` from the counts of values off the grid and beyond float32."""
    for i in range(rows.size):
        row = matrix[rows[i]]
        for j in range(row.size):
            value = np.float64(row[j]) - origin[j]
            counts[0, j] -= quantise(value, magic[j]) != value
            counts[1, j] -= np.float64(np.float32(value)) != value


@kernel
def rescan(matrix: Matrix, rows: Ints, j: int) -> tuple[float, float, int, int]:
    """Extremes of column `j` over `rows` and how many values reach them."""
    low, high, n_low, n_high = np.inf, -np.inf, 0, 0
    for i in range(rows.size):
        value = np.float64(matrix[rows[i], j])
        if value <= low:
            n_low = n_low + 1 if value == low else 1
            low = value
        if value >= high:
            n_high = n_high + 1 if value == high else 1
            high = value
    if rows.size == 0:
        return 0.0, 0.0, 0, 0
    return low + 0.0, high + 0.0, n_low, n_high


@kernel
def regrid(
    matrix: Matrix,
    rows: Ints,
    j: int,
    before: tuple[float, float],
    after: tuple[float, float],
) -> tuple[int, int, bool]:
    """Count the values of column `j` that grid `after` changes, and those float32 would change.

    A grid is (origin, magic). The last value returned: some gridded value differs from before.
    """
    lossy, wide, moved = 0, 0, False
    for i in range(rows.size):
        value = np.float64(matrix[rows[i], j])
        offset = value - after[0]
        gridded = quantise(offset, after[1])
        lossy += gridded != offset
        wide += np.float64(np.float32(offset)) != offset
        moved |= gridded != quantise(value - before[0], before[1])
    return lossy, wide, moved


def long_rows(
    matrix: Matrix,
    every: bool,
    per_column: tuple[Floats, ...],
    out: NDArray[np.float64] | None,
    width: int = WIDTH,
) -> list[tuple[Matrix, tuple[Floats, ...], NDArray[np.float64]]]:
    """Cut a narrow matrix into rows of about `width` values, so that inner loops are long.

    Return the wide part and the rest, each with the repeated numbers of its columns and its part of
    `out`.
    """
    n, d = matrix.shape
    target = np.empty((0, d)) if out is None else out
    repeats = width // d if every and d else 1
    if repeats < 2 or n < 2 * repeats:
        return [(matrix, per_column, target)]
    cut = n - n % repeats
    tiled = tuple(np.tile(numbers, repeats) for numbers in per_column)
    shape = (cut // repeats, repeats * d)
    wide_target = target if out is None else out[:cut].reshape(shape)
    parts = [(matrix[:cut].reshape(shape), tiled, wide_target)]
    if cut < n:
        parts.append((matrix[cut:], per_column, target[cut:]))
    return parts


def which(matrix: Matrix, live_rows: Ints | None) -> tuple[bool, Ints]:
    """Return whether every row counts; if not, also the rows that do."""
    every = live_rows is None or live_rows.size == matrix.shape[0]
    return every, NO_ROWS if every or live_rows is None else live_rows


def unpack(packed: Ints, n_features: int) -> Ints:
    """Separate two counts a column that share an integer, over repeated columns."""
    both = np.stack([packed & 0xFFFFFFFF, packed >> 32])
    counts: Ints = both.reshape(2, -1, n_features).sum(axis=1)
    return counts
