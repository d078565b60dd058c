"""Check that the search of the built site finds what readers look for; `make docs` runs it."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import erasable

INDEX = Path(__file__).resolve().parent.parent / "build" / "site" / "search" / "search_index.json"
WORDS = [
    "calibration", "Docker", "glossary", "LightGBM", "missing values", "MLflow", "ONNX", "pandas",
    "Polars", "SHAP", "XGBoost",
]  # fmt: skip


def missing(
    words: Iterable[str], names: Iterable[str], entries: Sequence[Mapping[str, str]]
) -> list[str]:
    """Return words that no entry has, and names of estimators that are no entry's title.

    Examples
    --------
    >>> entries = [{"title": "erasable.tree.Tree", "text": "A tree for Polars."}]
    >>> missing(["polars", "Docker"], ["Tree", "Forest"], entries)
    ['Docker', 'Forest']
    """
    everything = "\n".join(f"{each['title']}\n{each['text']}" for each in entries).lower()
    titles = {each["title"].split()[-1].rpartition(".")[2] for each in entries if each["title"]}
    return [
        *(word for word in words if word.lower() not in everything),
        *(name for name in names if name not in titles),
    ]


if __name__ == "__main__":
    found = json.loads(INDEX.read_text(encoding="utf-8"))["docs"]
    left = missing(WORDS, (name for name, _, _ in erasable.all_estimators()), found)
    if left:
        sys.exit(f"the search finds nothing for {', '.join(left)}")
