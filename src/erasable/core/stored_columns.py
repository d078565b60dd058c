"""Columns of a table that lies in pieces, which are read one by one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Protocol, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from erasable.core._mixed import GAP, Mixed, stacked
from erasable.core._value_kernels import put_four
from erasable.core.arrays import Floats, Ints, Matrix
from erasable.core.errors import InvalidDataError
from erasable.core.ids import shorten
from erasable.core.kept import Kept
from erasable.core.last_read import LastRead
from erasable.core.messages import refuse_not_finite
from erasable.core.passes import Stored

__all__ = [
    "Piece",
    "StoredColumns",
    "is_number",
    "is_text",
    "kinds_of",
    "numbers_of",
]

_AT_ONCE = 2**16  # values
_EXACT = 2.0**53
Values: TypeAlias = Any  # a matrix of numbers, or `Mixed`


class Piece(Protocol):
    """Some rows of a table, which lie elsewhere.

    Examples
    --------
    >>> from erasable.core.parquet import RowGroup
    >>> RowGroup("visits.parquet", (1, 2, 3), 0, 0, 10).n_rows
    10
    """

    @property
    def lasting(self) -> bool:
        """See `erasable.core.passes.Stored`."""

    @property
    def n_rows(self) -> int:
        """How many."""

    def check(self) -> None:
        """Raise InvalidDataError if they cannot be read any more."""

    def read(self, columns: Sequence[str]) -> pa.Table:
        """Read some of their columns."""

    def bounds(self, columns: Sequence[str]) -> list[tuple[Any, Any]] | None:
        """Return what is said to be the least and the largest of columns; None where nothing is."""


class StoredColumns(Stored, Kept):
    """Columns of a table that lies in pieces.

    Parameters
    ----------
    pieces : sequence of Piece
        Each is a block.
    names : sequence of str
        Of the columns.
    dtype : float64, float32 or object
        To which the numbers are converted; of objects, blocks are `Mixed`.
    kinds : str
        Of the columns, see `kinds_of`; needed where there is text.

    Examples
    --------
    >>> StoredColumns([], ["age", "dose"], float).shape
    (0, 2)
    """

    def __init__(
        self, pieces: Sequence[Piece], names: Sequence[str], dtype: Any, kinds: str = ""
    ) -> None:
        self._pieces, self._names, self.dtype = list(pieces), list(names), np.dtype(dtype)
        self._kinds = kinds
        sizes = [piece.n_rows for piece in self._pieces]
        self.starts: Ints = np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)])
        self.shape = int(self.starts[-1]), len(self._names)
        self.lasting = all(piece.lasting for piece in self._pieces)
        self._last: LastRead | None = None

    def block(
        self, number: int, columns: Sequence[int] | None = None, *, gaps: bool = False
    ) -> Values:
        """Read a piece; raise InvalidDataError where it has gaps, or values that are infinite."""
        chosen = range(len(self._names)) if columns is None else columns
        names = [self._names[j] for j in chosen]
        table = self._pieces[number].read(names)
        if self.dtype == object:
            return self._mixed(table, chosen)
        values, finite = self._side_by_side(table, names)
        if not finite:
            refuse_not_finite(values, names, gaps)
        return values

    @property
    def kinds(self) -> str:
        """See `Stored`."""
        return self._kinds

    def _mixed(self, table: pa.Table, columns: Sequence[int]) -> Mixed:
        names = [self._names[j] for j in columns]
        return _read_mixed(table, names, "".join(self._kinds[j] for j in columns))

    def bounds(self) -> tuple[Floats, Floats] | None:
        """Return what the pieces say of the least and the largest values; it may be wrong."""
        if self.dtype == object:
            return None
        told = [piece.bounds(self._names) for piece in self._pieces if piece.n_rows]
        known = [each for each in told if each is not None]
        if not known or len(known) < len(told):
            return None
        values = np.array(known, dtype=object).astype(self.dtype).astype(np.float64) + 0.0
        return values[:, :, 0].min(axis=0), values[:, :, 1].max(axis=0)

    def _side_by_side(self, table: pa.Table, names: Sequence[str]) -> tuple[Matrix, bool]:
        """Put columns together, some rows at a time to stay in cache; tell if all are finite."""
        columns = [numbers_of(table[name]) for name in names]
        values: Matrix = np.empty((table.num_rows, len(names)), self.dtype)
        plain = all(column.dtype == values.dtype == np.float64 for column in columns)
        fours = range(0, len(columns) - 3, 4) if plain else range(0)
        finite = True
        step = max(1, _AT_ONCE // len(names))
        with np.errstate(over="ignore", invalid="ignore"):
            for start in range(0, table.num_rows, step):
                part: Any = values[start : start + step]
                own = [column[start : start + step] for column in columns]
                for j in fours:
                    put_four(own[j], own[j + 1], own[j + 2], own[j + 3], part, j)
                for j in range(4 * len(fours), len(columns)):
                    # -0.0 becomes 0.0, as in records in memory
                    np.add(own[j], 0.0, out=part[:, j], casting="unsafe")
                finite = finite and bool(np.isfinite(part.sum()))
        return values, finite

    def __getitem__(self, rows: Ints) -> Values:
        """Read rows, and remember them until `forget`: a deletion asks for them several times."""
        last = self._last  # once: other threads may have other rows read
        if last is not None and (known := last.of(rows)) is not None:
            return known
        blocks = np.searchsorted(self.starts, rows, side="right") - 1
        found: Values = np.empty((rows.size, self.shape[1]), self.dtype)
        parts: list[Mixed] = []
        order: list[Ints] = []
        for number in np.unique(blocks).tolist():
            own = np.flatnonzero(blocks == number)
            places = pa.array(rows[own] - self.starts[number])
            table = self._pieces[number].read(self._names).take(places)
            if self.dtype == object:
                parts.append(self._mixed(table, range(self.shape[1])))
                order.append(own)
            else:
                found[own] = self._side_by_side(table, self._names)[0]
        if parts:
            found = stacked(parts)[np.argsort(np.concatenate(order))].own()
        self._last = LastRead(rows.copy(), found)
        return found

    def prepare(self, rows: Ints) -> None:
        """Read rows that are to be deleted, and see whether the others can be read."""
        for piece in self._pieces:
            piece.check()
        self[rows]

    def drop_copies(self) -> None:
        """Keep no rows that were read; in their files they stay."""
        self._last = None

    def _kept_attributes(self) -> dict[str, Any]:
        """Return what a file of a model's accelerator keeps; see `erasable.core.mapped`."""
        return {**self.__dict__, "_last": None}

    def __getstate__(self) -> dict[str, Any]:
        """Leave out the rows that were read last."""
        return {**self.__dict__, "_last": None}


