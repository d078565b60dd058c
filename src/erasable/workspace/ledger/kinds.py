"""What a column of the ledger may hold, where a database does not see to that by itself.

The law kept here: what was tampered with is told as such where it is read, in one line that names
table and column, and not where somebody trips over it.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import JSON, BigInteger, Column, Dialect, MetaData, TypeDecorator

from erasable.core.errors import LedgerError

__all__ = ["Json", "Moment", "fits", "name_columns", "tampered"]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Moment(TypeDecorator[datetime]):
    """A time, kept as microseconds since 1970 UTC: the same in every database.

    Examples
    --------
    >>> Moment().process_bind_param(datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC), None)
    1000000
    >>> Moment().process_result_value("yesterday", None)
    Traceback (most recent call last):
    erasable.core.errors.LedgerError: the ledger holds no time in a column; expected ...
    """

    impl = BigInteger
    cache_ok = True
    _column: Column[Any] | None = None

    def process_bind_param(self, value: datetime | None, dialect: Any) -> int | None:
        """Count microseconds."""
        return None if value is None else (value - _EPOCH) // timedelta(microseconds=1)

    def process_result_value(self, value: int | None, dialect: Any) -> datetime | None:
        """Return an aware time.

        Raises
        ------
        LedgerError
            It is none.
        """
        if value is None:
            return None
        try:
            return _EPOCH + timedelta(microseconds=value)
        except (OverflowError, TypeError, ValueError):
            raise tampered("no time", self._column) from None


class Json(TypeDecorator[Any]):
    """A value of JSON, of a shape.

    Parameters
    ----------
    shape : Any
        ``str`` or ``int``; a list of the one shape that all its items have; a dict with the shapes
        of entries that have to be there, besides others; ``...`` for anything.

    Examples
    --------
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
        """Return what reads a value: JSON, then its shape."""
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
        """Return a value that has the shape, or is None where that may be.

        Raises
        ------
        LedgerError
            It has another.
        """
        if value is None and (self._column is None or self._column.nullable):
            return None
        if not fits(value, self._shape):
            raise tampered("what does not belong there", self._column)
        return value


def name_columns(metadata: MetaData) -> None:
    """Tell the kinds of all columns where they are, for their complaints.

    Examples
    --------
    >>> from sqlalchemy import Table
    >>> metadata = MetaData()
    >>> table = Table("request", metadata, Column("due_at", Moment))
    >>> name_columns(metadata)
    >>> table.c.due_at.type.process_result_value("soon", None)
    Traceback (most recent call last):
    erasable.core.errors.LedgerError: the ledger holds no time in 'due_at' of its table 'request'...
    """
    for table in metadata.tables.values():
        for column in table.columns:
            if isinstance(column.type, Json | Moment):
                column.type._column = column


def fits(value: Any, shape: Any) -> bool:
    """Tell whether a value of JSON has a shape; see `Json`.

    Examples
    --------
    >>> fits({"size": 3}, {"size": int}), fits({}, {"size": int}), fits([], ...)
    (True, False, True)
    """
    if shape is ...:
        return True
    if isinstance(shape, type):
        return type(value) is shape
    if isinstance(shape, list):
        return type(value) is list and all(fits(item, shape[0]) for item in value)
    return type(value) is dict and all(
        name in value and fits(value[name], inner) for name, inner in shape.items()
    )


def tampered(what: str, column: Column[Any] | None) -> LedgerError:
    """Return the error that says what a column holds.

    Examples
    --------
    >>> str(tampered("no time", None))[:44]
    'the ledger holds no time in a column; expect'
    """
    where = "a column" if column is None else f"{column.name!r} of its table {column.table.name!r}"
    return LedgerError(
        f"the ledger holds {what} in {where}; expected what erasable wrote there: it was damaged, "
        "or tampered with; restore it from a backup"
    )
