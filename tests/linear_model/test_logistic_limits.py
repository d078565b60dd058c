"""Data at the limits of arithmetic: whatever was deleted, there is a model, and it is a refit."""

from __future__ import annotations

from typing import Any

import mpmath as mp
import numpy as np
import pytest
from scipy.sparse import csr_array

from effort import few
from erasable.core.errors import InvalidParameterError, MagnitudeError
from erasable.linear_model import LogisticRegression
from erasable.linear_model import _logistic_work as work_module
from erasable.linear_model._logistic_work import LogisticWork
from erasable.linear_model._solver import Solver
from linear_model.logistic_oracle import expected, optimum, small

N = 40
GONE = ([0], [1], [2, 9])
"""The first three records are those that keep `turning` data ordinary."""


def far(offset: float, spread: float, d: int, seed: int = 0) -> np.ndarray:
    return offset + spread * np.random.default_rng(seed).random((N, d))


def turning(offset: float, spread: float, d: int) -> np.ndarray:
    X = far(offset, spread, d)
    X[:3] = np.random.default_rng(1).normal(size=(3, d))
    return X


def labels(n_classes: int) -> np.ndarray:
    return np.random.default_rng(2).integers(0, n_classes, N)


def assert_deletes(X: Any, y: Any, weights: Any = None, **params: Any) -> LogisticRegression:
    """After every deletion there is a model, and at the end it is a refit in another order."""

    def learn(rows: np.ndarray) -> LogisticRegression:
        given = None if weights is None else weights[rows]
        return LogisticRegression(**params).fit(X[rows], y[rows], given, ids=rows)

    model, alive = learn(np.arange(N)), np.ones(N, dtype=bool)
    for rows in GONE:
        model.delete(rows)
        alive[rows] = False
        assert np.isfinite(model.coef_).all()
    assert model.digest() == learn(np.flatnonzero(alive)[::-1]).digest()
    return model


