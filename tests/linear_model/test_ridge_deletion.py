"""The law for weights, several targets and sparse rows, and what is left of a record."""

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

from effort import examples
from erasable import Records
from erasable.core import gram as gram_module
from erasable.core.errors import TooFewRecordsError
from erasable.linear_model import LinearRegression, Ridge
from erasable.utils._checks.reach import Marks, traces
from linear_model.least_squares import IDS, Case, cases

pytestmark = pytest.mark.filterwarnings("ignore::erasable.core.grid.PrecisionWarning")

MODELS = [Ridge(), Ridge(fit_intercept=False), LinearRegression()]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("models")


def assert_same(model: Any, other: Any, case: Case) -> None:
    assert model.digest() == other.digest()
    for one, two in (
        (model.coef_, other.coef_),
        (np.asarray(model.intercept_), np.asarray(other.intercept_)),
        (model.predict(case.X), other.predict(case.X)),
    ):
        assert one.tobytes() == two.tobytes()


@given(data=st.data())
@settings(max_examples=examples(200))
def test_after_deletions_the_model_is_a_refit(folder: Path, data: st.DataObject) -> None:
    case = data.draw(cases())
    kind = data.draw(st.sampled_from(MODELS))
    model = case.fit(kind)
    order = data.draw(st.permutations(range(len(case))))
    alive = np.ones(len(case), dtype=bool)
    start = 0
    refit = None
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(gram_module, "_FEW", data.draw(st.sampled_from([2, 64])))
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


def test_a_weight_of_zero_teaches_nothing() -> None:
    rng = np.random.default_rng(0)
    X, y, weights = rng.normal(size=(30, 3)), rng.normal(size=30), np.ones(30)
    X[[4, 9]] *= 1e6  # extremes that nobody is to notice
    weights[[4, 9]] = 0.0
    case = Case(X, y, weights)
    counted = np.flatnonzero(weights)
    model, told = case.fit(Ridge()), case.fit(Ridge(), counted)
    assert model.coef_.tobytes() == told.coef_.tobytes()
    assert model.delete([IDS + 4, IDS + 9]).counts == {"columns_scanned": 0}
    assert model.digest() == told.digest()


def test_origins_that_move_make_a_weighted_model_learn_again() -> None:
    rng = np.random.default_rng(0)
    X = 1e6 + rng.random((50, 2))
    X[17] += 1e3
    case = Case(X, rng.normal(size=50), 1.0 + rng.random(50))
    model = case.fit(Ridge())
    assert model.delete([IDS + 3]).action == "updated"
    assert model.delete([IDS + 17]).action == "refit"
    left = np.delete(np.arange(50), [3, 17])
    assert_same(model, case.fit(Ridge(), left), case)


def test_float_sums_would_be_seen() -> None:
    """Negative control: normal equations in plain floats differ from a refit after deletions."""
    rng = np.random.default_rng(0)
    Z = rng.normal(size=(200, 4))
    moments = Z.T @ Z
    for row in Z[:100]:
        moments -= np.outer(row, row)
    assert moments.tobytes() != (Z[100:].T @ Z[100:]).tobytes()


# --------------------------------------------------------------------------- what is left


@pytest.mark.parametrize("form", ["plain", "weighted", "whole", "sparse", "sparse weighted"])
def test_nothing_is_left_of_a_deleted_record(form: str) -> None:
    """Weights of 4 and 16 leave mantissas alone, so that weighted copies would be recognised."""
    rng = np.random.default_rng(1234567)
    X: Any = 2.0 * rng.integers(2**22, 2**23, size=(40, 3)) + 1.0
    y: Any = 2.0 * rng.integers(2**22, 2**23, size=40) + 1.0
    ids = rng.integers(2**61, 2**62, size=40)
    marks = {row: Marks(int(ids[row]), (*map(float, X[row]), float(y[row]))) for row in (5, 17, 30)}
    if form == "whole":
        y = y.astype(np.int64)
    weights = 4.0 ** rng.integers(1, 3, 40) if "weighted" in form else None
    # Without origins, which sums of weighted rows would be less, values are to be recognised.
    X = X * rng.choice([-1.0, 1.0], (40, 1))
    given = csr_array(X) if "sparse" in form else X
    model = Ridge().fit(given, y, sample_weight=weights, ids=ids)
    gone: list[int] = []
    for row, mark in marks.items():
        model.predict(given)
        assert traces(model, mark)
        model.delete(ids[[row]])
        gone.append(row)
        left = np.delete(np.arange(40), gone)
        told = None if weights is None else weights[left]
        refit = Ridge().fit(given[left], y[left], sample_weight=told, ids=ids[left])
        for each in gone:
            assert traces(model, marks[each]) <= traces(refit, marks[each])


@pytest.mark.parametrize("form", ["whole", "weighted", "sparse weighted"])
def test_what_others_still_hold_is_not_copied(form: str) -> None:
    """A record that a model has deleted, and another holds, is nowhere when that deletes it too."""
    rng = np.random.default_rng(7)
    X: Any = 2.0 * rng.integers(2**22, 2**23, size=(40, 3)) + 1.0
    X[9] *= 8.0  # an extreme: origins move when it goes, and sums are made anew
    y = 2 * rng.integers(2**22, 2**23, size=40) + 1
    ids = rng.integers(2**61, 2**62, size=40)
    mark = Marks(int(ids[9]), (*map(float, X[9]), float(y[9])))
    weights = 4.0 ** rng.integers(1, 3, 40) if "weighted" in form else None
    given = csr_array(X) if "sparse" in form else X
    records = Records(given, y, sample_weight=weights, ids=ids)
    one, two = Ridge().fit(records), Ridge().fit(records)
    one.delete(ids[[9]])
    late = Ridge().fit(records)
    two.delete(ids[[9]])
    assert traces(Ridge().fit(given, y, sample_weight=weights, ids=ids), mark)
    left = np.delete(np.arange(40), 9)
    told = None if weights is None else weights[left]
    by_chance = traces(Ridge().fit(given[left], y[left], sample_weight=told, ids=ids[left]), mark)
    for model in (one, two, late):
        assert traces(model, mark) <= by_chance


@pytest.mark.parametrize("weighted", [False, True])
def test_what_is_predicted_does_not_depend_on_the_past(weighted: bool) -> None:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 3)), rng.normal(size=(40, 2))
    case = Case(X, y, rng.random(40) if weighted else None)
    model = case.fit(Ridge())
    model.predict(X)
    twin = copy.deepcopy(model)
    model.delete([IDS + 1])
    assert model.predict(X).tobytes() != twin.predict(X).tobytes()
    twin.delete([IDS + 1])
    assert_same(model, twin, case)
    assert_same(model, case.fit(Ridge(), np.delete(np.arange(40), 1)), case)
