"""Checks that the same values give the same model, in any container, layout or width."""

from __future__ import annotations

import importlib
import unittest
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import sklearn
from numpy.typing import NDArray
from sklearn.pipeline import Pipeline as PlainPipeline

from erasable.core.errors import InvalidIdsError, MagnitudeError
from erasable.core.values import Accepts
from erasable.utils._checks.compare import (
    assert_raises,
    assert_same,
    assert_same_outputs,
    assert_same_state,
    demand,
    differing,
    fit,
    law_check,
    model_check,
    outputs,
    seeded,
    trained,
)
from erasable.utils._checks.data_sets import STANDARD, DataSet


@model_check
def check_callers_arrays(estimator: Any, data: DataSet, model: Any) -> None:
    """Leave the caller's arrays alone, and do not notice when the caller overwrites them."""
    kept = {"X": data.X, "y": data.y, "ids": data.ids}
    if data.groups is not None:
        kept["groups"] = data.groups
    given = {name: array.copy() for name, array in kept.items()}
    other = seeded(estimator).fit(**given)
    other.delete(data.doomed_ids[:2])
    for name, array in given.items():
        unchanged = differing(array, np.asarray(kept[name])) is None
        demand(unchanged, f"fit or delete changed the caller's {name}")
        array[:] = array[::-1].copy() if array.dtype.hasobject else 0
    other.delete(data.doomed_ids[2:])
    model.delete(data.doomed_ids)
    assert_same(other, model, f"when the caller overwrites the arrays of {data.name!r}")
    assert_same_outputs(other, model, data, "when the caller overwrites the arrays")


def _numeric(estimator: Any, data_sets: Sequence[DataSet]) -> Iterator[tuple[DataSet, Any]]:
    """Train on the data sets of numbers; skip the check if the estimator takes none."""
    if Accepts.of(estimator).documents:
        raise unittest.SkipTest(f"{type(estimator).__name__} takes no numbers")
    return ((d, model) for d, model in trained(estimator, data_sets) if d.X.dtype != object)


def _tables(estimator: Any, data_sets: Sequence[DataSet]) -> Iterator[tuple[DataSet, Any]]:
    """Train on the data sets that have columns; skip the check if the estimator takes none."""
    if Accepts.of(estimator).documents:
        raise unittest.SkipTest(f"{type(estimator).__name__} takes no table")
    return trained(estimator, data_sets)


@law_check
def check_float32_input(estimator: Any, data_sets: Sequence[DataSet] = STANDARD) -> None:
    """Learn the same from float32 and from float64 of the same values."""
    for data, _ in _numeric(estimator, data_sets):
        narrow = data.X.astype(np.float32)
        one, two = (
            seeded(estimator).fit(X, data.y, ids=data.ids, groups=data.groups)
            for X in (narrow, narrow.astype(np.float64))
        )
        told = f"between float32 and float64 input of {data.name!r}"
        assert_same(one, two, told)
        for model in (one, two):
            model.delete(data.doomed_ids)
        assert_same(one, two, f"{told}, after deletions")


@law_check
def check_magnitudes(estimator: Any, data_sets: Sequence[DataSet] = STANDARD) -> None:
    """Keep the law for the largest and the smallest numbers, or refuse the large ones by name.

    Refused is with ``MagnitudeError``; small numbers may bring a warning, not a refusal.
    """
    tags = estimator.__sklearn_tags__().input_tags
    if tags.categorical and tags.positive_only:
        raise unittest.SkipTest(f"{type(estimator).__name__} takes codes")
    for data, _ in _numeric(estimator, data_sets[:2]):
        for exponent in (1023, 1000, 500, -500, -1060):
            scaled = np.ldexp(data.X / np.abs(data.X).max(), exponent)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                _assert_kept(estimator, replace(data, X=scaled), exponent)


def _assert_kept(estimator: Any, data: DataSet, exponent: int) -> None:
    told = f"with values of {data.name!r} up to 2**{exponent}"
    try:
        model = fit(estimator, data)
    except MagnitudeError:
        demand(exponent > 0, f"fit raised MagnitudeError {told}")
        return
    outputs(model, data)
    model.delete(data.doomed_ids)
    assert_same(model, fit(estimator, data.without(data.doomed_ids)), f"from a refit {told}")


