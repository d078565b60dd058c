"""RobustScaler: outliers, deletions on one side, and what it refuses."""

from __future__ import annotations

from statistics import NormalDist

import numpy as np
import pytest
from sklearn.base import clone

from erasable.cluster import KMeans
from erasable.core.changes import Delta
from erasable.core.deletion import Outcome
from erasable.core.errors import InvalidParameterError, MagnitudeError
from erasable.pipeline import make_pipeline
from erasable.preprocessing import MaxAbsScaler, RobustScaler, StandardScaler


class Forgetful(RobustScaler):
    """Breaks the law: keeps the quantiles of records that are gone."""

    def _update(self, delta: Delta) -> Outcome:
        return Outcome("updated")


def test_quantiles_of_the_gone_would_be_seen() -> None:
    """Negative control."""
    table = np.random.default_rng(0).normal(size=(50, 2))
    for cls, same in ((Forgetful, False), (RobustScaler, True)):
        model = cls().fit(table)
        model.delete(range(20))
        refit = cls().fit(table[20:], ids=range(20, 50))
        assert (model.digest() == refit.digest()) is same


def test_an_outlier_leaves_the_scale_alone() -> None:
    table = np.arange(101.0).reshape(-1, 1)
    table[100] = 1e9
    scaler = RobustScaler().fit(table)
    assert (scaler.center_, scaler.scale_) == ([50.0], [50.0])
    scaler.delete([100])
    assert (scaler.center_, scaler.scale_) == ([49.5], [49.5])


def test_columns_of_few_values_hardly_change() -> None:
    rng = np.random.default_rng(1)
    table = np.c_[rng.integers(0, 3, 1000), rng.normal(size=1000)]
    scaler = RobustScaler().fit(table)
    for row in range(50):
        deletion = scaler.delete([row], digest=False)
        assert deletion.counts == {"columns_changed": 1, "columns_scanned": 0}
        assert deletion.rows_touched == 0
        assert scaler._output_change().columns.tolist() == [False, True]


def test_a_column_is_read_again_when_all_deletions_are_on_one_side() -> None:
    table = np.arange(2000.0).reshape(-1, 1)
    scaler = RobustScaler().fit(table)
    scanned = 0
    for row in range(1000):
        deletion = scaler.delete([row], digest=False)
        scanned += deletion.counts["columns_scanned"]
        assert deletion.rows_touched == (1999 - row if deletion.counts["columns_scanned"] else 0)
    assert 1 <= scanned <= 20
    refit = RobustScaler().fit(table[1000:], ids=range(1000, 2000))
    assert scaler.digest() == refit.digest()


def test_unit_variance_makes_normal_data_normal() -> None:
    table = np.random.default_rng(2).normal(7.0, 3.0, size=(100_000, 1))
    scaler = RobustScaler(unit_variance=True, quantile_range=(10.0, 90.0)).fit(table)
    assert abs(scaler.scale_[0] - 3.0) < 0.05
    plain = RobustScaler(quantile_range=(10.0, 90.0)).fit(table)
    assert scaler.scale_[0] == plain.scale_[0] / (2 * NormalDist().inv_cdf(0.9))


@pytest.mark.parametrize(
    ("params", "expected"),
    [
        ({"quantile_range": (75.0, 25.0)}, "0 <= low <= high <= 100"),
        ({"quantile_range": (-1.0, 50.0)}, "0 <= low <= high <= 100"),
        ({"quantile_range": (25.0, 101.0)}, "0 <= low <= high <= 100"),
        ({"quantile_range": (25.0,)}, "two numbers"),
        ({"quantile_range": (25.0, "75")}, "two numbers"),
        ({"quantile_range": (float("nan"), 75.0)}, "two numbers"),
        ({"quantile_range": (0, 100), "unit_variance": True}, "0 < low < high < 100"),
        ({"quantile_range": (50, 50), "unit_variance": True}, "0 < low < high < 100"),
        ({"quantile_range": [25.0, 75.0]}, "quantile_range"),
        ({"with_centering": "yes"}, "with_centering"),
    ],
)
def test_bad_parameters_are_refused(params: dict[str, object], expected: str) -> None:
    with pytest.raises(InvalidParameterError, match=expected) as caught:
        RobustScaler(**params).fit([[1.0], [2.0]])
    assert "\n" not in str(caught.value)


def test_values_whose_difference_could_overflow_are_refused() -> None:
    table = np.array([[1.0, -1e308], [2.0, 1e308], [3.0, 0.0]])
    with pytest.raises(MagnitudeError, match=r"1 columns .*column 1"):
        RobustScaler().fit(table)
    largest = np.array([[2.0**1020], [-(2.0**1020)]])
    assert np.isfinite(RobustScaler().fit(largest).transform(largest)).all()


def test_behind_a_map_it_is_a_map_of_a_map() -> None:
    rng = np.random.default_rng(5)
    table = np.exp(rng.normal(size=(200, 3)))
    for first, second in ((StandardScaler(), RobustScaler()), (RobustScaler(), MaxAbsScaler())):
        pipeline = make_pipeline(first, second, KMeans(3, random_state=0))
        refit = clone(pipeline).fit(table[60:], ids=range(60, 200))
        pipeline.fit(table).delete(range(60))
        assert pipeline.digest() == refit.digest()
        scaled = clone(first).fit(table[60:]).transform(table[60:])
        alone = clone(second).fit(scaled)
        np.testing.assert_allclose(pipeline[1].scale_, alone.scale_, rtol=1e-7)
        both = pipeline[:2].transform(table[60:])
        np.testing.assert_allclose(both, alone.transform(scaled), atol=1e-6)
