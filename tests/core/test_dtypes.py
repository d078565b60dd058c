"""What a column of every dtype becomes for an estimator of numbers, or the message about it.

A column that holds numbers, as objects, categories, text or otherwise, is read as scikit-learn
reads it: the twin is the same frame with a column of floats.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sklearn.ensemble import HistGradientBoostingRegressor as TheirBoosting
from sklearn.preprocessing import StandardScaler as TheirScaler

from erasable import Records
from erasable.cluster import KMeans
from erasable.core.errors import InvalidDataError
from erasable.ensemble import HistGradientBoostingRegressor
from erasable.feature_extraction import CountVectorizer
from erasable.linear_model import Ridge
from erasable.naive_bayes import GaussianNB
from erasable.preprocessing import OneHotEncoder, StandardScaler

NUMBERS = [1.5, 2.0, 7.0, 4.0]
WHOLE = [3, 1, 2, 2]
FLAGS = [True, False, True, True]
TEXT = ["a", "b", "c", "a"]
BESIDE = [1.0, 2.0, 3.0, 5.0]
OTHER = [[0, 1, 0, 1], [1, 1, 0, 0]]


def pandas(values: Any, dtype: Any = None) -> Any:
    return pd.DataFrame({"c": pd.Series(values, dtype=dtype), "n": BESIDE})


def polars(values: Any, dtype: Any = None) -> Any:
    return pl.DataFrame({"c": pl.Series(values, dtype=dtype), "n": BESIDE})


def arrow(values: Any) -> Any:
    return pa.table({"c": values, "n": BESIDE})


READ: dict[str, tuple[Any, list[float]]] = {
    "pandas object of floats": (pandas(NUMBERS, object), NUMBERS),
    "pandas object of integers": (pandas(WHOLE, object), WHOLE),
    "pandas object of booleans": (pandas(FLAGS, object), [1, 0, 1, 1]),
    "pandas object of Decimal": (pandas([Decimal(str(x)) for x in NUMBERS]), NUMBERS),
    "pandas object of Fraction": (pandas([Fraction(x) for x in NUMBERS]), NUMBERS),
    "pandas object of digits": (pandas(["1.5", "2", "7e0", " 4"], object), NUMBERS),
    "pandas object of both": (pandas([1.5, "2", 7, "4"], object), NUMBERS),
    "pandas string of digits": (pandas(["1.5", "2", "7.0", "4"], "string"), NUMBERS),
    "pandas category of numbers": (pandas(WHOLE, "category"), WHOLE),
    "pandas category of digits": (pandas(["3", "1", "2", "2"], "category"), WHOLE),
    "pandas sparse floats": (pandas(pd.arrays.SparseArray([0.0, 0, 1, 2])), [0, 0, 1, 2]),
    "pandas sparse integers": (pandas(pd.arrays.SparseArray([0, 0, 1, 2])), [0, 0, 1, 2]),
    "pandas Int64": (pandas(WHOLE, "Int64"), WHOLE),
    "pandas boolean": (pandas(FLAGS, "boolean"), [1, 0, 1, 1]),
    "pandas float16": (pandas(NUMBERS, "float16"), NUMBERS),
    "pandas with Arrow's integers": (pandas(WHOLE, "int64[pyarrow]"), WHOLE),
    "pandas with Arrow's decimals": (
        pandas([Decimal(str(x)) for x in NUMBERS], pd.ArrowDtype(pa.decimal128(5, 2))), NUMBERS,
    ),
    "pandas with Arrow's dictionary": (
        pandas(pd.arrays.ArrowExtensionArray(pa.array(WHOLE).dictionary_encode())), WHOLE,
    ),
    "polars Decimal": (polars([Decimal(str(x)) for x in NUMBERS]), NUMBERS),
    "polars Boolean": (polars(FLAGS), [1, 0, 1, 1]),
    "polars String of digits": (polars(["1.5", "2", "7.0", "4"]), NUMBERS),
    "polars Object": (polars(NUMBERS, pl.Object), NUMBERS),
    "polars Categorical of digits": (polars(["3", "1", "2", "2"], pl.Categorical), WHOLE),
    "arrow dictionary of numbers": (arrow(pa.array(WHOLE).dictionary_encode()), WHOLE),
    "arrow dictionary of digits": (
        arrow(pa.array(["3", "1", "2", "2"]).dictionary_encode()), WHOLE,
    ),
    "arrow decimals": (arrow(pa.array([Decimal(str(x)) for x in NUMBERS])), NUMBERS),
    "arrow half floats": (arrow(pa.array(np.array(NUMBERS, np.float16))), NUMBERS),
    "arrow large text of digits": (
        arrow(pa.array(["1.5", "2", "7", "4"], pa.large_string())), NUMBERS,
    ),
}  # fmt: skip

GAPS: dict[str, tuple[Any, list[float]]] = {
    "pandas object": (pandas([1.5, None, 7, np.nan], object), [1.5, np.nan, 7, np.nan]),
    "pandas string": (pandas(["1.5", None, "7", pd.NA], "string"), [1.5, np.nan, 7, np.nan]),
    "pandas category": (pandas([3, None, 2, 2], "category"), [3, np.nan, 2, 2]),
    "pandas nothing": (pandas([None] * 4, object), [np.nan] * 4),
    "pandas nothing of Arrow": (pandas([None] * 4, pd.ArrowDtype(pa.null())), [np.nan] * 4),
    "polars nothing": (polars([None] * 4), [np.nan] * 4),
    "arrow nothing": (arrow(pa.nulls(4)), [np.nan] * 4),
    "arrow dictionary": (
        arrow(pa.array([3, None, 2, 2]).dictionary_encode()), [3, np.nan, 2, 2],
    ),
}  # fmt: skip

REFUSED: dict[str, Any] = {
    "pandas text": pandas(TEXT),
    "pandas category of text": pandas(TEXT, "category"),
    "pandas dates": pandas(pd.to_datetime(["2020-01-01"] * 4)),
    "pandas spans": pandas(pd.to_timedelta(WHOLE, unit="h")),
    "pandas periods": pandas(pd.period_range("2020", periods=4)),
    "pandas intervals": pandas(pd.interval_range(0, 4)),
    "pandas complex": pandas([1j, 2, 3, 4]),
    "pandas lists": pandas([[1], [2], [3], [4]]),
    "pandas one word": pandas([1, 2, "x", 4], object),
    "pandas too large": pandas([10**400, 2, 3, 4], object),
    "polars Enum": polars(TEXT, pl.Enum(TEXT[:3])),
    "polars Date": polars(pd.to_datetime(["2020-01-01"] * 4).date.tolist()),
    "arrow text": arrow(TEXT),
    "arrow binary": arrow([b"a", b"b", b"c", b"a"]),
    "arrow times": arrow(pa.array([1, 2, 3, 4], pa.time32("s"))),
}


def plain(values: list[float]) -> Any:
    return pd.DataFrame({"c": np.array(values, dtype=np.float64), "n": BESIDE})


@pytest.mark.parametrize(("frame", "values"), READ.values(), ids=READ)
def test_a_column_of_numbers_is_read_as_one_of_floats(frame: Any, values: list[float]) -> None:
    twin = plain(values)
    model = KMeans(2, random_state=0).fit(frame, ids=[5, 6, 7, 8])
    assert model.digest() == KMeans(2, random_state=0).fit(twin, ids=[5, 6, 7, 8]).digest()
    assert model.predict(frame).tolist() == model.predict(twin).tolist()
    scaled = StandardScaler().fit(frame).transform(frame)
    np.testing.assert_allclose(scaled, TheirScaler().fit_transform(twin), rtol=1e-12)
    # What comes later is read like what was there.
    both = pd.concat([twin, twin], ignore_index=True)
    ids = np.arange(5, 13)
    model.add(frame, ids=ids[4:])
    assert model.digest() == KMeans(2, random_state=0).fit(both, ids=ids).digest()
    model.delete([5, 12])
    left = KMeans(2, random_state=0).fit(both.iloc[1:7], ids=ids[1:7])
    assert model.digest() == left.digest()


@pytest.mark.parametrize(("frame", "values"), GAPS.values(), ids=GAPS)
def test_gaps_are_nan(frame: Any, values: list[float]) -> None:
    twin = plain(values)
    made = HistGradientBoostingRegressor(max_iter=2, random_state=0).fit(frame, WHOLE)
    other = HistGradientBoostingRegressor(max_iter=2, random_state=0).fit(twin, WHOLE)
    assert made.digest() == other.digest()
    with pytest.raises(InvalidDataError, match=r"NaN: \d values in column 'c'"):
        KMeans(2).fit(frame)


def messages(fit: Callable[[Any], Any], frame: Any) -> str:
    with pytest.raises(InvalidDataError) as caught:
        fit(frame)
    return str(caught.value)


@pytest.mark.parametrize("frame", REFUSED.values(), ids=REFUSED)
def test_a_column_of_anything_else_is_named(frame: Any) -> None:
    said = messages(KMeans(2).fit, frame)
    assert "1 of 2 columns hold no numbers: 'c'; expected numbers" in said
    model = KMeans(2, random_state=0).fit(plain(NUMBERS))
    before = model.digest()
    assert "'c'" in messages(model.predict, frame)
    assert "'c'" in messages(lambda X: model.add(X, ids=[11, 12, 13, 14]), frame)
    assert model.digest() == before


@pytest.mark.parametrize("name", ["pandas object of digits", "pandas category of numbers"])
def test_scikit_learn_reads_them_too(name: str) -> None:
    """The control of what is expected above."""
    frame, values = READ[name]
    theirs = TheirBoosting(max_iter=2, categorical_features=None, random_state=0)
    given = theirs.fit(frame, WHOLE).predict(frame)
    assert given.tolist() == theirs.fit(plain(values), WHOLE).predict(plain(values)).tolist()


PRICES = [Decimal("1.5"), Decimal("2"), Decimal("7.25"), Decimal("4")]
TARGETS: dict[str, tuple[Any, list[Any]]] = {
    "arrow integers": (pa.array(WHOLE), WHOLE),
    "arrow integers in pieces": (pa.chunked_array([WHOLE[:2], WHOLE[2:]]), WHOLE),
    "arrow floats": (pa.array(NUMBERS), NUMBERS),
    "arrow decimals": (pa.array(PRICES), [float(each) for each in PRICES]),
    "a list of Decimal": (PRICES, [float(each) for each in PRICES]),
    "pandas Decimal": (pd.Series(PRICES), [float(each) for each in PRICES]),
    "polars Decimal": (pl.Series(PRICES), [float(each) for each in PRICES]),
    "pandas Int64": (pd.Series(WHOLE, dtype="Int64"), WHOLE),
}
CLASSES: dict[str, tuple[Any, list[Any]]] = {
    "arrow booleans": (pa.array(FLAGS), FLAGS),
    "arrow text": (pa.array(TEXT), TEXT),
    "arrow dictionary": (pa.array(TEXT).dictionary_encode(), TEXT),
    "arrow large text": (pa.array(TEXT, pa.large_string()), TEXT),
    "pandas category": (pd.Series(TEXT, dtype="category"), TEXT),
    "polars Categorical": (pl.Series(TEXT, dtype=pl.Categorical), TEXT),
}


@pytest.mark.parametrize(("y", "plain_y"), TARGETS.values(), ids=TARGETS)
def test_targets(y: Any, plain_y: list[Any]) -> None:
    X = np.arange(8.0).reshape(4, 2)
    assert Ridge().fit(X, y).digest() == Ridge().fit(X, plain_y).digest()


@pytest.mark.parametrize(("y", "plain_y"), CLASSES.values(), ids=CLASSES)
def test_classes(y: Any, plain_y: list[Any]) -> None:
    X = np.arange(8.0).reshape(4, 2)
    assert GaussianNB().fit(X, y).digest() == GaussianNB().fit(X, plain_y).digest()
    assert GaussianNB().fit(X, y).predict(X).tolist() == plain_y


NAMES: dict[str, tuple[Any, list[Any]]] = {
    "arrow integers": (pa.array([4, 5, 6, 7]), [4, 5, 6, 7]),
    "arrow integers beyond int64": (
        pa.array([2**63, 5, 6, 2**64 - 1], pa.uint64()), [2**63, 5, 6, 2**64 - 1],
    ),
    "arrow text": (pa.array(["r", "s", "t", "u"]), ["r", "s", "t", "u"]),
    "arrow text in pieces": (pa.chunked_array([["r"], ["s", "t", "u"]]), ["r", "s", "t", "u"]),
    "arrow dictionary": (
        pa.array(["r", "s", "t", "u"]).dictionary_encode(), ["r", "s", "t", "u"],
    ),
    "pandas category": (pd.Series(["r", "s", "t", "u"], dtype="category"), ["r", "s", "t", "u"]),
}  # fmt: skip


@pytest.mark.parametrize(("names", "plain_names"), NAMES.values(), ids=NAMES)
def test_ids_and_groups(names: Any, plain_names: list[Any]) -> None:
    X = np.arange(8.0).reshape(4, 2)
    model = KMeans(2, random_state=0).fit(X, ids=names, groups=names)
    twin = KMeans(2, random_state=0).fit(X, ids=plain_names, groups=plain_names)
    assert model.digest() == twin.digest()
    model.delete(names[:1])
    assert model.digest() == twin.delete(plain_names[:1]).digest_after
    model.delete(groups=names[1:2])
    assert model.digest() == twin.delete(groups=plain_names[1:2]).digest_after


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.string_view(), "dictionary"])
def test_texts(kind: Any) -> None:
    words = ["red green", "green", "blue red", "red"]
    texts = pa.array(words)
    texts = texts.dictionary_encode() if kind == "dictionary" else texts.cast(kind)
    model = CountVectorizer().fit(texts, ids=["r", "s", "t", "u"])
    assert model.digest() == CountVectorizer().fit(words, ids=["r", "s", "t", "u"]).digest()
    assert (model.transform(texts) != model.transform(words)).nnz == 0


def test_columns_whose_names_are_numbers() -> None:
    frame = pd.DataFrame({0: ["1", "2", "3"], 1: [1, 2, 4]}, index=[7, 8, 9])
    twin = pd.DataFrame({0: [1.0, 2.0, 3.0], 1: [1, 2, 4]}, index=[7, 8, 9])
    one, other = (KMeans(2, random_state=0).fit(each) for each in (frame, twin))
    assert one.digest() == other.digest()


def test_a_column_of_nothing_in_a_file(tmp_path: Path) -> None:
    table = pa.table({"c": pa.nulls(4), "n": BESIDE, "y": WHOLE})
    pq.write_table(table, tmp_path / "a.parquet")
    stored = Records.from_parquet(tmp_path, target="y")
    model = HistGradientBoostingRegressor(min_samples_leaf=1, max_iter=2, random_state=0)
    plain_frame = pd.DataFrame({"c": [np.nan] * 4, "n": BESIDE})
    assert model.fit(stored).digest() == model.fit(plain_frame, WHOLE).digest()
    with pytest.raises(InvalidDataError, match="4 values in column 'c'"):
        StandardScaler().fit(stored)


def test_decimals_are_categories_as_numbers_are() -> None:
    given = [Decimal("1.5"), Decimal(2), Decimal("NaN"), None]
    for frame in (pandas(given, object), np.array([given, BESIDE], dtype=object).T):
        categories = OneHotEncoder().fit(frame).categories_[0]
        np.testing.assert_array_equal(np.array(categories, dtype=float), [1.5, 2.0, np.nan])
    same = OneHotEncoder().fit(pandas([1.5, 2.0, np.nan, None], object))
    assert OneHotEncoder().fit(pandas(given, object)).digest() == same.digest()
