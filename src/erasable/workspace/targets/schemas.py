"""The schema of a database: tables with their keys, foreign keys, and triggers."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import sqlalchemy as sa
from sqlalchemy.exc import SAWarning

from erasable.core.errors import SourceError
from erasable.workspace.data import databases

UNKNOWN_TYPE = "unknown type"
"""Note of a column whose values are texts of a type that SQLAlchemy does not know."""
NESTED = "nested"
"""Note of a column with lists or the like."""
DANGLING = "dangling"
"""Note of a table that refers to one that is not there: SQLite changes none of its rows then."""
_INEXACT = ("unknown", "real", "money", "tsvector")  # types of keys


@dataclass(frozen=True, slots=True)
class Link:
    """A foreign key: rows of `child` refer to rows of `parent`."""

    child: sa.Table
    parent: sa.Table
    columns: tuple[sa.Column[Any], ...]  # of the child
    referred: tuple[sa.Column[Any], ...]
    on_delete: str | None
    only: tuple[sa.Column[Any], ...] = ()  # that "set null" of PostgreSQL names, if it does

    @property
    def emptied(self) -> tuple[sa.Column[Any], ...]:
        """The columns that are null where a row of the child refers to nothing."""
        return self.only or self.columns

    @property
    def is_optional(self) -> bool:
        """Whether a row of the child may refer to nothing."""
        return all(column.nullable for column in self.emptied)


def tables_of(connection: sa.Connection, place: str) -> sa.MetaData:
    """Read the tables with their keys: those of the default schema, and all of PostgreSQL's.

    Partitions are left out: their rows are those of the whole table.
    """
    read, _ = _READERS.get(connection.dialect.name, _READER)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SAWarning)  # of types and indexes that do not matter here
        found = read(connection)
    if not found.tables:
        raise SourceError(f"the database at {place!r} has no table; expected one or more")
    return found


def links_of(connection: sa.Connection, tables: Collection[sa.Table]) -> list[Link]:
    """Return the foreign keys between tables, in an order that does not vary."""
    _, read = _READERS.get(connection.dialect.name, _READER)
    return sorted(
        read(connection, tables),
        key=lambda link: (link.child.key, [each.name for each in link.columns], link.parent.key),
    )


def refuse_hidden(connection: sa.Connection, tables: Collection[sa.Table]) -> None:
    """Raise SourceError if this user sees only some of the rows of a table."""
    own = sa.inspect(connection).default_schema_name
    hidden = databases.with_hidden_rows(connection)
    for table in sorted(tables, key=lambda each: each.key):
        if (table.schema or own, table.name) in hidden:
            raise SourceError(
                f"row-level security may hide rows of table {table.key!r} from this user; expected "
                "one who sees all rows, such as the table's owner"
            )


def refuse_unseen(connection: sa.Connection, tables: Collection[sa.Table]) -> None:
    """Raise SourceError if rows leave with those of tables that no foreign key here tells of."""
    name = connection.dialect.name
    if name not in _UNSEEN:
        return
    names = {(table.schema, table.name): table.key for table in tables}
    own = sa.inspect(connection).default_schema_name
    for schema, table, child in connection.exec_driver_sql(_UNSEEN[name]):
        if key := names.get((None if schema == own else schema, table)):
            raise SourceError(
                f"the table {child!r} refers to rows of {key!r} by a foreign key that is not "
                "followed: of another database, or to a table that inherits; expected none; "
                "delete its rows by hand, and drop the key"
            )


_UNSEEN_BY_MYSQL = (
    "select unique_constraint_schema, referenced_table_name, "
    "concat(constraint_schema, '.', table_name) from information_schema.referential_constraints "
    "where unique_constraint_schema = database() and constraint_schema <> database()"
)
_UNSEEN = {
    "mysql": _UNSEEN_BY_MYSQL,
    "mariadb": _UNSEEN_BY_MYSQL,
    "postgresql": (
        "with recursive heir as (select inhparent, inhrelid from pg_inherits i join pg_class c on "
        "c.oid = i.inhrelid where not c.relispartition union select h.inhparent, i.inhrelid from "
        "heir h join pg_inherits i on i.inhparent = h.inhrelid) "
        "select n.nspname, c.relname, cast(cast(k.conrelid as regclass) as text) from heir h "
        "join pg_constraint k on k.confrelid = h.inhrelid and k.contype = 'f' "
        "join pg_class c on c.oid = h.inhparent join pg_namespace n on n.oid = c.relnamespace"
    ),
}


def triggers_of(connection: sa.Connection, tables: Collection[sa.Table]) -> list[str]:
    """Return the triggers of tables, which may change rows that no foreign key tells."""
    name = connection.dialect.name
    if name not in _TRIGGERS:
        return []
    own = sa.inspect(connection).default_schema_name if name == "postgresql" else None
    named = {(table.schema or own, folded(table.name)): table.key for table in tables}
    return sorted(
        f"{named[schema, folded(table)]}.{trigger}"
        for schema, table, trigger in connection.exec_driver_sql(_TRIGGERS[name])
        if (schema, folded(table)) in named
    )


_TRIGGERS_OF_MYSQL = (
    "select null, event_object_table, trigger_name from information_schema.triggers "
    "where event_object_schema = database() and event_manipulation in ('DELETE', 'UPDATE')"
)
_TRIGGERS = {
    "sqlite": "select null, tbl_name, name from sqlite_master where type = 'trigger'",
    "postgresql": (  # those that a deletion or an update fires
        "select n.nspname, c.relname, t.tgname from pg_trigger t join pg_class c on "
        "c.oid = t.tgrelid join pg_namespace n on n.oid = c.relnamespace "
        "where not t.tgisinternal and t.tgenabled != 'D' and (t.tgtype & 24) != 0 "
        "union all select n.nspname, c.relname, r.rulename from pg_rewrite r join pg_class c on "
        "c.oid = r.ev_class join pg_namespace n on n.oid = c.relnamespace "
        "where r.ev_enabled != 'D' and r.ev_type in ('2', '4')"
    ),
    "mysql": _TRIGGERS_OF_MYSQL,
    "mariadb": _TRIGGERS_OF_MYSQL,
}


def key_of(table: sa.Table) -> tuple[sa.Column[Any], ...]:
    """Return the columns of the primary key."""
    found = tuple(table.primary_key.columns)
    if not found:
        raise SourceError(
            f"table {table.name!r} has no primary key; expected one, by which its rows can be told "
            "apart; add one, or name tables that have"
        )
    if any(isinstance(column.type, sa.ARRAY | sa.JSON) for column in found):
        raise SourceError(
            f"table {table.name!r} has lists or JSON in its primary key; expected texts, numbers, "
            "dates or the like; delete its rows by hand"
        )
    for column in found:
        is_known = not column.info.get(UNKNOWN_TYPE)
        kind = type(column.type).__name__.lower() if is_known else "unknown"
        if kind in _INEXACT:
            raise SourceError(
                f"the primary key of table {table.name!r} has a type by whose values rows cannot "
                f"be found again ({kind}); expected "
                "whole numbers, texts, dates or the like; delete its rows by hand"
            )
    return found


def folded(name: str) -> str:
    """Return a name in the case in which SQLite compares it."""
    return name.lower() if name.isascii() else name


# -- servers ---------------------------------------------------------------------------------------


def _reflected(connection: sa.Connection) -> sa.MetaData:
    found, parts = sa.MetaData(), set[tuple[str | None, str]]()
    schemas: list[str | None] = [None]
    if connection.dialect.name == "postgresql":  # whose foreign keys may come from other schemas
        known = sa.inspect(connection)
        own = known.default_schema_name
        schemas += [s for s in known.get_schema_names() if s not in (own, "information_schema")]
        for schema, name in connection.exec_driver_sql(_PARTITIONS):
            parts.add((None if schema == own else schema, name))
    for schema in schemas:
        found.reflect(connection, schema=schema, only=partial(_is_whole, parts, schema))
    for schema, name in parts:
        if (table := found.tables.get(name if schema is None else f"{schema}.{name}")) is not None:
            found.remove(table)  # a foreign key had it read
    for table in found.tables.values():
        for column in table.columns:
            column.info[UNKNOWN_TYPE] = isinstance(column.type, sa.types.NullType)
    return found


_PARTITIONS = (
    "select n.nspname, c.relname from pg_class c join pg_namespace n on n.oid = c.relnamespace "
    "where c.relispartition"
)


def _is_whole(
    parts: Collection[tuple[str | None, str]], schema: str | None, name: str, _: sa.MetaData
) -> bool:
    return (schema, name) not in parts


def _links_of_schema(_: sa.Connection, tables: Collection[sa.Table]) -> Iterator[Link]:
    for table in tables:
        for constraint in table.foreign_key_constraints:
            if constraint.referred_table in tables:
                action, *named = (constraint.ondelete or "").split(" (", 1)
                only = {
                    quoted.replace('""', '"') or name
                    for quoted, name in _NAMES.findall("".join(named))
                }
                columns = tuple(each.parent for each in constraint.elements)
                yield Link(
                    table, constraint.referred_table, columns,
                    tuple(each.column for each in constraint.elements), action.upper() or None,
                    tuple(each for each in columns if each.name in only),
                )  # fmt: skip


_NAMES = re.compile(r'"((?:[^"]|"")+)"|([^",\s)]+)')  # of columns, quoted or not


# -- SQLite ----------------------------------------------------------------------------------------


_OF_EXPRESSIONS = (
    "select count(*) from pragma_index_list(?) l join pragma_index_xinfo(l.name) x "
    'where l."unique" and x.cid = -2'
)


def _sqlite_tables(connection: sa.Connection) -> sa.MetaData:
    """Read the tables of a file of SQLite, without foreign keys.

    Values are not converted to the declared type of their column, since SQLite does not enforce it.
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
        if connection.exec_driver_sql(_OF_EXPRESSIONS, (name,)).scalar():  # may be of any column
            unique.append(table.columns.keys())
        for names in unique:
            table.append_constraint(sa.UniqueConstraint(*filter(None, names)))
    return found


