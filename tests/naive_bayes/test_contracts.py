"""Naive Bayes keeps scikit-learn's contract and the law, whatever the parameters and the data."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import coo_array, csc_array
from sklearn.base import clone
from sklearn.utils.estimator_checks import parametrize_with_checks

from effort import examples
from erasable import Records, load
from erasable.core.class_moments import ClassMoments
from erasable.core.errors import ArtifactError, InvalidDataError
from erasable.naive_bayes import BernoulliNB, CategoricalNB, GaussianNB, MultinomialNB
from erasable.naive_bayes._categorical import CategoryCounts
from erasable.naive_bayes._multinomial import ClassSums
from erasable.utils._checks.data_sets import MARKED
from erasable.utils.estimator_checks import LAW_CHECKS, DataSet, parametrize_with_law_checks
from law_cases import check_law_of_variant, of_variants
from law_instances import MADE
from naive_bayes.data import ALL, SPARSE, as_sparse, cases, code_sets

VARIANTS = [
    *ALL,
    GaussianNB(var_smoothing=0.0, classes=[0, 1, 2, 7]),
    MultinomialNB(alpha=0.0, fit_prior=False),
    BernoulliNB(alpha=0.0, binarize=1.5),
    CategoricalNB(alpha=0.0, min_categories=16),
]
DENSE = [
    GaussianNB(priors=[0.2, 0.3, 0.5]),
    GaussianNB(var_smoothing=0.0, classes=[0, 1, 2, 7]),
    MultinomialNB(class_prior=[1, 2, 1]),
    BernoulliNB(binarize=1.5, alpha=0.0, classes=[0, 1, 2, 7]),
]
ON_NUMBERS = {"check_magnitudes", "check_nothing_left", "check_erased_by_the_last"}
"""Checks of values that are no categories."""


def expected_failures(model: Any) -> dict[str, str]:
    found = {"check_fit_score_takes_y": "records that join others need ids"}
    if isinstance(model, CategoricalNB):
        found["check_sample_weight_equivalence_on_dense_data"] = "its values are no categories"
    return found


@parametrize_with_checks(ALL, expected_failed_checks=expected_failures)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
def test_scikit_learn_contract(estimator: Any, check: Any) -> None:
    check(estimator)


@pytest.mark.thorough
@of_variants(parametrize_with_law_checks(DENSE, fast=True))
def test_law(estimator: Any, check: Any) -> None:
    if check.func.__name__ == "check_nothing_left" and isinstance(estimator, MultinomialNB):
        # Shifted to 0, a record could not be told from others.
        check.func(estimator, [with_a_row_of_zeros(data) for data in MARKED])
    else:
        check_law_of_variant(estimator, check)


def with_a_row_of_zeros(data: DataSet) -> DataSet:
    X = np.vstack([np.abs(data.X), np.zeros(data.X.shape[1])])
    identity = np.append(data.ids, data.ids[0] // 2 if data.ids.dtype.kind == "i" else "zero")
    return DataSet(data.name, X, np.append(data.y, 1.0), identity, None, data.doomed)


@pytest.mark.parametrize("name", sorted(LAW_CHECKS.keys() - ON_NUMBERS))
@pytest.mark.parametrize("model", MADE["CategoricalNB"](CategoricalNB), ids=repr)
def test_law_of_categories(model: Any, name: str) -> None:
    LAW_CHECKS[name](model, code_sets()[::3])


@pytest.mark.filterwarnings("ignore::erasable.core.grid.PrecisionWarning")
@pytest.mark.parametrize("model", VARIANTS, ids=repr)
@given(data=st.data())
@settings(max_examples=examples(40))
def test_after_deletions_the_model_is_a_refit(model: Any, data: st.DataObject) -> None:
    """Classes and categories go on the way; sparse rows and dense ones give the same."""
    X, y = data.draw(cases(model))
    if model.classes is not None:
        y = np.abs(np.unique(y, return_inverse=True)[1]) % 3
    ids = np.arange(100, 100 + len(X))
    ours = clone(model).fit(X, y, ids=ids)
    twin = None
    if isinstance(model, MultinomialNB | BernoulliNB):
        twin = clone(model).fit(as_sparse(X), y, ids=ids)
        assert twin.digest() == ours.digest()
    alive = np.ones(len(X), dtype=bool)
    order, start = data.draw(st.permutations(range(len(X)))), 0
    while start < len(order) - 1:
        stop = data.draw(st.integers(start + 1, len(order) - 1))
        rows, start = order[start:stop], stop
        if data.draw(st.booleans()):
            ours = pickle.loads(pickle.dumps(ours))
        ours.delete(ids[rows])
        alive[rows] = False
        left = np.flatnonzero(alive)[::-1]
        refit = clone(model).fit(X[left], y[left], ids=ids[left])
        assert ours.digest() == refit.digest()
        assert ours.classes_.tolist() == refit.classes_.tolist()
        assert_same_predictions(ours, refit, X[left])
        if twin is not None:
            twin.delete(ids[rows])
            assert twin.digest() == refit.digest()
            sparse_refit = clone(model).fit(as_sparse(X[left]), y[left], ids=ids[left])
            assert_same_predictions(twin, sparse_refit, as_sparse(X))
            assert np.allclose(twin.predict_proba(as_sparse(X)), ours.predict_proba(X))


def assert_same_predictions(one: Any, two: Any, X: Any) -> None:
    for method in ("predict_joint_log_proba", "predict_log_proba", "predict_proba"):
        mine, other = getattr(one, method)(X), getattr(two, method)(X)
        assert mine.tobytes() == other.tobytes()
        assert not np.isnan(mine).any()
    np.testing.assert_allclose(mine.sum(axis=1), 1.0)
    assert one.predict(X).tolist() == one.classes_[mine.argmax(axis=1)].tolist()


@pytest.mark.parametrize("model", SPARSE, ids=repr)
def test_any_sparse_format_is_the_same_and_files_are(model: Any, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    X = rng.poisson(0.3, size=(40, 6)) * rng.random((40, 6))
    y, ids = rng.integers(0, 3, 40), np.arange(40)
    dense = clone(model).fit(X, y)
    for form in (coo_array, csc_array):
        assert clone(model).fit(form(X), y).digest() == dense.digest()
    sparse = clone(model).fit(as_sparse(X), y)
    for each in (dense, sparse):
        each.delete([3, 8])
    sparse.save(tmp_path / "sparse")
    dense.save(tmp_path / "dense")
    assert (tmp_path / "sparse").read_bytes() == (tmp_path / "dense").read_bytes()
    kept = np.delete(ids, [3, 8])
    loaded = load(tmp_path / "dense", Records(as_sparse(X[kept]), y[kept], ids=kept))
    loaded.delete([5])
    dense.delete([5])
    assert loaded.digest() == dense.digest()


@pytest.mark.parametrize("model", SPARSE, ids=repr)
def test_nothing_of_a_sparse_record_is_left(model: Any) -> None:
    rng = np.random.default_rng(0)
    X = rng.random((30, 50)) * (rng.random((30, 50)) < 0.2)
    X[7, 11] = 1234.56789
    secret = np.float64(1234.56789).tobytes()
    ours = clone(model).fit(as_sparse(X), rng.integers(0, 2, 30))
    ours.predict(as_sparse(X))
    assert secret in pickle.dumps(ours)
    ours.delete([7])
    assert secret not in pickle.dumps(ours)
    assert 1234.56789 not in ours._held.records.matrix.data
    refit = clone(model).fit(as_sparse(np.delete(X, 7, 0)), np.delete(ours._held.records.y, 7))
    mine, other = ours._counted, refit._counted
    if isinstance(mine, ClassSums):
        for name in ("top", "half", "counts", "magic", "per_quantum"):
            assert np.array_equal(getattr(mine.grid, name), getattr(other.grid, name))
    assert np.array_equal(ours._accelerator.codes[7:8], [-1])


@pytest.mark.parametrize("model", ALL, ids=repr)
def test_records_that_are_not_those_of_the_model_are_refused(model: Any, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    X, y = rng.integers(0, 4, (30, 3)).astype(np.float64), rng.integers(0, 2, 30)
    clone(model).fit(X, y).save(tmp_path / "model")
    ids = np.arange(30)
    other_y, other_X = y.copy(), X.copy()
    other_y[0], other_X[0, 0] = 1 - y[0], 1.0 - (X[0, 0] > 0)
    strange = y.copy()
    strange[0] = 5
    wrong: list[Any] = [
        (X, ids),
        Records(X, other_y, ids=ids),
        Records(other_X, y, ids=ids),
        Records(X, strange, ids=ids),
        Records(X.astype(str), y, ids=ids),
        Records(np.where(X == 3, -1.5, X), y, ids=ids),
    ]
    if isinstance(model, GaussianNB | CategoricalNB):
        wrong.append(Records(as_sparse(X), y, ids=ids))
    for records in wrong:
        told = "makes another|the records hold text|Sparse data was passed"
        with pytest.raises((ArtifactError, InvalidDataError), match=told):
            load(tmp_path / "model", records)
    right = load(tmp_path / "model", Records(X, y, ids=ids))
    right.delete([4])
    assert right.class_count_.sum() == 29


# --------------------------------------------------------------------------- negative controls


@pytest.mark.parametrize(
    ("model", "broken", "method"),
    [
        (GaussianNB(), ClassMoments, "sum_again"),
        (MultinomialNB(), ClassSums, "sum_again"),
        (CategoricalNB(), CategoryCounts, "_cut"),
    ],
    ids=repr,
)
def test_an_old_grid_after_a_deletion_is_found(
    model: Any, broken: type, method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What all records share must be brought up to date: the refit tells."""
    X = np.array([[1.0, 2.0], [2.0, 1.0], [0.0, 3.0], [1.0, 0.0], [64.0, 64.0]])
    y = [0, 1, 0, 1, 1]

    def differs() -> bool:
        ours = clone(model).fit(X, y)
        ours.delete([4])
        refit = clone(model).fit(X[:4], y[:4], ids=[0, 1, 2, 3])
        return bool(ours.digest() != refit.digest())

    assert not differs()
    monkeypatch.setattr(broken, method, lambda *_: None)
    assert differs()


def test_keeping_a_class_that_is_gone_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    ours = BernoulliNB().fit([[1.0], [0.0], [1.0]], ["a", "b", "b"])
    monkeypatch.setattr(type(ours._counted), "keep_classes", lambda *_: None)
    ours.delete([0])
    refit = BernoulliNB().fit([[0.0], [1.0]], ["b", "b"], ids=[1, 2])
    assert ours.digest() != refit.digest()
