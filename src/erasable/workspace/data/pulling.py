"""Pulling of a source: its records in one pass, a batch at a time, up to where they can be written.

The law kept here: the result does not depend on where batches begin, nor on the order of the
records. Nothing of the workspace changes, but for scratch, which holds no identity.

Memory: one batch with its identities, the records that `Spool` holds, the ids (`Ids`: 8 or 16 bytes
a record, twice that while they are sorted), and the suppression list.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field, replace
from functools import reduce
from hashlib import blake2b
from itertools import chain
from pathlib import Path
from typing import Any, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from erasable.core._arrow_files import CSV_NULLS, ipc_batches, ipc_writer
from erasable.core.errors import DialectWarning, InvalidIdsError, SourceError
from erasable.core.ids import name_some
from erasable.workspace.context import Context
from erasable.workspace.data import fragments
from erasable.workspace.data.admission import Gate, plain_columns
from erasable.workspace.data.array_files import ArrayFiles
from erasable.workspace.data.arrays import type_of
from erasable.workspace.data.catalogue import DataSet
from erasable.workspace.data.column_types import ColumnTypes, Widening
from erasable.workspace.data.delimited import NearlyNumbers
from erasable.workspace.data.fragments import PARTS
from erasable.workspace.data.sources import Source
from erasable.workspace.identity.subjects import DEFAULT_TYPE
from erasable.workspace.identity.value_formats import Looks
from erasable.workspace.store.disk import disk_errors

_GAPS = sorted({each.casefold() for each in CSV_NULLS if each} | {"none"})
"""Texts that programs write for a gap, case folded."""


def count_without(records: pa.Table, subjects: Sequence[str]) -> int:
    """Count the records with gaps in all of their subject columns."""
    gaps = [pc.is_null(records[column]) for column in subjects]
    found: int = pc.sum(reduce(pc.and_, gaps)).as_py() or 0 if gaps else records.num_rows
    return found


def count_doubtful(raw: pa.Table, subjects: Sequence[str]) -> dict[str, int]:
    """Count the texts of each subject column that may have been meant as a gap.

    `raw` has identities, not tokens.
    """
    found = dict.fromkeys(subjects, 0)
    for column in subjects:
        if pa.types.is_string(raw[column].type):
            folded = pc.utf8_lower(pc.utf8_trim_whitespace(raw[column]))
            found[column] = pc.sum(pc.is_in(folded, pa.array(_GAPS))).as_py() or 0
    return found


def subject_remarks(counts: Mapping[str, int], n_records: int, looks: Looks) -> tuple[str, ...]:
    """Describe likely mistakes in subject columns; see `count_doubtful` for `counts`."""
    messages = [
        f"in {n:,} of {n_records:,} records the subject column {column!r} holds what "
        "programs write for a gap (NA, nan, null, None): it is taken for somebody's "
        "identity; leave it empty in the source where nobody is meant"
        for column, n in counts.items()
        if n
    ]
    messages += [
        f"the subject column {column!r} holds values that look like addresses, and its type is "
        "id: Ann@x.org and ann@x.org are two people there, and each is to be asked for as it is "
        "spelled"
        for column in looks.addresses
    ]
    return tuple(messages)


def refuse_untyped(looks: Looks) -> None:
    """Ask for the types of columns that look like addresses or telephone numbers."""
    if looks.addresses:
        raise InvalidIdsError(
            f"{_described(looks.addresses)} values that look like addresses, and no type was "
            "named; expected one, because by default Ann@x.org and ann@x.org are two people; write "
            f"{_written(looks.addresses, 'email')}, or {_written(looks.addresses, 'id')} to keep "
            "the two apart"
        )
    if looks.telephones:
        raise InvalidIdsError(
            f"{_described(looks.telephones)} values that look like telephone numbers, and no type "
            "was named; expected one, because by default two spellings of a number are two people; "
            f"write {_written(looks.telephones, 'phone')}, with the country of numbers without a "
            f"country code as in {_written(looks.telephones[:1], 'phone:DE')}, or "
            f"{_written(looks.telephones, 'id')} to keep spellings apart"
        )


def _described(columns: Sequence[str]) -> str:
    many = len(columns) > 1
    named = " and ".join(map(repr, columns))
    return f"the subject column{'s' if many else ''} {named} hold{'' if many else 's'}"


def _written(columns: Sequence[str], kind: str) -> str:
    return "--subject " + ",".join(f"{column}:{kind}" for column in columns)


_HELD = 1 << 25  # bytes of records in memory, before they go to the disk


class Spool:
    """A context that takes records in any order, and returns them part by part.

    `place` is the source in messages; `wide` has the types of all records so far.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder, Spool(Context.create(folder), "x") as spool:
    ...     spool.add(pa.table({"id": [1, 2, 3]}), pa.array([7, 0, 7], pa.int32()))
    ...     spool.read([7])["id"].to_pylist(), spool.read([0, 7]).num_rows
    ([1, 3], 3)
    """

    def __init__(self, context: Context, place: str) -> None:
        self.wide = Widening(place)
        self.place = place
        self._site = context
        self._held: list[tuple[pa.Table, pa.Array]] = []
        self._n_bytes = 0
        self._runs: list[_Run] = []
        self._rest: tuple[pa.Table, NDArray[np.int64]] | None = None
        self._open = ExitStack()
        self._folder: Path | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        self._held, self._rest = [], None
        self._open.close()

    def add(self, records: pa.Table, parts: pa.Array) -> None:
        """Take in records with the columns of those before, and the part of each.

        Their types are the same, or widen those before. `parts` are int32, from 0 to `PARTS` - 1.
        """
        self.wide.add(records.schema)
        self._held.append((records, parts))
        self._n_bytes += records.nbytes
        if self._n_bytes >= _HELD:
            self._spill()

    def read(self, parts: Iterable[int]) -> pa.Table:
        """Return the records of some parts, in the types of all."""
        if self._rest is None:
            self._rest = self._sorted()
        wanted = list(parts)
        found = [self._slice(*self._rest, part) for part in wanted]
        for run in self._runs:
            found += run.read(wanted)
        tables = [self.wide.cast(table) for table in found if table.num_rows]
        return pa.concat_tables([self.wide.schema.empty_table(), *tables])

    @staticmethod
    def _slice(table: pa.Table, bounds: NDArray[np.int64], part: int) -> pa.Table:
        return table.slice(bounds[part], bounds[part + 1] - bounds[part])

    def _sorted(self) -> tuple[pa.Table, NDArray[np.int64]]:
        """Sort the records in memory by part; return where each part begins."""
        held, self._held, self._n_bytes = self._held, [], 0
        parts = pa.concat_arrays([pa.array([], pa.int32()), *(each for _, each in held)])
        table = pa.concat_tables(
            [self.wide.schema.empty_table(), *(self.wide.cast(each) for each, _ in held)]
        )
        del held
        order = pc.sort_indices(parts)
        bounds = np.searchsorted(parts.take(order).to_numpy(), np.arange(PARTS + 1))
        with overflow_errors(self.place):
            return table.combine_chunks().take(order), bounds

    def _spill(self) -> None:
        if self._folder is None:
            self._folder = self._open.enter_context(self._site.scratch())
        path = self._folder / f"{len(self._runs)}.arrow"
        table, bounds = self._sorted()
        run = _Run(path)
        key = path.relative_to(self._site.root).as_posix()
        with self._site.disk.filling(key) as file, ipc_writer(file, table.schema) as writer:
            for part in range(PARTS):
                if bounds[part] < bounds[part + 1]:
                    batches = self._slice(table, bounds, part).to_batches()
                    run.note(part, len(batches))
                    for batch in batches:
                        writer.write_batch(batch)
        self._runs.append(run)


@contextmanager
def overflow_errors(place: str) -> Iterator[None]:
    """Raise SourceError where texts are too long for Arrow to sort together."""
    try:
        yield
    except (pa.ArrowInvalid, pa.ArrowCapacityError):
        raise SourceError(
            f"{place!r} has a column with more than 2 GB of text in the records that are kept "
            "together, those of a person; expected less; leave the column out, or shorten its texts"
        ) from None


class _Run:
    """A file of records in the order of their parts."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._n_batches = 0
        self._batches: dict[int, range] = {}  # of each part

    def note(self, part: int, n_batches: int) -> None:
        """Note that the next batches are of a part."""
        self._batches[part] = range(self._n_batches, self._n_batches + n_batches)
        self._n_batches += n_batches

    def read(self, parts: Iterable[int]) -> list[pa.Table]:
        """Return the records of some parts."""
        wanted = [number for part in parts for number in self._batches.get(part, ())]
        with disk_errors(self.path):
            return [pa.Table.from_batches([each]) for each in ipc_batches(self.path, wanted)]


