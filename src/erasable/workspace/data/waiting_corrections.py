"""Corrections that wait: their files copy records, and lose them when these go.

The law kept here: the file of a correction that waits names only records that some kept version of
the data set holds, of the same people, with the values of the newest correction that was carried
out.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
from sqlalchemy import Connection, insert, select, update

from erasable.core._arrow_files import parquet_bytes, parquet_table
from erasable.workspace.context import Context
from erasable.workspace.data import fragments
from erasable.workspace.data.catalogue import DataSet, FragmentRow
from erasable.workspace.data.erasing import corrected, have_same_owners
from erasable.workspace.evidence import entries, log
from erasable.workspace.ledger.schema import garbage
from erasable.workspace.ledger.schema import request as request_table
from erasable.workspace.store.artifacts import StoredArtifact


class Narrowed(NamedTuple):
    """A correction that waits, and its new file."""

    row: Any  # of table `request`
    stored: StoredArtifact


def read(context: Context, row: Any) -> pa.Table:
    """Read the file of an open correction: ids, the corrected columns, and the owners."""
    return parquet_table(
        context.store.open(StoredArtifact(row.values_key, row.values_sha256)), None
    )


def waiting(connection: Connection, but: Set[str] = frozenset()) -> list[Any]:
    """Return the rows of corrections that are open, without some requests."""
    query = select(request_table).where(request_table.c.values_key.is_not(None))
    return [row for row in connection.execute(query).all() if row.id not in but]


def narrow(
    context: Context,
    connection: Connection,
    known: DataSet,
    kept: Sequence[FragmentRow],
    gone: Sequence[Any] = (),
    but: Set[str] = frozenset(),
    newer: Sequence[Any] = (),
) -> list[Narrowed]:
    """Write the files of corrections that wait, without records that are gone.

    Where a correction that was received later and is carried out before them has another value,
    they take it. `kept` are all fragments that the data set is to have; a record that none of them
    holds for the same person is gone. `gone` are ids of erased records, `but` requests that are
    carried out and keep no file; `newer` are the rows of those that correct the data set, in the
    order of receipt.
    """
    of = [row for row in waiting(connection, but) if row.corrects["dataset"] == known.name]
    tables = [read(context, row) for row in of]
    name, there = known.id_column, [pc.is_null(each[known.id_column]) for each in tables]
    for part in kept if of else ():
        columns = [name, *known.subject_columns]
        held = fragments.read(context, part.key, part.sha256, columns)
        for place, table in enumerate(tables):
            at = pc.index_in(table[name], held[name].cast(table[name].type))
            named = pc.and_(pc.is_valid(at), have_same_owners(known, table, held.take(at)))
            there[place] = pc.or_(there[place], named)
    carried_out = [(each, read(context, each)) for each in newer if of]
    found = []
    for row, table, stays in zip(of, tables, there, strict=True):
        erased = pc.is_in(table[name], pa.array(gone, table[name].type))
        left = table.filter(pc.and_(stays, pc.invert(erased)))
        later = [
            (each.id, said.select([c for c in said.column_names if c in table.column_names]))
            for each, said in carried_out
            if each.received_at > row.received_at
        ]
        left, superseded, _ = corrected(known, left, later)
        if superseded or left.num_rows < table.num_rows:
            data = parquet_bytes(left, use_dictionary=False)
            found.append(Narrowed(row, context.store.put("corrections", data)))
    return found


def adopt(context: Context, connection: Connection, narrowed: Sequence[Narrowed]) -> None:
    """Replace the files of corrections by new ones, in the caller's transaction."""
    for row, stored in narrowed:
        at = (request_table.c.id == row.id) & (request_table.c.values_key == row.values_key)
        values = {"values_key": stored.key, "values_sha256": stored.sha256}
        if not connection.execute(update(request_table).where(at).values(**values)).rowcount:
            continue  # it has ended since
        connection.execute(insert(garbage).values(key=row.values_key))
        changed = connection.execute(
            select(request_table).where(request_table.c.id == row.id)
        ).one()
        kind = "request-narrowed"
        body = entries.of_request(context.keys, kind, changed._mapping)
        log.append(context, connection, kind, row.id, body, context.now())
