"""Counts of the people in a data set who have asked to be erased: what past requests still say.

Of whom is gone the ledger keeps that a request met records of a data set, and nothing of those
records or of the person. So there are counts by data set, and by nothing finer: who has left can
no longer be sorted by age or by class.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, select

from erasable.core.errors import WorkspaceError
from erasable.workspace import locking
from erasable.workspace.context import Context
from erasable.workspace.data import catalogue, persons
from erasable.workspace.data.admission import tokens_in
from erasable.workspace.identity.subjects import subjects_of
from erasable.workspace.ledger.schema import dataset as dataset_table
from erasable.workspace.ledger.schema import request as request_table
from erasable.workspace.ledger.schema import task

_WAITING = ("pending", "in_progress")  # their people are still in the data


@dataclass(frozen=True, slots=True)
class History:
    """How many people asked, of how many whose data was held, and in which time.

    Attributes
    ----------
    dataset : str
    requested : int
        People whose records were erased on their request, or who wait for it.
    held : int
        These, and those whose records are there now.
    since, until : datetime
        From when on requests count; and now.

    Examples
    --------
    >>> from datetime import UTC
    >>> History("visits", 3, 40, datetime(2026, 1, 1, tzinfo=UTC),
    ...         datetime(2026, 3, 2, tzinfo=UTC)).days
    60.0
    """

    dataset: str
    requested: int
    held: int
    since: datetime
    until: datetime

    @property
    def days(self) -> float:
        """How long that was; the counts foresee a time as long."""
        return (self.until - self.since).total_seconds() / 86400


def history(context: Context, name: str, since: datetime | None = None) -> History:
    """Count who asked to be erased, of those whose records a data set held.

    People are those whom the first of the subject columns names. Requests that were denied,
    cancelled, or met no record of the data set do not count, nor do conditions (``where``), which
    no person asked for. A person who was erased, let in again and came back counts as two.

    Parameters
    ----------
    context : Context
    name : str
        Of the data set.
    since : datetime, default=None
        Requests received before are not counted, nor are those who had left by them. By default
        all since the data set came in.

    Returns
    -------
    History

    Raises
    ------
    NotInWorkspaceError
        There is no such data set.
    WorkspaceBusyError
        Another process is at work.
    WorkspaceError
        It has no subject column, or `since` is no time in the past.
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
    """Return the subjects whose records the newest version holds.

    Read from the data: the ledger's index of holders has older versions in it, too.
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
        request_table.c.state.in_(_WAITING), request_table.c.received_at >= since
    )
    asked = [(row.tokens, row.reach) for row in connection.execute(query) if row.tokens]
    found = persons.persons_of(context, connection, asked, locking.datasets([known.name]))
    return _owners(connection, {token for each in found.people for token in each.identities})


def _owners(connection: Connection, tokens: Iterable[str]) -> set[str]:
    return set(subjects_of(connection, tokens).values())
