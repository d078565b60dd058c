"""What a deletion costs behind each kind of transformer, and that it equals a refit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import FunctionTransformer, Normalizer

from erasable.audit import equality
from erasable.cluster import KMeans, QuantizedKMeans
from erasable.core.errors import InvalidDataError, InvalidParameterError
from erasable.decomposition import PCA
from erasable.linear_model import LogisticRegression
from erasable.pipeline import Pipeline, make_pipeline
from erasable.preprocessing import MinMaxScaler, OneHotEncoder, StandardScaler
from naming import named
from pipeline.small_steps import Occasional, Rarity, Sums


def crowd(n: int = 400, d: int = 5, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, d)) * 3.0 ** np.arange(d) + rng.integers(0, 3, size=(n, 1)) * 9.0


def counted(n: int = 300, d: int = 6) -> np.ndarray:
    """Whole numbers, mostly 0, rarer from column to column."""
    rng = np.random.default_rng(3)
    return rng.integers(1, 9, size=(n, d)) * (rng.random((n, d)) < 0.5 ** np.arange(1, d + 1))


def deleted(pipeline: Pipeline, X: np.ndarray, count: int, seed: int = 1) -> list[Any]:
    """Fit, delete records one by one, and demand a refit's model; return the deletions."""
    pipeline.fit(X)
    order = np.random.default_rng(seed).permutation(len(X))[:count].tolist()
    deletions = [pipeline.delete([record], digest=False) for record in order]
    same = equality(pipeline)
    assert same, str(same)
    return deletions


# -- affine ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "scalers",
    [
        [StandardScaler()],
        [MinMaxScaler(feature_range=(-3, 5))],
        [MinMaxScaler(), StandardScaler(with_mean=False)],
        [StandardScaler(), "passthrough", MinMaxScaler(), StandardScaler(with_std=False)],
        [StandardScaler(quantize=True, random_state=4)],
    ],
    ids=str,
)
def test_kmeans_follows_maps_without_learning_again(scalers: list[Any]) -> None:
    pipeline = make_pipeline(*scalers, KMeans(3, random_state=0))
    deletions = deleted(pipeline, crowd(2000), 60)
    assert np.mean([deletion.action == "refit" for deletion in deletions]) <= 0.1
    touched = [deletion.rows_touched for deletion in deletions if deletion.action == "updated"]
    assert np.median(touched) < 2000
    assert pipeline[-1]._held.records.matrix is pipeline._held.records.matrix


def test_a_frozen_map_would_be_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Negative control: a step that is not told of the new map differs from a refit."""
    frozen: dict[str, Any] = {}

    def first(path: Any, real: Any = StandardScaler._affine) -> Any:
        return frozen.setdefault("map", real(path[0].step))

    monkeypatch.setattr("erasable.pipeline._engine.compose", first)
    pipeline = make_pipeline(StandardScaler(), KMeans(3, random_state=0)).fit(crowd())
    pipeline.delete([7])
    frozen.clear()
    assert not equality(pipeline)


def test_a_map_of_a_map_is_one_map() -> None:
    X = crowd()
    both = make_pipeline(MinMaxScaler(), StandardScaler(), KMeans(3, random_state=2)).fit(X)
    one = make_pipeline(StandardScaler(), KMeans(3, random_state=2)).fit(X)
    for pipeline in (both, one):
        pipeline.delete(range(20))
    np.testing.assert_allclose(both[1].mean_, both[0].transform(X[20:]).mean(axis=0), rtol=1e-6)
    np.testing.assert_allclose(both[1].scale_, both[0].transform(X[20:]).std(axis=0), rtol=1e-6)
    shift, scale = both[-1]._map
    np.testing.assert_allclose(shift, one[-1]._map[0], rtol=1e-12)
    np.testing.assert_allclose(scale, one[-1]._map[1], rtol=1e-12)
    assert np.array_equal(both[-1].labels_, one[-1].labels_)
    np.testing.assert_allclose(both[-1].cluster_centers_, one[-1].cluster_centers_, atol=1e-9)


def test_a_clipped_range_is_no_map() -> None:
    """New data beyond the range are clipped before the clusters see them."""
    X = crowd()
    pipeline = make_pipeline(MinMaxScaler(clip=True), KMeans(3, random_state=0)).fit(X)
    assert pipeline[-1]._map is None
    far = np.vstack([X.max(axis=0) * 1e6, X.max(axis=0)])
    assert np.ptp(pipeline.transform(far), axis=0).max() == 0.0
    assert np.ptp(make_pipeline(MinMaxScaler(), KMeans(3)).fit(X).transform(far)) > 1e3


@pytest.mark.filterwarnings("ignore::erasable.core.grid.PrecisionWarning")
def test_columns_of_a_spread_below_all_measure() -> None:
    X = crowd(60, 3)
    X[:, 1] *= 1e-155
    X[:, 2] *= 1e-200
    deleted(make_pipeline(MinMaxScaler(), KMeans(3, random_state=0)), X, 20)
    deleted(make_pipeline(StandardScaler(), KMeans(3, random_state=0)), X, 20)


def test_the_model_is_that_of_scaled_data() -> None:
    """Against scikit-learn's Lloyd on the materialised table, from the same seeds."""
    import sklearn.cluster
    import sklearn.preprocessing

    X = load_breast_cancer().data
    for seed in range(5):
        pipeline = make_pipeline(StandardScaler(), KMeans(4, random_state=seed)).fit(X)
        pipeline.delete(range(0, 300, 7))
        left = np.delete(X, range(0, 300, 7), axis=0)
        scaled = sklearn.preprocessing.StandardScaler().fit_transform(left)
        kmeans = pipeline[-1]
        other = sklearn.cluster.KMeans(
            4, init=kmeans.init_centers_, n_init=1, max_iter=10, tol=0
        ).fit(scaled)
        assert kmeans.inertia_ == pytest.approx(other.inertia_, rel=1e-6)
        np.testing.assert_allclose(kmeans.cluster_centers_, other.cluster_centers_, atol=1e-6)
        assert np.array_equal(pipeline.predict(left), kmeans.labels_)
        assert np.array_equal(kmeans.predict(scaled), other.predict(scaled))
        np.testing.assert_allclose(pipeline.transform(left), other.transform(scaled), atol=1e-5)
        assert pipeline.score(left) == -kmeans.inertia_


