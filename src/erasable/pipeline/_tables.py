"""Tables made of rows: joined and compared."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, issparse, vstack

from erasable.core._mixed import Mixed
from erasable.core.arrays import Ints, Values
from erasable.core.errors import InvalidDataError
from erasable.core.ids import name_some
from erasable.core.matrices import blank_of, entries, overwrite, to_dense
from erasable.core.params import class_path
from erasable.core.sparse import canonical, csr_of

_FUNCTIONS = "sklearn.preprocessing.FunctionTransformer"


def active(steps: Iterable[tuple[str, Any]]) -> list[tuple[str, Any]]:
    """Return the steps that are not "passthrough"."""
    return [(name, step) for name, step in steps if not (step is None or isinstance(step, str))]


def keeps_names(step: Any) -> bool:
    """Return whether a stateless step keeps the columns of a frame."""
    # By name: all of `sklearn.preprocessing` takes as long to import as the rest of a pipeline.
    if _FUNCTIONS not in map(class_path, type(step).__mro__) or step.validate:
        return False
    func = step.func
    return func is None or (isinstance(func, np.ufunc) and func.nin == func.nout == 1)


def as_table(out: Any, *, fresh: bool = False) -> Values:
    """Convert the output of a transformer of erasable to the form in which steps read it.

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
    """Convert a table of objects that holds numbers alone; raise InvalidDataError if it holds text.

    Numbers come as objects from a frame that also holds text.
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
    if strange.any() and _has_gaps(rows):  # which is accepted
        strange &= ~np.isnan(values)
    if strange.any():
        raise InvalidDataError(
            f"{what} NaN or infinity in {int(strange.any(axis=0).sum())} columns; "
            "expected finite numbers; change the step, or the values it is given"
        )
    return matrix


def _has_gaps(rows: Values) -> bool:
    cells: Any = entries(rows)
    return bool((cells != cells).any())


def equal(alone: Values, among: Values) -> bool:
    """Return whether two tables are equal, including gaps."""
    first, second = (to_dense(rows) for rows in (alone, among))
    if first.shape != second.shape:
        return False
    return bool(((first == second) | ((first != first) & (second != second))).all())


def spread(blocks: list[Values], live: Ints, n_rows: int) -> Values:
    """Scatter rows to the positions of their records."""
    if issparse(blocks[0]):
        stacked = blocks[0] if len(blocks) == 1 else vstack(blocks, format="csr")
        starts = np.zeros(n_rows + 1, dtype=stacked.indptr.dtype)
        starts[live + 1] = np.diff(stacked.indptr)
        starts = np.cumsum(starts, dtype=stacked.indptr.dtype)
        return csr_of(stacked.data, stacked.indices, starts, (n_rows, stacked.shape[1]))
    kind = blocks[0].dtype
    table = np.full((n_rows, blocks[0].shape[1]), "" if kind.hasobject else 0, dtype=kind)
    start = 0
    for block in blocks:
        table[live[start : start + len(block)]] = block
        start += len(block)
    return table


Room: TypeAlias = "dict[str, NDArray[Any]]"
"""Larger buffers, at whose beginnings the arrays of a table are."""


def lengthened(table: Values, n_rows: int, room: Room) -> Values:
    """Return a table with so many rows, of which the new ones are blank.

    A dense one is copied into a larger buffer if it has to be, and overwritten.
    """
    n = table.shape[0]
    if issparse(table):
        starts = np.concatenate([table.indptr, np.full(n_rows - n, table.indptr[-1])])
        starts = starts.astype(table.indptr.dtype, copy=False)
        return csr_of(table.data, table.indices, starts, (n_rows, table.shape[1]))
    if n >= n_rows:
        return table
    buffer = room.get("rows")
    if buffer is None or table.base is not buffer or buffer.shape[0] < n_rows:
        buffer = np.zeros((n_rows + n_rows // 8, table.shape[1]), dtype=table.dtype)
        buffer[...] = blank_of(buffer)
        buffer[:n] = table
        table[...] = blank_of(table)
        room["rows"] = buffer
    return buffer[:n_rows]


def leave(table: Values, room: Room) -> None:
    """Overwrite a replaced table, and all room beside it."""
    for values in (table, *room.values()):
        overwrite(values)
    room.clear()


def filled(table: csr_array, rows: Ints, values: csr_array, room: Room) -> csr_array:
    """Write rows, which are blank, into a table, in place if they have room."""
    starts, lengths = table.indptr[rows], np.diff(table.indptr)
    new = np.diff(values.indptr)
    if np.array_equal(lengths[rows], new):
        places = np.repeat(starts - values.indptr[:-1], new) + np.arange(values.nnz)
        table.data[places], table.indices[places] = values.data, values.indices
        return table
    first = int(rows[0])
    if lengths[first:].any():  # blank rows between others have too little room
        source = np.arange(table.shape[0])
        source[rows] = table.shape[0] + np.arange(rows.size)
        stacked = vstack([table, values.astype(table.dtype, copy=False)], format="csr")
        leave(table, room)
        return csr_array(stacked[source])
    n = int(table.indptr[first])
    ends = table.indptr.copy()
    lengths[rows] = new
    ends[first + 1 :] = n + np.cumsum(lengths[first:])
    data = _longer("data", table.data, n, values.data, room)
    indices = _longer("indices", table.indices, n, values.indices, room)
    return csr_of(data, indices, ends, table.shape)


def _longer(name: str, array: NDArray[Any], n: int, more: NDArray[Any], room: Room) -> NDArray[Any]:
    """Append values to the first `n` elements, in a buffer with room for more."""
    size, buffer = n + more.size, room.get(name)
    if buffer is None or array.base is not buffer or buffer.size < size:
        buffer = np.zeros(size + size // 8 + 16, dtype=array.dtype)
        buffer[:n] = array[:n]
        array[:] = 0
        room[name] = buffer
    buffer[n:size] = more
    return buffer[:size]
