"""Corrections (GDPR, Article 16): new values of records of a data set.

The law kept here: the values of a correction are in one file of the store, and nowhere else. The
file is removed when the request ends.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from sqlalchemy import Connection, select

import erasable.workspace.locking as locking
from erasable.core._arrow_files import parquet_bytes
from erasable.core.errors import (
    InvalidDataError,
    InvalidIdsError,
    InvalidInputError,
    SourceError,
    TooFewRecordsError,
    WorkspaceError,
)
from erasable.core.ids import name_some
from erasable.core.targets import read_target
from erasable.workspace.context import Context
from erasable.workspace.data import catalogue, erasing, fragments
from erasable.workspace.data.arrays import width
from erasable.workspace.data.catalogue import DataSet
from erasable.workspace.data.column_types import ColumnTypes, array_of, describe_type
from erasable.workspace.data.dialects import UNSAID, Dialect
from erasable.workspace.data.differences import same_rows
from erasable.workspace.data.operation import Operation
from erasable.workspace.data.sources import Source
from erasable.workspace.evidence import ledger_checks
from erasable.workspace.ledger.schema import request as request_table
from erasable.workspace.locking import Claim
from erasable.workspace.models import catalogue as of_models
from erasable.workspace.models import deleting, recipes
from erasable.workspace.models.catalogue import NEVER, Model, policy_of
from erasable.workspace.models.following import may_follow
from erasable.workspace.models.model_columns import ids_and_groups, target_of, without_label
from erasable.workspace.requests import intake, restoring
from erasable.workspace.requests.intake import Request
from erasable.workspace.store.artifacts import StoredArtifact

_BESIDE = 200
"""Records with which a model is tried, beside those that are corrected."""
_FAR = 2.0**64
"""From there on squares exceed what float32 holds."""


class Correct(Operation[tuple[Request, list[str]]]):
    """Take in one correction of any number of records; see `Workspace.correct`."""

    _known: DataSet
    _stored: StoredArtifact

    def __init__(
        self,
        context: Context,
        dataset: str,
        source: str | None = None,
        *,
        ids: Sequence[Any] = (),
        values: Mapping[str, Any] | None = None,
        regulation: str = "gdpr",
        hold: str | None = None,
        received_at: datetime | None = None,
        dialect: Dialect = UNSAID,
    ) -> None:
        super().__init__(context)
        received, due = intake.times(context, regulation, hold, received_at)
        if (source is None) == (not ids) or (source is None) != bool(values):
            raise InvalidIdsError(
                "a correction was given neither or both of a file, and ids with values; expected "
                "one of them"
            )
        self._dataset, self._source, self._dialect = dataset, source, dialect
        self._ids, self._values = ids, values or {}
        self._columns: list[str] = []
        self._warnings: list[str] = []
        self._row = {
            "regulation": regulation, "received_at": received, "due_at": due, "hold": hold,
            "type": None, "types": None, "tokens": None, "condition": None,
        }  # fmt: skip

    def claim(self, connection: Connection) -> Claim:
        """See `Operation`."""
        return Claim.of(reads=locking.datasets([self._dataset]))

    def plan(self, connection: Connection) -> None:
        """See `Operation`."""
        ledger_checks.check_one(self.context, connection, "dataset", self._dataset)
        self._known = catalogue.find(connection, self._dataset)

    def prepare(self) -> None:
        """See `Operation`."""
        context, known = self.context, self._known
        if self._source is None:
            table = _given(known, self._ids, self._values)
        else:
            table = _read(known, self._source, self._dialect)
        self._columns = table.column_names[1:]
        with context.ledger.reading() as connection:
            self._warnings, table = _check(context, connection, known, table)
        self._stored = context.store.put("corrections", parquet_bytes(table, use_dictionary=False))

    def commit(self, connection: Connection) -> tuple[Request, list[str]]:
        """See `Operation`."""
        context, stored = self.context, self._stored
        ledger_checks.check(context, connection)
        row = {
            **self._row, "changed_at": context.now(),
            "values_key": stored.key, "values_sha256": stored.sha256,
            "corrects": {"dataset": self._dataset, "columns": self._columns},
        }  # fmt: skip
        (request,) = intake.enter_requests(context, connection, [row])
        return request, self._warnings


def lost_corrections(context: Context, listed: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return a line for each correction of an exported list that a restored backup lacks."""
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
    _check_columns(known, [known.id_column, *values])
    columns = {name: [value] * len(ids) for name, value in values.items()}
    columns[known.id_column] = list(ids)
    return _in_order(known, pa.table({n: _array(known, n, v) for n, v in columns.items()}))


