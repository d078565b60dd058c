"""Subjects of audits: models, with the records that they have learned from."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import erasable.workspace.locking as locking
from erasable.audit import BlackBox
from erasable.core.errors import InvalidParameterError, WorkspaceError
from erasable.core.ids import name_some, shorten
from erasable.workspace.context import Context
from erasable.workspace.data import catalogue as data
from erasable.workspace.data.catalogue import DataSet
from erasable.workspace.domains.holdout import as_in
from erasable.workspace.domains.judging import unfit
from erasable.workspace.evidence import ledger_checks
from erasable.workspace.evidence.ledger_checks import Trusted
from erasable.workspace.models.catalogue import Model, Version
from erasable.workspace.models.deleting import design_of
from erasable.workspace.models.model_columns import joined_table, target_of
from erasable.workspace.models.reading import Reader
from erasable.workspace.models.training import from_bytes, train
from erasable.workspace.models.using import open_model, read_source
from erasable.workspace.store.disk import Disk


@dataclass(frozen=True)
class AskCommand:
    """A command that asks a model which a program made."""

    command: str  # see `erasable.audit.BlackBox`; ``{model}`` is the file of the model
    target: str  # the column that the model predicts


@dataclass(frozen=True)
class Subject:
    """A model that is audited."""

    name: str
    model: Model
    version: Version
    fitted: Any  # what is asked
    # trains it again; None for an estimator, which is cloned
    recipe: Callable[[Any, Any, int], Any] | None
    datasets: tuple[DataSet, ...]  # that it has learned from
    columns: tuple[str, ...]  # that a record needs
    learned: tuple[Any, Any, Any]  # X, y and ids of its records
    split: Callable[[DataSet, pa.Table], tuple[Any, Any]]  # makes features and targets of a table
    complete: Callable[[pa.Table], Any]  # a mask of the records that have all values


def reads_of(name: str, *given: str | None) -> list[str]:
    """Claim a model, and what may be data sets."""
    return [*locking.models([name]), *locking.datasets(each for each in given if each)]


@contextmanager
def subject(
    context: Context, name: str, ask: AskCommand | None, *given: str | None
) -> Iterator[Subject]:
    """Read a model, and the records that it has learned from; hold the files of a program."""
    if ask is None:
        with context.lock(reads=reads_of(name, *given)):
            found = _estimator(context, name)
        yield found
        return
    with context.scratch() as folder:
        with context.lock(reads=reads_of(name, *given)):
            found = _program(context, name, ask, folder)
        yield found


def _estimator(context: Context, name: str) -> Subject:
    with context.ledger.reading() as connection:
        ledger_checks.check(context, connection)
    model, version, stored = open_model(context, name)
    design = design_of(model)
    fitted: Any = None if design is None else from_bytes(stored)
    reason = unfit(design, fitted)
    if design is None:
        raise WorkspaceError(
            f"the model {name!r} cannot be audited: {reason}; expected the command that asks it, "
            "--ask 'CMD {model} {data} {out}', and --target COLUMN"
        )
    if reason is not None:
        raise WorkspaceError(
            f"the model {name!r} cannot be audited: {reason}; expected a classifier or regressor "
            "that was fitted here; audit others with `erasable.audit` in Python"
        )
    tables = Reader(context).tables(model.datasets, version.dataset_versions, design)
    target = str(design.target)

    def split(known: DataSet, table: pa.Table) -> tuple[Any, Any]:
        return design.given(table), np.asarray(target_of([(known, table)], target))

    known, table = tables[0][0], joined_table(tables)
    return Subject(
        name, model, version, fitted, None, tuple(each for each, _ in tables),
        (*design.features, target), (*split(known, table), _ids(known, table)), split,
        lambda table: design.complete(table, fitted),
    )  # fmt: skip


def _program(context: Context, name: str, ask: AskCommand, folder: Path) -> Subject:
    with context.ledger.reading() as connection:
        ledger_checks.check(context, connection)
    model, version, stored = open_model(context, name)
    if design_of(model) is not None:
        raise InvalidParameterError(
            f"a command that asks {name!r} was given, which is an estimator; expected none"
        )
    if "{model}" not in ask.command:
        raise InvalidParameterError(
            f"the command is {shorten(ask.command)}; expected {{model}} in it, the file of the "
            "model"
        )
    recipe = ledger_checks.recorded(context, name, model.recipe, "recipe")
    tables = Reader(context).tables(model.datasets, version.dataset_versions)
    known, table = tables[0][0], joined_table(tables)
    target = ask.target
    if target not in table.column_names:
        raise WorkspaceError(
            f"there is no column {target!r} in the data of {name!r}; expected one of "
            f"{name_some(table.column_names)}"
        )
    classes = sorted(set(table[target].to_pylist()) - {None})
    numbers = itertools.count()

    def asked(made: bytes) -> BlackBox:
        own = f"model-{next(numbers)}"
        Disk(folder).write(own, made)
        return BlackBox(ask.command, classes, model=folder / own)

    def trained(X: Any, y: Any, seed: int) -> BlackBox:  # a program draws its own seeds
        column = pa.array(y.tolist(), table.schema.field(target).type)
        whole = X.append_column(target, column).select(table.column_names)
        made = train(context, Trusted(recipe.value), [(known, whole)], None, _no_records)
        return asked(made.data)

    def split(_: DataSet, part: pa.Table) -> tuple[Any, Any]:
        return part.drop_columns([target]), np.asarray(part[target].to_pylist())

    def complete(part: pa.Table) -> Any:
        return part[target].is_valid().to_numpy()

    rows = table.filter(pa.array(complete(table)))
    return Subject(
        name, model, version, asked(stored), trained, tuple(each for each, _ in tables),
        tuple(table.column_names), (*split(known, rows), _ids(known, rows)), split, complete,
    )  # fmt: skip


def _no_records(*_: Any) -> Any:
    raise AssertionError("a program learns from tables")


def _ids(known: DataSet, table: pa.Table) -> list[Any]:
    if known.id_column in table.column_names:
        return list(table[known.id_column].to_pylist())
    return list(range(table.num_rows))


def given(
    context: Context, subject: Subject, source: str, what: str
) -> tuple[tuple[Any, Any, Any], list[str]]:
    """Read records from a data set that the model has not learned from, or from a source.

    Return them as (X, y, ids), and notes for the readers of the report.
    """
    known, wanted = subject.datasets[0], list(subject.columns)
    with context.ledger.reading() as connection:
        named = {each.name: each for each in data.all_datasets(connection)}
    found = named.get(source)
    if found is None:
        table = read_source(source, known, wanted, subject.name)
    else:
        if found.id in subject.model.datasets:
            raise WorkspaceError(
                f"the {what} are {source!r} itself, which {subject.name!r} has learned from; "
                "expected others"
            )
        missing = [each for each in wanted if each not in dict(found.columns)]
        if missing:
            raise WorkspaceError(
                f"the data set {source!r} lacks the columns {name_some(missing)}; expected all "
                f"that {subject.name!r} learned from"
            )
        table = Reader(context).tables([found.id])[0][1]
    usable = subject.complete(table)
    notes = []
    if not usable.all():
        n = int((~usable).sum())
        notes.append(f"{n:,} of the {what} have missing values, and were left out")
    if not usable.any():
        raise WorkspaceError(
            f"all of the {usable.size:,} {what} miss values that {subject.name!r} needs; "
            "expected complete records"
        )
    table = table.filter(pa.array(usable))
    values = as_in(table.select(wanted), known)
    return (*subject.split(known, values), _ids(known, table)), notes
