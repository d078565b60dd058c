"""What requests owe to targets: people who are still to be erased from places outside.

The law kept here: what is owed is written down in the transaction that puts a batch in place, and a
request is completed only when it owes nothing. What was found is written down before it leaves: a
process that dies has the next one look for it in the files. A target that fails keeps only its own
requests open, and is tried again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import Any

from sqlalchemy import Connection, and_, insert, or_, select, update

from erasable.core.errors import ErasableError
from erasable.workspace.context import Context
from erasable.workspace.evidence import entries, ledger_checks, log, seals
from erasable.workspace.evidence.formats import pack, unpack
from erasable.workspace.identity import suppression
from erasable.workspace.ledger.schema import failure, garbage, task
from erasable.workspace.ledger.schema import request as request_table
from erasable.workspace.ledger.schema import target as target_table
from erasable.workspace.requests import failures
from erasable.workspace.requests.failures import RetryPolicy
from erasable.workspace.store.artifacts import StoredArtifact
from erasable.workspace.targets import catalogue, steps
from erasable.workspace.targets.catalogue import TargetRow
from erasable.workspace.targets.people import Asked
from erasable.workspace.targets.protocol import Plan
from erasable.workspace.targets.steps import NOT_COVERED, NOTHING, Verdict

OWES = (task.c.target == "target") & task.c.exactness.is_(None)
"""Rows of table `task` of what is still to be done."""

NOBODY_NAMED = "the request names records of a data set, and no person"
NOT_CORRECTED = "corrections are carried out in data sets and models alone"
GIVEN_UP = "the target was removed before they were erased there"

_FOLDER = "targets"
_SHOWN = ("action", "keep", "cascade", "may_empty")
_BETWEEN = "|"  # names of requests for one person

Tokens = Sequence[tuple[str, str]]
"""The identities of a person, each a type and a token."""


@dataclass(slots=True)
class Reached:
    """What was done in targets."""

    # per target: target, verdict, reason, n_records, requests
    done: list[dict[str, Any]] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)  # of targets that failed
    n_newly_matched: int = 0  # requests that had met no record before


@dataclass(frozen=True, slots=True)
class Foreseen:
    """What requests would do in a target."""

    name: str
    found: dict[str, int]  # records by request
    changed: dict[str, int]  # rows by table, with those that leave with others
    action: str
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
                row |= {"exactness": NOT_COVERED, "reason": tokens}
            else:
                kept = sorted(map(list, tokens))
                seal = seals.of_owed(context.keys, request, known.id, kept)
                row |= {"state": "owed", "tokens": kept, "seal": seal}
            made.append(row)
    if made:
        connection.execute(insert(task), made)
    return made


def is_due(connection: Connection, now: datetime) -> bool:
    """Tell whether people are to be erased from a target now."""
    return connection.execute(_due(now).limit(1)).first() is not None


def owing() -> Any:
    """Return the query of requests that still owe something to a target."""
    return select(task.c.request_id).where(OWES)


def carry_out(context: Context, patience: RetryPolicy | None) -> Reached:
    """Erase people from the targets that are due; hold the lock of requests.

    Without `patience`, also from those that are to be tried again later. Raise TamperedError if
    rows of the ledger differ from the log.
    """
    found = Reached()
    with context.ledger.reading() as connection:
        wanted = select(task).where(OWES) if patience is None else _due(context.now())
        rows = connection.execute(wanted.order_by(task.c.target_id, task.c.request_id)).all()
        if not rows:
            return found
        ledger_checks.check(context, connection, sorted({row.request_id for row in rows}))
        known = {each.id: each for each in catalogue.in_use(connection)}
    with context.progress("erasing from targets", len({row.target_id for row in rows})) as advance:
        for id in dict.fromkeys(row.target_id for row in rows):
            own = [row for row in rows if row.target_id == id]
            try:
                done, n_newly_matched = _erase_from(context, known[id], own)
                found.done.append(done)
                found.n_newly_matched += n_newly_matched
            except Exception as error:
                told = _told(error)
                _record_failure(context, known[id], told, patience or RetryPolicy())
                found.warnings.append(
                    f"{len(own)} requests are not carried out in the target {known[id].name!r}, "
                    f"and stay open: {told}"
                )
            advance()
    return found


def foresee(context: Context, tokens: Mapping[str, Sequence[str]]) -> list[Foreseen]:
    """Find the records that requests would erase from targets; `tokens` has requests by token."""
    with context.ledger.reading() as connection:
        known = catalogue.in_use(connection) if tokens else []
    people = Asked(context, {token: _BETWEEN.join(who) for token, who in tokens.items()})
    foreseen = []
    for each in known:
        try:
            with catalogue.opened(each) as target:
                plan = target.find(people)
        except ErasableError as error:
            foreseen.append(Foreseen(each.name, {}, {}, each.settings.action, _told(error)))
            continue
        requests = {request for who in tokens.values() for request in who}
        counts = {request: n for request, n in _by_request(plan, requests).items() if n}
        foreseen.append(Foreseen(each.name, counts, plan.changed, each.settings.action))
    return foreseen


def _by_request(plan: Plan, requests: Iterable[str]) -> dict[str, int]:
    counts = dict.fromkeys(requests, 0)
    for names, n in plan.n_records.items():
        for request in names.split(_BETWEEN):
            if request in counts:
                counts[request] += n
    return counts


def give_up(context: Context, name: str) -> list[str]:
    """Have no request wait for a target any more; return those that did.

    Their receipts say that it is not covered.
    """
    with context.ledger.transaction() as connection:
        known = catalogue.find(connection, name)
        rows = connection.execute(select(task).where(OWES, task.c.target_id == known.id)).all()
        ledger_checks.check(context, connection, [row.request_id for row in rows])
        given_up = Verdict(NOT_COVERED, GIVEN_UP)
        _end(context, connection, known, rows, {row.request_id: (given_up, None) for row in rows})
    return [row.request_id for row in rows]


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


# -- one target ------------------------------------------------------------------------------------


def _erase_from(
    context: Context, known: TargetRow, owed: Sequence[Any]
) -> tuple[dict[str, Any], int]:
    """Erase people from a target; return what was done, and how many met a record there first."""
    by_token: dict[str, list[str]] = {}
    for row in owed:
        for _, token in row.tokens:
            by_token.setdefault(token, []).append(row.request_id)
    people = Asked(context, {token: _BETWEEN.join(who) for token, who in by_token.items()})
    plan = _kept_plan(context, known)
    with catalogue.opened(known) as target:
        verdict = steps.erase(target, people, plan, partial(_keep, context, known))
    counts = _by_request(plan, [row.request_id for row in owed])
    outcomes = {request: (verdict if n else Verdict(NOTHING), n) for request, n in counts.items()}
    with context.ledger.transaction() as connection:
        n_newly_matched = _end(context, connection, known, owed, outcomes)
        if plan:
            body = {
                "changed": plan.changed, "detached": plan.detached, "triggers": plan.triggers,
                "verdict": verdict.word, "reason": verdict.reason,
            }  # fmt: skip
            log.append(context, connection, "target-erased", known.name, body, context.now())
    n = sum(plan.changed.values())
    return {
        "target": known.name, "verdict": verdict.word if n else NOTHING,
        "reason": verdict.reason, "n_records": n, "requests": list(counts),
    }, n_newly_matched  # fmt: skip


def _keep(context: Context, known: TargetRow, plan: Plan) -> None:
    """Write down what was found, before it leaves."""
    stored = context.store.put(_FOLDER, pack(plan.to_json()))
    with context.ledger.transaction() as connection:
        _drop_plan(connection, known)
        at = target_table.c.id == known.id
        values = {"plan_key": stored.key, "plan_sha256": stored.sha256}
        connection.execute(update(target_table).where(at).values(**values))
        body = {"changed": plan.changed, "detached": plan.detached}
        log.append(context, connection, "target-started", known.name, body, context.now())


def _kept_plan(context: Context, known: TargetRow) -> Plan:
    """Return what an earlier attempt has found, or nothing."""
    t = target_table.c
    with context.ledger.reading() as connection:
        row = connection.execute(select(t.plan_key, t.plan_sha256).where(t.id == known.id)).one()
    if row.plan_key is None:
        return Plan()
    kept = context.store.open(StoredArtifact(row.plan_key, row.plan_sha256))
    return Plan.from_json(unpack(kept, "what was found in a target"))


def _drop_plan(connection: Connection, known: TargetRow) -> None:
    at = target_table.c.id == known.id
    key = connection.execute(select(target_table.c.plan_key).where(at)).scalar()
    if key is not None:
        connection.execute(insert(garbage).values(key=key))
        nothing = {"plan_key": None, "plan_sha256": None}
        connection.execute(update(target_table).where(at).values(**nothing))


# -- the ledger ------------------------------------------------------------------------------------


def _end(
    context: Context,
    connection: Connection,
    known: TargetRow,
    owed: Sequence[Any],
    outcomes: Mapping[str, tuple[Verdict, int | None]],
) -> int:
    """Write down what was done for requests in a target; count those that met no record before."""
    now = context.now()
    _drop_plan(connection, known)
    failures.forget_target(connection, known.id)
    found: list[tuple[str, str, str]] = []
    n_newly_matched = 0
    for row in owed:
        verdict, n = outcomes[row.request_id]
        connection.execute(
            update(task)
            .where(
                task.c.target == "target", task.c.target_id == known.id,
                task.c.request_id == row.request_id,
            )
            .values(
                state="done", treatment="erased", exactness=verdict.word, reason=verdict.reason,
                n_records=n, tokens=None, seal=None,
            )
        )  # fmt: skip
        if n:
            at = request_table.c.id == row.request_id
            before = connection.execute(select(request_table.c.matched).where(at)).scalar_one()
            n_newly_matched += not before
            connection.execute(update(request_table).where(at).values(matched=before + n))
            found += [(token, kind, row.request_id) for kind, token in row.tokens]
    kept_out = suppression.suppress(connection, found, now)  # who had no record elsewhere
    for row in owed:
        rows = connection.execute(select(task).where(task.c.request_id == row.request_id)).all()
        at = request_table.c.id == row.request_id
        matched = connection.execute(select(request_table.c.matched).where(at)).scalar_one()
        body = entries.reached(
            matched, [each._asdict() for each in rows], kept_out.get(row.request_id)
        )
        log.append(context, connection, "request-targets", row.request_id, body, now)
    return n_newly_matched


def _due(now: datetime) -> Any:
    on = and_(failure.c.target == "target", failure.c.target_id == task.c.target_id)
    is_due = or_(failure.c.target.is_(None), failure.c.again_at <= now)
    return select(task).outerjoin(failure, on).where(OWES, is_due)


def _told(error: Exception) -> str:
    """Return a line on an error; one that is not ours may hold a password, or a value."""
    if isinstance(error, ErasableError):
        return " ".join(str(error).split())
    return f"{type(error).__name__}; expected a place that can be read and changed"


def _record_failure(context: Context, known: TargetRow, told: str, patience: RetryPolicy) -> None:
    with context.ledger.transaction() as connection:
        failures.count_attempt(connection, ("target", known.id), told, patience, context.now())


def names_waited_for(connection: Connection) -> dict[str, list[str]]:
    """Return the names of the targets that each request still owes something to."""
    names = select(task.c.request_id, target_table.c.name).join(
        target_table, target_table.c.id == task.c.target_id
    )
    found: dict[str, list[str]] = {}
    for request, name in connection.execute(names.where(OWES).order_by(target_table.c.name)):
        found.setdefault(request, []).append(name)
    return found
