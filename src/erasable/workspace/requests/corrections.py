"""Take corrections in: which records of a data set are to hold what (GDPR, Article 16).

The law kept here: what a correction says lies in a file of the store, beside the data that it is
for, and nowhere else. It goes when the request ends.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from datetime import datetime
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
from sqlalchemy import Connection, insert, select, update

from erasable.core._arrow_files import parquet_bytes, parquet_table
from erasable.core.errors import InvalidDataError, InvalidIdsError, WorkspaceError
from erasable.core.ids import name_some
from erasable.workspace import locking
from erasable.workspace.context import Context
from erasable.workspace.data import catalogue, erasing, fragments
from erasable.workspace.data.admission import plain
from erasable.workspace.data.arrays import type_of, width
from erasable.workspace.data.catalogue import DataSet
from erasable.workspace.data.differences import same_rows
from erasable.workspace.data.sources import Source
from erasable.workspace.evidence import entries, log, reliance
from erasable.workspace.ledger.schema import garbage
from erasable.workspace.ledger.schema import request as request_table
from erasable.workspace.models import catalogue as of_models
from erasable.workspace.models import deleting, recipes
from erasable.workspace.models.model_columns import target_of
from erasable.workspace.requests import intake, restoring
from erasable.workspace.requests.intake import Request
from erasable.workspace.store.artifacts import Stored


def acknowledge(
    context: Context,
    dataset: str,
    source: str | None = None,
    *,
    ids: Sequence[Any] = (),
    values: Mapping[str, Any] | None = None,
    regulation: str = "gdpr",
    hold: str | None = None,
    received_at: datetime | None = None,
) -> tuple[Request, list[str]]:
    """Take in one correction, of any number of records.

    Parameters
    ----------
    context : Context
    dataset : str
    source : str, default=None
        A CSV or Parquet file with the id of each record and the columns that are to be corrected.
    ids : sequence of int or str
        In the place of a file, which records.
    values : dict of column to value, default=None
        What each of them is to hold; None is a gap.
    regulation, hold, received_at
        See `intake.acknowledge`.

    Returns
    -------
    request : Request
    warnings : list of str
        What may not be as it was meant, a line each.

    Raises
    ------
    NotInWorkspaceError
        There is no such data set.
    InvalidIdsError
        Records are not there, or named twice.
    InvalidDataError
        Columns are not there, name records or people, or hold arrays; values of another type.
    WorkspaceError
        All records hold these values already.
    SourceError
        The file cannot be read.
    """
    received, due = intake.times(context, regulation, hold, received_at)
    if (source is None) == (not ids) or (source is None) != bool(values):
        raise InvalidIdsError(
            "a correction was given neither or both of a file, and ids with values; expected one "
            "of them"
        )
    with context.lock(reads=locking.datasets([dataset])):
        with context.ledger.reading() as connection:
            reliance.check_one(context, connection, "dataset", dataset)
            known = catalogue.find(connection, dataset)
        table = _given(known, ids, values or {}) if source is None else _read(known, source)
        with context.ledger.reading() as connection:
            warnings = _check(context, connection, known, table)
        stored = context.store.put("corrections", parquet_bytes(table, use_dictionary=False))
        row = {
            "regulation": regulation, "received_at": received, "due_at": due, "hold": hold,
            "type": None, "changed_at": context.now(), "types": None, "tokens": None,
            "condition": None, "values_key": stored.key, "values_sha256": stored.sha256,
            "corrects": {"dataset": dataset, "columns": table.column_names[1:]},
        }  # fmt: skip
        with context.ledger.transaction() as connection:
            reliance.check(context, connection)
            (request,) = intake.enter(context, connection, [row])
    return request, warnings


def read(context: Context, row: Any) -> pa.Table:
    """Read what an open correction says: ids, and the columns that are corrected."""
    return parquet_table(context.store.open(Stored(row.values_key, row.values_sha256)), None)


class Narrowed(NamedTuple):
    """A correction that waits, and a file of it without records that are erased meanwhile.

    Attributes
    ----------
    row : row of table `request`
    stored : Stored
    """

    row: Any
    stored: Stored


def narrow(
    context: Context, connection: Connection, known: DataSet, gone: Sequence[Any], but: Set[str]
) -> list[Narrowed]:
    """Write the files of corrections that wait, on hold, say, without records that are erased.

    Parameters
    ----------
    context : Context
    connection : Connection
    known : DataSet
    gone : sequence
        Ids of records.
    but : set of str
        Requests that are carried out, of which no file is left.
    """
    query = select(request_table).where(request_table.c.values_key.is_not(None))
    found = []
    for row in connection.execute(query).all():
        if row.id in but or row.corrects["dataset"] != known.name or not gone:
            continue
        table = read(context, row)
        ids = table[known.id_column]
        leaves = pc.is_in(ids, pa.array(gone).cast(ids.type))
        if pc.any(leaves).as_py():
            data = parquet_bytes(table.filter(pc.invert(leaves)), use_dictionary=False)
            found.append(Narrowed(row, context.store.put("corrections", data)))
    return found


def adopt(context: Context, connection: Connection, narrowed: Sequence[Narrowed]) -> None:
    """Put such files in the place of those before, in the caller's transaction."""
    for row, stored in narrowed:
        at = (request_table.c.id == row.id) & (request_table.c.values_key == row.values_key)
        values = {"values_key": stored.key, "values_sha256": stored.sha256}
        if not connection.execute(update(request_table).where(at).values(**values)).rowcount:
            continue  # it has ended since
        connection.execute(insert(garbage).values(key=row.values_key))
        changed = connection.execute(
            select(request_table).where(request_table.c.id == row.id)
        ).one()
        body = entries.narrowed(context.keys, changed._mapping)
        log.append(context, connection, "request-narrowed", row.id, body, context.now())


