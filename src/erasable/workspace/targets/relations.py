"""Rows of a database that leave with others, along foreign keys.

The law kept here: a plan says which rows leave, which are changed, and in which order, before
anything is changed. A row is left behind that refers to nothing, or there is an error.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from graphlib import CycleError, TopologicalSorter
from itertools import pairwise
from typing import Any

import sqlalchemy as sa

from erasable.core.errors import SourceError
from erasable.workspace.targets.schemas import Link, key_of

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


def reached(links: Sequence[Link], tables: Iterable[sa.Table]) -> set[sa.Table]:
    """Return tables whose rows may leave or change with rows of some."""
    found = set(tables)
    while more := {link.child for link in links if link.parent in found} - found:
        found |= more
    return found


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
    order, cut = _in_order(links, [table for table, keys in leaving.items() if keys])
    plan = RowPlan()
    for link, keys in detached.items():
        if own := ordered(keys - leaving.get(link.child, set())):
            plan.detached.append((link, own))
    for link in cut:
        if own := ordered(leaving[link.child]):
            plan.detached.append((link, own))
    plan.leaving = {table: ordered(leaving[table]) for table in order}
    return plan


def first_of(plan: RowPlan) -> RowPlan:
    """Return the part of a plan that comes first, of one table or reference."""
    if plan.detached:
        return RowPlan({}, plan.detached[:1])
    return RowPlan(dict(list(plan.leaving.items())[:1]))


def carry_out(connection: sa.Connection, links: Sequence[Link], plan: RowPlan) -> None:
    """Change and delete the rows of a plan; SourceError where there are fewer than it says."""
    large = {table for table, keys in plan.leaving.items() if len(keys) >= _MANY}
    with _indexed(connection, [link for link in links if link.parent in large]):
        for link, keys in plan.detached:
            nothing = dict.fromkeys(column.name for column in link.emptied)
            _change(connection, link.child, keys, sa.update(link.child).values(nothing))
        for table, keys in plan.leaving.items():
            _change(connection, table, keys, sa.delete(table))


@contextmanager
def _indexed(connection: sa.Connection, links: Iterable[Link]) -> Iterator[None]:
    """Have an index of each reference inside the block, in the same transaction.

    For each row that leaves, SQLite looks for rows that refer to it: without an index, in all rows.
    """
    made = []
    if connection.dialect.name == "sqlite":
        quote = connection.dialect.identifier_preparer.quote_identifier
        for n, link in enumerate(links):
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
    known: dict[str, list[str]] = {}
    for index, column in connection.exec_driver_sql(_INDEXES, (link.child.name,)):
        known.setdefault(index, []).append(column)
    key = [column.name for column in link.child.primary_key.columns]
    return names == key[: len(names)] or any(
        set(columns[: len(names)]) == set(names) for columns in known.values()
    )


_INDEXES = (
    "select l.name, i.name from pragma_index_list(?) l join pragma_index_info(l.name) i "
    "where not l.partial order by l.name, i.seqno"
)


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


def _in_order(
    links: Sequence[Link], tables: Collection[sa.Table]
) -> tuple[list[sa.Table], list[Link]]:
    """Return tables, those that refer to others first; and references to remove before that."""
    within = [link for link in links if link.child in tables and link.parent in tables]
    cut: list[Link] = []
    while True:
        sorter = TopologicalSorter[sa.Table]()
        for table in sorted(tables, key=lambda each: each.key):
            sorter.add(table)
        for link in within:
            if link not in cut:
                sorter.add(link.parent, link.child)
        try:
            return list(sorter.static_order()), cut
        except CycleError as error:
            steps = set(pairwise(error.args[1]))
        circle = [link for link in within if (link.child, link.parent) in steps]
        chosen = next((link for link in circle if link.is_optional and link not in cut), None)
        if chosen is None:
            names = ", ".join(sorted({repr(link.child.key) for link in circle}))
            raise SourceError(
                f"rows of {names} refer to each other in a circle, by columns that may not be "
                "null; expected an order in which they can be deleted; make one of the columns "
                "nullable, or delete them by hand"
            )
        cut.append(chosen)
