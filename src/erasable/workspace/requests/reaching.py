"""Requests in targets: the people of what is owed are erased there.

The law kept here: what was found is written down before it leaves, so that a process that dies has
the next one look for it in the files. A target that fails keeps only its own requests open.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from sqlalchemy import Connection, insert, select, update

import erasable.workspace.locking as locking
from erasable.core.errors import ErasableError
from erasable.workspace.context import Context
from erasable.workspace.evidence import entries, ledger_checks, log
from erasable.workspace.evidence.formats import pack, unpack
from erasable.workspace.identity import suppression
from erasable.workspace.ledger.schema import garbage, task
from erasable.workspace.ledger.schema import request as request_table
from erasable.workspace.ledger.schema import target as target_table
from erasable.workspace.ledger.treatments import NOT_COVERED
from erasable.workspace.requests import failures
from erasable.workspace.requests.failures import RetryPolicy
from erasable.workspace.requests.owed import GIVEN_UP, OWES, Foreseen, due
from erasable.workspace.store.artifacts import StoredArtifact
from erasable.workspace.targets import adding, catalogue, steps
from erasable.workspace.targets.catalogue import TargetRow
from erasable.workspace.targets.people import BETWEEN, Asked
from erasable.workspace.targets.protocol import Plan
from erasable.workspace.targets.steps import Verdict
from erasable.workspace.targets.verdicts import NOTHING

_FOLDER = "targets"


@dataclass(slots=True)
class Reached:
    """What was done in targets."""

    # per target: target, verdict, reason, n_records, n_others, requests
    done: list[dict[str, Any]] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)  # of targets that failed
    n_newly_matched: int = 0  # requests that had met no record before


def carry_out(context: Context, patience: RetryPolicy | None) -> Reached:
    """Erase people from the targets that are due; hold the lock of requests.

    Without `patience`, also from those that are to be tried again later. Raise TamperedError if
    rows of the ledger differ from the log.
    """
    found = Reached()
    with context.ledger.reading() as connection:
        wanted = due(None if patience is None else context.now())
        rows = connection.execute(wanted.order_by(task.c.target_id, task.c.request_id)).all()
        if not rows:
            return found
        ledger_checks.check(context, connection, sorted({row.request_id for row in rows}))
        known = {each.id: each for each in catalogue.in_use(connection)}
    owed = {
        id: _Owed(known[id], [row for row in rows if row.target_id == id])
        for id in dict.fromkeys(row.target_id for row in rows)
    }
    n_of_files = Counter(each.files for each in owed.values())
    with context.progress("erasing from targets", len(owed)) as advance:
        for each in owed.values():  # files are searched once people have left all targets over them
            if n_of_files[each.files] > 1:
                _attempt(context, each, patience, found, partial(_erase_records, context, each))
        for each in owed.values():
            if not each.has_failed:
                _attempt(context, each, patience, found, partial(_finish, context, each, found))
            advance()
    return found


def _attempt(
    context: Context,
    owed: _Owed,
    patience: RetryPolicy | None,
    reached: Reached,
    work: Callable[[], None],
) -> None:
    """Do something in a target; write down that it failed."""
    try:
        work()
    except Exception as error:
        owed.has_failed = True
        told = _told(error)
        _record_failure(context, owed.target, told, patience or RetryPolicy())
        n = len(owed.requests)
        reached.warnings.append(
            f"{n} {'request is' if n == 1 else 'requests are'} not carried out in the "
            f"target {owed.target.name!r}, and {'stays' if n == 1 else 'stay'} open: {told}"
        )


def foresee(context: Context, tokens: Mapping[str, Sequence[str]]) -> list[Foreseen]:
    """Find the records that requests would erase from targets; `tokens` has requests by token."""
    with context.ledger.reading() as connection:
        known = catalogue.in_use(connection)
    people = Asked(context, {token: BETWEEN.join(who) for token, who in tokens.items()})
    foreseen = []
    for each in known:
        try:
            with adding.opened(each) as target:
                plan = steps.find(target, people)
        except ErasableError as error:
            foreseen.append(Foreseen(each.name, {}, each.settings.action, error=_told(error)))
            continue
        requests = {request for who in tokens.values() for request in who}
        counts = {request: n for request, n in _by_request(plan, requests).items() if n}
        foreseen.append(Foreseen(each.name, counts, each.settings.action, *plan.n_rows()))
    return foreseen


def _by_request(plan: Plan, requests: Iterable[str]) -> dict[str, int]:
    counts = dict.fromkeys(requests, 0)
    for names, n in plan.n_records.items():
        for request in names.split(BETWEEN):
            if request in counts:
                counts[request] += n
    return counts


def _renamed(counts: Mapping[str, int], names: Iterable[str]) -> dict[str, int]:
    """Return numbers of records under the names that people have now, with requests since then."""
    known = {name: set(name.split(BETWEEN)) for name in names}
    renamed: dict[str, int] = {}
    for name, n in counts.items():
        asked = set(name.split(BETWEEN))
        now = name if name in known else next((k for k, v in known.items() if asked <= v), name)
        renamed[now] = renamed.get(now, 0) + n
    return renamed


def give_up(context: Context, name: str) -> list[str]:
    """Have no request wait for a target any more; return those that did.

    Their receipts say that it is not covered. Raise WorkspaceBusyError while requests are carried
    out, perhaps there.
    """
    with context.lock([locking.REQUESTS]), context.ledger.transaction() as connection:
        known = catalogue.find(connection, name)
        rows = connection.execute(select(task).where(OWES, task.c.target_id == known.id)).all()
        ledger_checks.check(context, connection, [row.request_id for row in rows])
        given_up = Verdict(NOT_COVERED.name, GIVEN_UP)
        _end(context, connection, known, rows, {row.request_id: (given_up, None) for row in rows})
    return [row.request_id for row in rows]


# -- one target ------------------------------------------------------------------------------------


class _Owed:
    """What requests are still to be carried out in a target, and what was found there."""

    def __init__(self, target: TargetRow, rows: Sequence[Any]) -> None:
        self.target, self.rows = target, rows
        self.files = adding.files_of(target.place)
        self.requests = [row.request_id for row in rows]
        self.plan: Plan | None = None
        self.has_failed = False

    def people(self, context: Context) -> tuple[Asked, Plan]:
        """Return who leaves, and what was found of them before."""
        by_token: dict[str, list[str]] = {}
        for row in self.rows:
            for _, token in row.tokens:
                by_token.setdefault(token, []).append(row.request_id)
        names = {token: BETWEEN.join(who) for token, who in by_token.items()}
        if self.plan is None:
            self.plan = _kept_plan(context, self.target)
            self.plan.n_records = _renamed(self.plan.n_records, names.values())
        return Asked(context, names), self.plan


def _erase_records(context: Context, owed: _Owed) -> None:
    """Erase people from a target and have it compacted, without a verdict."""
    people, plan = owed.people(context)
    with adding.opened(owed.target) as target:
        steps.erase_records(target, people, plan, partial(_keep, context, owed.target))
        if plan.changed:
            target.compact()


def _finish(context: Context, owed: _Owed, reached: Reached) -> None:
    """Erase people from a target, unless they have left it, and write down the verdict."""
    known, (people, plan) = owed.target, owed.people(context)
    with adding.opened(known) as target:
        verdict = steps.erase(target, people, plan, partial(_keep, context, known))
    counts = _by_request(plan, owed.requests)
    outcomes = {request: (verdict if n else Verdict(NOTHING), n) for request, n in counts.items()}
    with context.ledger.transaction() as connection:
        reached.n_newly_matched += _end(context, connection, known, owed.rows, outcomes)
        if plan.changed:
            body = {
                "changed": plan.changed, "detached": plan.detached, "triggers": plan.triggers,
                "verdict": verdict.word, "reason": verdict.reason,
            }  # fmt: skip
            log.append(context, connection, "target-erased", known.name, body, context.now())
    n, n_others = plan.n_rows()
    reached.done.append({
        "target": known.name, "verdict": verdict.word if plan.changed else NOTHING,
        "reason": verdict.reason, "n_records": n, "n_others": n_others, "requests": list(counts),
    })  # fmt: skip


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


def _told(error: Exception) -> str:
    """Return a line on an error; one that is not ours may hold a password, or a value."""
    if isinstance(error, ErasableError):
        return " ".join(str(error).split())
    return f"{type(error).__name__}; expected a place that can be read and changed"


def _record_failure(context: Context, known: TargetRow, told: str, patience: RetryPolicy) -> None:
    with context.ledger.transaction() as connection:
        failures.count_attempt(connection, ("target", known.id), told, patience, context.now())
