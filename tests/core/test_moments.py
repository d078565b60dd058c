"""Moments are functions of the set of rows, and agree with exact rational arithmetic."""

from __future__ import annotations

import math
import pickle
from fractions import Fraction
from random import Random

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from effort import examples
from erasable.core import _moment_kernels
from erasable.core.grid import MAX_ROWS, Grid
from erasable.core.moments import Moments
from erasable.core.tables import Table
from subroutines import standalone

kernels = standalone(_moment_kernels)

pytestmark = pytest.mark.filterwarnings("ignore::erasable.core.grid.PrecisionWarning")

WHOLE = st.integers(-(2**53), 2**53)


@st.composite
def matrices(draw: st.DrawFn, least: int = 1, most: int = 20) -> np.ndarray:
    """Columns with offsets, skew, repetitions, and numbers that need every bit."""
    n = draw(st.integers(least, most))
    d = draw(st.integers(1, 3))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    offset = draw(st.sampled_from([0.0, 1.0, -1e3, 1.7e9, 2.0**-300, 2.0**300]))
    scale = draw(st.sampled_from([1e-9, 1e-3, 1.0, 1e5]))
    values = rng.normal(size=(n, d)) ** draw(st.sampled_from([0, 1, 5]))
    if draw(st.booleans()):
        values = np.rint(values)
    return offset + scale * max(abs(offset), 1.0) * values


def in_fractions(grid: Grid, matrix: np.ndarray) -> list[tuple[Fraction, Fraction]]:
    """Mean and population variance of each gridded column, exactly."""
    answers = []
    for column, origin in zip(grid.apply(matrix).T.tolist(), grid.origin.tolist(), strict=True):
        values = [Fraction(value) + Fraction(origin) for value in column]
        mean = sum(values, Fraction(0)) / len(values)
        answers.append((mean, sum((v - mean) ** 2 for v in values) / len(values)))
    return answers


def ulps(value: float, exact: Fraction) -> float:
    """Distance of a float from an exact number, in units of its last place."""
    return float(abs(Fraction(value) - exact) / Fraction(math.ulp(float(exact))))


# --------------------------------------------------------------------------- accuracy


@given(matrices())
@settings(max_examples=examples(200))
def test_mean_and_variance_are_within_one_ulp_of_fractions(matrix: np.ndarray) -> None:
    grid = Grid.fit(matrix)
    moments = Moments.fit(grid, Table(matrix))
    exact = in_fractions(grid, matrix)
    for (mean, variance), m, v in zip(exact, moments.mean(), moments.variance(), strict=True):
        assert ulps(m, mean) < 1
        assert ulps(v, variance) < 1
        assert (v == 0) == (variance == 0)


def test_the_textbook_formula_is_not_within_one_ulp() -> None:
    """Negative control: without double-double the variance loses its digits."""
    matrix = 3.0 + np.random.default_rng(0).normal(size=(500, 1))
    grid = Grid.fit(matrix)
    gridded = grid.apply(matrix)[:, 0]
    ((_, exact),) = in_fractions(grid, matrix)
    naive = (gridded @ gridded) / 500 - (gridded.sum() / 500) ** 2
    assert ulps(naive, exact) > 2
    assert ulps(Moments.fit(grid, Table(matrix)).variance()[0], exact) < 1


@given(
    n=st.integers(1, MAX_ROWS),
    s=WHOLE,
    squares=st.tuples(st.integers(0, 2**53), WHOLE, st.integers(0, 2**53)),
)
@example(n=MAX_ROWS, s=2**53, squares=(2**53, 0, 0))
@example(n=MAX_ROWS, s=2**53 - 2**26, squares=(2**53, -(2**26), 2**26))
@example(n=MAX_ROWS, s=0, squares=(2**53, 2**53, 2**53))
@example(n=3, s=3, squares=(0, 0, 3))
@settings(max_examples=examples(500))
def test_solving_uses_every_bit_of_the_sums(n: int, s: int, squares: tuple[int, int, int]) -> None:
    """Sums of any size, also those that no data give: whatever cancels, nothing is lost."""
    hh, hl, ll = squares
    sums = np.array([[s], [hh], [hl], [ll]], dtype=np.float64)
    out = np.empty(1)
    kernels.variances(float(n), sums, np.ones(1), out)
    numerator = n * (hh * 2**26 + hl * 2**14 + ll) - s * s
    assert ulps(out[0], Fraction(numerator, n * n)) <= 0.51
    assert (out[0] == 0) == (numerator == 0)
    kernels.means(float(n), sums, np.zeros(1), np.ones(1), out)
    assert ulps(out[0], Fraction(s, n)) <= 0.51


