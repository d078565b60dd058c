"""Checks that a model and shared records contain nothing of a deleted record."""

from __future__ import annotations

import copy
import gc
import pickle
import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from erasable.core.records import Records
from erasable.utils._checks.compare import (
    Snapshot,
    assert_same,
    assert_same_outputs,
    demand,
    fit,
    law_check,
    model_check,
    outputs,
    seeded,
    trained,
)
from erasable.utils._checks.data_sets import MARKED, DataSet
from erasable.utils._checks.reach import Marks, reachable, shows, traces

_TELLING = 2**16  # a smaller number, a code of a category, is no trace of anybody


def marks_of(data: DataSet, row: int) -> Marks:
    if data.X.dtype == object:  # words made of whole numbers
        values = [float(n) for n in re.findall(r"\d+", " ".join(np.atleast_1d(data.X[row])))]
    else:
        values = [float(value) for value in data.X[row]]
    if np.issubdtype(data.y.dtype, np.floating):
        values.append(float(data.y[row]))
    values = [value for value in values if abs(value) >= _TELLING]
    return Marks(data.ids.tolist()[row], tuple(values))


@law_check
def check_nothing_left(estimator: Any, data_sets: Sequence[DataSet] = MARKED) -> None:
    """Delete records of unmistakable ids and values: no trace in model, state, pickle or file.

    Searched are ``state()``, the bytes of ``save()`` and of ``pickle.dumps``, what they unpack
    to, and every object and array that can be reached from the model; the second deletion is from
    an unpickled copy. What a refit that never saw the record holds as well is a coincidence.
    Scratch space counts: it is to be cleared after a deletion, and made with ``np.zeros``, because
    ``np.empty`` hands over the bytes of arrays that were freed, ids and rows of records among them.
    """
    for data, model in trained(estimator, data_sets):
        for count, row in enumerate(data.doomed.tolist()):
            if count == 1:
                model = pickle.loads(pickle.dumps(model))  # it must not keep its restored state
            outputs(model, data)
            before = traces(model, marks_of(data, row))
            demand(before, f"the search finds no record in a model that holds it ({data.name})")
            model.delete(data.ids[row : row + 1])
            refit = fit(estimator, data.without(data.doomed_ids[: count + 1]))
            for gone in data.doomed[: count + 1].tolist():
                marks = marks_of(data, gone)
                found = traces(model, marks)
                if found:
                    outputs(refit, data)
                    found -= traces(refit, marks)
                demand(
                    not found,
                    f"a deleted record of {data.name!r} is still to be found in: "
                    f"{', '.join(sorted(found)[:5])}",
                )


def _share(estimator: Any, data: DataSet) -> tuple[Records, Any, Any]:
    records = Records(data.X, data.y, ids=data.ids, groups=data.groups)
    return records, seeded(estimator).fit(records), seeded(estimator).fit(records)


@model_check
def check_shared_records(estimator: Any, data: DataSet, model: Any) -> None:
    """Fit two models on one `Records`: a deletion in one leaves the other, which deletes later."""
    _, one, two = _share(estimator, data)
    assert_same(one, model, f"between fitting Records and arrays of {data.name!r}")
    snapshot = Snapshot(two, data)
    one.delete(data.doomed_ids)
    snapshot.assert_unchanged("a deletion in a model that shares the records")
    refit = fit(estimator, data.without(data.doomed_ids))
    told = f"from a refit when a model that shares the records of {data.name!r} deletes"
    assert_same(one, refit, told)
    assert_same_outputs(one, refit, data, told)
    two.delete(data.doomed_ids)
    assert_same(two, refit, f"{told}, as the second one")


@law_check
def check_erased_by_the_last(estimator: Any, data_sets: Sequence[DataSet] = MARKED) -> None:
    """Erase shared records when the last model deletes them, and not before.

    A model that is gone holds nothing: what only it held is erased as well. The pickle of a
    model shows no record that it deleted, even while another model holds it.
    """
    for data, _ in trained(estimator, data_sets):
        records, one, two = _share(estimator, data)
        row, other = data.doomed[:2].tolist()
        one.delete(data.ids[[row]])
        demand(
            _held(records, data, row),
            "a record was erased from Records while another model still held it",
        )
        demand(
            not _shown(pickle.dumps(one), data, row),
            "the pickle of a model shows a record that it deleted and another model still holds",
        )
        two.delete(data.ids[[row]])
        demand(
            not _held(records, data, row),
            "a record is left in Records though every model has deleted it",
        )
        demand(_held(records, data, other), "a record that nobody deleted is gone from Records")
        one.delete(data.ids[[other]])
        del two
        gc.collect()
        demand(
            not _held(records, data, other),
            "a record is left in Records though the last model that held it is gone",
        )
        demand(
            not _shown(pickle.dumps(records), data, other),
            "a record is left in the pickle of Records though every model has deleted it",
        )
        rest = data.without(data.ids[[row, other]])
        assert_same(one, fit(estimator, rest), f"from a refit after sharing {data.name!r}")
        assert_same(copy.deepcopy(one), one, "between a model on shared records and its copy")


def _held(records: Records, data: DataSet, row: int) -> bool:
    marks = marks_of(data, row)
    return any(shows(thing, marks) for _, thing in reachable(records))


def _shown(pickled: bytes, data: DataSet, row: int) -> bool:
    marks = marks_of(data, row)
    unpacked = (thing for _, thing in reachable(pickle.loads(pickled)))
    return shows(pickled, marks) or any(shows(thing, marks) for thing in unpacked)
