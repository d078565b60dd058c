"""Least squares: scikit-learn's interface and numbers, sixty digits, and collinear columns."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import sklearn.linear_model
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.utils.estimator_checks import parametrize_with_checks

from effort import examples
from erasable.linear_model import LinearRegression
from linear_model.least_squares import Case, cases, exact, scaled_error

pytestmark = pytest.mark.filterwarnings("ignore::erasable.core.grid.PrecisionWarning")

BITS = "columns are rounded to 26 bits: 1e-8 where interpolation leaves 1e-16"


def not_expected(estimator: Any) -> dict[str, str]:
    names = ("dense", "sparse")
    return {f"check_sample_weight_equivalence_on_{name}_data": BITS for name in names}


@parametrize_with_checks(
    [LinearRegression(), LinearRegression(fit_intercept=False)],
    expected_failed_checks=not_expected,
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
def test_scikit_learn_contract(estimator: Any, check: Any) -> None:
    check(estimator)


# --------------------------------------------------------------------------- the numbers


def table(kind: str, n: int = 300, d: int = 5) -> np.ndarray:
    rng = np.random.default_rng(11)
    X = rng.normal(size=(n, d))
    if kind == "offset":
        return X + 1e9
    if kind == "mixed units":
        return X * 10.0 ** np.arange(-8, -8 + 4 * d, 4)
    if kind == "whole":
        return rng.integers(-20, 20, size=(n, d)).astype(np.float64)
    if kind == "ill":
        return X @ np.vander(np.linspace(0.1, 1.0, d)) + 1e-4 * X
    if kind == "skewed":
        return np.exp(2 * X)
    return X.astype(np.float32) if kind == "float32" else X


KINDS = ("normal", "offset", "mixed units", "whole", "ill", "skewed", "float32")


def regression(kind: str, weighted: bool, targets: int = 2) -> Case:
    X = table(kind)
    rng = np.random.default_rng(5)
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    y = 3.0 + Z @ rng.normal(size=(X.shape[1], targets)) + rng.normal(size=(len(X), targets))
    return Case(X, y, rng.random(len(X)) if weighted else None)


TOLERANCE = {"ill": 2e-5, "offset": 1e-6, "skewed": 1e-6}
"""How far predictions may be; at an offset of 1e9 it is scikit-learn that has lost digits."""


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_scikit_learn_agrees(kind: str, weighted: bool) -> None:
    case = regression(kind, weighted)
    ours = case.fit(LinearRegression())
    # Scikit-learn gives up columns that are 1e-10 of the largest.
    unit = 10.0 ** np.arange(-8, 12, 4) if kind == "mixed units" else np.ones(5)
    X = case.X / unit
    theirs = sklearn.linear_model.LinearRegression().fit(X, case.y, sample_weight=case.weights)
    tolerance = TOLERANCE.get(kind, 1e-7)
    assert np.abs(ours.predict(case.X) - theirs.predict(X)).max() < tolerance * case.y.std()
    assert ours.rank_ == theirs.rank_ == 5
    assert ours.coef_.shape == theirs.coef_.shape == (2, 5)
    assert ours.intercept_.shape == theirs.intercept_.shape == (2,)
    if kind != "ill":
        assert scaled_error(ours.coef_ * unit, theirs.coef_, X) < tolerance
    score = theirs.score(X, case.y, sample_weight=case.weights)
    assert ours.score(case.X, case.y, sample_weight=case.weights) == pytest.approx(score, abs=1e-7)


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_the_normal_equations_are_solved_to_the_last_digits(
    kind: str, weighted: bool, intercept: bool
) -> None:
    if kind == "offset" and not intercept:
        pytest.skip("columns that differ by 1e-9 of themselves are collinear without an intercept")
    case = regression(kind, weighted)
    model = case.fit(LinearRegression(fit_intercept=intercept))
    coefficients, intercepts = exact(case, intercept=intercept)
    assert scaled_error(model.coef_, coefficients, case.X) < 1e-12
    largest = np.abs(coefficients * np.abs(case.X).max(axis=0)).max()
    assert np.abs(model.intercept_ - intercepts).max() < 1e-12 * (1 + largest)


def test_plain_float_normal_equations_have_fewer_digits() -> None:
    """Negative control: without exact residuals the condition squared is lost."""
    case = regression("ill", weighted=False)
    wanted, _ = exact(case)
    X, y = case.X - case.X.mean(axis=0), case.y - case.y.mean(axis=0)
    plain = np.linalg.solve(X.T @ X, X.T @ y).T
    assert scaled_error(plain, wanted, case.X) > 1e-9


def test_an_offset_costs_predictions_no_digits() -> None:
    rng = np.random.default_rng(2)
    steps = rng.integers(0, 2**20, size=(200, 2))
    X, y = np.array([1.7e9, 1.1e9]) + steps * [7.0, 11.0], steps @ [1.0, 3.0]
    model = LinearRegression().fit(X, y)
    assert np.abs(model.predict(X) - y).max() < 2e-9
    half = np.add(X, [3.5, 5.5])  # where the constant and the products of 1e9 leave 1e-7
    assert np.abs(model.predict(half) - (y + 2.0)).max() < 2e-9


@given(cases(), st.booleans())
@settings(max_examples=examples(100))
def test_nothing_fits_better(case: Case, intercept: bool) -> None:
    """Residuals are orthogonal to every column, up to the grid, whatever the columns are."""
    model = case.fit(LinearRegression(fit_intercept=intercept))
    assert np.isfinite(model.coef_).all()
    assert np.isfinite(model.intercept_).all()
    X = case.X.toarray() if hasattr(case.X, "toarray") else case.X.astype(np.float64)
    weights = np.ones(len(X)) if case.weights is None else case.weights
    root = np.sqrt(weights)[:, None]
    Z = np.column_stack([X, np.ones(len(X))]) if intercept else X
    if np.abs(X).max() > 1e6:
        return  # what is left of an offset of 1e9 in float64 says nothing here
    y = case.y.reshape(len(X), -1)
    best = np.linalg.lstsq(root * Z, root * y, rcond=1e-7)[0]
    ours = root * (y - model.predict(case.X).reshape(len(X), -1))
    theirs = root * (y - Z @ best)
    assert np.linalg.norm(ours) <= np.linalg.norm(theirs) + 1e-4 * np.linalg.norm(root * y)


# --------------------------------------------------------------------------- collinear columns


def collinear(kind: str) -> np.ndarray:
    rng = np.random.default_rng(8)
    X = rng.normal(size=(120, 4))
    dummies = np.eye(3)[rng.integers(0, 3, 120)]
    return {
        "twice": np.column_stack([X, X[:, 1]]),
        "sum": np.column_stack([X, X @ [1.0, -2.0, 0.5, 3.0]]),
        "first": np.column_stack([X @ [1.0, -2.0, 0.5, 3.0], X]),
        "many": np.column_stack([X, X @ rng.normal(size=(4, 30))]),
        "dummies": np.column_stack([X, dummies]),
        "constant": np.column_stack([X, np.full(120, 7.3), np.zeros(120)]),
        "other units": np.column_stack([X, 1000.0 * X[:, 0] + X[:, 1]]),
        "small difference": np.column_stack([X, X[:, 0] + 1e-3 * X[:, 1], 1e-3 * X[:, 1]]),
    }[kind]


COLLINEAR = (
    "twice", "sum", "first", "many", "dummies", "constant", "other units", "small difference",
)  # fmt: skip


@pytest.mark.parametrize("kind", COLLINEAR)
def test_of_equal_fits_the_shortest_is_taken(kind: str) -> None:
    X = collinear(kind)
    rng = np.random.default_rng(9)
    y = X[:, :4] @ rng.normal(size=4) + rng.normal(size=120)
    ours = LinearRegression().fit(X, y)
    theirs = sklearn.linear_model.LinearRegression().fit(X, y)
    assert ours.rank_ == np.linalg.matrix_rank(X - X.mean(axis=0))
    assert np.abs(ours.predict(X) - theirs.predict(X)).max() < 1e-6
    loose = 1e-3 if kind == "small difference" else 1e-6
    assert np.abs(ours.coef_ - theirs.coef_).max() < loose * np.abs(theirs.coef_).max()
    ours.delete(range(20))
    again = LinearRegression().fit(X[20:], y[20:], ids=range(20, 120))
    assert ours.coef_.tobytes() == again.coef_.tobytes()


def test_rounding_would_break_ties() -> None:
    """Negative control: solved as they are, gridded collinear columns give arbitrary numbers."""
    case = Case(collinear("sum"), np.random.default_rng(9).normal(size=120))
    wanted, _ = exact(case)
    assert np.abs(wanted).max() > 1e3
    assert np.abs(case.fit(LinearRegression()).coef_).max() < 1


@pytest.mark.parametrize("n", [1, 2, 5, 9])
@pytest.mark.parametrize("intercept", [True, False])
def test_fewer_rows_than_columns(n: int, intercept: bool) -> None:
    rng = np.random.default_rng(n)
    X, y = rng.normal(size=(n, 9)), rng.normal(size=n)
    ours = LinearRegression(fit_intercept=intercept).fit(X, y)
    theirs = sklearn.linear_model.LinearRegression(fit_intercept=intercept).fit(X, y)
    assert ours.rank_ == theirs.rank_ == n - intercept
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-6)
    np.testing.assert_allclose(ours.predict(X), y, atol=1e-6)


def test_powers_of_whole_numbers() -> None:
    t = np.arange(-20.0, 21.0)
    X = t[:, None] ** np.arange(1, 6)
    y = X @ [3.0, -2.0, 0.5, 0.25, -0.125] + 7.0
    model = LinearRegression().fit(X, y)
    np.testing.assert_allclose(model.coef_, [3.0, -2.0, 0.5, 0.25, -0.125], rtol=1e-6)


# --------------------------------------------------------------------------- the interface


@pytest.mark.parametrize("columns", [None, 1, 3])
def test_shapes_are_those_of_scikit_learn(columns: int | None) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 4))
    y = rng.normal(size=30 if columns is None else (30, columns))
    for intercept in (True, False):
        ours = LinearRegression(fit_intercept=intercept).fit(X, y)
        theirs = sklearn.linear_model.LinearRegression(fit_intercept=intercept).fit(X, y)
        assert ours.coef_.shape == theirs.coef_.shape
        assert np.shape(ours.intercept_) == np.shape(theirs.intercept_)
        assert ours.predict(X).shape == theirs.predict(X).shape


def test_a_prediction_depends_on_its_row_alone() -> None:
    case = regression("normal", weighted=False)
    model = case.fit(LinearRegression())
    together = model.predict(case.X)
    for i in range(0, 300, 37):
        assert model.predict(case.X[i : i + 1]).tobytes() == together[i].tobytes()


def test_constant_targets() -> None:
    model = LinearRegression().fit(np.random.default_rng(0).normal(size=(9, 2)), np.full(9, 0.1))
    assert model.coef_.tolist() == [0.0, 0.0]
    assert model.intercept_ == 0.1
