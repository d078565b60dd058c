"""The vectorizers forget: the law on texts, and what comes and goes with a deletion."""

from __future__ import annotations

import gc
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array
from sklearn.base import clone

from effort import examples
from erasable import Records, load
from erasable.core.errors import TooFewRecordsError
from erasable.feature_extraction import CountVectorizer, TfidfVectorizer, _vectorizer
from erasable.feature_extraction._counts import TermCounts
from erasable.utils._checks.compare import assert_same
from erasable.utils._checks.reach import reachable
from erasable.utils.estimator_checks import parametrize_with_law_checks
from feature_extraction.corpus import corpora, lengths, make_texts
from law_cases import check_law_of_variant, of_variants
from naming import named

VARIANTS: list[Any] = [
    CountVectorizer(),
    CountVectorizer(ngram_range=(1, 2), min_df=2, binary=True),
    CountVectorizer(max_features=5, max_df=0.4),
    CountVectorizer(analyzer=lengths, max_df=12),
    CountVectorizer(tokenizer=str.split, token_pattern=None),
    CountVectorizer(vocabulary=["hat", "nowhere", "cat"]),
    TfidfVectorizer(),
    TfidfVectorizer(min_df=0.05, max_df=0.5, norm="l1", sublinear_tf=True),
    TfidfVectorizer(max_features=7, smooth_idf=False, norm=None),
    TfidfVectorizer(quantize=True, min_df=2),
    TfidfVectorizer(use_idf=False, max_df=0.3),
    TfidfVectorizer(vocabulary={"dog": 1, "the": 0}),
]
each_variant = pytest.mark.parametrize("model", VARIANTS, ids=named)


@pytest.mark.thorough
@of_variants(
    parametrize_with_law_checks(
        [CountVectorizer(max_df=0.9), TfidfVectorizer(max_df=0.6, max_features=30)], fast=True
    )
)
def test_law(estimator: Any, check: Any) -> None:
    check_law_of_variant(estimator, check)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("models")


@each_variant
@settings(max_examples=examples(25))
@given(texts=corpora(), data=st.data())
def test_after_deletions_the_vectorizer_is_a_refit(
    model: Any, folder: Path, texts: list[str], data: st.DataObject
) -> None:
    table = np.array([*texts, None], dtype=object)[:-1]
    ids = np.arange(100, 100 + len(table))
    try:
        model = clone(model).fit(table, ids=ids)
    except TooFewRecordsError:
        return
    order = data.draw(st.permutations(range(len(table))))
    alive = np.ones(len(table), dtype=bool)
    start = 0
    while start < len(order) - 1:
        stop = data.draw(st.integers(start + 1, len(order) - 1))
        rows, start = np.array(order[start:stop]), stop
        if data.draw(st.booleans()):
            model = pickle.loads(pickle.dumps(model))
        before = _seen(model)
        alive[rows] = False
        left = np.flatnonzero(alive)[::-1]
        try:
            model.delete(ids[rows])
        except TooFewRecordsError:
            with pytest.raises(TooFewRecordsError):
                clone(model).fit(table[left], ids=ids[left])
            alive[rows] = True
            assert _same(before, _seen(model))
            continue
        refit = clone(model).fit(table[left], ids=ids[left])
        assert_same(model, refit, "from a refit")
        expected = refit.transform(table).toarray()
        assert model.transform(table).toarray().tobytes() == expected.tobytes()
        held = model._transform_held(model._held.live_rows())
        assert held.has_canonical_format
        assert held.toarray().tobytes() == expected[model.ids_ - 100].tobytes()
        _assert_told(model, before)
    model.save(folder / "model")
    own = callable(model.analyzer) or callable(model.tokenizer)  # which no file carries
    again = model if own else load(folder / "model")
    assert again.digest() == model.digest()
    assert again.transform(table).toarray().tobytes() == model.transform(table).toarray().tobytes()


def _seen(model: Any) -> tuple[Any, ...]:
    live = np.flatnonzero(model._held.live)
    rows = np.zeros((model._held.live.size, model.get_feature_names_out().size))
    rows[live] = model._transform_held(live).toarray()
    return model.digest(), model.get_feature_names_out(), rows, model._held.live.copy()


def _same(one: tuple[Any, ...], two: tuple[Any, ...]) -> bool:
    return one[0] == two[0] and all(
        np.array_equal(x, y) for x, y in zip(one[1:], two[1:], strict=True)
    )


