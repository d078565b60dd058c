"""Naive Bayes with weights: scikit-learn's numbers, exact fractions, and the law."""

from __future__ import annotations

import pickle
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sklearn
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.pipeline import Pipeline

from effort import examples
from erasable import Records, load
from erasable.core._weighted_moments import ClassWeights
from erasable.core.errors import ArtifactError, TooFewRecordsError
from erasable.naive_bayes import BernoulliNB, CategoricalNB, GaussianNB, MultinomialNB
from erasable.utils.estimator_checks import LAW_CHECKS, parametrize_with_law_checks
from law_cases import check_law_of_variant
from naive_bayes.data import ALL, as_sparse, cases, code_sets, theirs
from naive_bayes.test_contracts import ON_NUMBERS, assert_same_predictions
from naive_bayes.test_numbers import assert_alike
from weighing import Weighing

MODELS = [
    *ALL,
    GaussianNB(var_smoothing=0.0),
    MultinomialNB(alpha=0.1, fit_prior=False),
    BernoulliNB(binarize=1.0, class_prior=[0.2, 0.3, 0.5]),
    CategoricalNB(min_categories=7),
]
each_model = pytest.mark.parametrize("model", MODELS, ids=repr)


def counts(seed: int, n: int = 120, d: int = 4) -> tuple[Any, Any, Any]:
    """Counts, classes, and weights of which some are 0."""
    rng = np.random.default_rng(seed)
    X, y = rng.integers(0, 5, (n, d)).astype(np.float64), rng.integers(0, 3, n)
    return X, y, rng.integers(0, 6, n) / 4.0


# --------------------------------------------------------------------------- scikit-learn


@each_model
def test_scikit_learn_agrees(model: Any) -> None:
    X, y, w = counts(0)
    ours = clone(model).fit(X, y, w)
    assert_alike(ours, theirs(model).fit(X, y, w), X, 1e-11, 1e-9)
    kept = np.flatnonzero(np.arange(len(X)) % 3)
    ours.delete(range(0, len(X), 3))
    other = theirs(model).fit(X[kept], y[kept], w[kept])
    assert_alike(ours, other, X[kept], 1e-11, 1e-9)
    assert ours.score(X, y, w) == other.score(X, y, w)


@each_model
def test_weights_between_numbers_of_the_grid_are_rounded(model: Any) -> None:
    X, y, _ = counts(1)
    w = np.random.default_rng(1).random(len(X))
    assert_alike(clone(model).fit(X, y, w), theirs(model).fit(X, y, w), X, 1e-7, 1e-7)


@pytest.mark.parametrize("model", [MultinomialNB(), BernoulliNB()], ids=repr)
def test_sparse_rows_are_the_same(model: Any) -> None:
    X, y, w = counts(2)
    sparse, dense = clone(model).fit(as_sparse(X), y, w), clone(model).fit(X, y, w)
    for each in (sparse, dense):
        each.delete(range(0, 120, 2))
    assert sparse.digest() == dense.digest()
    assert_alike(sparse, theirs(model).fit(X[1::2], y[1::2], w[1::2]), X, 1e-11, 1e-9)


@each_model
def test_a_weight_is_that_many_copies(model: Any) -> None:
    X, y, w = counts(3)
    times = (4 * w).astype(int)
    if model.__class__ is GaussianNB:
        model = clone(model).set_params(var_smoothing=0.0)  # `epsilon_` is of the records
    ours = clone(model).fit(X, y, times)
    # A record without weight teaches nothing, but which categories there are.
    copies = clone(model).fit(np.repeat(X, times, axis=0), np.repeat(y, times))
    np.testing.assert_allclose(ours.predict_proba(X), copies.predict_proba(X), rtol=1e-11)
    np.testing.assert_array_equal(ours.class_count_, copies.class_count_)


def test_categories_of_records_without_weight_are_there() -> None:
    X, y, w = [[0.0], [1.0], [4.0], [1.0]], [0, 0, 1, 1], [1.0, 2.0, 0.0, 1.0]
    ours = CategoricalNB().fit(X, y, w)
    assert_alike(ours, theirs(ours).fit(np.array(X, dtype=int), y, w), X, 1e-12)
    assert ours.delete([2]).counts["columns_scanned"] == 1
    assert ours.n_categories_.tolist() == [2]


