"""OrdinalEncoder: which rows move with a category, and which numbers may stand for what."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from erasable.core.errors import InvalidDataError, InvalidInputError, InvalidParameterError
from erasable.preprocessing import OrdinalEncoder

TABLE = np.array([["a", "x"], ["b", "x"], ["c", "y"], ["b", "y"], [None, "x"]], dtype=object)


def test_only_rows_above_a_category_that_goes_move() -> None:
    model = OrdinalEncoder().fit(TABLE)
    model.delete([1])
    assert not model._output_change()
    model.delete([3])  # no b any more: c moves, the gap does not
    assert model._output_change().columns.tolist() == [True, False]
    assert model._output_change().rows.tolist() == [2]
    assert model._output_change().origin is None
    model.delete([2])  # c and y were the last of their columns
    assert not model._output_change()


def test_gaps_and_unknown_categories_have_numbers_of_their_own() -> None:
    params = {"handle_unknown": "use_encoded_value", "unknown_value": np.nan}
    model = OrdinalEncoder(**params, encoded_missing_value=-1).fit(TABLE)
    made = model.transform([["z", "x"], [None, "y"]])
    np.testing.assert_array_equal(made, [[np.nan, 0], [-1, 1]])
    assert model.inverse_transform(made).tolist()[0] == [None, "x"]
    assert np.isnan(model.inverse_transform(made)[1, 0])


def test_the_same_number_for_gaps_and_unknown_is_a_gap_where_there_are_gaps() -> None:
    params = {"handle_unknown": "use_encoded_value", "unknown_value": -1}
    model = OrdinalEncoder(**params, encoded_missing_value=-1).fit(TABLE)
    back = model.inverse_transform([[-1, -1]])
    assert np.isnan(back[0, 0])
    assert back[0, 1] is None


@pytest.mark.parametrize(
    "params",
    [
        {"unknown_value": 5},
        {"handle_unknown": "use_encoded_value"},
        {"handle_unknown": "use_encoded_value", "unknown_value": 1.5},
        {"handle_unknown": "use_encoded_value", "unknown_value": np.nan, "dtype": np.int64},
        {"handle_unknown": "use_encoded_value", "unknown_value": "none"},
        {"handle_unknown": "ignore"},
        {"encoded_missing_value": "none"},
    ],
)
def test_bad_parameters_are_refused(params: dict[str, Any]) -> None:
    with pytest.raises(InvalidParameterError) as caught:
        OrdinalEncoder(**params).fit(TABLE)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("params", "told"),
    [
        ({"handle_unknown": "use_encoded_value", "unknown_value": 1}, "unknown_value .1. .* 2 col"),
        ({"encoded_missing_value": 2}, "encoded_missing_value .2. .* 1 columns"),
        ({"dtype": np.int32}, "there are gaps"),
    ],
)
def test_a_number_that_stands_for_two_things_is_refused(params: dict[str, Any], told: str) -> None:
    with pytest.raises(InvalidInputError, match=told):
        OrdinalEncoder(**params).fit(TABLE)


def test_a_number_is_free_where_no_category_has_it() -> None:
    params = {"handle_unknown": "use_encoded_value", "unknown_value": 3}
    assert OrdinalEncoder(**params).fit(TABLE).transform([["z", "z"]]).tolist() == [[3.0, 3.0]]
    assert OrdinalEncoder(encoded_missing_value=3).fit(TABLE).transform(TABLE)[4, 0] == 3
    assert OrdinalEncoder(encoded_missing_value=1).fit(TABLE[:4]).transform(TABLE[:4]).max() == 2


@pytest.mark.parametrize("number", [-1.0, 3.0, 0.5, np.nan])
def test_numbers_without_a_category_cannot_be_turned_back(number: float) -> None:
    with pytest.raises(InvalidDataError, match="1 numbers of column 'x1' stand for no category"):
        OrdinalEncoder().fit(TABLE).inverse_transform([[0.0, number], [0.0, 1.0]])
