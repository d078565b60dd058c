"""MinMaxScaler: which deletions change it, and what it refuses."""

from __future__ import annotations

import numpy as np
import pytest

from erasable.core.changes import Delta
from erasable.core.deletion import Outcome
from erasable.core.errors import InvalidInputError, MagnitudeError
from erasable.preprocessing import MinMaxScaler

TABLE = np.array([[0.0, 5.0, 1.0], [0.0, 1.0, 2.0], [3.0, 2.0, 3.0], [7.0, 5.0, 4.0]])


class Forgetful(MinMaxScaler):
    """Breaks the law: keeps the extremes of records that are gone."""

    def _update(self, delta: Delta) -> Outcome:
        return Outcome("updated")


def test_only_the_columns_whose_extreme_goes_change() -> None:
    scaler = MinMaxScaler().fit(TABLE)
    before = scaler.transform(TABLE)
    deletion = scaler.delete([2])
    assert (deletion.action, deletion.counts, deletion.rows_touched) == (
        "updated",
        {"columns_changed": 0},
        0,
    )
    assert not scaler._output_change()
    deletion = scaler.delete([3])
    assert deletion.counts == {"columns_changed": 2}
    assert deletion.rows_touched == 2
    assert scaler._output_change().columns.tolist() == [True, False, True]
    assert scaler.transform(TABLE)[:, 1].tobytes() == before[:, 1].tobytes()
    assert scaler.data_max_.tolist() == [0.0, 5.0, 2.0]


def test_changed_columns_are_the_last_deletions_and_not_kept() -> None:
    scaler = MinMaxScaler().fit(TABLE)
    scaler.delete([3])
    scaler.delete([2])
    assert scaler._output_change().columns.tolist() == [True, False, True]
    assert scaler.state().keys() == MinMaxScaler().fit(TABLE).state().keys()
    assert not any("changed" in name for name in scaler.state())


def test_training_data_fill_the_range_exactly() -> None:
    rng = np.random.default_rng(0)
    table = 1e6 + rng.random((1000, 3)) / 49
    for low, high in ((0, 1), (-3.5, 2.0)):
        scaled = MinMaxScaler((low, high)).fit(table).transform(table)
        assert (scaled.min(axis=0) == low).all()
        assert (scaled.max(axis=0) <= high).all()
        np.testing.assert_allclose(scaled.max(axis=0), high, rtol=1e-15)


def test_clip_keeps_new_data_in_range() -> None:
    scaler = MinMaxScaler((-1, 1), clip=True).fit(TABLE)
    assert scaler.transform([[99.0, -99.0, 2.5]]).tolist() == [[1.0, -1.0, 0.0]]
    assert MinMaxScaler().fit(TABLE).transform([[14.0, -3.0, 2.5]]).tolist() == [[2.0, -1.0, 0.5]]


def test_the_narrowest_ranges_stay_finite() -> None:
    narrow = np.array([[0.0, 1.0, 5e-324], [2.0**-950, 1.0 + 2.0**-52, 1e-323]])
    scaled = MinMaxScaler().fit(narrow).transform(narrow)
    assert scaled[:, :2].tolist() == [[0.0, 0.0], [1.0, 1.0]]
    assert np.isfinite(scaled).all()


@pytest.mark.parametrize("limits", [(1, 1), (2, 1), (0, np.nan), (0, 1, 2)])
def test_an_empty_feature_range_is_refused(limits: tuple[float, ...]) -> None:
    message = "Minimum of desired feature range must be smaller"
    with pytest.raises(InvalidInputError, match=message):
        MinMaxScaler(limits).fit(TABLE)


def test_a_range_that_overflows_is_refused() -> None:
    with pytest.raises(MagnitudeError, match=r"1 columns overflows float64 \(column 1\)"):
        MinMaxScaler().fit([[0.0, 1.7e308], [1.0, -1.7e308]])
    assert MinMaxScaler().fit([[8e307], [-8e307]]).scale_[0] > 0


def test_keeping_a_deleted_extreme_would_be_seen() -> None:
    """Negative control."""
    stale = Forgetful().fit(TABLE)
    stale.delete([3])
    refit = Forgetful().fit(TABLE[:3])
    assert stale.digest() != refit.digest()
    assert stale.state()["data_max"].tolist() != refit.state()["data_max"].tolist()
