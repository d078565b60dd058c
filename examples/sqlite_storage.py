"""Learn from the rows of a SQLite table, block by block, and delete records from models and table.

    python examples/sqlite_storage.py

A storage engine is a class of pieces of a table: what `docs/contributing/storage.md` explains.
Every model has the digest that it has in memory.
"""

from __future__ import annotations

import sqlite3
import tempfile
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from erasable import Records
from erasable.core.errors import InvalidDataError
from erasable.core.stored_table import StoredColumns, Uses, joint_type, kinds_of
from erasable.linear_model import Ridge
from erasable.naive_bayes import GaussianNB
from erasable.preprocessing import StandardScaler

BLOCK = 1000  # rows


class SQLiteRows:
    """Some rows of a SQLite table, by their rowids."""

    lasting = False  # a model's files may not refer to them: rows are changed in place

    def __init__(self, path: Path, table: str, rowids: Sequence[int]) -> None:
        self.path, self.table, self.rowids = path, table, list(rowids)

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.rowids)

    def check(self) -> None:
        """Raise InvalidDataError if the rows cannot be read any more."""
        self.read(["rowid"])

    def read(self, columns: Sequence[str]) -> pa.Table:
        """Read some of their columns."""
        wanted = ", ".join(f'"{name}"' for name in columns)
        first, last = self.rowids[0], self.rowids[-1]
        query = f'SELECT {wanted} FROM "{self.table}" WHERE rowid BETWEEN ? AND ? ORDER BY rowid'
        with closing(sqlite3.connect(self.path)) as database:
            rows = database.execute(query, (first, last)).fetchall()
        if len(rows) != self.n_rows:
            raise InvalidDataError(
                f"table {self.table!r} has {len(rows)} of {self.n_rows} rows; expected all of them "
                "while models learn from it; call records_of again"
            )
        return pa.table({name: [row[j] for row in rows] for j, name in enumerate(columns)})

    def bounds(self, columns: Sequence[str]) -> list[tuple[Any, Any]] | None:
        """Return the least and largest values of columns."""
        values = self.read(columns)
        return [(min(each), max(each)) for each in (values[n].to_pylist() for n in columns)]


def records_of(path: Path, table: str, *, ids: str, target: str) -> Records:
    """Make records whose features stay in a SQLite table."""
    with closing(sqlite3.connect(path)) as database:
        rowids = [row for (row,) in database.execute(f'SELECT rowid FROM "{table}" ORDER BY rowid')]
        names = [row[1] for row in database.execute(f'PRAGMA table_info("{table}")')]
    pieces = [
        SQLiteRows(path, table, rowids[at : at + BLOCK]) for at in range(0, len(rowids), BLOCK)
    ]
    schema = pieces[0].read(names).schema
    uses = Uses(ids, target, None, None, None)
    chosen = uses.chosen(schema, "the table")
    matrix = StoredColumns(pieces, chosen, joint_type(schema, chosen), kinds_of(schema, chosen))

    def column(name: str) -> pa.ChunkedArray:
        return pa.concat_tables([piece.read([name]) for piece in pieces])[name]

    return Records.from_table(uses.table(matrix, schema, chosen, column, "the table"))


def fill(path: Path, X: Any, y: Any) -> None:
    """Write a table of patients."""
    with closing(sqlite3.connect(path)) as database:
        database.execute("CREATE TABLE patient (id INTEGER, age REAL, pressure REAL, ill INTEGER)")
        rows = zip(range(len(X)), X[:, 0].tolist(), X[:, 1].tolist(), y.tolist(), strict=True)
        database.executemany("INSERT INTO patient VALUES (?, ?, ?, ?)", rows)
        database.commit()


def main() -> int:
    """Fit, delete, and compare with models in memory; return 1 if a digest differs."""
    rng = np.random.default_rng(0)
    X, y = np.round(rng.normal([50.0, 120.0], [15.0, 20.0], (2500, 2)), 1), rng.integers(0, 2, 2500)
    gone, equal = [3, 1400, 2499], True
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "clinic.db"
        fill(path, X, y)
        for model in (StandardScaler(), GaussianNB(), Ridge()):
            records = records_of(path, "patient", ids="id", target="ill")
            fitted = model.fit(records)
            report = fitted.delete(gone)
            kept = np.setdiff1d(np.arange(len(X)), gone)
            names = pa.table({"age": X[kept, 0], "pressure": X[kept, 1]}).to_pandas()
            again = type(model)().fit(names, y[kept], ids=kept)
            same = fitted.digest() == again.digest()
            equal &= same
            print(f"{type(model).__name__:15} {report.action}, as in memory: {same}")
        with closing(sqlite3.connect(path)) as database:  # models are done: now the table
            database.executemany("DELETE FROM patient WHERE id = ?", [(each,) for each in gone])
            database.commit()
        left = records_of(path, "patient", ids="id", target="ill")
        print(f"{len(left)} patients are left in the table")
    return 0 if equal else 1


if __name__ == "__main__":
    raise SystemExit(main())
