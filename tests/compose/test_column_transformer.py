"""The column transformer: columns by every name, what it makes of them, and what it hands on."""

from __future__ import annotations

import io
import pickle
from copy import deepcopy
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn.compose
import sklearn.preprocessing
from scipy.sparse import csr_array, issparse
from sklearn.base import clone
from sklearn.compose import make_column_selector
from sklearn.preprocessing import FunctionTransformer

import erasable
from erasable.cluster import KMeans
from erasable.compose import ColumnTransformer, make_column_transformer
from erasable.core._column_choice import Columns, positions
from erasable.core.errors import (
    ErasableError,
    InvalidDataError,
    InvalidInputError,
    InvalidParameterError,
    UnsupportedStepError,
)
from erasable.pipeline import make_pipeline
from erasable.preprocessing import MinMaxScaler, OneHotEncoder, SimpleImputer, StandardScaler
from erasable.utils._checks.compare import assert_same

NAMES = ["age", "bmi", "city", "pulse"]


@pytest.fixture
def frame() -> pd.DataFrame:
    rng = np.random.default_rng(5)
    frame = pd.DataFrame(rng.normal(50.0, 9.0, size=(40, 3)), columns=["age", "bmi", "pulse"])
    frame.insert(2, "city", rng.choice(["Bonn", "Köln", "Ulm"], size=40))
    return frame.set_axis([f"p{i}" for i in range(40)])


@pytest.mark.parametrize(
    ("columns", "expected"),
    [
        ("bmi", [1]),
        (2, [2]),
        (-1, [3]),
        (["pulse", "age"], [3, 0]),
        (np.array([0, 3]), [0, 3]),
        (slice("bmi", "city"), [1, 2]),
        (slice("city", None), [2, 3]),
        (slice(None, -2), [0, 1]),
        ([True, False, False, True], [0, 3]),
        (pd.Index(["age"]), [0]),
    ],
)
def test_columns_have_many_names(columns: Any, expected: list[int]) -> None:
    assert positions(columns, Columns(4, NAMES), "part") == expected


