"""The parts of the certificate: arithmetic, gradients and Hessians as right as they say."""

from __future__ import annotations

from typing import Any

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array

from effort import examples
from erasable.core._function_kernels import EXP_ERROR, expose
from erasable.linear_model._certificate import distance, distance_after_step
from erasable.linear_model._conjugate import Convexity
from erasable.linear_model._lattice import pair_divide, pair_sum, pair_times
from erasable.linear_model._metric import invert, invert_precisely
from erasable.linear_model._softmax_dense import DenseDesign
from erasable.linear_model._softmax_exact import (
    add_double,
    divide_double,
    exp_doubles,
    times_double,
)
from erasable.linear_model._softmax_problem import SoftmaxProblem
from erasable.linear_model._softmax_sparse import SparseDesign
from linear_model.logistic_oracle import optimum, small
from subroutines import standalone

add_double, divide_double, times_double = map(standalone, (add_double, divide_double, times_double))
exp_doubles, expose = map(standalone, (exp_doubles, expose))

UNIT = 2.0**-53

# --------------------------------------------------------------------------- arithmetic

ordinary = st.floats(-1e6, 1e6).filter(lambda x: x == 0 or abs(x) > 1e-6)


@given(ordinary, ordinary, st.floats(-1, 1), st.floats(-1, 1))
def test_pairs_keep_a_hundred_bits(a: float, c: float, b: float, d: float) -> None:
    b, d = b * abs(a) * UNIT, d * abs(c) * UNIT
    with mp.workprec(400):
        one, two = mp.mpf(a) + mp.mpf(b), mp.mpf(c) + mp.mpf(d)
        size = abs(one) + abs(two)
        cases: list[tuple[Any, Any, Any]] = [
            (add_double(a, b, c, d), one + two, size),
            (times_double(a, b, c, d), one * two, abs(one * two)),
            (pair_sum((np.array(a), np.array(b)), (np.array(c), np.array(d))), one + two, size),
            (pair_times((np.array(a), np.array(b)), c), one * mp.mpf(c), abs(one * mp.mpf(c))),
            (pair_divide((np.array(a), np.array(b)), 7.0), one / 7, abs(one)),
        ]
        if c != 0:
            cases.append((divide_double(a, b, c, d), one / two, abs(one / two)))
        for (high, low), exact, scale in cases:
            wrong = abs(mp.mpf(float(high)) + mp.mpf(float(low)) - exact)
            assert wrong <= scale * mp.mpf(2) ** -100


def test_the_exponentials() -> None:
    rng = np.random.default_rng(0)
    x = np.concatenate([rng.uniform(-700, 700, 2000), 10.0 ** rng.uniform(-300, 2, 200), [0, 700]])
    out = x.copy()
    expose(out, np.zeros(x.size, dtype=np.int64))
    with mp.workprec(300):
        for value, found in zip(x.tolist(), out.tolist(), strict=True):
            true = mp.exp(mp.mpf(value))
            assert abs(found / true - 1) < 0.5 * EXP_ERROR
        values = np.array([*(-np.abs(x))[::10].tolist(), 0.0, -699.0, -700.0, -1e300])
        highs, lows = values.copy(), values * 1e-17
        exp_doubles(highs, lows, np.zeros(values.size, dtype=np.int64))
        for value, high, rest in zip(values, highs, lows, strict=True):
            true = mp.exp(mp.mpf(max(value, -700.0)) * (1 + (value > -700.0) * mp.mpf(1e-17)))
            wrong = abs(mp.mpf(float(high)) + mp.mpf(float(rest)) - true)
            assert wrong < true * mp.mpf(2) ** -100 + mp.mpf(2) ** -1060
    limits = np.array([-1e300, 1e300, np.nan, -np.inf])
    expose(limits, np.zeros(4, dtype=np.int64))
    assert np.isfinite(limits).all()


# --------------------------------------------------------------------------- designs


def designs(
    seed: int, m: int, reference: bool, intercept: bool = True
) -> tuple[DenseDesign, SparseDesign, np.ndarray]:
    rng = np.random.default_rng(seed)
    n, d = 70, 11
    X = rng.normal(size=(n, d)) * (rng.random((n, d)) < 0.5)
    weights = rng.random(n) * (rng.random(n) < 0.9)
    codes = rng.integers(0, m + reference, n).astype(np.int32)
    rest = (weights, codes, m, reference, intercept, np.zeros(d), np.ldexp(1.0, -np.arange(d) % 3))
    theta = rng.normal(size=(m, d + intercept)) * 3
    return DenseDesign(X, *rest), SparseDesign(csr_array(X), *rest), theta


