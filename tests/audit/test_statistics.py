"""Numbers of attacks, against enumeration, scikit-learn and simulation."""

from __future__ import annotations

import math
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom, binomtest, mannwhitneyu, norm
from sklearn.metrics import roc_auc_score, roc_curve

from erasable.audit._deletion_statistics import largest_delta
from erasable.audit._sample_sizes import (
    detectable_rate,
    discernible_area,
    records_for_rate,
    refits_for_level,
)
from erasable.audit._statistics import clopper_pearson, permute_models, separate, stands_out
from erasable.core.errors import InvalidInputError, TooFewRecordsError

scores = st.lists(st.integers(-3, 3).map(float), min_size=1, max_size=12)


@given(scores, scores)
def test_the_area_is_that_of_scikit_learn(members: list[float], others: list[float]) -> None:
    truth = [1] * len(members) + [0] * len(others)
    found = separate(members, others, rates=())
    assert found.area == pytest.approx(roc_auc_score(truth, members + others), abs=1e-12)
    falses, trues, _ = roc_curve(truth, members + others, drop_intermediate=False)
    assert np.allclose(found.curve, np.column_stack([falses, trues]))


@given(scores, scores, st.sampled_from([0.1, 0.25, 0.5]))
def test_the_rate_is_the_best_on_the_curve(
    members: list[float], others: list[float], rate: float
) -> None:
    (found,) = separate(members, others, rates=[rate]).rates
    if len(others) < records_for_rate(rate):
        assert math.isnan(found.estimate)
        assert "it needs" in str(found)
        return
    falses, trues, _ = roc_curve(
        [1] * len(members) + [0] * len(others), members + others, drop_intermediate=False
    )
    assert found.estimate == pytest.approx(trues[falses <= rate + 1e-9].max())
    assert found.low <= found.estimate <= found.high


@pytest.mark.parametrize(
    ("n_members", "n_others", "rate"), [(4, 4, 0.25), (5, 3, 0.5), (3, 6, 0.2)]
)
def test_the_p_value_of_a_rate_is_that_of_all_orders(
    n_members: int, n_others: int, rate: float
) -> None:
    """Without ties: the share of all assignments that find so many members or more."""
    n = n_members + n_others

    def found(rows: tuple[int, ...]) -> float:
        chosen = np.isin(np.arange(n), rows)
        values = np.arange(n, dtype=float)
        return separate(values[chosen], values[~chosen], rates=[rate]).rates[0].estimate

    every = np.array([found(rows) for rows in combinations(range(n), n_members)])
    for rows in list(combinations(range(n), n_members))[::7]:
        chosen = np.isin(np.arange(n), rows)
        values = np.arange(n, dtype=float)
        (got,) = separate(values[chosen], values[~chosen], rates=[rate]).rates
        assert got.p_value == pytest.approx(np.mean(every >= got.estimate - 1e-12))


@pytest.mark.parametrize("ties", [False, True])
def test_false_alarms_are_as_rare_as_said(ties: bool) -> None:
    source = np.random.default_rng(3)
    alarms = 0
    for _ in range(400):
        drawn = source.normal(size=(2, 150))
        drawn = np.round(drawn) if ties else drawn
        alarms += separate(*drawn, rates=(0.01, 0.1)).p_value <= 0.05
    assert binomtest(alarms, 400, 0.05, alternative="greater").pvalue > 0.001


@pytest.mark.parametrize("n_apart", [3, 12])
def test_scores_that_are_nearly_all_tied_raise_no_false_alarm(n_apart: int) -> None:
    """By the normal approximation alone, one of three among 20 of 520 would be an alarm: 11 %."""
    scores = np.append(np.zeros(520 - n_apart), np.arange(1.0, n_apart + 1))
    source = np.random.default_rng(3)
    alarms = 0
    for _ in range(300):
        source.shuffle(scores)
        alarms += separate(scores[:20], scores[20:], rates=()).p_value <= 0.05
    assert binomtest(alarms, 300, 0.05, alternative="greater").pvalue > 0.001


def test_a_few_different_scores_are_enough() -> None:
    members, others = np.repeat([0.0, 1.0], [20, 80]), np.repeat([0.0, 1.0], [80, 20])
    assert separate(members, others, rates=()).p_value == pytest.approx(1 / 5000)


def test_a_leak_below_one_half_is_found_as_well() -> None:
    source = np.random.default_rng(3)
    found = separate(source.normal(size=200) - 1.0, source.normal(size=200), rates=())
    assert found.area < 0.3
    assert found.p_value < 1e-6


