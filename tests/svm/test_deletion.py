"""The law of linear support vector machines: any sequence of changes is a refit, bit for bit."""

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
from erasable.core.errors import InvalidDataError, MagnitudeError, TooFewRecordsError
from erasable.pipeline import make_pipeline
from erasable.preprocessing import StandardScaler
from erasable.svm import LinearSVC, LinearSVR, _active_set
from erasable.svm._active_set import ActiveSet

pytestmark = pytest.mark.filterwarnings("ignore::erasable.core.grid.PrecisionWarning")

COLUMNS = {
    "normal": lambda rng, n: rng.normal(size=n),
    "skewed": lambda rng, n: np.exp(4 * rng.normal(size=n)),
    "constant": lambda rng, n: np.full(n, rng.normal()),
    "whole": lambda rng, n: rng.integers(-3, 4, n).astype(float),
    "offset": lambda rng, n: 1e6 + rng.random(n) * 10.0 ** rng.integers(-2, 4),
    "zero": lambda rng, n: np.zeros(n),
    "rare": lambda rng, n: (rng.random(n) < 0.1).astype(float),
    "tiny": lambda rng, n: 1e-9 * rng.normal(size=n),
    "spikes": lambda rng, n: rng.integers(-3, 4, n) * np.where(rng.random(n) < 0.15, 5e5, 1.0),
}


