from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy import sparse
from sklearn.base import clone

from erasable.core.errors import InvalidDataError, InvalidIdsError
from erasable.core.grid import Grid
from erasable.core.ids import as_id_array, as_request
from erasable.core.inputs import read_matrix, read_table
from erasable.core.records import Records
from erasable.core.targets import read_target, read_weights
from erasable.preprocessing import OneHotEncoder, StandardScaler
from integer_sums import MajorityClass, PlainSums

X = np.arange(12, dtype=np.float64).reshape(4, 3)


@pytest.mark.parametrize(
    ("given", "dtype", "expected"),
    [
        ([3, 1, 2], np.int64, [3, 1, 2]),
        (np.array([3, 1], dtype=np.int8), np.int64, [3, 1]),
        (np.array([3, 1], dtype=">i4"), np.int64, [3, 1]),
        (np.array([3, 1], dtype=np.uint64), np.int64, [3, 1]),
        (np.array([2**63, 1], dtype=np.uint64), np.uint64, [2**63, 1]),
        (np.array([2**64 - 1], dtype=np.uint64), np.uint64, [2**64 - 1]),
        ([2**63, -1], object, [2**63, -1]),
        (["b", "a"], object, ["b", "a"]),
        (np.array(["b", "a"]), object, ["b", "a"]),
        ([17, "17", np.int32(4), np.str_("x")], object, [17, "17", 4, "x"]),
        ((1, 2), np.int64, [1, 2]),
        (range(3), np.int64, [0, 1, 2]),
        ({7: "a"}, np.int64, [7]),
        (iter([5]), np.int64, [5]),
        ([], np.int64, []),
        (np.array([]), np.int64, []),
        (pd.Index(["a", "b"]), object, ["a", "b"]),
        (pd.Series([1, 2], dtype="Int64"), np.int64, [1, 2]),
        (pl.Series(["a", "b"]), object, ["a", "b"]),
    ],
)
def test_ids_become_one_of_three_kinds(given, dtype, expected):
    array = as_id_array(given)
    assert array.dtype == dtype
    assert array.tolist() == expected
    assert {type(value) for value in array.tolist()} <= {int, str}


@pytest.mark.parametrize(
    "given",
    [
        [1.0],
        [True],
        [None],
        [b"a"],
        [(1, 2)],
        [1, 2.0],
        [np.timedelta64(1, "s")],
        [2**64],
        [-(2**63) - 1],
        np.array([1.0]),
        np.array([True]),
        np.array(["2020-01-01"], dtype="M8[D]"),
        np.array([[1, 2]]),
        np.array(5),
        "visit-17",
        b"visit-17",
        17,
        None,
        pd.Series([1, None], dtype="Int64"),
        pd.MultiIndex.from_tuples([(1, 2)]),
    ],
)
def test_other_ids_are_refused(given):
    with pytest.raises(InvalidIdsError, match="expected"):
        as_id_array(given)


def test_a_bare_string_is_to_be_wrapped():
    with pytest.raises(InvalidIdsError, match=r"wrap it in a list: \['visit-17'\]"):
        as_request("visit-17")


def test_a_request_is_read_by_value():
    assert as_request(np.array([3, 1], dtype=np.uint8)) == [3, 1]
    assert as_request(["a", np.int64(1)]) == ["a", 1]


def test_repeated_ids_are_counted_and_three_are_named():
    for ids in ([1, 2, 1, 2], ["a", "b", "a", "b"]):
        with pytest.raises(InvalidIdsError, match="2 of the ids are repeated"):
            as_request(ids)
        with pytest.raises(InvalidIdsError, match="2 of the ids are repeated"):
            read_table(X, ids=ids)
    with pytest.raises(InvalidIdsError, match=r"4 of the ids are repeated: 0, 1, 2, \.\.\.;"):
        as_request([0, 1, 2, 3] * 2)


