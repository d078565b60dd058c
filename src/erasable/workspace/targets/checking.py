"""People on the suppression list who came back to a target."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import Connection, select

from erasable.core.errors import ErasableError
from erasable.workspace.context import Context
from erasable.workspace.evidence import ledger_checks
from erasable.workspace.ledger.schema import task
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
    """Look through targets; see `Workspace.check_target`. Who still waits to leave is not back."""
    with context.ledger.reading() as connection:
        ledger_checks.check(context, connection)
        known = catalogue.in_use(connection)
        if name is not None:
            known = [catalogue.find(connection, name)]
        waiting = _waiting(connection)
    found = []
    with context.progress("checking targets", len(known)) as advance:
        for each in known:
            try:
                with adding.opened(each) as target:
                    plan = target.find(Suppressed(context))
            except ErasableError as error:
                found.append(ReturnedPeople(each.name, error=" ".join(str(error).split())))
            else:
                known_to_wait = waiting.get(each.id, set())
                back = [n for token, n in plan.n_records.items() if token not in known_to_wait]
                found.append(ReturnedPeople(each.name, len(back), sum(back)))
            advance()
    return found


def _waiting(connection: Connection) -> dict[int, set[str]]:
    """Return the tokens of who has not left a target yet, by target."""
    owed = select(task.c.target_id, task.c.tokens).where(
        task.c.target == "target", task.c.exactness.is_(None)
    )
    found: dict[int, set[str]] = {}
    for target_id, tokens in connection.execute(owed):
        found.setdefault(target_id, set()).update(token for _, token in tokens)
    return found