@pytest.mark.parametrize(("m", "reference"), [(1, True), (2, True), (4, True), (3, False)])
@pytest.mark.parametrize("intercept", [True, False])
def test_gradients_are_as_right_as_they_say(m: int, reference: bool, intercept: bool) -> None:
    for seed in range(5):
        dense, sparse, theta = designs(seed, m, reference, intercept)
        truth = dense.evaluate_exactly(theta, np.zeros_like(theta))
        again = sparse.evaluate_exactly(theta, np.zeros_like(theta))
        assert np.abs(truth.gradient - again.gradient).max() <= UNIT * np.abs(theta).max()
        for design in (dense, sparse):
            found = design.evaluate(theta)
            wrong = np.abs(found.gradient - truth.gradient)
            assert (wrong <= found.direct + 2 * UNIT * np.abs(truth.gradient)).all()
            assert found.direct.max() < 1e-10
            # The same in the norm of the Hessian, which is what the certificate goes by.
            problem = SoftmaxProblem(design, np.r_[np.ones(11), np.zeros(int(intercept))], False)
            if reference:
                metric = invert(
                    problem.hessian(found.logits),
                    1e-9,
                    found.logits,
                    design.weights,
                    problem.strengths,
                )
                assert metric is not None
                norm = metric.decrement(found.gradient - truth.gradient)[0]
                assert norm <= found.energy + metric.noise(found.summing)[0] + 1e-18
                sharp = min(design.energy(theta, found.logits), found.energy)
                assert norm <= sharp + metric.noise(found.summing)[0] + 1e-18


@pytest.mark.parametrize(("m", "reference"), [(1, True), (2, False)])
@pytest.mark.parametrize("size", [1.0, 300.0])
def test_exact_gradients_are_those_of_a_hundred_digits(
    m: int, reference: bool, size: float
) -> None:
    """With more records than are taken at once, and logits beyond what exponentials can tell."""
    rng = np.random.default_rng(m)
    n, d = 300, 3
    X = rng.normal(size=(n, d)) * (rng.random((n, d)) < 0.7)
    weights, codes = rng.random(n) * (rng.random(n) < 0.9), rng.integers(0, m + reference, n)
    rest = (weights, codes.astype(np.int32), m, reference, True, np.zeros(d), np.ones(d))
    theta, low = size * rng.normal(size=(m, d + 1)), 1e-20 * rng.normal(size=(m, d + 1))
    with mp.workdps(60):
        rows = [[mp.mpf(x) for x in row] + [mp.mpf(1)] for row in X.tolist()]
        slopes = [[mp.mpf(a) + mp.mpf(b) for a, b in zip(*each, strict=True)]
                  for each in zip(theta.tolist(), low.tolist(), strict=True)]  # fmt: skip
        wanted = [[mp.mpf(0)] * (d + 1) for _ in range(m)]
        for row, weight, code in zip(rows, weights.tolist(), codes.tolist(), strict=True):
            powers = [mp.exp(mp.fdot(row, each)) for each in slopes] + [mp.mpf(1)] * reference
            for k in range(m):
                share = mp.mpf(weight) * (powers[k] / mp.fsum(powers) - (k == code))
                wanted[k] = [w + share * x for w, x in zip(wanted[k], row, strict=True)]
        for design in (DenseDesign(X, *rest), SparseDesign(csr_array(X), *rest)):
            found = design.evaluate_exactly(theta, low)
            for k in range(m):
                for j in range(d + 1):
                    told = mp.mpf(float(found.gradient[k, j])) + mp.mpf(float(found.rest[k, j]))
                    assert abs(told - wanted[k][j]) < size * mp.mpf(2) ** -80


@pytest.mark.parametrize(("m", "reference"), [(1, True), (3, True), (3, False)])
def test_hessians(m: int, reference: bool) -> None:
    dense, sparse, theta = designs(1, m, reference)
    logits = dense.evaluate(theta).logits
    chances = dense.chances(logits)
    hessian = dense.hessian(logits)
    step = 1e-4
    numeric = np.zeros_like(hessian)
    for c in range(theta.size):
        moved = np.zeros(theta.size)
        moved[c] = step
        moved = moved.reshape(theta.shape)
        up, down = dense.evaluate(theta + moved).gradient, dense.evaluate(theta - moved).gradient
        numeric[:, c] = ((up - down) / (2 * step)).ravel()
    np.testing.assert_allclose(hessian, numeric, atol=1e-6 * np.abs(hessian).max())
    np.testing.assert_allclose(sparse.hessian(logits), hessian, atol=1e-13)
    for design in (dense, sparse):
        high, low = design.hessian_precisely(logits)
        np.testing.assert_allclose(high, hessian, atol=1e-13)
        assert np.abs(low).max() < 1e-14
        np.testing.assert_allclose(
            design.multiply(chances, theta).ravel(), hessian @ theta.ravel(), atol=1e-12
        )
        np.testing.assert_allclose(design.diagonal(chances).ravel(), np.diagonal(hessian))


