"""Sums of products are exact, functions of the set of rows, and centred to a hundred bits."""

from __future__ import annotations

import copy
import pickle
from fractions import Fraction
from functools import reduce
from operator import add
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array

from effort import examples
from erasable.core import _centring_kernels
from erasable.core import gram as module
from erasable.core import gram as passes
from erasable.core.errors import InvalidDataError
from erasable.core.gram import MAX_FEATURES, Gram
from erasable.core.grid import MAX_ROWS, Grid
from erasable.core.passes import Stored
from erasable.core.sparse import canonical
from erasable.core.sparse_grid import SparseGrid
from erasable.core.tables import Table
from subroutines import standalone

centring = standalone(_centring_kernels)

pytestmark = pytest.mark.filterwarnings("ignore::erasable.core.grid.PrecisionWarning")

Tables = tuple[Any, np.ndarray]


@st.composite
def tables(draw: st.DrawFn, least: int = 1, most: int = 20) -> Tables:
    """A dense or sparse matrix of offsets, skew, repetitions and full mantissas, and targets."""
    n, d, o = draw(st.integers(least, most)), draw(st.integers(1, 4)), draw(st.integers(0, 2))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    offset = draw(st.sampled_from([0.0, 1.0, 1.7e9, 2.0**-300, 2.0**300]))
    values = rng.normal(size=(n, d)) ** draw(st.sampled_from([0, 1, 5]))
    if draw(st.booleans()):
        values = np.rint(values)
    matrix: Any = offset + draw(st.sampled_from([1e-9, 1.0])) * max(offset, 1.0) * values
    if draw(st.booleans()):
        matrix = canonical(csr_array(matrix * (rng.random((n, d)) < 0.4)))
    elif draw(st.booleans()) and offset < 1e10:
        matrix = matrix.astype(np.float32)
    return matrix, rng.normal(size=(n, o)) * 10.0 ** rng.integers(-3, 4)


def fit(both: Tables, rows: np.ndarray | None = None) -> Gram:
    matrix, targets = both
    rows = np.arange(matrix.shape[0]) if rows is None else rows
    grid = (Grid if isinstance(matrix, np.ndarray) else SparseGrid).fit(matrix, rows)
    table = table_of(both, rows)
    return Gram.fit(grid, table, Grid.fit(targets, rows) if targets.shape[1] else None)


def table_of(both: Tables, rows: np.ndarray | None = None) -> Table:
    matrix, targets = both
    return Table(matrix, None if rows is None else lambda: rows, targets=targets)


def whole_numbers(gram: Gram, both: Tables) -> list[list[int]]:
    """Gridded values in quanta, found with fractions, independently of the grid's kernels."""
    matrix, targets = both
    dense = matrix if isinstance(matrix, np.ndarray) else matrix.toarray()
    values = np.hstack([dense.astype(np.float64), targets]).tolist()
    origin = [*gram.grid.origin.tolist(), *gram.target_grid.origin.tolist()]
    quantum = [*gram.grid.quantum.tolist(), *gram.target_grid.quantum.tolist()]
    return [
        [
            round(Fraction(value - o) / Fraction(q))
            for value, o, q in zip(row, origin, quantum, strict=True)
        ]
        for row in values
    ]


def combined(gram: Gram) -> dict[tuple[int, int], int]:
    """The sums of products of each pair, put together from their halves."""
    p = gram.sums.size
    pairs = [(j, k) for j in range(p) for k in range(j, p)]
    hh, hl, ll = (list(map(int, part)) for part in gram.products)
    return {pair: hh[i] * 2**26 + hl[i] * 2**13 + ll[i] for i, pair in enumerate(pairs)}


def assert_exact(gram: Gram, rows: list[list[int]]) -> None:
    assert gram.n_rows == len(rows)
    columns = list(zip(*rows, strict=True)) or [()] * gram.sums.size
    assert list(map(int, gram.sums)) == [sum(column) for column in columns]
    for (j, k), found in combined(gram).items():
        assert found == sum(a * b for a, b in zip(columns[j], columns[k], strict=True))


# --------------------------------------------------------------------------- the sums


