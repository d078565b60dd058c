"""Data for models: read once for all models of a batch that learn from the same.

The law kept here: what a reader returns belongs to its caller. It is read from the files of one
moment, which are immutable, and dropped with the batch.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from sklearn.base import BaseEstimator
from sqlalchemy import Connection

from erasable.core.errors import WorkspaceError
from erasable.core.inputs import RecordArrays
from erasable.core.records import Records
from erasable.core.remote import BlockSource, remote_table
from erasable.core.stored_table import StoredColumns, Uses, kinds_of
from erasable.core.targets import read_target
from erasable.workspace.context import Context
from erasable.workspace.data import fragments
from erasable.workspace.data.arrays import width
from erasable.workspace.data.catalogue import DataSet, FragmentRow
from erasable.workspace.data.catalogue import read_fragments as read_parts
from erasable.workspace.data.features import NUMBERS
from erasable.workspace.data.prepared_versions import Ahead
from erasable.workspace.models.model_columns import ModelColumns, Tables, ids_and_groups, target_of
from erasable.workspace.store.artifacts import StoredArtifact
from erasable.workspace.store.disk import Disk
from erasable.workspace.store.location import Location
from erasable.workspace.store.objects import store_at


@dataclass(frozen=True)
class StoredFragment(BlockSource):
    """A fragment, as a worker reads it from the store of a workspace."""

    root: str  # of the workspace, for a store in its folder
    location: Location | None  # of the object store
    stored: StoredArtifact
    schema: pa.Schema  # of the data set

    def table(self) -> pa.Table:
        """Read it, held against its hash; numbers become what they are in records."""
        store = store_at(Path(self.root), self.location)
        found = fragments.read_from(store, self.stored, self.schema.names).cast(self.schema)
        numbers = pa.schema([(name, pa.float64()) for name in self.schema.names])
        return found.cast(numbers, safe=False)


def goes_to_workers(
    context: Context,
    found: Sequence[tuple[DataSet, Sequence[FragmentRow]]],
    features: Sequence[str],
    reads_remote_blocks: bool,
) -> bool:
    """Tell whether a model learns on a cluster: by passes over numbers, where there is one."""
    kinds = {dict(known.columns).get(name, "") for known, _ in found for name in features}
    return context.workers is not None and reads_remote_blocks and kinds <= set(NUMBERS)


def read_on_workers(
    context: Context,
    found: Sequence[tuple[DataSet, Sequence[FragmentRow]]],
    features: Sequence[str],
) -> Records:
    """Have workers read and keep the features of the records of some versions.

    The records are in the order of `catalogue.read_version`, and have neither ids nor targets.
    """
    assert context.workers is not None
    location = Location.read(Disk(context.root, private=True))
    sources = [
        StoredFragment(
            str(context.root), location, StoredArtifact(part.key, part.sha256),
            pa.schema([known.schema.field(name) for name in features]),
        )
        for known, parts in found
        for part in parts
    ]  # fmt: skip
    uses = Uses(None, None, None, None, list(features))
    return Records.from_table(remote_table(context.workers, sources, uses))


_IN_MEMORY, _IN_A_BLOCK = 24, 16  # bytes of a value: as tables have it, and records, and between


class Fragment(NamedTuple):
    """A fragment of a data set, as `erasable.core.parquet.Piece`."""

    context: Context
    held: Mapping[str, pa.Table]
    schema: pa.Schema
    part: FragmentRow

    @property
    def lasting(self) -> bool:
        """Whether a model's files may refer to it: the next erasure writes another."""
        return False

    @property
    def n_rows(self) -> int:
        """How many records."""
        return self.part.n_records

    def check(self) -> None:
        """Do nothing: it cannot change, and is held against its hash when it is read."""

    def bounds(self, columns: Sequence[str]) -> None:
        """Return None: a fragment says nothing of its values."""

    def read(self, columns: Sequence[str]) -> pa.Table:
        """Read some columns, as the data set has them by now."""
        part, schema = self.part, pa.schema([self.schema.field(name) for name in columns])
        if part.key in self.held:
            return self.held[part.key].select(schema.names).cast(schema)
        found = fragments.read(self.context, part.key, part.sha256, schema.names)
        return found.cast(schema)


def features_of(
    context: Context,
    found: Sequence[tuple[DataSet, Sequence[FragmentRow]]],
    held: Mapping[str, pa.Table] | None,
    features: Sequence[str],
) -> StoredColumns:
    """Return the features of the records of some versions, in the order of `read_version`."""
    pieces = [
        Fragment(context, held or {}, known.schema, part)
        for known, parts in found
        for part in parts
    ]
    told = [kinds_of(known.schema, features) for known, _ in found]
    kinds = "".join("i" if "i" in each else each[0] for each in zip(*told, strict=True))
    return StoredColumns(pieces, features, float, kinds)


def are_too_many(
    context: Context,
    found: Sequence[tuple[DataSet, Sequence[FragmentRow]]],
    features: Sequence[str],
    reads_blocks: bool,
) -> bool:
    """Tell whether the features of records need more memory than allowed.

    Refuse this if they have to be in memory, or if a single fragment needs more.
    """
    sizes = [part.n_records for _, parts in found for part in parts]
    kinds = [dict(known.columns).get(name, "") for known, _ in found for name in features]
    arrays = [width(kind) for kind in kinds]
    d, limit = sum(n or 1 for n in arrays[: len(features)]), context.memory
    if sum(sizes) * d * _IN_MEMORY <= (half_of_memory() if limit is None else limit):
        return False
    if not any(arrays) and not set(kinds) <= set(NUMBERS):
        return False
    if any(arrays) or not reads_blocks:
        if limit is None:
            return False
        raise WorkspaceError(
            f"{sum(sizes)} records of {d} features take about {sum(sizes) * d * _IN_MEMORY} bytes, "
            f"and this model learns from records in memory; expected at most --memory {limit}"
        )
    largest = max(sizes) * d * _IN_A_BLOCK
    if limit is not None and largest > limit:
        raise WorkspaceError(
            f"a fragment of {max(sizes)} records takes {largest} bytes while it is read; expected "
            f"at most --memory {limit}; give {largest} or more"
        )
    return True


def half_of_memory() -> int:
    """Return half of the bytes of memory that the machine has."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2
    except (AttributeError, OSError, ValueError):  # not on every system
        return 2**62


class Reader:
    """A reader of data sets, which keeps what the next model may need.

    It keeps the columns of one list of data sets, with the ids, and the features of one model:
    those that were read last. `held` has fragments that the batch has read already; with `ahead`,
    data sets are read as they will be.
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
        self._found: list[tuple[DataSet, list[FragmentRow]]] = []
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
            self._named = ids_and_groups(self._tables)
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
            return read_on_workers(self._site, self._found, features)
        matrix = features_of(self._site, self._found, self._held, features)
        ids = np.arange(matrix.shape[0])
        return Records.from_table(RecordArrays(matrix, None, ids, None, feature_names=features))
