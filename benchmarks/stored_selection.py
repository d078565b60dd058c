"""Selection and removal from records that stay in files or on workers, against those of memory.

    python benchmarks/stored_selection.py [--records 1000000] [--candidates 1000] [--picks 100]

100 of 1,000 candidates are chosen by the nearest neighbours of all records, and records of a tenth
are ranked by margins of Mahalanobis distances, with the frontier of their removal: of arrays where
there is such a way, and of `Records` in memory, in Parquet files, and on workers, which are in this
process and count what they are sent. Seconds are those of the processor. What is chosen is the
same, or nothing is told. Writes `benchmarks/results/stored-selection.json`, and with `--page` the
table of `docs/scale.md` from it, without measuring again.
"""

# ruff: noqa: E402
from __future__ import annotations

import os

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ[_name] = "1"

import argparse
import json
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from cluster_plan import Counting

from erasable import Records
from erasable.core.remote import BlockSource, remote_table
from erasable.core.stored_table import Uses
from erasable.removal import DomainRemoval
from erasable.selection import NearestNeighbor, SubsetSelector

RESULTS = Path(__file__).parent / "results" / "stored-selection.json"
PAGE = Path(__file__).parent.parent / "docs" / "scale.md"
BEGIN, END = "<!-- selected -->", "<!-- /selected -->"
BLOCKS, CLUSTERS = 16, 50
ALL = 8_000
"""So many records are all candidates, once."""


class Part(BlockSource):
    """Some rows of a file."""

    def __init__(self, path: str, number: int) -> None:
        self._path, self._number = path, number

    def table(self) -> pa.Table:
        """Read them."""
        return pq.ParquetFile(self._path).read_row_group(self._number)


def drawn(n: int, d: int) -> Any:
    """Draw records of clusters."""
    rng = np.random.default_rng(0)
    centres = rng.normal(size=(CLUSTERS, d)) * 2
    X = centres[rng.integers(0, CLUSTERS, n)]
    X += rng.normal(size=X.shape)
    return X


