"""SimpleImputer: the law, scikit-learn's fills, and what it refuses."""

from __future__ import annotations

import copy
import warnings
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import sklearn.impute
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
    MagnitudeError,
)
from erasable.core.tables import Table
from erasable.preprocessing import SimpleImputer
from preprocessing.mixed_tables import (
    assert_lawful,
    number_tables,
    object_tables,
    same_cells,
)

OF_NUMBERS = [
    SimpleImputer(),
    SimpleImputer(strategy="median", add_indicator=True),
    SimpleImputer(keep_empty_features=True, add_indicator=True),
    SimpleImputer(strategy="median", keep_empty_features=True),
]
OF_ANYTHING = [
    SimpleImputer(strategy="most_frequent"),
    SimpleImputer(strategy="most_frequent", keep_empty_features=True, add_indicator=True),
    SimpleImputer(strategy="constant"),
    SimpleImputer(strategy="constant", fill_value=7, keep_empty_features=True),
]
IMPUTERS = OF_NUMBERS + OF_ANYTHING
NAN = np.nan

each_imputer = pytest.mark.parametrize("imputer", IMPUTERS, ids=repr)
TABLE = np.array([[1.0, NAN, 5.0], [NAN, NAN, 7.0], [4.0, NAN, 6.0], [4.0, 2.0, NAN]])


def theirs(imputer: Any) -> Any:
    return sklearn.impute.SimpleImputer(**imputer.get_params())


@parametrize_with_checks(IMPUTERS)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
def test_scikit_learn_contract(estimator: Any, check: Any) -> None:
    check(estimator)


@each_imputer
@given(table=number_tables(), data=st.data())
@settings(max_examples=examples(30))
def test_after_deletions_the_imputer_is_a_refit(
    imputer: Any, table: np.ndarray, data: st.DataObject
) -> None:
    assert_lawful(imputer, table, data)


@pytest.mark.parametrize("imputer", OF_ANYTHING, ids=repr)
@given(table=object_tables(), data=st.data())
@settings(max_examples=examples(30))
def test_after_deletions_of_text_too(imputer: Any, table: np.ndarray, data: st.DataObject) -> None:
    assert_lawful(imputer, table, data)


@pytest.mark.parametrize("strategy", ["mean", "median", "most_frequent"])
@given(table=number_tables(gaps=False), data=st.data())
@settings(max_examples=examples(30))
def test_any_number_may_mark_a_gap(strategy: str, table: np.ndarray, data: st.DataObject) -> None:
    marker = float(data.draw(st.sampled_from([float(table[0, 0]), 1.0])))
    assert_lawful(SimpleImputer(missing_values=marker, strategy=strategy), table, data)
    gaps = np.where(table.astype(np.float64) == marker, NAN, table)
    one = SimpleImputer(missing_values=marker, strategy=strategy).fit(table)
    two = SimpleImputer(strategy=strategy).fit(gaps)
    assert same_cells(one.statistics_, two.statistics_)
    assert same_cells(one.transform(table), two.transform(gaps.astype(table.dtype)))


@given(table=object_tables(), data=st.data())
@settings(max_examples=examples(30))
def test_a_text_may_mark_a_gap(table: np.ndarray, data: st.DataObject) -> None:
    table[np.array([[cell is None or cell != cell for cell in row] for row in table])] = "?"
    marker = data.draw(st.sampled_from(["?", "a"]))
    table[:, 1:] = "a"
    imputer = SimpleImputer(missing_values=marker, strategy="most_frequent", add_indicator=True)
    assert_lawful(imputer, table, data)


class Unmoved(SimpleImputer):
    """Breaks the law: keeps filling with what the gone have left."""

    def _update(self, delta: Delta) -> Outcome:
        rows = delta.leaving
        self._accelerator.subtract(Table.of(self._attached()), rows)
        return Outcome("updated")


def test_fills_of_the_gone_would_be_seen() -> None:
    """Negative control."""
    for cls, same in ((Unmoved, False), (SimpleImputer, True)):
        model = cls().fit(TABLE)
        model.delete([0])
        assert (model.digest() == cls().fit(TABLE[1:], ids=[1, 2, 3]).digest()) is same


# --------------------------------------------------------------------------- the numbers


@each_imputer
@given(table=number_tables())
def test_scikit_learn_fills_numbers_with_the_same(imputer: Any, table: np.ndarray) -> None:
    table = table.astype(np.float64)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Skipping features")
        other = theirs(imputer).fit(table)
        wanted = other.transform(table)
    ours = clone(imputer).fit(table)
    made = ours.transform(table)
    assert made.shape == wanted.shape
    if imputer.strategy == "mean":
        size = np.nanmax(np.abs(table), initial=1e-30)
        np.testing.assert_allclose(made, wanted, atol=2.0**-25 * size, rtol=0)
        np.testing.assert_allclose(
            ours.statistics_, other.statistics_, atol=2.0**-25 * size, rtol=0
        )
    else:
        assert same_cells(made, wanted)
        assert same_cells(ours.statistics_, other.statistics_)
    assert ours.get_feature_names_out().tolist() == other.get_feature_names_out().tolist()
    if imputer.add_indicator and made.size:
        assert same_cells(ours.inverse_transform(made)[:, ours._kept], table[:, ours._kept])


