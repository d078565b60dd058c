"""Checks that a model cloned, pickled, copied, saved, loaded or fitted again keeps the law."""

from __future__ import annotations

import copy
import pickle
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from erasable.core.errors import ArtifactError, DetachedError
from erasable.core.records import Records
from erasable.utils._checks.compare import (
    Snapshot,
    assert_raises,
    assert_same,
    assert_same_outputs,
    demand,
    differing,
    fit,
    law_check,
    model_check,
    saved,
    seeded,
    trained,
)
from erasable.utils._checks.data_sets import STANDARD, DataSet


@model_check
def check_clone_and_params(estimator: Any, data: DataSet, model: Any) -> None:
    """Clone unfitted, with equal parameters; neither fitting nor deleting changes a parameter."""
    given = seeded(estimator).get_params(deep=False)
    model.delete(data.doomed_ids)
    told = f"by fitting {data.name!r} and deleting from it"
    for name, value in model.get_params(deep=False).items():
        if isinstance(value, bool | int | float | str | None):
            difference = differing(value, given[name])
            demand(difference is None, f"parameter {name!r} was changed {told}: {difference}")
    blank = clone(model)
    demand(blank is not model, "clone returned the model itself")
    for method in ("digest", "state"):
        assert_raises(NotFittedError, f"{method}() of a clone", getattr(blank, method))
    assert_raises(NotFittedError, "delete of a clone", blank.delete, [])
    digest = model.digest()
    twin, again = fit(blank, data), fit(estimator, data)
    assert_same(twin, again, f"between a clone and its original on {data.name!r}")
    demand(model.digest() == digest, "fitting a clone changed the model it was cloned from")
    changed = seeded(estimator).set_params(**given)
    assert_same(fit(changed, data), again, "after set_params(**get_params())")


@model_check
def check_pickle(estimator: Any, data: DataSet, model: Any) -> None:
    """Pickle before and after deletions: the copy is the model, and deletes as it does."""
    _assert_twin(pickle.loads(pickle.dumps(model)), model, estimator, data, "unpickling")


@model_check
def check_deepcopy(estimator: Any, data: DataSet, model: Any) -> None:
    """Copy deeply: the copy is the model, deletes as it does, and shares nothing with it."""
    _assert_twin(copy.deepcopy(model), model, estimator, data, "copy.deepcopy")


def _assert_twin(twin: Any, model: Any, estimator: Any, data: DataSet, how: str) -> None:
    assert_same(twin, model, f"after {how} of a fit on {data.name!r}")
    assert_same_outputs(twin, model, data, f"after {how}")
    snapshot = Snapshot(model, data)
    twin.delete(data.doomed_ids[:1])
    snapshot.assert_unchanged(f"deleting from the result of {how}")
    told = f"from a refit when deleting after {how}, {data.name!r}"
    assert_same(twin, fit(estimator, data.without(data.doomed_ids[:1])), told)
    copies = pickle.loads(pickle.dumps(twin)) if how == "unpickling" else copy.deepcopy(twin)
    assert_same(copies, twin, f"after {how} of a model that has deleted")
    copies.delete(data.doomed_ids[1:])
    assert_same(copies, fit(estimator, data.without(data.doomed_ids)), f"{told}, twice")
    assert_same_outputs(twin, fit(estimator, data.without(data.doomed_ids[:1])), data, told)


@contextmanager
def _file(model: Any) -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model"
        model.save(path)
        yield path


@model_check
def check_load_predicts(estimator: Any, data: DataSet, model: Any) -> None:
    """Save and load without records: the same model, which predicts, and refuses to delete."""
    model.delete(data.doomed_ids[:1])
    with _file(model) as path:
        loaded = type(model).load(path, trusted=True)
    told = f"after saving and loading a fit on {data.name!r}"
    assert_same(loaded, model, told)
    assert_same_outputs(loaded, model, data, told)
    demand(saved(loaded) == saved(model), f"saving again gives other bytes {told}")
    one = data.doomed_ids[1:2] if len(data.doomed) > 1 else data.ids[-1:]
    snapshot = Snapshot(loaded, data)
    call = "deleting from a model loaded without its records"
    assert_raises(DetachedError, call, loaded.delete, one)
    snapshot.assert_unchanged(call)


@model_check
def check_load_deletes(estimator: Any, data: DataSet, model: Any) -> None:
    """Save and load with the records: deletes as the model does; other records are refused."""
    first = data.doomed_ids[:1]
    model.delete(first)
    rest = data.without(first)
    with _file(model) as path:
        loaded = type(model).load(path, _records(rest))
        told = f"after saving and loading a fit on {data.name!r} with its records"
        assert_same(loaded, model, told)
        assert_same_outputs(loaded, model, data, told)
        for wrong, other in (
            ("records of which one is missing", rest.without(rest.ids[:1])),
            ("records of which one was deleted", data),
        ):
            call = f"loading with {wrong}"
            records = _records(other)
            assert_raises(ArtifactError, call, type(model).load, path, records)
    if len(data.doomed) > 1:
        for each in (model, loaded):
            each.delete(data.doomed_ids[1:])
        assert_same(loaded, model, f"when deleting {told}")
        assert_same_outputs(loaded, model, data, f"when deleting {told}")


def _records(data: DataSet) -> Records:
    return Records(data.X, data.y, ids=data.ids, groups=data.groups)


@law_check
def check_fit_again(estimator: Any, data_sets: Sequence[DataSet] = STANDARD) -> None:
    """Fit the same object again after deletions: nothing is left of the former fit."""
    former: Any = None
    for data, model in trained(estimator, data_sets):
        model.delete(data.doomed_ids)
        for again in (former, model):
            if again is not None:
                again.fit(data.X, data.y, ids=data.ids, groups=data.groups)
                told = f"from a first fit when an object is fitted again, on {data.name!r}"
                assert_same(again, fit(estimator, data), told)
                assert_same_outputs(again, fit(estimator, data), data, told)
        model.delete(data.doomed_ids[:1])
        rest = data.without(data.doomed_ids[:1])
        assert_same(model, fit(estimator, rest), f"from a refit {told}, then deletes")
        demand(
            np.array_equal(np.sort(_text(model.ids_)), np.sort(_text(rest.ids))),
            "ids_ holds ids of a former fit",
        )
        former = model


def _text(ids: Any) -> Any:
    return np.asarray(ids).astype(str)