def _read(known: DataSet, source: str, dialect: Dialect) -> pa.Table:
    types = ColumnTypes.of(known, exact=True)
    table = Source.parse(source, dialect=dialect).read([known.id_column], types)
    _check_columns(known, table.column_names)
    return _in_order(known, table)


def _in_order(known: DataSet, table: pa.Table) -> pa.Table:
    """Bring the columns to the order of the data set, behind the ids."""
    rest = [name for name, _ in known.columns if name in table.column_names]
    return table.select([known.id_column, *(name for name in rest if name != known.id_column)])


def _array(known: DataSet, name: str, values: list[Any]) -> pa.ChunkedArray:
    types = ColumnTypes.of(known, [name], exact=True)
    try:
        return types.column(name, pa.chunked_array([array_of(values)]), None)
    except SourceError as error:
        raise InvalidDataError(str(error)) from None
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        raise InvalidDataError(
            f"column {name!r} was given values of several types; expected "
            f"{describe_type(types.types[name])}, as in {known.name!r}"
        ) from None


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


def _check(
    context: Context, connection: Connection, known: DataSet, table: pa.Table
) -> tuple[list[str], pa.Table]:
    """Refuse what names no record, or changes none; return warnings, and it with whose they are."""
    name, n = known.id_column, table.num_rows
    ids = table[name]
    if not n or ids.null_count or len(pc.unique(ids)) < n:
        raise InvalidIdsError(
            f"the correction names {n} records, some of them twice or without {name!r}; "
            "expected one or more, each once"
        )
    found, _ = _records(context, connection, known, ids)
    if found.num_rows < n:
        raise InvalidIdsError(
            f"{n - found.num_rows} of {n} records are not in {known.name!r}; expected ids of "
            f"records that are there, in the column {name!r}"
        )
    now, table = found.select(table.column_names), table.sort_by(name)
    if pc.all(same_rows(now, table.cast(now.schema))).as_py():
        raise WorkspaceError(
            f"all of the records ({n}) hold these values already; expected a correction that "
            "changes some; nothing was taken in"
        )
    _check_models(context, connection, known, table)
    asked = restoring.asked_for(connection)
    leave, owned = None, table
    for column in known.subject_columns:
        owned = owned.append_column(column, found[column])
        mask = pc.fill_null(pc.is_in(found[column], pa.array(sorted(asked), pa.string())), False)
        leave = mask if leave is None else pc.or_(leave, mask)
    n_leaving = 0 if leave is None else pc.sum(leave).as_py() or 0
    if not n_leaving:
        return [], owned
    told = (
        f"somebody has asked for the erasure of {n_leaving} of {n} records, and is not erased yet: "
        "what is erased by then is not corrected"
    )
    return [told], owned


def _records(
    context: Context, connection: Connection, known: DataSet, ids: pa.ChunkedArray
) -> tuple[pa.Table, pa.Table]:
    """Read records of a version, in the order of their ids, and some that lie beside them."""
    name, schema = known.id_column, known.schema
    read, beside = [schema.empty_table()], [schema.empty_table()]
    for part in catalogue.fragment_rows(connection, known.id, known.version):
        there = fragments.read(context, part.key, part.sha256, [name])[name].cast(ids.type)
        wanted = pc.is_in(there, ids)
        if pc.any(wanted).as_py():
            whole = fragments.read(context, part.key, part.sha256).select(schema.names)
            read.append(whole.cast(schema).filter(wanted))
            beside.append(whole.cast(schema).filter(pc.invert(wanted)).slice(0, _BESIDE))
    return pa.concat_tables(read).sort_by(name), pa.concat_tables(beside).slice(0, _BESIDE)


