"""Attempts to make a published point wrong, or a deletion unlike a refit."""

from __future__ import annotations

from io import StringIO
from pathlib import Path

import mpmath as mp
import numpy as np
import pytest

from erasable import load
from erasable.core.records import Records
from erasable.linear_model import LogisticRegression
from erasable.linear_model import _logistic_work as work_module
from erasable.linear_model import _newton as newton_module
from erasable.linear_model import _softmax_dense as dense_module
from erasable.linear_model._lattice import STEP
from erasable.linear_model._solver import Solver
from linear_model.logistic_oracle import expected, optimum

pytestmark = pytest.mark.filterwarnings("ignore::erasable.core.grid.PrecisionWarning")


def teetering(seed: int, shift: float = 0.06) -> tuple[np.ndarray, np.ndarray, np.ndarray, int]:
    """Return records, classes and weights in which balanced weights go away and come back.

    The first `n` records teach. Of the next four, which are 0 and so teach nothing without an
    intercept but count in the balance, two are to be deleted at different times; and then two twins
    of different classes, whose gradients cancel at the optimum. Without the first of the four, the
    weights of the classes differ by `shift`; without all of these, they are 1 again.
    """
    n, d, C, n_each = 400, 150, 0.5, 800.0
    rng = np.random.default_rng(seed)
    X = np.clip(rng.normal(size=(n, d)) / 3, -1, 1)
    X[0], X[1] = 1.0, -1.0
    y = (X @ rng.normal(size=d) * 0.5 + rng.logistic(size=n) > 0).astype(int)
    theta = LogisticRegression(C, fit_intercept=False).fit(X, y).coef_[0]
    p = 1 / (1 + np.exp(-X @ theta))
    hessian = (X * (p * (1 - p))[:, None]).T @ X + np.eye(d) / C
    twin = rng.normal(size=d) / 3
    twin = np.clip(twin + theta * (np.log(9) - twin @ theta) / (theta @ theta), -1, 1)
    p = 1 / (1 + np.exp(-twin @ theta))
    weight = 0.39 / 0.61 / (twin @ np.linalg.solve(hessian, twin)) / (p * (1 - p))
    twins, counts = weight * np.array([1 - p, p]), np.bincount(y)
    first = 2 * shift * n_each
    second = first + twins[0] - twins[1]
    rest = n_each - np.array([first, second]) - counts - twins
    weights = np.r_[np.ones(n), first, rest[0], second, rest[1], twins]
    rows = np.vstack([X, np.zeros((4, d)), twin, twin])
    return rows, np.r_[y, 0, 0, 1, 1, 0, 1], weights, n


@pytest.mark.parametrize("seed", [2, 4])
def test_weights_that_went_away_and_came_back(seed: int, tmp_path: Path) -> None:
    X, y, weights, n = teetering(seed)
    params = {"C": 0.5, "fit_intercept": False, "class_weight": "balanced"}
    model = LogisticRegression(**params).fit(X, y, weights, ids=np.arange(n + 6))
    model.save(tmp_path / "model")  # what is loaded has a Hessian of the optimum itself
    model = load(tmp_path / "model", Records(X, y, sample_weight=weights, ids=np.arange(n + 6)))
    model.delete([n])
    model.delete([n + 2, n + 4, n + 5])
    keep = np.r_[:n, n + 1, n + 3]
    refit = LogisticRegression(**params).fit(X[keep], y[keep], weights[keep], ids=keep)
    assert model.digest() == refit.digest()


KINDS = ["mirrored", "twins", "opposed", "alone", "powers", "outlier"]