@given(st.floats(-1e100, 1e100), st.floats(-1e100, 1e100))
def test_transformations_are_free_of_error(a: float, b: float) -> None:
    total, error = kernels.two_sum(a, b)
    assert Fraction(total) + Fraction(error) == Fraction(a) + Fraction(b)
    if a == 0 or b == 0 or abs(a * b) > 1e-200:
        product, error = kernels.two_product(a, b)
        assert Fraction(product) + Fraction(error) == Fraction(a) * Fraction(b)


@pytest.mark.parametrize("d", [1, 7, 60, 600])
def test_halves_put_together_are_the_sums_of_integers(d: int) -> None:
    rng = np.random.default_rng(d)
    matrix = rng.normal(size=(211, d)) * np.exp(3 * rng.normal(size=d))
    matrix[0] = np.exp2(np.ceil(np.log2(np.abs(matrix).max(axis=0))))  # a mantissa of 2**26
    grid = Grid.fit(matrix)
    state = Moments.fit(grid, Table(matrix)).state()
    mantissas = np.rint((matrix - grid.origin) / grid.quantum).astype(np.int64).astype(object)
    assert max(abs(mantissas).ravel()) == 2**26
    assert np.array_equal(state["sum"].astype(np.int64).astype(object), mantissas.sum(axis=0))
    squares = state["hh"].astype(object) * 2**26 + state["hl"].astype(object) * 2**14 + state["ll"]
    assert np.array_equal(squares, (mantissas**2).sum(axis=0))
    assert all(state[half].dtype == np.int64 for half in ("hh", "hl", "ll"))


# --------------------------------------------------------------------------- deletion


def remove(moments: Moments, matrix: np.ndarray, rows: np.ndarray, live: np.ndarray) -> None:
    moments.subtract(Table(matrix, lambda: live), rows)


@given(st.data())
@settings(max_examples=examples(200))
def test_after_deletions_the_moments_are_those_of_what_is_left(data: st.DataObject) -> None:
    matrix = data.draw(matrices(least=2))
    order = np.array(data.draw(st.permutations(range(len(matrix)))), dtype=np.int64)
    moments = Moments.fit_with_grid(Table(matrix))
    start = 0
    while start < len(order) - 1:
        stop = data.draw(st.integers(start + 1, len(order) - 1))
        live = np.sort(order[stop:])
        remove(moments, matrix, order[start:stop], live)
        start = stop
        fresh = Moments.fit_with_grid(Table(matrix, lambda live=live: live))
        assert pickle.dumps(moments) == pickle.dumps(fresh)
        assert moments.mean().tobytes() == fresh.mean().tobytes()
        assert moments.variance().tobytes() == fresh.variance().tobytes()


@given(matrices(least=3), st.randoms())
def test_adding_undoes_removing_in_any_order(matrix: np.ndarray, random: Random) -> None:
    moments = Moments.fit_with_grid(Table(matrix))
    before = pickle.dumps(moments)
    rows = np.arange(len(matrix))
    random.shuffle(rows)
    for row in rows:
        moments.accumulate(Table(matrix), np.array([row]), -1)
    assert not moments.sums.any()
    assert moments.n_rows == 0
    assert np.isnan(moments.mean()).all()
    assert np.isnan(moments.variance()).all()
    random.shuffle(rows)
    moments.accumulate(Table(matrix), rows, 1)
    assert pickle.dumps(moments) == before


def test_float_sums_of_squares_do_not_undo() -> None:
    """Negative control: the obvious implementation drifts from a refit."""
    values = np.exp(2 * np.random.default_rng(0).normal(size=400))
    squares = float((values * values).sum())
    for value in values[:200]:
        squares -= value * value
    assert squares != (values[200:] * values[200:]).sum()


def test_forgetting_to_rederive_a_column_would_be_seen() -> None:
    """Negative control: sums in quanta of the old grid are wrong on the new one."""
    matrix = np.array([[0.3], [0.1], [100.0]])
    moments = Moments.fit_with_grid(Table(matrix))
    moments.accumulate(Table(matrix), np.array([2]), -1)
    assert moments.grid.subtract(Table(matrix, lambda: np.array([0, 1])), np.array([2])).exponents
    fresh = Moments.fit_with_grid(Table(matrix[:2]))
    assert moments.mean() != fresh.mean()


def test_state_restores_the_moments() -> None:
    matrix = np.random.default_rng(0).normal(size=(50, 4)).astype(np.float32)
    grid = Grid.fit(matrix)
    moments = Moments.fit(grid, Table(matrix))
    restored = Moments.from_state(Grid.from_state(grid.state()), 50, moments.state())
    assert restored.variance().tobytes() == moments.variance().tobytes()
    assert restored.mean().tobytes() == moments.mean().tobytes()
    assert restored.sum.tobytes() == grid.apply(matrix).sum(axis=0).tobytes()
    moments.state()["sum"][:] = 0
    assert moments.sum.any()
