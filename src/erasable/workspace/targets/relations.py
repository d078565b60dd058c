"""Tables of a database as a graph of foreign keys, and the rows that leave with others.

The law kept here: a plan says which rows leave, which are changed, and in which order, before
anything is changed. A row is left behind that refers to nothing, or there is an error.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import sqlalchemy as sa
from sqlalchemy.exc import SAWarning

from erasable.core.errors import SourceError
from erasable.workspace.data import databases
from erasable.workspace.targets import duckdb_schema, sqlite_schema
from erasable.workspace.targets.sqlite_schema import Link, folded

Key = tuple[Any, ...]
"""The primary key of a row."""

_AT_ONCE = 500  # rows of one statement
_MANY = 20  # rows of a table that leave, for which an index pays
_DELETES, _DETACHES = "CASCADE", "SET NULL"


@dataclass(slots=True)
class RowPlan:
    """Rows that leave, and rows that lose a reference to them, by tables."""

    leaving: dict[sa.Table, list[Key]] = field(default_factory=dict)  # those that refer come first
    detached: list[tuple[Link, list[Key]]] = field(default_factory=list)  # before rows leave


def reflected(connection: sa.Connection, place: str) -> sa.MetaData:
    """Read the tables with their keys: those of the default schema, and all of PostgreSQL's.

    Partitions are left out: their rows are those of the whole table.
    """
    if connection.dialect.name == "sqlite":
        found = sqlite_schema.tables_of(connection)
    elif connection.dialect.name == "duckdb":
        found = duckdb_schema.tables_of(connection)
    else:
        found = _reflected(connection)
    if not found.tables:
        raise SourceError(f"the database at {place!r} has no table; expected one or more")
    return found


def _reflected(connection: sa.Connection) -> sa.MetaData:
    found, parts = sa.MetaData(), set[tuple[str | None, str]]()
    schemas: list[str | None] = [None]
    if connection.dialect.name == "postgresql":  # whose foreign keys may come from other schemas
        known = sa.inspect(connection)
        own = known.default_schema_name
        schemas += [s for s in known.get_schema_names() if s not in (own, "information_schema")]
        for schema, name in connection.exec_driver_sql(_PARTITIONS):
            parts.add((None if schema == own else schema, name))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SAWarning)  # of types and indexes that do not matter here
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


def links_of(connection: sa.Connection, tables: Iterable[sa.Table]) -> list[Link]:
    """Return the foreign keys between tables, in an order that does not vary."""
    own = list(tables)
    of = _LINKS.get(connection.dialect.name, _links_of_schema)
    found = of(connection, own)
    return sorted(
        found,
        key=lambda link: (link.child.key, [each.name for each in link.columns], link.parent.key),
    )


_LINKS: dict[str, Callable[[sa.Connection, Collection[sa.Table]], Iterator[Link]]] = {
    "sqlite": sqlite_schema.links_of, "duckdb": duckdb_schema.links_of,
}  # fmt: skip


def _links_of_schema(_: sa.Connection, tables: Collection[sa.Table]) -> Iterator[Link]:
    for table in tables:
        for constraint in table.foreign_key_constraints:
            if constraint.referred_table in tables:
                yield Link(
                    table, constraint.referred_table,
                    tuple(each.parent for each in constraint.elements),
                    tuple(each.column for each in constraint.elements),
                    (constraint.ondelete or "").upper() or None,
                )  # fmt: skip


def reached(links: Sequence[Link], tables: Iterable[sa.Table]) -> set[sa.Table]:
    """Return tables whose rows may leave or change with rows of some."""
    found = set(tables)
    while more := {link.child for link in links if link.parent in found} - found:
        found |= more
    return found


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


_TRIGGERS = {
    "sqlite": "select null, tbl_name, name from sqlite_master where type = 'trigger'",
    "postgresql": (  # those that a deletion or an update fires
        "select n.nspname, c.relname, t.tgname from pg_trigger t join pg_class c on "
        "c.oid = t.tgrelid join pg_namespace n on n.oid = c.relnamespace "
        "where not t.tgisinternal and t.tgenabled != 'D' and (t.tgtype & 24) != 0"
    ),
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


UNKNOWN_TYPE = "unknown type"
"""Note of a column whose values are texts of a type that SQLAlchemy does not know."""
_INEXACT = ("unknown", "real", "money", "tsvector")  # types of keys


def plan_rows(
    connection: sa.Connection,
    links: Sequence[Link],
    chosen: dict[sa.Table, set[Key]],
    cascade: Collection[str],
) -> RowPlan:
    """Find all rows that leave with the chosen ones, and lock them.

    Rows that refer to a leaving row leave, too, or lose the reference, as the schema says; those
    of tables in `cascade` leave where it says nothing. Raise SourceError if a row would be left
    that refers to one that is gone.
    """
    leaving = {table: set(keys) for table, keys in chosen.items()}
    waiting = {table: set(keys) for table, keys in chosen.items() if keys}
    detached: dict[Link, set[Key]] = {}
    refused: dict[Link, set[Key]] = {}
    while waiting:
        table = min(waiting, key=lambda each: each.key)
        new = waiting.pop(table)
        for link in links:
            if link.parent is not table:
                continue
            found = _referring(connection, link, new)
            of_user = link.on_delete != _DETACHES and link.child.key in cascade
            if link.on_delete == _DELETES or of_user:
                more = found - leaving.setdefault(link.child, set())
                if more:
                    leaving[link.child] |= more
                    waiting.setdefault(link.child, set()).update(more)
            else:
                kept = detached if link.on_delete == _DETACHES else refused
                kept.setdefault(link, set()).update(found)
    for link, keys in refused.items():
        if left := keys - leaving.get(link.child, set()):
            raise SourceError(
                f"{len(left)} rows of table {link.child.key!r} refer to rows of "
                f"{link.parent.key!r} that are to be deleted, and the schema does not say what "
                "becomes of them; expected 'on delete cascade' or 'set null'; name the table with "
                "--cascade if they are to be deleted as well"
            )
    cut = _cut(links, [table for table, keys in leaving.items() if keys])
    plan = RowPlan()
    for link, keys in detached.items():
        if own := ordered(keys - leaving.get(link.child, set())):
            plan.detached.append((link, own))
    for link in cut:
        if own := ordered(leaving[link.child]):
            plan.detached.append((link, own))
    for table in _children_first(links, [each for each in leaving if leaving[each]], cut):
        plan.leaving[table] = ordered(leaving[table])
    return plan


def first_of(plan: RowPlan) -> RowPlan:
    """Return the part of a plan that comes first, of one table or reference."""
    if plan.detached:
        return RowPlan({}, plan.detached[:1])
    return RowPlan(dict(list(plan.leaving.items())[:1]))


def carry_out(connection: sa.Connection, links: Sequence[Link], plan: RowPlan) -> None:
    """Change and delete the rows of a plan; SourceError where there are fewer than it says."""
    with sqlite_schema.indexed(connection, links, _large(plan)):
        _carry_out(connection, plan)


def _large(plan: RowPlan) -> set[sa.Table]:
    return {table for table, keys in plan.leaving.items() if len(keys) >= _MANY}


def _carry_out(connection: sa.Connection, plan: RowPlan) -> None:
    for link, keys in plan.detached:
        nothing = dict.fromkeys(column.name for column in link.columns)
        _change(connection, link.child, keys, sa.update(link.child).values(nothing))
    for table, keys in plan.leaving.items():
        _change(connection, table, keys, sa.delete(table))


def change_rows(
    connection: sa.Connection, table: sa.Table, keys: Sequence[Key], values: dict[str, Any]
) -> None:
    """Give columns of some rows other values."""
    _change(connection, table, keys, sa.update(table).values(values))


def locked(
    connection: sa.Connection, table: sa.Table, keys: Iterable[Key], *columns: sa.Column[Any]
) -> Iterator[sa.Row[Any]]:
    """Read rows by their keys, and have other transactions wait that would change them."""
    own = key_of(table)
    for some in _parts(ordered(keys)):
        chosen = sa.select(*own, *columns).where(_among(own, some)).order_by(*own)
        yield from connection.execute(_locking(connection, chosen))


def read(
    connection: sa.Connection, table: sa.Table, keys: Sequence[Key], *columns: sa.Column[Any]
) -> Iterator[sa.Row[Any]]:
    """Read the keys and some columns of rows by their keys."""
    own = key_of(table)
    for some in _parts(keys):
        yield from connection.execute(sa.select(*own, *columns).where(_among(own, some)))


def ordered(keys: Iterable[Key]) -> list[Key]:
    """Return keys in an order that does not vary."""
    return sorted(keys, key=repr)  # SQLite may have numbers and texts in one column


def _change(connection: sa.Connection, table: sa.Table, keys: Sequence[Key], change: Any) -> None:
    own = key_of(table)
    for some in _parts(keys):
        n = connection.execute(change.where(_among(own, some))).rowcount
        if n not in (len(some), -1):  # DuckDB does not tell
            raise SourceError(
                f"{n} of {len(some)} rows of table {table.name!r} could be changed; expected all; "
                "nothing was changed: see whether a trigger or a policy of the database forbids it"
            )


def _referring(connection: sa.Connection, link: Link, keys: set[Key]) -> set[Key]:
    """Return the rows of the child that refer to some rows of the parent, and lock them.

    The database compares the columns itself, as it does for the foreign key.
    """
    parent = link.parent.alias()
    pairs = zip(link.referred, link.columns, strict=True)
    refers = sa.and_(*(parent.columns[of.key] == column for of, column in pairs))
    of_parent = [parent.columns[column.key] for column in key_of(link.parent)]
    found: set[Key] = set()
    for some in _parts(ordered(keys)):
        among = sa.and_(refers, _among(of_parent, some))
        any_ = sa.select(sa.literal(1)).select_from(link.child, parent).where(among).limit(1)
        if connection.execute(any_).first() is None:  # also of a table without a key
            continue
        own = key_of(link.child)
        chosen = sa.select(*own).select_from(link.child, parent).where(among).order_by(*own)
        locking = _locking(connection, chosen, link.child)
        found |= {tuple(row) for row in connection.execute(locking)}
    return found


def _locking(
    connection: sa.Connection, chosen: sa.Select[Any], of: sa.Table | None = None
) -> sa.Select[Any]:
    """Have a query lock its rows; DuckDB has one writer at a time, and no locks."""
    return chosen if connection.dialect.name == "duckdb" else chosen.with_for_update(of=of)


def _among(columns: Sequence[sa.ColumnElement[Any]], keys: Sequence[Key]) -> sa.ColumnElement[bool]:
    if len(columns) == 1:
        return columns[0].in_([key[0] for key in keys])
    return sa.tuple_(*columns).in_(keys)


def _parts(keys: Sequence[Key]) -> Iterator[Sequence[Key]]:
    for at in range(0, len(keys), _AT_ONCE):
        yield keys[at : at + _AT_ONCE]


def _cut(links: Sequence[Link], tables: Collection[sa.Table]) -> list[Link]:
    """Return references of leaving rows to remove first, so that none of them is in a cycle."""
    within = [link for link in links if link.child in tables and link.parent in tables]
    cut: list[Link] = []
    while cycle := _cycle([link for link in within if link not in cut]):
        chosen = next((link for link in cycle if link.is_optional), None)
        if chosen is None:
            names = ", ".join(sorted({repr(link.child.key) for link in cycle}))
            raise SourceError(
                f"rows of {names} refer to each other in a circle, by columns that may not be "
                "null; expected an order in which they can be deleted; make one of the columns "
                "nullable, or delete them by hand"
            )
        cut.append(chosen)
    return cut


def _cycle(links: Sequence[Link]) -> list[Link]:
    """Return links that lead from a table to itself, none where there are none."""
    for first in links:
        paths = [[first]]
        seen = {first.child}
        while paths:
            path = paths.pop()
            if path[-1].parent is first.child:
                return path
            if path[-1].parent not in seen:
                seen.add(path[-1].parent)
                paths += [[*path, link] for link in links if link.child is path[-1].parent]
    return []


def _children_first(
    links: Sequence[Link], tables: Collection[sa.Table], cut: Collection[Link]
) -> list[sa.Table]:
    order: list[sa.Table] = []
    left = sorted(tables, key=lambda table: table.key)
    while left:
        free = next(
            table
            for table in left
            if not any(
                link.parent is table and link.child in left and link not in cut for link in links
            )
        )
        order.append(free)
        left.remove(free)
    return order
