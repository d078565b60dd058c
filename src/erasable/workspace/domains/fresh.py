"""Records to judge a removal by that no model was trained on: from elsewhere, or none.

The law kept here: no record of the data set is fresh, whatever share of it is held out of a choice,
because its models were trained on all of it; nor is one that equals a record of it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from erasable.core.errors import NotInWorkspaceError, SourceError, WorkspaceError
from erasable.core.ids import name_some
from erasable.workspace import locking
from erasable.workspace.context import Context
from erasable.workspace.data import catalogue
from erasable.workspace.data.admission import plain
from erasable.workspace.data.catalogue import DataSet
from erasable.workspace.data.column_types import ColumnTypes
from erasable.workspace.data.sources import Source
from erasable.workspace.domains.predicates import Predicate
from erasable.workspace.domains.samples import alike


@dataclass(frozen=True)
class Fresh:
    """Fresh records.

    Attributes
    ----------
    table : pyarrow.Table
        Those that are fresh, with the types of the data set that is judged.
    forget : ndarray of bool
        Which of them are of the domain.
    dataset_id : int or None
        Where they are a data set of the workspace; models that were trained on it are not judged
        by them.
    n_left_out : int
        Records that equal one of the data set that is judged.
    """

    table: pa.Table = field(repr=False)
    forget: Any = field(repr=False)
    dataset_id: int | None
    n_left_out: int

    @property
    def n_forget(self) -> int:
        """Fresh records of the domain."""
        return int(self.forget.sum())

    @property
    def n_retain(self) -> int:
        """The others."""
        return int(self.forget.size - self.forget.sum())


def read_fresh(
    context: Context, given: str, known: DataSet, table: pa.Table, predicate: Predicate
) -> Fresh:
    """Read fresh records, and leave out those that the data set holds.

    `given` names a data set or a source; `known` is the data set that is judged, and `table` has
    its records.
    """
    found, dataset_id = _read(context, given, known)
    own = {known.id_column, *known.subject_columns}
    wanted = [name for name, _ in known.columns if name not in own]
    missing = [name for name in wanted if name not in found.column_names]
    if missing:
        raise WorkspaceError(
            f"the fresh records lack the columns {name_some(missing)}; expected those of "
            f"{known.name!r}; add them, or name other records with --fresh"
        )
    found = as_in(found.select(wanted), known)
    before, here = alike([table, found], wanted)
    copied = np.isin(here, before)
    if copied.all():
        raise WorkspaceError(
            f"all of the {copied.size} fresh records equal one of {known.name!r}, which models "
            "were trained on; expected others; name those with --fresh, or leave it out"
        )
    left = found.take(np.flatnonzero(~copied))
    return Fresh(left, predicate.mask(left), dataset_id, int(copied.sum()))


def _read(context: Context, given: str, known: DataSet) -> tuple[pa.Table, int | None]:
    with context.lock(reads=locking.datasets([given])), context.ledger.reading() as connection:
        try:
            named = catalogue.find(connection, given)
        except NotInWorkspaceError:
            named = None
        if named is not None:
            if named.id == known.id:
                raise WorkspaceError(
                    f"the fresh records are {known.name!r} itself, which models were trained on; "
                    "expected others; name those with --fresh, or leave it out"
                )
            return catalogue.table(context, connection, named.id), named.id
        names = ", ".join(each.name for each in catalogue.every(connection))
    try:
        source = Source.parse(given)
    except SourceError as error:
        raise SourceError(f"{error}; or name a data set: {names}") from None
    return plain(source.read(types=ColumnTypes.of(known, exact=True))), None


def as_in(found: pa.Table, known: DataSet) -> pa.Table:
    """Give columns the types that they have in a data set; refuse values of other types."""
    found = ColumnTypes.of(known, exact=True).read(found)
    for name, column in zip(found.column_names, found.columns, strict=True):
        wanted = known.schema.field(name).type
        if column.type != wanted:
            raise SourceError(
                f"column {name!r} holds {column.type}; expected {wanted}, as in {known.name!r}"
            )
    return found
