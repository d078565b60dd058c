"""Fits on records whose features stay in Parquet files, against reading them and doing nothing.

    python benchmarks/from_parquet.py [--records 20000000] [--features 20] [--row-group 500000]

For each estimator, in a process of its own: seconds of `Records.from_parquet` and `fit`, of the
bare scan (the same columns are read, and dropped), of a fit on a tenth of the records in memory,
times ten; how much memory the process took beyond what it had before, a record. A fit is to take
no more than the bare scan, times the passes of the estimator, and 1.3 times the fit in memory; and
60 bytes a record.
"""

# ruff: noqa: E402
from __future__ import annotations

import os

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ[_name] = "1"

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from sklearn.base import clone

from erasable import Records
from erasable.cluster import KMeans
from erasable.core._arrow_files import parquet_footer, parquet_row_group
from erasable.core.parquet import RowGroup
from erasable.decomposition import PCA
from erasable.linear_model import LogisticRegression, Ridge
from erasable.naive_bayes import BernoulliNB, GaussianNB
from erasable.pipeline import make_pipeline
from erasable.preprocessing import MinMaxScaler, RobustScaler, StandardScaler

MODELS: dict[str, tuple[Any, str | None, int]] = {
    "MinMaxScaler": (MinMaxScaler(), None, 1),
    "StandardScaler": (StandardScaler(), None, 2),
    "GaussianNB": (GaussianNB(), "label", 2),
    "Ridge": (Ridge(), "amount", 2),
    "PCA": (PCA(5), None, 2),
    "KMeans": (KMeans(8, max_iter=5, random_state=0), None, 8 + 6),
    "LogisticRegression": (LogisticRegression(), "label", 0),
    "StandardScaler, LogisticRegression": (
        make_pipeline(StandardScaler(), LogisticRegression()), "label", 0,
    ),
    "BernoulliNB": (BernoulliNB(), "label", 1),
    "RobustScaler": (RobustScaler(), None, 2),
}  # fmt: skip
"""Estimator, target, and how often a fit reads the files; 0 where that depends on the records."""


def write(folder: Path, n: int, d: int, row_group: int) -> None:
    """Write records, one row group after the other."""
    rng = np.random.default_rng(0)
    coefficients = rng.normal(size=d)
    writer = None
    for start in range(0, n, row_group):
        X = rng.normal(size=(min(row_group, n - start), d))
        amount = X @ coefficients + rng.normal(size=len(X))
        columns = {f"x{j}": X[:, j] for j in range(d)}
        others = {"id": np.arange(start, start + len(X)) * 3, "label": (amount > 0).astype(int)}
        table = pa.table({**columns, **others, "amount": amount})
        if writer is None:
            kinds = {"use_dictionary": False, "compression": "none"}
            writer = pq.ParquetWriter(folder / "records.parquet", table.schema, **kinds)
        writer.write_table(table, row_group_size=row_group)
    assert writer is not None
    writer.close()


def resident() -> int:
    """Return the most bytes that this process has had in memory, so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def scan(path: str, columns: list[str]) -> float:
    """Return how long it takes to read columns, a row group at a time, and to drop them."""
    began = time.perf_counter()
    footer = parquet_footer(path)
    for number in range(footer.num_row_groups):
        parquet_row_group(path, footer, number, columns)
    return time.perf_counter() - began


def measure(name: str, folder: str, d: int) -> dict[str, Any]:
    """Measure one estimator."""
    model, target, passes = MODELS[name]
    path = f"{folder}/records.parquet"
    features = [f"x{j}" for j in range(d)]
    rng = np.random.default_rng(1)
    small = rng.normal(size=(1000, d))
    labels = {"target": target} if target else {}
    clone(model).fit(small, *([small[:, 0] > 0] if target else []))  # compiles
    warm_up = f"{folder}/small.parquet"
    columns = {f"x{j}": small[:, j] for j in range(d)}
    pq.write_table(pa.table({**columns, "y": (small[:, 0] > 0).astype(int)}), warm_up)
    clone(model).fit(Records.from_parquet(warm_up, target="y"))
    before = resident()
    began = time.perf_counter()
    records = Records.from_parquet(path, ids="id", features=features, **labels)
    read = time.perf_counter() - began
    with readings() as read_blocks:
        fit = min(_seconds(model, records) for _ in range(2))
    passes = passes or len(read_blocks) / 2 / (len(records.matrix.starts) - 1)
    took = resident() - before
    digest = model.digest()
    bare = scan(path, features)
    n = len(records)
    gone = np.arange(5) * 3 * (n // 5)
    began = time.perf_counter()
    model.delete(gone.tolist(), digest=False)
    model.digest()
    deletion = time.perf_counter() - began
    part = np.arange(n // 10)
    records = records.take(part).in_memory()
    in_memory = 10 * min(_seconds(model, records) for _ in range(2))
    return {
        "model": name, "n": n, "from_parquet": read, "fit": fit, "bare scan": bare,
        "passes": passes, "in memory": in_memory, "bytes a record": took / n,
        "deletion of 5": deletion, "ratio": fit / (passes * bare + 1.3 * in_memory),
        "digest": digest[-8:],
    }  # fmt: skip


@contextmanager
def readings() -> Iterator[list[int]]:
    """List the row groups that are read meanwhile."""
    found: list[int] = []
    own = RowGroup.read

    def read(self: RowGroup, columns: Sequence[str]) -> Any:
        found.append(self.number)
        return own(self, columns)

    RowGroup.read = read  # type: ignore[method-assign]
    yield found
    RowGroup.read = own  # type: ignore[method-assign]


def _seconds(model: Any, records: Records) -> float:
    began = time.perf_counter()
    model.fit(records)
    return time.perf_counter() - began


def main() -> None:
    """Read the command line, and measure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=20_000_000)
    parser.add_argument("--features", type=int, default=20)
    parser.add_argument("--row-group", type=int, default=500_000)
    parser.add_argument("--only", nargs="+", choices=list(MODELS), default=list(MODELS))
    parser.add_argument("--folder", help=argparse.SUPPRESS)
    said = parser.parse_args()
    if said.folder:
        found = measure(said.only[0], said.folder, said.features)
        rounded = {k: float(f"{v:.3g}") if isinstance(v, float) else v for k, v in found.items()}
        print(json.dumps(rounded), flush=True)
        return
    with tempfile.TemporaryDirectory() as folder:
        write(Path(folder), said.records, said.features, said.row_group)
        for name in said.only:
            words = ["--only", name, "--folder", folder, "--features", str(said.features)]
            subprocess.run([sys.executable, __file__, *words], check=True)


if __name__ == "__main__":
    main()
