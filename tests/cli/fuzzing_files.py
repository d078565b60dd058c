"""Damaged files, and the command lines that read them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from cli.fuzzing import damaged

__all__ = ["CASES", "file_cases"]

CASES: dict[str, list[list[str]]] = {
    "more.csv": [
        ["dataset", "append", "visits", "more.csv"],
        ["dataset", "sync", "visits", "more.csv"],
        ["dataset", "add", "new", "more.csv", "--id", "visit", "--subject", "patient,mail:email"],
        ["model", "predict", "risk", "more.csv", "--json"],
    ],
    "more.parquet": [
        ["dataset", "append", "visits", "more.parquet"],
        ["dataset", "add", "new", "more.parquet", "--id", "visit", "--subject", "patient"],
        ["model", "predict", "risk", "more.parquet", "--json"],
    ],
    "keys.json": [
        ["request", "patient-7"],
        ["log", "head"],
        ["key"],
        ["dataset", "append", "visits", "more.csv"],
    ],
    "workspace.pub": [["receipt", "check", "receipt.json", "--key", "workspace.pub", "--json"]],
    "receipt.json": [["receipt", "check", "receipt.json", "--key", "workspace.pub", "--json"]],
    "head.json": [["log", "verify", "--since", "head.json", "--json"]],
    "erased.json": [["suppress", "import", "erased.json", "--json"]],
    "withdrawn.txt": [
        ["request", "--file", "withdrawn.txt"],
        ["request", "--file", "withdrawn.txt", "--dry-run"],
        ["subject", "show", "--file", "withdrawn.txt"],
        ["subject", "link", "--file", "withdrawn.txt"],
        ["suppress", "release", "--file", "withdrawn.txt"],
    ],
}


def file_cases(template: Path) -> st.SearchStrategy[tuple[str, bytes, list[str]]]:
    """Draw the name of a file, what it holds, and a command line that reads it."""
    wholes = {name: (template / name).read_bytes() for name in CASES}

    @st.composite
    def case(draw: Any) -> tuple[str, bytes, list[str]]:
        name = draw(st.sampled_from(sorted(CASES)))
        args = draw(st.sampled_from(CASES[name]))
        return name, draw(damaged(wholes[name])), args

    return case()
