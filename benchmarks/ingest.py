"""Pulling records into a workspace: seconds, and memory against the size of the source.

    python benchmarks/ingest.py [--records 100000 300000 1000000]

Writes benchmarks/results/ingest.json, and what was measured into docs/workspace.md. One thread;
each measurement is of a process of its own, whose peak memory Linux knows. The source is a folder
of Parquet files, partitioned by year, or a query of a table in PostgreSQL; the ledger is in SQLite
or PostgreSQL. The server is that of the tests, with fsync switched on.
"""

# ruff: noqa: E402
from __future__ import annotations

import os

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ[_name] = "1"

import argparse
import json
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
from processes import status

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "benchmarks" / "results" / "ingest.json"
PAGE = ROOT / "docs" / "workspace.md"
BEGIN = "<!-- From here on written by benchmarks/ingest.py. -->"
END = "<!-- Up to here. -->"
SUBJECTS = 100_000
YEARS, FILES_EACH, PIECE = (2023, 2024, 2025, 2026), 3, 50_000
SOURCES = {"parquet": "Parquet, 12 files", "query": "a query of PostgreSQL"}
LEDGERS = {"sqlite": "SQLite", "postgresql": "PostgreSQL"}


def make_records(n: int, start: int, seed: int) -> pa.Table:
    """Draw records of 12 columns, the year's included."""
    draw = np.random.default_rng((seed, start))
    return pa.table(
        {
            "record": [f"record-{i:08d}" for i in range(start, start + n)],
            "person": [f"person-{i:06d}" for i in draw.integers(SUBJECTS, size=n)],
            **{f"x{j}": draw.normal(size=n) for j in range(7)},
            "visits": draw.integers(50, size=n),
            "ward": np.array(["north", "south", "east", "west"])[draw.integers(4, size=n)],
        }
    )


def lay_out(folder: Path, n: int, seed: int = 0) -> None:
    """Write n records into a folder of partitions; the same that `fill` puts into a table."""
    for at, (year, part) in enumerate((y, p) for y in YEARS for p in range(FILES_EACH)):
        n_files = len(YEARS) * FILES_EACH
        start, end = at * n // n_files, (at + 1) * n // n_files
        path = folder / f"year={year}" / f"part-{part}.parquet"
        path.parent.mkdir(parents=True, exist_ok=True)
        with pq.ParquetWriter(path, make_records(1, 0, 0).schema) as writer:
            for piece in range(start, end, PIECE):
                writer.write_table(make_records(min(PIECE, end - piece), piece, seed))


def fill(url: str, folder: Path) -> None:
    """Copy the files of a folder into the table `records` of a database."""
    import psycopg

    with psycopg.connect(url) as connection:
        connection.execute(
            "CREATE TABLE records (record text, person text, "
            + ", ".join(f"x{j} double precision" for j in range(7))
            + ", visits bigint, ward text, year integer)"
        )
        for path in sorted(folder.rglob("*.parquet")):
            table = pq.ParquetFile(path).read()
            year = pa.array([int(path.parent.name.partition("=")[2])] * len(table))
            sink = pa.BufferOutputStream()
            options = pa.csv.WriteOptions(include_header=False)
            pa.csv.write_csv(table.append_column("year", year), sink, options)
            with connection.cursor().copy("COPY records FROM STDIN (FORMAT csv)") as copy:
                copy.write(sink.getvalue().to_pybytes())


def peak() -> float:
    """Return the peak memory of this process, in MiB."""
    return status("VmHWM") * 1e6 / 2**20  # what getrusage says includes the process before `exec`


def timed(action: Callable[[], Any]) -> tuple[float, Any]:
    """Run an action; return its seconds, and what it returned."""
    began = time.perf_counter()
    done = action()
    return time.perf_counter() - began, done


def busy() -> float:
    """Return the seconds that this process has had a processor."""
    return time.process_time()


def pull(ledger: str, source: str, query: str | None, changed: str | None) -> dict[str, Any]:
    """Add a data set and sync it, in this process; return what it took."""
    from erasable.workspace import Workspace

    with tempfile.TemporaryDirectory() as folder:
        database = None if ledger == "sqlite" else ledger
        workspace = Workspace.create(Path(folder, "ws"), database=database)
        before, idle = peak(), busy()
        adding, change = timed(
            lambda: workspace.add_dataset(
                "records", source, id_column="record", subjects=["person"], query=query
            )
        )
        found = {
            "before": before, "adding": adding, "busy": busy() - idle, "peak": peak(),
            "records": change.n_records,
        }  # fmt: skip
        syncing, change = timed(lambda: workspace.sync("records", source))
        assert change.version == 1, change
        found |= {"syncing": syncing}
        if changed is not None:
            resyncing, change = timed(lambda: workspace.sync("records", changed))
            assert change.version == 2, change
            assert change.n_changed > 0, change
            found |= {"resyncing": resyncing, "changed": change.n_changed}
        return {**found, "peak_of_all": peak()}