def _assert_told(model: Any, before: tuple[Any, ...]) -> None:
    """What a pipeline is told of a deletion is what happened."""
    _, terms, rows, _ = before
    _, after_terms, after, alive = _seen(model)
    origin = model._output_change().origin
    if origin is None:
        origin = np.arange(terms.size)
        assert terms.tolist() == after_terms.tolist()
    assert origin.shape == after_terms.shape
    old = np.where(origin[:, None] >= 0, terms[origin][:, None], "")[:, 0]
    kept = origin >= 0
    assert old[kept].tolist() == after_terms[kept].tolist()
    assert not set(after_terms[~kept]) & set(terms)
    moved = np.where(kept, rows[:, origin], 0.0)
    changed = (moved != after) & alive[:, None]
    if model._output_change().columns is not None:
        assert not changed[:, ~model._output_change().columns].any()
    if model._output_change().rows is not None:
        others = np.setdiff1d(np.arange(len(rows)), model._output_change().rows)
        assert not changed[others].any()
        assert alive[model._output_change().rows].all()
    if type(model) is CountVectorizer:
        assert changed.any(axis=1).nonzero()[0].tolist() == model._output_change().rows.tolist()


class Remembers(TfidfVectorizer, auto_wrap_output_keys=None):
    """Takes deleted documents for a part of n: an idf that remembers."""

    def _fit_rows(self) -> None:
        super()._fit_rows()
        self._first = self._n_records

    def _rarity(self, counts: Any, n_documents: int) -> Any:
        return super()._rarity(counts, self._first)


def test_an_idf_that_remembers_is_noticed() -> None:
    texts = make_texts(20, 0)
    model, refit = Remembers().fit(texts), Remembers().fit(texts[1:], ids=range(1, 20))
    model.delete([0])
    assert not np.array_equal(model.transform(texts).toarray(), refit.transform(texts).toarray())
    with pytest.raises(AssertionError):
        _assert_refit(model, TfidfVectorizer(), texts, 1)


def _assert_refit(model: Any, blank: Any, texts: list[str], n_gone: int) -> None:
    refit = blank.fit(texts[n_gone:], ids=range(n_gone, len(texts)))
    assert model.transform(texts).toarray().tobytes() == refit.transform(texts).toarray().tobytes()


def test_a_vocabulary_that_remembers_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = ["zebra zebra", "cat", "cat dog"]
    model = CountVectorizer().fit(texts)
    monkeypatch.setattr(model, "_choose", lambda df, tf, n_gone=0: np.arange(df.size))
    model.delete([0])
    refit = CountVectorizer().fit(texts[1:], ids=[1, 2])
    with pytest.raises(AssertionError, match="document_counts"):
        assert_same(model, refit, "from a refit")


# --------------------------------------------------------------------------- what comes and goes


def test_a_word_goes_with_its_last_document() -> None:
    model = CountVectorizer().fit(["zebra cat", "zebra", "cat"], ids=["a", "b", "c"])
    model.delete(["a"])
    assert model.vocabulary_ == {"cat": 0, "zebra": 1}
    assert model.delete(["b"]).counts["terms_dropped"] == 1
    assert model.vocabulary_ == {"cat": 0}
    assert model._output_change().origin.tolist() == [0]
    assert model.transform(["zebra"]).toarray().tolist() == [[0]]


def test_a_word_comes_back_when_it_is_no_longer_too_frequent() -> None:
    texts = ["the cat", "the dog", "the hat", "cat dog hat", "cat"]
    model = CountVectorizer(max_df=0.5).fit(texts)
    assert "the" not in model.vocabulary_
    model.delete([0, 1])
    assert model.get_feature_names_out().tolist() == ["dog", "the"]
    model.delete([4])
    assert model.get_feature_names_out().tolist() == ["cat", "dog", "the"]
    assert model._output_change().origin.tolist() == [-1, 0, 1]
    assert model._output_change().columns.tolist() == [True, False, False]
    assert model._output_change().rows.tolist() == [3]


def test_a_word_takes_the_place_of_one_that_was_used_more() -> None:
    model = CountVectorizer(max_features=1).fit(["cat cat cat", "dog dog", "cat"])
    assert model.vocabulary_ == {"cat": 0}
    model.delete([0])
    assert model.vocabulary_ == {"dog": 0}


