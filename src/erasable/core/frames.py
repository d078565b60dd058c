"""Frames: tables with names, of pandas, polars and others, which are all read through narwhals.

Columns, labels of rows, and whether what came with a frame is in the same order. Errors name
columns, never a value.
"""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Container
from typing import Any

import narwhals.stable.v1 as nw
import numpy as np
from numpy.typing import NDArray

from erasable.core.arrays import is_arrow_array, of_objects
from erasable.core.errors import InvalidDataError, InvalidIdsError, InvalidInputError
from erasable.core.ids import as_id_array, is_gap, name_some, refuse_repeats, shorten

_LIBRARIES = ("pandas", "polars", "pyarrow")
_INDEX = re.compile(r"(Unnamed: \d+|__index_level_\d+__|__null_dask_index__|)")
"""Names of columns that pandas and Dask write the index of a frame to, or read it from."""
_PLAIN = (np.ndarray, list, tuple, str, type(None))


def as_frame(X: Any) -> Any:
    """Wrap a frame for narwhals; None for everything else.

    InvalidDataError: its rows are not in memory, or two of its columns have one name.
    """
    if isinstance(X, _PLAIN):
        return None
    X = _whole(X)
    try:
        frame = nw.from_native(X, eager_only=True, pass_through=True)
        if isinstance(frame, nw.DataFrame):
            return frame
        lazy = nw.from_native(X, pass_through=True)
    except nw.exceptions.NarwhalsError as error:
        raise InvalidDataError(
            f"X cannot be read as a frame: {' '.join(str(error).split())}; rename its columns"
        ) from None
    if isinstance(lazy, nw.LazyFrame | nw.DataFrame):
        raise InvalidDataError(
            f"X is a lazy frame ({type(X).__name__}), whose rows are not in memory; expected a "
            "frame that is read; call .collect() on it"
        )
    return None


def as_series(X: Any) -> Any:
    """Wrap a single column of a frame for narwhals; None for everything else."""
    if isinstance(X, _PLAIN):
        return None
    series = nw.from_native(_whole(X), series_only=True, pass_through=True)
    return series if isinstance(series, nw.Series) else None


def is_index(name: str) -> bool:
    """Tell whether a column has the name of a written index, such as one of a CSV without a name.

    >>> [is_index(name) for name in ("", "Unnamed: 0", "__index_level_0__", "age")]
    [True, True, True, False]
    """
    return _INDEX.fullmatch(name) is not None


def index_columns(schema: Any) -> list[str]:
    """Return the columns of an Arrow schema that hold the index of a pandas frame."""
    told = (schema.pandas_metadata or {}).get("index_columns", [])
    return [name for name in schema.names if name in told or name.startswith("__index_level_")]


def without_index(X: Any, keep: Container[Any] = ()) -> Any:
    """Return an Arrow table without the index of the frame it was made of; all else as it is."""
    table = _whole(X)
    index = index_columns(table.schema) if _is_of_arrow(table, "Table") else []
    dropped = [name for name in index if name not in keep]
    return table.drop_columns(dropped) if dropped else table


def is_numeric(dtype: Any) -> bool:
    """Tell whether a column of a frame holds numbers or booleans."""
    return bool(dtype.is_numeric()) or dtype == nw.Boolean


def texts_of(column: Any) -> NDArray[Any] | None:
    """Read a column of text, at the cost of its distinct texts; None of other columns.

    Equal texts are one object, which goes with the last record that has it; gaps are NaN.
    """
    if column.dtype != nw.String:
        return None
    try:
        read = column.to_arrow()
        whole = read.combine_chunks() if hasattr(read, "num_chunks") else read
        encoded = whole.dictionary_encode()
    except (ImportError, TypeError, ValueError):  # not installed, or no text that is valid UTF-8
        return None
    if hasattr(encoded, "num_chunks"):  # of more than 2 GiB
        return None
    texts = encoded.dictionary.to_pylist()
    codes = encoded.indices.fill_null(len(texts)).to_numpy(zero_copy_only=False)
    column_of_texts: NDArray[Any] = np.array([*texts, np.nan], dtype=object)[codes]
    return column_of_texts


def make_frame(table: NDArray[Any], names: list[str], text: Container[int] = ()) -> Any:
    """Make a frame of a table (the table itself where no library makes frames).

    Columns at the positions `text` stay text, with gaps; all others become float64.
    """
    installed = (name for name in _LIBRARIES if importlib.util.find_spec(name) is not None)
    backend: Any = next(installed, None)
    if backend is None:
        return table
    if table.dtype != object:
        return nw.from_numpy(table, schema=names, backend=backend).to_native()
    columns = []
    for place, name in enumerate(names):
        values: Any = table[:, place]
        dtype: Any = None
        if place not in text:
            values, dtype = values.astype(np.float64), nw.Float64()
        elif backend != "pandas":
            values = [value if value == value else None for value in values.tolist()]
            dtype = nw.String()
        columns.append(nw.new_series(name, values, dtype, backend=backend))
    return nw.from_dict({column.name: column for column in columns}).to_native()


def types_of(frame: Any) -> tuple[str, ...] | None:
    """Return the names of the types of columns of a pandas frame; None of other frames."""
    if not frame.implementation.is_pandas():
        return None
    return tuple(map(str, frame.to_native().dtypes))


