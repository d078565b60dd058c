"""Leaving out one record at a time gives what deleting it from a copy gives, bit for bit."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone

from effort import examples
from erasable.core.errors import DetachedError, TooFewRecordsError
from erasable.linear_model import LinearRegression, Ridge
from erasable.pipeline import make_pipeline
from erasable.preprocessing import StandardScaler
from linear_model.least_squares import IDS, Case, cases

pytestmark = pytest.mark.filterwarnings("ignore::erasable.core.grid.PrecisionWarning")

MODELS = [Ridge(), Ridge(0.0, fit_intercept=False), LinearRegression()]


def by_deleting(model: Any, case: Case, row: int) -> bytes:
    other = copy.deepcopy(model)
    other.delete([IDS + row], digest=False)
    predicted: bytes = other.predict(case.X[[row]]).tobytes()
    return predicted


@given(cases(), st.sampled_from(MODELS))
@settings(max_examples=examples(60))
def test_it_is_deleting_from_a_copy(case: Case, kind: Any) -> None:
    model = case.fit(kind)
    if case.weights is not None and np.count_nonzero(case.weights) < 2:
        return
    digest = model.digest()
    rows = np.arange(len(case))
    found = model._leave_one_out_predictions(rows)
    assert found.shape == (len(case), case.y.size // len(case))
    assert [found[row].tobytes() for row in rows] == [by_deleting(model, case, r) for r in rows]
    assert model.digest() == digest


def test_the_fast_way_is_the_one_that_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    case = Case(rng.normal(size=(500, 4)), rng.normal(size=500))
    model = case.fit(Ridge())
    slow: list[int] = []
    without = type(model._accelerator).without

    def counted(design: Any, rows: Any, live: Any) -> Any:
        slow.extend(rows.tolist())
        return without(design, rows, live)

    monkeypatch.setattr(type(model._accelerator), "without", counted)
    model._leave_one_out_predictions(np.arange(500))
    columns = np.column_stack([case.X, case.y])
    assert set(slow) == {*columns.argmax(axis=0).tolist(), *columns.argmin(axis=0).tolist()}


def test_some_rows_after_deletions() -> None:
    rng = np.random.default_rng(0)
    case = Case(rng.normal(size=(60, 3)), rng.normal(size=(60, 2)))
    model = case.fit(Ridge(0.1))
    model.delete(IDS + np.arange(10))
    rows = np.array([30, 11, 59])
    found = model._leave_one_out_predictions(rows)
    assert [found[i].tobytes() for i in range(3)] == [by_deleting(model, case, r) for r in rows]


def test_a_model_that_was_pickled_answers_too() -> None:
    rng = np.random.default_rng(0)
    case = Case(rng.normal(size=(30, 3)), rng.normal(size=30))
    model = case.fit(Ridge())
    rows = np.arange(30)
    found = copy.deepcopy(model)._leave_one_out_predictions(rows)
    assert found.tobytes() == model._leave_one_out_predictions(rows).tobytes()


def test_the_short_cut_by_the_hat_matrix_has_other_bits() -> None:
    """Negative control: the textbook's formula is equal in numbers, not in bits."""
    rng = np.random.default_rng(0)
    case = Case(rng.normal(size=(80, 3)), rng.normal(size=80))
    model = case.fit(LinearRegression())
    Z = np.column_stack([np.ones(80), case.X])
    hat = np.einsum("ij,jk,ik->i", Z, np.linalg.inv(Z.T @ Z), Z)
    left_out = case.y - (case.y - model.predict(case.X)) / (1.0 - hat)
    found = model._leave_one_out_predictions(np.arange(80))[:, 0]
    np.testing.assert_allclose(found, left_out, atol=1e-6)
    assert found.tobytes() != left_out.tobytes()


def test_the_last_record_cannot_be_left_out() -> None:
    model = Ridge().fit([[1.0]], [2.0])
    with pytest.raises(TooFewRecordsError, match="leaving out 1 of 1 records"):
        model._leave_one_out_predictions(np.array([0]))
    assert model._leave_one_out_predictions(np.empty(0, dtype=np.int64)).shape == (0, 1)
    model = Ridge().fit([[1.0], [2.0]], [2.0, 3.0], sample_weight=[0.0, 1.0])
    assert model._leave_one_out_predictions(np.array([0])).tolist() == [[3.0]]
    with pytest.raises(TooFewRecordsError, match="would be zero"):
        model._leave_one_out_predictions(np.array([1]))


def test_a_step_of_a_pipeline_refers_to_it() -> None:
    pipeline = make_pipeline(StandardScaler(), clone(MODELS[0]))
    pipeline.fit(np.arange(6.0)[:, None], np.arange(6.0))
    with pytest.raises(DetachedError):
        pipeline[-1]._leave_one_out_predictions(np.array([0]))


def test_the_kernel_leaves_the_sums_alone() -> None:
    rng = np.random.default_rng(0)
    case = Case(rng.normal(size=(50, 3)), rng.normal(size=50))
    model = case.fit(Ridge())
    before = model._gram.totals.tobytes()
    model._leave_one_out_predictions(np.arange(50))
    assert model._gram.totals.tobytes() == before
