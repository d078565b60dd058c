"""Erasure of people from a database outside of the workspace, in one transaction.

The law kept here: what is done is what the dry run says, and nobody else's row is changed. No
better word is said of what is left on the disk than what was looked at.
"""

from __future__ import annotations

import secrets
import sqlite3
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import UUID

import sqlalchemy as sa
from sqlalchemy.exc import DBAPIError, OperationalError, SQLAlchemyError

from erasable.core.errors import InvalidParameterError, SourceError
from erasable.workspace.context import Context
from erasable.workspace.data import databases
from erasable.workspace.evidence import log
from erasable.workspace.identity import subjects, suppression
from erasable.workspace.identity.canonical import canonical, declared
from erasable.workspace.targets import relations, residue
from erasable.workspace.targets.marks import SHORTEST
from erasable.workspace.targets.relations import Key, Link
from erasable.workspace.targets.scanning import tokens_under

ACTIONS = ("delete", "null", "mask")
PURGED, NOT_PROVED = "purged", "deleted, not proved gone"

_AT_ONCE = 10_000  # rows whose identities are compared at a time
_ATTEMPTS = 5  # where a database gives up one of two transactions
_MASK = "erased"
_TAKE_BACK = ("sqlite", "postgresql")  # databases without tables outside of transactions


@dataclass(slots=True)
class Erased:
    """The result of an erasure from a database, or of a dry run."""

    place: str  # without user and password
    n_people: int = 0  # identities of people who were erased, of whom rows were found
    changed: dict[str, int] = field(default_factory=dict)  # by table: rows deleted or overwritten
    detached: dict[str, int] = field(default_factory=dict)  # by column: rows that lose a reference
    triggers: list[str] = field(default_factory=list)  # of these tables; may change other rows
    verdict: str | None = None  # `PURGED` or `NOT_PROVED`; None of a dry run, and of no rows
    reason: str | None = None  # why it is not proved


@dataclass(frozen=True, slots=True)
class _Subject:
    table: sa.Table
    column: sa.Column[Any]
    type: str
    region: str | None


def erase(
    context: Context,
    place: str,
    columns: Sequence[str],
    *,
    action: str = "delete",
    cascade: Collection[str] = (),
    keep: Collection[str] = (),
    dry_run: bool = False,
) -> Erased:
    """Erase the people on the suppression list; see `Workspace.erase_target`."""
    if action not in ACTIONS:
        raise InvalidParameterError(
            f"the action is {str(action)[:40]!r}; expected one of {', '.join(ACTIONS)}"
        )
    for name, given, fits in (
        ("cascade", cascade, action == "delete"), ("keep", keep, action != "delete"),
    ):  # fmt: skip
        if given and not fits:
            raise InvalidParameterError(
                f"--{name} came with the action {action!r}; expected it with "
                f"{'delete' if name == 'cascade' else 'null or mask'} alone"
            )
    if not columns:
        raise SourceError(
            "no column says whose rows there are; expected one or more; name them, as in "
            "customers.mail:email (`erasable target scan` finds them)"
        )
    with databases.writable(place) as (engine, told):
        for attempt in range(_ATTEMPTS):
            try:
                found, spellings = _erase_once(
                    context, engine, told, columns, action, cascade, keep, dry_run=dry_run
                )
                break
            except OperationalError as error:
                if attempt + 1 < _ATTEMPTS and "deadlock" in str(error.orig).lower():
                    continue
                raise _failed(told, error) from None
            except SQLAlchemyError as error:
                raise _failed(told, error) from None
        if found.changed and not dry_run:
            _judge(context, engine, found, columns, spellings)
            _write_down(context, found)
    return found


def _failed(place: str, error: SQLAlchemyError) -> SourceError:
    if isinstance(error, DBAPIError) and error.connection_invalidated:
        return SourceError(
            f"the connection to {place!r} was lost; expected a server that stays; nothing was "
            "changed, or everything: a dry run tells which"
        )
    return SourceError(
        f"the rows at {place!r} could not be changed ({type(error).__name__}); expected a "
        "database that answers and that you may change; nothing was changed"
    )


