"""Columns of X that no part of a model looks at: what stands in them is neither read nor kept."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from erasable.core.frames import is_numeric

__all__ = ["blanks_of", "replaced"]


def blanks_of(frame: Any, places: Iterable[int], *, text: bool) -> dict[int, float | str]:
    """Return what stands in the place of the values of columns that are not read.

    A number where the frame declares numbers and, where `text` is taken, text otherwise: such a
    column makes the same kind of table as its values would.

    Examples
    --------
    >>> import pandas as pd
    >>> from erasable.core.frames import as_frame
    >>> visits = as_frame(pd.DataFrame({"when": pd.to_datetime(["2024-01-01"]), "age": [40]}))
    >>> blanks_of(visits, [0, 1], text=True), blanks_of(None, [1], text=True)
    ({0: '', 1: 0.0}, {1: 0.0})
    """
    if frame is None or not text:
        return dict.fromkeys(places, 0.0)
    kinds = list(frame.schema.values())
    return {place: 0.0 if is_numeric(kinds[place]) else "" for place in places}


def replaced(X: Any, frame: Any, blanks: Mapping[int, float | str]) -> tuple[Any, Any]:
    """Return X, and the frame that it is, with other values in columns that are not read.

    Sparse matrices, which hold nothing but numbers, stay as they are.

    Examples
    --------
    >>> replaced([["2024-01-01", 40]], None, {0: 0.0})
    ([[0.0, 40]], None)
    """
    if not blanks:
        return X, frame
    if frame is not None:
        import narwhals.stable.v1 as nw

        names, n = frame.columns, frame.shape[0]
        constant = [
            nw.new_series(names[place], [value] * n, backend=frame.implementation)
            for place, value in blanks.items()
        ]
        frame = frame.with_columns(*constant)
        return frame.to_native(), frame
    if isinstance(X, np.ndarray) and X.ndim == 2 and max(blanks) < X.shape[1]:
        X = X.copy()
        for place, value in blanks.items():
            X[:, place] = value
    elif isinstance(X, list | tuple):
        X = [
            [blanks.get(place, cell) for place, cell in enumerate(row)]
            if isinstance(row, list | tuple)
            else row
            for row in X
        ]
    return X, frame