def lost(context: Context, listed: Sequence[Mapping[str, Any]]) -> list[str]:
    """Tell of corrections that a restored backup does not have, a line for each.

    Parameters
    ----------
    context : Context
    listed : sequence of dict
        `erasable.workspace.identity.outside.Listed.corrections`.
    """
    r = request_table.c
    with context.ledger.reading() as connection:
        done = set(connection.execute(select(r.id).where(r.state == "completed")).scalars())
    return [
        f"{each['request_id']} has corrected {', '.join(each['columns'])} in {each['dataset']!r} "
        f"on {each['at']:%Y-%m-%d}, after the backup was made: what was wrong is back; take it in "
        "again with `erasable correct`"
        for each in listed
        if each["request_id"] not in done
    ]


def _given(known: DataSet, ids: Sequence[Any], values: Mapping[str, Any]) -> pa.Table:
    columns = {known.id_column: _array(known, known.id_column, list(ids))}
    _check_columns(known, [known.id_column, *values])
    for name, value in values.items():
        columns[name] = _array(known, name, [value] * len(ids))
    return _in_order(known, pa.table(columns))


def _read(known: DataSet, source: str) -> pa.Table:
    table = plain(Source.parse(source).read(text_columns=[known.id_column]))
    _check_columns(known, table.column_names)
    return _in_order(
        known,
        pa.table({name: _cast(known, name, table[name]) for name in table.column_names}),
    )


def _in_order(known: DataSet, table: pa.Table) -> pa.Table:
    """Bring the columns to the order of the data set, behind the ids."""
    rest = [name for name, _ in known.columns if name in table.column_names]
    return table.select([known.id_column, *(name for name in rest if name != known.id_column)])


def _array(known: DataSet, name: str, values: list[Any]) -> pa.ChunkedArray:
    wanted = type_of(dict(known.columns).get(name, "string"))
    if not pa.types.is_string(wanted):  # as it is typed on a command line
        values = [None if value == "" else value for value in values]
    try:
        return _cast(known, name, pa.chunked_array([pa.array(values)]))
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        given = "text" if all(isinstance(each, str) for each in values) else "values"
        raise _other_type(known, name, given) from None


def _cast(known: DataSet, name: str, column: pa.ChunkedArray) -> pa.ChunkedArray:
    try:
        return column.cast(type_of(dict(known.columns)[name]))
    except (pa.ArrowException, ValueError):
        raise _other_type(known, name, str(column.type)) from None


def _other_type(known: DataSet, name: str, given: str) -> InvalidDataError:
    wanted = dict(known.columns)[name]
    return InvalidDataError(
        f"column {name!r} was given {given} that cannot be {wanted}; expected {wanted}, as in "
        f"{known.name!r}"
    )


