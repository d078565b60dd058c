"""Eigenvectors of a symmetric matrix, by a fixed sequence of + - * / and square roots.

LAPACK would be faster, but its last bits differ between machines and numbers of threads, and the
state of a later step depends on them. Householder's reduction to a tridiagonal matrix, then QL with
implicit shifts (Golub and Van Loan, Matrix Computations, 8.3; Bowdler, Martin, Reinsch and
Wilkinson 1968). Inner loops run along rows, which compilers vectorise.
"""

from __future__ import annotations

import math

import numpy as np

from erasable.core._jit import kernel, subroutine
from erasable.core.arrays import Floats

_SWEEPS = 60


@subroutine
def _tridiagonalise(a: Floats, vectors: Floats, diagonal: Floats, beside: Floats) -> None:
    """Reduce `a`, overwritten, to a tridiagonal matrix; rows of `vectors` are the basis."""
    n = a.shape[0]
    v, w = np.zeros(n), np.zeros(n)
    for k in range(n - 2):
        largest = 0.0
        for i in range(k + 1, n):
            largest = max(largest, abs(a[k, i]))
        tail = 0.0
        for i in range(k + 2, n):
            tail = max(tail, abs(a[k, i]))
        if tail == 0.0:
            beside[k] = a[k, k + 1]
            continue
        squares = 0.0
        for i in range(k + 1, n):
            v[i] = a[k, i] / largest
            squares += v[i] * v[i]
        length = math.sqrt(squares)
        if v[k + 1] > 0.0:
            length = -length
        beside[k] = length * largest
        v[k + 1] -= length
        beta = 2.0 / (2.0 * (squares - length * (v[k + 1] + length)))
        for j in range(k + 1, n):
            w[j] = 0.0
        for i in range(k + 1, n):
            factor = beta * v[i]
            row = a[i]
            for j in range(k + 1, n):
                w[j] += factor * row[j]
        inner = 0.0
        for j in range(k + 1, n):
            inner += v[j] * w[j]
        inner *= 0.5 * beta
        for j in range(k + 1, n):
            w[j] -= inner * v[j]
        for i in range(k + 1, n):
            vi, wi = v[i], w[i]
            row = a[i]
            for j in range(k + 1, n):
                row[j] -= vi * w[j] + wi * v[j]
        for j in range(n):
            w[j] = 0.0
        for i in range(k + 1, n):
            factor = beta * v[i]
            row = vectors[i]
            for j in range(n):
                w[j] += factor * row[j]
        for i in range(k + 1, n):
            vi = v[i]
            row = vectors[i]
            for j in range(n):
                row[j] -= vi * w[j]
    if n > 1:
        beside[n - 2] = a[n - 2, n - 1]
    for i in range(n):
        diagonal[i] = a[i, i]


@subroutine
def _length(x: float, y: float) -> float:
    """Return the square root of ``x x + y y`` without overflow."""
    x, y = abs(x), abs(y)
    if x < y:
        x, y = y, x
    if x == 0.0:
        return 0.0
    ratio = y / x
    return x * math.sqrt(1.0 + ratio * ratio)


@subroutine
def _diagonalise(diagonal: Floats, beside: Floats, vectors: Floats) -> bool:
    """Rotate a tridiagonal matrix into a diagonal one, and the rows of `vectors` with it."""
    n = diagonal.size
    for low in range(n):
        for _ in range(_SWEEPS):
            high = low
            while high < n - 1:
                size = abs(diagonal[high]) + abs(diagonal[high + 1])
                if size + abs(beside[high]) == size:
                    break
                high += 1
            if high == low:
                break
            g = (diagonal[low + 1] - diagonal[low]) / (2.0 * beside[low])
            r = _length(g, 1.0)
            g = diagonal[high] - diagonal[low] + beside[low] / (g + (r if g >= 0.0 else -r))
            sine, cosine, shift = 1.0, 1.0, 0.0
            whole = True
            for i in range(high - 1, low - 1, -1):
                f, b = sine * beside[i], cosine * beside[i]
                r = _length(f, g)
                beside[i + 1] = r
                if r == 0.0:
                    diagonal[i + 1] -= shift
                    beside[high] = 0.0
                    whole = False
                    break
                sine, cosine = f / r, g / r
                g = diagonal[i + 1] - shift
                r = (diagonal[i] - g) * sine + 2.0 * cosine * b
                shift = sine * r
                diagonal[i + 1] = g + shift
                g = cosine * r - b
                upper, lower = vectors[i + 1], vectors[i]
                for j in range(n):
                    value = upper[j]
                    upper[j] = sine * lower[j] + cosine * value
                    lower[j] = cosine * lower[j] - sine * value
            if whole:
                diagonal[low] -= shift
                beside[low] = g
                beside[high] = 0.0
        else:
            return False
    return True


@kernel
def eigh(matrix: Floats, values: Floats, vectors: Floats) -> bool:
    """Find eigenvalues and, as rows, eigenvectors of a symmetric matrix, in no order.

    `matrix` is overwritten. Return False if the iteration did not converge.
    """
    n = matrix.shape[0]
    vectors[:] = 0.0
    for i in range(n):
        vectors[i, i] = 1.0
    beside = np.zeros(n)
    _tridiagonalise(matrix, vectors, values, beside)
    return _diagonalise(values, beside, vectors)


@kernel
def project(rows: Floats, middle: Floats, basis: Floats, out: Floats) -> None:
    """Fill `out` with ``(rows - middle) @ basis``, every row by a formula of that row alone."""
    for i in range(rows.shape[0]):
        target = out[i]
        target[:] = 0.0
        for j in range(rows.shape[1]):
            value = rows[i, j] - middle[j]
            if value != 0.0:
                line = basis[j]
                for k in range(target.size):
                    target[k] += value * line[k]
