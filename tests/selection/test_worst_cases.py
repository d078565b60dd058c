"""What the worst cases are worth: an honest value, and exact only where it is."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from erasable.core.errors import InvalidParameterError
from erasable.selection import (
    Certain,
    CVaR,
    Expected,
    Independent,
    MutualInformation,
    NearestNeighbor,
    SubsetSelector,
    expected_utility,
)
from erasable.selection._objectives import SelectionTask, sampled
from erasable.selection._optimizers import CostBudget
from erasable.selection._sampled import SampledFunction
from erasable.selection._worst_cases import _NewSampleSearch
from selection import enumeration

GIVEN = NearestNeighbor("precomputed")
N, K, S, ALPHA = 60, 6, 0.7, 0.1


def _of_fresh_samples(similarity: np.ndarray, chosen: list[int], n_samples: int) -> float:
    """The mean of the worst share of samples, on average over many sets of samples.

    That is a little more than of all cases, because a mean of the worst is one of sorted numbers.
    """
    probability_of = enumeration.independent([S] * N, chosen)
    cases = list(enumeration.subsets(chosen))
    values = np.array([similarity[list(stay)].max(axis=0, initial=0.0).sum() for stay in cases])
    probabilities = [probability_of(stay) for stay in cases]
    rng = np.random.default_rng(0)
    drawn = np.sort(values[rng.choice(len(cases), (2000, n_samples), p=probabilities)], axis=1)
    return float(drawn[:, : round(ALPHA * n_samples)].mean())


def _optimism(n_judged: int | None) -> tuple[float, float]:
    """Return by how much values are too good on average, and the standard error of that."""
    similarity = np.random.default_rng(0).random((N, 12))
    excess = []
    for seed in range(24):
        goal = CVaR(ALPHA, 100, n_thresholds=8, n_judged=n_judged)
        found = SubsetSelector(GIVEN, k=K, staying=S, objective=goal, random_state=seed)
        found.fit(similarity)
        assert not found.utility_exact_
        chosen = found.selected_.tolist()
        excess.append(found.utility_ - _of_fresh_samples(similarity, chosen, n_judged or 100))
    return float(np.mean(excess)), float(np.std(excess, ddof=1) / np.sqrt(len(excess)))


@pytest.mark.parametrize("n_judged", [None, 150])
def test_the_value_is_honest(n_judged: int | None) -> None:
    """Held against draws of its own; the samples are few, so that luck would show."""
    mean, error = _optimism(n_judged)
    assert abs(mean) < 2.5 * error


def test_the_value_on_samples_that_records_were_chosen_by_is_too_good() -> None:
    """The check above has work to do."""
    mean, error = _optimism(0)
    assert mean > 2.5 * error


def _fit(utility: Any, staying: Any, objective: Any, X: Any, y: Any = None) -> SubsetSelector:
    selector = SubsetSelector(utility, k=3, staying=staying, objective=objective, random_state=0)
    return selector.fit(X, y)


X9 = np.random.default_rng(1).integers(0, 3, (9, 4))
SAMPLED = {
    "nobody stays in the worst": (GIVEN, 0.01, CVaR(0.2, 100), np.eye(9), None),
    "nobody stays": (GIVEN, 0.0, CVaR(0.2, 100), np.eye(9), None),
    "the paper's": (GIVEN, 0.01, CVaR(0.2, 100, n_judged=0), np.eye(9), None),
    "alike in all samples": (MutualInformation(), 0.0, Expected(50), X9, None),
}
EXACT = {
    "closed form": (GIVEN, 0.5, None, np.eye(9), None),
    "nobody leaves": (GIVEN, Certain(), CVaR(0.5, 20), np.eye(9), None),
    "nobody leaves, sampled otherwise": (MutualInformation(), 1.0, Expected(20), X9, None),
}


@pytest.mark.parametrize("name", SAMPLED)
def test_samples_that_are_alike_are_not_exact(name: str) -> None:
    selector = _fit(*SAMPLED[name])
    assert selector.utility_error_ == 0.0
    assert not selector.utility_exact_
    assert not selector.value().exact
    utility, staying, objective, X, y = SAMPLED[name]
    again = expected_utility(
        rows=selector.selected_, X=X, y=y, utility=utility, staying=staying, objective=objective
    )
    assert not again.exact


@pytest.mark.parametrize("name", EXACT)
def test_what_is_exact_says_so(name: str) -> None:
    selector = _fit(*EXACT[name])
    assert selector.utility_exact_
    assert selector.value().exact
    assert selector.utility_ == pytest.approx(selector.value().value)


def test_values_of_a_fitted_selector_are_of_other_samples() -> None:
    similarity = np.random.default_rng(0).random((N, 12))
    given: dict[str, Any] = {"k": K, "staying": S, "random_state": 3}
    worst = SubsetSelector(GIVEN, objective=CVaR(ALPHA, 200), **given).fit(similarity)
    assert worst.value() == worst.value()
    assert worst.value() != worst.value(random_state=8)
    assert worst.value().value != worst.utility_


def test_numbers_of_samples_are_checked() -> None:
    for wrong in (-1, 1, 2.0, True, False, "all"):
        with pytest.raises(InvalidParameterError, match="n_judged="):
            CVaR(0.5, n_judged=wrong)  # type: ignore[arg-type]
    assert CVaR(0.5, 100).n_worst() == CVaR(0.5, 100, n_judged=0).n_worst() == 50
    assert CVaR(0.5, 100, n_judged=10).n_worst() == 5


def test_the_three_sets_of_samples_have_no_draw_in_common() -> None:
    """Records are chosen in the order of their rows, so that numbers by either would be alike."""
    problem = GIVEN.problem(np.diag(np.arange(6.0, 0.0, -1.0)))
    none, items = np.zeros(0, dtype=np.int64), np.arange(6)
    for seed in range(3):
        bound = Independent(0.5).bind(6, k=6)
        task = SelectionTask(problem, bound, none, items, CostBudget(6), "lazy", seed, 6)
        made = task.choose(lambda task=task: sampled(task, 2000))
        assert [j for j, _ in made.chosen] == list(range(6))
        found = _NewSampleSearch(CVaR(0.2, 2000), task)
        found.attempt(None)
        sets = [made.function.values, found.values, found.reported()]
        alike = np.corrcoef(sets)[np.triu_indices(3, 1)]
        assert np.abs(alike).max() < 0.1
        assert np.corrcoef(sets[0], sampled_of(task).values)[0, 1] == pytest.approx(1)


def sampled_of(task: SelectionTask) -> SampledFunction:
    """A negative control: samples of the same seed are the same."""
    function = sampled(task, 2000)
    for j in range(6):
        function.add(j)
    return function
