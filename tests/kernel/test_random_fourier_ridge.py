"""Random Fourier ridge: scikit-learn's contract and numbers, shapes, parameters and bad input."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.kernel_ridge import KernelRidge
from sklearn.utils.estimator_checks import parametrize_with_checks

from erasable import Records, load
from erasable.core.errors import (
    ArtifactError,
    InvalidDataError,
    InvalidParameterError,
    MagnitudeError,
    TooFewRecordsError,
)
from erasable.core.grid import PrecisionWarning
from erasable.kernel import RandomFourierRidge
from erasable.linear_model import Ridge
from erasable.utils.estimator_checks import parametrize_with_law_checks
from kernel.fourier import MODELS, theirs, waves
from law_cases import check_law_of_variant, of_variants
from linear_model.least_squares import Case

BITS = "waves are rounded to 26 bits: 1e-8 where interpolation leaves 1e-16"


def not_expected(estimator: Any) -> dict[str, str]:
    if estimator.alpha > 0:
        return {}
    names = ("dense", "sparse")
    return {f"check_sample_weight_equivalence_on_{name}_data": BITS for name in names}


@parametrize_with_checks(
    [RandomFourierRidge(), *(RandomFourierRidge(**params) for params in MODELS[1:])],
    expected_failed_checks=not_expected,
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
def test_scikit_learn_contract(estimator: Any, check: Any) -> None:
    check(estimator)


@pytest.mark.thorough
@of_variants(
    parametrize_with_law_checks([RandomFourierRidge(**params) for params in MODELS], fast=True)
)
def test_law(estimator: Any, check: Any) -> None:
    check_law_of_variant(estimator, check)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("alpha", [1e-3, 1.0, 50.0])
def test_scikit_learn_agrees(alpha: float, intercept: bool, weighted: bool) -> None:
    case = waves(targets=2, weighted=weighted)
    ours = case.fit(RandomFourierRidge(alpha, fit_intercept=intercept, random_state=3))
    other, table = theirs(ours, case)
    np.testing.assert_allclose(ours.coef_, other.coef_, atol=1e-5 * np.abs(other.coef_).max())
    np.testing.assert_allclose(ours.predict(case.X), other.predict(table), atol=1e-6)
    np.testing.assert_allclose(ours.intercept_, other.intercept_, atol=1e-5)
    score = other.score(table, case.y, sample_weight=case.weights)
    found = ours.score(case.X, case.y, sample_weight=case.weights)
    assert found == pytest.approx(score, abs=1e-6)


def test_the_penalty_is_that_of_scaled_waves() -> None:
    """Negative control: a ridge on the waves themselves is charged less for each coefficient."""
    case = waves()
    ours = case.fit(RandomFourierRidge(5.0, random_state=3))
    plain = Ridge(5.0).fit(ours._waves.at(case.X, np.arange(300)), case.y)
    found = plain.predict(ours._waves.at(case.X, np.arange(300)))
    assert np.abs(found - ours.predict(case.X)).max() > 1e-3


def test_many_waves_are_the_kernel_machine() -> None:
    case = waves(n=400)
    exact = KernelRidge(alpha=0.1, kernel="rbf", gamma=0.5).fit(case.X, case.y)
    wanted = exact.predict(case.X)
    errors = {}
    for count in (50, 2000):
        model = RandomFourierRidge(
            0.1, gamma=0.5, n_components=count, fit_intercept=False, random_state=0
        )
        errors[count] = np.sqrt(np.mean((case.fit(model).predict(case.X) - wanted) ** 2))
    assert errors[2000] < 0.02
    assert errors[2000] < errors[50] / 3


@pytest.mark.parametrize("weighted", [False, True])
def test_sparse_rows_give_the_same_bits(weighted: bool) -> None:
    case = waves(d=9, weighted=weighted)
    dense = np.where(np.random.default_rng(0).random(case.X.shape) < 0.3, case.X, 0.0)
    one = Case(dense, case.y, case.weights).fit(RandomFourierRidge(random_state=0))
    two = Case(csr_array(dense), case.y, case.weights).fit(RandomFourierRidge(random_state=0))
    assert one.digest() == two.digest()
    assert one.predict(dense).tobytes() == two.predict(csr_array(dense)).tobytes()
    two.delete([102, 103, 250])
    one.delete([102, 103, 250])
    assert one.digest() == two.digest()


@pytest.mark.parametrize("columns", [None, 1, 3])
def test_shapes_are_those_of_scikit_learn(columns: int | None) -> None:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(30, 4)), rng.normal(size=30 if columns is None else (30, columns))
    case = Case(X, y)
    ours = case.fit(RandomFourierRidge(n_components=6, random_state=0))
    other, table = theirs(ours, case)
    assert ours.coef_.shape == other.coef_.shape
    assert ours.predict(X).shape == other.predict(table).shape
    assert np.size(ours.intercept_) == np.size(other.intercept_)
    assert ours.random_weights_.shape == (4, 6)
    assert ours.random_offset_.shape == (6,)
    assert case.fit(RandomFourierRidge(fit_intercept=False)).intercept_ == 0.0


def test_each_row_is_predicted_by_itself() -> None:
    """Negative control: a product by BLAS is not."""
    case = waves(n=3000, d=7)
    model = case.fit(RandomFourierRidge(random_state=0))
    every = model.predict(case.X)
    assert model.predict(case.X[::-1])[::-1].tobytes() == every.tobytes()
    assert np.array([model.predict(case.X[[i]])[0] for i in range(200)]).tolist() == (
        every[:200].tolist()
    )
    table, coef = model._waves.at(case.X, np.arange(3000)), model.coef_
    alone = np.array([table[[i]] @ coef for i in range(200)])[:, 0]
    assert alone.tolist() != (table @ coef)[:200].tolist()


def test_angles_that_are_not_known_say_nothing() -> None:
    """A feature so large that its angle has no digits leaves the wave at 0."""
    case = waves()
    case.X[5] = 1e300
    model = case.fit(RandomFourierRidge(random_state=0))
    assert not model._waves.at(case.X, np.array([5])).any()
    assert np.isfinite(model.predict(case.X)).all()
    model.delete([105])
    assert model.digest() == case.fit(model, np.delete(np.arange(300), 5)).digest()


# --------------------------------------------------------------------------- bad input


@pytest.mark.parametrize(
    ("params", "told"),
    [
        ({"gamma": 0.0}, "gamma"),
        ({"gamma": -1.0}, "gamma"),
        ({"gamma": "scale"}, "gamma"),
        ({"gamma": np.nan}, "gamma"),
        ({"alpha": -1e-9}, "alpha"),
        ({"alpha": [1.0, 2.0]}, "alpha"),
        ({"n_components": 0}, "n_components"),
        ({"n_components": 4097}, "n_components"),
        ({"n_components": True}, "n_components"),
        ({"fit_intercept": "yes"}, "fit_intercept"),
        ({"random_state": -1}, "random_state"),
    ],
)
def test_parameters_are_checked(params: dict[str, Any], told: str) -> None:
    with pytest.raises(InvalidParameterError, match=f"The '{told}' parameter of RandomFourier"):
        RandomFourierRidge(**params).fit([[1.0], [2.0]], [1.0, 2.0])


def test_parameters_of_the_next_fit_change_nothing() -> None:
    case = waves()
    model = case.fit(RandomFourierRidge(random_state=0))
    before, digest = model.predict(case.X), model.digest()
    model.set_params(n_components=3, gamma=9.0, alpha=70.0, fit_intercept=False)
    assert model.predict(case.X).tobytes() == before.tobytes()
    model.delete([100])
    fresh = case.fit(RandomFourierRidge(random_state=0), np.arange(1, 300))
    assert model.digest() == fresh.digest() != digest


@pytest.mark.parametrize(
    ("y", "told"),
    [
        (None, "requires y"),
        (["a"] * 30, "strings"),
        (np.full(30, np.nan), "NaN"),
        (np.arange(29.0), "inconsistent numbers of samples"),
    ],
)
def test_targets_are_checked(y: Any, told: str) -> None:
    with pytest.raises(InvalidDataError, match=told):
        RandomFourierRidge().fit(waves(n=30).X, y)


def test_targets_that_are_too_large_are_refused() -> None:
    case = waves(n=30)
    case.y[3] = 2.0**481
    with pytest.raises(MagnitudeError, match=r"y\[0\]|column 0"):
        RandomFourierRidge().fit(case.X, case.y)


def test_skewed_targets_bring_a_warning() -> None:
    case = waves(n=30)
    case.y[3] = 1e12
    with pytest.warns(PrecisionWarning, match=r"y\[0\]"):
        RandomFourierRidge().fit(case.X, case.y)


def test_weights_that_are_all_zero_teach_nothing() -> None:
    case = waves(n=30)
    with pytest.raises(TooFewRecordsError, match="positive weight"):
        RandomFourierRidge().fit(case.X, case.y, sample_weight=np.zeros(30))
    with pytest.raises(InvalidDataError, match="negative"):
        RandomFourierRidge().fit(case.X, case.y, sample_weight=-np.ones(30))
    model = RandomFourierRidge(random_state=0)
    model.fit(case.X, case.y, sample_weight=np.arange(30) == 7)
    digest = model.digest()
    with pytest.raises(TooFewRecordsError, match="would be zero"):
        model.delete([7])
    assert model.digest() == digest


def test_other_records_are_refused(tmp_path: Path) -> None:
    case = waves(n=30, weighted=True)
    ids = 100 + np.arange(30)
    case.fit(RandomFourierRidge(random_state=0)).save(tmp_path / "model")
    given = {"sample_weight": case.weights, "ids": ids}
    whole = load(tmp_path / "model", Records(case.X, case.y, **given))
    assert whole.delete([103]).action == "updated"
    other = case.y.copy()
    other[3] += 1.0
    moved = case.X.copy()
    moved[3] += 1e-3
    for X, y, weights, told in (
        (case.X, None, case.weights, "no targets"),
        (case.X, other, case.weights, "makes another"),
        (moved, case.y, case.weights, "makes another"),
        (case.X, case.y, None, "makes another"),
    ):
        with pytest.raises(ArtifactError, match=told):
            load(tmp_path / "model", Records(X, y, sample_weight=weights, ids=ids))
