"""Types of columns: text is parsed as the type of its column, arrays are cast to it, or refused.

The law kept here: no value is changed. The reading of a cell does not depend on other cells of its
file. A value that its column cannot hold is refused; the error names the column, the row and the
value, but not the identities of records or persons.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
from sqlalchemy import Connection

from erasable.core._arrow_files import CSV_NULLS
from erasable.core.errors import SourceError
from erasable.workspace.context import Context
from erasable.workspace.data import fragments
from erasable.workspace.data.arrays import unequal_lengths, width
from erasable.workspace.data.catalogue import DataSet, fragment_rows
from erasable.workspace.data.dialects import UNSAID, Dialect

_PATTERN = r"^([+-]?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]{1,3})?|(?i:true|false))$"


def spelling_remarks(context: Context, connection: Connection, known: DataSet) -> list[str]:
    """Name the columns of text in which a number has two spellings, a line each.

    Ids and people are left out: they have always been read as text.
    """
    own = {known.id_column, *known.subject_columns}
    columns = [name for name, kind in known.columns if kind == "string" and name not in own]
    found: dict[str, set[str]] = {name: set() for name in columns}
    for part in fragment_rows(connection, known.id, known.version) if columns else ():
        read = fragments.read(context, part.key, part.sha256, columns)
        for name in columns:
            texts = pc.unique(read[name])
            found[name].update(
                texts.filter(pc.match_substring_regex(texts, _PATTERN)).drop_null().to_pylist()
            )
    return [
        f"column {name!r} holds {pair[0]!r} and {pair[1]!r}, which may be one value in two "
        f"spellings; where an earlier version read a later file otherwise, `erasable dataset sync "
        f"{known.name}` from a source with all records mends it"
        for name in columns
        if (pair := two_spellings(found[name])) is not None
    ]


def two_spellings(texts: Iterable[str]) -> tuple[str, str] | None:
    """Return the first two texts, in their order, that are one number or truth value.

    >>> two_spellings(["1234", "01234", "7"]), two_spellings(["7", "8"])
    (('01234', '1234'), None)
    """
    seen: dict[Decimal | str, str] = {}
    for text in sorted(texts):
        value = Decimal(text) if text[-1].isdigit() else text.lower()
        if value in seen:
            return seen[value], text
        seen[value] = text
    return None


class Widening:
    """The common types of the parts read so far; `place` is the source in messages.

    >>> wide = Widening("shop.db")
    >>> wide.add(pa.schema([("age", pa.null())]))
    >>> wide.add(pa.schema([("age", pa.int64())]))
    >>> wide.add(pa.schema([("age", pa.float64())]))
    >>> wide.schema.field("age").type
    DataType(double)
    >>> wide.add(pa.schema([("age", pa.string())]))
    Traceback (most recent call last):
    erasable.core.errors.SourceError: column 'age' at 'shop.db' holds values of several types, ...
    """

    def __init__(self, place: str) -> None:
        self._schema: pa.Schema | None = None
        self._place = place

    @property
    def schema(self) -> pa.Schema:
        """The types, once there is a part."""
        assert self._schema is not None
        return self._schema

    def add(self, schema: pa.Schema) -> None:
        """Join the types of one more part; refuse types that have nothing in common."""
        if self._schema is None:
            self._schema = pa.schema(list(schema))
        elif not schema.equals(self._schema):
            self._schema = pa.schema([self._joined(field, schema) for field in self._schema])

    def _joined(self, known: pa.Field, schema: pa.Schema) -> pa.Field:
        pair = [pa.schema([pa.field("", kind.type)]) for kind in (known, schema.field(known.name))]
        fixed = [n for each in pair if (n := width(str(each.field("").type)))]
        if len(set(fixed)) > 1:
            raise unequal_lengths(known.name, f"{min(fixed)} to {max(fixed)}")
        try:
            found = pa.unify_schemas(pair, promote_options="permissive").field(0).type
        except (pa.ArrowException, ValueError, TypeError):
            raise mixed_types(known.name, self._place) from None
        return pa.field(known.name, found)

    def cast(self, table: pa.Table) -> pa.Table:
        """Cast a part to the types of all; refuse whole numbers that floats do not hold."""
        return cast_table(table, self.schema, self._place)


def cast_table(table: pa.Table, schema: pa.Schema, place: str) -> pa.Table:
    """Cast a table to the columns and types of a schema; see `Widening.cast`."""
    arrays = []
    for field in schema:
        column = table[field.name]
        if column.type != field.type:
            if column.null_count == len(column):
                column = pa.chunked_array([pa.nulls(len(column), field.type)])
            else:
                try:
                    column = column.cast(field.type)
                except (pa.ArrowException, ValueError, TypeError):
                    if pa.types.is_integer(column.type) and pa.types.is_floating(field.type):
                        raise not_exact_as_float(field.name, place) from None
                    raise mixed_types(field.name, place) from None
        arrays.append(column)
    return pa.Table.from_arrays(arrays, schema=schema)


def not_exact_as_float(name: str, place: str) -> SourceError:
    """Return the error for whole numbers that cannot become floats."""
    return SourceError(
        f"column {name!r} in {place!r} holds whole numbers that floats do not hold, and others "
        "came that are not whole; expected only whole numbers, or none beyond 2**53"
    )


def mixed_types(name: str, place: str) -> SourceError:
    """Return the error for a column of values without a common type."""
    return SourceError(
        f"column {name!r} at {place!r} holds values of several types, or of one that tables have "
        "not; expected numbers, text, booleans, days or times; convert it, or cast it in --query"
    )


_Column: TypeAlias = "pa.Array | pa.ChunkedArray"

TRUE = ("1", "True", "TRUE", "true")
FALSE = ("0", "False", "FALSE", "false")
LONG_WHOLE = r"^[+-]?[0-9]{16,}$"
_EXACT = 2**53  # floats hold every whole number up to this one
_TIME = r"^[0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]{1,6})?)?$"
_ZONED = r"[ T].*(Z|[+-][0-9]{2}(:?[0-9]{2})?)$"
_INFINITE = r"(?i)^[+-]?inf(inity)?$"
_SHOWN = 40  # characters of a value in a message
WRONG = (pa.ArrowException, ValueError, TypeError, OverflowError)
"""Errors that `convert_column` raises."""

_NAMES = (
    (pa.types.is_integer, "whole numbers"),
    (pa.types.is_floating, "numbers that floats hold"),
    (pa.types.is_boolean, "true or false"),
    (pa.types.is_date, "days, as in 2026-03-01"),
    (pa.types.is_timestamp, "times, as in 2026-03-01 10:15:00"),
    (pa.types.is_time, "times of day, as in 10:15"),
    (pa.types.is_string, "text"),
)


DECLARED = {
    "text": pa.string(), "integer": pa.int64(), "number": pa.float64(), "boolean": pa.bool_(),
    "date": pa.date32(), "timestamp": pa.timestamp("us"), "time": pa.time64("us"),
}  # fmt: skip
"""Names of the types that a user may declare for the columns of a new data set."""


@dataclass(frozen=True, slots=True)
class ColumnTypes:
    """The types of the columns of a data set, for records that come later, or as declared."""

    types: Mapping[str, pa.DataType]
    owner: str | None  # name of the data set, None of a new one
    # columns of ids: they keep their type, and messages do not repeat their values
    identities: Collection[str] = ()
    # whether no whole number becomes a float; elsewhere those of columns without ids may
    exact: bool = False
    dialect: Dialect = UNSAID  # as the data set keeps it, for text files
    is_partial: bool = False  # whether other columns have types of their own

    @classmethod
    def declared(cls, types: Mapping[str, str], id_column: str) -> ColumnTypes | None:
        """Return the types that a user declares for some columns; refuse unknown names of types."""
        for column, kind in types.items():
            if not isinstance(kind, str) or kind not in DECLARED:
                raise SourceError(
                    f"the type of column {str(column)[:60]!r} is {str(kind)[:60]!r}; expected one "
                    f"of {', '.join(DECLARED)}"
                )
        found = {column: DECLARED[kind] for column, kind in types.items()}
        return cls(found, None, [id_column], exact=True, is_partial=True) if found else None

    @classmethod
    def of(
        cls, known: DataSet, columns: Collection[str] | None = None, *, exact: bool = False
    ) -> ColumnTypes:
        """Return the types of columns of a data set, but for people and arrays."""
        typed = zip(known.schema.names, known.schema.types, strict=True)
        apart = {*known.subject_columns, *known.files}
        types = {
            name: kind
            for name, kind in typed
            if name not in apart and not width(str(kind)) and (columns is None or name in columns)
        }
        return cls(types, known.name, [known.id_column], exact, Dialect.kept(known.source))

    def read(self, table: pa.Table, first: int = 1, decimal: str = ".") -> pa.Table:
        """Bring columns of a table to these types; the others stay.

        Cells are text where a file has no types of its own. `first` is the number of the first row,
        for messages. Refuse a value that does not fit.
        """
        for at, name in enumerate(table.column_names):
            if name in self.types:
                table = table.set_column(at, name, self.column(name, table[name], first, decimal))
        return table

    def column(
        self, name: str, column: pa.ChunkedArray, first: int | None = 1, decimal: str = "."
    ) -> pa.ChunkedArray:
        """Bring one column to its type; see `read`. `first` is None where there are no rows."""
        kind, is_id = self.types[name], name in self.identities

        widens = pa.types.is_integer(kind) and not self.exact and not is_id

        def converted(some: _Column) -> _Column:
            try:
                return convert_column(some, kind, decimal=decimal, digits=is_id)
            except WRONG:
                if not widens:
                    raise
            return _whole(convert_column(some, pa.float64(), decimal=decimal), kind)

        try:
            return converted(column)
        except WRONG:
            # Alone, each may fit: a large whole number beside one that is not whole.
            found = first_unfit(column, converted)
            if found is None:
                kind = pa.float64()
                found = first_unfit(
                    column, lambda some: convert_column(some, kind, decimal=decimal)
                )
            assert found is not None
            at, n = found
            row = None if first is None else first + at
            raise unfit_value(
                name, column[at], row, kind, secret=is_id, n=n, owner=self.owner
            ) from None


def convert_column(
    column: _Column, kind: pa.DataType, *, decimal: str = ".", digits: bool = False
) -> _Column:
    """Bring a column to a type that data sets keep, without changing a value.

    Text is parsed, but for columns of text. Whole numbers and others become each other where they
    are the same number; 0 and 1 truth values; a midnight a day, and a day a midnight. `digits` lets
    whole numbers become text, as the names of records. Raise one of `WRONG` where a value does not
    fit.

    >>> convert_column(pa.array(["1.0", "NA"]), pa.float64()).to_pylist()
    [1.0, None]
    >>> convert_column(pa.array([2**53 + 1]), pa.float64())
    Traceback (most recent call last):
    pyarrow.lib.ArrowInvalid: Integer value 9007199254740993 not in range: ...
    """
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    came = column.type
    if came == kind:
        return column
    if column.null_count == len(column):
        made = pa.nulls(len(column), kind)
        return pa.chunked_array([made]) if isinstance(column, pa.ChunkedArray) else made
    if _is_text(came):
        text = column if pa.types.is_string(came) else column.cast(pa.string())
        return (
            text if pa.types.is_string(kind) else parse_cells(text, kind, decimal, either_zone=True)
        )
    if not _may_become(came, kind, digits=digits):
        raise TypeError
    made = column.cast(kind)
    if pa.types.is_decimal(came) and pa.types.is_floating(kind):
        long = pc.filter(column, pc.greater_equal(pc.abs(made), _EXACT)).cast(pa.string())
        if not exact_as_float(long):
            raise ValueError
    same = not pa.types.is_date(kind) and not pa.types.is_boolean(kind)
    if not same and not pc.all(pc.equal(made.cast(came), column)).as_py():
        raise ValueError
    return made


def parse_cells(
    texts: _Column, kind: pa.DataType, decimal: str = ".", *, either_zone: bool = False
) -> _Column:
    """Parse cells of text; the spellings that programs use for a gap become gaps.

    `either_zone` lets some times name a zone and others not; these are in UTC. Raise one of `WRONG`
    where a cell does not fit.
    """
    if pa.types.is_string(kind):
        return texts
    empty = pc.is_in(texts, pa.array(list(CSV_NULLS)))
    texts = pc.if_else(empty, pa.scalar(None, pa.string()), texts)
    if pa.types.is_null(kind):
        _check(pc.is_null(texts), texts)
        return pa.nulls(len(texts))
    if pa.types.is_boolean(kind):
        truth = pc.is_in(texts, pa.array(TRUE))
        _check(pc.or_(truth, pc.is_in(texts, pa.array(FALSE))), texts)
        return pc.if_else(pc.is_valid(texts), truth, pa.scalar(None, pa.bool_()))
    texts = pc.utf8_trim(texts, " \t")
    if pa.types.is_time(kind):
        _check(pc.match_substring_regex(texts, _TIME), texts)
        return pc.binary_join_element_wise("1970-01-01", texts, " ").cast(_MOMENT).cast(kind)
    if pa.types.is_floating(kind):
        return _floats(texts, kind, decimal)
    if pa.types.is_integer(kind):
        _check(pc.invert(pc.match_substring(texts, "x", ignore_case=True)), texts)  # 0x1F
    if pa.types.is_timestamp(kind) and either_zone:
        zoned = pc.match_substring_regex(texts, _ZONED)
        gap = pa.scalar(None, pa.string())
        here = pc.if_else(zoned, gap, texts).cast(kind)
        there = pc.if_else(zoned, texts, gap).cast(pa.timestamp(kind.unit, "UTC")).cast(kind)
        return pc.coalesce(here, there)
    return texts.cast(kind)


_MOMENT = pa.timestamp("us")


def _floats(texts: _Column, kind: pa.DataType, decimal: str) -> _Column:
    if decimal != ".":
        _check(pc.invert(pc.match_substring(texts, ".")), texts)
        texts = pc.replace_substring(texts, decimal, ".")
    made = texts.cast(kind)
    if not exact_as_float(pc.filter(texts, pc.match_substring_regex(texts, LONG_WHOLE))):
        raise ValueError
    _check(pc.or_(pc.is_finite(made), _infinite(texts, made)), texts)
    return made


def _infinite(texts: _Column, made: _Column) -> _Column:
    return pc.or_(pc.is_nan(made), pc.match_substring_regex(texts, _INFINITE))


def exact_as_float(texts: _Column) -> bool:
    """Tell whether floats hold all whole numbers among some texts, unlike 9007199254740993."""
    return all(map(_is_held, pc.unique(texts).drop_null().to_pylist()))


def _is_held(text: str) -> bool:
    try:
        given, held = Decimal(text), Decimal(repr(float(text)))
    except InvalidOperation:
        return False
    return given == held or given != given.to_integral_value()


def _check(fits: _Column, values: _Column) -> None:
    if not pc.all(pc.or_(fits, pc.is_null(values)), min_count=0).as_py():
        raise ValueError


def _whole(numbers: _Column, kind: pa.DataType) -> _Column:
    """Bring floats to whole numbers where all of them are such."""
    try:
        return numbers.cast(kind)
    except pa.ArrowInvalid:
        return numbers


def _is_text(kind: pa.DataType) -> bool:
    fits = (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view)
    return any(each(kind) for each in fits)


def _is_number(kind: pa.DataType) -> bool:
    fits = (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal)
    return any(each(kind) for each in fits)


def _may_become(came: pa.DataType, kind: pa.DataType, *, digits: bool) -> bool:
    if pa.types.is_integer(kind) or pa.types.is_floating(kind):
        return _is_number(came)
    if pa.types.is_boolean(kind):
        return bool(pa.types.is_integer(came))
    if pa.types.is_date(kind) or pa.types.is_timestamp(kind):
        return bool(pa.types.is_date(came) or pa.types.is_timestamp(came))
    if pa.types.is_time(kind):
        return bool(pa.types.is_time(came))
    if pa.types.is_string(kind):
        return digits and bool(pa.types.is_integer(came))
    return bool(came.id == kind.id)


def array_of(values: Sequence[Any]) -> pa.Array:
    """Make an array of Python values, of the Arrow type that suits them."""
    try:
        return pa.array(values)
    except OverflowError:
        return pa.array(values, pa.uint64())


def first_unfit(column: _Column, convert: Callable[[Any], Any]) -> tuple[int, int] | None:
    """Return the place of the first value that a conversion refuses, and how many it refuses.

    None where it takes each value alone.

    >>> first_unfit(pa.chunked_array([["1", "x", "2", "y"]]), lambda some: some.cast(pa.int64()))
    (1, 2)
    """

    def unfit_in(start: int, n: int) -> list[int]:
        try:
            convert(column.slice(start, n))
        except WRONG:
            if n == 1:
                return [start]
            half = n // 2
            return [*unfit_in(start, half), *unfit_in(start + half, n - half)]
        return []

    found = unfit_in(0, len(column))
    return (found[0], len(found)) if found else None


def unfit_value(
    name: str,
    value: pa.Scalar,
    row: int | None,
    kind: pa.DataType,
    *,
    secret: bool = False,
    n: int = 1,
    owner: str | None = None,
) -> SourceError:
    """Return the error for a value that a column cannot hold."""
    shown = f"a value ({value.type})" if secret else _shown(value)
    where = "" if row is None else f" in row {row:,}"
    others = f", and {n - 1:,} other{'s' if n > 2 else ''} that do not fit" if n > 1 else ""
    whose = "" if owner is None else f", as in {owner!r}"
    expected = f"{describe_type(kind)} ({kind}){whose}"
    return SourceError(f"column {name!r} holds {shown}{where}{others}; expected {expected}")


def describe_type(kind: pa.DataType) -> str:
    """Return in words which values a type has."""
    return next((name for fits, name in _NAMES if fits(kind)), str(kind))


def _shown(value: pa.Scalar) -> str:
    try:
        text = value.as_py() if _is_text(value.type) else value.cast(pa.string()).as_py()
    except WRONG:
        return f"a value ({value.type})"
    short = text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."
    return repr(short) if _is_text(value.type) else f"{short} ({value.type})"
