"""Read data for models: once for all models of a batch, as far as they learn from the same.

The law kept here: what a reader hands out is its caller's alone. It is filled from the files of
one moment, which are immutable, and dropped with the batch.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
from sklearn.base import BaseEstimator
from sqlalchemy import Connection

from erasable.core.inputs import Table
from erasable.core.records import Records
from erasable.core.targets import read_target
from erasable.workspace.context import Context
from erasable.workspace.data.ahead import Ahead
from erasable.workspace.data.catalogue import DataSet, Part
from erasable.workspace.data.catalogue import read as read_parts
from erasable.workspace.models.model_columns import ModelColumns, Tables, named, target_of
from erasable.workspace.models.remote_features import goes_to_workers, on_workers_of
from erasable.workspace.models.stored_features import are_too_many, features_of


class Reader:
    """Reads data sets, and keeps what the next model may ask for.

    Parameters
    ----------
    context : Context
    held : dict of key to pyarrow.Table, default=None
        Fragments that the batch has read already.
    ahead : Ahead, default=None
        By default data sets are read as they are.

    Notes
    -----
    It keeps in memory the columns of one list of data sets, with the ids, and the features of one
    model: those that were asked for last.
    """

    def __init__(
        self,
        context: Context,
        held: Mapping[str, pa.Table] | None = None,
        ahead: Ahead | None = None,
    ) -> None:
        self._site = context
        self._held = held
        self._ahead = ahead or Ahead()
        self._of: Any = None
        self._found: list[tuple[DataSet, list[Part]]] = []
        self._tables: Tables = []
        self._features: Any = None
        self._named: Records | None = None  # whose ids and groups are read
        self._values: Records | None = None

    def described(self, connection: Connection, dataset_id: int) -> DataSet:
        """Return a data set as it is in its newest version."""
        return self._ahead.get(connection, dataset_id)

    def to_learn_from(
        self,
        datasets: Sequence[int],
        versions: Sequence[int] | None = None,
        design: ModelColumns | None = None,
    ) -> Tables:
        """Read data sets as `tables` does, without features that are too many for memory."""
        if design is not None and design.features:
            with self._site.ledger.reading() as connection:
                numbers = [None] * len(datasets) if versions is None else [*versions]
                found = [
                    self._ahead.get(connection, each, number)
                    for each, number in zip(datasets, numbers, strict=True)
                ]
                self._found = [(known, self._ahead.parts_of(connection, known)) for known in found]
            if goes_to_workers(
                self._site, self._found, design.features, design.reads_remote_blocks
            ) or are_too_many(self._site, self._found, design.features, design.reads_blocks):
                design = replace(design, features=())
        return self.tables(datasets, versions, design)

    def tables(
        self,
        datasets: Sequence[int],
        versions: Sequence[int] | None = None,
        design: ModelColumns | None = None,
    ) -> Tables:
        """Read versions of data sets, by default the newest; `design` limits the columns."""
        with self._site.ledger.reading() as connection:
            described = [self._ahead.get(connection, each) for each in datasets]
            numbers = tuple([each.version for each in described] if versions is None else versions)
            key = (tuple(datasets), numbers)
            if key != self._of:
                self._of, self._named, self._values = key, None, None
                self._tables = [(known, None) for known in described]
            for place, (known, read) in enumerate(self._tables):
                wanted = (
                    [name for name, _ in known.columns] if design is None else design.columns(known)
                )
                missing = [name for name in wanted if read is None or name not in read.column_names]
                if missing:
                    as_read = self._ahead.get(connection, known.id, numbers[place])
                    parts = self._ahead.parts_of(connection, as_read)
                    found = read_parts(self._site, as_read, parts, missing, self._held)
                    for name in [] if read is None else read.column_names:
                        found = found.append_column(name, read[name])
                    self._tables[place] = (known, found)
        return [
            (known, read.select([name for name, _ in known.columns if name in read.column_names]))
            if design is None
            else (known, read.select(design.columns(known)))
            for known, read in self._tables
        ]

    def records(self, design: ModelColumns, estimator: BaseEstimator) -> Records:
        """Make records of the tables that were read last, for one model alone."""
        read = set(self._tables[0][1].column_names)
        stored = not set(design.features) <= read
        design.check(self._tables, estimator, stored=stored)
        key = (design.features, design.documents, stored)
        if self._named is None:
            self._named = named(self._tables)
        on_workers = stored and self._site.workers is not None  # where two models share nothing
        if self._values is None or self._features != key or on_workers:
            self._values, self._features = self._read(design, stored), key
        labels = target_of(self._tables, design.target)
        target = None if labels is None else read_target(labels, self._named.n_rows)
        return self._named.twin(self._values, target)

    def _read(self, design: ModelColumns, stored: bool) -> Records:
        if not stored:
            return design.values(self._tables)
        features = list(design.features)
        if self._site.workers is not None:
            return on_workers_of(self._site, self._found, features)
        matrix = features_of(self._site, self._found, self._held, features)
        ids = np.arange(matrix.shape[0])
        return Records.from_table(Table(matrix, None, ids, None, feature_names=features))
