"""However records are cut, and whoever reads the pieces, what is found in them is the same."""

from __future__ import annotations

import pickle
import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from effort import examples
from erasable.core import passes, tables
from erasable.core.class_moments import ClassMoments
from erasable.core.classes import Classes
from erasable.core.extremes import Extremes
from erasable.core.gram import Gram
from erasable.core.grid import Grid
from erasable.core.moments import Moments
from erasable.core.passes import Block, Pass, Stored, Together, run

pytestmark = pytest.mark.filterwarnings("ignore::erasable.core.grid.PrecisionWarning")


class Pieces(Stored):
    """A matrix that hands out copies of its blocks."""

    def __init__(self, matrix: np.ndarray, starts: Sequence[int]) -> None:
        self._matrix, self.starts = matrix, np.array([*starts, len(matrix)])
        self.shape, self.dtype = matrix.shape, matrix.dtype
        self.read: list[Any] = []

    def block(self, number: int, columns: Sequence[int] | None = None) -> Any:
        self.read.append((number, columns))
        rows = self._matrix[slice(*self.starts[number : number + 2])]
        return np.ascontiguousarray(rows if columns is None else rows[:, list(columns)])

    def __getitem__(self, rows: Any) -> Any:
        return self._matrix[rows]


class Table:
    """Random records, of few values so that extremes repeat, and of many."""

    def __init__(self, rng: np.random.Generator) -> None:
        n, d = int(rng.integers(1, 60)), int(rng.integers(1, 5))
        values = rng.normal(size=(n, d)) * 10.0 ** rng.integers(-3, 4)
        kinds = [values, np.rint(values), np.exp(9 * rng.normal(size=(n, d))), 0.0 * values]
        self.matrix = kinds[int(rng.integers(4))] + rng.choice([0.0, 1.7e9])
        if rng.random() < 0.2:
            self.matrix = self.matrix.astype(np.float32)
        self.live = np.flatnonzero(rng.random(n) < rng.choice([0.3, 0.9, 1.0]))
        self.y = rng.integers(0, 3, n)
        self.targets = rng.normal(size=(n, 2))
        cuts = np.unique(rng.integers(0, n + 1, int(rng.integers(1, 8))))
        self.stored = Pieces(self.matrix, [0, *cuts.tolist()])  # some of them are empty
        self.order = rng.permutation(self.live)


def rows_of(matrix: Any, table: Table, **params: Any) -> tables.Table:
    return tables.Table(matrix, lambda: table.live, **params)


def extremes(matrix: Any, table: Table, n_jobs: int | None) -> Any:
    return Extremes.fit(matrix, table.live, n_jobs=n_jobs)


def grid(matrix: Any, table: Table, n_jobs: int | None) -> Any:
    return Grid.fit(matrix, table.live, n_jobs=n_jobs)


def moments(matrix: Any, table: Table, n_jobs: int | None) -> Any:
    return Moments.fit_with_grid(rows_of(matrix, table, n_jobs=n_jobs))


def by_class(matrix: Any, table: Table, n_jobs: int | None) -> Any:
    classes = Classes.fit(table.y, table.live)
    return ClassMoments.fit(rows_of(matrix, table, classes=classes, n_jobs=n_jobs)), classes


def gram(matrix: Any, table: Table, n_jobs: int | None) -> Any:
    of_targets = Grid.fit(table.targets, table.live)
    return Gram.fit_with_grid(
        rows_of(matrix, table, targets=table.targets, n_jobs=n_jobs), of_targets
    )


KINDS: dict[str, Callable[..., Any]] = {
    "extremes": extremes, "grid": grid, "moments": moments, "by class": by_class, "gram": gram,
}  # fmt: skip


def numbers(found: Any) -> bytes:
    """All that was found, to the last bit."""
    if isinstance(found, tuple):
        found = found[0]
    kept = [found] if not isinstance(found, ClassMoments) else [found.grid, *found.moments]
    held = []
    for each in kept:
        if isinstance(each, Extremes):  # as its pickle: what lies near is known for some columns
            held += [each.low, each.high, each.counts]
            continue
        for name in type(each).__dataclass_fields__:
            value = getattr(each, name)
            held.append(numbers(value) if isinstance(value, Extremes | Grid) else np.array(value))
    return pickle.dumps([each if isinstance(each, bytes) else each.tolist() for each in held])


