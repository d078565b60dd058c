"""People on the suppression list who came back to a target."""

from __future__ import annotations

from dataclasses import dataclass

from erasable.core.errors import ErasableError
from erasable.workspace.context import Context
from erasable.workspace.evidence import ledger_checks
from erasable.workspace.targets import adding, catalogue
from erasable.workspace.targets.people import Suppressed


@dataclass(frozen=True, slots=True)
class ReturnedPeople:
    """People who were erased, and are in a target."""

    target: str  # its name
    n_people: int = 0
    n_records: int = 0
    error: str | None = None  # why it could not be read


def check(context: Context, name: str | None) -> list[ReturnedPeople]:
    """Look through targets; see `Workspace.check_target`."""
    with context.ledger.reading() as connection:
        ledger_checks.check(context, connection)
        known = catalogue.in_use(connection)
        if name is not None:
            known = [catalogue.find(connection, name)]
    found = []
    with context.progress("checking targets", len(known)) as advance:
        for each in known:
            try:
                with adding.opened(each) as target:
                    plan = target.find(Suppressed(context))
            except ErasableError as error:
                found.append(ReturnedPeople(each.name, error=" ".join(str(error).split())))
            else:
                n = sum(plan.n_records.values())
                found.append(ReturnedPeople(each.name, len(plan.n_records), n))
            advance()
    return found
