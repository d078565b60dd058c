"""The optimum of a logistic regression to 50 digits, and small problems to find it for."""

from __future__ import annotations

import itertools

import mpmath as mp
import numpy as np

from erasable.linear_model import LogisticRegression
from erasable.linear_model._lattice import STEP


def optimum(
    X: np.ndarray,
    y: np.ndarray,
    C: float,
    intercept: bool = True,
    weights: np.ndarray | None = None,
) -> list[list[mp.mpf]]:
    """Coefficients and intercepts of every class (of the second of two), to 50 digits.

    Newton's method on the textbook's objective, all in mpmath: no formula of ours. Two classes
    are one logit; more are one each, of which the last is 0 on the way, and centred at the end.
    """
    with mp.workdps(60):
        n, d = X.shape
        labels = sorted(set(y.tolist()))
        m = len(labels) - 1
        rows = [[mp.mpf(float(v)) for v in row] + ([mp.mpf(1)] if intercept else []) for row in X]
        width = d + intercept
        s = [mp.mpf(1 if weights is None else float(weights[i])) for i in range(n)]
        share = mp.mpf(0) if m == 1 else mp.mpf(1) / (m + 1)
        code = [labels.index(v) - (m == 1) for v in y.tolist()]  # -1 or m: the one of logit 0
        theta = mp.matrix(m * width, 1)
        for _ in range(400):
            gradient, hessian = mp.matrix(m * width, 1), mp.matrix(m * width, m * width)
            for i in range(n):
                z = [mp.fdot(rows[i], theta[k * width : (k + 1) * width]) for k in range(m)]
                top = max([*z, mp.mpf(0)])
                e = [mp.exp(v - top) for v in z]
                total = mp.fsum([*e, mp.exp(-top)])
                p = [v / total for v in e]
                for k in range(m):
                    r = s[i] * (p[k] - (code[i] == k))
                    for a in range(width):
                        gradient[k * width + a] += r * rows[i][a]
                    for h in range(m):
                        c = s[i] * (p[k] * (k == h) - p[k] * p[h])
                        for a, b in itertools.product(range(width), repeat=2):
                            hessian[k * width + a, h * width + b] += c * rows[i][a] * rows[i][b]
            for k, h in itertools.product(range(m), repeat=2):
                for a in range(d):
                    pull = ((k == h) - share) / mp.mpf(C)
                    gradient[k * width + a] += pull * theta[h * width + a]
                    hessian[k * width + a, h * width + a] += pull
            step = mp.lu_solve(hessian, gradient)
            decrement = mp.sqrt(abs((gradient.T * step)[0]))
            theta -= step / (1 + decrement) if decrement > 0.1 else step
            if decrement < mp.mpf(10) ** -45:
                break
        else:
            raise AssertionError("the oracle did not converge")
        found = [list(theta[k * width : (k + 1) * width]) for k in range(m)]
        if m == 1:
            return found
        found.append([mp.mpf(0)] * width)
        mean = [mp.fsum(row[a] for row in found) / (m + 1) for a in range(width)]
        return [[row[a] - mean[a] for a in range(width)] for row in found]


def expected(model: LogisticRegression, true: list[list[mp.mpf]]) -> np.ndarray:
    """The oracle's optimum on the model's lattice."""
    columns = model.state()["columns"]
    out = []
    with mp.workdps(60):
        for row in true:
            slopes = row[: columns["top"].size]
            line = [v * mp.mpf(2) ** int(t) for v, t in zip(slopes, columns["top"], strict=True)]
            if len(row) > len(slopes):
                moved = mp.fdot(slopes, [mp.mpf(float(v)) for v in columns["origin"]])
                line.append(row[-1] + moved)
            out.append([float(mp.nint(v / mp.mpf(STEP))) * STEP for v in line])
    return np.array(out) + 0.0


def small(seed: int, kind: str, n_classes: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    n = 5 + 3 * n_classes
    X = rng.normal(size=(n, 2))
    if kind == "offset":
        X[:, 0] += 1e9
    elif kind == "collinear":
        X[:, 1] = X[:, 0]
    elif kind == "constant":
        X[:, 1] = 3.7
    elif kind == "scales":
        X *= [1e6, 1e-7]
    elif kind == "whole":
        X = np.rint(2 * X)
    y = np.argsort(np.argsort(X[:, 0])) * n_classes // n
    if kind != "separable":
        y[rng.permutation(n)[: n // 2]] = rng.integers(0, n_classes, n // 2)
        y[:n_classes] = np.arange(n_classes)
    return X, y
