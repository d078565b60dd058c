"""`load` takes the records of a model as a tuple, with targets where it has learned from some."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils import get_tags

import erasable
from erasable.cluster import KMeans
from erasable.core.errors import (
    ArtifactError,
    ErasableError,
    InvalidDataError,
    InvalidInputError,
)
from erasable.core.records import Records
from erasable.ensemble import ShardedClassifier
from erasable.linear_model import LogisticRegression, Ridge
from erasable.naive_bayes import GaussianNB
from erasable.neighbors import KNeighborsRegressor
from erasable.pipeline import make_pipeline
from erasable.preprocessing import MinMaxScaler, StandardScaler
from erasable.tree import DecisionTreeRegressor

N = 30
X = (np.arange(2.0 * N).reshape(N, 2) * 7) % 11
Y = (np.arange(N) * 5 % 3 > 0).astype(int)
IDS = [f"v{i}" for i in range(N)]
GROUPS = [f"p{i // 2}" for i in range(N)]
TREE = DecisionTreeClassifier(max_depth=2, random_state=0)
PREDICT = {
    "logistic": LogisticRegression(), "ridge": Ridge(), "naive bayes": GaussianNB(),
    "neighbors": KNeighborsRegressor(), "tree": DecisionTreeRegressor(max_depth=2),
    "pipeline": make_pipeline(StandardScaler(), LogisticRegression()),
    "refit": erasable.Refit(TREE), "shards": ShardedClassifier(TREE, n_shards=2, random_state=0),
}  # fmt: skip
OTHERS = {
    "means": KMeans(2, random_state=0), "scale": MinMaxScaler(),
    "chain": make_pipeline(StandardScaler(), KMeans(2, random_state=0)),
}  # fmt: skip
MODELS = {**PREDICT, **OTHERS}


def saved(name: str, **options: Any) -> tuple[Any, io.BytesIO]:
    model = MODELS[name].fit(X, Y if name in PREDICT else None, **options)
    file = io.BytesIO()
    model.save(file)
    file.seek(0)
    return model, file


def check_deletes(model: Any, loaded: Any, wanted: dict[str, Any]) -> None:
    model.delete(**wanted)
    loaded.delete(**wanted)
    assert loaded.digest() == model.digest()


@pytest.mark.parametrize("name", MODELS)
def test_targets_ids_and_groups(name: str) -> None:
    assert get_tags(MODELS[name]).target_tags.required == (name in PREDICT)
    model, file = saved(name, ids=IDS, groups=GROUPS)
    check_deletes(model, erasable.load(file, (X, Y, IDS, GROUPS)), {"groups": ["p3"]})


@pytest.mark.parametrize("name", PREDICT)
def test_targets_and_ids(name: str) -> None:
    model, file = saved(name, ids=IDS)
    check_deletes(model, erasable.load(file, (X, Y, IDS)), {"ids": ["v3"]})


@pytest.mark.parametrize("name", PREDICT)
def test_targets_alone(name: str) -> None:
    model, file = saved(name)
    check_deletes(model, erasable.load(file, (X, Y)), {"ids": [3]})


@pytest.mark.parametrize("name", OTHERS)
def test_without_targets_as_before(name: str) -> None:
    model, file = saved(name, ids=IDS, groups=GROUPS)
    loaded = erasable.load(file, (X, IDS, GROUPS))
    check_deletes(model, loaded, {"groups": ["p3"]})
    file.seek(0)
    assert erasable.load(file, (X, IDS)).digest() != loaded.digest()


@pytest.mark.parametrize("name", PREDICT)
def test_records_without_targets_are_told(name: str) -> None:
    _, file = saved(name, ids=IDS)
    with pytest.raises(ArtifactError, match="the records have no targets") as raised:
        erasable.load(file, Records(X, ids=IDS))
    assert "(X, y, ids)" in str(raised.value)


WRONG = [
    *((name, (X, IDS), "(X, y)") for name in PREDICT),
    *((name, (X, IDS, GROUPS), "(X, y, ids)") for name in PREDICT),
    *((name, (X, Y, IDS), "(X, ids, groups)") for name in OTHERS),
    *((name, (X, IDS, GROUPS, Y), "(X, y, ids, groups)") for name in MODELS),
]


@pytest.mark.parametrize(("name", "form", "read_as"), WRONG)
@pytest.mark.filterwarnings("ignore:The number of unique classes")
def test_another_order_is_refused_and_the_right_one_is_said(
    name: str, form: Any, read_as: str
) -> None:
    _, file = saved(name, ids=IDS)
    with pytest.raises(ErasableError) as raised:
        erasable.load(file, form)
    assert str(raised.value).endswith(f"; the tuple was read as {read_as}")
    assert "optimum" not in str(raised.value)


@pytest.mark.parametrize("given", [(X,), [X, Y], (X, Y, IDS, GROUPS, 1), {"X": X}, X])
def test_what_is_no_such_tuple_is_refused(given: Any) -> None:
    for name, forms in (
        ("logistic", "(X, y), (X, y, ids) or (X, y, ids, groups); pass Records(X, y, ids=...)"),
        ("means", "(X, ids), (X, ids, groups) or (X, y, ids, groups); pass Records(X, ids=...)"),
    ):
        _, file = saved(name)
        with pytest.raises(InvalidInputError) as raised:
            erasable.load(file, given)
        assert f"expected Records, or a tuple {forms}" in str(raised.value)


@pytest.mark.parametrize("name", ["logistic", "naive bayes", "pipeline"])
@pytest.mark.filterwarnings("ignore:A column-vector y")
def test_a_column_of_targets_is_taken_as_fit_takes_it(name: str) -> None:
    column = Y.reshape(-1, 1)
    model = MODELS[name].fit(X, column, ids=IDS)
    file = io.BytesIO()
    model.save(file)
    file.seek(0)
    check_deletes(model, erasable.load(file, (X, column, IDS)), {"ids": ["v3"]})


def test_the_index_of_a_frame_is_its_ids() -> None:
    frame = pd.DataFrame(X, columns=["a", "b"], index=IDS)
    model = GaussianNB().fit(frame, Y)
    file = io.BytesIO()
    model.save(file)
    file.seek(0)
    check_deletes(model, erasable.load(file, (frame, Y)), {"ids": ["v3"]})


def test_other_values_are_still_refused() -> None:
    """The negative control: what is checked of records is checked of tuples."""
    _, file = saved("naive bayes", ids=IDS)
    for form in ((X + 1, Y, IDS), (X, 1 - Y, IDS), (X, Y, IDS[::-1]), (X[1:], Y[1:], IDS[1:])):
        file.seek(0)
        with pytest.raises(ArtifactError):
            erasable.load(file, form)


@pytest.mark.parametrize("name", ["ridge", "scale", "tree"])
def test_numbers_in_columns_of_objects_are_read_as_fit_reads_them(name: str) -> None:
    frame = pd.DataFrame(X, columns=["a", "b"]).astype({"b": object})
    model = MODELS[name].fit(frame, Y if name in PREDICT else None)
    file = io.BytesIO()
    model.save(file)
    file.seek(0)
    loaded = erasable.load(file, (frame, Y if name in PREDICT else range(N)))
    check_deletes(model, loaded, {"ids": [3, 8]})


@pytest.mark.parametrize(
    ("cells", "told"),
    [
        ([1, 2.5, 3], "the records hold objects; Ridge expected numbers; make numbers of those"),
        ([1, "b", 3], "the records hold text; Ridge expected numbers; encode or drop those"),
    ],
)
def test_records_of_a_frame_say_whether_objects_are_text(cells: list[Any], told: str) -> None:
    records = Records(pd.DataFrame({"a": pd.Series(cells, dtype=object)}), [1.0, 2.0, 3.0])
    with pytest.raises(InvalidDataError, match=told):
        Ridge().fit(records)