def _erase_once(
    context: Context,
    engine: sa.Engine,
    place: str,
    columns: Sequence[str],
    action: str,
    cascade: Collection[str],
    keep: Collection[str],
    *,
    dry_run: bool,
) -> tuple[Erased, Spellings]:
    """Find the rows and change them; return what was done, and the identities as spelled there.

    A dry run changes them as well, and takes it back: so it fails where the change would.
    """
    found, spellings = Erased(place), Spellings()
    with engine.connect() as connection, connection.begin() as transaction:
        known = relations.reflected(connection, place)
        _check_names(known, cascade, "cascade")
        subjects_ = list(_subjects(known, columns))
        links = relations.links_of(connection, known.tables.values())
        touched = {each.table for each in subjects_}
        if action == "delete":
            touched = relations.reached(links, touched)
        relations.refuse_hidden(connection, touched)
        overwritten = {}
        if action != "delete":
            _check_kept(subjects_, keep)
            overwritten = {
                each.table: _overwritten(each.table, links, action, keep) for each in subjects_
            }
            _refuse_kept(subjects_, overwritten, action)
        chosen: dict[sa.Table, set[Key]] = {}
        tokens: set[str] = set()
        for each in subjects_:
            for key, value, own in _rows_of(context, connection, each):
                chosen.setdefault(each.table, set()).add(key)
                tokens |= own
                spellings.add(value, each.type, each.region)
        found.n_people = len(tokens)
        may_change = not dry_run or connection.dialect.name in _TAKE_BACK
        if action == "delete":
            plan = relations.plan_rows(connection, links, chosen, cascade)
            found.changed = {table.key: len(keys) for table, keys in plan.leaving.items()}
            changed = {*plan.leaving, *(link.child for link, _ in plan.detached)}
            for link, keys in plan.detached:
                if link.child not in plan.leaving or keys != plan.leaving[link.child]:
                    names = ", ".join(column.name for column in link.columns)
                    found.detached[f"{link.child.key}.{names}"] = len(keys)
            if may_change:
                relations.carry_out(connection, plan)
        else:
            changed = set(chosen)
            for table in sorted(chosen, key=lambda each: each.key):
                found.changed[table.key] = len(chosen[table])
                if may_change:
                    _overwrite(connection, table, list(chosen[table]), overwritten[table])
        found.triggers = relations.triggers_of(connection, changed)
        if dry_run:
            if connection.dialect.name == "postgresql":  # checks that wait for the end are made now
                connection.exec_driver_sql("set constraints all immediate")
            transaction.rollback()
    return found, spellings


def _check_names(known: sa.MetaData, names: Collection[str], what: str) -> None:
    missing = sorted(set(names) - known.tables.keys())
    if missing:
        raise SourceError(
            f"there is no table {missing[0][:60]!r}, which --{what} names; expected one of "
            f"{', '.join(sorted(known.tables))}"
        )


def _check_kept(given: Iterable[_Subject], keep: Collection[str]) -> None:
    known = {
        name
        for each in given
        for column in each.table.columns
        for name in (column.name, f"{each.table.key}.{column.name}")
    }
    if missing := sorted(set(keep) - known):
        raise SourceError(
            f"there is no column {missing[0][:60]!r}, which --keep names; expected one of the "
            "tables whose rows are overwritten"
        )


def _subjects(known: sa.MetaData, columns: Sequence[str]) -> Iterator[_Subject]:
    """Read columns such as "customers.mail:email"."""
    for each in columns:
        name, colon, kind = each.partition(":")
        parts = name.split(".")  # a name may have dots of its own
        splits = [(".".join(parts[:n]), ".".join(parts[n:])) for n in range(1, len(parts))]
        fitting = [
            (known.tables[of], own)
            for of, own in splits
            if of in known.tables and own in known.tables[of].columns
        ]
        if not fitting:
            raise SourceError(
                f"there is no column {name[:80]!r} in the database; expected TABLE.COLUMN, of the "
                f"tables {', '.join(sorted(known.tables))}"
            )
        table, column_name = fitting[-1]
        relations.key_of(table)
        if isinstance(table.columns[column_name].type, sa.ARRAY | sa.JSON):
            raise SourceError(
                f"the column {name[:80]!r} holds lists or JSON; expected one with an identity in "
                "each row"
            )
        type_, region = declared(kind if colon else subjects.DEFAULT_TYPE)
        yield _Subject(table, table.columns[column_name], type_, region)


