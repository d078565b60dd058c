"""Which kernels are positive semi-definite: by their form, or by a Cholesky factor."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.linalg
from numpy.typing import NDArray
from sklearn.gaussian_process import kernels

from erasable.core.errors import InvalidDataError
from erasable.selection._memory import check_memory

__all__ = ["is_definite_by_form", "largest", "refuse_indefinite"]

Floats = NDArray[np.float64]

_DEFINITE = (
    kernels.ConstantKernel,
    kernels.DotProduct,
    kernels.Matern,
    kernels.RBF,
    kernels.RationalQuadratic,
    kernels.WhiteKernel,
)
_ROUNDING = 1e-6  # of the largest entry, in each entry: that of float32, and of sums in it


def is_definite_by_form(kernel: Any) -> bool:
    """Say whether a kernel is positive semi-definite whatever the features are.

    Examples
    --------
    >>> is_definite_by_form(2.0 * kernels.RBF()), is_definite_by_form(kernels.ExpSineSquared())
    (True, False)
    """
    if type(kernel) in (kernels.Sum, kernels.Product):
        return is_definite_by_form(kernel.k1) and is_definite_by_form(kernel.k2)
    return type(kernel) in _DEFINITE


def largest(K: Floats) -> float:
    """Return the largest entry without its sign; NaN if there is one. No copy is made.

    Examples
    --------
    >>> largest(np.array([[1.0, -2.0], [-2.0, 1.0]]))
    2.0
    """
    return float(np.maximum(K.max(initial=0.0), -K.min(initial=0.0)))


def refuse_indefinite(K: Floats) -> None:
    """Refuse a symmetric matrix with an eigenvalue below 0, as far as rounding cannot explain it.

    A determinant or a variance would not be one, and a record could take away what others add.

    Raises
    ------
    InvalidDataError

    Examples
    --------
    >>> refuse_indefinite(np.array([[1.0, 2.0], [2.0, 1.0]]))
    Traceback (most recent call last):
    erasable.core.errors.InvalidDataError: the kernel has the eigenvalue -1; expected ...
    """
    n = len(K)
    check_memory(8.0 * n**2, "a factor of the kernel", "choose from fewer records")
    least = _ROUNDING * np.sqrt(n) * largest(K)
    factor = np.array(K, order="F")  # LAPACK's order: it is overwritten, and not copied again
    np.fill_diagonal(factor, K.diagonal() + least)
    try:
        scipy.linalg.cholesky(factor, lower=True, overwrite_a=True, check_finite=False)
    except np.linalg.LinAlgError:
        lowest = scipy.linalg.eigvalsh(K, subset_by_index=[0, 0])[0]
        if lowest < -least:
            raise InvalidDataError(
                f"the kernel has the eigenvalue {lowest:.3g}; expected a positive semi-definite "
                "matrix, without eigenvalues below 0"
            ) from None