def test_the_interval_holds_as_often_as_said() -> None:
    """Normal groups one deviation apart, whose area is known."""
    source = np.random.default_rng(5)
    truth = 0.7602499
    inside = 0
    for _ in range(400):
        found = separate(source.normal(1.0, size=60), source.normal(size=80), rates=())
        inside += found.low <= truth <= found.high
    assert 0.91 < inside / 400 < 0.985


@pytest.mark.parametrize("truth", [0.05, 0.99])
@pytest.mark.parametrize(("n_members", "n_others"), [(20, 20), (20, 500)])
def test_the_interval_holds_near_its_ends(truth: float, n_members: int, n_others: int) -> None:
    """DeLong's alone holds 61 % of the time for 0.99 and 20 of each: often all are told apart."""
    source = np.random.default_rng(6)
    apart = np.sqrt(2) * norm.ppf(truth)
    inside = 0
    for _ in range(200):
        members, others = source.normal(apart, size=n_members), source.normal(size=n_others)
        found = separate(members, others, rates=())
        inside += found.low <= truth <= found.high
    assert inside / 200 > 0.92


def test_groups_that_are_told_apart_without_fail_have_an_interval() -> None:
    above = separate(range(10, 20), range(10), rates=())
    below = separate(range(10), range(10, 20), rates=())
    assert above.area == above.high == 1.0
    assert 0.5 < above.low < 0.9
    assert (below.low, below.high) == pytest.approx((0.0, 1.0 - above.low))
    alone = separate([1.0], [0.0], rates=())
    assert (alone.low, alone.high) == pytest.approx((0.0, 1.0), abs=0.21)


def test_shares_are_those_of_scipy() -> None:
    for n_found, n in ((0, 7), (3, 10), (10, 10)):
        interval = binomtest(n_found, n).proportion_ci(method="exact")
        assert clopper_pearson(n_found, n) == pytest.approx((interval.low, interval.high))


def test_models_are_exchanged() -> None:
    """All exchanges of a few models, by hand."""
    first, second = np.array([[3.0], [4.0]]), np.array([[1.0], [2.0], [2.5]])

    def apart(a: np.ndarray, b: np.ndarray) -> float:
        return abs(float(a.mean() - b.mean()))

    both = np.concatenate([first, second])
    given_ = apart(first, second)
    every = []
    for rows in combinations(range(5), 2):
        chosen = np.isin(np.arange(5), rows)
        every.append(apart(both[chosen], both[~chosen]) >= given_ - 1e-12)
    assert permute_models(first, second, apart) == np.mean(every) == 0.2


def test_records_that_share_models_raise_no_false_alarm() -> None:
    """A test of records would: all of a model's signals move together."""
    source = np.random.default_rng(1)

    def apart(a: np.ndarray, b: np.ndarray) -> float:
        return abs(float(a.mean() - b.mean()))

    by_models = by_records = 0
    for k in range(100):
        moved = source.normal(size=(16, 1)) + 0.1 * source.normal(size=(16, 50))
        by_models += permute_models(moved[:8], moved[8:], apart, n_draws=99, seed=k) <= 0.05
        by_records += separate(moved[:8].ravel(), moved[8:].ravel(), rates=()).p_value <= 0.05
    assert by_models <= 12
    assert by_records > 50  # the negative control


def test_how_many_are_needed() -> None:
    assert records_for_rate(0.01) == 100
    assert refits_for_level(0.01) == 99
    assert refits_for_level(0.05, 3) == 3  # 20 exchanges
    for wrong in (0.0, 1.0, -0.1, math.nan):
        with pytest.raises(InvalidInputError, match="from 0 to 1"):
            records_for_rate(wrong)
        with pytest.raises(InvalidInputError, match="from 0 to 1"):
            refits_for_level(wrong)
    with pytest.raises(TooFewRecordsError, match="0 members"):
        separate([], [1.0])


def test_the_plan_keeps_its_word() -> None:
    """What it says is found with a power of 0.8 is found about so often."""
    from scipy.special import ndtri

    area = discernible_area(80, 120)
    shift = math.sqrt(2.0) * float(ndtri(area))
    source = np.random.default_rng(2)
    hits = sum(
        separate(source.normal(shift, size=80), source.normal(size=120), rates=()).p_value <= 0.05
        for _ in range(400)
    )
    assert 0.7 < hits / 400 < 0.9
    share = detectable_rate(500, 0.01)
    bar = next(
        k for k in range(500) if binomtest(k, 500, 0.01, alternative="greater").pvalue <= 0.05
    )
    reached = binomtest(bar, 500, share, alternative="greater").pvalue
    assert reached == pytest.approx(0.8, abs=0.02)


