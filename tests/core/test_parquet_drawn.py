"""Any estimator or composition on records in files: the model of memory, or one sentence."""

from __future__ import annotations

import copy
import os
import pickle
import tempfile
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.utils import get_tags

import erasable
from effort import examples
from erasable import Records
from erasable.compose import ColumnTransformer
from erasable.core._admission import IN_MEMORY
from erasable.core.errors import (
    ErasableError,
    InvalidDataError,
    InvalidInputError,
    TooFewRecordsError,
)
from erasable.core.stored_table import StoredColumns
from erasable.decomposition import PCA
from erasable.pipeline import make_pipeline
from erasable.preprocessing import MaxAbsScaler, MinMaxScaler, RobustScaler, StandardScaler
from erasable.utils import all_estimators
from law_instances import first_instances

INSTANCES = {type(each).__name__: each for each in reversed(first_instances())}
READERS = [name for name, cls, _ in all_estimators() if cls._reads_blocks]
OF_DOCUMENTS = {"CountVectorizer", "TfidfVectorizer"}
TAKE_GAPS = {name for name in READERS if get_tags(INSTANCES[name]).input_tags.allow_nan}
SCALERS = [StandardScaler(), MinMaxScaler(), MaxAbsScaler(), RobustScaler()]
QUICK = {"n_neighbors": 1, "n_clusters": 2, "n_segments": 1, "n_components": 1, "random_state": 0}
REFUSAL = "the features of the records lie in files, from which"


class Case(NamedTuple):
    """Records as a table, and what is to be done with them.

    Attributes
    ----------
    columns : dict
        The features, as the files have them.
    cuts : list of int
        Where files begin; there may be files without rows.
    deletions : list of (list of int, bool)
        Rows to be deleted, and whether with all of their group.
    """

    columns: dict[str, pa.Array]
    ids: list[Any]
    y: list[Any]
    groups: list[int] | None
    weights: list[float] | None
    cuts: list[int]
    row_group: int
    deletions: list[tuple[list[int], bool]]

    @property
    def names(self) -> dict[str, str]:
        """Names of the columns that are no features, by what they are."""
        found = {"ids": "id", "target": "label"}
        found.update({"groups": "person"} if self.groups is not None else {})
        return {**found, **({"sample_weight": "w"} if self.weights is not None else {})}

    def write(self, folder: Path) -> None:
        """Write the files, with their columns in any order of use."""
        others = {"id": self.ids, "label": self.y, "person": self.groups, "w": self.weights}
        named = {name: values for name, values in others.items() if values is not None}
        table = pa.table({**named, **self.columns})
        edges = [0, *sorted(self.cuts), len(self.ids)]
        for number, (first, stop) in enumerate(pairwise(edges)):
            part = table.slice(first, stop - first)
            pq.write_table(part, folder / f"{number:02}.parquet", row_group_size=self.row_group)

    def in_memory(self, rows: Any = None) -> Records:
        """Return some of the records."""
        own = np.arange(len(self.ids)) if rows is None else np.asarray(rows, dtype=np.int64)
        frame = pd.DataFrame({name: each.to_pandas() for name, each in self.columns.items()})
        at = [None if each is None else [each[i] for i in own.tolist()] for each in self._others]
        ids, y, groups, weights = at
        return Records(frame.iloc[own], y, ids=ids, groups=groups, sample_weight=weights)

    @property
    def _others(self) -> list[list[Any] | None]:
        return [self.ids, self.y, self.groups, self.weights]


