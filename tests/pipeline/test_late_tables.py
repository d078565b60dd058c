"""Tables that a loaded pipeline makes only when somebody asks for them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

import erasable
from erasable.core.errors import ArtifactError, UnknownIdError
from erasable.feature_extraction import CountVectorizer, TfidfVectorizer
from erasable.linear_model import LogisticRegression, Ridge
from erasable.naive_bayes import MultinomialNB
from erasable.pipeline import Pipeline, make_pipeline
from erasable.pipeline._engine import Engine
from feature_extraction.corpus import make_texts
from naming import named

N = 60
LATE: list[Any] = [
    make_pipeline(TfidfVectorizer(), LogisticRegression()),
    make_pipeline(
        TfidfVectorizer(max_df=0.5, min_df=2), LogisticRegression(class_weight="balanced")
    ),
    make_pipeline(TfidfVectorizer(), MultinomialNB()),
    make_pipeline(TfidfVectorizer(smooth_idf=False), Ridge()),
]
EARLY: list[Any] = [
    make_pipeline(TfidfVectorizer(quantize=True), LogisticRegression()),
    make_pipeline(TfidfVectorizer(use_idf=False), LogisticRegression()),
    make_pipeline(CountVectorizer(), LogisticRegression()),
]


@pytest.fixture
def tables(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Of every table that was made: how many records were live."""
    made: list[int] = []
    tabulate = Engine._tabulate

    def counted(self: Any, table: Any) -> Any:
        made.append(self.held.n_live)
        return tabulate(self, table)

    monkeypatch.setattr(Engine, "_tabulate", counted)
    return made


def records(keep: Any = slice(None)) -> erasable.Records:
    texts = np.array(make_texts(N, 0), dtype=object)
    y = np.array([len(text) % 3 == 0 for text in texts]).astype(int)
    return erasable.Records(texts[keep].tolist(), y[keep], ids=np.arange(N)[keep])


def loaded(model: Pipeline, path: Path, *, vouched: bool = True) -> Any:
    clone(model).fit(records()).save(path)
    return erasable.load(path, records(), vouched=vouched)


@pytest.mark.parametrize("model", LATE, ids=named)
def test_the_table_of_before_is_not_made(model: Any, tables: list[int], tmp_path: Path) -> None:
    again = loaded(model, tmp_path / "model")
    tables.clear()
    for gone, left in (([3, 17], N - 2), ([5], N - 3)):
        again.delete(gone)
        assert tables.pop() == left
        assert not tables
    keep = np.delete(np.arange(N), [3, 5, 17])
    assert again.digest() == clone(model).fit(records(keep)).digest()


@pytest.mark.parametrize("model", EARLY, ids=named)
def test_a_table_that_is_corrected_is_made_before(
    model: Any, tables: list[int], tmp_path: Path
) -> None:
    again = loaded(model, tmp_path / "model")
    assert tables[-1] == N
    again.delete([3, 17])
    keep = np.delete(np.arange(N), [3, 17])
    assert again.digest() == clone(model).fit(records(keep)).digest()


@pytest.mark.parametrize("model", LATE[:1], ids=named)
def test_who_does_not_vouch_has_the_table_looked_at(
    model: Any, tables: list[int], tmp_path: Path
) -> None:
    loaded(model, tmp_path / "model", vouched=False)
    assert tables[-1] == N
    other = records()
    other.y = 1 - other.y
    with pytest.raises(ArtifactError, match="makes another"):
        erasable.load(tmp_path / "model", other)


@pytest.mark.parametrize("model", LATE, ids=named)
def test_a_deletion_that_fails_leaves_a_loaded_model_whole(
    model: Any, tables: list[int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    again = loaded(model, tmp_path / "model")
    before = again.digest()
    with pytest.raises(UnknownIdError):
        again.delete([N + 5])
    last = again[-1]

    def interrupted(*given: Any) -> Any:
        raise KeyboardInterrupt

    for part, name in ((again[0], "_find_change"), (last, "_follows")):
        with monkeypatch.context() as patched:
            patched.setattr(type(part), name, interrupted)
            with pytest.raises(KeyboardInterrupt):
                again.delete([3])
        assert again.digest() == before
    again.delete([3])
    keep = np.delete(np.arange(N), [3])
    assert again.digest() == clone(model).fit(records(keep)).digest()
