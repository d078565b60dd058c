"""Values of the rows that leave a database, by which its files are searched afterwards."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Generator, Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

import sqlalchemy as sa

from erasable.core.errors import InvalidIdsError
from erasable.workspace.identity.canonical import canonical
from erasable.workspace.targets import relations, schemas
from erasable.workspace.targets.layout import Layout, Owner, parsed
from erasable.workspace.targets.marks import SHORTEST, Marks, is_vector
from erasable.workspace.targets.protocol import N_LIVING, Subject
from erasable.workspace.targets.records import leaves
from erasable.workspace.targets.relations import Key, RowPlan

MASK = "erased"
"""What masked texts become."""

_AT_ONCE = 5_000  # values of one statement
_GROUPED = ("sqlite", "postgresql", "duckdb", "mysql", "mariadb")  # long texts, too
_NO_TEXTS = (sa.Date, sa.DateTime, sa.Interval, sa.Time)  # "infinity" cannot even be read
_VECTOR = ("[", "]")  # around the numbers of a vector as text, such as pgvector's


@dataclass(slots=True)
class Values:
    """Texts, bytes and vectors of leaving rows, by columns."""

    texts: dict[sa.Column[Any], Counter[Any]] = field(default_factory=dict)
    inner: dict[sa.Column[Any], set[str]] = field(default_factory=dict)  # in JSON
    vectors: list[tuple[Any, str]] = field(default_factory=list)  # each as it is spelled, too

    def add(self, column: sa.Column[Any], value: Any) -> None:
        """Add a value of a row, if files can be searched for it."""
        if (vector := _vector_of(value)) is not None:
            self.vectors.append((vector, str(value)))
        elif (inner := parsed(value)) is not None:
            self.inner.setdefault(column, set()).update(_texts_in(inner))
        elif isinstance(value, str | bytes) and len(value.strip()) >= SHORTEST:
            self.texts.setdefault(column, Counter())[value] += 1

    def drop_shared(self, connection: sa.Connection, rows: RowPlan, *, has_left: bool) -> None:
        """Leave out the values that rows have in the same column that stay."""
        if connection.dialect.name not in _GROUPED:
            return
        for column, texts in self.texts.items():
            known = isinstance(column.type, sa.String | sa.LargeBinary | sa.types.NullType)
            if not known or column.info.get(schemas.UNKNOWN_TYPE):
                continue
            every = sorted(texts, key=repr)
            for at in range(0, len(every), _AT_ONCE):
                some = sa.select(column, sa.func.count()).group_by(column)
                there = some.where(column.in_(every[at : at + _AT_ONCE]))
                for value, n in connection.execute(there):
                    if n > (0 if has_left else texts[value]):
                        del texts[value]
        for column, inner in self.inner.items():
            for value in _staying(connection, column.table, rows, column):
                inner.difference_update(_texts_in(parsed(value[0])))

    def marks(self, owners: Iterable[Owner], found: Mapping[Subject, Mapping[Key, Any]]) -> Marks:
        """Return them as marks, with the identities by which rows were found."""
        marks = Marks()
        for texts in self.texts.values():
            for text in texts:
                marks.add(text)
        for inner in self.inner.values():
            for text in inner:
                marks.add(text, json.dumps(text)[1:-1])
        for vector, spelled in self.vectors:
            marks.add(vector, spelled)
        for owner in owners:
            for value in set(found[owner.subject].values()):
                marks.add(_plain(value), *_spellings(value, owner.subject))
                if isinstance(value, UUID):
                    marks.add(value.bytes)
        return marks


def values_of(connection: sa.Connection, layout: Layout, rows: RowPlan) -> Values:
    """Read the values of rows that leave, or of the columns that are overwritten.

    References are left out: they are values of the rows that they refer to.
    """
    found = Values()
    for table, keys in rows.leaving.items():
        refer = {column for link in layout.links if link.child is table for column in link.columns}
        chosen = [
            column
            for column in table.columns
            if column not in refer and column.name in layout.overwritten.get(table, table.columns)
            if not isinstance(column.type, _NO_TEXTS)
        ]
        n_key = len(schemas.key_of(table))
        for row in relations.read(connection, table, keys, *chosen):
            for column, value in zip(chosen, row[n_key:], strict=True):
                found.add(column, value)
    return found


def living(connection: sa.Connection, rows: RowPlan, leaving: Values) -> Marks:
    """Return some values of rows that stay, which a search has to find."""
    found = Marks()
    gone = {text for texts in leaving.texts.values() for text in texts}
    for table in rows.leaving:
        stay = Values()
        read = [column for column in table.columns if not isinstance(column.type, _NO_TEXTS)]
        with closing(_staying(connection, table, rows, *read, n=N_LIVING)) as others:
            for row in others:
                for column, value in zip(read, row, strict=True):
                    stay.add(column, value)
        for texts in stay.texts.values():
            for text in sorted(texts.keys() - gone, key=repr):
                if len(found) < N_LIVING and not str(text).startswith(MASK):
                    found.add(text)
    return found


def _staying(
    connection: sa.Connection,
    table: sa.Table,
    rows: RowPlan,
    *columns: sa.Column[Any],
    n: int | None = None,
) -> Generator[tuple[Any, ...]]:
    """Return columns of the rows that do not leave, of `n` or more of them."""
    key = schemas.key_of(table)
    left = set(rows.leaving.get(table, ()))
    every = sa.select(*key, *columns).execution_options(stream_results=True)
    every = every.limit(None if n is None else n + len(left))
    with closing(connection.execute(every)) as result:
        for row in result:
            if tuple(row[: len(key)]) not in left:
                yield tuple(row[len(key) :])


def _plain(value: Any) -> Any:
    return str(value) if isinstance(value, UUID) else value


def _spellings(value: Any, subject: Subject) -> Iterator[str]:
    try:
        yield canonical(subject.type, _plain(value), subject.region)
    except InvalidIdsError:
        return


def _texts_in(value: Any) -> set[str]:
    """Return the texts in JSON that can be looked for."""
    texts = (each for _, each in leaves(value) if isinstance(each, str))
    return {text for text in texts if len(text.strip()) >= SHORTEST}


def _vector_of(value: Any) -> Any:
    """Return a vector, or what a text is the numbers of; None of other values."""
    if isinstance(value, str) and (value[:1], value[-1:]) == _VECTOR:
        value = parsed(value)
    return value if is_vector(value) else None
