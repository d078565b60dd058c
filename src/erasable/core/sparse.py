"""Sparse records: rows of a CSR matrix that can be erased, and the grid of their columns.

The law kept here is that of `erasable.core.grid`: the grid is a function of the live rows alone,
and any sum of gridded values is exact. It has no origin, because zeros that are not stored must
stay zeros.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, issparse

from erasable.core import _sparse_kernels as kernels
from erasable.core._grid_kernels import BITS, MAX_TOP, MIN_TOP
from erasable.core.arrays import Floats, Ints
from erasable.core.grid import MAX_ROWS, GridChange
from erasable.core.messages import refuse_huge_columns, refuse_many_rows
from erasable.core.passes import Stored
from erasable.core.tables import Table

__all__ = [
    "SparseGrid",
    "blank_of",
    "blank_rows",
    "by_column",
    "canonical",
    "csr_of",
    "overwrite",
    "parts",
    "take_rows",
    "tops",
    "writeable",
]


def canonical(X: Any, *, copy: bool = True) -> csr_array:
    """Convert a sparse matrix to its canonical form: sorted, without stored zeros.

    Parameters
    ----------
    X : sparse matrix or array of shape (n_rows, n_features)
        Of any format.
    copy : bool, default=True
        Whether the result must share no memory with `X`; else `X` may be changed.

    Returns
    -------
    csr_array of shape (n_rows, n_features), float64 or float32

    Examples
    --------
    >>> from scipy.sparse import coo_array
    >>> twice = coo_array(([1.0, 2.0, 0.0], ([0, 0, 1], [1, 1, 0])), shape=(2, 2))
    >>> canonical(twice).data
    array([3.])
    """
    dtype = np.float32 if X.dtype == np.float32 else np.float64
    rows = csr_array(X, dtype=dtype, copy=copy)
    rows.sum_duplicates()
    rows.eliminate_zeros()
    rows.sort_indices()
    # Behind the remaining values, SciPy keeps old ones: copies of those of any record.
    base = rows.data.base
    return rows if base is None or base.size == rows.data.size else rows.copy()


def parts(matrix: csr_array) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """Return the arguments of kernels: (data, indices, indptr).

    Examples
    --------
    >>> [part.tolist() for part in parts(canonical(csr_array([[0.0, 5.0], [6.0, 7.0]])))]
    [[5.0, 6.0, 7.0], [1, 0, 1], [0, 1, 3]]
    """
    return matrix.data, matrix.indices, matrix.indptr


def csr_of(
    data: NDArray[Any], indices: NDArray[Any], indptr: NDArray[Any], shape: tuple[int, int]
) -> csr_array:
    """Return a sparse matrix of these very arrays; SciPy copies small parts of a large buffer.

    Examples
    --------
    >>> buffer, indices = np.zeros(100), np.arange(2)
    >>> matrix = csr_of(buffer[:2], indices, np.array([0, 2]), (1, 2))
    >>> np.shares_memory(matrix.data, buffer)
    True
    """
    matrix = csr_array(shape, dtype=data.dtype)
    matrix.data, matrix.indices, matrix.indptr = data, indices, indptr
    # Otherwise SciPy would sum the equal columns of an erased row, and move values.
    matrix.has_canonical_format = True
    return matrix


def blank_rows(matrix: Any, rows: Ints) -> None:
    """Overwrite rows in place; of a sparse matrix, column indices, too.

    Examples
    --------
    >>> matrix = canonical(csr_array([[0.0, 5.0], [6.0, 7.0]]))
    >>> blank_rows(matrix, np.array([0]))
    >>> matrix.toarray().tolist()
    [[0.0, 0.0], [6.0, 7.0]]
    """
    if issparse(matrix):
        kernels.erase(*parts(matrix), rows)
    elif isinstance(matrix, Stored):  # its file is the caller's
        matrix.forget(rows)
    else:
        matrix[rows] = "" if matrix.dtype == object else 0


def blank_of(array: Any) -> Any:
    """Return the value that overwrites ids, groups, targets or weights.

    Examples
    --------
    >>> blank_of(np.array(["a"], dtype=object)), int(blank_of(np.array([3])))
    ('', 0)
    """
    return "" if array.dtype.kind in "OUT" else np.zeros((), dtype=array.dtype)


def overwrite(values: Any) -> None:
    """Overwrite everything in a matrix, dense or sparse, or another array, in place.

    Examples
    --------
    >>> matrix = canonical(csr_array([[0.0, 5.0], [6.0, 7.0]]))
    >>> overwrite(matrix)
    >>> matrix.data.tolist()
    [0.0, 0.0, 0.0]
    """
    for array in parts(values) if issparse(values) else (values,):
        array[...] = blank_of(array)


def writeable(value: Any) -> Any:
    """Return an array, dense or sparse, or a copy of one that cannot be written; else the value.

    Examples
    --------
    >>> array = np.zeros(2)
    >>> writeable(array) is array, writeable(None)
    (True, None)
    """
    if issparse(value):
        return value if all(part.flags.writeable for part in parts(value)) else value.copy()
    return value if not isinstance(value, np.ndarray) or value.flags.writeable else value.copy()


def take_rows(matrix: Any, rows: Any) -> Any:
    """Copy rows of a dense or sparse matrix; sparse ones come in canonical form.

    Those of a stored matrix stay where they are.

    Examples
    --------
    >>> take_rows(canonical(csr_array([[0.0, 5.0], [6.0, 7.0]])), np.array([1])).toarray()
    array([[6., 7.]])
    """
    if isinstance(matrix, Stored):
        return matrix.take(rows)
    return canonical(matrix[rows]) if issparse(matrix) else matrix[rows]


@dataclass(eq=False, slots=True)
class SparseGrid:
    """Fixed-point grid of the columns of a sparse matrix; `erasable.core.grid.Grid` for CSR.

    Attributes
    ----------
    peak : ndarray of shape (n_features,), float64
        Largest magnitude of each column; 0 in columns without values.
    counts : ndarray of shape (2, n_features), int64
        How many live values have that magnitude, and how many are not 0.
    top : ndarray of shape (n_features,), int64
        Exponents: ``|x| <= 2**top`` for every live value, and a gridded value is a multiple of
        ``2**(top - 26)``. 0 in columns without values.
    magic : ndarray of shape (n_features,), float64
        ``2**(top + 26)``, what the kernels round with.
    n_rows : int
        Number of live rows.

    Examples
    --------
    >>> matrix = canonical(csr_array([[0.0, 5.0], [3.0, 0.5], [0.0, 1.0]]))
    >>> grid = SparseGrid.fit(matrix, np.arange(3))
    >>> grid.top, grid.counts.tolist()
    (array([2, 3]), [[1, 1], [1, 3]])
    >>> grid.subtract(Table(matrix, lambda: np.array([1, 2])), np.array([0])).columns
    array([False,  True])
    """

    peak: Floats
    counts: Ints
    top: Ints
    magic: Floats
    n_rows: int

    @classmethod
    def fit(cls, matrix: csr_array, live_rows: Ints) -> Self:
        """Derive the grid from the live rows of a matrix.

        Parameters
        ----------
        matrix : csr_array of shape (n_rows, n_features), float64 or float32
            Finite values.
        live_rows : ndarray of int64
            Distinct positions of the rows that count.

        Returns
        -------
        SparseGrid

        Raises
        ------
        MagnitudeError
            If a value exceeds ``2**480`` in magnitude, or there are more than ``2**27`` rows.
        """
        refuse_many_rows(live_rows.size, MAX_ROWS)
        d = matrix.shape[1]
        peak, counts = np.zeros(d), np.zeros((2, d), dtype=np.int64)
        kernels.peaks(*parts(matrix), live_rows, peak, counts)
        refuse_huge_columns(peak > 2.0**MAX_TOP, f"2**{MAX_TOP}")
        top = tops(peak)
        return cls(peak, counts, top, np.ldexp(1.0, top + BITS), int(live_rows.size))

    @classmethod
    def from_state(cls, state: Mapping[str, NDArray[Any]]) -> Self:
        """Rebuild a grid that can round, but knows no rows to :meth:`subtract`."""
        top = np.array(state["top"], dtype=np.int64)
        d = top.size
        empty = np.zeros((2, d), dtype=np.int64)
        return cls(np.zeros(d), empty, top, np.ldexp(1.0, top + BITS), 0)

    @property
    def quantum(self) -> Floats:
        """Distance of two neighbours on the grid, a float64 per column."""
        return np.ldexp(1.0, self.top - BITS)

    @property
    def origin(self) -> Floats:
        """Zeros: what `Grid` would subtract."""
        return np.zeros(self.top.size)

    def apply(self, matrix: csr_array, rows: Ints) -> csr_array:
        """Round rows to the grid.

        Returns
        -------
        csr_array of shape (len(rows), n_features), float64
        """
        chosen = matrix[rows]
        data = np.empty(chosen.data.size)
        every = np.arange(chosen.shape[0])
        kernels.to_grid(*parts(chosen), every, self.magic, data)
        return csr_array((data, chosen.indices, chosen.indptr), shape=chosen.shape)

    def add(self, table: Table, rows: Ints) -> GridChange:
        """Add rows, in time in their values while none exceeds its column's bound; see `Grid`."""
        refuse_many_rows(self.n_rows + rows.size, MAX_ROWS)
        self.n_rows += rows.size
        peak, before, matrix = self.peak.copy(), self.magic, table.matrix
        kernels.peaks(*parts(matrix), rows, self.peak, self.counts)
        refuse_huge_columns(self.peak > 2.0**MAX_TOP, f"2**{MAX_TOP}")
        top = tops(self.peak)
        columns, values = top != self.top, np.zeros(top.size, dtype=np.bool_)
        self.top, self.magic = top, np.ldexp(1.0, top + BITS)
        if (columns & (peak > 0)).any():
            kernels.moved(*parts(matrix), table.live_rows(), before, self.magic, values)
        return GridChange(bool(columns.any()), columns, values, self.peak != peak)

    def subtract(self, table: Table, rows: Ints) -> GridChange:
        """Subtract rows, in time in their values while no column loses its peak; see `Grid`.

        `extremes` of what changed are the columns whose peak changed.
        """
        self.n_rows -= rows.size
        matrix = table.matrix
        d = self.top.size
        still = np.zeros(d, dtype=np.bool_)
        if not kernels.forget_peaks(*parts(matrix), rows, self.peak, self.counts):
            return GridChange(False, still, still, still)
        lost = (self.counts[0] == 0) & (self.peak > 0)
        self.peak[lost] = 0.0
        scan = lost & (self.counts[1] > 0)
        before = self.magic
        if scan.any():
            live = table.live_rows()
            kernels.rescan_peaks(*parts(matrix), live, scan, self.peak, self.counts)
        top = tops(self.peak)
        columns = top != self.top
        values = still.copy()
        self.top, self.magic = top, np.ldexp(1.0, top + BITS)
        if (columns & scan).any():
            kernels.moved(*parts(matrix), live, before, self.magic, values)
        return GridChange(bool(columns.any()), columns, values, lost)

    def state(self) -> dict[str, NDArray[Any]]:
        """Return a copy of the array that a model must keep: ``top`` (int64)."""
        return {"top": self.top.copy()}


def tops(peak: Floats) -> Ints:
    """Smallest exponents that bound the magnitudes; 0 for columns of zeros.

    Examples
    --------
    >>> tops(np.array([0.0, 4.0, 5.0]))
    array([0, 2, 3])
    """
    fraction, exponent = np.frexp(peak)
    found = exponent.astype(np.int64) - (fraction == 0.5)
    return np.where(peak > 0, np.maximum(found, MIN_TOP), 0)


def by_column(operation: np.ufunc, matrix: csr_array, numbers: Floats) -> csr_array:
    """Multiply or divide every column of a sparse matrix by a number.

    Examples
    --------
    >>> by_column(np.divide, csr_array([[2.0, 0.0, 9.0]]), np.array([2.0, 5.0, 3.0])).toarray()
    array([[1., 0., 3.]])
    """
    data = operation(matrix.data, numbers[matrix.indices])
    places = (
        matrix.indices.copy(),
        matrix.indptr.copy(),
    )  # those of the records are overwritten in place
    return csr_array((data, *places), shape=matrix.shape)
