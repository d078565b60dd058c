"""Data for least squares, the law on them, and answers in sixty digits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import mpmath
import numpy as np
from hypothesis import strategies as st
from scipy.sparse import csr_array
from sklearn.base import clone

from erasable.core.grid import Grid

IDS = 100
"""Id of the first row."""


@dataclass(frozen=True)
class Case:
    """Rows, targets and weights."""

    X: Any
    y: np.ndarray
    weights: np.ndarray | None = None

    def __len__(self) -> int:
        return len(self.y)

    def take(self, rows: Any) -> Case:
        rows = np.asarray(rows)
        weights = None if self.weights is None else self.weights[rows]
        return Case(self.X[rows], self.y[rows], weights)

    def fit(self, model: Any, rows: Any = None) -> Any:
        rows = np.arange(len(self)) if rows is None else np.asarray(rows)
        some = self.take(rows)
        return clone(model).fit(some.X, some.y, sample_weight=some.weights, ids=IDS + rows)


@st.composite
def cases(draw: st.DrawFn, least: int = 2, most: int = 25) -> Case:
    """Skewed, offset, constant, collinear and whole-number columns; dense, float32 or sparse."""
    n = draw(st.integers(least, most))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    kinds = {
        "normal": rng.normal(size=n),
        "skewed": np.exp(4 * rng.normal(size=n)),
        "constant": np.full(n, 3.7),
        "offset": 1e9 + rng.normal(size=n),
        "whole": rng.integers(-5, 5, n).astype(np.float64),
        "rare": (rng.random(n) < 0.2).astype(np.float64),
        "zero": np.zeros(n),
    }
    chosen = draw(st.lists(st.sampled_from(sorted(kinds)), min_size=1, max_size=4))
    X: Any = np.column_stack([kinds[kind] for kind in chosen])
    if draw(st.booleans()):
        X = np.column_stack([X, X.sum(axis=1)])
    form = draw(st.sampled_from(["dense", "dense", "float32", "sparse"]))
    if form == "float32":
        X = X.astype(np.float32)
    elif form == "sparse":
        X = csr_array(X * (rng.random(X.shape) < 0.6))
    y = 1e3 * rng.normal(size=(n, 2)) + draw(st.sampled_from([0.0, 1e6]))
    y = {"one": y[:, 0], "two": y, "whole": np.rint(y[:, 0]).astype(np.int64)}[
        draw(st.sampled_from(["one", "two", "whole"]))
    ]
    weights = draw(st.sampled_from([None, rng.random(n), 1.0 + rng.integers(0, 3, n)]))
    if weights is not None and draw(st.booleans()):
        weights[1 : 1 + n // 3] = 0.0
    return Case(X, y, weights)


def exact(case: Case, alpha: Any = 0.0, intercept: bool = True) -> tuple[np.ndarray, np.ndarray]:
    """Solve the penalised normal equations of the gridded data in sixty digits.

    Returns coefficients of shape (n_targets, n_features), and intercepts.
    """
    X = np.asarray(case.X, dtype=np.float64)
    Y = case.y.reshape(len(case), -1).astype(np.float64)
    o, d = Y.shape[1], X.shape[1]
    alphas = np.broadcast_to(np.asarray(alpha, dtype=np.float64), o)
    with mpmath.workdps(60):
        rows, constant, targets = _gridded(X, Y, case.weights)
        if intercept:
            rows = [[*row, one] for row, one in zip(rows, constant, strict=True)]
        A = mpmath.matrix(rows)
        moments = A.T * A
        coefficients, intercepts = np.zeros((o, d)), np.zeros(o)
        for k in range(o):
            charged = moments.copy()
            for j in range(d):
                charged[j, j] += mpmath.mpf(float(alphas[k]))
            found = mpmath.lu_solve(charged, A.T * mpmath.matrix([row[k] for row in targets]))
            coefficients[k] = [float(found[j]) for j in range(d)]
            intercepts[k] = float(found[d]) if intercept else 0.0
    return coefficients, intercepts


def _gridded(X: np.ndarray, Y: np.ndarray, weights: np.ndarray | None) -> Any:
    """What is solved: rows, constants and targets, as the models round them."""
    if weights is None:
        one = [mpmath.mpf(1)] * len(X)
        return _on_grid(X), one, _on_grid(Y)
    told = weights > 0
    root = np.sqrt(weights[told])[:, None]
    of_x, of_y = Grid.fit(X[told]).origin, Grid.fit(Y[told]).origin
    (constant,) = zip(*_on_grid(root), strict=True)
    found = [
        [
            [value + one * mpmath.mpf(o) for value, o in zip(row, origin.tolist(), strict=True)]
            for row, one in zip(_on_grid(root * (table[told] - origin)), constant, strict=True)
        ]
        for table, origin in ((X, of_x), (Y, of_y))
    ]
    return found[0], list(constant), found[1]


def _on_grid(table: np.ndarray) -> list[list[Any]]:
    grid = Grid.fit(table, warn=False)
    origin = [mpmath.mpf(o) for o in grid.origin.tolist()]
    return [
        [mpmath.mpf(value) + o for value, o in zip(row, origin, strict=True)]
        for row in grid.apply(table).tolist()
    ]


def scaled_error(found: Any, wanted: Any, X: Any) -> float:
    """Largest error of coefficients in units of the targets that their columns move."""
    spread = np.asarray(X, dtype=np.float64).std(axis=0)
    spread[spread == 0] = 1.0
    found, wanted = np.atleast_2d(found) * spread, np.atleast_2d(wanted) * spread
    return float((np.abs(found - wanted).max(axis=1) / np.abs(wanted).max(axis=1)).max())
