"""Canaries are found before a deletion, and not after it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.tree import DecisionTreeClassifier

from erasable.audit import audit_canaries, make_canaries
from erasable.core.errors import InvalidDataError, InvalidParameterError
from erasable.feature_extraction import TfidfVectorizer
from erasable.linear_model import LogisticRegression
from erasable.neighbors import KNeighborsClassifier
from erasable.pipeline import make_pipeline

source = np.random.default_rng(0)
TABLE = source.normal(size=(300, 5))
IMAGES = source.integers(0, 256, (300, 6, 6), dtype=np.uint8)
TEXTS = [" ".join(words) for words in source.choice(["red", "blue", "sky", "sea"], (300, 5))]
y = source.integers(0, 3, 300)
FRAME = pd.DataFrame({"age": source.integers(18, 90, 300), "town": source.choice(["U", "A"], 300)})


@pytest.mark.parametrize(
    "X", [TABLE, IMAGES, TEXTS, FRAME], ids=["table", "images", "texts", "frame"]
)
def test_they_look_like_records(X: Any) -> None:
    canaries = make_canaries(X, y, 20, random_state=0)
    marked, targets, rows = canaries.insert(X, y)
    assert len(marked) == len(targets) == 320
    assert rows.tolist() == list(range(300, 320))
    assert set(targets[rows]) <= set(y)
    assert targets.dtype == y.dtype
    both = {*canaries.inserted.ids, *canaries.held_back.ids}
    assert len(both) == 40
    if isinstance(X, np.ndarray):
        assert marked.dtype == X.dtype
        assert marked[rows].min() >= X.min()
        assert marked[rows].max() <= X.max()
    if isinstance(X, pd.DataFrame):
        assert list(marked.columns) == ["age", "town"]
        assert marked["age"].dtype == X["age"].dtype
        assert set(marked["town"][rows]) <= {"U", "A"}


def models() -> dict[str, tuple[Any, Any]]:
    """Return models of erasable that learn by heart, and what they learn from."""
    return {
        "neighbours": (KNeighborsClassifier(n_neighbors=1), TABLE),
        "text": (make_pipeline(TfidfVectorizer(), LogisticRegression(C=1000.0)), TEXTS),
    }


@pytest.mark.parametrize("name", models())
def test_a_deletion_takes_them_away(name: str) -> None:
    model, X = models()[name]
    canaries = make_canaries(X, y, random_state=1)
    marked, targets, rows = canaries.insert(X, y)
    before = model.fit(marked, targets)
    assert audit_canaries(before, canaries).verdict == "found"  # that which has not deleted
    _, X = models()[name]
    after = models()[name][0].fit(marked, targets)
    after.delete(rows)
    report = audit_canaries(after, canaries, before=before)
    assert report.verdict == "not found"
    assert report["before the deletion"].separation is not None
    assert report["before the deletion"].separation.area > 0.8


def test_a_model_that_never_knew_them_proves_nothing() -> None:
    canaries = make_canaries(TABLE, y, random_state=1)
    stump = DecisionTreeClassifier(max_depth=1).fit(TABLE, y)
    report = audit_canaries(stump, canaries, before=stump)
    assert report.verdict == "cannot tell"
    assert "did not know" in report.sentence


def test_false_alarms_are_as_rare_as_said() -> None:
    model = DecisionTreeClassifier(random_state=0).fit(TABLE, y)
    alarms = [
        audit_canaries(model, make_canaries(TABLE, y, 20, random_state=k)).verdict == "found"
        for k in range(200)
    ]
    assert sum(alarms) <= 20  # of 200 at 0.05: more have a probability of 0.001


def test_targets_of_a_regression_are_drawn_from_its_values() -> None:
    values = source.normal(size=300)
    canaries = make_canaries(TABLE, values, 10, random_state=0)
    assert set(canaries.inserted.y) <= set(values)


def test_bad_input_is_refused() -> None:
    from scipy.sparse import csr_array

    with pytest.raises(InvalidParameterError, match="n is 3"):
        make_canaries(TABLE, y, 3)
    with pytest.raises(InvalidDataError, match="sparse"):
        make_canaries(csr_array(TABLE), y)
    with pytest.raises(InvalidParameterError, match="level"):
        audit_canaries(None, make_canaries(TABLE, y, 4), level=0.0)
    with pytest.raises(InvalidParameterError, match="power is 3"):
        audit_canaries(None, make_canaries(TABLE, y, 4), power=3)
    with pytest.raises(InvalidParameterError, match="expected what make_canaries returned"):
        audit_canaries(None, "canaries")  # type: ignore[arg-type]


@pytest.mark.parametrize("gap", [None, float("nan")])
def test_targets_with_gaps_make_no_canaries(gap: Any) -> None:
    y = [gap, *np.arange(39.0)]
    with pytest.raises(InvalidDataError, match="y has 1 gaps in 40 targets"):
        make_canaries(np.zeros((40, 2)), y, 5, random_state=0)