def test_a_step_that_takes_no_map_learns_again_every_time() -> None:
    pipeline = make_pipeline(StandardScaler(), QuantizedKMeans(3, random_state=0))
    deletions = deleted(pipeline, crowd(), 10)
    assert {deletion.action for deletion in deletions} == {"refit"}
    assert all(deletion.counts["quantizedkmeans.refits"] == 1 for deletion in deletions)


# -- rarely changing -------------------------------------------------------------------------------


def test_a_lattice_lets_most_deletions_pass() -> None:
    scaler = StandardScaler(quantize=True, random_state=0)
    pipeline = make_pipeline(scaler, QuantizedKMeans(3, random_state=0))
    deletions = deleted(pipeline, crowd(2000), 100)
    changed = [deletion.counts["standardscaler.columns_changed"] > 0 for deletion in deletions]
    again = ["quantizedkmeans.refits" in deletion.counts for deletion in deletions]
    assert changed == again
    assert sum(again) < 10


def test_an_extreme_that_goes_makes_the_next_step_learn_again() -> None:
    X = crowd()
    pipeline = make_pipeline(MinMaxScaler(clip=True), KMeans(3, random_state=0)).fit(X)
    top = int(X[:, 2].argmax())
    calm = int(np.abs(X - X.mean(axis=0)).max(axis=1).argmin())
    deletion = pipeline.delete([calm])
    assert deletion.counts["minmaxscaler.columns_changed"] == 0
    assert "kmeans.refits" not in deletion.counts
    deletion = pipeline.delete([top])
    assert deletion.counts["minmaxscaler.columns_changed"] >= 1
    assert deletion.counts["kmeans.refits"] == 1
    assert deletion.action == "refit"
    assert equality(pipeline)


def test_the_next_step_keeps_its_seed() -> None:
    X = crowd()
    pipeline = make_pipeline(MinMaxScaler(clip=True), KMeans(3)).fit(X)
    seed = pipeline[-1].seed_
    pipeline.delete([int(X[:, 0].argmax())])
    assert pipeline[-1].seed_ == seed
    assert equality(pipeline)
    assert pipeline.fit(X)[-1].seed_ != seed


def test_a_table_may_change_its_width() -> None:
    X = np.tile(np.arange(40.0)[:, None], (1, 3))
    X[:, 1] = 5.0
    X[11, 1] = 6.0
    pipeline = make_pipeline(Occasional(), MinMaxScaler(), KMeans(2, random_state=0)).fit(X)
    assert pipeline[-1].n_features_in_ == 3
    assert "kmeans.refits" not in pipeline.delete([3]).counts
    pipeline.delete([11])
    assert pipeline[-1].n_features_in_ == 2
    assert equality(pipeline)
    assert pipeline.predict(X).shape == (40,)


# -- stateless -------------------------------------------------------------------------------------