def _check_columns(known: DataSet, names: Sequence[str]) -> None:
    types = dict(known.columns)
    own = {known.id_column, *known.subject_columns}
    if known.id_column not in names:
        raise InvalidDataError(
            f"the correction lacks the column {known.id_column!r}; expected it, which names the "
            f"records of {known.name!r}"
        )
    unknown = [name for name in names if name not in types]
    if unknown:
        raise InvalidDataError(
            f"there are no columns {name_some(unknown)} in {known.name!r}; expected some of: "
            f"{name_some([name for name in types if name not in own])}"
        )
    whose = [name for name in names if name in known.subject_columns]
    if whose:
        raise InvalidDataError(
            f"the columns {name_some(whose)} say whose a record is; expected columns of values; "
            "correct the source, and run `erasable dataset sync`"
        )
    arrays = [name for name in names if width(types[name])]
    if arrays:
        raise InvalidDataError(
            f"the columns {name_some(arrays)} hold arrays; expected numbers or text; correct the "
            "source, and run `erasable dataset sync`"
        )
    if len(names) < 2 or len(set(names)) < len(names):
        raise InvalidDataError(
            "a correction was given no column besides the id, or one twice; expected one or more "
            "that are to be corrected, each once"
        )


def _check(context: Context, connection: Connection, known: DataSet, table: pa.Table) -> list[str]:
    """Refuse what names no record, or changes none; return warnings."""
    name, n = known.id_column, table.num_rows
    ids = table[name]
    if not n or ids.null_count or len(pc.unique(ids)) < n:
        raise InvalidIdsError(
            f"the correction names {n} records, some of them twice, or has gaps in {name!r}; "
            "expected one or more, each once"
        )
    found = _records(context, connection, known, ids)
    if found.num_rows < n:
        raise InvalidIdsError(
            f"{n - found.num_rows} of {n} records are not in {known.name!r}; expected ids of "
            f"records that are there, in the column {name!r}"
        )
    now = found.select(table.column_names)
    if pc.all(same_rows(now, table.sort_by(name).cast(now.schema))).as_py():
        raise WorkspaceError(
            f"all of the records ({n}) hold these values already; expected a correction that "
            "changes some; nothing was taken in"
        )
    _check_models(connection, known, erasing.corrected(known, found, [("", table)])[0])
    asked = restoring.asked_for(connection)
    leave = None
    for column in known.subject_columns:
        mask = pc.fill_null(pc.is_in(found[column], pa.array(sorted(asked), pa.string())), False)
        leave = mask if leave is None else pc.or_(leave, mask)
    n_leaving = 0 if leave is None else pc.sum(leave).as_py() or 0
    if not n_leaving:
        return []
    return [
        f"somebody has asked for the erasure of {n_leaving} of {n} records, and is not erased yet: "
        "what is erased by then is not corrected"
    ]


def _records(
    context: Context, connection: Connection, known: DataSet, ids: pa.ChunkedArray
) -> pa.Table:
    """Read records of the newest version, in the order of their ids; of others only the ids."""
    name, schema = known.id_column, known.schema
    read = [schema.empty_table()]
    for part in catalogue.parts(connection, known.id, known.version):
        there = fragments.read(context, part.key, part.sha256, [name])[name].cast(ids.type)
        if pc.any(pc.is_in(there, ids)).as_py():
            whole = fragments.read(context, part.key, part.sha256).select(schema.names)
            read.append(whole.cast(schema).filter(pc.is_in(there, ids)))
    return pa.concat_tables(read).sort_by(name)


def _check_models(connection: Connection, known: DataSet, records: pa.Table) -> None:
    """Refuse what a model cannot learn from: the whole batch would wait for it."""
    for model in of_models.models_of(connection, [known.id]):
        design = deleting.design_of(model) if model.is_live else None
        if design is None:
            continue
        try:
            estimator = recipes.make(model.recipe)
            design.check([(known, records)], estimator)
            if design.target is not None:
                estimator._check_targets(target_of([(known, records)], design.target))
        except InvalidDataError as error:
            raise InvalidDataError(
                f"the model {model.name!r} could not learn from the corrected records ({error}); "
                "expected values that it takes; nothing was taken in, correct them otherwise, or "
                f"give the model up with `erasable model retire {model.name}`"
            ) from None
