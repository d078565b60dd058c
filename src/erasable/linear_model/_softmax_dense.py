"""Dense records as a softmax model sees them; see `_softmax_design`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

import erasable.linear_model._softmax_kernels as kernels
from erasable.core._function_kernels import EXP_ERROR
from erasable.core.arrays import Floats, Ints
from erasable.core.passes import InOrder, Portion
from erasable.core.tables import Table
from erasable.linear_model._exact_gradients import AT_ONCE, exact_gradient
from erasable.linear_model._lattice import Pair, pair_sum, two_sum
from erasable.linear_model._softmax_design import (
    BLOCK,
    UNIT,
    Evaluation,
    Exact,
    SoftmaxDesign,
    add,
)

_CHUNK = 256
_WIDEST = 2000
_CACHED = 2**17
"""Values of a block that are still in cache when they are read a second time."""


class DenseDesign(SoftmaxDesign):
    """Rows of a C-contiguous or a stored matrix."""

    def __init__(self, matrix: Any, *others: Any) -> None:
        super().__init__(matrix, *others)
        self._plain = self._is_plain()
        self._measure()

    def _is_plain(self) -> bool:
        """Whether values are used as they are: finite float64, also in rows that do not count."""
        if self.matrix.dtype != np.float64 or self.origin.any():
            return False
        if Table(self.matrix).is_stored or bool((self.weights > 0).all()):
            return True  # rows of stored tables are finite
        with np.errstate(over="ignore", invalid="ignore"):  # in records that others hold
            return bool(np.isfinite(self.matrix[self.weights == 0].sum()))

    def take_matrix(self, matrix: Any) -> bool:
        """See `SoftmaxDesign`."""
        super().take_matrix(matrix)
        self._plain = self._is_plain()
        return True

    def _measure(self) -> None:
        squares, largest = self.reduce(DenseDesign._measure_of, _joined)
        self.column_norms = 1.001 * np.sqrt(squares)
        self.row_norm = 1.001 * float(np.sqrt(largest))

    def _measure_of(self, portion: Portion) -> tuple[Floats, float]:
        squares, largest = np.zeros(self.width), 0.0
        for _, tile in self._tiles(portion, True):
            squares += np.ones(tile.shape[0]) @ (tile * tile)
            largest = max(largest, float(np.einsum("ij,ij->i", tile, tile).max()))
        return squares, largest

    def _tiles(
        self, portion: Portion, ones: bool, step: int = BLOCK
    ) -> Iterator[tuple[slice, Floats]]:
        """Yield blocks of a portion of the rows in units, or, where it saves a copy, as they are.

        With `ones` always in units and with the intercept's column. `step` is the rows of a block.
        """
        whole = ones or not self._plain
        width = self.width if ones else self.unit.size
        rows = portion.rows
        scratch = np.zeros((min(step, rows.stop - rows.start), width) if whole else (0, 0))
        for part in self._blocks(rows, step):
            if not whole:
                yield part, portion.of(part)
                continue
            counts = (self.weights[part] > 0).astype(np.float64)
            tile = scratch[: counts.size]
            kernels.tile(
                portion.of(part), self.origin, self.unit, counts, ones and self.intercept, tile
            )
            yield part, tile

    def evaluate(self, theta: Floats) -> Evaluation:
        """See `SoftmaxDesign`: one pass over the rows."""
        m, d = self.n_logits, self.unit.size
        coefficients, last = self._split(theta)
        logits = np.zeros((self.n_rows, m))
        evaluate = DenseDesign._evaluate
        found = self.reduce(evaluate, _Sums.plus, coefficients, last, written=[logits])
        gradient = self._join(found.body + found.body_low, found.ends + found.ends_low)
        logit_error = self._depth * UNIT * self.logit_bound(theta) + EXP_ERROR
        depth = 2 * m + 7  # a residual's 2 m + 1, a unit, a product, two sums and one at the end
        if m * d > _WIDEST:
            depth += _CHUNK + BLOCK // _CHUNK + self._n_blocks
        spread = 1.001 * np.sqrt(found.squares)[:, None] * self.column_norms
        summing = depth * UNIT * spread + 4 * UNIT * np.abs(gradient)
        energy = self.sharing * logit_error * float(np.sqrt(1.001 * found.missing))
        return Evaluation(
            gradient, np.zeros_like(gradient), logits, logit_error, energy, summing,
            summing + self.sharing * logit_error * spread,
        )  # fmt: skip

    def _evaluate(
        self, portion: Portion, coefficients: Floats, last: Floats, logits: Floats
    ) -> _Sums:
        """Fill the logits of a portion of the rows, and sum up what the gradient is made of."""
        m, d = coefficients.shape
        n = portion.rows.stop - portion.rows.start
        wide = m * d > _WIDEST
        (sums, low), (ends, ends_low) = np.zeros((2, m, d)), np.zeros((2, m, 1))
        squares, missing = np.zeros(m), 0.0
        step = BLOCK if wide else BLOCK * max(1, min(_CACHED // (BLOCK * max(d, 1)), 16))
        ones = np.ones((min(step, n), 1))
        with np.errstate(over="ignore", invalid="ignore"):  # of rows that do not count
            for part, tile in self._tiles(portion, False, step):
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
                kernels.add_products(residuals, ones[: z.shape[0]], ends, ends_low)
        return _Sums(sums, low, ends, ends_low, squares, missing)

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
        found = self.reduce(DenseDesign._energy_of, add, size, last, read=[logits])
        return self.sharing * float(np.sqrt(1.001 * found))

    @np.errstate(over="ignore", invalid="ignore")
    def _energy_of(self, portion: Portion, size: Floats, last: Floats, logits: Floats) -> float:
        found = 0.0
        for part, tile in self._tiles(portion, False):
            sizes = np.zeros((tile.shape[0], 1))
            kernels.dots(np.abs(tile), size, last, sizes)
            missing = self.residuals(logits[part], part)[1]
            errors = 1.001 * self._depth * UNIT * sizes[:, 0] + EXP_ERROR
            errors[missing == 0.0] = 0.0
            found += float((missing * errors) @ errors)
        return found

    def squared_rows(self, strengths: Floats) -> float:
        """See `SoftmaxDesign`."""
        return self.reduce(DenseDesign._squared_rows_of, max, strengths)

    def _squared_rows_of(self, portion: Portion, strengths: Floats) -> float:
        largest = 0.0
        for _, tile in self._tiles(portion, True):
            part = tile[:, : strengths.size] / np.sqrt(strengths)
            largest = max(largest, float(np.einsum("ij,ij->i", part, part).max()))
        return largest

    def exactly_of(self, portion: Portion, theta: Floats, rest: Floats) -> Exact:
        """See `SoftmaxDesign`."""
        m = self.n_logits
        (gradient, low), squares, missing = np.zeros((2, m, self.width)), np.zeros(m), 0.0
        rows = portion.rows
        # The kernel adds up so many rows that count, and all of these do: the same sums.
        step = AT_ONCE if isinstance(portion.matrix, InOrder) else rows.stop - rows.start
        for start in range(rows.start, rows.stop, max(step, 1)):
            part = slice(start, min(start + step, rows.stop))
            missing += exact_gradient(
                portion.of(part), self.origin, self.unit, self.weights[part],
                self.codes[part], self.reference, self.intercept, theta, rest, gradient, low,
                squares,
            )  # fmt: skip
        return (gradient, low), squares, missing

    def _weighted(self, portion: Portion, part: slice, weights: Floats) -> Floats:
        out = np.zeros((weights.size, self.width))
        kernels.tile(portion.of(part), self.origin, self.unit, weights, self.intercept, out)
        return out

    def multiply(self, chances: Floats, directions: Floats) -> Floats:
        """See `SoftmaxDesign`."""
        coefficients, last = self._split(directions)
        multiply = DenseDesign._multiply_of
        return self._join(*self.reduce(multiply, add, coefficients, last, read=[chances]))

    def _multiply_of(
        self, portion: Portion, coefficients: Floats, last: Floats, chances: Floats
    ) -> tuple[Floats, Floats]:
        body, ends = np.zeros_like(coefficients), np.zeros((self.n_logits, 1))
        for part, tile in self._tiles(portion, False):
            z = tile @ coefficients.T + last
            p = chances[part]
            z -= np.einsum("ik,ik->i", p, z)[:, None]
            z *= p * self.weights[part][:, None]
            body += z.T @ tile
            ends[:, 0] += z.sum(axis=0)
        return body, ends

    def diagonal(self, chances: Floats) -> Floats:
        """See `SoftmaxDesign`."""
        return self.reduce(DenseDesign._diagonal_of, add, read=[chances])

    def _diagonal_of(self, portion: Portion, chances: Floats) -> Floats:
        out = np.zeros((self.n_logits, self.width))
        for part, tile in self._tiles(portion, True):
            p = chances[part]
            out += (p * (1.0 - p) * self.weights[part][:, None]).T @ (tile * tile)
        return out

    def _rows_precisely(self, portion: Portion, rows: Ints) -> Pair:
        """See `SoftmaxDesign`."""
        high, low = np.ones((rows.size, self.width)), np.zeros((rows.size, self.width))
        matrix = portion.at(rows).astype(np.float64, copy=False)
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


class _Sums(NamedTuple):
    """Sums of a gradient and their low parts; the intercept's are the ends."""

    body: Floats  # shape (m, d)
    body_low: Floats
    ends: Floats  # shape (m, 1)
    ends_low: Floats
    squares: Floats  # of the residuals, by logit
    missing: float  # sum of what the probabilities of the records' classes lack

    def plus(self, part: _Sums) -> _Sums:
        """Return the sum of two."""
        body, body_error = two_sum(self.body, part.body)
        ends, ends_error = two_sum(self.ends, part.ends)
        return _Sums(
            body, self.body_low + (part.body_low + body_error),
            ends, self.ends_low + (part.ends_low + ends_error),
            self.squares + part.squares, self.missing + part.missing,
        )  # fmt: skip


def _joined(one: tuple[Floats, float], other: tuple[Floats, float]) -> tuple[Floats, float]:
    """Join squares of columns and the largest of rows, of two sets of rows."""
    return one[0] + other[0], max(one[1], other[1])


def _products(residuals: Floats, tile: Floats) -> Floats:
    """Return ``residuals.T @ tile`` as a sum of sums of a few rows."""
    n, m = residuals.shape
    cut = n - n % _CHUNK
    total = residuals[cut:].T @ tile[cut:]
    if cut:
        left = residuals[:cut].reshape(-1, _CHUNK, m).transpose(0, 2, 1)
        total = total + np.matmul(left, tile[:cut].reshape(-1, _CHUNK, tile.shape[1])).sum(axis=0)
    return total
