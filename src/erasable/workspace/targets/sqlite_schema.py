"""The schema of a file of SQLite, read as SQLite reads it.

SQLAlchemy takes another case for another table, misses the action beside a column, and refuses a
reference to a table that is not there.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa


@dataclass(frozen=True, slots=True)
class Link:
    """A foreign key: rows of `child` refer to rows of `parent`."""

    child: sa.Table
    parent: sa.Table
    columns: tuple[sa.Column[Any], ...]  # of the child
    referred: tuple[sa.Column[Any], ...]
    on_delete: str | None

    @property
    def is_optional(self) -> bool:
        """Whether a row of the child may refer to nothing."""
        return all(column.nullable for column in self.columns)


def tables_of(connection: sa.Connection) -> sa.MetaData:
    """Read the tables with their keys, without foreign keys.

    Values are read as they are stored: a column may hold any, whatever its type.
    """
    found, known = sa.MetaData(), sa.inspect(connection)
    for name in known.get_table_names():
        key = known.get_pk_constraint(name)["constrained_columns"]
        columns = [
            sa.Column(
                each["name"],
                each["type"] if isinstance(each["type"], sa.String) else sa.types.NullType(),
                *([sa.Computed(each["computed"]["sqltext"])] if "computed" in each else []),
                nullable=each["nullable"],
            )
            for each in known.get_columns(name)
        ]
        table = sa.Table(name, found, *columns, sa.PrimaryKeyConstraint(*key))
        unique: list[Sequence[str | None]] = [
            each["column_names"] for each in known.get_indexes(name) if each["unique"]
        ]
        unique += [each["column_names"] for each in known.get_unique_constraints(name)]
        for names in unique:
            table.append_constraint(sa.UniqueConstraint(*filter(None, names)))
    return found


def links_of(connection: sa.Connection, tables: Collection[sa.Table]) -> Iterator[Link]:
    """Read the foreign keys, which name tables and columns in any case."""
    by_name = {folded(table.name): table for table in tables}
    for table in tables:
        for parts in _references_of(connection, table):
            parent = by_name.get(folded(parts[0]["table"]))
            if parent is None:  # nothing can be deleted there
                continue
            columns, referred = _by_name(table), _by_name(parent)
            key = tuple(parent.primary_key.columns)
            yield Link(
                table, parent,
                tuple(columns[folded(each["from"])] for each in parts),
                tuple(referred[folded(each["to"])] for each in parts if each["to"]) or key,
                parts[0]["on_delete"].upper(),
            )  # fmt: skip


def has_dangling(connection: sa.Connection, tables: Collection[sa.Table]) -> bool:
    """Tell whether one of some tables refers to a table that is not there.

    Then SQLite changes none of its rows while it keeps foreign keys.
    """
    known = {folded(name) for name in sa.inspect(connection).get_table_names()}
    return any(
        folded(parts[0]["table"]) not in known
        for table in tables
        for parts in _references_of(connection, table)
    )


def _references_of(connection: sa.Connection, table: sa.Table) -> Iterable[list[Any]]:
    """Return the foreign keys of a table, a row for each column."""
    name = connection.dialect.identifier_preparer.quote_identifier(table.name)
    rows: dict[int, list[Any]] = {}
    for each in connection.exec_driver_sql(f"pragma foreign_key_list({name})").mappings():
        rows.setdefault(each["id"], []).append(each)
    return rows.values()


@contextmanager
def indexed(
    connection: sa.Connection, links: Sequence[Link], parents: Collection[sa.Table]
) -> Iterator[None]:
    """Have an index of each reference to some tables inside the block, in the same transaction.

    For each row that leaves, SQLite looks for rows that refer to it: without an index, in all rows.
    """
    made = []
    if connection.dialect.name == "sqlite":
        quote = connection.dialect.identifier_preparer.quote_identifier
        for n, link in enumerate(link for link in links if link.parent in parents):
            if _has_index(connection, link):
                continue
            name = quote(f"erasable temporary {n}")
            columns = ", ".join(quote(column.name) for column in link.columns)
            connection.exec_driver_sql(
                f"create index {name} on {quote(link.child.name)} ({columns})"
            )
            made.append(name)
    yield
    for name in made:
        connection.exec_driver_sql(f"drop index {name}")


def _has_index(connection: sa.Connection, link: Link) -> bool:
    """Tell whether an index begins with the columns of a reference."""
    names = [column.name for column in link.columns]
    indexes = connection.exec_driver_sql(
        "select l.name from pragma_index_list(?) l where not l.partial", (link.child.name,)
    )
    return (
        any(
            set(_columns_of(connection, index)[: len(names)]) == set(names)
            for index in indexes.scalars().all()
        )
        or names == [column.name for column in link.child.primary_key.columns][: len(names)]
    )


def _columns_of(connection: sa.Connection, index: str) -> list[str]:
    return list(
        connection.exec_driver_sql(
            "select name from pragma_index_info(?) order by seqno", (index,)
        ).scalars()
    )


def folded(name: str) -> str:
    """Return a name in the case in which SQLite compares it."""
    return name.lower() if name.isascii() else name


def _by_name(table: sa.Table) -> dict[str, sa.Column[Any]]:
    return {folded(column.name): column for column in table.columns}
