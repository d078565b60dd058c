"""Checks of the law itself: a deletion is a refit, in any order, portions and groups."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from erasable.core.errors import InvalidDataError, TooFewRecordsError
from erasable.utils._checks.compare import (
    Snapshot,
    assert_raises,
    assert_same,
    assert_same_outputs,
    attributes,
    demand,
    differing,
    fit,
    law_check,
    leaves,
    model_check,
    outputs,
    trained,
)
from erasable.utils._checks.data_sets import STANDARD, DataSet


@model_check
def check_delete_equals_refit(estimator: Any, data: DataSet, model: Any) -> None:
    """Delete one record after another, or all at once: the model is a refit on what is left."""
    refit = model
    for count, record in enumerate(data.doomed_ids, start=1):
        model.delete([record])
        refit = fit(estimator, data.without(data.doomed_ids[:count]))
        told = f"from a refit after deleting {count} records of {data.name!r} one by one"
        assert_same(model, refit, told, save=count in (1, len(data.doomed)))
    batch = fit(estimator, data)
    batch.delete(data.doomed_ids)
    told = f"from a refit after deleting {len(data.doomed)} records of {data.name!r} at once"
    assert_same(batch, refit, told, save=True)


@model_check
def check_deletion_order(estimator: Any, data: DataSet, model: Any) -> None:
    """Delete the same records one by one in several orders: the model is the same."""
    doomed = data.doomed_ids
    for record in doomed:
        model.delete([record])
    rolled = np.roll(doomed, len(doomed) // 2)
    for order in (doomed[::-1], rolled):
        other = fit(estimator, data)
        for record in order:
            other.delete([record])
        told = f"when {len(order)} records of {data.name!r} are deleted in another order"
        assert_same(model, other, told)


@model_check
def check_batch_split(estimator: Any, data: DataSet, model: Any) -> None:
    """Delete the same records at once, in two portions and one by one: the model is the same."""
    doomed = data.doomed_ids
    model.delete(doomed)
    half = len(doomed) // 2
    for portions in (
        [doomed[::-1]],
        [doomed[:half], doomed[half:]],
        [doomed[i : i + 1] for i in range(len(doomed))],
    ):
        other = fit(estimator, data)
        for ids in portions:
            other.delete(ids)
        told = f"when {len(doomed)} records of {data.name!r} go in {len(portions)} batches"
        assert_same(model, other, told)


@model_check
def check_row_order(estimator: Any, data: DataSet, model: Any) -> None:
    """Fit the rows in another order: the same digest, and what belongs to a record moves with it.

    A state array may hold one entry a record, in the order of ``ids_``; every other is equal.
    Attributes named ``*_indices_`` are places of records in ``ids_``.
    """
    order = np.random.default_rng(7).permutation(len(data))
    told = f"when the rows of {data.name!r} are fitted in another order"
    others = [fit(estimator, data.take(rows)) for rows in (order, np.argsort(order))]
    for other in others:
        _assert_aligned(model, other, told)
    for each in (model, *others):
        each.delete(data.doomed_ids)
    for other in others:
        _assert_aligned(model, other, f"{told} and {len(data.doomed)} are deleted")
        assert_same_outputs(model, other, data, told)


def _assert_aligned(left: Any, right: Any, told: str) -> None:
    mine, other = np.asarray(left.ids_), np.asarray(right.ids_)
    order = _matching(mine, other)
    for source, one, two in (
        ("state()", leaves(left.state()), leaves(right.state())),
        ("attribute", attributes(left), attributes(right)),
    ):
        demand(one.keys() == two.keys(), f"{source} has other components {told}")
        for name in sorted(one):
            if name.endswith("_indices_"):  # places of records, ascending
                one[name] = np.sort(order[one[name]])
            difference = differing(one[name], two[name])
            if difference is not None:
                difference = _differing_aligned(one[name], two[name], order, difference)
            demand(difference is None, f"{source} {name!r} differs {told}: {difference}")
    demand(left.digest() == right.digest(), f"digest() differs {told}, though state() is equal")


def _matching(mine: Any, other: Any) -> Any:
    """Positions that bring `other` into the order of `mine`."""
    place = {record: row for row, record in enumerate(other.tolist())}
    demand(place.keys() == set(mine.tolist()), "ids_ does not hold the ids that were fitted")
    return np.array([place[record] for record in mine.tolist()], dtype=np.int64)


def _differing_aligned(one: Any, two: Any, order: Any, difference: str) -> str | None:
    if isinstance(one, np.ndarray) and isinstance(two, np.ndarray) and one.shape == two.shape:
        for axis, length in enumerate(one.shape):
            if length == len(order):
                aligned = np.ascontiguousarray(np.take(two, order, axis=axis))
                if differing(np.ascontiguousarray(one), aligned) is None:
                    return None
    return difference


@model_check
def check_groups(estimator: Any, data: DataSet, model: Any) -> None:
    """Delete whole groups: as if their ids had been given; half of a group can go by its ids."""
    if data.groups is None:
        groups = np.arange(len(data)) // 3
        data = DataSet(data.name, data.X, data.y, data.ids, groups, data.doomed)
        model = fit(estimator, data)
    groups = np.asarray(data.groups)
    names, sizes = np.unique(groups, return_counts=True)
    big = names[np.argsort(-sizes, kind="stable")][:2]
    one, both = data.ids[groups == big[0]], data.ids[np.isin(groups, big)]
    told = f"when {len(big)} groups of {data.name!r} are deleted"
    try:
        refit = fit(estimator, data.without(both))
    except TooFewRecordsError:
        assert_raises(TooFewRecordsError, told, model.delete, groups=big)
        return
    deletion = model.delete(groups=big)
    demand(
        set(np.asarray(deletion.ids).tolist()) == set(both.tolist()),
        f"Deletion.ids is not the groups' records {told}",
    )
    by_ids = fit(estimator, data)
    by_ids.delete(both)
    assert_same(model, by_ids, f"{told} by name or by ids")
    assert_same(model, refit, f"from a refit {told}")
    halved = fit(estimator, data)
    halved.delete(one[: max(len(one) // 2, 1)])
    rest = data.without(one[: max(len(one) // 2, 1)])
    assert_same(halved, fit(estimator, rest), f"from a refit when half a group goes, {told}")


@law_check
def check_smallest_legal_set(estimator: Any, data_sets: Sequence[DataSet] = STANDARD) -> None:
    """Delete down to the smallest legal data set; one more raises, as a fit on so few does.

    Where a deletion raises ``TooFewRecordsError``, so must the refit, and nothing has changed.
    """
    small = [data for data in data_sets if len(data) < 60]
    for data, model in trained(estimator, small or data_sets):
        snapshot = Snapshot(model, data)
        told = f"deleting all records of {data.name!r} at once"
        assert_raises(TooFewRecordsError, told, model.delete, data.ids)
        snapshot.assert_unchanged(told)
        order = data.ids[np.random.default_rng(11).permutation(len(data))]
        most = _accepted(fit(estimator, data), order)
        demand(
            most < len(order), f"the last record of {data.name!r} was deleted and nothing raised"
        )
        for count, record in enumerate(order[:most]):
            model.delete([record])
            rest = data.without(order[: count + 1])
            if len(rest) < 6 or count % 8 == 0:
                told = f"from a refit when {data.name!r} is down to {len(rest)} records"
                assert_same(model, fit(estimator, rest), told)
        snapshot = Snapshot(model, data)
        told = f"the deletion from {data.name!r} that another model refused"
        assert_raises(TooFewRecordsError, told, model.delete, [order[most]])
        snapshot.assert_unchanged("a deletion that would leave too few records")
        rest = data.without(order[: most + 1])
        told = f"fitting the {len(rest)} records of {data.name!r} that a deletion refused"
        too_few = (TooFewRecordsError,) if len(rest) else (TooFewRecordsError, InvalidDataError)
        assert_raises(too_few, told, fit, estimator, rest)
        told = f"from a refit at the smallest legal size of {data.name!r}"
        assert_same(model, fit(estimator, data.without(order[:most])), told)


def _accepted(model: Any, order: Any) -> int:
    """Delete one record after another; return how many went before one was refused."""
    for count, record in enumerate(order):
        try:
            model.delete([record])
        except TooFewRecordsError:
            return count
    return len(order)


@model_check
def check_fitted_attributes(estimator: Any, data: DataSet, model: Any) -> None:
    """Compare every public attribute (``labels_``) after deletions with a refit's."""
    attributes(model)  # lazily computed attributes now exist, and must not go stale
    model.delete(data.doomed_ids)
    mine, other = attributes(model), attributes(fit(estimator, data.without(data.doomed_ids)))
    told = f"from a refit after {len(data.doomed)} deletions from {data.name!r}"
    unshared = sorted(mine.keys() ^ other.keys())
    demand(not unshared, f"other attributes {told}: {', '.join(unshared)}")
    for name in sorted(mine):
        difference = differing(mine[name], other[name])
        demand(difference is None, f"{name} differs {told}: {difference}")


