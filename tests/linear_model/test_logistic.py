"""Logistic regression: scikit-learn's contract and numbers, errors, files."""

from __future__ import annotations

import pickle
import warnings
from pathlib import Path
from typing import Any

import mpmath as mp
import numpy as np
import pytest
import sklearn.linear_model
from scipy.sparse import csr_array
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.utils.estimator_checks import parametrize_with_checks

from erasable import Records, load
from erasable.core.errors import (
    ArtifactError,
    InvalidParameterError,
    MagnitudeError,
    TooFewRecordsError,
)
from erasable.linear_model import LogisticRegression, _logistic_work
from erasable.linear_model import _logistic_work as work_module
from erasable.utils.estimator_checks import parametrize_with_law_checks
from law_cases import check_law_of_variant
from linear_model.logistic_data import STEP, assert_agree, blobs, theirs

# --------------------------------------------------------------------------- the contracts


@parametrize_with_checks([LogisticRegression(), LogisticRegression(0.1, class_weight="balanced")])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
def test_scikit_learn_contract(estimator: Any, check: Any) -> None:
    check(estimator)


@pytest.mark.sampled(3)
@pytest.mark.thorough
@parametrize_with_law_checks([LogisticRegression(1e4)], fast=True)
def test_law(estimator: Any, check: Any) -> None:
    check_law_of_variant(estimator, check)


# --------------------------------------------------------------------------- the numbers


@pytest.mark.parametrize("n_classes", [2, 3, 5])
@pytest.mark.parametrize("C", [1e-3, 1.0, 1e3])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_scikit_learn_agrees(n_classes: int, C: float, fit_intercept: bool) -> None:
    X, y = blobs(n_classes)
    ours = LogisticRegression(C, fit_intercept=fit_intercept).fit(X, y)
    assert_agree(ours, theirs(C=C, fit_intercept=fit_intercept).fit(X, y), X)
    assert ours.coef_.shape == ((1, 4) if n_classes == 2 else (n_classes, 4))
    assert ours.intercept_.shape == (1 if n_classes == 2 else n_classes,)
    if not fit_intercept:
        assert not ours.intercept_.any()
    assert np.abs(ours.predict_proba(X).sum(axis=1) - 1).max() < 1e-12
    np.testing.assert_allclose(
        ours.predict_log_proba(X), np.log(ours.predict_proba(X)), rtol=1e-6, atol=1e-12
    )


@pytest.mark.parametrize("class_weight", [None, "balanced", {0: 3.0, 1: 0.5}])
@pytest.mark.parametrize("n_classes", [2, 4])
def test_weights_are_scikit_learns(class_weight: Any, n_classes: int) -> None:
    X, y = blobs(n_classes, seed=1)
    given = None if class_weight is None else class_weight
    if isinstance(given, dict):
        given = {**given, **dict.fromkeys(range(2, n_classes), 1.0)}
    weights = np.random.default_rng(0).integers(0, 4, len(y)) / 2.0
    for sample_weight in (None, weights):
        ours = LogisticRegression(class_weight=class_weight).fit(X, y, sample_weight)
        assert_agree(ours, theirs(class_weight=given).fit(X, y, sample_weight), X)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_sparse_and_dense_learn_the_same(n_classes: int, dtype: Any) -> None:
    rng = np.random.default_rng(0)
    X, y = blobs(n_classes, seed=2)
    X = (np.where(rng.random(X.shape) < 0.5, X, 0.0)).astype(dtype)
    dense, sparse = LogisticRegression().fit(X, y), LogisticRegression().fit(csr_array(X), y)
    np.testing.assert_array_equal(dense.coef_, sparse.coef_)
    for rows in (X, csr_array(X)):
        for model in (dense, sparse):
            np.testing.assert_allclose(
                model.decision_function(rows), dense.decision_function(X), atol=1e-12
            )


