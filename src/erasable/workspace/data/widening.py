"""One type for each column, in every part of a source.

The law kept here: what a column is does not depend on where the parts begin, nor on their order.
A part with nothing but gaps says nothing of the type; whole numbers become floating ones where
such come; what has no type in common is refused.
"""

from __future__ import annotations

import pyarrow as pa

from erasable.core.errors import SourceError
from erasable.workspace.data.arrays import several_lengths, width


class Widening:
    """The types of the parts read so far, joined.

    Parameters
    ----------
    place : str
        What to call the source.

    Examples
    --------
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
            raise several_lengths(known.name, f"{min(fixed)} to {max(fixed)}")
        try:
            found = pa.unify_schemas(pair, promote_options="permissive").field(0).type
        except (pa.ArrowException, ValueError, TypeError):
            raise mixed(known.name, self._place) from None
        return pa.field(known.name, found)

    def cast(self, table: pa.Table) -> pa.Table:
        """Bring a part to the types of all; refuse whole numbers that floats do not hold."""
        return cast(table, self.schema, self._place)


def cast(table: pa.Table, schema: pa.Schema, place: str) -> pa.Table:
    """Bring a table to the columns and types of a schema; see `Widening.cast`."""
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
                        raise too_large(field.name, place) from None
                    raise mixed(field.name, place) from None
        arrays.append(column)
    return pa.Table.from_arrays(arrays, schema=schema)


def too_large(name: str, place: str) -> SourceError:
    """Return the error that says that whole numbers cannot become floats."""
    return SourceError(
        f"column {name!r} in {place!r} holds whole numbers that floats do not hold, and others "
        "came that are not whole; expected only whole numbers, or none beyond 2**53"
    )


def mixed(name: str, place: str) -> SourceError:
    """Return the error that says that a column has no type."""
    return SourceError(
        f"column {name!r} at {place!r} holds values of several types, or of one that tables have "
        "not; expected numbers, text, booleans, days or times; convert it, or cast it in --query"
    )