_BYTES = 16


class Ids:
    """A multiset of ids, in no order.

    >>> ids = Ids()
    >>> ids.add(pa.array(["a", "b", None]))
    >>> ids.add(pa.array(["b", "c"]))
    >>> len(ids), ids.n_gaps, ids.n_repeated()
    (4, 1, 1)
    >>> ids.n_of(pa.array(["c", "d"]))
    1
    """

    def __init__(self) -> None:
        self.n_gaps = 0
        self._parts: list[NDArray[Any]] = []

    def __len__(self) -> int:
        return sum(map(len, self._parts))

    def add(self, column: pa.Array | pa.ChunkedArray) -> None:
        """Add ids, integers or text; gaps are counted."""
        self.n_gaps += column.null_count
        if len(column) > column.null_count:
            self._parts.append(_keys(column))

    def n_repeated(self) -> int:
        """Count the repeated ids."""
        keys = self._sorted()
        return int(np.count_nonzero(keys[1:] == keys[:-1]))

    def n_of(self, column: pa.Array | pa.ChunkedArray) -> int:
        """Count the values of a column that are among the ids."""
        return self._n_found(_keys(column)) if len(column) > column.null_count else 0

    def n_shared(self, other: Ids) -> int:
        """Count the ids of another collection that are in this one, too."""
        return sum(map(self._n_found, other._parts))

    def _n_found(self, keys: NDArray[Any]) -> int:
        own = self._sorted()
        if not len(own) or keys.dtype != own.dtype:
            return 0
        at = np.searchsorted(own, keys)
        at[at == len(own)] = 0
        return int(np.count_nonzero(own[at] == keys))

    def _sorted(self) -> NDArray[Any]:
        """Join all into one sorted array, once."""
        if len(self._parts) != 1:
            parts, self._parts = self._parts, []
            joined = np.concatenate(parts) if parts else np.empty(0, np.int64)
            del parts
            self._parts = [joined]
        keys = self._parts[0]
        if len(keys) > 1 and not bool(np.all(keys[1:] >= keys[:-1])):
            keys.sort()
        return keys


