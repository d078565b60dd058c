"""Tables of text, numbers and gaps, and the law on them."""

from __future__ import annotations

import pickle
from typing import Any

import hypothesis.strategies as st
import numpy as np
from scipy.sparse import issparse
from sklearn.base import clone

from erasable.core.errors import InvalidDataError
from erasable.utils._checks.compare import assert_same

CELLS: dict[str, list[Any]] = {
    "text": ["a", "b", "B", "", "ä ö", "17"],
    "whole": [0, 1, 2, -3, 10**20],
    "floats": [0.5, -1.25, 2.0, 1e300],
    "booleans": [True, False],
    "numbers": [0, 1, 1.0, True, False, 2, 2.5, 2**53, 2.0**53],
}


@st.composite
def object_tables(draw: st.DrawFn, gaps: bool = True) -> np.ndarray:
    """A table of objects, of which one column at least is text."""
    n = draw(st.integers(2, 20))
    kinds = ["text", *draw(st.lists(st.sampled_from(sorted(CELLS)), max_size=2))]
    table = np.empty((n, len(kinds)), dtype=object)
    for j, kind in enumerate(kinds):
        cells = st.sampled_from(CELLS[kind])
        if gaps and draw(st.booleans()):
            cells = cells | st.sampled_from([None, np.nan, float("nan")])
        table[:, j] = draw(st.lists(cells, min_size=n, max_size=n))
    return table


@st.composite
def number_tables(draw: st.DrawFn, gaps: bool = True) -> np.ndarray:
    """A table of numbers, some of them often, and gaps."""
    n, d = draw(st.integers(2, 20)), draw(st.integers(1, 3))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    kinds = (
        rng.integers(-2, 3, size=(n, d)).astype(np.float64),
        rng.normal(size=(n, d)),
        1e6 + rng.integers(0, 4, size=(n, d)) / 8,
    )
    table = draw(st.sampled_from(kinds))
    share = draw(st.sampled_from([0.0, 0.2, 0.7])) if gaps else 0.0
    table[rng.random((n, d)) < share] = np.nan
    return table.astype(draw(st.sampled_from([np.float64, np.float32])))


def any_tables(gaps: bool = True) -> st.SearchStrategy[np.ndarray]:
    return object_tables(gaps) | number_tables(gaps)


def dense(values: Any) -> np.ndarray:
    return values.toarray() if issparse(values) else np.asarray(values)


def same_cells(one: Any, two: Any) -> bool:
    """Whether two arrays have equal cells; gaps are equal, whatever object they are."""
    if np.shape(one) != np.shape(two):
        return False
    pairs = zip(np.ravel(one).tolist(), np.ravel(two).tolist(), strict=True)
    return all(a == b or (a != a and b != b) for a, b in pairs)


def transformed(model: Any, table: np.ndarray) -> str:
    """What a model makes of a table, to the bit, or that it was refused."""
    try:
        made = dense(model.transform(table))
    except InvalidDataError as error:
        return f"refused: {error}"
    return f"{made.dtype} {made.shape} {made.tolist()!r}"


def assert_lawful(estimator: Any, table: np.ndarray, data: st.DataObject) -> None:
    """Delete in portions down to one record; what is left is a fit on what is left."""
    ids = np.arange(100, 100 + len(table))
    model = clone(estimator).fit(table, ids=ids)
    order = data.draw(st.permutations(range(len(table))))
    start = 0
    while start < len(order) - 1:
        stop = data.draw(st.integers(start + 1, len(order) - 1))
        rows, start = order[start:stop], stop
        if data.draw(st.booleans()):
            model = pickle.loads(pickle.dumps(model))
        live = np.array(sorted(order[start:]))
        before = dense(model.transform(table[live]))
        model.delete(ids[rows])
        assert_changes_are_told(model, before, dense(model.transform(table[live])), ids[live])
        refit = clone(estimator).fit(table[live[::-1]], ids=ids[live[::-1]])
        assert_same(model, refit, "from a refit", save=stop == len(order) - 1)
        assert transformed(model, table) == transformed(refit, table)


def assert_changes_are_told(model: Any, before: Any, after: Any, ids: np.ndarray) -> None:
    """What a step tells the next one of a deletion is true of the records that stay."""
    change = model._output_change()
    origin, columns, rows = change.origin, change.columns, change.rows
    origin = np.arange(after.shape[1]) if origin is None else origin
    columns = np.full(after.shape[1], rows is None or rows.size > 0) if columns is None else columns
    assert origin.shape == columns.shape == (after.shape[1],)
    changed = np.zeros(after.shape, dtype=np.bool_)
    changed[:, columns] = True
    if columns.any() and rows is not None:
        changed[~np.isin(ids, model._held.records.ids[rows])] = False
    assert columns[origin < 0].all()
    for j, place in enumerate(origin.tolist()):
        if place >= 0:
            stays = ~changed[:, j]
            assert repr(after[stays, j].tolist()) == repr(before[stays, place].tolist())
