"""What neighbours answer: by enumeration where there are ties, by scikit-learn elsewhere."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import sklearn.neighbors as theirs
from sklearn.exceptions import DataConversionWarning
from sklearn.utils.estimator_checks import parametrize_with_checks

from erasable import Records
from erasable.core.errors import InvalidInputError, InvalidParameterError, MagnitudeError
from erasable.neighbors import KNeighborsClassifier, KNeighborsRegressor
from neighbors.oracle import exact_neighbors

WAYS = [
    {"weights": weights, "metric": metric}
    for weights in ("uniform", "distance")
    for metric in ("euclidean", "manhattan", "chebyshev")
]
named_ways = pytest.mark.parametrize("way", WAYS, ids=lambda way: "-".join(way.values()))


def _records(n: int = 240, d: int = 4) -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(n + d)
    return rng.normal(size=(n, d)), rng.normal(size=(n, 2)), rng.normal(size=(50, d)) * 1.5


@parametrize_with_checks(
    [KNeighborsClassifier(), KNeighborsRegressor(weights="distance", algorithm="brute")]
)
def test_scikit_learn_checks(estimator: Any, check: Any) -> None:
    check(estimator)


@named_ways
@pytest.mark.parametrize("algorithm", ["kd_tree", "brute"])
def test_regression_is_scikit_learns(algorithm: str, way: Any) -> None:
    X, y, Q = _records()
    ours = KNeighborsRegressor(7, algorithm=algorithm, leaf_size=9, **way).fit(X, y)
    twin = theirs.KNeighborsRegressor(7, algorithm="brute", **way).fit(X, y)
    np.testing.assert_allclose(ours.predict(Q), twin.predict(Q), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(ours.predict(None), twin.predict(None), rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(ours.score(Q, y[:50]), twin.score(Q, y[:50]), rtol=1e-9)
    one = KNeighborsRegressor(7, **way).fit(X, y[:, 0])
    assert one.predict(Q).tobytes() == ours.predict(Q)[:, 0].tobytes()


@named_ways
def test_classification_is_scikit_learns(way: Any) -> None:
    X, y, Q = _records()
    labels = np.array(["low", "middle", "high"])[np.digitize(y[:, 0] + X[:, 0], [-1.0, 1.0])]
    ours = KNeighborsClassifier(7, **way).fit(X, labels)
    twin = theirs.KNeighborsClassifier(7, algorithm="brute", **way).fit(X, labels)
    assert ours.classes_.tolist() == twin.classes_.tolist()
    np.testing.assert_allclose(ours.predict_proba(Q), twin.predict_proba(Q), rtol=1e-9, atol=1e-12)
    assert ours.predict(Q).tolist() == twin.predict(Q).tolist()
    assert ours.predict(None).tolist() == twin.predict(None).tolist()
    assert ours.score(Q, labels[:50]) == twin.score(Q, labels[:50])


def test_several_targets_are_classified_as_by_scikit_learn() -> None:
    X, y, Q = _records()
    labels = np.column_stack([np.digitize(y[:, 0], [-1.0, 0.5]), y[:, 1] > 0.5]).astype(int)
    ours = KNeighborsClassifier(3).fit(X, labels)
    twin = theirs.KNeighborsClassifier(3).fit(X, labels)
    assert ours.predict(Q).tolist() == twin.predict(Q).tolist()
    for mine, other in zip(ours.predict_proba(Q), twin.predict_proba(Q), strict=True):
        np.testing.assert_allclose(mine, other)
    assert [each.tolist() for each in ours.classes_] == [each.tolist() for each in twin.classes_]


def test_a_column_of_targets() -> None:
    """Of classes it is taken for a row, with a warning, and of numbers it stays a column."""
    X, y, Q = _records()
    labels = (y[:, :1] > 0).astype(int)
    with pytest.warns(DataConversionWarning, match="column-vector"):
        model = KNeighborsClassifier(3).fit(X, labels)
    assert model.digest() == KNeighborsClassifier(3).fit(X, labels[:, 0]).digest()
    assert model.digest() == KNeighborsClassifier(3).fit(Records(X, labels)).digest()
    assert model.predict(Q).shape == (50,)
    assert KNeighborsRegressor(3).fit(X, y[:, :1]).predict(Q).shape == (50, 1)


@pytest.mark.parametrize("p", [1, 2, np.inf])
def test_graphs_and_places_are_scikit_learns(p: float) -> None:
    X, y, Q = _records(120, 17)
    ours = KNeighborsRegressor(4, p=p).fit(X, y[:, 0], ids=[f"r{i}" for i in range(120)])
    twin = theirs.KNeighborsRegressor(4, p=p, algorithm="brute").fit(X, y[:, 0])
    for rows in (Q, None):
        (mine, places), (other, positions) = ours.kneighbors(rows), twin.kneighbors(rows)
        np.testing.assert_allclose(mine, other, rtol=1e-7)
        assert places.tolist() == positions.tolist()
        assert ours.kneighbors(rows, 2, return_distance=False).tolist() == positions[:, :2].tolist()
        for mode in ("connectivity", "distance"):
            graph = ours.kneighbors_graph(rows, 3, mode).toarray()
            np.testing.assert_allclose(
                graph, twin.kneighbors_graph(rows, 3, mode).toarray(), rtol=1e-7
            )
    assert ours.ids_[ours.kneighbors(X[[7]], 1)[1]].tolist() == [["r7"]]


def test_places_are_those_in_ids_after_deletions() -> None:
    X, y, Q = _records()
    model = KNeighborsRegressor(3).fit(X, y[:, 0], ids=np.arange(240) + 1000)
    model.delete(np.arange(1000, 1200, 3))
    ids = model.ids_
    distances, places = model.kneighbors(Q)
    gaps = Q[:, None, :] - X[ids[places] - 1000]
    np.testing.assert_allclose(distances, np.sqrt((gaps**2).sum(axis=2)))
    assert model.kneighbors_graph(Q).shape == (50, ids.size)


# -- ties ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("metric", ["euclidean", "manhattan", "chebyshev"])
@pytest.mark.parametrize("kind", ["integers", "strings"])
def test_ties_go_by_the_hash_of_the_id(kind: str, metric: str) -> None:
    rng = np.random.default_rng(5)
    X = rng.integers(-2, 3, size=(60, 3)).astype(np.float64)
    y = rng.integers(0, 3, size=60)
    ids = rng.permutation(1000)[:60]
    ids = ids if kind == "integers" else np.array([f"record {i}" for i in ids], dtype=object)
    Q = rng.integers(-2, 3, size=(8, 3)).astype(np.float64)
    model = KNeighborsClassifier(5, metric=metric, leaf_size=4).fit(X, y, ids=ids)
    left = list(range(60))
    for gone in ([], list(range(20)), list(range(15))):
        rows = [left[i] for i in gone]
        model.delete(ids[rows])
        left = [row for row in left if row not in rows]
        found = model.ids_[model.kneighbors(Q)[1]].tolist()
        shares = model.predict_proba(Q)
        for q, query in enumerate(Q):
            near = [left[i] for i in exact_neighbors(X[left], ids[left], query, 5, metric)]
            assert found[q] == ids[near].tolist()
            votes = [sum(y[row] == label for row in near) for label in model.classes_]
            assert shares[q].tolist() == [float(Fraction(count, 5)) for count in votes]
            assert model.predict(Q)[q] == model.classes_[votes.index(max(votes))]


def test_a_record_is_not_its_own_neighbour_among_copies() -> None:
    X = np.zeros((6, 2))
    model = KNeighborsRegressor(2).fit(X, np.arange(6.0))
    _, places = model.kneighbors(n_neighbors=3)
    first = exact_neighbors(X, np.arange(6), X[0], 6)
    for own, found in enumerate(places.tolist()):
        assert found == [row for row in first if row != own][:3]


def test_records_at_no_distance_outvote_all_others() -> None:
    X = [[0.0], [0.0], [1e-150], [1.0]]
    model = KNeighborsRegressor(4, weights="distance").fit(X, [1.0, 3.0, 9.0, 9.0])
    assert model.predict([[0.0]]).tolist() == [2.0]
    # From here they are twice as far as the third, and the last does not count: (9 + 2) / 2.
    assert model.predict([[2e-150]]) == pytest.approx([5.5])


# -- bad input -------------------------------------------------------------------------------------


def test_a_power_without_exact_formula_is_refused() -> None:
    for p in (3, 1.5):
        with pytest.raises(InvalidParameterError, match=rf"p={p}; expected 1, 2 or inf"):
            KNeighborsRegressor(p=p).fit([[0.0]] * 5, [0.0] * 5)
    KNeighborsRegressor(p=3, metric="manhattan").fit([[0.0]] * 5, [0.0] * 5)


@pytest.mark.parametrize("k", [0, -1, 1.5, True, "2"])
def test_a_number_of_neighbours_that_is_none(k: Any) -> None:
    model = KNeighborsRegressor(1).fit([[0.0], [1.0]], [0.0, 1.0])
    with pytest.raises(InvalidInputError, match="expected an integer of 1 or more"):
        model.kneighbors([[0.0]], k)
    with pytest.raises(InvalidInputError, match="mode='cosine'; expected 'connectivity'"):
        model.kneighbors_graph([[0.0]], mode="cosine")


def test_more_neighbours_than_records() -> None:
    model = KNeighborsRegressor(1).fit([[0.0], [1.0]], [0.0, 1.0])
    with pytest.raises(InvalidInputError, match="Expected n_neighbors <= n_samples_fit"):
        model.kneighbors([[0.0]], 3)
    with pytest.raises(InvalidInputError, match="1 records beside each"):
        model.kneighbors(None, 2)


def test_values_so_large_that_distances_overflow() -> None:
    good = [[1.0, 0.0], [2.0, 1.0]]
    with pytest.raises(MagnitudeError, match=r"X holds numbers beyond 2\*\*500 in 1 columns"):
        KNeighborsRegressor(1).fit([[1.0, -1e200], [2.0, 1.0]], [0.0, 1.0])
    with pytest.raises(MagnitudeError, match=r"y holds numbers beyond 2\*\*500"):
        KNeighborsRegressor(1).fit(good, [0.0, -1e200])
    model = KNeighborsRegressor(1).fit(good, [0.0, 1.0])
    with pytest.raises(MagnitudeError, match="1 rows of X are so far from the records"):
        model.predict([[1e300, 0.0], [0.0, 0.0]])
