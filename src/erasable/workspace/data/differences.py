"""Differences of two versions of a data set: records that came, went, or have other values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from erasable.workspace.context import Context
from erasable.workspace.data import fragments
from erasable.workspace.data.arrays import array_rows
from erasable.workspace.data.catalogue import DataSet, FragmentRow


@dataclass(frozen=True, slots=True)
class VersionDifference:
    """The change from one version to another."""

    gone: list[Any]  # ids of records that are not there any more, or have other values
    come: pa.Table  # records that are new, or have other values now

    @property
    def is_nothing(self) -> bool:
        """Whether both versions hold the same."""
        return not self.gone and not self.come.num_rows


def difference(
    context: Context,
    known: DataSet,
    before: Sequence[FragmentRow],
    after: Sequence[FragmentRow],
    columns: Sequence[str],
) -> VersionDifference:
    """Compare two versions of a data set, by some columns; read only fragments of one of them.

    `known` has the types of the later version; `columns` includes the id.
    """
    schema = pa.schema([known.schema.field(name) for name in columns])
    keys = {part.key for part in before} & {part.key for part in after}
    old, new = (
        pa.concat_tables(
            [
                schema.empty_table(),
                *(_read(context, part, schema) for part in each if part.key not in keys),
            ]
        ).sort_by(known.id_column)
        for each in (before, after)
    )
    stays = pc.is_in(old[known.id_column], new[known.id_column])
    stayed = pc.is_in(new[known.id_column], old[known.id_column])
    same = same_rows(old.filter(stays), new.filter(stayed)).to_numpy()
    leaves, comes = ~stays.to_numpy(), ~stayed.to_numpy()
    leaves[~leaves], comes[~comes] = ~same, ~same
    gone = old[known.id_column].filter(pa.array(leaves)).to_pylist()
    return VersionDifference(gone, new.filter(pa.array(comes)))


def _read(context: Context, part: FragmentRow, schema: pa.Schema) -> pa.Table:
    read = fragments.read(context, part.key, part.sha256, schema.names)
    return read if read.schema.equals(schema) else read.cast(schema)


def same_rows(left: pa.Table, right: pa.Table) -> pa.ChunkedArray:
    """Tell which rows of two tables of the same types are alike; gaps are, and NaN."""
    same = None
    for a, b in zip(left.columns, right.columns, strict=True):
        if pa.types.is_nested(a.type):
            alike = array_rows(a).view(np.int64) == array_rows(b).view(np.int64)
            equal = pa.chunked_array([alike.all(axis=1)])
            same = equal if same is None else pc.and_(same, equal)
            continue
        equal = pc.or_(pc.fill_null(pc.equal(a, b), False), pc.and_(pc.is_null(a), pc.is_null(b)))
        if pa.types.is_floating(a.type):
            nans = pc.and_(pc.is_nan(a), pc.is_nan(b))
            equal = pc.or_(equal, pc.fill_null(nans, False))
        same = equal if same is None else pc.and_(same, equal)
    assert same is not None
    return same
