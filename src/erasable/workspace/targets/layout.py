"""What the settings of a target mean in a database: its columns, and what becomes of its rows."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from erasable.core.errors import InvalidParameterError, SourceError
from erasable.workspace.targets import relations, sqlite_schema
from erasable.workspace.targets.duckdb_schema import NESTED
from erasable.workspace.targets.protocol import Settings, Subject
from erasable.workspace.targets.sqlite_schema import Link

ACTIONS = ("delete", "null", "mask")


@dataclass(frozen=True, slots=True)
class Owner:
    """A column that says whose the rows of its table are."""

    subject: Subject
    table: sa.Table
    column: sa.Column[Any]


@dataclass(frozen=True, slots=True)
class Layout:
    """The part of a database that an erasure is about."""

    owners: list[Owner]
    links: list[Link]  # foreign keys between all of its tables
    touched: set[sa.Table]  # whose rows may leave or change
    # for null and mask: columns of a row that are overwritten, and whether by null
    overwritten: dict[sa.Table, dict[str, bool]]
    is_dangling: bool = False  # a table of SQLite refers to one that is not there


def check_settings(settings: Settings) -> None:
    """Raise an error for settings that suit no database."""
    if settings.action not in ACTIONS:
        raise InvalidParameterError(
            f"the action is {str(settings.action)[:40]!r}; expected one of {', '.join(ACTIONS)}"
        )
    deletes = settings.action == "delete"
    for name, given, fits in (
        ("cascade", settings.cascade, deletes), ("keep", settings.keep, not deletes),
    ):  # fmt: skip
        if given and not fits:
            raise InvalidParameterError(
                f"--{name} came with the action {settings.action!r}; expected it with "
                f"{'delete' if name == 'cascade' else 'null or mask'} alone"
            )
    if not settings.subjects:
        raise SourceError(
            "no column says whose rows there are; expected one or more; name them, as in "
            "customers.mail:email (`erasable target scan` finds them)"
        )


def layout_of(connection: sa.Connection, place: str, settings: Settings) -> Layout:
    """Read what the schema says; SourceError where the settings do not suit it."""
    known = relations.reflected(connection, place)
    _check_names(known, settings.cascade, "cascade")
    owners = list(_owners(known, settings.subjects))
    links = relations.links_of(connection, known.tables.values())
    touched = {each.table for each in owners}
    overwritten = {}
    if settings.action == "delete":
        touched = relations.reached(links, touched)
    relations.refuse_hidden(connection, touched)
    if settings.action != "delete":
        _check_kept(owners, settings.keep)
        overwritten = {each.table: _overwritten(each.table, links, settings) for each in owners}
        _refuse_kept(owners, overwritten, settings.action)
    is_sqlite = connection.dialect.name == "sqlite"
    dangling = is_sqlite and sqlite_schema.has_dangling(connection, touched)
    return Layout(owners, links, touched, overwritten, dangling)


def _check_names(known: sa.MetaData, names: Collection[str], what: str) -> None:
    missing = sorted(set(names) - known.tables.keys())
    if missing:
        raise SourceError(
            f"there is no table {missing[0][:60]!r}, which --{what} names; expected one of "
            f"{', '.join(sorted(known.tables))}"
        )


def _owners(known: sa.MetaData, given: Iterable[Subject]) -> Iterator[Owner]:
    """Find columns such as "customers.mail"."""
    for subject in given:
        parts = subject.field.split(".")  # a name may have dots of its own
        splits = [(".".join(parts[:n]), ".".join(parts[n:])) for n in range(1, len(parts))]
        fitting = [
            (known.tables[of], own)
            for of, own in splits
            if of in known.tables and own in known.tables[of].columns
        ]
        if not fitting:
            raise SourceError(
                f"there is no column {subject.field[:80]!r} in the database; expected "
                f"TABLE.COLUMN, of the tables {', '.join(sorted(known.tables))}"
            )
        table, name = fitting[-1]
        relations.key_of(table)
        column = table.columns[name]
        if isinstance(column.type, sa.ARRAY | sa.JSON) or column.info.get(NESTED):
            raise SourceError(
                f"the column {subject.field[:80]!r} holds lists or JSON; expected one with an "
                "identity in each row"
            )
        yield Owner(subject, table, column)


# -- overwriting -----------------------------------------------------------------------------------


def _check_kept(owners: Iterable[Owner], keep: Collection[str]) -> None:
    known = {
        name
        for each in owners
        for column in each.table.columns
        for name in (column.name, f"{each.table.key}.{column.name}")
    }
    if missing := sorted(set(keep) - known):
        raise SourceError(
            f"there is no column {missing[0][:60]!r}, which --keep names; expected one of the "
            "tables whose rows are overwritten"
        )


def _refuse_kept(
    owners: Iterable[Owner], overwritten: dict[sa.Table, dict[str, bool]], action: str
) -> None:
    """Refuse columns of identities that would stay, with the people in them."""
    for each in owners:
        if each.column.name not in overwritten[each.table]:
            raise SourceError(
                f"the column {each.column.name!r} of {each.table.key!r} says whose rows there are, "
                f"and would stay, as one of a key or of --keep, or computed; expected one that "
                f"{action} changes; delete the rows instead"
            )


def _overwritten(table: sa.Table, links: Sequence[Link], settings: Settings) -> dict[str, bool]:
    """Return which columns of a row are overwritten, and whether by null."""
    stay = {*relations.key_of(table), *(each.parent for each in table.foreign_keys)}
    stay.update(column for link in links if link.child is table for column in link.columns)
    stay.update(column for link in links if link.parent is table for column in link.referred)
    keep = settings.keep
    found, stuck = {}, []
    for column in table.columns:
        if column in stay or column.name in keep or f"{table.key}.{column.name}" in keep:
            continue
        if column.computed is not None:  # of other columns
            continue
        as_text = isinstance(column.type, sa.String) and settings.action == "mask"
        if not (as_text or column.nullable):
            stuck.append(column.name)
        found[column.name] = not as_text
    if stuck:
        raise SourceError(
            f"the columns {', '.join(map(repr, stuck))} of {table.name!r} may not be null; "
            "expected columns that can be overwritten; keep them with --keep, or delete the rows"
        )
    return found