def test_quantised_weights_change_in_few_rows() -> None:
    texts = make_texts(1000, 8)
    model = TfidfVectorizer(quantize=True).fit(texts)
    changed = []
    for row in range(25):
        before = model.transform(texts[25:])
        model.delete([row], digest=False)
        after = model.transform(texts[25:])
        rows = model._output_change().rows
        if rows is not None:
            same = np.setdiff1d(np.arange(25, 1000), rows) - 25
            assert (before[same] != after[same]).nnz == 0
        changed.append(1000 if rows is None else rows.size)
    assert np.median(changed) < 30


@each_variant
def test_nothing_is_left_of_a_deleted_text(model: Any) -> None:
    texts = [*make_texts(50, 1), "xylophone xylophone quark xylophone cat", *make_texts(50, 2)]
    records = Records(texts)
    model = clone(model).fit(records)
    model.transform(texts)
    model.vocabulary_  # noqa: B018 what is made when asked for must not stay
    model.delete([50])
    for thing in (model, records, pickle.loads(pickle.dumps(model))):
        for path, part in reachable(thing):
            if isinstance(part, str):
                assert "xylo" not in part, path
                assert "quark" not in part, path
    counts = model._accelerator.rows
    assert not counts.counts[counts.indptr[50] : counts.indptr[51]].any()
    assert not counts.columns[counts.indptr[50] : counts.indptr[51]].any()


def test_no_document_is_read_by_a_deletion(monkeypatch: pytest.MonkeyPatch) -> None:
    model = TfidfVectorizer().fit(make_texts(30, 4))

    def refuse(self: Any) -> Any:
        raise AssertionError("a document was cut")

    monkeypatch.setattr(type(model._tool), "build_analyzer", refuse)
    model.delete([3, 4])
    model._transform_held(np.arange(5, 30))
    with pytest.raises(AssertionError, match="was cut"):
        model.transform(["cat"])


@pytest.mark.parametrize("model", [CountVectorizer(max_df=0.9), TfidfVectorizer(binary=True)])
def test_parameters_set_after_fit_concern_the_next_fit(model: Any) -> None:
    texts = make_texts(30, 6)
    model, refit = clone(model).fit(texts), clone(model).fit(texts[1:], ids=range(1, 30))
    rest = {"min_df": 5, "binary": not model.binary, "lowercase": False}
    model.set_params(**rest)
    model.delete([0])
    assert model.digest() == refit.digest()
    assert model.transform(texts).toarray().tobytes() == refit.transform(texts).toarray().tobytes()


def test_the_real_messages(data_dir: Path) -> None:
    import gzip

    file = data_dir / "sms_spam" / "SMSSpamCollection.tsv.gz"
    if not file.exists():
        pytest.skip("no SMS data")
    with gzip.open(file, "rt", encoding="utf-8") as lines:
        texts = [line.rstrip("\n").partition("\t")[2] for line in lines]
    model = TfidfVectorizer().fit(texts)
    gone = np.random.default_rng(0).permutation(len(texts))[:400]
    for row in gone[:100].tolist():
        model.delete([row], digest=False)
    model.delete(gone[100:])
    rest = np.setdiff1d(np.arange(len(texts)), gone)
    refit = TfidfVectorizer().fit([texts[row] for row in rest], ids=rest)
    assert model.digest() == refit.digest()
    mine, other = (m._transform_held(m._held.live_rows()) for m in (model, refit))
    assert isinstance(mine, csr_array)
    assert mine.data.tobytes() == other.data.tobytes()


def test_models_of_the_same_documents_cut_them_once_and_forget_apart(monkeypatch):
    texts = ["a cat", "the cat sat", "on a hat", "cat hat mat"]
    whole, left = CountVectorizer().fit(texts), CountVectorizer().fit(texts[1:], ids=[1, 2, 3])
    cut, fit = [], TermCounts.fit
    monkeypatch.setattr(TermCounts, "fit", lambda *a, **k: cut.append(1) or fit(*a, **k))
    values, names = Records(texts), Records(np.zeros((4, 1)))
    first = CountVectorizer().fit(names.twin(values, None))
    second = CountVectorizer().fit(names.twin(values, None))
    assert len(cut) == 1
    first.delete([0])
    assert first.digest() == left.digest()
    assert second.digest() == CountVectorizer().fit(names.twin(values, None)).digest()
    assert second.digest() == whole.digest() != left.digest()
    assert len(cut) == 1
    CountVectorizer(binary=True).fit(names.twin(values, None))
    CountVectorizer().fit(names.twin(Records(texts), None))
    assert len(cut) == 3
    del values
    gc.collect()
    assert not _vectorizer._counted
