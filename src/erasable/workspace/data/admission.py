"""What may come into a data set, and as what: plain types, ids that differ, tokens for people."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from erasable.core.errors import InvalidIdsError, SourceError
from erasable.workspace.data.catalogue import DataSet
from erasable.workspace.data.sources import Source
from erasable.workspace.identity import suppression
from erasable.workspace.site import Site

__all__ = ["admit", "conform", "plain", "read_source", "record_type", "tokens_in"]

_WHOLE = ("int64", "uint64")
_PLAIN = (
    (pa.types.is_integer, pa.int64()),
    (pa.types.is_floating, pa.float64()),
    (pa.types.is_decimal, pa.float64()),
    (pa.types.is_string, pa.string()),
    (pa.types.is_large_string, pa.string()),
    (pa.types.is_string_view, pa.string()),
    (pa.types.is_date, pa.date32()),
    (pa.types.is_timestamp, pa.timestamp("us")),
    (pa.types.is_null, pa.float64()),
)


def read_source(source: Source, id_column: str, subjects: Sequence[tuple[str, str]]) -> pa.Table:
    """Read a source into plain types; see `plain`.

    Raises
    ------
    SourceError
        It cannot be read, lacks a column, or one is named twice.
    """
    names = [column for column, _ in subjects]
    if id_column in names or len(set(names)) < len(names):
        raise SourceError(
            f"the columns {', '.join([id_column, *names])} name one twice; expected an id column "
            "and subject columns that differ; name each once, and copy the id column in the "
            "source where each record is a person"
        )
    return plain(source.read(text_columns=[id_column, *names]), identities=names)


def plain(table: pa.Table, identities: Sequence[str] = ()) -> pa.Table:
    """Bring columns to the few types that data sets keep.

    Integers become int64 (uint64 where they are that), other numbers float64, times
    microseconds; text, booleans and days stay. So do decimals in columns of identities: floats
    do not hold all of their digits.

    Raises
    ------
    SourceError
        A column is of another type.
    """
    arrays = []
    for field, column in zip(table.schema, table.columns, strict=True):
        wanted = _plain_type(field.type)
        if field.name in identities and pa.types.is_decimal(field.type):
            wanted = field.type
        try:
            arrays.append(column if wanted == field.type else column.cast(wanted))
        except (pa.ArrowException, TypeError, ValueError):
            raise SourceError(
                f"column {field.name!r} holds {field.type}; expected numbers, text, booleans, "
                "days or times; convert it, or leave it out"
            ) from None
    return pa.table(arrays, names=table.column_names)


def _plain_type(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_dictionary(kind):
        return _plain_type(kind.value_type)
    if pa.types.is_boolean(kind) or kind in (pa.uint64(), pa.date32()):
        return kind
    for fits, wanted in _PLAIN:
        if fits(kind):
            return wanted
    return pa.null()  # nothing but gaps can be cast to it


def conform(raw: pa.Table, known: DataSet) -> tuple[pa.Table, DataSet]:
    """Bring a table to the columns and types of a data set.

    A column of whole numbers becomes one of any numbers where such come in.

    Returns
    -------
    table : pyarrow.Table
    known : DataSet
        With the types as they are now.

    Raises
    ------
    SourceError
        Columns are missing or new, or hold values of another type.
    """
    expected = [name for name, _ in known.columns]
    missing = [name for name in expected if name not in raw.column_names]
    new = [name for name in raw.column_names if name not in expected]
    if missing or new:
        told = [f"lacks {', '.join(missing)}"] if missing else []
        told += [f"has {', '.join(new)} besides"] if new else []
        raise SourceError(
            f"the source {' and '.join(told)}; expected the columns of {known.name!r}: "
            f"{', '.join(expected)}; bring them to these, or add it as another data set"
        )
    arrays, columns = [], []
    for name, kind in known.columns:
        column = raw[name]
        if name not in known.subject_columns:
            if kind in _WHOLE and pa.types.is_floating(column.type) and name != known.id_column:
                kind = "double"
            try:
                column = column.cast(pa.type_for_alias(kind))
            except (pa.ArrowException, ValueError):
                raise SourceError(
                    f"column {name!r} holds {column.type}; expected {kind}, as in {known.name!r}; "
                    "convert it, or add the source as another data set"
                ) from None
        arrays.append(column)
        columns.append((name, kind))
    return pa.table(arrays, names=expected), replace(known, columns=tuple(columns))


def admit(site: Site, known: DataSet, raw: pa.Table) -> tuple[pa.Table, dict[str, str], int]:
    """Put tokens into the subject columns, and drop records that were erased before.

    These are the records of suppressed subjects, and those that met the condition of a request.

    Returns
    -------
    records : pyarrow.Table
    tokens : dict of token to type
        Of the records that stay.
    n_suppressed : int
    """
    _check_ids(raw[known.id_column], known.id_column)
    records = raw
    for column, kind in known.subjects:
        values = site.keys.tokens(kind, records[column].to_pylist())
        at = records.schema.get_field_index(column)
        records = records.set_column(at, column, pa.array(values, pa.string()))
    found = {token: kind for column, kind in known.subjects for token in tokens_in(records[column])}
    named = record_type(known.name)
    with site.ledger.reading() as connection:
        banned = pa.array(sorted(suppression.suppressed(connection, found)), pa.string())
        ids = records[known.id_column].to_pylist() if suppression.uses(connection, named) else []
        of_ids = site.keys.tokens(named, ids)
        erased = suppression.suppressed(connection, [token for token in of_ids if token])
    if erased:
        records = records.filter(pa.array([token not in erased for token in of_ids]))
        found = {t: k for c, k in known.subjects for t in tokens_in(records[c])}
    if len(banned):
        leaves = None
        for column in known.subject_columns:
            own = pc.is_in(records[column], banned)
            leaves = own if leaves is None else pc.or_(leaves, own)
        records = records.filter(pc.invert(leaves))
        found = {t: k for c, k in known.subjects for t in tokens_in(records[c])}
    return records, found, raw.num_rows - records.num_rows


def record_type(dataset: str) -> str:
    """Return the type of tokens of the records of a data set, which no subject has.

    Examples
    --------
    >>> record_type("visits")
    'record.visits/id'
    """
    return f"record.{dataset}/id"


def tokens_in(column: pa.ChunkedArray) -> list[str]:
    """Return each token of a subject column once."""
    return [token for token in pc.unique(column).to_pylist() if token is not None]


def _check_ids(ids: pa.ChunkedArray, name: str) -> None:
    if not (pa.types.is_integer(ids.type) or pa.types.is_string(ids.type)):
        raise InvalidIdsError(
            f"column {name!r} holds {ids.type}; expected integers or text, which name each "
            "record; choose another column with --id"
        )
    if ids.null_count:
        raise InvalidIdsError(
            f"column {name!r} has {ids.null_count} gaps; expected an id in every row; "
            "fill them in, or choose another column with --id"
        )
    repeated = len(ids) - pc.count_distinct(ids).as_py()
    if repeated:
        raise InvalidIdsError(
            f"column {name!r} repeats {repeated} of its {len(ids)} values; expected each once; "
            "remove the copies, or choose another column with --id"
        )
