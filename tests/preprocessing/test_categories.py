"""Categories of columns: which there are, how they read, and what a deletion takes away."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from erasable.core.errors import InvalidTypeError, MagnitudeError
from erasable.core.tables import Table
from erasable.preprocessing._categories import GONE, UNKNOWN, Categories, find
from preprocessing.mixed_tables import CELLS


def column(*cells: Any) -> np.ndarray:
    table = np.empty((len(cells), 1), dtype=object)
    table[:, 0] = cells
    return table


def subtract(categories: Categories, table: np.ndarray, *rows: int) -> None:
    categories.subtract(Table(table), np.array(rows, dtype=np.int64))


def written(categories: Categories) -> str:
    return repr([labels.tolist() for labels in categories.labels])


@given(
    cells=st.lists(
        st.sampled_from([*CELLS["numbers"], 2**53 + 2, np.nan]), min_size=1, max_size=30
    ),
    data=st.data(),
)
def test_equal_numbers_are_one_category(cells: list[Any], data: st.DataObject) -> None:
    """Against Python's own count of floats, after deletions, in any order of the rows."""
    table = column(*cells)
    categories = Categories.fit(Table(table))
    doomed = data.draw(st.lists(st.sampled_from(range(len(cells))), unique=True))
    subtract(categories, table, *doomed)
    left = [cell for row, cell in enumerate(cells) if row not in doomed]
    numbers = [float(cell) for cell in left if cell == cell]
    counts = Counter(numbers)
    labels = categories.labels[0].tolist()
    assert labels[: len(counts)] == sorted(counts)
    assert categories.labels[0].dtype == np.float64
    assert categories.counts.tolist() == [
        *(counts[number] for number in sorted(counts)),
        *([len(left) - len(numbers)] if len(left) > len(numbers) else []),
    ]
    again = Categories.fit(Table(column(*left[::-1])))
    assert written(again) == written(categories)


def test_a_column_whose_text_is_gone_is_one_of_gaps() -> None:
    table = column("a", np.nan)
    categories = Categories.fit(Table(table))
    assert categories.labels[0].dtype == object
    subtract(categories, table, 0)
    assert categories.labels[0].dtype == np.float64
    assert written(categories) == "[[nan]]"


def test_whole_numbers_that_no_float_reaches() -> None:
    with pytest.raises(MagnitudeError, match="column 0 holds whole numbers"):
        Categories.fit(Table(column(10**400, 2.5)))
    assert find(np.array([2.5]), column(10**400, 2.5)[:, 0]).tolist() == [UNKNOWN, 0]


def test_codes_and_counts_follow() -> None:
    table = np.array([["b", "x"], ["a", "x"], ["c", "y"], ["b", "x"]], dtype=object)
    categories = Categories.fit(Table(table))
    assert categories.codes.tolist() == [[1, 0], [0, 0], [2, 1], [1, 0]]
    subtract(categories, table, 0)
    assert [labels.tolist() for labels in categories.labels] == [["a", "b", "c"], ["x", "y"]]
    subtract(categories, table, 1, 2)
    assert [labels.tolist() for labels in categories.labels] == [["b"], ["x"]]
    assert categories.codes.tolist() == [[GONE, GONE], [GONE, GONE], [GONE, GONE], [0, 0]]
    assert categories.counts.tolist() == [1, 1]
    assert categories.start.tolist() == [0, 1, 2]


def test_only_live_rows_count() -> None:
    table = np.array([[1.0], [2.0], [3.0]])
    categories = Categories.fit(Table(table, lambda: np.array([0, 2])))
    assert categories.labels[0].tolist() == [1.0, 3.0]
    assert categories.codes.ravel().tolist() == [0, GONE, 1]


def test_fixed_categories_stay_and_others_are_unknown() -> None:
    fixed = [np.array(["c", "a"], dtype=object)]
    table = column("a", "b", "c")
    categories = Categories.fit(Table(table), fixed)
    assert categories.codes.ravel().tolist() == [1, UNKNOWN, 0]
    assert categories.known().tolist() == [2]
    subtract(categories, table, 0, 1)
    assert categories.labels[0].tolist() == ["c", "a"]
    assert categories.counts.tolist() == [1, 0]


@pytest.mark.parametrize("names", [None, ["city"]])
def test_text_among_numbers_is_refused_by_name_without_values(names: Any) -> None:
    with pytest.raises(InvalidTypeError) as caught:
        Categories.fit(Table(column("secret", 4711, "secret", np.nan), names=names))
    message = str(caught.value)
    assert f"column {'0' if names is None else repr('city')} holds text in 2" in message
    assert "numbers in 1" in message
    assert "secret" not in message
    assert "4711" not in message


@pytest.mark.parametrize(
    ("labels", "values", "codes"),
    [
        (np.array([1.0, 3.0]), np.array([3.0, 2.0, np.nan, 9.0]), [1, UNKNOWN, UNKNOWN, UNKNOWN]),
        (np.array([1.0, np.nan]), np.array([np.nan, 1.0], dtype=np.float32), [1, 0]),
        (np.array([], dtype=np.float64), np.array([1.0]), [UNKNOWN]),
        (np.array(["a", np.nan], dtype=object), np.array([1.0, np.nan]), [UNKNOWN, 1]),
        (
            np.array(["a", np.nan], dtype=object),
            np.array([1, "a", float("nan")], dtype=object),
            [UNKNOWN, 0, 1],
        ),
        (np.array([1.0, 2.0]), np.array([True, "a", 2], dtype=object), [0, UNKNOWN, 1]),
    ],
)
def test_values_are_found_whatever_holds_them(labels: Any, values: Any, codes: list[int]) -> None:
    assert find(labels, values).tolist() == codes
