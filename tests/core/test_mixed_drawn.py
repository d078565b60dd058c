"""Random compositions on random tables of text, numbers and gaps, wherever these are."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st
from sklearn.base import clone

from effort import examples
from erasable import Records
from erasable.cluster import KMeans
from erasable.compose import ColumnTransformer
from erasable.core.errors import ErasableError, InvalidInputError
from erasable.feature_extraction import CountVectorizer, TfidfVectorizer
from erasable.linear_model import LogisticRegression, Ridge
from erasable.naive_bayes import BernoulliNB, GaussianNB
from erasable.pipeline import make_pipeline
from erasable.preprocessing import (
    MinMaxScaler,
    OneHotEncoder,
    OrdinalEncoder,
    RobustScaler,
    SimpleImputer,
    StandardScaler,
)
from erasable.tree import DecisionTreeClassifier
from simulated_workers import Simulated, spread

OF_TEXT = [
    OneHotEncoder(handle_unknown="ignore"),
    OneHotEncoder(drop="if_binary", sparse_output=False),
    OneHotEncoder(drop="first", handle_unknown="ignore"),
    OrdinalEncoder(encoded_missing_value=-1),
    SimpleImputer(strategy="most_frequent"),
    make_pipeline(SimpleImputer(strategy="constant"), OneHotEncoder(sparse_output=False)),
    make_pipeline(SimpleImputer(strategy="most_frequent"), OrdinalEncoder()),
    CountVectorizer(analyzer="char"),
    TfidfVectorizer(analyzer="char_wb", min_df=2, quantize=True),
    make_pipeline(SimpleImputer(strategy="most_frequent"), TfidfVectorizer(analyzer="char")),
]
OF_NUMBERS = [
    *OF_TEXT[:4],
    SimpleImputer(),
    SimpleImputer(strategy="median", add_indicator=True, keep_empty_features=True),
    make_pipeline(SimpleImputer(keep_empty_features=True), StandardScaler()),
    make_pipeline(SimpleImputer(strategy="median", keep_empty_features=True), MinMaxScaler()),
    make_pipeline(SimpleImputer(strategy="constant"), RobustScaler()),
    MinMaxScaler(),
    "passthrough",
]
LAST = [
    None, None, LogisticRegression(), BernoulliNB(), GaussianNB(), Ridge(),
    KMeans(2, random_state=0), DecisionTreeClassifier(max_depth=3, random_state=0),
]  # fmt: skip


class Case(NamedTuple):
    """A table, a composition, and what is done."""

    table: pa.Table
    columns: list[str]
    model: Any
    cuts: list[int]
    gone: list[list[int]]


@st.composite
def columns_of(draw: Any, n: int) -> pa.Array:
    kind = draw(st.sampled_from(["text", "text", "float", "whole", "yes"]))
    cells = {
        "text": st.sampled_from(["a", "b", "", "ü", "nan"]),
        "float": st.sampled_from([0.0, -0.0, 1.5, -2.0, 1e9, 0.1]),
        "whole": st.integers(-2, 2),
        "yes": st.booleans(),
    }[kind]
    if draw(st.booleans()):
        cells = st.one_of(cells, st.none())
    values = draw(st.lists(cells, min_size=n, max_size=n))
    types = {"text": pa.string(), "float": pa.float64(), "whole": pa.int16(), "yes": pa.bool_()}
    made = pa.array(values, types[kind])
    return made.dictionary_encode() if kind == "text" and draw(st.booleans()) else made


@st.composite
def cases(draw: Any) -> Case:
    n, d = draw(st.integers(3, 24)), draw(st.integers(1, 4))
    columns = {f"c{j}": draw(columns_of(n)) for j in range(d)}
    others = {"id": np.arange(n), "label": np.arange(n) % 2, "person": np.arange(n) // 2}
    parts = []
    for name, column in columns.items():
        text = pa.types.is_dictionary(column.type) or pa.types.is_string(column.type)
        part = draw(st.sampled_from(OF_TEXT if text else OF_NUMBERS))
        parts.append((f"of_{name}", part if isinstance(part, str) else clone(part), [name]))
    model: Any = ColumnTransformer(parts)
    if draw(st.booleans()):
        places = [(name, part, [at]) for at, (name, part, _) in enumerate(parts)]
        first = SimpleImputer(strategy="most_frequent", keep_empty_features=draw(st.booleans()))
        model = make_pipeline(first, ColumnTransformer(places))
    if (last := draw(st.sampled_from(LAST))) is not None:
        model = make_pipeline(model, clone(last))
    cuts = sorted(draw(st.lists(st.integers(0, n), max_size=4)))
    gone = draw(st.lists(st.lists(st.integers(0, n - 1), min_size=1, max_size=4), max_size=3))
    return Case(pa.table({**columns, **others}), list(columns), model, cuts, gone)


def outcome(call: Any) -> Any:
    """Return what a call returns, or the type of the error that it raises."""
    try:
        return call()
    except ErasableError as error:
        return type(error), "sparse" in str(error)


def in_memory(case: Case, ids: Any) -> Records:
    own = case.table.take(pa.array(ids))
    return Records(own.select(case.columns), ids % 2, ids=ids, groups=ids // 2)


def check(case: Case, records: Records) -> None:
    model, twin = clone(case.model), clone(case.model)
    ids = np.arange(case.table.num_rows)
    memory = in_memory(case, ids)
    ends = [
        outcome(lambda m=m, r=r: m.fit(r).digest()) for m, r in ((model, records), (twin, memory))
    ]
    if ends[0] == (InvalidInputError, True):
        event("sparse")
        return
    assert ends[0] == ends[1]
    event("fitted" if isinstance(ends[0], str) else ends[0][0].__name__)
    if not isinstance(ends[0], str):
        return
    for rows in case.gone:
        held = set(model.ids_.tolist())
        gone = [row for row in dict.fromkeys(rows) if row in held]
        ends = [outcome(lambda m=m, gone=gone: m.delete(gone).digest_after) for m in (model, twin)]
        assert ends[0] == ends[1]
        assert model.digest() == twin.digest()
    fresh = clone(case.model).fit(in_memory(case, np.array(model.ids_)))
    assert fresh.digest() == model.digest()


@given(cases())
@settings(max_examples=examples(150), deadline=None)
@pytest.mark.filterwarnings("ignore")
def test_files(case: Case) -> None:
    with tempfile.TemporaryDirectory() as folder:
        pq.write_table(case.table, Path(folder, "a.parquet"), row_group_size=5)
        uses = {"ids": "id", "target": "label", "groups": "person"}
        check(case, Records.from_parquet(folder, **uses, features=case.columns))


@given(cases(), st.integers(0, 2**32 - 1))
@settings(max_examples=examples(150), deadline=None)
@pytest.mark.filterwarnings("ignore")
def test_workers(case: Case, seed: int) -> None:
    workers = Simulated(2)
    records = spread(case.table, case.cuts, workers, case.columns)
    workers.die(0.02, seed)
    check(case, records)
