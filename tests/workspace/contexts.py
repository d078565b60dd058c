"""Small workspaces for tests."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import backends
import pyarrow as pa
import pyarrow.csv

from erasable.workspace.context import Context
from erasable.workspace.data.sources import Source

START = datetime(2026, 3, 1, 9, 30, tzinfo=UTC)


class Clock:
    """A time that a test moves."""

    def __init__(self) -> None:
        self.at = START

    def __call__(self) -> datetime:
        self.at += timedelta(microseconds=1)
        return self.at

    def pass_days(self, days: float) -> None:
        self.at += timedelta(days=days)


def make_context(folder: Path) -> tuple[Context, Clock]:
    """Make a workspace whose time stands still."""
    clock = Clock()

    class Still(Context):
        def now(self) -> datetime:
            return clock()

    return Still.create(folder), clock


def visits(n: int, *, start: int = 0, per_subject: int = 3) -> dict[str, list[Any]]:
    """Make n records of n / per_subject patients, each with a marker of its patient."""
    numbers = range(start, start + n)
    return {
        "visit": [f"v{i}" for i in numbers],
        "patient": [f"marker-patient-{i // per_subject}" for i in numbers],
        "doctor": [None if i % 5 == 0 else f"marker-doctor-{i % 7}" for i in numbers],
        "age": [20 + i % 50 for i in numbers],
        "weight": [50.0 + (i * 7919 % 1000) / 13 for i in numbers],
        "note": [f"note of marker-patient-{i // per_subject}" for i in numbers],
        "sick": [int(i % 3 == 0 or i % 7 == 1) for i in numbers],
    }


def write_csv(path: Path, columns: dict[str, list[Any]]) -> Source:
    """Write a source."""
    pyarrow.csv.write_csv(pa.table(columns), path)
    return Source.parse(str(path))


def scan(folder: Path, *markers: str) -> list[str]:
    """Return the files under a folder in whose bytes, or names, a marker occurs."""
    found = []
    for path in {*folder.rglob("*"), *backends.files_of(folder)}:
        data = path.read_bytes() if path.is_file() else b""
        for marker in markers:
            if marker.encode() in data or marker in path.name:
                found.append(f"{backends.name_of(path, folder)}: {marker}")
    return sorted(found)
