"""Columns of X that no part of a model reads: their values are replaced by constants."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import narwhals.stable.v1 as nw
import numpy as np

from erasable.core.frames import is_numeric


def blanks_of(frame: Any, places: Iterable[int], *, text: bool) -> dict[int, float | str]:
    """Return the constants for columns that are not read.

    A number where the frame declares numbers and, where `text` is taken, text otherwise: such a
    column makes the same kind of table as its values would.
    """
    if frame is None or not text:
        return dict.fromkeys(places, 0.0)
    kinds = list(frame.schema.values())
    return {place: 0.0 if is_numeric(kinds[place]) else "" for place in places}


def replaced(X: Any, frame: Any, blanks: Mapping[int, float | str]) -> tuple[Any, Any]:
    """Return X, and its frame, with constants in columns that are not read; sparse X stays."""
    if not blanks:
        return X, frame
    if frame is not None:
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
