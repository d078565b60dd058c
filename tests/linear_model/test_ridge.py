"""Ridge: scikit-learn's interface and numbers, sixty digits, penalties, weights and refusals."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sklearn.linear_model
from scipy.sparse import csr_array
from sklearn.utils.estimator_checks import parametrize_with_checks

from erasable import Records, load
from erasable.core.errors import (
    ArtifactError,
    InvalidDataError,
    InvalidParameterError,
    MagnitudeError,
    TooFewRecordsError,
)
from erasable.linear_model import LinearRegression, Ridge
from erasable.utils.estimator_checks import parametrize_with_law_checks
from law_cases import check_law_of_variant, of_variants
from linear_model.least_squares import Case, exact, scaled_error

VARIANTS = [Ridge(), Ridge(0.0), Ridge(np.array([2.5]), fit_intercept=False)]


@parametrize_with_checks([Ridge(), Ridge(fit_intercept=False)])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
def test_scikit_learn_contract(estimator: Any, check: Any) -> None:
    check(estimator)


@pytest.mark.thorough
@of_variants(parametrize_with_law_checks(VARIANTS[1:], fast=True))
def test_law(estimator: Any, check: Any) -> None:
    check_law_of_variant(estimator, check)


def regression(n: int = 200, d: int = 6, weighted: bool = False) -> Case:
    rng = np.random.default_rng(n + d)
    X = rng.normal(size=(n, d)) * 10.0 ** rng.integers(-2, 3, size=d) + rng.normal(size=d)
    y = 1.0 + X @ rng.normal(size=(d, 2)) + rng.normal(size=(n, 2))
    return Case(X, y, rng.integers(0, 4, n) / 2.0 if weighted else None)


ALPHAS = [0.0, 1e-6, 1.0, 300.0, 1e12, [0.0, 5.0], [7.0, 0.0], [0.5, 0.25]]


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("alpha", ALPHAS, ids=str)
def test_scikit_learn_and_sixty_digits_agree(alpha: Any, weighted: bool, intercept: bool) -> None:
    case = regression(weighted=weighted)
    model = case.fit(Ridge(alpha, fit_intercept=intercept))
    coefficients, intercepts = exact(case, alpha, intercept)
    assert scaled_error(model.coef_, coefficients, case.X) < 1e-12
    assert np.abs(model.intercept_ - intercepts).max() < 1e-11
    theirs = sklearn.linear_model.Ridge(alpha, fit_intercept=intercept, solver="cholesky").fit(
        case.X, case.y, sample_weight=case.weights
    )
    spread = case.y.std()
    assert scaled_error(model.coef_, theirs.coef_, case.X) < 1e-7
    assert np.abs(model.predict(case.X) - theirs.predict(case.X)).max() < 1e-7 * spread


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("intercept", [True, False])
def test_sparse_rows_give_what_dense_ones_give(weighted: bool, intercept: bool) -> None:
    case = regression(d=12, weighted=weighted)
    rng = np.random.default_rng(1)
    dense = np.where(rng.random(case.X.shape) < 0.3, case.X, 0.0)
    sparse = Case(csr_array(dense), case.y, case.weights)
    model = sparse.fit(Ridge(fit_intercept=intercept))
    theirs = sklearn.linear_model.Ridge(fit_intercept=intercept).fit(
        dense, case.y, sample_weight=case.weights
    )
    assert scaled_error(model.coef_, theirs.coef_, dense) < 1e-7
    predicted = model.predict(sparse.X)
    assert np.abs(predicted - theirs.predict(dense)).max() < 1e-7 * case.y.std()
    np.testing.assert_allclose(model.predict(dense), predicted, rtol=1e-12, atol=1e-12)
    of_dense = Case(dense, case.y, case.weights).fit(Ridge(fit_intercept=intercept))
    np.testing.assert_allclose(of_dense.predict(sparse.X), predicted, atol=1e-6)


def test_without_penalty_it_is_least_squares() -> None:
    case = regression()
    ridge, plain = case.fit(Ridge(0.0)), case.fit(LinearRegression())
    assert ridge.coef_.tobytes() == plain.coef_.tobytes()
    assert ridge.predict(case.X).tobytes() == plain.predict(case.X).tobytes()


def collinear(n: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(3)
    X = rng.normal(size=(n, 4))
    X = np.column_stack([X, X @ [1.0, 1.0, 0.0, 2.0], X[:, 0], np.full(n, 9.9)])
    return X, X[:, 0] + rng.normal(size=n)


@pytest.mark.parametrize("alpha", [1e-6, 1.0, 100.0])
@pytest.mark.parametrize("n", [20, 400])
def test_collinear_columns_share_evenly(alpha: float, n: int) -> None:
    X, y = collinear(n)
    model = Ridge(alpha).fit(X, y)
    theirs = sklearn.linear_model.Ridge(alpha, solver="svd").fit(X, y)
    np.testing.assert_allclose(model.coef_, theirs.coef_, atol=1e-6)
    assert model.coef_[6] == 0.0


@pytest.mark.parametrize("n", [20, 400])
def test_a_vanishing_penalty_makes_nothing_of_rounding(n: int) -> None:
    """At 1e-12, scikit-learn's coefficients already differ by a hundredth."""
    X, y = collinear(n)
    limit = LinearRegression().fit(X, y).coef_
    for alpha in (1e-8, 1e-12, 1e-30, 1e-300):
        np.testing.assert_allclose(Ridge(alpha).fit(X, y).coef_, limit, atol=1e-8)


