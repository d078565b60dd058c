"""What a Hessian claims to be wrong by, after deletions, against 40 digits; and the law."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array

from effort import examples
from erasable import load
from erasable.core.errors import TooFewRecordsError
from erasable.core.records import Records
from erasable.linear_model import LogisticRegression
from erasable.linear_model._metric import invert
from erasable.linear_model._newton import NewtonSolver
from erasable.linear_model._softmax_dense import DenseDesign
from erasable.linear_model._softmax_problem import SoftmaxProblem
from erasable.pipeline import make_pipeline
from erasable.preprocessing import StandardScaler


def true_hessian(problem: SoftmaxProblem, theta: Any, weights: Any, strengths: Any) -> mp.matrix:
    """The textbook's, of dense records in units, at theta, or at logits of the records."""
    design = problem.design
    m, width = problem.shape
    out = mp.matrix(m * width, m * width)
    share = mp.mpf(1) / (m + 1) if problem.coupled else mp.mpf(0)
    for k, h in itertools.product(range(m), repeat=2):
        for j in range(width):
            out[k * width + j, h * width + j] = ((k == h) - share) * mp.mpf(float(strengths[j]))
    for i in np.flatnonzero(weights).tolist():
        unit = zip(design.matrix[i].tolist(), design.origin.tolist(), design.unit, strict=True)
        row = [(mp.mpf(x) - mp.mpf(o)) * mp.mpf(float(u)) for x, o, u in unit]
        row += [mp.mpf(1)] * design.intercept
        if theta.shape == problem.shape:
            z = [mp.fdot(row, map(mp.mpf, theta[k].tolist())) for k in range(m)]
        else:
            z = [mp.mpf(v) for v in theta[i].tolist()]
        e = [mp.exp(v) for v in z]
        p = [v / (mp.fsum(e) + 1) for v in e]
        for k, h in itertools.product(range(m), repeat=2):
            c = mp.mpf(float(weights[i])) * p[k] * ((k == h) - p[h])
            for a, b in itertools.product(range(width), repeat=2):
                out[k * width + a, h * width + b] += c * row[a] * row[b]
    return out


def farthest(inverse: np.ndarray, hessian: mp.matrix) -> mp.mpf:
    """The largest distance to 1 of an eigenvalue of their product."""
    root = mp.cholesky(mp.matrix(inverse))
    values = mp.eigsy(root.T * hessian * root, eigvals_only=True)
    return max(abs(v - 1) for v in values)


def claims(model: LogisticRegression) -> list[tuple[float, mp.mpf]]:
    """Return errors as they are claimed, and what they are: then and there, and here and now."""
    solver = model._accelerator._solver
    if not isinstance(solver, NewtonSolver) or solver.metric is None or solver.metric.is_guess:
        return []
    metric, problem = solver.metric, solver.problem
    found = problem.design.evaluate(solver.theta)
    now = problem.design.weights, problem.strengths
    with mp.workdps(32):
        then = true_hessian(problem, metric.logits, metric.weights, metric.strengths)
        here = true_hessian(problem, solver.theta, *now)
        return [
            (metric.error, farthest(metric.inverse, then)),
            (solver._error(metric, found), farthest(metric.inverse, here)),
        ]


