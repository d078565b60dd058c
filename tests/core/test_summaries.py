"""One battery for all summaries: what they say depends on the set of rows, and on nothing else."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array
from sklearn.feature_extraction.text import CountVectorizer

from effort import examples
from erasable.core._weighted_moments import ClassWeights, WeightedMoments, WeightUnits
from erasable.core.class_moments import ClassMoments
from erasable.core.classes import Classes
from erasable.core.extremes import Extremes
from erasable.core.gram import Gram
from erasable.core.grid import Grid
from erasable.core.moments import Moments
from erasable.core.passes import Stored
from erasable.core.quantiles import Quantiles
from erasable.core.sparse import canonical
from erasable.core.tables import Table
from erasable.feature_extraction._counts import Cutting, TermCounts
from erasable.linear_model._logistic_work import LogisticColumns
from erasable.naive_bayes._bernoulli import ClassCounts
from erasable.naive_bayes._categorical import CategoryCounts, survey
from erasable.naive_bayes._gaussian import WeightedClassMoments
from erasable.naive_bayes._multinomial import ClassSums, WeightedSums
from erasable.preprocessing._categories import Categories
from erasable.preprocessing._fills import Means, Medians, Modes
from erasable.preprocessing._sparse_fills import SparseModes

pytestmark = pytest.mark.hypothesis

N = 24


class Blocks(Stored):
    """A matrix in blocks that end at some rows."""

    def __init__(self, matrix: Any, ends: list[int]) -> None:
        self._matrix, self.shape, self.dtype = matrix, matrix.shape, matrix.dtype
        self.starts = np.array([0, *ends, len(matrix)])

    def block(self, number: int, columns: Any = None, *, gaps: bool = False) -> Any:
        rows = self._matrix[self.starts[number] : self.starts[number + 1]]
        return rows if columns is None else np.ascontiguousarray(rows[:, list(columns)])

    def __getitem__(self, rows: Any) -> Any:
        return self._matrix[rows]


class Case:
    """A summary: how it is fitted, of which values, and what else it takes."""

    def __init__(
        self, fit: Callable[[Table], Any], *, counts: bool = False, sparse: bool = False,
        weighs: bool = False, texts: bool = False,
    ) -> None:  # fmt: skip
        self.fit, self.counts, self.weighs, self.texts = fit, counts, weighs, texts
        self.places = ["memory", "7 7 19", *(["sparse"] if sparse else [])]


class Rows:
    """Drawn rows with classes, weights and targets, and those of them that count."""

    def __init__(self, seed: int, case: Case) -> None:
        rng = np.random.default_rng(seed)
        self.matrix = rng.normal(size=(N, 3)) * 10.0 ** rng.integers(-3, 4, 3)
        if case.counts:
            self.matrix = np.abs(np.rint(self.matrix)) % 6
        self.matrix[rng.integers(0, N, 2)] *= 3.0 if case.counts else 50.0
        if case.texts:  # documents, and words with gaps
            words = np.array(["a", "b", "cc", "d", "ee"], dtype=object)
            self.matrix = rng.choice([*words, np.nan, np.nan], (N, 2)).astype(object)
            self.matrix[self.matrix == "nan"] = np.nan
            self.matrix[:, 0] = [" ".join(rng.choice(words, n)) for n in rng.integers(1, 6, N)]
        self.y, self.targets = rng.integers(0, 3, N), rng.normal(size=(N, 1))
        self.weights = rng.choice([0.0, 0.3, 1.0, 9.0, 1e4], N)
        self.weights[rng.integers(0, N)] = 1e8  # without it the quantum is another
        self.weights[0] = 0.3  # the first row always stays
        self.weighs, self.live = case.weighs, np.arange(N)

    def table(
        self, where: str = "memory", order: Any = None, n_jobs: int | None = None, *,
        changes: bool = False,
    ) -> Table:  # fmt: skip
        """Return the rows that count; when that `changes`, those that leave have a class, too."""
        order = np.arange(N) if order is None else order
        matrix: Any = self.matrix[order]
        if where == "sparse":
            matrix = canonical(csr_array(matrix))
        elif where != "memory":
            matrix = Blocks(matrix, [int(end) for end in where.split()])
        rows = np.sort(np.argsort(order)[self.live])
        known = np.arange(N) if changes else rows
        return Table(
            matrix, lambda: rows, classes=Classes.fit(self.y[order], known, (0, 1, 2)),
            weights=WeightUnits.of(self.weights[order], rows) if self.weighs else None,
            targets=self.targets[order], n_jobs=n_jobs,
        )  # fmt: skip


def categories(table: Table) -> CategoryCounts:
    least = np.ones(3, dtype=np.int64)
    return CategoryCounts.fit(table, least, survey(table.matrix, table.live_rows()))


def gram(table: Table) -> Gram:
    targets = Grid.fit(table.targets, table.live_rows(), warn=False)
    return Gram.fit_with_grid(table, targets, warn=False)


CUTTING = Cutting(CountVectorizer(analyzer=str.split), None, False)


def modes(table: Table) -> Any:
    return SparseModes(table, 1.0) if table.is_sparse else Modes(table, 1.0, objects=False)


def fills(kind: Any) -> Callable[[Table], Any]:
    return lambda table: kind(table, np.nan)


class Columns:
    """Columns of a logistic regression, whose units are set again after each change."""

    def __init__(self, table: Table, shift: Any = None) -> None:
        self.columns, self._shift = LogisticColumns.fit(table, shift is None), shift
        self.columns.set_units(table, shift)

    def add(self, table: Table, rows: Any) -> int | None:
        found = self.columns.add(table, rows)
        self.columns.set_units(table, self._shift)
        return found

    def subtract(self, table: Table, rows: Any) -> int:
        found = self.columns.subtract(table, rows)
        self.columns.set_units(table, self._shift)
        return found

    def state(self) -> dict[str, Any]:
        return self.columns.state()


def class_weights(table: Table) -> ClassWeights:
    return ClassWeights.fit(table.weights.weights, table.live_rows(), table.classes)


def weight_units(table: Table) -> WeightUnits:
    return WeightUnits.of(table.weights.weights, table.live_rows())


CASES = {
    "extremes": Case(lambda t: Extremes.fit(t.matrix, t.live_rows(), n_jobs=t.n_jobs)),
    "grid": Case(lambda t: Grid.fit(t.matrix, t.live_rows(), warn=False, n_jobs=t.n_jobs)),
    "moments": Case(lambda t: Moments.fit_with_grid(t, warn=False), sparse=True),
    "weighted moments": Case(WeightedMoments.fit, sparse=True, weighs=True),
    "class moments": Case(ClassMoments.fit),
    "weighted class moments": Case(WeightedClassMoments.fit, weighs=True),
    "gram": Case(gram, sparse=True),
    "class counts": Case(lambda t: ClassCounts.fit(t, 0.5), sparse=True),
    "weighted class counts": Case(lambda t: ClassCounts.fit(t, 0.5), sparse=True, weighs=True),
    "class sums": Case(ClassSums.fit, counts=True, sparse=True),
    "weighted class sums": Case(WeightedSums.fit, counts=True, sparse=True, weighs=True),
    "categories": Case(categories, counts=True),
    "weight units": Case(weight_units, weighs=True),
    "class weights": Case(class_weights, weighs=True),
    "logistic columns": Case(Columns, sparse=True),
    "shifted columns": Case(lambda t: Columns(t, np.array([0.5, 0.0, 7.0])), sparse=True),
    "means": Case(fills(Means), sparse=True),
    "medians": Case(fills(Medians), sparse=True),
    "modes": Case(modes, counts=True, sparse=True),
    "quantiles": Case(lambda t: Quantiles.fit(t, [0.0, 0.37, 0.5, 1.0]), sparse=True),
    "labels": Case(Categories.fit, counts=True),
    "labels of text": Case(Categories.fit, texts=True),
    "terms": Case(lambda t: TermCounts.fit(t, CUTTING), texts=True),
}
PLACES = [(name, where) for name, case in CASES.items() for where in case.places]


def bits(made: Any) -> bytes:
    """Return all that a summary says, to the last bit."""
    if isinstance(made, Extremes):
        state: Any = (made.low, made.high, made.counts)
    elif isinstance(made, Grid):
        state = (made.low, made.high, made.extremes.counts, made.coarse, made.state(), made.n_rows)
    else:
        state = made.state()
    return pickle.dumps(_plain(state))


def _plain(state: Any) -> Any:
    if isinstance(state, dict):
        return {name: _plain(value) for name, value in state.items()}
    if isinstance(state, tuple | list):
        return [_plain(value) for value in state]
    if not hasattr(state, "dtype"):
        return state
    values = repr(state.tolist()) if state.dtype == object else state.tobytes()
    return state.dtype.str, state.shape, values


def lives(case: Case, rows: Rows, where: str, seed: int) -> bool:
    """Subtract and add rows; return whether the summary is, each time, that of its rows."""
    rng = np.random.default_rng(seed)
    made, quantum = case.fit(rows.table(where)), _quantum(rows)
    for _ in range(6):
        away = np.setdiff1d(np.arange(N), rows.live)
        leave = away.size == 0 or (rng.random() < 0.6 and rows.live.size > 8)
        some = np.sort(rng.permutation(rows.live[1:] if leave else away)[: rng.integers(1, 6)])
        rows.live = (np.setdiff1d if leave else np.union1d)(rows.live, some)
        table = rows.table(where, changes=True)
        sums_again = isinstance(made, WeightedMoments | WeightUnits)
        again = not sums_again and _quantum(rows) != quantum
        if again:  # of the weights: an estimator sums everything again
            made, quantum = case.fit(rows.table(where)), _quantum(rows)
            continue
        told = made.subtract(table, some) if leave else made.add(table, some)
        if told is None and isinstance(made, CategoryCounts):
            made = case.fit(rows.table(where))
        if bits(made) != bits(case.fit(rows.table(where))):
            return False
    return True


def _quantum(rows: Rows) -> float | None:
    weights = rows.table().weights
    return None if weights is None else float(weights.quantum)


@pytest.mark.parametrize(("name", "where"), PLACES)
@given(seed=st.integers(0, 2**32 - 1))
@settings(max_examples=examples(40), deadline=None)
def test_after_changes_a_summary_is_that_of_its_rows(name: str, where: str, seed: int) -> None:
    assert lives(CASES[name], Rows(seed, CASES[name]), where, seed)


@pytest.mark.parametrize("name", CASES)
@given(seed=st.integers(0, 2**32 - 1))
@settings(max_examples=examples(40), deadline=None)
def test_places_orders_and_threads_do_not_show(name: str, seed: int) -> None:
    case = CASES[name]
    rows = Rows(seed, case)
    rng = np.random.default_rng(seed)
    rows.live = np.union1d([0], np.flatnonzero(rng.random(N) < 0.8))
    ends = " ".join(str(end) for end in np.sort(rng.integers(0, N + 1, 3)))
    for where in (*case.places, ends):
        alike = where != "sparse" or name in SAME_IF_SPARSE
        wanted = bits(case.fit(rows.table("memory" if alike else where)))
        for order in (None, rng.permutation(N)):
            for n_jobs in (None, 2):
                assert bits(case.fit(rows.table(where, order, n_jobs))) == wanted


# The grid of others has an origin, and that of sparse columns has none.
SAME_IF_SPARSE = {"class counts", "weighted class counts", "class sums", "weighted class sums",
                  "means", "medians", "modes", "quantiles"}  # fmt: skip


PARTS: dict[str, Callable[[Table, Any], Any]] = {
    "labels": lambda table, whole: Categories.fit(table),
    "labels of text": lambda table, whole: Categories.fit(table),
    "gram": lambda table, whole: Gram.fit(whole.grid, table, whole.target_grid),
}
"""Summaries of some rows, with the grids of all."""


def merges(name: str, seed: int, merge: Callable[[Any, Any], None]) -> bool:
    """Merge summaries of three sets of rows in several orders; return whether all are the same."""
    case, rng = CASES[name], np.random.default_rng(seed)
    rows = Rows(seed, case)
    whole = case.fit(rows.table())
    parts = np.split(rng.permutation(N), np.sort(rng.integers(1, N, 2)))

    def made(order: Any) -> Any:
        """Merge parts, or pairs of parts."""
        if isinstance(order, tuple):
            one, other = map(made, order)
            merge(one, other)
            return one
        rows.live = np.sort(parts[order])
        return PARTS[name](rows.table(rng.choice(["memory", "7 7 19"])), whole)

    orders: list[Any] = [((0, 1), 2), (0, (1, 2)), (2, (1, 0))]
    return all(bits(made(order)) == bits(whole) for order in orders)


@pytest.mark.parametrize("name", PARTS)
@given(seed=st.integers(0, 2**32 - 1))
@settings(max_examples=examples(40), deadline=None)
def test_merging_is_summing_all_rows(name: str, seed: int) -> None:
    assert merges(name, seed, lambda one, other: one.merge(other))


def test_a_summary_that_is_merged_changes_like_any_other() -> None:
    rows = Rows(0, CASES["labels"])
    halves = []
    for rows.live in (np.arange(12), np.arange(12, N)):
        halves.append(Categories.fit(rows.table()))
    halves[0].merge(halves[1])
    rows.live = np.arange(5, N)
    halves[0].subtract(rows.table(), np.arange(5))
    assert bits(halves[0]) == bits(Categories.fit(rows.table()))


# --------------------------------------------------------------------------- negative controls


class _Floats:
    """Sums floats, where adding depends on the order."""

    def __init__(self, table: Table) -> None:
        self.sums = np.zeros(table.n_features)
        self.add(table, table.live_rows())

    def add(self, table: Table, rows: Any, sign: float = 1.0) -> int:
        near, places = table.in_memory(rows)
        for row in near[places]:
            self.sums += sign * row
        return 0

    def subtract(self, table: Table, rows: Any) -> int:
        return self.add(table, rows, -1.0)

    def state(self) -> dict[str, Any]:
        return {"sums": self.sums}


class _KeptExtremes(Extremes):
    """Keeps an extreme whose last row has left."""

    def subtract(self, table: Table, rows: Any) -> None:
        return None


class _CountedTwice(ClassCounts):
    """Counts the first of several added rows twice."""

    def add(self, table: Table, rows: Any) -> int:
        super().add(table, rows[:1])
        return super().add(table, rows)


class _KeptBounds(Columns):
    """Keeps the bounds of columns when rows have left."""

    def subtract(self, table: Table, rows: Any) -> int:
        return 0


class _KeptQuantum(ClassWeights):
    """Does not sum again when the quantum of the weights changes."""

    def sum_again(self, table: Table, columns: Any) -> None:
        pass


class _KeptGrid(WeightUnits):
    """Keeps the quantum of the weights when the largest has left."""

    def subtract(self, table: Table, rows: Any) -> int:
        return 0


class _OneLeaves(Quantiles):
    """Subtracts the first of several rows."""

    def subtract(self, table: Table, rows: Any) -> int:
        return super().subtract(table, rows[:1])


class _KeptTerms(TermCounts):
    """Keeps what the last of several documents had."""

    def subtract(self, table: Table, rows: Any) -> None:
        super().subtract(table, rows[:-1])


def _kept_labels(table: Table) -> Categories:
    """Keep labels without rows, and take no new ones."""
    made = Categories.fit(table)
    made.fixed = True
    return made


@pytest.mark.parametrize(
    "case",
    [
        Case(_Floats),
        Case(lambda table: _KeptExtremes.fit(table.matrix, table.live_rows())),
        Case(lambda table: _CountedTwice.fit(table, 0.5)),
        Case(_KeptBounds),
        Case(
            lambda table: _KeptQuantum.fit(table.weights.weights, table.live_rows(), table.classes),
            weighs=True,
        ),
        Case(lambda t: _KeptGrid.of(t.weights.weights, t.live_rows()), weighs=True),
        Case(lambda table: _OneLeaves.fit(table, [0.5])),
        Case(_kept_labels, counts=True),
        Case(lambda table: _KeptTerms.fit(table, CUTTING), texts=True),
    ],
    ids=[
        "floats",
        "kept extremes",
        "counted twice",
        "bounds",
        "quantum",
        "kept grid",
        "one leaves",
        "kept labels",
        "kept terms",
    ],
)
def test_what_is_no_summary_is_found(case: Case) -> None:
    assert not all(lives(case, Rows(seed, case), "memory", seed) for seed in range(20))


@pytest.mark.parametrize("name", PARTS)
def test_a_merge_that_counts_twice_is_found(name: str) -> None:
    def twice(one: Any, other: Any) -> None:
        one.merge(other)
        one.merge(other)

    assert not merges(name, 0, twice)
