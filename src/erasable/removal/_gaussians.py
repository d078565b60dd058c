"""Gaussians by their moments: number of records, mean and scatter; and their divergences."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular

from erasable.core.arrays import Flags, Floats
from erasable.core.errors import InvalidDataError
from erasable.core.gram import Gram
from erasable.core.ids import shorten
from erasable.core.records import Records
from erasable.core.seeds import is_integer
from erasable.core.tables import RecordRows
from erasable.removal._inputs import as_numbers, read_dense, read_mask

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
        None where it is not needed, because the covariance is known.

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
            X is no dense table of finite numbers, or `rows` no mask of its records.
        """
        if not (isinstance(X, np.ndarray) and X.ndim == 2 and X.shape[0] == 0 < X.shape[1]):
            X = read_dense(X, "X")
        return cls.of_read(X, None if rows is None else read_mask(rows, len(X)), scatter=scatter)

    @classmethod
    def of_records(cls, records: Records, rows: Flags | None = None) -> Self:
        """Compute them of `Records`, which may lie in files or on workers, in one or two passes.

        They are a function of the set of records, wherever these are stored: sums are exact, of
        values that are rounded to 26 bits below the largest magnitude of their column (see
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
        live = RecordRows.of(records, "a covariance is dense")
        return cls.of_rows(live if rows is None else live.some(read_mask(rows, len(live))))

    @classmethod
    def of_rows(cls, rows: RecordRows) -> Self:
        """Compute them of stored rows; see `of_records`."""
        gram = Gram.fit_with_grid(rows.table(), warn=False)
        high, low = gram.centred()
        mean, rest = gram.means()
        quantum = gram.quantum
        scatter = (high + low) * quantum[:, None] * quantum
        return cls(len(rows), gram.columns[0] + (mean + rest) * quantum, scatter)

    @classmethod
    def of_read(cls, X: NDArray[Any], rows: Flags | None = None, *, scatter: bool = True) -> Self:
        """Compute them of a checked table of float64 or float32 and a checked mask."""
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


def read_moments(moments: Any, name: str, d: int, *, scatter: bool) -> Moments:
    """Return moments of `d` features; `scatter` may be required."""
    if not isinstance(moments, Moments):
        raise InvalidDataError(
            f"{name} is {shorten(moments)}; expected Moments; pass Moments.of(records)"
        )
    if scatter and moments.scatter is None:
        raise InvalidDataError(
            f"the moments {name} have no scatter; expected one, because sigma is not known; pass "
            "sigma, or moments with their scatter"
        )
    n = int(moments.n) if is_integer(type(moments.n)) else 0
    mean = as_numbers(moments.mean)
    squares = as_numbers(moments.scatter) if scatter else None
    shapes = mean.shape == (d,) and (squares is None or squares.shape == (d, d))
    finite = np.isfinite(mean).all() and (squares is None or np.isfinite(squares).all())
    if n < 1 or not d or not shapes or not finite:
        raise InvalidDataError(
            f"the moments {name} are of n={shorten(moments.n)} records, a mean of shape "
            f"{mean.shape} and a scatter of shape {getattr(squares, 'shape', ())}; expected 1 "
            f"record or more, and finite numbers of the {d} features of refit"
        )
    return Moments(n, mean, squares)


def whitened(mean: Floats, covariance: Floats, unit: Floats) -> tuple[Floats, Floats]:
    """Return a mean and eigenvalues in the axes of a covariance, where `unit` is the identity."""
    root = np.linalg.cholesky(unit)
    half = solve_triangular(root, covariance, lower=True)
    values, axes = np.linalg.eigh(solve_triangular(root, half.T, lower=True))
    return axes.T @ solve_triangular(root, mean, lower=True), values


def gaussian_kl(mean1: Floats, cov1: Floats, mean2: Floats, cov2: Floats) -> float:
    """Compute KL(N(mean1, cov1), N(mean2, cov2)).

    >>> gaussian_kl(np.zeros(1), np.eye(1), np.array([2.0]), np.eye(1))
    2.0
    """
    apart, values = whitened(mean2 - mean1, cov1, cov2)
    return float(excess(values - 1).sum() + apart @ apart) / 2
