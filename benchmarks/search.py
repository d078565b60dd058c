"""Measure the search of what people leave in files: 100 people, an address, a text, a vector each.

    python benchmarks/search.py [--quick]

A line of JSON tells the seconds of the preparation and those to find the people in a Parquet file;
another, for each kind of content, the megabytes a second that are searched for texts and addresses,
for vectors, and for both, those of a whole file whose format is not known, and those of SHA-256
over the same bytes; and for CSV and JSON lines, those for 100 numbers of few digits. Seconds are
those of the processor, the best of several runs. Another version is measured with
``PYTHONPATH=ITS/src``; take turns.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import tempfile
import time
from collections.abc import Callable, Collection, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import parquet

from erasable.workspace.targets import decoding
from erasable.workspace.targets.files import FilesTarget
from erasable.workspace.targets.inspection import Inspection
from erasable.workspace.targets.marks import Marks
from erasable.workspace.targets.protocol import Settings, Subject

WIDTH, N_PEOPLE = 384, 100
AT_ONCE = 1 << 22
_WORDS = np.array(["river", "stone", "window", "garden", "letter", "morning", "copper", "engine"])


class _Some:
    """People by their addresses."""

    def __init__(self, mails: Collection[str]) -> None:
        self._mails = set(mails)

    def among(self, values: Collection[Any], subject: Subject) -> Mapping[Any, str]:
        return {value: value for value in values if value in self._mails}


def main() -> None:
    """Measure, and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="little of each, once")
    n_bytes, n_runs = (1 << 20, 1) if parser.parse_args().quick else (1 << 25, 4)
    rng = np.random.default_rng(0)
    n = 2 * N_PEOPLE + n_bytes // (4 * WIDTH)
    vectors = rng.normal(size=(n, WIDTH)).astype(np.float32)
    mails = [f"person{at:05}.{rng.bytes(4).hex()}@example.org" for at in range(n)]
    texts = [" ".join([rng.bytes(8).hex(), *rng.choice(_WORDS, 12)]) for _ in range(n)]
    columns = {"texts": (mails, texts), "vectors": (vectors,), "both": (mails, texts, vectors)}
    _prepared(columns["both"])  # compiles, or loads what is compiled
    seconds = {"prepare_seconds": _best(lambda: _prepared(columns["both"]), n_runs)}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "people.parquet")
        flat = pa.FixedSizeListArray.from_arrays(pa.array(vectors[:1_000].ravel()), WIDTH)
        table = {"mail": mails[:1_000], "text": texts[:1_000], "vector": flat}
        parquet.write_table(pa.table(table), path)
        target = FilesTarget(str(path), Settings((Subject("mail", "email"),)))
        seconds["find_seconds"] = _best(lambda: target.find(_Some(mails[:N_PEOPLE])), n_runs)
        print(json.dumps(seconds), flush=True)
        rest = range(2 * N_PEOPLE, n)
        for name, data in {
            "vectors": vectors[rest.start :].tobytes(),
            "records": b"".join(
                (mails[at] + texts[at]).encode() + vectors[at].tobytes() for at in rest
            ),
            "texts": "".join(mails[at] + texts[at] for at in rest).encode() * 10,
            "zeros": bytes(n_bytes),
        }.items():
            path.write_bytes(data[:n_bytes])
            rates = _rates(path, columns, n_runs)
            print(json.dumps({"content": name, "mb_per_s": rates}), flush=True)
        for name, lines in _numbered(n_bytes).items():
            rows = Path(folder, name)
            rows.write_text(lines)
            numbers = Marks()
            for at in range(N_PEOPLE):
                numbers.add(97 * at, column="person")
            inspection = Inspection(numbers, Marks())
            spent = _best(partial(decoding.inspect, rows, inspection), n_runs)
            rates = {"numbers": round(len(lines) / 1e6 / spent)}
            print(json.dumps({"content": name, "mb_per_s": rates}), flush=True)


def _numbered(n_bytes: int) -> dict[str, str]:
    """Return rows of people with numbers of few digits, as other columns have them."""
    rows = [
        {"person": at, "age": at % 90, "visits": at * 7 % 1_000, "dose": at / 8}
        for at in range(n_bytes // 60)
    ]
    csv = "\n".join(",".join(map(str, row.values())) for row in rows)
    return {
        "rows.csv": f"{','.join(rows[0])}\n{csv}\n",
        "rows.jsonl": "".join(json.dumps(row) + "\n" for row in rows),
    }


def _rates(path: Path, columns: dict[str, tuple[Any, ...]], n_runs: int) -> dict[str, int]:
    data = path.read_bytes()
    blocks = [data[at : at + AT_ONCE] for at in range(0, len(data), AT_ONCE)]
    searches = {of: _prepared(values) for of, values in columns.items()}
    ways: dict[str, Callable[[], object]] = {
        of: partial(_each, search.look_at, blocks) for of, search in searches.items()
    }
    ways["file"] = partial(decoding.inspect, path, searches["both"])
    ways["sha256"] = partial(_each, hashlib.sha256, blocks)
    return {of: round(len(data) / 1e6 / _best(way, n_runs)) for of, way in ways.items()}


def _each(work: Callable[[bytes], object], blocks: list[bytes]) -> None:
    for block in blocks:
        work(block)


def _prepared(columns: tuple[Any, ...]) -> Inspection:
    gone, stay = Marks(), Marks()
    for column in columns:
        for marks, start in ((gone, 0), (stay, N_PEOPLE)):
            for value in column[start : start + N_PEOPLE]:
                marks.add(value)
    inspection = Inspection(gone, stay)
    inspection.begin()
    inspection.look_at(b" ")
    return inspection


def _best(work: Callable[[], object], n_runs: int) -> float:
    found = []
    for _ in range(n_runs):
        start = time.process_time()
        work()
        found.append(time.process_time() - start)
    return round(min(found), 4)


if __name__ == "__main__":
    main()
