"""The numbers of naive Bayes: scikit-learn's, and exact fractions."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine

from effort import examples
from erasable.naive_bayes import BernoulliNB, CategoricalNB, GaussianNB, MultinomialNB
from naive_bayes.data import ALL, as_sparse, cases, theirs

VARIANTS = [
    *ALL,
    GaussianNB(var_smoothing=1e-3),
    MultinomialNB(alpha=0.1, fit_prior=False),
    BernoulliNB(alpha=0.5, binarize=1.0),
    CategoricalNB(alpha=0.3, min_categories=9, fit_prior=False),
]
DISCRETE = [MultinomialNB, BernoulliNB, CategoricalNB]


def assert_alike(ours: Any, other: Any, X: Any, rtol: float, atol: float = 0.0) -> None:
    names = ("classes_", "class_count_", "class_prior_", "theta_", "var_", "epsilon_")
    names += ("class_log_prior_", "feature_count_", "feature_log_prob_")
    names += ("category_count_", "n_categories_")
    for name in names:
        wanted = getattr(other, name, None)
        if name == "classes_":
            assert ours.classes_.tolist() == wanted.tolist()
        elif isinstance(wanted, list):
            for mine, theirs in zip(getattr(ours, name), wanted, strict=True):
                np.testing.assert_allclose(mine, theirs, rtol=rtol, atol=1e-12)
        elif wanted is not None:
            np.testing.assert_allclose(getattr(ours, name), wanted, rtol=rtol, atol=1e-12)
    for name in ("predict_joint_log_proba", "predict_log_proba", "predict_proba"):
        mine, wanted = getattr(ours, name)(X), getattr(other, name)(X)
        np.testing.assert_allclose(mine, wanted, rtol=rtol, atol=atol)
    assert ours.predict(X).tolist() == other.predict(X).tolist()


# --------------------------------------------------------------------------- scikit-learn


@pytest.mark.parametrize("load", [load_iris, load_wine, load_digits, load_breast_cancer])
@pytest.mark.parametrize("model", VARIANTS, ids=repr)
def test_on_real_data_scikit_learn_agrees(model: Any, load: Any) -> None:
    X, y = load(return_X_y=True)
    if isinstance(model, CategoricalNB):
        X = np.floor(8 * (X - X.min(axis=0)) / (np.ptp(X, axis=0) + 1))
    ours = clone(model).fit(X, y)
    exact = load is load_digits or isinstance(model, BernoulliNB | CategoricalNB)
    rtol = 1e-9 if exact else 1e-6
    assert_alike(ours, theirs(model).fit(X, y), X, rtol, atol=rtol)
    gone = np.random.default_rng(0).permutation(len(X))[: len(X) // 2]
    if isinstance(model, CategoricalNB):
        ours.set_params(min_categories=9).fit(X, y)
    ours.delete(gone)
    kept = np.delete(np.arange(len(X)), gone)
    assert_alike(ours, theirs(ours).fit(X[kept], y[kept]), X, rtol, atol=10 * rtol)
    assert ours.score(X[kept], y[kept]) == theirs(ours).fit(X[kept], y[kept]).score(
        X[kept], y[kept]
    )


@pytest.mark.parametrize("weighting", ["counts", "tf-idf"])
@pytest.mark.parametrize("model", [MultinomialNB(), BernoulliNB()], ids=repr)
def test_on_sparse_text_scikit_learn_agrees(model: Any, weighting: str) -> None:
    rng = np.random.default_rng(0)
    X = rng.poisson(0.05, size=(500, 300)).astype(np.float64)
    y = np.array(["ham", "spam", "both"])[rng.integers(0, 3, 500)]
    if weighting == "tf-idf":
        X *= np.log(500 / (1 + (X > 0).sum(axis=0)))
        X /= np.maximum(np.linalg.norm(X, axis=1, keepdims=True), 1e-9)
    sparse = csr_array(X)
    rtol = 1e-7 if weighting == "tf-idf" else 1e-9  # 26 bits of every value
    ours = clone(model).fit(sparse, y)
    assert_alike(ours, theirs(model).fit(sparse, y), sparse, rtol)
    ours.delete(range(0, 500, 3))
    kept = np.flatnonzero(np.arange(500) % 3)
    assert_alike(ours, theirs(model).fit(sparse[kept], y[kept]), sparse, rtol)


def test_float32_is_read_as_what_it_is() -> None:
    rng = np.random.default_rng(0)
    X, y = rng.normal(5.0, 2.0, size=(200, 4)).astype(np.float32), rng.integers(0, 2, 200)
    ours = GaussianNB().fit(X, y)
    other = GaussianNB().fit(X.astype(np.float64), y)
    assert ours.predict_proba(X).dtype == np.float64
    assert ours.predict_proba(X).tobytes() == other.predict_proba(X.astype(np.float64)).tobytes()
    np.testing.assert_allclose(
        ours.predict_proba(X), theirs(GaussianNB()).fit(X, y).predict_proba(X), atol=1e-4
    )


@pytest.mark.parametrize("prior", [[0.2, 0.3, 0.5], np.array([0.0, 0.4, 0.6]), (1, 0, 0)])
@pytest.mark.parametrize("model", ALL, ids=repr)
@pytest.mark.filterwarnings("ignore:divide by zero:RuntimeWarning")
def test_a_prior_that_is_given_is_taken(model: Any, prior: Any) -> None:
    rng = np.random.default_rng(0)
    X, y = rng.integers(0, 3, (90, 4)).astype(np.float64), np.repeat([0, 1, 2], 30)
    name = "priors" if isinstance(model, GaussianNB) else "class_prior"
    ours = clone(model).set_params(**{name: prior}).fit(X, y)
    assert_alike(ours, theirs(ours).fit(X, y), X, 1e-9)
    ours.delete(range(0, 90, 2))
    assert_alike(ours, theirs(ours).fit(X[1::2], y[1::2]), X, 1e-9)


def test_an_alpha_for_each_feature() -> None:
    rng = np.random.default_rng(0)
    X, y = rng.poisson(1.0, (60, 4)).astype(np.float64), rng.integers(0, 3, 60)
    alpha = np.array([0.5, 1.0, 2.0, 0.0])
    ours = MultinomialNB(alpha=alpha).fit(X, y)
    assert_alike(ours, theirs(ours).fit(X, y), X, 1e-9)
    # scikit-learn cannot add these to the counts of classes.
    ours = BernoulliNB(alpha=alpha.tolist()).fit(X, y)
    for j, each in enumerate(alpha.tolist()):
        one = BernoulliNB(alpha=each).fit(X[:, j : j + 1], y)
        np.testing.assert_allclose(
            ours.feature_log_prob_[:, j], one.feature_log_prob_[:, 0], rtol=1e-12
        )


@pytest.mark.parametrize("cls", DISCRETE)
def test_an_alpha_that_is_too_small_is_raised_if_asked_for(cls: Any) -> None:
    X, y = [[0, 1], [1, 0], [1, 1]], [0, 1, 1]
    with pytest.warns(UserWarning, match="alpha too small"):
        raised = cls(alpha=0.0, force_alpha=False).fit(X, y)
    same = cls(alpha=1e-10).fit(X, y)
    assert raised.predict_proba(X).tolist() == same.predict_proba(X).tolist()
    with pytest.warns(UserWarning, match="alpha too small"):
        other = theirs(raised).fit(X, y)
    assert_alike(raised, other, X, 1e-7)  # log(1 - exp(log(p))) of scikit-learn's is inexact


# --------------------------------------------------------------------------- exact fractions


def on_grid(column: NDArray[Any]) -> list[Fraction]:
    """Non-negative values, rounded to 26 bits below the power of two that bounds the largest."""
    values = [Fraction(float(value)) for value in column]
    largest = max(values)
    if largest == 0:
        return values
    top = math.ceil(math.log2(float(largest)) - 1e-9)
    while Fraction(2) ** top < largest:
        top += 1
    quantum = Fraction(2) ** (top - 26)
    return [round(value / quantum) * quantum for value in values]


@given(data=st.data())
@settings(max_examples=examples(40))
def test_counts_are_exact_sums(data: st.DataObject) -> None:
    X, y = data.draw(cases(MultinomialNB()))
    model = MultinomialNB().fit(X if data.draw(st.booleans()) else as_sparse(X), y)
    gone = sorted(data.draw(st.sets(st.integers(0, len(X) - 1), max_size=len(X) - 1)))
    model.delete(gone)
    X, y = np.delete(X, gone, 0), np.delete(y, gone)
    for j in range(X.shape[1]):
        gridded = on_grid(X[:, j])
        for c, label in enumerate(model.classes_.tolist()):
            wanted = sum(v for v, own in zip(gridded, y.tolist(), strict=True) if own == label)
            assert Fraction(model.feature_count_[c, j]) == wanted


@given(data=st.data())
@settings(max_examples=examples(40))
def test_means_and_variances_are_within_an_ulp(data: st.DataObject) -> None:
    """Whole numbers are on the grid as they are: the oracle needs no rounding."""
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    n, d = data.draw(st.integers(2, 30)), data.draw(st.integers(1, 3))
    size = data.draw(st.sampled_from([3, 1000, 2**25]))
    X, y = rng.integers(-size, size, (n, d)).astype(np.float64), rng.integers(0, 3, n)
    model = GaussianNB(var_smoothing=0.0).fit(X, y)
    gone = sorted(data.draw(st.sets(st.integers(0, n - 1), max_size=n - 1)))
    model.delete(gone)
    X, y = np.delete(X, gone, 0), np.delete(y, gone)
    for c, label in enumerate(model.classes_.tolist()):
        for j in range(d):
            values = [Fraction(value) for value in X[y == label, j].tolist()]
            mean = sum(values) / len(values)
            variance = sum((value - mean) ** 2 for value in values) / len(values)
            assert_within_an_ulp(model.theta_[c, j], mean)
            assert_within_an_ulp(model.var_[c, j], variance)


def assert_within_an_ulp(found: float, wanted: Fraction) -> None:
    assert abs(Fraction(float(found)) - wanted) <= Fraction(math.ulp(float(wanted)))


@pytest.mark.filterwarnings("ignore::erasable.core.grid.PrecisionWarning")
@given(data=st.data())
@settings(max_examples=examples(30))
def test_epsilon_is_a_share_of_the_largest_variance(data: st.DataObject) -> None:
    X, y = data.draw(cases(GaussianNB(), least=3))
    X = X.astype(np.float64)
    model = GaussianNB(var_smoothing=0.25).fit(X, y)
    model.delete([0])
    widest = max(float(np.var(column)) for column in X[1:].T)
    np.testing.assert_allclose(model.epsilon_, 0.25 * widest, rtol=1e-6, atol=1e-20)


@pytest.mark.parametrize("threshold", [0.0, 1.0, 2.5])
def test_features_and_categories_are_counted(threshold: float) -> None:
    rng = np.random.default_rng(0)
    X, y = rng.integers(0, 5, (80, 3)).astype(np.float64), rng.integers(0, 2, 80)
    has, codes = BernoulliNB(binarize=threshold).fit(X, y), CategoricalNB().fit(X, y)
    for model in (has, codes):
        model.delete(range(0, 80, 5))
    left = np.arange(80) % 5 > 0
    for c in (0, 1):
        own = X[left & (y == c)]
        assert has.feature_count_[c].tolist() == [sum(v > threshold for v in col) for col in own.T]
        for j in range(3):
            wanted = [sum(own[:, j] == category) for category in range(5)]
            assert codes.category_count_[j][c].tolist() == wanted