@st.composite
def problems(draw: st.DrawFn) -> tuple[Any, Any, Any, Any, np.random.Generator]:
    """Separable, collinear, duplicated, weighted, sparse, of numbers or of two to four classes."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    n, n_classes = draw(st.integers(6, 40)), draw(st.integers(2, 4))
    kinds = draw(st.lists(st.sampled_from(sorted(COLUMNS)), min_size=1, max_size=4))
    X = np.column_stack([COLUMNS[kind](rng, n) for kind in kinds])
    if draw(st.booleans()):
        X = np.column_stack([X, X[:, 0], X.sum(axis=1)])
    params: dict[str, Any] = {
        "C": 10.0 ** draw(st.integers(-3, 4)),
        "fit_intercept": draw(st.booleans()),
        "intercept_scaling": draw(st.sampled_from([1.0, 0.3, 1e3])),
    }
    if draw(st.booleans()):
        y: Any = np.round(rng.normal(size=n), draw(st.integers(0, 4))) * 10.0 ** rng.integers(-3, 4)
        params["epsilon"] = draw(st.sampled_from([0.0, 0.1, 1.0, 50.0]))
        model: Any = LinearSVR(**params)
    else:
        separable = np.argsort(np.argsort(X[:, 0], kind="stable")) * n_classes // n
        y = separable if draw(st.booleans()) else rng.integers(0, n_classes, n)
        params["class_weight"] = draw(st.sampled_from([None, None, "balanced", {0: 2.5, 1: 0.1}]))
        params["classes"] = draw(st.sampled_from([None, None, list(range(6))]))
        model = LinearSVC(**params)
    if draw(st.booleans()):
        twins = rng.integers(0, n, n)
        X, y = X[twins], y[twins]
    weights = draw(st.sampled_from([None, None, "counts", "any"]))
    if weights is not None:
        weights = rng.integers(0, 3, n) * 1.0 if weights == "counts" else rng.random(n)
    rows: Any = X.astype(draw(st.sampled_from([np.float64, np.float32])))
    if draw(st.booleans()):
        rows = csr_array(rows)
    elif draw(st.booleans()):
        model = make_pipeline(StandardScaler(), model)
    return model, rows, y, weights, rng


def fitted(model: Any, X: Any, y: Any, weights: Any, rows: Any) -> Any:
    if hasattr(model, "steps"):
        return clone(model).fit(X[rows], y[rows], ids=rows)
    given = None if weights is None else weights[rows]
    return clone(model).fit(X[rows], y[rows], given, ids=rows)


@given(problem=problems(), data=st.data())
@settings(max_examples=examples(40))
def test_after_changes_it_is_a_refit(problem: Any, data: st.DataObject) -> None:
    given_model, X, y, weights, rng = problem
    n = len(y)
    try:
        model = fitted(given_model, X, y, weights, np.arange(n))
    except TooFewRecordsError:
        return
    alive = np.ones(n, dtype=bool)
    for step in range(12):
        gone = np.flatnonzero(~alive)
        if gone.size and data.draw(st.booleans()):
            rows = rng.permutation(gone)[:3]
            more = {}
            if weights is not None and not hasattr(model, "steps"):
                more = {"sample_weight": weights[rows]}
            model.add(X[rows], y[rows], ids=rows, digest=False, **more)
            alive[rows] = True
        else:
            size = min(data.draw(st.sampled_from([1, 1, 1, 2, 6])), int(alive.sum()))
            rows = rng.permutation(np.flatnonzero(alive))[:size]
            try:
                model.delete(rows, digest=bool(rng.random() < 0.3))
            except TooFewRecordsError:
                break
            alive[rows] = False
        if step % 3 == 0:
            refit = fitted(given_model, X, y, weights, rng.permutation(np.flatnonzero(alive)))
            assert model.digest() == refit.digest()
            np.testing.assert_array_equal(model.predict(X), refit.predict(X))


def crowd(n: int = 20_000, d: int = 6, seed: int = 0) -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    numbers = X @ rng.normal(size=d) + rng.normal(size=n)
    return X, np.digitize(numbers, [-1.0, 1.5]), numbers


@pytest.mark.parametrize("which", ["two classes", "three classes", "numbers"])
def test_many_records(which: str, tmp_path: Any) -> None:
    X, labels, numbers = crowd()
    y = {"two classes": labels > 0, "three classes": labels, "numbers": numbers}[which]
    make = (lambda: LinearSVR(epsilon=0.5)) if which == "numbers" else LinearSVC
    model = make().fit(X, y)
    rng = np.random.default_rng(3)
    gone: Any = np.array([], dtype=int)
    for size in (1, 1, 30, 1, 2000):
        left = np.setdiff1d(np.arange(len(y)), gone)
        some = rng.choice(left, size, replace=False)
        model.delete(some, digest=False)
        gone = np.concatenate([gone, some])
        assert np.isfinite(model.coef_).all()
    kept = rng.permutation(np.setdiff1d(np.arange(len(y)), gone))
    refit = make().fit(X[kept], y[kept], ids=kept)
    assert model.digest() == refit.digest()
    refit.save(tmp_path / "model")
    assert erasable.load(tmp_path / "model").digest() == model.digest()
    assert pickle.loads(pickle.dumps(model)).digest() == model.digest()


def test_a_deletion_reads_few_records(monkeypatch: pytest.MonkeyPatch) -> None:
    X, labels, _ = crowd()
    model = LinearSVC().fit(X, labels > 0)
    looks = []
    look = ActiveSet._look_at_all

    def counted(self: Any, equation: Any) -> Any:
        looks.append(equation)
        return look(self, equation)

    monkeypatch.setattr(ActiveSet, "_look_at_all", counted)
    for record in range(50):
        model.delete([record], digest=False)
        assert np.isfinite(model.coef_).all()
    assert len(looks) <= 2
    model.delete(np.arange(50, 5000), digest=False)
    assert np.isfinite(model.coef_).all()
    assert len(looks) > 0


def test_an_uncertain_point_is_found_in_another_way(monkeypatch: pytest.MonkeyPatch) -> None:
    X, labels, _ = crowd(300)
    expected = LinearSVC().fit(X, labels)
    nearest, seen = ActiveSet.nearest, []

    def doubtful(self: Any, equation: Any, margin: float) -> Any:
        values, _ = nearest(self, equation, margin)
        seen.append(self.careful)
        return (values, True) if self.careful else (values + 1.0, False)

    monkeypatch.setattr(ActiveSet, "nearest", doubtful)
    assert LinearSVC().fit(X, labels).digest() == expected.digest()
    assert seen == [False, True] * 3


def test_nothing_is_left_of_a_deleted_record() -> None:
    X, labels, numbers = crowd(400)
    for model in (LinearSVC().fit(X, labels), LinearSVR(epsilon=0.1).fit(X, numbers)):
        model.delete([7], digest=False)
        work = model._accelerator
        assert work._rows.weights[7] == work._rows.norms[7] == 0.0
        for equation in work._equations.values():
            assert equation.scores[7] == equation.sides[7] == 0
        assert np.count_nonzero(work.used) == 399


@pytest.mark.parametrize("vouched", [False, True])
def test_a_loaded_model_deletes_and_adds(vouched: bool, tmp_path: Any) -> None:
    X, labels, numbers = crowd(500)
    X[17] *= 100.0  # the extremes of all columns
    for estimator, y in ((LinearSVC(), labels), (LinearSVR(epsilon=0.1), numbers)):
        model = estimator.fit(X[:-9], y[:-9])
        model.save(tmp_path / "model")
        records = erasable.Records(X[:-9], y[:-9])
        loaded = erasable.load(tmp_path / "model", records, vouched=vouched)
        for each in (loaded, model):
            each.delete([17, 3], digest=False)
        loaded.add(X[-9:], y[-9:], ids=np.arange(491, 500), digest=False)
        model.add(X[-9:], y[-9:], ids=np.arange(491, 500), digest=False)
        kept = np.setdiff1d(np.arange(500), [3, 17])
        expected = clone(estimator).fit(X[kept], y[kept], ids=kept).digest()
        assert loaded.digest() == model.digest() == expected


@pytest.mark.parametrize("C", [1e20, 1e300])
@pytest.mark.parametrize("seed", range(4))
def test_separable_records_with_hardly_any_penalty(C: float, seed: int) -> None:
    """Records of no score below 1 have gaps that scores in float64 do not show."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(40, 12))
    scores = X @ np.arange(1, 13)
    y = scores > np.median(scores)
    model = LinearSVC(C=C).fit(X, y)
    assert (model.decision_function(X) * np.where(y, 1, -1)).min() > 1 - 1e-6
    model.delete([3, 4], digest=False)
    kept = np.setdiff1d(np.arange(40), [3, 4])[::-1]
    assert model.digest() == LinearSVC(C=C).fit(X[kept], y[kept], ids=kept).digest()


