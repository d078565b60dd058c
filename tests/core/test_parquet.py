"""Records whose features lie in Parquet files make the models that records in memory make."""

from __future__ import annotations

import copy
import os
import pickle
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sklearn.base import clone
from sklearn.linear_model import Ridge as TheirRidge

import erasable
from erasable import Records
from erasable.cluster import KMeans, QuantizedKMeans
from erasable.core import parquet
from erasable.core.errors import (
    ArtifactError,
    ErasableError,
    InvalidDataError,
    InvalidIdsError,
    InvalidInputError,
)
from erasable.core.stored_table import StoredColumns
from erasable.decomposition import PCA
from erasable.ensemble import (
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    ShardedRegressor,
)
from erasable.linear_model import Ridge
from erasable.model_selection import leave_one_out
from erasable.naive_bayes import GaussianNB
from erasable.pipeline import make_pipeline
from erasable.preprocessing import MaxAbsScaler, MinMaxScaler, OneHotEncoder, StandardScaler
from erasable.refit import Refit
from visits_table import BLOCKWISE, OF_COUNTS, make

N, D = 900, 4
OF_SUMS = set(BLOCKWISE) - {"DivideAndConquerKMeans", "KMeans", "QuantizedKMeans"}


class Visits:
    """A table, and how it is cut into files and row groups."""

    def __init__(
        self, folder: Path, *, texts: bool, narrow: bool, counts: bool = False, seed: int = 0
    ) -> None:
        rng = np.random.default_rng(seed)
        kind = np.float32 if narrow else np.float64
        X = rng.normal([0.0, 3.0, 1e6, 0.0], size=(N, D)).astype(kind)
        if counts:
            X[:] = rng.geometric([0.1, 0.3, 0.5, 0.5], size=(N, D)) - 1
        X[:, 3] = rng.integers(0, 3, N)
        numbers = rng.permutation(10 * N)[:N]
        self.ids = np.array([f"visit-{i}" for i in numbers], object) if texts else numbers
        self.y, self.groups = rng.integers(0, 3, N), np.arange(N) // 7
        self.frame = pd.DataFrame({f"x{j}": X[:, j] for j in range(D)})
        columns = {name: self.frame[name].to_numpy() for name in self.frame}
        others = {"id": self.ids.tolist(), "label": self.y, "person": self.groups}
        self.table = pa.table({**columns, **others, "city": ["Bonn"] * N})
        self.folder = folder
        self.furthest = self.ids[np.abs(X - X.mean(axis=0)).argmax(axis=0)]

    def write(self, cuts: list[int], row_group: int) -> Records:
        self.folder.mkdir(exist_ok=True)
        for number, (first, stop) in enumerate(zip([0, *cuts], [*cuts, N], strict=True)):
            part = self.table.slice(first, stop - first)
            pq.write_table(part, self.folder / f"{number:03}.parquet", row_group_size=row_group)
        (self.folder / "_SUCCESS").write_text("a note of another program")
        return Records.from_parquet(self.folder, ids="id", target="label", groups="person")

    def in_memory(self) -> Records:
        return Records(self.frame, self.y, ids=self.ids, groups=self.groups)


@pytest.fixture
def visits(tmp_path: Path) -> Visits:
    return Visits(tmp_path / "visits", texts=True, narrow=False)


