"""Audit a model of a workspace: whether it reveals its records, or has forgotten erased ones.

The law kept here: an audit changes nothing but the log, and nothing that it says of single records
is kept in the workspace: the report, with the ids of exposed records, is the caller's alone.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
from sqlalchemy import Connection, select

from erasable.audit import RMIA, AuditReport, LiRA, audit_deletion, audit_membership
from erasable.core.errors import ErasableError, InvalidParameterError, WorkspaceError
from erasable.core.ids import name_some, shorten
from erasable.workspace import locking
from erasable.workspace.audits.entries import tell
from erasable.workspace.context import Context
from erasable.workspace.data import catalogue as data
from erasable.workspace.data.catalogue import DataSet
from erasable.workspace.domains.fresh import as_in
from erasable.workspace.domains.judging import unfit
from erasable.workspace.evidence import reliance
from erasable.workspace.ledger.schema import task
from erasable.workspace.models import verifying
from erasable.workspace.models.catalogue import Model, Version
from erasable.workspace.models.deleting import design_of
from erasable.workspace.models.model_columns import ModelColumns, joined, target_of
from erasable.workspace.models.reading import Reader
from erasable.workspace.models.training import of_bytes
from erasable.workspace.models.using import opened, read_source
from erasable.workspace.requests import intake

_ATTACKS = {"rmia": RMIA, "lira": LiRA}
_CARRIED_OUT = ("swapped", "purged", "completed")
_EQUAL = (
    "The model is the same, bit for bit, as one that was trained again on the records that are "
    "left: nothing is left in it of the records that the request erased."
)
_ELSEWHERE = "It says nothing of copies of the records elsewhere: backups, logs, other models."


@dataclass(frozen=True)
class _Subject:
    """A model that is audited, with the records that it has learned from."""

    name: str
    model: Model
    version: Version
    fitted: Any
    design: ModelColumns
    learned: tuple[Any, Any, Any]
    datasets: tuple[DataSet, ...]


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
) -> AuditReport:
    """Audit a model, and enter in the log what came of it.

    Parameters
    ----------
    context : Context
    name : str
    fresh : str, default=None
        Records from the same source that the model has not learned from: the name of a data set,
        or a source. The audit of membership needs them.
    deleted : str, default=None
        The id of a request: test whether the model has forgotten what it erased. By default, test
        whether the model reveals the records that it has learned from.
    records : str, default=None
        With `deleted`, a source with the erased records, for a model that forgets approximately:
        the workspace does not have them any more.
    attack : {"rmia", "lira"}, default=None
        On membership; by default RMIA.
    references : int, default=None
        How many models are trained to compare with; by default as many as the attack has, or as
        `level` needs.
    level : float, default=0.05
        The probability of a false alarm.
    seed : int, default=0

    Returns
    -------
    AuditReport
        The ids of exposed records are those of the workspace. It is not kept there.

    Raises
    ------
    NotInWorkspaceError
        There is no such model, file of it, or request.
    WorkspaceError
        The model has no scores; the request is not carried out, or did not concern the model;
        records are missing, or are not like those of the model.
    InvalidParameterError, TooFewRecordsError
        See `erasable.audit.audit_membership` and `audit_deletion`.
    """
    if deleted is None:
        report, version = _of_membership(
            context, name, fresh, records, attack, references, level, seed
        )
    else:
        report, version = _of_deletion(
            context, name, deleted, records, fresh, attack, references, level, seed
        )
    if not context.ledger.is_read_only:
        tell(context, name, version, report, deleted)
    return report


# -- membership ------------------------------------------------------------------------------------


def _of_membership(
    context: Context, name: str, fresh: str | None, records: str | None, attack: str | None,
    references: int | None, level: float, seed: int,
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
    with context.lock(reads=_read_of(name, fresh)):
        subject = _subject(context, name)
        others, notes = _given(context, subject, fresh, "fresh records")
    return _audited(
        name,
        lambda: audit_membership(
            subject.fitted, subject.learned, others, attack=chosen, level=level, random_state=seed
        ),
        notes,
    ), subject.version


def _attack(attack: str | None, references: int | None) -> RMIA | LiRA:
    if attack is not None and attack not in _ATTACKS:
        raise InvalidParameterError(f"the attack is {shorten(attack)}; expected rmia or lira")
    kind: Any = _ATTACKS[attack or "rmia"]
    made: RMIA | LiRA = kind() if references is None else kind(references)
    return made


# -- a deletion ------------------------------------------------------------------------------------


def _of_deletion(
    context: Context, name: str, request: str, records: str | None, fresh: str | None,
    attack: str | None, references: int | None, level: float, seed: int,
) -> tuple[AuditReport, Version]:  # fmt: skip
    if attack is not None:
        raise InvalidParameterError(
            f"the attack is {shorten(attack)}, which is one on membership; expected none with a "
            "request"
        )
    model, version, _ = opened(context, name)
    with context.ledger.reading() as connection:
        _refuse_request(connection, model, request)
    verdict = verifying.verify(context, [name], retrain=True)[0]
    remarks = [verdict.detail] if verdict.detail else []
    if verdict.verdict == "equal":
        return AuditReport(
            "deletion", "equal", _EQUAL, _ELSEWHERE, judged="model", access="recipe and data",
            attack="digest", level=level, notes=tuple(remarks), parameters={"request": request},
            seconds=verdict.seconds,
        ), version  # fmt: skip
    if verdict.verdict != "approximate":
        raise WorkspaceError(
            f"the model {name!r} is not what training it again comes to "
            f"({verdict.verdict}: {verdict.detail}); expected a model that is, or one of an "
            f"estimator that forgets approximately; see `erasable verify {name}`"
        )
    if records is None:
        raise WorkspaceError(
            f"the model {name!r} forgets approximately, so its digest proves nothing, and the "
            f"records that {request} erased are no longer in the workspace; expected a file with "
            "them; keep one only as long as the audit takes, and name it with --records"
        )
    with context.lock(reads=_read_of(name, fresh, records)):
        subject = _subject(context, name)
        erased, left_out = _given(context, subject, records, "erased records")
        others, more = (None, list[str]())
        if fresh is not None:
            others, more = _given(context, subject, fresh, "fresh records")
    return _audited(
        name,
        lambda: audit_deletion(
            subject.fitted, subject.learned, erased, fresh=others, n_refits=references,
            level=level, random_state=seed,
        ),
        [*left_out, *more],
    ), subject.version  # fmt: skip


def _refuse_request(connection: Connection, model: Model, request: str) -> None:
    """Refuse a request that erased nothing of a model."""
    known = intake.find(connection, request)
    if known.state not in _CARRIED_OUT:
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
            f"request {request} erased no record of the model {model.name!r}; expected one that "
            f"did; see `erasable receipt show {request}`"
        )


# -- what is audited -------------------------------------------------------------------------------


def _read_of(name: str, *given: str | None) -> list[str]:
    """Claim a model, and what may be data sets."""
    return [*locking.models([name]), *locking.datasets(each for each in given if each)]


def _subject(context: Context, name: str) -> _Subject:
    """Read a model, and the records of the versions of its data sets that it has learned from."""
    with context.ledger.reading() as connection:
        reliance.check(context, connection)
    model, version, stored = opened(context, name)
    design = design_of(model)
    fitted: Any = None if design is None else of_bytes(stored)
    reason = unfit(design, fitted)
    if design is None or reason is not None:
        raise WorkspaceError(
            f"the model {name!r} cannot be audited: {reason}; expected a classifier or regressor "
            "that was fitted here; audit others with `erasable.audit` in Python"
        )
    tables = Reader(context).tables(model.datasets, version.dataset_versions, design)
    datasets = tuple(known for known, _ in tables)
    return _Subject(
        name, model, version, fitted, design,
        _as_given(design, datasets[0], joined(tables)), datasets,
    )  # fmt: skip


def _as_given(design: ModelColumns, known: DataSet, table: pa.Table) -> tuple[Any, Any, Any]:
    """Return features, target and ids of records as the model is given them."""
    if known.id_column in table.column_names:
        ids = table[known.id_column].to_pylist()
    else:
        ids = list(range(table.num_rows))
    return design.given(table), np.asarray(target_of([(known, table)], design.target)), ids


def _given(
    context: Context, subject: _Subject, given: str, what: str
) -> tuple[tuple[Any, Any, Any], list[str]]:
    """Read records from a data set that the model has not learned from, or from a source."""
    design, known = subject.design, subject.datasets[0]
    wanted = [*design.features, str(design.target)]
    with context.ledger.reading() as connection:
        named = {each.name: each for each in data.every(connection)}
    found = named.get(given)
    if found is None:
        table = read_source(given, known, wanted, subject.name)
    else:
        if found.id in subject.model.datasets:
            raise WorkspaceError(
                f"the {what} are {given!r} itself, which {subject.name!r} has learned from; "
                "expected others"
            )
        missing = [each for each in wanted if each not in dict(found.columns)]
        if missing:
            raise WorkspaceError(
                f"the data set {given!r} lacks the columns {name_some(missing)}; expected all "
                f"that {subject.name!r} learned from"
            )
        table = Reader(context).tables([found.id])[0][1]
    ids = [known.id_column] if known.id_column in table.column_names else []
    usable = design.complete(table, subject.fitted)
    notes = []
    if not usable.all():
        n = int((~usable).sum())
        notes.append(f"{n:,} of the {what} have gaps, and were left out")
    if not usable.any():
        raise WorkspaceError(
            f"all of the {usable.size:,} {what} have gaps in what {subject.name!r} learned from; "
            "expected records without"
        )
    table = table.select([*ids, *wanted]).filter(pa.array(usable))
    values = as_in(table.select(wanted), known, what)
    for name in ids:
        values = values.append_column(name, table[name])
    return _as_given(design, known, values), notes


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