# --------------------------------------------------------------------------- certificates


@pytest.mark.parametrize("coupled", [False, True])
def test_a_metric_is_as_right_as_it_says(coupled: bool) -> None:
    m = 3 if coupled else 1
    dense, _, theta = designs(2, m, True)
    strengths = np.r_[np.full(11, 0.5), 0.0]
    problem = SoftmaxProblem(dense, strengths, coupled)
    logits = dense.evaluate(theta).logits
    hessian = problem.hessian(logits)
    metric = invert(hessian.copy(), 1e-12, logits, dense.weights, strengths)
    precise = invert_precisely(
        problem.hessian_precisely(logits), 1e-12, logits, dense.weights, strengths
    )
    assert metric is not None
    assert precise is not None
    np.testing.assert_allclose(precise.inverse, np.linalg.inv(hessian), rtol=1e-9)
    with mp.workprec(300):
        for held, error in ((metric, metric.error), (precise, precise.error)):
            product = mp.matrix(held.inverse) * mp.matrix(hessian)
            for i in range(hessian.shape[0]):
                product[i, i] -= 1
            assert mp.mnorm(product, 2 if product.rows < 1 else "f") <= error + 1e-10
            assert error < 1e-6
    flat = np.arange(1.0, theta.size + 1).reshape(theta.shape)
    wanted = np.sqrt(flat.ravel() @ np.linalg.solve(hessian, flat.ravel()))
    for held in (metric, precise):
        size, step, _ = held.decrement(flat)
        assert size == pytest.approx(wanted, rel=1e-3)
        np.testing.assert_allclose(step.ravel(), np.linalg.solve(hessian, flat.ravel()), rtol=1e-9)
        # The reach bounds what a change does to the logits of any record.
        rng = np.random.default_rng(0)
        units = dense.rows(np.flatnonzero(dense.weights > 0))
        for _ in range(20):
            change = rng.normal(size=theta.shape)
            norm = np.sqrt(change.ravel() @ hessian @ change.ravel())
            moved = np.column_stack([units @ change.T, np.zeros(len(units))])
            assert np.ptp(moved, axis=1).max() <= held.reach(dense) * norm


@pytest.mark.parametrize("m", [1, 3])
def test_a_metric_forgets_rows(m: int) -> None:
    dense, _, theta = designs(4, m, True)
    strengths = np.r_[np.full(11, 20.0), 1.0]
    problem = SoftmaxProblem(dense, strengths, False)
    logits = dense.evaluate(theta).logits
    metric = invert(problem.hessian(logits), 1e-12, logits, dense.weights, strengths)
    assert metric is not None
    rows = np.flatnonzero(dense.weights > 0)[:2]
    assert metric.downdate(dense, rows, dense.rows(rows))
    dense.forget(rows)
    np.testing.assert_allclose(
        metric.inverse, np.linalg.inv(problem.hessian(logits)), atol=1e-12, rtol=1e-9
    )
    assert not metric.logits[rows].any()
    many = np.flatnonzero(dense.weights > 0)[:12]
    assert metric.downdate(dense, many, dense.rows(many))
    dense.forget(many)
    held = problem.hessian(logits)
    np.testing.assert_allclose(metric.inverse, np.linalg.inv(held), atol=1e-12, rtol=1e-9)
    assert np.abs(np.linalg.eigvals(metric.inverse @ held) - 1.0).max() <= metric.error < 1e-6
    # What is left without most of the records is too little to be told from what goes.
    strengths = np.r_[np.full(11, 1e-3), 1.0]
    problem = SoftmaxProblem(dense, strengths, False)
    metric = invert(problem.hessian(logits), 1e-12, logits, dense.weights, strengths)
    assert metric is not None
    many = np.flatnonzero(dense.weights > 0)[:40]
    assert not metric.downdate(dense, many, dense.rows(many))


