"""Exact covariances, their shrinkage, and distances in their metric.

A covariance, and each row's distance, are functions of the set of rows, bit for bit, whichever BLAS
multiplies. Values are whole numbers of at most 22 bits and a sign, so that the products of a block
of 512 rows sum to integers below ``2**53``, which float64 adds exactly in any order; so do the
products of a row with whole weights. `erasable.core.gram` keeps 26 bits, in two halves that take
four times as many products, which a score does not need and a deletion does.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import solve_triangular
from scipy.linalg.blas import dsyrk, dtrmm

import erasable.removal._row_kernels as kernels
from erasable.core.arrays import Floats, Ints
from erasable.core.errors import InvalidInputError, InvalidParameterError
from erasable.core.ids import name_some, shorten
from erasable.core.passes import Block, Pass
from erasable.core.seeds import is_number
from erasable.core.tables import Table
from erasable.removal._passes import RowPass, rows_of, run_row_pass
from erasable.removal._sets import Sets

BITS = 22
BLOCK = 512  # rows of 2 * 22 bits: their products sum to at most 2**53
MAX_FEATURES = 1024
_LEAST_VARIANCE = 1e-9  # of a column given the others; below, the covariance counts as singular
_COARSE = 2.0**6
_SKEW = (
    "they vary by less than 2**-16 of their range in retain, and their distances are coarse; take "
    "a logarithm of them, or clip them"
)


@dataclass(frozen=True)
class Scatter:
    """Exact sums of products of all pairs of columns; a value is ``origin + whole * quantum``."""

    n_rows: int
    origin: Floats  # (n_features,)
    quantum: Floats  # (n_features,)
    sums: Ints  # (n_features,), of whole values
    # (2, n_features, n_features), upper triangle: ``products[0] * 2**26 + products[1]``
    products: Ints

    @classmethod
    def fit(cls, sets: Sets, matrix: Any) -> Scatter:
        """Sum the rows of one of the sets on the grid of both."""
        grid = sets.grid
        quantum = np.ldexp(1.0, grid.top - BITS)
        pass_ = _Products(grid.origin, quantum)
        sums, products = Table.over(matrix).run(pass_)
        return cls(matrix.shape[0], grid.origin, quantum, sums, products)

    @property
    def mean(self) -> Floats:
        """The mean, in whole values above the origin."""
        mean: Floats = self.sums / self.n_rows
        return mean

    def centred(self) -> Floats:
        """Return the sums of products of deviations from the means, in units of the data."""
        upper = np.triu_indices(self.sums.size)
        high, low = (part[upper].astype(object) for part in self.products)
        sums = self.sums.astype(object)
        # Python's integers: n * sum(m m') - sum(m) * sum(m') may need 100 bits, and cancels.
        exact = self.n_rows * (high * 2**26 + low) - sums[upper[0]] * sums[upper[1]]
        out = np.zeros((self.sums.size, self.sums.size))
        out[upper] = np.array([int(value) / self.n_rows for value in exact])
        out[upper[::-1]] = out[upper]
        return out * np.outer(self.quantum, self.quantum)


class _Products(Pass[tuple[Ints, Ints]]):
    """A pass that computes the sums of `Scatter`."""

    def __init__(self, origin: Floats, quantum: Floats) -> None:
        self._origin, self._quantum = origin, quantum

    def of_block(self, block: Block) -> tuple[Ints, Ints]:
        d = block.matrix.shape[1]
        sums, products = np.zeros(d, dtype=np.int64), np.zeros((2, d, d), dtype=np.int64)
        pending = np.zeros((d, d), dtype=np.int64)
        for number, rows in enumerate(whole_blocks(rows_of(block), self._origin, self._quantum)):
            sums += rows.sum(axis=0).astype(np.int64)
            pending += dsyrk(1.0, rows.T).astype(np.int64)
            if number % BLOCK == BLOCK - 1:
                _carry(pending, products)
        _carry(pending, products)
        return sums, products

    def merge(self, one: tuple[Ints, Ints], other: tuple[Ints, Ints]) -> tuple[Ints, Ints]:
        one[0][:] += other[0]
        one[1][0] += other[1][0]
        _carry(other[1][1].copy(), one[1])
        return one


def _carry(pending: Ints, products: Ints) -> None:
    """Move sums into `products`, whose lower part grows by less than ``2**26``."""
    products[0] += pending >> 26
    products[1] += pending & (2**26 - 1)
    pending[:] = 0


def whole_blocks(matrix: Any, origin: Floats, quantum: Floats) -> Any:
    """Yield blocks of rows as whole numbers; each block overwrites the one before."""
    n, d = matrix.shape
    buffer = np.empty((min(BLOCK, n), d))
    per_unit = 1.0 / quantum
    for start in range(0, n, BLOCK):
        part = buffer[: min(BLOCK, n - start)]
        kernels.cut(matrix[start : start + BLOCK], origin, per_unit, part)
        yield part


def oas(correlation: Floats, n: int) -> float:
    """Return the shrinkage of a correlation matrix to the identity, from 0 to 1.

    The oracle approximating shrinkage of Chen, Wiesel, Eldar and Hero (2010), eq. 23.
    """
    d = correlation.shape[0]
    square, trace = float((correlation**2).sum()), float(np.trace(correlation))
    above = (1 - 2 / d) * square + trace**2
    below = (n + 1 - 2 / d) * (square - trace**2 / d)
    return 1.0 if below <= 0 else min(1.0, above / below)


@dataclass(frozen=True)
class Metric:
    """The inverse of a shrunk covariance, as a triangle of whitening weights."""

    columns: Ints  # those that vary; see `varying`
    # lower triangular: ``weights @ (x - centre)`` has the identity as its covariance
    weights: Floats
    log_determinant: float  # of the covariance
    shrinkage: float  # as used

    def distances(self, sets: Sets, rows: Any, centres: list[Floats]) -> list[Floats]:
        """Return the squared distances of dense rows, on the grid of the sets, to each centre."""
        pass_ = _MetricDistances(self, sets.grid, centres, rows.shape[0])
        return list(np.ascontiguousarray(run_row_pass(rows, pass_).T))

    def distances_on(self, grid: Any, rows: Any, centres: list[Floats]) -> list[Floats]:
        """Return the squared distances to each centre of rows in memory, on a grid."""
        d = self.columns.size
        if d == 0:
            return [np.zeros(rows.shape[0]) for _ in centres]
        quantum = np.ldexp(1.0, grid.top - BITS)
        bits = 53 - (BITS + 1) - int(np.ceil(np.log2(max(d, 2))))
        scaled = self.weights * quantum[self.columns]
        unit = np.ldexp(1.0, np.frexp(np.abs(scaled).max(axis=1))[1] - bits)
        whole = np.rint(scaled / unit[:, None])
        shifts = [
            (whole * unit[:, None]) @ ((c - grid.origin) / quantum)[self.columns] for c in centres
        ]
        triangle = np.asfortranarray(whole)
        found = [np.empty(rows.shape[0]) for _ in centres]
        start = 0
        every = d == rows.shape[1]
        for block in whole_blocks(rows, grid.origin, quantum):
            part = block if every else np.ascontiguousarray(block[:, self.columns])
            # Whole numbers below 2**53 at every step: the same bits in any block, in any order.
            product = dtrmm(1.0, triangle, part.T, lower=1, overwrite_b=1)
            white = np.ascontiguousarray(product.T) * unit
            for shift, out in zip(shifts, found, strict=True):
                kernels.distances(white, shift, out[start : start + len(white)])
            start += len(white)
        return found


class _MetricDistances(RowPass):
    """A pass that computes the squared distances to each of some centres."""

    def __init__(self, metric: Metric, grid: Any, centres: list[Floats], n_rows: int) -> None:
        super().__init__(n_rows, len(centres))
        self._metric, self._grid, self._centres = metric, grid, centres

    def fill(self, rows: Any, out: Floats) -> None:
        out[:] = np.column_stack(self._metric.distances_on(self._grid, rows, self._centres))


def varying(*scatters: Floats) -> Ints:
    """Return the columns that vary within some set, by sums of products of deviations."""
    return np.flatnonzero(np.any([np.diag(each) > 0 for each in scatters], axis=0))


def shrunk_metric(
    centred: Floats,
    n: int,
    shrinkage: Any,
    name: str,
    columns: Ints,
    *,
    floor: float = 0.0,
) -> Metric:
    """Invert a covariance by Cholesky, with correlations shrunk towards 0.

    `centred` are sums of products of deviations, of `n` degrees of freedom; `columns` those that
    `varying` returns; `floor` the least shrinkage that "auto" chooses. A singular covariance is
    refused.
    """
    variance = np.diag(centred) / n
    constant = columns[variance[columns] <= 0].tolist()
    if constant:
        raise InvalidInputError(
            f"the covariance of {name} is singular: {len(constant)} of {variance.size} columns are "
            f"constant in {name} and vary in the other set ({name_some(constant)}), to {BITS} bits "
            "of their range in both; expected columns that vary in both, or in neither; drop them"
        )
    if columns.size == 0:
        return Metric(columns, np.zeros((0, 0)), 0.0, 1.0)
    spread = np.sqrt(variance[columns])
    correlation = centred[np.ix_(columns, columns)] / n / np.outer(spread, spread)
    np.fill_diagonal(correlation, 1.0)
    rho = max(oas(correlation, n), floor) if isinstance(shrinkage, str) else float(shrinkage)
    shrunk = (1 - rho) * correlation + rho * np.eye(columns.size)
    try:
        factor = np.linalg.cholesky(shrunk)
    except np.linalg.LinAlgError:
        factor = np.zeros_like(shrunk)
    pivots = np.diag(factor) ** 2
    if pivots.min() < _LEAST_VARIANCE:
        null = np.abs(np.linalg.eigh(shrunk)[1][:, 0])
        bound = columns[null > 0.5 * null.max()].tolist()
        raise InvalidInputError(
            f"the covariance of {name} is singular: columns depend on each other linearly "
            f"({name_some(bound)}); expected independent columns, or more shrinkage than "
            f"{rho:.2g}; drop one, or set shrinkage=0.1"
        )
    weights = solve_triangular(factor, np.diag(1.0 / spread), lower=True)
    determinant = float(np.log(pivots).sum() + 2 * np.log(spread).sum())
    return Metric(columns, np.tril(weights), determinant, rho)


def check_shrinkage(shrinkage: Any) -> None:
    """Refuse a shrinkage that is neither "auto" nor from 0 to 1."""
    if (isinstance(shrinkage, str) and shrinkage == "auto") or (
        is_number(shrinkage) and 0 <= shrinkage <= 1
    ):
        return
    raise InvalidParameterError(
        f"shrinkage={shorten(shrinkage)}; expected 'auto' or a number from 0 to 1; pass one"
    )


def metric_of(sets: Sets, matrix: Any, shrinkage: Any, name: str) -> Metric:
    """Return the metric of one of the sets, in the columns that vary in either."""
    d = sets.n_features
    if sets.sparse:
        raise InvalidInputError(
            f"{name} is sparse; expected dense rows for a Mahalanobis distance; pass X.toarray(), "
            "project it first (TruncatedSVD), or choose a cosine score"
        )
    if d > MAX_FEATURES:
        raise InvalidInputError(
            f"{d} columns; expected at most {MAX_FEATURES} for a Mahalanobis distance; project "
            "them first, for instance with PCA"
        )
    scatter = Scatter.fit(sets, matrix)
    centred = scatter.centred()
    squares = np.diag(centred)
    columns = varying(centred)
    if columns.size < d:  # what is constant here may vary in the other set
        other = sets.forget if matrix is sets.retain else sets.retain
        columns = varying(centred, Scatter.fit(sets, other).centred())
    metric = shrunk_metric(centred, max(matrix.shape[0] - 1, 1), shrinkage, name, columns)
    spread = np.sqrt(squares / scatter.n_rows)
    sets.note(_SKEW, columns[(spread < _COARSE * scatter.quantum)[columns]])
    return metric
