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

import sqlalchemy as sa
from sqlalchemy.exc import OperationalError, SQLAlchemyError

from erasable.core.errors import InvalidParameterError, SourceError
from erasable.workspace.context import Context
from erasable.workspace.data import databases
from erasable.workspace.evidence import log
from erasable.workspace.identity import subjects, suppression
from erasable.workspace.identity.canonical import declared
from erasable.workspace.targets import relations, residue
from erasable.workspace.targets.relations import Key
from erasable.workspace.targets.scanning import tokens_under

ACTIONS = ("delete", "null", "mask")
PURGED, NOT_PROVED = "purged", "deleted, not proved gone"

_AT_ONCE = 10_000  # rows whose identities are compared at a time
_ATTEMPTS = 5  # where a database gives up one of two transactions
_MASK = "erased"


@dataclass(slots=True)
class Erased:
    """The result of an erasure from a database, or of a dry run."""

    place: str  # without user and password
    n_people: int = 0  # identities of people who were erased, of whom rows were found
    changed: dict[str, int] = field(default_factory=dict)  # by table: rows deleted or overwritten
    detached: dict[str, int] = field(default_factory=dict)  # by column: rows that lose a reference
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
    if not columns:
        raise SourceError(
            "no column says whose rows there are; expected one or more; name them, as in "
            "customers.mail:email (`erasable target scan` finds them)"
        )
    with databases.writable(place) as (engine, told):
        for attempt in range(_ATTEMPTS):
            try:
                found, marks = _erase_once(
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
            _judge(context, engine, found, columns, marks)
            _write_down(context, found)
    return found


def _failed(place: str, error: SQLAlchemyError) -> SourceError:
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
) -> tuple[Erased, set[str]]:
    """Find the rows and change them; return what was done, and the identities as spelled there."""
    found, marks = Erased(place), set[str]()
    with engine.connect() as connection, connection.begin() as transaction:
        known = relations.reflected(connection, place)
        _check_names(known, cascade, "cascade")
        chosen: dict[sa.Table, set[Key]] = {}
        tokens: set[str] = set()
        for each in _subjects(known, columns):
            for key, value, own in _rows_of(context, connection, each):
                chosen.setdefault(each.table, set()).add(key)
                tokens |= own
                marks.add(str(value))
        found.n_people = len(tokens)
        if action == "delete":
            plan = relations.plan_rows(connection, list(known.tables.values()), chosen, cascade)
            found.changed = {table.key: len(keys) for table, keys in plan.leaving.items()}
            for link, keys in plan.detached:
                if link.child not in plan.leaving or keys != plan.leaving[link.child]:
                    names = ", ".join(column.name for column in link.columns)
                    found.detached[f"{link.child.key}.{names}"] = len(keys)
            if not dry_run:
                relations.carry_out(connection, plan)
        else:
            _refuse_kept(_subjects(known, columns), action, keep)
            for table in sorted(chosen, key=lambda each: each.key):
                values = _overwritten(table, action, keep)
                found.changed[table.key] = len(chosen[table])
                if not dry_run:
                    _overwrite(connection, table, list(chosen[table]), values)
        if dry_run:
            transaction.rollback()
    return found, marks


def _check_names(known: sa.MetaData, names: Collection[str], what: str) -> None:
    missing = sorted(set(names) - known.tables.keys())
    if missing:
        raise SourceError(
            f"there is no table {missing[0][:60]!r}, which --{what} names; expected one of "
            f"{', '.join(sorted(known.tables))}"
        )


def _subjects(known: sa.MetaData, columns: Sequence[str]) -> Iterator[_Subject]:
    """Read columns such as "customers.mail:email"."""
    for each in columns:
        name, colon, kind = each.partition(":")
        table_name, _, column_name = name.rpartition(".")
        table = known.tables.get(table_name)
        if table is None or column_name not in table.columns:
            raise SourceError(
                f"there is no column {name[:80]!r} in the database; expected TABLE.COLUMN, of the "
                f"tables {', '.join(sorted(known.tables))}"
            )
        relations.key_of(table)
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
    for row, tokens in _of_people(context, locked, subject):
        yield tuple(row[:-1]), row[-1], tokens


