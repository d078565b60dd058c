"""The law of logistic regression: deletions in any sequence are refits, bit for bit."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array
from sklearn.base import clone

import erasable
from effort import examples
from erasable.core.errors import ArtifactError, TooFewRecordsError
from erasable.linear_model import LogisticRegression, _newton
from erasable.linear_model import _logistic_work as work_module
from erasable.linear_model._certificate import distance_after_step
from erasable.linear_model._softmax_dense import DenseDesign
from erasable.linear_model._solver import Solver
from erasable.pipeline import make_pipeline
from erasable.preprocessing import StandardScaler
from interruptions import interrupt

COLUMNS = {
    "normal": lambda rng, n: rng.normal(size=n),
    "skewed": lambda rng, n: np.exp(4 * rng.normal(size=n)),
    "constant": lambda rng, n: np.full(n, rng.normal()),
    "whole": lambda rng, n: rng.integers(-3, 4, n).astype(float),
    "offset": lambda rng, n: 1e9 + rng.random(n) * 10.0 ** rng.integers(-2, 4),
    "zero": lambda rng, n: np.zeros(n),
    "rare": lambda rng, n: (rng.random(n) < 0.1).astype(float),
    "large": lambda rng, n: 1e6 * rng.normal(size=n),
    "tiny": lambda rng, n: 1e-9 * rng.normal(size=n),
    "spikes": lambda rng, n: rng.integers(-3, 4, n) * np.where(rng.random(n) < 0.15, 5e5, 1.0),
}


@st.composite
def problems(draw: st.DrawFn) -> tuple[Any, np.ndarray, Any, dict[str, Any], np.random.Generator]:
    """Separable, collinear, duplicated, weighted, sparse, of two to five classes, ..."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    n, n_classes = draw(st.integers(6, 40)), draw(st.integers(2, 5))
    kinds = draw(st.lists(st.sampled_from(sorted(COLUMNS)), min_size=1, max_size=4))
    X = np.column_stack([COLUMNS[kind](rng, n) for kind in kinds])
    if draw(st.booleans()):
        X = np.column_stack([X, X[:, 0], X.sum(axis=1)])
    labels = draw(st.sampled_from(["random", "separable", "rare"]))
    if labels == "random":
        y = rng.integers(0, n_classes, n)
    elif labels == "separable":
        y = np.argsort(np.argsort(X[:, 0], kind="stable")) * n_classes // n
    else:
        y = (rng.random(n) < 0.2) * rng.integers(0, n_classes, n)
    if draw(st.booleans()):
        twins = rng.integers(0, n, n)
        X, y = X[twins], y[twins]
    offset = "offset" in kinds
    params = {
        "C": 10.0 ** draw(st.integers(-3, 4)),
        "fit_intercept": offset or draw(st.booleans()),
        "class_weight": draw(st.sampled_from([None, None, "balanced", {0: 2.5, 1: 0.1}])),
        "classes": draw(st.sampled_from([None, None, list(range(6))])),
    }
    weights = draw(st.sampled_from([None, "counts", "any"]))
    if weights is not None:
        weights = rng.integers(0, 3, n) * 1.0 if weights == "counts" else rng.random(n)
    rows: Any = X.astype(draw(st.sampled_from([np.float64, np.float32])))
    if not offset and draw(st.booleans()):
        rows = csr_array(rows)
    return rows, y, weights, params, rng


def fitted(X: Any, y: Any, weights: Any, params: dict[str, Any], rows: Any) -> LogisticRegression:
    given = None if weights is None else weights[rows]
    return LogisticRegression(**params).fit(X[rows], y[rows], given, ids=rows)