@pytest.mark.parametrize(
    ("columns", "names", "message"),
    [
        ("size", NAMES, "asks for the column 'size', which X does not have"),
        ("age", None, "but X has no names"),
        (4, NAMES, "asks for column 4 of 4"),
        ([0.5], NAMES, "asks for column 0.5"),
        ([True], NAMES, "mask .* has 1 entries; expected one for each of 4"),
        (lambda X: [0], NAMES, "are a function"),
    ],
)
def test_columns_that_are_not_there(columns: Any, names: Any, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        positions(columns, Columns(4, names), "part")


def test_it_does_what_scikit_learns_does(frame: pd.DataFrame) -> None:
    def make(room: Any, home: Any) -> Any:
        return home.ColumnTransformer(
            [
                ("one", room.StandardScaler(), ["pulse", "age"]),
                ("two", room.MinMaxScaler(), ["bmi"]),
                ("none", "drop", ["city"]),
            ]
        )

    ours = make(erasable.preprocessing, erasable.compose).fit(frame)
    theirs = make(sklearn.preprocessing, sklearn.compose).fit(frame)
    np.testing.assert_allclose(ours.transform(frame), theirs.transform(frame), atol=1e-7)
    assert ours.get_feature_names_out().tolist() == theirs.get_feature_names_out().tolist()
    for name, where in ours.output_indices_.items():
        assert where == theirs.output_indices_[name]
    assert ours.named_transformers_.keys() == theirs.named_transformers_.keys()
    np.testing.assert_array_equal(ours.fit_transform(frame), ours.transform(frame))
    assert list(ours.set_output(transform="pandas").transform(frame)) == list(
        theirs.get_feature_names_out()
    )


def test_the_rest_is_dropped_passed_or_transformed(frame: pd.DataFrame) -> None:
    numbers = frame.drop(columns="city")
    parts = [("one", StandardScaler(), ["age"])]
    assert ColumnTransformer(parts).fit(numbers).transform(numbers).shape == (40, 1)
    passed = ColumnTransformer(parts, remainder="passthrough").fit(numbers)
    np.testing.assert_array_equal(passed.transform(numbers)[:, 1:], numbers[["bmi", "pulse"]])
    scaled = ColumnTransformer(clone(passed).transformers, remainder=MinMaxScaler()).fit(numbers)
    assert scaled.transform(numbers)[:, 1:].max() == 1.0
    before = scaled.digest()
    scaled.delete(["p3"])
    assert_same(scaled, clone(scaled).fit(numbers.drop(index="p3")), "with a rest")
    assert scaled.digest() != before
    with pytest.raises(erasable.core.errors.DetachedError):
        scaled.remainder.delete(["p4"])


def test_text_passes_through_and_is_refused_where_numbers_are_wanted(frame: pd.DataFrame) -> None:
    kept = ColumnTransformer([("city", "passthrough", ["city"]), ("n", MinMaxScaler(), ["age"])])
    out = kept.fit_transform(frame)
    assert out.dtype == object
    assert out[:, 0].tolist() == frame["city"].tolist()
    with pytest.raises(InvalidDataError, match="1 columns hold text: 'city'; expected numbers"):
        ColumnTransformer([("n", MinMaxScaler(), ["age", "city"])]).fit(frame)
    with pytest.raises(InvalidDataError, match=r"NaN in 1 columns: 'age'"):
        kept.transform(frame.assign(age=np.nan))


def test_sparse_columns_stay_sparse() -> None:
    X = csr_array(np.eye(4))
    out = ColumnTransformer([("all", "passthrough", [0, 2])]).fit_transform(X.toarray())
    assert not issparse(out)


@pytest.mark.parametrize(
    ("transformers", "error", "message"),
    [
        ([("one", StandardScaler())], InvalidInputError, "expected three items"),
        ([StandardScaler()], InvalidInputError, "expected three items"),
        (
            [("a", StandardScaler(), [0]), ("a", MinMaxScaler(), [1])],
            InvalidInputError,
            "not unique",
        ),
        (
            [("a", sklearn.preprocessing.StandardScaler(), [0])],
            UnsupportedStepError,
            "learns from records and cannot",
        ),
        ([("a", KMeans(), [0]), ("b", 3, [1])], UnsupportedStepError, "step 'b' is 3"),
        ([("a", MinMaxScaler(), [9])], InvalidInputError, "column 9 of 3"),
        ([("a", MinMaxScaler(), slice(2, 1))], InvalidInputError, "'a' has no columns"),
        (3, ValueError, "transformers"),
    ],
)
def test_what_cannot_be_put_together(transformers: Any, error: Any, message: str) -> None:
    scaler = ColumnTransformer([("one", StandardScaler(), [0, 1])]).fit(np.eye(3))
    digest = scaler.digest()
    with pytest.raises(error, match=message) as caught:
        ColumnTransformer(transformers).fit(np.eye(3))
    assert "\n" not in str(caught.value) or not isinstance(caught.value, ErasableError)
    assert scaler.digest() == digest


def test_no_columns_is_no_part() -> None:
    both = ColumnTransformer([("a", StandardScaler(), []), ("b", MinMaxScaler(), [0])])
    assert both.fit(np.eye(3)).get_feature_names_out().tolist() == ["b__x0"]
    assert not hasattr(both.transformers[0][1], "n_features_in_")


def test_parameters_reach_the_parts() -> None:
    both = make_column_transformer((StandardScaler(), [0]), (MinMaxScaler(), [1]))
    both.set_params(minmaxscaler__feature_range=(-1, 1), standardscaler="passthrough")
    assert both.transformers[1][1].feature_range == (-1, 1)
    assert both.transformers[0] == ("standardscaler", "passthrough", [0])
    assert both.get_params()["minmaxscaler__clip"] is False


def test_it_comes_back_from_pickle_and_file(frame: pd.DataFrame, tmp_path: Any) -> None:
    numbers = frame.drop(columns="city")
    model = ColumnTransformer(
        [("one", make_pipeline(MinMaxScaler(clip=True), StandardScaler()), slice("age", "bmi"))],
        remainder=StandardScaler(with_mean=False),
    ).fit(numbers)
    model.save(tmp_path / "model")
    refit = clone(model).fit(numbers.drop(index=["p1"]))
    for again in (
        pickle.loads(pickle.dumps(model)),
        erasable.load(tmp_path / "model", (numbers, numbers.index)),
    ):
        np.testing.assert_array_equal(again.transform(numbers), model.transform(numbers))
        again.delete(["p1"])
        assert_same(again, refit, "from a file or pickle", save=True)


def test_scalers_at_the_end_are_handed_on_as_a_map(frame: pd.DataFrame) -> None:
    numbers = frame.drop(columns="city")
    parts = ColumnTransformer(
        [
            ("one", StandardScaler(), ["age"]),
            ("two", make_pipeline(FunctionTransformer(np.abs), MinMaxScaler()), ["bmi"]),
            ("rest", "passthrough", ["pulse"]),
        ]
    )
    model = make_pipeline(parts, KMeans(3, random_state=0)).fit(numbers)
    deletion = model.delete(["p7"])
    assert deletion.action == "updated"
    assert deletion.counts["columntransformer.one.columns_scanned"] == 0
    fresh = clone(model).fit(numbers.drop(index="p7"))
    assert_same(model, fresh, "behind maps side by side")
    by_hand = KMeans(3, random_state=0).fit(fresh[0].transform(numbers.drop(index="p7")))
    assert by_hand.inertia_ == pytest.approx(model[-1].inertia_, rel=0.5)
    np.testing.assert_array_equal(model.predict(numbers), fresh.predict(numbers))
    alone = model[-1].predict(model[0].transform(numbers))
    np.testing.assert_array_equal(model.predict(numbers), alone)


def test_names_pass_functions_that_keep_frames() -> None:
    """As in scikit-learn: a ufunc makes a frame of a frame, another function may not."""
    X = pd.DataFrame({"a": [1.0, -2.0, 3.0], "b": [-3.0, 4.0, 1.0], "c": [0.0, 1.0, 5.0]})
    inner = ColumnTransformer([("scaled", StandardScaler(), ["b"])])
    for kept in (np.abs, None):
        chain = make_pipeline(FunctionTransformer(kept), inner)
        nested = ColumnTransformer([("part", chain, ["c", "b"])])
        for model in (chain, nested):
            model = clone(model).fit(X)
            theirs = sklearn.preprocessing.StandardScaler()
            values = X[["b"]] if kept is None else X[["b"]].abs()
            np.testing.assert_allclose(model.transform(X), theirs.fit_transform(values))
            file = io.BytesIO()
            model.save(file)
            file.seek(0)
            loaded = erasable.load(file, erasable.Records(X))
            for each in (model, loaded):
                each.delete([1])
            assert model.digest() == loaded.digest() == clone(model).fit(X.drop(index=1)).digest()
    chain = make_pipeline(FunctionTransformer(np.fliplr), inner)
    with pytest.raises(InvalidInputError, match="asks for the column 'b', but X has no names"):
        chain.fit(X)


def test_a_part_begins_with_a_pipeline_without_steps() -> None:
    """What an earlier version learned wrong is found out without an error."""
    X = np.random.default_rng(0).random((20, 3))
    chain = make_pipeline(
        make_pipeline("passthrough"), SimpleImputer(), StandardScaler(with_mean=False)
    )
    model = make_pipeline(
        ColumnTransformer([("part", chain, [0, 1, 0])], remainder="passthrough"),
        KMeans(2, random_state=0),
    ).fit(X)
    model.delete([3])
    rest = np.delete(np.arange(20), 3)
    assert model.digest() == clone(model).fit(X[rest], ids=rest).digest()


def by_type(home: Any, room: Any) -> Any:
    """Choose columns by type and by name."""
    return home.make_column_transformer(
        (room.StandardScaler(), make_column_selector(dtype_include="number")),
        (room.OneHotEncoder(), make_column_selector(pattern="^ci", dtype_exclude=np.number)),
        (room.MinMaxScaler(), make_column_selector(dtype_include=["float32"])),
        sparse_threshold=0,
    )


def test_columns_are_selected_by_type_and_name(frame: pd.DataFrame, tmp_path: Any) -> None:
    frame["when"] = pd.Timestamp("2024-01-01")
    frame["age"] = frame["age"].round().astype(int)
    model = by_type(erasable.compose, erasable.preprocessing).fit(frame)
    theirs = by_type(sklearn.compose, sklearn.preprocessing).fit(frame)
    np.testing.assert_allclose(model.transform(frame), theirs.transform(frame), atol=1e-7)
    assert model.get_feature_names_out().tolist() == theirs.get_feature_names_out().tolist()
    model.save(tmp_path / "model")
    fresh = clone(model).fit(frame.drop(index=["p1"]))
    # What was chosen stays chosen, whatever types the records have that come with a file.
    same = frame.astype({"pulse": object})
    for again in (
        pickle.loads(pickle.dumps(model)),
        erasable.load(tmp_path / "model", (frame, frame.index)),
        erasable.load(tmp_path / "model", (same, frame.index)),
        model,
    ):
        again.delete(["p1"])
        assert_same(again, fresh, "selected")
    other = frame.drop(index=["p1"]).assign(age="text")
    assert clone(again).fit(other).get_feature_names_out()[0].endswith("bmi")


def test_columns_are_selected_anywhere(frame: pd.DataFrame) -> None:
    inner = make_column_transformer(
        (StandardScaler(), make_column_selector(dtype_include="float")), remainder="passthrough"
    )
    nested = ColumnTransformer([("inner", make_pipeline(inner), ["pulse", "bmi"])])
    model = make_pipeline(make_pipeline("passthrough"), nested, KMeans(2, random_state=0))
    model.fit(erasable.Records(frame))
    model.delete(["p2"])
    assert_same(model, clone(model).fit(frame.drop(index=["p2"])), "nested")
    names = make_column_transformer((StandardScaler(), make_column_selector(pattern="^(b|p)")))
    assert names.fit(pl.from_pandas(frame)).get_feature_names_out().tolist() == [
        "standardscaler__bmi",
        "standardscaler__pulse",
    ]


@pytest.mark.parametrize(
    ("columns", "X", "message"),
    [
        (make_column_selector(dtype_include="number"), np.eye(3), "X has no names"),
        (make_column_selector(dtype_include="number"), pl.DataFrame({"a": [1]}), "no frame of pan"),
        (lambda X: [0], pd.DataFrame({"a": [1]}), "are a function"),
    ],
)
def test_columns_that_cannot_be_selected(columns: Any, X: Any, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        ColumnTransformer([("a", MinMaxScaler(), columns)]).fit(X)


def test_the_output_is_dense_where_that_is_asked_for(frame: pd.DataFrame) -> None:
    parts = [("city", OneHotEncoder(), ["city"]), ("n", StandardScaler(), ["age"])]
    sparse, dense = ColumnTransformer(parts), ColumnTransformer(deepcopy(parts), sparse_threshold=0)
    out = dense.fit_transform(frame)
    assert issparse(sparse.fit_transform(frame))
    np.testing.assert_array_equal(out, sparse.transform(frame).toarray())
    model = make_pipeline(dense, KMeans(2, random_state=0)).fit(frame)
    gone = frame.index[frame["city"] == "Ulm"].tolist()
    model.delete(gone)
    assert_same(model, clone(model).fit(frame.drop(index=gone)), "dense")
    with pytest.raises(InvalidParameterError, match=r"sparse_threshold is 0\.3; expected 1"):
        ColumnTransformer(parts, sparse_threshold=0.3).fit(frame)


@pytest.mark.parametrize("rest", ["drop", "passthrough", "scaled"])
def test_attributes_name_what_is_dropped_and_passed_through(rest: str) -> None:
    table = np.arange(12.0).reshape(4, 3)

    def made(cls: Any, scaler: Any) -> Any:
        parts = [("one", scaler(), [0]), ("two", "drop", [1])]
        return cls(parts, remainder=scaler() if rest == "scaled" else rest).fit(table)

    ours = made(ColumnTransformer, StandardScaler)
    theirs = made(sklearn.compose.ColumnTransformer, sklearn.preprocessing.StandardScaler)
    assert ours.output_indices_ == theirs.output_indices_
    assert ours.named_transformers_.keys() == theirs.named_transformers_.keys()
    assert ours.named_transformers_["two"] == "drop"
    assert (ours.named_transformers_["remainder"] == rest) is (rest != "scaled")
