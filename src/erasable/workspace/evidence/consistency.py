"""Comparison of the ledger with the log, which finds a row changed without an entry of the log.

An entry holds what a request, data set or model was after its last change, as columns of the
ledger (see `entries`). `log.verify_log` checks the log itself; that comes first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from hashlib import sha256
from typing import Any, NamedTuple

from sqlalchemy import Connection, Row, select

from erasable.core.errors import EvidenceError
from erasable.workspace.evidence import entries, seals
from erasable.workspace.evidence.context import Context
from erasable.workspace.evidence.entries import KINDS, THINGS, describing
from erasable.workspace.evidence.envelope import peek
from erasable.workspace.evidence.formats import pack, unpack
from erasable.workspace.evidence.receipts import check
from erasable.workspace.ledger.schema import (
    SEAL,
    SEALED,
    SETTINGS,
    dataset,
    log_entry,
    meta,
    model,
    receipt,
    request,
    task,
)
from erasable.workspace.ledger.states import WAITING

_UNSAID = {"types", "tasks"}
"""Columns that may be ahead of the log: attempts that failed, and types of old versions."""
_WORDS = {
    "received_at": "time of receipt",
    "due_at": "due date",
    "extended_at": "time of extension",
    "completed_at": "time of completion",
    "scope": "identities or condition",
    "matched": "records found",
    "searched": "columns searched",
    "followed": "identities followed",
    "n_records": "number of records",
    "n_suppressed": "number of suppressed records",
    "n_added": "number of added records",
    "n_changed": "number of changed records",
    "n_removed": "number of removed records",
    "corrects": "columns to correct",
    "n_buckets": "number of buckets",
    "datasets": "data sets",
    "dataset_versions": "versions of data sets",
    "made_by": "kind",
}


class Said(NamedTuple):
    """The value of a column in the log, and where."""

    value: Any
    position: int


_Log = dict[tuple[str, str], dict[str, Said]]


def compare_ledger_with_log(context: Context) -> list[str]:
    """Return a line for each row of the ledger that differs from the log."""
    found = []
    with context.ledger.reading() as connection:
        said = _read(connection)
        for thing, subject, facts in _facts(context, connection):
            about = said.pop((thing, subject), None)
            name = f"{THINGS[thing]} {subject!r}"
            if about is None:
                found.append(f"{name} is in the ledger, but the log does not know of it")
                continue
            found += [f"{name}: {line}" for line in differences(facts, about)]
        for (thing, subject), about in said.items():
            position = min(one.position for one in about.values())
            found.append(
                f"{THINGS[thing]} {subject!r} is not in the ledger; entry {position} of the log "
                "says that it was"
            )
        for thing in seals.TABLES:
            newest = seals.newest(connection, thing)
            found += seals.unsealed_files(context, connection, thing, newest)
        found += seals.unsealed_settings(context, connection)
        found += _strays(connection)
    return found


def _strays(connection: Connection) -> list[str]:
    """Return a line for each setting that no version of erasable writes."""
    ids = {f"dataset:{id}" for id in connection.execute(select(dataset.c.id)).scalars()}
    ids |= {f"model:{id}" for id in connection.execute(select(model.c.id)).scalars()}
    known = {*SETTINGS, "frontier", "signed_head", *(f"{SEAL}{name}" for name in {*ids, *SEALED})}
    names = connection.execute(select(meta.c.name).order_by(meta.c.name)).scalars()
    return [
        f"the ledger has a setting {name!r}, which erasable does not write"
        for name in names
        if name not in known
    ]


def _read(connection: Connection) -> _Log:
    """Return the last values in the log, column by column, and where."""
    said: _Log = {}
    columns = select(log_entry.c.position, log_entry.c.body).order_by(log_entry.c.position)
    for position, data in connection.execute(columns):
        note(said, position, data)
    return said


def note(said: _Log, position: int, data: bytes) -> None:
    """Note the values of an entry; those of later entries replace them."""
    try:
        body = unpack(data, "it")
    except EvidenceError:
        return  # verify_log says so
    kind, subject = str(body.pop("kind", "")), str(body.pop("subject", ""))
    thing = kind.partition("-")[0]
    if thing not in THINGS or (thing == "target" and kind not in describing(thing, "new", "all")):
        return
    about = said.setdefault((thing, subject), {})
    body["at"] = None  # so that an empty body is remembered, too
    if kind in KINDS and (states := KINDS[kind].states):
        body["state"] = states
    about.update({name: Said(value, position) for name, value in body.items()})


def differences(facts: dict[str, Any], about: dict[str, Said]) -> Iterator[str]:
    """Return the columns in which a row differs from the log."""
    for name, one in about.items():
        if name not in facts:
            continue
        value = facts[name]
        same = (
            value in one.value
            if name == "state" and isinstance(one.value, tuple)
            else _same(value, one.value)
        )
        if name == "scope" and facts["state"] not in WAITING:
            if value is not None:
                yield "it has ended, but the ledger still holds what it asked for"
            continue
        if not same:
            words = _WORDS.get(name, name.replace("_", " "))
            yield f"the ledger differs from entry {one.position} of the log in its {words}"
    for name in facts.keys() - about.keys() - _UNSAID:
        if facts[name] not in (None, []):
            words = _WORDS.get(name, name.replace("_", " "))
            yield f"the log says nothing of its {words}, which the ledger has"


def _same(value: Any, said: Any) -> bool:
    """Tell whether two values have the same JSON; most are texts, numbers or None."""
    if value is None or value.__class__ in (str, int):
        return said.__class__ is value.__class__ and bool(said == value)
    return pack(value) == pack(said)


def _facts(context: Context, connection: Connection) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Return (thing, subject, facts) of every row that the log describes."""
    tasks: dict[str, list[Row[Any]]] = {}
    for row in connection.execute(select(task)):
        tasks.setdefault(row.request_id, []).append(row)
    receipts = {
        row.request_id: _digest(row.body, context.keys.public_pem)
        for row in connection.execute(select(receipt))
    }
    for row in connection.execute(select(request).order_by(request.c.id)):
        facts = facts_of_request(context, row, tasks.get(row.id, []))
        yield "request", row.id, {**facts, "receipt": receipts.get(row.id)}
    for thing, facts_of in FACTS.items():
        for row, version in seals.every(connection, thing):
            yield thing, row.name, facts_of(context, row, version)


