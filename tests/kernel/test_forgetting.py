"""The law for weights, several targets and sparse rows; grids that change; leaving one out."""

from __future__ import annotations

import copy
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array
from sklearn.base import clone

from effort import examples
from erasable import Records
from erasable.core.errors import DetachedError, TooFewRecordsError
from erasable.kernel import RandomFourierRidge
from erasable.kernel import _random_fourier as waves_module
from erasable.model_selection import leave_one_out
from erasable.pipeline import make_pipeline
from erasable.preprocessing import StandardScaler
from erasable.utils._checks.reach import Marks, traces
from kernel.fourier import MODELS, cases, waves
from linear_model.least_squares import IDS, Case

pytestmark = pytest.mark.filterwarnings("ignore::erasable.core.grid.PrecisionWarning")

KINDS = [RandomFourierRidge(**params, random_state=5) for params in MODELS]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("models")


def assert_same(model: Any, other: Any, case: Case) -> None:
    assert model.digest() == other.digest()
    assert model.coef_.tobytes() == other.coef_.tobytes()
    assert model.predict(case.X).tobytes() == other.predict(case.X).tobytes()


@given(data=st.data())
@settings(max_examples=examples(60))
def test_after_deletions_the_model_is_a_refit(folder: Path, data: st.DataObject) -> None:
    case = data.draw(cases())
    kind = data.draw(st.sampled_from(KINDS))
    model = case.fit(kind)
    order = data.draw(st.permutations(range(len(case))))
    alive = np.ones(len(case), dtype=bool)
    start, refit = 0, None
    while start < len(order) - 1:
        stop = data.draw(st.integers(start + 1, len(order) - 1))
        rows, start = np.array(order[start:stop]), stop
        if data.draw(st.booleans()):
            model = pickle.loads(pickle.dumps(model))
        alive[rows] = False
        left = np.flatnonzero(alive)[::-1]
        if case.weights is not None and not case.weights[left].any():
            with pytest.raises(TooFewRecordsError):
                model.delete(IDS + rows)
            with pytest.raises(TooFewRecordsError):
                case.fit(kind, left)
            break
        model.delete(IDS + rows, digest=data.draw(st.booleans()))
        refit = case.fit(kind, left)
        assert_same(model, refit, case)
    if refit is not None:
        model.save(folder / "model")
        case.fit(kind, model.ids_ - IDS).save(folder / "refit")
        assert (folder / "model").read_bytes() == (folder / "refit").read_bytes()


