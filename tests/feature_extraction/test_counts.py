"""The counts kept beside a vectorizer, against a brute-force count of the texts."""

from __future__ import annotations

from collections import Counter

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings
from sklearn.feature_extraction.text import CountVectorizer

from effort import examples
from erasable.core.tables import Table
from erasable.feature_extraction._analysis import choose, read_vocabulary
from erasable.feature_extraction._counts import Cutting, TermCounts
from feature_extraction.corpus import corpora

TOOL = CountVectorizer(analyzer=str.split)


def _table(texts: list[str], rows: np.ndarray) -> Table:
    return Table(np.array([[text] for text in texts], dtype=object), lambda: rows)


@settings(max_examples=examples(60))
@given(texts=corpora(), binary=st.booleans(), fixed=st.booleans(), data=st.data())
def test_against_brute_force(
    texts: list[str], binary: bool, fixed: bool, data: st.DataObject
) -> None:
    vocabulary = {"hat": 1, "cat": 0, "nowhere": 2} if fixed else None
    live = data.draw(st.sets(st.sampled_from(range(len(texts))), min_size=1))
    gone = data.draw(st.sets(st.sampled_from(sorted(live)), max_size=len(live)))
    rows = np.array(sorted(live))
    table = _table(texts, rows)
    counts = TermCounts.fit(table, Cutting(TOOL, vocabulary, binary))
    _assert_counts(counts, texts, live, binary, vocabulary)
    rest = counts.without(table, np.array(sorted(gone), dtype=np.int64))
    counts.subtract(table, np.array(sorted(gone), dtype=np.int64))
    _assert_counts(counts, texts, live - gone, binary, vocabulary)
    assert [side.tolist() for side in rest] == [counts.df.tolist(), counts.tf.tolist()]


def _assert_counts(
    counts: TermCounts,
    texts: list[str],
    live: set[int],
    binary: bool,
    vocabulary: dict[str, int] | None,
) -> None:
    found = {row: Counter(texts[row].split()) for row in live}
    known = set(vocabulary or set().union(*found.values()))
    df = {t: sum(t in each for each in found.values()) for t in known}
    tf = {t: sum((each[t] > 0) if binary else each[t] for each in found.values()) for t in known}
    slots = {term: slot for slot, term in enumerate(counts.terms.tolist()) if term}
    assert slots.keys() == known
    assert vocabulary is None or slots == vocabulary
    assert vocabulary is not None or list(slots) == sorted(slots)
    assert {t: int(counts.df[slot]) for t, slot in slots.items()} == df
    assert {t: int(counts.tf[slot]) for t, slot in slots.items()} == tf
    assert counts.df.sum() == sum(df.values())
    kept = np.array(sorted(slots.values()), dtype=np.int64)[::2]
    rows = np.array(sorted(live), dtype=np.int64)
    picked = counts.select(rows, kept)
    matrix = picked.csr(picked.counts, kept.size).toarray()
    for row, made in zip(rows.tolist(), matrix.tolist(), strict=True):
        each = found[row]
        wanted = [each[counts.terms[slot]] for slot in kept]
        assert made == [int(n > 0) if binary else n for n in wanted]
    holding = [row for row in rows.tolist() if any(counts.terms[s] in found[row] for s in kept)]
    assert counts.holders(rows, kept).tolist() == holding


@given(
    df=st.lists(st.integers(0, 9), min_size=1, max_size=20),
    low=st.integers(1, 4) | st.floats(0, 0.5),
    high=st.integers(4, 9) | st.floats(0.5, 1),
    limit=st.none() | st.integers(1, 8),
    seed=st.integers(0, 99),
)
def test_which_terms_stay(
    df: list[int], low: float, high: float, limit: int | None, seed: int
) -> None:
    tf = [
        n * int(k)
        for n, k in zip(df, np.random.default_rng(seed).integers(1, 4, len(df)), strict=True)
    ]
    n = 9
    least = low if isinstance(low, int) else low * n
    most = high if isinstance(high, int) else high * n
    kept = [slot for slot, count in enumerate(df) if count > 0 and least <= count <= most]
    if limit is not None:
        kept = sorted(sorted(kept, key=lambda slot: (-tf[slot], slot))[:limit])
    limits = {"min_df": low, "max_df": high, "max_features": limit}
    if not kept:
        with pytest.raises(ValueError, match=r"pruning|empty|corresponds"):
            choose(np.array(df), np.array(tf), n, limits)
        return
    assert choose(np.array(df), np.array(tf), n, limits).tolist() == kept


def test_a_vocabulary_of_any_kind() -> None:
    assert read_vocabulary(None) is None
    for given_terms in (["b", "a"], ("b", "a"), np.array(["b", "a"]), {"a": 1, "b": np.int64(0)}):
        assert read_vocabulary(given_terms) == {"b": 0, "a": 1}
