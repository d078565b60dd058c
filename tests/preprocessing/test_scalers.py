"""The scalers: scikit-learn's interface and numbers, and the law."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn.preprocessing
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.estimator_checks import parametrize_with_checks

from effort import examples
from erasable import Records, load
from erasable.core.errors import (
    ArtifactError,
    InvalidDataError,
    TooFewRecordsError,
    UnknownIdError,
)
from erasable.preprocessing import MaxAbsScaler, MinMaxScaler, RobustScaler, StandardScaler
from erasable.utils.estimator_checks import parametrize_with_law_checks
from law_cases import check_law_of_variant, of_variants

VARIANTS = [
    MinMaxScaler(),
    MinMaxScaler((-2.0, 5.0), clip=True),
    StandardScaler(),
    StandardScaler(with_mean=False),
    StandardScaler(with_std=False),
    StandardScaler(with_mean=False, with_std=False),
]
EXACT = [
    MaxAbsScaler(),
    RobustScaler(),
    RobustScaler(quantile_range=(10, 62.5), unit_variance=True),
    RobustScaler(with_centering=False),
    RobustScaler(with_scaling=False, quantile_range=(0, 100)),
]
"""Whose numbers are scikit-learn's, but for those of `unit_variance`, bit for bit."""
SCALERS = [MinMaxScaler(), StandardScaler(), MaxAbsScaler(), RobustScaler()]

each_variant = pytest.mark.parametrize("scaler", VARIANTS + EXACT, ids=repr)
each_scaler = pytest.mark.parametrize("scaler", SCALERS, ids=repr)


def theirs(scaler: Any) -> Any:
    """The same scaler of scikit-learn."""
    cls = getattr(sklearn.preprocessing, type(scaler).__name__)
    ours = scaler.get_params()
    return cls(**{name: ours[name] for name in cls().get_params() if name in ours})


