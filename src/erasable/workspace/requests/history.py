"""Counts of the people in a data set who asked to be erased.

The ledger keeps that a request met records of a data set, and nothing of the records or of the
person. So there are counts by data set, but not by age or class.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, select

import erasable.workspace.locking as locking
from erasable.core.errors import WorkspaceError
from erasable.workspace.context import Context
from erasable.workspace.data import catalogue, persons
from erasable.workspace.data.admission import tokens_in
from erasable.workspace.identity.subjects import subjects_of
from erasable.workspace.ledger.schema import dataset as dataset_table
from erasable.workspace.ledger.schema import request as request_table
from erasable.workspace.ledger.schema import task
from erasable.workspace.ledger.states import WAITING


@dataclass(frozen=True, slots=True)
class History:
    """Numbers of people who asked, and whose records were held, in a period.

    >>> from datetime import UTC
    >>> History("visits", 3, 40, datetime(2026, 1, 1, tzinfo=UTC),
    ...         datetime(2026, 3, 2, tzinfo=UTC)).days
    60.0
    """

    dataset: str
    requested: int  # people who were erased on request, or wait for it
    held: int  # these, and those with records now
    since: datetime  # requests count from then on
    until: datetime

    @property
    def days(self) -> float:
        """How long that was; the counts foresee a time as long."""
        return (self.until - self.since).total_seconds() / 86400


def history(context: Context, name: str, since: datetime | None = None) -> History:
    """Count people who asked to be erased, of those whose records a data set held.

    People are those named by the first subject column. Denied and cancelled requests, those that
    met no record, and conditions do not count. A person who was erased, released and came back
    counts as two.
    """
    now = context.now()
    with context.lock(reads=locking.datasets([name])), context.ledger.reading() as connection:
        known = catalogue.find(connection, name)
        if not known.subjects:
            raise WorkspaceError(
                f"the data set {name!r} has no column of subjects, so nobody can ask to leave it; "
                "expected one that says whose records they are; add it anew with --subject"
            )
        made = select(dataset_table.c.created_at).where(dataset_table.c.id == known.id)
        began: datetime = connection.execute(made).scalar_one()
        start = began if since is None else since
        if start.tzinfo is None or start > now:
            message = "has no time zone" if start.tzinfo is None else "has not come yet"
            raise WorkspaceError(
                f"since is {start.isoformat()}, which {message}; expected a time in the past, with "
                "its zone; pass datetime(2026, 3, 31, tzinfo=UTC)"
            )
        here = _people(context, connection, known)
        left = _left(connection, known.id, start)
        waiting = len(here & _asking(context, connection, known, start))
    return History(name, left + waiting, left + len(here), start, now)


def _people(context: Context, connection: Connection, known: catalogue.DataSet) -> set[str]:
    """Return the subjects with records in the newest version.

    They are read from the data: the ledger's index of holders also has older versions.
    """
    column = known.subject_columns[0]
    table = catalogue.read_version(context, connection, known.id, columns=[column])
    return _owners(connection, tokens_in(table[column]))


def _left(connection: Connection, dataset: int, since: datetime) -> int:
    """Count the requests of people that have erased records of a data set."""
    query = (
        select(request_table.c.types)
        .select_from(task.join(request_table, request_table.c.id == task.c.request_id))
        .where(
            task.c.target == "dataset",
            task.c.target_id == dataset,
            task.c.n_records > 0,
            request_table.c.received_at >= since,
        )
    )
    types = connection.execute(query).scalars()
    return sum(each is not None for each in types)  # a condition has none


def _asking(
    context: Context, connection: Connection, known: catalogue.DataSet, since: datetime
) -> set[str]:
    """Return the subjects who wait to be erased, as far as the data set tells who they are."""
    query = select(request_table.c.tokens, request_table.c.reach).where(
        request_table.c.state.in_(WAITING), request_table.c.received_at >= since
    )
    asked = [(row.tokens, row.reach) for row in connection.execute(query) if row.tokens]
    found = persons.persons_of(context, connection, asked, locking.datasets([known.name]))
    return _owners(connection, {token for each in found.people for token in each.identities})


def _owners(connection: Connection, tokens: Iterable[str]) -> set[str]:
    return set(subjects_of(connection, tokens).values())
