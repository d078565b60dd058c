"""Kernel regression: the definition, what it does where nobody is near, and its limits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mpmath
import numpy as np
import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from erasable.core.errors import InvalidParameterError, MagnitudeError
from erasable.core.tape import Tape
from erasable.kernel import NadarayaWatson
from erasable.neighbors import KNeighborsRegressor

SHAPES: dict[str, Callable[[Any], Any]] = {
    "gaussian": lambda u: mpmath.exp(-u * u / 2),
    "epanechnikov": lambda u: 1 - u * u if u < 1 else mpmath.mpf(0),
    "biweight": lambda u: (1 - u * u) ** 2 if u < 1 else mpmath.mpf(0),
    "tricube": lambda u: (1 - u**3) ** 3 if u < 1 else mpmath.mpf(0),
    "linear": lambda u: 1 - u if u < 1 else mpmath.mpf(0),
    "tophat": lambda u: mpmath.mpf(1 if u <= 1 else 0),
}


def _defined(X: Any, y: Any, query: Any, bandwidth: float, kernel: str) -> float | None:
    """The definition in 60 digits; None where no record has any weight."""
    with mpmath.workdps(60):
        total, mean = mpmath.mpf(0), mpmath.mpf(0)
        for x, target in zip(X, y, strict=True):
            gaps = [
                mpmath.mpf(float(a)) - mpmath.mpf(float(b)) for a, b in zip(x, query, strict=True)
            ]
            weight = SHAPES[kernel](mpmath.sqrt(sum(g * g for g in gaps)) / mpmath.mpf(bandwidth))
            total, mean = total + weight, mean + weight * mpmath.mpf(float(target))
        return float(mean / total) if total else None


@parametrize_with_checks([NadarayaWatson(), NadarayaWatson(0.4, kernel="linear")])
def test_scikit_learn_checks(estimator: Any, check: Any) -> None:
    check(estimator)


@pytest.mark.parametrize("d", [2, 17])
@pytest.mark.parametrize("kernel", SHAPES)
def test_a_prediction_is_the_definition(kernel: str, d: int) -> None:
    """With a tree and without one."""
    rng = np.random.default_rng(d)
    X, y, Q = rng.normal(size=(150, d)), rng.normal(size=150) + 3.0, rng.normal(size=(9, d)) * 1.3
    bandwidth = 0.7 if d == 2 else 5.0
    told = NadarayaWatson(bandwidth, kernel=kernel).fit(X, y).predict(Q)
    alone = 0
    for query, value in zip(Q, told.tolist(), strict=True):
        want = _defined(X, y, query, bandwidth, kernel)
        if want is None:
            alone += 1
            want = float(y[((X - query) ** 2).sum(axis=1).argmin()])
        assert value == pytest.approx(want, rel=1e-12)
    assert alone < 9


def test_a_gaussian_of_records_that_are_all_far_off() -> None:
    """Where ``exp(-u**2 / 2)`` of every record is 0, the quotient still is what it is."""
    X, y = np.array([[0.0], [1.0], [2.0]]), np.array([1.0, 5.0, 9.0])
    for query, bandwidth in ((-60.0, 1.0), (-60.0, 8.0), (300.0, 9.0)):
        (told,) = NadarayaWatson(bandwidth).fit(X, y).predict([[query]])
        assert told == pytest.approx(_defined(X, y, [query], bandwidth, "gaussian"), rel=1e-12)


@pytest.mark.parametrize("kernel", sorted(SHAPES.keys() - {"gaussian"}))
def test_where_nobody_is_near_the_nearest_tell(kernel: str) -> None:
    X = np.array([[0.0, 0.0], [3.0, 0.0], [0.0, 3.0], [8.0, 8.0], [3.0, 0.0]])
    y = np.array([0.0, 1.0, 2.0, 3.0, 6.0])
    model = NadarayaWatson(0.5, kernel=kernel).fit(X, np.column_stack([y, -y]))
    # (3, 3) is 3 away from three records, of which two lie in one place.
    assert model.predict([[3.0, 3.0]]).tolist() == [[3.0, -3.0]]
    assert model.predict([[9.0, 9.0], [0.0, 0.1]]).tolist() == [[3.0, -3.0], [0.0, 0.0]]
    model.delete([1, 4])
    assert model.predict([[3.0, 3.0]]).tolist() == [[2.0, -2.0]]
    model.delete([0, 2])
    assert model.predict([[0.0, 0.0]]).tolist() == [[3.0, -3.0]]


def test_a_record_at_the_edge_has_no_weight_but_in_a_tophat() -> None:
    X, y = np.array([[0.0], [0.75]]), np.array([1.0, 2.0])
    for kernel in SHAPES.keys() - {"gaussian"}:
        (told,) = NadarayaWatson(1.0, kernel=kernel).fit(X, y).predict([[1.0]])
        assert told == (1.5 if kernel == "tophat" else 2.0)


def test_a_narrow_bandwidth_is_the_nearest_neighbour() -> None:
    rng = np.random.default_rng(1)
    X, y, Q = rng.normal(size=(60, 2)), rng.normal(size=60), rng.normal(size=(30, 2))
    nearest = KNeighborsRegressor(1).fit(X, y).predict(Q)
    for kernel in SHAPES:
        for bandwidth in (1e-9, 2.0**-500):
            told = NadarayaWatson(bandwidth, kernel=kernel).fit(X, y).predict(Q)
            assert told.tolist() == nearest.tolist()
    wide = NadarayaWatson(2.0**500).fit(X, y).predict(Q)
    np.testing.assert_allclose(wide, np.full(30, y.mean()))


def test_the_order_of_a_sum_is_that_of_the_hashes_of_ids() -> None:
    """Sums that depend on their order: 1, 1e16 and -1e16, all of weight 1."""
    for start in range(40):
        ids = np.arange(start, start + 3)
        values = np.array([1.0, 1e16, -1e16])
        model = NadarayaWatson(1.0, kernel="tophat").fit(np.zeros((3, 1)), values, ids=ids)
        keys = Tape(0x3C6EF372FE94F82B).record_keys(ids)
        total = 0.0
        for value in values[np.argsort(keys)].tolist():
            total += value
        assert model.predict([[0.0]]).tolist() == [total / 3.0]


@pytest.mark.parametrize("bandwidth", [0.0, -1.0, 1e-200, 1e200, np.nan, True, "scott"])
def test_bandwidths_that_are_none(bandwidth: Any) -> None:
    with pytest.raises(InvalidParameterError, match="'bandwidth' parameter of NadarayaWatson"):
        NadarayaWatson(bandwidth).fit([[0.0]], [0.0])


def test_rows_beyond_all_numbers() -> None:
    model = NadarayaWatson().fit([[0.0], [1.0]], [0.0, 1.0])
    with pytest.raises(MagnitudeError, match="1 rows of X are so far from the records"):
        model.predict([[1e200], [0.0]])