def _rows_of(
    context: Context, connection: sa.Connection, subject: _Subject
) -> Iterator[tuple[Key, Any, set[str]]]:
    """Return the rows of people on the suppression list: key, identity, its tokens; locked."""
    own = relations.key_of(subject.table)
    every = sa.select(*own, subject.column).where(subject.column.is_not(None))
    keys: set[Key] = set()
    with closing(connection.execute(every.execution_options(stream_results=True))) as result:
        while rows := result.fetchmany(_AT_ONCE):
            keys |= {tuple(row[:-1]) for row, _ in _of_people(context, rows, subject)}
    locked: list[Any] = list(relations.locked(connection, subject.table, keys, subject.column))
    if len(locked) != len(keys):
        raise SourceError(
            f"{len(locked)} rows of table {subject.table.key!r} have the {len(keys)} keys of the "
            "rows found; expected one for each; nothing was changed: a key is null, or not exact, "
            "or in several tables that inherit, or rows have just left (try it again)"
        )
    for row, tokens in _of_people(context, locked, subject):
        yield tuple(row[:-1]), row[-1], tokens


def _of_people(
    context: Context, rows: Sequence[Any], subject: _Subject
) -> Iterator[tuple[Any, set[str]]]:
    tried = {
        value: set(tokens_under(context, _plain(value), subject.type, subject.region))
        for value in {row[-1] for row in rows}
    }
    with context.ledger.reading() as connection:
        listed = suppression.suppressed(connection, set().union(*tried.values()))
    for row in rows:
        if found := tried[row[-1]] & listed:
            yield row, found


def _plain(value: Any) -> Any:
    return str(value) if isinstance(value, UUID) else value


# -- overwriting -----------------------------------------------------------------------------------


def _refuse_kept(
    given: Iterable[_Subject], overwritten: dict[sa.Table, dict[str, bool]], action: str
) -> None:
    """Refuse columns of identities that would stay, with the people in them."""
    for each in given:
        if each.column.name not in overwritten[each.table]:
            raise SourceError(
                f"the column {each.column.name!r} of {each.table.key!r} says whose rows there are, "
                f"and would stay, as one of a key or of --keep, or computed; expected one that "
                f"{action} changes; delete the rows instead"
            )


def _overwritten(
    table: sa.Table, links: Iterable[Link], action: str, keep: Collection[str]
) -> dict[str, bool]:
    """Return which columns of a row are overwritten, and whether by null."""
    stay = {*relations.key_of(table), *(each.parent for each in table.foreign_keys)}
    stay.update(column for link in links if link.parent is table for column in link.referred)
    found, stuck = {}, []
    for column in table.columns:
        if column in stay or column.name in keep or f"{table.key}.{column.name}" in keep:
            continue
        if column.computed is not None:  # of other columns
            continue
        as_text = isinstance(column.type, sa.String) and action == "mask"
        if not (as_text or column.nullable):
            stuck.append(column.name)
        found[column.name] = not as_text
    if stuck:
        raise SourceError(
            f"the columns {', '.join(map(repr, stuck))} of {table.name!r} may not be null; "
            "expected columns that can be overwritten; keep them with --keep, or delete the rows"
        )
    return found


def _overwrite(
    connection: sa.Connection, table: sa.Table, keys: Sequence[Key], columns: dict[str, bool]
) -> None:
    unique = _unique(table)
    same = {name: None if is_null else _MASK for name, is_null in columns.items()}
    each = [name for name, is_null in columns.items() if not is_null and name in unique]
    if not each:
        relations.change_rows(connection, table, keys, same)
        return
    for key in keys:
        own = {name: f"{_MASK}-{secrets.token_hex(8)}" for name in each}
        relations.change_rows(connection, table, [key], {**same, **own})


def _unique(table: sa.Table) -> set[str]:
    """Return the columns that are in a unique index or constraint."""
    found = {
        column.name
        for constraint in table.constraints
        if isinstance(constraint, sa.UniqueConstraint)
        for column in constraint.columns
    }
    return found | {
        column.name for index in table.indexes if index.unique for column in index.columns
    }


# -- what is left ----------------------------------------------------------------------------------


class Spellings:
    """The identities of people, with what to look for in bytes."""

    def __init__(self) -> None:
        self._marks: dict[str, set[str]] = {}  # by their canonical spelling

    def add(self, value: Any, type_: str, region: str | None) -> None:
        """Add a value as it stood in a row."""
        plain = canonical(type_, _plain(value), region)
        self._marks.setdefault(plain, {plain}).add(str(value).strip())

    def marks(self, form: str) -> set[bytes]:
        """Return the bytes to look for, those that are long enough."""
        every = {mark.encode(form) for of in self._marks.values() for mark in of}
        return {mark for mark in every if len(mark) >= SHORTEST}

    def count(self, found: Collection[bytes], form: str) -> int:
        """Return of how many identities any of some bytes are."""
        return sum(any(mark.encode(form) in found for mark in of) for of in self._marks.values())

    def n_short(self) -> int:
        """Return how many identities have a spelling too short to look for."""
        return sum(any(len(mark.encode()) < SHORTEST for mark in of) for of in self._marks.values())


