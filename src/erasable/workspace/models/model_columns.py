"""Columns of data sets that models learn from, and the features, targets and ids made of them.

The law kept here: what a model learns from is a function of the records, not of their order or of
their fragments. Columns of a table that identify people are never features.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from sklearn.base import BaseEstimator
from sklearn.utils import get_tags

from erasable.core.errors import InvalidDataError, TooFewRecordsError, WorkspaceError
from erasable.core.estimator import Erasable
from erasable.core.ids import name_some
from erasable.core.records import Records
from erasable.workspace.data.arrays import expand_arrays, width
from erasable.workspace.data.catalogue import DataSet
from erasable.workspace.data.features import (
    NUMBERS,
    TEXT,
    check_columns,
    default_columns,
    is_time,
    refuse_gaps,
    times_as_numbers,
)

Tables: TypeAlias = "list[tuple[DataSet, pa.Table]]"
"""The records of data sets."""


def reads_blocks(estimator: BaseEstimator) -> tuple[bool, bool]:
    """Tell whether an estimator learns from features in files, and on a cluster."""
    if not isinstance(estimator, Erasable):
        return False, False
    return estimator._can_read_blocks(), estimator._can_read_blocks(remote=True)


@dataclass(frozen=True, slots=True)
class ModelColumns:
    """The columns that a model learns from."""

    features: tuple[str, ...]
    target: str | None
    documents: bool  # whether the one feature is text, and each value a document
    reads_blocks: bool = False  # whether it learns from features that are not all in memory
    reads_remote_blocks: bool = False  # whether it learns from features on a cluster

    @classmethod
    def choose(
        cls,
        datasets: Sequence[DataSet],
        estimator: BaseEstimator,
        features: Sequence[str] | None,
        target: str | None,
    ) -> ModelColumns:
        """Choose columns: those that are named, or every numeric one; or the one column of text."""
        types = _common_columns(datasets)
        wanted = [*(features or ()), *([] if target is None else [target])]
        secret = [name for name in wanted if name in identifying(datasets)]
        if secret:
            raise WorkspaceError(
                f"the columns {name_some(secret)} name records or people; expected columns to "
                "learn from"
            )
        times = [kind for kind in types.values() if is_time(kind)]
        check_columns(types, wanted, (*NUMBERS, TEXT, *times), arrays=True)
        check_columns(types, [] if target is None else [target], arrays=True)
        _check_arrays(datasets, types, list(features or ()), target)
        tags = get_tags(estimator)
        if tags.target_tags.required and target is None:
            raise WorkspaceError(
                f"{type(estimator).__name__} learns to predict a target, and none was named; "
                "expected the name of a column; pass --target"
            )
        documents = tags.input_tags.string and not tags.input_tags.two_d_array
        if documents and any(width(types[name]) for name in features or ()):
            raise WorkspaceError(
                f"{type(estimator).__name__} learns from texts, and arrays were named; expected a "
                "column of text"
            )
        by_blocks = reads_blocks(estimator)
        if features:
            return cls(tuple(features), target, documents, *by_blocks)
        taken = identifying(datasets) | {target}
        numbers = default_columns(types, taken, [TEXT] if documents else NUMBERS)
        categories = set(_named_categories(estimator)) - taken
        chosen = [name for name in types if name in numbers or name in categories]
        if not chosen or (documents and len(chosen) > 1):
            raise WorkspaceError(
                f"{len(chosen)} columns are {'text' if documents else 'numbers'}, beside ids, "
                f"subjects and the target; expected {'one' if documents else 'one or more'}; "
                "name the features with --features"
            )
        return cls(tuple(chosen), target, documents, *by_blocks)

    def columns(self, dataset: DataSet) -> list[str]:
        """Return the columns to read of a data set."""
        wanted = [dataset.id_column, *dataset.subject_columns[:1], *self.features]
        return wanted if self.target is None else [*wanted, self.target]

    def check(self, tables: Tables, estimator: BaseEstimator, *, stored: bool = False) -> None:
        """Refuse tables that the model cannot learn from: InvalidDataError, TooFewRecordsError.

        `stored` says that the features are stored elsewhere; their missing values are found when
        they are read.
        """
        if not sum(table.num_rows for _, table in tables):
            raise TooFewRecordsError(
                "there is no record to learn from; expected one or more; add data first"
            )
        names = self._without_gaps(estimator)
        if stored:
            names = [name for name in names if name == self.target]
        advice = "put preprocessing.SimpleImputer first, choose other features, or leave them out"
        refuse_gaps(stacked(tables, names), names, advice)

    def complete(self, table: pa.Table, estimator: BaseEstimator) -> Any:
        """Return a mask of the records without missing values that the model needs."""
        usable = np.ones(table.num_rows, dtype=bool)
        for name in self._without_gaps(estimator):
            usable &= ~pc.is_null(table[name], nan_is_null=True).to_numpy()
        return usable

    def _without_gaps(self, estimator: BaseEstimator) -> list[str]:
        labels = [] if self.target is None else [self.target]
        takes_gaps = get_tags(estimator).input_tags.allow_nan and not self.documents
        return labels if takes_gaps else [*self.features, *labels]

    def values(self, tables: Tables) -> Records:
        """Read the features alone; see `Records.twin`."""
        return Records(self._given(tables))

    def _given(self, tables: Tables) -> Any:
        return self.given(stacked(tables, self.features))

    def given(self, table: pa.Table) -> Any:
        """Return the input of a model: documents, or a table or matrix of features.

        Days and times become numbers.
        """
        if self.documents:
            return table[self.features[0]].cast(pa.string()).to_pylist()
        return expand_arrays(times_as_numbers(table.select(list(self.features))))


def ids_and_groups(tables: Tables) -> Records:
    """Read ids and groups alone; see `Records.twin`."""
    ids = names_of(tables)
    return Records(np.zeros((len(ids), 1)), ids=ids, groups=groups_of(tables))


def target_of(tables: Tables, target: str | None) -> Any:
    """Return the values of the target, None where there is none."""
    if target is None:
        return None
    column = stacked(tables, [target])[target]
    return column.to_pylist() if str(column.type) == TEXT else column.to_numpy()


def _named_categories(estimator: BaseEstimator) -> list[str]:
    """Return the names of columns that boosting takes as categories."""
    given = getattr(estimator, "categorical_features", None)
    cells = [] if given is None or isinstance(given, str) else list(given)
    return [cell for cell in cells if isinstance(cell, str)]


def without_label(tables: Tables, target: str | None) -> list[tuple[DataSet, Any]]:
    """Return the records whose target is text and empty, by data set and id."""
    found = []
    for known, table in tables:
        if target is not None and str(table[target].type) == TEXT:
            empty = pc.equal(pc.utf8_trim_whitespace(table[target]), "")
            names = table[known.id_column].filter(empty, null_selection_behavior="drop")
            found += [(known, name) for name in names.to_pylist()]
    return found


def refuse_empty_targets(tables: Tables, target: str | None) -> None:
    """Raise InvalidDataError where a target of text is empty: no class of that name is meant."""
    if found := without_label(tables, target):
        known, name = found[0]
        raise InvalidDataError(
            f"{len(found)} of {sum(table.num_rows for _, table in tables)} records have an empty "
            f"target, in {target!r}, first {name!r} of {known.name!r}; expected a class; give them "
            f"one in the source, or with `erasable correct {known.name} {name} --set "
            f"{target}=CLASS` and `erasable process`, or leave them out of the data set"
        )


def ids_of(datasets: Sequence[DataSet], gone: Mapping[int, Iterable[Any]]) -> list[int | str]:
    """Return the ids that records have in a model, from ids by data set.

    >>> from erasable.workspace.data.catalogue import DataSet
    >>> made = [DataSet(i, n, {}, "id", (), (), 1, 1, None) for i, n in ((1, "a"), (2, "b"))]
    >>> ids_of(made[:1], {1: [17]}), ids_of(made, {1: [17], 2: ["x"]})
    ([17], ['a/17', 'b/x'])
    """
    several = len(datasets) > 1
    return [
        f"{known.name}/{name}" if several else name
        for known in datasets
        for name in gone.get(known.id, ())
    ]


def without_records(
    tables: Tables, gone: Mapping[int, Iterable[Any]]
) -> list[tuple[DataSet, pa.Table]]:
    """Return tables without the records that are to be erased."""
    left = []
    for known, table in tables:
        ids = list(gone.get(known.id, ()))
        if ids:
            column = table[known.id_column]
            leaves = pc.is_in(column, pa.array(ids, column.type))
            table = table.filter(pc.invert(leaves))
        left.append((known, table))
    return left


def joined_table(tables: Tables) -> pa.Table:
    """Make one table, sorted by ids, for a program of the user.

    Several data sets must have the same columns; their ids are prefixed by their names.
    """
    several = len(tables) > 1
    parts = []
    for known, table in tables:
        if several:
            place = table.column_names.index(known.id_column)
            ids = [f"{known.name}/{name}" for name in table[known.id_column].to_pylist()]
            table = table.set_column(place, tables[0][0].id_column, pa.array(ids, pa.string()))
        parts.append(table)
    return pa.concat_tables(parts, promote_options="permissive").sort_by(tables[0][0].id_column)


def names_of(tables: Tables) -> Any:
    """Return the ids that the records of tables have in a model."""
    if len(tables) == 1:
        known, table = tables[0]
        ids = table[known.id_column]
        return ids.to_numpy() if pa.types.is_integer(ids.type) else ids.to_pylist()
    return ids_of(
        [known for known, _ in tables],
        {known.id: table[known.id_column].to_pylist() for known, table in tables},
    )


def groups_of(tables: Tables) -> list[str] | None:
    """Return the group that each record leaves with; None if no data set has subjects."""
    if not any(known.subjects for known, _ in tables):
        return None
    ids, groups = names_of(tables), list[str | None]()
    for known, table in tables:
        subject = known.subject_columns[:1]
        groups += table[subject[0]].to_pylist() if subject else [None] * table.num_rows
    # A record without a subject is a group of its own.
    return [
        f"record {name}" if group is None else group
        for name, group in zip(ids, groups, strict=True)
    ]


def stacked(tables: Tables, columns: Sequence[str]) -> pa.Table:
    """Return some columns of all tables, one below the other."""
    parts = [table.select(list(columns)) for _, table in tables]
    return pa.concat_tables(parts, promote_options="permissive")


def _common_columns(datasets: Sequence[DataSet]) -> dict[str, str]:
    types = dict(datasets[0].columns)
    for other in datasets[1:]:
        missing = [name for name in types if name not in dict(other.columns)]
        added = [name for name, _ in other.columns if name not in types]
        ids = {datasets[0].id_column, *datasets[0].subject_columns}
        if set(missing) - ids or set(added) - {other.id_column, *other.subject_columns}:
            raise WorkspaceError(
                f"the data sets {datasets[0].name!r} and {other.name!r} differ in the columns "
                f"{name_some(sorted({*missing, *added}))}; expected the same"
            )
    return types


def _check_arrays(
    datasets: Sequence[DataSet], types: Mapping[str, str], features: Sequence[str], target: Any
) -> None:
    arrays = [name for name in features if width(types[name])]
    if target is not None and width(types[target]):
        raise WorkspaceError(
            f"the target {target!r} holds arrays; expected a number or a text for each record"
        )
    if arrays and TEXT in {types[name] for name in features}:
        raise WorkspaceError(
            f"arrays in {name_some(arrays)} were named beside text; expected arrays and numbers, "
            "or text; have two models learn from them"
        )
    for other in datasets[1:]:
        differ = [name for name in arrays if dict(other.columns)[name] != types[name]]
        if differ:
            raise WorkspaceError(
                f"the data sets {datasets[0].name!r} and {other.name!r} have arrays of other "
                f"sizes in {name_some(differ)}; expected the same"
            )


def identifying(datasets: Sequence[DataSet]) -> set[str | None]:
    """Return the columns that name records and people."""
    return {name for each in datasets for name in (each.id_column, *each.subject_columns)}