def _sqlite_links(connection: sa.Connection, tables: Collection[sa.Table]) -> Iterator[Link]:
    """Read the foreign keys, which name tables and columns in any case.

    SQLAlchemy takes another case for another table, misses the action beside a column, and refuses
    a reference to a table that is not there.
    """
    by_name = {folded(table.name): table for table in tables}
    for table in tables:
        for parts in _references_of(connection, table):
            parent = by_name.get(folded(parts[0]["table"]))
            if parent is None:  # nothing can be deleted there
                table.info[DANGLING] = True
                continue
            columns, referred = _by_name(table), _by_name(parent)
            key = tuple(parent.primary_key.columns)
            yield Link(
                table, parent,
                tuple(columns[folded(each["from"])] for each in parts),
                tuple(referred[folded(each["to"])] for each in parts if each["to"]) or key,
                parts[0]["on_delete"].upper(),
            )  # fmt: skip


def _references_of(connection: sa.Connection, table: sa.Table) -> Iterable[list[Any]]:
    """Return the foreign keys of a table, a row for each column."""
    name = connection.dialect.identifier_preparer.quote_identifier(table.name)
    rows: dict[int, list[Any]] = {}
    for each in connection.exec_driver_sql(f"pragma foreign_key_list({name})").mappings():
        rows.setdefault(each["id"], []).append(each)
    return rows.values()


