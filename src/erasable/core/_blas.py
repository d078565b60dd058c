"""BLAS without Python's lock, which SciPy's wrappers of BLAS hold while they compute."""

from __future__ import annotations

import ctypes
from typing import Any

from scipy.linalg import cython_blas

from erasable.core.arrays import Floats


def _routine(name: str, n_arguments: int) -> Any:
    """Return a routine of the BLAS that SciPy offers to compiled code; it takes pointers."""
    capsule = cython_blas.__pyx_capi__[name]
    name_of = ctypes.PYFUNCTYPE(ctypes.c_char_p, ctypes.py_object)
    address_of = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)
    signature = name_of(("PyCapsule_GetName", ctypes.pythonapi))(capsule)
    address = address_of(("PyCapsule_GetPointer", ctypes.pythonapi))(capsule, signature)
    return ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * n_arguments)(address)


_dsyrk = _routine("dsyrk", 10)
_UPPER, _AS_IT_IS = ctypes.c_char(b"U"), ctypes.c_char(b"N")
_ONE = ctypes.c_double(1.0)


def add_square(rows: Floats, square: Floats) -> None:
    """Add ``rows.T @ rows`` to the upper triangle of a matrix.

    Parameters
    ----------
    rows : ndarray of shape (n, p), float64, C-contiguous
    square : ndarray of shape (p, p), float64, in Fortran's order

    Examples
    --------
    >>> import numpy as np
    >>> square = np.zeros((2, 2), order="F")
    >>> add_square(np.array([[1.0, 2.0], [3.0, 4.0]]), square)
    >>> square
    array([[10., 14.],
           [ 0., 20.]])
    """
    if not (rows.flags.c_contiguous and square.flags.f_contiguous):
        raise ValueError("expected rows in C's order, and a square in Fortran's")
    n, p = ctypes.c_int(rows.shape[0]), ctypes.c_int(rows.shape[1])
    by = ctypes.byref
    _dsyrk(
        by(_UPPER), by(_AS_IT_IS), by(p), by(n), by(_ONE), rows.ctypes.data, by(p), by(_ONE),
        square.ctypes.data, by(p),
    )  # fmt: skip
