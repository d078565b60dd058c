"""Sparse matrices in one canonical form."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from erasable.core.arrays import Floats

__all__ = ["by_column", "canonical", "csr_of", "parts"]


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
