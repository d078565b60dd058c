"""Erasure of everybody on the suppression list from a place outside of the workspace.

The law kept here: the log has an entry before anything is changed, and another one afterwards. So
a process that dies between the two leaves a trace.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from sqlalchemy import select

from erasable.core.errors import SourceError
from erasable.workspace.context import Context
from erasable.workspace.evidence import ledger_checks, log
from erasable.workspace.evidence.formats import unpack
from erasable.workspace.ledger.schema import log_entry
from erasable.workspace.targets import adding, catalogue, kinds, steps
from erasable.workspace.targets.people import Suppressed
from erasable.workspace.targets.protocol import Plan
from erasable.workspace.targets.steps import Verdict
from erasable.workspace.targets.verdicts import NOT_PROVED

_STARTED, _ENDED = "target-started", "target-erased"
_SUBJECT = "target"


@dataclass(slots=True)
class Erased:
    """The result of an erasure from a place, or of a dry run."""

    place: str  # without user and password
    n_people: int = 0  # identities of people who were erased, of whom records were found
    changed: dict[str, int] = field(default_factory=dict)  # by table: rows deleted or overwritten
    detached: dict[str, int] = field(default_factory=dict)  # by column: rows that lose a reference
    triggers: list[str] = field(default_factory=list)  # of these tables; may change other rows
    verdict: str | None = None  # see `steps`; None of a dry run, and where nobody was found
    reason: str | None = None  # why it is not proved


def erase(
    context: Context,
    place: str,
    fields: Sequence[str],
    *,
    action: str = "delete",
    cascade: Collection[str] = (),
    keep: Collection[str] = (),
    dry_run: bool = False,
) -> Erased:
    """Erase the people on the suppression list; see `Workspace.erase_target`."""
    if fields or {*":/."} & {*place}:
        target = kinds.opened(place, catalogue.settings_of(fields, action, keep, cascade))
    else:
        with context.ledger.reading() as connection:
            ledger_checks.check(context, connection)
            target = adding.opened(catalogue.find(connection, place))
    people, plan = Suppressed(context), Plan()
    with target:
        if dry_run:
            return _told(target.shown, steps.find(target, people))
        try:
            verdict = steps.erase(
                target, people, plan,
                lambda found: _write_down(context, _STARTED, _told(target.shown, found)),
            )  # fmt: skip
        except SourceError as error:
            if not plan.n_rounds:
                raise
            verdict = Verdict(NOT_PROVED, f"it could not be looked at again: {error}")
        done = _told(target.shown, plan)
        if not plan.changed and (before := _unfinished(context, target.shown)) is not None:
            done = before
            verdict = steps.erase(target, people, Plan(changed=dict(before.changed)))
    if done.changed:
        done.verdict, done.reason = verdict.word, verdict.reason
        _write_down(context, _ENDED, done)
    return done


def _told(place: str, plan: Plan) -> Erased:
    return Erased(
        place, len(plan.n_records), dict(plan.changed), dict(plan.detached), list(plan.triggers)
    )


def _unfinished(context: Context, place: str) -> Erased | None:
    """Return what an attempt has begun that died before it ended, as the log has it."""
    kept = select(log_entry.c.kind, log_entry.c.body).where(log_entry.c.subject == _SUBJECT)
    with context.ledger.reading() as connection:
        for kind, body in connection.execute(kept.order_by(log_entry.c.position.desc())):
            entry = unpack(body, "an entry of the log")
            if entry["place"] == place:
                if kind == _ENDED:
                    return None
                return Erased(
                    place, entry["people"], entry["changed"], entry["detached"], entry["triggers"]
                )
    return None


def _write_down(context: Context, kind: str, found: Erased) -> None:
    """Append an entry to the log: what is changed, where, and what could be proved."""
    body = {
        "place": found.place, "people": found.n_people, "changed": found.changed,
        "detached": found.detached, "triggers": found.triggers,
    }  # fmt: skip
    if kind == _ENDED:
        body |= {"verdict": found.verdict, "reason": found.reason}
    with context.ledger.transaction() as connection:
        log.append(context, connection, kind, _SUBJECT, body, context.now())
