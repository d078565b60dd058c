"""Principal components against scikit-learn's and NumPy's, and under the law."""

from __future__ import annotations

from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
import sklearn.decomposition
from hypothesis import given, settings
from scipy.sparse import random_array
from sklearn.base import clone
from sklearn.utils.estimator_checks import parametrize_with_checks

from effort import examples
from erasable.core._eigen_kernels import eigh, project
from erasable.core.errors import InvalidInputError, TooFewRecordsError
from erasable.decomposition import PCA
from erasable.pipeline import make_pipeline
from erasable.preprocessing import StandardScaler
from erasable.utils._checks.compare import assert_same


def spread(n: int, d: int, seed: int = 0) -> Any:
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, d)) @ np.diag(1.5 ** -np.arange(d)) @ rng.normal(size=(d, d)) + 3.0


@parametrize_with_checks([PCA(), PCA(0.9, whiten=True)])
def test_scikit_learns_checks(estimator: Any, check: Any) -> None:
    check(estimator)


@pytest.mark.parametrize("n_components", [None, 1, 4, 0.5, 0.999])
@pytest.mark.parametrize("whiten", [False, True])
@pytest.mark.parametrize("n", [300, 6])
def test_it_finds_what_scikit_learn_finds(n_components: Any, whiten: bool, n: int) -> None:
    X = spread(n, 8)
    ours = PCA(n_components, whiten=whiten).fit(X)
    theirs = sklearn.decomposition.PCA(n_components, whiten=whiten, svd_solver="full").fit(X)
    assert ours.n_components_ == theirs.n_components_
    for name in ("mean_", "explained_variance_", "explained_variance_ratio_", "singular_values_"):
        np.testing.assert_allclose(getattr(ours, name), getattr(theirs, name), rtol=1e-6, atol=1e-6)
    kept = theirs.explained_variance_ > 1e-9
    signs = np.sign(np.sum(ours.components_ * theirs.components_, axis=1))
    np.testing.assert_allclose(
        (ours.components_ * signs[:, None])[kept], theirs.components_[kept], atol=1e-5
    )
    np.testing.assert_allclose(
        (ours.transform(X) * signs)[:, kept], theirs.transform(X)[:, kept], atol=1e-4
    )
    assert ours.noise_variance_ == pytest.approx(theirs.noise_variance_, abs=1e-6)
    if not whiten:
        np.testing.assert_allclose(ours.get_covariance(), theirs.get_covariance(), atol=1e-6)
        back = ours.inverse_transform(ours.transform(X))
        np.testing.assert_allclose(back, theirs.inverse_transform(theirs.transform(X)), atol=1e-5)
    largest = np.argmax(np.abs(ours.components_), axis=1)
    assert (ours.components_[np.arange(len(largest)), largest] > 0).all()


@given(seed=st.integers(0, 2**32 - 1), n=st.integers(1, 12), kind=st.integers(0, 4))
@settings(max_examples=examples(60))
def test_eigenvectors_of_any_symmetric_matrix(seed: int, n: int, kind: int) -> None:
    rng = np.random.default_rng(seed)
    matrix = rng.normal(size=(n, n))
    matrix = [
        matrix + matrix.T,
        matrix[:, :1] @ matrix[:, :1].T,
        np.diag(rng.integers(-2, 3, size=n).astype(float)),
        np.ldexp(matrix @ matrix.T, rng.integers(-300, 300)),
        np.kron(np.eye(n), np.ones((1, 1))) + 1.0,
    ][kind]
    values, vectors = np.zeros(n), np.zeros((n, n))
    assert eigh(matrix.copy(), values, vectors)
    size = np.abs(matrix).max() or 1.0
    np.testing.assert_allclose(vectors @ vectors.T, np.eye(n), atol=1e-13)
    np.testing.assert_allclose(
        (vectors.T * (values / size)) @ vectors, matrix / size, atol=1e-13 * n
    )
    np.testing.assert_allclose(
        np.sort(values / size), np.linalg.eigvalsh(matrix / size), atol=1e-13 * n
    )


def test_a_row_is_projected_alike_whoever_stands_beside_it() -> None:
    X = spread(50, 7)
    pca = PCA(3).fit(X)
    whole = pca.transform(X)
    assert all(np.array_equal(pca.transform(X[i : i + 1])[0], whole[i]) for i in range(50))
    out = np.zeros((50, 3))
    project(X, pca.mean_, np.ascontiguousarray(pca.components_.T), out)
    np.testing.assert_allclose(out, (X - pca.mean_) @ pca.components_.T, atol=1e-12)


def test_sparse_records_are_those_of_a_table_on_a_grid_without_origin() -> None:
    X = random_array((60, 9), density=0.3, rng=np.random.default_rng(3)).tocsr()
    ours = PCA(4).fit(X)
    np.testing.assert_allclose(
        ours.explained_variance_, PCA(4).fit(X.toarray()).explained_variance_, rtol=1e-6
    )
    np.testing.assert_allclose(ours.transform(X), ours.transform(X.toarray()), atol=1e-12)
    ours.delete([3, 5, 7])
    rest = np.setdiff1d(np.arange(60), [3, 5, 7])
    assert_same(ours, PCA(4).fit(X[rest], ids=rest), "from a refit on sparse records")


def test_behind_a_scaler_nothing_is_scaled() -> None:
    X = spread(80, 5) * np.array([1.0, 100.0, 1e-3, 5.0, 1e6])
    both = make_pipeline(StandardScaler(), PCA(2)).fit(X)
    assert both._layout.learners[1].maps
    theirs = sklearn.decomposition.PCA(2).fit((X - X.mean(0)) / X.std(0))
    np.testing.assert_allclose(both[1].explained_variance_, theirs.explained_variance_, rtol=1e-5)
    np.testing.assert_allclose(
        np.abs(both.transform(X)), np.abs(theirs.transform((X - X.mean(0)) / X.std(0))), atol=1e-4
    )
    both.delete([4, 9])
    rest = np.setdiff1d(np.arange(80), [4, 9])
    assert_same(both, clone(both).fit(X[rest], ids=rest), "behind a scaler")


def test_it_keeps_no_more_than_there_are() -> None:
    with pytest.raises(InvalidInputError, match="n_components=4 for 3 features"):
        PCA(4).fit(np.eye(3))
    pca = PCA(3).fit(np.eye(4)[:, :3])
    with pytest.raises(TooFewRecordsError, match="at least 3"):
        pca.delete([0, 1])
    with pytest.raises(TooFewRecordsError):
        PCA().fit([[1.0, 2.0]])
    for wrong in (0, 1.5, True, "all"):
        with pytest.raises(ValueError, match="n_components"):
            PCA(wrong).fit(np.eye(3))


def test_columns_that_do_not_vary() -> None:
    X = np.column_stack([np.full(9, 7.0), np.arange(9.0), np.zeros(9)])
    pca = PCA().fit(X)
    assert pca.explained_variance_.tolist() == [pytest.approx(7.5), 0.0, 0.0]
    assert np.array_equal(pca.components_[0], [0.0, 1.0, 0.0])
    still = PCA(0.5, whiten=True).fit(np.ones((5, 2)))
    assert np.array_equal(still.transform(np.ones((2, 2))), np.zeros((2, still.n_components_)))