def facts_of_request(context: Context, row: Row[Any], tasks: list[Row[Any]]) -> dict[str, Any]:
    """Return the values of a request that entries may hold, but for its receipt."""
    done = entries.done(each._asdict() for each in tasks)
    return {
        **entries.request(context.keys, row._asdict()),
        "state": row.state,
        "targets": [],
        **done,
    }


def facts_of_dataset(context: Context, row: Row[Any], version: Row[Any] | None) -> dict[str, Any]:
    """Return the values of a data set and its newest version that entries hold."""
    names = ("n_records", "n_suppressed", "n_added", "n_changed", "n_removed", "number")
    nothing = dict.fromkeys(names)
    current = nothing if version is None else version._asdict()
    return entries.dataset(context.keys, row._asdict(), current)


def facts_of_model(context: Context, row: Row[Any], version: Row[Any] | None) -> dict[str, Any]:
    """Return the values of a model and its newest version that entries hold."""
    return entries.model(
        context.keys, row._asdict(), None if version is None else version._asdict()
    )


def facts_of_target(context: Context, row: Row[Any], version: Row[Any] | None) -> dict[str, Any]:
    """Return the values of a target that entries hold."""
    return entries.target(context.keys, row._asdict())


FACTS: dict[str, Callable[[Context, Row[Any], Row[Any] | None], dict[str, Any]]] = {
    "dataset": facts_of_dataset,
    "model": facts_of_model,
    "target": facts_of_target,
}


def _digest(body: bytes, public_pem: bytes) -> str | None:
    """Return the digest of the statement in a receipt, None if the receipt does not hold."""
    try:
        check(body, public_pem)
        return sha256(peek(unpack(body, "it").get("envelope"))).hexdigest()
    except EvidenceError:
        return None
