"""Scores of a user: a class of single rows, and one that ranks, beside functions and names."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

from erasable import Records
from erasable.core.errors import InvalidInputError, InvalidParameterError
from erasable.removal import DomainRemoval, deletions_needed, sweep
from erasable.removal.scores import RowScore, Score, Sets, by_score

RNG = np.random.default_rng(0)
F, R = RNG.normal(size=(60, 3)), RNG.normal(size=(50, 3)) + 1.0


class Far(RowScore):
    """`mu2-distance`, written anew."""

    def __init__(self, power: float = 2.0) -> None:
        self.power = power

    def score_rows(self, sets: Sets, rows: Any) -> Any:
        apart = rows - sets.retain_moments.mean()
        return np.sqrt((apart**2).sum(axis=1)) ** self.power


def test_a_score_of_rows_is_as_good_as_the_library_s() -> None:
    ours, theirs = (DomainRemoval(s, random_state=0).fit(F, R) for s in (Far(), "mu2-distance"))
    np.testing.assert_allclose(ours.scores_, theirs.scores_)
    assert ours.order_.tolist() == theirs.order_.tolist()
    assert ours.trust_ == pytest.approx(theirs.trust_)
    assert ours.selected_.tolist() == theirs.selected_.tolist()
    assert clone(DomainRemoval(Far(3.0))).get_params()["score__power"] == 3.0
    assert sweep([Far()], [0, 5], None, F, R, seeds=1).scores == ("Far()",)


def test_it_takes_records_where_it_says_so() -> None:
    with pytest.raises(InvalidInputError, match="looks at all records together"):
        DomainRemoval(Far()).fit(Records(F), Records(R))


@pytest.mark.parametrize("value", [np.nan, np.inf, 1e300])
def test_scores_are_finite(value: float) -> None:
    class Other(Far):
        def score_rows(self, sets: Sets, rows: Any) -> Any:
            return np.where(np.arange(len(rows)) == 1, value, 0.0)

    with pytest.raises(InvalidInputError, match="expected a finite number, up to 1e"):
        DomainRemoval(Other()).fit(F, R)


def test_scores_are_one_for_each_row() -> None:
    class Short(Far):
        def score_rows(self, sets: Sets, rows: Any) -> Any:
            return np.zeros(3)

    with pytest.raises(InvalidInputError, match=r"shape \(3,\); expected .* each of 60 records"):
        DomainRemoval(Short()).fit(F, R)


def test_a_base_alone_is_no_score() -> None:
    for base in (Score, RowScore):
        with pytest.raises(TypeError, match="abstract"):
            base()


def test_an_order_of_its_own() -> None:
    class Backwards(Score):
        needs_retain = False

        def rank(self, sets: Sets, seed: int) -> Any:
            return by_score(np.arange(sets.forget.shape[0], dtype=float))

    removal = DomainRemoval(Backwards(), budget=3).fit(F)
    assert removal.selected_.tolist() == [59, 58, 57]
    assert np.isnan(removal.trust_)


def lead(forget: Any, retain: Any) -> Any:
    return retain.mean(axis=0)[0] - forget[:, 0]


def test_a_sweep_is_asked_by_the_scores_that_it_was_given() -> None:
    swept = sweep([lead, Far()], [0, 20, 40], len, F, R, seeds=2)
    for given, name in ((lead, "lead"), (Far(), "Far()")):
        needed = deletions_needed(given, 30, swept)
        assert (needed.score, needed.n_deleted) == (name, 30.0)
        assert needed.n_deleted == deletions_needed(name, 30, swept).n_deleted
    with pytest.raises(InvalidInputError, match=r"there is no score 'Far\(power=3.0\)'"):
        deletions_needed(Far(3.0), 30, swept)


def test_what_is_wrong_with_a_score_is_told() -> None:
    with pytest.raises(InvalidInputError, match="2 of 60 numbers that are NaN"):
        DomainRemoval(lambda f, r: np.where(np.arange(60) < 2, np.nan, 1.0)).fit(F, R)
    with pytest.raises(InvalidInputError, match=r"shape \(3,\)"):
        DomainRemoval(lambda f, r: np.ones(3)).fit(F, R)
    with pytest.raises(InvalidParameterError, match="score=the class Far; expected"):
        DomainRemoval(Far).fit(F, R)
