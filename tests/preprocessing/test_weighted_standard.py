"""StandardScaler with weights: scikit-learn's numbers, exact fractions, and the law."""

from __future__ import annotations

import pickle
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.preprocessing import StandardScaler as Theirs

from effort import examples
from erasable import Records, load
from erasable.core._weighted_moments import WeightUnits
from erasable.core.errors import ArtifactError, MagnitudeError, TooFewRecordsError
from erasable.preprocessing import StandardScaler
from erasable.utils.estimator_checks import LAW_CHECKS, parametrize_with_law_checks
from law_cases import check_law_of_variant
from simulated_workers import Simulated, even, spread
from weighing import Weighing

FORMS = {"dense": np.asarray, "float32": np.float32, "sparse": csr_array}
each_form = pytest.mark.parametrize("form", FORMS)


def table(seed: int, n: int = 120, d: int = 4) -> tuple[Any, Any]:
    """Whole numbers, which are on every grid, and weights of which some are 0."""
    rng = np.random.default_rng(seed)
    X = rng.integers(-20, 20, (n, d)) * (rng.random((n, d)) < 0.7)
    return X.astype(np.float64), rng.integers(0, 6, n) / 4.0


def assert_alike(ours: Any, theirs: Any, rtol: float = 1e-9) -> None:
    if theirs.with_mean:
        np.testing.assert_allclose(ours.mean_, theirs.mean_, rtol=rtol, atol=rtol)
    np.testing.assert_allclose(ours.var_, theirs.var_, rtol=rtol)
    np.testing.assert_allclose(ours.scale_, theirs.scale_, rtol=rtol)
    np.testing.assert_allclose(ours.n_samples_seen_, theirs.n_samples_seen_, rtol=rtol)


# --------------------------------------------------------------------------- scikit-learn


@each_form
def test_scikit_learn_agrees(form: str) -> None:
    X, w = table(0)
    X, with_mean = FORMS[form](X), form != "sparse"
    ours = StandardScaler(with_mean=with_mean).fit(X, sample_weight=w)
    assert_alike(ours, Theirs(with_mean=with_mean).fit(X, sample_weight=w))
    kept = np.flatnonzero(np.arange(120) % 3)
    ours.delete(range(0, 120, 3))
    assert_alike(ours, Theirs(with_mean=with_mean).fit(X[kept], sample_weight=w[kept]))


def test_values_between_numbers_of_the_grid_are_rounded() -> None:
    rng = np.random.default_rng(1)
    X, w = rng.normal(5.0, 3.0, (200, 3)), rng.random(200)
    ours = StandardScaler().fit(X, sample_weight=w)
    assert_alike(ours, Theirs().fit(X, sample_weight=w), 1e-7)


def test_slices_are_a_fit() -> None:
    X, w = table(2)
    ours = StandardScaler().partial_fit(X[:50], None, w[:50], ids=range(50))
    ours.partial_fit(X[50:], sample_weight=w[50:], ids=range(50, 120))
    assert ours.digest() == StandardScaler().fit(X, sample_weight=w).digest()
    theirs = Theirs().partial_fit(X[:50], None, w[:50]).partial_fit(X[50:], sample_weight=w[50:])
    assert_alike(ours, theirs)
    np.testing.assert_allclose(
        StandardScaler().fit_transform(X, sample_weight=w),
        Theirs().fit_transform(X, sample_weight=w),
        rtol=1e-9,
        atol=1e-12,
    )


def test_a_weight_is_that_many_copies() -> None:
    X, w = table(3)
    times = (4 * w).astype(int)
    ours = StandardScaler().fit(X, sample_weight=times)
    copies = StandardScaler().fit(np.repeat(X, times, axis=0))
    np.testing.assert_allclose(ours.mean_, copies.mean_, rtol=1e-15, atol=1e-15)
    np.testing.assert_allclose(ours.var_, copies.var_, rtol=1e-15)
    assert ours.n_samples_seen_ == copies.n_samples_seen_


