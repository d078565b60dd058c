"""Records as a softmax model sees them: gradients and Hessians, with bounds of their rounding.

Everything is in *units* of the columns: ``u = (x - origin) / 2**top``, so that no value of a live
record exceeds 1, and a coefficient is a change of the logit. Origins and powers of two are exact
(`erasable.core.grid`), so the problem in these units is the problem.

The law kept here: every result is as near to the exact value as its bound says, on every
machine, with every BLAS. The bounds hold for sums in any order: ``gamma_n`` for n terms at a time
(Higham, "Accuracy and Stability of Numerical Algorithms", section 3.1).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce as fold
from typing import Any, Self, TypeAlias, TypeVar

import numpy as np

import erasable.linear_model._softmax_kernels as kernels
from erasable.core import threads
from erasable.core.arrays import Floats, Ints, Ints32, Matrix
from erasable.core.passes import Block, Pass, Portion, storage
from erasable.core.persistent import Persistent
from erasable.core.row_arrays import PerLiveRow, PerRow, RowArray, Written, padded
from erasable.core.tables import Table
from erasable.linear_model._lattice import Pair, pair_sum
from erasable.linear_model._softmax_exact import add_products
from erasable.linear_model._softmax_kernels import shares

Exact: TypeAlias = tuple[Pair, Floats, float]
"""A gradient as a pair, the squares of the residuals, and the sum of ``s (1 - p)``."""


class There(Pass[Any]):
    """Call a method of a design of a block's rows."""

    def __init__(
        self,
        design: SoftmaxDesign,
        sent: tuple[PerRow, PerRow],
        function: Callable[..., Any],
        merge: Callable[[Any, Any], Any],
        params: tuple[Any, ...],
        read: Sequence[Floats],
        written: Sequence[Floats],
    ) -> None:
        nothing = np.empty((0, design.unit.size)), np.zeros(0), np.empty(0, np.int32)
        self._design, self._function, self._merge = design.local(*nothing), function, merge
        (self._weights, self._codes), self._params = sent, params
        self._read = [PerLiveRow(each) for each in read]
        self._written = [Written(each) for each in written]

    def row_arrays(self) -> list[RowArray]:
        return [self._weights, self._codes, *self._read, *self._written]

    def of_block(self, block: Block) -> Any:
        weights, codes = self._weights.of(block), self._codes.of(block)
        design = self._design.local(block.matrix, weights, codes)
        portion = Portion(slice(0, block.size), block.matrix, 0)
        arrays = [each.of(block) for each in (*self._read, *self._written)]
        return self._function(design, portion, *self._params, *arrays)

    def merge(self, one: Any, other: Any) -> Any:
        return self._merge(one, other)


def add(one: Any, other: Any) -> Any:
    """Add up arrays, or numbers, or each of several; arrays of `one` are overwritten."""
    if isinstance(one, tuple):
        return tuple([add(*pair) for pair in zip(one, other, strict=True)])
    one += other
    return one


def add_exactly(one: Exact, other: Exact) -> Exact:
    """Add up gradients in double-double arithmetic.

    >>> half = (np.array([1.0]), np.array([2.0**-60])), np.array([4.0]), 0.5
    >>> (high, low), squares, missing = add_exactly(half, half)
    >>> high, low == 2.0**-59, squares, missing
    (array([2.]), array([ True]), array([8.]), 1.0)
    """
    return pair_sum(one[0], other[0]), one[1] + other[1], one[2] + other[2]


def couplings(logits: Floats, weights: Floats, reference: bool) -> Pair:
    """Return the Hessians of records in their logits, shape (n, m, m), as a pair.

    They are ``s p_k p_l`` for two classes, rounded, and exact sums of these: so rounding changes
    the form ``s sum_kl p_k p_l (z_k - z_l)**2 / 2`` by a share of itself.
    """
    n, m = logits.shape
    chances = shares(logits, reference)
    chances /= chances.sum(axis=1, keepdims=True)
    both = chances[:, :m, None] * chances[:, None, :] * weights[:, None, None]
    high, low = -both[:, :, :m], np.zeros((n, m, m))
    for k in range(m):
        total: Pair = np.zeros(n), np.zeros(n)
        for other in range(m + 1):
            if other != k:
                total = pair_sum(total, (both[:, k, other], np.zeros(n)))
        high[:, k, k], low[:, k, k] = total
    return high, low


