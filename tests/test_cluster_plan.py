"""The page about scale has the numbers that were counted, and the counts are those of the code."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="module")
def plan() -> Any:
    place = ROOT / "benchmarks" / "cluster_plan.py"
    spec = importlib.util.spec_from_file_location("cluster_plan", place)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["cluster_plan"] = module
    spec.loader.exec_module(module)
    return module


def test_the_page_has_what_was_counted(plan: Any) -> None:
    found = json.loads((plan.RESULTS / "cluster-plan.json").read_text(encoding="utf-8"))
    text = plan.PAGE.read_text(encoding="utf-8")
    assert plan.page(text, found) == text
    found["rows"] = {rows: {**cell, "KMeans": cell["GaussianNB"]} for rows, cell in
                     found["rows"].items()}  # fmt: skip
    assert plan.page(text, found) != text


def test_trips_do_not_depend_on_workers(plan: Any) -> None:
    """And the counts of the page are still those of the code, for the models of one size."""
    few, more = (plan.count(n_workers, 300, ["GaussianNB"]) for n_workers in (4, 12))
    counted = json.loads((plan.RESULTS / "cluster-plan.json").read_text(encoding="utf-8"))
    kept = counted["rows"]["300"]["GaussianNB"]
    for call in ("fit", "one"):
        assert few["GaussianNB"][call]["trips"] == more["GaussianNB"][call]["trips"]
        assert few["GaussianNB"][call]["trips"] == kept[call]["trips"]
    per_worker = few["GaussianNB"]["fit"]["sent"] / 4
    assert per_worker == pytest.approx(kept["fit"]["sent"] / counted["workers"], rel=0.1)