@pytest.mark.parametrize("alpha", [1e-9, 1.0])
def test_fewer_rows_than_columns(alpha: float) -> None:
    rng = np.random.default_rng(3)
    X, y = rng.normal(size=(15, 40)), rng.normal(size=15)
    model = Ridge(alpha).fit(X, y)
    theirs = sklearn.linear_model.Ridge(alpha, solver="svd").fit(X, y)
    np.testing.assert_allclose(model.coef_, theirs.coef_, atol=1e-6)


def test_an_endless_penalty_leaves_the_mean() -> None:
    model = Ridge(1e300).fit(1e-100 * np.arange(5.0)[:, None], np.arange(5.0))
    assert 0.0 < model.coef_[0] < 1e-100
    assert model.predict([[3e-100]]).tolist() == [2.0]


# --------------------------------------------------------------------------- the interface


@pytest.mark.parametrize("columns", [None, 1, 3])
def test_shapes_are_those_of_scikit_learn(columns: int | None) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 4))
    y = rng.normal(size=30 if columns is None else (30, columns))
    ours, theirs = Ridge().fit(X, y), sklearn.linear_model.Ridge().fit(X, y)
    assert ours.coef_.shape == theirs.coef_.shape
    assert ours.predict(X).shape == theirs.predict(X).shape
    assert np.size(ours.intercept_) == np.size(theirs.intercept_)


def test_whole_numbers_and_booleans_are_targets() -> None:
    X = np.random.default_rng(0).normal(size=(40, 2))
    for y in (np.arange(40), np.arange(40) % 2 == 0):
        told, wanted = Ridge().fit(X, y), Ridge().fit(X, y.astype(np.float64))
        assert told.digest() == wanted.digest()
        told.delete([3, 0])
        wanted.delete([3, 0])
        assert told.digest() == wanted.digest()
        assert told.coef_.tobytes() == wanted.coef_.tobytes()


def test_parameters_count_as_they_were_at_fit() -> None:
    case = regression()
    model = case.fit(Ridge(2.0))
    coefficients = model.coef_
    model.set_params(alpha=50.0, fit_intercept=False)
    assert model.delete([100]).action == "updated"
    wanted = case.fit(Ridge(2.0), np.arange(1, 200))
    assert model.coef_.tobytes() == wanted.coef_.tobytes() != coefficients.tobytes()


def test_attributes_are_copies() -> None:
    case = regression()
    model = case.fit(Ridge())
    predicted = model.predict(case.X)
    model.coef_[:] = model.intercept_[:] = 0.0
    assert model.predict(case.X).tobytes() == predicted.tobytes()


