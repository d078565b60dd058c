"""StandardScaler: exact sums, deletions that never read the records that stay."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from erasable.core.changes import Delta
from erasable.core.deletion import Outcome
from erasable.core.errors import MagnitudeError
from erasable.preprocessing import StandardScaler


class FloatSums(StandardScaler):
    """Breaks the law: keeps plain float sums, from which a deletion subtracts."""

    def _fit_rows(self) -> None:
        matrix, live = self._live_matrix()
        self._total = matrix[live].sum(axis=0)
        self._accelerator = True

    def _check_deletion(self, rows: NDArray[np.int64]) -> None:
        pass

    def _update(self, delta: Delta) -> Outcome:
        rows = delta.leaving
        self._total = self._total - self._attached().records.matrix[rows].sum(axis=0)
        return Outcome("updated")

    def _state(self) -> dict[str, Any]:
        return {"total": self._total}


def test_float_sums_would_be_seen() -> None:
    """Negative control: the obvious implementation differs from a refit in its last bits."""
    table = np.random.default_rng(0).normal(size=(200, 5))
    for cls, same in ((FloatSums, False), (StandardScaler, True)):
        model = cls().fit(table)
        model.delete(range(100))
        assert (model.digest() == cls().fit(table[100:], ids=range(100, 200)).digest()) is same


def test_only_the_loss_of_an_extreme_reads_other_records() -> None:
    table = np.array([[0.0, 1.0], [2.0, 3.0], [5.0, 2.0], [9.0, 4.0], [0.0, 1.0]])
    scaler = StandardScaler().fit(table)
    deletion = scaler.delete([0, 2])
    assert (deletion.rows_touched, deletion.counts) == (0, {"columns_scanned": 0})
    deletion = scaler.delete([3])
    assert (deletion.rows_touched, deletion.counts) == (2, {"columns_scanned": 2})
    assert scaler.mean_.tolist() == [1.0, 2.0]
    assert scaler.var_.tolist() == [1.0, 1.0]


@pytest.mark.parametrize("offset", [0.0, 1e4, 1.7e9, -1e12])
def test_an_offset_costs_no_digits(offset: float) -> None:
    """Against fractions, where the textbook formula has nothing left at 1.7e9."""
    table = offset + np.random.default_rng(1).random((300, 1)) * 10
    values = [Fraction(value) for value in table[:, 0].tolist()]
    mean = sum(values) / 300
    variance = sum((value - mean) ** 2 for value in values) / 300
    scaler = StandardScaler().fit(table)
    assert abs(Fraction(scaler.mean_[0]) - mean) <= Fraction(1, 10**7) + abs(mean) / 2**52
    assert abs(Fraction(scaler.var_[0]) / variance - 1) < Fraction(1, 10**7)
    scaled = scaler.transform(table)
    assert abs(scaled.std() - 1) < 1e-7


def test_parameters_choose_what_is_there() -> None:
    table = np.array([[1.0], [3.0]])
    both = StandardScaler().fit(table)
    assert both.transform(table).ravel().tolist() == [-1.0, 1.0]
    assert (both.mean_, both.var_, both.scale_) == ([2.0], [1.0], [1.0])
    no_mean = StandardScaler(with_mean=False).fit(table)
    assert no_mean.transform(table).ravel().tolist() == [1.0, 3.0]
    no_std = StandardScaler(with_std=False).fit(table)
    assert no_std.transform(table).ravel().tolist() == [-1.0, 1.0]
    assert no_std.var_ is no_std.scale_ is None
    neither = StandardScaler(with_mean=False, with_std=False).fit(table)
    assert neither.mean_ is None
    assert neither.transform(table).tolist() == table.tolist()


def test_values_too_large_are_refused_by_name() -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"age": [1.0, 2.0], "income": [1e200, 1.0]})
    with pytest.raises(MagnitudeError, match="'income'"):
        StandardScaler().fit(frame)
