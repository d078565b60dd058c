"""Texts that take the places of overwritten ones: what others hold stays, nothing overlaps."""

from __future__ import annotations

import numpy as np
import pytest

from effort import few
from erasable.core.mapped.texts import Texts


def words(rng: np.random.Generator, n: int) -> list[str]:
    return ["".join(rng.choice(list("aé"), size=rng.integers(0, 6))) for _ in range(n)]


def changed_in_place(seed: int) -> int:
    """Hold texts against a list; return how often new ones found room where others had been."""
    rng = np.random.default_rng(seed)
    expected = words(rng, int(rng.integers(1, 12)))
    texts = Texts.of(expected)
    in_place = 0
    for _ in range(40):
        size = len(expected) + int(rng.integers(3) == 0)
        rows = np.flatnonzero(rng.random(len(expected)) < 0.3)
        texts[rows] = ""
        rows = np.union1d(rows, np.arange(len(expected), size)).astype(np.int64)
        rng.shuffle(rows)
        come = words(rng, rows.size)
        expected += [""] * (size - len(expected))
        for row, word in zip(rows.tolist(), come, strict=True):
            expected[row] = word
        before, texts = texts, texts.grown(size, rows, come)
        in_place += texts is before
        assert texts.tolist() == expected
        there = sum(len(word.encode()) for word in expected)
        assert np.count_nonzero(texts.data) == there  # no byte is left of what was overwritten
    return in_place


@pytest.mark.thorough
@pytest.mark.parametrize("seed", range(few(30)))
def test_they_are_as_a_list_would_be(seed: int) -> None:
    changed_in_place(seed)


def test_room_is_used_again() -> None:
    assert changed_in_place(1) >= 5


def test_a_place_that_is_too_short_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Texts, "_fit", lambda *given: True)
    texts = Texts.of(["anna", "bo", "cyd"])
    texts[np.array([0])] = ""
    assert texts.grown(3, np.array([0]), ["annabell"])[1] != "bo"
