"""Audits of a model in a workspace: whether it reveals its records, or has forgotten erased ones.

The law kept here: an audit changes nothing but the log and the record of verifications, and the
workspace keeps nothing that it says of single records: only the caller has the report, with the
ids of exposed records.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from sqlalchemy import Connection, select

import erasable.workspace.locking as locking
from erasable.audit import RMIA, AuditReport, LiRA, audit_deletion, audit_membership
from erasable.audit._deletion_verdicts import ELSEWHERE
from erasable.core.errors import ErasableError, InvalidParameterError, WorkspaceError
from erasable.core.ids import shorten
from erasable.workspace.audits.subjects import AskCommand, given, reads_of, subject
from erasable.workspace.context import Context
from erasable.workspace.evidence import entries, log
from erasable.workspace.evidence.formats import unpack
from erasable.workspace.ledger.schema import log_entry, task
from erasable.workspace.ledger.states import COMPLETED, IN_PLACE
from erasable.workspace.models import verifying
from erasable.workspace.models.catalogue import Model, Version
from erasable.workspace.models.using import open_model
from erasable.workspace.requests import intake

KIND = "model-audited"


def log_audit(
    context: Context, name: str, version: Version, report: AuditReport, request: str | None
) -> None:
    """Enter an audit in the log; `request` is that whose deletion was audited."""
    body = entries.audited(
        context.keys, version.number, version.commitment, report.to_dict(), request
    )
    with (
        context.lock(reads=locking.models([name])),
        context.ledger.transaction() as connection,
    ):
        log.append(context, connection, KIND, name, body, context.now())


def newest_audits(connection: Connection) -> dict[str, dict[str, Any]]:
    """Return what the log says of the newest audit of each model, by the model's name."""
    rows = connection.execute(
        select(log_entry.c.position, log_entry.c.body)
        .where(log_entry.c.kind == KIND)
        .order_by(log_entry.c.position)
    )
    found = [unpack(body, f"entry {position} of the log") for position, body in rows]
    return {each["subject"]: each for each in found}


_ATTACKS = {"rmia": RMIA, "lira": LiRA}
_EQUAL = (
    "The model is the same, bit for bit, as one that was trained again on the records that are "
    "left: nothing is left in it of the {what} that the request {verb}."
)
_WHAT = {"erasure": ("records", "erased"), "correction": ("values", "corrected")}
"""Things that a request of a kind takes out of a model, and the verb for it."""


def audit(
    context: Context,
    name: str,
    *,
    fresh: str | None = None,
    deleted: str | None = None,
    records: str | None = None,
    attack: str | None = None,
    references: int | None = None,
    level: float = 0.05,
    seed: int = 0,
    ask: AskCommand | None = None,
) -> AuditReport:
    """Audit a model, and enter the result in the log; see `Workspace.audit`."""
    if deleted is None:
        report, version = _of_membership(
            context, name, ask, fresh, records, attack, references, level, seed
        )
    else:
        report, version = _of_deletion(
            context, name, ask, deleted, records, fresh, attack, references, level, seed
        )
    if not context.ledger.is_read_only:
        log_audit(context, name, version, report, deleted)
    return report


# -- membership ------------------------------------------------------------------------------------


def _of_membership(
    context: Context, name: str, ask: AskCommand | None, fresh: str | None, records: str | None,
    attack: str | None, references: int | None, level: float, seed: int,
) -> tuple[AuditReport, Version]:  # fmt: skip
    if records is not None:
        raise InvalidParameterError(
            "records were given without a request; expected both, for the audit of a deletion"
        )
    if fresh is None:
        raise InvalidParameterError(
            f"no fresh records were given; expected records that {name!r} has not learned from, "
            "from the same source: name a data set or a file with --fresh, or a request with "
            "--deleted"
        )
    chosen = _attack(attack, references)
    with subject(context, name, ask, fresh) as audited:
        with context.lock(reads=reads_of(name, fresh)):
            others, notes = given(context, audited, fresh, "fresh records")
        report = _audited(
            name,
            lambda: audit_membership(
                audited.fitted, audited.learned, others, attack=chosen, recipe=audited.recipe,
                level=level, random_state=seed,
            ),
            notes,
        )  # fmt: skip
    return report, audited.version


