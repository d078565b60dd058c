"""Checks of rows of the ledger against the log, before they are executed or signed.

The law kept here: no command, function or recipe from the ledger is executed, no file or address
that it names is opened by a command that changes something, and nothing is signed, unless the rows
are as the log and the seals say. A program of the user's runs from a `Trusted` value only, and only
this module makes one of a row.

A check costs a few statements, as many for one data set and model as for all; the number does not
grow with the log.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Generic, TypeVar

from sqlalchemy import Connection, Row, Select, bindparam, select

from erasable.core.errors import EvidenceError, TamperedError
from erasable.workspace.evidence import consistency, log, seals
from erasable.workspace.evidence.context import Context
from erasable.workspace.evidence.entries import THINGS, describing
from erasable.workspace.ledger.bulk import in_parts
from erasable.workspace.ledger.schema import dataset, log_entry, model, request, target, task

_Value = TypeVar("_Value")


@dataclass(frozen=True, slots=True)
class Trusted(Generic[_Value]):
    """A command or recipe that may be executed; made by `given` and `recorded` only."""

    value: _Value


def given(value: _Value) -> Trusted[_Value]:
    """Trust a value that the user has just passed; never one of the ledger."""
    return Trusted(value)


def recorded(context: Context, name: str, value: _Value, column: str) -> Trusted[_Value]:
    """Trust a value of a model's row, to be executed, if it is as the log says.

    `column` is "recipe" or "hook". Raise TamperedError if the row or its file was altered, or
    `value` is not in it.
    """
    with context.ledger.looking() as connection:
        check_one(context, connection, "model", name)
        row = connection.execute(select(model).where(model.c.name == name)).one()
        if getattr(row, column) != value:
            raise _tampered(f"model {name!r}: its {column} has changed while it was looked at")
    return Trusted(value)


@dataclass(frozen=True, slots=True)
class Checked:
    """Rows that agree with the log, by their ids."""

    things: dict[str, dict[int, Row[Any]]]  # by "dataset", "model" or "target"
    requests: dict[str, Row[Any]]
    tasks: dict[str, list[Row[Any]]]  # that are done or owed, by request
    acknowledged: dict[str, bytes]  # by request: the entry that took it in


def check(context: Context, connection: Connection, requests: Sequence[str] = ()) -> Checked:
    """Check settings, all data sets, all models and some requests against the log.

    All of them, because an alteration may change which of them a request concerns. Raise
    TamperedError at a difference. The connection has to see the rows that are relied on.
    """
    check_settings(context, connection)
    rows: dict[str, dict[int, Row[Any]]] = {}
    try:
        log.last_head(context, connection)
    except EvidenceError as error:
        raise _tampered(f"the last signed head of the log: {error}") from None
    for thing in consistency.FACTS:
        found = seals.every(connection, thing)
        _refuse(_missing(connection, thing, (row.name for row, _ in found)))
        _refuse(_differences(context, connection, thing, found))
        if thing in seals.TABLES:
            _refuse(seals.unsealed_files(context, connection, thing, found))
        rows[thing] = {row.id: row for row, _ in found}
    checked = Checked(rows, {}, {}, {})
    _check_requests(context, connection, requests, checked)
    return checked


def check_settings(context: Context, connection: Connection) -> None:
    """Check settings against their seals; see `check`."""
    _refuse(seals.unsealed_settings(context, connection))


def check_one(context: Context, connection: Connection, thing: str, name: str) -> None:
    """Check a "dataset" or "model" of a name against the log; see `check`."""
    found = seals.newest(connection, thing, name=name)
    _refuse(_differences(context, connection, thing, found))
    _refuse(seals.unsealed_files(context, connection, thing, found))


def check_requests(context: Context, connection: Connection, ids: Sequence[str]) -> None:
    """Check requests, and what was done for them, against the log; see `check`."""
    _check_requests(context, connection, ids, Checked({}, {}, {}, {}))


def _check_requests(
    context: Context, connection: Connection, ids: Sequence[str], checked: Checked
) -> None:
    """Check requests and their tasks; put the rows, and their first entries, into `checked`."""
    for some in in_parts(ids):
        said = _said(context, connection, log_entry.c.subject.in_(some), checked)
        order = select(task).where(task.c.request_id.in_(some), task.c.state != "failed")
        for row in connection.execute(order.order_by(task.c.target, task.c.target_id)):
            checked.tasks.setdefault(row.request_id, []).append(row)
        for row in connection.execute(select(request).where(request.c.id.in_(some))):
            checked.requests[row.id] = row
            done = checked.tasks.get(row.id, [])
            facts = consistency.facts_of_request(context, row, done)
            about = said.get(("request", row.id))
            if about is None:
                raise _tampered(f"request {row.id!r}: the log does not know of it")
            _refuse(f"request {row.id!r}: {line}" for line in consistency.differences(facts, about))
            for each in done:
                _check_owed(context, each)


def _check_owed(context: Context, row: Row[Any]) -> None:
    """Check what is still to be done for a request in a target, if this is such a task."""
    is_owed = row.target == "target" and row.exactness is None
    sealed = seals.of_owed(context.keys, row.request_id, row.target_id, row.tokens)
    if is_owed != (row.state == "owed") or (is_owed and row.seal != sealed):
        raise _tampered(f"request {row.request_id!r}: whom it is still to erase from a target")


# -- comparison with the log -----------------------------------------------------------------------


def _missing(connection: Connection, thing: str, rows: Iterable[str]) -> list[str]:
    """Return messages for what the log knows, and the ledger lacks."""
    gone = set(connection.execute(_first_entries(thing)).scalars()) - set(rows)
    return [f"{THINGS[thing]} {name!r}: it is in the log, and not in the ledger" for name in gone]


def _differences(
    context: Context, connection: Connection, thing: str, found: seals.Newest
) -> Iterator[str]:
    """Return messages for rows that differ from the last entries of the log about them."""
    only = {"wanted": found[0][0].name} if len(found) == 1 else {}
    rows = connection.execute(_last_entries(thing, bool(only)), only)
    last = {entry.name: entry for entry in rows}
    for row, version in found:
        name, entry = f"{THINGS[thing]} {row.name!r}", last[row.name]
        if entry.position is None:
            yield f"{name}: the log does not know of it"
            continue
        _refuse(log.altered(context, entry))
        said: Any = {}
        consistency.note(said, entry.position, entry.body)
        if (thing, row.name) not in said:
            yield f"{name}: entry {entry.position} of the log is about something else"
            continue
        try:
            facts = consistency.FACTS[thing](context, row, version)
            for line in consistency.differences(facts, said[thing, row.name]):
                yield f"{name}: {line}"
        except EvidenceError:  # the row has values that JSON cannot hold
            yield f"{name}: it holds what entry {entry.position} of the log does not say"


@cache
def _first_entries(thing: str) -> Select[Any]:
    """Return the query for the things that the log knows; made once, as those of `seals` are."""
    is_first = log_entry.c.kind.in_(describing(thing, "new"))
    return select(log_entry.c.subject).where(is_first).distinct()


@cache
def _last_entries(thing: str, only_one: bool) -> Select[Any]:
    """Return the query for names, each with the last entry that describes it in full, if any."""
    table = {"dataset": dataset, "model": model, "target": target}[thing]
    entry = log_entry.alias()
    last = (
        select(entry.c.position)
        .where(entry.c.subject == table.c.name, entry.c.kind.in_(describing(thing, "new", "all")))
        .order_by(entry.c.position.desc())
        .limit(1)
        .scalar_subquery()
    )
    query = select(table.c.name, log_entry).outerjoin_from(
        table, log_entry, log_entry.c.position == last
    )
    return query.where(table.c.name == bindparam("wanted")) if only_one else query


def _said(context: Context, connection: Connection, where: Any, checked: Checked) -> Any:
    """Return the bodies of entries, if they were written with the workspace's keys."""
    said: Any = {}
    for row in connection.execute(select(log_entry).where(where).order_by(log_entry.c.position)):
        _refuse(log.altered(context, row))
        consistency.note(said, row.position, row.body)
        if row.kind == "request-acknowledged":
            checked.acknowledged[row.subject] = row.body
    return said


def _refuse(messages: Iterable[str]) -> None:
    for line in messages:
        raise _tampered(line)


def _tampered(what: str) -> TamperedError:
    return TamperedError(
        f"the ledger was tampered with: {what}; expected what erasable wrote; nothing was executed "
        "or signed, run `erasable log verify`, and restore the ledger from a backup"
    )
