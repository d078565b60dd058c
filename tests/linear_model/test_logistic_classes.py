"""Classes that disappear, are fixed, or are taught by nothing; labels of all kinds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from erasable import load
from erasable.core.errors import TooFewRecordsError
from erasable.linear_model import LogisticRegression
from linear_model.logistic_data import assert_agree, blobs, theirs


def test_a_class_goes_with_its_last_record() -> None:
    X, y = blobs(3)
    names = np.array(["low", "mid", "top"], dtype=object)[y]
    model = LogisticRegression().fit(X, names)
    model.delete(np.flatnonzero(y == 1))
    assert model.classes_.tolist() == ["low", "top"]
    assert model.coef_.shape == (1, 4)
    left = np.flatnonzero(y != 1)
    assert model.digest() == LogisticRegression().fit(X[left], names[left], ids=left).digest()
    assert_agree(model, theirs().fit(X[left], names[left]), X)
    with pytest.raises(TooFewRecordsError, match="1 class with a weight"):
        model.delete(np.flatnonzero(y == 0))
    assert model.classes_.tolist() == ["low", "top"]


def test_a_fixed_class_without_records_is_impossible() -> None:
    X, y = blobs(3)
    model = LogisticRegression(classes=[0, 1, 2]).fit(X, y)
    free = LogisticRegression().fit(X, y)
    np.testing.assert_array_equal(model.coef_, free.coef_)
    model.delete(np.flatnonzero(y == 1))
    assert model.classes_.tolist() == [0, 1, 2]
    assert model.coef_.shape == (3, 4)
    assert not model.coef_[1].any()
    assert model.intercept_[1] == -np.inf
    chances = model.predict_proba(X)
    assert not chances[:, 1].any()
    assert np.abs(chances.sum(axis=1) - 1).max() < 1e-12
    assert (model.predict_log_proba(X)[:, 1] == -np.inf).all()
    assert set(model.predict(X)) == {0, 2}
    left = np.flatnonzero(y != 1)
    fresh = LogisticRegression(classes=[0, 1, 2]).fit(X[left], y[left], ids=left)
    assert model.digest() == fresh.digest()
    # To which it tends: two classes, each with coefficients and half the penalty.
    np.testing.assert_allclose(
        model.coef_[2] - model.coef_[0], theirs(C=2.0).fit(X[left], y[left]).coef_[0], atol=1e-6
    )
    with pytest.raises(TooFewRecordsError):
        LogisticRegression(classes=[0, 1]).fit(X[y == 0], y[y == 0])


@pytest.mark.filterwarnings("ignore::erasable.core.grid.PrecisionWarning")
def test_records_without_weight_teach_nothing() -> None:
    X, y = blobs(3, n=60)
    X = X.copy()
    X[:5] *= 1e6
    weights = np.ones(60)
    weights[:5] = 0.0
    model = LogisticRegression().fit(X, y, weights)
    keep = np.arange(5, 60)
    plain = LogisticRegression().fit(X[keep], y[keep], ids=keep)
    np.testing.assert_array_equal(model.coef_, plain.coef_)
    before = model.coef_
    model.delete(range(5))
    np.testing.assert_array_equal(model.coef_, before)
    # A class of which no record has a weight is known, and impossible.
    model = LogisticRegression().fit(X, y, np.where(y == 2, 0.0, 1.0))
    assert model.classes_.tolist() == [0, 1, 2]
    assert not model.predict_proba(X)[:, 2].any()
    two = y != 2
    model = LogisticRegression().fit(X[two], y[two], np.where(y == 2, 0.0, 1.0)[two])
    with pytest.raises(TooFewRecordsError, match="would leave 1 class with a weight"):
        model.delete(np.flatnonzero(y[two] == 1))


def test_class_weights_of_zero_are_weights_of_zero() -> None:
    X, y = blobs(3)
    model = LogisticRegression(class_weight={1: 0}).fit(X, y)
    fixed = LogisticRegression(classes=[0, 1, 2]).fit(X[y != 1], y[y != 1])
    np.testing.assert_array_equal(model.coef_, fixed.coef_)
    with pytest.raises(TooFewRecordsError, match="all weights are zero"):
        LogisticRegression(class_weight={0: 0, 1: 0, 2: 0}).fit(X, y)


@pytest.mark.parametrize("labels", [[False, True], [-1.0, 2.0], ["z", "ä"], [2**63, 2**63 + 1]])
def test_labels_of_all_kinds(labels: list[Any], tmp_path: Path) -> None:
    X, y = blobs(2)
    named = np.array(labels, dtype=object if isinstance(labels[0], str) else None)[y]
    model = LogisticRegression(class_weight={labels[0]: 2.0}).fit(X, named)
    model.delete([3])
    assert model.classes_.tolist() == labels
    model.save(tmp_path / "model")
    again = load(tmp_path / "model")
    assert again.digest() == model.digest()
    assert again.predict(X).tolist() == model.predict(X).tolist()
    assert set(model.predict(X).tolist()) == set(labels)
