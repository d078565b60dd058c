"""The vectorizers against scikit-learn's: the same terms, the same numbers, the same interface."""

from __future__ import annotations

from typing import Any

import mpmath
import numpy as np
import pytest
import scipy.sparse as sp
import sklearn
import sklearn.feature_extraction.text as sk
from hypothesis import given, settings
from scipy.sparse import csr_array
from sklearn.exceptions import NotFittedError
from sklearn.utils.estimator_checks import check_estimator

from effort import examples
from erasable.core.errors import TooFewRecordsError
from erasable.feature_extraction import CountVectorizer, TfidfVectorizer
from feature_extraction.corpus import as_dict, corpora, halves, lengths, make_texts, no_vowels

COUNTS: list[dict[str, Any]] = [
    {},
    {"lowercase": False, "ngram_range": (1, 3)},
    {"strip_accents": "unicode", "stop_words": "english"},
    {"strip_accents": "ascii", "binary": True, "dtype": np.float32},
    {"analyzer": "char", "ngram_range": (2, 3), "min_df": 2},
    {"analyzer": "char_wb", "ngram_range": (1, 4), "max_df": 0.5},
    {"analyzer": lengths},
    {"tokenizer": halves, "token_pattern": None, "preprocessor": no_vowels},
    {"token_pattern": r"(?u)\b(\w)\w*\b", "stop_words": ["t", "s"]},
    {"vocabulary": ["hat", "nowhere", "cat"], "min_df": 3, "max_features": 1},
    {"vocabulary": {"dog": 1, "the": 0}, "binary": True},
    {"min_df": 0.1, "max_df": 0.6},
    {"min_df": 2, "max_df": 8, "dtype": np.int32},
]
WEIGHTS: list[dict[str, Any]] = [
    {},
    {"norm": "l1"},
    {"norm": None, "sublinear_tf": True},
    {"use_idf": False},
    {"smooth_idf": False, "min_df": 2},
    {"dtype": np.float32, "ngram_range": (1, 2)},
    {"vocabulary": ["hat", "nowhere", "cat"]},
    {"binary": True, "max_df": 0.5},
]
BOTH = [
    *((CountVectorizer(**p), sk.CountVectorizer(**p)) for p in COUNTS),
    *((TfidfVectorizer(**p), sk.TfidfVectorizer(**p)) for p in WEIGHTS),
]
each_pair = pytest.mark.parametrize(("ours", "theirs"), BOTH, ids=lambda e: type(e).__name__)


@pytest.mark.filterwarnings("ignore:Upper case characters", "ignore:Your stop_words")
@each_pair
@settings(max_examples=examples(25))
@given(texts=corpora())
def test_the_same_terms_and_numbers(ours: Any, theirs: Any, texts: list[str]) -> None:
    try:
        expected = theirs.fit_transform(texts)
    except ValueError:
        with pytest.raises(TooFewRecordsError):
            ours.fit(texts)
        return
    made = ours.fit_transform(texts)
    assert ours.vocabulary_ == theirs.vocabulary_
    assert ours.get_feature_names_out().tolist() == theirs.get_feature_names_out().tolist()
    assert ours.fixed_vocabulary_ == theirs.fixed_vocabulary_
    assert made.dtype == expected.dtype
    assert made.shape == expected.shape
    assert type(made) is type(expected)
    tolerance = 1e-6 if made.dtype == np.float32 else 1e-12
    np.testing.assert_allclose(made.toarray(), expected.toarray(), rtol=tolerance, atol=0)
    expected.sort_indices()
    assert made.indices.tolist() == expected.indices.tolist()
    again = ours.transform(texts)
    assert again.toarray().tobytes() == made.toarray().tobytes()
    fresh = ["a new hat, and the cats", "nothing", *texts[:1]]
    np.testing.assert_allclose(
        ours.transform(fresh).toarray(), theirs.transform(fresh).toarray(), rtol=tolerance, atol=0
    )
    if hasattr(theirs, "idf_") and ours.use_idf:
        np.testing.assert_allclose(ours.idf_, theirs.idf_, rtol=1e-6 if tolerance > 1e-9 else 1e-14)
    mine = [sorted(found.tolist()) for found in ours.inverse_transform(made)]
    assert mine == [sorted(found.tolist()) for found in theirs.inverse_transform(expected)]
    assert [sorted(f.tolist()) for f in ours.inverse_transform(made.toarray())] == mine


@pytest.mark.parametrize("texts", [make_texts(60, seed) for seed in range(4)])
def test_the_most_used_terms_stay_and_ties_go_by_the_alphabet(texts: list[str]) -> None:
    every = sk.CountVectorizer().fit(texts)
    totals = np.asarray(every.transform(texts).sum(axis=0)).ravel()
    by_use = sorted(zip(-totals, every.get_feature_names_out(), strict=True))
    for limit in (1, 4, len(totals) - 1, len(totals), 10**6):
        ours = CountVectorizer(max_features=limit).fit(texts)
        wanted = sorted(term for _, term in by_use[:limit])
        assert ours.get_feature_names_out().tolist() == wanted


