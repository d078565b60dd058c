"""The paper's bounds: against their formulas by other means, and against simulated removals."""

from __future__ import annotations

from typing import Any

import bounds
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from erasable.core.errors import InvalidParameterError
from erasable.removal import gaussian_frontier, random_removal_law

counts = st.integers(1, 5000)
divergences = st.floats(1e-4, 20)
deltas = st.floats(1e-4, 0.5)


@given(counts, counts, st.floats(0, 1), divergences, deltas)
def test_random_removal_is_bounded_as_the_exact_law_is(
    n_forget: int, n_retain: int, share: float, divergence: float, delta: float
) -> None:
    """What Proposition 3 states holds, though its proof loses a factor."""
    n_deleted = int(share * n_forget)
    found = bounds.random_removal_bounds(n_forget, n_retain, n_deleted, divergence, delta)
    law = random_removal_law(n_forget, n_retain, n_deleted, divergence)
    assert law.alpha.cdf(found.alpha.value) + law.epsilon.sf(found.epsilon.value) <= delta
    assert found.alpha.value <= divergence / 2
    assert found.alpha.is_vacuous == (found.alpha.value <= 0)
    assert found.epsilon.is_vacuous == (found.epsilon.value >= divergence)


@pytest.mark.parametrize("mean", [0.5, 2.5, 5.0])
@pytest.mark.parametrize("share", [0.2, 0.6, 0.9, 1.0])
def test_selective_removal_keeps_its_promise(mean: float, share: float) -> None:
    rng = np.random.default_rng(7)
    n, n_runs, delta = 400, 200, 0.05
    n_deleted = int(share * n)
    found = bounds.selective_removal_bounds(n, n, n_deleted, mean**2 / 2, delta)
    forget, retain = rng.normal(size=(n_runs, n)), rng.normal(mean, 1, (n_runs, n))
    far = np.abs(forget - retain.mean(axis=1, keepdims=True)).argsort(axis=1)
    kept = np.take_along_axis(forget, far, axis=1)[:, : n - n_deleted]
    fitted = (kept.sum(axis=1) + retain.sum(axis=1)) / (2 * n - n_deleted)
    held = (fitted**2 / 2 >= found.alpha.value) & ((fitted - mean) ** 2 / 2 <= found.epsilon.value)
    assert held.mean() >= 1 - delta


@given(counts, counts, st.floats(0, 1), divergences, deltas)
def test_the_quantile_of_theorem_1_is_that_of_a_folded_normal(
    n_forget: int, n_retain: int, share: float, divergence: float, delta: float
) -> None:
    n_deleted = int(share * n_forget)
    found = bounds.selective_removal_bounds(n_forget, n_retain, n_deleted, divergence, delta)
    log_term = np.log(4 / delta)
    p = 1 - n_deleted / n_forget + np.sqrt(log_term / (2 * n_forget))
    ratio = (n_forget - n_deleted) / n_retain
    quantile = stats.foldnorm.ppf(p, np.sqrt(2 * divergence)) if p < 1 else np.inf
    reach = 0.0 if ratio == 0 else (ratio * quantile) ** 2
    alpha = divergence / 2 - reach / 2 - log_term / n_retain
    assert found.alpha.value == pytest.approx(alpha, rel=1e-6, abs=1e-6)
    assert found.epsilon.value == pytest.approx(reach + 2 * log_term / n_retain, rel=1e-6)


def test_too_few_deletions_for_theorem_1_promise_nothing() -> None:
    found = bounds.selective_removal_bounds(1000, 1000, 0, 2.0, 0.05)
    assert found.alpha.value == -np.inf
    assert found.epsilon.value == np.inf
    assert found.alpha.is_vacuous
    assert found.epsilon.is_vacuous


def joint(rng: np.random.Generator) -> np.ndarray:
    return rng.dirichlet(np.ones(6)).reshape(3, 2)


def kl(p: np.ndarray, q: np.ndarray) -> float:
    return float((p * np.log(p / q)).sum())


@pytest.mark.parametrize("seed", range(20))
def test_the_loss_changes_by_what_proposition_2_says(seed: int) -> None:
    """Three inputs and two labels: the best predictor under p is its conditional distribution."""
    rng = np.random.default_rng(seed)
    p1, p2, p = joint(rng), joint(rng), joint(rng)

    def excess_loss(of: np.ndarray) -> float:
        learned, best = (each / each.sum(axis=1, keepdims=True) for each in (p, of))
        return float((of * (np.log(best) - np.log(learned))).sum())

    marginal = [kl(each.sum(axis=1), p.sum(axis=1)) for each in (p1, p2)]
    forget = bounds.forget_loss_bound(kl(p1, p), marginal[0])
    retain = bounds.retain_loss_bound(kl(p2, p), marginal[1])
    assert forget.value == pytest.approx(excess_loss(p1), abs=1e-12)
    assert retain.value == pytest.approx(excess_loss(p2), abs=1e-12)
    assert not forget.is_vacuous
    assert bounds.retain_loss_bound(kl(p2, p)).value >= excess_loss(p2)
    # A weaker alpha may leave nothing: what the inputs alone differ by is not bounded by it.
    assert bounds.forget_loss_bound(marginal[0] / 2, marginal[0]).is_vacuous


def test_the_calibration_rule_is_the_frontier_read_backwards() -> None:
    alpha, epsilon = bounds.calibrate(0.1, divergence=2.0)
    assert (round(alpha, 1), epsilon) == (3.0, 0.1)  # the paper's own example
    assert gaussian_frontier(alpha, 2.0) == pytest.approx(epsilon)


