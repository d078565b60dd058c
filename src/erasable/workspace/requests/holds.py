"""Find records of requests on hold, to warn before they are removed for another reason."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from sqlalchemy import Connection, select

from erasable.workspace.data.admission import record_type
from erasable.workspace.data.catalogue import DataSet
from erasable.workspace.ledger.schema import request
from erasable.workspace.requests.batches import gather
from erasable.workspace.site import Site

if TYPE_CHECKING:
    import pyarrow as pa


def held_among(
    site: Site, connection: Connection, known: DataSet, records: pa.Table
) -> dict[str, int]:
    """Count which of some records of a data set are asked for by requests on hold.

    Parameters
    ----------
    site : Site
    connection : Connection
    known : DataSet
    records : pa.Table
        As the data set keeps them: subjects are tokens.

    Returns
    -------
    dict of str to int
        Records by the id of the request, where there are any.
    """
    waiting = request.c.state.in_(["pending", "in_progress"]) & request.c.hold.is_not(None)
    batch = gather(connection, connection.execute(select(request).where(waiting)).all())
    own = site.keys.tokens(record_type(known.name), records[known.id_column].to_pylist())
    columns = [own, *(records[column].to_pylist() for column in known.subject_columns)]
    counts = Counter(
        each
        for row in zip(*columns, strict=True)
        for each in {asked for token in row for asked in batch.tokens.get(token, ())}
    )
    for each, condition in batch.conditions.get(known.id, []):
        counts[each] += sum(condition.mask(records).to_pylist())
    return {each: n for each, n in sorted(counts.items()) if n}
