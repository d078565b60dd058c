"""A frozen network before an estimator, on records that stay in Parquet files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sklearn.base import clone

pytest.importorskip("torch", reason="torch is not installed: pip install torch")

from erasable import Records, load
from erasable.compose import make_column_transformer
from erasable.core.errors import InvalidDataError, InvalidInputError
from erasable.linear_model import LogisticRegression, Ridge
from erasable.neighbors import KNeighborsClassifier
from erasable.neural import Embedding
from erasable.pipeline import make_pipeline
from erasable.preprocessing import StandardScaler
from simulated_workers import Simulated, even, spread

N = 60
NUMBERS = [f"x{j}" for j in range(5)]


def network(name: str = "any_width", **params: Any) -> Embedding:
    return Embedding(f"neural.backbones.{name}", **params)


def of_letters() -> Embedding:
    cut = "neural.backbones.numbers_of_letters"
    return network("few_words", tokenizer=cut, max_length=5)


def table() -> pa.Table:
    rng = np.random.default_rng(0)
    columns = {name: rng.normal(size=N) for name in NUMBERS}
    notes = ["".join(rng.choice(list("abc d"), rng.integers(0, 9))) for _ in range(N)]
    others = {"id": np.arange(N) * 3, "label": rng.integers(0, 3, N), "person": np.arange(N) // 4}
    return pa.table({**columns, "note": notes, **others})


def in_files(made: pa.Table, folder: Path, columns: list[str]) -> Records:
    pq.write_table(made, folder / "a.parquet", row_group_size=13)
    uses = {"ids": "id", "target": "label", "groups": "person"}
    return Records.from_parquet(folder, **uses, features=columns)


def in_memory(made: pa.Table, columns: list[str]) -> Records:
    frame = made.to_pandas()
    return Records(frame[columns], frame["label"], ids=frame["id"], groups=frame["person"])


MODELS = {
    "alone": (network(), NUMBERS),
    "logistic": (make_pipeline(network(batch_size=1), LogisticRegression()), NUMBERS),
    "scaled": (make_pipeline(network(n_jobs=2), StandardScaler(), Ridge()), NUMBERS),
    "behind a scaler": (
        make_pipeline(StandardScaler(), network("moments", batch_size=2), KNeighborsClassifier(3)),
        NUMBERS,
    ),
    "letters": (make_pipeline(of_letters(), LogisticRegression()), ["note"]),
    "columns": (
        make_pipeline(
            make_column_transformer((of_letters(), "note"), (network(), ["x1", "x3"])), Ridge()
        ),
        ["note", "x1", "x3"],
    ),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", MODELS)
def test_digests_are_those_of_memory(name: str, tmp_path: Path) -> None:
    model, columns = MODELS[name]
    records = in_files(table(), tmp_path, columns)
    model, twin = clone(model).fit(records), clone(model).fit(in_memory(table(), columns))
    assert model.digest() == twin.digest()
    for gone in ([0], [30, 33, 99], list(range(120, 150, 3))):
        for each in (model, twin):
            each.delete(gone)
        assert model.digest() == twin.digest()
    for each in (model, twin):
        each.delete(groups=[5])
    assert model.digest() == twin.digest()
    model.save(tmp_path / "model", records=True)
    again = load(tmp_path / "model", records=True, trusted=True)
    for each in (again, twin):
        each.delete([42])
    assert again.digest() == twin.digest()


def test_no_vector_is_kept(tmp_path: Path) -> None:
    model = make_pipeline(network(), Ridge()).fit(in_files(table(), tmp_path, NUMBERS))
    vectors = model[0]._accelerator
    assert vectors.made.size == vectors.known.size == 0
    kept = make_pipeline(network(), Ridge()).fit(in_memory(table(), NUMBERS))
    assert kept[0]._accelerator.known.any()


@pytest.mark.parametrize(("model", "columns"), [(network(), NUMBERS), (of_letters(), ["note"])])
def test_vectors_of_stored_records(model: Any, columns: list[str], tmp_path: Path) -> None:
    made = clone(model).fit_transform(in_files(table(), tmp_path, columns))
    values = table().to_pandas()[columns]
    rows = values["note"].tolist() if columns == ["note"] else values.to_numpy()
    assert made.tobytes() == clone(model).fit_transform(rows).tobytes()


def test_gaps_are_refused_before_the_network_is_given_them(tmp_path: Path) -> None:
    for column, columns, told, model in (
        ("x1", NUMBERS, "X contains NaN: 1 values in column 'x1'", network("moments")),
        ("note", ["note"], "1 of 13 documents are not strings", of_letters()),
    ):
        made = table()
        values = made[column].to_pylist()
        values[17] = None
        made = made.set_column(made.column_names.index(column), column, [values])
        records = in_files(made, tmp_path, columns)
        for each in (model, make_pipeline(model, Ridge())):
            with pytest.raises(InvalidDataError, match=told):
                each.fit(records)


def test_a_cluster_is_refused() -> None:
    records = spread(table(), even(N, 4), Simulated(2), NUMBERS)
    told = r"lie on a cluster, from which Embedding does not .* pass records.in_memory\(\)"
    with pytest.raises(InvalidInputError, match=told) as caught:
        make_pipeline(network(), Ridge()).fit(records)
    assert ", Embedding" not in str(caught.value)
    make_pipeline(network(), Ridge()).fit(records.in_memory())