def test_only_the_loss_of_an_extreme_reads_other_records() -> None:
    X = np.array([[0.0, 1.0], [2.0, 3.0], [5.0, 2.0], [9.0, 4.0], [0.0, 1.0]])
    model = Ridge().fit(X, [1.0, 2.0, 2.5, 3.0, 1.0])
    deletion = model.delete([0, 2])
    assert (deletion.rows_touched, deletion.counts) == (0, {"columns_scanned": 0})
    deletion = model.delete([3])
    assert (deletion.rows_touched, deletion.counts) == (2, {"columns_scanned": 3})


# --------------------------------------------------------------------------- bad input


@pytest.mark.parametrize(
    "alpha", [-1.0, "much", None, [1.0, -2.0], [1.0, np.nan], [1.0, 2.0, 3.0], [[1.0, 2.0]], ["a"]]
)
def test_bad_penalties_are_refused(alpha: Any) -> None:
    with pytest.raises(InvalidParameterError, match="'alpha' parameter of Ridge"):
        regression().fit(Ridge(alpha))


def test_what_cannot_be_summed_is_refused() -> None:
    with pytest.raises(InvalidDataError, match="4097 features were given; expected at most 4096"):
        Ridge().fit(np.zeros((2, 4097)), [1.0, 2.0])
    with pytest.raises(InvalidDataError, match="4097 features"):
        Ridge().fit(csr_array((2, 4097)), [1.0, 2.0])
    with pytest.raises(MagnitudeError, match=r"'y\[0\]'"):
        Ridge().fit([[1.0], [2.0]], [1.0, 1e200])
    with pytest.raises(InvalidDataError, match="y to be passed"):
        Ridge().fit([[1.0], [2.0]])


def test_some_weight_has_to_be_left() -> None:
    X, y = np.arange(4.0)[:, None], np.array([1.0, 3.0, 2.0, 5.0])
    with pytest.raises(TooFewRecordsError, match="the weights of all 4 records would be zero"):
        Ridge().fit(X, y, sample_weight=np.zeros(4))
    model = Ridge().fit(X, y, sample_weight=[0.0, 1.0, 0.0, 2.0])
    model.delete([1])
    digest = model.digest()
    with pytest.raises(TooFewRecordsError, match="the weights of all 2 records would be zero"):
        model.delete([3])
    assert model.digest() == digest
    model.delete([0])
    assert model.predict([[7.0]]).tolist() == [5.0]


def test_negative_weights_are_refused() -> None:
    with pytest.raises(InvalidDataError, match="negative for 1"):
        Ridge().fit([[1.0], [2.0]], [1.0, 2.0], sample_weight=[1.0, -1.0])


@pytest.mark.parametrize("weighted", [False, True])
def test_records_have_to_be_those_of_the_model(weighted: bool, tmp_path: Path) -> None:
    case = regression(weighted=weighted)
    model = case.fit(Ridge())
    model.save(tmp_path / "ridge")
    ids = 100 + np.arange(200)
    weights = case.weights

    def records(X: Any = case.X, y: Any = case.y, weights: Any = weights) -> Records:
        return Records(X, y, ids=ids, sample_weight=weights)

    loaded = load(tmp_path / "ridge", records())
    for each in (loaded, model):
        each.delete([100, 150])
    assert loaded.digest() == model.digest()
    other_X, other_y = case.X.copy(), case.y.copy()
    told = 7 if weights is None else int(np.flatnonzero(weights)[7])
    other_X[told, 0] += 1.0
    other_y[told, 1] += 1.0
    other_weights = np.full(200, 3.0)
    for wrong, told in (
        (records(X=other_X), "makes another"),
        (records(y=other_y), "makes another"),
        (records(y=other_y[:, 0]), "makes another"),
        (records(weights=other_weights), "makes another"),
        (records(y=None), "no targets"),
        (Records(case.X, ids=ids), "no targets"),
    ):
        with pytest.raises(ArtifactError, match=told):
            load(tmp_path / "ridge", wrong)
