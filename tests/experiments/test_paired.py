"""A selection that anticipates deletions against one that does not, on the same draws."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import evgp_c
import gaussian
import housing
import mi_f
import numpy as np
import paired
import pytest
import vr_c
from gaussian import UtilityLeft

from erasable.selection import MutualInformation, SubsetSelector, VarianceReduction
from selection import enumeration

RNG = np.random.default_rng(24)
PROCESS = gaussian.Process(np.array([1.0, 2.0]), 1.0, 0.1)
K = PROCESS.kernel(RNG.normal(size=(30, 2)))
STAYING = RNG.random(30)
UTILITIES = [
    (MutualInformation("precomputed", gamma=10.0), False),
    (VarianceReduction("precomputed", noise=0.1), True),
]
COUNTS = (2, 6)


def left_of(chosen: dict[str, Any], by_variance: bool, n: int) -> Any:
    def measure(rows: Any) -> UtilityLeft:
        cross = K[rows] if by_variance else None
        return UtilityLeft(K[np.ix_(rows, rows)], PROCESS.noise, COUNTS, cross)

    return paired.left("utility", measure, chosen, STAYING, n)


@pytest.mark.parametrize(("utility", "by_variance"), UTILITIES, ids=["information", "variance"])
def test_what_is_left_is_what_enumeration_expects(utility: Any, by_variance: bool) -> None:
    chosen = paired.both("U", utility, K, STAYING, 6, 200, 0)
    assert list(chosen) == ["U", "DAU"]
    assert STAYING[chosen["DAU"]].mean() > STAYING[chosen["U"]].mean()
    found = left_of(chosen, by_variance, 4000)
    problem, by_label = utility.problem(K), {}
    for label, rows in chosen.items():
        for at, k in enumerate(COUNTS):
            owners = rows[:k].tolist()
            exact = enumeration.expectation(
                owners,
                enumeration.independent(STAYING, owners),
                lambda stay: problem.value(np.array(stay, dtype=np.int64)),
            )
            values = found[paired.SOME][label][:, at]
            error = values.std() / len(values) ** 0.5
            assert abs(values.mean() - exact) < 4 * error
            assert abs(values.mean() - 1.2 * exact) > 4 * error
            by_label[label, k] = exact
        whole = [problem.value(rows[:k]) for k in COUNTS]
        np.testing.assert_allclose(found[paired.ALL][label], [whole], rtol=1e-9)
    # The anticipating selection is the better one by enumeration, and it is found so.
    facts = paired.facts("U", [found, found], chosen, STAYING, COUNTS)
    better = sum(by_label["DAU", k] > by_label["U", k] for k in COUNTS)
    assert facts["utility_won"] == better == len(COUNTS)
    swapped = {who: {"U": by["DAU"], "DAU": by["U"]} for who, by in found.items()}
    facts = paired.facts("U", [swapped, swapped], chosen, STAYING, COUNTS)
    assert (facts["utility_won"], facts["utility_lost"]) == (0, len(COUNTS))


def test_a_selection_does_not_differ_from_itself() -> None:
    rows = np.array([3, 1, 4, 15, 9, 2])
    found = left_of({"U": rows, "DAU": rows}, False, 50)
    table = paired.table("U", "score", [found, found], COUNTS)
    assert [row[0] for row in table["rows"]] == ["2", "6"]
    assert all(row[3] == "+0.00 ± 0.00" and "**" not in "".join(row) for row in table["rows"])


def test_both_see_the_same_owners() -> None:
    """The owner of a record stays in both selections or in none, wherever the record lies."""
    chosen = {"U": np.array([5, 7, 9, 11, 13, 2]), "DAU": np.array([2, 13, 11, 9, 7, 5])}
    found = left_of(chosen, False, 50)[paired.SOME]
    np.testing.assert_allclose(found["U"][:, 1], found["DAU"][:, 1], rtol=1e-9)
    assert np.abs(found["U"][:, 0] - found["DAU"][:, 0]).max() > 0.1


def test_histograms_are_of_the_chosen() -> None:
    s = np.array([0.05, 0.05, 0.5, 1.0])
    everybody, chosen = paired.histogram({"U": np.array([2, 3])}, s)
    heights = np.array(everybody["y"])[1:-1:2]
    assert heights.tolist() == [0.5, 0, 0, 0, 0, 0.25, 0, 0, 0, 0.25]
    assert np.array(chosen["y"])[1:-1:2].tolist() == [0, 0, 0, 0, 0, 0.5, 0, 0, 0, 0.5]


def test_the_lazy_choice_is_the_greedy_one() -> None:
    utility = VarianceReduction("precomputed", noise=0.1)
    greedy = SubsetSelector(utility, k=6, optimizer="greedy").fit(K).selected_
    assert paired.both("U", utility, K, STAYING, 6, 50, 0)["U"].tolist() == greedy.tolist()


def check_quick(found: dict[str, Any], name: str, number: str) -> None:
    panels = found["figures"][number]["panels"]
    labels = {line["label"] for panel in panels for line in panel["lines"]}
    assert {name, f"DA{name}", "all records"} <= labels
    assert len(panels) >= 3
    rows = found["notes"]["paired"]["rows"]
    assert len(rows) == found["facts"]["n_counts"]
    for panel in panels:
        for line in panel["lines"]:
            assert np.isfinite(line["y"]).all()


def test_a_trial_of_information() -> None:
    check_quick(mi_f.measure(quick=True), "MI", "23")


def test_a_trial_of_variance(data_dir: Path) -> None:
    check_quick(vr_c.measure(quick=True), "VR", "24")


def test_a_trial_of_a_network(data_dir: Path) -> None:
    found = evgp_c.measure(quick=True)
    check_quick(found, "EVGP", "25")
    shares = {row[0]: row[1:] for row in found["notes"]["shares"]["rows"]}
    assert shares["all"] == ["40%", "50%", "10%"]


def test_who_stays_by_income() -> None:
    found = vr_c.stays_by(np.array([0, 0.125, 0.25, 0.5, 0.75, 1.0]))
    np.testing.assert_allclose(found, [0, 0.5, 1, 0, 1, 0], atol=1e-12)


def test_blocks_are_drawn_apart(data_dir: Path) -> None:
    read = housing.housing(0, 500)
    assert read.X.shape == read.X_new.shape == (500, 8)
    assert read.X_public.shape == (housing.N_PUBLIC, 8)
    np.testing.assert_allclose(read.X.mean(axis=0), 0, atol=1e-9)
    np.testing.assert_allclose(read.X.std(axis=0), 1)
    assert read.y.std() == pytest.approx(1)
    assert (read.income.min(), read.income.max()) == (0, 1)
    assert np.corrcoef(read.income, read.X[:, 0])[0, 1] == pytest.approx(1)
    rows = np.concatenate([read.X, read.X_new, read.X_public])
    assert len(np.unique(rows, axis=0)) > 1495  # a block may have the numbers of another
    other = housing.housing(1, 500)
    assert not np.array_equal(read.income, other.income)


def test_noise_of_the_drawn_data_is_known() -> None:
    read, noise = mi_f.friedman()
    assert read.y.std() == pytest.approx(1)
    assert (len(read.X), len(read.X_new)) == (3000, 2000)
    X = np.concatenate([read.X, read.X_new])
    signal = 10 * np.sin(np.pi * X[:, 0] * X[:, 1]) + 20 * (X[:, 2] - 0.5) ** 2
    signal += 10 * X[:, 3] + 5 * X[:, 4]
    y = np.concatenate([read.y, read.y_new])
    slope, start = np.polyfit(signal, y, 1)
    assert np.var(y - slope * signal - start) == pytest.approx(noise, rel=0.1)
