"""`SimpleImputer` on sparse data: the law, scikit-learn's numbers, and the same data dense."""

from __future__ import annotations

import pickle
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sklearn.impute
import sklearn.utils._mask
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csc_array, csr_array, csr_matrix, issparse
from sklearn.base import clone

from effort import examples
from erasable import Records, load
from erasable.core.errors import ArtifactError, InvalidDataError, InvalidInputError
from erasable.pipeline import make_pipeline
from erasable.preprocessing import MaxAbsScaler, SimpleImputer
from erasable.preprocessing._sparse_fills import SparseModes

IMPUTERS = [
    SimpleImputer(),
    SimpleImputer(strategy="median", add_indicator=True),
    SimpleImputer(strategy="most_frequent"),
    SimpleImputer(strategy="most_frequent", keep_empty_features=True, missing_values=-1),
    SimpleImputer(strategy="constant", fill_value=3.5, add_indicator=True),
    SimpleImputer(strategy="mean", missing_values=2, keep_empty_features=True),
]
each_imputer = pytest.mark.parametrize("imputer", IMPUTERS, ids=repr)


def theirs(imputer: SimpleImputer) -> Any:
    return sklearn.impute.SimpleImputer(**imputer.get_params())


def with_gaps(imputer: SimpleImputer, table: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    return np.where(rng.random(table.shape) < 0.2, float(imputer.missing_values), table)


@st.composite
def tables(draw: st.DrawFn, imputer: SimpleImputer) -> np.ndarray:
    n, d = draw(st.integers(2, 25)), draw(st.integers(1, 5))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    kinds = (
        rng.normal(size=(n, d)),
        1e5 + rng.normal(size=(n, d)),
        np.exp(4 * rng.normal(size=(n, d))),
        rng.integers(-3, 4, size=(n, d)).astype(np.float64),
    )
    table = draw(st.sampled_from(kinds))
    kept = rng.random((n, d)) < draw(st.sampled_from([0.1, 0.5, 1.0]))
    table = with_gaps(imputer, np.where(kept, table, 0.0), rng)
    if draw(st.booleans()):
        table[:, 0] = float(imputer.missing_values)
    return table.astype(draw(st.sampled_from([np.float64, np.float32])))


@each_imputer
@given(data=st.data())
@settings(max_examples=examples(40))
def test_after_deletions_the_imputer_is_a_refit(imputer: Any, data: st.DataObject) -> None:
    table = data.draw(tables(imputer))
    n, ids = len(table), np.arange(100, 100 + len(table))
    model = clone(imputer).fit(csr_array(table), ids=ids)
    dense = clone(imputer).fit(table, ids=ids)
    assert model.digest() == dense.digest()
    order, start = data.draw(st.permutations(range(n))), 0
    while start < n - 1:
        stop = data.draw(st.integers(start + 1, n - 1))
        rows, start = order[start:stop], stop
        if data.draw(st.booleans()):
            model = pickle.loads(pickle.dumps(model))
        model.delete(ids[rows])
        dense.delete(ids[rows])
        left = np.sort(order[stop:])[::-1]
        refit = clone(imputer).fit(csr_array(table[left]), ids=ids[left])
        assert model.digest() == refit.digest() == dense.digest()
        if refit.get_feature_names_out().size:
            filled = model.transform(csr_array(table))
            assert issparse(filled)
            assert filled.dtype == table.dtype
            assert np.array_equal(filled.toarray(), dense.transform(table), equal_nan=True)
            agrees_with_scikit_learn(model, imputer, table, left)


def agrees_with_scikit_learn(model: Any, imputer: Any, table: Any, left: Any) -> None:
    gaps = sklearn.utils._mask._get_mask(table[left], imputer.missing_values)
    only_zeros = (gaps | (table[left] == 0)).all(axis=0) & ~gaps.all(axis=0)
    if imputer.strategy == "constant" and only_zeros.any():
        return  # scikit-learn leaves such columns out, unless a zero of theirs is stored
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of columns without values
        other = theirs(imputer).fit(csr_array(table[left]))
        wanted = other.transform(csr_array(table))
    size = np.abs(np.nan_to_num(table)).max(initial=1.0)
    np.testing.assert_allclose(model.statistics_, other.statistics_, rtol=1e-6, atol=2e-8 * size)
    mine = model.transform(csr_array(table))
    assert mine.shape == wanted.shape
    np.testing.assert_allclose(mine.toarray(), wanted.toarray(), rtol=1e-6, atol=2e-8 * size)


@each_imputer
def test_scikit_learn_agrees_on_whole_numbers(imputer: Any) -> None:
    rng = np.random.default_rng(0)
    table = with_gaps(imputer, rng.integers(-2, 7, (80, 6)) * (rng.random((80, 6)) < 0.6), rng)
    ours = clone(imputer).fit(csr_array(table))
    ours.delete(range(0, 80, 3))
    kept = table[np.arange(80) % 3 > 0]
    other = theirs(imputer).fit(csr_array(kept))
    np.testing.assert_allclose(ours.statistics_, other.statistics_, rtol=1e-12)
    mine, wanted = ours.transform(csr_array(table)), other.transform(csr_array(table))
    np.testing.assert_allclose(mine.toarray(), wanted.toarray(), rtol=1e-12)


@each_imputer
def test_stored_zeros_and_formats_do_not_matter(imputer: Any) -> None:
    gap = float(imputer.missing_values)
    table = np.array([[0.0, gap, 7.0], [3.0, 5.0, 0.0], [gap, 4.0, 0.0], [0.0, 5.0, 6.0]])
    stored = csr_array(np.where(table == 0.0, 99.0, table))
    stored.data[stored.data == 99.0] = 0.0
    assert stored.nnz == table.size
    digests = set()
    for form in (stored, csr_array(table), csr_matrix(table), csc_array(table), table):
        model = clone(imputer).fit(form)
        model.delete([1])
        digests.add(model.digest())
        assert np.array_equal(model.transform(stored).toarray(), model.transform(table))
    assert len(digests) == 1
    np.testing.assert_allclose(
        clone(imputer).fit(stored).statistics_, theirs(imputer).fit(stored).statistics_
    )


@pytest.mark.parametrize("strategy", ["mean", "median", "most_frequent"])
def test_blocks_and_windows(strategy: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows come in several blocks, and take the extremes and the windows with them."""
    monkeypatch.setattr("erasable.core.tables._VALUES", 200)
    table = np.where(np.arange(3000) % 7 == 3, np.nan, np.arange(3000.0))[:, None] * [1.0, -2.0]
    model = SimpleImputer(strategy=strategy).fit(csr_array(table))
    model.delete(range(350))
    refit = SimpleImputer(strategy=strategy).fit(csr_array(table[350:]), ids=range(350, 3000))
    assert model.digest() == refit.digest()
    assert (
        model.digest()
        == SimpleImputer(strategy=strategy).fit(table[350:], ids=range(350, 3000)).digest()
    )


@each_imputer
def test_nothing_of_a_record_is_left_and_files_are_read(imputer: Any, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    table = with_gaps(
        imputer, np.where(rng.random((30, 4)) < 0.5, rng.normal(size=(30, 4)), 0), rng
    )
    table[7, 1] = 1234.56789
    secret = np.float64(1234.56789).tobytes()
    model = clone(imputer).fit(csr_array(table))
    assert secret in pickle.dumps(model)
    model.delete([7])
    assert secret not in pickle.dumps(model)
    assert 1234.56789 not in model._held.records.matrix.data
    for kept in vars(model._fill).values():
        assert 1234.56789 not in np.asarray(getattr(kept, "runs", kept)).ravel().tolist()
    model.save(tmp_path / "imputer")
    ids = np.delete(np.arange(30), 7)
    whole = load(tmp_path / "imputer", Records(csr_array(table[ids]), ids=ids))
    for each in (whole, model):
        each.delete([9])
    assert whole.digest() == model.digest()
    other = np.where(table[ids] == table[3, 0], float(imputer.missing_values), table[ids])
    other[:, 0] = 1.25
    with pytest.raises(ArtifactError, match="makes another"):
        load(tmp_path / "imputer", Records(csr_array(other), ids=ids))


def test_in_a_pipeline() -> None:
    rng = np.random.default_rng(0)
    table = with_gaps(IMPUTERS[0], np.where(rng.random((40, 4)) < 0.5, rng.random((40, 4)), 0), rng)
    pipe = make_pipeline(SimpleImputer(add_indicator=True), MaxAbsScaler())
    pipe.fit(csr_array(table)).delete(range(0, 40, 3))
    kept = np.flatnonzero(np.arange(40) % 3)
    refit = clone(pipe).fit(csr_array(table[kept]), ids=kept)
    assert pipe.digest() == refit.digest()
    assert np.array_equal(
        pipe.transform(csr_array(table)).toarray(), refit.transform(csr_array(table)).toarray()
    )


def test_what_cannot_be_filled_is_refused() -> None:
    sparse = csr_array(np.eye(3))
    with pytest.raises(InvalidInputError, match="Imputation not possible when missing_values == 0"):
        SimpleImputer(missing_values=0).fit(sparse)
    fitted = SimpleImputer(missing_values=0).fit(np.eye(3))
    with pytest.raises(InvalidInputError, match="Imputation not possible when missing_values == 0"):
        fitted.transform(sparse)
    with pytest.raises(InvalidDataError, match="NaN"):
        SimpleImputer(missing_values=-1).fit(csr_array([[np.nan, 1.0]]))
    words = SimpleImputer(strategy="most_frequent").fit([["a"], ["b"]])
    with pytest.raises(InvalidDataError, match="X is sparse, and the imputer was fitted on text"):
        words.transform(csr_array([[1.0]]))


def test_keeping_a_value_that_nobody_has_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """A negative control: zeros become the most frequent as other records go."""
    table = csr_array([[0.0], [2.0], [2.0], [2.0], [0.0]])

    def differs() -> bool:
        model = SimpleImputer(strategy="most_frequent").fit(table)
        model.delete([1, 2])
        refit = SimpleImputer(strategy="most_frequent").fit(table[[0, 3, 4]], ids=[0, 3, 4])
        return bool(model.digest() != refit.digest())

    assert not differs()
    monkeypatch.setattr(SparseModes, "subtract", lambda *_: 0)
    assert differs()
