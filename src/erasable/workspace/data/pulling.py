"""Pull the records of a source in one pass, a batch at a time, up to where they can be written.

The law kept here: what comes of it does not depend on where batches begin, nor on the order of the
records. Nothing of the workspace changes, but for scratch, which holds no identity.

Memory: one batch with its identities, what `spooling.Spool` holds, the ids
(`identifiers.Ids`: 8 or 16 bytes a record, twice that while they are sorted), and the list of whom
to keep out.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from itertools import chain

import pyarrow as pa
import pyarrow.compute as pc

from erasable.core.errors import DialectWarning, InvalidIdsError, SourceError
from erasable.core.ids import name_some
from erasable.workspace.context import Context
from erasable.workspace.data import fragments, subject_columns
from erasable.workspace.data.admission import Gate, plain
from erasable.workspace.data.array_files import ArrayFiles
from erasable.workspace.data.arrays import type_of
from erasable.workspace.data.catalogue import DataSet
from erasable.workspace.data.column_types import ColumnTypes
from erasable.workspace.data.delimited import NearlyNumbers
from erasable.workspace.data.identifiers import Ids
from erasable.workspace.data.sources import Source
from erasable.workspace.data.spooling import Spool, overflow_errors
from erasable.workspace.data.widening import Widening
from erasable.workspace.identity.looks import Looks
from erasable.workspace.identity.subjects import DEFAULT_TYPE

_WHOLE = ("int64", "uint64")
_AT_ONCE = 1 << 16  # records whose identities are in memory as Python objects


@dataclass(slots=True)
class Pulled:
    """Records of a source, with tokens for people, without those of the suppressed.

    Attributes
    ----------
    known : DataSet
        With the types of the columns as they will be.
    n_read, n_suppressed, n_without_subject : int
        Of the records that were read, those kept out; of the others, those without a subject.
    ids : Ids
        Of all that were read.
    left_out : Ids
        Of the suppressed.
    absent : list of str
        Columns that no line of JSON has.
    """

    known: DataSet
    spool: Spool
    looks: Looks
    n_read: int = 0
    n_suppressed: int = 0
    n_without_subject: int = 0
    ids: Ids = field(default_factory=Ids)
    left_out: Ids = field(default_factory=Ids)
    doubtful: dict[str, int] = field(default_factory=dict)
    absent: list[str] = field(default_factory=list)

    @property
    def n_records(self) -> int:
        """Records that may come in."""
        return self.n_read - self.n_suppressed

    @property
    def remarks(self) -> tuple[str, ...]:
        """What may not be as it was meant, a line each."""
        told = subject_columns.remarks(self.doubtful, self.n_read, self.looks)
        if not self.absent:
            return told
        return (*told, f"no line of the source has {name_some(self.absent)}: these are gaps")

    def bucket(self, number: int) -> pa.Table:
        """Return the records of a bucket, sorted by id, in the types of the data set."""
        found = self.spool.read(range(number, fragments.PARTS, self.known.n_buckets))
        with overflow_errors(self.spool.place):
            return _retyped(found, self.known).sort_by(self.known.id_column)


@contextmanager
def pulled(
    context: Context,
    source: Source,
    known: DataSet,
    *,
    new: bool = False,
    untyped: Sequence[str] = (),
    files: Sequence[str] = (),
) -> Iterator[Pulled]:
    """Read a source to its end; its temporary files go when the `with` block ends.

    If `new`, the columns and the number of buckets follow from the source. Of a new data set,
    `untyped` are subject columns for which no type was named, and `files` columns that name files,
    of which the arrays are taken in.
    """
    names, copy = known.subject_columns, known.id_as_subject
    _check_named_once(known.id_column, [*names, *files])
    own = [name for name in names if name != copy]
    read = ArrayFiles(source.folder, files or list(known.files), known.files)
    wide, gate = Widening(source.place), Gate(context, known)
    types = None if new else ColumnTypes.of(known)
    source = source.settled([known.id_column, *own, *files], types)
    numbers = NearlyNumbers(source.dialect) if new and source.kind == "csv" else None
    with Spool(context, source.place) as spool:
        watched = untyped if new else [c for c, kind in known.subjects if kind == DEFAULT_TYPE]
        found = Pulled(known, spool, Looks(watched), doubtful=dict.fromkeys(names, 0))
        with (
            closing(source.batches([known.id_column, *own, *files], types)) as batches,
            context.progress(f"reading {known.name}", None) as advance,
        ):
            for batch in chain.from_iterable(map(read.read, batches)):
                if copy is not None:
                    batch = _with_copy(batch, known.id_column, copy)
                wide.add(batch.schema)
                if numbers is not None:
                    besides = [known.id_column, *names, *files]
                    numbers.add(batch, besides, source.first_row + found.n_read)
                if new:
                    _check_id_type(wide.schema.field(known.id_column))
                else:
                    if source.kind == "json":
                        batch, found.absent = _with_gaps(batch, known)
                    _check_columns(batch.column_names, known)
                for start in range(0, max(1, batch.num_rows), _AT_ONCE):
                    row = source.first_row + found.n_read
                    raw = plain(batch.slice(start, _AT_ONCE), names, part=True, first=row)
                    _take_in(found, gate, raw, row)
                advance(batch.num_rows)
        _check_ids(found.ids, known.id_column)
        if numbers is not None and (told := numbers.told()):
            warnings.warn(
                f"{source.place!r} has columns that are read as text, though nearly all of their "
                f"cells are numbers or days: {told}; expected numbers as 1234.5 and days as "
                "2024-03-05; mend the file, say --decimal if its mark is another, or go on if "
                "they are text",
                DialectWarning,
                stacklevel=4,
            )
        if new:
            subject_columns.refuse_untyped(found.looks)
            columns = tuple(
                (each.name, "double" if pa.types.is_null(each.type) else str(each.type))
                for each in spool.wide.schema
            )
            n_buckets = fragments.buckets_for(found.n_read)
            kept = {**known.source, **source.to_json()}
            if files:
                kept["files"] = read.shapes
            found.known = replace(known, columns=columns, n_buckets=n_buckets, source=kept)
        else:
            found.known = replace(known, columns=_widened(spool.wide.schema, known))
        yield found


def _take_in(found: Pulled, gate: Gate, raw: pa.Table, row: int) -> None:
    known = found.known
    found.n_read += raw.num_rows
    found.ids.add(raw[known.id_column])
    if raw[known.id_column].null_count:
        return  # it will be refused, once all are counted
    for column, n in subject_columns.doubtful(raw, known.subject_columns).items():
        found.doubtful[column] += n
    found.looks.add(raw)
    records, stays = gate.admit(raw, row)
    if stays is not None:
        found.left_out.add(raw[known.id_column].filter(pc.invert(stays)))
    found.n_suppressed += raw.num_rows - records.num_rows
    found.n_without_subject += subject_columns.count_without(records, known.subject_columns)
    parts = fragments.parts_of(records, known.id_column, known.subject_columns)
    found.spool.add(records, parts)


def _check_named_once(id_column: str, names: Sequence[str]) -> None:
    if id_column in names or len(set(names)) < len(names):
        raise SourceError(
            f"the columns {', '.join([id_column, *names])} name one twice; expected each once"
        )


def _with_copy(batch: pa.Table, id_column: str, copy: str) -> pa.Table:
    """Put a copy of the ids beside them, to hold tokens of the people whom they name."""
    if copy in batch.column_names:
        raise SourceError(
            f"the source has a column {copy!r}, as the tokens of {id_column!r} are called; "
            "expected none of this name; rename it"
        )
    return batch.append_column(copy, batch[id_column])


def _with_gaps(batch: pa.Table, known: DataSet) -> tuple[pa.Table, list[str]]:
    """Put gaps where all lines lack a key; return the columns, too."""
    absent = [name for name, _ in known.columns if name not in batch.column_names]
    for name in absent:
        kind = known.schema.field(name).type
        batch = batch.append_column(name, pa.nulls(batch.num_rows, kind))
    return batch, absent


def _check_columns(names: Sequence[str], known: DataSet) -> None:
    expected = [name for name, _ in known.columns]
    missing = [name for name in expected if name not in names]
    new = [name for name in names if name not in expected]
    if missing or new:
        differences = [f"lacks {', '.join(missing)}"] if missing else []
        differences += [f"has {', '.join(new)} besides"] if new else []
        raise SourceError(
            f"the source {' and '.join(differences)}; expected the columns of {known.name!r}: "
            f"{', '.join(expected)}; bring them to these, or add it as another data set"
        )


def _check_id_type(column: pa.Field) -> None:
    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    of_kind = (
        pa.types.is_integer, pa.types.is_string, pa.types.is_large_string,
        pa.types.is_string_view, pa.types.is_null,
    )  # fmt: skip
    if not any(fits(kind) for fits in of_kind):
        raise InvalidIdsError(
            f"column {column.name!r} holds {kind}; expected integers or text, which name each "
            "record; choose another column with --id"
        )


def _check_ids(ids: Ids, name: str) -> None:
    if ids.n_gaps:
        raise InvalidIdsError(
            f"column {name!r} has {ids.n_gaps} gaps; expected an id in every row; "
            "fill them in, or choose another column with --id"
        )
    repeated = ids.n_repeated()
    if repeated:
        raise InvalidIdsError(
            f"column {name!r} repeats {repeated} of its {len(ids)} values; expected each once; "
            "remove the copies, or choose another column with --id"
        )


def _widened(came: pa.Schema, known: DataSet) -> tuple[tuple[str, str], ...]:
    """Return the types of a data set's columns: whole numbers become any where such came."""
    own = {known.id_column, *known.subject_columns}
    floats = {field.name for field in came if pa.types.is_floating(field.type)} - own
    return tuple(
        (name, "double" if kind in _WHOLE and name in floats else kind)
        for name, kind in known.columns
    )


def _retyped(records: pa.Table, known: DataSet) -> pa.Table:
    """Bring records to the columns and types of a data set."""
    names = [name for name, _ in known.columns]
    return pa.table([_cast(records, *column, known) for column in known.columns], names=names)


def _cast(records: pa.Table, name: str, kind: str, known: DataSet) -> pa.ChunkedArray:
    column = records[name]
    try:
        return column if str(column.type) == kind else column.cast(type_of(kind))
    except (pa.ArrowException, ValueError):
        raise SourceError(
            f"column {name!r} holds {column.type}; expected {kind}, as in {known.name!r}; "
            "convert it, or add the source as another data set"
        ) from None
