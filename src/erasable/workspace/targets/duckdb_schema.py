"""The schema of a file of DuckDB, which SQLAlchemy cannot read."""

from __future__ import annotations

from collections.abc import Collection, Iterator

import sqlalchemy as sa

from erasable.workspace.targets.sqlite_schema import Link

NESTED = "nested"
"""Note of a column with lists or the like."""

_COLUMNS = (
    "select c.schema_name, c.table_name, c.column_name, c.data_type, c.is_nullable "
    "from duckdb_columns() c join duckdb_tables() t using (table_oid, database_oid) "
    "where c.database_name = current_database() and not t.internal order by c.column_index"
)
_CONSTRAINTS = (
    "select schema_name, table_name, constraint_type, constraint_column_names, referenced_table, "
    "referenced_column_names from duckdb_constraints() where database_name = current_database()"
)


def tables_of(connection: sa.Connection) -> sa.MetaData:
    """Read the tables with their keys, without foreign keys."""
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
    for (schema, name), of in columns.items():
        key = sa.PrimaryKeyConstraint(*keys.get((schema, name), []))
        others = [sa.UniqueConstraint(*names) for names in unique.get((schema, name), [])]
        sa.Table(name, found, *of, key, *others, schema=_own(schema))
    return found


def links_of(connection: sa.Connection, tables: Collection[sa.Table]) -> Iterator[Link]:
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