def deleted(found: Any, matrix: Any, table: Table, rows: Any, left: Any) -> None:
    found, classes = found if isinstance(found, tuple) else (found, None)
    targets = table.targets if isinstance(found, Gram) else None
    found.subtract(tables.Table(matrix, lambda: left, classes=classes, targets=targets), rows)


@pytest.mark.parametrize("kind", KINDS)
@given(seed=st.integers(0, 2**32), size=st.sampled_from([1, 8, 40]))
@settings(max_examples=examples(60))
def test_blocks_and_threads_do_not_show(kind: str, seed: int, size: int) -> None:
    table = Table(np.random.default_rng(seed))
    fit = KINDS[kind]
    if kind == "by class" and table.live.size == 0:
        return
    whole = fit(table.matrix, table, None)
    before = passes._VALUES
    passes._VALUES = size
    try:
        others = [
            (fit(table.matrix, table, 1), table.matrix),
            (fit(table.matrix, table, 3), table.matrix),
            (fit(table.stored, table, None), table.stored),
            (fit(table.stored, table, 2), table.stored),
        ]
    finally:
        passes._VALUES = before
    assert {numbers(found) for found, _ in others} == {numbers(whole)}
    live, order = table.live, table.order
    for start in range(0, order.size, 7):  # to the last record
        rows = np.sort(order[start : start + 7])
        live = np.setdiff1d(live, rows)
        for found, matrix in [(whole, table.matrix), *others]:
            deleted(found, matrix, table, rows, live)
        assert {numbers(found) for found, _ in others} == {numbers(whole)}
        if kind == "extremes":
            left = table.matrix[live].astype(np.float64)
            assert whole.low.tolist() == (left.min(axis=0) if live.size else whole.low * 0).tolist()
            assert whole.counts[1].tolist() == (left == whole.high).sum(axis=0).tolist()


@pytest.mark.parametrize("kind", KINDS)
def test_a_record_in_two_blocks_is_found(kind: str) -> None:
    """The negative control: sums notice a record too many, extremes that it reaches one."""
    table = Table(np.random.default_rng(3))
    table.matrix[:] = 1.0
    table.live = np.arange(len(table.matrix))
    whole = numbers(KINDS[kind](table.matrix, table, None))
    assert numbers(KINDS[kind](Pieces(table.matrix, [0, 5]), table, None)) == whole

    class Overlapping(Pieces):
        def block(self, number: int, columns: Sequence[int] | None = None) -> Any:
            rows = self._matrix[self.starts[number] - number : self.starts[number + 1]]
            return np.ascontiguousarray(rows if columns is None else rows[:, list(columns)])

    # What belongs to the record that is there twice is there, too, or kernels read what is not.
    table.targets = np.vstack([table.targets, table.targets[:1]])
    table.y = np.append(table.y, table.y[:1])
    assert numbers(KINDS[kind](Overlapping(table.matrix, [0, 5]), table, None)) != whole


class Sum(Pass[float]):
    def of_block(self, block: Block) -> float:
        return float(block.matrix[block.positions].sum())

    def merge(self, one: float, other: float) -> float:
        return one + other


class Threads(Pass[set[int]]):
    meeting = threading.Barrier(2, timeout=60)

    def of_block(self, block: Block) -> set[int]:
        self.meeting.wait()
        return {threading.get_ident()}

    def merge(self, one: set[int], other: set[int]) -> set[int]:
        return one | other


def test_two_threads_are_at_work_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(passes, "_VALUES", 10)
    assert len(run(Threads(), np.zeros((20, 1)), n_jobs=2)) == 2


def test_what_is_not_asked_for_is_not_read() -> None:
    stored = Pieces(np.arange(12.0).reshape(6, 2), [0, 2, 4])
    assert run(Sum(), stored, np.array([0, 5]), columns=[1]) == 1.0 + 11.0
    assert stored.read == [(0, (1,)), (2, (1,))]


def test_several_passes_are_one_reading() -> None:
    stored = Pieces(np.arange(6.0).reshape(6, 1), [0, 3])
    assert run(Together(Sum(), Sum()), stored) == (15.0, 15.0)
    assert len(stored.read) == 2
