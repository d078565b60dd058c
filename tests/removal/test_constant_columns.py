"""Columns that tell nothing: constant ones are left out everywhere, doubled ones change little."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.stats import spearmanr

from erasable.core.errors import InvalidInputError
from erasable.removal import DomainRemoval
from erasable.removal._sets import Sets
from erasable.removal.scores import SCORES, MeanDistance, MeanMargin
from erasable.removal.scores._classifiers import GaussianPair
from removal import plain_scores as plain

MAHALANOBIS = ["maha-mu2", "lr-maha"]
VALUES = [0.0, 1.0, -7.25, 1e8, 0.1]


def draw(d: int = 3, n1: int = 50, n2: int = 40) -> tuple[Any, Any]:
    rng = np.random.default_rng(2)
    mix = rng.normal(size=(d, d)) + np.eye(d)
    return rng.normal(size=(n1, d)) @ mix, (rng.normal(size=(n2, d)) + 0.8) @ mix


def with_columns(X: Any, at: Any, values: Any) -> Any:
    return np.insert(X, at, values, axis=1)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("value", VALUES)
@pytest.mark.parametrize("at", [[0], [0, 2, 3, 3]])
@pytest.mark.parametrize("name", MAHALANOBIS)
def test_constant_columns_change_no_score(name: str, at: Any, value: float, dtype: Any) -> None:
    """Bit for bit; and what is left is the definition."""
    forget, retain = (X.astype(dtype) for X in draw())
    more = [with_columns(X, at, value) for X in (forget, retain)]
    expected = SCORES[name].rank(Sets(forget, retain), 0).scores
    found = SCORES[name].rank(Sets(*more), 0).scores
    assert found.tolist() == expected.tolist()
    definition = plain.SCORES[name](forget.astype(float), retain.astype(float))
    np.testing.assert_allclose(found, definition, rtol=1e-4, atol=1e-4)
    removals = [
        DomainRemoval(name, budget=10, random_state=0).fit(*sets)
        for sets in ((forget, retain), more)
    ]
    alphas = [removal.frontier_.alpha for removal in removals]
    np.testing.assert_allclose(*alphas, rtol=1e-12, atol=1e-15)
    assert removals[0].trust_ == removals[1].trust_


def test_a_column_that_varies_changes_them() -> None:
    """The control: it is the constant that is without effect."""
    forget, retain = draw()
    rng = np.random.default_rng(0)
    more = [with_columns(X, 1, rng.normal(size=len(X))) for X in (forget, retain)]
    for name in MAHALANOBIS:
        before = SCORES[name].rank(Sets(forget, retain), 0).scores
        assert not np.allclose(SCORES[name].rank(Sets(*more), 0).scores, before, rtol=1e-3)


@pytest.mark.parametrize("name", MAHALANOBIS)
def test_a_column_may_be_constant_in_each_set_at_another_value(name: str) -> None:
    """As in `frontier_`: nothing varies within the sets, so there is no metric for it."""
    forget, retain = draw()
    more = with_columns(forget, 1, 3.0), with_columns(retain, 1, 4.0)
    found = SCORES[name].rank(Sets(*more), 0).scores
    assert found.tolist() == SCORES[name].rank(Sets(forget, retain), 0).scores.tolist()


@pytest.mark.parametrize("name", MAHALANOBIS)
def test_a_column_that_varies_in_one_set(name: str) -> None:
    """In retain alone it counts; in forget alone a distance in retain's covariance is infinite."""
    forget, retain = draw()
    rng = np.random.default_rng(0)
    more = with_columns(forget, 1, 3.0), with_columns(retain, 1, rng.normal(size=40))
    found = SCORES[name].rank(Sets(*more), 0).scores
    np.testing.assert_allclose(found, plain.SCORES[name](*more), rtol=1e-4, atol=1e-4)
    other = with_columns(forget, 1, rng.normal(size=50)), with_columns(retain, 1, 3.0)
    told = r"1 of 4 columns are constant in retain and vary in the other set \(1\)"
    with pytest.raises(InvalidInputError, match=told):
        SCORES[name].rank(Sets(*other), 0)


@pytest.mark.filterwarnings("ignore::erasable.removal.RemovalWarning")  # there are few records
@pytest.mark.parametrize("name", list(SCORES))
def test_every_score_takes_constant_and_doubled_columns(name: str) -> None:
    forget, retain = draw()
    rows = [with_columns(np.hstack([X, X[:, :1]]), [0, 2], 5.0) for X in (forget, retain)]
    removal = DomainRemoval(name, budget=5, random_state=0).fit(*rows)
    assert sorted(removal.order_.tolist()) == list(range(50))
    assert np.isfinite(removal.scores_).all()
    assert np.isfinite(removal.frontier_.alpha).all()


@pytest.mark.parametrize("copies", [1, 3])
@pytest.mark.parametrize("name", MAHALANOBIS)
def test_doubled_columns_are_shrunk_apart(name: str, copies: int) -> None:
    """The scores are those of the definition, and order the records nearly as without copies."""
    rng = np.random.default_rng(5)
    forget, retain = rng.normal(size=(400, 3)), rng.normal(size=(2000, 3)) + 1.0
    more = [np.hstack([X, *[X[:, :1]] * copies]) for X in (forget, retain)]
    found = SCORES[name].rank(Sets(*more), 0).scores
    np.testing.assert_allclose(found, plain.SCORES[name](*more), rtol=1e-3, atol=1e-3)
    alone = SCORES[name].rank(Sets(forget, retain), 0).scores
    assert spearmanr(found, alone)[0] > 0.97


@pytest.mark.parametrize("score", [MeanDistance("mahalanobis"), MeanMargin()])
def test_sets_that_do_not_vary_are_nowhere_apart(score: Any) -> None:
    found = score.rank(Sets(np.ones((5, 2)), np.ones((4, 2)) * 2), 0)
    assert found.scores.tolist() == [0.0] * 5


def test_the_two_gaussians_leave_them_out() -> None:
    forget, retain = draw()
    X, y = np.concatenate([forget, retain]), np.repeat([1, 0], [50, 40])
    expected = GaussianPair().fit(X, y).decision_function(X)
    more = with_columns(X, [0, 3], [4.0, 1e6])
    assert GaussianPair().fit(more, y).decision_function(more).tolist() == expected.tolist()