@pytest.mark.parametrize("imputer", OF_ANYTHING, ids=repr)
@given(table=object_tables())
def test_scikit_learn_fills_text_with_the_same(imputer: Any, table: np.ndarray) -> None:
    table[np.array([[cell is None for cell in row] for row in table])] = NAN
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Skipping features")
        other = theirs(imputer).fit(table)
        wanted = other.transform(table)
    ours = clone(imputer).fit(table)
    made = ours.transform(table)
    assert made.dtype == wanted.dtype == object
    assert same_cells(made, wanted)
    assert same_cells(ours.statistics_, other.statistics_)


@given(
    values=st.lists(st.floats(-1e9, 1e9) | st.just(NAN), min_size=1, max_size=40),
    offset=st.sampled_from([0.0, 1.7e9]),
)
def test_means_are_those_of_fractions(values: list[float], offset: float) -> None:
    column = np.array(values) + offset
    seen = [Fraction(value) for value in column[~np.isnan(column)].tolist()]
    found = SimpleImputer(keep_empty_features=True).fit(column.reshape(-1, 1)).statistics_[0]
    if not seen:
        assert found == 0
        return
    spread = max(map(abs, seen))
    assert abs(Fraction(found) - sum(seen) / len(seen)) <= spread / 2**25 + Fraction(1, 10**140)


# --------------------------------------------------------------------------- what a deletion does


def test_only_columns_whose_fill_changed_are_told_of() -> None:
    model = SimpleImputer(strategy="median").fit(TABLE)
    assert model.statistics_.tolist() == [4.0, 2.0, 6.0]
    model.delete([2])
    assert model._output_change().columns.tolist() == [True, False, False]
    assert model._output_change().rows.tolist() == [1]
    assert model._output_change().origin is None
    model.delete([3])  # the second column has no value any more, the third no gap
    assert model._output_change().columns.tolist() == [True, False]
    assert model._output_change().origin.tolist() == [0, 2]
    assert model.get_feature_names_out().tolist() == ["x0", "x2"]
    assert model.transform(TABLE[:2]).tolist() == [[1.0, 5.0], [1.0, 7.0]]


def test_indicators_go_with_the_last_gap() -> None:
    model = SimpleImputer(add_indicator=True).fit(TABLE)
    names = model.get_feature_names_out().tolist()
    assert names == ["x0", "x1", "x2", *(f"missingindicator_x{j}" for j in range(3))]
    model.delete([1])
    assert model._output_change().origin.tolist() == [0, 1, 2, 4, 5]
    assert model.transform(TABLE[3:]).tolist() == [[4.0, 2.0, 5.5, 0.0, 1.0]]


def test_a_mean_is_read_again_only_when_an_extreme_goes() -> None:
    table = np.random.default_rng(0).normal(size=(200, 2))
    table[::3, 0] = NAN
    model = SimpleImputer().fit(table)
    rank = np.argsort(table[:, 0])
    deletion = model.delete([int(rank[40])])
    assert (deletion.rows_touched, deletion.counts["columns_scanned"]) == (0, 0)
    deletion = model.delete([int(rank[0])])
    assert (deletion.rows_touched, deletion.counts["columns_scanned"]) == (198, 1)


def test_columns_without_gaps_never_change() -> None:
    table = np.random.default_rng(0).normal(size=(50, 2))
    table[7, 1] = NAN
    model = SimpleImputer().fit(table)
    model.delete([3])
    assert model._output_change().columns.tolist() == [False, True]
    model.delete([7])
    assert model._output_change().columns.tolist() == [False, False]


def test_what_changed_is_not_known_of_a_copy() -> None:
    model = SimpleImputer().fit(TABLE)
    assert model._output_change().rows is None
    model.delete([0])
    assert model._output_change().rows is not None
    assert copy.deepcopy(model)._output_change().rows is None


@each_imputer
def test_loading_with_and_without_records(imputer: Any, tmp_path: Path) -> None:
    model = clone(imputer).fit(TABLE)
    model.delete([0])
    model.save(tmp_path / "model")
    alone = load(tmp_path / "model")
    assert same_cells(alone.transform(TABLE), model.transform(TABLE))
    whole = load(tmp_path / "model", Records(TABLE[1:], ids=[1, 2, 3]))
    for each in (whole, model):
        each.delete([2])
    assert whole.digest() == model.digest()
    other = TABLE[1:].copy()
    other[1, 0] = NAN
    with pytest.raises(ArtifactError, match="makes another"):
        load(tmp_path / "model", Records(other, ids=[1, 2, 3]))


# --------------------------------------------------------------------------- what goes in


