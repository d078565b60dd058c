"""Columns of tables and files: which rows are of people, what these hold, and rows without it.

The law kept here: what others hold, too, is no sign of a person, unless it names the person.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any, TypeAlias
from uuid import UUID

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from erasable.core.errors import SourceError
from erasable.workspace.targets import residue
from erasable.workspace.targets.marks import forms_of, is_vector
from erasable.workspace.targets.protocol import N_LIVING, People, Plan, Settings, Subject
from erasable.workspace.targets.records import in_parts, leaves
from erasable.workspace.targets.vector_forms import numbers_of, piece_of

Keys: TypeAlias = "list[tuple[int, Any]]"
"""Values that name people, each with the number of its subject."""

_NOTHING, _BETWEEN = (pa.scalar(each, pa.large_string()) for each in ("", "\0"))
_CUTS = (16, 32, 64)  # characters that metadata keep of the extremes of a column
_DIGITS = 12  # of a number or date that names nobody, at least: shorter ones are there by chance


class Batch(ABC):
    """Some rows of a table or file; `given` are columns with one value in all rows."""

    n_rows: int
    given: Mapping[str, str | None]

    @abstractmethod
    def values(self, field: str) -> tuple[np.ndarray, list[Any]] | None:
        """Return the distinct values of a field, and which of them each row has, -1 for none.

        None where there is no such field.
        """

    @abstractmethod
    def leaves(self, rows: np.ndarray) -> Iterator[Any]:
        """Return the values of some rows."""

    @abstractmethod
    def text(self, rows: np.ndarray) -> Iterator[bytes]:
        """Return some rows as bytes in which values can be looked for."""

    def beginnings(self, rows: np.ndarray, wanted: Mapping[int, set[str]]) -> set[str]:
        """Return which of some beginnings of texts, by their length, some rows have."""
        return set()  # a file without metadata keeps none

    def has(self, field: str) -> bool:
        """Tell whether there is a field."""
        return self.column(field) is not None

    def column(self, field: str) -> tuple[np.ndarray, list[Any]] | None:
        """Return the values of a field, also of a given one; see `values`."""
        if field in self.given:
            value = self.given[field]
            at = np.zeros(self.n_rows, dtype=np.int64)
            return (at - 1, []) if value is None else (at, [value])
        return self.values(field)

    def rows_of(self, keys: Keys, subjects: Sequence[Subject]) -> np.ndarray:
        """Return which rows have one of some values."""
        found = np.zeros(self.n_rows, dtype=bool)
        for number, subject in enumerate(subjects):
            wanted = {value for each, value in keys if each == number}
            if wanted and (column := self.column(subject.field)) is not None:
                at, values = column
                found |= _chosen(at, [value in wanted for value in values])
        return found


def _chosen(at: np.ndarray, wanted: Sequence[bool]) -> np.ndarray:
    # The last is that of rows without a value.
    found: np.ndarray = np.array([*wanted, False], dtype=bool)[at]
    return found


class ArrowBatch(Batch):
    """Rows of a table of Arrow."""

    def __init__(self, table: pa.Table, given: Mapping[str, str | None] | None = None) -> None:
        self.table = without_views(table)
        self.n_rows = table.num_rows
        self.given = given or {}

    def values(self, field: str) -> tuple[np.ndarray, list[Any]] | None:
        """Return the distinct values of a column, and which of them each row has."""
        column = column_of(self.table, field)
        if column is None:
            return None
        encoded = column.combine_chunks().dictionary_encode()
        if isinstance(encoded, pa.ChunkedArray):
            encoded = encoded.combine_chunks()
        at = pc.fill_null(encoded.indices, -1).to_numpy(zero_copy_only=False).astype(np.int64)
        return at, encoded.dictionary.to_pylist()

    def leaves(self, rows: np.ndarray) -> Iterator[Any]:
        """Return the values of some rows, those of structures and lists one by one."""
        for column in self.table.filter(pa.array(rows)).columns:
            for value in column.to_pylist():
                yield from leaves_of(value)

    def text(self, rows: np.ndarray) -> Iterator[bytes]:
        """Return the texts and numbers of some rows."""
        for column in self.table.filter(pa.array(rows)).columns:
            plain = undictionaried(column)
            kind = plain.type
            if pa.types.is_string(kind) or pa.types.is_large_string(kind):
                filled = pc.fill_null(plain.cast(pa.large_string()), "")
                for chunk in pc.binary_join_element_wise(filled, _NOTHING, _BETWEEN).chunks:
                    yield chunk.buffers()[2].to_pybytes() if len(chunk) else b""
            elif (numbers := _numbers_in(plain)) is not None:
                yield numbers.tobytes()
            elif not (pa.types.is_boolean(kind) or pa.types.is_null(kind)):
                yield joined(plain.to_pylist())

    def beginnings(self, rows: np.ndarray, wanted: Mapping[int, set[str]]) -> set[str]:
        """Return which of some beginnings of texts, by their length, some rows have."""
        table, found = self.table.filter(pa.array(rows)), set[str]()
        while any(pa.types.is_struct(field.type) for field in table.schema):
            table = table.flatten()
        for column in table.columns:
            plain = undictionaried(column)
            for n, words in wanted.items() if is_text(plain.type) else ():
                own = pc.utf8_slice_codeunits(plain, 0, n)
                there = own.filter(pc.is_in(own, pa.array(list(words), own.type)))
                found.update(pc.unique(there).to_pylist())
        return found


def _numbers_in(column: pa.ChunkedArray) -> np.ndarray | None:
    """Return the numbers of a column of vectors, one after the other; None for another column."""
    kind = column.type
    lists = (pa.types.is_list, pa.types.is_large_list, pa.types.is_fixed_size_list)
    if not any(each(kind) for each in lists):
        return None
    flat = pc.list_flatten(column, recursive=True)
    if flat.null_count or not (pa.types.is_floating(flat.type) or pa.types.is_integer(flat.type)):
        return None
    found: np.ndarray = flat.to_numpy().astype("<f8")
    return found


def joined(values: Iterable[Any]) -> bytes:
    """Return values as bytes in which each can be looked for."""
    return b"\0".join(_bytes_of(leaf) for value in values for leaf in leaves_of(value))


def _bytes_of(value: Any) -> bytes:
    if is_vector(value):
        return np.asarray(value, dtype="<f8").tobytes()
    return value if isinstance(value, bytes) else str(value).encode(errors="surrogatepass")


def leaves_of(value: Any) -> Iterator[Any]:
    """Return the plain values and vectors within a value."""
    return (each for _, each in leaves(value) if each is not None)


def column_of(table: pa.Table, name: str) -> pa.ChunkedArray | None:
    """Return a column, or the field of a structure as in "person.mail", as plain values."""
    if (found := in_parts(name, table.schema.names)) is None:
        return None
    own, path = found
    column = table.column(table.schema.names.index(own))
    for part in path:
        if not pa.types.is_struct(column.type) or column.type.get_field_index(part) < 0:
            return None
        column = pc.struct_field(column, part)
    return undictionaried(column)


def undictionaried(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return a column without dictionary and extension."""
    if isinstance(column.type, pa.BaseExtensionType):
        return undictionaried(column.cast(column.type.storage_type))
    if pa.types.is_dictionary(column.type):
        return undictionaried(column.cast(column.type.value_type))
    return column