@pytest.mark.parametrize("targets", [1.0, 1e-300, 5e-324])
def test_parameters_near_the_largest_number(targets: float) -> None:
    """A product or a quotient that overflows, at a fit or after a deletion, is a limit."""
    X, labels, numbers = crowd(40)
    least = LinearSVR(C=1e9, intercept_scaling=1e308).fit(X, numbers)
    twin = LinearSVR(C=1e9, intercept_scaling=1e150).fit(X, numbers)
    np.testing.assert_allclose(least.predict(X), twin.predict(X), atol=1e-6)
    assert np.isfinite(LinearSVC(intercept_scaling=1e308).fit(X, labels).coef_).all()
    y = np.where(np.arange(40) < 2, 1e140, targets * numbers)
    model = LinearSVR(epsilon=1e308).fit(X, y)
    model.delete([0, 1], digest=False)
    assert not model.coef_.any()
    wide = LinearSVR(epsilon=1.5, C=1e6).fit(X, np.sign(numbers))
    assert not wide.coef_.any()
    assert LinearSVR(epsilon=0.5, C=1e6).fit(X, np.sign(numbers)).coef_.any()


def test_targets_that_are_too_large() -> None:
    X, _, numbers = crowd(40)
    with pytest.raises(MagnitudeError, match="beyond 2\\*\\*480"):
        LinearSVR().fit(X, 1e145 * numbers)
    model = LinearSVR().fit(X, numbers)
    before = model.digest()
    for target in (2.0**481, 1.7e308):
        with pytest.raises(MagnitudeError, match="'y'"):
            model.add(X[:1], [target], ids=[40], digest=False)
        assert model.digest() == before
    model.add(X[:1], [2.0**480], ids=[40], digest=False)
    refit = LinearSVR().fit(np.vstack([X, X[:1]]), np.append(numbers, 2.0**480))
    assert model.digest() == refit.digest()


def test_no_start_outlives_the_records_it_is_of(tmp_path: Any) -> None:
    X, labels, numbers = crowd(100)
    for model, y in ((LinearSVC(), labels), (LinearSVR(epsilon=0.1), numbers)):
        model.fit(X, y).save(tmp_path / "model")
        loaded = erasable.load(tmp_path / "model", erasable.Records(X, y), vouched=True)
        assert loaded._accelerator._start
        loaded.delete([3], digest=False)
        assert np.isfinite(loaded.coef_).all()
        assert not loaded._accelerator._start


def test_too_many_columns() -> None:
    with pytest.raises(InvalidDataError, match="4097 columns"):
        LinearSVC().fit(np.eye(3, 4097), [0, 1, 1])


def test_a_record_kept_by_mistake_would_show(monkeypatch: pytest.MonkeyPatch) -> None:
    """The negative control: sums from which nothing is subtracted."""
    X, labels, _ = crowd(300)
    model = LinearSVC().fit(X, labels > 0)
    monkeypatch.setattr(_active_set.ActiveSet, "take_out", lambda *_: None)
    first = int(np.flatnonzero(model._accelerator._equations[True].sides)[0])
    model.delete([first], digest=False)
    monkeypatch.undo()
    kept = np.setdiff1d(np.arange(300), [first])
    assert model.digest() != LinearSVC().fit(X[kept], labels[kept] > 0, ids=kept).digest()