def test_a_function_lets_deletions_pass() -> None:
    pipeline = make_pipeline(FunctionTransformer(np.abs), KMeans(3, random_state=0))
    deletions = deleted(pipeline, crowd(), 40)
    assert not any("kmeans.refits" in deletion.counts for deletion in deletions)
    pipeline = make_pipeline(FunctionTransformer(np.abs), StandardScaler(), KMeans(3))
    deletions = deleted(pipeline, crowd(), 40)
    assert not any("kmeans.refits" in deletion.counts for deletion in deletions)


def test_a_function_after_a_scaler_passes_the_scalers_changes_on() -> None:
    steps = [StandardScaler(), FunctionTransformer(np.abs), KMeans(2, random_state=0)]
    assert {d.action for d in deleted(make_pipeline(*steps), crowd(), 5)} == {"refit"}
    steps[0] = StandardScaler(quantize=True, random_state=1)
    assert "updated" in {d.action for d in deleted(make_pipeline(*steps), crowd(), 10)}


# -- row-wise --------------------------------------------------------------------------------------


def test_a_step_that_can_follows_the_rows_that_changed() -> None:
    pipeline = make_pipeline(Rarity(), Sums())
    deletions = deleted(pipeline, counted(), 120)
    assert {deletion.action for deletion in deletions} == {"updated"}
    followed = [deletion.counts.get("sums.rows_followed", 0) for deletion in deletions]
    assert followed == [deletion.counts["rarity.rows_changed"] for deletion in deletions]
    assert 0 < np.count_nonzero(followed) < 60


def test_a_step_that_cannot_learns_again_from_the_rows_that_changed() -> None:
    pipeline = make_pipeline(Rarity(), KMeans(3, random_state=0))
    deletions = deleted(pipeline, counted(), 120)
    changed = [deletion.counts["rarity.rows_changed"] > 0 for deletion in deletions]
    assert [deletion.counts.get("kmeans.refits", 0) == 1 for deletion in deletions] == changed
    assert 0 < sum(changed) < 60


def test_rows_change_through_functions_and_under_maps() -> None:
    steps = [Rarity(), FunctionTransformer(np.abs), Sums(), MinMaxScaler(), KMeans(2)]
    deleted(make_pipeline(*steps), counted(), 60)
    deleted(make_pipeline(Rarity(), StandardScaler(), KMeans(2)), counted(), 60)
    deleted(make_pipeline(Rarity(), MinMaxScaler(), "passthrough"), counted(), 60)


# -- pipelines in pipelines ------------------------------------------------------------------------


def test_a_pipeline_is_a_step() -> None:
    inner = make_pipeline(FunctionTransformer(np.abs), StandardScaler(quantize=True))
    deletions = deleted(make_pipeline(inner, KMeans(3)), crowd(), 30)
    # The inner pipeline ends in a map, which k-means follows, whatever the phases of the lattice.
    assert not any("kmeans.refits" in deletion.counts for deletion in deletions)
    deletions = deleted(make_pipeline(make_pipeline(Rarity(), Sums()), Sums()), counted(), 60)
    assert {"updated", "refit"} >= {deletion.action for deletion in deletions}


NO_COLUMNS = r"0 feature\(s\) \(shape=\(3, 0\)\) while a minimum of 1 is required by "


@pytest.mark.parametrize(
    "last", [StandardScaler(), KMeans(1), PCA(), LogisticRegression()], ids=named
)
def test_a_step_is_not_given_a_table_without_columns(last: Any) -> None:
    encoder = OneHotEncoder(drop="first", sparse_output=False)
    with pytest.raises(InvalidDataError, match=NO_COLUMNS + type(last).__name__):
        make_pipeline(encoder, last).fit([["a"], ["a"], ["a"]], [0, 1, 1])


@pytest.mark.parametrize(
    "last", [StandardScaler(), KMeans(1, random_state=0), PCA(), LogisticRegression()], ids=named
)
def test_a_deletion_that_leaves_no_column_is_refused_and_changes_nothing(last: Any) -> None:
    encoder = OneHotEncoder(drop="first", sparse_output=False)
    X, y = [["a"], ["a"], ["b"], ["a"]], [0, 1, 1, 0]
    model = make_pipeline(encoder, last).fit(X, y)
    before = model.digest()
    with pytest.raises(InvalidDataError, match=r"0 feature\(s\)"):
        model.delete([2])
    assert model.digest() == before
    model.delete([1])
    rest = [0, 2, 3]
    fresh = clone(model).fit([X[i] for i in rest], [y[i] for i in rest], ids=rest)
    assert model.digest() == fresh.digest()


def test_parameters_of_stateless_steps_are_refused_with_advice() -> None:
    steps = make_pipeline(Normalizer(norm="l7"), StandardScaler())
    with pytest.raises(InvalidParameterError, match=r"'norm' parameter .* Got 'l7' .*another norm"):
        steps.fit(np.eye(3))