def _of_people(
    context: Context, rows: Sequence[Any], subject: _Subject
) -> Iterator[tuple[Any, set[str]]]:
    tried = {
        value: set(tokens_under(context, value, subject.type, subject.region))
        for value in {row[-1] for row in rows}
    }
    with context.ledger.reading() as connection:
        listed = suppression.suppressed(connection, set().union(*tried.values()))
    for row in rows:
        if found := tried[row[-1]] & listed:
            yield row, found


# -- overwriting -----------------------------------------------------------------------------------


def _refuse_kept(given: Iterable[_Subject], action: str, keep: Collection[str]) -> None:
    """Refuse columns of identities that would stay, with the people in them."""
    for each in given:
        if each.column.name not in _overwritten(each.table, action, keep):
            raise SourceError(
                f"the column {each.column.name!r} of {each.table.key!r} says whose rows there are, "
                f"and would stay, as one of a key or of --keep; expected one that {action} "
                "changes; delete the rows instead"
            )


def _overwritten(table: sa.Table, action: str, keep: Collection[str]) -> dict[str, bool]:
    """Return which columns of a row are overwritten, and whether by null."""
    of_keys = {*relations.key_of(table), *(each.parent for each in table.foreign_keys)}
    found, stuck = {}, []
    for column in table.columns:
        if column in of_keys or column.name in keep or f"{table.key}.{column.name}" in keep:
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


def _judge(
    context: Context, engine: sa.Engine, found: Erased, columns: Sequence[str], marks: set[str]
) -> None:
    """Have the database free what it can, look at what is left, and say so."""
    reasons = []
    with engine.connect() as connection:
        known = relations.reflected(connection, found.place)
        came = sum(
            1 for each in _subjects(known, columns) for _ in _rows_of(context, connection, each)
        )
    if came:
        reasons.append(f"{came} rows of these people have come since")
    if engine.dialect.name == "sqlite":
        reasons += _left_in_file(Path(str(engine.url.database)), marks)
    else:
        reasons.append(
            "the server keeps deleted rows in its files until it needs the place, and changes in "
            "its logs"
        )
    found.verdict = NOT_PROVED if reasons else PURGED
    found.reason = "; ".join(reasons) or None


def _left_in_file(path: Path, marks: set[str]) -> list[str]:
    """Rewrite a file of SQLite without free pages; say what of the marks is still in its files."""
    try:
        with closing(sqlite3.connect(path, isolation_level=None)) as connection:
            connection.execute("pragma secure_delete = on")
            connection.execute("vacuum")
            connection.execute("pragma wal_checkpoint(truncate)")
            n_free = connection.execute("pragma freelist_count").fetchone()[0]
            form = connection.execute("pragma encoding").fetchone()[0]
    except sqlite3.Error as error:
        return [f"the file could not be rewritten ({type(error).__name__}): another program has it"]
    reasons = [] if not n_free else [f"{n_free} free pages are left in the file"]
    spelled = [mark.encode(form) for mark in marks]
    texts = [mark for mark in spelled if len(mark) >= residue.SHORTEST]
    for each in [path, *(path.with_name(path.name + end) for end in ("-wal", "-journal"))]:
        if each.exists() and (n := len(residue.marks_in(each, texts))):
            reasons.append(f"{n} of their identities are still in {each.name}, in other rows")
    return reasons


def _write_down(context: Context, found: Erased) -> None:
    """Append an entry to the log: what was changed, where, and what could be proved."""
    body = {
        "place": found.place, "people": found.n_people, "changed": found.changed,
        "detached": found.detached, "verdict": found.verdict, "reason": found.reason,
    }  # fmt: skip
    with context.ledger.transaction() as connection:
        log.append(context, connection, "target-erased", "target", body, context.now())
