"""Other ways to choose: gains against utilities, quotas and buckets by hand, steps by the loss."""

from __future__ import annotations

import itertools
from typing import Any

import comparisons
import contenders
import numpy as np
import pytest
from comparisons import Case
from contenders import BayesGains, NearestGains, Pool
from counted import BayesUtility
from simulations import NearestClassifier, NearestUtility, accuracy, class_blocks

from erasable.selection import NaiveBayes, NearestNeighbor

RNG = np.random.default_rng(31)
N, K = 36, 12
Y = np.repeat([0, 1], [24, 12])
X = RNG.normal(size=(N, 3)) + Y[:, None]
CODES = RNG.integers(0, 3, size=(N, 4))
BLOCKS = class_blocks(X, Y)


def pool_of(kind: str) -> Pool:
    def measure(rows: Any) -> NearestClassifier:
        return NearestClassifier(X, Y, X, Y, accuracy, rows)

    staying = {0: 0.8, 1: 0.4}
    if kind == "bayes":
        case = Case(CODES, Y, comparisons.Prepared(NaiveBayes(0.5), CODES, Y), measure, "accuracy")
        return Pool(case, K, staying, contenders.scaled(X), lambda: BayesGains(CODES, Y, 0.5),
                    lambda rows: BayesUtility(CODES, Y, 0.5, rows))  # fmt: skip
    case = Case(X, Y, comparisons.Prepared(NearestNeighbor("sqeuclidean"), X, Y), measure, "F1")
    return Pool(case, K, staying, contenders.scaled(X), lambda: NearestGains(BLOCKS, Y),
                lambda rows: NearestUtility(BLOCKS, rows))  # fmt: skip


def value(pool: Pool, rows: list[int]) -> float:
    if not rows:
        return 0.0
    return float(pool.utility_left(np.array(rows))(np.ones((1, len(rows)), dtype=bool))[0])


@pytest.mark.parametrize("kind", ["nearest", "bayes"])
def test_gains_are_differences_of_the_utility(kind: str) -> None:
    pool = pool_of(kind)
    state, rows = pool.gains(), []
    for j in (3, 30, 7, 25):
        others = [i for i in range(N) if i not in rows]
        gains = state.all().copy()
        for i in others:
            expected = value(pool, [*rows, i]) - value(pool, rows)
            assert gains[i] == pytest.approx(expected, abs=1e-9)
            assert state.of(i) == pytest.approx(expected, abs=1e-9)
        state.add(j)
        rows.append(j)
        assert state.value == pytest.approx(value(pool, rows))


@pytest.mark.parametrize("kind", ["nearest", "bayes"])
def test_the_greedy_choice_is_that_of_the_library(kind: str) -> None:
    pool = pool_of(kind)
    ours = contenders.greedy(pool, np.arange(N), K)
    theirs, other = pool.case.select(K).tolist(), pool.case.select(K, 0.3).tolist()
    for k in range(1, K + 1):  # records may tie
        assert value(pool, ours[:k]) == pytest.approx(value(pool, theirs[:k]))
    assert value(pool, ours) != pytest.approx(value(pool, other), rel=1e-4)


@pytest.mark.parametrize("kind", ["nearest", "bayes"])
def test_every_contender_chooses_k_different_records(kind: str) -> None:
    pool = pool_of(kind)
    for name, rows in contenders.selections(pool, 0).items():
        assert len(set(rows.tolist())) == len(rows) == K, name


def test_quotas_leave_the_shares_of_the_data() -> None:
    # By hand: 24 / 0.8 and 12 / 0.4 are 30 each.
    pool = pool_of("nearest")
    assert contenders.quotas(pool).tolist() == [6, 6]
    chosen = contenders.by_quotas(pool, lambda rows, m: rows[:m])
    assert np.bincount(Y[chosen]).tolist() == [6, 6]
    alike = Pool(pool.case, K, {0: 0.5, 1: 0.5}, pool.features, pool.gains, pool.utility_left)
    assert contenders.quotas(alike).tolist() == [8, 4]


def test_buckets_double_and_halve() -> None:
    assert contenders.bucket_sizes(4) == [1, 1, 1, 1, 2, 2, 4]
    assert contenders.bucket_sizes(1) == [1]
    assert contenders.most_robust(12) == 4
    assert contenders.most_robust(11) == 3


