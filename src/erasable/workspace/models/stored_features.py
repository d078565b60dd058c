"""Features that stay in the fragments of data sets, where they are more than memory is to hold."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import pyarrow as pa

from erasable.core.errors import WorkspaceError
from erasable.core.stored_columns import StoredColumns, kinds_of
from erasable.workspace.context import Context
from erasable.workspace.data import fragments
from erasable.workspace.data.arrays import width
from erasable.workspace.data.catalogue import DataSet, Part
from erasable.workspace.data.features import NUMBERS

_IN_MEMORY, _IN_A_BLOCK = 24, 16  # bytes of a value: as tables have it, and records, and between


class Fragment(NamedTuple):
    """A fragment of a data set, as `erasable.core.parquet.Piece`."""

    context: Context
    held: Mapping[str, pa.Table]
    schema: pa.Schema
    part: Part

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
    found: Sequence[tuple[DataSet, Sequence[Part]]],
    held: Mapping[str, pa.Table] | None,
    features: Sequence[str],
) -> StoredColumns:
    """Return the features of the records of some versions, in the order of `catalogue.table`."""
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
    found: Sequence[tuple[DataSet, Sequence[Part]]],
    features: Sequence[str],
    reads_blocks: bool,
) -> bool:
    """Tell whether the features of records are more than memory is to hold.

    Refuse more than the user allows where they have to be in memory, and a single fragment that is
    more.
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
