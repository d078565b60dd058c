"""Gaussians by their moments: number of records, mean and scatter; and their divergences."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular

from erasable.core.arrays import Flags, Floats
from erasable.core.gram import Gram
from erasable.core.record_rows import RecordRows
from erasable.core.records import Records

_BLOCK = 2**20
_SMALL = 0.05


def excess(u: Any, log1p_u: Any = None) -> Any:
    """Compute ``u - log(1 + u)`` without cancellation near 0.

    `log1p_u` is the logarithm, where `u` is too close to -1, or too large, to compute it from.
    """
    u = np.asarray(u, dtype=np.float64)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        plain = u - (np.log1p(u) if log1p_u is None else log1p_u)
        # u - log(1 + u) = z u - 2 (z^3/3 + z^5/5 + ...) with z = u / (2 + u).
        z = u / (2 + u)
        series = z * u - 2 * z**3 * (1 / 3 + z**2 * (1 / 5 + z**2 * (1 / 7 + z**2 / 9)))
    return np.where(np.abs(u) < _SMALL, series, plain)


@dataclass(frozen=True)
class Moments:
    """A number of records, their mean, and the sum of the squares around it.

    Attributes
    ----------
    n : int
    mean : ndarray of shape (n_features,), float64
    scatter : ndarray of shape (n_features, n_features), float64, or None
        None where the covariance is known, so that it is not needed.

    Examples
    --------
    >>> Moments.of(np.array([[1.0], [3.0]])).scatter
    array([[2.]])
    """

    n: int
    mean: Floats
    scatter: Floats | None = None

    @classmethod
    def of(cls, X: NDArray[Any], rows: Flags | None = None, *, scatter: bool = True) -> Self:
        """Compute them in float64, a block of rows at a time.

        Parameters
        ----------
        X : array-like of shape (n_records, n_features)
            Dense; an array may have no rows.
        rows : array-like of shape (n_records,), bool, default=None
            Which records; by default all.
        scatter : bool, default=True

        Raises
        ------
        InvalidInputError
            No dense table of finite numbers, or no mask of its records.
        """
        from erasable.removal._inputs import read_dense, read_mask

        if not (isinstance(X, np.ndarray) and X.ndim == 2 and X.shape[0] == 0 < X.shape[1]):
            X = read_dense(X, "X")
        return cls.of_read(X, None if rows is None else read_mask(rows, len(X)), scatter=scatter)

    @classmethod
    def of_records(cls, records: Records, rows: Flags | None = None) -> Self:
        """Compute them of `Records`, which may lie in files or on workers, in one or two passes.

        They are a function of the set of records, wherever these are: sums are exact, of values
        that are rounded to 26 bits below the largest magnitude of their column (see
        `erasable.core.grid`).

        Parameters
        ----------
        records : Records
            Of numbers, in a dense table.
        rows : array-like of shape (n_records,), bool, default=None
            Which of the records that no model has deleted, in their order; by default all.

        Raises
        ------
        InvalidInputError
            Text, a sparse matrix, gaps, or no mask of the records.
        MagnitudeError
            Values beyond ``2**480``.

        Examples
        --------
        >>> from erasable import Records
        >>> Moments.of_records(Records([[1.0], [3.0]]))
        Moments(n=2, mean=array([2.]), scatter=array([[2.]]))
        """
        from erasable.removal._inputs import read_mask

        live = RecordRows.of(records, "a covariance is dense")
        return cls.of_rows(live if rows is None else live.some(read_mask(rows, len(live))))

    @classmethod
    def of_rows(cls, rows: RecordRows) -> Self:
        """Compute them of rows that are read where they lie; see `of_records`."""
        gram = Gram.fit_with_grid(rows.records.matrix, rows.rows, warn=False)
        high, low = gram.centred()
        mean, rest = gram.means()
        quantum = gram.quantum
        scatter = (high + low) * quantum[:, None] * quantum
        return cls(len(rows), gram.columns[0] + (mean + rest) * quantum, scatter)

    @classmethod
    def of_read(cls, X: NDArray[Any], rows: Flags | None = None, *, scatter: bool = True) -> Self:
        """Do so for a table of float64 or float32 and a mask that were read."""
        d, step = X.shape[1], max(1, _BLOCK // X.shape[1])
        starts = range(0, len(X), step)

        def block(start: int) -> NDArray[Any]:
            part = X[start : start + step]
            return part if rows is None else part[rows[start : start + step]]

        n = len(X) if rows is None else int(rows.sum())
        total = np.zeros(d)
        for start in starts:
            total += block(start).sum(axis=0, dtype=np.float64)
        mean = total / max(n, 1)
        if not scatter:
            return cls(n, mean)
        squares = np.zeros((d, d))
        for start in starts:
            centred = block(start) - mean
            squares += centred.T @ centred
        return cls(n, mean, squares)

    def __add__(self, other: Moments) -> Moments:
        """Return the moments of both sets of records together."""
        n = self.n + other.n
        apart = other.mean - self.mean
        mean = self.mean + apart * (other.n / n)
        if self.scatter is None or other.scatter is None:
            return Moments(n, mean)
        between = np.outer(apart, apart) * (self.n * other.n / n)
        return Moments(n, mean, self.scatter + other.scatter + between)


def whitened(mean: Floats, covariance: Floats, unit: Floats) -> tuple[Floats, Floats]:
    """Return a mean and eigenvalues in the axes of a covariance, where `unit` is the identity."""
    root = np.linalg.cholesky(unit)
    half = solve_triangular(root, covariance, lower=True)
    values, axes = np.linalg.eigh(solve_triangular(root, half.T, lower=True))
    return axes.T @ solve_triangular(root, mean, lower=True), values


def gaussian_divergence(mean1: Floats, cov1: Floats, mean2: Floats, cov2: Floats) -> float:
    """Compute KL(N(mean1, cov1), N(mean2, cov2)).

    >>> gaussian_divergence(np.zeros(1), np.eye(1), np.array([2.0]), np.eye(1))
    2.0
    """
    apart, values = whitened(mean2 - mean1, cov1, cov2)
    return float(excess(values - 1).sum() + apart @ apart) / 2
