"""Sparse records as a softmax model sees them; see `_softmax_design`."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from scipy.sparse import coo_array, csr_array

from erasable.core._function_kernels import EXP_ERROR
from erasable.core._jit import kernel
from erasable.core._moment_kernels import two_sum
from erasable.core.arrays import Csr, Floats, Ints
from erasable.core.passes import Portion
from erasable.core.sparse import parts
from erasable.linear_model._exact_gradients import exact_gradient_sparse
from erasable.linear_model._lattice import Pair
from erasable.linear_model._lattice import two_sum as two_sum_arrays
from erasable.linear_model._softmax_design import UNIT, Evaluation, Exact, SoftmaxDesign, add

# A column that is known to be no negative number is looked up twice as fast; hence `uint64`.


class SparseDesign(SoftmaxDesign):
    """Rows of a matrix in canonical CSR form.

    A column has an origin if every record that counts has a value in it; it is subtracted from
    these values in a copy, without rounding. Without an intercept the origin is what earlier steps
    of a pipeline subtract, and the zeros of the column are stored for that.
    """

    def __init__(self, matrix: csr_array, *others: Any) -> None:
        super().__init__(matrix, *others)
        self._shifted = bool(self.origin.any())
        if self._shifted:
            if not self.intercept:
                matrix = _with_zeros(matrix, np.flatnonzero(self.origin))
            data = matrix.data - self.origin[matrix.indices]
            self.matrix = csr_array((data, matrix.indices, matrix.indptr), shape=matrix.shape)
        squares = np.zeros(self.width)
        largest = _squares(parts(self.matrix), self.unit, self.weights, self.intercept, squares)
        self.column_norms = 1.001 * np.sqrt(squares)
        self.row_norm = 1.001 * float(np.sqrt(largest))
        self._choose_portion()

    def _choose_portion(self) -> None:
        # Where sums have about as many elements as a portion has values, adding them up costs more
        # than is gained.
        if self.portion * self.matrix.nnz < 8 * self.n_logits * self.width * self.n_rows:
            self.portion = self.n_rows

    def take_matrix(self, matrix: Any) -> bool:
        """See `SoftmaxDesign`."""
        if self._shifted:
            return False
        super().take_matrix(matrix)
        self._choose_portion()
        return True

    def forget(self, rows: Ints) -> None:
        """See `SoftmaxDesign`."""
        super().forget(rows)
        if self._shifted:
            starts = self.matrix.indptr
            for row in rows.tolist():
                self.matrix.data[starts[row] : starts[row + 1]] = 0.0

    def _split(self, theta: Floats) -> tuple[Floats, Floats]:
        d = self.unit.size
        last = theta[:, d] if self.intercept else np.zeros(theta.shape[0])
        return theta[:, :d] * self.unit, np.ascontiguousarray(last)

    def _join(self, body: Floats, last: Floats) -> Floats:
        body = body * self.unit
        return np.column_stack([body, last]) if self.intercept else body

    def evaluate(self, theta: Floats) -> Evaluation:
        """See `SoftmaxDesign`: one pass over the values, with sums that are compensated."""
        coefficients, last = self._split(theta)
        logits, sizes = np.zeros((self.n_rows, self.n_logits)), np.zeros(self.n_rows)
        evaluate, written = SparseDesign._evaluate_of, [logits, sizes]
        sums, ends, squares, energy = self.reduce(
            evaluate, _joined, coefficients, last, written=written
        )
        gradient = self._join(sums[0] + sums[1], ends[0] + ends[1])
        direct = self._join(sums[2], ends[2]) + 4 * UNIT * np.abs(gradient)
        spread = 1.001 * np.sqrt(squares)[:, None] * self.column_norms
        logit_error = 4 * UNIT * float(sizes.max(initial=0.0)) + EXP_ERROR
        summing = (2 * self.n_logits + 8) * UNIT * spread + 4 * UNIT * np.abs(gradient)
        energy = self.sharing * float(np.sqrt(1.001 * energy))
        return Evaluation(
            gradient, np.zeros_like(gradient), logits, logit_error, energy, summing,
            1.001 * direct,
        )  # fmt: skip

    def _evaluate_of(
        self, portion: Portion, coefficients: Floats, last: Floats, logits: Floats, sizes: Floats
    ) -> _Sums:
        """Fill the logits of a portion of the rows, and sum up what the gradient is made of."""
        m, d = coefficients.shape
        data, indices, indptr = parts(self.matrix)
        rows = portion.rows
        sums = np.zeros((3, m, d))
        ends, squares, energy = np.zeros((3, m)), np.zeros(m), 0.0
        block = data, indices, indptr[rows.start : rows.stop + 1]
        weights, magnitudes = self.weights[rows], sizes[rows]
        _logits(block, weights, coefficients, last, logits[rows], magnitudes)
        slack = self.sharing * (4 * UNIT * magnitudes + EXP_ERROR) + (2 * m + 6) * UNIT
        for part in self._blocks(rows):
            residuals, lacking = self.residuals(logits[part], part)
            errors_here = 4 * UNIT * sizes[part] + EXP_ERROR
            energy += float((lacking * errors_here) @ errors_here)
            squares += np.einsum("ik,ik->k", residuals, residuals)
            block = data, indices, indptr[part.start : part.stop + 1]
            own = slack[part.start - rows.start : part.stop - rows.start]
            _scatter(block, self.weights[part], residuals, own, sums, ends)
        return sums, ends, squares, energy

    def energy(self, theta: Floats, logits: Floats) -> float:
        """See `SoftmaxDesign`: `evaluate` has found the sharpest already."""
        return np.inf

    def squared_rows(self, strengths: Floats) -> float:
        """See `SoftmaxDesign`."""
        unit = self.unit / np.sqrt(strengths)
        return _squares(parts(self.matrix), unit, self.weights, False, np.zeros(unit.size))

    def exactly_of(self, portion: Portion, theta: Floats, rest: Floats) -> Exact:
        """See `SoftmaxDesign`."""
        data, indices, indptr = parts(self.matrix)
        rows = portion.rows
        (gradient, low), squares = np.zeros((2, *theta.shape)), np.zeros(self.n_logits)
        missing = exact_gradient_sparse(
            data, indices, indptr[rows.start : rows.stop + 1], self.unit, self.weights[rows],
            self.codes[rows], self.reference, self.intercept, theta, rest, gradient, low,
            squares,
        )  # fmt: skip
        return (gradient, low), squares, missing

    def _weighted(self, portion: Portion, part: slice, weights: Floats) -> Floats:
        return self._dense(np.arange(part.start, part.stop), weights)

    def multiply(self, chances: Floats, directions: Floats) -> Floats:
        """See `SoftmaxDesign`."""
        unit = np.append(self.unit, 1.0) if self.intercept else self.unit
        multiply = SparseDesign._multiply_of
        found: Floats = self.reduce(multiply, add, directions * unit, read=[chances])
        return found * unit

    def _multiply_of(self, portion: Portion, coefficients: Floats, chances: Floats) -> Floats:
        data, indices, indptr = parts(self.matrix)
        rows, out = portion.rows, np.zeros_like(coefficients)
        block = data, indices, indptr[rows.start : rows.stop + 1]
        _multiply(block, chances[rows], self.weights[rows], coefficients, self.intercept, out)
        return out

    def diagonal(self, chances: Floats) -> Floats:
        """See `SoftmaxDesign`."""
        p = chances * (1.0 - chances) * self.weights[:, None]
        body = np.zeros((self.n_logits, self.unit.size))
        _add_squares(parts(self.matrix), self.weights, p, body)
        return self._join(body * self.unit, p.sum(axis=0))

    def _rows_precisely(self, portion: Portion, rows: Ints) -> Pair:
        """See `SoftmaxDesign`."""
        units = self.rows(rows)
        return units, np.zeros_like(units)

    def rows(self, rows: Ints) -> Floats:
        """See `SoftmaxDesign`."""
        return self._dense(rows, np.ones(rows.size))

    def _dense(self, rows: Ints, weights: Floats) -> Floats:
        out = np.zeros((rows.size, self.width))
        _densify(parts(self.matrix), self.unit, rows, weights, self.intercept, out)
        return out

    def _origin_left(self) -> Floats:
        return np.zeros_like(self.origin)


_Sums: TypeAlias = tuple[Floats, Floats, Floats, float]
"""Sums of a gradient and of intercepts; squares of the residuals, by logit; energy."""


def _joined(one: _Sums, other: _Sums) -> _Sums:
    sums, ends = _compensated(one[0], other[0]), _compensated(one[1], other[1])
    return sums, ends, one[2] + other[2], one[3] + other[3]


def _compensated(sums: Floats, more: Floats) -> Floats:
    """Add to sums, their low parts and errors, which the first axis tells apart."""
    high, error = two_sum_arrays(sums[0], more[0])
    return np.stack([high, sums[1] + (more[1] + error), sums[2] + more[2]])


@kernel
def _squares(matrix: Csr, unit: Floats, weights: Floats, intercept: bool, sums: Floats) -> float:
    """Add to `sums` the squares of every column, and return the largest sum of a row."""
    data, indices, indptr = matrix
    largest = 0.0
    for i in range(weights.size):
        if weights[i] == 0.0:
            continue
        row, columns = data[indptr[i] : indptr[i + 1]], indices[indptr[i] : indptr[i + 1]]
        total = 0.0
        for e in range(row.size):
            j = np.uint64(columns[e])
            value = np.float64(row[e]) * unit[j]
            sums[j] += value * value
            total += value * value
        if intercept:
            sums[unit.size] += 1.0
            total += 1.0
        largest = max(largest, total)
    return largest


@kernel
def _logits(
    matrix: Csr, weights: Floats, coefficients: Floats, last: Floats, logits: Floats, sizes: Floats
) -> None:
    """Fill `logits`, by compensated sums, and `sizes` with the magnitudes of their terms."""
    data, indices, indptr = matrix
    for i in range(sizes.size):
        if weights[i] == 0.0:
            continue
        row, columns = data[indptr[i] : indptr[i + 1]], indices[indptr[i] : indptr[i + 1]]
        for k in range(last.size):
            own = coefficients[k]
            total, low, size = last[k], 0.0, abs(last[k])
            for e in range(row.size):
                term = np.float64(row[e]) * own[np.uint64(columns[e])]
                total, error = two_sum(total, term)
                low += error
                size += abs(term)
            logits[i, k] = total + low
            sizes[i] = max(sizes[i], size)


@kernel
def _scatter(
    matrix: Csr, weights: Floats, residuals: Floats, slack: Floats, sums: Floats, ends: Floats
) -> None:
    """Add ``residuals.T @ rows`` to `sums`, and its error for a relative `slack`.

    `sums`, of shape (3, m, d), are sums, their low parts and errors; `ends` those of intercepts.
    """
    data, indices, indptr = matrix
    n, m = residuals.shape
    for i in range(n):
        if weights[i] == 0.0:
            continue
        for k in range(m):
            ends[0, k], error = two_sum(ends[0, k], residuals[i, k])
            ends[1, k] += error
            ends[2, k] += abs(residuals[i, k]) * slack[i]
        row, columns = data[indptr[i] : indptr[i + 1]], indices[indptr[i] : indptr[i + 1]]
        for k in range(m):
            of_sums, of_low, of_errors, share = sums[0, k], sums[1, k], sums[2, k], residuals[i, k]
            for e in range(row.size):
                j, term = np.uint64(columns[e]), share * np.float64(row[e])
                of_sums[j], error = two_sum(of_sums[j], term)
                of_low[j] += error
                of_errors[j] += abs(term) * slack[i]


@kernel
def _multiply(
    matrix: Csr,
    chances: Floats,
    weights: Floats,
    coefficients: Floats,
    intercept: bool,
    sums: Floats,
) -> None:
    """Add the Hessian times a direction, of shape (m, D), to `sums`."""
    data, indices, indptr = matrix
    n, m = chances.shape
    d = coefficients.shape[1] - intercept
    z = np.zeros(m)
    for i in range(n):
        if weights[i] == 0.0:
            continue
        row, columns = data[indptr[i] : indptr[i + 1]], indices[indptr[i] : indptr[i + 1]]
        mean = 0.0
        for k in range(m):
            own, total = coefficients[k], coefficients[k, d] if intercept else 0.0
            for e in range(row.size):
                total += np.float64(row[e]) * own[np.uint64(columns[e])]
            z[k] = total
            mean += chances[i, k] * total
        for k in range(m):
            own, share = sums[k], weights[i] * chances[i, k] * (z[k] - mean)
            if intercept:
                own[d] += share
            for e in range(row.size):
                own[np.uint64(columns[e])] += share * np.float64(row[e])


@kernel
def _add_squares(matrix: Csr, weights: Floats, shares: Floats, sums: Floats) -> None:
    """Add to `sums` the squares of every column, with the shares of the rows."""
    data, indices, indptr = matrix
    n, m = shares.shape
    for i in range(n):
        if weights[i] == 0.0:
            continue
        row, columns = data[indptr[i] : indptr[i + 1]], indices[indptr[i] : indptr[i + 1]]
        for k in range(m):
            own, share = sums[k], shares[i, k]
            for e in range(row.size):
                own[np.uint64(columns[e])] += share * np.float64(row[e]) * np.float64(row[e])


@kernel
def _densify(
    matrix: Csr, unit: Floats, rows: Ints, weights: Floats, intercept: bool, out: Floats
) -> None:
    """Write weighted rows, in units, to a matrix of zeros."""
    data, indices, indptr = matrix
    for i in range(rows.size):
        if weights[i] == 0.0:
            continue
        for e in range(indptr[rows[i]], indptr[rows[i] + 1]):
            j = indices[e]
            out[i, j] = np.float64(data[e]) * unit[j] * weights[i]
        if intercept:
            out[i, unit.size] = weights[i]


def _with_zeros(matrix: csr_array, columns: Ints) -> csr_array:
    """Store every value of some columns, zeros too."""
    chosen = np.zeros(matrix.shape[1], dtype=np.bool_)
    chosen[columns] = True
    others = ~chosen[matrix.indices]
    rows = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))
    cells = (
        np.concatenate([rows[others], np.repeat(np.arange(matrix.shape[0]), columns.size)]),
        np.concatenate([matrix.indices[others], np.tile(columns, matrix.shape[0])]),
    )
    values = np.concatenate([matrix.data[others], matrix[:, columns].toarray().ravel()])
    filled = csr_array(coo_array((values, cells), shape=matrix.shape))
    filled.sort_indices()
    return filled
