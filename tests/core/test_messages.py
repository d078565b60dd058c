"""Input is refused on one line: what was given, what was expected, what to do. Nothing changes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse

from core.telling import FRAME, LONG, SECRET, Act, Case, X, assert_refuses
from erasable import Records
from erasable.core.errors import (
    InvalidDataError,
    InvalidIdsError,
    InvalidTypeError,
    UnknownIdError,
)
from erasable.core.ids import shorten
from integer_sums import MajorityClass, PlainSums

REVERSED = [3, 2, 1, 0]


def fit(*args: Any, **kwargs: Any) -> Act:
    return lambda model, folder: model.fit(*args, **kwargs)


def predict(data: Any) -> Act:
    return lambda model, folder: model.predict(data)


def delete(ids: Any = None, **kwargs: Any) -> Act:
    return lambda model, folder: model.delete(ids, **kwargs)


TABLE = "(n_records, n_features)"
WANTED = "expected integers or strings"
DATA = {
    "other width": Case(
        predict(np.ones((2, 3))),
        InvalidDataError,
        "X has 3 features",
        "but PlainSums is expecting 2 features as input",
        "pass the features it was fitted on",
    ),
    "rows of other lengths": Case(
        fit([[1, 2], [3]]), InvalidDataError, "X holds rows of diff", TABLE, "cut or fill"
    ),
    "rows of other lengths to predict": Case(
        predict([[1, 2], [3]]), InvalidDataError, "X holds rows of diff", TABLE, "cut or fill"
    ),
    "lists in the place of numbers": Case(
        fit(np.array([[1, 2], [3]], dtype=object)), InvalidDataError, "sequences", TABLE, "cut"
    ),
    "lazy frame": Case(
        fit(pl.LazyFrame({"age": [SECRET]})),
        InvalidDataError,
        "X is a lazy frame (LazyFrame)",
        "expected a frame that is read",
        "call .collect()",
    ),
    "lazy frame to predict": Case(
        predict(pl.LazyFrame({"age": [SECRET]})),
        InvalidDataError,
        "X is a lazy frame (LazyFrame)",
        "expected a frame that is read",
        "call .collect()",
    ),
    "lazy frame with a column of ids": Case(
        fit(pl.LazyFrame({"age": [SECRET]}), ids="age"),
        InvalidDataError,
        "lazy frame",
        "expected",
        "call .collect()",
    ),
    "sparse": Case(
        fit(sparse.csr_array(X)), InvalidTypeError, "Sparse", "dense data is required", "toarray"
    ),
    "three dimensions": Case(
        fit(np.zeros((2, 2, 2))), InvalidDataError, "dim 3", "dim <= 2 is required", "reshape it"
    ),
    "one dimension": Case(
        fit(X[:, 0]), InvalidDataError, "X is a ndarray that", "expected 2D array", "Reshape your"
    ),
    "nothing": Case(
        fit(None), InvalidDataError, "X is a NoneType", "expected 2D array", "Reshape your"
    ),
    "a series": Case(
        fit(FRAME["age"]), InvalidDataError, "X is a Series", "expected 2D array", "Reshape your"
    ),
    "no records": Case(
        fit(X[:0]), InvalidDataError, "0 sample(s)", "a minimum of 1 is", "pass one record"
    ),
    "no features": Case(
        fit(X[:, :0]), InvalidDataError, "0 feature(s)", "a minimum of 1 is", "of one feature"
    ),
    "complex": Case(
        fit(X + 1j), InvalidDataError, "Complex data not supp", "expected real", "pass X.real"
    ),
    "text": Case(
        fit([[str(SECRET), "x"]]), InvalidDataError, "X holds text", "expected num", "encode"
    ),
    "a dict": Case(
        fit({"age": SECRET}), InvalidTypeError, "not 'dict'", "expected numbers", "encode or drop"
    ),
    "records to predict": Case(
        predict(Records(X)), InvalidTypeError, "not 'Records'", "expected numbers", "encode or drop"
    ),
    "a matrix": Case(
        fit(np.matrix(X)), InvalidTypeError, "np.matrix", "expected an array", "pass np.asarray"
    ),
    "some names that are strings": Case(
        fit(FRAME.set_axis(["age", 1], axis=1)),
        InvalidTypeError,
        "X has names of columns that are strings, and others",
        "expected strings",
        "X.columns.astype(str)",
    ),
    "two columns of one name": Case(
        fit(FRAME.set_axis(["a", "a"], axis=1)),
        InvalidDataError,
        "X cannot be read as a frame",
        "Expected unique column names",
        "rename its columns",
    ),
    "under a mask": Case(
        predict(np.ma.masked_equal(X, 10.0)),
        InvalidDataError,
        "X hides 1 values under a mask",
        "expected a value",
        "fill them in",
    ),
    "a column of text with a long name": Case(
        fit(pd.DataFrame({"age": [1], LONG: ["a"]})),
        InvalidDataError,
        "1 of 2 columns hold no numbers: 'patient-x",
        "expected numbers",
        "encode or drop",
    ),
}

IDS = {
    "a column that is not there": Case(
        fit(FRAME, ids=LONG), InvalidIdsError, "ids='patient-x", "expected one of 'age'", "spelling"
    ),
    "Int128": Case(
        fit(X, ids=pl.Series(range(4), dtype=pl.Int128)),
        InvalidIdsError,
        "ids have dtype Int128",
        WANTED,
        "cast them to integers of 64 bits",
    ),
    "Int128 as a column": Case(
        fit(pl.DataFrame({"id": pl.Series([1], dtype=pl.Int128), "age": [1.0]}), ids="id"),
        InvalidIdsError,
        "ids have dtype Int128",
        WANTED,
        "cast them",
    ),
    **{
        f"missing in {name}": Case(
            fit(X, ids=ids), InvalidIdsError, "1 of the ids is missing", WANTED, "drop them"
        )
        for name, ids in {
            "a list": [0, 1, 2, None],
            "a list of text": ["a", "b", float("nan"), "c"],
            "an array": np.array([0, 1, 2, np.nan]),
            "an array of objects": np.array(["a", pd.NA, "c", "d"], dtype=object),
            "a polars series": pl.Series([0, 1, 2, None]),
            "a polars series of text": pl.Series(["a", "b", None, "d"]),
            "a pandas series": pd.Series([0, 1, 2, None]),
            "a nullable series": pd.Series([0, 1, 2, None], dtype="Int64"),
            "a pandas series of text": pd.Series(["a", "b", None, "d"]),
        }.items()
    },
    "missing groups": Case(
        fit(X, groups=[None, 1, None, 2]),
        InvalidIdsError,
        "2 of the groups are missing",
        WANTED,
        "fill them in",
    ),
    "missing in a deletion": Case(
        delete([None]), InvalidIdsError, "1 of the ids is missing", WANTED, "drop them"
    ),
    "beyond 64 bits": Case(
        fit(X, ids=[0, 1, 2, 10**5000]),
        InvalidIdsError,
        "ids hold an integer of 16610 bits",
        WANTED,
        "str()",
    ),
    "a slice": Case(
        delete(slice(1, 3)),
        InvalidIdsError,
        "ids are a slice",
        "expected a sequence of integers or strings",
        "pass a list of ids",
    ),
    "one number that is no id": Case(
        delete(groups=1.5), InvalidIdsError, "groups are a float", "expected", "list of groups"
    ),
    "one id": Case(
        delete(np.array(3)), InvalidIdsError, "ids=3 is a single", "expected a sequence", "[3]"
    ),
    "one long id": Case(
        delete(LONG), InvalidIdsError, "ids='patient-x", "expected a sequence", "['patient-x"
    ),
    "unknown and long": Case(
        delete([LONG]), UnknownIdError, "1 of the ids is not in", "expected ids", "pass integers"
    ),
    "unknown and huge": Case(
        delete([10**5000]), UnknownIdError, "an integer of", "expected ids", "check them: each"
    ),
    "repeated and long": Case(
        delete([LONG, LONG]), InvalidIdsError, "1 of the ids is rep", "expected each once", "remove"
    ),
    "text for integers": Case(
        delete(["1"]), UnknownIdError, "'1'", "expected ids", "pass integers: these are strings"
    ),
}


def in_order(labels: list[Any]) -> pd.Series:
    return pd.Series([10, 11, 12, 13], index=labels)


SERIES = {
    **{
        f"{name} in another order": Case(
            fit(FRAME, **{name: in_order(REVERSED)}),
            InvalidIdsError,
            f"{name} are a Series with the index of X in another order",
            "expected the index of X",
            f"pass {name}.loc[X.index] to go by label, or {name}.to_numpy() to go by position",
        )
        for name in ("ids", "groups")
    },
    "ids of other labels": Case(
        fit(FRAME, ids=in_order([5, 6, 7, 8])),
        InvalidIdsError,
        "ids are a Series with another index than X",
        "expected the index of X",
        "pass ids.to_numpy() to go by position",
    ),
    "ids that count up": Case(
        fit(FRAME.set_axis([5, 6, 7, 8]), groups=in_order([0, 1, 2, 3])),
        InvalidIdsError,
        "groups are a Series with another index than X",
        "expected the index of X",
        "pass groups.to_numpy() to go by position",
    ),
}


@pytest.mark.parametrize("case", (DATA | IDS | SERIES).values(), ids=(DATA | IDS | SERIES).keys())
def test_input_is_refused_on_one_line_and_nothing_changes(case: Case, tmp_path: Path) -> None:
    model = PlainSums().fit(X)
    model.delete([3])
    assert_refuses(model, tmp_path, case)


# --------------------------------------------------------------------------- features and labels


@pytest.mark.parametrize(
    ("frame", "given"),
    [
        (FRAME.rename(columns={"bmi": "height"}), "1 unseen at fit ('height'), 1 missing ('bmi')"),
        (FRAME[["bmi", "age"]], "another order"),
        (FRAME[["age"]], "1 missing ('bmi')"),
        (pl.DataFrame({"age": [1.0], "bmi": [2.0], LONG: [3.0]}), "1 unseen at fit ('patient-x"),
    ],
)
def test_other_names_than_at_fit_are_told(frame: Any, given: str, tmp_path: Path) -> None:
    case = Case(
        predict(frame),
        InvalidDataError,
        "The feature names should match those that were passed during fit, but X has " + given,
        "expected 'age', 'bmi'",
        "pass X[list(model.feature_names_in_)]",
    )
    assert_refuses(PlainSums().fit(FRAME), tmp_path, case)


@pytest.mark.parametrize("library", [pd, pl])
def test_the_advice_about_names_works(library: Any) -> None:
    model = PlainSums().fit(FRAME)
    other = library.DataFrame({"bmi": [2.0], "city": ["x"], "age": [1.0]})
    same = pd.DataFrame({"age": [1.0], "bmi": [2.0]})
    assert model.predict(other[list(model.feature_names_in_)]) == model.predict(same)


def test_labels_in_the_order_of_the_frame_are_taken() -> None:
    wanted = PlainSums().fit(X, ids=[10, 11, 12, 13]).digest()
    named = FRAME.set_axis([*"dbca"])
    for frame, ids in [
        (FRAME, in_order([0, 1, 2, 3])),
        (FRAME, pd.Series([10, 11, 12, 13])),
        (named, in_order([*"dbca"])),
        (named, in_order([*"abcd"]).to_numpy()),
        (named, pd.Index([10, 11, 12, 13])),
        (named, pl.Series([10, 11, 12, 13])),
    ]:
        model = PlainSums().fit(frame, ids=ids, groups=ids)
        assert model.ids_.tolist() == [10, 11, 12, 13]
    # Where X has no labels, those of the ids mean nothing.
    assert PlainSums().fit(X, ids=in_order(REVERSED)).digest() == wanted


def test_the_advice_about_labels_works() -> None:
    ids = in_order(REVERSED)
    assert PlainSums().fit(FRAME, ids=ids.loc[FRAME.index]).ids_.tolist() == [13, 12, 11, 10]
    assert PlainSums().fit(FRAME, ids=ids.to_numpy()).ids_.tolist() == [10, 11, 12, 13]


def test_the_wrong_number_of_labels_is_told_before_their_order() -> None:
    with pytest.raises(InvalidIdsError, match="3 ids for 4 rows"):
        PlainSums().fit(FRAME, ids=in_order(REVERSED)[:3])


TARGETS = {
    "labels in another order": Case(
        fit(FRAME, in_order(REVERSED)),
        InvalidDataError,
        "y is a Series with the index of X in another order",
        "expected the index of X",
        "pass y.loc[X.index] to go by label, or y.to_numpy() to go by position",
    ),
    "a frame of them in another order": Case(
        fit(FRAME, in_order(REVERSED).to_frame()),
        InvalidDataError,
        "y is a DataFrame with the index of X in another order",
        "expected the index of X",
        "pass y.loc[X.index]",
    ),
    "too few": Case(
        fit(X, [0, 1]), InvalidDataError, "(2,)", "expected one target for each row", "pass y in"
    ),
    "NaN": Case(
        fit(X, [0, 1, np.nan, 0]), InvalidDataError, "y contains NaN", "expected finite", "drop"
    ),
    "infinity": Case(
        fit(X, [0, 1, np.inf, 0]), InvalidDataError, "y contains inf", "expected finite", "drop"
    ),
    "two columns": Case(
        fit(X, X), InvalidDataError, "y should be a 1d array", "expected one target", "pass one col"
    ),
    "lists of other lengths": Case(
        fit(X, [[0], [1, 2], [0], [1]]),
        InvalidDataError,
        "y cannot be read",
        "expected",
        "equal lengths",
    ),
    "none": Case(fit(X), InvalidDataError, "requires y to be", "expected one target", "pass y"),
}


@pytest.mark.parametrize("case", TARGETS.values(), ids=TARGETS.keys())
def test_targets_are_refused_on_one_line(case: Case, tmp_path: Path) -> None:
    assert_refuses(MajorityClass().fit(X, [0, 1, 1, 0]), tmp_path, case)


def test_targets_with_the_labels_of_the_frame_are_taken() -> None:
    targets = pd.Series([0, 1, 1, 1])
    assert MajorityClass().fit(FRAME, targets).predict(FRAME).tolist() == [1] * 4


def test_integers_for_text_are_explained(tmp_path: Path) -> None:
    case = Case(
        delete([1]), UnknownIdError, "in the model: 1;", "expected ids", "pass strings: these are"
    )
    assert_refuses(PlainSums().fit(X, ids=[*"0123"]), tmp_path, case)
    mixed = PlainSums().fit(X, ids=["0", "1", 2, 3])
    assert_refuses(mixed, tmp_path, case._replace(advice="check them: each can be deleted once"))


# --------------------------------------------------------------------------- shortening


@pytest.mark.parametrize(
    "value",
    [LONG, LONG.encode(), 10**30, 10**5000, (LONG,), (LONG, LONG), X, FRAME, [SECRET], {1: SECRET}],
    ids=lambda value: type(value).__name__,
)
def test_what_is_shown_is_short_and_no_data(value: Any) -> None:
    shown = shorten(value)
    assert len(shown) <= 60
    assert "\n" not in shown
    assert str(SECRET) not in shown


def test_what_is_short_is_shown_as_it_is() -> None:
    for value in ("a  b", "line\nbreak", 17, -1.5, None, True, (0, 1), (0.5,), ()):
        assert shorten(value) == repr(value)
