"""The index of a frame is no feature, in whatever a frame was written to."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from erasable import Records
from erasable.cluster import KMeans
from erasable.core.errors import InvalidDataError
from erasable.linear_model import Ridge

FRAME = pd.DataFrame({"a": np.arange(12.0) % 5, "b": np.arange(12.0) % 3, "y": np.arange(12.0)})
INDEXES: dict[str, Any] = {
    "labels": FRAME.set_axis([f"r{i}" for i in range(12)]),
    "numbers": FRAME.set_axis(np.arange(12)[::-1] * 3),
    "named": FRAME.set_axis(pd.Index(np.arange(12) * 2, name="row")),
    "two levels": FRAME.set_axis(pd.MultiIndex.from_product([range(3), range(4)])),
}


@pytest.mark.parametrize("frame", INDEXES.values(), ids=INDEXES)
def test_from_parquet(tmp_path: Path, frame: Any) -> None:
    frame.to_parquet(tmp_path / "one.parquet")
    assert len(pq.read_schema(tmp_path / "one.parquet")) > 3  # the control: it is in the file
    records = Records.from_parquet(tmp_path / "one.parquet")
    assert records.feature_names == ["a", "b", "y"]
    named = KMeans(2, random_state=0).fit(FRAME)  # with the names of columns
    assert KMeans(2, random_state=0).fit(records).digest() == named.digest()


def test_it_can_be_named(tmp_path: Path) -> None:
    frame = INDEXES["numbers"]
    frame.to_parquet(tmp_path / "one.parquet")
    at = "__index_level_0__"
    ids = Records.from_parquet(tmp_path / "one.parquet", ids=at)
    assert ids.ids.tolist() == frame.index.tolist()
    assert Records.from_parquet(tmp_path / "one.parquet", features=["a", at]).n_features == 2


@pytest.mark.parametrize("name", ["", "Unnamed: 0", "__index_level_0__", "__null_dask_index__"])
def test_a_column_that_looks_like_one(tmp_path: Path, name: str) -> None:
    """Nothing says what it is: it is left out, and that is said."""
    table = pa.table({name: np.arange(12), **{each: FRAME[each] for each in FRAME}})
    pq.write_table(table, tmp_path / "one.parquet")
    if name.startswith("__index"):
        assert Records.from_parquet(tmp_path / "one.parquet").feature_names == ["a", "b", "y"]
        return
    with pytest.warns(UserWarning, match=f"'{name}' are taken for an index, and left out"):
        assert Records.from_parquet(tmp_path / "one.parquet").feature_names == ["a", "b", "y"]
    assert Records.from_parquet(tmp_path / "one.parquet", features=[name, "a"]).n_features == 2


@pytest.mark.parametrize("frame", INDEXES.values(), ids=INDEXES)
@pytest.mark.parametrize("batch", [False, True], ids=["table", "batch"])
def test_a_table_of_arrow(frame: Any, batch: bool) -> None:
    table = pa.Table.from_pandas(frame, preserve_index=True)
    X = table.to_batches()[0] if batch else table
    model = KMeans(2, random_state=0).fit(X)
    assert model.digest() == KMeans(2, random_state=0).fit(FRAME).digest()
    assert model.predict(X).tolist() == model.predict(FRAME).tolist()
    model.add(X, ids=np.arange(100, 112))
    if len(table.column_names) == 4:
        (at,) = {*table.column_names} - {*FRAME.columns}
        labelled = KMeans(2, random_state=0).fit(X, ids=at)
        assert labelled.digest() == KMeans(2, random_state=0).fit(FRAME, ids=frame.index).digest()


def test_an_index_alone_is_nothing_to_learn_from(tmp_path: Path) -> None:
    INDEXES["numbers"][[]].to_parquet(tmp_path / "one.parquet")
    with pytest.raises(InvalidDataError, match="no column of the files is left to learn from"):
        Records.from_parquet(tmp_path / "one.parquet")


def test_a_target_that_is_the_index(tmp_path: Path) -> None:
    FRAME.set_index("y").to_parquet(tmp_path / "one.parquet")
    records = Records.from_parquet(tmp_path / "one.parquet", target="y")
    assert records.feature_names == ["a", "b"]
    assert Ridge().fit(records).digest() == Ridge().fit(FRAME[["a", "b"]], FRAME["y"]).digest()
