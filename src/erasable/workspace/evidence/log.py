"""The log: an append-only record of what happened to requests, data sets and models.

The law kept here: an entry is appended in the transaction of its event, so that both are
there or neither is. Entries are the leaves of a Merkle tree (RFC 9162); a head signs its size and
root. Anyone who kept a head can be shown that nothing before it was altered, removed or reordered.

Whoever can write to the ledger can take all of it back to an earlier state. Only a head that is
kept elsewhere shows that; see `verify_since`.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from sqlalchemy import Connection, func, insert, select

from erasable.core.errors import EvidenceError, TamperedError
from erasable.workspace.evidence import seals
from erasable.workspace.evidence.context import Context
from erasable.workspace.evidence.envelope import HEAD_TYPE, read_head, read_kept, seal
from erasable.workspace.evidence.formats import hexadecimal, pack, stamp, unpack
from erasable.workspace.evidence.merkle import (
    MerkleFrontier,
    MerkleTree,
    leaf_hash,
    verify_consistency,
)
from erasable.workspace.ledger.schema import log_entry

_SLACK = timedelta(minutes=1)
"""Corrections of clocks are smaller, and a process may read its clock before it waits."""


def clock_set_back(context: Context, connection: Connection) -> list[str]:
    """Return a line if the clock is behind the last entry of the log; else no line."""
    newest = select(log_entry.c.body).order_by(log_entry.c.position.desc()).limit(1)
    last, now = _time(connection.execute(newest).scalar()), context.now()
    if last is None or last - now <= _SLACK:
        return []
    return [
        f"the clock says {stamp(now)}, but the newest entry of the log was written at "
        f"{stamp(last)}: the clock was set back, or was ahead then; set it right, or times and due "
        "dates will not be what they seem"
    ]


def clock_remarks(context: Context) -> list[str]:
    """Return a line for each step back in the times of the log, and those of `clock_set_back`.

    None of them proves that anything was altered.
    """
    with context.ledger.reading() as connection:
        latest, back = None, []
        order = select(log_entry.c.position, log_entry.c.body).order_by(log_entry.c.position)
        for position, body in connection.execute(order):
            at = _time(body)
            if at is None:
                continue  # `log.verify_log` reports it
            if latest is not None and latest - at > _SLACK:
                back.append(position)
            latest = at
        messages = clock_set_back(context, connection)
    if back:
        messages.append(
            f"the clock was set back before entry {back[0]} of the log"
            + (f", and {len(back) - 1} times after it" if back[1:] else "")
            + ": entries are in their order, but their times are not"
        )
    return messages


def _time(body: bytes | None) -> datetime | None:
    if body is None:
        return None
    try:
        at = datetime.fromisoformat(unpack(body, "it")["at"])
    except (EvidenceError, KeyError, TypeError, ValueError):
        return None
    return None if at.tzinfo is None else at


_RESERVED = frozenset({"kind", "subject", "at"})
_INSERT = insert(log_entry)


class Entry(NamedTuple):
    """An entry to be logged."""

    kind: str  # such as "request-denied"
    subject: str  # such as "request/7f3a"
    body: dict[str, Any]  # for JSON; without identity, token, id of a record or bare digest
    at: datetime


def append(
    context: Context,
    connection: Connection,
    kind: str,
    subject: str,
    body: dict[str, Any],
    at: datetime,
) -> int:
    """Append an entry (see `Entry`) in the caller's transaction; return its position."""
    return append_many(context, connection, [(kind, subject, body, at)])


def append_many(
    context: Context,
    connection: Connection,
    what: Iterable[tuple[str, str, dict[str, Any], datetime]],
) -> int:
    """Append entries in the caller's transaction; return the position of the first.

    This is cheaper than `append` one by one. Raise EvidenceError if a body has a key that is taken,
    or a value that JSON cannot hold.
    """
    frontier = _frontier(context, connection)
    first = frontier.size
    rows = []
    for kind, subject, body, at in what:
        if taken := _RESERVED & body.keys():
            raise EvidenceError(
                f"an entry of the log has {sorted(taken)} in its body; expected other names; "
                "leave them out, they are written anyway"
            )
        entry = pack({**body, "kind": kind, "subject": subject, "at": stamp(at)})
        leaf = leaf_hash(entry)
        position = frontier.size
        frontier.append(leaf)
        rows.append(
            {
                "position": position, "kind": kind, "subject": subject, "body": entry,
                "leaf": leaf, "seal": seals.of_entry(context.keys, position, leaf),
            }
        )  # fmt: skip
    if rows:
        connection.execute(_INSERT, rows)
        context.ledger.set(connection, "frontier", frontier.to_json())
    return first


