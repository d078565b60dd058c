"""Information and variance, sample by sample, against determinants and inverses."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF

from erasable.core.errors import InvalidDataError, InvalidInputError, InvalidParameterError
from erasable.selection import Expected, Independent, SubsetSelector
from erasable.selection.staying import Sampler
from erasable.selection.utilities import Custom, MutualInformation, Utility, VarianceReduction
from selection import enumeration

RNG = np.random.default_rng(0)
X = RNG.normal(size=(12, 2))
UTILITIES = [MutualInformation(RBF(0.7), gamma=3.0), VarianceReduction(RBF(0.7), noise=0.3)]


@pytest.mark.parametrize("utility", UTILITIES, ids=["information", "variance"])
def test_each_sample_holds_the_utility_of_who_stays(utility: Utility) -> None:
    problem = utility.problem(X)
    samples = problem.samples(20, 8)
    sampler = Sampler(Independent(0.6).bind(12), 20, 3)
    present: list[list[int]] = [[] for _ in range(20)]
    for j in range(8):
        for i in range(j, 12):
            gains = samples.gains(i)
            for s, members in enumerate(present):
                before = problem.value(np.array(members, dtype=int))
                after = problem.value(np.array([*members, i]))
                assert gains[s] == pytest.approx(after - before, abs=1e-9)
        stays = sampler.add(j)
        samples.add(j, stays)
        for s in np.flatnonzero(stays):
            present[s].append(j)


def test_variance_is_that_of_a_gaussian_process() -> None:
    targets = RNG.normal(size=(9, 2))
    problem = VarianceReduction(RBF(0.7), noise=0.3, targets=targets).problem(X)
    rows = np.array([1, 4, 7])
    model = GaussianProcessRegressor(RBF(0.7), alpha=0.3, optimizer=None).fit(X[rows], np.zeros(3))
    _, deviation = model.predict(targets, return_std=True)
    assert problem.value(rows) == pytest.approx((1 - deviation**2).sum())
    K, cross = RBF(0.7)(X), RBF(0.7)(X, targets)
    given = VarianceReduction("precomputed", noise=0.3, targets=cross).problem(K)
    assert given.value(rows) == pytest.approx(problem.value(rows))


@pytest.mark.parametrize("utility", UTILITIES, ids=["information", "variance"])
def test_sampled_expectation_is_near_that_of_enumeration(utility: Utility) -> None:
    selector = SubsetSelector(
        utility, k=4, staying=0.5, objective=Expected(n_samples=3000), random_state=0
    ).fit(X)
    problem = utility.problem(X)
    chosen = selector.selected_.tolist()
    exact = enumeration.expectation(
        chosen,
        enumeration.independent([0.5] * 12, chosen),
        lambda stay: problem.value(np.array(stay, dtype=int)),
    )
    assert abs(selector.utility_ - exact) < 4.5 * selector.utility_error_


def test_twins_add_nothing_twice() -> None:
    problem = VarianceReduction("precomputed", noise=1e-13).problem(np.ones((3, 3)))
    samples = problem.samples(2, 3)
    everybody = np.ones(2, dtype=bool)
    samples.add(0, everybody)
    assert samples.gains(1) == pytest.approx(0, abs=1e-9)
    samples.add(1, everybody)
    assert samples.gains(2) == pytest.approx(0, abs=1e-9)


class Coverage:
    """How many different values there are."""

    def __init__(self, X: list[str], y: object) -> None:
        self.X, self.seen = X, set[str]()

    def gain(self, j: int) -> float:
        return float(self.X[j] not in self.seen)

    def add(self, j: int) -> None:
        self.seen.add(self.X[j])


def test_a_utility_of_your_own() -> None:
    texts = ["a", "a", "b", "c", "c"]
    plain = SubsetSelector(Custom(Coverage), k=3).fit(texts)
    assert plain.selected_.tolist() == [0, 2, 3]
    assert plain.utility_ == 3
    assert plain.utility_error_ == 0
    likely = SubsetSelector(Custom(Coverage), k=3, staying=[0.2, 1, 1, 1, 1], random_state=0).fit(
        texts
    )
    assert likely.selected_.tolist() == [1, 2, 3]
    with pytest.raises(InvalidParameterError, match="without add"):
        SubsetSelector(Custom(lambda X, y: _Half()), k=1).fit(texts)
    with pytest.raises(InvalidParameterError, match="expected a function"):
        SubsetSelector(Custom(3), k=1).fit(texts)  # type: ignore[arg-type]


class _Half:
    def gain(self, j: int) -> float:
        return 1.0


def test_bad_input_is_told() -> None:
    with pytest.raises(InvalidInputError, match="expected \\(n_records, n_records\\)"):
        MutualInformation("precomputed").problem(np.ones((2, 3)))
    with pytest.raises(InvalidDataError, match="not symmetric"):
        MutualInformation("precomputed").problem([[1.0, 2.0], [0.0, 1.0]])
    with pytest.raises(InvalidParameterError, match="kernel='linear'"):
        MutualInformation("linear").problem(X)
    with pytest.raises(InvalidParameterError, match="gamma=0"):
        MutualInformation(gamma=0).problem(X)
    with pytest.raises(InvalidParameterError, match="noise=-1"):
        VarianceReduction(noise=-1).problem(X)
    with pytest.raises(InvalidInputError, match="transpose it"):
        VarianceReduction("precomputed", targets=np.ones((4, 12))).problem(np.eye(12))
