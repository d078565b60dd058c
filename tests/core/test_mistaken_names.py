"""Who takes a group for an id, or an id for a group, is asked whether the other was meant."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.tree import DecisionTreeClassifier

import erasable
from erasable.compose import make_column_transformer
from erasable.core.errors import UnknownIdError
from erasable.core.records import Records
from erasable.ensemble import BaggingClassifier, ShardedClassifier
from erasable.naive_bayes import GaussianNB
from erasable.pipeline import make_pipeline
from erasable.preprocessing import StandardScaler

N = 24
X = np.arange(2.0 * N).reshape(N, 2) % 7
Y = np.arange(N) % 2
PEOPLE = [f"person-{i // 2}" for i in range(N)]
NUMBERS = [1000 + i // 2 for i in range(N)]
VISITS = [f"visit-{i}" for i in range(N)]
TREE = DecisionTreeClassifier(max_depth=2, random_state=0)
ASKS = "did you mean {}=?"

MODELS: dict[str, Callable[[], Any]] = {
    "naive bayes": GaussianNB,
    "pipeline": lambda: make_pipeline(StandardScaler(), GaussianNB()),
    "columns": lambda: make_pipeline(
        make_column_transformer((StandardScaler(), [0]), remainder="passthrough"), GaussianNB()
    ),
    "shards": lambda: ShardedClassifier(TREE, n_shards=2, random_state=0),
    "bags": lambda: BaggingClassifier(TREE, n_estimators=2, random_state=0),
    "refit": lambda: erasable.Refit(TREE),
}


def told(model: Any, **wanted: Any) -> str:
    before = model.digest()
    with pytest.raises(UnknownIdError) as raised:
        model.delete(**wanted)
    assert model.digest() == before
    return str(raised.value)


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize(
    ("ids", "groups"), [(None, PEOPLE), (VISITS, PEOPLE), (VISITS, NUMBERS), (None, NUMBERS)]
)
def test_a_group_is_asked_for_as_one(name: str, ids: Any, groups: list[Any]) -> None:
    model = MODELS[name]().fit(X, Y, ids=ids, groups=groups)
    said = told(model, ids=[groups[4]])
    assert ASKS.format("groups") in said
    assert "pass integers" not in said
    assert "pass strings" not in said
    model.delete(groups=[groups[4]])
    assert model.state()["n_records"] == N - 2


@pytest.mark.parametrize("name", MODELS)
def test_an_id_is_asked_for_as_one(name: str) -> None:
    model = MODELS[name]().fit(X, Y, ids=VISITS, groups=NUMBERS)
    assert ASKS.format("ids") in told(model, groups=["visit-4"])
    model.delete(["visit-4"])


def test_a_model_of_a_file_asks_too(tmp_path: Path) -> None:
    GaussianNB().fit(X, Y, groups=PEOPLE).save(tmp_path / "model")
    model = erasable.load(tmp_path / "model", Records(X, Y, groups=PEOPLE))
    assert ASKS.format("groups") in told(model, ids=["person-4"])


def test_it_says_which_of_them() -> None:
    model = GaussianNB().fit(X, Y, ids=VISITS, groups=PEOPLE)
    said = told(model, ids=["visit-1", "person-2", "visit-99", "person-3"])
    assert "3 of the ids are not in the model: 'person-2', 'visit-99', 'person-3'" in said
    assert said.endswith("did you mean groups=? 'person-2', 'person-3' are groups of the model")


@pytest.mark.parametrize(
    ("ids", "groups", "wanted"),
    [
        (VISITS, PEOPLE, {"ids": ["person-99"]}),  # nobody
        (VISITS, PEOPLE, {"groups": ["visit-99"]}),
        (None, PEOPLE, {"ids": [99]}),
        (VISITS, NUMBERS, {"ids": ["1000"]}),  # text is no number
        (None, None, {"ids": ["person-4"]}),  # there are no groups
        (VISITS, None, {"ids": ["person-4"]}),
    ],
)
def test_nothing_is_asked_of_what_is_neither(ids: Any, groups: Any, wanted: Any) -> None:
    """The negative control."""
    model = GaussianNB().fit(X, Y, ids=ids, groups=groups)
    assert "did you mean" not in told(model, **wanted)


def test_nothing_is_asked_of_who_is_gone() -> None:
    model = GaussianNB().fit(X, Y, ids=VISITS, groups=PEOPLE)
    model.delete(["visit-8"])
    assert ASKS.format("groups") in told(model, ids=["person-4"])  # visit-9 is left
    model.delete(["visit-9"])
    assert "did you mean" not in told(model, ids=["person-4"])
    assert "did you mean" not in told(model, groups=["visit-8"])


def test_without_types_it_says_what_it_did() -> None:
    model = GaussianNB().fit(X, Y, groups=PEOPLE)
    assert "pass integers" in told(model, ids=["nobody"])
