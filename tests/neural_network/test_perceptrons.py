"""Perceptrons against NumPy's and scikit-learn's, and under the law where no step changes."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import sklearn.neural_network
from sklearn.datasets import load_iris
from sklearn.utils.estimator_checks import parametrize_with_checks

from erasable.core.errors import InvalidParameterError, MagnitudeError, TooFewRecordsError
from erasable.neural_network import MLPClassifier, MLPRegressor
from erasable.neural_network._trajectory import Trajectory
from erasable.pipeline import make_pipeline
from erasable.preprocessing import StandardScaler
from erasable.utils._checks.compare import assert_same

ACTIVATIONS = ["relu", "tanh", "logistic", "identity"]
FINEST = 2.0**-20
KINDS = ["two", "three", "number", "numbers"]


def case(kind: str, n: int = 150) -> tuple[type[Any], Any, Any]:
    X = np.random.default_rng(0).normal(size=(n, 3))
    of = {
        "two": X[:, 0] * X[:, 1] > 0,
        "three": np.array(["a", "b", "c"])[np.digitize(X[:, 0], [-0.4, 0.4])],
        "number": np.abs(X[:, 0]),
        "numbers": np.column_stack([np.abs(X[:, 0]), X[:, 1] - X[:, 2]]),
    }
    return MLPClassifier if kind in ("two", "three") else MLPRegressor, X, of[kind]


@parametrize_with_checks([
    MLPClassifier(max_iter=60, learning_rate_init=0.5, batch_size=0.3),
    MLPRegressor(max_iter=200, batch_size=0.3, learning_rate_init=0.1),
])  # fmt: skip
def test_scikit_learns_checks(estimator: Any, check: Any) -> None:
    check(estimator)


def _activate(values: Any, kind: str) -> Any:
    return {
        "identity": lambda: values,
        "relu": lambda: np.maximum(values, 0),
        "tanh": lambda: np.tanh(values),
        "logistic": lambda: 1 / (1 + np.exp(-values)),
        "softmax": lambda: np.exp(values) / np.exp(values).sum(axis=1, keepdims=True),
    }[kind]()


def _loss(model: Any, flat: Any, X: Any, targets: Any, alpha: float) -> float:
    """Mean loss of a network, as scikit-learn's documentation defines it."""
    sizes = [X.shape[1], *model.hidden_layer_sizes, targets.shape[1]]
    values, at, penalty = X, 0, 0.0
    for layer, (n_in, n_out) in enumerate(pairwise(sizes)):
        weights = flat[at : at + n_in * n_out].reshape(n_in, n_out)
        intercepts = flat[at + n_in * n_out : at + (n_in + 1) * n_out]
        at += (n_in + 1) * n_out
        last = layer == len(sizes) - 2
        kind = model.out_activation_ if last else model.activation
        values = _activate(values @ weights + intercepts, kind)
        penalty += alpha / 2 * np.sum(weights**2)
    if model.out_activation_ == "identity":
        loss = np.sum((values - targets) ** 2) / 2
    elif model.out_activation_ == "logistic":
        loss = -np.sum(np.log(np.where(targets == 1, values, 1 - values)))
    else:
        loss = -np.sum(targets * np.log(values))
    return float(loss / len(X) + penalty)


@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("kind", KINDS)
def test_a_step_goes_down_the_gradient_of_the_loss(kind: str, activation: str) -> None:
    """Of which differences of the loss are the oracle."""
    cls, X, y = case(kind, 40)
    settings = {"alpha": 0.5, "lattice_step": FINEST, "batch_size": 1, "learning_rate_init": 0.125}
    model = cls((4, 3), activation, max_iter=1, random_state=0, **settings).fit(X, y)
    start, after = model._accelerator.plan.start, model._weights
    if cls is MLPRegressor:
        targets = y.reshape(len(X), -1)
    else:
        targets = (
            y[:, None] == model.classes_[1:] if kind == "two" else y[:, None] == model.classes_
        )
    eps = 1e-6
    slopes = [
        (_loss(model, start + eps * unit, X, targets, 0.5)
         - _loss(model, start - eps * unit, X, targets, 0.5)) / (2 * eps)
        for unit in np.eye(start.size)
    ]  # fmt: skip
    np.testing.assert_allclose((start - after) / 0.125, slopes, atol=5e-6)


@pytest.mark.parametrize("lattice_step", [FINEST, 0.3, 8.0])
@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("kind", KINDS)
def test_deletions_and_additions_keep_the_law(
    kind: str, activation: str, lattice_step: float
) -> None:
    cls, X, y = case(kind)
    settings = {"batch_size": 0.2, "max_iter": 10, "lattice_step": lattice_step}
    unfitted = cls((5, 4), activation, random_state=3, **settings)
    model = cls(**unfitted.get_params()).fit(X, y)
    rng, there = np.random.default_rng(1), np.arange(len(X))
    for n_gone in (1, 1, 1, 4):
        gone = rng.choice(there, n_gone, replace=False)
        model.delete(gone)
        there = np.setdiff1d(there, gone)
    model.add(X[gone[:2]], y[gone[:2]], ids=gone[:2])
    model.replace(there[:2], X[gone[2:]], y[gone[2:]], ids=gone[2:])
    there = rng.permutation(np.concatenate([there[2:], gone]))
    assert_same(model, cls(**unfitted.get_params()).fit(X[there], y[there], ids=there), "a refit")