def test_a_record_of_weight_0_moves_nothing() -> None:
    X, w = table(4)
    X[7], w[7] = 1e300, 0.0
    with pytest.raises(MagnitudeError):
        StandardScaler().fit(X)
    ours, left = StandardScaler().fit(X, sample_weight=w), np.delete(np.arange(120), 7)
    rest = StandardScaler().fit(X[left], sample_weight=w[left], ids=left)
    np.testing.assert_array_equal(ours.var_, rest.var_)
    assert ours.digest() != rest.digest()  # it is held
    assert ours.delete([7]).rows_touched == 0
    assert ours.digest() == rest.digest()


def test_all_weights_0_are_refused() -> None:
    X, _ = table(5, n=3)
    with pytest.raises(TooFewRecordsError, match="would be zero"):
        StandardScaler().fit(X, sample_weight=0.0)
    ours = StandardScaler().fit(X, sample_weight=[1.0, 0.0, 0.0])
    before = ours.digest()
    with pytest.raises(TooFewRecordsError, match="would be zero"):
        ours.delete([0])
    assert ours.digest() == before


# --------------------------------------------------------------------------- exact fractions


@given(data=st.data())
@settings(max_examples=examples(40))
def test_moments_are_within_two_ulps(data: st.DataObject) -> None:
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    n, size = data.draw(st.integers(2, 20)), data.draw(st.sampled_from([3, 1000, 2**25]))
    X = rng.integers(-size, size, (n, 2)).astype(np.float64)
    w = rng.integers(0, data.draw(st.sampled_from([2, 2**26])), n)
    w[0] = 1
    model = StandardScaler().fit(X, sample_weight=w)
    gone = sorted(data.draw(st.sets(st.integers(1, n - 1), max_size=n - 1)))
    model.delete(gone)
    X, w = np.delete(X, gone, 0), np.delete(w, gone)
    weights = [Fraction(each) for each in w.tolist()]
    assert Fraction(float(model.n_samples_seen_)) == sum(weights)
    for j in range(2):
        pairs = list(zip(weights, map(Fraction, X[:, j].tolist()), strict=True))
        mean = sum(a * b for a, b in pairs) / sum(weights)
        variance = sum(a * (b - mean) ** 2 for a, b in pairs) / sum(weights)
        for found, wanted in ((model.mean_[j], mean), (model.var_[j], variance)):
            assert abs(Fraction(float(found)) - wanted) <= abs(wanted) * Fraction(2) ** -51


# --------------------------------------------------------------------------- the law


class WeighingScaler(Weighing, StandardScaler):
    pass


@pytest.mark.thorough
@parametrize_with_law_checks(
    [WeighingScaler(), WeighingScaler(with_mean=False), WeighingScaler(quantize=True)], fast=True
)
def test_law(estimator: Any, check: Any) -> None:
    check_law_of_variant(estimator, check)


@each_form
@given(data=st.data())
@settings(max_examples=examples(30))
def test_after_any_changes_the_model_is_a_refit(form: str, data: st.DataObject) -> None:
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    n = data.draw(st.integers(4, 30))
    X = FORMS[form](np.where(rng.random((n, 3)) < 0.6, np.exp(3 * rng.normal(size=(n, 3))), 0.0))
    w = rng.choice([0.0, 1.0, 0.3, 2.0**30, 1e-12], n)
    w[0] = 7.0
    plain = StandardScaler(with_mean=False, quantize=data.draw(st.booleans()), random_state=0)
    ids, inside = np.arange(100, 100 + n), np.zeros(n, dtype=bool)
    inside[: data.draw(st.integers(1, n))] = True

    def fresh() -> Any:
        rows = np.flatnonzero(inside)[::-1]
        return clone(plain).fit(X[rows], sample_weight=w[rows], ids=ids[rows])

    ours = fresh()
    for _ in range(4):
        if data.draw(st.booleans()):
            ours = pickle.loads(pickle.dumps(ours))
        rows = np.flatnonzero(rng.random(n) < 0.3)
        rows = rows[rows > 0]
        how = data.draw(st.sampled_from(["delete", "add", "correct"]))
        rows = rows[inside[rows] == (how != "add")]
        if how == "delete":
            ours.delete(ids[rows])
            inside[rows] = False
        elif how == "add" and rows.size:
            ours.add(X[rows], ids=ids[rows], sample_weight=w[rows])
            inside[rows] = True
        elif how == "correct":
            w[rows] = rng.choice([0.0, 5.0, 2.0**31], rows.size)
            ours.correct(ids[rows], sample_weight=w[rows])
        assert ours.digest() == fresh().digest()


