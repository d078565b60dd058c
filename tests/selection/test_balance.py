"""Balance reports and curves of a metric against deletions."""

from __future__ import annotations

import numpy as np
import pytest

from erasable.core.errors import InvalidInputError
from erasable.selection import balance, plot_tradeoff, tradeoff


def test_groups_are_counted() -> None:
    groups = ["a"] * 6 + ["b"] * 3 + ["c"]
    rows = [0, 1, 2, 6]
    told = {each.group: each for each in balance(groups, rows=rows, staying=[0.5] * 6 + [1.0] * 4)}
    assert [told[g].n_selected for g in "abc"] == [3, 1, 0]
    assert told["a"].share_data == pytest.approx(0.6)
    assert told["a"].share_selected == pytest.approx(0.75)
    assert told["a"].ratio == pytest.approx(1.25)
    assert told["a"].share_staying == pytest.approx(1.5 / 2.5)
    assert balance(groups, rows=rows)[0].group == "c"
    with pytest.raises(InvalidInputError, match="rows has 10; expected positions from 0 to 9"):
        balance(groups, rows=[10])
    with pytest.raises(InvalidInputError, match="one or more"):
        balance(groups, [])


def test_a_mean_over_deletions_is_exact_where_it_can_be() -> None:
    rows = np.array([2, 4, 6, 8])
    found = tradeoff(
        rows, lambda left: float(left.sum()), n_deletions=[0, 1, 4], n_simulations=2000,
        random_state=0,
    )  # fmt: skip
    assert found.mean[0] == 20
    assert found.mean[1] == pytest.approx(15, abs=4 * found.standard_error[1])
    assert 0 < found.standard_error[1] < 0.1
    assert found.mean[2] == 0
    with pytest.raises(InvalidInputError, match="expected 0 to 4"):
        tradeoff(rows, len, n_deletions=[5])


def test_each_selection_is_a_curve() -> None:
    ax = plot_tradeoff({"one": [1, 2, 3], "two": [4, 5, 6]}, lambda left: float(left.sum()),
                       n_simulations=3, random_state=1)  # fmt: skip
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["one", "two"]
    first, second = ax.get_lines()
    assert first.get_ydata()[0] == 6
    assert second.get_ydata()[0] == 15


@pytest.mark.parametrize("wrong", [0, -3, True, 2.0, None, "many"])
def test_simulations_are_counted_from_one(wrong: object) -> None:
    for call in (
        lambda: tradeoff([1, 2], len, n_simulations=wrong),  # type: ignore[arg-type]
        lambda: plot_tradeoff({"a": [1, 2]}, len, n_simulations=wrong),  # type: ignore[arg-type]
    ):
        with pytest.raises(InvalidInputError, match=r"n_simulations=.*; expected an integer of 1"):
            call()


def test_one_simulation_has_no_standard_error() -> None:
    found = tradeoff([1, 2], len, n_deletions=[0, 1], n_simulations=1)
    assert found.mean.tolist() == [2.0, 1.0]
    assert np.isnan(found.standard_error).all()