@st.composite
def tables(draw: st.DrawFn, least: int = 1) -> np.ndarray:
    """Skewed, constant, duplicated, offset and whole-number columns."""
    n = draw(st.integers(least, 25))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    kinds = {
        "normal": rng.normal(size=n),
        "skewed": np.exp(4 * rng.normal(size=n)),
        "constant": np.full(n, rng.normal()),
        "duplicated": rng.choice(rng.normal(size=max(1, n // 3)), n),
        "offset": 1e6 + rng.random(n),
        "whole": rng.integers(-5, 5, n).astype(np.float64),
        "zero": np.zeros(n),
    }
    chosen = draw(st.lists(st.sampled_from(sorted(kinds)), min_size=1, max_size=4))
    table = np.column_stack([kinds[kind] for kind in chosen])
    return table.astype(draw(st.sampled_from([np.float64, np.float32])))


# --------------------------------------------------------------------------- the contracts


def expected_failures(scaler: Any) -> dict[str, str]:
    if isinstance(scaler, RobustScaler):
        return {}
    return {"check_fit_score_takes_y": "records that join others need ids"}


@parametrize_with_checks(VARIANTS + EXACT, expected_failed_checks=expected_failures)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
def test_scikit_learn_contract(estimator: Any, check: Any) -> None:
    check(estimator)


@pytest.mark.thorough
@of_variants(parametrize_with_law_checks(VARIANTS[1:2] + VARIANTS[3:4] + EXACT[2:], fast=True))
def test_law(estimator: Any, check: Any) -> None:
    check_law_of_variant(estimator, check)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("models")


@each_variant
@given(data=st.data())
@settings(max_examples=examples(60))
def test_after_deletions_the_scaler_is_a_refit(
    scaler: Any, folder: Path, data: st.DataObject
) -> None:
    table = data.draw(tables(least=2))
    ids = np.arange(100, 100 + len(table))
    model = clone(scaler).fit(table, ids=ids)
    alive = np.ones(len(table), dtype=bool)
    order = data.draw(st.permutations(range(len(table))))
    start = 0
    while start < len(order) - 1:
        stop = data.draw(st.integers(start + 1, len(order) - 1))
        rows, start = order[start:stop], stop
        if data.draw(st.booleans()):
            model = pickle.loads(pickle.dumps(model))
        model.delete(ids[rows])
        alive[rows] = False
        left = np.flatnonzero(alive)[::-1]
        refit = clone(scaler).fit(table[left], ids=ids[left])
        assert model.digest() == refit.digest()
        assert model.transform(table).tobytes() == refit.transform(table).tobytes()
    model.save(folder / "model")
    refit.save(folder / "refit")
    assert (folder / "model").read_bytes() == (folder / "refit").read_bytes()


# --------------------------------------------------------------------------- the numbers


@pytest.mark.parametrize("scaler", VARIANTS[2:], ids=repr)
@given(table=tables())
def test_scikit_learn_gives_the_same_moments(scaler: Any, table: np.ndarray) -> None:
    """Up to a quantum of the grid, 2**-26 of the largest magnitude or of the spread."""
    table = table.astype(np.float64)
    ours, other = clone(scaler).fit(table), theirs(scaler).fit(table)
    quantum = 2.0**-26 * np.abs(table).max(axis=0)
    spread = table.max(axis=0) - table.min(axis=0)
    quantum = np.minimum(quantum, 2.0**-22 * spread) + 1e-13 * np.abs(table).max(axis=0)
    assert ours.n_samples_seen_ == other.n_samples_seen_ == len(table)
    for name in ("mean_", "var_", "scale_"):
        mine, wanted = getattr(ours, name), getattr(other, name)
        if wanted is None:
            assert mine is None
            continue
        factor = 1.0 if name == "mean_" else 2 * spread + quantum if name == "var_" else 1.0
        assert (np.abs(mine - wanted) <= 2 * factor * quantum).all()
    z, wanted = ours.transform(table), other.transform(table)
    scale = 1.0 if ours.scale_ is None else ours.scale_
    assert (np.abs(z - wanted) <= 4 * quantum * (1 + np.abs(z)) / scale).all()


def test_on_ordinary_data_scikit_learn_agrees_to_1e_7() -> None:
    rng = np.random.default_rng(0)
    table = rng.normal(3.0, 2.0, size=(5000, 8))
    for scaler in VARIANTS:
        ours, other = clone(scaler).fit(table), theirs(scaler).fit(table)
        np.testing.assert_allclose(ours.transform(table), other.transform(table), atol=1e-7)
        if isinstance(scaler, StandardScaler) and scaler.with_std:
            for name in ("mean_", "var_", "scale_"):
                np.testing.assert_allclose(getattr(ours, name), getattr(other, name), rtol=1e-7)


@pytest.mark.parametrize("scaler", VARIANTS[:2], ids=repr)
@given(table=tables())
def test_scikit_learn_gives_the_same_range(scaler: Any, table: np.ndarray) -> None:
    table = table.astype(np.float64)
    ours, other = clone(scaler).fit(table), theirs(scaler).fit(table)
    for name in ("data_min_", "data_max_", "data_range_", "scale_"):
        np.testing.assert_allclose(getattr(ours, name), getattr(other, name), rtol=1e-15)
    size = np.abs(table).max(axis=0) * ours.scale_ + 5
    assert (np.abs(ours.min_ - other.min_) <= 1e-15 * size).all()
    assert (np.abs(ours.transform(table) - other.transform(table)) <= 1e-15 * size).all()


@pytest.mark.parametrize("scaler", EXACT, ids=repr)
@given(table=tables())
def test_scikit_learn_gives_the_same_numbers(scaler: Any, table: np.ndarray) -> None:
    table = table.astype(np.float64)
    ours, other = clone(scaler).fit(table), theirs(scaler).fit(table)
    exact = not getattr(scaler, "unit_variance", False)
    for name in ("center_", "max_abs_"):
        mine, wanted = getattr(ours, name, None), getattr(other, name, None)
        assert (mine is None) == (wanted is None)
        assert mine is None or mine.tobytes() == wanted.tobytes()
    if other.scale_ is None:
        assert ours.scale_ is None
    else:  # where the range is below 2e-15, they do not scale
        same = (ours.scale_ == other.scale_) | (ours.scale_ < 2.3e-15)
        assert same.all() if exact else np.allclose(ours.scale_[~same], other.scale_[~same])
        table = table[:, same | (not exact)]
        ours, other = clone(scaler).fit(table), theirs(scaler).fit(table)
    if table.size:
        mine, wanted = ours.transform(table), other.transform(table)
        assert mine.tobytes() == wanted.tobytes() or not exact
        np.testing.assert_allclose(mine, wanted, rtol=1e-14)


@each_variant
@given(table=tables())
def test_affine_says_what_transform_does(scaler: Any, table: np.ndarray) -> None:
    model = clone(scaler).fit(table)
    shift, scale = model._affine()
    assert shift.dtype == scale.dtype == np.float64
    assert shift.shape == scale.shape == (table.shape[1],)
    expected = (table.astype(np.float64) - shift) / scale
    tolerance = 1e-9 if table.dtype == np.float64 else 1e-6
    size = max(1.0, np.abs(expected).max(), np.abs(shift / scale).max() * 1e-3)
    assert np.abs(model.transform(table) - expected).max() <= tolerance * size


@each_variant
@given(table=tables())
def test_inverse_transform_undoes_transform(scaler: Any, table: np.ndarray) -> None:
    model = clone(scaler).fit(table)
    back = model.inverse_transform(model.transform(table))
    assert back.dtype == table.dtype
    size = np.abs(table).max(axis=0)
    eps = np.finfo(table.dtype).eps
    assert (np.abs(back - table) <= 8 * eps * (size + 1)).all()


def test_constant_columns_keep_their_scale() -> None:
    table = np.array([[3.0, 0.1, 0.0], [3.0, 0.1, 0.0]])
    assert StandardScaler().fit(table).scale_.tolist() == [1.0, 1.0, 1.0]
    assert StandardScaler().fit(table).mean_.tolist() == [3.0, 0.1, 0.0]
    assert StandardScaler().fit(table).transform(table).tolist() == [[0.0] * 3] * 2
    assert MinMaxScaler((0, 2)).fit(table).scale_.tolist() == [2.0, 2.0, 2.0]
    assert MinMaxScaler((1, 2)).fit(table).transform(table).tolist() == [[1.0] * 3] * 2


# --------------------------------------------------------------------------- the interface


@each_scaler
def test_frames_keep_their_names(scaler: Any) -> None:
    frame = pd.DataFrame({"visit": ["v1", "v2", "v3"], "age": [30, 40, 50], "bmi": [20.5, 25, 31]})
    model = clone(scaler).set_output(transform="pandas").fit(frame, ids="visit")
    assert model.get_feature_names_out().tolist() == ["age", "bmi"]
    features = frame.drop(columns="visit")
    scaled = model.transform(features)
    assert scaled.columns.tolist() == ["age", "bmi"]
    for values in (scaled, scaled.to_numpy(), pl.from_pandas(scaled)):  # names or none
        np.testing.assert_allclose(model.inverse_transform(values), features, rtol=1e-12)
    model.delete(["v2"])
    same = clone(scaler).fit(pl.from_pandas(frame.drop(index=1)), ids="visit")
    assert model.digest() == same.digest()
    assert same.set_output(transform="polars").transform(features).columns == ["age", "bmi"]


@each_scaler
def test_float32_stays_float32_and_learns_the_same(scaler: Any) -> None:
    narrow = np.random.default_rng(0).normal(size=(40, 3)).astype(np.float32)
    model, wide = clone(scaler).fit(narrow), clone(scaler).fit(narrow.astype(np.float64))
    assert model.transform(narrow).dtype == model.inverse_transform(narrow).dtype == np.float32
    assert model.digest() == wide.digest()


@each_scaler
def test_transform_leaves_its_argument_alone(scaler: Any) -> None:
    table = np.random.default_rng(0).normal(size=(10, 2))
    before = table.tobytes()
    model = clone(scaler).fit(table)
    model.inverse_transform(model.transform(table))
    model.delete([0])
    assert table.tobytes() == before


@each_scaler
def test_attributes_are_copies(scaler: Any) -> None:
    model = clone(scaler).fit([[1.0], [2.0], [4.0]])
    digest = model.digest()
    names = ("mean_", "var_", "scale_", "data_min_", "data_max_", "data_range_", "min_")
    names += ("center_", "max_abs_")
    for name in names:
        if hasattr(model, name):
            getattr(model, name)[:] = 99.0
    assert clone(scaler).fit([[1.0], [2.0], [4.0]]).digest() == digest
    model.delete([0])
    assert model.digest() == clone(scaler).fit([[2.0], [4.0]], ids=[1, 2]).digest()


@each_scaler
def test_nothing_works_before_fit(scaler: Any) -> None:
    for act in ("transform", "inverse_transform"):
        with pytest.raises(NotFittedError):
            getattr(clone(scaler), act)([[1.0]])
    for name in ("scale_", "n_samples_seen_"):
        assert not hasattr(clone(scaler), name)


@each_scaler
def test_bad_requests_change_nothing(scaler: Any) -> None:
    model = clone(scaler).fit([[1.0, 2.0], [2.0, 3.0]])
    before = model.digest()
    with pytest.raises(UnknownIdError):
        model.delete([0, 7])
    with pytest.raises(TooFewRecordsError):
        model.delete([0, 1])
    with pytest.raises(InvalidDataError, match="3 features, but"):
        model.inverse_transform([[1.0, 2.0, 3.0]])
    with pytest.raises(InvalidDataError, match="NaN"):
        model.inverse_transform([[1.0, np.nan]])
    assert model.digest() == before
    assert model.transform([[1.0, 2.0]]).shape == (1, 2)


@each_scaler
def test_loading_with_and_without_records(scaler: Any, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    table = rng.normal(size=(30, 3))
    model = clone(scaler).fit(table)
    model.delete([4])
    model.save(tmp_path / "scaler")
    alone = load(tmp_path / "scaler")
    assert alone.transform(table).tobytes() == model.transform(table).tobytes()
    assert alone.n_samples_seen_ == 29
    ids = np.delete(np.arange(30), 4)
    whole = load(tmp_path / "scaler", Records(table[ids], ids=ids))
    whole.delete([7])
    model.delete([7])
    assert whole.digest() == model.digest()
    changed = table[ids]
    changed[:, 0] *= 2.0
    with pytest.raises(ArtifactError, match="makes another"):
        load(tmp_path / "scaler", Records(changed, ids=ids))


@each_scaler
def test_a_deleted_record_is_in_no_pickle(scaler: Any) -> None:
    secret = np.array([[1234.56789, -9876.54321]])
    table = np.vstack([np.random.default_rng(0).normal(size=(20, 2)), secret])
    model = clone(scaler).fit(table)
    assert any(value.tobytes() in pickle.dumps(model) for value in secret[0])
    model.delete([20])
    assert not any(value.tobytes() in pickle.dumps(model) for value in secret[0])
