"""Estimates of the time of erasures, from measured times."""

from __future__ import annotations

import statistics
from datetime import datetime

from sqlalchemy import Connection, insert, select

from erasable.workspace.ledger.schema import fragment, measurement
from erasable.workspace.ledger.treatments import ERASING, FITTED, REWRITTEN

_NEWEST = 5


def note(
    connection: Connection,
    model_id: int,
    kind: str,
    n_records: int,
    n_deleted: int,
    seconds: float,
    at: datetime,
) -> None:
    """Write down how long a fit or an erasure took."""
    connection.execute(
        insert(measurement).values(
            model_id=model_id, kind=kind, n_records=n_records, n_deleted=n_deleted,
            seconds=seconds, at=at,
        )
    )  # fmt: skip


def seconds_of_model(connection: Connection, model_id: int, n_deleted: int) -> float | None:
    """Estimate the seconds of an erasure from a model; None if nothing was measured.

    The median of the newest erasures; before any, the seconds of the newest fit, which an erasure
    exceeds only by reading the model.
    """
    if n_deleted == 0:
        return 0.0
    query = select(measurement.c.seconds).where(measurement.c.model_id == model_id)
    query = query.order_by(measurement.c.id.desc())
    erased = query.where(measurement.c.kind.in_(ERASING)).limit(_NEWEST)
    seconds = list(connection.execute(erased).scalars())
    if not seconds:
        fits = query.where(measurement.c.kind == FITTED.measured_as).limit(1)
        seconds = list(connection.execute(fits).scalars())
    return statistics.median(seconds) if seconds else None


def seconds_of_dataset(connection: Connection, dataset_id: int, n_deleted: int) -> float | None:
    """Estimate the seconds of an erasure from a data set; None if nothing was measured.

    In proportion to the records of the rewritten fragments; from other data sets if this one was
    never rewritten.
    """
    if n_deleted == 0:
        return 0.0
    query = select(measurement.c.seconds, measurement.c.n_deleted, measurement.c.dataset_id)
    query = query.where(measurement.c.kind == REWRITTEN.measured_as)
    query = query.order_by(measurement.c.id.desc())
    rows = [row for row in connection.execute(query.limit(200)) if row.n_deleted]
    own = [row for row in rows if row.dataset_id == dataset_id][:_NEWEST] or rows[:_NEWEST]
    if not own:
        return None
    rate = statistics.median(row.seconds / row.n_deleted for row in own)
    longest = max(row.seconds for row in own)
    # Once every fragment is rewritten, more records cost no more.
    held = select(fragment.c.id).where(fragment.c.dataset_id == dataset_id)
    bound = longest * max(1.0, len(connection.execute(held).all()) / max(1, own[0].n_deleted))
    return float(min(rate * n_deleted, max(longest, bound)))
