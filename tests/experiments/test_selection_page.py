"""The page on the paper's experiments says what the stored results say."""

from __future__ import annotations

import copy
import re
from pathlib import Path
from typing import Any

import page
import paper
import pytest
import report

RESULTS = report.load()
PAGE = page.DOCS / "selection.md"


def test_there_are_results() -> None:
    assert RESULTS
    assert {path.stem for path in report.RESULTS.glob("*.json")} == set(RESULTS)


def test_the_page_is_what_the_results_give() -> None:
    assert PAGE.read_text(encoding="utf-8") == page.text(RESULTS)


@pytest.mark.parametrize("name", RESULTS)
def test_another_result_gives_another_page(name: str) -> None:
    other = copy.deepcopy(RESULTS)
    other[name]["seconds"]["more"] = 1000
    assert page.text(other) != page.text(RESULTS)
    for given in other[name]["tables"].values():
        row = next(iter(given["rows"].values()))
        row["edads"]["metric"] += 0.1
        assert page.text(other) != page.text(RESULTS)


@pytest.mark.parametrize("name", RESULTS)
def test_everything_measured_is_shown(name: str) -> None:
    words = (page.WORDS / f"{name}.md").read_text(encoding="utf-8")
    named = set(re.findall(r"\{(\w+)\}", words))
    filled = page.fillings(name, RESULTS[name])
    assert set(filled) <= named


def test_what_was_not_measured_is_said() -> None:
    assert "{x}".format_map(page.Filled()) == "*(not measured)*"


@pytest.mark.parametrize("name", RESULTS)
def test_every_row_of_the_paper_is_there(name: str) -> None:
    for number, given in RESULTS[name]["tables"].items():
        assert list(given["rows"]) == list(paper.TABLES[number])


def test_figures_exist_and_are_small() -> None:
    shown = re.findall(r"\]\((figures/[^)]+)\)", PAGE.read_text(encoding="utf-8"))
    assert len(shown) == sum(len(result["figures"]) for result in RESULTS.values())
    for file in shown:
        assert (PAGE.parent / file).stat().st_size < 100_000
    assert {Path(file).name for file in shown} == {
        path.name for path in (PAGE.parent / "figures").glob("selection-*.svg")
    }


def test_a_result_survives_storing(tmp_path: Path) -> None:
    value = {"a": 0.1234567891, "u": report.exact(1234.56789012), "n": None}
    path = report.save("nn-s", {"tables": {}, "x": value}, tmp_path)
    assert path.stat().st_size < 200
    again: Any = report.load(tmp_path)["nn-s"]["x"]
    assert again == {"a": 0.123457, "u": "1234.56789012", "n": None}


def test_a_trial_prints_tables_and_notes() -> None:
    given = RESULTS["nn-h"]
    shown = dict(page.printed(given))
    assert set(shown) == {f"Table {number}" for number in given["tables"]} | set(given["notes"])
    for key, note in given["notes"].items():
        assert all(cell in shown[key] for row in note["rows"] for cell in row)
    assert page.printed({"figures": {}}) == []


def test_who_wins_is_counted() -> None:
    rows = {
        "one": {"edads": {"utility": "10.5"}, "ds": {"utility": "9.5"}},
        "two": {"edads": {"utility": "9.5"}, "ds": {"utility": "10.5"}},
    }
    assert report.wins(rows, "edads", "ds", "utility") == 1
    assert report.wins(rows, "ds", "edads", "utility") == 1
