"""Random projections against scikit-learn's, by names of columns, and under the law."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
import sklearn.random_projection
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.utils.estimator_checks import parametrize_with_checks

from erasable.cluster import KMeans, QuantizedKMeans
from erasable.core.errors import InvalidParameterError, InvalidTypeError
from erasable.decomposition import PCA
from erasable.feature_extraction import CountVectorizer
from erasable.pipeline import make_pipeline
from erasable.preprocessing import MaxAbsScaler, StandardScaler
from erasable.random_projection import GaussianRandomProjection, SparseRandomProjection
from erasable.utils._checks.compare import assert_same

BOTH = [GaussianRandomProjection, SparseRandomProjection]


def table(n: int = 60, d: int = 40) -> Any:
    rng = np.random.default_rng(0)
    return np.where(rng.random((n, d)) < 0.3, rng.normal(size=(n, d)), 0.0)


@parametrize_with_checks([GaussianRandomProjection(3), SparseRandomProjection(3, density=0.5)])
def test_scikit_learns_checks(estimator: Any, check: Any) -> None:
    check(estimator)


@pytest.mark.parametrize("cls", BOTH)
def test_it_projects_as_scikit_learn_does_with_the_same_directions(cls: Any) -> None:
    X = table()
    ours = cls(7, random_state=0).fit(X)
    theirs = getattr(sklearn.random_projection, cls.__name__)(7, random_state=0).fit(X)
    assert ours.components_.shape == theirs.components_.shape
    theirs.components_ = ours.components_
    np.testing.assert_allclose(ours.transform(X), theirs.transform(X), rtol=1e-12, atol=1e-13)
    assert np.array_equal(ours.transform(X), ours.transform(csr_array(X)))
    assert ours.transform(X.astype(np.float32)).dtype == np.float32
    assert [*ours.get_feature_names_out()] == [*theirs.get_feature_names_out()]
    one = np.concatenate([ours.transform(X[i : i + 1]) for i in range(len(X))])
    assert np.array_equal(one, ours.transform(X))


def test_gaussian_directions_are_normal_numbers() -> None:
    drawn = GaussianRandomProjection(400, random_state=1).fit(np.zeros((1, 500))).components_
    scaled = np.sort(drawn.ravel()) * np.sqrt(400)
    assert abs(scaled.mean()) < 4 / np.sqrt(scaled.size)
    assert abs(scaled.var() - 1) < 4 * np.sqrt(2 / scaled.size)
    for below, share in ((-1.0, 0.158655), (0.0, 0.5), (2.0, 0.977250)):
        assert abs(np.mean(scaled < below) - share) < 4 * 0.5 / np.sqrt(scaled.size)
    rows = drawn @ drawn.T
    assert np.abs(rows - np.diag(np.diag(rows))).max() < 6 * np.sqrt(500) / 400


@pytest.mark.parametrize(("density", "share"), [("auto", 0.05), (0.25, 0.25), (1, 1.0)])
def test_sparse_directions_have_three_values(density: Any, share: float) -> None:
    model = SparseRandomProjection(100, density=density, random_state=1).fit(np.zeros((1, 400)))
    drawn = model.components_.toarray()
    assert model.density_ == pytest.approx(share)
    size = np.sqrt(1 / (share * 100))
    of_each = [np.mean(np.isclose(drawn, value)) for value in (-size, size)]
    assert np.isclose(np.abs(drawn), size).sum() + (drawn == 0).sum() == drawn.size
    for found in of_each:
        assert abs(found - share / 2) < 4 * 0.5 / np.sqrt(drawn.size)


@pytest.mark.parametrize("cls", [GaussianRandomProjection, lambda *a, **k: SparseRandomProjection(
    *a, density=0.3, **k)], ids=["gaussian", "sparse"])  # fmt: skip
def test_a_direction_follows_the_name_of_its_column(cls: Any) -> None:
    frame = pd.DataFrame(table(d=4), columns=["a", "b", "c", "d"])
    whole = pd.DataFrame(_dense(cls(5, random_state=3).fit(frame)), columns=frame.columns)
    for names in (["d", "b", "a"], ["c"], ["b", "a", "d", "c"]):
        some = _dense(cls(5, random_state=3).fit(frame[names]))
        assert np.array_equal(some, whole[names].to_numpy())
    other = _dense(cls(5, random_state=3).fit(frame.rename(columns={"a": "z"})))
    assert not np.array_equal(other[:, 0], whole["a"])
    assert np.array_equal(other[:, 1:], whole[["b", "c", "d"]])
    assert not np.array_equal(_dense(cls(5, random_state=4).fit(frame)), whole.to_numpy())


def _dense(model: Any) -> Any:
    found = model.components_
    return found.toarray() if hasattr(found, "toarray") else found


@pytest.mark.parametrize("cls", BOTH)
def test_a_deletion_changes_no_direction(cls: Any) -> None:
    X, keep = table(), np.arange(3, 60)
    model = cls(5, random_state=0).fit(X)
    before, answers = _dense(model), model.transform(X)
    report = model.delete([0, 1, 2])
    assert (report.action, report.rows_touched) == ("updated", 0)
    assert np.array_equal(_dense(model), before)
    assert np.array_equal(model.transform(X), answers)
    assert_same(model, cls(5, random_state=0).fit(X[keep], ids=keep), "from a refit")


@pytest.mark.parametrize("storage", [np.asarray, csr_array], ids=["dense", "sparse"])
@pytest.mark.parametrize("last", [KMeans, QuantizedKMeans])
def test_a_clustering_behind_it_deletes_as_it_does_alone(last: Any, storage: Any) -> None:
    X, keep = table(200), np.delete(np.arange(200), [5, 77])
    projection = GaussianRandomProjection(6, random_state=0)
    whole = make_pipeline(projection, last(3, random_state=0))
    model = clone(whole).fit(storage(X))
    alone = last(3, random_state=0).fit(projection.fit(X).transform(X))
    assert model.delete([5, 77]).action == alone.delete([5, 77]).action
    assert np.array_equal(model[-1].cluster_centers_, alone.cluster_centers_)
    assert_same(model, clone(whole).fit(storage(X[keep]), ids=keep), "from a refit")


@pytest.mark.parametrize("last", [StandardScaler(), KMeans(2, random_state=0)], ids=repr)
def test_it_follows_columns_that_a_deletion_takes(last: Any) -> None:
    texts = ["ash elm", "ash oak", "elm oak", "elm ash ash", "yew ash"]
    head = CountVectorizer(), SparseRandomProjection(3, density=0.5, random_state=0)
    whole = make_pipeline(*head, last)
    model = clone(whole).fit(texts)
    model.delete([4])  # which alone has "yew"
    assert_same(model, clone(whole).fit(texts[:4]), "from a refit")
    assert model[1].n_features_in_ == 3


@pytest.mark.parametrize("cls", BOTH)
def test_what_depends_on_the_number_of_records_is_refused(cls: Any) -> None:
    with pytest.raises(InvalidParameterError, match="depends on the number of records"):
        cls("auto").fit(table())
    with pytest.raises(InvalidParameterError, match="'n_components' parameter"):
        cls("some").fit(table())
    with pytest.raises(InvalidParameterError, match="has inverse_transform"):
        cls(3, compute_inverse_components=True)
    assert cls(3, eps=0.2).n_components == 3


def test_steps_behind_take_sparse_records_that_are_dense_behind_it() -> None:
    X = csr_array(table())
    for head in (SparseRandomProjection(2, random_state=0), PCA(2)):
        model = make_pipeline(head, KMeans(2, random_state=0)).fit(X)
        assert np.array_equal(model.predict(X), model[-1].predict(model[0].transform(X)))
    with pytest.raises(InvalidTypeError, match="dense data is required"):
        make_pipeline(MaxAbsScaler(), KMeans(2)).fit(X)
