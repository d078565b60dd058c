"""Whole numbers that no float has are never taken for one category, or one most frequent value."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from erasable import Records
from erasable.cluster import KMeans
from erasable.compose import ColumnTransformer
from erasable.core.errors import InvalidDataError, MagnitudeError
from erasable.ensemble import HistGradientBoostingRegressor
from erasable.pipeline import make_pipeline
from erasable.preprocessing import OneHotEncoder, OrdinalEncoder, SimpleImputer, StandardScaler
from simulated_workers import Simulated, spread

B = 2**53
SAME = [B, B + 1, B + 1, B]  # as floats, the first three are one
EXACT = [B, B + 2, 2**60, -(2**61)]

CONTAINERS: dict[str, Callable[[list[int]], Any]] = {
    "list": lambda cells: [[cell] for cell in cells],
    "int64": lambda cells: np.array(cells)[:, None],
    "uint64": lambda cells: np.array([abs(cell) for cell in cells], dtype=np.uint64)[:, None],
    "objects": lambda cells: np.array(cells, dtype=object)[:, None],
    "beside text": lambda cells: np.array([list("abbc"), cells], dtype=object).T,
    "pandas": lambda cells: pd.DataFrame({"c": cells}),
    "pandas Int64": lambda cells: pd.DataFrame({"c": pd.array(cells, "Int64")}),
    "polars": lambda cells: pl.DataFrame({"c": cells}),
    "frame with text": lambda cells: pd.DataFrame({"c": cells, "t": list("abbc")}),
}
ESTIMATORS: dict[str, Callable[[], Any]] = {
    "one-hot": lambda: OneHotEncoder(sparse_output=False),
    "ordinal": OrdinalEncoder,
    "most frequent": lambda: SimpleImputer(strategy="most_frequent"),
    "in a column transformer": lambda: ColumnTransformer([("c", OneHotEncoder(), [0, -1])]),
    "in a pipeline": lambda: make_pipeline(OrdinalEncoder(), StandardScaler()),
}
REFUSAL = r"whole numbers beyond 2\*\*53 that no float has"


@pytest.mark.parametrize("contained", CONTAINERS.values(), ids=CONTAINERS)
@pytest.mark.parametrize("made", ESTIMATORS.values(), ids=ESTIMATORS)
def test_who_tells_values_apart_refuses_them(
    made: Callable[[], Any], contained: Callable[[list[int]], Any]
) -> None:
    with pytest.raises((InvalidDataError, MagnitudeError), match=REFUSAL):
        made().fit(contained(SAME))
    model = made().fit(contained(EXACT), ids=[1, 2, 3, 4])  # the control: these are floats
    before = model.digest()
    with pytest.raises((InvalidDataError, MagnitudeError), match=REFUSAL):
        model.add(contained(SAME), ids=[5, 6, 7, 8])
    assert model.digest() == before


@pytest.mark.parametrize("contained", CONTAINERS.values(), ids=CONTAINERS)
def test_one_that_is_asked_about_is_no_other(contained: Callable[[list[int]], Any]) -> None:
    encoder = OneHotEncoder(handle_unknown="ignore", sparse_output=False).fit(contained(EXACT))
    place = 1 if contained is CONTAINERS["beside text"] else 0
    start = encoder.categories_[0].size if place else 0
    try:
        codes = encoder.transform(contained(SAME))
    except InvalidDataError as error:
        assert "beyond 2**53" in str(error)  # noqa: PT017
    else:
        found = codes[:, start : start + encoder.categories_[place].size].sum(axis=1)
        assert found.tolist() == [1, 0, 0, 1]  # the second and the third are none of the known


@pytest.mark.parametrize("contained", [*CONTAINERS.values()][:4], ids=[*CONTAINERS][:4])
def test_who_rounds_takes_them(contained: Callable[[list[int]], Any]) -> None:
    """As scikit-learn does: only where values are told apart does it matter."""
    X, rounded = contained(SAME), np.array(SAME, dtype=float)[:, None]
    model = KMeans(2, random_state=0).fit(X, ids=[1, 2, 3, 4])
    assert model.digest() == KMeans(2, random_state=0).fit(rounded, ids=[1, 2, 3, 4]).digest()
    model.add(X, ids=[5, 6, 7, 8])
    if X is not None and not isinstance(X, list):
        records = Records(X, ids=[1, 2, 3, 4])
        assert StandardScaler().fit(records).mean_.tolist() == [rounded.mean()]
        with pytest.raises((InvalidDataError, MagnitudeError), match=REFUSAL):
            OneHotEncoder().fit(records)


def test_floats_are_categories_whatever_their_size() -> None:
    assert OneHotEncoder().fit([[2.0**60], [2.0**61], [1e300]]).categories_[0].size == 3


STORED: dict[str, Callable[[pa.Table, Path], Records]] = {
    "files": lambda table, folder: Records.from_parquet(
        _written(table, folder), features=table.column_names
    ),
    "files without statistics": lambda table, folder: Records.from_parquet(
        _written(table, folder, write_statistics=False), features=table.column_names
    ),
    "workers": lambda table, folder: spread(
        table.append_column("id", pa.array(range(4)))
        .append_column("label", pa.array(range(4)))
        .append_column("person", pa.array(range(4))),
        [2],
        Simulated(2),
        features=table.column_names,
    ),
}


def _written(table: pa.Table, folder: Path, **how: Any) -> Path:
    pq.write_table(table, folder / "a.parquet", row_group_size=2, **how)
    return folder / "a.parquet"


@pytest.mark.parametrize("stored", STORED.values(), ids=STORED)
@pytest.mark.parametrize("beside", [{}, {"t": list("abbc")}], ids=["alone", "beside text"])
@pytest.mark.parametrize(
    "made",
    [OneHotEncoder, lambda: SimpleImputer(strategy="most_frequent")],
    ids=["one-hot", "most"],
)
def test_so_it_is_where_they_are_stored(
    made: Callable[[], Any], beside: dict[str, Any], stored: Any, tmp_path: Path
) -> None:
    names = ["c", *beside]

    def records(cells: list[Any], kind: pa.DataType) -> Records:
        return stored(pa.table({"c": pa.array(cells, kind), **beside}), tmp_path)

    with pytest.raises(InvalidDataError, match=r"whole numbers (beyond|from)"):
        made().fit(records([5, B, B + 1, None], pa.int64()))
    small = made().fit(records([5, B - 1, 1 - B, None], pa.int64()))  # the controls
    assert small.n_features_in_ == len(names)
    made().fit(records([5.0, 2.0**60, -(2.0**61), None], pa.float64()))


def test_gaps_beside_them_are_gaps(tmp_path: Path) -> None:
    cells = [5, B, B + 1, None]
    table = pa.table({"c": pa.array(cells, pa.int64()), "y": [0.0, 1.0, 2.0, 3.0]})
    stored = Records.from_parquet(_written(table, tmp_path), target="y")
    model = HistGradientBoostingRegressor(min_samples_leaf=1, max_iter=2, random_state=0)
    rounded = pd.DataFrame({"c": np.array(cells, dtype=float)})
    assert model.fit(stored).digest() == model.fit(rounded, table["y"].to_numpy()).digest()