def test_predictions_survive_offsets() -> None:
    """Timestamps: the intercept at 0 has no digits left, so logits are taken at the origin."""
    rng = np.random.default_rng(0)
    hours = rng.uniform(0, 100, 300)
    y = (hours + rng.normal(size=300) > 50).astype(int)
    near = LogisticRegression().fit(hours[:, None], y)
    far = LogisticRegression().fit(1.7e12 + np.rint(hours * 1024)[:, None] / 1024, y)
    wanted = near.decision_function(np.rint(hours * 1024)[:, None] / 1024)
    found = far.decision_function(1.7e12 + np.rint(hours * 1024)[:, None] / 1024)
    assert np.abs(found - wanted).max() < 1e-2
    frame = csr_array(np.array([[1.7e12]]))
    assert far.decision_function(frame) == pytest.approx(far.decision_function([[1.7e12]]), abs=0.1)


def test_constant_and_empty_columns_have_no_coefficient() -> None:
    X, y = blobs(2)
    X = np.column_stack([X, np.full(len(y), 3.7), np.zeros(len(y))])
    model = LogisticRegression().fit(X, y)
    assert model.coef_[0, 4:].tolist() == [0.0, 0.0]
    np.testing.assert_array_equal(model.coef_[:, :4], LogisticRegression().fit(X[:, :4], y).coef_)


def test_twins_share_a_coefficient() -> None:
    X, y = blobs(2)
    model = LogisticRegression(1e4).fit(np.column_stack([X, X[:, 0]]), y)
    assert model.coef_[0, 0] == model.coef_[0, 4]