def test_blocks_of_many_records_are_removed_as_they_were_added(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(waves_module, "_LEAST", 100)
    monkeypatch.setattr(waves_module, "_BLOCK", 1)
    case = waves(n=1000, targets=2)
    model = case.fit(KINDS[0])
    model.delete(IDS + np.arange(0, 700))
    assert_same(model, case.fit(KINDS[0], np.arange(700, 1000)), case)


@pytest.mark.parametrize("weighted", [False, True])
def test_only_the_targets_hang_on_extremes(weighted: bool) -> None:
    case = waves(n=200, weighted=weighted)
    case.X[9] *= 1e6
    case.y[17] = 1e6
    model = case.fit(KINDS[0])
    assert model.delete([IDS + 9]).action == "updated"
    deletion = model.delete([IDS + 17])
    assert deletion.action == "refit"
    assert deletion.rows_touched == 198
    assert_same(model, case.fit(KINDS[0], np.delete(np.arange(200), [9, 17])), case)


def test_the_heaviest_record_sets_the_grid_of_the_waves() -> None:
    case = waves(n=100)
    case = Case(case.X, case.y, np.ones(100))
    case.weights[40] = 1e8
    model = case.fit(KINDS[0])
    before = model.state()["top"][0]
    assert model.delete([IDS + 40]).action == "refit"
    assert model.state()["top"][0] < before
    assert_same(model, case.fit(KINDS[0], np.delete(np.arange(100), 40)), case)


def test_a_grid_that_stayed_would_be_seen() -> None:
    """Negative control: the same sums, on the grid of a deleted weight, are other numbers."""
    case = waves(n=100)
    light = np.ones(100)
    heavy = light.copy()
    heavy[40] = 1e8
    left = np.delete(np.arange(100), 40)
    kept = Case(case.X, case.y, heavy).fit(KINDS[0])
    kept._accelerator._is_on_grids = lambda change: True
    kept.delete([IDS + 40])
    assert kept.digest() != Case(case.X, case.y, light).fit(KINDS[0], left).digest()


def test_a_weight_of_zero_teaches_nothing() -> None:
    case = waves(n=60, weighted=True)
    case.weights[[4, 9]], case.y[[4, 9]] = 0.0, 1e9
    model = case.fit(KINDS[0])
    told = case.fit(KINDS[0], np.flatnonzero(case.weights))
    assert model.coef_.tobytes() == told.coef_.tobytes()
    assert model.delete([IDS + 4, IDS + 9]).action == "updated"
    assert_same(model, told, case)


def test_behind_a_scaler_that_rarely_moves() -> None:
    case = waves(n=400)
    X = case.X * [1.0, 100.0, 0.01] + [5.0, 0.0, -1.0]
    kind = make_pipeline(StandardScaler(quantize=True, random_state=1), clone(KINDS[0]))
    model = clone(kind).fit(X, case.y, ids=np.arange(400))
    actions = {model.delete([row]).action for row in range(0, 60, 4)}
    assert "updated" in actions
    left = model.ids_
    fresh = clone(kind).fit(X[left], case.y[left], ids=left)
    assert model.digest() == fresh.digest()
    assert model.predict(X).tobytes() == fresh.predict(X).tobytes()
    assert model.score(X, case.y) > 0.5
    with pytest.raises(DetachedError):
        model[-1]._leave_one_out_predictions(np.array([0]))


# --------------------------------------------------------------------------- leaving one out


def by_deleting(model: Any, case: Case, row: int) -> bytes:
    other = copy.deepcopy(model)
    other.delete([IDS + row], digest=False)
    predicted: bytes = other.predict(case.X[[row]]).tobytes()
    return predicted


@given(cases(), st.sampled_from(KINDS))
@settings(max_examples=examples(30))
def test_leaving_one_out_is_deleting_from_a_copy(case: Case, kind: Any) -> None:
    model = case.fit(kind)
    if case.weights is not None and np.count_nonzero(case.weights) < 2:
        return
    digest = model.digest()
    rows = np.arange(len(case))
    found = model._leave_one_out_predictions(rows)
    assert [found[row].tobytes() for row in rows] == [by_deleting(model, case, r) for r in rows]
    assert model.digest() == digest


def test_leave_one_out_takes_the_short_way(monkeypatch: pytest.MonkeyPatch) -> None:
    case = waves(n=150)
    slow = []
    model = case.fit(KINDS[0])
    without = type(model._accelerator).without

    def counted(design: Any, rows: Any, live: Any) -> Any:
        slow.extend(rows.tolist())
        return without(design, rows, live)

    monkeypatch.setattr(type(model._accelerator), "without", counted)
    monkeypatch.setattr(waves_module, "_LEAST", 40)
    monkeypatch.setattr(waves_module, "_BLOCK", 1)
    result = leave_one_out(model)
    assert set(slow) == {int(case.y.argmin()), int(case.y.argmax())}
    for row in (0, 77, 149, *slow):
        assert result.predictions[row].tobytes() == by_deleting(model, case, row)


def test_the_last_record_cannot_be_left_out() -> None:
    model = RandomFourierRidge(random_state=0).fit([[1.0]], [2.0])
    with pytest.raises(TooFewRecordsError, match="leaving out 1 of 1 records"):
        model._leave_one_out_predictions(np.array([0]))


# --------------------------------------------------------------------------- what is left


@pytest.mark.parametrize("form", ["plain", "weighted", "whole", "sparse weighted"])
def test_nothing_is_left_of_a_deleted_record(form: str) -> None:
    """Weights of 4 and 16 leave mantissas alone, so that weighted copies would be recognised."""
    rng = np.random.default_rng(1234567)
    X: Any = 2.0 * rng.integers(2**22, 2**23, size=(40, 3)) + 1.0
    y: Any = (2.0 * rng.integers(2**22, 2**23, size=40) + 1.0) * rng.choice([-1.0, 1.0], 40)
    y[5] *= 2.0  # an extreme, and the grid changes
    ids = rng.integers(2**61, 2**62, size=40)
    marks = {row: Marks(int(ids[row]), (*map(float, X[row]), float(y[row]))) for row in (5, 17, 30)}
    if form == "whole":
        y = y.astype(np.int64)
    weights = 4.0 ** rng.integers(1, 3, 40) if "weighted" in form else None
    given = csr_array(X) if "sparse" in form else X
    records = Records(given, y, sample_weight=weights, ids=ids)
    model, other = clone(KINDS[0]).fit(records), clone(KINDS[0]).fit(records)
    gone: list[int] = []
    for row, mark in marks.items():
        model.predict(given)
        assert traces(model, mark)
        model.delete(ids[[row]])
        late = clone(KINDS[0]).fit(records)
        other.delete(ids[[row]])
        gone.append(row)
        left = np.delete(np.arange(40), gone)
        told = None if weights is None else weights[left]
        refit = clone(KINDS[0]).fit(given[left], y[left], sample_weight=told, ids=ids[left])
        assert refit.digest() == model.digest() == late.digest()
        for each in gone:
            for one in (model, other, late):
                assert traces(one, marks[each]) <= traces(refit, marks[each])
