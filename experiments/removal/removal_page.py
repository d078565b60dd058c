"""Writes docs/papers/removal.md from whichever results there are.

The words about an experiment are in `words/NAME.md`; `{figure_2}`, `{note_x}`, `{settings}` and the
names of facts stand in them for what was measured, `{x__norm__1}` for the second cell of the row
"norm" of note x, and `{figure_2__norm__10}` for a line of the first panel of a figure at 10. Rows
of the notes called ``short`` are gathered in a table at the head, in whose words the names begin
with that of the experiment.
"""

from __future__ import annotations

import importlib
import re
from pathlib import Path
from typing import Any

from shared import HERE, ROOT, figures, report

RESULTS = HERE / "results"
WORDS = HERE / "words"
DOCS = ROOT / "docs" / "papers"
PAPER = "removal"
NAMES = ("gaussians", "sms", "jigsaw", "cifar", "identification", "membership")
_Filled: Any = importlib.import_module("page").Filled


def load(folder: Path = RESULTS) -> dict[str, dict[str, Any]]:
    """Read whichever results there are."""
    found: dict[str, dict[str, Any]] = report.load(folder, NAMES)
    return found


def text(results: dict[str, dict[str, Any]], words: Path = WORDS) -> str:
    """Return the page."""
    facts = {
        f"{name}_{key}": value
        for name, result in results.items()
        for key, value in _facts(result).items()
    }
    head = _Filled(facts, commands=_commands(results), short=_short(results))
    parts = [(words / "head.md").read_text(encoding="utf-8").format_map(head)]
    for name, result in results.items():
        there = (words / f"{name}.md").read_text(encoding="utf-8")
        parts.append(there.format_map(filled(name, result)))
    return "\n".join(parts)


def _facts(result: dict[str, Any]) -> dict[str, str]:
    """Return the facts of an experiment, the cells of its notes, and points of its figures."""
    found = {key: str(value) for key, value in result.get("facts", {}).items()}
    for key, given in result.get("notes", {}).items():
        for row in given["rows"]:
            found |= {f"{key}__{_word(row[0])}__{i}": cell for i, cell in enumerate(row)}
    for number, given in result["figures"].items():
        for line in given["panels"][0]["lines"] if given["kind"] == "lines" else []:
            points = zip(line["x"], line["y"], strict=True)
            key = f"figure_{number}__{_word(line['label'])}"
            found |= {f"{key}__{x:g}": f"{y:.4f}" for x, y in points if y is not None}
    return found


def _word(text: str) -> str:
    """Return a text as a name of one word."""
    return re.sub(r"\W+", "_", text).strip("_")


def _commands(results: dict[str, dict[str, Any]]) -> str:
    rows = [
        [name, f"`python experiments/removal/{name}.py`", f"{sum(result['seconds'].values()):,}"]
        for name, result in results.items()
    ]
    return str(report.markdown(["experiment", "command", "seconds"], rows))


def _short(results: dict[str, dict[str, Any]]) -> str:
    notes = [result.get("notes", {}).get("short") for result in results.values()]
    notes = [note for note in notes if note]
    rows = [
        [*row[:4], f"{int(row[3]) / int(row[2]):.2f}", *row[4:]]
        for note in notes
        for row in note["rows"]
    ]
    head = ["data", "deleted, %, for", "paper: random", "selective", "ratio", "here: random",
            "selective", "ratio"]  # fmt: skip
    return str(report.markdown(head, rows)) if notes else ""


def filled(name: str, result: dict[str, Any], paper: str = PAPER) -> dict[str, str]:
    """Return `fillings`, which say of other names that they were not measured."""
    made: dict[str, str] = _Filled(fillings(name, result, paper))
    return made


def fillings(name: str, result: dict[str, Any], paper: str = PAPER) -> dict[str, str]:
    """Return what stands for the names in the words about an experiment."""
    made = _facts(result)
    made["settings"] = "\n".join(f"- {what}: {value}" for what, value in result["settings"].items())
    for key, given in result.get("notes", {}).items():
        if key != "short":
            made[f"note_{key}"] = report.markdown(given["head"], given["rows"])
    for number, given in result["figures"].items():
        file = figures.file_of(name, number, paper)
        made[f"figure_{number}"] = f"![{given['title']}](figures/{file})\n*{given['title']}.*"
    return made


def printed(found: dict[str, Any]) -> list[tuple[str, str]]:
    """Return the titles and the text of the tables of what was found."""
    tables = [
        (key, report.markdown(given["head"], given["rows"]))
        for key, given in found.get("notes", {}).items()
    ]
    facts = "\n".join(f"{key}: {value}" for key, value in found.get("facts", {}).items())
    return [*tables, ("facts", facts)]


def write(docs: Path = DOCS) -> None:
    """Write the page and its figures."""
    results = load()
    files = []
    for name, result in results.items():
        files += figures.draw(name, result, docs / "figures", PAPER)
    (docs / f"{PAPER}.md").write_text(text(results), encoding="utf-8")
    print(f"wrote {docs / f'{PAPER}.md'} and {len(files)} figures")


if __name__ == "__main__":
    write()