@pytest.mark.parametrize("n_classes", [2, 3])
def test_large_problems_find_what_small_ones_do(
    n_classes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From a sample, by conjugate gradients, or by both."""
    X, y = blobs(n_classes, n=1500, seed=4)
    small = LogisticRegression().fit(X, y)
    for most, sample in ((1500, 50), (0, 10**9), (0, 50)):
        monkeypatch.setattr(work_module, "MOST", most)
        monkeypatch.setattr(_logistic_work, "_SAMPLE", sample)
        large = LogisticRegression().fit(X, y)
        assert large.digest() == small.digest()
        large.delete(range(10))
        monkeypatch.undo()
        keep = np.arange(10, 1500)
        assert large.digest() == LogisticRegression().fit(X[keep], y[keep], ids=keep).digest()


def test_many_dense_columns() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 2100))
    y = (X[:, 0] + 0.5 * rng.normal(size=120) > 0).astype(int)
    model = LogisticRegression(0.01).fit(X, y)
    other = theirs(C=0.01, solver="lbfgs").fit(X, y)
    assert np.abs(model.coef_ - other.coef_).max() < 1e-6
    model.delete([5])
    keep = np.delete(np.arange(120), 5)
    assert model.digest() == LogisticRegression(0.01).fit(X[keep], y[keep], ids=keep).digest()


def test_accuracy_on_real_data(data_dir: Path) -> None:
    pd = pytest.importorskip("pandas")
    table = pd.read_csv(next((data_dir / "covertype").glob("*.csv.gz")), nrows=4000)
    X, y = table.iloc[:, :-1].to_numpy(float), table.iloc[:, -1].to_numpy()
    X = (X - X.mean(axis=0)) / np.where(X.std(axis=0) > 0, X.std(axis=0), 1.0)
    ours = LogisticRegression().fit(X[:3000], y[:3000])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        other = sklearn.linear_model.LogisticRegression(max_iter=500).fit(X[:3000], y[:3000])
    assert abs(ours.score(X[3000:], y[3000:]) - other.score(X[3000:], y[3000:])) < 0.01


# --------------------------------------------------------------------------- bad input


def test_parameters_are_checked() -> None:
    X, y = blobs(2)
    for params in (
        {"C": 0},
        {"C": np.inf},
        {"C": True},
        {"fit_intercept": 3},
        {"class_weight": "even"},
        {"class_weight": {0: -1.0}},
        {"class_weight": {0: "heavy"}},
        {"class_weight": {7: 1.0}, "classes": [0, 1]},
    ):
        with pytest.raises(InvalidParameterError):
            LogisticRegression(**params).fit(X, y)  # type: ignore[arg-type]


def test_one_class_is_too_few() -> None:
    X, y = blobs(2)
    with pytest.raises(TooFewRecordsError, match="only one class"):
        LogisticRegression().fit(X, np.zeros(len(y)))
    model = LogisticRegression().fit(X, y)
    digest = model.digest()
    with pytest.raises(TooFewRecordsError):
        model.delete(np.flatnonzero(y == 1))
    assert model.digest() == digest


def test_huge_values_are_refused() -> None:
    with pytest.raises(MagnitudeError, match="1 columns"):
        LogisticRegression().fit([[1e200], [1.0]], [0, 1])


def test_separable_data_have_an_optimum() -> None:
    X = np.array([[-2.0], [-1.0], [1.0], [2.0]])
    for C in (1e4, 1e8, 1e12):
        model = LogisticRegression(C).fit(X, [0, 0, 1, 1])
        assert model.intercept_[0] == 0.0
        true = mp.findroot(  # twice two records, and a gradient of 0
            lambda w, C=C: w / C - 2 / (1 + mp.exp(w)) - 4 / (1 + mp.exp(2 * w)), 10
        )
        assert abs(model.coef_[0, 0] - true) <= 0.5 * STEP / 2


# --------------------------------------------------------------------------- the interface


def test_nothing_works_before_fit() -> None:
    for name in ("predict", "predict_proba", "predict_log_proba", "decision_function"):
        with pytest.raises(NotFittedError):
            getattr(LogisticRegression(), name)([[1.0]])
    for name in ("coef_", "intercept_", "classes_", "n_iter_"):
        assert not hasattr(LogisticRegression(), name)


def test_attributes_are_copies() -> None:
    X, y = blobs(3)
    model = LogisticRegression().fit(X, y)
    digest = model.digest()
    for name in ("coef_", "intercept_", "classes_", "n_iter_"):
        getattr(model, name)[:] = 7
    model.delete([0])
    fresh = LogisticRegression().fit(X[1:], y[1:], ids=np.arange(1, len(y)))
    assert model.digest() == fresh.digest() != digest


def test_a_deletion_is_not_polished_before_it_is_asked_for() -> None:
    X, y = blobs(2)
    model = LogisticRegression().fit(X, y)
    deletion = model.delete([0], digest=False)
    assert deletion.action == "updated"
    assert model._shown.published is None
    assert model.n_iter_.tolist() == [1]
    assert model.classes_.tolist() == [0, 1]
    assert model._shown.published is None
    model.predict(X[:1])
    assert model._shown.published is not None


def test_loading_with_and_without_records(tmp_path: Path) -> None:
    X, y = blobs(3)
    weights = np.random.default_rng(0).random(len(y))
    model = LogisticRegression().fit(X, y, weights)
    model.delete([4])
    model.save(tmp_path / "model")
    alone = load(tmp_path / "model")
    assert alone.predict_proba(X).tobytes() == model.predict_proba(X).tobytes()
    ids = np.delete(np.arange(len(y)), 4)
    whole = load(tmp_path / "model", Records(X[ids], y[ids], sample_weight=weights[ids], ids=ids))
    assert whole.delete([7]).digest_after == model.delete([7]).digest_after
    flipped = y[ids].copy()
    flipped[0] = (flipped[0] + 1) % 3
    for records in (
        Records(X[ids], flipped, sample_weight=weights[ids], ids=ids),
        Records(X[ids], y[ids], ids=ids),
        Records(X[ids], np.zeros(len(ids)), ids=ids),
        Records(X[ids], ids=ids),
    ):
        with pytest.raises(ArtifactError, match=r"makes another|no targets"):
            load(tmp_path / "model", records)


def test_pickles_hold_no_work() -> None:
    X, y = blobs(2, n=2000)
    model = LogisticRegression().fit(X, y)
    model.delete([0], digest=False)
    twin = pickle.loads(pickle.dumps(model))
    assert twin._accelerator is None
    assert twin.delete([1]).digest_after == model.delete([1]).digest_after


def test_other_holders_values_do_not_disturb() -> None:
    """Rows that this model has deleted and another one holds may be replaced by anything."""
    X, y = blobs(2, n=80)
    records = Records(X, y)
    keeper = LogisticRegression().fit(records)
    model = LogisticRegression().fit(records)
    model.delete([3])
    records.matrix[3] = [np.nan, np.inf, 1e300, -np.inf]
    keep = np.delete(np.arange(80), 3)
    fresh = LogisticRegression().fit(X[keep], y[keep], ids=keep)
    assert model.digest() == fresh.digest()
    later = LogisticRegression().fit(records)
    assert later.digest() == fresh.digest()
    del keeper