@given(problem=problems(), data=st.data())
@settings(max_examples=examples(40))
def test_after_deletions_it_is_a_refit(problem: Any, data: st.DataObject) -> None:
    X, y, weights, params, rng = problem
    n = len(y)
    try:
        model = fitted(X, y, weights, params, np.arange(n))
    except TooFewRecordsError:
        return
    alive = np.ones(n, dtype=bool)
    for step in range(12):
        size = min(data.draw(st.sampled_from([1, 1, 1, 2, 6])), int(alive.sum()))
        rows = rng.permutation(np.flatnonzero(alive))[:size]
        left = alive.copy()
        left[rows] = False
        order = rng.permutation(np.flatnonzero(left))
        try:
            model.delete(rows, digest=bool(rng.random() < 0.3))
        except TooFewRecordsError:
            if order.size:
                with pytest.raises(TooFewRecordsError):
                    fitted(X, y, weights, params, order)
            break
        alive = left
        if step % 3 == 0:
            refit = fitted(X, y, weights, params, order)
            assert model.digest() == refit.digest()
            np.testing.assert_array_equal(model.coef_, refit.coef_)
            np.testing.assert_array_equal(model.decision_function(X), refit.decision_function(X))


def crowd(n: int = 3000, d: int = 6, n_classes: int = 2, seed: int = 0) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, np.argmax(X @ rng.normal(size=(d, n_classes)) + rng.gumbel(size=(n, n_classes)), 1)


def refit(X: Any, y: Any, alive: np.ndarray, **params: Any) -> LogisticRegression:
    keep = np.flatnonzero(alive)[::-1]
    return LogisticRegression(**params).fit(X[keep], y[keep], ids=keep)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_long_sequences(n_classes: int) -> None:
    X, y = crowd(n_classes=n_classes)
    model, alive = LogisticRegression().fit(X, y), np.ones(len(y), dtype=bool)
    rng = np.random.default_rng(1)
    for step in range(60):
        size = 1 if step % 5 else int(rng.integers(2, 30))
        rows = rng.permutation(np.flatnonzero(alive))[:size]
        model.delete(rows, digest=step % 7 == 0)
        alive[rows] = False
        if step in (0, 1, 20, 59):
            assert model.digest() == refit(X, y, alive).digest()
        if step == 30:
            model = pickle.loads(pickle.dumps(model))


