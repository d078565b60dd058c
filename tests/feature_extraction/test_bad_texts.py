"""Texts and parameters that cannot be used are refused by name, on one line, and change nothing."""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone

from erasable import Records, load
from erasable.core.errors import (
    ArtifactError,
    ErasableError,
    InvalidDataError,
    InvalidInputError,
    InvalidParameterError,
    TooFewRecordsError,
)
from erasable.feature_extraction import CountVectorizer, TfidfVectorizer
from feature_extraction.corpus import lengths
from naming import named

TEXTS = ["a cat sat", "the dog", "the cat and the dog"]
both = pytest.mark.parametrize("model", [CountVectorizer(), TfidfVectorizer()])


def numbers(text: str) -> list[int]:
    return [len(word) for word in text.split()]


def _raises(error: type[Exception], told: str, call: Any, *args: Any, **kwargs: Any) -> None:
    with pytest.raises(error, match=told) as caught:
        call(*args, **kwargs)
    assert isinstance(caught.value, ErasableError)
    assert "\n" not in str(caught.value)
    assert "secret" not in str(caught.value)


@both
@pytest.mark.parametrize("new", [["secret", None], [3, "secret"]])
def test_texts_that_come_to_records_of_a_frame(model: Any, new: list[Any]) -> None:
    records = Records(pd.DataFrame({"text": TEXTS}))
    fitted = clone(model).fit(records)
    digest = fitted.digest()
    frame = pd.DataFrame({"text": np.array(new, object)})
    _raises(InvalidDataError, "1 of 2 documents are not strings", records.add, frame, ids=[90, 91])
    assert fitted.digest() == digest
    assert len(records) == len(TEXTS)


@both
@pytest.mark.parametrize(
    ("texts", "told"),
    [
        ("a secret text", "string object received|str object received"),
        ([], "no documents"),
        (["secret", None, 3.0], "2 of 3 documents are not strings"),
        ([b"secret"], "decode bytes"),
        (np.zeros((3, 2)), "not strings"),
        (pd.DataFrame({"text": ["secret"]}), "pass one column"),
    ],
)
def test_texts(model: Any, texts: Any, told: str) -> None:
    _raises(InvalidDataError, told, clone(model).fit, texts)
    fitted = clone(model).fit(TEXTS)
    digest = fitted.digest()
    _raises(InvalidDataError, told, fitted.fit, texts)
    assert fitted.digest() == digest
    if len(texts):
        _raises(InvalidDataError, told, fitted.transform, texts)


@both
@pytest.mark.parametrize(
    "texts", [np.array(TEXTS), pd.Series(TEXTS), pl.Series(TEXTS), tuple(TEXTS), Records(TEXTS)]
)
def test_containers_of_texts(model: Any, texts: Any) -> None:
    fitted = clone(model).fit(texts)
    assert fitted.digest() == clone(model).fit(TEXTS).digest()
    if not isinstance(texts, Records):
        assert fitted.transform(texts).shape == (3, 5)


@pytest.mark.parametrize(
    ("params", "told"),
    [
        ({"min_df": 0}, "'min_df'"),
        ({"max_df": 1.5}, "'max_df'"),
        ({"max_df": True}, "'max_df'"),
        ({"max_features": 0}, "'max_features'"),
        ({"min_df": 3, "max_df": 2}, "max_df=2 corresponds to < documents than min_df=3"),
        ({"min_df": 0.5, "max_df": 0.2}, "corresponds to <"),
        ({"analyzer": "sentence"}, "'analyzer'"),
        ({"ngram_range": (2, 1)}, "ngram_range=.* expected two integers"),
        ({"ngram_range": (0, 1)}, "ngram_range"),
        ({"ngram_range": (1, 2, 3)}, "ngram_range"),
        ({"ngram_range": (1, 2.5)}, "ngram_range"),
        ({"token_pattern": "("}, "no regular expression"),
        ({"token_pattern": r"(a)(b)"}, "More than 1 capturing group"),
        ({"token_pattern": None}, "token_pattern is None"),
        ({"stop_words": "klingon"}, "'stop_words'"),
        ({"stop_words": ["the", ["a"]]}, "stop_words holds"),
        ({"tokenizer": lambda text: text.split()}, "tokenizer is a function without a name"),
        ({"tokenizer": re.compile("[a-d]+").findall}, "tokenizer is a function without a name"),
        ({"analyzer": partial(str.split, sep=",")}, "analyzer is a function without a name"),
        ({"vocabulary": []}, "empty vocabulary"),
        ({"vocabulary": [1, 2]}, "other things than strings"),
        ({"vocabulary": ["cat", "cat"]}, "1 different ones"),
        ({"vocabulary": {"cat": 0, "dog": 0}}, "different columns"),
        ({"vocabulary": {"cat": 0, "dog": 2}}, "0, 1, 2"),
        ({"dtype": str}, "dtype"),
        ({"dtype": "no such type"}, "dtype"),
        ({"dtype": np.float16}, "dtype"),
    ],
    ids=named,
)
def test_parameters(params: dict[str, Any], told: str) -> None:
    for cls in (CountVectorizer, TfidfVectorizer):
        _raises(InvalidParameterError, told, cls(**params).fit, TEXTS)