def _keys(column: pa.Array | pa.ChunkedArray) -> NDArray[Any]:
    column = column.drop_null()
    if pa.types.is_integer(column.type):
        kind = np.uint64 if column.type == pa.uint64() else np.int64
        return column.to_numpy(zero_copy_only=False).astype(kind).view(np.int64)  # type: ignore[no-any-return]
    hashes = [blake2b(value.encode(), digest_size=_BYTES).digest() for value in column.to_pylist()]
    return np.frombuffer(b"".join(hashes), f"S{_BYTES}").copy()


_WHOLE = ("int64", "uint64")
_AT_ONCE = 1 << 16  # records whose identities are in memory as Python objects


@dataclass(slots=True)
class Pulled:
    """Records of a source, with tokens for people, without those of the suppressed."""

    known: DataSet  # with the types of the columns as they will be
    spool: Spool
    looks: Looks
    n_read: int = 0
    n_suppressed: int = 0  # of `n_read`
    n_without_subject: int = 0  # of the records that are not suppressed
    ids: Ids = field(default_factory=Ids)  # of all that were read
    left_out: Ids = field(default_factory=Ids)  # of the suppressed
    doubtful: dict[str, int] = field(default_factory=dict)
    absent: list[str] = field(default_factory=list)  # columns that no line of JSON has

    @property
    def n_records(self) -> int:
        """Number of records that may come in."""
        return self.n_read - self.n_suppressed

    @property
    def remarks(self) -> tuple[str, ...]:
        """Likely mistakes in the source, a line each."""
        told = subject_remarks(self.doubtful, self.n_read, self.looks)
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
    declared: ColumnTypes | None = None,
) -> Iterator[Pulled]:
    """Read a source to its end; its temporary files go when the `with` block ends.

    If `new`, the columns and the number of buckets follow from the source. Of a new data set,
    `untyped` are subject columns without a given type, `files` columns of names of files, whose
    arrays are taken in, and `declared` the types that the user has given.
    """
    names, copy = known.subject_columns, known.id_as_subject
    _check_named_once(known.id_column, [*names, *files])
    own = [name for name in names if name != copy]
    read = ArrayFiles(source.folder, files or list(known.files), known.files)
    wide, gate = Widening(source.place), Gate(context, known)
    types = declared if new else ColumnTypes.of(known)
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
                    besides = [known.id_column, *names, *files, *(types.types if types else ())]
                    numbers.add(batch, besides, source.first_row + found.n_read)
                if new:
                    _check_id_type(wide.schema.field(known.id_column))
                else:
                    if source.kind == "json":
                        batch, found.absent = _with_gaps(batch, known)
                    _check_columns(batch.column_names, known)
                for start in range(0, max(1, batch.num_rows), _AT_ONCE):
                    row = source.first_row + found.n_read
                    raw = plain_columns(batch.slice(start, _AT_ONCE), names, part=True, first=row)
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
            refuse_untyped(found.looks)
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
    for column, n in count_doubtful(raw, known.subject_columns).items():
        found.doubtful[column] += n
    found.looks.add(raw)
    records, stays = gate.admit(raw, row)
    if stays is not None:
        found.left_out.add(raw[known.id_column].filter(pc.invert(stays)))
    found.n_suppressed += raw.num_rows - records.num_rows
    found.n_without_subject += count_without(records, known.subject_columns)
    parts = fragments.parts_of(records, known.id_column, known.subject_columns)
    found.spool.add(records, parts)


def _check_named_once(id_column: str, names: Sequence[str]) -> None:
    if id_column in names or len(set(names)) < len(names):
        raise SourceError(
            f"the columns {', '.join([id_column, *names])} name one twice; expected each once"
        )


def _with_copy(batch: pa.Table, id_column: str, copy: str) -> pa.Table:
    """Add a copy of the ids, which will hold tokens of the people whom they name."""
    if copy in batch.column_names:
        raise SourceError(
            f"the source has a column {copy!r}, as the tokens of {id_column!r} are called; "
            "expected none of this name; rename it"
        )
    return batch.append_column(copy, batch[id_column])


def _with_gaps(batch: pa.Table, known: DataSet) -> tuple[pa.Table, list[str]]:
    """Add columns of gaps for keys that all lines lack; return their names, too."""
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
    """Return the types of a data set's columns: whole numbers become floats where floats came."""
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