def _judge(
    context: Context,
    engine: sa.Engine,
    found: Erased,
    columns: Sequence[str],
    spellings: Spellings,
) -> None:
    """Have the database free what it can, look at what is left, and say so."""
    reasons = []
    try:
        with engine.connect() as connection:
            known = relations.reflected(connection, found.place)
            came = sum(
                1 for each in _subjects(known, columns) for _ in _rows_of(context, connection, each)
            )
    except (SQLAlchemyError, SourceError) as error:  # the rows are gone: that is to be said
        reasons.append(f"the rows could not be read again ({type(error).__name__})")
    else:
        if came:
            reasons.append(f"{came} rows of these people have come since")
    if engine.dialect.name == "sqlite":
        reasons += _left_in_file(Path(str(engine.url.database)), spellings)
    else:
        reasons.append(
            "the server keeps deleted rows in its files until it needs the place, and changes in "
            "its logs"
        )
    found.verdict = NOT_PROVED if reasons else PURGED
    found.reason = "; ".join(reasons) or None


def _left_in_file(path: Path, spellings: Spellings) -> list[str]:
    """Rewrite a file of SQLite without free pages; say what of the people is still in its files."""
    reasons = []
    if n := spellings.n_short():
        reasons.append(f"{n} of their identities are too short to be searched for")
    try:
        with closing(sqlite3.connect(path, isolation_level=None)) as connection:
            connection.execute("pragma secure_delete = on")
            connection.execute("vacuum")
            if connection.execute("pragma wal_checkpoint(truncate)").fetchone()[0]:
                reasons.append("another program reads the file")
            if n := connection.execute("pragma freelist_count").fetchone()[0]:
                reasons.append(f"{n} free pages are left in the file")
            form = connection.execute("pragma encoding").fetchone()[0]
            virtual = connection.execute(_VIRTUAL).fetchall()
            in_rows = residue.marks_among(_values(connection), spellings.marks("utf-8"))
    except sqlite3.Error as error:
        return [
            *reasons,
            f"the file could not be rewritten and read ({type(error).__name__}): another program "
            "may have it",
        ]
    if virtual:
        names = ", ".join(sorted(repr(name) for (name,) in virtual))
        reasons.append(f"an index such as that of {names} may keep words of them")
    if n := spellings.count(in_rows, "utf-8"):
        reasons.append(f"{n} of their identities are still in {path.name}, in other rows")
    for each in [path, *(path.with_name(path.name + end) for end in ("-wal", "-journal"))]:
        if not each.exists():
            continue
        left = residue.marks_in(each, spellings.marks(form))
        if (n := spellings.count(left, form)) and not (in_rows and each == path):
            reasons.append(f"{n} of their identities are still in {each.name}")
    return reasons


_VIRTUAL = "select name from sqlite_master where type = 'table' and sql like 'create virtual%'"
_STORED = "select name from sqlite_master where type = 'table' and sql not like 'create virtual%'"


def _values(connection: sqlite3.Connection) -> Iterator[bytes]:
    """Return the values of all rows as bytes: in the file, a long one lies in several places."""
    connection.text_factory = bytes
    for (name,) in connection.execute(_STORED).fetchall():
        quoted = name.decode().replace('"', '""')
        rows = connection.execute(f'select * from "{quoted}"')
        while some := rows.fetchmany(1_000):
            yield b"\0".join(
                value if isinstance(value, bytes) else str(value).encode()
                for row in some
                for value in row
            )
        yield b"\0"


def _write_down(context: Context, found: Erased) -> None:
    """Append an entry to the log: what was changed, where, and what could be proved."""
    body = {
        "place": found.place, "people": found.n_people, "changed": found.changed,
        "detached": found.detached, "triggers": found.triggers,
        "verdict": found.verdict, "reason": found.reason,
    }  # fmt: skip
    with context.ledger.transaction() as connection:
        log.append(context, connection, "target-erased", "target", body, context.now())
