from __future__ import annotations

import re
from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from sklearn.feature_extraction.text import CountVectorizer as Peer

from erasable.feature_extraction import CountVectorizer, TfidfVectorizer
from erasable.feature_extraction._words import cuts_plainly, words_of

ASCII = st.text(st.characters(max_codepoint=127), max_size=60)
FEW_WORDS = st.text(st.sampled_from("aAbB_1 .-\0\n\x7f"), max_size=40)
MIXED = st.text(st.sampled_from("aB1_ é\u00b5\u0130ß\u200b\ud800.") | st.characters(), max_size=30)
PATTERN = re.compile(r"(?u)\b\w\w+\b")


def counted(documents, *, lowercase):
    words, counts, slots, indptr = words_of(documents, lowercase=lowercase)
    rows = [slice(a, b) for a, b in pairwise(indptr)]
    for row in rows:
        assert np.unique(slots[row]).size == slots[row].size
    return words, [
        {words[s]: int(c) for s, c in zip(slots[row], counts[row], strict=True)} for row in rows
    ]


@given(st.lists(ASCII | FEW_WORDS, max_size=8), st.booleans())
@example(["", "a", "aa", "aa", "a aa a", "_" * 200], True)
def test_words_are_those_of_the_pattern(documents, lowercase):
    words, rows = counted(documents, lowercase=lowercase)
    expected = [Counter(PATTERN.findall(text.lower() if lowercase else text)) for text in documents]
    assert rows == [dict(each) for each in expected]
    assert words == list(dict.fromkeys(word for each in expected for word in each))


def test_every_character_at_every_place_of_eight():
    documents = ["ab" * 9] + [
        "x" * before + chr(code) + "y" * (9 - before) for code in range(128) for before in range(10)
    ]
    for lowercase in (True, False):
        texts = [text.lower() if lowercase else text for text in documents]
        _, rows = counted(documents, lowercase=lowercase)
        assert rows == [dict(Counter(PATTERN.findall(text))) for text in texts]


def test_words_of_any_length_that_differ_in_one_letter():
    words = [("a" * n)[:i] + "b" + ("a" * n)[i + 1 :] for n in range(1, 42) for i in range(n)]
    words += ["a" * n for n in range(1, 42)]
    documents = [" ".join(words), ",".join(words[::-1]), *words]
    found, rows = counted(documents, lowercase=False)
    long = {word for word in words if len(word) > 1}
    assert set(found) == long
    assert rows[:2] == [dict.fromkeys(long, 1)] * 2
    assert rows[2:] == [{word: 1} if word in long else {} for word in words]


@given(st.lists(st.sampled_from(["ab", "abcdefg", "abcdefgh", "abcdefghi", "x" * 16]), max_size=9))
def test_words_end_where_the_text_does(words):
    """Nothing is read of the text behind, whatever is there."""
    found, rows = counted([*words, ""], lowercase=False)
    assert rows == [{word: 1} for word in words] + [{}]
    assert found == list(dict.fromkeys(words))


def test_the_table_of_words_grows():
    """Far more words than its first size, many of them in one document."""
    words = [f"w{i}" for i in range(20_000)]
    documents = [" ".join(words[i::7]) for i in range(7)] + [" ".join(words[::-1])]
    found, rows = counted(documents, lowercase=False)
    assert sorted(found) == sorted(words)
    assert rows[-1] == dict.fromkeys(words, 1)


@given(st.lists(ASCII | MIXED, min_size=1, max_size=8), st.booleans(), st.booleans())
@example(["naïve café", "plain text", "été plain"], True, False)
def test_a_vectorizer_sees_the_terms_that_scikit_learn_sees(documents, lowercase, binary):
    options = {"lowercase": lowercase, "binary": binary}
    try:
        "".join(documents).encode()
        peer = Peer(**options).fit(documents)
    except ValueError:  # no words at all, or lone surrogates
        return
    model = CountVectorizer(**options).fit([*documents])
    assert model.vocabulary_ == peer.vocabulary_
    made, expected = model.fit_transform(documents), peer.transform(documents)
    assert (made != expected).nnz == 0


@pytest.mark.parametrize(
    "options",
    [
        {"stop_words": ["the"]}, {"ngram_range": (1, 2)}, {"analyzer": "char"},
        {"strip_accents": "ascii"}, {"token_pattern": r"\w+"}, {"preprocessor": str.upper},
    ],
    ids=str,
)  # fmt: skip
def test_any_other_analysis_is_left_to_scikit_learn(options):
    assert not cuts_plainly(Peer(**options))
    assert cuts_plainly(Peer(lowercase=False, min_df=2, binary=True))


def test_a_deletion_from_mixed_texts_equals_a_refit():
    documents = ["the café", "plain words here", "words été", "here the plain", "only naïve"]
    model = TfidfVectorizer().fit(documents, ids=list("abcde"))
    model.delete(["b", "e"])
    left = TfidfVectorizer().fit([documents[i] for i in (3, 0, 2)], ids=list("dac"))
    assert model.digest() == left.digest()
