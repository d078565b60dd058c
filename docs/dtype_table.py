"""Write the table of types in docs/concepts/scikit-learn.md: ``python docs/dtype_table.py``.

A test compares the page with the output.
"""

from __future__ import annotations

import datetime as dt
import re
import tempfile
import warnings
from collections.abc import Callable, Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from erasable import Records
from erasable.core.errors import InvalidDataError, SourceError
from erasable.preprocessing import OneHotEncoder, StandardScaler
from erasable.workspace import Workspace

PAGE = Path(__file__).resolve().parent / "concepts" / "scikit-learn.md"
TABLE = re.compile(r"^\| Arrow's type \|.*\n(?:\|.*\n)+", re.M)
_DAYS = [dt.datetime(2026, 3, day) for day in (3, 1, 2, 2)]
_WORDS = ["a", "b", "b", "c"]
COLUMNS: Mapping[str, pa.Array] = {
    "`int8` to `uint64`": pa.array([3, 1, 2, 2]),
    "integers that no float can represent": pa.array([2**53 + 1, 1, 2, 2]),
    "`float`, `double`, `halffloat`": pa.array([1.5, 2, 2, 7], pa.float32()),
    "`bool`": pa.array([True, False, True, True]),
    "`decimal`": pa.array([Decimal("1.5"), Decimal(2), Decimal(2), Decimal(7)]),
    "`null`": pa.nulls(4),
    "`string`": pa.array(_WORDS),
    "`string` of digits": pa.array(["007", "1", "2", "2"]),
    "`dictionary` of text": pa.array(_WORDS).dictionary_encode(),
    "`dictionary` of numbers": pa.array([3, 1, 2, 2]).dictionary_encode(),
    "`date`": pa.array([day.date() for day in _DAYS]),
    "`timestamp`": pa.array(_DAYS, pa.timestamp("us")),
    "`timestamp` with a zone": pa.array(_DAYS, pa.timestamp("us", "Europe/Berlin")),
    "`time`": pa.array([dt.time(day.day) for day in _DAYS]),
    "`duration`": pa.array([day - _DAYS[0] for day in _DAYS]),
    "`binary`, `list` of numbers": pa.array([[1.0, 2.0]] * 4),
    "`struct`": pa.array([{"a": 1}] * 4),
}
READERS: Mapping[str, Callable[[pa.Table, Path], Any]] = {
    "pandas": lambda table, path: table.to_pandas(),
    "Polars": lambda table, path: pl.from_arrow(table),
    "Arrow": lambda table, path: table,
    "Parquet": lambda table, path: Records.from_parquet(path, features=["c"]),
}


def _numbers(X: Any) -> str:
    try:
        StandardScaler().fit(X)
    except InvalidDataError as error:
        return "missing values" if "NaN" in str(error) else "refused"
    return "numbers"


def _categories(X: Any) -> str:
    try:
        found = OneHotEncoder().fit(X).categories_[0]
    except InvalidDataError:
        return "refused"
    if np.array(found).dtype.kind == "f":
        return "a missing value" if np.isnan(found).all() else "categories, numbers"
    return "categories, text"


def _of_readers(ask: Callable[[Any], str], table: pa.Table, path: Path) -> str:
    """Return the common answer of all readers for a column, or one answer per reader."""
    found = {name: "refused" for name in READERS}
    for name, read in READERS.items():
        try:
            found[name] = ask(read(table, path))
        except InvalidDataError:
            continue
    if len(set(found.values())) == 1:
        return found["Arrow"]
    return "; ".join(f"{name}: {answer}" for name, answer in found.items())


def _of_a_data_set(workspace: Workspace, column: pa.Array, path: Path) -> str:
    table = pa.table({"id": range(4), "person": _WORDS, "c": column})
    pq.write_table(table, path)
    try:
        workspace.add_dataset(path.stem, path, id_column="id", subjects=["person"])
    except SourceError:
        return "refused"
    return f"`{workspace.dataset(path.stem)['columns'][-1]['type']}`"


def table() -> str:
    """Return the table of column types and how they are read."""
    rows = ["| Arrow's type | estimators of numbers | encoders | data sets |", "|---|---|---|---|"]
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        workspace = Workspace.create(Path(folder, "workspace"))
        for number, (name, column) in enumerate(COLUMNS.items()):
            one = pa.table({"c": column})
            path = Path(folder, f"column{number}.parquet")
            pq.write_table(one, path)
            told = [_of_readers(ask, one, path) for ask in (_numbers, _categories)]
            told.append(_of_a_data_set(workspace, column, Path(folder, f"set{number}.parquet")))
            rows.append(f"| {name} | {' | '.join(told)} |")
    return "\n".join([*rows, ""])


if __name__ == "__main__":
    PAGE.write_text(TABLE.sub(table(), PAGE.read_text(encoding="utf-8")), encoding="utf-8")