def test_frames() -> None:
    frame = pd.DataFrame({"city": ["Ulm", None, "Bonn", "Ulm"], "floor": [1.0, 2.0, NAN, 2.0]})
    model = SimpleImputer(strategy="most_frequent").set_output(transform="pandas").fit(frame)
    filled = model.transform(frame)
    assert filled.columns.tolist() == ["city", "floor"]
    assert filled["city"].tolist() == ["Ulm", "Ulm", "Bonn", "Ulm"]
    assert filled["floor"].tolist() == [1.0, 2.0, 2.0, 2.0]
    with pytest.raises(InvalidDataError, match="'city'"):
        SimpleImputer().fit(frame)


def test_tables_of_another_kind_than_at_fit() -> None:
    objects = np.array([["a", 1], [None, 2]], dtype=object)
    text = SimpleImputer(strategy="constant").fit(objects)
    assert text.transform([[NAN, 3.0]]).tolist() == [["missing_value", 3.0]]
    numbers = SimpleImputer(strategy="most_frequent").fit([[1.0, 2.0], [NAN, 2.0]])
    assert numbers.transform(np.array([[None, 3]], dtype=object)).tolist() == [[1.0, 3.0]]
    with pytest.raises(InvalidDataError, match="X holds text, and the imputer was fitted on"):
        numbers.transform([["a", 3]])


def test_float32_stays_float32() -> None:
    table = TABLE.astype(np.float32)
    for imputer in IMPUTERS:
        assert clone(imputer).fit(table).transform(table).dtype == np.float32
    marked = np.array([[0.1], [0.7]], dtype=np.float32)
    model = SimpleImputer(missing_values=0.1).fit(marked)  # 0.1 is no float32
    assert model.transform(marked).tolist() == marked.tolist()


@pytest.mark.parametrize(
    ("params", "table", "told"),
    [
        ({"fill_value": "none"}, TABLE, "'none' cannot be cast .* numbers; expected a finite"),
        ({"fill_value": np.inf}, TABLE, "inf cannot be cast"),
        ({"fill_value": NAN}, TABLE, "nan cannot be cast"),
        ({"fill_value": [1]}, TABLE, "a list cannot be cast"),
        ({"fill_value": [1]}, [["a"]], "a list cannot be cast .* text; expected text or a"),
        ({"strategy": "modal"}, TABLE, "'strategy' parameter"),
        ({"missing_values": [1]}, TABLE, "'missing_values' parameter"),
        ({"add_indicator": 1}, TABLE, "'add_indicator' parameter"),
    ],
)
def test_bad_parameters_are_refused(params: dict[str, Any], table: Any, told: str) -> None:
    with pytest.raises(InvalidParameterError, match=told) as caught:
        SimpleImputer(**{"strategy": "constant", **params}).fit(table)
    assert "\n" not in str(caught.value)


def test_a_text_marks_no_gap_among_numbers() -> None:
    with pytest.raises(InvalidInputError, match="expected to be both numerical"):
        SimpleImputer(missing_values="?").fit([[1.0], [2.0]])


def test_nan_beside_another_marker_is_refused() -> None:
    with pytest.raises(InvalidDataError, match="NaN"):
        SimpleImputer(missing_values=-1).fit(TABLE)
    table = np.array([["secret", "?"], [None, "b"]], dtype=object)
    imputer = SimpleImputer(missing_values="?", strategy="most_frequent")
    with pytest.raises(InvalidDataError, match="1 values of columns 0"):
        imputer.fit(table)
    model = imputer.fit(table[:1])
    with pytest.raises(InvalidDataError, match="Input X contains NaN") as caught:
        model.transform(table)
    assert "secret" not in str(caught.value)


def test_text_among_numbers_has_no_most_frequent_value() -> None:
    with pytest.raises(InvalidTypeError, match="column 0 holds text in 1 records"):
        SimpleImputer(strategy="most_frequent").fit(np.array([["a"], [1]], dtype=object))


def test_a_text_may_mark_gaps_in_a_column_of_numbers() -> None:
    table = np.array([["a", 3], ["?", "?"], ["b", 3], ["b", 4.5]], dtype=object)
    imputer = SimpleImputer(missing_values="?", strategy="most_frequent")
    model = imputer.fit(table)
    assert model.statistics_.tolist() == theirs(imputer).fit(table).statistics_.tolist()
    model.delete([0])
    assert model.statistics_.tolist() == ["b", 3]


def test_means_of_huge_values_are_refused() -> None:
    with pytest.raises(MagnitudeError, match=r"1 columns .*column 2"):
        SimpleImputer().fit([[NAN, 1.0, 1e300], [NAN, 2.0, NAN]])


def test_turning_back_needs_indicators() -> None:
    with pytest.raises(InvalidInputError, match="add_indicator=True"):
        SimpleImputer().fit(TABLE).inverse_transform(TABLE)
    model = SimpleImputer(add_indicator=True).fit(TABLE)
    with pytest.raises(InvalidDataError, match="X has 3 columns; expected 6"):
        model.inverse_transform(TABLE)
    objects = np.array([["a"], [None]], dtype=object)
    text = SimpleImputer(strategy="constant", add_indicator=True).fit(objects)
    back = text.inverse_transform(text.transform(objects))
    assert same_cells(back, np.array([["a"], [NAN]], dtype=object))
    with pytest.raises(InvalidDataError):
        model.inverse_transform([["a"]])
