"""Updates of models with new or corrected records, without learning again of all records.

The law kept here: the result is the model that its recipe makes of the records as they are then.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from erasable.core.errors import ErasableError, TooFewRecordsError
from erasable.core.estimator import Erasable
from erasable.workspace.data.catalogue import DataSet
from erasable.workspace.ledger.treatments import UPDATED, Treatment
from erasable.workspace.models.model_columns import (
    ModelColumns,
    Tables,
    groups_of,
    ids_of,
    names_of,
    stacked,
    target_of,
    without_label,
)
from erasable.workspace.models.reading import Reader


@dataclass(frozen=True, slots=True)
class Arriving:
    """Records that a model is to learn."""

    reader: Reader  # of data sets as they will be
    versions: Sequence[int]  # of the data sets, afterwards
    # by data set: records that the model does not have, or no longer
    come: Mapping[int, pa.Table] = field(default_factory=dict)
    # by data set: records with other values
    corrected: Mapping[int, pa.Table] = field(default_factory=dict)
    treatment: Treatment = UPDATED  # if the model need not learn again

    @property
    def n_come(self) -> int:
        """Records that the model does not have."""
        return sum(len(each) for each in self.come.values())

    @property
    def n_records(self) -> int:
        """Records to learn of."""
        return self.n_come + sum(len(each) for each in self.corrected.values())


def may_follow(estimator: Erasable) -> bool:
    """Tell whether an estimator can learn further records, as far as its class tells."""
    return estimator._adds


def carry_over(
    loaded: Erasable,
    known: Sequence[DataSet],
    design: ModelColumns,
    gone: Mapping[int, Iterable[Any]],
    arriving: Arriving,
) -> bool:
    """Have a model learn what comes and forget what goes; nobody else may hold its records.

    `loaded` has its records, and is changed in place; `gone` maps data sets to ids. Return False if
    the model has to learn again: then `loaded` is of no use. Raise TooFewRecordsError if too few
    records would remain.
    """
    follows = loaded._adds and (loaded._adds_stored or not loaded._attached().records.is_stored)
    if arriving.n_records and not follows:
        return False
    wrong = {each.id: _ids_in(arriving.corrected, each) for each in known}
    leaving = [*ids_of(known, gone), *ids_of(known, wrong)]
    come = _tables(known, design, arriving)
    if without_label(come, design.target):  # which is refused where it learns again
        return False
    names, X, y, groups = _given(design, come)
    try:
        # What leaves goes first, so that what comes takes its place: together, it would come at the
        # end, and all that is kept of each record be copied to be longer.
        if leaving and not _let_go(loaded, leaving, anyway=not arriving.n_records):
            loaded.replace(leaving, X, y, ids=names, groups=groups, digest=False)
        elif arriving.n_records:
            loaded.add(X, y, ids=names, groups=groups, digest=False)
    except TooFewRecordsError:
        raise
    except ErasableError:  # what a fit says of the records is said better
        return False
    return True


def _let_go(loaded: Erasable, leaving: list[Any], *, anyway: bool) -> bool:
    """Delete records; return False where too few were left, unless it is to be raised `anyway`."""
    try:
        loaded.delete(leaving, digest=False)
    except TooFewRecordsError:
        if anyway:
            raise
        return False
    return True


def _ids_in(tables: Mapping[int, pa.Table], known: DataSet) -> list[Any]:
    return tables[known.id][known.id_column].to_pylist() if known.id in tables else []


def _tables(known: Sequence[DataSet], design: ModelColumns, arriving: Arriving) -> Tables:
    """Return a table of each data set: names of records depend on how many these are."""
    found = []
    for each in known:
        columns = design.columns(each)
        given = [of[each.id].select(columns) for of in (arriving.come, arriving.corrected)
                 if each.id in of]  # fmt: skip
        empty = pa.schema([each.schema.field(name) for name in columns]).empty_table()
        found.append((each, pa.concat_tables(given) if given else empty))
    return found


def _given(design: ModelColumns, tables: Tables) -> tuple[Any, Any, Any, list[str] | None]:
    """Return ids, features, targets and groups, as a fit is given them."""
    features = design.given(stacked(tables, design.features))
    return names_of(tables), features, target_of(tables, design.target), groups_of(tables)