def _by_name(table: sa.Table) -> dict[str, sa.Column[Any]]:
    return {folded(column.name): column for column in table.columns}


# -- DuckDB ----------------------------------------------------------------------------------------

_COLUMNS = (
    "select c.schema_name, c.table_name, c.column_name, c.data_type, c.is_nullable "
    "from duckdb_columns() c join duckdb_tables() t using (table_oid, database_oid) "
    "where c.database_name = current_database() and not t.internal order by c.column_index"
)
_CONSTRAINTS = (
    "select schema_name, table_name, constraint_type, constraint_column_names, referenced_table, "
    "referenced_column_names from duckdb_constraints() where database_name = current_database()"
)


_UNIQUE_INDEXES = (
    "select schema_name, table_name, cast(expressions as varchar) from duckdb_indexes() "
    "where database_name = current_database() and is_unique"
)


def _duckdb_tables(connection: sa.Connection) -> sa.MetaData:
    """Read the tables of a file of DuckDB, which SQLAlchemy cannot read, without foreign keys."""
    found = sa.MetaData()
    columns: dict[tuple[str, str], list[sa.Column[object]]] = {}
    for schema, table, name, kind, is_nullable in connection.exec_driver_sql(_COLUMNS):
        is_nested = kind.endswith("]") or kind.startswith(("STRUCT", "MAP", "UNION"))
        type_ = sa.String() if kind == "VARCHAR" else sa.types.NullType()
        column = sa.Column(name, type_, nullable=is_nullable, info={NESTED: is_nested})
        columns.setdefault((schema, table), []).append(column)
    keys: dict[tuple[str, str], list[str]] = {}
    unique: dict[tuple[str, str], list[list[str]]] = {}
    for schema, table, kind, names, _, _ in connection.exec_driver_sql(_CONSTRAINTS):
        if kind == "PRIMARY KEY":
            keys[schema, table] = names
        elif kind == "UNIQUE":
            unique.setdefault((schema, table), []).append(names)
    for schema, table, parts in connection.exec_driver_sql(_UNIQUE_INDEXES):
        names = [each.name for each in columns.get((schema, table), ()) if each.name in parts]
        unique.setdefault((schema, table), []).append(names)
    for (schema, name), of in columns.items():
        key = sa.PrimaryKeyConstraint(*keys.get((schema, name), []))
        others = [sa.UniqueConstraint(*names) for names in unique.get((schema, name), [])]
        sa.Table(name, found, *of, key, *others, schema=_own(schema))
    return found


def _duckdb_links(connection: sa.Connection, tables: Collection[sa.Table]) -> Iterator[Link]:
    """Read the foreign keys, which say nothing of what becomes of a row."""
    by_name = {table.key: table for table in tables}
    for schema, name, kind, columns, parent, referred in connection.exec_driver_sql(_CONSTRAINTS):
        if kind == "FOREIGN KEY":
            prefix = "" if _own(schema) is None else f"{schema}."
            child, of = by_name[prefix + name], by_name[prefix + parent]
            yield Link(
                child, of, tuple(child.columns[each] for each in columns),
                tuple(of.columns[each] for each in referred), None,
            )  # fmt: skip


def _own(schema: str) -> str | None:
    return None if schema == "main" else schema


_Tables = Callable[[sa.Connection], sa.MetaData]
_Links = Callable[[sa.Connection, Collection[sa.Table]], Iterator[Link]]
_READER: tuple[_Tables, _Links] = (_reflected, _links_of_schema)
_READERS: dict[str, tuple[_Tables, _Links]] = {
    "sqlite": (_sqlite_tables, _sqlite_links), "duckdb": (_duckdb_tables, _duckdb_links),
}  # fmt: skip
