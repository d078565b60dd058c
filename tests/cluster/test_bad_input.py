"""What cannot be learned from, or deleted, is refused by a named error, and nothing changes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.exceptions import NotFittedError

from cluster.lawful import leaves, same
from erasable.cluster import DivideAndConquerKMeans, KMeans, QuantizedKMeans
from erasable.core.errors import (
    DetachedError,
    ErasableError,
    InvalidDataError,
    InvalidIdsError,
    MagnitudeError,
    TooFewRecordsError,
    UnknownIdError,
)

ALL = [KMeans, QuantizedKMeans, DivideAndConquerKMeans]
every_model = pytest.mark.parametrize("make", ALL, ids=lambda cls: cls.__name__)
X = np.random.default_rng(0).normal(size=(60, 3))
GROUPS = np.arange(60) // 5


def with_value(value: float) -> np.ndarray:
    bad = X.copy()
    bad[3, 1] = value
    return bad


def picture(model: Any) -> dict[str, Any]:
    """All that can be asked of a model, the accelerator's answers included."""
    seen = leaves(model.state()) | {"digest": model.digest(), "params": str(model.get_params())}
    for name in ("labels_", "inertia_", "cluster_centers_", "n_iter_", "ids_"):
        seen[name] = getattr(model, name)
    return seen | {"predict": model.predict(X), "transform": model.transform(X)}


def assert_refuses(model: Any, error: type[Exception], call: Any, *told: str) -> None:
    """Demand one named error of one line that says all of `told`, and a model as before."""
    before = picture(model)
    with pytest.raises(error) as caught:
        call()
    text = str(caught.value)
    assert isinstance(caught.value, ErasableError)
    assert "\n" not in text
    for words in told:
        assert words in text
    after = picture(model)
    assert before.keys() == after.keys()
    assert all(same(before[name], after[name]) for name in before)


FIT: dict[str, tuple[type[Exception], tuple[Any, ...], dict[str, Any], tuple[str, ...]]] = {
    "NaN": (InvalidDataError, (with_value(np.nan),), {}, ("NaN",)),
    "infinity": (InvalidDataError, (with_value(-np.inf),), {}, ("inf",)),
    "empty": (InvalidDataError, (np.empty((0, 3)),), {}, ("0 sample(s)", "minimum of 1")),
    "no columns": (InvalidDataError, (np.empty((9, 0)),), {}, ("0 feature(s)", "minimum of 1")),
    "one dimension": (InvalidDataError, (X[:, 0],), {}, ("expected 2D array", "Reshape")),
    "complex": (InvalidDataError, (X + 1j,), {}, ("Complex data not supported",)),
    "text": (InvalidDataError, ([["a", "b"]] * 9,), {}, ("text", "encode")),
    "object column": (
        InvalidDataError,
        (pd.DataFrame({"a": X[:, 0], "name": ["x"] * 60}),),
        {},
        ("'name'", "encode or drop"),
    ),
    "object column of polars": (
        InvalidDataError,
        (pl.DataFrame({"a": X[:, 0], "name": ["x"] * 60}),),
        {},
        ("'name'", "encode or drop"),
    ),
    "fewer records than clusters": (TooFewRecordsError, (X[:3],), {}, ("n_samples=3", "least 4")),
    "repeated ids": (
        InvalidIdsError,
        (X,),
        {"ids": [*range(58), 7, 9]},
        ("7", "9"),
    ),
    "fewer ids than rows": (InvalidIdsError, (X,), {"ids": range(59)}, ("59 ids for 60 rows",)),
    "float ids": (InvalidIdsError, (X,), {"ids": np.arange(60.0)}, ("float64",)),
    "boolean ids": (InvalidIdsError, (X,), {"ids": np.arange(60) > 5}, ("bool",)),
    "no such column": (
        InvalidIdsError,
        (pd.DataFrame(X, columns=list("abc")),),
        {"ids": "patient"},
        ("'patient' is not a column",),
    ),
    "no such column of polars": (
        InvalidIdsError,
        (pl.DataFrame(dict(zip("abc", X.T, strict=True))),),
        {"ids": "patient"},
        ("'patient' is not a column",),
    ),
    "a column's name without a frame": (InvalidIdsError, (X,), {"ids": "a"}, ("frame",)),
    "fewer groups than rows": (InvalidIdsError, (X,), {"groups": [1, 2]}, ("2 groups for 60",)),
    "huge values": (MagnitudeError, (with_value(1e150),), {}, ("2**480", "column 1", "divide")),
}


