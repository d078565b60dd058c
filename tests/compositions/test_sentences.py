"""Compositions at random: each does what scikit-learn's does, and keeps the law.

`make soak` runs the same for minutes on other seeds: tests/soak/sentences.py.
"""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
import pandas as pd
import pytest
import sklearn.compose
import sklearn.linear_model
import sklearn.pipeline
import sklearn.preprocessing
import twins
from broken_split import split_twice
from grammar import OURS, Leaf, Row, Side, Writer, leaves
from sklearn.model_selection import GridSearchCV, KFold
from twins import UnlikeTwinError, hold

from erasable.compose import ColumnTransformer
from erasable.core.attachment import Attachment
from erasable.core.changes import TableChange, union
from erasable.linear_model import LogisticRegression
from erasable.model_selection import _leave_one_out
from erasable.pipeline import _engine, _layout, _maps, _nodes, make_pipeline
from erasable.preprocessing import OneHotEncoder, StandardScaler

COUNT, EACH = 350, 10


@pytest.mark.parametrize(
    "first",
    [
        pytest.param(first, marks=[pytest.mark.soak] if first % (9 * EACH) else [])
        for first in range(0, COUNT, EACH)
    ],
)
def test_compositions_are_like_scikit_learns_and_keep_the_law(first: int) -> None:
    failed = []
    for seed in range(first, first + EACH):
        try:
            hold(Writer(seed).write())
        except UnlikeTwinError as error:
            failed.append(str(error))
    assert not failed, "\n".join(failed)


@pytest.mark.soak
def test_sentences_have_every_estimator_and_every_shape() -> None:
    """Pipelines in both, column transformers in both, every kind of table and of choice."""
    used, found = set(), set()
    for seed in range(COUNT):
        sentence = Writer(seed).write()
        used |= {leaf.name for leaf in leaves(sentence.node)}
        found |= {sentence.kind, *_shapes(sentence.node, "")}
    elsewhere = {"ColumnTransformer", "Pipeline", "Embedding"}  # the last in tests/neural
    assert set(OURS) - elsewhere <= used
    assert found >= {
        "dense", "sparse", "pandas", "polars", "objects",
        "Row", "Row>Row", "Row>Side", "Row>Side>Row", "Row>Side>Side",
        "names", "places", "mask", "slice", "repeated", "permuted", "passthrough", "drop",
        "remainder passthrough", "remainder drop",
    }  # fmt: skip


def _shapes(node: Any, path: str) -> set[str]:
    if isinstance(node, str):
        return {node}
    if isinstance(node, Leaf):
        return set()
    here = f"{path}>{type(node).__name__}".strip(">")
    if isinstance(node, Row):
        return {here}.union(*(_shapes(step, here) for step in node.steps))
    assert isinstance(node, Side)
    told = {here, f"remainder {node.remainder}"}
    for part, columns in node.parts:
        told |= _shapes(part, here)
        if isinstance(columns, list):
            kinds = {type(column) for column in columns}
            told.add("names" if str in kinds else "mask" if bool in kinds else "places")
            if len(set(columns)) < len(columns) and bool not in kinds:
                told.add("repeated")
            if sorted(columns) != columns:
                told.add("permuted")
        elif isinstance(columns, slice):
            told.add("slice")
    return told


# -- negative controls: what is broken is found ----------------------------------------------------


_COMPOSE = _maps.compose


def _compose_backwards(maps: Any) -> Any:
    return _COMPOSE(list(reversed(list(maps))))


def _forgets_columns(told: Any) -> Any:
    return TableChange(union(told).rows)


BREAKS: dict[str, tuple[str, Any]] = {
    "the raw part is applied twice": ("split", split_twice),
    "maps are composed in the wrong order": ("compose", _compose_backwards),
    "columns that went are not told": ("union", _forgets_columns),
    "numbers beside text stay objects": ("as_numbers", lambda table, *_: table),
}


def _is_shown(fault: str) -> None:
    """Fail unless a sentence is unlike its twin, or breaks the law, because of a fault."""
    for seed in range(COUNT):
        try:
            hold(Writer(seed).write())
        except UnlikeTwinError:
            return
    pytest.fail(f"{COUNT} sentences do not show that {fault}")


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", BREAKS)
def test_a_fault_between_steps_is_found(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    attribute, broken = BREAKS[name]
    for module in (_layout, _nodes, _maps, _engine, _nodes):
        if hasattr(module, attribute):
            monkeypatch.setattr(module, attribute, broken)
    _is_shown(name)


def _keeps_one(self: Attachment, ids: Any, groups: Any) -> Any:
    rows = _SELECT(self, ids, groups)
    return rows if groups is None else rows[:-1]


def _without_nothing(model: Any, parts: Any) -> Any:
    for _ in parts:
        yield model


def _searches_another(estimator: Any, grid: Any, **options: Any) -> Any:
    return GridSearchCV(estimator, grid, **{**options, "cv": KFold(2)})


_SELECT = Attachment.select

OF_METHODS: dict[str, tuple[Any, str, Any]] = {
    "one of a group stays": (Attachment, "select", _keeps_one),
    "who is left out has been seen": (_leave_one_out, "each_without", _without_nothing),
    "a search scores another model": (twins, "GridSearchCV", _searches_another),
}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", OF_METHODS)
def test_a_fault_in_groups_and_searches_is_found(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    place, attribute, broken = OF_METHODS[name]
    monkeypatch.setattr(place, attribute, broken)
    _is_shown(name)


# -- the compositions that were reported -----------------------------------------------------------


@pytest.mark.parametrize("middle", ["Standard", "MinMax", "MaxAbs", "Robust"])
def test_a_scaler_behind_a_column_transformer(middle: str) -> None:
    """Hold to scikit-learn's score where the category alone decides."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.normal(size=300), "u": rng.choice(list("xyz"), 300)})
    y = (frame.u == "x").astype(int)

    def make(room: Any, encoder: Any, scaler: Any, row: Any, learner: Any) -> Any:
        columns = room([("n", scaler(), ["a"]), ("o", encoder(sparse_output=False), ["u"])])
        return row(columns, _class_of(scaler, middle)(), learner())

    ours = make(ColumnTransformer, OneHotEncoder, StandardScaler, make_pipeline, LogisticRegression)
    theirs = make(
        sklearn.compose.ColumnTransformer,
        sklearn.preprocessing.OneHotEncoder,
        sklearn.preprocessing.StandardScaler,
        sklearn.pipeline.make_pipeline,
        sklearn.linear_model.LogisticRegression,
    )
    assert ours.fit(frame, y).score(frame, y) == theirs.fit(frame, y).score(frame, y) == 1.0


def _class_of(scaler: Any, middle: str) -> Any:
    home = scaler.__module__.split(".")[0]
    return getattr(importlib.import_module(f"{home}.preprocessing"), f"{middle}Scaler")
