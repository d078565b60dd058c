"""Data whose type is read from its values, and may be another type without some of the records.

A deletion could change such a type. These records are refused by the estimators to which it makes
a difference; others may share them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from erasable.core.arrays import Values
from erasable.core.errors import InvalidDataError
from erasable.core.passes import Block, Pass, Stored, run
from erasable.core.targets import mixes_numbers
from erasable.core.values import ANYTHING, Accepts

_MOST = 2**53
"""Whole numbers up to this are exact as floats."""


def find_unsettled(
    X: Any, frame: Any, matrix: Values, accepts: Accepts, y: Any, target: NDArray[Any] | None
) -> frozenset[str]:
    """Tell which inputs have a type that depends on the values, so that a deletion may change it.

    `matrix` and `target` are X and y as they were read. "X": a list, or where `accepts` is
    `ANYTHING` an array of objects, in which some rows have text and others, that would be read as
    numbers, have none. "y": integers and floats in a list or an array of objects. "rounded": see
    `are_rounded`.
    """
    found = {"X"} if _has_rows_without_text(X, frame, matrix, accepts) else set()
    if target is not None and target.dtype == np.float64 and mixes_numbers(y):
        found.add("y")
    if are_rounded(X, frame, matrix):
        found.add("rounded")
    return frozenset(found)


def are_rounded(X: Any, frame: Any, matrix: Values) -> bool:
    """Tell whether a whole number of X is not exact as a float: two may be read as one number."""
    if issparse(matrix):
        X, frame, matrix = getattr(X, "data", matrix.data), None, matrix.data
    if frame is not None:
        columns = [
            frame.get_column(name).to_numpy()
            for name, dtype in frame.schema.items()
            if dtype.is_integer() and matrix.dtype != object
        ]
        return any(_rounded(column) for column in columns)
    if isinstance(X, np.ndarray) and X.dtype.kind in "iu":
        return _rounded(X)
    if isinstance(X, np.ndarray) and X.dtype.kind != "O":
        return False
    if matrix.dtype == object or not np.fmax.reduce(np.abs(matrix), axis=None) >= _MOST:
        return False
    cells = np.array(X, dtype=object).ravel().tolist()
    return any(isinstance(cell, int | np.integer) and int(float(cell)) != cell for cell in cells)


def may_be_rounded(matrix: Stored) -> bool:
    """Tell whether stored whole numbers are so large that floats may not hold all of them."""
    whole = [j for j, kind in enumerate(matrix.kinds) if kind == "i"]
    if not (whole and matrix.shape[0]) or matrix.dtype == object:
        return False  # blocks of objects are checked when they are read
    bounds = matrix.bounds()
    if bounds is None:
        return run(_Farthest(), matrix, columns=whole) >= _MOST
    return bool((np.abs(bounds)[:, whole] >= _MOST).any())


class _Farthest(Pass[float]):
    """Find the largest absolute value."""

    takes_gaps = True

    def of_block(self, block: Block) -> float:
        values = np.abs(block.matrix[block.positions])
        return float(np.fmax.reduce(values, axis=None, initial=0.0))

    def merge(self, one: float, other: float) -> float:
        return max(one, other)


def _rounded(whole: NDArray[Any]) -> bool:
    if whole.dtype.kind not in "iu" or whole.dtype.itemsize < 8:
        return False
    large = whole[(whole > _MOST) | (whole < -_MOST)]
    return any(int(float(cell)) != cell for cell in large.tolist())


def refuse_rounded(name: str, *, stored: bool = False) -> None:
    """Raise InvalidDataError for whole numbers that floats do not hold, where they must differ."""
    if stored:
        raise InvalidDataError(
            "the records hold whole numbers from 2**53 on, of which floats do not hold all; "
            f"{name} expected numbers that can be told apart; make text of the column, or floats"
        )
    raise InvalidDataError(
        f"X holds whole numbers beyond 2**53 that no float has; {name} expected numbers that can "
        "be told apart; make text of them, X.astype(str), or round them, X.astype(float)"
    )


def refuse_mixed_numbers(name: str) -> None:
    """Raise InvalidDataError for targets of floats and integers, where that makes a difference."""
    raise InvalidDataError(
        f"y holds values of type float, int; {name} expected one type; so that no record decides "
        "how the others are read, declare one: np.asarray(y, dtype=float)"
    )


def refuse_rows_without_text(name: str) -> None:
    """Raise InvalidDataError for rows with and without text, where that makes a difference."""
    raise InvalidDataError(
        f"some rows of X hold text and others none; {name} reads a table of text differently from "
        "one of numbers, and expected a type that depends on no record; pass a frame, or to fit "
        "np.array(X, dtype=object)"
    )


def _has_rows_without_text(X: Any, frame: Any, matrix: Values, accepts: Accepts) -> bool:
    if matrix.dtype != object or frame is not None or accepts.documents:
        return False
    if isinstance(X, np.ndarray) and (accepts is not ANYTHING or X.dtype != object):
        return False
    return not all(any(type(cell) is str for cell in row) for row in matrix.tolist())