def awkward(kind: str, seed: int, n_classes: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    n = 4 + 2 * n_classes
    X, y = rng.normal(size=(n, 2)), np.arange(n) % n_classes
    if kind == "mirrored":  # the intercepts of opposite classes are the same
        X, y = np.vstack([X, -X]), np.r_[y, n_classes - 1 - y]
    elif kind == "twins":
        X, y = np.vstack([X, X]), np.r_[y, y]
        X[:, 1] = X[:, 0]
    elif kind == "opposed":  # for two classes the optimum is 0
        X, y = np.vstack([X, X]), np.r_[y, (y + 1) % n_classes]
    elif kind == "alone":
        y[n_classes:] = 0
    elif kind == "powers":
        X = np.exp2(rng.integers(-16, 17, (n, 2))) * rng.choice([-1.0, 1.0], (n, 2))
    elif kind == "outlier":
        X[0] *= 1e4
    return X, y


def agrees(model: LogisticRegression, X: np.ndarray, y: np.ndarray, C: float) -> None:
    true = optimum(X, y, C)
    np.testing.assert_array_equal(model.state()["coefficients"], expected(model, true))
    # It is not luck: a step further off, the oracle would tell.
    with mp.workdps(60):
        moved = [[v + mp.mpf(STEP) * 2 for v in row] for row in true]
    if not np.any(model.state()["columns"]["top"] > 0):
        assert not np.array_equal(model.state()["coefficients"], expected(model, moved))


@pytest.mark.parametrize("path", ["newton", "conjugate", "wide", "precise"])
@pytest.mark.parametrize("kind", KINDS)
def test_every_path_finds_the_oracles_point(
    kind: str, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if path == "conjugate":
        monkeypatch.setattr(work_module, "MOST", 0)
    elif path == "wide":
        monkeypatch.setattr(dense_module, "_WIDEST", 0)
    elif path == "precise":
        monkeypatch.setattr(newton_module, "invert", lambda *_: None)
    seed = KINDS.index(kind)
    n_classes, C = 2 + seed % 2, 10.0 ** (seed % 3 - 1)
    X, y = awkward(kind, seed, n_classes)
    model = LogisticRegression(C).fit(X, y, ids=np.arange(len(y)))
    agrees(model, X, y, C)
    gone = [len(y) - 1, len(y) - 2]
    model.delete(gone)
    if len(set(y[:-2].tolist())) == n_classes:
        agrees(model, X[:-2], y[:-2], C)
    refit = LogisticRegression(C).fit(X[:-2], y[:-2], ids=np.arange(len(y) - 2))
    assert model.digest() == refit.digest()


@pytest.mark.parametrize("scale", [1e-320, 1e-200, 1e-100, 1e100, 1e140])
def test_absurd_scales(scale: float) -> None:
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(20, 3)) * [scale, 1.0, 1.0], np.arange(20) % 2
    model = LogisticRegression().fit(X, y, ids=np.arange(20))
    model.delete([0, 19])
    refit = LogisticRegression().fit(X[1:-1], y[1:-1], ids=np.arange(1, 19))
    assert model.digest() == refit.digest()
    assert model.predict_proba(X).tobytes() == refit.predict_proba(X).tobytes()


def test_a_gradient_that_is_nothing_but_noise_is_uncertain_at_worst() -> None:
    X = 1e8 * np.random.default_rng(0).normal(size=(6, 1600))
    X, y = np.vstack([X, X]), np.repeat([0, 1], 6)  # every record has both classes: 0 is optimal
    assert not LogisticRegression(1e4).fit(X, y).coef_.any()


VALLEY = np.loadtxt(
    StringIO("""
    1 -1 -2 0
    125478.664 2 795134.94 -1
    0 293113.16 -1 3
    1 -204565.5 2 0
    -1 135245.55 -529440.8 872284.75
    0 1.001 -2 2
    3 848842.1 -808688.25 -826435.94
    3 968611.9 0 2
    -2 1 -2 359731.3
    2 0.6931472 2 2
    -1 999999 -2 2
    919042.1 1 0 -1000000
    -1 2 -2 703976.1
    1 -2 3 661157.5
    1 -511456.25 894522.56 -2
    0 114231.58 3 -1
    -1 2 648776.3 -1
    -109601.74 0 -3 2
    1 -3 0 -2
    0 2e-38 2 2
    362880 2 999999 -2
    """),
    dtype=np.float32,
).astype(np.float64)


@pytest.mark.parametrize("gone", [[4, 1, 8, 2, 10, 18, 17], [8, 2, 4], []], ids=len)
def test_a_valley_that_bends(gone: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    """Steps lead down and to where the next ones are longer: there the way is not at its end."""
    told = []
    search = Solver.find_lattice_point

    def watched(self: Solver, *given: float) -> tuple[np.ndarray, bool]:
        found = search(self, *given)
        told.append(found[1])
        return found

    ids = np.arange(len(VALLEY))
    y, left = ids // 7, np.delete(ids, gone)
    settings = {"C": 1e4, "classes": [0, 1, 2, 5]}
    monkeypatch.setattr(Solver, "find_lattice_point", watched)
    model = LogisticRegression(**settings).fit(VALLEY, y, ids=ids)
    model.digest()
    model.delete(gone)
    for order in (left, left[::-1]):
        refit = LogisticRegression(**settings).fit(VALLEY[order], y[order], ids=ids[order])
        assert refit.digest() == model.digest()
    assert all(told)
