"""What is published is the true optimum, rounded: against an oracle of 60 digits."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array

from erasable.linear_model import LogisticRegression
from erasable.linear_model import _logistic_work as work_module
from erasable.linear_model._certificate import distance_after_step
from erasable.linear_model._lattice import STEP, round_intervals
from linear_model.logistic_oracle import expected, optimum, small


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("C", [1e-2, 1.0, 1e3])
@pytest.mark.parametrize(
    "kind", ["plain", "offset", "collinear", "constant", "scales", "whole", "separable"]
)
def test_it_publishes_the_true_optimum_rounded(kind: str, C: float, n_classes: int) -> None:
    X, y = small(3, kind, n_classes)
    model = LogisticRegression(C).fit(X, y)
    np.testing.assert_array_equal(
        model.state()["coefficients"], expected(model, optimum(X, y, C)), strict=True
    )


@pytest.mark.parametrize("n_classes", [2, 4])
def test_without_intercept_and_with_weights(n_classes: int) -> None:
    X, y = small(5, "plain", n_classes)
    weights = np.random.default_rng(0).random(len(y)) * 3
    model = LogisticRegression(2.0, fit_intercept=False).fit(X, y, weights)
    true = optimum(X, y, 2.0, intercept=False, weights=weights)
    np.testing.assert_array_equal(model.state()["coefficients"], expected(model, true))


@pytest.mark.parametrize("n_classes", [2, 3])
def test_conjugate_gradients_publish_the_same(
    n_classes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(work_module, "MOST", 0)
    X, y = small(7, "plain", n_classes)
    for rows in (X, csr_array(X)):
        model = LogisticRegression(2.0).fit(rows, y)
        true = expected(model, optimum(X, y, 2.0))
        np.testing.assert_array_equal(model.state()["coefficients"], true)


def test_without_the_certificate_it_would_not(monkeypatch: pytest.MonkeyPatch) -> None:
    """The negative control: a bound that is a million times too small."""
    from erasable.linear_model import _newton

    monkeypatch.setattr(
        _newton, "distance_after_step", lambda *args: 1e-6 * distance_after_step(*args)
    )
    wrong = 0
    for seed in range(8):
        X, y = small(seed, "plain", 2)
        model = LogisticRegression().fit(X, y)
        wrong += not np.array_equal(
            model.state()["coefficients"], expected(model, optimum(X, y, 1.0))
        )
    assert wrong > 0


# --------------------------------------------------------------------------- the lattice


def test_settling() -> None:
    half, low = np.full(1, 0.1 * STEP), np.zeros(1)
    for middle, certain in ((2.3, True), (2.45, False), (2.55, False), (-7.2, True)):
        values, told = round_intervals(np.array([middle * STEP]), low, half)
        assert told is certain
        if certain:
            assert values[0] == round(middle) * STEP
    # A low part decides.
    at, thin = np.array([2.5 * STEP]), np.full(1, 1e-9 * STEP)
    assert round_intervals(at, np.array([1e-6 * STEP]), thin)[0][0] == 3 * STEP
    assert round_intervals(at, np.array([-1e-6 * STEP]), thin)[0][0] == 2 * STEP
    assert not round_intervals(at, low, thin)[1]


@pytest.mark.parametrize(("middle", "even"), [(2.5, 2), (3.5, 4), (-0.5, 0), (-1.5, -2)])
def test_what_lies_on_a_boundary_becomes_even(middle: float, even: int) -> None:
    values, certain = round_intervals(
        np.array([middle * STEP]), np.zeros(1), np.full(1, 2.0**-62 * STEP)
    )
    assert certain
    assert values[0] == even * STEP
    assert not np.signbit(values[0]) or even < 0


def test_nothing_is_certain_where_nothing_is_known() -> None:
    assert not round_intervals(np.zeros(2), np.zeros(2), np.array([0.0, np.inf]))[1]
    assert not round_intervals(np.zeros(2), np.zeros(2), np.array([0.0, np.nan]))[1]


@given(
    st.integers(-9, 9),
    st.integers(-(2**20), 2**20),
    st.integers(56, 75),
    st.lists(st.tuples(st.floats(-1, 1), st.floats(0, 80)), min_size=2, max_size=2),
)
def test_what_is_certain_is_a_function_of_the_optimum(
    cell: int, away: int, scale: int, intervals: list[tuple[float, float]]
) -> None:
    """Whatever interval an optimum near a boundary is known to be in."""
    true = (Fraction(2 * cell + 1, 2) + Fraction(away, 2 ** (20 + scale))) * Fraction(STEP)
    found = set()
    for share, size in intervals:
        half = 2.0**-size * STEP
        middle = true + Fraction(share) * Fraction(half)
        high = float(middle)
        low = float(middle - Fraction(high))
        wide = np.full(1, half * (1 + 2.0**-30) + 2.0**-100 * STEP)
        values, certain = round_intervals(np.array([high]), np.array([low]), wide)
        if certain:
            found.add(float(values[0] / STEP))
    assert len(found) < 2
    offset = abs(Fraction(away, 2 ** (20 + scale)))
    if found and offset != Fraction(1, 2**60):
        even = cell + cell % 2
        nearest = cell + (away > 0)
        assert found == {float(even if offset < Fraction(1, 2**60) else nearest)}


@pytest.mark.parametrize("kind", ["mirrored", "duplicated", "balanced out"])
def test_symmetry_gives_exact_zeros_and_twins(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """On every path, in every order: 0 is the middle of a cell, and twins lie in the same place."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(20, 2)), np.arange(20) % 2
    if kind == "mirrored":
        X, y = np.vstack([X, -X]), np.r_[y, 1 - y]
    elif kind == "duplicated":
        X = np.column_stack([X, X[:, :1]])
    else:
        X, y = np.vstack([X, X]), np.r_[y, 1 - y]
    extra = rng.normal(size=(2, X.shape[1]))
    X, y = np.vstack([X, extra]), np.r_[y, 0, 1]
    n, models = len(y), []
    for most in (1500, 0):
        monkeypatch.setattr(work_module, "MOST", most)
        for order in (np.arange(n - 2), np.arange(n - 2)[::-1]):
            models.append(LogisticRegression().fit(X[order], y[order], ids=order))
        models.append(LogisticRegression().fit(X, y, ids=np.arange(n)))
        models[-1].delete([n - 1, n - 2])
    assert len({model.digest() for model in models}) == 1
    slopes, intercept = models[0].coef_[0], models[0].intercept_[0]
    if kind == "duplicated":
        assert slopes[0] == slopes[2] != 0
    elif kind == "mirrored":
        assert slopes.all()
        assert intercept == 0
    else:
        assert not slopes.any()
        assert intercept == 0
