"""Boosting of columns of text: categories without an encoder."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sklearn.ensemble import HistGradientBoostingRegressor as Theirs

import erasable
from erasable import Records
from erasable.core.errors import InvalidDataError, InvalidParameterError
from erasable.ensemble import HistGradientBoostingClassifier as Classifier
from erasable.ensemble import HistGradientBoostingRegressor as Regressor

CITIES = np.array(["Bonn", "Kiel", "Ulm", "07", "7", "-1", "1E1", "10"], dtype=object)
PARAMS: dict[str, Any] = {"max_iter": 6, "min_samples_leaf": 2, "random_state": 0}


def visits(n: int = 240, seed: int = 0) -> tuple[pd.DataFrame, np.ndarray[Any, Any]]:
    """Make a frame of numbers and of text with gaps; targets depend on the text most."""
    rng = np.random.default_rng(seed)
    place = rng.integers(0, CITIES.size, n)
    city = CITIES[place].copy()
    city[rng.random(n) < 0.1] = None
    frame = pd.DataFrame({"age": rng.normal(50.0, 9.0, n), "city": city})
    return frame, 3.0 * (place % 3) + 0.01 * frame["age"].to_numpy()


def coded(frame: pd.DataFrame) -> np.ndarray[Any, Any]:
    """Number the categories by hand, in another order than that of the text."""
    known = {city: float(at) for at, city in enumerate(CITIES[::-1])}
    city = [known.get(each, np.nan) for each in frame["city"]]
    return np.column_stack([frame["age"].to_numpy(), city])


FRAMES = {
    "pandas, text": lambda frame: frame,
    "pandas, category": lambda frame: frame.astype({"city": "category"}),
    "Polars": lambda frame: pl.from_pandas(frame),
    "Polars, categorical": lambda frame: pl.from_pandas(frame).cast({"city": pl.Categorical}),
    "Arrow": lambda frame: pa.Table.from_pandas(frame, preserve_index=False),
    "Records": Records,
}


@pytest.mark.parametrize("given", ["from_dtype", ["city"], [1], [False, True]])
@pytest.mark.parametrize("name", FRAMES)
def test_text_is_categories(name: str, given: Any) -> None:
    """In any frame the model is that of pandas, and deletions are exact."""
    frame, y = visits()
    ids = np.arange(len(y))
    gone = np.append(np.flatnonzero(frame["city"] == "Ulm"), [0, 5, 6])  # a whole category
    left = np.delete(ids, gone)
    make, params = FRAMES[name], {**PARAMS, "categorical_features": given}
    made = make(frame)
    model: Any = Regressor(**params)
    if name == "Records":
        model.fit(Records(frame, y, ids=ids))
    else:
        model.fit(made, y, ids=ids)
    plain = Regressor(**params).fit(frame, y, ids=ids)
    assert model.digest() == plain.digest()
    asked = frame if name == "Records" else made
    assert model.predict(asked).tolist() == plain.predict(frame).tolist()
    assert np.corrcoef(model.predict(asked), y)[0, 1] > 0.9  # it has learned from the text
    model.delete(gone)
    fresh = Regressor(**params).fit(frame.iloc[left], y[left], ids=left)
    assert model.digest() == fresh.digest() != plain.digest()


def test_text_is_as_good_as_numbers_and_as_scikit_learn() -> None:
    """Which text it is tells nothing, but for which draws a split gets: scores agree closely."""
    frame, y = visits(2_000)
    new, wanted = visits(500, seed=1)
    ours = Regressor(**PARAMS, categorical_features=["city"]).fit(frame, y)
    numbers = Regressor(**PARAMS, categorical_features=[1]).fit(coded(frame), y)
    theirs = Theirs(max_iter=6, learning_rate=0.2, categorical_features="from_dtype")
    theirs.fit(frame.astype({"city": "category"}), y)
    score = ours.score(new, wanted)
    assert abs(score - numbers.score(coded(new), wanted)) < 0.05
    assert abs(score - theirs.score(new.astype({"city": "category"}), wanted)) < 0.1
    one_number = Regressor(**PARAMS).fit(coded(frame)[:, :1], y)  # a negative control
    assert one_number.score(new[["age"]].to_numpy(), wanted) < score - 0.3


def test_texts_that_differ_are_never_one_category() -> None:
    frame, y = visits()
    model = Regressor(**PARAMS, categorical_features=["city"]).fit(frame, y)
    told = {
        city: model.predict(pd.DataFrame({"age": [50.0], "city": [city]}))[0] for city in CITIES
    }
    for one, other in (("7", "07"), ("1E1", "10"), ("-1", "Bonn")):
        assert (CITIES.tolist().index(one) - CITIES.tolist().index(other)) % 3  # other targets
        assert told[one] != told[other]
    whole = pd.DataFrame({"age": [50.0], "city": [7]})
    assert model.predict(whole)[0] == told["7"]


def test_a_file_and_its_records(tmp_path: Path) -> None:
    frame, y = visits()
    frame = frame.astype({"city": "category"})
    labels = np.where(y > 2.0, "high", "low")
    model = Classifier(**PARAMS, categorical_features="from_dtype").fit(frame, labels)
    model.save(tmp_path / "model")
    alone: Any = erasable.load(tmp_path / "model")
    assert alone.predict_proba(frame).tolist() == model.predict_proba(frame).tolist()
    again: Any = erasable.load(tmp_path / "model", (frame, labels, np.arange(len(y))))
    again.delete([3, 4, 8])
    model.delete([3, 4, 8])
    assert again.digest() == model.digest()
    assert b"Bonn" not in (tmp_path / "model").read_bytes()


def test_from_parquet(tmp_path: Path) -> None:
    frame, y = visits()
    table = pa.Table.from_pandas(frame.assign(y=y, visit=range(len(y))), preserve_index=False)
    pq.write_table(table, tmp_path / "visits.parquet", row_group_size=50)
    for given in ("from_dtype", ["city"]):
        params = {**PARAMS, "categorical_features": given}
        stored = Records.from_parquet(
            tmp_path / "visits.parquet", ids="visit", target="y", features=["age", "city"]
        )
        model = Regressor(**params).fit(stored)
        gone = np.append(np.flatnonzero(frame["city"] == "Kiel"), [0, 5])
        left = np.delete(np.arange(len(y)), gone)
        assert model.digest() == Regressor(**params).fit(frame, y).digest()
        model.delete(gone)
        fresh = Regressor(**params).fit(frame.iloc[left], y[left], ids=left)
        assert model.digest() == fresh.digest()


def test_records_that_come_and_are_corrected() -> None:
    frame, y = visits()
    params = {**PARAMS, "categorical_features": "from_dtype"}
    model = Regressor(**params).fit(frame.iloc[:200], y[:200], ids=np.arange(200))
    model.add(frame.iloc[200:], y[200:], ids=np.arange(200, 240))
    assert model.digest() == Regressor(**params).fit(frame, y).digest()
    other = frame.copy()
    other.loc[3, "city"] = "Trier"
    model.correct([3], other.iloc[[3]])
    assert model.digest() == Regressor(**params).fit(other, y).digest()


def test_categories_of_numbers() -> None:
    """As before: numbers that pandas calls categories, in a column that is named."""
    frame, y = visits()
    numbers = pd.DataFrame(coded(frame), columns=["age", "city"])
    declared = numbers.astype({"city": "category"})
    params, by_type = (
        {**PARAMS, "categorical_features": each} for each in (["city"], "from_dtype")
    )
    wanted = Regressor(**params).fit(numbers, y).predict(numbers).tolist()
    plain = Regressor(**PARAMS).fit(numbers, y).predict(numbers).tolist()
    assert Regressor(**params).fit(declared, y).predict(declared).tolist() == wanted != plain
    assert Regressor(**by_type).fit(declared, y).predict(declared).tolist() == wanted
    assert Regressor(**by_type).fit(numbers, y).predict(numbers).tolist() == plain
    large = np.array([[2**53 + 1, 1], [7, 2]] * 30)
    Regressor(**{**PARAMS, "categorical_features": [1]}).fit(
        large, np.arange(60.0)
    )  # not refused, as categories of encoders are


def test_what_is_not_taken_is_refused() -> None:
    frame, y = visits()
    with pytest.raises(InvalidDataError, match="'city'"):
        Regressor(**PARAMS).fit(frame, y)
    with pytest.raises(InvalidDataError, match="column 'city' holds text; expected numbers"):
        Regressor(**PARAMS, categorical_features=["age"]).fit(frame, y)
    with pytest.raises(InvalidParameterError, match="from_type"):
        Regressor(**PARAMS, categorical_features="from_type").fit(frame, y)
    cells = frame.to_numpy(dtype=object)
    model = Regressor(**PARAMS, categorical_features=[1]).fit(cells, y)
    before = model.digest()
    for wrong in ("high", "inf"):
        with pytest.raises(InvalidDataError, match="column 'x0' holds text"):
            model.predict([[wrong, "Bonn"]])
        with pytest.raises(InvalidDataError, match="column 'x0' holds text"):
            model.add(np.array([[wrong, "Bonn"]], dtype=object), [1.0], ids=[999])
        assert model.digest() == before
    model.delete([1, 2])  # and it goes on
    left = np.delete(np.arange(len(y)), [1, 2])
    fresh = Regressor(**PARAMS, categorical_features=[1]).fit(cells[left], y[left], ids=left)
    assert model.digest() == fresh.digest()
