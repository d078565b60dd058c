"""Comparison of the suppression list with the log, which finds people added or removed unseen.

The law kept here: whenever the list changes, an entry of the log commits to the whole part of the
list of a request, as "suppressed".
The commitment is salted: the log and receipts alone do not tell whether a token is in it.
The salt is kept in the ledger beside the tokens, and destroyed when they change.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Connection, select

from erasable.core.errors import EvidenceError, TamperedError
from erasable.workspace.evidence.commitments import commit, matches
from erasable.workspace.evidence.context import Context
from erasable.workspace.evidence.entries import KINDS
from erasable.workspace.evidence.formats import pack, stamp, unpack
from erasable.workspace.ledger.bulk import delete_in, rows_in
from erasable.workspace.ledger.schema import log_entry, suppression, suppression_salt

_KINDS = [each.name for each in KINDS.values() if each.is_about_list]  # the last entry counts


@dataclass(slots=True)
class KeptOut:
    """The people whom a request keeps out, in the list and in the log."""

    rows: list[dict[str, Any]] = field(default_factory=list)  # of table `suppression`
    salt: str | None = None  # of the commitment; None if missing
    n_tokens: int = 0  # rows that were committed to, as the ledger says
    said: str | None = None  # the commitment in the log; None without one
    position: int | None = None  # of the entry with it

    def is_said_of(self, rows: Sequence[Mapping[str, Any]]) -> bool:
        """Tell whether the log commits to these rows."""
        if self.said is None or self.salt is None:
            return False
        try:
            return matches(self.salt, self.said, _text(self.n_tokens, rows))
        except (TypeError, ValueError):  # the salt or the entry is malformed
            return False

    def difference(self) -> str | None:
        """Describe the fault of the list in a few words, None without one."""
        n = len(self.rows)
        if self.said is None:
            return f"{_identities(n)} that the log does not know of" if n else None
        if self.is_said_of(self.rows):
            return None
        if self.salt is None:
            return f"{_identities(n)}, and its salt is missing"
        if n != self.n_tokens:
            return f"{_identities(n)}, and not {self.n_tokens}"
        return f"{_identities(n)}, one of which, or the salt, was altered"


def commit_to(
    connection: Connection, kept: Mapping[str, Sequence[Mapping[str, Any]]]
) -> dict[str, str]:
    """Commit to the people whom requests keep out, under new salts; the old ones are destroyed.

    `kept` has all rows of table `suppression` of each request. Return the commitments by request;
    they have to go into the log in the same transaction.
    """
    delete_in(connection, suppression_salt.c.request_id, kept)
    made = {request: commit(_text(len(rows), rows)) for request, rows in kept.items()}
    salts = [
        {"request_id": request, "salt": salt, "n_tokens": len(kept[request])}
        for request, (salt, _) in made.items()
    ]
    if salts:
        connection.execute(suppression_salt.insert(), salts)
    return {request: commitment for request, (_, commitment) in made.items()}


def kept_out(connection: Connection, requests: Iterable[str] | None = None) -> dict[str, KeptOut]:
    """Return the people kept out, by request; by default for all requests in list or log."""
    wanted = None if requests is None else list(requests)
    found: dict[str, KeptOut] = {}
    for row in rows_in(connection, select(suppression), suppression.c.request_id, wanted):
        found.setdefault(row.request_id, KeptOut()).rows.append(row._asdict())
    logged = select(log_entry).where(log_entry.c.kind.in_(_KINDS))
    for row in rows_in(connection, logged, log_entry.c.subject, wanted):
        said = _said(row.body)
        if said is not None:
            about = found.setdefault(row.subject, KeptOut())
            if about.position is None or about.position < row.position:
                about.said, about.position = said, row.position
    salts = select(suppression_salt)
    for row in rows_in(connection, salts, suppression_salt.c.request_id, wanted):
        if row.request_id in found:
            found[row.request_id].salt = row.salt
            found[row.request_id].n_tokens = row.n_tokens
    return found


def committed_rows(connection: Connection, request: str) -> list[dict[str, Any]]:
    """Return the rows of a request that the log commits to.

    Raise EvidenceError if the list differs: a new commitment would hide the change.
    """
    kept = kept_out(connection, [request]).get(request, KeptOut())
    if (message := kept.difference()) is not None:
        raise EvidenceError(_difference(request, kept, message))
    return kept.rows


def compare_list_with_log(context: Context) -> list[str]:
    """Return a line for each request whose tokens on the list differ from the log."""
    with context.ledger.reading() as connection:
        every = sorted(kept_out(connection).items())
    return [
        _difference(request, kept, message)
        for request, kept in every
        if (message := kept.difference()) is not None
    ]


def check_list(connection: Connection) -> None:
    """Raise TamperedError if the list differs from the log; called before the log is signed."""
    for request, kept in sorted(kept_out(connection).items()):
        if (message := kept.difference()) is not None:
            raise TamperedError(_difference(request, kept, message))


def _difference(request: str, kept: KeptOut, message: str) -> str:
    said = "the log" if kept.position is None else f"entry {kept.position} of the log"
    return (
        f"the suppression list is not what {said} says: for request {request!r} it holds "
        f"{message}; expected it as it was left; run `erasable suppress import` with a list that "
        "was exported since, or restore the ledger from a backup"
    )


def _text(n: int, rows: Sequence[Mapping[str, Any]]) -> str:
    """Write rows as text: equal rows give equal text."""
    listed = sorted([row["token"], row["type"], stamp(row["since"])] for row in rows)
    return pack({"n": n, "rows": listed}).decode()


def _said(body: bytes) -> str | None:
    try:
        said = unpack(body, "it").get("suppressed")
    except EvidenceError:  # verify_log says so
        return None
    return None if said is None else str(said)


def _identities(n: int) -> str:
    return "1 identity" if n == 1 else f"{n or 'no'} identities"