def _attack(attack: str | None, references: int | None) -> RMIA | LiRA:
    if attack is not None and attack not in _ATTACKS:
        raise InvalidParameterError(f"the attack is {shorten(attack)}; expected rmia or lira")
    kind: Any = _ATTACKS[attack or "rmia"]
    made: RMIA | LiRA = kind() if references is None else kind(references)
    return made


# -- a deletion ------------------------------------------------------------------------------------


def _of_deletion(
    context: Context, name: str, ask: AskCommand | None, request: str, records: str | None,
    fresh: str | None, attack: str | None, references: int | None, level: float, seed: int,
) -> tuple[AuditReport, Version]:  # fmt: skip
    if attack is not None:
        raise InvalidParameterError(
            f"the attack is {shorten(attack)}, which is one on membership; expected none with a "
            "request"
        )
    model, version, _ = open_model(context, name)
    with context.ledger.reading() as connection:
        _refuse_request(connection, model, request)
        what, verb = _WHAT[intake.find(connection, request).kind]
    verdict = verifying.verify(context, [name], retrain=True)[0]
    remarks = [verdict.detail] if verdict.detail else []
    if verdict.verdict == "equal":
        return AuditReport(
            "deletion", "equal", _EQUAL.format(what=what, verb=verb), ELSEWHERE, judged="model",
            access="recipe and data", attack="digest", level=level, notes=tuple(remarks),
            parameters={"request": request}, seconds=verdict.seconds,
        ), version  # fmt: skip
    of_program = model.kind in ("entry", "command") and verdict.verdict == "different"
    if verdict.verdict != "approximate" and not (of_program and ask is not None):
        raise WorkspaceError(
            f"the model {name!r} is not what training it again comes to "
            f"({verdict.verdict}: {verdict.detail}); expected a model that is, or one of an "
            f"estimator that forgets approximately; see `erasable verify {name}`"
            + ("; or name the command that asks it, with --ask" if of_program else "")
        )
    if records is None:
        raise WorkspaceError(
            f"the digest of {name!r} proves nothing, and the {what} that {request} {verb} are no "
            "longer in the workspace; expected a file with them; keep one only as long as the "
            "audit takes, and name it with --records"
        )
    with subject(context, name, ask, records, fresh) as audited:
        with context.lock(reads=reads_of(name, records, fresh)):
            erased, left_out = given(context, audited, records, f"{verb} records")
            others, more = (None, list[str]())
            if fresh is not None:
                others, more = given(context, audited, fresh, "fresh records")
        report = _audited(
            name,
            lambda: audit_deletion(
                audited.fitted, audited.learned, erased, recipe=audited.recipe, fresh=others,
                n_refits=references, level=level, random_state=seed,
            ),
            [*left_out, *more],
        )  # fmt: skip
    return report, audited.version


def _refuse_request(connection: Connection, model: Model, request: str) -> None:
    """Refuse a request that erased or corrected nothing of a model."""
    known = intake.find(connection, request)
    if known.state not in (*IN_PLACE, COMPLETED):
        raise WorkspaceError(
            f"request {request} is {known.label}; expected one that was carried out"
            + ("; run `erasable process`" if known.is_open else "")
        )
    done = connection.execute(
        select(task.c.treatment).where(
            task.c.request_id == request, task.c.target == "model", task.c.target_id == model.id
        )
    ).first()
    if done is None:
        raise WorkspaceError(
            f"request {request} {_WHAT[known.kind][1]} no record of the model {model.name!r}; "
            f"expected one that did; see `erasable receipt show {request}`"
        )


def _audited(name: str, audit: Any, notes: list[str]) -> AuditReport:
    """Run an audit; what scikit-learn refuses is an error like any other."""
    try:
        report: AuditReport = audit()
    except ErasableError:
        raise
    except ValueError as error:
        raise WorkspaceError(
            f"the model {name!r} cannot be audited: {' '.join(str(error).split())}"
        ) from error
    return replace(report, notes=(*notes, *report.notes))
