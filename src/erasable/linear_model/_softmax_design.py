"""Records as a softmax model sees them: gradients and Hessians, with bounds of their rounding.

Everything is in *units* of the columns: ``u = (x - origin) / 2**top``, so that no value of a live
record exceeds 1, and a coefficient is a change of the logit. Origins and powers of two are exact
(`erasable.core.grid`), so the problem in these units is the problem.

The law kept here: whatever is returned is as near to the exact value as its bound says, on every
machine, with every BLAS. The bounds hold for sums in any order: ``gamma_n`` for n terms at a time
(Higham, "Accuracy and Stability of Numerical Algorithms", section 3.1).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Self, TypeVar

import numpy as np

from erasable.core import threads
from erasable.core.arrays import Floats, Ints, Ints32
from erasable.core.kept import Kept
from erasable.core.passes import Stored
from erasable.core.portions import Portion, over_portions
from erasable.linear_model import _softmax_kernels as kernels
from erasable.linear_model._lattice import Pair, pair_sum
from erasable.linear_model._softmax_exact import add_products

Made = TypeVar("Made")

UNIT = 2.0**-53
BLOCK = 2048
_NO_NUMBERS: Floats = np.zeros(0)


@dataclass(slots=True)
class Evaluation:
    """The gradient of the loss at some coefficients.

    Attributes
    ----------
    gradient, rest : ndarray of shape (m, D)
        Their sum is the gradient, without the penalty's part; the last column is the intercept's,
        where there is one. `rest` is 0 in simple precision.
    logits : ndarray of shape (n, m)
        In simple precision in any case.
    logit_error : float
        How wrong any logit of a record with a weight may be, what the exponential adds included.
    energy : float
        Bound of the norm of what errors of the logits do to the gradient, in the inverse of the
        Hessian of the loss.
    summing : ndarray of shape (m, D)
        How wrong the gradient may be for given probabilities.
    direct : ndarray of shape (m, D)
        How wrong it may be altogether.
    precise : bool
        Whether it was computed in twice the precision.
    """

    gradient: Floats
    rest: Floats
    logits: Floats
    logit_error: float
    energy: float
    summing: Floats
    direct: Floats
    precise: bool = False


class SoftmaxDesign(Kept, ABC):
    """Records, their classes and weights; see `DenseDesign` and `SparseDesign`.

    Attributes
    ----------
    weights : ndarray of shape (n,), float64
        0 for rows that do not count.
    codes : ndarray of shape (n,), int32
        Class of each record: 0 to m - 1, and m for the reference class.
    n_logits : int
        m.
    reference : bool
        Whether there is one more class, whose logit is 0.
    intercept : bool
    unit, origin : ndarray of shape (d,)
        ``u = (x - origin) * unit``.
    column_norms : ndarray of shape (D,)
        Bounds of the Euclidean norms of the columns, the intercept's included.
    row_norm : float
        Bound of the Euclidean norms of the rows with the intercept's 1.
    portion : int
        Rows that are summed up by themselves.
    n_jobs : int or None
        Threads, see `erasable.core.threads`.
    """

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
        self.matrix, self.weights, self.codes = matrix, weights, codes
        self.n_logits, self.reference, self.intercept = n_logits, reference, intercept
        self.origin, self.unit = origin, unit
        self.column_norms = _NO_NUMBERS
        self.row_norm = 0.0
        self.portion = threads.ROWS
        self.n_jobs = n_jobs

    def _kept_attributes(self) -> dict[str, Any]:
        """Return what a file keeps."""
        return {name: each for name, each in vars(self).items() if name != "n_jobs"}

    def _after_reading(self) -> None:
        self.n_jobs = None

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

    @abstractmethod
    def evaluate_exactly(self, theta: Floats, rest: Floats) -> Evaluation:
        """Return the gradient at ``theta + rest``, computed with about 100 bits."""

    def _exact(self, theta: Floats, portions: Iterable[tuple[Pair, Floats, float]]) -> Evaluation:
        """Add up gradients in double-double arithmetic, and say how wrong the sum may be.

        A portion also has the squares of the residuals, and the sum of ``s (1 - p)``.
        """
        every = iter(portions)
        (gradient, rest), squares, missing = next(every)
        for pair, more, lacking in every:
            gradient, rest = pair_sum((gradient, rest), pair)
            squares, missing = squares + more, missing + lacking
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

    def hessian(self, logits: Floats) -> Floats:
        """Return the Hessian of the loss, shape (m D, m D), at given logits."""
        m, width = self.n_logits, self.width

        def of_portion(portion: Portion) -> Floats:
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

        return total(self.by_portion(of_portion)).reshape(m * width, m * width)

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
                shares = _couplings(logits[rows], self.weights[rows], self.reference)
                add_products(*self._rows_precisely(portion, rows), *shares, high, low)

        for _ in over_portions(of_portion, self.matrix, self.weights, 1, self.portion):
            pass
        return _mirrored(high), _mirrored(low)

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

    @abstractmethod
    def take(self, rows: Ints, weights: Floats) -> SoftmaxDesign:
        """Copy some rows, with other weights."""

    def in_order(self, rows: Ints, weights: Floats) -> SoftmaxDesign:
        """Return the same, with one sum of all rows; stored ones stay where they are."""
        made = self.take(rows, weights)
        made.portion = rows.size
        return made

    def _of_rows(
        self, matrix: Any, rows: Ints, weights: Floats, origin: Floats, n_jobs: int | None = None
    ) -> Self:
        return type(self)(
            matrix, weights, self.codes[rows], self.n_logits, self.reference,
            self.intercept, origin, self.unit, n_jobs,
        )  # fmt: skip

    def forget(self, rows: Ints) -> None:
        """Take rows out; what is known of them is overwritten."""
        self.weights[rows] = 0.0
        self.codes[rows] = -1

    @property
    def _n_blocks(self) -> int:
        """How many blocks are summed up by themselves, at most."""
        if isinstance(self.matrix, Stored):
            return int((-(-np.diff(self.matrix.starts) // BLOCK)).sum())
        return -(-self.n_rows // BLOCK)

    @property
    def hessian_error(self) -> float:
        """Error of an element (i, j) of `hessian`, relative to the root of (i, i) times (j, j)."""
        return (min(BLOCK, self.n_rows) + self._n_blocks + 40) * UNIT

    def logit_bound(self, theta: Floats) -> float:
        """Bound the sum of the magnitudes of the terms of any logit."""
        size = np.abs(theta).max(axis=0)
        return float(min(size.sum(), 1.01 * np.sqrt(size @ size) * self.row_norm))

    def residuals(self, logits: Floats, rows: slice | Ints) -> tuple[Floats, Floats]:
        """Return the residuals of rows, and what their classes' probabilities lack of s.

        `logits` are those of these rows, shape (len(rows), m).
        """
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

    def by_portion(self, function: Callable[[Portion], Made]) -> Iterator[Made]:
        """Call a function with portions of the rows, in threads; yield what it returns in order."""
        return over_portions(function, self.matrix, self.weights, self.n_jobs, self.portion)

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


def total(parts: Iterable[Floats]) -> Floats:
    """Return the sum of arrays, the first of which is overwritten."""
    every = iter(parts)
    out = next(every)
    for part in every:
        out += part
    return out


def _couplings(logits: Floats, weights: Floats, reference: bool) -> Pair:
    """Return the Hessians of records in their logits, shape (n, m, m), as a pair.

    They are ``s p_k p_l`` for two classes, rounded, and exact sums of these: so rounding changes
    the form ``s sum_kl p_k p_l (z_k - z_l)**2 / 2`` by a share of itself.
    """
    n, m = logits.shape
    chances = kernels.shares(logits, reference)
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


def _mirrored(half: Floats) -> Floats:
    """Complete blocks (k, :, l, :) of which the lower halves are filled."""
    m, width = half.shape[:2]
    columns = np.arange(width)
    whole = half + half.transpose(0, 3, 2, 1)
    whole[:, columns, :, columns] = half[:, columns, :, columns]
    return whole.reshape(m * width, m * width)
