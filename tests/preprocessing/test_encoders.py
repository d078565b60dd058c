"""Both encoders: the law, scikit-learn's answers, and what they refuse."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn.preprocessing
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.utils.estimator_checks import parametrize_with_checks

from effort import examples
from erasable import Records, load
from erasable.core.changes import Delta
from erasable.core.deletion import Outcome
from erasable.core.errors import (
    ArtifactError,
    InvalidDataError,
    InvalidInputError,
    InvalidParameterError,
    InvalidTypeError,
)
from erasable.preprocessing import OneHotEncoder, OrdinalEncoder
from preprocessing.mixed_tables import any_tables, assert_lawful, dense, object_tables, same_cells

ENCODERS = [
    OneHotEncoder(),
    OneHotEncoder(sparse_output=False, handle_unknown="ignore", dtype=np.float32),
    OneHotEncoder(drop="first", handle_unknown="ignore"),
    OneHotEncoder(drop="if_binary", sparse_output=False),
    OrdinalEncoder(),
    OrdinalEncoder(
        handle_unknown="use_encoded_value",
        unknown_value=-1,
        encoded_missing_value=-2,
        dtype=np.int32,
    ),
]
each_encoder = pytest.mark.parametrize("encoder", ENCODERS, ids=repr)

COLOURS = np.array([["red", 1.5], ["blue", 2], ["red", 3], ["green", 2], [None, 2]], dtype=object)


def theirs(encoder: Any) -> Any:
    """The same encoder of scikit-learn."""
    cls = getattr(sklearn.preprocessing, type(encoder).__name__)
    return cls(**encoder.get_params())


@parametrize_with_checks(ENCODERS)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
def test_scikit_learn_contract(estimator: Any, check: Any) -> None:
    check(estimator)


@each_encoder
@given(table=any_tables(), data=st.data())
@settings(max_examples=examples(35))
def test_after_deletions_the_encoder_is_a_refit(
    encoder: Any, table: np.ndarray, data: st.DataObject
) -> None:
    assert_lawful(encoder, table, data)


class Clinging(OrdinalEncoder):
    """Breaks the law: keeps categories that nobody has any more."""

    def _update(self, delta: Delta) -> Outcome:
        self._accelerator.fixed = True
        return super()._update(delta)


def test_categories_of_the_gone_would_be_seen() -> None:
    """Negative control."""
    for cls, same in ((Clinging, False), (OrdinalEncoder, True)):
        model = cls().fit(COLOURS)
        model.delete([1])
        refit = cls().fit(COLOURS[[0, 2, 3, 4]], ids=[0, 2, 3, 4])
        assert (model.digest() == refit.digest()) is same


# --------------------------------------------------------------------------- the numbers


@each_encoder
@given(table=any_tables(), data=st.data())
@settings(max_examples=examples(35))
def test_scikit_learn_gives_the_same(encoder: Any, table: np.ndarray, data: st.DataObject) -> None:
    """Column by column, so that theirs knows of every column if it is text or numbers."""
    if table.dtype == object:
        table[np.array([[cell is None for cell in row] for row in table])] = np.nan
    ours = clone(encoder).fit(table)
    rows = data.draw(st.lists(st.integers(0, len(table) - 1), min_size=1, max_size=5))
    for j in range(table.shape[1]):
        column = table[:, [j]]
        other = theirs(encoder).fit(column)
        mine = clone(encoder).fit(column)
        for model in (ours, mine):
            at = j if model is ours else 0
            text = any(isinstance(cell, str) for cell in column.ravel().tolist())
            wanted = other.categories_[0].astype(object if text else np.float64)
            assert model.categories_[at].dtype == wanted.dtype
            assert same_cells(model.categories_[at], wanted)
        made, wanted = dense(mine.transform(column[rows])), dense(other.transform(column[rows]))
        assert made.dtype == wanted.dtype
        assert made.tobytes() == wanted.tobytes()
        back = mine.inverse_transform(mine.transform(column[rows]))
        if made.shape[1]:  # theirs refuses a table without columns
            assert same_cells(back, other.inverse_transform(wanted))
        if isinstance(encoder, OneHotEncoder) and table.dtype == object and j == 0:
            names = mine.get_feature_names_out(["c"]).tolist()
            assert names == other.get_feature_names_out(["c"]).tolist()


@each_encoder
def test_unknown_categories(encoder: Any) -> None:
    ours, other = clone(encoder).fit(COLOURS[:4, :1]), theirs(encoder).fit(COLOURS[:4, :1])
    rows = np.array([["red"], ["violet"]], dtype=object)
    if encoder.handle_unknown == "error":
        with pytest.raises(InvalidDataError) as caught:
            ours.transform(rows)
        assert "1 values of columns 'x0' during transform" in str(caught.value)
        assert "violet" not in str(caught.value)
        return
    with pytest.warns(UserWarning, match="unknown") if getattr(encoder, "drop", None) else _calm():
        wanted = dense(other.transform(rows))
    assert dense(ours.transform(rows)).tolist() == wanted.tolist()
    back = ours.inverse_transform(ours.transform(rows))
    assert back.tolist() == other.inverse_transform(wanted).tolist()


def _calm() -> Any:
    from contextlib import nullcontext

    return nullcontext()


# --------------------------------------------------------------------------- fixed categories


@pytest.mark.parametrize("cls", [OneHotEncoder, OrdinalEncoder])
@given(data=st.data())
@settings(max_examples=examples(40))
def test_fixed_categories_never_go(cls: Any, data: st.DataObject) -> None:
    n = data.draw(st.integers(2, 12))
    cells = st.sampled_from(["b", "a", np.nan])
    table = np.array(
        [[data.draw(cells), data.draw(st.integers(1, 2))] for _ in range(n)], dtype=object
    )
    encoder = cls(categories=[["b", "a", "z", np.nan], [1, 2]])
    assert_lawful(encoder, table, data)
    model = encoder.fit(table)
    before = repr(dense(model.transform(table)).tolist())
    model.delete(range(n - 1))
    assert repr(dense(model.transform(table)).tolist()) == before
    assert not model._output_change()


def test_fixed_numbers_in_a_table_of_numbers() -> None:
    table = np.array([[3.0], [1.0], [np.nan]])
    for cls in (OneHotEncoder, OrdinalEncoder):
        params = {"categories": [[1, 2, 3, None]]}
        ours = cls(**params).fit(table)
        other = getattr(sklearn.preprocessing, cls.__name__)(categories=[[1, 2, 3, np.nan]])
        wanted = dense(other.fit(table).transform(table))
        np.testing.assert_array_equal(dense(ours.transform(table)), wanted)


@pytest.mark.parametrize(
    ("categories", "told"),
    [
        ([["a"]], "Shape mismatch.*1 lists for 2 columns"),
        ([["a", "a"], [1.0]], "duplicate elements"),
        ([["a", 1], [1.0]], "1 of them text"),
        ([[], [1.0]], "0 values"),
        (["ab", [1.0]], "are a str"),
        ([[np.inf], [1.0]], "1 of other types"),
        ([[np.nan, "a"], [1.0]], "Nan should be the last"),
        (
            [["blue", "red"], [1.5, 2, 3]],
            "unknown categories in 2 values of columns 'x0' during fit",
        ),
    ],
)
def test_bad_fixed_categories_are_refused(categories: Any, told: str) -> None:
    for cls in (OneHotEncoder, OrdinalEncoder):
        with pytest.raises(InvalidInputError, match=told) as caught:
            cls(categories=categories).fit(COLOURS)
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("categories", "told"),
    [([[2, 1]], "do not ascend"), ([["a"]], "expected numbers"), ([[1, np.nan, np.nan]], "last")],
)
def test_bad_fixed_numbers_are_refused(categories: Any, told: str) -> None:
    with pytest.raises(InvalidInputError, match=told):
        OneHotEncoder(categories=categories).fit([[1.0], [2.0]])


@pytest.mark.parametrize("cls", [OneHotEncoder, OrdinalEncoder])
def test_categories_that_are_not_given_are_refused_when_they_come_later(cls: Any) -> None:
    frame = pd.DataFrame({"size": [1.0, 2.0], "age": [5.0, 6.0]})
    encoder = cls(categories=[[1.0, 2.0], [5.0, 6.0, 7.0]]).fit(frame, ids=["a", "b"])
    digest = encoder.digest()
    new = frame.assign(age=[8.0, 9.0])
    told = r"unknown categories in 2 values of columns 'age' during fit"
    with pytest.raises(InvalidDataError, match=told):
        encoder.add(new, ids=["c", "d"])
    with pytest.raises(InvalidDataError, match=told):
        encoder.correct(["a", "b"], new)
    assert encoder.digest() == digest


# --------------------------------------------------------------------------- what goes in and out


@each_encoder
def test_frames_of_pandas_and_polars_are_one(encoder: Any) -> None:
    frame = pd.DataFrame(
        {"city": ["Ulm", "Bonn", None, "Ulm"], "floor": [1, 2, 2, 3], "lift": [True, False] * 2}
    )
    model, same = clone(encoder).fit(frame), clone(encoder).fit(pl.from_pandas(frame))
    assert model.digest() == same.digest()
    assert [c.tolist()[0] for c in model.categories_] == ["Bonn", 1, False]
    for each, table in ((model, frame), (same, pl.from_pandas(frame))):
        each.delete([1])
        assert dense(each.transform(table[2:3])).shape[1] == len(each.get_feature_names_out())
    assert model.digest() == same.digest()
    categorical = frame.assign(city=frame["city"].astype("category"))
    refit = clone(encoder).fit(categorical.drop(index=1))
    assert refit.digest() == model.digest()


def test_names_of_columns() -> None:
    frame = pd.DataFrame({"city": ["Ulm", "Bonn", None], "floor": [1.0, 2.0, 2.5]})
    model = OneHotEncoder().fit(frame)
    names = ["city_Bonn", "city_Ulm", "city_nan", "floor_1", "floor_2", "floor_2.5"]
    assert model.get_feature_names_out().tolist() == names
    assert OrdinalEncoder().fit(frame).get_feature_names_out().tolist() == ["city", "floor"]


def test_set_output() -> None:
    frame = pd.DataFrame({"city": ["Ulm", "Bonn"]})
    model = OneHotEncoder(sparse_output=False).set_output(transform="pandas").fit(frame)
    assert model.transform(frame).columns.tolist() == ["city_Bonn", "city_Ulm"]
    with pytest.raises(InvalidInputError, match="does not support sparse"):
        OneHotEncoder().set_output(transform="pandas").fit(frame).transform(frame)


@each_encoder
def test_cells_that_are_no_values_are_refused(encoder: Any) -> None:
    for cell in ([1, 2], {"a": 1}, object(), pd.Timestamp("2020-01-01"), 1j):
        table = np.array([["a", "b"], ["c", "d"]], dtype=object)
        table[0, 0] = cell
        with pytest.raises(InvalidDataError, match="holds a value of type"):
            clone(encoder).fit(table)


@each_encoder
def test_text_among_numbers_is_refused(encoder: Any) -> None:
    frame = pd.DataFrame({"mixed": ["a", 1, 2], "fine": ["x", "y", "z"]})
    with pytest.raises(InvalidTypeError, match="'mixed' holds text in 1 records and numbers in 2"):
        clone(encoder).fit(frame)


@each_encoder
def test_a_width_that_is_not_its_own(encoder: Any) -> None:
    model = clone(encoder).fit(COLOURS)
    with pytest.raises(InvalidDataError):
        model.transform(COLOURS[:, :1])
    with pytest.raises(InvalidDataError, match="Shape of the passed X data is not correct"):
        model.inverse_transform(np.zeros((2, 17)))
    with pytest.raises(InvalidDataError):
        model.inverse_transform([["a"]])


@pytest.mark.parametrize("dtype", ["text", object, "float64x", None])
def test_a_dtype_that_holds_no_numbers_is_refused(dtype: Any) -> None:
    if dtype is None:  # NumPy's name for float64
        assert OrdinalEncoder(dtype=None).fit(COLOURS).transform(COLOURS).dtype == np.float64
        return
    for cls in (OneHotEncoder, OrdinalEncoder):
        with pytest.raises(InvalidParameterError, match="no type of numbers"):
            cls(dtype=dtype).fit(COLOURS)


@each_encoder
@given(table=object_tables())
@settings(max_examples=examples(15))
def test_records_made_before_are_one_with_arrays(encoder: Any, table: np.ndarray) -> None:
    records = Records(table)
    one, two = (clone(encoder).fit(records) for _ in range(2))
    one.delete([0])
    assert two.digest() == clone(encoder).fit(table).digest()
    rest = clone(encoder).fit(table[1:], ids=range(1, len(table)))
    assert one.digest() == rest.digest()
    two.delete([0])
    assert copy.deepcopy(two).digest() == rest.digest()


@each_encoder
def test_loading_with_and_without_records(encoder: Any, tmp_path: Path) -> None:
    model = clone(encoder).fit(COLOURS)
    model.delete([1])
    model.save(tmp_path / "model")
    left = [0, 2, 3, 4]
    alone = load(tmp_path / "model")
    rows = COLOURS[left]
    assert alone.get_params()["dtype"] == encoder.dtype
    np.testing.assert_array_equal(dense(alone.transform(rows)), dense(model.transform(rows)))
    whole = load(tmp_path / "model", Records(rows, ids=left))
    for each in (whole, model):
        each.delete([0])
    assert whole.digest() == model.digest()
    other = rows.copy()
    other[0, 0] = "green"
    with pytest.raises(ArtifactError, match="makes another"):
        load(tmp_path / "model", Records(other, ids=left))


@each_encoder
def test_held_rows_are_encoded_from_their_codes(encoder: Any) -> None:
    model = clone(encoder).fit(COLOURS)
    model.delete([1])
    rows = np.array([4, 2])
    held = dense(model._transform_held(rows))
    np.testing.assert_array_equal(held, dense(model.transform(COLOURS[rows])))
    again = copy.deepcopy(model)
    np.testing.assert_array_equal(dense(again._transform_held(np.array([3, 1]))), held)