def difference(names: list[str], expected: list[str]) -> str:
    """Describe the difference of two lists of feature names."""
    here, there = set(names), set(expected)
    unseen = [name for name in names if name not in there]
    missing = [name for name in expected if name not in here]
    told = [
        f"{len(those)} {what} ({name_some(those)})"
        for what, those in (("unseen at fit", unseen), ("missing", missing))
        if those
    ]
    return ", ".join(told) or "another order of them"


def index_of(frame: Any) -> Any:
    """Return a pandas index, unless it merely counts 0..n-1; None where there is none."""
    index = _index(frame)
    if getattr(index, "start", None) == 0 and getattr(index, "step", None) == 1:
        return None
    return index


def refuse_missing_column(X: Any, frame: Any, column: str, name: str) -> None:
    """Raise InvalidIdsError unless a column that is to hold ids or groups is there."""
    if frame is None:
        raise InvalidIdsError(
            f"{name}={shorten(column)} names a column, but X is a {type(X).__name__}; expected a "
            f"frame; pass a frame, or the {name} as a sequence"
        )
    if column not in frame.columns:
        raise InvalidIdsError(
            f"{name}={shorten(column)} is not a column; expected one of "
            f"{name_some(frame.columns)}; check the spelling"
        )


def split_ids(X: Any, ids: Any) -> tuple[Any, Any]:
    """Return X without a column of ids, and the ids: from there, as given, or from an index."""
    frame = as_frame(X)
    if isinstance(ids, str):
        refuse_missing_column(X, frame, ids, "ids")
        return frame.drop(ids).to_native(), frame[ids]
    refuse_other_index(frame, ids, "ids")
    return X, index_of(frame) if ids is None and frame is not None else ids


def ids_of_rows(values: Any, n: int, of: str = "") -> NDArray[Any]:
    """Return the ids of n rows, each once; the positions by default. `of` says which rows."""
    if values is None:
        return np.arange(n, dtype=np.int64)
    read = as_id_array(values, name=f"ids{of}")
    if len(read) != n:
        raise InvalidIdsError(
            f"{len(read)} ids for {'the ' if of else ''}{n} rows{of}; expected one for each row; "
            "pass them in the order of the rows"
        )
    refuse_repeats(read, name=f"ids{of}")
    return read


def refuse_other_index(frame: Any, values: Any, name: str) -> None:
    """Raise if `values` have labels in another order than a pandas frame's.

    The caller may have meant the labels or the positions; the values do not tell which.
    """
    index = None if frame is None else _index(frame)
    if index is None or isinstance(values, _PLAIN):
        return
    labelled = nw.from_native(values, eager_only=True, allow_series=True, pass_through=True)
    other = _index(labelled) if isinstance(labelled, nw.Series | nw.DataFrame) else None
    # A wrong number raises another error.
    if other is None or len(other) != len(index) or other.equals(index):
        return
    reordered = set(other) == set(index)
    told = "the index of X in another order" if reordered else "another index than X"
    by_label = f"{name}.loc[X.index] to go by label, or " if reordered else ""
    error: type[InvalidInputError] = InvalidDataError
    if name in ("ids", "groups"):
        error = InvalidIdsError
    raise error(
        f"{name} {'is' if name in ('y', 'forget') else 'are'} a {type(values).__name__} with "
        f"{told}; expected the index of X; pass {by_label}{name}.to_numpy() to go by position"
    )


def refuse_other_names(frame: Any, expected: list[str]) -> None:
    """Raise InvalidDataError unless a frame has these columns, in this order."""
    names = frame.columns
    # As in scikit-learn, names count only if all of them are strings.
    if names == expected or not all(isinstance(name, str) for name in names):
        return
    raise InvalidDataError(
        "The feature names should match those that were passed during fit, but X has "
        f"{difference(names, expected)}; expected {name_some(expected)}; "
        "pass X[list(model.feature_names_in_)]"
    )


def of_numbers(frame: Any) -> Any:
    """Return a frame of numbers: columns of objects, categories and text are read cell by cell."""
    read = {
        name: _numbers_in(frame.get_column(name))
        for name, dtype in frame.schema.items()
        if not is_numeric(dtype)
    }
    refused = [name for name, values in read.items() if values is None]
    if refused:
        raise InvalidDataError(
            f"{len(refused)} of {len(frame.columns)} columns hold no numbers: "
            f"{name_some(refused)}; expected numbers; encode or drop them, or name one with ids="
        )
    if not read:
        return frame.to_native()
    columns = [
        nw.new_series(name, values, nw.Float64(), backend=frame.implementation)
        for name, values in read.items()
    ]
    return frame.with_columns(*columns).to_native()


def _numbers_in(column: Any) -> NDArray[np.float64] | None:
    """Read each cell on its own, as the law asks; None where one is no number."""
    if column.dtype.is_temporal():
        return None
    try:
        cells = [np.nan if is_gap(cell) else cell for cell in column.to_list()]
        return of_objects(cells).astype(np.float64)
    except (TypeError, ValueError, OverflowError):
        return None


def _whole(X: Any) -> Any:
    """Make a table of an Arrow batch, and a column of an Arrow array; all else stays as it is."""
    if not (_is_of_arrow(X, "RecordBatch") or is_arrow_array(X)):
        return X
    from erasable.core._arrow_files import whole

    return whole(X)


def _is_of_arrow(X: Any, kind: str) -> bool:
    return type(X).__module__.partition(".")[0] == "pyarrow" and type(X).__name__ == kind


def _index(labelled: Any) -> Any:
    return nw.maybe_get_index(labelled)
