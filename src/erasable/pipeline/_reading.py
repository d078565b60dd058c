"""Which steps there may be, and the form in which they are given tables."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils import get_tags

from erasable.core._mixed import Mixed
from erasable.core.errors import InvalidDataError, InvalidInputError, UnsupportedStepError
from erasable.core.estimator import Erasable
from erasable.core.ids import name_some
from erasable.core.sparse import canonical
from erasable.core.values import Values


def active(steps: Iterable[tuple[str, Any]]) -> list[tuple[str, Any]]:
    """Return the steps that do anything."""
    return [(name, step) for name, step in steps if not (step is None or isinstance(step, str))]


def check_steps(steps: Sequence[tuple[str, Any]]) -> None:
    """Refuse steps that cannot be part of a pipeline.

    Raises
    ------
    InvalidInputError
        There are none.
    UnsupportedStepError
        One that learns but cannot delete, or is no estimator, or hands nothing on.
    """
    if not steps:
        raise InvalidInputError("The pipeline is empty; expected steps. Please add steps.")
    for place, (name, step) in enumerate(steps):
        if step is None or (isinstance(step, str) and step == "passthrough"):
            continue
        if isinstance(step, type) or not hasattr(step, "fit"):
            raise UnsupportedStepError(
                f"step {name!r} is {step!r}; expected an estimator or the string 'passthrough' "
                "(Last step of Pipeline should implement fit); pass an instance"
            )
        learns = isinstance(step, Erasable)
        if not learns and get_tags(step).requires_fit:
            raise UnsupportedStepError(
                f"step {name!r} is a {type(step).__name__}, which learns from records and cannot "
                "delete them; expected an estimator of erasable, or a stateless transformer; use "
                "its counterpart in erasable, or erasable.Refit as the last step"
            )
        if not hasattr(step, "transform") and (place < len(steps) - 1 or not learns):
            raise UnsupportedStepError(
                f"step {name!r} is a {type(step).__name__}, which has no transform; "
                "All intermediate steps should be transformers; put it last, or leave it out"
            )


def names_after(steps: Iterable[tuple[str, Any]], names: NDArray[Any]) -> NDArray[Any]:
    """Return the names of the columns that steps make of columns of these names.

    Raises
    ------
    InvalidInputError
        A step takes another number of columns, or others.
    """
    for name, step in steps:
        try:
            names = step.get_feature_names_out(names)
        except ValueError as error:
            told = f"step {name!r} cannot name its output: {error}"
            raise InvalidInputError(told) from None
    return names


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

    Parameters
    ----------
    table : ndarray or csr_array of shape (n_rows, n_columns)
    reader : str
        What it is given to, for messages.
    names : sequence of str, default=None
        Of the columns.

    Raises
    ------
    InvalidDataError
        It holds text.
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
    """Check what a stateless step has made of rows.

    Raises
    ------
    InvalidDataError
        Something else than a table of finite numbers, with a row for each.
    """
    what, n_rows = f"step {name!r} made", rows.shape[0]
    if issparse(out):
        raise InvalidDataError(f"{what} a sparse matrix; expected an array; let it make one")
    try:
        matrix = np.ascontiguousarray(out, dtype=np.float64)
    except (TypeError, ValueError):
        raise InvalidDataError(
            f"{what} something that is not a table of numbers; expected numbers; change the step"
        ) from None
    if matrix.ndim != 2 or matrix.shape[0] != n_rows:
        raise InvalidDataError(
            f"{what} an array of shape {matrix.shape} of {n_rows} rows; expected 2 dimensions and "
            "a row for each; change the step"
        )
    strange = ~np.isfinite(matrix)
    if strange.any() and _has_gaps(rows):  # which may pass
        strange &= ~np.isnan(matrix)
    if strange.any():
        raise InvalidDataError(
            f"{what} NaN or infinity in {int(strange.any(axis=0).sum())} columns; "
            "expected finite numbers; change the step, or the values it is given"
        )
    return matrix


def _has_gaps(rows: Values) -> bool:
    cells: Any = rows.data if issparse(rows) else rows
    return bool((cells != cells).any())
