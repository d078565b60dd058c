"""The page about scale has what was measured of selections by passes, and the script still runs."""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="module")
def script() -> Iterator[Any]:
    sys.path.insert(0, str(ROOT / "benchmarks"))
    yield importlib.import_module("stored_selection")
    sys.path.remove(str(ROOT / "benchmarks"))


def test_the_page_has_what_was_measured(script: Any) -> None:
    found = json.loads(script.RESULTS.read_text(encoding="utf-8"))
    text = script.PAGE.read_text(encoding="utf-8")
    assert script.page(text, found) == text
    found["sampled"]["trips"] += 1
    assert script.page(text, found) != text


@pytest.mark.filterwarnings("ignore")
def test_what_is_found_is_the_same_everywhere(script: Any, capsys: pytest.CaptureFixture) -> None:
    found = script.measure(2000, 3, 60, 8, 300)
    assert 8 <= found["sampled"]["passes"] <= found["sampled"]["trips"] <= 30
    assert found["all"]["seconds"].keys() == {"arrays", "memory", "files", "workers"}
    assert "8 of 60 candidates, 2,000 targets" in script.page(f"{script.BEGIN}{script.END}", found)


def test_a_difference_is_found(script: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The negative control: records of which some differ from place to place."""
    places = script.places

    def other(X: Any, folder: str) -> dict[str, Any]:
        return places(X, folder) | {"memory": script.Records(X[::-1].copy())}

    monkeypatch.setattr(script, "places", other)
    with pytest.raises(AssertionError, match="differs from place to place"):
        script.select(300, 3, 30, 5)
