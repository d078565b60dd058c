"""Intake of requests, and their rows in the ledger.

The law kept here: a request that was acknowledged is in the ledger and the log, on the disk; it
ends completed, denied or cancelled, and the log says so.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, TypeVar

from sqlalchemy import ColumnElement, Connection, and_, insert, or_, select

from erasable.core.errors import (
    ErasableError,
    InvalidIdsError,
    InvalidInputError,
    NotInWorkspaceError,
    WorkspaceError,
)
from erasable.workspace.context import Context
from erasable.workspace.evidence import entries, ledger_checks, log
from erasable.workspace.identity import subjects
from erasable.workspace.ledger.bulk import in_parts
from erasable.workspace.ledger.schema import request as request_table
from erasable.workspace.ledger.states import (
    ANSWERED,
    COMPLETED,
    IN_PLACE,
    NO_MATCH,
    OPEN,
    STATES,
    WITHIN_OPEN,
)
from erasable.workspace.requests import owed, regulations

_ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"  # Crockford's: no I, L, O, U
LONGEST_REASON = 500
LONGEST_REACH = 1_000_000_000
LONGEST_REFERENCE = 200
_INSERT = insert(request_table)
_Found = TypeVar("_Found")


@dataclass(frozen=True, slots=True)
class Ask:
    """One identity whose records are to be erased."""

    value: Any
    type: str | None = None
    reference: str | None = None  # a name for the request, such as the number of a ticket; it stays
    received_at: datetime | None = None
    place: str | None = None  # where it was read, for errors


@dataclass(frozen=True, slots=True)
class Request:
    """A request, without the identity or the condition."""

    id: str
    state: str  # of `STATES`
    regulation: str
    received_at: datetime
    due_at: datetime | None
    extended_at: datetime | None
    hold: str | None  # why it is on hold
    reason: str | None  # why it was denied or cancelled
    matched: int | None  # records erased, once known
    completed_at: datetime | None
    types: list[str] | None = None  # that an identity was looked for under; None for a condition
    corrects: dict[str, Any] | None = None  # data set and columns of a correction
    reference: str | None = None  # the name given to it at intake
    waits_for: tuple[str, ...] = ()  # names of targets that its people are still to be erased from

    @property
    def kind(self) -> str:
        """What it asks for."""
        return "erasure" if self.corrects is None else "correction"

    @property
    def is_open(self) -> bool:
        """Whether it is still to be answered."""
        return self.state in OPEN

    @property
    def label(self) -> str:
        """The state in words; one on hold is still open."""
        if self.corrects is not None and self.state == NO_MATCH:
            return "nothing to correct"
        if self.waits_for:
            return "waits for targets"
        return "on hold" if self.hold and self.is_open else self.state.replace("_", " ")

    @property
    def note(self) -> str | None:
        """Why it waits, or why it was not carried out."""
        if self.waits_for:
            return f"still to be carried out in {', '.join(self.waits_for)}"
        return self.hold if self.is_open else self.reason

    def is_late(self, now: datetime) -> bool:
        """Tell whether it was, or is, answered after it was due."""
        return self.due_at is not None and (self.completed_at or now) > self.due_at


def acknowledge(
    context: Context,
    values: Sequence[Any] = (),
    *,
    type: str | None = None,
    reach: int | None = None,
    regulation: str = "gdpr",
    where: str | None = None,
    dataset: str | None = None,
    hold: str | None = None,
    received_at: datetime | None = None,
) -> list[Request]:
    """Take in requests, all or none; see `Workspace.request`. A value may be an `Ask`."""
    check_reach(reach, where)
    asks = as_asks(values)
    common = times(context, regulation, hold, received_at)
    at = [_times_of(context, regulation, hold, each) or common for each in asks] or [common]
    now = context.now()
    with context.ledger.transaction() as connection:
        ledger_checks.check(
            context, connection
        )  # an altered data set has other types of identities
        wanted = asked(context, connection, asks, type, where, dataset)
        kinds = {each.type or type for each in asks}
        tried = {kind: subjects.types_tried(connection, kind) for kind in kinds}
        rows = []
        for (tokens, met), each, (received, due) in zip(
            wanted, asks or [Ask(None)], at, strict=True
        ):
            own = each.type or type
            rows.append({
                "tokens": tokens, "condition": met, "regulation": regulation,
                "received_at": received, "due_at": due, "hold": hold, "type": own, "reach": reach,
                "reference": each.reference, "changed_at": now, "types": tried.get(own),
            })  # fmt: skip
        return enter_requests(context, connection, rows)


def _times_of(
    context: Context, regulation: str, hold: str | None, ask: Ask
) -> tuple[datetime, datetime | None] | None:
    """Return when one was received and is due, where it says so; refuse what `acknowledge` does."""
    try:
        check_text(ask.reference, "reference", longest=LONGEST_REFERENCE)
        if ask.received_at is None:
            return None
        return times(context, regulation, hold, ask.received_at)
    except WorkspaceError as error:
        raise _placed(error, ask) from None


def _placed(error: ErasableError, ask: Ask) -> ErasableError:
    return error if ask.place is None else error.__class__(f"{ask.place}: {error}")


def as_asks(values: Sequence[Any]) -> list[Ask]:
    """Return identities as they are asked for."""
    return [each if isinstance(each, Ask) else Ask(each) for each in values]


def _located(look: Callable[[Sequence[Ask]], _Found], asks: Sequence[Ask]) -> _Found:
    """Apply `look` to identities; its error says where the first refused one was read.

    That one is found by halving: an identity that is refused among others is refused alone, too.
    """
    refusals = InvalidIdsError, InvalidInputError
    try:
        return look(asks)
    except refusals:
        if all(each.place is None for each in asks):
            raise
    passes, fails = 0, len(asks)
    while fails - passes > 1:
        middle = (passes + fails) // 2
        try:
            look(asks[:middle])
            passes = middle
        except refusals:
            fails = middle
    try:
        return look(asks[passes:fails])
    except refusals as error:
        raise _placed(error, asks[passes]) from None


def check_reach(reach: int | None, where: str | None) -> None:
    """Refuse a negative or too large reach, and a reach with a condition."""
    if reach is None:
        return
    if where is not None:
        raise InvalidIdsError(
            "a reach was given with a condition; expected one of them: a condition says which "
            "records are erased, and nobody is followed from these"
        )
    if isinstance(reach, bool) or not isinstance(reach, int) or not 0 <= reach <= LONGEST_REACH:
        raise InvalidInputError(
            f"reach is {reach!r:.40}; expected a whole number from 0 to {LONGEST_REACH:,}"
        )


def times(
    context: Context, regulation: str, hold: str | None, received_at: datetime | None
) -> tuple[datetime, datetime | None]:
    """Return when a request was received and is due; refuse what `acknowledge` does."""
    check_text(hold, "hold")
    now = context.now()
    received = now if received_at is None else received_at
    if received > now:
        raise WorkspaceError(
            f"received_at is {received.isoformat()}, which has not come yet; expected a time in "
            "the past"
        )
    return received, regulations.due(regulation, received)


def enter_requests(
    context: Context, connection: Connection, rows: Sequence[dict[str, Any]]
) -> list[Request]:
    """Enter requests into the ledger and the log, in the caller's transaction.

    `rows` are of the table `request`, without id, salt and state.
    """
    entered: list[Request] = []
    with context.progress("entering requests", len(rows)) as advance:
        for some in in_parts(rows):
            new = [
                {**row, "id": _new_id(), "state": "pending", "salt": secrets.token_hex(32)}
                for row in some
            ]
            connection.execute(_INSERT, new)
            kind = "request-acknowledged"
            logged = [
                (kind, row["id"], entries.of_request(context.keys, kind, row), row["changed_at"])
                for row in new
            ]
            log.append_many(context, connection, logged)
            entered += map(_as_kept, new)
            advance(len(new))
    return entered


def _as_kept(row: dict[str, Any]) -> Request:
    """Return a new request as the ledger gives it back."""
    values: dict[str, Any] = {column.name: row.get(column.name) for column in _COLUMNS}
    moments = {k: v.astimezone(UTC) for k, v in values.items() if isinstance(v, datetime)}
    return Request(**(values | moments))


def asked(
    context: Context,
    connection: Connection,
    values: Sequence[Any],
    type: str | None,
    where: str | None,
    dataset: str | None,
) -> list[tuple[list[tuple[str, str]] | None, dict[str, Any] | None]]:
    """Say what requests ask for as the ledger keeps it: (tokens, condition), one of them None."""
    if (where is None) == (len(values) == 0):
        raise InvalidIdsError(
            "a request was given neither or both of identities and a condition; expected one of "
            "them; name whose records are to be erased, or pass where="
        )
    if where is None and dataset is not None:
        raise InvalidIdsError(
            "a data set was named for identities; expected one for a condition alone: people are "
            "erased from all data sets; leave it out"
        )
    if where is not None:
        return [(None, _condition(connection, where, dataset))]
    from erasable.workspace.requests import searching  # slow to import, for who only looks

    found: dict[int, list[tuple[str, str]]] = {}
    asks = list(enumerate(as_asks(values)))
    for kind in dict.fromkeys(each.type or type for _, each in asks):
        places = [at for at, each in asks if (each.type or type) == kind]

        def look(some: Sequence[Ask], kind: str | None = kind) -> list[list[tuple[str, str]]]:
            own = [each.value for each in some]
            searching.check_types(context, connection, own, kind)
            types = subjects.types_tried(connection, kind)
            return subjects.candidates_of(context, connection, own, types)

        found.update(zip(places, _located(look, [asks[at][1] for at in places]), strict=True))
    return [(found[at], None) for at, _ in asks]


def find(connection: Connection, request_id: str) -> Request:
    """Return a request; raise NotInWorkspaceError if no request has the id."""
    row = connection.execute(select(*_COLUMNS).where(request_table.c.id == request_id)).first()
    if row is None:
        raise NotInWorkspaceError(
            f"there is no request {request_id[:60]!r}; expected the id that was printed when it "
            "was taken in; list them with `erasable requests`"
        )
    return _as_request(row)


def listing(connection: Connection, states: Sequence[str] | None, now: datetime) -> list[Request]:
    """Return requests, those due first at the top; with None of every state of `Request`."""
    query = select(*_COLUMNS).order_by(
        request_table.c.due_at.is_(None), request_table.c.due_at, request_table.c.received_at
    )
    if states is not None:
        known = [*(each.name for each in STATES), *WITHIN_OPEN]
        if others := [each for each in states if each not in known]:
            raise WorkspaceError(
                f"there is no state {others[0]!r} of requests; expected some of: {', '.join(known)}"
            )
        query = query.where(or_(*(_in_state(each, now) for each in states)))
    return _with_targets(connection, [_as_request(row) for row in connection.execute(query)])


def _with_targets(connection: Connection, found: list[Request]) -> list[Request]:
    """Add the targets that requests wait for."""
    if not any(each.state in IN_PLACE for each in found):
        return found
    names = owed.names_waited_for(connection)
    return [replace(each, waits_for=tuple(names.get(each.id, ()))) for each in found]


def _in_state(state: str, now: datetime) -> ColumnElement[bool]:
    if state in WITHIN_OPEN:
        r = request_table.c
        if state == "waits_for_targets":
            return r.id.in_(owed.owing())
        return r.state.in_(OPEN) & (r.due_at < now if state == "late" else r.hold.is_not(None))
    if state not in ANSWERED:
        return request_table.c.state == state
    found = request_table.c.matched > 0 if state == COMPLETED else request_table.c.matched == 0
    return and_(request_table.c.state == COMPLETED, found)


def _as_request(row: Any) -> Request:
    """Tell a request that found nothing from one that erased something; the ledger need not."""
    known = Request(*row)
    return replace(known, state=NO_MATCH) if row.state == COMPLETED and not row.matched else known


_COLUMNS = [getattr(request_table.c, name) for name in Request.__slots__ if name != "waits_for"]


def _condition(connection: Connection, where: str, dataset: str | None) -> dict[str, Any]:
    from erasable.workspace.data import catalogue
    from erasable.workspace.data.conditions import Condition

    if dataset is None:
        known = catalogue.all_datasets(connection)
        if len(known) != 1:
            raise NotInWorkspaceError(
                f"a condition needs a data set, and there are {len(known)}; expected its name; "
                "pass --dataset NAME"
            )
        found = known[0]
    else:
        found = catalogue.find(connection, dataset)
    Condition.parse(where, found.schema, found.subject_columns)
    return {"dataset": found.id, "where": where}


def _new_id() -> str:
    return "R-" + "".join(_ALPHABET[byte % 32] for byte in secrets.token_bytes(10))


def check_text(
    text: str | None, name: str, *, needed: bool = False, longest: int = LONGEST_REASON
) -> None:
    """Refuse a text that is empty, long or of several lines, or missing where it is needed."""
    if text is None and not needed:
        return
    if not text or not text.strip() or len(text) > longest or "\n" in text:
        raise WorkspaceError(
            f"{name} is empty, has several lines, or over {longest} characters; expected "
            "one line; say it shortly, and without naming the person"
        )
