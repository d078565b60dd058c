"""MaxAbsScaler: which deletions change it."""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array

from erasable.core.changes import Delta
from erasable.core.deletion import Outcome
from erasable.preprocessing import MaxAbsScaler

TABLE = np.array([[0.0, -5.0, 1.0], [0.0, 1.0, 2.0], [-3.0, 2.0, 3.0], [7.0, 5.0, -4.0]])


class Forgetful(MaxAbsScaler):
    """Breaks the law: keeps the extremes of records that are gone."""

    def _update(self, delta: Delta) -> Outcome:
        return Outcome("updated")


def test_extremes_of_the_gone_would_be_seen() -> None:
    """Negative control."""
    for cls, same in ((Forgetful, False), (MaxAbsScaler, True)):
        model = cls().fit(TABLE)
        model.delete([3])
        assert (model.digest() == cls().fit(TABLE[:3]).digest()) is same


def test_only_the_columns_whose_extreme_goes_change() -> None:
    for table in (TABLE, csr_array(TABLE)):
        scaler = MaxAbsScaler().fit(table)
        assert scaler.max_abs_.tolist() == [7.0, 5.0, 4.0]
        deletion = scaler.delete([1])
        assert (deletion.counts, deletion.rows_touched) == ({"columns_changed": 0}, 0)
        assert not scaler._output_change()
        deletion = scaler.delete([3])
        assert deletion.rows_touched == 2
        assert scaler._output_change().columns[[0, 2]].all()
        assert scaler.max_abs_.tolist() == [3.0, 5.0, 3.0]


def test_a_column_of_zeros_is_left_as_it_is() -> None:
    for table in (np.zeros((3, 1)), csr_array(np.zeros((3, 1)))):
        scaler = MaxAbsScaler().fit(table)
        assert (scaler.max_abs_, scaler.scale_) == ([0.0], [1.0])
        assert scaler.transform([[2.5]]).tolist() == [[2.5]]


def test_magnitudes_at_the_ends_of_the_range_are_scaled_to_one() -> None:
    table = np.array([[1.7e308, -1e-200], [-1e308, 1e-201]])
    assert np.abs(MaxAbsScaler().fit(table).transform(table)).max(axis=0).tolist() == [1.0, 1.0]