def mirrored(half: Floats) -> Floats:
    """Complete blocks (k, :, l, :) of which the lower halves are filled."""
    m, width = half.shape[:2]
    columns = np.arange(width)
    whole = half + half.transpose(0, 3, 2, 1)
    whole[:, columns, :, columns] = half[:, columns, :, columns]
    return whole.reshape(m * width, m * width)


Made = TypeVar("Made")

UNIT = 2.0**-53
BLOCK = 2048
_NO_NUMBERS: Floats = np.zeros(0)
_NOT_KEPT = ("n_jobs", "_per_row")


@dataclass(slots=True)
class Evaluation:
    """The gradient of the loss at some coefficients, of shape (m, D), and bounds of its error."""

    # without the penalty's part; the last column is the intercept's, where there is one
    gradient: Floats
    rest: Floats  # to be added to `gradient`; 0 in simple precision
    logits: Floats  # shape (n, m), in simple precision in any case
    logit_error: float  # of any logit of a record with a weight, with the exponential's own error
    # bounds what errors of logits do, in the norm of the inverse of the loss's Hessian
    energy: float
    summing: Floats  # error of the gradient for given probabilities
    direct: Floats  # error of the gradient altogether
    precise: bool = False  # in twice the precision?


class SoftmaxDesign(Persistent, ABC):
    """Records, their classes and weights; see `DenseDesign` and `SparseDesign`."""

    def __init__(
        self,
        matrix: Any,
        weights: Floats,
        codes: Ints32,
        n_logits: int,
        reference: bool,
        intercept: bool,
        origin: Floats,
        unit: Floats,
        n_jobs: int | None = None,
    ) -> None:
        # Weights are 0 for rows that do not count; codes are 0 to m - 1, m for the reference class.
        self.matrix, self.weights, self.codes = matrix, weights, codes
        # `n_logits` is m; with `reference` there is one more class, whose logit is 0.
        self.n_logits, self.reference, self.intercept = n_logits, reference, intercept
        self.origin, self.unit = origin, unit  # u = (x - origin) * unit
        # bounds of the Euclidean norms, the intercept's column included
        self.column_norms = _NO_NUMBERS
        self.row_norm = 0.0  # bound of those of rows, with the intercept's 1
        self.portion = threads.ROWS  # rows that are summed up by themselves
        self.n_jobs = n_jobs
        self._per_row: tuple[PerRow, PerRow] | None = None  # weights and codes, as they were sent

    def _kept_attributes(self) -> dict[str, Any]:
        """Return what a file keeps."""
        return {name: each for name, each in vars(self).items() if name not in _NOT_KEPT}

    def _after_reading(self) -> None:
        self.n_jobs = self._per_row = None

    @property
    def n_rows(self) -> int:
        """Number of rows, those without weight included."""
        return int(self.weights.size)

    @property
    def width(self) -> int:
        """Number of coefficients of a logit, the intercept included."""
        return int(self.unit.size) + int(self.intercept)

    @property
    def sharing(self) -> float:
        """How much an error of the logits may change a residual, relative to the two.

        ``|dp_k| <= 2 p_k (1 - p_k) max |dz|``, half of it if there is but one logit.
        """
        return 1.0 if self.n_logits == 1 else 2.0

    @abstractmethod
    def squared_rows(self, strengths: Floats) -> float:
        """Return the largest sum of ``u_j**2 / strength_j`` of a row, without the intercept."""

    @abstractmethod
    def evaluate(self, theta: Floats) -> Evaluation:
        """Return the gradient of the loss at `theta`, of shape (m, D)."""

    @abstractmethod
    def energy(self, theta: Floats, logits: Floats) -> float:
        """Return a sharper bound of the energy of an evaluation at `theta`.

        Errors e of the logits make an error ``X' S J e`` of the gradient, of which the square of
        the norm is at most ``sum_i s_i Var_i(e)``, and ``Var(e) <= 4 (1 - p) max |e|**2`` with any
        p of a class; a quarter of it where there is one logit.
        """

    def evaluate_exactly(self, theta: Floats, rest: Floats) -> Evaluation:
        """Return the gradient at ``theta + rest``, computed with about 100 bits."""
        found = self.reduce(type(self).exactly_of, add_exactly, theta, rest)
        (gradient, rest), squares, missing = found
        # A sum is right to 3 units of 2**-106, a product to 7, an exponential to 2**-98 (Joldes,
        # Muller and Popescu, "Tight and rigorous error bounds for basic building blocks of
        # double-word arithmetic", 2017).
        error = 2.0**-98 + 2.0**-102 * (self.width + 16) * self.logit_bound(theta)
        energy = self.sharing * error * float(np.sqrt(1.001 * missing))
        spread = 1.001 * np.sqrt(squares)[:, None] * self.column_norms
        summing = (0.25 * self.n_rows + 2 * self.n_logits + 32) * 2.0**-102 * spread
        simple = self.evaluate(theta)
        return Evaluation(
            gradient, rest, simple.logits, 2.0 * simple.logit_error, energy, summing,
            summing + self.sharing * error * spread, precise=True,
        )  # fmt: skip

    @abstractmethod
    def exactly_of(self, portion: Portion, theta: Floats, rest: Floats) -> Exact:
        """Return what a portion adds to the gradient, in double-double arithmetic."""

    def hessian(self, logits: Floats) -> Floats:
        """Return the Hessian of the loss, shape (m D, m D), at given logits."""
        size = self.n_logits * self.width
        found: Floats = self.reduce(type(self).hessian_of, add, read=[logits])
        return found.reshape(size, size)

    def hessian_of(self, portion: Portion, logits: Floats) -> Floats:
        """Return what a portion adds to the Hessian, shape (m, D, m, D)."""
        m, width = self.n_logits, self.width
        out = np.zeros((m, width, m, width))
        for part in self._blocks(portion.rows):
            own, shared = self._curvatures(logits, part)
            for k in range(m):
                tile = self._weighted(portion, part, own[k])
                out[k, :, k] += tile.T @ tile
            if m > 1:
                tiles = np.hstack([self._weighted(portion, part, each) for each in shared])
                products = (tiles.T @ tiles).reshape(out.shape)
                for k in range(m):
                    products[k, :, k] = 0.0
                out -= products
        return out

    @abstractmethod
    def _weighted(self, portion: Portion, part: slice, weights: Floats) -> Floats:
        """Return a block of rows of a portion, each times a weight, as a new array."""

    def hessian_precisely(self, logits: Floats) -> Pair:
        """Return the same as a pair, for weights of the records that are right in float64."""
        m, width = self.n_logits, self.width
        high, low = np.zeros((2, m, width, m, width))

        def of_portion(portion: Portion) -> None:
            for part in self._blocks(portion.rows):
                rows = np.arange(part.start, part.stop)
                rows = rows[self.weights[rows] > 0]
                shares = couplings(logits[rows], self.weights[rows], self.reference)
                add_products(*self._rows_precisely(portion, rows), *shares, high, low)

        for _ in storage(self.matrix).portions(of_portion, self.weights, 1, self.portion):
            pass
        return mirrored(high), mirrored(low)

    @abstractmethod
    def _rows_precisely(self, portion: Portion, rows: Ints) -> Pair:
        """Return some rows of a portion in units, as a pair."""

    @abstractmethod
    def multiply(self, chances: Floats, directions: Floats) -> Floats:
        """Return the Hessian of the loss times `directions`, at given probabilities."""

    @abstractmethod
    def diagonal(self, chances: Floats) -> Floats:
        """Return the diagonal of the Hessian of the loss, shape (m, D), at given probabilities."""

    @abstractmethod
    def rows(self, rows: Ints) -> Floats:
        """Return some rows in units, shape (len(rows), D)."""

    def take(self, rows: Ints, weights: Floats) -> Self:
        """Copy some rows, with other weights."""
        return self._of_rows(self.matrix[rows], rows, weights)

    def in_order(self, rows: Ints, weights: Floats) -> Self:
        """Return the same, with one sum of all rows; stored ones stay where they are."""
        made = self._of_rows(storage(self.matrix).in_order(rows), rows, weights, 1)
        made.portion = rows.size
        return made

    def _of_rows(self, matrix: Any, rows: Ints, weights: Floats, n_jobs: int | None = None) -> Self:
        return type(self)(
            matrix, weights, self.codes[rows], self.n_logits, self.reference,
            self.intercept, self._origin_left(), self.unit, n_jobs,
        )  # fmt: skip

    def _origin_left(self) -> Floats:
        """Return what is still to be subtracted from the values of `matrix`."""
        return self.origin

    def take_matrix(self, matrix: Any) -> bool:
        """Refer to a matrix with room for other rows; false, unchanged, where rows were copied."""
        self.matrix, self._per_row = matrix, None
        self.weights = padded(self.weights, matrix.shape[0])
        self.codes = padded(self.codes, matrix.shape[0], -1)
        return True

    def learn(self, rows: Ints, codes: Ints32) -> None:
        """Have rows count that did not, with the weight 1."""
        self.weights[rows], self.codes[rows] = 1.0, codes
        self._per_row = None
        squares = self.rows(rows) ** 2
        # What was may be of rows that have gone since: only larger than it has to be.
        self.column_norms = 1.001 * np.sqrt(self.column_norms**2 + squares.sum(axis=0))
        self.row_norm = max(self.row_norm, 1.001 * float(np.sqrt(squares.sum(axis=1).max())))

    def forget(self, rows: Ints) -> None:
        """Take rows out; what is known of them is overwritten."""
        self.weights[rows] = 0.0
        self.codes[rows] = -1
        self._per_row = None

    @property
    def _n_blocks(self) -> int:
        """How many blocks are summed up by themselves, at most."""
        return int((-(-np.diff(storage(self.matrix).starts) // BLOCK)).sum())

    @property
    def hessian_error(self) -> float:
        """Error of an element (i, j) of `hessian`, relative to the root of (i, i) times (j, j)."""
        return (min(BLOCK, self.n_rows) + self._n_blocks + 40) * UNIT

    def logit_bound(self, theta: Floats) -> float:
        """Bound the sum of the magnitudes of the terms of any logit."""
        size = np.abs(theta).max(axis=0)
        return float(min(size.sum(), 1.01 * np.sqrt(size @ size) * self.row_norm))

    def residuals(self, logits: Floats, rows: slice | Ints) -> tuple[Floats, Floats]:
        """Return residuals of rows with `logits`, and ``s (1 - p)`` of each."""
        codes, weights = self.codes[rows], self.weights[rows]
        out, missing = np.zeros(logits.shape), np.zeros(logits.shape[0])
        if self.n_logits == 1 and self.reference:
            kernels.residuals_of_one(logits[:, 0], codes, weights, out[:, 0])
            return out, np.abs(out[:, 0])
        kernels.residuals_of_many(logits, codes, weights, self.reference, out, missing)
        return out, missing

    def chances(self, logits: Floats) -> Floats:
        """Return the probabilities of the m classes that have a logit, shape (n, m)."""
        out = np.zeros_like(logits)
        kernels.probabilities(logits, self.reference, out)
        return out

    def reduce(
        self,
        function: Callable[..., Made],
        merge: Callable[[Made, Made], Made],
        *params: Any,
        read: Sequence[Floats] = (),
        written: Sequence[Floats] = (),
    ) -> Made:
        """Call a method with portions of the rows, where these are, and merge what it returns.

        `function` is called with the design of a portion, `params`, and the portion's lines of
        `read` and `written`, which have a line for each row. `merge` is a function of a module.
        """
        table = Table(self.matrix)
        if not table.is_remote:
            arrays = *read, *written
            every = storage(self.matrix).portions(
                lambda portion: function(self, portion, *params, *arrays),
                self.weights, self.n_jobs, self.portion,
            )  # fmt: skip
            return fold(merge, every)
        sent = self._per_row
        if sent is None or sent[0].values is not self.weights:
            sent = self._per_row = PerRow(self.weights), PerRow(self.codes)
        there = There(self, sent, function, merge, params, read, written)
        found: Made = table.run(there)
        return found

    def local(self, matrix: Matrix, weights: Floats, codes: Ints32) -> Self:
        """Return a design that says of other rows what this one says of its own."""
        made = object.__new__(type(self))
        made.__dict__.update(self.__dict__)
        made.matrix, made.weights, made.codes, made._per_row = matrix, weights, codes, None
        return made

    def _blocks(self, rows: slice, step: int = BLOCK) -> Iterator[slice]:
        """Yield blocks of a portion of the rows, but for those in which nothing counts."""
        for start in range(rows.start, rows.stop, step):
            part = slice(start, min(start + step, rows.stop))
            if self.weights[part].any():
                yield part

    def _curvatures(self, logits: Floats, part: slice) -> tuple[Floats, Floats]:
        """Return what `_softmax_kernels.curvature_of_many` does, for any number of logits."""
        logits, weights = logits[part], self.weights[part]
        n, m = logits.shape
        own, shared = np.zeros((m, n)), np.zeros((m, n) if m > 1 else (0, 0))
        if m == 1 and self.reference:
            kernels.curvature_of_one(logits[:, 0], weights, own[0])
        else:
            kernels.curvature_of_many(logits, weights, self.reference, own, shared)
        return own, shared
