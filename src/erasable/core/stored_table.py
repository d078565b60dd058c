"""Columns of stored tables, whose features are read block by block."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, Protocol, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from erasable.core._mixed import GAP, Mixed, stacked
from erasable.core._value_kernels import put_four
from erasable.core.arrays import Floats, Ints, Matrix
from erasable.core.block_cache import LastRead
from erasable.core.errors import InvalidDataError, InvalidInputError
from erasable.core.frames import index_columns, is_index
from erasable.core.ids import as_id_array, name_some, refuse_repeats, shorten
from erasable.core.inputs import RecordArrays
from erasable.core.mapped.texts import as_texts
from erasable.core.messages import refuse_not_finite
from erasable.core.passes import Stored
from erasable.core.persistent import Persistent
from erasable.core.targets import read_target, read_weights
from erasable.core.unencodable import refuse_surrogates

__all__ = [
    "Piece",
    "StoredColumns",
    "Uses",
    "is_number",
    "is_text",
    "joint_type",
    "kinds_of",
    "numbers_of",
    "refuse_others",
]

_AT_ONCE = 2**16  # values
_EXACT = 2.0**53
Values: TypeAlias = Any  # a matrix of numbers, or `Mixed`


class Piece(Protocol):
    """Rows of a table that are stored elsewhere."""

    @property
    def lasting(self) -> bool:
        """See `erasable.core.passes.Stored`."""

    @property
    def n_rows(self) -> int:
        """Number of rows."""

    def check(self) -> None:
        """Raise InvalidDataError if they cannot be read any more."""

    def read(self, columns: Sequence[str]) -> pa.Table:
        """Read some of their columns."""

    def bounds(self, columns: Sequence[str]) -> list[tuple[Any, Any]] | None:
        """Return the stated least and largest values of columns; None if unknown."""


class StoredColumns(Stored, Persistent):
    """Columns of a table stored in pieces, of which each is a block.

    Numbers are converted to `dtype`; if it is object, blocks are `Mixed`. `kinds` (see `kinds_of`)
    is needed where there is text.
    """

    _none_in_files = ("_last",)

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
        """Return the least and largest values that the pieces state, which may be wrong."""
        if self.dtype == object:
            return None
        told = [piece.bounds(self._names) for piece in self._pieces if piece.n_rows]
        known = [each for each in told if each is not None]
        if not known or len(known) < len(told):
            return None
        values = np.array(known, dtype=object).astype(self.dtype).astype(np.float64) + 0.0
        return values[:, :, 0].min(axis=0), values[:, :, 1].max(axis=0)

    def _side_by_side(self, table: pa.Table, names: Sequence[str]) -> tuple[Matrix, bool]:
        """Join columns, some rows at a time to stay in cache; return whether all are finite."""
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
        """Read rows, and cache them until `forget`: a deletion reads them several times."""
        last = self._last  # read the attribute once: other threads may replace it
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
        """Read rows before they are deleted, and check that the others can be read."""
        for piece in self._pieces:
            piece.check()
        self[rows]

    def drop_copies(self) -> None:
        """Drop the cached rows; their files stay."""
        self._last = None

    def __getstate__(self) -> dict[str, Any]:
        """Pickle without the cached rows."""
        return self._kept_attributes()


def numbers_of(column: pa.ChunkedArray) -> NDArray[Any]:
    """Return a column of numbers or booleans, or of gaps alone; gaps are NaN.

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
    """Return whether a column has numbers or booleans, or only gaps."""
    others = pa.types.is_floating(kind) or pa.types.is_decimal(kind) or pa.types.is_null(kind)
    return bool(_is_whole(kind) or others)


def is_text(kind: pa.DataType) -> bool:
    """Return whether a column has text."""
    own = kind.value_type if pa.types.is_dictionary(kind) else kind
    return bool(pa.types.is_string(own) or pa.types.is_large_string(own))


def kinds_of(schema: pa.Schema, names: Iterable[str]) -> str:
    """Return a letter for each column: "t" for text, "b", "i" and "f" for numbers."""
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

    Raise InvalidDataError for numbers that are infinite, or whole and too large for a float.
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
    """Return the distinct texts of a column, and write their positions for its rows."""
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


