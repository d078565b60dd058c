"""The density ratio: which classifiers it takes, what it corrects, and how near it comes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array
from scipy.stats import norm, spearmanr
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression, SGDClassifier
from sklearn.naive_bayes import GaussianNB, MultinomialNB
from sklearn.svm import LinearSVC

from erasable.core.errors import InvalidInputError, InvalidParameterError
from erasable.removal import DensityRatio
from erasable.removal._sets import Sets
from erasable.removal.scores import _classifiers as classifiers
from erasable.removal.scores import _density
from removal import plain_scores as plain


def gaussians(seed: int, n1: int, n2: int, d: int, **there: float) -> tuple[Sets, Any]:
    """Return sets from N(0, I) and N(m e1, s^2 I), and the true log ratio of the first."""
    m, s = there.get("mean", 0.0), there.get("spread", 1.0)
    rng = np.random.default_rng(seed)
    forget, retain = rng.normal(size=(n1, d)), rng.normal(size=(n2, d)) * s
    retain[:, 0] += m
    true = norm.logpdf(forget).sum(axis=1)
    true -= norm.logpdf(forget[:, 0], m, s) + norm.logpdf(forget[:, 1:], 0, s).sum(axis=1)
    return Sets(forget, retain), true


@pytest.mark.parametrize(
    ("there", "least"),
    [({"mean": 1.0}, 0.95), ({"spread": 1.8}, 0.9), ({"mean": 3.0}, 0.95)],
)
def test_the_default_comes_near_the_truth(there: dict[str, float], least: float) -> None:
    sets, true = gaussians(0, 800, 600, 4, **there)
    found = DensityRatio().rank(sets, 1).scores
    assert spearmanr(found, true)[0] > least


def test_the_ratio_of_modes_needs_kernels() -> None:
    """A retain set with a mode on either side: no linear or quadratic ratio is near."""
    rng = np.random.default_rng(0)
    forget, retain = rng.normal(size=(1000, 1)), rng.normal(size=(1000, 1))
    retain += rng.choice([-3.0, 3.0], size=(1000, 1))
    true = norm.logpdf(forget) - np.logaddexp(norm.logpdf(forget, 3), norm.logpdf(forget, -3))
    sets = Sets(forget, retain)
    assert spearmanr(DensityRatio().rank(sets, 0).scores, true[:, 0])[0] > 0.97
    linear = DensityRatio(LogisticRegression()).rank(sets, 0).scores
    assert abs(spearmanr(linear, true[:, 0])[0]) < 0.3


def test_sizes_of_classes_are_corrected_for() -> None:
    """The log ratio itself is near, whichever set is larger, and whoever balances."""
    for n1, n2 in ((300, 3000), (3000, 300)):
        sets, true = gaussians(1, n1, n2, 1, mean=1.0)
        for weight in (None, "balanced"):
            found = DensityRatio(LogisticRegression(class_weight=weight)).rank(sets, 0).scores
            assert abs(np.mean(found - true)) < 0.15
    assert np.log(10) > 1  # what an uncorrected one would be off by


class Memory(ClassifierMixin, BaseEstimator):
    """Knows the rows it has seen, and is sure of them."""

    def fit(self, X: Any, y: Any) -> Memory:
        """Remember the rows of class 1."""
        self.classes_ = np.array([0, 1])
        self.known_ = {tuple(row) for row in X[y == 1]}
        return self

    def predict_proba(self, X: Any) -> Any:
        """Return probabilities of both classes."""
        p = np.array([0.99 if tuple(row) in self.known_ else 0.5 for row in X])
        return np.column_stack([1 - p, p])


def test_no_record_is_scored_by_who_has_seen_it() -> None:
    sets, _ = gaussians(0, 40, 40, 2)
    found = DensityRatio(Memory(), n_folds=4).rank(sets, 0).scores
    np.testing.assert_allclose(found, np.log(40 / 30), rtol=1e-9)
    # The control: where a record is there twice, its twin tells.
    doubled = Sets(np.concatenate([sets.forget] * 2), sets.retain)
    assert DensityRatio(Memory(), n_folds=4).rank(doubled, 0).scores.max() > 3


@pytest.mark.parametrize(
    "classifier",
    [
        LogisticRegression(), GaussianNB(), LinearSVC(), RandomForestClassifier(20),
        SGDClassifier(loss="log_loss"),
    ],
)  # fmt: skip
def test_any_classifier_will_do(classifier: Any) -> None:
    sets, true = gaussians(2, 200, 200, 2, mean=2.0)
    score = DensityRatio(classifier)
    first, again, other = (score.rank(sets, seed).scores for seed in (5, 5, 6))
    assert first.tolist() == again.tolist()
    assert first.tolist() != other.tolist()
    assert spearmanr(first, true)[0] > 0.7
    assert not hasattr(classifier, "classes_")


def test_sparse_rows() -> None:
    rng = np.random.default_rng(0)
    forget = (rng.random((200, 30)) < np.linspace(0.1, 0.6, 30)).astype(float)
    retain = (rng.random((200, 30)) < np.linspace(0.6, 0.1, 30)).astype(float)
    p, q = np.linspace(0.1, 0.6, 30), np.linspace(0.6, 0.1, 30)
    true = forget @ np.log(p / q) + (1 - forget) @ np.log((1 - p) / (1 - q))
    for score in (DensityRatio(), DensityRatio(MultinomialNB())):
        found = score.rank(Sets(csr_array(forget), csr_array(retain)), 0).scores
        assert spearmanr(found, true)[0] > 0.8


def test_two_gaussians_are_what_they_say() -> None:
    sets, _ = gaussians(3, 70, 50, 3, mean=1.0, spread=2.0)
    X = np.concatenate([sets.forget, sets.retain])
    y = np.repeat([1, 0], [70, 50])
    found = classifiers.GaussianPair().fit(X, y).decision_function(X)
    logs = []
    for rows in (sets.retain, sets.forget):
        covariance = plain.shrunk_covariance(rows)
        away = X - rows.mean(axis=0)
        square = np.einsum("ij,ij->i", away @ np.linalg.inv(covariance), away)
        logs.append(-0.5 * (square + np.linalg.slogdet(covariance)[1]))
    np.testing.assert_allclose(found, logs[1] - logs[0] + np.log(70 / 50), rtol=1e-4, atol=1e-4)


def test_training_on_a_part_is_nearly_as_good() -> None:
    sets, true = gaussians(4, 1500, 1500, 3, mean=1.0)
    small = DensityRatio(LogisticRegression(), max_train=400).rank(sets, 0)
    assert spearmanr(small.scores, true)[0] > 0.95


def test_what_a_deletion_gains_is_its_weight() -> None:
    sets, _ = gaussians(0, 90, 30, 1, mean=1.0)
    ranking = DensityRatio(LogisticRegression()).rank(sets, 0)
    np.testing.assert_allclose(ranking.weights, np.log1p(90 / 30 * np.exp(ranking.scores)))


def test_few_records() -> None:
    for n1, n2 in ((2, 2), (2, 30), (30, 2), (5, 4)):
        sets, _ = gaussians(0, n1, n2, 3)
        assert sorted(DensityRatio().rank(sets, 0).order.tolist()) == list(range(n1))


@pytest.mark.parametrize(
    ("score", "message"),
    [
        (DensityRatio("logistic"), "classifier='logistic'"),
        (DensityRatio(np.mean), "predict_proba or decision_function"),
        (DensityRatio(n_folds=1), "n_folds=1; expected an integer of 2"),
        (DensityRatio(n_folds=2.0), "n_folds=2.0"),
        (DensityRatio(max_train=0), "max_train=0"),
    ],
)
def test_parameters_out_of_range(score: DensityRatio, message: str) -> None:
    sets, _ = gaussians(0, 9, 9, 1)
    with pytest.raises(InvalidParameterError, match=message):
        score.rank(sets, 0)


class NotANumber(Memory):
    """Is not sure of anything."""

    def predict_proba(self, X: Any) -> Any:
        """Return what is no number."""
        return np.full((len(X), 2), np.nan)


def test_scores_that_are_no_numbers_are_refused() -> None:
    sets, _ = gaussians(0, 9, 9, 1)
    with pytest.raises(InvalidInputError, match=r"NotANumber gave \d scores that are no numbers"):
        DensityRatio(NotANumber()).rank(sets, 0)
    with pytest.raises(InvalidInputError, match="forget has 1 record"):
        DensityRatio().rank(Sets(sets.forget[:1], sets.retain), 0)


@pytest.mark.parametrize("seed", [14, 41])
def test_a_column_that_all_folds_but_one_are_constant_in(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both of two odd records may be in one fold: two Gaussians, if chosen, have no covariance."""
    rng = np.random.default_rng(seed)
    odd = (np.arange(60) < 2)[:, None] * 1.0
    values = rng.normal(size=(60, 1)), 3 * rng.normal(size=(60, 1))
    sets = Sets(*(np.hstack([each, odd]) for each in values))
    assert np.isfinite(DensityRatio().rank(sets, seed).scores).all()
    choose = _density._simplest_first  # the control: nothing to fall back on
    monkeypatch.setattr(_density, "_simplest_first", lambda *given: choose(*given)[:1])
    with pytest.raises(InvalidInputError, match="singular"):
        DensityRatio().rank(sets, seed)