@st.composite
def cases(draw: Any, *, gaps: bool = False) -> Case:
    n, d = draw(st.integers(2, 40)), draw(st.integers(1, 3))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    columns = {}
    kinds = ["counts", "counts", "reals", "offset", "float32", "int32", "nullable", "flags"]
    sort = draw(st.sampled_from(["counts", "any", "float32"]))
    for j in range(d):
        kind = sort if sort != "any" else draw(st.sampled_from(kinds))
        counts = rng.integers(0, 4, n)
        columns[f"x{j}"] = {
            "counts": lambda c=counts: pa.array(c.astype(float)),
            "reals": lambda: pa.array(rng.normal(size=n)),
            "offset": lambda: pa.array(rng.normal(size=n) + 1e15),
            "float32": lambda: pa.array(rng.normal(size=n).astype(np.float32) ** 2),
            "int32": lambda c=counts: pa.array(c.astype(np.int32) - 1),
            "nullable": lambda c=counts: pa.array(c.tolist(), pa.int64()),
            "flags": lambda c=counts: pa.array(c > 1),
        }[kind]()
    if gaps:
        if pa.types.is_boolean(columns["x0"].type):  # with gaps they are objects to pandas
            columns["x0"] = columns["x0"].cast(pa.int8())
        values = columns["x0"].to_pylist()
        values[draw(st.integers(0, n - 1))] = None
        columns["x0"] = pa.array(values, columns["x0"].type)
    numbers = rng.permutation(5 * n)[:n].tolist()
    texts = draw(st.booleans())
    labels = rng.integers(0, draw(st.integers(1, 3)), n)
    left, deletions = rng.permutation(n).tolist(), []
    for _ in range(draw(st.integers(0, 4))):
        size = draw(st.sampled_from([0, 1, 2, n // 2, n - 2]))
        deletions.append((left[:size], draw(st.booleans())))
        left = left[size:]
    return Case(
        columns=columns,
        ids=[f"r{i}" for i in numbers] if texts else numbers,
        y=labels.tolist(),
        groups=(np.arange(n) // 3).tolist() if draw(st.booleans()) else None,
        weights=(rng.integers(0, 5, n) / 4.0).tolist() if draw(st.integers(0, 3)) == 0 else None,
        cuts=draw(st.lists(st.integers(0, n), max_size=3)),
        row_group=draw(st.sampled_from([1, 2, 7, 1000])),
        deletions=deletions,
    )


def quick(instance: Any) -> Any:
    """Copy a model, with few clusters or components, and a seed."""
    model = clone(instance)
    for name in model.get_params():
        last = name.split("__")[-1]
        if last in QUICK and (last != "n_components" or isinstance(instance, PCA)):
            model.set_params(**{name: QUICK[last]})
    return model


@st.composite
def models(draw: Any) -> Any:
    one = draw(st.sampled_from([*READERS, *READERS, *INSTANCES]))
    model = quick(INSTANCES[one])
    shape = draw(st.sampled_from(["alone", "alone", "behind", "behind two", "columns", "nested"]))
    scalers = [clone(draw(st.sampled_from(SCALERS))) for _ in range(2)]
    if shape == "alone":
        return model
    if shape == "columns":
        beside = ColumnTransformer([("all", scalers[0], slice(None))], remainder="passthrough")
        return draw(st.sampled_from([beside, make_pipeline(beside, model)]))
    if shape == "nested":
        return make_pipeline(scalers[0], make_pipeline(scalers[1], model))
    return make_pipeline(*scalers[: 1 + (shape == "behind two")], model)


def outcome(action: Any) -> Any:
    """Return what an action gives, or of which error it was the reason, and its words."""
    try:
        return action()
    except ErasableError as error:
        return type(error), str(error)


@given(cases(), models())
@settings(max_examples=examples(400), deadline=None)
@pytest.mark.filterwarnings("ignore")
def test_the_model_of_memory_or_one_sentence(case: Case, model: Any) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        case.write(folder)
        check(case, model, folder)


def check(case: Case, model: Any, folder: Path) -> None:
    stored = Records.from_parquet(folder, **case.names)
    twin = clone(model)
    if not model._can_read_blocks():
        event("refused")
        before = repr(vars(model))
        with pytest.raises(InvalidInputError) as refusal:
            model.fit(stored)
        told = str(refusal.value)
        if "of which" not in told:  # it makes no use of weights: so it is told in memory, too
            assert told.startswith(REFUSAL)
            assert IN_MEMORY in told
            assert "; pass records.in_memory()" in told
        assert repr(vars(model)) == before
        assert len(stored) == len(case.ids)
        return
    memory = case.in_memory()
    fits = [
        outcome(lambda m=m, r=r: m.fit(r).digest()) for m, r in ((model, stored), (twin, memory))
    ]
    assert fits[0] == fits[1]
    if not isinstance(fits[0], str):
        event(f"no fit: {fits[0][0].__name__}")
        return
    event("fitted")
    ways = ["", "copied", "pickled", "saved"]
    for number, (rows, whole) in enumerate(case.deletions):
        ids = [case.ids[i] for i in rows if case.ids[i] in set(model.ids_.tolist())]
        groups = None
        if whole and case.groups is not None:
            held = set(model.ids_.tolist())
            groups = sorted({case.groups[i] for i in rows if case.ids[i] in held})
            ids = None
        wanted = {"ids": ids, "groups": groups}
        ends = [
            outcome(lambda m=m, how=wanted: m.delete(**how).digest_after) for m in (model, twin)
        ]
        assert ends[0] == ends[1]
        assert model.digest() == twin.digest()
        way = ways[number % len(ways)]
        if way == "copied":
            model = copy.deepcopy(model)
        elif way == "pickled":
            model = pickle.loads(pickle.dumps(model))
        elif way == "saved":
            model.save(folder.parent / f"{folder.name}.model", records=True)
            model = erasable.load(folder.parent / f"{folder.name}.model", records=True)
    held = set(model.ids_.tolist())
    fresh = clone(model).fit(case.in_memory([i for i, one in enumerate(case.ids) if one in held]))
    assert fresh.digest() == model.digest()
    change_of_files(case, model, folder)


def change_of_files(case: Case, model: Any, folder: Path) -> None:
    """A file that is written again, or goes, is refused, and nothing is changed."""
    before = model.digest(), model.ids_.tolist()
    path = max(folder.iterdir())
    os.utime(path, ns=(7, 7))
    if len(case.ids) % 2:
        path.unlink()
    with pytest.raises((InvalidDataError, TooFewRecordsError), match=r"Parquet file|would leave"):
        model.delete(before[1][:1])
    assert (model.digest(), model.ids_.tolist()) == before


@given(cases(gaps=True), st.sampled_from(sorted(set(READERS) - TAKE_GAPS - OF_DOCUMENTS)))
@settings(max_examples=examples(60), deadline=None)
@pytest.mark.filterwarnings("ignore")
def test_gaps_are_refused_in_the_words_of_memory(case: Case, name: str) -> None:
    case = case._replace(weights=None, y=[i % 2 for i in range(len(case.y))])
    model = quick(INSTANCES[name])
    with tempfile.TemporaryDirectory() as folder:
        case.write(Path(folder))
        stored = Records.from_parquet(folder, **case.names)
        with pytest.raises(InvalidDataError, match="X contains NaN: 1 values in column 'x0'"):
            model.fit(stored)
    with pytest.raises(InvalidDataError, match="X contains NaN: 1 values in column 'x0'"):
        model.fit(case.in_memory())
    assert repr(vars(model)) == repr(vars(clone(model)))


@pytest.mark.parametrize("name", ["LogisticRegression", "BernoulliNB", "RobustScaler"])
def test_a_block_that_is_read_wrongly_is_noticed(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = StoredColumns.block

    def wrong(self: StoredColumns, number: int, columns: Any = None, **gaps: bool) -> Any:
        return own(self, number, columns, **gaps) * (-1.0 if number == 1 else 1.0)

    monkeypatch.setattr(StoredColumns, "block", wrong)
    columns = {"x0": pa.array(np.arange(12.0) % 5), "x1": pa.array(np.arange(12.0) + 3.0)}
    ids, y = list(range(12)), [0, 1] * 6
    case = Case(columns, ids, y, None, None, cuts=[5], row_group=3, deletions=[([3], False)])
    case.write(tmp_path)
    with pytest.raises(AssertionError):
        check(case, clone(INSTANCES[name]), tmp_path)


def test_the_sentence_names_those_that_read_no_blocks() -> None:
    others = set(INSTANCES) - set(READERS) - {"Pipeline", "ColumnTransformer"}
    assert sorted(others) == ["MLPClassifier", "MLPRegressor", "Refit"]
    assert IN_MEMORY.startswith("Embedding on a cluster, MLPClassifier, MLPRegressor, Refit, and")