@given(
    st.integers(10, 5000), st.integers(10, 10**7), divergences, st.floats(1e-3, 2),
    st.floats(1e-3, 2), deltas,
)  # fmt: skip
def test_corollary_10_at_random_deletes_enough(
    n_forget: int, n_retain: int, divergence: float, alpha: float, epsilon: float, delta: float
) -> None:
    found = bounds.random_removal_deletions(
        n_forget, n_retain, divergence, alpha=alpha, epsilon=epsilon, delta=delta
    )
    assert 0 <= found.value <= n_forget
    if found.is_vacuous:
        return
    n_deleted = int(np.ceil(found.value))
    law = random_removal_law(n_forget, n_retain, n_deleted, divergence)
    assert law.alpha.cdf(alpha) + law.epsilon.sf(epsilon) <= delta
    promised = bounds.random_removal_bounds(n_forget, n_retain, n_deleted, divergence, delta)
    assert promised.epsilon.value <= epsilon * (1 + 1e-9)


def test_corollary_10_at_random_does_not_follow_from_proposition_3() -> None:
    divergence, alpha, epsilon, delta = 0.8, 0.1, 0.8, 0.05
    found = bounds.random_removal_deletions(
        1000, 1000, divergence, alpha=alpha, epsilon=epsilon, delta=delta
    )
    assert not found.is_vacuous
    promised = bounds.random_removal_bounds(
        1000, 1000, int(np.ceil(found.value)), divergence, delta
    )
    assert promised.alpha.value < alpha / 2


@given(
    st.integers(10, 5000), st.integers(10, 10**7), divergences, st.floats(1e-3, 2),
    st.floats(1e-3, 2), deltas,
)  # fmt: skip
def test_corollary_10_selective_is_theorem_1_up_to_its_constants(
    n_forget: int, n_retain: int, divergence: float, alpha: float, epsilon: float, delta: float
) -> None:
    found = bounds.selective_removal_deletions(
        n_forget, n_retain, divergence, alpha=alpha, epsilon=epsilon, delta=delta
    )
    assert 0 <= found.value <= n_forget
    if found.is_vacuous:
        return
    assert found.value > n_forget / 2
    promised = bounds.selective_removal_bounds(
        n_forget, n_retain, int(np.ceil(found.value)), divergence, delta
    )
    assert promised.epsilon.value <= 1.7 * epsilon


@pytest.mark.parametrize(
    ("divergence", "alpha", "n_retain", "told"),
    [
        (2.0, 0.3, 10**5, "an eighth of the divergence"),
        (2.0, 0.1, 100, "records of the wanted domain"),
    ],
)
def test_conditions_that_are_not_met(
    divergence: float, alpha: float, n_retain: int, told: str
) -> None:
    found = bounds.random_removal_deletions(
        1000, n_retain, divergence, alpha=alpha, epsilon=0.1, delta=0.05
    )
    assert told in found.reason


def test_close_domains_are_where_corollary_10_says_nothing() -> None:
    found = bounds.selective_removal_deletions(
        1000, 10**7, 0.001, alpha=0.0002, epsilon=0.01, delta=0.05
    )
    assert found.reason == "more records would have to go than there are"
    assert found.value == 1000


def test_table_1() -> None:
    assert bounds.simplified_deletions(100, alpha=0.75, selective=False).value == 50
    assert bounds.simplified_deletions(100, alpha=0.9375).value == 50
    assert bounds.simplified_deletions(100, epsilon=0.25, selective=False).value == 50
    assert bounds.simplified_deletions(100, alpha=0.9375, epsilon=1.0).value == 50
    assert bounds.simplified_deletions(100, alpha=0.5).is_vacuous


GOOD: dict[str, Any] = {
    "n_forget": 10, "n_retain": 10, "n_deleted": 5, "divergence": 1.0, "delta": 0.1,
}  # fmt: skip


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"n_forget": 0}, "n_forget=0; expected a whole number from 1 on"),
        ({"n_retain": 2.5}, "n_retain=2.5"),
        ({"n_deleted": 11}, "n_deleted=11; expected a whole number from 0 to 10"),
        ({"n_deleted": True}, "n_deleted=True"),
        ({"divergence": -1.0}, "divergence=-1.0; expected a number in [0, inf)"),
        ({"divergence": float("nan")}, "divergence=nan"),
        ({"delta": 0.0}, "delta=0.0; expected a number in (0, 1)"),
        ({"delta": 1.0}, "delta=1.0"),
        ({"delta": "small"}, "delta='small'"),
    ],
)
def test_bad_input(wrong: dict[str, Any], told: str) -> None:
    for bound in (bounds.random_removal_bounds, bounds.selective_removal_bounds):
        with pytest.raises(InvalidParameterError) as caught:
            bound(**(GOOD | wrong))
        assert told in str(caught.value)
        assert "\n" not in str(caught.value)


def test_bad_input_elsewhere() -> None:
    with pytest.raises(InvalidParameterError, match=r"above epsilon=0\.1"):
        bounds.retain_loss_bound(0.1, 0.2)
    with pytest.raises(InvalidParameterError, match=r"alpha=0\.0; expected a number in \(0"):
        bounds.random_removal_deletions(10, 10, 1.0, alpha=0.0, epsilon=0.1, delta=0.1)
    with pytest.raises(InvalidParameterError, match=r"alpha=1\.5"):
        bounds.simplified_deletions(10, alpha=1.5)
    with pytest.raises(InvalidParameterError, match="max_loss_increase=-1"):
        bounds.calibrate(-1, 1.0)
