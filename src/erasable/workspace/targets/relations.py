"""Tables of a database as a graph of foreign keys, and the rows that leave with others.

The law kept here: a plan says which rows leave, which are changed, and in which order, before
anything is changed. A row is left behind that refers to nothing, or there is an error.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import sqlalchemy as sa

from erasable.core.errors import SourceError

Key = tuple[Any, ...]
"""The primary key of a row."""

_AT_ONCE = 500  # rows of one statement
_DELETES, _DETACHES = "CASCADE", "SET NULL"


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


@dataclass(slots=True)
class RowPlan:
    """Rows that leave, and rows that lose a reference to them, by tables."""

    leaving: dict[sa.Table, list[Key]] = field(default_factory=dict)  # those that refer come first
    detached: list[tuple[Link, list[Key]]] = field(default_factory=list)  # before rows leave


def reflected(connection: sa.Connection, place: str) -> sa.MetaData:
    """Read the tables with their keys: those of the default schema, and all of PostgreSQL's."""
    found = sa.MetaData()
    found.reflect(connection)
    if connection.dialect.name == "postgresql":  # whose foreign keys may come from other schemas
        known = sa.inspect(connection)
        for schema in known.get_schema_names():
            if schema not in (known.default_schema_name, "information_schema"):
                found.reflect(connection, schema=schema)
    if not found.tables:
        raise SourceError(f"the database at {place!r} has no table; expected one or more")
    return found


def links_of(connection: sa.Connection, tables: Iterable[sa.Table]) -> list[Link]:
    """Return the foreign keys between tables, in an order that does not vary."""
    found = []
    for table in tables:
        said = _on_delete_of_sqlite(connection, table)
        for constraint in table.foreign_key_constraints:
            columns = tuple(each.parent for each in constraint.elements)
            on_delete = said.get(frozenset(each.name for each in columns), constraint.ondelete)
            found.append(
                Link(
                    table, constraint.referred_table, columns,
                    tuple(each.column for each in constraint.elements),
                    (on_delete or "").upper() or None,
                )
            )  # fmt: skip
    return sorted(found, key=lambda link: (link.child.key, [each.name for each in link.columns]))


def _on_delete_of_sqlite(
    connection: sa.Connection, table: sa.Table
) -> dict[frozenset[str], str | None]:
    """Return what foreign keys of SQLite say, which SQLAlchemy does not read beside a column."""
    if connection.dialect.name != "sqlite":
        return {}
    name = connection.dialect.identifier_preparer.quote(table.name)
    keys: dict[int, tuple[set[str], str]] = {}
    for each in connection.exec_driver_sql(f"pragma foreign_key_list({name})").mappings():
        keys.setdefault(each["id"], (set(), each["on_delete"]))[0].add(each["from"])
    return {frozenset(columns): on_delete for columns, on_delete in keys.values()}


def key_of(table: sa.Table) -> tuple[sa.Column[Any], ...]:
    """Return the columns of the primary key."""
    found = tuple(table.primary_key.columns)
    if not found:
        raise SourceError(
            f"table {table.name!r} has no primary key; expected one, by which its rows can be told "
            "apart; add one, or name tables that have"
        )
    return found


def plan_rows(
    connection: sa.Connection,
    tables: Iterable[sa.Table],
    chosen: dict[sa.Table, set[Key]],
    cascade: Collection[str],
) -> RowPlan:
    """Find all rows that leave with the chosen ones, and lock them.

    Rows that refer to a leaving row leave, too, or lose the reference, as the schema says; those
    of tables in `cascade` leave where it says nothing. Raise SourceError if a row would be left
    that refers to one that is gone.
    """
    links = links_of(connection, tables)
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
        if own := _ordered(keys - leaving.get(link.child, set())):
            plan.detached.append((link, own))
    for link in cut:
        if own := _ordered(leaving[link.child]):
            plan.detached.append((link, own))
    for table in _children_first(links, [each for each in leaving if leaving[each]], cut):
        plan.leaving[table] = _ordered(leaving[table])
    return plan


def carry_out(connection: sa.Connection, plan: RowPlan) -> None:
    """Change and delete the rows of a plan; SourceError where there are fewer than it says."""
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
    for some in _parts(_ordered(keys)):
        yield from connection.execute(
            sa.select(*own, *columns).where(_among(own, some)).order_by(*own).with_for_update()
        )


def _change(connection: sa.Connection, table: sa.Table, keys: Sequence[Key], change: Any) -> None:
    own = key_of(table)
    for some in _parts(keys):
        n = connection.execute(change.where(_among(own, some))).rowcount
        if n != len(some):
            raise SourceError(
                f"{n} of {len(some)} rows of table {table.name!r} could be changed; expected all; "
                "nothing was changed: see whether a trigger or a policy of the database forbids it"
            )


def _referring(connection: sa.Connection, link: Link, keys: set[Key]) -> set[Key]:
    """Return the rows of the child that refer to some rows of the parent, and lock them."""
    of_parent = key_of(link.parent)
    found: set[Key] = set()
    if link.referred == of_parent:
        values = _ordered(keys)
    else:
        rows = locked(connection, link.parent, keys, *link.referred)
        values = _ordered({tuple(row)[len(of_parent) :] for row in rows})
    for some in _parts(values):
        if not _any(connection, link, some):
            continue
        own = key_of(link.child)
        chosen = sa.select(*own).where(_among(link.columns, some)).order_by(*own)
        found |= {tuple(row) for row in connection.execute(chosen.with_for_update())}
    return found


def _any(connection: sa.Connection, link: Link, values: Sequence[Key]) -> bool:
    """Tell whether any row refers to some values, also of a table without a key."""
    chosen = sa.select(sa.literal(1)).select_from(link.child).where(_among(link.columns, values))
    return connection.execute(chosen.limit(1)).first() is not None


def _among(columns: Sequence[sa.Column[Any]], keys: Sequence[Key]) -> sa.ColumnElement[bool]:
    if len(columns) == 1:
        return columns[0].in_([key[0] for key in keys])
    return sa.tuple_(*columns).in_(keys)


def _ordered(keys: Iterable[Key]) -> list[Key]:
    return sorted(keys, key=repr)  # SQLite may have numbers and texts in one column


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