def live(model: Any, ids: Any) -> list[Any]:
    held = set(model.ids_.tolist())
    return [each for each in dict.fromkeys(np.asarray(ids, object).tolist()) if each in held]


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", BLOCKWISE)
@pytest.mark.parametrize(
    ("texts", "narrow", "cuts", "row_group"),
    [(True, False, [130, 131, 600], 64), (False, True, [], 23), (False, False, [450], 1000)],
)
def test_digests_are_those_of_memory(
    name: str, texts: bool, narrow: bool, cuts: list[int], row_group: int, tmp_path: Path
) -> None:
    counts = name in OF_COUNTS
    visits = Visits(tmp_path / "visits", texts=texts, narrow=narrow, counts=counts)
    model = make(name, n_jobs=2).fit(visits.write(cuts, row_group))
    twin = make(name).fit(visits.in_memory())
    assert model.digest() == twin.digest()
    for gone in (visits.ids[:1], visits.furthest, visits.ids[100:130], visits.ids[::3]):
        gone = live(model, gone)
        actions = [each.delete(gone).action for each in (model, twin)]
        assert len(set(actions)) == 1 or name not in OF_SUMS
        assert model.digest() == twin.digest()
    for each in (model, twin):
        each.delete(groups=[100])
    left = ~np.isin(visits.ids, live(model, visits.ids), invert=True)
    groups = visits.groups[left]  # by which bags of forests are drawn
    records = Records(visits.frame[left], visits.y[left], ids=visits.ids[left], groups=groups)
    fresh = make(name).fit(records)
    assert model.digest() == twin.digest() == fresh.digest()
    model.save(tmp_path / "stored")
    twin.save(tmp_path / "memory")
    assert (tmp_path / "stored").read_bytes() == (tmp_path / "memory").read_bytes()


@pytest.mark.parametrize(
    "model",
    [
        GaussianNB(),
        Ridge(),
        make_pipeline(StandardScaler(), Ridge()),
        HistGradientBoostingClassifier(max_iter=4, class_weight="balanced", random_state=0),
        HistGradientBoostingRegressor(max_iter=9, early_stopping=True, random_state=0),
    ],
)
def test_weights_come_from_a_column(model: Any, visits: Visits) -> None:
    visits.write([300], 64)
    weights = np.arange(N) % 5 / 4.0
    rewrite(lambda t: t.append_column("weight", pa.array(weights[:300])), 0)(visits.folder)
    rewrite(lambda t: t.append_column("weight", pa.array(weights[300:])), 1)(visits.folder)
    given = {"ids": "id", "target": "label", "groups": "person", "sample_weight": "weight"}
    stored = Records.from_parquet(visits.folder, **given)
    memory = Records(
        visits.frame, visits.y, ids=visits.ids, groups=visits.groups, sample_weight=weights
    )
    ours, twin = clone(model).fit(stored), clone(model).fit(memory)
    for gone in (visits.ids[1:2], visits.furthest, visits.ids[200:400]):
        assert ours.digest() == twin.digest()
        for each in (ours, twin):
            each.delete(live(each, gone))
    assert ours.digest() == twin.digest()


def test_models_that_share_stored_records_may_delete_at_once(visits: Visits) -> None:
    """What was read for one deletion is not handed to another that another thread asks for."""
    records = visits.write([300], 64)
    models = [Ridge().fit(records) for _ in range(4)]
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(lambda k: [models[k].delete([visits.ids[4 * i + k]]) for i in range(40)],
                          range(4)))  # fmt: skip
    finally:
        sys.setswitchinterval(before)
    for k, model in enumerate(models):
        left = np.delete(np.arange(N), np.arange(k, 160, 4))
        twin = Ridge().fit(Records(visits.frame, visits.y, ids=visits.ids).take(left))
        assert model.digest() == twin.digest()


def test_half_floats_have_no_bounds(tmp_path: Path) -> None:
    values = np.random.default_rng(0).normal(size=50).astype(np.float16)
    pq.write_table(pa.table({"x": values}), tmp_path / "one.parquet")
    stored = StandardScaler().fit(Records.from_parquet(tmp_path / "one.parquet"))
    assert stored.digest() == StandardScaler().fit(pd.DataFrame({"x": values})).digest()


def test_leave_one_out_asks_for_memory(visits: Visits) -> None:
    model = Ridge().fit(visits.write([300], 64))
    with pytest.raises(InvalidInputError, match=r"pass records.in_memory\(\)"):
        leave_one_out(model)
    model.delete([visits.ids[0]])


