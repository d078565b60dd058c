"""Features that workers of a cluster read from the store, each the fragments that it keeps.

The law kept here: a model learns from the same numbers as here, and the ledger and the files of
models are not a cluster's. Ids and targets stay in this process.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from erasable.core.records import Records
from erasable.core.remote import Source, remote_table
from erasable.core.stored_table import Uses
from erasable.workspace.context import Context
from erasable.workspace.data import fragments
from erasable.workspace.data.catalogue import DataSet, Part
from erasable.workspace.data.features import NUMBERS
from erasable.workspace.store.artifacts import Stored
from erasable.workspace.store.disk import Disk
from erasable.workspace.store.location import Location
from erasable.workspace.store.objects import store_at


@dataclass(frozen=True)
class StoredFragment(Source):
    """A fragment, as a worker reads it from the store of a workspace.

    Attributes
    ----------
    root : str
        Of the workspace, which a worker needs where the store is a folder in it.
    location : Location or None
        Of the object store.
    stored : Stored
    schema : pyarrow.Schema
        Names of the columns, and the types that they have in the data set.
    """

    root: str
    location: Location | None
    stored: Stored
    schema: pa.Schema

    def table(self) -> pa.Table:
        """Read it, held against its hash; numbers become what they are in records."""
        store = store_at(Path(self.root), self.location)
        found = fragments.read_from(store, self.stored, self.schema.names).cast(self.schema)
        numbers = pa.schema([(name, pa.float64()) for name in self.schema.names])
        return found.cast(numbers, safe=False)


def goes_to_workers(
    context: Context,
    found: Sequence[tuple[DataSet, Sequence[Part]]],
    features: Sequence[str],
    reads_remote_blocks: bool,
) -> bool:
    """Tell whether a model learns on a cluster: by passes over numbers, where there is one."""
    kinds = {dict(known.columns).get(name, "") for known, _ in found for name in features}
    return context.workers is not None and reads_remote_blocks and kinds <= set(NUMBERS)


def on_workers_of(
    context: Context, found: Sequence[tuple[DataSet, Sequence[Part]]], features: Sequence[str]
) -> Records:
    """Have workers read and keep the features of the records of some versions.

    The records are in the order of `catalogue.table`, and have neither ids nor targets.
    """
    assert context.workers is not None
    location = Location.read(Disk(context.root, private=True))
    sources = [
        StoredFragment(
            str(context.root), location, Stored(part.key, part.sha256),
            pa.schema([known.schema.field(name) for name in features]),
        )
        for known, parts in found
        for part in parts
    ]  # fmt: skip
    uses = Uses(None, None, None, None, list(features))
    return Records.from_table(remote_table(context.workers, sources, uses))
