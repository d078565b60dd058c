"""Scalers on sparse data: the law, scikit-learn's numbers, and those of the same data dense."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sklearn.preprocessing
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csc_array, csr_array, csr_matrix, issparse
from sklearn.base import clone

from effort import examples
from erasable import Records, load
from erasable.core.errors import ArtifactError, InvalidDataError
from erasable.core.quantiles import Quantiles
from erasable.preprocessing import MaxAbsScaler, RobustScaler, StandardScaler

SCALERS = [
    MaxAbsScaler(),
    RobustScaler(with_centering=False, quantile_range=(5.0, 90.0)),
    StandardScaler(with_mean=False),
    StandardScaler(with_mean=False, with_std=False),
    StandardScaler(with_mean=False, quantize=True, random_state=0),
]
each_scaler = pytest.mark.parametrize("scaler", SCALERS, ids=repr)


@st.composite
def tables(draw: st.DrawFn) -> np.ndarray:
    n, d = draw(st.integers(2, 25)), draw(st.integers(1, 4))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    kinds = (
        rng.normal(size=(n, d)),
        np.exp(4 * rng.normal(size=(n, d))),
        rng.integers(-2, 3, size=(n, d)).astype(np.float64),
    )
    table = draw(st.sampled_from(kinds))
    return np.where(rng.random((n, d)) < draw(st.sampled_from([0.1, 0.5, 1.0])), table, 0.0)


@each_scaler
@given(table=tables(), data=st.data())
@settings(max_examples=examples(40))
def test_after_deletions_the_scaler_is_a_refit(
    scaler: Any, table: np.ndarray, data: st.DataObject
) -> None:
    sparse, ids = csr_array(table), np.arange(100, 100 + len(table))
    model = clone(scaler).fit(sparse, ids=ids)
    order, start = data.draw(st.permutations(range(len(table)))), 0
    while start < len(order) - 1:
        start = data.draw(st.integers(start + 1, len(order) - 1))
        if data.draw(st.booleans()):
            model = pickle.loads(pickle.dumps(model))
        model.delete([record for record in ids[order[:start]] if record in model.ids_])
        left = np.array(sorted(order[start:]))[::-1]
        refit = clone(scaler).fit(sparse[left], ids=ids[left])
        assert model.digest() == refit.digest()
        assert (model.transform(sparse) != refit.transform(sparse)).nnz == 0


@each_scaler
@given(table=tables())
@settings(max_examples=examples(40))
def test_sparse_data_are_scaled_as_dense_data_and_by_scikit_learn(
    scaler: Any, table: np.ndarray
) -> None:
    sparse = csr_array(table)
    model, dense = clone(scaler).fit(sparse), clone(scaler).fit(table)
    scaled = model.transform(sparse)
    assert issparse(scaled)
    assert not np.shares_memory(scaled.indices, sparse.indices)
    if not getattr(scaler, "quantize", False):
        cls = getattr(sklearn.preprocessing, type(scaler).__name__)
        params = {k: v for k, v in scaler.get_params().items() if k in cls().get_params()}
        other = cls(**params).fit(sparse)
        if other.scale_ is not None:  # theirs leaves scales below 2e-15
            big = other.scale_ > 1e-9 * np.abs(table).max(initial=1.0)
            np.testing.assert_allclose(model.scale_[big], other.scale_[big], rtol=1e-6)
    if model.scale_ is not None:
        np.testing.assert_allclose(model.scale_, dense.scale_, rtol=1e-5)
    exact = model.transform(table)  # a dense table, by the same scaler
    assert np.array_equal(scaled.toarray(), exact)
    np.testing.assert_allclose(
        model.inverse_transform(scaled).toarray(), table, rtol=1e-14, atol=1e-300
    )


@each_scaler
def test_every_format_is_one(scaler: Any) -> None:
    table = np.array([[0.0, 2.0], [3.0, 0.0], [-1.0, 4.0]])
    digests = set()
    for form in (csr_array, csr_matrix, csc_array):
        for dtype in (np.float64, np.float32):
            model = clone(scaler).fit(form(table.astype(dtype)))
            assert model.transform(form(table.astype(dtype))).dtype == dtype
            model.delete([1])
            digests.add(model.digest())
    assert len(digests) == 1


@each_scaler
def test_loading_with_records(scaler: Any, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    table = np.where(rng.random((30, 3)) < 0.5, rng.normal(size=(30, 3)), 0.0)
    model = clone(scaler).fit(csr_array(table))
    model.delete([4])
    model.save(tmp_path / "scaler")
    ids = np.delete(np.arange(30), 4)
    whole = load(tmp_path / "scaler", Records(csr_array(table[ids]), ids=ids))
    for each in (whole, model):
        each.delete([7])
    assert whole.digest() == model.digest()
    changed = table[ids] * 3.0
    with pytest.raises(ArtifactError, match="makes another"):
        load(tmp_path / "scaler", Records(csr_array(changed), ids=ids))


def test_large_batches_of_wide_sparse_rows(monkeypatch: Any) -> None:
    monkeypatch.setattr("erasable.core.tables._VALUES", 64)
    rng = np.random.default_rng(0)
    table = np.where(rng.random((80, 20)) < 0.6, rng.normal(size=(80, 20)), 0.0)
    model = RobustScaler(with_centering=False).fit(csr_array(table))
    model.delete(range(50))
    refit = RobustScaler(with_centering=False).fit(csr_array(table[50:]), ids=range(50, 80))
    assert model.digest() == refit.digest()


@pytest.mark.parametrize("together", [True, False])
def test_a_column_that_is_read_again_loses_a_batch_as_a_whole(
    together: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The windows run out in the first of several blocks; a negative control takes them singly."""
    monkeypatch.setattr("erasable.core.tables._VALUES", 200)
    if not together:
        subtract = Quantiles.subtract

        def singly(self: Quantiles, table: Any, rows: Any) -> int:
            return sum(subtract(self, table, some) for some in np.split(rows, [100, 200, 300]))

        monkeypatch.setattr(Quantiles, "subtract", singly)
    table = np.arange(3000.0)[:, None] * [1.0, 2.0]
    model = RobustScaler(with_centering=False).fit(csr_array(table))
    assert model.delete(range(350)).counts["columns_scanned"]
    refit = RobustScaler(with_centering=False).fit(csr_array(table[350:]), ids=range(350, 3000))
    assert (model.digest() == refit.digest()) == together


@pytest.mark.parametrize("scaler", [StandardScaler(), RobustScaler()], ids=repr)
def test_what_subtracts_refuses_sparse_data(scaler: Any) -> None:
    with pytest.raises(InvalidDataError, match="Sparse data was passed"):
        scaler.fit(csr_array(np.eye(3)))