def next_position(context: Context, connection: Connection) -> int:
    """Return the position that the next entry will have: the size of the log."""
    return _frontier(context, connection).size


def entries(
    connection: Connection, since: int = 0, limit: int | None = None
) -> list[dict[str, Any]]:
    """Return the log from a position on, in order.

    Each entry is as it was written (kind, subject, at and its body), with its position.
    """
    rows = connection.execute(
        select(log_entry.c.position, log_entry.c.body)
        .where(log_entry.c.position >= since)
        .order_by(log_entry.c.position)
        .limit(limit)
    )
    return [
        {**unpack(body, f"entry {position} of the log"), "position": position}
        for position, body in rows
    ]


def head(context: Context, connection: Connection) -> dict[str, Any]:
    """Sign the log as it is, and keep the head in the ledger, in the caller's transaction.

    The result has workspace (its id), size (number of entries), root (of their Merkle tree,
    hexadecimal), time and envelope (all of it, signed; DSSE). Raise TamperedError if the log does
    not continue the last signed head, or has forged entries.
    """
    return sign(context, connection)[0]


def sign(context: Context, connection: Connection) -> tuple[dict[str, Any], MerkleTree]:
    """Do as `head`; return the leaves, too, from which proofs are made."""
    frontier = _frontier(context, connection)
    leaves = _refuse_forged(context, connection, frontier)
    payload = {
        "workspace": context.ledger.get(connection, "workspace"),
        "size": frontier.size,
        "root": frontier.root().hex(),
        "time": stamp(context.now()),
    }
    envelope = seal(context.keys.signer, pack(payload), HEAD_TYPE)
    context.ledger.set(connection, "signed_head", envelope)
    return {**payload, "envelope": envelope}, leaves


def check_unbroken(context: Context, connection: Connection) -> None:
    """Raise TamperedError unless the log continues its last signed head, without forged entries."""
    _refuse_forged(context, connection, _frontier(context, connection))


def last_head(context: Context, connection: Connection) -> dict[str, Any] | None:
    """Return the last signed head, checked, or None."""
    envelope = context.ledger.get(connection, "signed_head")
    return None if envelope is None else read_head(envelope, context.keys.public_pem)


def tree(connection: Connection) -> MerkleTree:
    """Read all leaves, for proofs. Keep the tree when there are several to make."""
    leaves = select(log_entry.c.leaf).order_by(log_entry.c.position)
    return MerkleTree(connection.execute(leaves).scalars())


def verify_log(context: Context) -> list[str]:
    """Check every entry against its leaf, and all against the last signed head; return faults."""
    with context.ledger.reading() as connection:
        leaves, found = _recomputed(context, connection)
        try:
            frontier = _frontier(context, connection)
            if (frontier.size, frontier.root()) != (len(leaves), leaves.root()):
                found.append(
                    f"the log has {len(leaves)} entries that do not hash to the root that the "
                    f"ledger keeps for {frontier.size}: entries were altered, removed, added or "
                    "reordered"
                )
        except EvidenceError as error:
            found.append(str(error))
        try:
            signed = last_head(context, connection)
        except EvidenceError as error:
            return [*found, f"the last signed head of the log: {error}"]
        completed = select(func.count()).where(log_entry.c.kind == "request-completed")
        if signed is not None:
            found += _against(context, connection, leaves, signed)
        elif connection.execute(completed).scalar():
            found.append("requests were completed, but the log has no signed head: it was removed")
    return found