_SIGNED = np.array([[-0.0, 1.0, 2.0], [3.0, -0.0, 5.0]] * 3)
LAYOUTS = {
    "rows": lambda: _SIGNED.copy(),
    "columns": lambda: np.asfortranarray(_SIGNED),
    "float32": lambda: _SIGNED.astype(np.float32),
    "float32 by columns": lambda: np.asfortranarray(_SIGNED.astype(np.float32)),
    "integers": lambda: _SIGNED.astype(np.int64),
    "every other column": lambda: np.repeat(_SIGNED, 2, axis=1)[:, ::2],
    "backwards": lambda: _SIGNED.copy()[::-1],
    "other bytes": lambda: _SIGNED.astype(">f8"),
    "objects": lambda: _SIGNED.astype(object),
    "read-only": lambda: np.frombuffer(_SIGNED.tobytes()).reshape(_SIGNED.shape),
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_arrays_of_any_layout_are_copied_once_and_lose_the_sign_of_zeros(layout):
    given = LAYOUTS[layout]()
    before = np.array(given)
    matrix = read_table(given).matrix
    assert not np.shares_memory(matrix, given)
    assert matrix.flags.c_contiguous
    assert matrix.flags.owndata
    assert matrix.dtype == (np.float32 if "float32" in layout else np.float64)
    assert not np.signbit(matrix).any()
    matrix[:] = 9.0
    assert before.tobytes() == np.array(given).tobytes()


def test_a_table_shares_no_memory_with_the_caller():
    y = np.arange(4)
    ids = np.array([5, 6, 7, 8])
    for given in (X, pd.DataFrame(X), pd.DataFrame(X[:, :1]), pl.DataFrame(X[:, :1])):
        table = read_table(given, y, ids=ids, groups=ids)
        assert not np.shares_memory(table.matrix, np.asarray(given))
        assert not np.shares_memory(table.y, y)
        assert not np.shares_memory(table.ids, ids)
        assert not np.shares_memory(table.groups, ids)
        for array in (table.matrix, table.y, table.ids, table.groups):
            assert array.flags.writeable
            assert array.flags.c_contiguous


@pytest.mark.parametrize(
    ("given", "expected"),
    [("f4", "f4"), ("f8", "f8"), (">f8", "f8"), ("f2", "f8"), ("i8", "f8"), ("?", "f8")],
)
def test_values_become_floats(given, expected):
    assert read_table(X.astype(given)).matrix.dtype == np.dtype(expected)


def test_lists_are_tables():
    table = read_table([[1, 2], [3, 4]])
    assert table.matrix.tolist() == [[1, 2], [3, 4]]
    assert table.ids.tolist() == [0, 1]
    assert table.groups is None
    assert table.feature_names is None


@pytest.mark.parametrize("library", [pd, pl])
def test_named_columns_are_no_features(library):
    frame = library.DataFrame(
        {"visit": ["v1", "v2"], "age": [40, 50], "patient": [7, 7], "bmi": [20.5, 30.5]}
    )
    table = read_table(frame, ids="visit", groups="patient")
    assert table.ids.tolist() == ["v1", "v2"]
    assert table.groups.tolist() == [7, 7]
    assert table.feature_names == ["age", "bmi"]
    assert table.matrix.tolist() == [[40, 20.5], [50, 30.5]]
    assert list(frame.columns) == ["visit", "age", "patient", "bmi"]


def test_one_column_can_be_ids_and_groups():
    frame = pd.DataFrame({"patient": [7, 8], "age": [40, 50]})
    table = read_table(frame, ids="patient", groups="patient")
    assert table.ids.tolist() == table.groups.tolist() == [7, 8]
    assert table.feature_names == ["age"]


@pytest.mark.parametrize("library", [pd, pl])
def test_a_missing_column_is_named(library):
    frame = library.DataFrame({"visit": ["v1", "v2"], "age": [40, 50]})
    with pytest.raises(InvalidIdsError, match="ids='visits' is not a column; expected one of 'vis"):
        read_table(frame, ids="visits")
    with pytest.raises(InvalidIdsError, match="groups='p' is not a column"):
        read_table(frame, ids="visit", groups="p")
    with pytest.raises(InvalidIdsError, match="X is a ndarray; expected a frame"):
        read_table(X, ids="visits")


def test_a_pandas_index_is_the_default_id():
    frame = pd.DataFrame(X, columns=list("abc"))
    assert read_table(frame).ids.tolist() == [0, 1, 2, 3]
    assert read_table(frame.iloc[[2, 0]]).ids.tolist() == [2, 0]
    assert read_table(frame.set_index("a")[["b"]].set_axis(list("wxyz"))).ids.tolist() == [*"wxyz"]
    assert read_table(frame.iloc[::2]).ids.tolist() == [0, 2]
    assert read_table(frame.iloc[1:]).ids.tolist() == [1, 2, 3]
    assert read_table(frame.iloc[1:], ids=[7, 8, 9]).ids.tolist() == [7, 8, 9]


def test_an_unusable_index_says_where_the_ids_came_from():
    frame = pd.DataFrame(X, index=[0, 1, 1, 2])
    with pytest.raises(InvalidIdsError, match="reset_index"):
        read_table(frame)
    with pytest.raises(InvalidIdsError, match="reset_index"):
        read_table(frame.set_axis(pd.date_range("2020", periods=4)))


def test_lengths_must_match():
    with pytest.raises(InvalidIdsError, match="3 ids for 4 rows"):
        read_table(X, ids=[1, 2, 3])
    with pytest.raises(InvalidIdsError, match="5 groups for 4 rows"):
        read_table(X, groups=[1, 2, 3, 4, 5])
    with pytest.raises(InvalidDataError, match="inconsistent numbers of samples"):
        read_table(X, [1, 2, 3])


@pytest.mark.parametrize("library", [pd, pl])
def test_text_columns_are_named_and_no_value_is_shown(library):
    frame = library.DataFrame({"age": [1, 2], "city": ["secret", "b"]})
    with pytest.raises(InvalidDataError, match="1 of 2 columns hold no numbers: 'city'") as caught:
        read_table(frame, estimator=PlainSums())
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("library", [pd, pl])
def test_a_missing_value_is_located_by_column(library):
    frame = library.DataFrame({"age": [1.0, None], "bmi": [1.0, 2.0]})
    with pytest.raises(InvalidDataError, match="X contains NaN: 1 values in column 'age'"):
        read_table(frame, estimator=PlainSums())
    whole = library.DataFrame({"age": [1, None], "bmi": [1, 2]})
    with pytest.raises(InvalidDataError, match="X contains NaN: 1 values in column 'age'"):
        read_table(whole, estimator=PlainSums())


def test_infinity_is_told_from_nan_and_from_a_sum_that_overflows():
    with pytest.raises(InvalidDataError, match=r"contains NaN and inf: 2 values in columns 0, 1;"):
        read_table([[np.nan, np.inf]], estimator=PlainSums())
    huge = np.full((4, 2), 1e308)
    assert np.array_equal(read_table(huge).matrix, huge)
    assert read_table(np.full((4, 2), 3e38, dtype=np.float32)).matrix.dtype == np.float32


@pytest.mark.parametrize(
    ("given", "match"),
    [
        (np.empty((0, 3)), "0 sample"),
        (np.empty((3, 0)), "0 feature"),
        (np.arange(3.0), "Reshape your data"),
        (pd.Series([1.0, 2.0]), "Reshape your data"),
        (np.zeros((2, 2, 2)), "dim 3"),
        (sparse.csr_array(np.eye(3)), "Sparse data was passed"),
        (np.ones((2, 2), dtype=complex), "Complex data not supported"),
        (np.array([["secret"]], dtype=object), "text that is not a number"),
        (np.array([["secret"]]), "text that is not a number"),
        (pd.DataFrame(np.eye(2), columns=["a", "a"]), "unique"),
    ],
)
def test_what_is_no_table_of_numbers_is_refused(given, match):
    with pytest.raises(InvalidDataError, match=match) as caught:
        read_table(given, estimator=PlainSums())
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("number", [10**400, -(10**309)], ids=["large", "negative"])
def test_integers_that_no_float_reaches_are_refused(number: int) -> None:
    given = [[number, 1], [2, 3]]
    told = "integers that float64 cannot hold"
    for X_given in (given, np.array(given, dtype=object)):
        for ask in (
            lambda X: StandardScaler().fit(X),
            lambda X: StandardScaler().fit([[1.0, 2.0], [3.0, 5.0]]).transform(X),
            Records,
        ):
            with pytest.raises(InvalidDataError, match=told) as caught:
                ask(X_given)
            assert "000" not in str(caught.value)
    with pytest.raises(InvalidDataError, match="sample_weight cannot be read as numbers"):
        read_weights([number, 1], 2)
    assert read_table([[10**300, 1], [2, 3]]).matrix[0, 0] == 1e300  # a control


def test_an_error_about_shape_shows_no_value():
    with pytest.raises(InvalidDataError) as caught:
        read_table(np.array([123456.0, 2.0]))
    assert "123456" not in str(caught.value)


def test_objects_that_are_numbers_are_numbers():
    assert read_table(np.array([[1, 2.5]], dtype=object)).matrix.tolist() == [[1, 2.5]]


def test_an_estimator_learns_width_and_names():
    model = PlainSums()
    read_table(pd.DataFrame(X, columns=list("abc")), estimator=model)
    assert model.n_features_in_ == 3
    assert model.feature_names_in_.tolist() == ["a", "b", "c"]


def test_what_is_asked_is_checked_like_what_was_learned():
    model = PlainSums().fit(pd.DataFrame(X, columns=list("abc")))
    with pytest.raises(InvalidDataError, match="feature names should match"):
        read_matrix(model, pd.DataFrame(X, columns=list("abd")))
    with pytest.raises(InvalidDataError, match="expecting 3 features"):
        read_matrix(PlainSums().fit(X), X[:, :2])
    with pytest.raises(InvalidDataError, match="contains NaN: 1 values in column 'b'"):
        read_matrix(model, pd.DataFrame([[1, np.nan, 2]], columns=list("abc")))
    assert np.shares_memory(read_matrix(PlainSums().fit(X), X), X)


def test_targets_may_be_text():
    model = MajorityClass().fit(X, ["b", "a", "b", "b"])
    assert model.classes_.tolist() == ["a", "b"]
    with pytest.raises(InvalidDataError, match="requires y to be passed"):
        MajorityClass().fit(X)


@pytest.mark.parametrize("name", ["ids", "groups"])
def test_labels_without_an_order_are_refused(name: str) -> None:
    """A set would give each row somebody else's id, and another one in every process."""
    for unordered in ({"a", "b"}, frozenset("ab"), {"a": 0, "b": 1}):
        with pytest.raises(InvalidIdsError, match=f"^{name} are a .*no order.*pass a list"):
            read_table([[1.0], [2.0]], **{name: unordered})


def test_values_under_a_mask_are_refused() -> None:
    hidden = np.ma.array([[1.0, 2.0], [3.0, 4.0]], mask=[[True, False], [False, False]])
    with pytest.raises(InvalidDataError, match="X hides 1 values under a mask"):
        read_table(hidden)
    shown = np.ma.array([[1.0, 2.0]], mask=False)
    assert read_table(shown).matrix.tolist() == [[1.0, 2.0]]


def test_without_an_estimator_everything_is_read() -> None:
    text = read_table(pd.DataFrame({"age": [40, 50], "city": ["Bonn", None]}))
    assert text.matrix.dtype == object
    assert text.matrix[0].tolist() == [40, "Bonn"]
    assert text.matrix[1, 0] == 50
    assert np.isnan(text.matrix[1, 1])
    assert np.isnan(read_table([[np.nan, 1.0]]).matrix[0, 0])
    zeros = sparse.csr_array(([0.0, 2.0], [1, 0], [0, 1, 2]), shape=(2, 2))
    assert read_table(zeros).matrix.nnz == 1
    series = pd.Series(["one text", "another"], index=["a", "b"])
    assert read_table(series).matrix.tolist() == [["one text"], ["another"]]
    assert read_table(series).ids.tolist() == ["a", "b"]


@pytest.mark.parametrize(
    ("given", "kind", "values"),
    [
        ([True, False], np.bool_, [True, False]),
        (np.array([1, 2], dtype=np.int8), np.int64, [1, 2]),
        (np.array([2**63, 1], dtype=np.uint64), np.uint64, [2**63, 1]),
        ([0.5, -0.0], np.float64, [0.5, 0.0]),
        (np.array(["b", "a"]), object, ["b", "a"]),
        (pd.Series(["b", "a"], dtype="category"), object, ["b", "a"]),
        (pl.Series([3, 4]), np.int64, [3, 4]),
        (np.array([1, 2.5], dtype=object), np.float64, [1.0, 2.5]),
        ([[1, 2], [3, 4]], np.int64, [[1, 2], [3, 4]]),
    ],
)
def test_targets_become_plain_arrays(given: object, kind: type, values: list[object]) -> None:
    target = read_target(given, 2)
    assert target.dtype == kind
    assert target.tolist() == values
    assert not np.signbit(np.asarray(target == 0, dtype=float)).any()
    assert not np.shares_memory(target, np.asarray(given))


@pytest.mark.parametrize(
    "given", [[1.0, np.nan], ["a", None], [1 + 2j, 0], [1], np.zeros((2, 1, 1)), object()]
)
def test_other_targets_are_refused(given: object) -> None:
    with pytest.raises(InvalidDataError, match="y"):
        read_target(given, 2)


def test_weights_are_checked() -> None:
    assert read_weights(2, 3).tolist() == [2.0, 2.0, 2.0]
    for given in ([1, -1], [1, np.nan], [1], ["a", "b"], [[1, 2]]):
        with pytest.raises(InvalidDataError, match="sample_weight"):
            read_weights(given, 2)


DAYS = np.array(["2020-01-01", "2020-01-02", "2021-12-24"], dtype="M8[D]")
AN_OBJECT = np.empty((3, 1), dtype=object)
AN_OBJECT[:, 0] = list(DAYS)


@pytest.mark.parametrize("estimator", [StandardScaler(), OneHotEncoder(), None], ids=str)
@pytest.mark.parametrize(
    ("given", "told"),
    [
        (DAYS[:, None], "X holds dates"),
        (DAYS[:, None].astype("M8[ns]"), "X holds dates"),
        (np.array([["NaT"], ["2020-01-01"]], dtype="M8[D]"), "X holds dates"),
        (DAYS[:, None] - DAYS[0], "X holds durations"),
        ([[day] for day in DAYS], "X holds dates"),
        ([[1.0, day - DAYS[0]] for day in DAYS], "X holds durations"),
        ([row for row in DAYS[:, None]], "X holds dates"),
        (AN_OBJECT, "X holds dates"),
    ],
    ids=["days", "nanoseconds", "gaps", "durations", "list", "mixed", "arrays", "objects"],
)
def test_dates_are_not_read_as_counts_of_an_unknown_unit(
    given: Any, told: str, estimator: Any
) -> None:
    with pytest.raises(InvalidDataError, match=told) as caught:
        read_table(given, estimator=estimator)
    assert "timedelta64(1, 'D')" in str(caught.value)
    assert "\n" not in str(caught.value)
    if estimator is not None:
        model = clone(estimator).fit(np.arange(3.0)[:, None])
        with pytest.raises(InvalidDataError, match=told):
            model.transform(given)


def test_what_the_advice_on_dates_makes_is_read() -> None:
    X = DAYS[:, None]
    days = (X - np.datetime64("2020-01-01")) / np.timedelta64(1, "D")
    assert read_table(days).matrix.ravel().tolist() == [0.0, 1.0, 723.0]
    with pytest.raises(InvalidDataError, match="sample_weight holds durations"):
        read_weights(DAYS - DAYS[0], 3)


def test_a_grid_needs_a_column() -> None:
    with pytest.raises(InvalidDataError, match=r"0 feature\(s\) .* a minimum of 1 is required"):
        Grid.fit(np.zeros((3, 0)))


def _chunked(texts: list[Any]) -> Any:
    halves = (
        pd.DataFrame({"a": texts[:2]}, dtype="str"),
        pd.DataFrame({"a": texts[2:]}, dtype="str"),
    )
    return pd.concat(halves, ignore_index=True)


@pytest.mark.parametrize(
    "texts", [["b", "a", "b", None, ""], ["naïve", "naïve", "\0", "NaN", "nan"], [None, None, "x"]]
)
@pytest.mark.parametrize(
    "make",
    [
        lambda texts: pd.DataFrame({"a": pd.Series(texts, dtype=object)}),
        lambda texts: pd.DataFrame({"a": pd.Series(texts, dtype="str")}),
        lambda texts: pd.DataFrame({"a": pd.Categorical(texts)}),
        lambda texts: pl.DataFrame({"a": texts}),
        lambda texts: pa.table({"a": pa.chunked_array([texts[:1], texts[1:]], pa.string())}),
        _chunked,
    ],
    ids=["objects", "text", "categories", "polars", "arrow", "chunks"],
)
def test_columns_of_text_are_read_alike_from_every_frame(make: Any, texts: list[Any]) -> None:
    matrix = read_table(make(texts)).matrix
    assert matrix.dtype == object
    told = [cell if isinstance(cell, str) else None for cell in matrix[:, 0].tolist()]
    assert told == texts
    assert all(type(cell) is str or cell != cell for cell in matrix[:, 0].tolist())


def test_text_that_is_no_utf_8_is_read_one_by_one_where_nobody_learns_from_it() -> None:
    frame = pd.DataFrame({"a": pd.Series(["\ud800", "b"], dtype=object)})
    known = OneHotEncoder(handle_unknown="ignore").fit(pd.DataFrame({"a": ["b", "c"]}))
    assert read_matrix(known, frame)[:, 0].tolist() == ["\ud800", "b"]
    with pytest.raises(InvalidDataError, match="X holds 1 text with lone surrogates"):
        read_table(frame)


def test_columns_of_text_are_read_without_pyarrow(monkeypatch: pytest.MonkeyPatch) -> None:
    frame = pl.DataFrame({"a": ["b", None, "b"], "n": [1, 2, 3]})
    with_it = read_table(frame).matrix
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    assert repr(read_table(frame).matrix) == repr(with_it)


def test_equal_texts_are_one_object_that_goes_with_the_last_record() -> None:
    text = "a long text that nobody else holds " * 3
    records = Records(pl.DataFrame({"a": [text, text, "other"]}))
    first, second = records.matrix[:2, 0]
    assert first is second
    assert first is not text
    held = records.attach()
    for row in (0, 1):
        held.exclude(np.array([row]))
        held.release(np.array([row]))
        assert records.matrix[:, 0].tolist().count(text) == 1 - row
    assert sys.getrefcount(first) == 3  # `first`, `second`, and the call: no table, no dictionary
