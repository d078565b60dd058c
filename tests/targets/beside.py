"""Another process that writes to a lake all the time, and an account of what it was told is there.

The writer ends when its standard input does. After each commit it prints what it has added, changed
or deleted, nothing of people who leave; a commit that failed is tried again.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType
from typing import Any

import pyarrow as pa

_LOOP = """
import json, select, sys
import pyarrow as pa
place, only_appends, pause = sys.argv[1], sys.argv[2] == "append", float(sys.argv[3])
SCHEMA = pa.schema([("visit", pa.int64()), ("mail", pa.string()), ("spent", pa.float64()),
                    ("note", pa.string())])

def rows(first):
    mails = [f"new-{visit}@example.org" for visit in range(first, first + 5)]
    return pa.table({"visit": range(first, first + 5), "mail": mails, "spent": [1.5] * 5,
                     "note": mails}, schema=SCHEMA)

def steps():
    for n in range(1_000_000):
        first, old = 10_000_000 + 5 * n, 100_000 * (n % 10) + 97 * (7919 * n % 1030)
        yield "append", first, 1.5
        if n % 2 and not only_appends:
            yield "update", old + 1, float(n)
            yield "delete", old + 2 if n % 4 == 1 else first, None
"""
_END = """
for step in steps():
    if select.select([sys.stdin], [], [], pause)[0]:
        break
    is_done = False
    while not is_done:
        try:
            globals()[step[0]](*step[1:])
            is_done = True
        except CONFLICTS as error:
            print(json.dumps(["conflict", 0, type(error).__name__]), flush=True)
            if select.select([sys.stdin], [], [], 0)[0]:
                sys.exit()  # nobody was told of the step
    print(json.dumps(step), flush=True)
"""
FILES = """
import os
import pyarrow.parquet as pq
CONFLICTS = ()

def append(first, spent):
    new = f"{place}/.{first}.parquet.new"
    pq.write_table(rows(first), new)
    os.rename(new, f"{place}/{first}.parquet")
"""
DELTA = """
from deltalake import DeltaTable, write_deltalake
from deltalake.exceptions import CommitFailedError, DeltaError
CONFLICTS = (CommitFailedError, DeltaError, OSError)

def append(first, spent):
    write_deltalake(place, rows(first), mode="append")

def update(visit, spent):
    DeltaTable(place).update(updates={"spent": str(spent)}, predicate=f"visit = {visit}")

def delete(visit, spent):
    DeltaTable(place).delete(f"visit = {visit}")
"""
ICEBERG = """
import warnings
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.exceptions import CommitFailedException, ValidationException
from pyiceberg.expressions import EqualTo
warnings.simplefilter("ignore")
CONFLICTS = (CommitFailedException, ValidationException, FileNotFoundError)
catalog = SqlCatalog("mine", uri=f"sqlite:///{place}/cat.db", warehouse=f"file://{place}/house")

def append(first, spent):
    catalog.load_table("shop.visits").append(rows(first))

def update(visit, spent):
    table = catalog.load_table("shop.visits")
    found = table.scan(row_filter=EqualTo("visit", visit)).to_arrow()
    if found.num_rows:
        new = found.set_column(2, "spent", pa.array([spent] * found.num_rows))
        table.overwrite(new, EqualTo("visit", visit))

def delete(visit, spent):
    catalog.load_table("shop.visits").delete(EqualTo("visit", visit))
"""


class Beside:
    """A process that writes to a lake inside the block; `steps` is what it was told is there."""

    def __init__(self, script: str, place: Path | str, only: str = "", pause: float = 0.05) -> None:
        self.steps: list[tuple[str, int, Any]] = []
        self._line = [sys.executable, "-c", _LOOP + script + _END, str(place), only, str(pause)]

    def __enter__(self) -> Beside:
        """Start it, and wait for its first commit."""
        self._process = subprocess.Popen(
            self._line, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        assert self._process.stdout is not None
        self.steps.append(tuple(json.loads(self._process.stdout.readline())))
        return self

    def __exit__(self, kind: type | None, error: object, traceback: TracebackType | None) -> None:
        """End it after its last commit."""
        told, _ = self._process.communicate()
        self.steps += [tuple(json.loads(line)) for line in told.splitlines()]
        assert self._process.returncode == 0

    def counts(self) -> Counter[str]:
        """Return how many commits there were of each kind, and how many were tried again."""
        return Counter(kind for kind, _, _ in self.steps)

    def applied(self, rows: dict[int, float]) -> dict[int, float]:
        """Return what is spent at each visit after all steps, from what was spent before them."""
        found = dict(rows)
        for kind, visit, spent in self.steps:
            if kind == "append":
                found |= dict.fromkeys(range(visit, visit + 5), spent)
            elif kind == "update" and visit in found:
                found[visit] = spent
            elif kind == "delete":
                found.pop(visit, None)
        return found


def spent_at(table: pa.Table, without: Iterable[str] = ()) -> dict[int, float]:
    """Return what is spent at each visit of others, each of which has to be there once."""
    gone = set(without)
    rows = zip(*(table[name].to_pylist() for name in ("visit", "mail", "spent")), strict=True)
    left = [(visit, spent) for visit, mail, spent in rows if mail not in gone]
    found = dict(left)
    assert len(found) == len(left)
    return found
