"""A scan of a place outside of the workspace for records of people whom the workspace knows.

The law kept here: a scan changes nothing, and neither prints nor keeps a value. A column is told
from the others by tokens of its values alone, as the columns of data sets are.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc
from sqlalchemy import Connection, select

from erasable.core.errors import SourceError
from erasable.workspace.context import Context
from erasable.workspace.data import databases, files
from erasable.workspace.data.catalogue import all_datasets
from erasable.workspace.data.sources import EmptySourceError, Source
from erasable.workspace.identity import subjects, suppression
from erasable.workspace.identity.canonical import declared, is_record_type
from erasable.workspace.identity.value_formats import addresses_among, telephones_among
from erasable.workspace.ledger.bulk import values_held
from erasable.workspace.ledger.schema import identity
from erasable.workspace.ledger.schema import suppression as suppression_table
from erasable.workspace.targets.people import by_token
from erasable.workspace.targets.places import tables_of

Types = Sequence[tuple[str, str | None]]
"""Types of identities, with the region of telephone numbers without a country code."""


@dataclass(frozen=True, slots=True)
class Attribution:
    """A column with identities of people whom the workspace knows or has erased, or others.

    Of others, where all counts but the first are 0, the values look like addresses or telephone
    numbers.
    """

    place: str  # a file, or a database with its table
    column: str
    type: str  # of identities
    n_rows: int  # of the table
    n_attributed: int  # rows with such an identity
    n_known: int  # identities of people whose records the workspace has
    n_erased: int  # identities on the suppression list


@dataclass(frozen=True, slots=True)
class Scanned:
    """The result of a scan."""

    columns: list[Attribution]
    warnings: list[str]  # of tables that could not be read, beside others


@dataclass(slots=True)
class _Column:
    n_rows: dict[str, int] = field(default_factory=dict)  # with an identity, by its type
    known: dict[str, set[str]] = field(default_factory=dict)  # tokens by type
    erased: dict[str, set[str]] = field(default_factory=dict)
    n_named: int = 0  # rows with a value
    n_like: dict[str, int] = field(default_factory=dict)  # rows that look like a type


def scan(
    context: Context, place: str, query: str | None = None, columns: Sequence[str] = ()
) -> Scanned:
    """Find the columns with identities of people; see `Workspace.scan_target`."""
    wanted = {}
    for each in columns:
        column, colon, kind = each.partition(":")
        wanted[column] = [declared(kind if colon else subjects.DEFAULT_TYPE)]
    found, warnings, missing = list[Attribution](), list[str](), set(wanted)
    with context.ledger.reading() as connection:
        types = _types(connection)
    tables = list(tables_of(place, query, besides=context.root))
    n_read = 0  # tables with records
    with context.progress("scanning", len(tables)) as advance:
        for name, source in tables:
            try:
                found += _scan_table(context, name, source, wanted, types, missing)
                n_read += 1
            except EmptySourceError:  # there is nobody in it
                pass
            except SourceError as error:
                if len(tables) == 1:
                    raise
                warnings.append(f"not scanned: {error}")
            advance()
    if "://" in place and not files.is_store(place):
        warnings += [
            f"row-level security may hide rows of {name!r} from this user; people may be in them"
            for name in databases.hidden_rows(place)
        ]
    if missing and n_read and not warnings:
        raise SourceError(
            f"{place!r} has no column {', '.join(map(repr, sorted(missing)))}; expected one of its "
            "own; correct the name, or scan all columns"
        )
    return Scanned(found, warnings)


def _types(connection: Connection) -> Types:
    """Return the types under which the workspace knows people, or has known them."""
    found: dict[tuple[str, str | None], None] = {}
    for known in all_datasets(connection):
        for column, kind in known.subjects:
            found[kind, known.regions.get(column)] = None
    suppressed = connection.execute(select(suppression_table.c.type).distinct()).scalars()
    for kind in [*subjects.types_in_use(connection), *suppressed]:
        if not any(kind == each for each, _ in found):
            found[kind, None] = None
    return [each for each in found if not is_record_type(each[0])]


def _scan_table(
    context: Context,
    name: str,
    source: Source,
    wanted: Mapping[str, Types],
    types: Types,
    missing: set[str],
) -> Iterator[Attribution]:
    """Find the columns of a table; those of `wanted` that it has leave `missing`."""
    seen: dict[str, _Column] = {}
    n_rows = 0
    for part in _batches(source):
        n_rows += part.num_rows
        for column in wanted or part.column_names:
            if column in part.column_names:
                missing.discard(column)
                tried = wanted.get(column, types)
                _count(context, part[column], tried, seen.setdefault(column, _Column()))
    for column, of in seen.items():
        for kind, n in of.n_rows.items():
            known, erased = len(of.known[kind]), len(of.erased[kind])
            yield Attribution(name, column, kind, n_rows, n, known, erased)
        for kind, n in of.n_like.items():
            if 2 * n > of.n_named and not of.n_rows:
                yield Attribution(name, column, kind, n_rows, 0, 0, 0)


def _batches(source: Source) -> Iterator[pa.Table]:
    """Read a table in batches, columns of a text file as they are spelled."""
    spelled: Sequence[str] = ()
    if source.kind == "csv":
        with closing(source.batches()) as parts:
            spelled = next(parts).column_names
    yield from source.batches(spelled)


def _count(context: Context, values: pa.ChunkedArray, types: Types, of: _Column) -> None:
    """Count the rows with identities of a batch, and collect their tokens."""
    if pa.types.is_dictionary(values.type):
        values = values.cast(values.type.value_type)
    texts = pa.types.is_string(values.type) or pa.types.is_large_string(values.type)
    if not (texts or pa.types.is_integer(values.type)):
        return
    of.n_named += len(values) - values.null_count
    if texts:
        for kind, looking in (("email", addresses_among), ("phone", telephones_among)):
            of.n_like[kind] = of.n_like.get(kind, 0) + len(looking(values.to_pylist()))
    counts = {each["values"]: each["counts"] for each in pc.value_counts(values).to_pylist()}
    counts.pop(None, None)
    for kind, region in types:
        tokens = by_token(context, counts, kind, region)
        with context.ledger.reading() as connection:
            known = values_held(connection, identity.c.token, tokens)
            erased = suppression.suppressed(connection, tokens)
        rows = {value for token in known | erased for value in tokens[token]}
        if rows:
            of.n_rows[kind] = of.n_rows.get(kind, 0) + sum(counts[value] for value in rows)
            of.known.setdefault(kind, set()).update(known)
            of.erased.setdefault(kind, set()).update(erased)
