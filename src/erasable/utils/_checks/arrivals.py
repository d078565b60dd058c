"""Checks of the twin law: adding and correcting records equals a fit on them."""

from __future__ import annotations

import pickle
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from erasable.core.errors import (
    InvalidDataError,
    InvalidIdsError,
    InvalidInputError,
    TooFewRecordsError,
    UnknownIdError,
)
from erasable.core.records import Records
from erasable.utils._checks.compare import (
    Snapshot,
    assert_raises,
    assert_same,
    assert_same_outputs,
    demand,
    fit,
    model_check,
    seeded,
)
from erasable.utils._checks.data_sets import DataSet


@model_check
def check_add_equals_fit(estimator: Any, data: DataSet, model: Any) -> None:
    """Add records at once, and one by one: the model is a fit on all of them."""
    ids = data.doomed_ids
    for portions in ([ids], [ids[i : i + 1] for i in range(len(ids))]):
        grown = _without(estimator, data)
        if grown is None:
            return
        for portion in portions:
            add(grown, data, portion)
        told = f"from a fit after adding {len(ids)} records of {data.name!r} in {len(portions)}"
        assert_same(grown, model, f"{told} batches", save=True)
        assert_same_outputs(grown, model, data, f"{told} batches")


@model_check
def check_add_and_delete(estimator: Any, data: DataSet, model: Any) -> None:
    """Delete records and add them again, over and over: the model is what it was."""
    ids = data.doomed_ids
    before = model.digest()
    for records in (ids, ids[::-1][:1], ids[len(ids) // 2 :]):
        if _without(estimator, data, records) is None:
            return
        model.delete(records)
        report = add(model, data, records)
        told = f"after {len(records)} records of {data.name!r} were deleted and added again"
        demand(report.digest_after == before, f"digest_after differs {told}")
        demand(model.digest() == before, f"digest() differs {told}")
        demand(report.ids.tolist() == records.tolist(), f"ids of the Addition are others {told}")
    assert_same(model, fit(estimator, data), "after deleting and adding the same records")


@model_check
def check_correct_equals_fit(estimator: Any, data: DataSet, model: Any) -> None:
    """Correct records, and correct them back: each time the model is a fit on them."""
    before = model.digest()
    other = _corrected(data)
    try:
        wanted = fit(estimator, other)
    except TooFewRecordsError:
        return
    report = correct(model, other, data.doomed_ids)
    told = f"from a fit after correcting {len(data.doomed)} records of {data.name!r}"
    assert_same(model, wanted, told, save=True)
    demand(report.digest_after == model.digest(), f"digest_after is another digest {told}")
    correct(model, data, data.doomed_ids)
    demand(model.digest() == before, f"digest() differs {told}, and correcting them back")
    report = correct(model, data, data.doomed_ids)
    demand(report.action == "none", "a correction that changes nothing has the action "
           f"{report.action!r}, expected 'none'")  # fmt: skip
    demand(report.ids.size == 0, "a correction that changes nothing names records")


@model_check
def check_mixed_changes(estimator: Any, data: DataSet, model: Any) -> None:
    """Add, correct, replace and delete, with pickles and files between: the same as one fit."""
    other, ids = _corrected(data), data.doomed_ids
    first, rest = ids[:1], ids[1:]
    try:
        grown = fit(estimator, data.without(ids))
        wanted = fit(estimator, other.without(first))
    except TooFewRecordsError:
        return
    add(grown, data, first)
    grown = pickle.loads(pickle.dumps(grown))
    if len(rest):
        keep = other.take(_rows_of(other, rest))
        grown.replace(first, keep.X, keep.y, ids=keep.ids, **_groups(keep))
    else:
        grown.delete(first)
    told = f"after adding, replacing and correcting records of {data.name!r}"
    assert_same(grown, wanted, told, save=True)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model"
        grown.save(path)
        kept = other.without(first)
        records = Records(kept.X, kept.y, ids=kept.ids, **_groups(kept))
        grown = type(grown).load(path, records)
    add(grown, data, first)
    assert_same(grown, fit(estimator, _with_some(data, other, rest)), f"{told}, saved and loaded")
    if len(rest):
        correct(grown, data, rest)
    assert_same(grown, model, f"{told}, and correcting them back")


@model_check
def check_bad_additions(estimator: Any, data: DataSet, model: Any) -> None:
    """Refuse existing records, other tables and unknown ids: nothing changes."""
    snapshot = Snapshot(model, data)
    one = data.take(np.array([0]))
    told = _groups(one)
    new = ["never seen"] if data.ids.dtype == object else [10**12]
    wide = np.column_stack([one.X, one.X]) if one.X.ndim == 2 else one.X
    calls: list[tuple[type[Exception] | tuple[type[Exception], ...], str, Any]] = [
        (
            InvalidIdsError, "an id that is there",
            lambda: model.add(one.X, one.y, ids=one.ids, **told),
        ),
        (
            InvalidIdsError,
            "ids that repeat",
            lambda: model.add(
                np.concatenate([one.X, one.X]), np.concatenate([one.y, one.y]), ids=new * 2,
                **{name: np.concatenate([groups, groups]) for name, groups in told.items()},
            ),
        ),
        (UnknownIdError, "an unknown id to correct", lambda: model.correct(new, one.X)),
        (InvalidInputError, "a correction of nothing", lambda: model.correct(one.ids)),
        (
            UnknownIdError, "an unknown id to replace",
            lambda: model.replace(new, one.X, one.y, ids=new, **told),
        ),
    ]  # fmt: skip
    if one.X.ndim == 2:
        calls.append(
            (InvalidDataError, "another width", lambda: model.add(wide, one.y, ids=new, **told))
        )
        if one.X.dtype != object:
            huge = np.full(one.X.shape, np.inf)
            calls.append(
                (InvalidDataError, "infinity", lambda: model.add(huge, one.y, ids=new, **told))
            )
    for error, what, call in calls:
        assert_raises(error, f"adding {what} to {data.name!r}", call)
        snapshot.assert_unchanged(f"adding {what}")
    report = add(model, data.take(np.arange(0)), data.ids[:0])
    demand(report.action == "none", f"adding nothing has the action {report.action!r}")
    snapshot.assert_unchanged("adding nothing")


@model_check
def check_shared_records_grow(estimator: Any, data: DataSet, model: Any) -> None:
    """Add to records that two models share: both follow, and one alone is refused."""
    kept = data.without(data.doomed_ids)
    records = Records(kept.X, kept.y, ids=kept.ids, **_groups(kept))
    try:
        models = [seeded(estimator).fit(records) for _ in range(2)]
    except TooFewRecordsError:
        return
    new = data.take(data.doomed)
    assert_raises(
        InvalidInputError,
        "adding to one of two models that share records",
        lambda: add(models[0], data, data.doomed_ids),
    )
    digest = models[0].digest()
    reports = records.add(new.X, new.y, ids=new.ids, **_groups(new))
    told = "after adding to records that two models share"
    demand(len(reports) == 2, f"{len(reports)} reports {told}")
    for each in models:
        demand(each.digest() == model.digest(), f"digest() differs {told}")
    for record in data.doomed_ids:
        models[0].delete([record])
    demand(models[0].digest() == digest, f"digest() differs {told} and deleting from one")
    demand(models[1].digest() == model.digest(), f"another model deleted with the first {told}")


# -- helpers ---------------------------------------------------------------------------------------


def add(model: Any, data: DataSet, ids: Any) -> Any:
    """Add records of a data set."""
    new = data.take(_rows_of(data, ids))
    return model.add(new.X.copy(), new.y.copy(), ids=new.ids.copy(), **_groups(new))


def correct(model: Any, data: DataSet, ids: Any) -> Any:
    """Correct records to their values in a data set."""
    new = data.take(_rows_of(data, ids))
    y = new.y if model.__sklearn_tags__().target_tags.required else None
    return model.correct(new.ids, new.X.copy(), y)


def _rows_of(data: DataSet, ids: Any) -> Any:
    places = {record: row for row, record in enumerate(data.ids.tolist())}
    return np.array([places[record] for record in np.asarray(ids).tolist()], dtype=np.int64)


def _groups(data: DataSet) -> dict[str, Any]:
    return {} if data.groups is None else {"groups": data.groups.copy()}


def _without(estimator: Any, data: DataSet, ids: Any = None) -> Any:
    """Fit on a data set without its doomed records; None if too few are left."""
    try:
        return fit(estimator, data.without(data.doomed_ids if ids is None else ids))
    except TooFewRecordsError:
        return None


def _corrected(data: DataSet) -> DataSet:
    """Give the doomed records values of others."""
    others = np.setdiff1d(np.arange(len(data)), data.doomed)[: len(data.doomed)]
    X, y = data.X.copy(), data.y.copy()
    X[data.doomed], y[data.doomed] = X[others], y[others]
    return replace(data, X=X, y=y)


def _with_some(data: DataSet, other: DataSet, ids: Any) -> DataSet:
    """Give some records the values that they have in another data set."""
    rows = _rows_of(data, ids)
    X, y = data.X.copy(), data.y.copy()
    X[rows], y[rows] = other.X[rows], other.y[rows]
    return replace(data, X=X, y=y)