def test_a_deletion_that_changes_no_step_leaves_the_network() -> None:
    cls, X, y = case("three", 3000)
    settings = {"max_iter": 2, "random_state": 0, "learning_rate_init": 0.1}
    coarse = cls((4,), lattice_step=2.0, **settings).fit(X, y)
    fine = cls((4,), lattice_step=FINEST, **settings).fit(X, y)
    before = coarse.coefs_
    told = [coarse.delete([each]) for each in range(20)]
    assert sum(each.action == "updated" and each.rows_touched == 0 for each in told) >= 15
    if all(each.action == "updated" for each in told):
        assert all(map(np.array_equal, before, coarse.coefs_))
    took = [fine.delete([each]) for each in range(20)]
    parts = fine._accelerator._taking_part(fine._tape.record_keys(np.arange(20)), range(40))
    assert [each.action == "resumed" for each in took] == parts.any(axis=1).tolist()


def test_steps_can_be_taken_again_from_any() -> None:
    cls, X, y = case("number")
    model = cls((3,), batch_size=0.2, max_iter=10, random_state=0).fit(X, y)
    batch, keys = model._batch(np.arange(len(X)))
    steps = model._accelerator
    for first in range(steps.counts.size + 1):
        again = Trajectory(steps.plan)
        again.learn(batch, keys)
        again.learn(batch, keys, first)
        assert np.array_equal(again.weights, steps.weights)
        assert np.array_equal(again.sums, steps.sums)


def test_batches_have_the_share_of_the_records_that_was_asked_for() -> None:
    cls, X, y = case("number", 2000)
    counts = cls((2,), batch_size=0.1, max_iter=5, random_state=0).fit(X, y)._accelerator.counts
    assert counts.size == 50
    assert abs(counts.mean() - 200) < 4 * np.sqrt(2000 * 0.1 * 0.9 / 50)
    assert counts.std() == pytest.approx(np.sqrt(2000 * 0.1 * 0.9), rel=0.4)


def test_moves_are_right_on_average() -> None:
    """The mean of networks after one step, over seeds of the offsets, has no lattice."""
    cls, X, y = case("number", 50)
    rows = []
    for seed in range(400):
        model = cls((), batch_size=1, max_iter=1, lattice_step=2.0, random_state=seed).fit(X, y)
        plan = model._accelerator.plan
        wrong = X @ plan.start[:3] + plan.start[3] - y
        slope = [*(X.T @ wrong / 50 + 1e-4 * plan.start[:3]), wrong.mean()]
        rows.append((plan.start - model._weights) / 0.2 - slope)
    mean, error = np.mean(rows, axis=0), np.std(rows, axis=0) / np.sqrt(len(rows))
    assert (np.abs(mean) < 4 * error).all()
    assert (np.std(rows, axis=0) > 0.1).all()  # a lattice there is


def test_it_learns_as_well_as_scikit_learns_does() -> None:
    X, y = load_iris(return_X_y=True)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    ours = MLPClassifier(max_iter=100, random_state=0).fit(X[::2], y[::2])
    theirs = sklearn.neural_network.MLPClassifier((32,), max_iter=1000, random_state=0)
    assert ours.score(X[1::2], y[1::2]) >= theirs.fit(X[::2], y[::2]).score(X[1::2], y[1::2]) - 0.03


def test_behind_a_scaler_that_stays_it_stays() -> None:
    cls, X, y = case("two", 2000)
    network = cls((3,), lattice_step=4.0, max_iter=1, learning_rate_init=0.1, random_state=0)
    model = make_pipeline(StandardScaler(quantize=True, random_state=0), network).fit(X, y)
    keep = np.arange(5, 2000)
    actions = [model.delete([each]).counts for each in range(5)]
    fresh = make_pipeline(
        StandardScaler(quantize=True, random_state=0), cls(**network.get_params())
    ).fit(X[keep], y[keep], ids=keep)
    assert_same(model, fresh, "a refit")
    assert any(counts for counts in actions)


def test_a_class_that_goes_or_comes_changes_the_outputs() -> None:
    X = np.random.default_rng(0).normal(size=(30, 2))
    y = np.array([0] * 15 + [1] * 14 + [2])
    model = MLPClassifier((3,), max_iter=2, random_state=0).fit(X, y)
    assert model.n_outputs_ == 3
    assert model.delete([29]).action == "refit"
    assert (model.n_outputs_, model.out_activation_) == (1, "logistic")
    assert model.add(X[29:], y[29:], ids=[29]).action == "refit"
    assert_same(model, MLPClassifier((3,), max_iter=2, random_state=0).fit(X, y), "a refit")
    with pytest.raises(TooFewRecordsError, match="only one class"):
        model.delete(np.arange(15, 30))


def test_a_prediction_does_not_depend_on_other_rows() -> None:
    cls, X, y = case("three")
    model = cls((5, 5), "tanh", max_iter=2, random_state=0).fit(X, y)
    alone = np.concatenate([model.predict_proba(X[i : i + 1]) for i in range(len(X))])
    assert np.array_equal(alone, model.predict_proba(X))
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1.0, rtol=1e-14)


def test_what_cannot_be_is_refused() -> None:
    cls, X, y = case("number")
    for sizes in ((0,), (3, 2.5), (1,) * 9, "many"):
        with pytest.raises(InvalidParameterError, match="hidden_layer_sizes"):
            cls(sizes).fit(X, y)
    with pytest.raises(InvalidParameterError, match="'batch_size' parameter"):
        cls(batch_size="auto").fit(X, y)
    with pytest.raises(MagnitudeError, match="X holds numbers beyond"):
        cls().fit(X * 1e200, y)
    with pytest.raises(MagnitudeError, match="y holds numbers beyond"):
        cls().fit(X, y * 1e200)
    big = cls((3, 3, 3, 3), max_iter=2).fit(X * 2.0**470, y * 2.0**470)
    assert np.isfinite(big.predict(X)).all()