@every_model
@pytest.mark.parametrize("case", FIT)
def test_fit_refuses_and_stays_what_it_was(make: Any, case: str) -> None:
    error, args, kwargs, told = FIT[case]
    model = make(4, random_state=0).fit(X)
    model.delete([11])
    assert_refuses(model, error, lambda: model.fit(*args, **kwargs), *told)
    unfitted = make(4, random_state=0)
    with pytest.raises(error):
        unfitted.fit(*args, **kwargs)
    assert not any(name.endswith("_") for name in vars(unfitted))
    with pytest.raises(NotFittedError):
        unfitted.predict(X)
    # It can go on, and a fit that is right is not disturbed by the one that was not.
    model.delete([12])
    assert unfitted.fit(X).delete([11, 12]).digest_after == model.digest()


DELETE: dict[str, tuple[type[Exception], Any, dict[str, Any], tuple[str, ...]]] = {
    "unknown": (UnknownIdError, [3, 999], {}, ("999",)),
    "already deleted": (UnknownIdError, [11], {}, ("11",)),
    "repeated": (InvalidIdsError, [3, 4, 3], {}, ("3",)),
    "float": (InvalidIdsError, [3.0], {}, ("float",)),
    "boolean": (InvalidIdsError, [True], {}, ("bool",)),
    "a mask": (InvalidIdsError, np.arange(60) == 3, {}, ("bool",)),
    "text where ids are numbers": (UnknownIdError, ["3"], {}, ("'3'",)),
    "one id, not a list": (InvalidIdsError, 3, {}, ("list",)),
    "nothing said": (InvalidIdsError, None, {}, ("neither ids nor groups",)),
    "unknown group": (UnknownIdError, None, {"groups": [99]}, ("99",)),
    "too many": (TooFewRecordsError, range(13, 60), {"groups": [0, 1]}, ("at least 4",)),
    "everybody": (TooFewRecordsError, [i for i in range(60) if i != 11], {}, ("at least 4",)),
}


@every_model
@pytest.mark.parametrize("case", DELETE)
def test_delete_refuses_and_changes_nothing(make: Any, case: str) -> None:
    error, ids, kwargs, told = DELETE[case]
    model = make(4, random_state=0).fit(X, groups=GROUPS)
    model.delete([11])
    assert_refuses(model, error, lambda: model.delete(ids, **kwargs), *told)
    left = np.delete(np.arange(60), [11, 3])
    fresh = make(4, random_state=0).fit(X[left], ids=left, groups=GROUPS[left])
    model.delete([3])
    assert model.digest() == fresh.digest()


@every_model
def test_deleting_nothing_does_nothing(make: Any) -> None:
    model = make(4, random_state=0).fit(X)
    before = picture(model)
    for nothing in ([], (), np.empty(0, np.int64), np.empty(0)):
        deletion = model.delete(nothing)
        assert deletion.action == "none"
        assert deletion.rows_touched == 0
        assert deletion.digest_before == deletion.digest_after == before["digest"]
    after = picture(model)
    assert all(same(before[name], after[name]) for name in before)


@every_model
@pytest.mark.parametrize("method", ["predict", "transform", "score"])
def test_questions_about_other_data_are_refused(make: Any, method: str) -> None:
    model = make(4, random_state=0).fit(X)
    ask = getattr(model, method)
    for bad in (X[:, :2], with_value(np.nan), with_value(np.inf), X[0], np.empty((0, 3))):
        assert_refuses(model, InvalidDataError, lambda bad=bad: ask(bad))


@every_model
def test_a_model_without_its_records_predicts_and_does_not_delete(make: Any, tmp_path: Any) -> None:
    model = make(4, random_state=0).fit(X)
    model.save(tmp_path / "model")
    alone = make.load(tmp_path / "model")
    assert np.array_equal(alone.predict(X), model.labels_)
    assert alone.digest() == model.digest()
    for ask in (lambda: alone.delete([3]), lambda: alone.labels_, lambda: alone.inertia_):
        with pytest.raises(DetachedError, match=r"load it with load\(path, records\)"):
            ask()
    assert alone.digest() == model.digest()