def records(seed: int, n_classes: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    n = 36
    X = rng.normal(size=(n, 2 if n_classes > 2 else 3)) * 10.0 ** rng.integers(-1, 2)
    if seed % 3 == 0:
        X[:, 0] = X[:, 1] + 1e-3 * X[:, 0]
    y = np.arange(n) % n_classes
    return X, y, 10.0 ** rng.uniform(-1, 1, n)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("kind", ["plain", "balanced", "loaded", "scaled"])
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("seed", range(6))
def test_the_claim_bounds_the_truth(seed: int, n_classes: int, kind: str, tmp_path: Path) -> None:
    X, y, weights = records(seed, n_classes)
    rng, ids = np.random.default_rng(seed), np.arange(len(y))
    params = {"C": 10.0 ** rng.integers(-1, 2), "fit_intercept": bool(seed % 2)}
    if kind == "balanced":
        params["class_weight"] = "balanced"
    if kind == "scaled":
        whole = make_pipeline(StandardScaler(), LogisticRegression(**params)).fit(X, y, ids=ids)
    else:
        whole = LogisticRegression(**params).fit(X, y, weights, ids=ids)
    if kind == "loaded":
        whole.save(tmp_path / "model")
        whole = load(tmp_path / "model", Records(X, y, sample_weight=weights, ids=ids))
    model, told, left = whole[-1] if kind == "scaled" else whole, 0, rng.permutation(ids)
    for count in (1, 1, 2, 5, 1):
        gone, left = left[:count], left[count:]
        whole.delete(gone, digest=bool(rng.integers(0, 2)))
        for claimed, true in claims(model):
            assert true <= claimed
            told += claimed < 0.5
    assert told > 0


def test_a_claim_with_other_weights_would_be_wrong() -> None:
    """The negative control: rows are taken out with other weights than they were put in with."""
    rng = np.random.default_rng(0)
    X, codes = rng.normal(size=(30, 2)), (np.arange(30) % 2).astype(np.int32)
    caught = 0
    for factor in (1.0, 1.3):
        design = DenseDesign(X, np.ones(30), codes, 1, True, True, np.zeros(2), np.ones(2))
        problem = SoftmaxProblem(design, np.array([1.0, 1.0, 0.0]), False)
        logits = rng.normal(size=(30, 1))
        weights = design.weights.copy()
        metric = invert(problem.hessian(logits), 1e-12, logits, weights, problem.strengths)
        assert metric is not None
        metric.weights[7] *= factor
        assert metric.downdate(design, np.array([7]), design.rows(np.array([7])))
        with mp.workdps(32):
            hessian = true_hessian(problem, logits, metric.weights, metric.strengths)
            caught += farthest(metric.inverse, hessian) > metric.error
    assert caught == 1
    assert not metric.weights[7]


@pytest.mark.parametrize("n_gone", [2, 12], ids=["few", "many"])
@pytest.mark.parametrize("m", [1, 2, 4])
def test_rows_of_any_certainty_are_taken_out(m: int, n_gone: int) -> None:
    """Probabilities down to 1e-30: what float64 takes for a class without any curvature."""
    for seed in range(4):
        rng = np.random.default_rng(seed)
        n, d = 40, 2
        X, codes = rng.uniform(-1, 1, (n, d)), (np.arange(n) % (m + 1)).astype(np.int32)
        design = DenseDesign(X, np.ones(n), codes, m, True, True, np.zeros(d), np.ones(d))
        strengths = np.append(np.full(d, 10.0 ** rng.uniform(-4, 2)), 1e-3)
        problem = SoftmaxProblem(design, strengths, False)
        logits = rng.normal(size=(n, m)) - rng.choice([0.0, 20.0, 60.0], m)
        logits[:n_gone] += rng.choice([-5.0, 0.0, 3.0], (n_gone, m))
        weights = design.weights
        metric = invert(problem.hessian(logits), 1e-13, logits, weights, strengths)
        assert metric is not None
        rows = np.arange(n_gone)
        if not metric.downdate(design, rows, design.rows(rows)):
            continue
        with mp.workdps(60):
            hessian = true_hessian(problem, metric.logits, metric.weights, strengths)
            assert farthest(metric.inverse, hessian) <= metric.error


@settings(max_examples=examples(25))
@given(st.integers(0, 2**32), st.data())
def test_balanced_weights_and_files_keep_the_law(
    tmp_path_factory: pytest.TempPathFactory, seed: int, data: st.DataObject
) -> None:
    """Deletions, some unseen, files written and read between them: always a refit's bits."""
    rng = np.random.default_rng(seed)
    n, n_classes = int(rng.integers(10, 40)), int(rng.integers(2, 4))
    X, y = rng.normal(size=(n, 3)), rng.integers(0, n_classes, n)
    X[rng.random(n) < 0.3] = 0.0
    weights = rng.choice([np.ones(n), 10.0 ** rng.uniform(-3, 3, n)])
    table: Any = csr_array(X) if rng.random() < 0.3 else X
    params = {
        "C": 10.0 ** rng.uniform(-3, 4),
        "fit_intercept": bool(rng.integers(0, 2)),
        "class_weight": "balanced",
    }
    ids, path = np.arange(n), tmp_path_factory.mktemp("model") / "model"
    try:
        model = LogisticRegression(**params).fit(table, y, weights, ids=ids)
        for _ in range(data.draw(st.integers(1, 5))):
            what = data.draw(st.sampled_from(["one", "some", "load"]))
            if what == "load":
                model.save(path)
                left = model.ids_
                held = Records(table[left], y[left], sample_weight=weights[left], ids=left)
                model = load(path, held)
            else:
                gone = rng.permutation(model.ids_)[: 1 if what == "one" else 4]
                model.delete(gone, digest=data.draw(st.booleans()))
    except TooFewRecordsError:
        return
    keep = rng.permutation(model.ids_)
    refit = LogisticRegression(**params).fit(table[keep], y[keep], weights[keep], ids=keep)
    assert model.digest() == refit.digest()
