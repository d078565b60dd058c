"""The page on removal says what the stored results say."""

from __future__ import annotations

import copy
import re
from pathlib import Path

import pytest
import removal_page

RESULTS = removal_page.load()
PAGE = removal_page.DOCS / "removal.md"


def test_there_are_results() -> None:
    assert set(RESULTS) == set(removal_page.NAMES)
    assert {path.stem for path in removal_page.RESULTS.glob("*.json")} == set(RESULTS)


def test_the_page_is_what_the_results_give() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert text == removal_page.text(RESULTS)
    assert "not measured" not in text


@pytest.mark.parametrize("name", RESULTS)
def test_another_result_gives_another_page(name: str) -> None:
    for key in RESULTS[name]["facts"]:
        other = copy.deepcopy(RESULTS)
        other[name]["facts"][key] = "something else"
        assert removal_page.text(other) != removal_page.text(RESULTS)
    for key in RESULTS[name]["notes"]:
        other = copy.deepcopy(RESULTS)
        other[name]["notes"][key]["rows"][0][1] = "something else"
        assert removal_page.text(other) != removal_page.text(RESULTS)


@pytest.mark.parametrize("name", RESULTS)
def test_everything_measured_is_shown(name: str) -> None:
    words = (removal_page.WORDS / f"{name}.md").read_text(encoding="utf-8")
    measured, named = removal_page.fillings(name, RESULTS[name]), re.findall(r"\{(\w+)\}", words)
    assert set(named) <= set(measured)
    assert {key for key in measured if "__" not in key} <= set(named)  # cells of tables may be


def test_figures_exist_and_are_small() -> None:
    shown = re.findall(r"\]\((figures/[^)]+)\)", PAGE.read_text(encoding="utf-8"))
    assert len(shown) == sum(len(result["figures"]) for result in RESULTS.values())
    for file in shown:
        assert (PAGE.parent / file).stat().st_size < 150_000
    assert {Path(file).name for file in shown} == {
        path.name for path in (PAGE.parent / "figures").glob("removal-*.svg")
    }


def test_targets_are_met() -> None:
    for name in ("sms", "jigsaw"):
        assert float(RESULTS[name]["facts"]["ratio"]) <= 0.85
    assert float(RESULTS["sms"]["facts"]["worst_rise"]) <= 0.2
    for row in RESULTS["gaussians"]["notes"]["one"]["rows"]:
        assert row[4] == "yes"
