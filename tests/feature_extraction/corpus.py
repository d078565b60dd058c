"""Random texts of a small vocabulary, in which some words are frequent and many are rare."""

from __future__ import annotations

from typing import Any

import hypothesis.strategies as st
import numpy as np

WORDS = [
    "the", "The", "of", "and", "to", "cat", "cats", "dog", "été", "ete", "straße", "x1", "42",
    "hat", "Hat", "mat", "sat", "ran", "a", "I", "ﬁn", "中文", "once", "upon", "time", "unique",
]  # fmt: skip


def make_texts(n: int, seed: int, longest: int = 9) -> list[str]:
    """Texts whose words have frequencies 1/rank; some are empty, some are told twice."""
    rng = np.random.default_rng(seed)
    share = 1.0 / np.arange(1, len(WORDS) + 1)
    order = rng.permutation(len(WORDS))
    texts = []
    for _ in range(n):
        chosen = rng.choice(order, rng.integers(0, longest + 1), p=share / share.sum())
        texts.append(rng.choice([" ", ", ", "  "]).join(WORDS[i] for i in chosen))
        if rng.random() < 0.1:
            texts[-1] = texts[int(rng.integers(len(texts)))]
    return texts


@st.composite
def corpora(draw: st.DrawFn) -> list[str]:
    """Texts of one of both kinds: random ones, or what hypothesis likes of few words."""
    if draw(st.booleans()):
        return make_texts(draw(st.integers(2, 30)), draw(st.integers(0, 2**32 - 1)))
    line = st.lists(st.sampled_from(WORDS[:8]), max_size=4).map(" ".join)
    return draw(st.lists(line, min_size=2, max_size=8))


def lengths(text: str) -> list[str]:
    """An analyzer of its own: terms that are lengths of words."""
    return [f"len{len(word)}" for word in text.split()]


def halves(text: str) -> list[str]:
    """A tokenizer of its own."""
    return [part for word in text.split() for part in (word[:2], word[2:]) if part]


def no_vowels(text: str) -> str:
    """A preprocessor of its own."""
    return "".join(letter for letter in text.lower() if letter not in "aeiou")


def as_dict(model: Any, texts: list[str]) -> list[dict[str, float]]:
    """What a model makes of texts, by term: columns may be in any order."""
    terms = model.get_feature_names_out().tolist()
    rows = model.transform(texts).toarray()
    return [{t: v for t, v in zip(terms, row, strict=True) if v} for row in rows.tolist()]