def change_some(folder: Path, other: Path) -> None:
    """Copy a folder, with other records in the first of its files."""
    shutil.copytree(folder, other)
    path = min(other.rglob("*.parquet"))
    table = pq.ParquetFile(path).read()
    visits = pa.compute.add(table["visits"], 1)
    pq.write_table(table.set_column(table.column_names.index("visits"), "visits", visits), path)


def child(**given: Any) -> dict[str, Any]:
    """Run `pull` in a process of its own."""
    line = [sys.executable, __file__, "--child", json.dumps(given)]
    done = subprocess.run(line, check=True, stdout=subprocess.PIPE, text=True)
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def measure(sizes: list[int]) -> dict[str, Any]:
    """Run all of it, in folders that are removed."""
    sys.path.insert(0, str(ROOT / "tests" / "workspace"))
    from postgres_server import running

    cells = []
    with running() as server, tempfile.TemporaryDirectory() as name:
        server.run("ALTER SYSTEM SET fsync TO on")
        server.run("SELECT pg_reload_conf()")
        for n in sizes:
            folder, other = Path(name, f"{n}"), Path(name, f"{n}-changed")
            lay_out(folder, n)
            change_some(folder, other)
            shop = server.url(server.database())
            fill(shop, folder)
            query = "SELECT * FROM records WHERE visits >= 0"
            for ledger in LEDGERS:
                for source in SOURCES:
                    place = "sqlite" if ledger == "sqlite" else server.url(server.database())
                    given = (
                        {"source": str(folder), "query": None, "changed": str(other)}
                        if source == "parquet"
                        else {"source": shop, "query": query, "changed": None}
                    )
                    cell = {"n": n, "ledger": ledger, "source": source}
                    cells.append({**cell, **child(ledger=place, **given)})
                    print(cells[-1], file=sys.stderr, flush=True)
    machine = f"{platform.machine()}, Python {platform.python_version()}"
    return {"subjects": SUBJECTS, "machine": machine, "cells": cells}


def page(found: dict[str, Any]) -> str:
    """Write what was measured."""
    cells = found["cells"]
    most = max(cell["n"] for cell in cells)
    largest = [cell for cell in cells if cell["n"] == most]
    slowest, highest = max(c["adding"] for c in largest), max(c["peak_of_all"] for c in largest)
    lines = [
        f"- {most:,} records added in at most {slowest:.0f} s",
        f"- peak memory {highest:.0f} MiB",
    ]
    met = ["met" if ok else "missed" for ok in (slowest < 120, highest < 1536)]
    print(f"aims: at most 120 s, {met[0]}; at most 1,536 MiB, {met[1]}")
    rows = []
    for cell in cells:
        again = f"{cell['resyncing']:.1f}" if "resyncing" in cell else "–"  # noqa: RUF001
        rows.append(
            f"| {SOURCES[cell['source']]} | {LEDGERS[cell['ledger']]} | {cell['n']:,} "
            f"| {cell['adding']:.1f} | {cell['busy']:.1f} | {cell['syncing']:.1f} | {again} "
            f"| {cell['peak']:.0f} | {cell['peak_of_all']:.0f} |"
        )
    return "\n".join(
        [
            BEGIN,
            "",
            f"Records of {found['subjects']:,} people, 12 columns, one thread, one process per "
            "line. *busy*: the processor time of `add`, on a shared machine. *sync*: with the "
            "same records. *changed*: with changed records in one file of twelve. Memory is the "
            "peak of the process, in MiB, after `add` and in all.",
            "",
            *lines,
            "",
            "| source | ledger | records | add, s | busy, s | sync, s | changed, s | after add "
            "| in all |",
            "|---|---|---:|---:|---:|---:|---:|---:|---:|",
            *rows,
            "",
            f"{found['machine']}.",
            "",
            END,
        ]
    )


def main() -> None:
    """Measure, and write the results."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--records", type=int, nargs="+", default=[100_000, 300_000, 1_000_000])
    parser.add_argument("--dry", action="store_true", help="print, and write nothing")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.child:
        print(json.dumps(pull(**json.loads(asked.child))))
        return
    found = measure(asked.records)
    text = page(found)
    print(text)
    if asked.dry:
        return
    RESULTS.write_text(json.dumps(found, indent=1) + "\n")
    whole = PAGE.read_text(encoding="utf-8")
    pattern = re.escape(BEGIN) + ".*?" + re.escape(END)
    PAGE.write_text(re.sub(pattern, lambda _: text, whole, flags=re.DOTALL), encoding="utf-8")


if __name__ == "__main__":
    main()
