"""OneHotEncoder: which columns go with a category, and what is dropped."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
import sklearn.preprocessing
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array

from effort import examples
from erasable.core.errors import InvalidDataError, InvalidInputError
from erasable.preprocessing import OneHotEncoder
from preprocessing.mixed_tables import assert_lawful, dense

TABLE = np.array([["a", "x"], ["b", "x"], ["c", "y"], ["b", "y"]], dtype=object)


def names(model: Any) -> list[str]:
    return model.get_feature_names_out(["p", "q"]).tolist()


def test_columns_go_with_the_last_record_of_a_category() -> None:
    model = OneHotEncoder().fit(TABLE)
    deletion = model.delete([1])
    assert (deletion.counts, deletion.rows_touched) == ({"categories_gone": 0}, 0)
    assert not model._output_change()
    deletion = model.delete([2])
    assert (deletion.counts, deletion.rows_touched) == ({"categories_gone": 1}, 2)
    assert names(model) == ["p_a", "p_b", "q_x", "q_y"]
    assert model._output_change().origin.tolist() == [0, 1, 3, 4]
    assert not model._output_change().columns.any()


def test_the_category_that_is_dropped_changes_with_the_first() -> None:
    model = OneHotEncoder(drop="first").fit(TABLE)
    assert names(model) == ["p_b", "p_c", "q_y"]
    model.delete([0])
    assert names(model) == ["p_c", "q_y"]
    assert model._output_change().origin.tolist() == [1, 2]
    assert model.drop_idx_.tolist() == [0, 0]


def test_a_column_is_new_where_two_categories_become_one() -> None:
    model = OneHotEncoder(drop="if_binary").fit(TABLE)
    assert names(model) == ["p_a", "p_b", "p_c", "q_y"]
    model.delete([2])
    assert names(model) == ["p_b", "q_y"]  # a is the first of two now
    assert model._output_change().origin.tolist() == [1, 3]
    model.delete([3])
    assert names(model) == ["p_b", "q_x"]
    assert model._output_change().origin.tolist() == [0, -1]
    assert model._output_change().columns.tolist() == [False, True]


@given(data=st.data())
@settings(max_examples=examples(35))
def test_categories_named_in_drop_may_go(data: st.DataObject) -> None:
    n = data.draw(st.integers(3, 15))
    cells = st.sampled_from(["a", "b", "c", np.nan])
    table = np.array([[data.draw(cells), data.draw(cells)] for _ in range(n)], dtype=object)
    table[:2] = [["b", np.nan], ["a", "a"]]
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="drop= names categories")
        assert_lawful(OneHotEncoder(drop=["b", None], handle_unknown="ignore"), table, data)
    ours = OneHotEncoder(drop=["b", None]).fit(table)
    other = sklearn.preprocessing.OneHotEncoder(drop=["b", np.nan]).fit(table)
    assert ours.drop_idx_.tolist() == other.drop_idx_.tolist()
    assert dense(ours.transform(table)).tolist() == dense(other.transform(table)).tolist()
    back = ours.inverse_transform(other.transform(table))
    assert repr(back.tolist()) == repr(table.tolist())


def test_a_category_named_in_drop_that_is_not_there_is_told_of() -> None:
    with pytest.warns(UserWarning, match="drop= names categories of 1 columns that no record has"):
        model = OneHotEncoder(drop=["b", "z"]).fit(TABLE)
    assert model.drop_idx_.tolist() == [1, None]
    assert names(model) == ["p_a", "p_c", "q_x", "q_y"]


def test_output_is_canonical_csr_of_the_type_asked_for() -> None:
    made = OneHotEncoder(dtype=np.int8).fit(TABLE).transform(TABLE)
    assert isinstance(made, csr_array)
    assert (made.dtype, made.indices.dtype) == (np.int8, np.int32)
    assert made.has_canonical_format
    assert (made.data == 1).all()


def test_no_columns_are_left_when_each_has_one_category() -> None:
    model = OneHotEncoder(drop="first").fit([["a"], ["a"]])
    assert model.transform([["a"]]).shape == (1, 0)
    assert model.inverse_transform(np.zeros((2, 0))).tolist() == [["a"], ["a"]]


def test_zeros_everywhere_cannot_be_turned_back() -> None:
    model = OneHotEncoder().fit(TABLE)
    zeros = np.zeros((2, 5))
    zeros[0, [0, 3]] = zeros[1, 0] = 1
    for X in (zeros, csr_array(zeros)):
        with pytest.raises(InvalidDataError, match=r"1 samples can not be inverted.*'x1'"):
            model.inverse_transform(X)
    blank = OneHotEncoder(handle_unknown="ignore").fit(TABLE).inverse_transform(zeros)
    assert blank.tolist() == [["a", "x"], ["a", None]]


def test_drop_of_another_length_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="`drop` should have length equal"):
        OneHotEncoder(drop=["a"]).fit(TABLE)
