"""Checks of ids, groups, refusals and reports of deletions."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from erasable.audit import refit
from erasable.core.errors import InvalidDataError, InvalidIdsError, UnknownIdError
from erasable.core.values import Accepts
from erasable.utils._checks.compare import (
    Snapshot,
    assert_raises,
    assert_same,
    demand,
    fit,
    law_check,
    leaves,
    model_check,
    seeded,
    seeds,
    trained,
)
from erasable.utils._checks.data_sets import STANDARD, DataSet

ACTIONS = ("none", "updated", "resumed", "refit")


@law_check
def check_id_types(estimator: Any, data_sets: Sequence[DataSet] = STANDARD) -> None:
    """Take integers of any width and strings as ids; equal ids are equal whatever array holds them.

    The number 17 and the string "17" are two ids.
    """
    for data, _ in trained(estimator, data_sets):
        n = len(data)
        numbers = np.arange(n)[::-1] * 3
        for kind, variants in (
            ("integers", [numbers, numbers.astype(np.int32), numbers.astype(np.uint16),
                          numbers.tolist(), numbers.astype(object)]),
            ("strings", [numbers.astype(str), numbers.astype(str).astype(object),
                         numbers.astype(str).tolist()]),
            ("mixed", [np.array([str(i) if i % 2 else i for i in range(n)], dtype=object)]),
        ):  # fmt: skip
            rest = np.setdiff1d(np.arange(n), data.doomed)
            told = f"with {kind} as ids of {data.name!r}"
            model = _fit_ids(estimator, data, variants[0], np.arange(n))
            model.delete([variants[0][row] for row in data.doomed])
            refit = _fit_ids(estimator, data, variants[0], rest)
            assert_same(model, refit, f"from a refit {told}")
            for ids in variants[1:]:
                other = _fit_ids(estimator, data, ids, np.arange(n))
                other.delete([ids[row] for row in data.doomed])
                assert_same(model, other, f"{told}, held in another type")
        whole = _fit_ids(estimator, data, numbers, np.arange(n))
        assert_raises(UnknownIdError, "deleting '3' where 3 is an id", whole.delete, ["3"])


def _fit_ids(estimator: Any, data: DataSet, ids: Any, rows: Any) -> Any:
    chosen = ids[rows] if isinstance(ids, np.ndarray) else [ids[row] for row in rows]
    return seeded(estimator).fit(data.X[rows], data.y[rows], ids=chosen)


@model_check
def check_bad_ids_change_nothing(estimator: Any, data: DataSet, model: Any) -> None:
    """Refuse unknown, repeated, deleted and ill-typed ids by name; a refusal changes nothing."""
    if len(data) < 20:
        return
    first, good = data.doomed_ids[:1].tolist(), data.doomed_ids[1:3].tolist()
    model.delete(first)
    strange = "never there" if isinstance(good[0], int) else 2**40
    snapshot = Snapshot(model, data)
    for told, error, ids in (
        ("an unknown id", UnknownIdError, [strange]),
        ("an unknown number", UnknownIdError, [10**15]),
        ("a deleted id", UnknownIdError, first),
        ("good ids and an unknown one", UnknownIdError, [*good, strange]),
        ("good ids and a deleted one", UnknownIdError, good + first),
        ("an id twice", InvalidIdsError, [good[0], good[0]]),
        ("good ids and one twice", InvalidIdsError, [*good, good[0]]),
        ("a float as id", InvalidIdsError, [1.0]),
        ("booleans as ids", InvalidIdsError, [True]),
        ("a table of ids", InvalidIdsError, [good]),
    ):
        assert_raises(error, f"deleting {told}", model.delete, ids)
        snapshot.assert_unchanged(f"deleting {told}")
    error = InvalidIdsError if data.groups is None else UnknownIdError
    assert_raises(error, "deleting an unknown group", model.delete, groups=[10**9])
    snapshot.assert_unchanged("deleting an unknown group")
    model.delete(good)
    rest = data.without(first + good)
    assert_same(model, fit(estimator, rest), f"from a refit after refusals on {data.name!r}")


@law_check
def check_bad_fit_changes_nothing(estimator: Any, data_sets: Sequence[DataSet] = STANDARD) -> None:
    """Refuse data and ids that cannot be used, by name; a fitted model stays what it was."""
    for data, model in trained(estimator, data_sets[:1]):
        X, y, ids, n = data.X, data.y, data.ids, len(data)
        twice = ids.copy()
        twice[1] = twice[0]
        snapshot = Snapshot(model, data)
        cases: list[tuple[str, type[Exception], Any, Any]] = [
            *((told, InvalidDataError, spoilt, ids) for told, spoilt in _spoilt(estimator, X)),
            ("no records", InvalidDataError, X[:0], ids[:0]),
            ("repeated ids", InvalidIdsError, X, twice),
            ("too few ids", InvalidIdsError, X, ids[:-1]),
            ("floats as ids", InvalidIdsError, X, np.arange(n) / 2),
            ("booleans as ids", InvalidIdsError, X, np.arange(n) % 2 == 0),
            ("the name of no column as ids", InvalidIdsError, X, "visit"),
        ]
        for told, error, matrix, record_ids in cases:
            target = y[: len(matrix)]
            assert_raises(error, f"fitting {told}", model.fit, matrix, target, ids=record_ids)
            snapshot.assert_unchanged(f"a fit that was refused ({told})")
        for method in ("predict", "transform"):
            if hasattr(model, method) and X.ndim == 2:
                told, wide = f"{method} with a column too many", np.c_[X, X[:, 0]]
                assert_raises(InvalidDataError, told, getattr(model, method), wide)
        model.delete(data.doomed_ids)
        refit = fit(estimator, data.without(data.doomed_ids))
        assert_same(model, refit, "from a refit after fits that were refused")


def _spoilt(estimator: Any, X: Any) -> Iterator[tuple[str, Any]]:
    """Make invalid data from valid data; yield it with the mistake."""
    accepts = Accepts.of(estimator)
    if accepts.documents:
        gaps = X.copy()
        gaps[-1] = None
        yield from (("gaps", gaps), ("numbers", np.arange(len(X))), ("one text", X[0]))
        return
    table, text = X.astype(np.float64), X.astype(object)
    text[:, 0] = "text"
    for told, value in (("NaN", np.nan), ("infinity", np.inf)):
        matrix = table.copy()
        matrix[len(X) // 2, -1] = value
        if told == "infinity" or not accepts.missing:
            yield told, matrix
    yield "no columns", table[:, :0]
    yield "complex numbers", table.astype(complex)
    if not accepts.objects:
        yield "text columns", text


@model_check
def check_delete_nothing(estimator: Any, data: DataSet, model: Any) -> None:
    """Delete nothing: nothing happens, and the report says so."""
    model.delete(data.doomed_ids[:1])
    snapshot = Snapshot(model, data)
    nothings: tuple[Any, ...] = ([], np.empty(0, dtype=np.int64))
    for nothing in nothings:
        deletion = model.delete(nothing)
        demand(
            deletion.action == "none",
            f"delete([]) reports the action {deletion.action!r}; expected 'none'",
        )
        demand(
            deletion.rows_touched == 0 and len(deletion.ids) == 0,
            f"delete([]) reports {deletion.rows_touched} rows and {len(deletion.ids)} ids",
        )
        snapshot.assert_unchanged("delete([])")


@model_check
def check_deletion_record(estimator: Any, data: DataSet, model: Any) -> None:
    """Report truthfully what a deletion did: ids, action, rows, digests before and after."""
    for ids in (data.doomed_ids[:1], data.doomed_ids[1:]):
        if not len(ids):
            continue
        before = model.digest()
        deletion = model.delete(ids)
        told = f"Deletion of {len(ids)} records of {data.name!r}"
        demand(
            sorted(np.asarray(deletion.ids).tolist()) == sorted(ids.tolist()),
            f"{told}: ids is not what was deleted",
        )
        demand(
            not set(np.asarray(model.ids_).tolist()) & set(ids.tolist()),
            f"{told}: ids_ still lists what was deleted",
        )
        demand(deletion.digest_before == before, f"{told}: digest_before is not digest() before")
        demand(deletion.digest_after == model.digest(), f"{told}: digest_after is not digest()")
        demand(deletion.digest_after != before, f"{told}: the digest did not change")
        demand(deletion.action in ACTIONS[1:], f"{told}: action is {deletion.action!r}")
        demand(
            deletion.exactness == type(model).exactness,
            f"{told}: exactness is {deletion.exactness!r}; the class says otherwise",
        )
        touched = deletion.rows_touched
        demand(isinstance(touched, int) and touched >= 0, f"{told}: rows_touched is {touched!r}")
        counts = dict(deletion.counts)
        demand(
            all(isinstance(v, int) and v >= 0 for v in counts.values()),
            f"{told}: counts are {counts}",
        )
        demand(deletion.seconds >= 0.0, f"{told}: seconds is {deletion.seconds!r}")
        text = str(deletion)
        demand(text and "\n" not in text, f"{told}: str() is not one line: {text!r}")
        _assert_frozen(deletion, told)
    if len(data) > 20:
        rest = np.setdiff1d(data.ids, data.doomed_ids)
        deletion = model.delete(rest[:1], digest=False)
        demand(
            deletion.digest_before is None and deletion.digest_after is None,
            "delete(..., digest=False) reports digests",
        )


def _assert_frozen(deletion: Any, told: str) -> None:
    try:
        deletion.action = "none"
    except (dataclasses.FrozenInstanceError, AttributeError):
        return
    raise AssertionError(f"{told}: its fields can be overwritten")


@law_check
def check_digest_names_version(estimator: Any, data_sets: Sequence[DataSet] = STANDARD) -> None:
    """Begin a digest with the estimator's public name and algorithm version."""
    cls = type(estimator)
    newer = type(cls.__name__, (cls,), {
        "algorithm_version": cls.algorithm_version + 1, "__module__": cls.__module__
    })  # fmt: skip
    for data, model in trained(estimator, data_sets[:1]):
        pattern = rf"[\w.]*\b{cls.__name__}/{cls.algorithm_version}:[0-9a-f]{{64}}"
        digest = model.digest()
        demand(
            re.fullmatch(pattern, digest),
            f"digest() is {digest!r}; expected a dotted name ending in "
            f"{cls.__name__}/{cls.algorithm_version}: and 64 hexadecimal digits",
        )
        params = seeded(estimator).get_params(deep=False)
        other = newer(**params).fit(data.X, data.y, ids=data.ids, groups=data.groups).digest()
        demand(
            other.split(":")[0].endswith(f"/{cls.algorithm_version + 1}"),
            f"the digest {other!r} of a class with algorithm_version "
            f"{cls.algorithm_version + 1} does not carry it",
        )