def test_files_that_say_what_is_wrong_are_found_out(
    visits: Visits, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What footers say of extremes saves a reading where it is right, and costs one where not."""
    records = visits.write([500], 100)
    twin = StandardScaler().fit(visits.in_memory())
    read: list[Any] = []
    right = StoredColumns.block

    def block(self: StoredColumns, number: int, columns: Any = None) -> Any:
        read.append(number)
        return right(self, number, columns)

    monkeypatch.setattr(StoredColumns, "block", block)
    assert StandardScaler().fit(records).digest() == twin.digest()
    n_blocks = len(read)
    assert n_blocks == len(records.matrix.starts) - 1
    low, high = records.matrix.bounds()
    for wrong in [(low - 1.0, high), (low, high * 0.5), (low, high * 1e200), None]:
        read.clear()
        monkeypatch.setattr(StoredColumns, "bounds", lambda self, told=wrong: told)
        assert StandardScaler().fit(records).digest() == twin.digest()
        assert len(read) == 2 * n_blocks


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", BLOCKWISE)
def test_copies_and_files_go_on_reading(name: str, tmp_path: Path) -> None:
    visits = Visits(tmp_path / "visits", texts=True, narrow=False, counts=name in OF_COUNTS)
    model = make(name, n_components=4).fit(visits.write([400], 50))
    model.delete(live(model, visits.ids[5:25]))
    path = tmp_path / "model"
    model.save(path, records=True)
    kept = sum(each.stat().st_size for each in Path(f"{path}.records").iterdir())
    if not any(kind in name for kind in ("Tree", "Forest", "Boosting")):  # whose nodes take more
        assert kept < 200 * N + 40_000  # not the features
    others = [
        copy.deepcopy(model),
        pickle.loads(pickle.dumps(model)),
        erasable.load(path, records=True),
        erasable.load(path, model._held.copy_records()),
    ]
    for each in [model, *others]:
        each.delete(live(each, visits.furthest))
    assert len({each.digest() for each in [model, *others]}) == 1
    refit = erasable.audit.refit(model)
    assert refit.digest() == model.digest()


@pytest.mark.parametrize(
    "steps",
    [
        (StandardScaler(), Ridge()),
        (MinMaxScaler(), make_pipeline(MaxAbsScaler()), GaussianNB()),
        (StandardScaler(), KMeans(3, random_state=0)),
        (make_pipeline(QuantizedKMeans(3, random_state=0)),),
        (StandardScaler(), HistGradientBoostingRegressor(max_iter=4, random_state=0)),
    ],
)
def test_models_learn_behind_maps(steps: Any, visits: Visits) -> None:
    model = make_pipeline(*map(clone, steps)).fit(visits.write([300], 50))
    twin = make_pipeline(*map(clone, steps)).fit(visits.in_memory())
    for gone in (visits.ids[:1], visits.furthest, visits.ids[100:300]):
        for each in (model, twin):
            each.delete(live(each, gone))
        assert model.digest() == twin.digest()


@pytest.mark.parametrize(
    "model",
    [
        make_pipeline(MinMaxScaler(clip=True), Ridge()),
        make_pipeline(PCA(2), Ridge()),
        make_pipeline(StandardScaler(), QuantizedKMeans(2, random_state=0)),
        make_pipeline(StandardScaler(), make_pipeline(QuantizedKMeans(2, random_state=0))),
    ],
)
def test_tables_that_steps_make_are_made_block_by_block(model: Any, visits: Visits) -> None:
    ours = clone(model).fit(visits.write([300], 50))
    twin = clone(model).fit(visits.in_memory())
    for gone in (visits.ids[:1], visits.furthest, visits.ids[100:300]):
        for each in (ours, twin):
            each.delete(live(each, gone))
        assert ours.digest() == twin.digest()


def test_steps_that_learn_from_records_in_memory(visits: Visits) -> None:
    records = visits.write([300], 50)
    told = r"from which Refit does not .* pass records.in_memory\(\), .* ShardedClassifier or"
    for refit in (Refit(TheirRidge()), make_pipeline(StandardScaler(), Refit(TheirRidge()))):
        with pytest.raises(InvalidInputError, match=told):
            refit.fit(records)
        refit.fit(records.in_memory())
    ShardedRegressor(TheirRidge(), n_shards=2).fit(records)


def test_records_come_into_memory(visits: Visits) -> None:
    records = visits.write([300], 100)
    model = BLOCKWISE["Ridge"]().fit(records)
    model.delete([visits.ids[3]])
    found = records.in_memory()
    left = np.delete(np.arange(N), 3)
    assert found.matrix.tobytes() == visits.frame.to_numpy()[left].tobytes()
    assert found.ids.tolist() == visits.ids[left].tolist()
    KMeans(2, random_state=0).fit(found)


def test_numbers_of_all_kinds_are_read_as_frames_are(tmp_path: Path) -> None:
    columns = {
        "whole": pa.array([1, -2, 3], pa.int16()), "large": pa.array([1, 2**63, 5], pa.uint64()),
        "yes": [True, False, True], "half": pa.array([0.5, -0.0, 1.0], pa.float32()),
        "price": pa.array([1, 2, 3], pa.decimal128(5, 1)), "text": ["a", "b", "c"],
    }  # fmt: skip
    pq.write_table(pa.table(columns), tmp_path / "one.parquet")
    records = Records.from_parquet(tmp_path / "one.parquet")
    assert records.feature_names == ["whole", "large", "yes", "half", "price"]
    assert records.ids.tolist() == [0, 1, 2]
    expected = [[1, 1, 1, 0.5, 1], [-2, 2.0**63, 0, 0.0, 2], [3, 5, 1, 1.0, 3]]
    found = records.in_memory().matrix
    assert found.tolist() == expected
    assert found.dtype == np.float64
    assert not np.signbit(found[1, 3])
    some = Records.from_parquet([tmp_path / "one.parquet"], features=["half"], ids="text")
    assert some.in_memory().matrix.dtype == np.float32


# --------------------------------------------------------------------------- bad input


def rewrite(change: Callable[[pa.Table], pa.Table], number: int = 1) -> Callable[[Path], None]:
    def act(folder: Path) -> None:
        path = folder / f"{number:03}.parquet"
        pq.write_table(change(pq.read_table(path)), path)

    return act


def with_gap(table: pa.Table) -> pa.Table:
    gone = [None, *table["x1"].to_pylist()[1:]]
    return table.set_column(table.column_names.index("x1"), "x1", pa.array(gone, pa.float64()))


WRONG: dict[str, tuple[Callable[[Path], None], type[ErasableError], str]] = {
    "other columns": (
        rewrite(lambda t: t.drop_columns(["x1"])), InvalidDataError,
        "file 2, sorted by path, differs in the columns 'x1'",
    ),
    "other types": (
        rewrite(lambda t: t.set_column(0, "x0", t["x0"].cast(pa.float32()))), InvalidDataError,
        "file 2, sorted by path, has another type in 'x0'",
    ),
    "repeated ids": (
        lambda folder: (folder / "copy.parquet").write_bytes((folder / "000.parquet").read_bytes())
        and None, InvalidIdsError, "are repeated",
    ),
    "no Parquet": (
        lambda folder: (folder / "001.parquet").write_text("id,age\n") and None, InvalidDataError,
        "cannot be read",
    ),
    "no rows": (
        lambda folder: [rewrite(lambda t: t.slice(0, 0), n)(folder) for n in (0, 1)] and None,
        InvalidDataError, "no rows",
    ),
    "no files": (
        lambda folder: [each.unlink() for each in folder.iterdir()] and None, InvalidInputError,
        "no files",
    ),
}  # fmt: skip


@pytest.mark.parametrize("wrong", WRONG)
def test_files_that_are_no_records_are_refused(wrong: str, visits: Visits) -> None:
    visits.write([500], 100)
    act, error, told = WRONG[wrong]
    act(visits.folder)
    with pytest.raises(error, match=told) as caught:
        Records.from_parquet(visits.folder, ids="id", target="label")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("given", "error", "told"),
    [
        ({"ids": "key"}, InvalidInputError, "no column 'key'"),
        ({"features": ["x0", "x9"]}, InvalidInputError, "no column 'x9'"),
        ({"features": ["x0", "x0"]}, InvalidInputError, "'x0' twice"),
        ({"features": ["label"], "target": "label"}, InvalidInputError, "another use"),
        ({"features": []}, InvalidDataError, "no column of the files is left"),
        ({"memory": 3200}, InvalidDataError, "row_group_size=40"),
        ({"sample_weight": "x0"}, InvalidDataError, "negative"),
        ({"sample_weight": "city"}, InvalidDataError, "'city' of weights has no numbers"),
        ({"memory": "1GB"}, InvalidInputError, "expected bytes"),
        ({"memory": 0}, InvalidInputError, "expected bytes"),
    ],
)
def test_what_the_files_do_not_have_is_refused(
    given: dict[str, Any], error: type[ErasableError], told: str, visits: Visits
) -> None:
    visits.write([500], 100)
    features = {"features": ["x0", "x1", "x2", "x3", "label"]} if "memory" in given else {}
    with pytest.raises(error, match=told):
        Records.from_parquet(visits.folder, **features, **given)


@pytest.mark.parametrize("path", [None, 3, b"v.parquet", "", ["v.parquet", None], {"v.parquet"}])
def test_what_is_no_path_is_refused(path: Any) -> None:
    with pytest.raises(InvalidInputError, match="expected the path of a Parquet file or folder"):
        Records.from_parquet(path)


def test_a_column_that_is_there_twice_is_refused(tmp_path: Path) -> None:
    columns = [pa.array([1.0, 2.0]), pa.array(["a", "b"]), pa.array(["a", "b"])]
    table = pa.Table.from_arrays(columns, names=["x", "t", "t"])
    pq.write_table(table, tmp_path / "one.parquet")
    with pytest.raises(InvalidDataError, match="has the columns 't' more than once"):
        Records.from_parquet(tmp_path / "one.parquet")


def test_a_block_that_fits_is_taken(visits: Visits) -> None:
    visits.write([500], 40)
    features = ["x0", "x1", "x2", "x3", "label"]
    assert len(Records.from_parquet(visits.folder, features=features, memory=3200)) == N


def test_a_gap_is_named_and_nothing_is_changed(visits: Visits) -> None:
    visits.write([500], 100)
    rewrite(with_gap)(visits.folder)
    records = Records.from_parquet(visits.folder, ids="id", target="label")
    model = BLOCKWISE["GaussianNB"]()
    with pytest.raises(InvalidDataError, match="NaN: 1 values in column 'x1'"):
        model.fit(records)
    assert vars(model) == vars(clone(model))


@pytest.mark.parametrize("change", ["touched", "removed", "damaged", "touched secretly"])
def test_a_file_that_changes_between_passes_is_found(change: str, visits: Visits) -> None:
    records = visits.write([500], 100)
    model = BLOCKWISE["StandardScaler"]().fit(records)
    digest, path = model.digest(), visits.folder / "001.parquet"
    before, told = path.read_bytes(), path.stat()
    if change == "touched secretly":
        path.write_bytes(before)
        os.utime(path, ns=(told.st_atime_ns, told.st_mtime_ns))
    elif change == "removed":
        path.unlink()
    else:
        path.write_bytes(before[::-1] if change == "damaged" else before)
        os.utime(path, ns=(7, 7))
    last = visits.ids[-1]
    with pytest.raises(InvalidDataError, match=r"Parquet file 2, sorted by path, (has|is) "):
        model.delete([last])
    assert model.digest() == digest
    assert last in model.ids_.tolist()


def test_who_learns_otherwise_asks_for_memory(visits: Visits, tmp_path: Path) -> None:
    records = visits.write([500], 100)
    with pytest.raises(InvalidInputError, match=r"pass records.in_memory\(\)"):
        Refit(TheirRidge()).fit(records)
    model = Refit(TheirRidge())
    model.fit(visits.in_memory()).save(tmp_path / "model")
    with pytest.raises((InvalidInputError, ArtifactError), match=r"records.in_memory\(\)"):
        erasable.load(tmp_path / "model", records)


# -- types of text ---------------------------------------------------------------------------------

CITIES = ["Bonn", "Köln", None, "Bonn", "Ulm", "Köln"]
TEXTS = {
    "string": pa.array(CITIES, pa.string()),
    "large_string": pa.array(CITIES, pa.large_string()),
    "string_view": pa.array(CITIES, pa.string_view()),
    "dictionary": pa.array(CITIES, pa.string()).dictionary_encode(),
    "large dictionary": pa.array(CITIES, pa.large_string()).dictionary_encode(),
}


def _of_texts(folder: Path, texts: Any) -> Records:
    kind = texts.type if pa.types.is_string_view(texts.type) else pa.string()
    names = pa.array([f"visit {i}" for i in range(len(CITIES))], kind)
    targets = pa.array([each or "Bonn" for each in CITIES], kind)
    table = pa.table({"visit": names, "city": texts, "sick": targets})
    pq.write_table(table, folder / "visits.parquet", row_group_size=4)
    return Records.from_parquet(
        folder / "visits.parquet", ids="visit", target="sick", features=["city"]
    )


@pytest.mark.parametrize("kind", TEXTS)
def test_every_type_of_text_is_text(kind: str, tmp_path: Path) -> None:
    encoder = make_pipeline(OneHotEncoder(sparse_output=False), GaussianNB())
    frame = pd.DataFrame({"city": CITIES})
    targets = np.array([each or "Bonn" for each in CITIES], dtype=object)
    ids = np.array([f"visit {i}" for i in range(len(CITIES))], dtype=object)
    model = clone(encoder).fit(_of_texts(tmp_path, TEXTS[kind]))
    assert model.digest() == clone(encoder).fit(frame, targets, ids=ids).digest()
    model.delete(["visit 4"])
    left = [0, 1, 2, 3, 5]
    fresh = clone(encoder).fit(frame.iloc[left], targets[left], ids=ids[left])
    assert model.digest() == fresh.digest()


def test_files_of_different_types_of_one_text_are_alike(tmp_path: Path) -> None:
    for name in ("string", "string_view"):
        pq.write_table(pa.table({"city": TEXTS[name]}), tmp_path / f"{name}.parquet")
    assert len(Records.from_parquet(tmp_path, features=["city"])) == 2 * len(CITIES)


def test_control_of_views(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parquet, "plain_schema", lambda schema: schema.remove_metadata())
    with pytest.raises(InvalidDataError, match=r"neither numbers nor text \(string_view\)"):
        _of_texts(tmp_path, TEXTS["string_view"])


@pytest.mark.parametrize("kind", [pa.list_(pa.int64()), pa.binary_view()], ids=str)
def test_other_types_are_named(kind: Any, tmp_path: Path) -> None:
    pq.write_table(pa.table({"tags": pa.nulls(2, kind)}), tmp_path / "visits.parquet")
    with pytest.raises(InvalidDataError, match=r"'tags' are neither numbers nor text \(\w+"):
        Records.from_parquet(tmp_path, features=["tags"])


@pytest.mark.parametrize("nothing", [[], ()])
def test_no_files_are_told(nothing: Any) -> None:
    with pytest.raises(InvalidInputError, match="path is an empty list; expected the path"):
        Records.from_parquet(nothing)