@given(tables(), st.sampled_from([1, 64]))
@settings(max_examples=examples(200))
def test_sums_are_those_of_python_integers(both: Tables, few: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_FEW", few)  # row by row, or as one block by BLAS
        gram = fit(both)
    assert_exact(gram, whole_numbers(gram, both))


@pytest.mark.parametrize("n", [64, 700, 1_500])
@pytest.mark.parametrize("d", [1, 3, 60])
def test_many_blocks_are_exact_too(n: int, d: int) -> None:
    rng = np.random.default_rng(n + d)
    matrix = rng.normal(size=(n, d)) * np.exp(2 * rng.normal(size=d))
    both = matrix, rng.integers(-9, 9, size=(n, 1)).astype(np.float64)
    gram = fit(both)
    rows = np.array(whole_numbers(gram, both), dtype=object)
    square = rows.T.dot(rows)
    assert all(found == square[pair] for pair, found in combined(gram).items())
    assert list(map(int, gram.sums)) == rows.sum(axis=0).tolist()


def test_the_largest_halves_stay_below_2_to_the_53() -> None:
    """|h| <= 2**13 and |l| <= 2**12, and BLAS multiplies nothing else."""
    assert 2**26 * MAX_ROWS <= 2**53
    assert 2 * 2**13 * 2**12 * MAX_ROWS <= 2**53


@pytest.mark.parametrize("m", [2**26, 2**26 - 1, 2**25 + 4095, 2**25 + 4096, 4096, 4097, -4096])
def test_halves_at_their_bounds(m: int) -> None:
    values = np.array([[m], [-m], [2**26], [2**26], [3]] * 20, dtype=np.float64) * 2.0**-26
    gram = fit((values, np.zeros((100, 0))))
    assert gram.quantum.tolist() == [2.0**-26]
    assert_exact(gram, [[m], [-m], [2**26], [2**26], [3]] * 20)


def test_the_order_of_rows_and_the_size_of_blocks_do_not_count(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rng = np.random.default_rng(3)
    both = rng.normal(size=(500, 4)), rng.normal(size=(500, 1))
    whole = pickle.dumps(fit(both).state())
    monkeypatch.setattr(passes, "_BLOCK", 64)
    for rows in (np.arange(500), np.arange(500)[::-1], rng.permutation(500)):
        assert pickle.dumps(fit(both, rows).state()) == whole


def test_a_sparse_matrix_has_the_sums_of_its_dense_twin() -> None:
    """On grids without origin, which sparse ones are."""
    rng = np.random.default_rng(4)
    dense = rng.normal(size=(300, 12)) * (rng.random((300, 12)) < 0.3)
    targets = rng.normal(size=(300, 2))
    gram, twin = fit((canonical(csr_array(dense)), targets)), fit((dense, targets))
    assert not twin.grid.origin.any()
    assert np.array_equal(gram.products, twin.products)
    assert np.array_equal(gram.sums, twin.sums)


# --------------------------------------------------------------------------- deletion


@given(st.data())
@settings(max_examples=examples(200))
def test_after_deletions_the_sums_are_those_of_what_is_left(data: st.DataObject) -> None:
    both = data.draw(tables(least=2))
    few = data.draw(st.sampled_from([1, 64]))
    order = np.array(data.draw(st.permutations(range(len(both[1])))), dtype=np.int64)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_FEW", few)
        gram = fit(both)
        start = 0
        while start < len(order) - 1:
            stop = data.draw(st.integers(start + 1, len(order) - 1))
            live = np.sort(order[stop:])
            gram.subtract(table_of(both, live), order[start:stop])
            start = stop
            fresh = fit(both, live)
            assert pickle.dumps(gram.state()) == pickle.dumps(fresh.state())
            assert gram.columns.tobytes() == fresh.columns.tobytes()
            assert [x.tobytes() for x in gram.centred()] == [x.tobytes() for x in fresh.centred()]


@given(tables(least=3), st.randoms())
def test_adding_undoes_removing_in_any_order(both: Tables, random: Random) -> None:
    gram = fit(both)
    before = pickle.dumps(gram.state())
    rows = list(range(len(both[1])))
    random.shuffle(rows)
    for row in rows:
        gram.accumulate(table_of(both), np.array([row]), -1)
    assert not gram.sums.any()
    assert not gram.products.any()
    assert gram.n_rows == 0
    assert not gram.centred()[0].any()
    random.shuffle(rows)
    gram.accumulate(table_of(both), np.array(rows), 1)
    assert pickle.dumps(gram.state()) == before


def test_only_columns_that_lose_an_extreme_are_read_again() -> None:
    matrix = np.array([[1.0, 5.0], [2.0, 6.0], [900.0, 5.0], [3.0, 6.0]])
    both = matrix, np.array([[1.0], [2.0], [3.0], [9.0]])
    gram = fit(both)
    live: list[int] = [0, 1, 2, 3]
    for row, read_again in ((0, 2), (2, 2)):  # a feature and the targets, then both features
        live.remove(row)
        rows = np.array(live)
        assert gram.subtract(table_of(both, rows), np.array([row])) == read_again
        assert pickle.dumps(gram.state()) == pickle.dumps(fit(both, rows).state())


def test_float_products_do_not_undo() -> None:
    """Negative control: without the grid, subtracting a row leaves other bits than a refit."""
    rows = np.random.default_rng(0).normal(size=(400, 3))
    square = rows.T @ rows
    for row in rows[:200]:
        square -= np.outer(row, row)
    assert not np.array_equal(square, rows[200:].T @ rows[200:])


def test_combined_sums_would_not_fit_a_float() -> None:
    """Negative control: 5,000 rows are enough for a sum of squares to lose its last bits."""
    matrix = 1.0 + np.random.default_rng(0).random((5_000, 1))
    gram = fit((matrix, np.zeros((5_000, 0))))
    exact = combined(gram)[0, 0]
    assert exact == sum(row[0] ** 2 for row in whole_numbers(gram, (matrix, np.zeros((5_000, 0)))))
    assert int(float(exact)) != exact


def test_forgetting_to_sum_again_would_be_seen() -> None:
    """Negative control: sums in quanta of the old grid are wrong on the new one."""
    both = np.array([[0.3], [0.1], [100.0]]), np.zeros((3, 0))
    gram = fit(both)
    gram.accumulate(table_of(both), np.array([2]), -1)
    assert gram.grid.subtract(table_of(both, np.array([0, 1])), np.array([2])).exponents
    assert not np.array_equal(gram.products, fit(both, np.array([0, 1])).products)


# --------------------------------------------------------------------------- what is made of them


@st.composite
def sums_of_pairs(draw: st.DrawFn) -> tuple[int, list[int], list[list[int]]]:
    """Sums of two columns as large as they get, also those that no data give."""
    n = draw(st.integers(1, MAX_ROWS))
    sums = [draw(st.integers(-n * 2**26, n * 2**26)) for _ in range(2)]
    bounds = (n * 2**26, n * 2**26, n * 2**24)
    return n, sums, [[draw(st.integers(-b, b)) for _ in range(3)] for b in bounds]


@given(sums_of_pairs())
@example((MAX_ROWS, [2**53, 2**53], [[2**53] * 3, [0] * 3, [0] * 3]))
@example((MAX_ROWS, [2**53 - 1, 1 - 2**53], [[2**53] * 3, [-(2**53)] * 3, [2**51 - 1] * 3]))
@example((MAX_ROWS - 1, [2**53 - 2**27 + 1, 2**52 + 3], [[1] * 3, [2**53 - 1] * 3, [-1] * 3]))
@example((3, [3, 3], [[0] * 3, [0] * 3, [3] * 3]))
@settings(max_examples=examples(500))
def test_centring_uses_every_bit(problem: tuple[int, list[int], list[list[int]]]) -> None:
    n, sums, (hh, hl, ll) = problem
    high, low = np.zeros((2, 2, 2))
    products = np.array([hh, hl, ll], dtype=np.float64)
    centring.centre(float(n), np.array(sums, dtype=np.float64), products, high, low)
    for i, (j, k) in enumerate([(0, 0), (0, 1), (1, 1)]):
        exact = hh[i] * 2**26 + hl[i] * 2**13 + ll[i] - Fraction(sums[j] * sums[k], n)
        found = Fraction(high[j, k]) + Fraction(low[j, k])
        assert abs(found - exact) <= Fraction(max(abs(exact), n, 2**26)) / 2**104
        assert (high[j, k] == 0) == (exact == 0)
        assert (high[k, j], low[k, j]) == (high[j, k], low[j, k])


@given(tables(most=12))
def test_centred_products_and_means_are_those_of_fractions(both: Tables) -> None:
    gram = fit(both)
    rows = whole_numbers(gram, both)
    n, p = len(rows), gram.sums.size
    means = [Fraction(sum(row[j] for row in rows), n) for j in range(p)]
    high, low = gram.centred()
    mean_high, mean_low = gram.means()
    for j in range(p):
        assert abs(Fraction(mean_high[j]) + Fraction(mean_low[j]) - means[j]) <= 2.0**-70
        for k in range(p):
            exact = sum((row[j] - means[j]) * (row[k] - means[k]) for row in rows)
            found = Fraction(high[j, k]) + Fraction(low[j, k])
            assert abs(found - exact) <= max(abs(exact), 2**27) * Fraction(1, 2**100)
        if len({row[j] for row in rows}) == 1:
            assert not high[j].any()
            assert not low[j].any()


def test_the_textbook_formula_loses_digits() -> None:
    """Negative control: float64 keeps 43 bits, one sum after another, where 104 are promised."""
    matrix = 3.0 + 1e-3 * np.random.default_rng(0).normal(size=(500, 1))
    matrix[0] = -3.0  # so that no origin is subtracted
    both = matrix, np.zeros((500, 0))
    gram = fit(both)
    m = [float(row[0]) for row in whole_numbers(gram, both)]
    exact = gram.centred()[0][0, 0]
    # NumPy adds in another order on another processor, and may be lucky.
    squares, total = reduce(add, (each * each for each in m)), reduce(add, m)
    assert abs((squares - total**2 / 500) / exact - 1) > 2.0**-44


WHOLE = st.floats(-1e60, 1e60).filter(lambda x: x == 0 or abs(x) > 1e-60)


@given(WHOLE, WHOLE.filter(bool))
def test_double_doubles_add_multiply_and_divide(a: float, c: float) -> None:
    small = a * 2.0**-60
    one, other = Fraction(a) + Fraction(small), Fraction(c) + Fraction(c * 2.0**-57)
    operations = {
        centring.add: one + other,
        centring.multiply: one * other,
        centring.ratio: one / other,
    }
    for operation, exact in operations.items():
        found = sum(map(Fraction, operation(a, small, c, c * 2.0**-57)))
        size = abs(one) + abs(other) if operation is centring.add else abs(exact)
        assert abs(found - exact) <= size * Fraction(1, 2**100)


# --------------------------------------------------------------------------- the rest


@pytest.mark.parametrize("sparse", [False, True])
def test_state_restores_the_sums(sparse: bool) -> None:
    rng = np.random.default_rng(0)
    matrix: Any = 1e9 + rng.normal(size=(50, 3))
    if sparse:
        matrix = canonical(csr_array(matrix * (rng.random((50, 3)) < 0.5)))
    both = matrix, rng.normal(size=(50, 2))
    gram = fit(both)
    restored = Gram.from_state(gram.state(), 3, 50)
    assert type(restored.grid) is type(gram.grid)
    for name in ("top", "columns", "totals"):
        assert getattr(restored, name).tobytes() == getattr(gram, name).tobytes()
    restored.accumulate(table_of(both), np.array([7]), -1)
    twin = copy.deepcopy(gram)
    twin.accumulate(table_of(both), np.array([7]), -1)
    assert pickle.dumps(restored.state()) == pickle.dumps(twin.state())


def test_a_copy_is_independent() -> None:
    both = np.array([[1.0], [2.0], [4.0]]), np.zeros((3, 0))
    gram = fit(both)
    before = pickle.dumps(gram.state())
    gram.copy().accumulate(table_of(both), np.array([1]), -1)
    assert pickle.dumps(gram.state()) == before


def test_too_many_columns_are_refused_before_memory_is_taken() -> None:
    wide = np.broadcast_to(np.zeros(1), (2, MAX_FEATURES + 1))
    narrow = np.zeros((2, 1))
    for matrix, targets, told in ((wide, narrow, "4097 features"), (narrow, wide, "4097 targets")):
        grids = [Grid.fit(np.zeros((2, 1))) for _ in range(2)]
        with pytest.raises(InvalidDataError, match=f"^{told} were given; expected at most 4096"):
            Gram.fit(grids[0], table_of((matrix, targets)), grids[1])


class Cut(Stored):
    """A matrix in two blocks."""

    def __init__(self, matrix: Any, cut: int) -> None:
        self._matrix, self.shape, self.dtype = matrix, matrix.shape, matrix.dtype
        self.starts = np.array([0, cut, len(matrix)])

    def block(self, number: int, columns: Any = None, *, gaps: bool = False) -> Any:
        return self._matrix[self.starts[number] : self.starts[number + 1]]

    def __getitem__(self, rows: Any) -> Any:
        return self._matrix[rows]


@settings(max_examples=examples(60), deadline=None)
@given(seed=st.integers(0, 2**32 - 1), cut=st.integers(0, 90))
@example(seed=69, cut=0)  # few of the rows are live
def test_sums_of_parts_in_one_pass_are_those_of_their_rows(seed: int, cut: int) -> None:
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(90, 2)), rng.normal(size=(90, 1))
    live = np.flatnonzero(rng.random(90) < 0.8)
    labels = rng.integers(0, 3, live.size).astype(np.int32)
    grids = Grid.fit(X), Grid.fit(y)

    def each(labels: Any) -> list[Any]:
        grams = Gram.fit_each(grids[0], table_of((Cut(X, cut), y), live), grids[1], labels, 4)
        return [(gram.n_rows, gram.totals.tobytes()) for gram in grams]

    apart = [Gram.fit(grids[0], table_of((X, y), live[labels == s]), grids[1]) for s in range(4)]
    assert each(labels) == [(gram.n_rows, gram.totals.tobytes()) for gram in apart]
    wrong = labels[::-1].copy()
    assert np.array_equal(wrong, labels) or each(wrong) != each(labels)
    total = apart[0].copy()
    for gram in apart[1:]:
        total.merge(gram)
    total.merge(apart[2], -1)
    rest = Gram.fit(grids[0], table_of((X, y), live[labels != 2]), grids[1])
    assert (total.n_rows, total.totals.tobytes()) == (rest.n_rows, rest.totals.tobytes())
