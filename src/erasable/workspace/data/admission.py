"""Admission of records to a data set: plain types, and tokens for people."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from erasable.core.errors import InvalidIdsError, SourceError
from erasable.workspace.context import Context
from erasable.workspace.data import fragments
from erasable.workspace.data.arrays import holds_arrays, plain_arrays
from erasable.workspace.data.catalogue import DataSet, FragmentRow, record_type
from erasable.workspace.data.column_types import WRONG, convert_column, first_unfit, unfit_value
from erasable.workspace.evidence import suppressions
from erasable.workspace.identity import suppression

_LATELY = 1 << 17  # identities of a column that are kept in memory while it is read

_PLAIN = (
    (pa.types.is_integer, pa.int64()),
    (pa.types.is_floating, pa.float64()),
    (pa.types.is_decimal, pa.float64()),
    (pa.types.is_string, pa.string()),
    (pa.types.is_large_string, pa.string()),
    (pa.types.is_string_view, pa.string()),
    (pa.types.is_date, pa.date32()),
    (pa.types.is_timestamp, pa.timestamp("us")),
    (pa.types.is_time, pa.time64("us")),
    (pa.types.is_null, pa.float64()),
)
_FINE = {"timestamp[us]": pa.timestamp("ns"), "time64[us]": pa.time64("ns")}
"""Types of times that microseconds do not hold."""


def plain_columns(
    table: pa.Table, identities: Sequence[str] = (), *, part: bool = False, first: int = 1
) -> pa.Table:
    """Bring columns to the few types that data sets keep.

    Integers become int64 (uint64 stays), other numbers float64, times microseconds (nanoseconds,
    where a value needs them); arrays become bytes, or lists of float64, of one length (see
    `erasable.workspace.data.arrays`); text, booleans and days stay. So do decimals in columns of
    identities: floats do not hold all of their digits. Columns of nothing but gaps become float64,
    unless the table is a `part` of one: its other parts may hold values. `first` is the number of
    the first row, for messages.
    """
    arrays = []
    for field, column in zip(table.schema, table.columns, strict=True):
        if holds_arrays(field.type):
            try:
                arrays.append(plain_arrays(column, field.name))
            except pa.ArrowException:
                raise SourceError(
                    f"column {field.name!r} holds whole numbers that floats do not; expected "
                    "smaller ones in arrays; convert it, or leave it out"
                ) from None
            continue
        wanted = _plain_type(field)
        of_person = field.name in identities and pa.types.is_decimal(field.type)
        if of_person or (part and pa.types.is_null(field.type)):
            arrays.append(column)
        else:
            arrays.append(_as(column, wanted, field.name, first))
    return pa.table(arrays, names=table.column_names)


def _as(column: pa.ChunkedArray, wanted: pa.DataType, name: str, first: int) -> pa.ChunkedArray:
    try:
        return convert_column(column, wanted)
    except WRONG:
        fine = _FINE.get(str(wanted))
        if fine is not None and getattr(column.type, "unit", None) == "ns":
            return column.cast(fine)
    at, n = first_unfit(column, lambda some: convert_column(some, wanted)) or (0, 1)
    raise unfit_value(name, column[at], first + at, wanted, n=n)


def _plain_type(field: pa.Field) -> pa.DataType:
    kind = field.type.value_type if pa.types.is_dictionary(field.type) else field.type
    if pa.types.is_boolean(kind) or kind in (pa.uint64(), pa.date32()):
        return kind
    for fits, wanted in _PLAIN:
        if fits(kind):
            return wanted
    raise SourceError(
        f"column {field.name!r} holds {field.type}; expected numbers, text, booleans, days, times "
        "or arrays; convert it, or leave it out"
    )


class Gate:
    """Admission to a data set: people become tokens, and those who were erased before stay out.

    The suppression list is read once, so that one pass over a source has one answer. Raise
    TamperedError if it differs from the log.
    """

    def __init__(self, context: Context, known: DataSet) -> None:
        self._keys = context.keys
        self._known = known
        self._named = record_type(known.name)
        self._lately: dict[tuple[str, str | None, str], dict[Any, str | None]] = {}
        with context.ledger.reading() as connection:
            suppressions.check_list(connection)  # a token that was taken off it would come in
            banned = suppression.every(connection)
            self._banned, self._banned_tokens = pa.array(banned, pa.string()), set(banned)
            self._bans_records = suppression.uses(connection, self._named)

    def admit(self, raw: pa.Table, first: int) -> tuple[pa.Table, pa.ChunkedArray | None]:
        """Put tokens into the subject columns, and drop records that were erased before.

        These are the records of suppressed subjects, and those that met the condition of a request.
        Return the records, and a mask of the rows of `raw` that stay, None where all do.
        """
        records = raw
        for column, kind in self._known.subjects:
            try:
                values = self._tokens(column, kind, raw[column])
            except InvalidIdsError as error:
                raise self._unfit(kind, raw[column], column, first, error) from None
            at = records.schema.get_field_index(column)
            records = records.set_column(at, column, pa.array(values, pa.string()))
        if not len(self._banned):
            return records, None
        leaves = [pc.is_in(records[c], self._banned) for c in self._known.subject_columns]
        if self._bans_records:
            own = self._keys.tokens(self._named, raw[self._known.id_column].to_pylist())
            leaves.append(pc.is_in(pa.chunked_array([own], pa.string()), self._banned))
        gone = reduce(pc.or_, leaves) if leaves else None
        if gone is None or not pc.any(gone, min_count=0).as_py():
            return records, None
        stays = pc.invert(gone)
        return records.filter(stays), stays

    def _unfit(
        self, kind: str, column: pa.ChunkedArray, name: str, first: int, error: InvalidIdsError
    ) -> InvalidIdsError:
        """Return the error for values that cannot name a person."""
        bad = []
        for row, value in enumerate(column.to_pylist(), first):
            if value is None:
                continue
            try:
                self._keys.token(kind, value, self._known.regions.get(name))
            except InvalidIdsError:
                bad.append(row)
        return InvalidIdsError(
            f"column {name!r} has {len(bad):,} value{'s' if len(bad) > 1 else ''} that cannot name "
            f"a person in the rows up to {first + len(column) - 1:,}, the first in row "
            f"{bad[0]:,}: {error}"
        )

    def _tokens(self, name: str, kind: str, column: pa.ChunkedArray) -> list[str | None]:
        """Return the tokens of a column; those of recent values are cached."""
        values, region = column.to_pylist(), self._known.regions.get(name)
        lately = self._lately.setdefault((kind, region, str(column.type)), {None: None})
        new = list({value for value in values if value not in lately})
        if len(lately) + len(new) > _LATELY:
            lately.clear()
            new = list({None, *values})
        lately.update(zip(new, self._keys.tokens(kind, new, region), strict=True))
        for value in new if self._banned_tokens else ():
            before = self._keys.former_token(kind, value)
            if before in self._banned_tokens:
                lately[value] = before
        return list(map(lately.__getitem__, values))


def tokens_in(column: pa.ChunkedArray) -> list[str]:
    """Return each token of a subject column once."""
    return [token for token in pc.unique(column).to_pylist() if token is not None]


def tokens_of(context: Context, part: FragmentRow, known: DataSet) -> set[str]:
    """Return the tokens in the subject columns of a fragment."""
    table = fragments.read(context, part.key, part.sha256, known.subject_columns)
    return {token for column in known.subject_columns for token in tokens_in(table[column])}
