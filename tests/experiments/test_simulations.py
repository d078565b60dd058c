"""Simulated deletions of the experiments, against scikit-learn and against enumeration."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest
import simulations
from sklearn import metrics
from sklearn.neighbors import KNeighborsClassifier

from erasable.selection import (
    BetaBinomial,
    Independent,
    NearestNeighbor,
    SubsetSelector,
    expected_utility,
)

RNG = np.random.default_rng(5)
X, Y = RNG.normal(size=(60, 3)), np.repeat([0, 1, 2], 20)
X_NEW, Y_NEW = RNG.normal(size=(30, 3)), RNG.integers(0, 3, 30)
SELECTED = RNG.permutation(60)[:12]
STAYS = RNG.random((40, 12)) < 0.4


def scores(score: simulations.Score, theirs: Any, y: Any, y_new: Any) -> tuple[Any, Any]:
    """Return our scores and scikit-learn's, of classifiers on who stays."""

    def metric(rows: Any) -> float:
        if not len(rows):
            return 0.0
        found = KNeighborsClassifier(1).fit(X[rows], y[rows]).predict(X_NEW)
        return float(theirs(y_new, found))

    fast = simulations.NearestClassifier(X, y, X_NEW, y_new, score, SELECTED)
    return fast(STAYS), simulations.Counted(metric, SELECTED)(STAYS)


def test_scores_are_those_of_scikit_learn() -> None:
    ours, theirs = scores(simulations.accuracy, metrics.accuracy_score, Y, Y_NEW)
    assert len(set(theirs)) > 3
    np.testing.assert_allclose(ours, theirs)
    ours, theirs = scores(simulations.balanced_accuracy, metrics.balanced_accuracy_score, Y, Y_NEW)
    np.testing.assert_allclose(ours, theirs)
    ours, theirs = scores(simulations.f1, metrics.f1_score, Y % 2, Y_NEW % 2)
    np.testing.assert_allclose(ours, theirs)


def test_another_classifier_is_told_apart() -> None:
    ours, theirs = scores(simulations.accuracy, metrics.balanced_accuracy_score, Y, Y_NEW)
    assert np.abs(ours - theirs).max() > 1e-3


def test_a_model_of_nobody_scores_nothing() -> None:
    for score in (simulations.accuracy, simulations.f1, simulations.balanced_accuracy):
        measure = simulations.NearestClassifier(X, Y % 2, X_NEW, Y_NEW % 2, score, SELECTED)
        assert measure(np.zeros((2, 12), dtype=bool)).tolist() == [0.0, 0.0]


@pytest.mark.parametrize("staying", [Independent(0.4), BetaBinomial(2, 3)], ids=repr)
def test_the_utility_left_is_the_expected_one(staying: Any) -> None:
    measure = simulations.NearestUtility(simulations.class_blocks(X, Y), SELECTED)
    utility = NearestNeighbor("sqeuclidean")
    exact = expected_utility(rows=SELECTED, X=X, y=Y, utility=utility, staying=staying).value
    found = simulations.after_departures(measure, staying, 12, 20_000, seed=1)
    assert abs(found.mean - exact) < 4 * found.error
    assert abs(found.mean - 1.02 * exact) > 4 * found.error
    everybody = simulations.after_departures(measure, 1.0, 12, 2)
    problem = utility.problem(X, Y)
    assert everybody.mean == pytest.approx(problem.value(SELECTED), rel=1e-12)
    assert everybody.deviation == 0


def test_deletions_are_counted() -> None:
    counted = simulations.Counted(len, SELECTED)
    found = simulations.by_deletions(counted, 12, [0, 5, 12], 4)
    assert [each.mean for each in found] == [12, 7, 0]
    may_leave = np.arange(12) < 3
    stayers = set(SELECTED[3:].tolist())
    kept = simulations.Counted(lambda rows: float(stayers <= set(rows.tolist())), SELECTED)
    found = simulations.by_deletions(kept, 12, [3], 4, among=may_leave)
    assert found[0].mean == 1
    assert simulations.by_deletions(kept, 12, [3], 40)[0].mean < 1


def test_the_worst_share() -> None:
    assert simulations.worst_share(np.array([4.0, 1.0, 3.0, 2.0]), 0.5) == 1.5
    assert simulations.worst_share(np.array([4.0, 1.0, 3.0, 2.0]), 1.0) == 2.5


def test_fresh_samples_are_shared_by_the_measures() -> None:
    measure = simulations.NearestUtility(simulations.class_blocks(X, Y), SELECTED)
    ((one, two),) = simulations.cvar_runs(
        [measure, measure], 0.5, 12, [0.3], n_runs=3, n_simulations=50
    )
    assert one.tolist() == two.tolist()
    assert one.std() > 0


def test_squared_distances_choose_as_the_blocks_say() -> None:
    similarity = np.zeros((60, 60))
    for records, block in simulations.class_blocks(X, Y):
        similarity[np.ix_(records, records)] = block
    given = SubsetSelector(NearestNeighbor("precomputed"), k=9, staying=0.5).fit(similarity, Y)
    made = SubsetSelector(NearestNeighbor("sqeuclidean"), k=9, staying=0.5).fit(X, Y)
    assert made.selected_.tolist() == given.selected_.tolist()
    assert made.utility_ == pytest.approx(given.utility_, rel=1e-12)


def test_any_classifier_is_trained_on_who_stays() -> None:
    stays = STAYS.copy()
    stays[0], stays[1] = False, np.arange(12) == 3
    given = (X, Y, X_NEW, Y_NEW, simulations.accuracy, SELECTED)
    found = simulations.Trained(functools.partial(KNeighborsClassifier, 1), *given)(stays)
    np.testing.assert_allclose(found, simulations.NearestClassifier(*given)(stays))
    more = functools.partial(KNeighborsClassifier, 1, metric="chebyshev")
    assert not np.allclose(found, simulations.Trained(more, *given)(stays))
