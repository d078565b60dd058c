"""Settings of a target, read for a database: columns of subjects, and the action on rows."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from erasable.core import errors  # InvalidParameterError is slow to import: when it is raised
from erasable.core.errors import SourceError
from erasable.workspace.targets import relations, schemas
from erasable.workspace.targets.protocol import Settings, Subject
from erasable.workspace.targets.records import as_identity
from erasable.workspace.targets.schemas import DANGLING, NESTED, Link


@dataclass(frozen=True, slots=True)
class Owner:
    """A column that says whose the rows of its table are."""

    subject: Subject
    table: sa.Table
    column: sa.Column[Any]
    path: tuple[str, ...] = ()  # where the identity is in the JSON, or the dotted text, of a column

    def identity(self, value: Any) -> Any:
        """Return the identity in a value of the column, None if it has none."""
        return at_path(value, self.path) if self.path else as_identity(value)


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
    """Raise an error for options of another action."""
    deletes = settings.action == "delete"
    for name, given, fits in (
        ("cascade", settings.cascade, deletes), ("keep", settings.keep, not deletes),
    ):  # fmt: skip
        if given and not fits:
            raise errors.InvalidParameterError(
                f"--{name} came with the action {settings.action!r}; expected it with "
                f"{'delete' if name == 'cascade' else 'null or mask'} alone"
            )


def layout_of(connection: sa.Connection, place: str, settings: Settings) -> Layout:
    """Read what the schema says; SourceError where the settings do not suit it."""
    known = schemas.tables_of(connection, place)
    _check_names(known, settings.cascade, "cascade")
    owners = list(_owners(known, settings.subjects))
    links = schemas.links_of(connection, known.tables.values())
    touched = {each.table for each in owners}
    overwritten = {}
    if settings.action == "delete":
        touched = relations.reached(links, touched)
        schemas.refuse_unseen(connection, touched)
    schemas.refuse_hidden(connection, touched)
    if settings.action != "delete":
        _check_kept(owners, settings.keep)
        overwritten = {each.table: _overwritten(each.table, links, settings) for each in owners}
        _refuse_kept(owners, overwritten, settings.action)
    dangling = any(table.info.get(DANGLING) for table in touched)
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
        table, column, path = _resolved(known, subject.field)
        schemas.key_of(table)
        is_nested = isinstance(column.type, sa.ARRAY | sa.JSON) or column.info.get(NESTED)
        if is_nested and not path:
            raise SourceError(
                f"the column {subject.field[:80]!r} holds lists or JSON; expected one with an "
                "identity in each row, or a key of the JSON, as in docs.data.user:id"
            )
        yield Owner(subject, table, column, path)


def _resolved(known: sa.MetaData, field: str) -> tuple[sa.Table, sa.Column[Any], tuple[str, ...]]:
    """Find a column by its table and name, which may have dots; the rest is a path in it."""
    parts = field.split(".")
    for end in range(len(parts), 1, -1):  # a whole name comes before a path
        for n in range(end - 1, 0, -1):
            table = known.tables.get(".".join(parts[:n]))
            name = ".".join(parts[n:end])
            if table is not None and name in table.columns:
                return table, table.columns[name], tuple(parts[end:])
    raise SourceError(
        f"there is no column {field[:80]!r} in the database; expected TABLE.COLUMN, of the tables "
        f"{', '.join(sorted(known.tables))}"
    )


def at_path(value: Any, path: Sequence[str]) -> Any:
    """Return what is at a path of keys and numbers in JSON, or in a text with dots.

    It is a list where the identities of several are there, at the end of the path or in objects of
    a list in it.

    >>> at_path('{"user": {"ids": [7, 8]}}', ["user", "ids", "1"]), at_path("notes.ann", ["1"])
    (8, 'ann')
    >>> at_path('{"by": [{"id": 7}, {"id": 8}]}', ["by", "id"])
    [7, 8]
    """
    for n, name in enumerate(path):
        inner = parsed(value)
        if inner is None and isinstance(value, str):
            inner = value.split(".")
        if isinstance(inner, dict):
            value = inner.get(name)
        elif isinstance(inner, list) and name.isdecimal():
            value = inner[int(name)] if int(name) < len(inner) else None
        elif isinstance(inner, list):
            found = [at_path(each, path[n:]) for each in inner if isinstance(each, dict)]
            return [each for each in found if each is not None] or None
        else:
            return None
    if isinstance(value, list):
        return value or None
    is_one = isinstance(value, str | int | float) and not isinstance(value, bool)
    return value if is_one else None


def parsed(value: Any) -> dict[str, Any] | list[Any] | None:
    """Return JSON that a value is or is a text of; None of other values."""
    if isinstance(value, str | bytes):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            return None
    return value if isinstance(value, dict | list) else None


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
    stay = {*schemas.key_of(table), *(each.parent for each in table.foreign_keys)}
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
