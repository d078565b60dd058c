"""Erasures from targets that requests still wait for.

The law kept here: what is owed is written down in the transaction that puts a batch in place, and a
request is completed only when it owes nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, and_, insert, or_, select

from erasable.workspace.context import Context
from erasable.workspace.evidence import seals
from erasable.workspace.ledger.schema import failure, task
from erasable.workspace.ledger.schema import target as target_table
from erasable.workspace.ledger.treatments import NOT_COVERED
from erasable.workspace.requests import failures
from erasable.workspace.targets import catalogue

OWES = (task.c.target == "target") & task.c.exactness.is_(None)
"""Rows of table `task` of what is still to be done."""

NOBODY_NAMED = "the request names records of a data set, and no person"
NOT_CORRECTED = "corrections are carried out in data sets and models alone"
GIVEN_UP = "the target was removed before they were erased there"

_SHOWN = ("action", "keep", "cascade", "may_empty")

Tokens = Sequence[tuple[str, str]]
"""The identities of a person, each a type and a token."""


@dataclass(frozen=True, slots=True)
class Foreseen:
    """What requests would do in a target."""

    name: str
    found: dict[str, int]  # records by request
    action: str
    n_records: int = 0
    n_others: int = 0  # rows that refer to them, and leave with them
    error: str | None = None  # why it could not be looked at


def owe(
    context: Context, connection: Connection, asked: Mapping[str, Tokens | str]
) -> list[dict[str, Any]]:
    """Write down what requests owe to all targets; return the rows of table `task`.

    `asked` has the identities of each request, or why nobody can be erased for it.
    """
    made = []
    for known in catalogue.in_use(connection):
        for request, tokens in asked.items():
            row = dict.fromkeys(
                ("treatment", "exactness", "n_records", "seconds", "before", "after")
            ) | {
                "request_id": request, "target": "target", "target_id": known.id, "state": "done",
                "tokens": None, "seal": None, "reason": None,
            }  # fmt: skip
            if isinstance(tokens, str):
                row |= {"exactness": NOT_COVERED.name, "reason": tokens}
            else:
                kept = sorted(map(list, tokens))
                seal = seals.of_owed(context.keys, request, known.id, kept)
                row |= {"state": "owed", "tokens": kept, "seal": seal}
            made.append(row)
    if made:
        connection.execute(insert(task), made)
    return made


def is_due(connection: Connection, now: datetime | None) -> bool:
    """Tell whether people are to be erased from a target now; with None, at any time."""
    return connection.execute(due(now).limit(1)).first() is not None


def owing() -> Any:
    """Return the query of requests that still owe something to a target."""
    return select(task.c.request_id).where(OWES)


def targets(context: Context) -> list[dict[str, Any]]:
    """Return the targets, and what they wait for; see `Workspace.targets`."""
    with context.ledger.reading() as connection:
        failed = {
            each.name: each for each in failures.listing(connection) if each.target == "target"
        }
        waiting = [name for names in names_waited_for(connection).values() for name in names]
        return [
            {
                "name": each.name,
                "place": each.place,
                "subjects": catalogue.spelled(each.settings),
                **{name: getattr(each.settings, name) for name in _SHOWN},
                "waiting": waiting.count(each.name),
                "error": failed[each.name].error if each.name in failed else None,
                "again_at": failed[each.name].again_at if each.name in failed else None,
            }
            for each in catalogue.in_use(connection)
        ]


def due(now: datetime | None) -> Any:
    """Return the query of what is to be done now, or at any time, rows of table `task`."""
    if now is None:
        return select(task).where(OWES)
    on = and_(failure.c.target == "target", failure.c.target_id == task.c.target_id)
    is_due = or_(failure.c.target.is_(None), failure.c.again_at <= now)
    return select(task).outerjoin(failure, on).where(OWES, is_due)


def names_waited_for(connection: Connection) -> dict[str, list[str]]:
    """Return the names of the targets that each request still owes something to."""
    names = select(task.c.request_id, target_table.c.name).join(
        target_table, target_table.c.id == task.c.target_id
    )
    found: dict[str, list[str]] = {}
    for request, name in connection.execute(names.where(OWES).order_by(target_table.c.name)):
        found.setdefault(request, []).append(name)
    return found
