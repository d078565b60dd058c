"""Import of suppression lists after a restore: people on the list are erased again.

The law kept here: after an import all people on the list are suppressed, and those whose records
came back with the backup have an open request. Both are one transaction; importing a list again
changes nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, select, update

from erasable.workspace.context import Context
from erasable.workspace.data.holders import tokens_held
from erasable.workspace.data.persons import ALONE
from erasable.workspace.evidence import log
from erasable.workspace.identity import external_files, subjects, suppression
from erasable.workspace.identity.canonical import is_record_type
from erasable.workspace.ledger.schema import identity
from erasable.workspace.ledger.schema import request as request_table
from erasable.workspace.ledger.states import OPEN
from erasable.workspace.requests import intake
from erasable.workspace.requests.intake import Request


@dataclass(frozen=True, slots=True)
class Imported:
    """The effect of importing a list."""

    n_listed: int  # identities in it: people, and records that met the condition of a request
    n_new: int  # added to the suppression list
    n_released: int  # left out: the log says that they were released
    n_mended: int  # requests whose list had been changed without a log entry
    n_waiting: int  # suppressed identities with records and an open request
    requests: tuple[Request, ...]  # opened, for the others with records


def import_list(context: Context, exported: Any) -> Imported:
    """Import an exported list, and open requests for people on it who have records.

    The requests have no due date: the first erasure answered the law. Carry them out at once.
    """
    return take_in(context, external_files.read_list(context, exported))


def take_in(context: Context, listed: Sequence[dict[str, Any]], *, anew: bool = False) -> Imported:
    """Take in entries of a list that was checked; see `import_list`.

    With `anew`, requests are opened also for people with an open request.
    """
    with context.lock():
        with context.ledger.reading() as connection:
            types = {entry["token"]: entry["type"] for entry in suppression.listing(connection)}
            types |= {entry["token"]: entry["type"] for entry in listed}
            held = tokens_held(context, connection, types)
        with context.ledger.transaction() as connection:
            taken = suppression.take_in(context, connection, listed)
            _join(context, connection)
            back = [each for each in suppression.listing(connection) if each["token"] in held]
            asked = set() if anew else asked_for(connection)
            missing = [each for each in back if each["token"] not in asked]
            now = context.now()
            rows = [
                {
                    "regulation": "none", "received_at": now, "due_at": None, "hold": None,
                    "type": None, "types": sorted({kind for kind, _ in tokens}), "tokens": tokens,
                    "reach": ALONE, "condition": None, "changed_at": now,
                }
                for tokens in _per_person(connection, missing)
            ]  # fmt: skip
            opened = intake.enter_requests(context, connection, rows)
    return Imported(
        taken.n_listed, taken.n_new, taken.n_released, taken.n_mended,
        len(back) - len(missing), tuple(opened),
    )  # fmt: skip


def _join(context: Context, connection: Connection) -> None:
    """Link identities that one request suppresses, if they are back.

    A restored backup may not know that they are one person; a request for the other might be on
    hold.
    """
    tokens: dict[str, list[str]] = {}
    for entry in suppression.listing(connection):
        if not is_record_type(entry["type"]):
            tokens.setdefault(entry["request_id"], []).append(entry["token"])
    for own in tokens.values():
        if len(own) < 2:
            continue
        known = select(identity.c.subject).where(identity.c.token.in_(own)).distinct()
        found = sorted(connection.execute(known).scalars())
        if len(found) > 1:
            at = identity.c.subject.in_(found[1:])
            connection.execute(update(identity).where(at).values(subject=found[0]))
            log.append(context, connection, "subjects-linked", "subjects", {}, context.now())


def asked_for(connection: Connection) -> set[str]:
    """Return the tokens of everybody for whom there is an open request, on hold or not."""
    rows = connection.execute(select(request_table.c.tokens).where(request_table.c.state.in_(OPEN)))
    own = [(kind, token) for tokens in rows.scalars() for kind, token in tokens or ()]
    return {token for _, token in subjects.expand(connection, own)}


def _per_person(
    connection: Connection, entries: list[dict[str, Any]]
) -> list[list[tuple[str, str]]]:
    """Put together what is one request: the tokens of a subject, the records of a condition."""
    owners = subjects.subjects_of(connection, [entry["token"] for entry in entries])
    found: dict[str, list[tuple[str, str]]] = {}
    for entry in entries:
        one = owners.get(entry["token"], entry["request_id"])
        found.setdefault(one, []).append((entry["type"], entry["token"]))
    return list(found.values())