class Uses(NamedTuple):
    """Names of the columns with a special use, and of the features, if they are named."""

    ids: str | None
    target: str | None
    groups: str | None
    sample_weight: str | None
    features: list[str] | None

    @property
    def others(self) -> list[str]:
        """Columns that are not features."""
        return [name for name in self[:4] if isinstance(name, str)]

    def chosen(self, schema: pa.Schema, source: str) -> list[str]:
        """Return the features; refuse missing columns and unsuitable types."""
        missing = [n for n in [*self.others, *(self.features or ())] if n not in schema.names]
        if missing:
            raise InvalidInputError(
                f"{source} have no column {name_some(missing)}; expected some of "
                f"{name_some(schema.names)}"
            )
        weight = self.sample_weight
        if weight is not None and not is_number(schema.field(weight).type):
            raise InvalidDataError(
                f"the column {shorten(weight)} of weights has no numbers; expected numbers"
            )
        chosen = self.features
        if chosen is None:
            taken = {*self.others, *index_columns(schema)}
            numbers = [f.name for f in schema if is_number(f.type) and f.name not in taken]
            chosen = [name for name in numbers if not is_index(name)]
            if left := [name for name in numbers if is_index(name)]:
                warnings.warn(
                    f"the columns {name_some(left)} are taken for an index, and left out; name "
                    "them in features= to learn from them",
                    stacklevel=3,
                )
        _refuse_features(chosen, schema, self.others, source)
        return chosen

    def table(
        self,
        matrix: Stored,
        schema: pa.Schema,
        chosen: list[str],
        read: Callable[[str], pa.ChunkedArray],
        source: str,
    ) -> RecordArrays:
        """Make a table of a stored matrix and of other columns in memory."""
        n = matrix.shape[0]
        if n == 0:
            raise InvalidDataError(f"{source} hold no rows; expected one or more")
        id_array = np.arange(n) if self.ids is None else _labels(read(self.ids), "ids")
        refuse_repeats(id_array)
        weight = self.sample_weight
        numeric = None
        if matrix.dtype == object:
            numeric = np.array([kind != "t" for kind in kinds_of(schema, chosen)])
        return RecordArrays(
            matrix=matrix,
            numeric=numeric,
            y=None if self.target is None else _target(read(self.target), n),
            ids=as_texts(id_array),
            groups=None if self.groups is None else as_texts(_labels(read(self.groups), "groups")),
            feature_names=chosen,
            weights=None if weight is None else read_weights(numbers_of(read(weight)), n),
        )


def joint_type(schema: pa.Schema, names: Iterable[str]) -> Any:
    """Return the dtype that pandas and NumPy would give a table of columns; object for text.

    >>> schema = pa.schema([("a", pa.float32()), ("b", pa.int16()), ("c", pa.int64())])
    >>> joint_type(schema, ["a", "b"]), joint_type(schema, ["a", "c"])
    (<class 'numpy.float32'>, <class 'numpy.float64'>)
    """
    kinds = {schema.field(name).type for name in names}
    if any(map(is_text, kinds)):
        return np.object_
    no_type = (pa.types.is_decimal, pa.types.is_null)
    own = [
        np.float64 if any(is_one(kind) for is_one in no_type) else kind.to_pandas_dtype()
        for kind in kinds
    ]
    return np.float32 if np.result_type(*own) == np.float32 else np.float64


def refuse_others(schema: pa.Schema, own: pa.Schema, source: str, hint: str) -> None:
    """Refuse columns or types that differ from those of the first part of a table."""
    differing = sorted(set(schema.names) ^ set(own.names))
    if not differing:
        differing = [
            name for name in schema.names if schema.field(name).type != own.field(name).type
        ]
        if not differing:
            return
        told = f"has another type in {name_some(differing)}"
    else:
        told = f"differs in the columns {name_some(differing)}"
    raise InvalidDataError(f"{source} {told}; expected the columns and types of the first; {hint}")


def _refuse_features(
    chosen: Sequence[str], schema: pa.Schema, others: Sequence[str], source: str
) -> None:
    if not chosen:
        raise InvalidDataError(
            f"no column of {source} is left to learn from; expected one or more of numbers; name "
            "them: features=[...]"
        )
    if repeated := sorted({name for name in chosen if list(chosen).count(name) > 1}):
        raise InvalidInputError(f"features= names {name_some(repeated)} twice; expected each once")
    if both := [name for name in chosen if name in others]:
        raise InvalidInputError(
            f"{name_some(both)} is named as a feature and for another use; expected one of these"
        )
    kinds = {name: schema.field(name).type for name in chosen}
    if others := [name for name, kind in kinds.items() if not (is_number(kind) or is_text(kind))]:
        found = ", ".join(sorted({str(kinds[name]) for name in others}))
        raise InvalidDataError(
            f"the columns {name_some(others)} are neither numbers nor text ({found}); expected "
            "these; convert or drop them"
        )


def _labels(column: pa.ChunkedArray, name: str) -> NDArray[Any]:
    if pa.types.is_integer(column.type) and not column.null_count:
        return as_id_array(column.to_numpy(), name=name)
    return as_id_array(column.to_pylist(), name=name)


def _target(column: pa.ChunkedArray, n: int) -> NDArray[Any]:
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if not column.null_count and is_number(column.type):
        return read_target(numbers_of(column), n)
    values = column.to_pylist()
    refuse_surrogates([value for value in values if isinstance(value, str)], "y holds")
    return read_target(values, n)