def test_weights_may_come_later() -> None:
    X, w = table(6)
    ours = StandardScaler().fit(X)
    ours.correct(range(120), sample_weight=w)
    assert ours.digest() == StandardScaler().fit(X, sample_weight=w).digest()
    ones = StandardScaler().fit(X, sample_weight=1.0)
    assert ones.digest() != StandardScaler().fit(X).digest()
    np.testing.assert_array_equal(ones.var_, StandardScaler().fit(X).var_)


@pytest.mark.parametrize("where", ["files", "cluster"])
def test_in_files_and_on_workers(where: str, tmp_path: Path) -> None:
    X, w = table(7)
    frame = pd.DataFrame(X, columns=list("abcd"))
    told = frame.assign(id=np.arange(120), label=0, person=0, w=w)
    names = list("abcd")
    if where == "cluster":
        rows = pa.Table.from_pandas(told, preserve_index=False)
        records = spread(rows, even(120, 5), Simulated(2), names, "w")
    else:
        told.to_parquet(tmp_path / "rows.parquet", row_group_size=25)
        given: Any = {"ids": "id", "groups": "person", "sample_weight": "w", "features": names}
        records = Records.from_parquet(tmp_path / "rows.parquet", **given)
    stored = StandardScaler().fit(records)
    near = StandardScaler().fit(frame, groups=np.zeros(120, dtype=int), sample_weight=w)
    assert stored.digest() == near.digest()
    largest = np.flatnonzero(w == w.max()).tolist()
    for gone in ([3], largest, [int(X[:, 0].argmax())]):
        gone = [row for row in gone if row in near.ids_]
        stored.delete(gone)
        near.delete(gone)
        assert stored.digest() == near.digest()


def test_weights_are_part_of_the_records(tmp_path: Path) -> None:
    X, w = table(8, n=20)
    w[3] = 1234.5678
    ours = StandardScaler().fit(X, sample_weight=w)
    secret = np.float64(1234.5678).tobytes()
    assert secret in pickle.dumps(ours)
    ours.save(tmp_path / "model")
    ids = np.arange(20)
    for other in (None, w + 1.0):
        with pytest.raises(ArtifactError, match="makes another"):
            load(tmp_path / "model", Records(X, sample_weight=other, ids=ids))
    again = load(tmp_path / "model", Records(X, sample_weight=w, ids=ids))
    for each in (again, ours):
        assert each.delete([3]).rows_touched == 19  # the largest weight: all is summed anew
        assert secret not in pickle.dumps(each)
        assert 1234.5678 not in each._moments.weights.weights
    assert again.digest() == ours.digest()


def test_a_deletion_costs_what_it_costs_without_weights() -> None:
    X, w = table(9)
    w[:2], X[0], X[1] = 9.0, 50.0, -50.0
    ours = StandardScaler().fit(X, sample_weight=w)
    assert ours.delete(range(10, 40)).rows_touched == 0


def test_forgetting_to_sum_again_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """A negative control: the quantum of the weights depends on all records."""
    X, w = np.eye(3), np.array([0.3, 0.7, 1e6])

    def differs() -> bool:
        ours = StandardScaler().fit(X, sample_weight=w)
        ours.delete([2])
        return bool(ours.digest() != StandardScaler().fit(X[:2], sample_weight=w[:2]).digest())

    assert not differs()
    subtract = WeightUnits.subtract
    monkeypatch.setattr(WeightUnits, "subtract", lambda *given: subtract(*given) and False)
    assert differs()


def test_the_law_is_checked_with_weights() -> None:
    """Another negative control: the checks see a model that forgets the weight of a record."""

    class Heedless(WeighingScaler):
        def _update(self, delta: Any) -> Any:
            rows = delta.leaving
            self._held.records.weights[rows] = 1.0
            return super()._update(delta)

    with pytest.raises(AssertionError, match="differs"):
        LAW_CHECKS["check_delete_equals_refit"](Heedless())