@law_check
def check_memory_layout(estimator: Any, data_sets: Sequence[DataSet] = STANDARD) -> None:
    """Learn the same from equal values, in any memory layout, and from -0.0 as from 0.0."""
    for data, model in _numeric(estimator, data_sets):
        X = data.X
        wide = np.zeros((2 * X.shape[0], 3 * X.shape[1]), dtype=X.dtype)
        wide[::2, ::3] = X
        layouts = {
            "columns in order": np.asfortranarray(X),
            "strides": wide[::2, ::3],
            "the other byte order": X.astype(X.dtype.newbyteorder()),
            "lists": X.tolist(),
            "memory that cannot be written": _read_only(X),
            "zeros of the other sign": np.where(X == 0, -X, X),
        }
        model.delete(data.doomed_ids)
        for name, values in layouts.items():
            other = seeded(estimator).fit(values, data.y, ids=data.ids, groups=data.groups)
            other.delete(data.doomed_ids.tolist())
            assert_same(other, model, f"when {data.name!r} is given as {name}")


def _read_only(array: NDArray[Any]) -> NDArray[Any]:
    copy = array.copy()
    copy.flags.writeable = False
    return copy


def _names(data: DataSet) -> list[str]:
    return [f"x{column}" for column in range(data.X.shape[1])]


def _library(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise unittest.SkipTest(f"{name} is not installed") from error


@law_check
def check_pandas(estimator: Any, data_sets: Sequence[DataSet] = STANDARD) -> None:
    """Take ids from a pandas index or a named column, groups from a column; skipped without pandas.

    Columns are named x0, x1, ... as scikit-learn calls those of an array, so that the state is
    that of an array but for ``feature_names``.
    """
    pandas = _library("pandas")
    for data, model in _tables(estimator, data_sets):
        frame = pandas.DataFrame(_columns(data))
        indexed = frame.set_index("record")
        _assert_frames(estimator, data, model, [(frame, "record"), (indexed, None)])


@law_check
def check_polars(estimator: Any, data_sets: Sequence[DataSet] = STANDARD) -> None:
    """Take ids and groups from named columns of a polars frame; skipped without polars."""
    polars = _library("polars")
    for data, model in _tables(estimator, data_sets):
        frame = polars.DataFrame(_columns(data))
        _assert_frames(estimator, data, model, [(frame, "record")])


def _columns(data: DataSet) -> dict[str, Any]:
    columns: dict[str, Any] = {name: data.X[:, i].copy() for i, name in enumerate(_names(data))}
    columns["record"] = data.ids.tolist()
    if data.groups is not None:
        columns["person"] = data.groups.tolist()
    return columns


def _assert_frames(
    estimator: Any, data: DataSet, model: Any, ways: Sequence[tuple[Any, str | None]]
) -> None:
    told = f"between an array and a {type(ways[0][0]).__module__} frame of {data.name!r}"
    groups = None if data.groups is None else "person"
    others = [seeded(estimator).fit(frame, data.y, ids=ids, groups=groups) for frame, ids in ways]
    model.delete(data.doomed_ids)
    for other in others:
        names = list(getattr(other, "feature_names_in_", ()))
        demand(
            names == _names(data),
            f"feature_names_in_ is {names}; expected {_names(data)}, without ids and groups",
        )
        other.delete(data.doomed_ids)
        assert_same_state(other, model, told, but="feature_names")
        assert_same(other, others[0], f"between two ways to name ids in a frame of {data.name!r}")
    frame = ways[0][0]
    told, blank = "fitting a frame without the named column of ids", seeded(estimator)
    assert_raises(
        InvalidIdsError, told, blank.fit, frame, data.y, ids="no such column", groups=groups
    )


@model_check
def check_metadata_routing(estimator: Any, data: DataSet, model: Any) -> None:
    """Receive ids and groups through a scikit-learn pipeline when metadata routing is enabled."""
    metadata = {"ids": data.ids}
    if data.groups is not None:
        metadata["groups"] = data.groups
    with sklearn.config_context(enable_metadata_routing=True):
        router = PlainPipeline([("model", seeded(estimator))])
        router.fit(data.X, data.y, **metadata)
        routed = router[-1]
        assert_same(routed, model, f"when ids of {data.name!r} come by metadata routing")
        routed.delete(data.doomed_ids)
    refit = fit(estimator, data.without(data.doomed_ids))
    assert_same(routed, refit, f"from a refit when ids of {data.name!r} came by routing")
