"""Types of columns of the ledger, which check what a database does not check by itself.

The law kept here: a value that was tampered with raises, where it is read, an error of one line
that names table and column.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import (
    JSON,
    BigInteger,
    Column,
    Dialect,
    Float,
    Integer,
    LargeBinary,
    MetaData,
    String,
    TypeDecorator,
)
from sqlalchemy.types import TypeEngine

from erasable.core.errors import LedgerError

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Moment(TypeDecorator[datetime]):
    """A time, kept as microseconds since 1970 UTC: the same in every database."""

    impl = BigInteger
    cache_ok = True
    _column: Column[Any] | None = None

    def process_bind_param(self, value: datetime | None, dialect: Any) -> int | None:
        """Count microseconds."""
        return None if value is None else (value - _EPOCH) // timedelta(microseconds=1)

    def process_result_value(self, value: int | None, dialect: Any) -> datetime | None:
        """Return an aware time; raise LedgerError if the value is no time."""
        if value is None:
            return None
        try:
            return _EPOCH + timedelta(microseconds=value)
        except (OverflowError, TypeError, ValueError):
            raise tampered("no time", self._column) from None


class _Checked(TypeDecorator[Any]):
    """A value of some classes: SQLite gives back whatever was put into a column."""

    cache_ok = True
    _column: Column[Any] | None = None
    _classes: tuple[type, ...]
    _what: str

    def result_processor(
        self, dialect: Dialect | None, coltype: object
    ) -> Callable[[Any], Any] | None:
        """Return the function that checks a read value; PostgreSQL needs none."""
        if dialect is not None and dialect.name != "sqlite":
            return None

        def process(value: Any) -> Any:
            if value is None or value.__class__ in self._classes:
                return value
            raise tampered(self._what, self._column)

        return process


class Words(_Checked):
    """Text, up to a number of characters."""

    impl = String
    cache_ok = True
    _classes, _what = (str,), "no text"


class Whole(_Checked):
    """A whole number; a key of one counts up where SQLite has it in its own type."""

    impl = BigInteger
    cache_ok = True
    _classes, _what = (int,), "no whole number"

    def __init__(self, *, is_small: bool = False, counts: bool = False) -> None:
        super().__init__()
        self.is_small, self.counts = is_small, counts

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        """Return the type in a database."""
        is_small = self.is_small or (self.counts and dialect.name == "sqlite")
        return dialect.type_descriptor(Integer() if is_small else BigInteger())


class Real(_Checked):
    """A number."""

    impl = Float
    cache_ok = True
    _classes, _what = (float, int), "no number"


class Bytes(TypeDecorator[bytes]):
    """Bytes; SQLite would return a value of any other type that a column holds."""

    impl = LargeBinary
    cache_ok = True
    _column: Column[Any] | None = None

    def result_processor(
        self, dialect: Dialect | None, coltype: object
    ) -> Callable[[Any], bytes | None]:
        """Return the function that reads a value from a driver."""

        def process(value: Any) -> bytes | None:
            if value is None:  # as where a join has no row
                return None
            if not isinstance(value, bytes | bytearray | memoryview):
                raise tampered("no bytes", self._column)
            return bytes(value)

        return process


class Json(TypeDecorator[Any]):
    """A value of JSON, of a shape.

    A shape is ``str`` or ``int``; a list of the one shape that all its items have; a dict with the
    shapes of required entries; ``...`` for anything.

    >>> Json([{"name": str}]).checked([{"name": "age", "unit": 3}])
    [{'name': 'age', 'unit': 3}]
    >>> Json([int]).checked([1, "2"])
    Traceback (most recent call last):
    erasable.core.errors.LedgerError: the ledger holds what does not belong there in a column; ...
    """

    impl = JSON
    cache_ok = True
    _column: Column[Any] | None = None

    def __init__(self, shape: Any = ...) -> None:
        super().__init__()
        self._shape = shape

    def result_processor(self, dialect: Dialect, coltype: object) -> Callable[[Any], Any]:
        """Return the function that reads a value: JSON, then its shape."""
        read = self.impl_instance.result_processor(dialect, coltype)

        def process(value: Any) -> Any:
            if value is None:  # nothing at all, as where a join has no row
                return None
            try:
                found = value if read is None else read(value)
            except (json.JSONDecodeError, RecursionError, TypeError, UnicodeDecodeError):
                raise tampered("no JSON", self._column) from None
            return self.checked(found)

        return process

    def checked(self, value: Any) -> Any:
        """Return a value of the shape, or None in a nullable column; else raise LedgerError."""
        if value is None and (self._column is None or self._column.nullable):
            return None
        if not fits_shape(value, self._shape):
            raise tampered("what does not belong there", self._column)
        if not is_unicode(value):
            raise tampered("text that is no Unicode", self._column)
        return value


def name_columns(metadata: MetaData) -> None:
    """Give the types of all columns their column, for error messages."""
    for table in metadata.tables.values():
        for column in table.columns:
            if isinstance(column.type, Bytes | Json | Moment | _Checked):
                column.type = column.type.copy()  # a foreign key shares that of its column
                column.type._column = column


def fits_shape(value: Any, shape: Any) -> bool:
    """Tell whether a value of JSON has a shape; see `Json`."""
    if shape is ...:
        return True
    if isinstance(shape, type):
        return type(value) is shape
    if isinstance(shape, list):
        return type(value) is list and all(fits_shape(item, shape[0]) for item in value)
    return type(value) is dict and all(
        name in value and fits_shape(value[name], inner) for name, inner in shape.items()
    )


def is_unicode(value: Any) -> bool:
    """Tell whether every text in a value of JSON can be written in UTF-8."""
    if "\\ud" not in repr(value):  # as a lone half of a character is shown
        return True
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return False
    return True


def tampered(what: str, column: Column[Any] | None) -> LedgerError:
    """Return the error for a column that holds a value of a wrong type."""
    where = "a column" if column is None else f"{column.name!r} of its table {column.table.name!r}"
    return LedgerError(
        f"the ledger holds {what} in {where}; expected what erasable wrote there: it was damaged, "
        "or tampered with; restore it from a backup"
    )
