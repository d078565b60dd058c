"""Parameters are refused on one line: what was given, what was expected, what to do."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.utils.estimator_checks import check_param_validation

from core.telling import X, assert_told
from erasable.cluster import DivideAndConquerKMeans, KMeans, QuantizedKMeans
from erasable.core.errors import ErasableError, InvalidParameterError
from erasable.core.params import check_params
from erasable.preprocessing import MinMaxScaler, StandardScaler

ESTIMATORS = [
    KMeans(2),
    QuantizedKMeans(2),
    DivideAndConquerKMeans(2),
    StandardScaler(),
    MinMaxScaler(),
]


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda model: type(model).__name__)
def test_scikit_learn_accepts_how_parameters_are_refused(
    estimator: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    constraints = {"random_state": "no_validation", **estimator._parameter_constraints}
    own = {name: constraints[name] for name in estimator.get_params()}
    monkeypatch.setattr(type(estimator), "_parameter_constraints", own)
    check_param_validation(type(estimator).__name__, estimator)


@pytest.mark.parametrize(
    ("estimator", "name", "value", "shown"),
    [
        (KMeans(2), "n_clusters", True, "True"),
        (KMeans(2), "max_iter", True, "True"),
        (KMeans(2), "tol", False, "False"),
        (KMeans(2), "n_clusters", np.True_, "np.True_"),
        (KMeans(2), "n_clusters", X, "a ndarray"),
        (KMeans(2), "n_clusters", "x" * 5000, "'xxx"),
        (KMeans(2), "random_state", True, "True"),
        (QuantizedKMeans(2), "gamma", True, "True"),
        (DivideAndConquerKMeans(2), "width", True, "True"),
        (StandardScaler(), "with_mean", 2, "2"),
        (MinMaxScaler(), "feature_range", [0, 1], "a list"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_parameter_is_refused_on_one_line(
    estimator: Any, name: str, value: Any, shown: str
) -> None:
    owner = type(estimator).__name__
    model = clone(estimator).set_params(**{name: value})
    before = dict(vars(model))
    with pytest.raises(ErasableError) as caught:
        model.fit(X)
    told = (f"The '{name}' parameter of {owner} must be ", f". Got {shown}", f"pass another {name}")
    assert_told(caught.value, InvalidParameterError, *told)
    assert vars(model) == before


def test_what_was_learned_outlives_a_parameter_that_is_refused() -> None:
    model = StandardScaler().fit(X)
    before = model.digest()
    with pytest.raises(InvalidParameterError):
        model.set_params(with_mean="no").fit(X)
    assert model.set_params(with_mean=True).digest() == before
    assert model.delete([1]).digest_after == StandardScaler().fit(X).delete([1]).digest_after


@pytest.mark.parametrize("value", [True, False, np.True_])
def test_booleans_are_taken_where_they_are_meant(value: Any) -> None:
    check_params(StandardScaler(with_mean=value))
    check_params(DivideAndConquerKMeans(weight_by_mass=value))


@pytest.mark.parametrize(
    ("limits", "given"),
    [
        ((1, 1), "must be smaller than maximum. Got (1, 1);"),
        ((0, float("nan")), "must be smaller than maximum. Got (0, nan);"),
        ((0, 1, 2), "must be smaller than maximum. Got (0, 1, 2);"),
        (("a", "b"), "must be smaller than maximum. Got ('a', 'b');"),
        ((False, True), "must be smaller than maximum. Got (False, True);"),
        (
            (-1e308, 1e308),
            "must lie within 2**62 of 0, so that what is scaled stays finite. Got (-",
        ),
        (
            (0, np.inf),
            "must lie within 2**62 of 0, so that what is scaled stays finite. Got (0, inf",
        ),
    ],
)
def test_a_feature_range_is_refused_on_one_line(limits: Any, given: str) -> None:
    with pytest.raises(ErasableError) as caught:
        MinMaxScaler(limits).fit(X)
    assert_told(caught.value, InvalidParameterError, given, "pass a tuple like (0, 1)")


@pytest.mark.parametrize("limits", [(-(2.0**62), 2.0**62), (2.0**62 - 4096, 2.0**62)])
def test_the_farthest_feature_ranges_stay_finite(limits: Any) -> None:
    narrow = np.array([[0.0, -1.7e308, 5e-324, -8e307], [2.0**-960, 0.0, 1e-323, 8e307]])
    scaler = MinMaxScaler(limits).fit(narrow)
    assert np.isfinite(scaler.scale_).all()
    assert np.isfinite(scaler.transform(narrow)).all()