def test_parameters_of_weights() -> None:
    _raises(InvalidParameterError, "'norm'", TfidfVectorizer(norm="max").fit, TEXTS)
    _raises(InvalidParameterError, "dtype is int64", TfidfVectorizer(dtype=np.int64).fit, TEXTS)
    _raises(InvalidInputError, "is a set", CountVectorizer(vocabulary={"cat"}).fit, TEXTS)
    assert not hasattr(TfidfVectorizer(use_idf=False).fit(TEXTS), "idf_")


def test_terms_that_cannot_be_kept() -> None:
    texts = ["secret \ud800word"]
    _raises(InvalidDataError, "lone surrogates", CountVectorizer(analyzer="char").fit, texts)
    _raises(InvalidDataError, "terms of type int", CountVectorizer(analyzer=numbers).fit, TEXTS)


@pytest.mark.parametrize(
    ("params", "texts", "gone", "told"),
    [
        ({}, ["cat", "! !", "?"], [0], "empty vocabulary.* stop words"),
        ({"stop_words": ["cat"]}, ["cat", "dog"], [1], "empty vocabulary"),
        ({"min_df": 2}, ["cat", "cat", "dog"], [1], "After pruning, no terms remain of 2 terms"),
        ({"max_df": 0.5}, ["cat", "cat", "dog"], [2], "After pruning"),
        (
            {"min_df": 2, "max_df": 0.5},
            ["cat"] * 2 + ["dog"] * 2,
            [3],
            "at most 1.5 and at least 2",
        ),
    ],
)
def test_deletions_that_would_leave_no_terms(
    params: dict[str, Any], texts: list[str], gone: list[int], told: str
) -> None:
    model = CountVectorizer(**params).fit(texts)
    digest, rows = model.digest(), model.transform(texts).toarray()
    _raises(TooFewRecordsError, told, model.delete, gone)
    assert model.digest() == digest
    assert np.array_equal(model.transform(texts).toarray(), rows)
    assert model.ids_.size == len(texts)
    left = [text for row, text in enumerate(texts) if row not in gone]
    _raises(TooFewRecordsError, told, CountVectorizer(**params).fit, left)
    kept = CountVectorizer(**params, vocabulary=["cat"]).fit(texts)
    kept.delete(gone)
    assert kept.ids_.size == len(left)


def test_inverse_transform_of_another_width() -> None:
    model = CountVectorizer().fit(TEXTS)
    _raises(InvalidDataError, "X has 2 columns; expected 5", model.inverse_transform, [[1, 2]])


def test_files(tmp_path: Path) -> None:
    model = TfidfVectorizer(ngram_range=(1, 2)).fit(TEXTS)
    model.save(tmp_path / "model")
    whole = load(tmp_path / "model", Records(TEXTS))
    whole.delete([0])
    model.delete([0])
    assert whole.digest() == model.digest()
    other = ["a cat sat", "the cow", "the cat and the dog"]
    _raises(ArtifactError, "makes another", load, tmp_path / "model", Records(other))
    named = CountVectorizer(analyzer=lengths).fit(TEXTS)
    named.save(tmp_path / "named")
    _raises(ArtifactError, "the function feature_extraction", load, tmp_path / "named")
