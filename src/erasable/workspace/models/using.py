"""Use of models: prediction here, and export, without records, for use elsewhere."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import Any

import pyarrow as pa

import erasable.workspace.locking as locking
from erasable.core.errors import ArtifactError, NotInWorkspaceError, SourceError, WorkspaceError
from erasable.workspace.context import Context
from erasable.workspace.data.admission import plain_columns
from erasable.workspace.data.array_files import ArrayFiles
from erasable.workspace.data.catalogue import DataSet, get
from erasable.workspace.data.column_types import ColumnTypes
from erasable.workspace.data.dialects import UNSAID, Dialect
from erasable.workspace.data.sources import Source
from erasable.workspace.evidence import ledger_checks
from erasable.workspace.models import catalogue
from erasable.workspace.models.catalogue import Model, Version
from erasable.workspace.models.deleting import design_of
from erasable.workspace.models.kept_records import fields_of_one_record, keeps_records
from erasable.workspace.models.model_columns import joined_table
from erasable.workspace.models.reading import Reader
from erasable.workspace.models.training import from_bytes
from erasable.workspace.store.own_files import refuse_own, write_for_user

_NAMED = 4  # fields in a warning


def export(context: Context, name: str, path: str | os.PathLike[str]) -> list[str]:
    """Write a model to a file; see `Workspace.export`."""
    refuse_own(path, context.root)
    with context.lock(reads=locking.models([name])):
        model, version, data = open_model(context, name)
        messages = cautions(context, model, version, data)
        write_for_user(path, context.root, data)
    return messages


def open_model(context: Context, name: str) -> tuple[Model, Version, bytes]:
    """Return a model, its version and its file, all of one moment.

    If another process puts a new version in place meanwhile, the new one is taken. Raise
    NotInWorkspaceError if there is no such model, or no file of it.
    """
    model, version = _found(context, name)
    while True:
        try:
            return model, version, context.store.open(version.stored)
        except NotInWorkspaceError:
            missing, (model, version) = version, _found(context, name)
            if version.key == missing.key:
                raise


def predict(
    context: Context, name: str, source: str, dialect: Dialect = UNSAID, *, proba: bool = False
) -> pa.Table:
    """Predict for the records of a source; see `Workspace.predict`."""
    model, _, data = open_model(context, name)
    design = design_of(model)
    if design is None:
        raise WorkspaceError(
            f"{name!r} was made by a program of its own; expected an estimator; "
            f"write it with `erasable model export {name}`, and predict with that program"
        )
    with context.ledger.reading() as connection:
        known = get(connection, model.datasets[0])
    table = read_source(source, known, design.features, name, dialect)
    fitted: Any = from_bytes(data)
    if not hasattr(fitted, "predict"):
        raise WorkspaceError(
            f"{name!r} is a {type(fitted).__name__}, which does not predict; expected a "
            f"classifier, regressor or clusterer; write it with `erasable model export {name}`"
        )
    if proba and not hasattr(fitted, "predict_proba"):
        raise WorkspaceError(
            f"{name!r} is a {type(fitted).__name__}, which tells no probabilities; expected a "
            "classifier that does; leave --proba out"
        )
    given = design.given(table)
    found = {"prediction": pa.array(fitted.predict(given).tolist())}
    if proba:
        columns = zip(fitted.classes_.tolist(), fitted.predict_proba(given).T, strict=True)
        found |= {f"probability_{label}": pa.array(values) for label, values in columns}
    if known.id_column in table.column_names:
        found = {known.id_column: table[known.id_column], **found}
    return pa.table(found)


def read_source(
    source: str,
    known: DataSet,
    columns: Sequence[str],
    name: str,
    dialect: Dialect = UNSAID,
) -> pa.Table:
    """Read the records of a source that a model is to predict for; refuse missing columns.

    The id column of `known`, a data set that the model has learned from, is read as text if the
    source has it.
    """
    given = Source.parse(source, dialect=dialect)
    types = ColumnTypes.of(known, columns)
    try:
        table = given.read([known.id_column], types)
    except SourceError:  # it may lack the ids alone
        table = given.read([], types)
    missing = [each for each in columns if each not in table.column_names]
    if missing:
        raise WorkspaceError(
            f"{source!r} lacks the columns {', '.join(missing)}; expected all that {name!r} "
            "learned from"
        )
    files = [each for each in columns if each in known.files]
    read = ArrayFiles(given.folder, files, known.files) if files else None
    return plain_columns(table if read is None else _together(read.read(table)))


def _together(parts: Iterable[pa.Table]) -> pa.Table:
    return pa.concat_tables(parts, promote_options="permissive")


def cautions(context: Context, model: Model, version: Version, data: bytes) -> list[str]:
    """Warn the user who hands a model on, a line for each kind of record data that it holds."""
    design = design_of(model)
    if design is None:
        return []

    def learned_from() -> Any:
        tables = Reader(context).tables(model.datasets, version.dataset_versions, design)
        return design.given(joined_table(tables))

    try:
        fitted = from_bytes(data)
        holds = keeps_records(fitted, learned_from)
        fields = [] if holds else fields_of_one_record(fitted, learned_from)
    except ArtifactError:  # of another version of erasable, which may be there where it goes
        return []
    if fields:
        named = ", ".join(fields[:_NAMED]) + (" and others" if len(fields) > _NAMED else "")
        return [
            f"{model.name!r} holds values that one record alone has, in {named}, and so does the "
            "file: an erasure here does not reach it; fit it so that it keeps none, or hand it on "
            "as you would hand on the data"
        ]
    if not holds:
        return []
    return [
        f"{model.name!r} holds records it was trained on, or a value for each, and so does the "
        "file: an erasure here does not reach it; hand it on as you would hand on the data"
    ]


def _found(context: Context, name: str) -> tuple[Model, Version]:
    with context.ledger.reading() as connection:
        model = catalogue.find(connection, name)
        ledger_checks.check_one(context, connection, "model", name)
        version = catalogue.current(connection, model)
    if version is None or not model.is_live:
        message = (
            "too few records were left of" if model.state == "retired" else "only registered is"
        )
        raise NotInWorkspaceError(
            f"there is no file of the model {name!r}: {message} it; expected one that was fitted "
            "here; fit it, or choose another"
        )
    return model, version