@model_check
def check_predicting_after_deletion(estimator: Any, data: DataSet, model: Any) -> None:
    """Predict, transform and score after deletions as a refit does, and change nothing by it."""
    outputs(model, data)
    model.delete(data.doomed_ids)
    refit = fit(estimator, data.without(data.doomed_ids))
    told = f"from a refit after {len(data.doomed)} deletions from {data.name!r}"
    assert_same_outputs(model, refit, data, told)
    assert_same(model, refit, f"{told} and a prediction")


@model_check
def check_long_sequence(estimator: Any, data: DataSet, model: Any) -> None:
    """Delete singles and batches in a long mixed sequence; compare with a refit on the way.

    The sequence ends after 60 deletions, or where too few records are left.
    """
    rng = np.random.default_rng(13)
    rest = data
    for step in range(1, 61):
        size = int(rng.integers(2, 6)) if step % 4 == 0 else 1
        ids = rest.ids[rng.permutation(len(rest))[:size]]
        try:
            model.delete(ids, digest=step % 3 == 0)
        except TooFewRecordsError:
            break
        rest = rest.without(ids)
        if step % 5 == 0:
            outputs(model, data)  # a prediction in between must leave nothing behind
        if step in (7, 20, 40, 60):
            _assert_refit(model, estimator, rest, data)
    _assert_refit(model, estimator, rest, data)


def _assert_refit(model: Any, estimator: Any, rest: DataSet, data: DataSet) -> None:
    told = f"from a refit when {len(rest)} of {len(data)} records of {data.name!r} are left"
    assert_same(model, fit(estimator, rest), told)
