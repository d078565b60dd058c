"""The published point is the nearest one of the lattice to the optimum in rational numbers."""

from __future__ import annotations

import itertools
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from erasable.svm import LinearSVC, LinearSVR

STEP = Fraction(1, 2**28)
Numbers = list[Fraction]


def solve(matrix: list[Numbers], right: Numbers) -> Numbers:
    """Solve linear equations by Gauss and Jordan."""
    n = len(right)
    rows = [[*line, value] for line, value in zip(matrix, right, strict=True)]
    for j in range(n):
        pivot = next(i for i in range(j, n) if rows[i][j])
        rows[j], rows[pivot] = rows[pivot], rows[j]
        rows[j] = [value / rows[j][j] for value in rows[j]]
        for i in range(n):
            if i != j:
                rows[i] = [a - rows[i][j] * b for a, b in zip(rows[i], rows[j], strict=True)]
    return [line[-1] for line in rows]


def optimum(
    rows: Any, ends: list[tuple[Fraction | None, Fraction | None]], C: float, scaling: float
) -> Numbers:
    """Return slopes and the intercept; scores between the ends of a row cost nothing."""
    wide = [[*map(Fraction, row), Fraction(1)] for row in rows]
    d = len(wide[0])
    penalties = [1 / Fraction(C)] * (d - 1) + [1 / (Fraction(C) * Fraction(scaling) ** 2)]
    choices = [[None, *(end for end in pair if end is not None)] for pair in ends]
    for targets in itertools.product(*choices):
        matrix = [[Fraction(0)] * d for _ in range(d)]
        right = [Fraction(0)] * d
        for j in range(d):
            matrix[j][j] = penalties[j]
        for row, target in zip(wide, targets, strict=True):
            if target is not None:
                for j in range(d):
                    right[j] += 2 * target * row[j]
                    for k in range(d):
                        matrix[j][k] += 2 * row[j] * row[k]
        theta = solve(matrix, right)
        if all(
            _is_active(row, pair, theta) == target
            for row, pair, target in zip(wide, ends, targets, strict=True)
        ):
            return theta
    raise AssertionError("a strictly convex function has an optimum")


def _is_active(row: Numbers, pair: Any, theta: Numbers) -> Fraction | None:
    score = sum((a * b for a, b in zip(row, theta, strict=True)), Fraction(0))
    low, high = pair
    if low is not None and score < low:
        return low
    return high if high is not None and score > high else None


def is_nearest(values: Any, theta: list[Fraction], units: list[Fraction]) -> bool:
    """Values in units are the exact optimum rounded, half to even, as Python rounds fractions."""
    return all(
        Fraction(float(value)) == round(exact / unit / STEP) * STEP
        for value, exact, unit in zip(values, theta, units, strict=True)
    )


def units_of(model: Any, scale: Fraction = Fraction(1)) -> list[Fraction]:
    """Return what a coefficient of 1 in units is, for data with no offset."""
    state = model.state()["columns"]
    assert not state["origin"].any()
    return [scale * Fraction(2) ** -int(top) for top in state["top"]] + [scale]


@pytest.mark.parametrize("seed", range(12))
def test_a_classifier(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n, C = int(rng.integers(3, 8)), float(rng.choice([0.25, 1.0, 64.0, 4096.0]))
    X = np.round(rng.normal(size=(n, 2)) * 8) / (8 if seed % 2 else 1)
    y = np.arange(n) % 2
    model = LinearSVC(C=C, intercept_scaling=2.0).fit(X, y)
    ends: Any = [(Fraction(1), None) if label else (None, Fraction(-1)) for label in y]
    theta = optimum(X, ends, C, 2.0)
    assert is_nearest(model.state()["coefficients"][0], theta, units_of(model))
    worse = [theta[0] + STEP * units_of(model)[0], *theta[1:]]
    assert not is_nearest(model.state()["coefficients"][0], worse, units_of(model))


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("epsilon", [0.0, 0.25, 8.0])
def test_a_regression(seed: int, epsilon: float) -> None:
    rng = np.random.default_rng(seed)
    n, C = int(rng.integers(1, 6)), float(rng.choice([0.25, 1.0, 64.0]))
    X = np.round(rng.normal(size=(n, 2)) * 8) / (8 if seed % 2 else 1)
    y = np.round(rng.normal(size=n) * 16) / 4
    model = LinearSVR(epsilon=epsilon, C=C).fit(X, y)
    off = Fraction(epsilon)
    ends: Any = [(Fraction(value) - off, Fraction(value) + off) for value in y]
    if epsilon == 0:
        ends = [(Fraction(value), Fraction(value)) for value in y]
    theta = optimum(X, ends, C, 1.0)
    largest = max(float(np.abs(y).max()), 2.0**-1000)
    scale = Fraction(2) ** int(np.ceil(np.log2(largest)))
    values = model.state()["coefficients"][0] / float(scale)
    assert is_nearest(values, [each / scale for each in theta], units_of(model))


def test_ties() -> None:
    """Records that lie exactly at the margin, and optima in the middle of two points."""
    one = LinearSVC(C=0.5, fit_intercept=False).fit([[1.0], [2.0], [0.0]], [1, 1, 0])
    assert one.coef_[0, 0] == 0.5  # where the second has the score 1
    flat = LinearSVR(epsilon=0.5).fit([[1.0], [-1.0], [2.0]], [0.5, -0.5, 0.5])
    np.testing.assert_array_equal(flat.coef_, [0.0])
    np.testing.assert_array_equal(flat.intercept_, [0.0])
    assert flat.delete([0], digest=False).action == "updated"
    np.testing.assert_array_equal(flat.predict([[3.0]]), [0.0])
    half = 2.0**-29  # w = 2 C x y / (1 + 2 C x x) with x = 1 and 2 C = 1: y / 2
    middle = LinearSVR(C=0.5, fit_intercept=False).fit([[1.0]], [1.0 + half * 2])
    assert middle.coef_[0] in (0.5, 0.5 + 2.0**-27)
