"""Operations on a table of values wherever it lies: in an array, a sparse matrix, or stored.

Each function is chosen by the type of its first argument, so that nobody else asks for it. Those
that each deletion calls ask themselves: a dispatch takes half a microsecond.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import singledispatch
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, issparse, vstack

from erasable.core import _sparse_kernels as kernels
from erasable.core._mixed import Mixed
from erasable.core.arrays import Ints
from erasable.core.mapped.texts import Texts
from erasable.core.passes import Stored
from erasable.core.sparse import canonical, parts

__all__ = [
    "blank_of",
    "blank_rows",
    "contiguous",
    "copy_rows",
    "entries",
    "memory_of",
    "overwrite",
    "stacked",
    "take_rows",
    "to_dense",
    "writeable",
]


# -- rows ------------------------------------------------------------------------------------------


@singledispatch
def take_rows(matrix: Any, rows: Any) -> Any:
    """Copy rows; sparse ones come in canonical form, and stored ones stay where they are.

    Examples
    --------
    >>> take_rows(canonical(csr_array([[0.0, 5.0], [6.0, 7.0]])), np.array([1])).toarray()
    array([[6., 7.]])
    """
    return matrix[rows]


@take_rows.register
def _(matrix: csr_array, rows: Any) -> Any:
    return canonical(matrix[rows])


@take_rows.register
def _(matrix: Stored, rows: Any) -> Any:
    return matrix.take(rows)


@singledispatch
def copy_rows(matrix: Any, rows: Ints) -> Any:
    """Copy rows into memory, in any order; text among numbers as objects.

    Examples
    --------
    >>> copy_rows(np.array([[5.0], [7.0]]), np.array([1, 0]))
    array([[7.],
           [5.]])
    """
    return take_rows(matrix, rows)


@copy_rows.register
def _(matrix: Stored, rows: Ints) -> Any:
    found = matrix[rows]
    return found.objects() if isinstance(found, Mixed) else found


# -- overwriting -----------------------------------------------------------------------------------


def blank_rows(matrix: Any, rows: Ints) -> None:
    """Overwrite rows in place; of a sparse matrix, column indices, too.

    Examples
    --------
    >>> matrix = canonical(csr_array([[0.0, 5.0], [6.0, 7.0]]))
    >>> blank_rows(matrix, np.array([0]))
    >>> matrix.toarray().tolist()
    [[0.0, 0.0], [6.0, 7.0]]
    """
    if isinstance(matrix, np.ndarray):
        matrix[rows] = "" if matrix.dtype == object else 0
    elif isinstance(matrix, Stored):  # its file is the caller's
        matrix.forget(rows)
    else:
        kernels.erase(*parts(matrix), rows)


def blank_of(array: Any) -> Any:
    """Return the value that overwrites ids, groups, targets or weights.

    Examples
    --------
    >>> blank_of(np.array(["a"], dtype=object)), blank_of(np.array([3]))
    ('', 0)
    """
    return "" if array.dtype.kind in "OUT" else 0


def memory_of(values: Any) -> Sequence[NDArray[Any]]:
    """Return the arrays of this process that hold the values of an array, a matrix or texts.

    Examples
    --------
    >>> len(memory_of(csr_array([[0.0, 5.0]]))), len(memory_of(np.zeros(2)))
    (3, 1)
    """
    if isinstance(values, np.ndarray):
        return [values]
    if isinstance(values, Texts):
        return values.parts()
    return values.memory() if isinstance(values, Stored) else parts(values)


def overwrite(values: Any) -> None:
    """Overwrite everything in a matrix, dense or sparse, or another array, in place.

    Examples
    --------
    >>> matrix = canonical(csr_array([[0.0, 5.0], [6.0, 7.0]]))
    >>> overwrite(matrix)
    >>> matrix.data.tolist()
    [0.0, 0.0, 0.0]
    """
    for array in memory_of(values):
        array[...] = blank_of(array)


@singledispatch
def writeable(value: Any) -> Any:
    """Return an array, dense or sparse, or a copy of one that cannot be written; else the value.

    Examples
    --------
    >>> array = np.zeros(2)
    >>> writeable(array) is array, writeable(None)
    (True, None)
    """
    return value


@writeable.register
def _(value: np.ndarray) -> Any:
    return value if value.flags.writeable else value.copy()


@writeable.register
def _(value: csr_array) -> Any:
    return value if all(part.flags.writeable for part in parts(value)) else value.copy()


# -- values ----------------------------------------------------------------------------------------


@singledispatch
def contiguous(matrix: Any) -> Any:
    """Return an array that is C-contiguous, or a copy of it that is; else the matrix.

    Examples
    --------
    >>> contiguous(np.zeros((2, 3)).T).flags.c_contiguous
    True
    """
    return matrix


@contiguous.register
def _(matrix: np.ndarray) -> Any:
    return matrix if matrix.flags.c_contiguous else matrix.copy(order="C")


def to_dense(values: Any) -> Any:
    """Return a sparse matrix as an array, and anything else as it is.

    Examples
    --------
    >>> to_dense(csr_array([[0.0, 5.0]]))
    array([[0., 5.]])
    """
    return values if isinstance(values, np.ndarray) or not issparse(values) else values.toarray()


def entries(values: Any) -> Any:
    """Return the values of a sparse matrix that are not 0, and an array as it is.

    Examples
    --------
    >>> entries(csr_array([[0.0, 5.0]]))
    array([5.])
    """
    return values.data if issparse(values) else values


def stacked(matrices: Sequence[Any]) -> Any:
    """Put the rows of several matrices of one kind, dense or sparse, after one another.

    Examples
    --------
    >>> stacked([np.zeros((1, 2)), np.ones((1, 2))])
    array([[0., 0.],
           [1., 1.]])
    """
    if issparse(matrices[0]):
        return csr_array(vstack(matrices, format="csr"))
    return np.concatenate(matrices)
