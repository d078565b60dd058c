"""Compositions at random are exported: `tests/compositions` draws them."""

from __future__ import annotations

import warnings
from typing import Any

import pytest
from grammar import Leaf, Sentence, Writer, build, leaves

from erasable.core.errors import ErasableError, ExportError
from same_answers import CLOSE, COARSE, DifferentAnswersError, compare

COUNT, EACH = 100, 10


def hold(sentence: Sentence) -> None:
    """Hold what a composition is exported to against it, on its records and on new rows."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of what is learned
        model = build(sentence.node).fit(sentence.X, sentence.y, ids=sentence.ids)
    if "SegmentedRegression" in _names(sentence):
        with pytest.raises(ExportError):
            model.to_sklearn()
        return
    exported = model.to_sklearn(records=True)
    close = COARSE if any("KMeans" in name for name in _names(sentence)) else CLOSE
    for rows in (sentence.X, sentence.fresh):
        try:
            getattr(model, "predict" if hasattr(model, "predict") else "transform")(rows)
        except ErasableError:  # a category that no record has
            continue
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Found unknown categories|Skipping features")
            compare(model, exported, rows, close)


def _names(sentence: Sentence) -> set[str]:
    return {leaf.name for leaf in leaves(sentence.node)}


@pytest.mark.parametrize("first", range(0, COUNT, EACH))
def test_compositions_are_exported(first: int) -> None:
    failed = []
    for seed in range(first, first + EACH):
        sentence = Writer(seed).write()
        try:
            hold(sentence)
        except DifferentAnswersError as error:
            failed.append(f"{error}: {sentence}")
    assert not failed, "\n".join(failed)


def test_a_composition_that_forgets_a_step_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """A negative control."""
    sentence = Writer(1).write()
    model = build(sentence.node).fit(sentence.X, sentence.y, ids=sentence.ids)
    exported: Any = model.to_sklearn()
    name = exported.steps[1][0]
    exported.steps[1] = (name, "passthrough")
    with pytest.raises(DifferentAnswersError):
        compare(model, exported, sentence.X)
    assert isinstance(leaves(sentence.node)[0], Leaf)