def test_a_singular_hessian_has_no_inverse() -> None:
    ones = np.ones((2, 2))
    assert invert(ones.copy(), 0.0, np.zeros((1, 1)), ones[0], ones[0]) is None
    pair = (ones.copy(), np.zeros((2, 2)))
    assert invert_precisely(pair, 0.0, np.zeros((1, 1)), ones[0], ones[0]) is None


def test_precision_beyond_float64() -> None:
    """Two columns that float64 takes for one: 100 bits can tell them apart."""
    high = np.array([[1.0, 1.0], [1.0, 1.0]])
    low = np.array([[0.0, 0.0], [0.0, 2.0**-60]])
    found = invert_precisely((high, low), 0.0, np.zeros((1, 1)), np.ones(1), np.ones(2))
    assert found is not None
    true = 2.0**60 * np.array([[1, -1], [-1, 1]])
    np.testing.assert_allclose(found.inverse, true, rtol=1e-8)
    # It is held as an upper bound, by so much that it is one for certain.
    assert np.linalg.eigvalsh((found.inverse - true) * 2.0**-60).min() > 0


def test_the_certificate_holds_and_is_not_idle() -> None:
    """Against the optimum itself, from points around it, before and after a Newton step."""
    rng = np.random.default_rng(3)
    X, y = small(11, "plain", 2)
    n, d = X.shape
    problem = SoftmaxProblem(
        DenseDesign(
            X, np.ones(n), (1 - y).astype(np.int32), 1, True, True, np.zeros(d), np.ones(d)
        ),
        np.r_[np.ones(d), 0.0],
        False,
    )
    true = np.array([[float(v) for v in optimum(X, y, 1.0)[0]]])
    tightest = np.inf
    for scale in 10.0 ** rng.uniform(-4, 0, 60):
        theta = true + scale * rng.normal(size=true.shape)
        found = problem.design.evaluate(theta)
        gradient, wrong = problem.gradient((theta, np.zeros_like(theta)), found)
        metric = invert(
            problem.hessian(found.logits), 1e-12, found.logits, np.ones(n), problem.strengths
        )
        assert metric is not None
        decrement, step, _ = metric.decrement(gradient)
        reach = metric.reach(problem.design)
        hessian = np.linalg.inv(metric.inverse)

        def norm(change: np.ndarray, hessian: np.ndarray = hessian) -> float:
            return float(np.sqrt(change.ravel() @ hessian @ change.ravel()))

        before, after = norm(theta - true), norm(theta - step - true)
        assert before <= distance(decrement, reach, 1e-9) + 1e-12
        bound = distance_after_step(decrement, reach, 1e-9, 1e-12)
        assert after <= bound + 1e-12
        if np.isfinite(bound):
            tightest = min(tightest, bound / max(after, 1e-12))
        blunt = Convexity(
            problem,
            problem.design.chances(found.logits),
            problem.design.squared_rows(problem.strengths[:d]),
        )
        half = blunt.half(blunt.norm(gradient) + blunt.norm(found.direct + wrong))
        assert (np.abs(theta - true)[0] <= half).all()
    assert tightest < 100


@settings(max_examples=examples(30))
@given(st.integers(0, 10**6), st.sampled_from([1, 2, 4]))
def test_the_blunt_bound_is_below_the_hessian(seed: int, m: int) -> None:
    """Equation (4), on the part of the space in which the classes' intercepts sum to 0."""
    dense, _, theta = designs(seed, m, m == 1)
    theta = theta * np.random.default_rng(seed).choice([0.1, 1.0, 5.0])
    strengths = np.r_[np.random.default_rng(seed).uniform(0.1, 3.0, 11), 0.0]
    problem = SoftmaxProblem(dense, strengths, False)
    logits = dense.evaluate(theta).logits
    blunt = Convexity(problem, dense.chances(logits), dense.squared_rows(strengths[:11]))
    hessian = problem.hessian(logits)
    rng = np.random.default_rng(seed + 1)
    for _ in range(20):
        change = rng.normal(size=theta.shape) * 10.0 ** rng.uniform(-2, 2, size=(1, 12))
        if m > 1:
            change[:, -1] -= change[:, -1].mean()
        square = change.ravel() @ hessian @ change.ravel()
        least = 0.5 * (strengths * change**2).sum() + blunt._least * (change[:, -1] ** 2).sum()
        assert least <= square * (1 + 1e-9)
        # The dual norm bounds every component.
        gradient = (hessian @ change.ravel()).reshape(theta.shape)
        size = blunt.norm(gradient)
        assert (np.abs(change[:, :11]) <= size * np.sqrt(2 / strengths[:11]) * (1 + 1e-9)).all()
