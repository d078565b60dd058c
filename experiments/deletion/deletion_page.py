"""Writes docs/papers/deletion.md from whichever results there are; see `removal_page`."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.append(str(HERE.parent / "removal"))

removal_page: Any = importlib.import_module("removal_page")
shared: Any = importlib.import_module("shared")

RESULTS, WORDS = HERE / "results", HERE / "words"
DOCS = HERE.parent.parent / "docs" / "papers"
PAPER, NAMES = "deletion", ("stability",)
printed = removal_page.printed


def load(folder: Path = RESULTS) -> dict[str, dict[str, Any]]:
    """Read whichever results there are."""
    found: dict[str, dict[str, Any]] = shared.report.load(folder, NAMES)
    return found


def text(results: dict[str, dict[str, Any]]) -> str:
    """Return the page."""
    return "\n".join(
        (WORDS / f"{name}.md")
        .read_text(encoding="utf-8")
        .format_map(removal_page.filled(name, result, PAPER))
        for name, result in results.items()
    )


def write(docs: Path = DOCS) -> None:
    """Write the page and its figures."""
    results = load()
    for name, result in results.items():
        shared.figures.draw(name, result, docs / "figures", PAPER)
    (docs / f"{PAPER}.md").write_text(text(results), encoding="utf-8")
    print(f"wrote {docs / f'{PAPER}.md'}")


if __name__ == "__main__":
    write()
