"""The notebooks of the gallery run, and show what their text says."""

from __future__ import annotations

import json
import runpy
from base64 import b64decode
from collections.abc import Callable
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pytest

from erasable.core.estimator import Erasable

GALLERY = Path(__file__).resolve().parent.parent / "docs" / "gallery"
Names = dict[str, Any]


def run(name: str, monkeypatch: pytest.MonkeyPatch) -> Names:
    """Run a notebook as a script; return its names, and as `axes` the last figure's."""
    plt.switch_backend("agg")
    monkeypatch.setattr(plt, "show", lambda: None)
    try:
        names = runpy.run_path(str(GALLERY / f"{name}.py"))
        assert plt.get_fignums()
    finally:
        plt.close("all")
    return names


def says_patient(names: Names) -> None:
    assert names["model"].digest() == names["never_seen"].digest()
    for path in names["paths"].values():
        assert len(path) == 9
        assert abs(path[1] - path[0]) < abs(path[8] - path[0]) / 3
    predicate = json.loads(b64decode(json.loads(names["receipt"])["envelope"]["payload"]))[
        "predicate"
    ]
    assert (predicate["outcome"], predicate["records"]) == ("erased", 8)
    assert names["leaving"] not in json.dumps(predicate)
    assert names["by_visit"] > names["by_patient"] + 0.02


def says_customer(names: Names) -> None:
    before, after, left = names["before"], names["after"], names["gaps"].drop("c0017")
    assert after["median of fee"] == left["fee"].median()
    assert after["mean of hours"] == pytest.approx(
        left["hours"].fillna(left["hours"].median()).mean()
    )
    assert after["mean of hours"] != before["mean of hours"]
    assert (before["countries"], after["countries"]) == ("AT, CH, DE, LI", "AT, CH, DE")
    assert names["learned"](names["model"])["countries"] == "AT, CH, DE, LI"  # one has come
    assert np.median(names["deletions"]) < np.median(names["fits"])


def says_author(names: Names) -> None:
    assert names["words_before"] - names["words_after"] == {*names["own_words"][names["leaving"]]}
    assert names["sure"](["", names["signature"]]).tolist() == [names["sure"]([""])[0]] * 2
    assert (names["after"] < names["before"]).all()


def says_spam(names: Names) -> None:
    chosen, random = (
        [each.after["predicted_forget"] for each in found] for found in names["found"].values()
    )
    assert chosen[3] < random[4]  # 60 % chosen do more than 80 % at random


def says_selection(names: Names) -> None:
    mean = {name: np.mean(values) for name, values in names["results"].items()}
    assert mean["anticipating"] > max(mean["conventional"], mean["random"])
    ours, theirs = names["anticipating"], names["conventional"]
    assert float(ours.value(staying=1.0)) < float(theirs.value(staying=1.0))


def says_network_audit(names: Names) -> None:
    verdicts = {name: report.verdict for name, report in names["reports"].items()}
    expected = {"nothing done": "found", "trained longer": "found", "trained again": "not found"}
    assert verdicts == expected


SAYS: dict[str, Callable[[Names], None]] = {
    path.stem: globals()[f"says_{path.stem}"] for path in GALLERY.glob("*.py")
}


@pytest.mark.parametrize("name", sorted(SAYS))
def test_a_notebook_shows_what_it_says(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if "import torch" in (GALLERY / f"{name}.py").read_text(encoding="utf-8"):
        pytest.importorskip("torch", reason="torch is not installed: pip install torch")
    SAYS[name](run(name, monkeypatch))


def test_what_a_notebook_should_not_say_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    delete = Erasable.delete
    monkeypatch.setattr(
        Erasable, "delete", lambda self, ids=None, **more: delete(self, [self.ids_[0]])
    )
    with pytest.raises(AssertionError):
        says_author(run("author", monkeypatch))
