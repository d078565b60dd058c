"""Dense records as a softmax model sees them; see `_softmax_design`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from erasable.core.arrays import Floats, Ints
from erasable.linear_model import _softmax_kernels as kernels
from erasable.linear_model._exact_gradients import exact_gradient
from erasable.linear_model._lattice import Pair, pair_sum
from erasable.linear_model._softmax_design import BLOCK, UNIT, Evaluation, SoftmaxDesign
from erasable.linear_model._softmax_kernels import EXP_ERROR

_CHUNK = 256
_WIDEST = 2000


class DenseDesign(SoftmaxDesign):
    """Rows of a C-contiguous matrix.

    Parameters
    ----------
    matrix : ndarray of shape (n, d), float64 or float32
    others
        See `SoftmaxDesign`.

    Examples
    --------
    >>> X, codes = np.array([[1.0], [0.5]]), np.array([0, 1], dtype=np.int32)
    >>> design = DenseDesign(X, np.ones(2), codes, 1, True, True, np.zeros(1), np.ones(1))
    >>> design.evaluate(np.zeros((1, 2))).gradient
    array([[-0.25,  0.  ]])
    """

    def __init__(self, matrix: NDArray[Any], *others: Any) -> None:
        super().__init__(matrix, *others)
        # Rows that do not count may hold anything in records that others hold.
        with np.errstate(over="ignore", invalid="ignore"):
            finite = bool((self.weights > 0).all()) or bool(np.isfinite(matrix.sum()))
        self._plain = matrix.dtype == np.float64 and not self.origin.any() and finite
        self._ones = np.ones((min(BLOCK, self.n_rows), 1))
        self._measure()

    def _measure(self) -> None:
        squares, largest = np.zeros(self.width), 0.0
        for _, tile in self._tiles(True):
            squares += np.ones(tile.shape[0]) @ (tile * tile)
            largest = max(largest, float(np.einsum("ij,ij->i", tile, tile).max()))
        self.column_norms = 1.001 * np.sqrt(squares)
        self.row_norm = 1.001 * float(np.sqrt(largest))

    def _tiles(self, ones: bool) -> Iterator[tuple[slice, Floats]]:
        """Yield blocks of rows in units, or, where it saves a copy, rows as they are.

        With `ones` always in units and with the intercept's column.
        """
        whole = ones or not self._plain
        width = self.width if ones else self.unit.size
        scratch = np.zeros((min(BLOCK, self.n_rows), width) if whole else (0, 0))
        for part in self._blocks():
            if not whole:
                yield part, self.matrix[part]
                continue
            counts = (self.weights[part] > 0).astype(np.float64)
            tile = scratch[: counts.size]
            kernels.tile(
                self.matrix[part], self.origin, self.unit, counts, ones and self.intercept, tile
            )
            yield part, tile

    def evaluate(self, theta: Floats) -> Evaluation:
        """See `SoftmaxDesign`: one pass over the rows."""
        m, d = self.n_logits, self.unit.size
        wide = m * d > _WIDEST
        coefficients, last = self._split(theta)
        (sums, low), (ends, ends_low) = np.zeros((2, m, d)), np.zeros((2, m, 1))
        squares, missing = np.zeros(m), 0.0
        logits = np.zeros((self.n_rows, m))
        with np.errstate(over="ignore", invalid="ignore"):  # of rows that do not count
            for part, tile in self._tiles(False):
                z = logits[part]
                if wide:
                    np.matmul(tile, coefficients.T, out=z)
                    z += last
                else:
                    kernels.dots(tile, coefficients, last, z)
                residuals, lacking = self.residuals(z, part)
                missing += float(lacking.sum())
                squares += np.einsum("ik,ik->k", residuals, residuals)
                if wide:
                    sums += _products(residuals, tile)
                else:
                    kernels.add_products(residuals, tile, sums, low)
                kernels.add_products(residuals, self._ones[: z.shape[0]], ends, ends_low)
        gradient = self._join(sums + low, ends + ends_low)
        logit_error = self._depth * UNIT * self.logit_bound(theta) + EXP_ERROR
        depth = 2 * m + 7  # a residual's 2 m + 1, a unit, a product, two sums and one at the end
        if wide:
            depth += _CHUNK + BLOCK // _CHUNK + -(-self.n_rows // BLOCK)
        spread = 1.001 * np.sqrt(squares)[:, None] * self.column_norms
        summing = depth * UNIT * spread + 4 * UNIT * np.abs(gradient)
        energy = self.sharing * logit_error * float(np.sqrt(1.001 * missing))
        return Evaluation(
            gradient, np.zeros_like(gradient), logits, logit_error, energy, summing,
            summing + self.sharing * logit_error * spread,
        )  # fmt: skip

    @property
    def _depth(self) -> int:
        """How many roundings a logit takes at most, with those of the softmax."""
        wide = self.n_logits * self.unit.size > _WIDEST
        return (self.width if wide else self.width // 8 + 8) + 10

    def _split(self, theta: Floats) -> tuple[Floats, Floats]:
        d = self.unit.size
        body = theta[:, :d] * self.unit if self._plain else np.ascontiguousarray(theta[:, :d])
        return body, theta[:, d].copy() if self.intercept else np.zeros(theta.shape[0])

    def _join(self, body: Floats, last: Floats) -> Floats:
        if self._plain:
            body = body * self.unit
        return np.hstack([body, last]) if self.intercept else body

    def energy(self, theta: Floats, logits: Floats) -> float:
        """See `SoftmaxDesign`: with the magnitudes of the terms of every logit."""
        size, last = self._split(np.abs(theta).max(axis=0)[None, :])
        total = 0.0
        with np.errstate(over="ignore", invalid="ignore"):
            for part, tile in self._tiles(False):
                sizes = np.zeros((tile.shape[0], 1))
                kernels.dots(np.abs(tile), size, last, sizes)
                missing = self.residuals(logits[part], part)[1]
                errors = 1.001 * self._depth * UNIT * sizes[:, 0] + EXP_ERROR
                errors[missing == 0.0] = 0.0
                total += float((missing * errors) @ errors)
        return self.sharing * float(np.sqrt(1.001 * total))

    def squared_rows(self, strengths: Floats) -> float:
        """See `SoftmaxDesign`."""
        largest = 0.0
        for _, tile in self._tiles(True):
            part = tile[:, : strengths.size] / np.sqrt(strengths)
            largest = max(largest, float(np.einsum("ij,ij->i", part, part).max()))
        return largest

    def evaluate_exactly(self, theta: Floats, rest: Floats) -> Evaluation:
        """See `SoftmaxDesign`: in double-double arithmetic."""
        m = self.n_logits
        (gradient, low), squares = np.zeros((2, m, self.width)), np.zeros(m)
        missing = exact_gradient(
            self.matrix, self.origin, self.unit, self.weights, self.codes, self.reference,
            self.intercept, theta, rest, gradient, low, squares,
        )  # fmt: skip
        return self._exact(theta, gradient, low, squares, missing)

    def _weighted(self, part: slice, weights: Floats) -> Floats:
        out = np.zeros((weights.size, self.width))
        kernels.tile(self.matrix[part], self.origin, self.unit, weights, self.intercept, out)
        return out

    def multiply(self, chances: Floats, directions: Floats) -> Floats:
        """See `SoftmaxDesign`."""
        coefficients, last = self._split(directions)
        body, ends = np.zeros_like(coefficients), np.zeros((self.n_logits, 1))
        for part, tile in self._tiles(False):
            z = tile @ coefficients.T + last
            p = chances[part]
            z -= np.einsum("ik,ik->i", p, z)[:, None]
            z *= p * self.weights[part][:, None]
            body += z.T @ tile
            ends[:, 0] += z.sum(axis=0)
        return self._join(body, ends)

    def diagonal(self, chances: Floats) -> Floats:
        """See `SoftmaxDesign`."""
        out = np.zeros((self.n_logits, self.width))
        for part, tile in self._tiles(True):
            p = chances[part]
            out += (p * (1.0 - p) * self.weights[part][:, None]).T @ (tile * tile)
        return out

    def rows_precisely(self, rows: Ints) -> Pair:
        """See `SoftmaxDesign`."""
        high, low = np.ones((rows.size, self.width)), np.zeros((rows.size, self.width))
        matrix = self.matrix[rows].astype(np.float64, copy=False)
        difference = pair_sum((matrix, np.zeros_like(matrix)), (-self.origin, np.zeros(1)))
        d = self.unit.size
        high[:, :d], low[:, :d] = difference[0] * self.unit, difference[1] * self.unit
        return high, low

    def rows(self, rows: Ints) -> Floats:
        """See `SoftmaxDesign`."""
        out = np.zeros((rows.size, self.width))
        ones = np.ones(rows.size)
        kernels.tile(self.matrix[rows], self.origin, self.unit, ones, self.intercept, out)
        return out

    def take(self, rows: Ints, weights: Floats) -> DenseDesign:
        """See `SoftmaxDesign`."""
        return self._of_rows(rows, weights, self.origin)


def _products(residuals: Floats, tile: Floats) -> Floats:
    """Return ``residuals.T @ tile`` as a sum of sums of a few rows."""
    n, m = residuals.shape
    cut = n - n % _CHUNK
    total = residuals[cut:].T @ tile[cut:]
    if cut:
        left = residuals[:cut].reshape(-1, _CHUNK, m).transpose(0, 2, 1)
        total = total + np.matmul(left, tile[:cut].reshape(-1, _CHUNK, tile.shape[1])).sum(axis=0)
    return total