def _check_models(
    context: Context, connection: Connection, known: DataSet, table: pa.Table
) -> None:
    """Refuse what a model cannot learn from: the correction would wait for it, and not be made."""
    for model in of_models.models_of(connection, [known.id]):
        version = of_models.current(connection, model) if model.is_live else None
        if version is None:
            continue
        used = dict(zip(model.datasets, version.dataset_versions, strict=True))[known.id]
        then = catalogue.with_types_of(connection, known, used)
        was, beside = _records(context, connection, then, table[known.id_column])
        records, changed, _ = erasing.corrected(then, was, [("", table)])
        if not changed:
            continue
        try:
            records = erasing.cast_to(then, records)
            _learn(model, then, was, records, beside)
        except InvalidDataError as error:
            raise InvalidDataError(
                f"the model {model.name!r} could not learn from the corrected records ({error}); "
                "expected values that it takes; nothing was taken in, correct them otherwise, or "
                f"{_advice(known, model, used)}"
            ) from None


def _advice(known: DataSet, model: Model, used: int) -> str:
    """Say what to do about a model that keeps a correction from being taken in."""
    give_up = f"give the model up with `erasable model retire {model.name}`"
    if used == known.version:
        return give_up
    follow = f"have the model follow its data first with `erasable model refresh {model.name}`"
    if policy_of(model) == NEVER:
        follow = f"{follow}, once `erasable model policy {model.name} refresh` lets it"
    return f"{follow}, or {give_up}"


def _learn(
    model: Model, known: DataSet, was: pa.Table, records: pa.Table, beside: pa.Table
) -> None:
    """Make a model learn from a few corrected records; raise InvalidDataError if it cannot."""
    design = deleting.design_of(model)
    if design is None:  # its program is to say, when it is run
        return
    estimator = recipes.make(model.recipe)
    design.check([(known, records)], estimator)
    before, after = (len(without_label([(known, each)], design.target)) for each in (was, records))
    if after > before:
        raise InvalidDataError(
            f"{after} of {records.num_rows} records have an empty target, in {design.target!r}"
        )
    if design.target is not None:
        estimator._check_targets(target_of([(known, records)], design.target))
    far = _is_far(records.select([*design.features, *([design.target] if design.target else [])]))
    if not far and not may_follow(estimator):
        return  # it would be another's fit, which may take long
    few = _telling(records)
    for some in (was, records):
        sample = [(known, pa.concat_tables([some.take(few), beside]))]
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of so few records
                values = design.values(sample)
                labels = target_of(sample, design.target)
                target = None if labels is None else read_target(labels, values.n_rows)
                recipes.make(model.recipe).fit(ids_and_groups(sample).twin(values, target))
        except (InvalidInputError, TooFewRecordsError) as error:
            if some is was or (isinstance(error, TooFewRecordsError) and not far):
                return
            raise InvalidDataError(str(error)) from None


def _is_far(table: pa.Table) -> bool:
    """Tell whether numbers are so large that an estimator may refuse them, or infinite."""
    columns = [each for each in table.columns if pa.types.is_floating(each.type)]
    return any(pc.any(pc.greater(pc.abs(each), _FAR)).as_py() for each in columns)


def _telling(table: pa.Table) -> list[int]:
    """Return the places of some records, among them the largest and smallest of each column."""
    found = set(range(min(table.num_rows, _BESIDE)))
    for column in table.columns:
        if pa.types.is_floating(column.type) or pa.types.is_integer(column.type):
            order = pc.array_sort_indices(column)
            found |= {order[0].as_py(), order[-1].as_py()}
    return sorted(found)