def test_most_deletions_need_a_pass_and_no_hessian(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = crowd()
    model = LogisticRegression().fit(X, y)
    calls = {"evaluate": 0, "hessian": 0, "evaluate_exactly": 0}
    for name in calls:
        method = getattr(DenseDesign, name)

        def counted(self: Any, *args: Any, method: Any = method, name: str = name) -> Any:
            calls[name] += 1
            return method(self, *args)

        monkeypatch.setattr(DenseDesign, name, counted)
    model.delete([0], digest=False)
    assert not any(calls.values())
    for row in range(1, 41):
        model.delete([row])
    assert calls["evaluate"] <= 110
    assert calls["hessian"] <= 12
    assert calls["evaluate_exactly"] <= 2


def test_a_fifth_of_the_records_at_once() -> None:
    X, y = crowd(n_classes=3)
    model, alive = LogisticRegression(class_weight="balanced").fit(X, y), np.ones(3000, dtype=bool)
    rows = np.random.default_rng(0).permutation(3000)[:600]
    model.delete(rows)
    alive[rows] = False
    assert model.digest() == refit(X, y, alive, class_weight="balanced").digest()


@pytest.mark.parametrize("order", ["largest", "misclassified", "one class"])
def test_deletions_chosen_to_hurt(order: str) -> None:
    X, y = crowd(400)
    X[:, 0] = np.exp(3 * X[:, 0])
    model, alive = LogisticRegression(10.0).fit(X, y), np.ones(400, dtype=bool)
    chances = model.predict_proba(X)[np.arange(400), y]
    keys = {"largest": -X[:, 0], "misclassified": chances, "one class": -y.astype(float)}
    rows = np.argsort(keys[order], kind="stable")
    for start in range(0, 120, 8):
        model.delete(rows[start : start + 8], digest=False)
        alive[rows[start : start + 8]] = False
    assert model.digest() == refit(X, y, alive, C=10.0).digest()


def test_the_last_extreme_changes_the_units() -> None:
    X, y = crowd(300)
    X[7] *= 100.0
    model = LogisticRegression().fit(X, y)
    top = model.state()["columns"]["top"]
    deletion = model.delete([7])
    assert deletion.counts["columns_scanned"] > 0
    assert (model.state()["columns"]["top"] < top).any()
    alive = np.ones(300, dtype=bool)
    alive[7] = False
    assert model.digest() == refit(X, y, alive).digest()


def test_nothing_of_a_deleted_record_is_kept() -> None:
    X, y = crowd(200, n_classes=3)
    model = LogisticRegression().fit(X, y)
    model.delete([5])
    solver = model._accelerator._solver
    assert solver.metric.logits[6].any()
    assert not solver.metric.logits[5].any()
    assert solver.problem.design.weights[5] == 0.0
    assert solver.problem.design.codes[5] == -1


def test_a_hessian_without_many_records() -> None:
    """More records than coefficients: the inverse is as right as it says, and not kept by luck."""
    X, y = crowd(n_classes=3)
    model = LogisticRegression().fit(X, y)
    solver = model._accelerator._solver
    metric, weights = solver.metric, solver.problem.design.weights.copy()
    model.delete(np.arange(100), digest=False)
    assert solver.metric is metric

    def wrong() -> float:
        values = np.linalg.eigvals(metric.inverse @ solver.problem.hessian(metric.logits))
        return float(np.abs(values - 1.0).max())

    assert wrong() <= metric.error < 0.3
    solver.problem.design.weights[:] = weights
    assert wrong() > 1e-3 + metric.error


def test_a_refused_deletion_changes_nothing() -> None:
    X, y = crowd(50)
    model = LogisticRegression().fit(X, y)
    before = pickle.dumps(model.state())
    with pytest.raises(TooFewRecordsError):
        model.delete(np.flatnonzero(y == 0))
    assert pickle.dumps(model.state()) == before
    model.delete([0])
    assert model.digest() == refit(X, y, np.arange(50) > 0).digest()


@pytest.mark.parametrize("digest", [False, True])
def test_an_interrupted_deletion_is_done_or_not_done(digest: bool) -> None:
    X, y = crowd(60)
    whole, left = LogisticRegression().fit(X, y), LogisticRegression().fit(X, y)
    left.delete([3, 8])
    wanted = {60: whole.digest(), 58: left.digest()}
    at, sizes = 0, set()
    while True:
        model = LogisticRegression().fit(X, y)
        if not interrupt(lambda model=model: model.delete([3, 8], digest=digest), at):
            break
        sizes.add(len(model.ids_))
        assert model.digest() == wanted[len(model.ids_)]
        rest = model.ids_[model.ids_ != 3]
        model.delete(np.setdiff1d(model.ids_, np.setdiff1d(rest, [8, 20])))
        assert model.digest() == refit(X, y, ~np.isin(np.arange(60), [3, 8, 20])).digest()
        at += 47
    assert sizes == {58, 60}


# --------------------------------------------------------------------------- negative controls


def differing(monkeypatch: pytest.MonkeyPatch) -> int:
    """In how many of 20 cases a deletion is not a refit."""
    X, y = crowd(500)
    different = 0
    model, alive = LogisticRegression().fit(X, y), np.ones(500, dtype=bool)
    for row in range(20):
        model.delete([row])
        alive[row] = False
        different += model.digest() != refit(X, y, alive).digest()
    return different


def test_the_control_keeps_the_law(monkeypatch: pytest.MonkeyPatch) -> None:
    assert differing(monkeypatch) == 0


def test_a_bound_that_is_too_small_breaks_the_law(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        _newton, "distance_after_step", lambda *args: 1e-6 * distance_after_step(*args)
    )
    assert differing(monkeypatch) > 0


def test_without_polish_the_law_breaks(monkeypatch: pytest.MonkeyPatch) -> None:
    real = Solver.find_lattice_point

    def unpolished(self: Any, margin: float = 1.0) -> Any:
        if self.metric is None:
            return real(self, margin)
        high = self.problem.classes((self.theta, np.zeros_like(self.theta)))[0]
        return np.rint(high * 2.0**20) / 2.0**20 + 0.0, True

    monkeypatch.setattr(Solver, "find_lattice_point", unpolished)
    assert differing(monkeypatch) > 10


def test_a_class_weight_that_is_forgotten_would_show(monkeypatch: pytest.MonkeyPatch) -> None:
    """Balanced weights change with every deletion: with those of `fit` the law breaks."""
    X, y = crowd(300)
    monkeypatch.setattr(work_module.LogisticWork, "_update", lambda *args: None)
    model = LogisticRegression(class_weight="balanced").fit(X, y)
    model.delete([0])
    alive = np.arange(300) > 0
    assert model.digest() != refit(X, y, alive, class_weight="balanced").digest()


def test_clones_learn_the_same() -> None:
    X, y = crowd(200)
    model = LogisticRegression(3.0, classes=[0, 1]).fit(X, y)
    assert clone(model).fit(X, y).digest() == model.digest()


@pytest.mark.parametrize("pipeline", [False, True])
def test_a_model_whose_records_are_vouched_for_forgets_alike(tmp_path, pipeline):
    rng = np.random.default_rng(0)
    X, ids = rng.normal(size=(200, 3)), np.arange(200)
    y = (X[:, 0] + rng.normal(size=200) > 0).astype(int)
    model = LogisticRegression()
    if pipeline:
        model = make_pipeline(StandardScaler(quantize=True), model)
    model.fit(X, y, ids=ids).save(tmp_path / "model")
    again = erasable.load(tmp_path / "model", erasable.Records(X, y, ids=ids), vouched=True)
    assert again.delete([3, 17]).digest_after == model.delete([3, 17]).digest_after
    # What is vouched for is not looked at: other values come to another model.
    other = erasable.Records(X + 1.0, y, ids=ids)
    wrong = LogisticRegression().fit(X, y, ids=ids)
    wrong.save(tmp_path / "wrong")
    with pytest.raises(ArtifactError, match="makes another"):
        erasable.load(tmp_path / "wrong", erasable.Records(X * 2.0, 1 - y, ids=ids))
    taken = erasable.load(tmp_path / "wrong", other, vouched=True)
    assert taken.digest() == wrong.digest()
    short = erasable.Records(X[:-1], y[:-1], ids=ids[:-1])
    with pytest.raises(ArtifactError, match="are not the 200"):
        erasable.load(tmp_path / "wrong", short, vouched=True)


@pytest.mark.filterwarnings("ignore::erasable.core.grid.PrecisionWarning")
def test_a_step_does_not_end_behind_a_wall() -> None:
    """Large values make a wall of the loss, and the search along a line ended on its far side."""
    X = [
        [-1, 3, 2], [0, -2, 0], [0, -0.5, 1.58876944], [-2, -2, 1], [-2, -2, 3],
        [0.666666687, 1, 2], [-3.20216982e-24, -5, 0], [0, 8, -2], [2, -2, -2],
        [2, 999999, -2], [1, -667792.938, 0], [-45794.918, -999999, -995013.125], [0, -1, 3],
    ]  # fmt: skip
    y = np.repeat([0, 1, 2], [5, 4, 4])
    model = LogisticRegression().fit(X, y)
    model.delete([9, 1, 12])
    left = [0, 2, 3, 4, 5, 6, 7, 8, 10, 11]
    refit = LogisticRegression().fit(np.array(X)[left], y[left], ids=left)
    assert np.abs(refit.coef_).max() < 1.0
    assert model.digest() == refit.digest()
