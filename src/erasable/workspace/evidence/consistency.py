"""Hold the ledger against the log: whoever changes a row behind our back is found.

The log says of every request, data set and model what it was when that was last changed, in words
that are columns of the ledger (see `entries`). `log.verify_log` says whether the log itself is
whole; that comes first.
"""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import sha256
from typing import TYPE_CHECKING, Any, NamedTuple

from sqlalchemy import Connection, select

from erasable.core.errors import EvidenceError
from erasable.workspace.evidence import entries
from erasable.workspace.evidence.envelope import peek
from erasable.workspace.evidence.receipts import check
from erasable.workspace.evidence.wire import pack, unpack
from erasable.workspace.ledger.schema import (
    dataset,
    dataset_version,
    log_entry,
    model,
    model_version,
    receipt,
    request,
    task,
)

if TYPE_CHECKING:
    from erasable.workspace.site import Site

__all__ = ["compare_ledger_with_log"]

_ROOMS = {"request": "request", "dataset": "data set", "model": "model"}
_OPEN = ("pending", "in_progress")
_WORDS = {
    "received_at": "time of receipt",
    "due_at": "due date",
    "extended_at": "time of extension",
    "completed_at": "time of completion",
    "scope": "identities or condition",
    "matched": "records found",
    "n_records": "number of records",
    "n_suppressed": "number of suppressed records",
    "n_buckets": "number of buckets",
    "datasets": "data sets",
    "dataset_versions": "versions of data sets",
    "made_by": "kind",
}


class _Said(NamedTuple):
    value: Any
    position: int


_Log = dict[tuple[str, str], dict[str, _Said]]


def compare_ledger_with_log(site: Site) -> list[str]:
    """Tell where rows of the ledger are not what the log says of them.

    Returns
    -------
    list of str
        What does not hold, a line each; empty where all is well.
    """
    found = []
    with site.ledger.reading() as connection:
        said = _read(connection)
        for room, subject, facts in _facts(site, connection):
            about = said.pop((room, subject), None)
            name = f"{_ROOMS[room]} {subject!r}"
            if about is None:
                found.append(f"{name} is in the ledger, but the log does not know of it")
                continue
            found += [f"{name}: {line}" for line in _differences(facts, about)]
        for (room, subject), about in said.items():
            position = min(one.position for one in about.values())
            found.append(
                f"{_ROOMS[room]} {subject!r} is not in the ledger; entry {position} of the log "
                "says that it was"
            )
    return found


def _read(connection: Connection) -> _Log:
    """Return what the log says last, column by column, and where it says so."""
    said: _Log = {}
    columns = select(log_entry.c.position, log_entry.c.body).order_by(log_entry.c.position)
    for position, data in connection.execute(columns):
        try:
            body = unpack(data, "it")
        except EvidenceError:
            continue  # verify_log says so
        kind, subject = str(body.pop("kind", "")), str(body.pop("subject", ""))
        room = kind.partition("-")[0]
        if room not in _ROOMS:
            continue
        about = said.setdefault((room, subject), {})
        body["at"] = None  # so that an empty body is remembered, too
        if kind in entries.STATES:
            body["state"] = entries.STATES[kind]
        about.update({name: _Said(value, position) for name, value in body.items()})
    return said


def _differences(facts: dict[str, Any], about: dict[str, _Said]) -> Iterator[str]:
    for name, one in about.items():
        if name not in facts:
            continue
        value = facts[name]
        same = (
            value in one.value
            if name == "state" and isinstance(one.value, tuple)
            else (pack(value) == pack(one.value))
        )
        if name == "scope" and facts["state"] not in _OPEN:
            if value is not None:
                yield "it has ended, but the ledger still holds what it asked for"
            continue
        if not same:
            words = _WORDS.get(name, name.replace("_", " "))
            yield f"the ledger differs from entry {one.position} of the log in its {words}"


def _facts(site: Site, connection: Connection) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Return (room, subject, facts) of every row that the log speaks of."""
    tasks: dict[str, list[dict[str, Any]]] = {}
    order = select(task).order_by(task.c.target, task.c.target_id)
    for row in connection.execute(order):
        tasks.setdefault(row.request_id, []).append(entries.task(row._asdict()))
    receipts = {
        row.request_id: _digest(row.body, site.keys.public_pem)
        for row in connection.execute(select(receipt))
    }
    for row in connection.execute(select(request).order_by(request.c.id)):
        facts = entries.request(site.keys, row._asdict())
        yield (
            "request",
            row.id,
            {
                **facts,
                "state": row.state,
                "tasks": tasks.get(row.id, []),
                "receipt": receipts.get(row.id),
            },
        )
    versions = {
        (row.dataset_id, row.number): row._asdict()
        for row in connection.execute(select(dataset_version))
    }
    for row in connection.execute(select(dataset).order_by(dataset.c.name)):
        nothing = {"n_records": None, "n_suppressed": None, "number": None}
        current = versions.get((row.id, row.version), nothing)
        yield "dataset", row.name, entries.dataset(site.keys, row._asdict(), current)
    for row in connection.execute(select(model).order_by(model.c.name)):
        at = (model_version.c.model_id == row.id) & (model_version.c.number == row.version)
        version = connection.execute(select(model_version).where(at)).first()
        yield (
            "model",
            row.name,
            entries.model(site.keys, row._asdict(), None if version is None else version._asdict()),
        )


def _digest(body: bytes, public_pem: bytes) -> str | None:
    """Return the digest of the statement in a receipt, None where a stranger would refuse it."""
    try:
        check(body, public_pem)
        return sha256(peek(unpack(body, "it").get("envelope"))).hexdigest()
    except EvidenceError:
        return None
