"""Which records are of a domain, against regular expressions and plain comparisons."""

from __future__ import annotations

import re

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from erasable.core.errors import ErasableError
from erasable.workspace.domains.holdout import alike, sample_rows
from erasable.workspace.domains.predicates import Predicate

TABLE = pa.table(
    {
        "text": ["Win a PRIZE now", "prizes for all", None, "sur-prize!", "surprize", "", "WINNER"],
        "n": [1, 2, 3, 4, 5, None, 7],
        "who": ["a"] * 7,
    }
)


@pytest.mark.parametrize(
    ("where", "keywords", "expected"),
    [
        (None, ["prize"], [0, 3]),
        (None, ["Prize*"], [0, 1, 3]),
        (None, ["win", "prize"], [0, 3]),
        (None, ["win*"], [0, 6]),
        (None, ["win  a\tprize"], [0]),
        (None, ["for all", "gone"], [1]),
        (None, ["p.ize"], []),
        (None, ["prize!"], [3]),
        ("n >= 2", None, [1, 2, 3, 4, 6]),
        ("n >= 2", ["prize*"], [1, 3]),
        ("n = null", ["prize"], []),
    ],
)
def test_masks(where: str | None, keywords: list[str] | None, expected: list[int]) -> None:
    mask = Predicate.of(where, keywords, "text" if keywords else None).mask(TABLE)
    assert np.flatnonzero(mask).tolist() == expected


WORDS = st.text("aAbB1_-é. ", max_size=12)


@given(
    texts=st.lists(WORDS, min_size=1, max_size=8), word=st.text("ab1é.-", min_size=1, max_size=3)
)
def test_whole_words_are_those_between_what_is_no_word(texts: list[str], word: str) -> None:
    table = pa.table({"text": texts})
    found = Predicate.of(None, [word], "text").mask(table)
    for text, met in zip(texts, found, strict=True):
        low, target = text.lower(), word.lower()
        right = False
        for start in [match.start() for match in re.finditer(f"(?={re.escape(target)})", low)]:
            before = low[start - 1 : start] if start else ""
            after = low[start + len(target) : start + len(target) + 1]
            right |= not any(each.isalnum() or each == "_" for each in (before, after) if each)
        assert met == right


@pytest.mark.parametrize(
    ("where", "keywords", "column", "told"),
    [
        (None, None, None, "nothing says"),
        (None, [], "text", "0 keywords"),
        (None, ["  "], "text", "one of them empty"),
        (None, ["*"], "text", "one of them empty"),
        (None, ["a"], None, "without a column"),
        (None, ["a"], "gone", "no column 'gone'"),
        (None, ["a"], "n", "holds int64"),
        (None, ["a"], "who", "holds tokens"),
        (None, "prize", "text", "is one text"),
        ("gone = 1", None, None, "'gone'"),
        ("who = 'a'", None, None, "tokens"),
    ],
)
def test_errors(where: str | None, keywords: list[str], column: str | None, told: str) -> None:
    with pytest.raises(ErasableError, match=re.escape(told)) as error:
        Predicate.of(where, keywords, column).columns(TABLE.schema, ["who"])
    assert "\n" not in str(error.value)


def test_the_columns_that_are_looked_at() -> None:
    both = Predicate.of("n > 1 and n < 5", ["a"], "text")
    assert both.columns(TABLE.schema) == ["n", "text"]


@given(n=st.integers(1, 30), seed=st.integers(0, 3), data=st.data())
def test_a_sample_is_one_of_records_and_not_of_rows(n: int, seed: int, data: st.DataObject) -> None:
    ids = data.draw(st.permutations(range(30)))
    rows = np.flatnonzero([each < 20 for each in ids])
    found = sample_rows(ids, rows, n, seed)
    chosen = {ids[row] for row in found}
    assert len(chosen) == min(n, 20)
    assert chosen <= set(range(20))
    others = list(range(20, 40))  # somebody else comes and goes
    again = sample_rows([*others, *range(20)], np.arange(20, 40), n, seed)
    assert {[*others, *range(20)][row] for row in again} == chosen


def test_another_seed_draws_others() -> None:
    ids, rows = list(range(50)), np.arange(50)
    assert sample_rows(ids, rows, 10, 0).tolist() != sample_rows(ids, rows, 10, 1).tolist()


CELLS = st.tuples(st.sampled_from([None, 0, 1]), st.sampled_from([None, "a", ""]), st.booleans())


@given(first=st.lists(CELLS, min_size=1, max_size=8), second=st.lists(CELLS, max_size=8))
def test_equal_records_have_equal_numbers(first: list[tuple], second: list[tuple]) -> None:
    kinds = pa.schema([("n", pa.float64()), ("t", pa.string()), ("b", pa.bool_())])
    tables = [
        pa.Table.from_pylist([dict(zip(kinds.names, row, strict=True)) for row in rows], kinds)
        for rows in (first, second)
    ]
    numbers = np.concatenate(alike(tables, kinds.names))
    rows = [*first, *second]
    for i, one in enumerate(rows):
        for j, other in enumerate(rows):
            assert (numbers[i] == numbers[j]) == (one == other)
