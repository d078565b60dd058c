"""Removals of domains, carried out: one request for the records, and its effect on the models."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from erasable.core import _interruptions
from erasable.core.errors import ErasableError, WorkspaceError
from erasable.workspace.context import Context
from erasable.workspace.data import catalogue
from erasable.workspace.domains.judging import Judged, make_judges
from erasable.workspace.domains.planning import (
    RemovalPlan,
    count_on_hold,
    on_hold,
    state_of,
    tokens_of,
)
from erasable.workspace.requests import answering, intake, process

_CANCELLED = "no record was removed, and its request is cancelled"
_GIVEN_UP = "the removal of a domain could not be carried out"


@dataclass(frozen=True, slots=True)
class Removed:
    """A removal that was carried out."""

    request: str  # its id
    n_records: int
    treatments: list[dict[str, Any]]  # as in `Processed`
    models: list[Judged]
    seconds: float
    warnings: list[str]


def remove(context: Context, plan: RemovalPlan) -> Removed:
    """Erase the records of a plan everywhere; see `Workspace.remove_domain`."""
    if not plan.ids:
        raise WorkspaceError(
            "the plan chooses no record, because its budget is met without a deletion; expected "
            "one or more to delete; nothing was changed, ask for more"
        )
    judged = make_judges(context, plan)
    _refuse_held(context, plan)
    request: intake.Request | None = None
    try:
        with context.ledger.transaction() as connection:
            known = catalogue.find(connection, plan.dataset)
            if state_of(connection, known) != plan.state:
                raise WorkspaceError(
                    f"records of {plan.dataset!r} have changed since the removal was planned; "
                    "expected them as they were; nothing was changed, plan it again"
                )
            now = context.now()
            kind = catalogue.record_type(known.name)
            (request,) = intake.enter_requests(
                context,
                connection,
                [
                    {
                        "regulation": "none", "received_at": now, "due_at": None, "hold": None,
                        "type": None, "types": [kind], "condition": None, "changed_at": now,
                        "tokens": tokens_of(context, known.name, plan.ids),
                    }
                ],
            )  # fmt: skip
        done = process.process(context, [request.id])
    except BaseException as error:
        _interruptions.release(error)
        if request is not None:
            with suppress(ErasableError):  # it is past that: the next one that processes ends it
                answering.cancel(context, request.id, _GIVEN_UP)
            with suppress(ErasableError), context.ledger.reading() as connection:
                if intake.find(connection, request.id).state == "cancelled":
                    _interruptions.explain(error, _CANCELLED)
        raise
    updated = {each["model"] for each in done.treatments}
    return Removed(
        request.id, done.n_records, done.treatments,
        [each.after(each.name in updated) for each in judged], done.seconds, done.warnings,
    )  # fmt: skip


def _refuse_held(context: Context, plan: RemovalPlan) -> None:
    """Refuse a plan that does not warn of records which a request on hold asks for by now."""
    with context.ledger.reading() as connection:
        known = catalogue.find(connection, plan.dataset)
        records = catalogue.read_version(context, connection, known.id)
        ids = pa.array(plan.ids, records[known.id_column].type)
        leaving = records.filter(pc.is_in(records[known.id_column], ids))
        held = count_on_hold(context, connection, known, leaving)
    for request, n in held.items():
        if on_hold(request, n) not in plan.warnings:
            raise WorkspaceError(
                f"{n} of the records that would leave are asked for by request {request}, which "
                "was put on hold since the removal was planned; expected none that the plan does "
                "not warn of; nothing was changed, plan it again"
            )