def test_the_first_of_oblivious_are_the_most_useful_alone() -> None:
    pool = pool_of("nearest")
    alone = sorted(range(N), key=lambda j: -value(pool, [j]))
    leaving = round(K * (1 - (24 * 0.8 + 12 * 0.4) / N))
    assert contenders.oblivious(pool)[:leaving].tolist() == alone[:leaving]
    greedy = contenders.greedy(pool, np.array(alone[leaving:]), K - leaving)
    assert contenders.oblivious(pool)[leaving:].tolist() == greedy


def test_two_greedy_selections_have_no_common_record() -> None:
    pool = pool_of("nearest")
    first = contenders.greedy(pool, np.arange(N), K // 2)
    rows = contenders.repeated(pool).tolist()
    assert rows[: K // 2] == first
    rest = np.setdiff1d(np.arange(N), first)
    assert rows[K // 2 :] == contenders.greedy(pool, rest, K // 2)
    assert rows != contenders.greedy(pool, np.arange(N), K)


def test_a_bucket_takes_what_adds_enough() -> None:
    pool = pool_of("bayes")
    rows = contenders.thresholded(pool, np.random.default_rng(0))
    again = contenders.thresholded(pool, np.random.default_rng(0))
    assert rows.tolist() == again.tolist()
    # The only bucket of a single record takes what is worth half of the greedy utility of 1.
    tiny = Pool(pool.case, 1, pool.staying, pool.features, pool.gains, pool.utility_left)
    order = np.random.default_rng(0).permutation(N)
    best = max(value(pool, [j]) for j in range(N))
    first = next(j for j in order.tolist() if value(pool, [j]) >= best / 2)
    assert contenders.thresholded(tiny, np.random.default_rng(0)).tolist() == [first]


def test_a_gradient_step_lowers_the_loss_as_its_gain_says() -> None:
    pool, rate = pool_of("nearest"), 1e-5
    weights = RNG.normal(size=(4, 2))
    gains = contenders.step_gains(pool, weights, rate)
    before = contenders.validation_loss(pool, weights)
    for j in range(0, N, 5):
        step = np.outer(pool.features[j], contenders.residuals(pool, weights)[j])
        fall = before - contenders.validation_loss(pool, weights + rate * step)
        assert gains[j] == pytest.approx(fall, rel=1e-3, abs=1e-12)
        assert -gains[j] != pytest.approx(fall, rel=1e-3, abs=1e-12)


def test_glister_begins_with_the_best_step() -> None:
    pool = pool_of("nearest")
    _, rows = contenders._glister(pool, 10.0 / K)
    gains = contenders.step_gains(pool, np.zeros((4, 2)), 1.0)
    assert rows[0] == int(np.argmax(gains))


@pytest.mark.parametrize("kind", ["nearest", "bayes"])
def test_one_deletion_of_the_adversary_is_the_worst_one(kind: str) -> None:
    pool = pool_of(kind)
    rows = contenders.greedy(pool, np.arange(N), 6)
    measure = pool.utility_left(np.array(rows))
    left = contenders.adversary(measure, 6, 1)
    worst = min(range(6), key=lambda at: value(pool, rows[:at] + rows[at + 1 :]))
    assert np.flatnonzero(~left).tolist() == [worst]
    # One after another is no better than the best of all pairs, and the order of places no matter.
    left = contenders.adversary(measure, 6, 2)
    robbed = value(pool, [rows[at] for at in np.flatnonzero(left)])
    pairs = [value(pool, [rows[at] for at in kept]) for kept in itertools.combinations(range(6), 4)]
    assert min(pairs) <= robbed <= sorted(pairs)[len(pairs) // 3]


def test_intervals_and_verdicts() -> None:
    # Student's t of 0.975 with 3 degrees of freedom is 3.182.
    apart = np.array([1.0, 2.0, 3.0, 4.0])
    assert contenders.interval(apart) == pytest.approx(3.1824 * np.std(apart, ddof=1) / 2, rel=1e-4)
    assert contenders.told(apart, 1) == "**+2.5 ± 2.1**"
    assert contenders.told(apart - 1, 1) == "+1.5 ± 2.1"
    ours = np.ones((4, 2, 4)) * np.arange(1, 5)[:, None, None]
    found = {"EDADS": ours, "more": ours + 1, "less": ours - 0.5, "like": ours + np.array(
        [1, -1, 1, -1])[:, None, None]}  # fmt: skip
    for row in contenders.verdicts(found, "score")["rows"]:
        assert row[1:] == ["more", "like", "1"]
    table = contenders.table(found, "score")
    assert len(table["rows"]) == 4
    assert all("**" in cell for cell in table["rows"][1][5:])
    assert not any("**" in cell for cell in table["rows"][3][1:])