# -- a model against its control -------------------------------------------------------------------


def _two_models(seed: int, shift: float, leak: float) -> tuple[Any, Any]:
    """Return scores of two models that see the same shift; the first has a leak beside it."""
    source = np.random.default_rng(seed)
    member = np.arange(300) < 150
    common = source.normal(size=300) + shift * member
    scores = [common + source.normal(size=300) * 0.7 for _ in range(2)]
    scores[0] += leak * member
    return tuple((each[member], each[~member]) for each in scores)  # type: ignore[return-value]


def test_a_shift_that_both_models_see_does_not_stand_out() -> None:
    for shift in (0.0, 0.3):
        drawn = [_two_models(seed, shift, 0.0) for seed in range(200)]
        alarms = [stands_out(*model, control, rates=(0.05,)) for model, control in drawn]
        # Two tests, each at 0.05 once more: more than 30 of 200 have a probability of 0.007.
        assert sum(alarms) <= 30
    leaks = [_two_models(seed, 0.0, 1.0) for seed in range(50)]
    assert sum(stands_out(*model, control) for model, control in leaks) >= 45


def test_the_difference_of_areas_is_that_of_a_bootstrap() -> None:
    """The threshold of DeLong's test, held against records drawn anew."""
    model, control = _two_models(3, 1.0, 0.3)
    source = np.random.default_rng(0)

    def gain(rows: Any, others: Any) -> float:
        areas = [mannwhitneyu(a[rows], b[others]).statistic / (a.size * b.size)
                 for a, b in (model, control)]  # fmt: skip
        return float(areas[0] - areas[1])

    drawn = [gain(*source.integers(150, size=(2, 150))) for _ in range(400)]
    p_value = norm.sf(gain(slice(None), slice(None)) / np.std(drawn))
    assert mannwhitneyu(*model).pvalue < 0.1 * p_value
    assert not stands_out(*model, control, rates=(), level=0.5 * p_value)
    assert stands_out(*model, control, rates=(), level=min(0.9, 2.0 * p_value))


def test_a_leak_of_few_records_stands_out_by_its_rate() -> None:
    source = np.random.default_rng(0)
    member = source.normal(size=(2, 1000))
    others = source.normal(size=(2, 1000))
    member[0, :25] = 9.0
    pair = (member[1], others[1])
    assert stands_out(member[0], others[0], pair, rates=(0.01,))
    assert not stands_out(member[0], others[0], (member[0], others[0]), rates=(0.01,))
    assert not stands_out(member[0], others[0], pair, rates=())


def arms(n: int, apart: float) -> tuple[Any, Any]:
    source = np.random.default_rng(3)
    return source.normal(apart, 1.0, (n, 5)), source.normal(0.0, 1.0, (n, 5))


@pytest.mark.parametrize(("p", "q"), [(0.2, 0.6), (0.5, 0.5), (0.05, 0.9)])
def test_the_bound_on_delta_holds_as_often_as_it_says(p: float, q: float) -> None:
    """Count, for all outcomes of two binomials, how likely a bound is below the true ratio."""
    n, level, wrong = 12, 0.05, 0.0
    # Signals by which the first halves set the direction, and the second halves are near or far.
    first = np.array([1.0] * n), np.array([-1.0] * n)
    for a in range(n + 1):
        for b in range(n + 1):
            near = [np.r_[np.ones(count), -np.ones(n - count)] for count in (b, a)]
            sides = [np.r_[half, each][:, None] for half, each in zip(first, near, strict=True)]
            bound = largest_delta(sides[0], sides[1], level)
            if bound < p / q:
                wrong += binom.pmf(a, n, p) * binom.pmf(b, n, q)
    assert wrong <= level


def test_the_bound_on_delta_tells_arms_apart_and_equal_ones_not() -> None:
    assert largest_delta(*arms(100, 3.0), 0.05) < 0.15
    assert largest_delta(*arms(100, 0.0), 0.05) == 1.0
    # By hand, of four models each, all of which are where they belong.
    sides = np.ones((8, 1)), -np.ones((8, 1))
    low = 0.025 ** (1 / 4)
    assert largest_delta(*sides, 0.05) == pytest.approx(min(1.0, (1 - low) / low))