def numbers_of(column: pa.ChunkedArray) -> NDArray[Any]:
    """Return a column of numbers or booleans, or of nothing; gaps are NaN.

    Examples
    --------
    >>> numbers_of(pa.chunked_array([[1, None], [3]]))
    array([ 1., nan,  3.])
    """
    whole = column.null_count and _is_whole(column.type)
    if whole or pa.types.is_decimal(column.type) or pa.types.is_null(column.type):
        column = column.cast(pa.float64(), safe=False)  # rounded, as in memory
    found: NDArray[Any] = column.to_numpy()
    return found if found.dtype != object else found.astype(np.float64)  # booleans with gaps


def _is_whole(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_boolean(kind))


def is_number(kind: pa.DataType) -> bool:
    """Tell whether a column has numbers or booleans, or nothing but gaps.

    Examples
    --------
    >>> is_number(pa.bool_()), is_number(pa.null()), is_number(pa.string())
    (True, True, False)
    """
    others = pa.types.is_floating(kind) or pa.types.is_decimal(kind) or pa.types.is_null(kind)
    return bool(_is_whole(kind) or others)


def is_text(kind: pa.DataType) -> bool:
    """Tell whether a column has text.

    Examples
    --------
    >>> is_text(pa.string()), is_text(pa.dictionary(pa.int8(), pa.string())), is_text(pa.date32())
    (True, True, False)
    """
    own = kind.value_type if pa.types.is_dictionary(kind) else kind
    return bool(pa.types.is_string(own) or pa.types.is_large_string(own))


def kinds_of(schema: pa.Schema, names: Iterable[str]) -> str:
    """Return a letter for each column: "t" for text, "b", "i" and "f" for numbers.

    Examples
    --------
    >>> kinds_of(pa.schema([("city", pa.string()), ("age", pa.int8())]), ["age", "city"])
    'it'
    """
    kinds = [schema.field(name).type for name in names]
    return "".join(
        "t" if is_text(kind) else
        "b" if pa.types.is_boolean(kind) else
        "i" if pa.types.is_integer(kind) else
        "f"
        for kind in kinds
    )  # fmt: skip


def _read_mixed(table: pa.Table, names: Sequence[str], kinds: str) -> Mixed:
    """Read columns of a table; gaps are NaN.

    Raises
    ------
    InvalidDataError
        Numbers that are infinite, or whole and too large for a float.
    """
    numbers: Floats = np.empty((table.num_rows, len(names)))
    texts: dict[int, NDArray[Any]] = {}
    for j, (name, kind) in enumerate(zip(names, kinds, strict=True)):
        column = table[name]
        if kind == "t":
            texts[j] = _texts(column, numbers[:, j])
            continue
        values = numbers_of(column)
        np.add(values, 0.0, out=numbers[:, j], casting="unsafe")  # -0.0 becomes 0.0
        if (np.abs(numbers[:, j]) >= _EXACT).any() and kind == "i":
            raise InvalidDataError(
                f"column {shorten(name)} has whole numbers from 2**53 on beside columns of text; "
                "expected smaller ones; convert them to floats, or to text"
            )
    refuse_not_finite(numbers, names, gaps=True)
    return Mixed(numbers, kinds, texts)


def _texts(column: Any, places: Floats) -> NDArray[Any]:
    """Return the different texts of a column, and write the places of its rows."""
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    known: dict[Any, int] = {}
    start = 0
    for chunk in column.chunks:
        encoded = chunk.dictionary_encode()
        own = encoded.dictionary.to_pylist()
        moved = np.array([known.setdefault(text, len(known) + 2) for text in own] + [GAP])
        codes = encoded.indices.fill_null(len(own)).to_numpy(zero_copy_only=False)
        places[start : start + len(chunk)] = moved[codes]
        start += len(chunk)
    made: NDArray[Any] = np.array(["", np.nan, *known, None], dtype=object)[:-1].copy()
    return made