@pytest.fixture
def canonical(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Count how often a model is published that is not certain."""
    calls = []
    real = LogisticWork._canonical

    def counted(self: LogisticWork, problem: Any) -> Any:
        calls.append(1)
        return real(self, problem)

    monkeypatch.setattr(LogisticWork, "_canonical", counted)
    return calls


@pytest.mark.filterwarnings("ignore::erasable.core.grid.PrecisionWarning")
@pytest.mark.sampled(3)
@pytest.mark.parametrize("most", [1500, 0], ids=["hessian", "conjugate"])
@pytest.mark.parametrize("kind", ["dense", "csr", "csr with intercept"])
@pytest.mark.parametrize("C", [1e-3, 1.0, 1e8, 1e300])
@pytest.mark.parametrize(("offset", "spread"), [(1e9, 1.0), (1e12, 1.0), (1e15, 1e3)])
def test_far_columns_that_are_not_centred(
    offset: float,
    spread: float,
    C: float,
    kind: str,
    most: int,
    monkeypatch: pytest.MonkeyPatch,
    canonical: list[int],
) -> None:
    """These were errors: of `fit`, or of the first call after a deletion that had succeeded."""
    monkeypatch.setattr(work_module, "MOST", most)
    for X in (far(offset, spread, 2), turning(offset, spread, 2)):
        rows = X if kind == "dense" else csr_array(X)
        for n_classes in (2, 3):
            fit_intercept = kind == "csr with intercept"
            assert_deletes(rows, labels(n_classes), C=C, fit_intercept=fit_intercept)
    assert not canonical  # the law is kept by the certificate, not by luck


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_sparse_columns_without_zeros_are_centred(n_classes: int, dtype: Any) -> None:
    """Bit for bit as in a dense matrix, also where deletions make a column full or constant."""
    X = np.column_stack([far(1.7e9, 3e4, 1), turning(1e6, 100.0, 1), np.full(N, 3.7)]).astype(dtype)
    X[0, 2] = X[1, 0] = 0.0
    y = labels(n_classes)
    dense, sparse = assert_deletes(X, y), assert_deletes(csr_array(X), y)
    assert sparse.state()["columns"]["origin"].all()
    for name in ("origin", "top"):
        np.testing.assert_array_equal(
            sparse.state()["columns"][name], dense.state()["columns"][name]
        )
    np.testing.assert_array_equal(sparse.state()["coefficients"], dense.state()["coefficients"])
    assert sparse.coef_[0, 2] == 0.0
    new = csr_array(np.array([[1.7e9 + 7.0, 0.0, 3.7], [0.0, 1e6, 0.0]]))
    np.testing.assert_allclose(
        sparse.decision_function(new), dense.decision_function(new.toarray()), rtol=1e-9
    )


def test_the_copy_of_centred_values_is_erased() -> None:
    model = LogisticRegression().fit(csr_array(far(1.7e9, 3e4, 2)), labels(2))
    design = model._accelerator._solver.problem.design
    model.delete([5])
    assert not design.matrix[[5]].toarray().any()
    assert design.matrix[[6]].toarray().all()


def test_the_least_penalty_is_that_of_the_columns_units() -> None:
    """With C beyond all bounds the optimum is that of the C at which the limit begins."""
    X, y = small(3, "separable", 2)
    n, top = len(y), LogisticRegression().fit(X, y).state()["columns"]["top"]
    assert len(set(top.tolist())) == 1
    # A total of n >= 8 and < 16 records counts as 8; the penalty of a unit is 4**-top / C.
    assert 8 <= n < 16
    C = 2.0 ** (60 - 3 - 2 * int(top[0]))
    model = LogisticRegression(1e300).fit(X, y)
    true = expected(model, optimum(X, y, mp.mpf(C)))
    np.testing.assert_array_equal(model.state()["coefficients"], true)
    assert model.digest() != LogisticRegression(C / 4).fit(X, y).digest()


@pytest.mark.parametrize("size", [30, 140])
def test_weights_of_any_size(size: int) -> None:
    X, y = np.random.default_rng(3).normal(size=(N, 3)), labels(3)
    weights = 10.0 ** np.random.default_rng(4).uniform(-size, size, N)
    assert_deletes(X, y, weights)
    assert_deletes(X, y, weights, class_weight="balanced", fit_intercept=False)


@pytest.mark.parametrize("most", [1500, 0], ids=["hessian", "conjugate"])
def test_what_is_not_certain_is_canonical(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """No certificate at all: still a model, still a refit, and nearly the same one."""
    monkeypatch.setattr(work_module, "MOST", most)
    X, y = far(0.0, 3.0, 3), labels(3)
    certain = assert_deletes(X, y).state()["coefficients"]
    real = Solver.find_lattice_point
    monkeypatch.setattr(
        "erasable.linear_model._solver.round_intervals", lambda high, low, half: (high, False)
    )
    found = assert_deletes(X, y).state()["coefficients"]
    np.testing.assert_array_equal(found, certain)
    assert Solver.find_lattice_point is real


def test_without_the_canonical_solver_the_law_would_break(monkeypatch: pytest.MonkeyPatch) -> None:
    """The negative control: what a warm start happens to reach is not published."""
    monkeypatch.setattr(
        "erasable.linear_model._solver.round_intervals", lambda high, low, half: (high, False)
    )
    monkeypatch.setattr("erasable.linear_model._solver._MOST_STEPS", 1)
    X, y = far(0.0, 3.0, 3), labels(3)
    assert_deletes(X, y)
    monkeypatch.setattr(LogisticWork, "_canonical", lambda self, problem: self._solver)
    with pytest.raises(AssertionError):
        assert_deletes(X, y)


def absurd(seed: int) -> tuple[np.ndarray, np.ndarray, Any, dict[str, Any]]:
    """Return records, labels, weights and parameters of sizes that nobody has."""
    rng = np.random.default_rng(seed)
    n, d, k = int(rng.integers(6, N)), int(rng.integers(1, 5)), int(rng.integers(2, 5))
    X = rng.normal(size=(n, d))
    kind = rng.choice(["far", "scales", "collinear", "powers", "rows", "plain"])
    if kind == "far":
        X += 10.0 ** rng.uniform(0, 15)
    elif kind == "scales":
        X *= 10.0 ** rng.uniform(-100, 100, d)
    elif kind == "collinear":
        X[:, -1] = X[:, 0] + rng.normal(size=n) * 10.0 ** rng.uniform(-16, 0)
    elif kind == "powers":
        X = np.exp2(rng.integers(-60, 60, (n, d))) * rng.choice([-1.0, 1.0], (n, d))
    elif kind == "rows":
        X *= 10.0 ** rng.uniform(-30, 30, (n, 1))
    y = rng.integers(0, k, n)
    if rng.random() < 0.3:  # separable
        y = np.argsort(np.argsort(X[:, 0])) * k // n
    y[2 : 2 + k] = np.arange(k)[: max(0, n - 2)]
    size = rng.choice([0, 6, 20, 100])
    weights = 10.0 ** rng.uniform(-size, size, n) if size else None
    given = {code: float(10.0 ** rng.uniform(-size, size)) for code in range(k)}
    params = {
        "C": 10.0 ** rng.uniform(-8, 8) if rng.random() < 0.5 else 10.0 ** rng.uniform(-300, 300),
        "class_weight": rng.choice(np.array([None, "balanced", given], dtype=object)),
        "fit_intercept": bool(rng.random() < 0.7),
    }
    return X, y, weights, params


@pytest.mark.filterwarnings("ignore::erasable.core.grid.PrecisionWarning")
@pytest.mark.thorough
@pytest.mark.parametrize("most", [1500, 0], ids=["hessian", "conjugate"])
@pytest.mark.parametrize("seed", range(few(30)))
def test_absurd_problems_keep_the_law(
    seed: int, most: int, monkeypatch: pytest.MonkeyPatch, canonical: list[int]
) -> None:
    """Some led astray: steps without end where there is no curvature, or to and fro."""
    monkeypatch.setattr(work_module, "MOST", most)
    X, y, weights, params = absurd(seed)
    rows = np.arange(len(y))
    model = LogisticRegression(**params).fit(X, y, weights, ids=rows)
    model.delete([0, 1])
    keep = rows[:1:-1]
    given = None if weights is None else weights[keep]
    refit = LogisticRegression(**params).fit(X[keep], y[keep], given, ids=keep)
    assert model.digest() == refit.digest()
    assert not canonical or most == 0  # with a Hessian one can be certain of all of these


@pytest.mark.parametrize("weight", [1e150, 1e-150])
def test_weights_of_which_sums_overflow_are_refused(weight: float) -> None:
    X, y = far(0.0, 1.0, 2), labels(2)
    weights = np.ones(N)
    weights[:2] = weight
    with pytest.raises(MagnitudeError, match="2 weights beyond"):
        LogisticRegression().fit(X, y, weights)
    with pytest.raises(InvalidParameterError, match="class_weight= holds"):
        LogisticRegression(class_weight={0: weight}).fit(X, y)