def places(X: Any, folder: str) -> dict[str, Any]:
    """Return how records are made of a table in memory, in a file and on workers."""
    names = [f"x{j}" for j in range(X.shape[1])]
    path = f"{folder}/{len(X)}.parquet"
    table = pa.table({"id": np.arange(len(X))} | {name: X[:, j] for j, name in enumerate(names)})
    kinds = {"use_dictionary": False, "compression": "none"}
    pq.write_table(table, path, row_group_size=-(-len(X) // BLOCKS), **kinds)
    n_blocks = pq.ParquetFile(path).num_row_groups
    workers = Counting(n_blocks)
    parts = [Part(path, number) for number in range(n_blocks)]
    uses = Uses("id", None, None, None, None)
    return {
        "memory": Records(X, ids=np.arange(len(X))),
        "files": Records.from_parquet(path, ids="id", features=names),
        "workers": Records.from_table(remote_table(workers, parts, uses)),
        "counting": workers,
    }


def timed(call: Callable[[], Any]) -> tuple[Any, float]:
    """Return what a call returns, and its seconds of the processor."""
    began = time.process_time()
    found = call()
    return found, time.process_time() - began


def compare(X: Any, fit: Callable[[Any], Any], told: Callable[[Any], Any], array: Any) -> Any:
    """Measure a fit to records at each place; refuse what is not the same.

    Parameters
    ----------
    X : ndarray of shape (n_records, n_features)
    fit : callable
        Of records.
    told : callable
        Returns what is to be the same, of what a fit returns.
    array : callable or None
        A fit to arrays.
    """
    cell: dict[str, Any] = {"n": len(X), "width": X.shape[1], "seconds": {}}
    with tempfile.TemporaryDirectory() as folder:
        records = places(X, folder)
        workers = records.pop("counting")
        workers.reset()
        found = {}
        for place, each in records.items():
            found[place], cell["seconds"][place] = timed(lambda each=each: fit(each))
            print(cell, flush=True)
        cell |= workers.counted()
        cell["blocks"] = len(workers.names)
        if array is not None:
            found["arrays"], cell["seconds"]["arrays"] = timed(array)
        if len({told(each) for each in found.values()}) > 1:
            raise AssertionError("what was found differs from place to place")
        cell["passes"] = getattr(found["files"], "n_passes", None)
    return cell


def select(n: int, d: int, n_candidates: int | None, k: int) -> Any:
    """Compare selections; of arrays where all records are candidates."""
    X = drawn(n, d)

    def fit(records: Any) -> Any:
        utility = NearestNeighbor(n_candidates=n_candidates)
        selector = SubsetSelector(utility, k=k, random_state=0).fit(records)
        selector.n_passes = selector._fitted.problem.n_passes
        return selector

    def array() -> Any:
        return SubsetSelector(k=k, random_state=0).fit(X)

    fit(Records(X[:100]))  # compiles
    SubsetSelector(k=2).fit(X[:100])
    told = lambda each: tuple(each.selected_ids_.tolist())  # noqa: E731
    cell = compare(X, fit, told, array if n_candidates is None else None)
    return cell | {"candidates": n_candidates or n, "k": k}


def remove(n: int, d: int) -> Any:
    """Compare removals of a tenth of the records."""
    X = drawn(n, d)
    forget = np.arange(n) % 10 == 0
    X[forget, 0] += 2.0
    own, other = X[forget], X[~forget]

    def fit(records: Any) -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            removal = DomainRemoval("lr-maha", random_state=0).fit(records, rows=forget)
            return removal, removal.frontier_

    def array() -> Any:
        removal = DomainRemoval("lr-maha", random_state=0).fit(own, other)
        return removal, removal.frontier_

    small = DomainRemoval("lr-maha", random_state=0)  # compiles
    _ = small.fit(own[:900], other[:900]).frontier_
    _ = small.fit(Records(X[:9000]), rows=forget[:9000]).frontier_

    def told(each: Any) -> Any:
        arrays = each[0].scores_, each[0].selected_, each[1].alpha, each[1].epsilon
        return tuple(part.tobytes() for part in arrays)

    return compare(X, fit, told, array) | {"forget": int(forget.sum())}


def measure(n: int, d: int, n_candidates: int, k: int, n_all: int = ALL) -> dict[str, Any]:
    """Measure all."""
    return {
        "sampled": select(n, d, n_candidates, k),
        "all": select(n_all, d, None, k),
        "removal": remove(n, d),
    }


def line(what: str, cell: Any) -> str:
    """Return a line of the table."""
    seconds = cell["seconds"]
    times = [
        f"{seconds[place]:.1f} s" if place in seconds else ""
        for place in ("arrays", "memory", "files", "workers")
    ]
    trips, blocks = cell["trips"], cell["blocks"]
    a_pass = cell["n"] * cell["width"] * 8 / 1e6
    sent, received = (cell[name] / trips / blocks / 1e3 for name in ("sent", "received"))
    told = f"{trips} | {a_pass:,.0f} MB | {sent:.1f} kB, {received:.1f} kB"
    return f"| {what} | {told} | {' | '.join(times)} |"


def page(text: str, found: dict[str, Any]) -> str:
    """Put the table into a page."""
    sampled, all_, removal = found["sampled"], found["all"], found["removal"]
    rows = [
        line(
            f"{sampled['k']} of {sampled['candidates']:,} candidates, {sampled['n']:,} targets",
            sampled,
        ),
        line(f"{all_['k']} of {all_['candidates']:,}, all of them candidates", all_),
        line(f"{removal['forget']:,} of {removal['n']:,} ranked, and the frontier", removal),
    ]
    head = (
        "| | passes | a pass reads | a pass sends to a worker, and back | arrays | `Records` | "
        "files | workers |\n|---|---:|---:|---:|---:|---:|---:|---:|"
    )
    before, rest = text.split(BEGIN)
    return "\n".join([f"{before}{BEGIN}\n", head, *rows, f"\n{END}"]) + rest.split(END)[1]


def main() -> None:
    """Measure, or write the page."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--records", type=int, default=1_000_000)
    parser.add_argument("--features", type=int, default=20)
    parser.add_argument("--candidates", type=int, default=1_000)
    parser.add_argument("--picks", type=int, default=100)
    parser.add_argument("--page", action="store_true")
    given = parser.parse_args()
    if not given.page:
        found = measure(given.records, given.features, given.candidates, given.picks)
        RESULTS.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    found = json.loads(RESULTS.read_text(encoding="utf-8"))
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8"), found), encoding="utf-8")


if __name__ == "__main__":
    main()