@model_check
def check_seed(estimator: Any, data: DataSet, model: Any) -> None:
    """Draw from ``random_state`` alone: same seed, same model; other seed, other digest.

    ``random_state=None`` draws a seed once, tells it as ``seed_`` and keeps it in deletions: a
    fit with ``random_state=seed_`` is the refit. Estimators whose state has no ``seed`` pass.
    """
    told = f"on {data.name!r}"
    assert_same(model, fit(estimator, data), f"between two fits with one seed {told}")
    if not any(name.split(".")[-1] == "seed" for name in _set_leaves(model)):
        return
    one, two = (_with_seed(estimator, seed, data).digest() for seed in (1, 2))
    demand(one != two, f"random_state 1 and 2 give one digest {told}")
    chance, other = (_with_seed(estimator, None, data) for _ in range(2))
    demand(chance.digest() != other.digest(), f"random_state=None drew one seed twice {told}")
    chance.delete(data.doomed_ids)
    assert_same(chance, refit(chance), f"from audit.refit with random_state=None {told}")
    if hasattr(chance, "seed_"):
        again = _with_seed(estimator, int(chance.seed_), data.without(data.doomed_ids))
        assert_same(chance, again, f"from a refit with random_state=seed_ {told}")


def _set_leaves(model: Any) -> list[str]:
    return [name for name, leaf in leaves(model.state()).items() if leaf is not None]


def _with_seed(estimator: Any, seed: int | None, data: DataSet) -> Any:
    model = seeded(estimator).set_params(**dict.fromkeys(seeds(estimator), seed))
    return model.fit(data.X, data.y, ids=data.ids, groups=data.groups)