def test_logarithms_against_mpmath() -> None:
    texts = make_texts(300, 1)
    model = TfidfVectorizer().fit(texts)
    df = CountVectorizer(binary=True).fit_transform(texts).sum(axis=0)
    with mpmath.workprec(120):
        exact = [mpmath.log(mpmath.mpf(301) / (int(n) + 1)) + 1 for n in np.ravel(df)]
        worst = max(
            abs(mpmath.mpf(mine) / right - 1)
            for mine, right in zip(model.idf_.tolist(), exact, strict=True)
        )
    assert worst < 4 * 2.0**-53


def test_quantised_weights_are_near_the_exact_ones() -> None:
    texts = make_texts(200, 3)
    exact, rough = TfidfVectorizer(norm=None), TfidfVectorizer(norm=None, quantize=True)
    exact.fit(texts), rough.fit(texts)
    assert np.abs(exact.idf_ - rough.idf_).max() <= 1 / 8
    assert np.array_equal(rough.idf_ * 8, np.rint(rough.idf_ * 8))


def test_a_term_that_nobody_has_counts_as_if_one_had() -> None:
    model = TfidfVectorizer(vocabulary=["cat", "yeti"], smooth_idf=False, norm=None)
    model.fit(["a cat", "the cat", "dog"])
    np.testing.assert_allclose(model.idf_, [np.log(3 / 2) + 1, np.log(3) + 1], rtol=1e-15)
    assert np.isfinite(model.transform(["yeti"]).toarray()).all()


@pytest.mark.parametrize("model", [CountVectorizer(), TfidfVectorizer()])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
def test_scikit_learn_contract(model: Any) -> None:
    """Most of it is skipped: it has no data for estimators that read texts."""
    check_estimator(model)


def test_arrays_or_matrices_as_scikit_learn_is_configured() -> None:
    model = CountVectorizer().fit(["a cat"])
    if "sparse_interface" not in sklearn.get_config():
        assert isinstance(model.transform(["cat"]), sp.csr_matrix)
        return
    with sklearn.config_context(sparse_interface="sparray"):
        made = model.transform(["cat"])
        assert isinstance(made, csr_array)
        assert not isinstance(made, sp.csr_matrix)
    with sklearn.config_context(sparse_interface="spmatrix"):
        assert isinstance(model.transform(["cat"]), sp.csr_matrix)


@pytest.mark.parametrize("params", COUNTS[:9])
def test_how_texts_are_cut(params: dict[str, Any]) -> None:
    ours, theirs = CountVectorizer(**params), sk.CountVectorizer(**params)
    text = "The Cat's été, and 42 straße"
    assert ours.build_preprocessor()(text) == theirs.build_preprocessor()(text)
    assert ours.build_tokenizer()(text) == theirs.build_tokenizer()(text)
    assert ours.build_analyzer()(text) == theirs.build_analyzer()(text)
    assert ours.get_stop_words() == theirs.get_stop_words()


@pytest.mark.parametrize("model", [CountVectorizer(), TfidfVectorizer()])
def test_nothing_works_before_fit(model: Any) -> None:
    for call in (model.transform, model.inverse_transform):
        with pytest.raises(NotFittedError):
            call(["a cat"])
    with pytest.raises(NotFittedError):
        model.get_feature_names_out()
    for name in ("vocabulary_", "fixed_vocabulary_", "idf_"):
        assert not hasattr(model, name)


def test_what_is_returned_is_a_copy() -> None:
    model = TfidfVectorizer().fit(["a cat", "the dog"])
    digest, rows = model.digest(), model.transform(["cat dog"]).toarray()
    model.get_feature_names_out()[:] = "gone"
    model.vocabulary_.clear()
    model.idf_[:] = 0
    model.transform(["cat"]).data[:] = 9
    assert model.digest() == digest
    assert model.transform(["cat dog"]).toarray().tobytes() == rows.tobytes()
    assert as_dict(model, ["cat"]) == [{"cat": 1.0}]


def test_it_works_in_a_pipeline_of_scikit_learn() -> None:
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline

    texts = make_texts(40, 5)
    y = ["cat" in text for text in texts]
    ours = make_pipeline(TfidfVectorizer(), LogisticRegression()).fit(texts, y)
    theirs = make_pipeline(sk.TfidfVectorizer(), LogisticRegression()).fit(texts, y)
    assert ours.predict(texts).tolist() == theirs.predict(texts).tolist()
