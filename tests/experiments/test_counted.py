"""Simulated deletions for naive Bayes, against scikit-learn and against the library."""

from __future__ import annotations

import counted
import numpy as np
import pytest
import simulations
from sklearn.metrics import balanced_accuracy_score
from sklearn.naive_bayes import CategoricalNB

from erasable.selection import NaiveBayes, expected_utility

RNG = np.random.default_rng(4)
SIZES = np.array([4, 2, 5])
KNOWN = np.array([4, 3, 5])  # a category is only in the validation data
X, Y = RNG.integers(0, SIZES, (80, 3)), RNG.integers(0, 2, 80)
X_NEW, Y_NEW = RNG.integers(0, KNOWN, (300, 3)), RNG.integers(0, 2, 300)
SELECTED = RNG.permutation(80)[:15]
STAYS = RNG.random((150, 15)) < RNG.random((150, 1))
PRIOR = (0.6, 0.4)


def of_scikit_learn(stays: np.ndarray, alpha: float) -> float:
    model = CategoricalNB(alpha=alpha, class_prior=PRIOR, min_categories=KNOWN)
    rows = SELECTED[stays]
    if len(rows):
        model.partial_fit(X[rows], Y[rows], classes=[0, 1])
        return float(balanced_accuracy_score(Y_NEW, model.predict(X_NEW)))
    return 0.5


def classifier(alpha: float) -> counted.BayesClassifier:
    score = simulations.balanced_accuracy
    return counted.BayesClassifier(X, Y, X_NEW, Y_NEW, score, SELECTED, alpha, PRIOR)


def test_scores_are_those_of_scikit_learn() -> None:
    stays = np.concatenate([STAYS, np.zeros((1, 15), dtype=bool), [Y[SELECTED] == 1]])
    for alpha in (0.01, 0.7123):  # with which classes never are equally likely
        theirs = [of_scikit_learn(each, alpha) for each in stays]
        assert len(set(theirs)) > 20
        np.testing.assert_allclose(classifier(alpha)(stays), theirs, atol=1e-12)


def test_another_smoothing_is_told_apart() -> None:
    theirs = [of_scikit_learn(each, 0.01) for each in STAYS]
    assert np.abs(classifier(1.0)(STAYS) - theirs).max() > 0.01


@pytest.mark.parametrize("smoothing", [1.0, 0.01])
def test_the_utility_left_is_that_of_the_library(smoothing: float) -> None:
    measure = counted.BayesUtility(X, Y, smoothing, SELECTED)
    problem = NaiveBayes(smoothing).problem(X, Y)
    left = [problem.value(SELECTED[each]) for each in STAYS]
    np.testing.assert_allclose(measure(STAYS), left, rtol=1e-12)
    exact = expected_utility(
        rows=SELECTED, X=X, y=Y, utility=NaiveBayes(smoothing), staying=0.4
    ).value
    found = simulations.after_departures(measure, 0.4, 15, 20_000, seed=1)
    assert abs(found.mean - exact) < 4 * found.error
    assert abs(found.mean - 1.02 * exact) > 4 * found.error
