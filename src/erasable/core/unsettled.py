"""Data whose type is read from its values, and may be another type without some of the records.

A type that is read from values is one that a deletion could change. Such records are refused by
the estimators to which it makes a difference; others may share them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from erasable.core.errors import InvalidDataError
from erasable.core.targets import mixes_numbers
from erasable.core.values import ANYTHING, Accepts, Values

__all__ = ["find_unsettled", "refuse_mixed_numbers", "refuse_rows_without_text"]


def find_unsettled(
    X: Any, frame: Any, matrix: Values, accepts: Accepts, y: Any, target: NDArray[Any] | None
) -> frozenset[str]:
    """Tell which inputs have a type that depends on the values, so that a deletion may change it.

    Parameters
    ----------
    X, frame, accepts : see `erasable.core.values.read_values`
    matrix : ndarray or csr_array of shape (n_rows, n_features)
        What that made of them.
    y : array-like or None
    target : ndarray or None
        What `erasable.core.targets.read_target` made of it.

    Returns
    -------
    frozenset of {"X", "y"}
        "X": a list, or where `accepts` is `ANYTHING` an array of objects, in which some rows have
        text and others, that would be read as numbers, have none. "y": integers and floats in a
        list or an array of objects.

    Examples
    --------
    >>> X = [["Bonn", 1], [None, 2]]
    >>> table, accepts = np.array(X, dtype=object), Accepts(objects=True)
    >>> find_unsettled(X, None, table, accepts, [0, 1.0], np.array([0.0, 1.0])) == {"X", "y"}
    True
    >>> find_unsettled(table, None, table, accepts, None, None)
    frozenset()
    """
    found = {"X"} if _has_rows_without_text(X, frame, matrix, accepts) else set()
    if target is not None and target.dtype == np.float64 and mixes_numbers(y):
        found.add("y")
    return frozenset(found)


def refuse_mixed_numbers(name: str) -> None:
    """Raise InvalidDataError for targets of which it must be known whether they are integers.

    Examples
    --------
    >>> refuse_mixed_numbers("GaussianNB")
    Traceback (most recent call last):
    erasable.core.errors.InvalidDataError: y holds values of type float, int; GaussianNB ...
    """
    raise InvalidDataError(
        f"y holds values of type float, int; {name} expected one type; so that no record decides "
        "how the others are read, declare one: np.asarray(y, dtype=float)"
    )


def refuse_rows_without_text(name: str) -> None:
    """Raise InvalidDataError for a table of which it must be known whether it is one of objects.

    Examples
    --------
    >>> refuse_rows_without_text("SimpleImputer")
    Traceback (most recent call last):
    erasable.core.errors.InvalidDataError: some rows of X hold text and others none; ...
    """
    raise InvalidDataError(
        f"some rows of X hold text and others none; {name} reads a table of text differently from "
        "one of numbers, and expected a type that depends on no record; pass a frame, or to fit "
        "np.array(X, dtype=object)"
    )


def _has_rows_without_text(X: Any, frame: Any, matrix: Values, accepts: Accepts) -> bool:
    if issparse(matrix) or matrix.dtype != object or frame is not None or accepts.documents:
        return False
    if isinstance(X, np.ndarray) and (accepts is not ANYTHING or X.dtype != object):
        return False
    return not all(any(type(cell) is str for cell in row) for row in matrix.tolist())
