"""GRAD-MATCH: against a pursuit whose weights are found by trying every support, and its budget."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.optimize import nnls
from scipy.sparse import csr_array

from erasable.removal import Cost, Count, Coverage, DomainRemoval, Share
from erasable.removal._sets import Sets
from erasable.removal.scores import SCORES, GradMatch, _greedy
from removal import plain_scores as plain

KINDS = {
    "around 0": lambda rng, d: rng.normal(size=(22, d)),
    "away from 0": lambda rng, d: rng.normal(size=(22, d)) + 3.0,
    "of different units": lambda rng, d: rng.normal(size=(22, d)) * 10.0 ** np.arange(-1, d - 1),
    "heavy tails": lambda rng, d: rng.standard_t(1.5, size=(22, d)),
    "two columns that are one": lambda rng, d: rng.normal(size=(22, 1)) * np.ones(d),
    "records below 0": lambda rng, d: -rng.exponential(size=(22, d)),
}


def draw(kind: str, d: int, seed: int = 0) -> Any:
    return KINDS[kind](np.random.default_rng(seed), d)


@pytest.mark.parametrize("lam", [0.01, 0.5, 20.0])
@pytest.mark.parametrize("d", [1, 2, 4])
@pytest.mark.parametrize("kind", list(KINDS))
def test_the_order_is_that_of_every_support_tried(kind: str, d: int, lam: float) -> None:
    forget = draw(kind, d)
    expected = plain.gradmatch(forget, lam)
    for rows in (forget, csr_array(forget)):
        order = GradMatch(lam).rank(Sets(rows, rows), 0).order.tolist()
        assert order == expected


def test_weights_of_any_sign_give_another_order() -> None:
    """The control: neither the sign of weights nor that of products is without effect."""
    forgets = [draw("of different units", 4, seed) for seed in range(20)]
    right = [plain.gradmatch(forget) for forget in forgets]
    assert right == [GradMatch().rank(Sets(f, f), 0).order.tolist() for f in forgets]
    assert right != [plain.gradmatch(f, weigh=plain.any_weights) for f in forgets]
    assert right != [plain.gradmatch(f, weigh=plain.any_weights, sign=abs) for f in forgets]


@pytest.mark.parametrize("lam", [0.0, 1e-6, 0.5])
@pytest.mark.parametrize("repeats", [1, 2])
@pytest.mark.parametrize("seed", range(8))
def test_weights_are_the_best_that_are_not_negative(seed: int, repeats: int, lam: float) -> None:
    """Also of records that are there twice, where the system is singular without a penalty."""
    rng = np.random.default_rng(seed)
    atoms = np.repeat(rng.normal(size=(4, 5)), repeats, axis=0)
    gradients = np.column_stack([atoms, np.ones(len(atoms))])
    target = rng.normal(size=6) * 10
    expected = plain.non_negative_weights(gradients.T, target, lam)
    gram = gradients @ gradients.T + lam * np.eye(len(atoms))

    def value(weights: Any) -> float:
        return float(((target - weights @ gradients) ** 2).sum() + lam * (weights**2).sum())

    for guess in (np.ones(len(atoms)), expected):
        found = _greedy._solved(gram, gradients @ target, guess)
        if found is not None:
            assert (found >= 0).all()
            np.testing.assert_allclose(value(found), value(expected), rtol=1e-6)
    found = _greedy._non_negative(atoms, target, lam)
    np.testing.assert_allclose(value(found), value(expected), rtol=1e-9)


def test_a_guess_of_another_support_is_refused() -> None:
    """The control: the conditions tell the least from what is merely feasible, or is not."""
    atoms = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    gram, target = atoms @ atoms.T + 0.5 * np.eye(3), np.array([3.0, -1.0])
    right = atoms @ target
    best = nnls(np.vstack([atoms.T, np.sqrt(0.5) * np.eye(3)]), np.append(target, np.zeros(3)))[0]
    for support in np.ndindex(2, 2, 2):
        found = _greedy._solved(gram, right, np.array(support, dtype=float))
        if found is None:
            assert ((best > 0) != np.array(support, dtype=bool)).any()
        else:
            np.testing.assert_allclose(found, best, atol=1e-12)


@pytest.mark.parametrize("name", list(SCORES))
@pytest.mark.parametrize("budget", [Count(1), Count(7), Share(0.3), Share(1.0), Count(40)])
def test_a_budget_takes_the_beginning_of_the_order_of_all(name: str, budget: Any) -> None:
    rng = np.random.default_rng(3)
    forget, retain = rng.normal(size=(40, 3)), rng.normal(size=(30, 3)) + 1.0
    every = DomainRemoval(name, budget=Share(1.0), random_state=0).fit(forget, retain)
    some = DomainRemoval(name, budget=budget, random_state=0).fit(forget, retain)
    assert some.selected_.tolist() == every.order_[: len(some.selected_)].tolist()
    assert sorted(some.order_.tolist()) == list(range(40))
    assert some.scores_[some.order_].tolist() == sorted(some.scores_.tolist(), reverse=True)


@pytest.mark.parametrize(
    ("budget", "steps"),
    [(Count(5), 5), (Share(0.1), 5), (Coverage(0.1), 50), (Cost(np.ones(50), 5.0), 50)],
)
def test_a_pursuit_stops_at_the_budget(
    monkeypatch: pytest.MonkeyPatch, budget: Any, steps: int
) -> None:
    """The control is in the last two: what is not known before needs the whole order."""
    fitted: list[int] = []
    solved = _greedy._solved
    monkeypatch.setattr(_greedy, "_solved", lambda *given: fitted.append(1) or solved(*given))
    forget = np.random.default_rng(0).normal(size=(50, 9))
    DomainRemoval("gradmatch", budget=budget).fit(forget, forget + 1.0)
    assert len(fitted) == steps


def test_the_rest_follows_by_the_gradient_that_is_left() -> None:
    forget = draw("around 0", 3)
    order = DomainRemoval("gradmatch", budget=4).fit(forget, forget + 1.0).order_
    rest = np.sort(order[4:])
    gradients = np.column_stack([forget, np.ones(22)])[rest]
    match = gradients @ gradients.sum(axis=0)
    assert order[4:].tolist() == rest[np.argsort(-match, kind="stable")].tolist()


def test_equal_records_leave_in_their_order() -> None:
    forget = draw("away from 0", 16)
    doubled = np.concatenate([forget, forget])
    order = GradMatch().rank(Sets(doubled, doubled), 0).order.tolist()
    for row in range(22):
        assert order.index(row) < order.index(row + 22)
