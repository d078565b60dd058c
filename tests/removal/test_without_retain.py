"""Scores that look at forget alone are fitted with it alone; others say what they are missing."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array

from erasable.core.errors import InvalidIdsError, InvalidInputError
from erasable.removal import Cost, Coverage, DomainRemoval, MaxShift, MinRemoval
from erasable.removal.scores import SCORES, Norm

ALONE = ("norm", "coreset", "k-center", "random", "craig", "gradmatch", "ccs")
CONTRASTS = tuple(name for name in SCORES if name not in ALONE)
RNG = np.random.default_rng(0)
FORGET, RETAIN = RNG.normal(size=(30, 3)), RNG.normal(size=(20, 3)) + 1.0


@pytest.mark.parametrize("kind", [np.asarray, csr_array, pd.DataFrame, np.ndarray.tolist])
@pytest.mark.parametrize("budget", [7, 0.2, None, Cost(np.arange(1.0, 31.0), 50.0)])
@pytest.mark.parametrize("name", ALONE)
def test_the_choice_is_the_one_with_retain(name: str, budget: Any, kind: Any) -> None:
    """A retain set within the range of forget, which leaves the grid as it is."""
    made = kind(FORGET)
    ids = np.arange(100, 130) if kind is pd.DataFrame else None  # frames have ids of their own
    alone = DomainRemoval(name, budget=budget, random_state=0).fit(made, ids=ids)
    both = DomainRemoval(name, budget=budget, random_state=0).fit(made, kind(FORGET[:20]), ids=ids)
    assert alone.order_.tolist() == both.order_.tolist()
    assert alone.scores_.tolist() == both.scores_.tolist()
    assert alone.selected_ids_.tolist() == both.selected_ids_.tolist()
    assert np.isnan(alone.trust_)
    assert alone.n_features_in_ == 3


@pytest.mark.parametrize("name", CONTRASTS)
def test_a_contrast_needs_retain(name: str) -> None:
    removal = DomainRemoval("norm", budget=2).fit(FORGET, RETAIN)
    learnt = dict(vars(removal))
    removal.set_params(score=name)
    told = f"no retain was given, and score='{name}' compares .* one of norm, coreset, k-center"
    with pytest.raises(InvalidInputError, match=told) as caught:
        removal.fit(FORGET)
    assert "\n" not in str(caught.value)
    assert vars(removal) == learnt | {"score": name}


def test_a_function_is_given_both() -> None:
    with pytest.raises(InvalidInputError, match="no retain was given"):
        DomainRemoval(lambda F, R: F[:, 0]).fit(FORGET)


def test_the_list_of_scores_is_that_of_the_documentation() -> None:
    assert tuple(name for name, score in SCORES.items() if not score.needs_retain) == ALONE
    for name in ALONE:
        assert f"`{name}`" in (DomainRemoval.fit.__doc__ or "")


@pytest.mark.parametrize("ask", ["frontier_", "alpha_", "epsilon_", "certificate_", "plot"])
@pytest.mark.parametrize("pickled", [False, True])
def test_what_is_measured_against_retain_is_refused(ask: str, pickled: bool) -> None:
    removal = DomainRemoval("norm", budget=2).fit(FORGET)
    removal = pickle.loads(pickle.dumps(removal)) if pickled else removal
    assert removal.selected_.size == 2
    with pytest.raises(InvalidInputError, match="no retain was given to fit, and a "):
        removal.plot() if ask == "plot" else getattr(removal, ask)
    if not pickled:
        _ = getattr(removal.fit(FORGET, RETAIN), ask)


@pytest.mark.parametrize("budget", [MinRemoval(0.1), MaxShift(0.1)])
def test_budgets_that_go_by_the_frontier_are_refused(budget: Any) -> None:
    removal = DomainRemoval("norm", budget=2).fit(FORGET)
    chosen = removal.selected_
    with pytest.raises(InvalidInputError, match="no retain was given to fit, and a frontier"):
        removal.set_params(budget=budget).fit(FORGET)
    assert removal.selected_ is chosen


def test_ids_of_a_set_that_is_not_there() -> None:
    with pytest.raises(InvalidIdsError, match="there is no retain"):
        DomainRemoval("norm", budget=2).fit(FORGET, ids=(range(30), range(30, 50)))
    frame = pd.DataFrame(FORGET).assign(who=[f"u{i}" for i in range(30)])
    frame.columns = frame.columns.astype(str)
    removal = DomainRemoval("norm", budget=Coverage(0.1)).fit(frame, ids="who")
    assert removal.selected_ids_.tolist() == [f"u{i}" for i in removal.selected_]


def test_a_score_of_ones_own_says_whether_it_needs_it() -> None:
    class Reversed(Norm):
        """Smallest first."""

        def score_rows(self, sets: Any, rows: Any) -> Any:
            return -super().score_rows(sets, rows)

    removal = DomainRemoval(Reversed(), budget=1).fit(FORGET)
    assert removal.selected_[0] == np.argmin((FORGET**2).sum(axis=1))
