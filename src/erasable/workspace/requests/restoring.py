"""Bring a restored backup up to date: erase again who was erased since it was made.

The law kept here: after an exported list is taken in, all people on it are kept out, and for
those whose records came back with the backup there is an open request. Both are one transaction; to
take it in again changes nothing.
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
from erasable.workspace.requests import intake
from erasable.workspace.requests.intake import OPEN, Request


@dataclass(frozen=True, slots=True)
class Imported:
    """What an exported list has brought about.

    Attributes
    ----------
    n_listed : int
        Identities in it: people, and records that met the condition of a request.
    n_new : int
        Put on the list of the workspace.
    n_released : int
        Left out: they were let in again, and the log knows of that.
    n_mended : int
        Requests of which the list had been changed behind the log's back.
    n_waiting : int
        Identities kept out whose records are there, and that an open request asks for already.
    requests : tuple of Request
        Opened, to erase those that no open request asks for.

    Examples
    --------
    >>> Imported(3, 3, 0, 0, 0, ()).n_new
    3
    """

    n_listed: int
    n_new: int
    n_released: int
    n_mended: int
    n_waiting: int
    requests: tuple[Request, ...]


def import_list(context: Context, exported: Any) -> Imported:
    """Take in a list that was exported, and open requests for whose records are there.

    They are due under no law: the law has been answered, when they were erased first. Carry them
    out at once.

    Parameters
    ----------
    context : Context
    exported : dict
        As returned by `erasable.workspace.identity.external_files.export`, as a rule before a
        backup was restored.

    Returns
    -------
    Imported

    Raises
    ------
    EvidenceError
        It was not signed by this workspace, or the list of the workspace was changed behind the
        log's back and it does not say how it was.
    WorkspaceBusyError
        Another process is at work: no record may come in meanwhile.
    WorkspaceError
        A data set cannot be read.
    """
    return take_in(context, external_files.read_list(context, exported))


def take_in(context: Context, listed: Sequence[dict[str, Any]], *, anew: bool = False) -> Imported:
    """Take in entries of a list that was checked; see `import_list`.

    With `anew`, requests are opened also for whom an open request asks for already.
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
            opened = intake.enter(context, connection, rows)
    return Imported(
        taken.n_listed, taken.n_new, taken.n_released, taken.n_mended,
        len(back) - len(missing), tuple(opened),
    )  # fmt: skip


def _join(context: Context, connection: Connection) -> None:
    """Say of identities that one request keeps out that they are one person, where they are back.

    A restored backup may not know that, and would take a request for one of them for another
    person's than a request for the other, which may be on hold.
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
