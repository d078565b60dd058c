"""Classes that go with their last record or stay, priors, and rows that no class can have made."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

from erasable import load
from erasable.core.errors import InvalidDataError, TooFewRecordsError
from erasable.naive_bayes import BernoulliNB, CategoricalNB, GaussianNB, MultinomialNB
from naive_bayes.data import ALL, SPARSE, as_sparse

X = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0], [0.0, 0.0], [2.0, 1.0]])
Y = ["cold", "cold", "flu", "well", "well"]

each = pytest.mark.parametrize("model", ALL, ids=repr)


def with_prior(model: Any, prior: Any, **others: Any) -> Any:
    name = "priors" if isinstance(model, GaussianNB) else "class_prior"
    return clone(model).set_params(**{name: prior}, **others)


@each
def test_a_class_goes_with_its_last_record(model: Any) -> None:
    ours = clone(model).fit(X, Y)
    ours.delete([2])
    assert ours.classes_.tolist() == ["cold", "well"]
    assert ours.class_count_.tolist() == [2.0, 2.0]
    assert ours.predict_proba(X[[0]]).shape == (1, 2)
    kept = [0, 1, 3, 4]
    assert ours.digest() == clone(model).fit(X[kept], np.array(Y)[kept], ids=kept).digest()
    ours.delete([3, 4])
    assert ours.classes_.tolist() == ["cold"]
    assert ours.predict(X[:2]).tolist() == ["cold"] * 2
    assert ours.predict_proba(X[:2]).tolist() == [[1.0]] * 2
    with pytest.raises(TooFewRecordsError):
        ours.delete([0, 1])


@each
def test_a_class_that_is_fixed_stays_and_is_never_predicted(model: Any, tmp_path: Path) -> None:
    labels = ["well", "flu", "cold", "gout"]
    ours = clone(model).set_params(classes=labels).fit(X, Y)
    assert ours.classes_.tolist() == sorted(labels)
    ours.delete([2])
    assert ours.class_count_.tolist() == [2.0, 0.0, 0.0, 2.0]
    kept = [0, 1, 3, 4]
    free = clone(model).fit(X[kept], np.array(Y)[kept])
    rows = np.array([[0.0, 0.0], [1.0, 1.0], [2.0, 1.0], [0.0, 1.0]])
    np.testing.assert_allclose(ours.predict_proba(rows)[:, [0, 3]], free.predict_proba(rows))
    assert ours.predict_proba(rows)[:, 1:3].tolist() == [[0.0, 0.0]] * 4
    assert np.isneginf(ours.predict_joint_log_proba(rows)[:, 1:3]).all()
    assert ours.predict(rows).tolist() == free.predict(rows).tolist()
    ours.save(tmp_path / "model")
    assert load(tmp_path / "model").classes_.tolist() == sorted(labels)
    if isinstance(model, GaussianNB):
        assert ours.theta_[1:3].tolist() == [[0.0, 0.0]] * 2
        assert ours.var_[1:3].tolist() == [[ours.epsilon_] * 2] * 2
        assert ours.class_prior_.tolist() == [0.5, 0.0, 0.0, 0.5]
    else:
        assert np.isneginf(ours.class_log_prior_[1:3]).all()


@each
def test_a_prior_holds_the_classes_together(model: Any) -> None:
    ours = with_prior(model, [0.2, 0.3, 0.5]).fit(X, Y)
    before = ours.digest()
    with pytest.raises(
        TooFewRecordsError, match=r"would leave 2 of 3 classes, .* fit with classes="
    ):
        ours.delete([2])
    with pytest.raises(TooFewRecordsError, match="would leave 1 of 3 classes"):
        ours.delete([2, 3, 4])
    assert ours.digest() == before
    assert ours.ids_.tolist() == [0, 1, 2, 3, 4]
    ours.delete([0, 3])
    assert ours.class_count_.tolist() == [1.0, 1.0, 1.0]
    kept = [0, 1, 3]
    with pytest.raises(TooFewRecordsError, match="3 probabilities, and there are 2 classes"):
        with_prior(model, [0.2, 0.3, 0.5]).fit(X[kept], np.array(Y)[kept])


@each
def test_a_prior_of_fixed_classes_does_not_hinder_a_deletion(model: Any) -> None:
    labels = ["cold", "flu", "well"]
    ours = with_prior(model, [0.2, 0.3, 0.5], classes=labels).fit(X, Y)
    ours.delete([2])
    rows = X[[0, 3]]
    assert ours.predict_proba(rows)[:, 1].tolist() == [0.0, 0.0]
    np.testing.assert_allclose(ours.predict_proba(rows).sum(axis=1), 1.0)
    kept = [0, 1, 3, 4]
    same = with_prior(model, [2 / 7, 5 / 7]).fit(X[kept], np.array(Y)[kept])
    np.testing.assert_allclose(ours.predict_proba(rows)[:, [0, 2]], same.predict_proba(rows))


@pytest.mark.parametrize("model", ALL[1:], ids=repr)
def test_equal_priors(model: Any) -> None:
    ours = clone(model).set_params(fit_prior=False).fit(X, Y)
    assert ours.class_log_prior_.tolist() == [-np.log(3)] * 3
    ours.delete([2])
    assert ours.class_log_prior_.tolist() == [-np.log(2)] * 2


@pytest.mark.parametrize("kind", [int, float, bool, str])
@each
def test_labels_keep_their_type(model: Any, kind: Any) -> None:
    y = np.array([0, 1, 1, 0, 1]).astype(kind)
    ours = clone(model).fit(X, y)
    ours.delete([0])
    assert ours.classes_.dtype == (object if kind is str else y.dtype)
    assert ours.predict(X).dtype == ours.classes_.dtype
    assert set(ours.predict(X).tolist()) <= set(y.tolist())


@each
def test_attributes_are_copies_and_parameters_are_those_of_fit(model: Any) -> None:
    ours = clone(model).fit(X, Y)
    digest, before = ours.digest(), ours.predict_proba(X)
    for name in ("classes_", "class_count_", "class_prior_", "theta_", "var_", "class_log_prior_"):
        if hasattr(ours, name):
            getattr(ours, name)[:] = ours.classes_[0] if name == "classes_" else 9.0
    for name in ("feature_count_", "feature_log_prob_", "category_count_", "n_categories_"):
        value = getattr(ours, name, None)
        for array in value if isinstance(value, list) else [value]:
            if array is not None:
                array[:] = 9.0
    smoothing = "var_smoothing" if isinstance(model, GaussianNB) else "alpha"
    ours.set_params(**{smoothing: 7.0})
    assert ours.predict_proba(X).tolist() == before.tolist()
    assert ours.digest() == digest
    ours.delete([2])
    kept = [0, 1, 3, 4]
    assert ours.digest() == clone(model).fit(X[kept], np.array(Y)[kept], ids=kept).digest()


# --------------------------------------------------------------------------- rows beyond belief


def test_without_any_variance_every_class_is_as_likely_as_its_prior() -> None:
    same = np.ones((4, 2))
    ours = GaussianNB().fit(same, [0, 0, 0, 1])
    assert ours.epsilon_ == 0.0
    assert ours.var_.tolist() == [[0.0, 0.0]] * 2
    np.testing.assert_allclose(ours.predict_proba([[1.0, 1.0], [3.0, 0.0]]), [[0.75, 0.25]] * 2)


def test_without_smoothing_a_constant_feature_tells_for_certain() -> None:
    ours = GaussianNB(var_smoothing=0.0).fit([[1.0], [1.0], [2.0], [4.0]], ["a", "a", "b", "b"])
    wanted = [[1.0, 0.0], [0.0, 1.0], [0.0, 1.0]]
    np.testing.assert_allclose(ours.predict_proba([[1.0], [1.5], [3.0]]), wanted, atol=1e-100)


def test_values_out_of_all_bounds_give_the_shares_of_the_classes() -> None:
    ours = GaussianNB().fit([[1.0], [2.0], [4.0], [5.0]], ["a", "b", "b", "b"])
    assert np.isneginf(ours.predict_joint_log_proba([[1e300]])).all()
    np.testing.assert_allclose(ours.predict_proba([[1e300], [-1e308]]), [[0.25, 0.75]] * 2)
    assert ours.predict([[1e300]]).tolist() == ["b"]


@pytest.mark.parametrize("sparse", [False, True])
def test_what_a_class_never_had_is_impossible_without_smoothing(sparse: bool) -> None:
    table = np.array([[1.0, 0.0, 0.0], [1.0, 1.0, 0.0], [0.0, 1.0, 0.0]])
    rows = np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [0.0, 0.0, 0.0]])
    form = as_sparse if sparse else np.array
    counts = MultinomialNB(alpha=0.0).fit(form(table), [0, 0, 1])
    assert counts.feature_log_prob_[1].tolist() == [-np.inf, 0.0, -np.inf]
    # c: P = 2/3 (2/3, 1/3, 0) and 1/3 (0, 1, 0); the third row is impossible.
    np.testing.assert_allclose(
        counts.predict_proba(form(rows)), [[1, 0], [0.4, 0.6], [2 / 3, 1 / 3], [2 / 3, 1 / 3]]
    )
    has = BernoulliNB(alpha=0.0).fit(form(table), [0, 0, 1])
    # Class 0 always has the first feature, class 1 never; nobody has the third.
    np.testing.assert_allclose(
        has.predict_proba(form(rows)), [[1, 0], [0, 1], [2 / 3, 1 / 3], [2 / 3, 1 / 3]]
    )
    if not sparse:
        codes = CategoricalNB(alpha=0.0, min_categories=2).fit(table, [0, 0, 1])
        np.testing.assert_allclose(codes.predict_proba(rows), has.predict_proba(rows))


def test_a_class_of_empty_texts() -> None:
    ours = MultinomialNB(alpha=0.0).fit([[0.0, 0.0], [1.0, 2.0]], [0, 1])
    assert ours.predict_proba([[1.0, 1.0], [0.0, 0.0]]).tolist() == [[0.0, 1.0], [0.5, 0.5]]


# --------------------------------------------------------------------------- categories that go


def test_a_category_goes_with_its_last_record() -> None:
    table = np.array([[0.0, 4.0], [1.0, 0.0], [5.0, 1.0], [1.0, 4.0]])
    ours = CategoricalNB().fit(table, [0, 1, 0, 1])
    assert ours.n_categories_.tolist() == [6, 5]
    ours.delete([2])
    assert ours.n_categories_.tolist() == [2, 5]
    assert [count.tolist() for count in ours.category_count_] == [
        [[1.0, 0.0], [0.0, 2.0]],
        [[0.0, 0.0, 0.0, 0.0, 1.0], [1.0, 0.0, 0.0, 0.0, 1.0]],
    ]
    with pytest.raises(InvalidDataError, match=r"1 columns \(0\) hold categories .* 0 to 1 there"):
        ours.predict(table)
    ours.delete([0, 3])
    assert ours.n_categories_.tolist() == [2, 1]


def test_categories_that_were_asked_for_stay() -> None:
    table = np.array([[0.0, 4.0], [1.0, 0.0], [5.0, 1.0], [1.0, 4.0]])
    ours = CategoricalNB(min_categories=[6, 2]).fit(table, [0, 1, 0, 1])
    ours.delete([2])
    assert ours.n_categories_.tolist() == [6, 5]
    assert ours.predict(table[[2]]).shape == (1,)
    ours.delete([0, 3])
    assert ours.n_categories_.tolist() == [6, 2]


@pytest.mark.parametrize("model", SPARSE, ids=repr)
def test_the_highest_power_of_two_goes_with_its_last_value(model: Any) -> None:
    table = np.array([[0.3, 0.0, 7.0], [0.2, 0.7, 0.0], [9.0, 0.0, 0.0], [0.1, 0.0, 5.0]])
    for form in (np.array, as_sparse):
        ours = clone(model).fit(form(table), [0, 1, 1, 0])
        scanned = [ours.delete([row]).counts["columns_scanned"] for row in (2, 0, 1)]
        assert scanned == ([1, 1, 2] if isinstance(model, MultinomialNB) else [0, 0, 0])
        assert ours.digest() == clone(model).fit(form(table[3:]), [0], ids=[3]).digest()