def verify_since(context: Context, kept: Any) -> list[str]:
    """Check the log against a head that was kept elsewhere (see `read_kept`); return faults.

    Raise EvidenceError if it is no head of this workspace.
    """
    signed = read_kept(kept, context.keys.public_pem)
    with context.ledger.reading() as connection:
        if signed["workspace"] != context.ledger.get(connection, "workspace"):
            raise EvidenceError(
                "the log head is of another workspace; expected one of this workspace; "
                "pass the file that `erasable log head` wrote here"
            )
        leaves, _ = _recomputed(context, connection)
        return _against(context, connection, leaves, signed)


def _refuse_forged(
    context: Context, connection: Connection, frontier: MerkleFrontier
) -> MerkleTree:
    """Check the log against the last signed head, and later entries against their seals."""
    leaves = tree(connection)
    messages = []
    if (frontier.size, frontier.root()) != (len(leaves), leaves.root()):
        messages.append("the entries of the log do not hash to the root that the ledger keeps")
    try:
        signed = last_head(context, connection)
    except EvidenceError as error:
        signed = None
        messages.append(f"its last signed head: {error}")
    if signed is not None:
        messages += _against(context, connection, leaves, signed)
    since = log_entry.c.position >= (0 if signed is None else signed["size"])
    for row in connection.execute(select(log_entry).where(since)):
        messages += altered(context, row)
    if messages:
        raise TamperedError(
            f"the ledger was tampered with: {messages[0]}; expected the log as erasable wrote it; "
            "nothing was signed, run `erasable log verify`, and restore the ledger from a backup"
        )
    return leaves


def altered(context: Context, row: Any) -> list[str]:
    """Tell whether an entry differs from its leaf or its seal."""
    if leaf_hash(row.body) != row.leaf:
        return [f"entry {row.position} of the log was altered: it is not what its leaf is"]
    if row.seal != seals.of_entry(context.keys, row.position, row.leaf):
        return [f"entry {row.position} of the log was not written with the workspace's keys"]
    return []


def _against(
    context: Context, connection: Connection, leaves: MerkleTree, signed: dict[str, Any]
) -> list[str]:
    size, at = signed["size"], signed["time"]
    if signed["workspace"] != context.ledger.get(connection, "workspace"):
        return ["the last signed head of the log is of another workspace"]
    if size > len(leaves):
        return [
            f"the log has {len(leaves)} entries, but had {size} when a head was signed at {at}: "
            f"its end was cut off{_since_restored(context, connection)}"
        ]
    proof = leaves.consistency(size)
    was = hexadecimal(signed["root"], "the root in the log head")
    if not verify_consistency(size, len(leaves), was, leaves.root(), proof):
        since = _since_restored(context, connection)
        return [
            f"the first {size} entries of the log are not those that were signed at {at}: "
            f"entries were altered, removed, added or reordered{since}"
        ]
    return []


def _since_restored(context: Context, connection: Connection) -> str:
    """Return the message for a restored backup, which takes a log back to an earlier state."""
    restored = context.ledger.get(connection, "restored")
    if restored is None:
        return ""
    covered = restored["head_size"]
    head = "no head was taken in" if covered is None else f"a head of {covered} was taken in"
    return (
        f"; a backup with {restored['log_size']} entries was restored (entry "
        f"{restored['position']}; {head}), and what came after them went another way"
    )


def _recomputed(context: Context, connection: Connection) -> tuple[MerkleTree, list[str]]:
    """Hash every entry anew; return the leaves and the faults."""
    found, leaves, expected = [], [], 0
    rows = connection.execute(select(log_entry).order_by(log_entry.c.position))
    for row in rows:
        if row.position != expected:
            missing = f"entry {expected} of the log is missing"
            if row.position - expected > 1:
                missing = f"entries {expected} to {row.position - 1} of the log are missing"
            found.append(missing)
        expected = row.position + 1
        leaves.append(leaf_hash(row.body))
        found += altered(context, row)
        try:
            body = unpack(row.body, "it")
        except EvidenceError:
            body = {}
        if (body.get("kind"), body.get("subject")) != (row.kind, row.subject):
            found.append(
                f"entry {row.position} of the log was altered: it is filed under another kind "
                "or subject than it says"
            )
    return MerkleTree(leaves), found


def _frontier(context: Context, connection: Connection) -> MerkleFrontier:
    value = context.ledger.get(connection, "frontier")
    return MerkleFrontier() if value is None else MerkleFrontier.from_json(value)