def without_views(table: pa.Table) -> pa.Table:
    """Return a table whose texts Arrow can choose rows of: of views it cannot."""
    for number, field in enumerate(table.schema):
        if pa.types.is_string_view(field.type):
            texts = table.column(number).cast(pa.large_string())
            table = table.set_column(number, field.with_type(pa.large_string()), texts)
    return table


def is_text(kind: pa.DataType) -> bool:
    """Tell whether a column holds texts."""
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    texts = (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view)
    return any(each(kind) for each in texts)


def check_subjects(
    schema: pa.Schema, subjects: Sequence[Subject], given: Collection[str], place: str
) -> None:
    """Refuse a table without a subject column, or with one that holds no identities."""
    there = [each for each in subjects if each.field in given]
    for each in subjects:
        found = column_of(schema.empty_table(), each.field)
        if found is None:
            continue
        there.append(each)
        if schema.names.count(each.field) > 1:
            raise SourceError(
                f"{place} has the column {each.field!r} more than once; expected each once"
            )
        if not _names_people(found.type):
            raise SourceError(
                f"the column {each.field!r} of {place} has the type {found.type}; expected texts "
                "or whole numbers, an identity in each row"
            )
    if not there:
        names = ", ".join(map(repr, [*schema.names, *given][:20]))
        raise SourceError(
            f"{place} has none of the columns "
            f"{', '.join(repr(each.field) for each in subjects)}; expected one or more of its "
            f"own: {names or 'it has none'}"
        )


def _names_people(kind: pa.DataType) -> bool:
    return any(
        of(kind)
        for of in (
            pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view,
            pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal, pa.types.is_null,
            _is_uuid,
        )
    )  # fmt: skip


def _is_uuid(kind: pa.DataType) -> bool:
    return bool(pa.types.is_fixed_size_binary(kind) and kind.byte_width == 16)


