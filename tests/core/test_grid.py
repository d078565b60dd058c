"""The grid is a function of the live rows, and sums on it do not depend on order."""

from __future__ import annotations

import pickle
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from effort import examples
from erasable.core import _grid_kernels
from erasable.core.errors import MagnitudeError
from erasable.core.grid import MAX_ROWS, Grid, PrecisionWarning
from erasable.core.tables import Table
from subroutines import standalone

kernels = standalone(_grid_kernels)

quiet = pytest.mark.filterwarnings("ignore::erasable.core.grid.PrecisionWarning")
SHAPES = (
    "normal",
    "constant",
    "zeros",
    "skewed",
    "duplicated",
    "timestamps",
    "negative offset",
    "integers",
    "binary",
    "tiny",
    "denormal",
    "huge",
    "powers of two",
    "around zero",
)


def column(shape: str, n: int, rng: np.random.Generator) -> np.ndarray:
    """One column of n values, of a kind that is easy to get wrong."""
    normal = rng.normal(size=n)
    return {
        "normal": normal,
        "constant": np.full(n, rng.choice([1e9, -0.1, 3.0, 2.0**-1074, 0.0])),
        "zeros": np.where(rng.random(n) < 0.5, 0.0, -0.0),
        "skewed": np.exp(8 * normal),
        "duplicated": rng.choice(normal[: max(1, n // 4)], n),
        "timestamps": 1.7e9 + rng.random(n) * 2.0 ** rng.integers(-3, 30),
        "negative offset": -1e5 - rng.random(n),
        "integers": rng.integers(-300, 300, n).astype(np.float64),
        "binary": rng.integers(0, 2, n).astype(np.float64),
        "tiny": 1e-140 * normal,
        "denormal": 5e-324 * rng.integers(-9, 9, n),
        "huge": 1e140 * normal,
        "powers of two": 2.0 ** rng.integers(-6, 6, n),
        "around zero": rng.choice([-1.0, 1.0], n) * 2.0 ** rng.integers(-40, 2, n),
    }[shape]


@st.composite
def matrices(draw: st.DrawFn, least: int = 1, most: int = 24) -> np.ndarray:
    n = draw(st.integers(least, most))
    shapes = draw(st.lists(st.sampled_from(SHAPES), min_size=1, max_size=4))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    matrix = np.column_stack([column(shape, n, rng) for shape in shapes])
    if draw(st.booleans()) and np.abs(matrix).max() < 1e30:
        return matrix.astype(np.float32)
    return matrix


def everything(grid: Grid) -> list[bytes]:
    """Every number a grid holds, as bytes: -0.0 is not 0.0."""
    extremes = (grid.low, grid.high, grid.n_low, grid.n_high)
    numbers = (*extremes, grid.origin, grid.top, grid.coarse, grid.magic)
    return [array.tobytes() for array in numbers] + [bytes(grid.n_rows)]


def exact_log2_ceiling(value: Fraction) -> int:
    exponent = 0
    while Fraction(2) ** exponent < value:
        exponent += 1
    while Fraction(2) ** (exponent - 1) >= value:
        exponent -= 1
    return exponent


# --------------------------------------------------------------------------- rounding


@quiet
@given(matrices())
def test_gridded_values_are_the_nearest_multiples_of_the_quantum(matrix: np.ndarray) -> None:
    grid = Grid.fit(matrix)
    gridded = grid.apply(matrix)
    for (i, j), value in np.ndenumerate(matrix):
        offset = Fraction(float(value)) - Fraction(grid.origin[j])
        quantum = Fraction(2) ** int(grid.top[j] - 26)
        mantissa = round(offset / quantum)  # Python rounds a tie to even
        assert Fraction(gridded[i, j]) == mantissa * quantum
        assert abs(mantissa) <= 2**26
        assert abs(offset) <= Fraction(2) ** int(grid.top[j])
    assert not np.signbit(gridded[gridded == 0]).any()


@given(matrices())
@quiet
def test_lossless_and_narrow_say_what_they_mean(matrix: np.ndarray) -> None:
    grid = Grid.fit(matrix)
    gridded = grid.apply(matrix)
    assert grid.lossless == bool(np.array_equal(gridded + grid.origin, matrix))
    if grid.narrow:
        narrow = grid.apply(matrix, dtype=np.float32)
        assert narrow.dtype == np.float32
        assert np.array_equal(narrow.astype(np.float64), gridded)


def test_pixels_are_narrow_and_normal_numbers_are_neither() -> None:
    rng = np.random.default_rng(0)
    pixels = Grid.fit(rng.integers(0, 256, (50, 3)).astype(np.float64))
    assert pixels.lossless
    assert pixels.narrow
    normal = Grid.fit(rng.normal(size=(50, 3)))
    assert not normal.lossless
    assert not normal.narrow
    halves = Grid.fit(np.array([[2.0**25 + 1.0], [0.0]]))  # on the grid, 26 bits
    assert halves.lossless
    assert not halves.narrow


def test_new_data_far_outside_stays_finite_and_on_the_grid() -> None:
    grid = Grid.fit(np.array([[1e-140], [2e-140], [-3e-141]]))
    far = np.array([[1.7e308], [-1.7e308], [1e-120], [1.0], [5e-324]])
    gridded = grid.apply(far)
    assert np.isfinite(gridded).all()
    quantum = Fraction(float(grid.quantum[0]))
    assert all((Fraction(float(value)) / quantum).denominator == 1 for value in gridded[:, 0])
    assert np.array_equal(gridded[[0, 1, 3]], far[[0, 1, 3]])


@given(st.floats(-(2.0**53), 2.0**53), st.integers(-40, 40))
def test_quantise_is_rint_for_every_magnitude(value: float, exponent: int) -> None:
    magic = 2.0 ** (52 + exponent)
    expected = np.rint(value * 2.0**-exponent) * 2.0**exponent
    assert kernels.quantise(value, magic) == expected


@pytest.mark.parametrize("d", [1, 3, 10, 700])
@pytest.mark.parametrize("n", [1, 2, 103, 1000])
def test_wide_rows_chosen_rows_and_strided_input_agree(n: int, d: int) -> None:
    rng = np.random.default_rng(n + d)
    matrix = rng.normal(size=(n, d)) * np.exp(rng.normal(size=d))
    grid = Grid.fit(matrix)
    order = rng.permutation(n)
    shuffled = Grid.fit(np.vstack([matrix, matrix])[::-1], (2 * n - 1 - order).astype(np.int64))
    assert everything(shuffled) == everything(grid)
    oracle = np.rint((matrix - grid.origin) / grid.quantum) * grid.quantum
    assert np.array_equal(grid.apply(matrix), oracle)
    assert np.array_equal(grid.apply(matrix, order), oracle[order])
    assert np.array_equal(grid.apply(np.asfortranarray(matrix)), oracle)


# --------------------------------------------------------------------------- origin and top


@given(matrices())
@example(np.array([[3.0e-323], [3.5e-323]]))
@quiet
def test_origin_is_there_where_it_saves_four_bits_and_only_there(matrix: np.ndarray) -> None:
    grid = Grid.fit(matrix)
    for j in range(matrix.shape[1]):
        low, high = Fraction(grid.low[j]), Fraction(grid.high[j])
        if low == high:
            assert grid.origin[j] == grid.low[j]
            continue
        top = max(exact_log2_ceiling(max(abs(low), abs(high))), kernels.MIN_TOP)
        if grid.origin[j] == 0.0:
            assert grid.top[j] == top
            # An exponent ends at MIN_TOP, so an origin saves nothing below it.
            span = max(exact_log2_ceiling(high - low), kernels.MIN_TOP)
            assert low <= 0 <= high or top - span <= 4
        else:
            assert top - grid.top[j] >= 4


def test_origin_and_top_do_not_hang_on_one_record() -> None:
    seconds = 1.7e9 + np.random.default_rng(1).random((1000, 1)) * 9e4
    whole = Grid.fit(seconds)
    extremes = np.concatenate([np.argmin(seconds, axis=0), np.argmax(seconds, axis=0)])
    rest = np.delete(seconds, extremes, axis=0)
    assert whole.state() == Grid.fit(rest).state()
    scaled = np.array([[0.999], [1.0], [0.6], [0.0]])
    assert Grid.fit(scaled).top == Grid.fit(scaled[[0, 2, 3]]).top == 0


def test_known_brackets() -> None:
    known = {
        (0.0, 0.0): (0.0, 0),
        (0.0, 1.0): (0.0, 0),
        (0.0, 1.0000001): (0.0, 1),
        (-3.0, 0.25): (0.0, 2),
        (1e9, 1e9): (1e9, 30),
        (1990.0, 2020.0): (2016.0, 5),
        (-2020.0, -1990.0): (-2016.0, 5),
        (15.0, 16.0): (16.0, 0),
        (7.0, 8.0): (0.0, 3),
        (5e-324, 1e-323): (0.0, -480),
    }
    for extremes, bracket in known.items():
        assert kernels.bracket(*extremes) == bracket, extremes


# --------------------------------------------------------------------------- sums


@pytest.mark.parametrize("seed", range(5))
def test_sums_are_exact_in_any_order_and_removing_undoes_adding(seed: int) -> None:
    rng = np.random.default_rng(seed)
    gridded = Grid.fit(values := np.exp(2 * rng.normal(size=(2000, 1)))).apply(values)[:, 0]
    exact = sum(map(Fraction, gridded.tolist()), Fraction(0))
    for _ in range(5):
        order = rng.permutation(gridded)
        running = 0.0
        for value in order.tolist():
            running += value
        assert Fraction(running) == exact == Fraction(float(order.sum()))
    for value in gridded[:1000].tolist():
        running -= value
    assert running == gridded[1000:].sum()


def test_off_the_grid_sums_do_depend_on_order() -> None:
    """Negative control: the same test fails without the grid."""
    values = np.exp(3 * np.random.default_rng(0).normal(size=2000))
    totals = {sum(np.random.default_rng(i).permutation(values).tolist()) for i in range(20)}
    assert len(totals) > 1


@pytest.mark.parametrize("parity", [0, 1])
def test_the_worst_case_of_2_to_the_27_rows_is_exact(parity: int) -> None:
    """Every value at the top: the last partial sums need all 53 bits."""
    grid = Grid.fit(np.array([[1.0], [-1.0]]))
    largest = 1.0 - parity * float(grid.quantum[0])
    assert grid.apply(np.array([[largest]])) == largest
    exact = MAX_ROWS * Fraction(largest)
    total = float(np.full(2**20, largest).sum()) * (MAX_ROWS // 2**20)
    assert Fraction(total) == exact
    quantum = float(grid.quantum[0])
    last = total - largest  # 2**27 - 1 rows, and one at the smallest distance from zero
    assert Fraction(last + quantum) == exact - Fraction(largest) + Fraction(quantum)
    assert (last + quantum) - last == quantum


def test_one_row_more_than_2_to_the_27_would_not_be_exact() -> None:
    """Negative control for the limit on rows."""
    quantum = 2.0**-26
    full = float(MAX_ROWS)
    assert (full + quantum) - full == 0.0


# --------------------------------------------------------------------------- deletion


@given(st.data())
@settings(max_examples=examples(300))
@quiet
def test_after_deletions_the_grid_is_that_of_what_is_left(data: st.DataObject) -> None:
    matrix = data.draw(matrices(least=2))
    order = np.array(data.draw(st.permutations(range(len(matrix)))), dtype=np.int64)
    grid = Grid.fit(matrix)
    gridded = grid.apply(matrix)
    alive = np.ones(len(matrix), dtype=bool)
    start = 0
    while start < len(order) - 1:
        stop = data.draw(st.integers(start + 1, len(order) - 1))
        rows, start = order[start:stop], stop
        before = grid.state()
        alive[rows] = False
        live = np.flatnonzero(alive)
        change = grid.subtract(Table(matrix, lambda live=live: live), rows)
        fresh = Grid.fit(matrix, live)
        assert everything(grid) == everything(fresh)
        assert (grid.lossless, grid.narrow) == (fresh.lossless, fresh.narrow)
        assert pickle.dumps(grid) == pickle.dumps(fresh)
        again = grid.apply(matrix)
        changed = (before["top"] != grid.top) | (before["origin"] != grid.origin)
        assert np.array_equal(change.columns, changed)
        assert change.exponents == changed.any()
        assert np.array_equal(change.values, (again[live] != gridded[live]).any(axis=0))
        gridded = again


@given(st.data())
@quiet
def test_deleting_rows_never_coarsens_a_column_nor_takes_its_origin_away(
    data: st.DataObject,
) -> None:
    matrix = data.draw(matrices(least=2))
    live = np.flatnonzero(data.draw(st.lists(st.booleans(), min_size=len(matrix))))
    live = live[live < len(matrix)]
    if not live.size:
        return
    whole, part = Grid.fit(matrix), Grid.fit(matrix, live)
    varies = part.low < part.high
    assert (part.top <= whole.top)[varies].all()
    assert (part.origin != 0)[varies & (whole.origin != 0)].all()


def test_live_rows_are_asked_for_only_when_an_extreme_goes() -> None:
    matrix = np.array([[0.0, 5.0], [0.0, 1.0], [3.0, 2.0], [7.0, 5.0], [7.0, 1.0]])
    grid = Grid.fit(matrix)

    def unwanted() -> np.ndarray:
        raise AssertionError("scanned although every extreme is still there")

    for row in (2, 0, 4):
        assert not grid.subtract(Table(matrix, unwanted), np.array([row])).extremes.any()
    change = grid.subtract(Table(matrix, lambda: np.array([1])), np.array([3]))
    assert change.extremes.tolist() == [True, True]
    assert grid.low.tolist() == grid.high.tolist() == [0.0, 1.0]


def test_a_missed_rescan_would_be_seen() -> None:
    """Negative control: a grid that keeps its extremes is not the grid of what is left."""
    matrix = np.array([[0.0], [1.0], [100.0]])
    stale = Grid.fit(matrix)
    kernels.forget_reached(matrix, np.array([2]), stale.low, stale.high, stale.extremes.counts)
    kernels.forget_coarse(matrix, np.array([2]), stale.origin, stale.magic, stale.coarse)
    stale.n_rows -= 1
    assert everything(stale) != everything(Grid.fit(matrix[:2]))


def test_a_deleted_extreme_is_not_in_the_pickle() -> None:
    secret = 1234.56789
    matrix = np.array([[0.5], [secret], [0.25], [0.125]])
    grid = Grid.fit(matrix)
    assert np.float64(secret).tobytes() in pickle.dumps(grid)
    grid.subtract(Table(matrix, lambda: np.array([0, 2, 3])), np.array([1]))
    assert np.float64(secret).tobytes() not in pickle.dumps(grid)


def test_removing_every_row_leaves_the_empty_grid() -> None:
    matrix = np.array([[1.0, -2.0]])
    grid = Grid.fit(matrix)
    grid.subtract(Table(matrix, lambda: np.empty(0, dtype=np.int64)), np.array([0]))
    assert everything(grid) == everything(Grid.fit(matrix, np.empty(0, dtype=np.int64)))


# --------------------------------------------------------------------------- the rest


@given(matrices())
@quiet
def test_state_restores_the_rounding(matrix: np.ndarray) -> None:
    grid = Grid.fit(matrix)
    restored = Grid.from_state(grid.state())
    assert restored.apply(matrix).tobytes() == grid.apply(matrix).tobytes()
    grid.state()["top"][:] = 99
    assert (grid.top != 99).all()


@pytest.mark.parametrize("value", [1e200, -1.7e308, np.inf])
def test_values_too_large_for_exact_sums_are_refused_by_name(value: float) -> None:
    matrix = np.array([[1.0, value], [2.0, 3.0]])
    with pytest.raises(MagnitudeError, match=r"1 columns hold values beyond 2\*\*480 \(column 1\)"):
        Grid.fit(matrix)
    with pytest.raises(MagnitudeError, match="'income'"):
        Grid.fit(matrix, names=["age", "income"])
    assert Grid.fit(matrix[1:]).low.tolist() == [2.0, 3.0]


def test_too_many_rows_are_refused() -> None:
    matrix = np.broadcast_to(np.zeros((1, 0)), (MAX_ROWS + 1, 0))
    with pytest.raises(MagnitudeError, match="134217729 rows were given"):
        Grid.fit(matrix)


def test_a_skewed_column_warns_and_others_do_not() -> None:
    rng = np.random.default_rng(0)
    skewed = np.column_stack([rng.normal(size=20_000), rng.random(20_000) * 1e-9])
    skewed[7, 1] = 1.0
    with pytest.warns(PrecisionWarning, match="1 skewed columns .'b'.: more than 1 %"):
        Grid.fit(skewed, names=["a", "b"])
    with pytest.warns(PrecisionWarning, match="column 1"):
        Grid.fit(skewed, np.arange(10_000))
    Grid.fit(skewed[:, :1])  # warnings are errors
    Grid.fit(np.where(rng.random((1000, 1)) < 0.9, 0.0, rng.random((1000, 1))))