def test_a_class_without_weight_is_never_predicted() -> None:
    for model in ALL:
        X, y = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]), ["a", "b", "b"]
        ours = clone(model).fit(X, y, [0.0, 1.0, 2.0])
        assert ours.classes_.tolist() == ["a", "b"]
        assert ours.predict_proba(X).tolist() == [[0.0, 1.0]] * 3


# --------------------------------------------------------------------------- exact fractions


@given(data=st.data())
@settings(max_examples=examples(40))
def test_moments_are_within_two_ulps(data: st.DataObject) -> None:
    """Whole numbers are on the grids as they are: the oracle needs no rounding."""
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    n, size = data.draw(st.integers(2, 20)), data.draw(st.sampled_from([3, 1000, 2**25]))
    X = rng.integers(-size, size, (n, 2)).astype(np.float64)
    y, w = rng.integers(0, 2, n), rng.integers(0, data.draw(st.sampled_from([2, 2**26])), n)
    w[0] = 1
    model = GaussianNB(var_smoothing=0.0).fit(X, y, w)
    gone = sorted(data.draw(st.sets(st.integers(1, n - 1), max_size=n - 1)))
    model.delete(gone)
    X, y, w = np.delete(X, gone, 0), np.delete(y, gone), np.delete(w, gone)
    for c, label in enumerate(model.classes_.tolist()):
        weights = [Fraction(each) for each in w[y == label].tolist()]
        assert Fraction(float(model.class_count_[c])) == sum(weights)
        if not sum(weights):
            continue
        for j in range(2):
            pairs = list(zip(weights, map(Fraction, X[y == label, j].tolist()), strict=True))
            mean = sum(a * b for a, b in pairs) / sum(weights)
            variance = sum(a * (b - mean) ** 2 for a, b in pairs) / sum(weights)
            for found, wanted in ((model.theta_[c, j], mean), (model.var_[c, j], variance)):
                assert abs(Fraction(float(found)) - wanted) <= abs(wanted) * Fraction(2) ** -51


@given(data=st.data())
@settings(max_examples=examples(40))
def test_counts_are_exact_sums(data: st.DataObject) -> None:
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    n = data.draw(st.integers(2, 20))
    X, y = rng.integers(0, 2**26, (n, 2)), rng.integers(0, 2, n)
    w = rng.integers(1, 2**26, n)
    model = MultinomialNB().fit(X, y, w)
    gone = sorted(data.draw(st.sets(st.integers(0, n - 1), max_size=n - 1)))
    model.delete(gone)
    X, y, w = np.delete(X, gone, 0), np.delete(y, gone), np.delete(w, gone)
    for c, label in enumerate(model.classes_.tolist()):
        for j in range(2):
            own = zip(w[y == label].tolist(), X[y == label, j].tolist(), strict=True)
            assert model.feature_count_[c, j] == float(sum(a * b for a, b in own))


# --------------------------------------------------------------------------- the law


class WeighingGaussianNB(Weighing, GaussianNB):
    pass


class WeighingMultinomialNB(Weighing, MultinomialNB):
    pass


class WeighingBernoulliNB(Weighing, BernoulliNB):
    pass


class WeighingCategoricalNB(Weighing, CategoricalNB):
    pass


@pytest.mark.thorough
@parametrize_with_law_checks(
    [WeighingGaussianNB(), WeighingMultinomialNB(), WeighingBernoulliNB()], fast=True
)
def test_law(estimator: Any, check: Any) -> None:
    check_law_of_variant(estimator, check)


@pytest.mark.parametrize("name", sorted(LAW_CHECKS.keys() - ON_NUMBERS))
def test_law_of_categories(name: str) -> None:
    LAW_CHECKS[name](WeighingCategoricalNB(min_categories=16), code_sets()[::3])