class Finder:
    """People who are looked for, and what is found of them."""

    def __init__(self, settings: Settings, people: People) -> None:
        self.plan = Plan()
        self._subjects = settings.subjects
        self._people = people
        self._others: dict[Any, bytes] = {}  # what their rows hold, as it is found in texts
        self._n_living: Counter[type] = Counter()
        self._names: set[str] = set()  # their identities
        self._beginnings: dict[int, set[str]] = {}  # of their texts, by length
        self._shared: set[str] = set()  # those that others' texts have as well

    def find(self, batch: Batch) -> tuple[Keys, int]:
        """Find the rows of people, and note what they hold; return the identities, and how many."""
        keys: Keys = []
        owners: dict[int, set[str]] = {}
        self.plan.n_seen += batch.n_rows
        for number, subject in enumerate(self._subjects):
            column = batch.column(subject.field)
            if column is None:
                continue
            at, values = column
            among = self._among(values, subject)
            if not among:
                continue
            keys += [(number, value) for value in among]
            for value in among:
                self.plan.marks.add(value, str(_asked(value)), column=subject.field)
                self._names.add(str(value))
            for row in np.flatnonzero(_chosen(at, [value in among for value in values])).tolist():
                owners.setdefault(row, set()).add(among[values[at[row]]])
        for names in owners.values():
            for name in names:
                self.plan.n_records[name] = self.plan.n_records.get(name, 0) + 1
        if owners:
            rows = np.zeros(batch.n_rows, dtype=bool)
            rows[list(owners)] = True
            self._note(set(map(_hashable, batch.leaves(rows))))
        return keys, len(owners)

    def note_living(self, batch: Batch, keys: Keys) -> None:
        """Note what others hold: it is not looked for, unless it names a person."""
        stay = ~batch.rows_of(keys, self._subjects)
        if not stay.any():
            return
        shared = batch.beginnings(stay, self._their_beginnings())
        self._shared |= shared
        for words in self._beginnings.values():
            words -= shared
        for part in batch.text(stay) if self._others else ():
            if found := residue.marks_among([part], set(self._others.values())):
                kept = self._others.items()
                self._others = {value: form for value, form in kept if form not in found}
        if min((self._n_living[kind] for kind in (str, float, tuple)), default=0) >= N_LIVING:
            return
        first = np.zeros(batch.n_rows, dtype=bool)
        first[np.flatnonzero(stay)[:N_LIVING]] = True
        for value in map(_hashable, batch.leaves(first)):
            kind = type(value) if isinstance(value, str | tuple) else float
            if self._n_living[kind] < N_LIVING and _is_long(value):
                self._n_living[kind] += self.plan.living.add(value)

    def finished(self) -> Plan:
        """Return what was found."""
        for value in self._others:
            self.plan.marks.add(value)
        self.plan.marks.drop(self._shared - self._names)
        return self.plan

    def _their_beginnings(self) -> Mapping[int, set[str]]:
        """Return what metadata may keep of long texts: it says nothing where others share it."""
        if not self._beginnings:
            texts = [*self._names, *(each for each in self._others if isinstance(each, str))]
            self._beginnings = {
                n: {text.strip()[:n] for text in texts if len(text.strip()) >= n} for n in _CUTS
            }
        return {n: words for n, words in self._beginnings.items() if words}

    def _among(self, values: Iterable[Any], subject: Subject) -> dict[Any, str]:
        asked: dict[Any, list[Any]] = {}
        for value in values:
            if (plain := _asked(value)) is not None:
                asked.setdefault(plain, []).append(value)
        among = self._people.among(asked.keys(), subject) if asked else {}
        return {value: name for plain, name in among.items() for value in asked[plain]}

    def _note(self, values: Iterable[Any]) -> None:
        for value in values:
            if _is_long(value):
                # of a vector the piece that is looked for in files, too
                plain = numbers_of(piece_of(np.array(value, float))) if is_vector(value) else value
                self._others[value] = _bytes_of(plain).strip().lower()


def _is_long(value: Any) -> bool:
    """Tell whether a value can be looked for: a short one, or a time, is there by chance."""
    if isinstance(value, int | float | Decimal):
        return len(str(value)) >= _DIGITS
    return isinstance(value, str | bytes | tuple) and any(forms_of(value))


def _hashable(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def _asked(value: Any) -> Any:
    """Return a value as people are asked for it: a whole number that came as a float is one."""
    if isinstance(value, float):
        return int(value) if value.is_integer() else None
    if isinstance(value, bytes):
        return str(UUID(bytes=value)) if len(value) == 16 else None
    if value is None or isinstance(value, str | int):
        return value
    return int(value) if value == value.to_integral_value() else None  # a decimal


def find_all(
    sources: Mapping[str, Callable[[], Iterable[Batch]]], settings: Settings, people: People
) -> Plan:
    """Find the rows of people in several files, which the plan has by name."""
    finder = Finder(settings, people)
    plan = finder.plan
    for name, batches in sources.items():
        keys: dict[tuple[int, Any], None] = {}
        for batch in batches():
            more, n = finder.find(batch)
            keys.update(dict.fromkeys(more))
            if n:
                plan.changed[name] = plan.changed.get(name, 0) + n
        if keys:
            plan.keys[name] = list(keys)
    if plan:
        for name, batches in sources.items():
            for batch in batches():
                finder.note_living(batch, plan.keys.get(name, []))
    return finder.finished()
