"""Tables in the form in which steps read them, and checks of what stateless steps make."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.preprocessing import FunctionTransformer

from erasable.core._mixed import Mixed
from erasable.core.errors import InvalidDataError
from erasable.core.ids import name_some
from erasable.core.sparse import canonical
from erasable.core.values import Values


def active(steps: Iterable[tuple[str, Any]]) -> list[tuple[str, Any]]:
    """Return the steps that do anything."""
    return [(name, step) for name, step in steps if not (step is None or isinstance(step, str))]


def keeps_names(step: Any) -> bool:
    """Tell whether a stateless step makes of a frame one with the same columns."""
    if not isinstance(step, FunctionTransformer) or step.validate:
        return False
    func = step.func
    return func is None or (isinstance(func, np.ufunc) and func.nin == func.nout == 1)


def as_table(out: Any, *, fresh: bool = False) -> Values:
    """Bring what a transformer of erasable made into the form in which steps read it.

    A `fresh` output is not shared, and need not be copied.
    """
    if isinstance(out, Mixed):
        return out
    if issparse(out):
        return canonical(out.astype(np.float64, copy=False), copy=not fresh)
    table = np.asarray(out)
    if table.dtype == object:
        return table
    return np.ascontiguousarray(table, dtype=np.float64)


def as_numbers(table: Values, reader: str, names: Sequence[str] | None = None) -> Values:
    """Turn a table of objects that holds numbers alone into one of numbers.

    Columns of numbers come as objects where the frame that they are from holds text, too.

    Raise InvalidDataError if it holds text.
    """
    if isinstance(table, Mixed):
        table = table[:, :]
    if table.dtype != object:
        return table
    try:
        return np.ascontiguousarray(table, dtype=np.float64)
    except ValueError:
        known = [f"x{place}" for place in range(table.shape[1])] if names is None else names
        told = [
            name
            for name, column in zip(known, table.T.tolist(), strict=True)
            if any(isinstance(cell, str) for cell in column)
        ]
        raise InvalidDataError(
            f"{len(told)} columns hold text: {name_some(told)}; expected numbers for {reader}, "
            "which they are given to; give them to an encoder"
        ) from None


def read_output(name: str, out: Any, rows: Values) -> Values:
    """Check that a stateless step has made finite numbers, with a row for each of `rows`."""
    what, n_rows = f"step {name!r} made", rows.shape[0]
    try:
        sparse = issparse(out)
        matrix: Any = canonical(out) if sparse else np.ascontiguousarray(out, dtype=np.float64)
    except (TypeError, ValueError):
        raise InvalidDataError(
            f"{what} something that is not a table of numbers; expected numbers; change the step"
        ) from None
    if matrix.ndim != 2 or matrix.shape[0] != n_rows:
        raise InvalidDataError(
            f"{what} an array of shape {matrix.shape} of {n_rows} rows; expected 2 dimensions and "
            "a row for each; change the step"
        )
    values = matrix.data[:, np.newaxis] if sparse else matrix
    strange = ~np.isfinite(values)
    if strange.any() and _has_gaps(rows):  # which may pass
        strange &= ~np.isnan(values)
    if strange.any():
        raise InvalidDataError(
            f"{what} NaN or infinity in {int(strange.any(axis=0).sum())} columns; "
            "expected finite numbers; change the step, or the values it is given"
        )
    return matrix


def _has_gaps(rows: Values) -> bool:
    cells: Any = rows.data if issparse(rows) else rows
    return bool((cells != cells).any())