@pytest.mark.filterwarnings("ignore::erasable.core.grid.PrecisionWarning")
@pytest.mark.parametrize("model", ALL, ids=repr)
@given(data=st.data())
@settings(max_examples=examples(30))
def test_after_deletions_the_model_is_a_refit(model: Any, data: st.DataObject) -> None:
    X, y = data.draw(cases(model))
    n, ids = len(X), np.arange(100, 100 + len(X))
    sizes = st.sampled_from([0.0, 1.0, 0.3, 2.0**30, 1e-12]) | st.floats(0, 1e6)
    w = np.array(data.draw(st.lists(sizes, min_size=n, max_size=n)))
    w[0] = 7.0
    ours = clone(model).fit(X, y, w, ids=ids)
    alive = np.ones(n, dtype=bool)
    order, start = data.draw(st.permutations(range(n))), 0
    while start < n - 1:
        stop = data.draw(st.integers(start + 1, n - 1))
        rows, start = order[start:stop], stop
        left = np.setdiff1d(np.flatnonzero(alive), rows)[::-1]
        if not (w[left] > 2.0**-507).any():
            before = ours.digest()
            with pytest.raises(TooFewRecordsError, match="would be zero"):
                ours.delete(ids[rows])
            assert ours.digest() == before
            return
        if data.draw(st.booleans()):
            ours = pickle.loads(pickle.dumps(ours))
        ours.delete(ids[rows])
        alive[rows] = False
        refit = clone(model).fit(X[left], y[left], w[left], ids=ids[left])
        assert ours.digest() == refit.digest()
        assert_same_predictions(ours, refit, X[left])


@pytest.mark.parametrize("model", ALL, ids=repr)
def test_weights_are_part_of_the_records(model: Any, tmp_path: Path) -> None:
    X, y, w = counts(4, n=20)
    w[3] = 1234.5678
    ours = clone(model).fit(X, y, w)
    secret = np.float64(1234.5678).tobytes()
    assert secret in pickle.dumps(ours)
    ours.save(tmp_path / "model")
    ids = np.arange(20)
    for other in (None, w + 1.0):
        with pytest.raises(ArtifactError, match="makes another"):
            load(tmp_path / "model", Records(X, y, sample_weight=other, ids=ids))
    again = load(tmp_path / "model", Records(X, y, sample_weight=w, ids=ids))
    for each in (again, ours):
        assert each.delete([3]).rows_touched == 19  # the largest weight: all is counted anew
        assert secret not in pickle.dumps(each)
        assert 1234.5678 not in each._held.records.weights
        assert 1234.5678 not in each._weights.weights
    assert again.digest() == ours.digest()


@pytest.mark.parametrize("model", ALL, ids=repr)
def test_weights_come_by_metadata_routing(model: Any) -> None:
    X, y, w = counts(5)
    with sklearn.config_context(enable_metadata_routing=True):
        step = clone(model).set_fit_request(sample_weight=True)
        routed = Pipeline([("model", step)]).fit(X, y, sample_weight=w)[-1]
    assert routed.digest() == clone(model).fit(X, y, w).digest()


def test_forgetting_to_count_again_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """A negative control: the grid of the weights depends on all records."""
    X, y, w = np.eye(3), [0, 1, 1], [0.3, 0.7, 1e6]

    def differs() -> bool:
        ours = BernoulliNB().fit(X, y, w)
        ours.delete([2])
        return bool(ours.digest() != BernoulliNB().fit(X[:2], y[:2], w[:2]).digest())

    assert not differs()
    subtract = ClassWeights.subtract
    monkeypatch.setattr(ClassWeights, "subtract", lambda *given: subtract(*given) and False)
    assert differs()


def test_the_law_is_checked_with_weights() -> None:
    """Another negative control: the checks see a model that forgets the weight of a record."""

    class Heedless(WeighingBernoulliNB):
        def _update(self, delta: Any) -> Any:
            rows = delta.leaving
            self._held.records.weights[rows] = 1.0
            return super()._update(delta)

    with pytest.raises(AssertionError, match="differs"):
        LAW_CHECKS["check_delete_equals_refit"](Heedless())
