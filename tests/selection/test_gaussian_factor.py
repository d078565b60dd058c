"""One Cholesky factor, and one for each sample, against determinants in exact fractions."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF

from erasable.core.errors import InvalidInputError
from erasable.selection import Certain, Expected, Independent, SubsetSelector, _memory
from erasable.selection._functions import SetFunction
from erasable.selection._sampled import SampledFunction
from erasable.selection.staying import Sampler
from erasable.selection.utilities import (
    MutualInformation,
    NeuralVariance,
    Problem,
    VarianceReduction,
)
from selection import enumeration

N = 6
RNG = np.random.default_rng(3)
POINTS = RNG.normal(size=(N, 2))
KERNELS = {
    "smooth": RBF(0.8)(POINTS),
    "twins": RBF(0.8)(POINTS[[0, 1, 0, 2, 1, 0]]),
    "two dimensions": POINTS @ POINTS.T,
    "nearly singular": RBF(30.0)(POINTS),
    "unequal": np.diag([1e-3, 1.0, 0.0, 50.0, 2.0, 1e-6]),
}
INFORMATION, VARIANCE, REMOTE, NEURAL = "information", "variance", "remote", "neural"
UTILITIES = [INFORMATION, VARIANCE, REMOTE, NEURAL]


def cross_of(K: np.ndarray) -> np.ndarray:
    """Return the kernel with four targets, none of them a record."""
    return np.asarray(K @ np.random.default_rng(len(K)).normal(size=(len(K), 4)))


def make(name: str, K: np.ndarray, noise: float) -> Problem:
    if name == INFORMATION:
        return MutualInformation("precomputed", gamma=1 / noise).problem(K)
    if name == NEURAL:
        return NeuralVariance(noise=noise).problem(K)
    cross = cross_of(K) if name == REMOTE else None
    return VarianceReduction("precomputed", noise=noise, targets=cross).problem(K)


def eliminate(K: np.ndarray, noise: float, cross: np.ndarray, chosen: tuple[int, ...]) -> tuple:
    """Return the determinant of K_SS + noise I, and what it takes from targets: no rounding."""
    table = [
        [Fraction(K[i, j]) + (Fraction(noise) if i == j else 0) for j in chosen]
        + [Fraction(each) for each in cross[i]]
        for i in chosen
    ]
    k, determinant, taken = len(chosen), Fraction(1), Fraction(0)
    for t in range(k):
        pivot = table[t][t]
        determinant *= pivot
        taken += sum(each**2 for each in table[t][k:]) / pivot
        for below in table[t + 1 :]:
            share = below[t] / pivot
            below[:] = [b - share * a for a, b in zip(table[t], below, strict=True)]
    return determinant, taken


def oracle(name: str, K: np.ndarray, noise: float, chosen: tuple[int, ...]) -> float:
    cross = cross_of(K) if name == REMOTE else K
    determinant, taken = eliminate(K, noise, cross, chosen)
    if name != INFORMATION:
        return float(taken)
    whole = determinant / Fraction(noise) ** len(chosen)
    return math.log(whole.numerator) - math.log(whole.denominator)


def certain(problem: Problem, k: int = N) -> SetFunction:
    found = problem.expected(Certain().bind(problem.n), k)
    assert found is not None
    return found


@pytest.mark.parametrize("noise", [0.3, 1e-4])
@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("name", UTILITIES)
def test_every_subset_is_worth_its_determinant(name: str, kernel: str, noise: float) -> None:
    K = KERNELS[kernel]
    problem = make(name, K, noise)
    scale = oracle(name, K, noise, tuple(range(N)))
    for chosen in enumeration.subsets(range(N)):
        function = certain(problem)
        for j in reversed(chosen):
            function.add(j)
        right = oracle(name, K, noise, chosen)
        assert function.value == pytest.approx(right, rel=1e-9, abs=1e-9 * scale)
    # Other noise is another number, so that the check above has work to do.
    assert function.value != pytest.approx(oracle(name, K, 1.01 * noise, chosen), rel=1e-9, abs=0)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("name", UTILITIES)
def test_samples_in_which_all_stay_are_the_exact_function(name: str, kernel: str) -> None:
    problem = make(name, KERNELS[kernel], 0.1)
    exact = certain(problem)
    sampled = SampledFunction(problem.samples(3, N), Sampler(Certain().bind(N), 3, 0), N)
    scale = max(1.0, exact.gains(np.arange(N)).max())
    for j in (4, 0, 5, 2, 1, 3):
        np.testing.assert_allclose(
            sampled.gains(np.arange(N)), exact.gains(np.arange(N)), rtol=1e-9, atol=1e-11 * scale
        )
        exact.add(j)
        sampled.add(j)
    assert sampled.value == pytest.approx(exact.value, rel=1e-11)


@pytest.mark.parametrize("name", UTILITIES)
@pytest.mark.parametrize("n_samples", [2, 255, 257])
def test_each_sample_holds_what_stays_in_it(name: str, n_samples: int) -> None:
    K = KERNELS["twins"]
    samples = make(name, K, 0.2).samples(n_samples, N)
    rng = np.random.default_rng(n_samples)
    stays = rng.random((N, n_samples)) < 0.6
    right: dict[tuple[int, ...], float] = {
        chosen: oracle(name, K, 0.2, chosen) for chosen in enumeration.subsets(range(N))
    }
    for j in range(N):
        here = [tuple(np.flatnonzero(each[:j])) for each in stays.T]
        wanted = [right[*each, j] - right[each] for each in here]
        np.testing.assert_allclose(samples.gains(j), wanted, rtol=1e-9, atol=1e-11)
        samples.add(j, stays[j])


def updated(name: str, ask: list[list[int]]) -> tuple[np.ndarray, np.ndarray]:
    """Return gains after five choices, asked for in between as said, of one and of many."""
    points = np.random.default_rng(1).normal(size=(40, 2))
    problem = make(name, RBF(0.5)(points), 0.1)
    sampler = Sampler(Independent(0.7).bind(40), 300, 0)
    samples, exact = problem.samples(300, 6), certain(problem, 6)
    for j, asked in zip((30, 3, 11, 25, 7), ask, strict=True):
        for i in asked:
            samples.gains(i)
        if asked:
            samples.prepare(np.array(asked * 2))  # named twice, and counted once
        exact.gains(np.array(asked, dtype=np.int64))
        stays = sampler.add(j)
        samples.add(j, stays)
        exact.add(j)
    return np.array([samples.gains(i) for i in range(40)]), exact.gains(np.arange(40))


@pytest.mark.parametrize("name", UTILITIES)
def test_gains_do_not_depend_on_when_they_were_asked_for(name: str) -> None:
    all_of_them = list(range(40))
    never = updated(name, [[]] * 5)
    for ask in ([all_of_them] * 5, [[1, 39], [], [5, 4, 3], all_of_them[::-1], [0]]):
        for one, other in zip(never, updated(name, ask), strict=True):
            np.testing.assert_array_equal(one, other)


def test_gains_that_are_not_brought_up_to_date_are_caught() -> None:
    K = KERNELS["twins"]
    samples = make(VARIANCE, K, 0.2).samples(2, N)
    samples.add(0, np.ones(2, dtype=bool))
    samples.factors.seen[2] = 1  # type: ignore[attr-defined]
    right = oracle(VARIANCE, K, 0.2, (0, 2)) - oracle(VARIANCE, K, 0.2, (0,))
    assert samples.gains(2)[0] != pytest.approx(right, rel=1e-3)


@pytest.mark.parametrize("optimizer", ["lazy", "greedy"])
@pytest.mark.parametrize("name", UTILITIES)
def test_the_choice_is_that_of_values_of_whole_sets(name: str, optimizer: str) -> None:
    utility = (
        MutualInformation("precomputed", gamma=2.0)
        if name == INFORMATION
        else NeuralVariance(noise=0.5)
        if name == NEURAL
        else VarianceReduction(
            "precomputed", noise=0.5, targets=None if name == VARIANCE else RNG.random((15, 4))
        )
    )
    K = RBF(0.6)(np.random.default_rng(8).normal(size=(15, 2)))
    problem = utility.problem(K)
    chosen: list[int] = []
    for _ in range(7):
        values = [-1.0 if j in chosen else problem.value(np.array([*chosen, j])) for j in range(15)]
        chosen.append(int(np.argmax(values)))
    found = SubsetSelector(utility, k=7, optimizer=optimizer).fit(K)
    assert found.selected_.tolist() == chosen
    assert found.utility_ == pytest.approx(problem.value(np.array(chosen)), rel=1e-12)
    assert found.utility_error_ == 0.0


@pytest.mark.parametrize("staying", [1.0, 0.7])
@pytest.mark.parametrize("name", [INFORMATION, VARIANCE])
def test_of_records_that_are_equal_the_first_is_chosen(name: str, staying: float) -> None:
    for seed in range(8):
        rng = np.random.default_rng(seed)
        points = rng.normal(size=(25, 3))
        which = rng.integers(0, 25, 70)
        utility = (
            MutualInformation(RBF(1.0), gamma=4.0)
            if name == INFORMATION
            else VarianceReduction(RBF(1.0), noise=0.1)
        )
        chosen = SubsetSelector(
            utility, k=20, staying=staying, objective=Expected(30), random_state=0,
            optimizer="greedy",
        ).fit(points[which]).selected_  # fmt: skip
        for each in set(which.tolist()):
            places = np.flatnonzero(which == each)
            picked = [j for j in chosen.tolist() if which[j] == each]
            if staying == 1.0 or len(picked) <= 1:
                assert picked == places[: len(picked)].tolist()


def test_products_of_equal_records_are_equal_to_the_last_bit() -> None:
    rng, differ = np.random.default_rng(0), 0

    def in_another_order_each(K: np.ndarray) -> np.ndarray:
        orders = (rng.permutation(len(K)) for _ in K)
        return np.stack([K[:, order] @ K[i, order] for i, order in enumerate(orders)])

    for n in range(20, 60):
        points = rng.normal(size=(n, 3))[rng.integers(0, n, 2 * n)]
        problem = VarianceReduction(RBF(1.0)).problem(points)
        for Q in (problem.Q, in_another_order_each(problem.K)):
            _, first, same = np.unique(points, axis=0, return_index=True, return_inverse=True)
            equal = bool((first[same][:, None] == first[same]).any())
            assert equal
            matches = np.array_equal(Q, Q[np.ix_(first[same], first[same])])
            assert matches or Q is not problem.Q
            differ += not matches
    assert differ  # products that are not summed in one order do not keep it


@pytest.mark.parametrize("noise", [1e-3, 1e-6, 1e-9, 1e-12])
@pytest.mark.parametrize("kernel", ["smooth", "twins", "nearly singular"])
@pytest.mark.parametrize("name", [INFORMATION, VARIANCE])
def test_little_noise_loses_digits_and_nothing_else(name: str, kernel: str, noise: float) -> None:
    """Gains stay finite and 0 or more; the error is that of a float over the noise."""
    K = KERNELS[kernel]
    problem = make(name, K, noise)
    exact, samples = certain(problem), problem.samples(2, N)
    everybody, total = np.ones(2, dtype=bool), np.zeros(2)
    scale = oracle(name, K, noise, tuple(range(N)))
    for t, j in enumerate((2, 0, 4, 5, 1, 3)):
        for gains in (exact.gains(np.arange(N)), np.array([samples.gains(i) for i in range(N)])):
            assert np.isfinite(gains).all()
            assert (gains >= 0).all()
        total += samples.gains(j)
        samples.add(j, everybody)
        exact.add(j)
        right = oracle(name, K, noise, (2, 0, 4, 5, 1, 3)[: t + 1])
        within = min(1e-14 / noise + 1e-12, 0.01) * scale
        assert exact.value == pytest.approx(right, abs=within)
        assert total == pytest.approx(right, abs=10 * within)


def test_what_would_not_fit_is_told_before(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = make(VARIANCE, KERNELS["smooth"], 0.1)
    monkeypatch.setattr(_memory, "available_memory", lambda: 8.0 * 2 * N * 4)
    certain(problem, 4)
    with pytest.raises(InvalidInputError, match=r"factors of 5 of 6 records would take.*fewer"):
        certain(problem, 5)
    with pytest.raises(InvalidInputError, match=r"in 9 samples would take.*draw fewer samples"):
        problem.samples(9, 4)
    certain(make(INFORMATION, KERNELS["smooth"], 0.1), 5)  # takes half of it


@pytest.mark.parametrize("name", UTILITIES)
def test_no_more_are_added_than_there_is_room_for(name: str) -> None:
    problem = make(name, KERNELS["smooth"], 0.1)
    exact, samples = certain(problem, 2), problem.samples(2, 2)
    for j in (0, 1):
        exact.add(j)
        samples.add(j, np.ones(2, dtype=bool))
    with pytest.raises(IndexError, match="2 records were added"):
        exact.add(2)
    with pytest.raises(IndexError, match="2 records were added"):
        samples.add(2, np.ones(2, dtype=bool))


def test_a_thousand_of_a_thousand_records_fit() -> None:
    """They were refused: 4,612 matrices of 1,000 records took 34 GiB."""
    K = RBF(0.3)(np.random.default_rng(0).normal(size=(1100, 3)))
    found = SubsetSelector(MutualInformation("precomputed"), k=1000).fit(K)
    assert len(set(found.selected_.tolist())) == 1000
    part = K[np.ix_(found.selected_, found.selected_)]
    assert found.utility_ == pytest.approx(np.linalg.slogdet(np.eye(1000) + part)[1], rel=1e-11)
    assert found.gains_.tolist() == sorted(found.gains_.tolist(), reverse=True)


def test_the_expectation_over_samples_of_all_outcomes_is_enumeration() -> None:
    """Every outcome once: the mean over samples, by weights, is exact."""
    K, s, chosen = KERNELS["smooth"], np.array([0.3, 0.9, 0.5, 0.7]), [0, 3, 1, 5]
    outcomes = np.array(list(itertools.product([False, True], repeat=4))).T
    weights = np.where(outcomes, s[:, None], 1 - s[:, None]).prod(axis=0)
    for name in UTILITIES:
        samples, values = make(name, K, 0.4).samples(16, 4), np.zeros(16)
        for j, stays in zip(chosen, outcomes, strict=True):
            values += np.where(stays, samples.gains(j), 0.0)
            samples.add(j, stays)
        right = enumeration.expectation(
            chosen,
            lambda stay: float(
                np.prod([p if j in stay else 1 - p for j, p in zip(chosen, s, strict=True)])
            ),
            lambda stay, name=name: oracle(name, K, 0.4, tuple(stay)),  # type: ignore[misc]
        )
        assert weights @ values == pytest.approx(right, rel=1e-11)
