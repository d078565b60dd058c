"""Fresh records, to judge a removal by: those of another source that no model was trained on.

The law kept here: no record of the data set is fresh, because its models were trained on all of it;
nor is a record that equals one of the data set.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

import erasable.workspace.locking as locking
from erasable.core.errors import NotInWorkspaceError, SourceError, WorkspaceError
from erasable.core.ids import name_some
from erasable.workspace.context import Context
from erasable.workspace.data import catalogue
from erasable.workspace.data.admission import plain_columns
from erasable.workspace.data.catalogue import DataSet
from erasable.workspace.data.column_types import ColumnTypes
from erasable.workspace.data.sources import Source
from erasable.workspace.domains.predicates import Predicate


def sample_rows(ids: Sequence[Any], rows: Any, n: int, seed: int) -> Any:
    """Draw `n` of `rows` by their ids: the same records, whatever the order and the other rows.

    `ids` are those of all rows; `rows` and the result are int64, and the result is ascending. If
    there are no more than `n`, all are returned.

    >>> sample_rows(["a", "b", "c", "d"], np.array([0, 1, 3]), 2, 0)
    array([1, 3])
    """
    if rows.size <= n:
        return rows
    marks = [hashlib.sha256(f"{seed}/{ids[row]}".encode()).digest() for row in rows]
    return np.sort(rows[sorted(range(len(marks)), key=marks.__getitem__)[:n]])


def alike(tables: Sequence[pa.Table], columns: Sequence[str]) -> list[Any]:
    """Return int64 numbers of the records of tables: equal numbers where all columns are equal.

    >>> import pyarrow as pa
    >>> first, second = pa.table({"a": [1, 2, 1]}), pa.table({"a": [2, 3]})
    >>> one, other = alike([first, second], ["a"])
    >>> one[0] == one[2], other[0] == one[1], np.isin(other, one).tolist()
    (np.True_, np.True_, [True, False])
    """
    whole = pa.concat_tables([each.select(list(columns)) for each in tables])
    numbers = np.zeros(whole.num_rows, dtype=np.int64)
    for name in columns:
        coded = whole[name].combine_chunks().dictionary_encode(null_encoding="encode")
        if isinstance(coded, pa.ChunkedArray):
            coded = coded.unify_dictionaries().combine_chunks()
        codes = coded.indices.to_numpy().astype(np.int64)
        both = numbers * (int(codes.max(initial=0)) + 1) + codes
        numbers = np.unique(both, return_inverse=True)[1].reshape(-1)
    ends = np.cumsum([each.num_rows for each in tables])
    return np.split(numbers, ends[:-1])


@dataclass(frozen=True)
class Fresh:
    """Fresh records, without those that equal one of the data set that is judged."""

    table: pa.Table = field(repr=False)  # with the types of the data set that is judged
    forget: Any = field(repr=False)  # bool: whether a record is of the domain
    dataset_id: int | None  # if they are a data set: models trained on it are not judged by them
    n_left_out: int  # records that equal one of the data set

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
    """Read fresh records, without those that the data set `known`, with the records `table`, holds.

    `given` names a data set or a source.
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
            return catalogue.read_version(context, connection, named.id), named.id
        names = ", ".join(each.name for each in catalogue.all_datasets(connection))
    try:
        source = Source.parse(given)
    except SourceError as error:
        raise SourceError(f"{error}; or name a data set: {names}") from None
    return plain_columns(source.read(types=ColumnTypes.of(known, exact=True))), None


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
