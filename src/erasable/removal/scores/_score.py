"""Base of scores: numbers for the forget set, and the order in which its records leave."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from erasable.core.arrays import Floats, Ints
from erasable.core.errors import InvalidInputError
from erasable.core.ids import shorten
from erasable.core.matrices import stacked
from erasable.core.messages import refuse_signature
from erasable.removal._inputs import as_numbers
from erasable.removal._sets import Sets

_LARGEST = 1e290  # of a score, so that differences and sums of many are finite

Reference = Callable[[Sets, Any, int], Floats]
"""Scores rows by what it learns from two sets in which they are not."""


@dataclass(frozen=True)
class Ranking:
    """Scores of the forget set, and the order in which its records leave.

    Attributes
    ----------
    scores : ndarray of shape (n_forget,), float64
        Higher leaves first.
    order : ndarray of shape (n_forget,), int64
        Rows of forget, first to leave first.
    weights : ndarray of shape (n_forget,), float64
        Shares of what there is to remove, not negative: `Coverage` adds them up.
    reference : callable or None
        ``reference(sets, rows, seed)`` scores rows by what it learns from two sets that do not have
        them; `trust_` compares such scores. None where scores learn from no sample.
    learns_from_forget : bool
        Whether the score of a record depends on other records of forget.

    Examples
    --------
    >>> by_score(np.array([1.0, 3.0, 2.0])).order
    array([1, 2, 0])
    """

    scores: Floats
    order: Ints
    weights: Floats
    reference: Reference | None = None
    learns_from_forget: bool = False


def by_score(scores: Floats, weights: Floats | None = None, **more: Any) -> Ranking:
    """Rank by descending score; of equal scores the earlier row comes first.

    Parameters
    ----------
    scores : ndarray of shape (n_forget,), float64
    weights : ndarray of shape (n_forget,), default=None
        By default scores, or their height above the least where one is negative.
    **more
        `reference` and `learns_from_forget` of the `Ranking`.

    Returns
    -------
    Ranking

    Examples
    --------
    >>> by_score(np.array([-1.0, 3.0])).weights
    array([0., 4.])
    """
    if weights is None:
        weights = scores - min(0.0, float(scores.min()))
    order = np.argsort(-scores, kind="stable")
    return Ranking(scores, order, weights, **more)


class Score(BaseEstimator, ABC):
    """Base of the scores: a subclass has a `rank` method.

    Attributes
    ----------
    needs_retain : bool
        Whether it uses the retain set; otherwise `sets.retain` may be None.
    by_passes : bool
        Whether it scores stored `Records`: rows of the sets are then
        `erasable.core.tables.RecordRows`.

    Examples
    --------
    >>> from erasable.removal.scores import Norm
    >>> isinstance(Norm(), Score)
    True
    """

    needs_retain = True

    @property
    def by_passes(self) -> bool:
        """Whether it scores `Records`."""
        return False

    @abstractmethod
    def rank(self, sets: Sets, seed: int) -> Ranking:
        """Score the forget set.

        Parameters
        ----------
        sets : Sets
            Checked rows of both.
        seed : int

        Returns
        -------
        Ranking
        """

    def rank_first(self, sets: Sets, seed: int, n_first: int) -> Ranking:
        """Score the forget set, of which `n_first` records leave at most.

        A score that takes one record after the other may stop there, and rank the others by less.

        Parameters
        ----------
        sets : Sets
        seed : int
        n_first : int
            From 1 to n_forget. The first `n_first` of the order are those of `rank`.

        Returns
        -------
        Ranking
            Of all records.
        """
        return self.rank(sets, seed)


class RowScore(Score):
    """Base of scores of single rows, given statistics of both sets: it has a `score_rows` method.

    Rows that are not in the sets can be scored, so `trust_` is estimated. A subclass that sets
    `by_passes` scores stored `Records`, too: rows are then `erasable.core.tables.RecordRows`.

    Attributes
    ----------
    contrasts : bool
        Whether it learns from samples; otherwise `trust_` is NaN. True by default.
    learns_from_forget : bool
        Whether a score depends on other records of forget, by `sets.forget` or its moments. False
        by default.

    Examples
    --------
    >>> class Lead(RowScore):
    ...     def score_rows(self, sets, rows):
    ...         return rows[:, 0] - sets.retain_moments.mean()[0]
    >>> Lead().rank(Sets(np.array([[1.0], [3.0]]), np.array([[0.5]])), 0).scores
    array([0.5, 2.5])
    """

    contrasts = True
    learns_from_forget = False

    @abstractmethod
    def score_rows(self, sets: Sets, rows: Any) -> Floats:
        """Score some rows.

        Parameters
        ----------
        sets : Sets
            What is learned from.
        rows : ndarray or csr_array of shape (n_rows, n_features)
            Those of `sets.forget`, or others of the domain.

        Returns
        -------
        ndarray of shape (n_rows,), float64
            Finite; higher leaves first.
        """

    def rank(self, sets: Sets, seed: int) -> Ranking:
        """Score the forget set."""
        return by_score(
            checked(self.score_rows(sets, sets.forget), sets.forget.shape[0]),
            reference=self._outside if self.contrasts else None,
            learns_from_forget=self.learns_from_forget,
        )

    def _outside(self, sets: Sets, rows: Any, seed: int) -> Floats:
        return checked(self.score_rows(sets, rows), rows.shape[0])


def checked(given: Any, n: int) -> Floats:
    """Return the scores of n records; anything but a finite number for each is refused."""
    scores = as_numbers(given)
    if scores.shape != (n,) or not (np.abs(scores) <= _LARGEST).all():
        wrong = int(np.sum(~(np.abs(scores) <= _LARGEST)))
        result = f"an array of shape {scores.shape}" if scores.size else f"{shorten(given)}"
        if scores.shape == (n,):
            result = f"{wrong} of {n} numbers that are NaN, infinite or too large"
        raise InvalidInputError(
            f"the score returned {result}; expected a finite number, up to {_LARGEST:g}, for "
            f"each of {n} records; return an array in the order of forget"
        )
    return scores


class Custom(Score):
    """A score of your own.

    Parameters
    ----------
    function : callable
        ``function(forget, retain)`` returns a finite number for each row of forget; higher leaves
        first.

    Examples
    --------
    >>> import numpy as np
    >>> score = Custom(lambda forget, retain: forget[:, 0] - retain[:, 0].mean())
    >>> score.rank(Sets(np.array([[1.0], [3.0]]), np.array([[0.0]])), 0).order
    array([1, 0])
    """

    def __init__(self, function: Any) -> None:
        self.function = function

    def rank(self, sets: Sets, seed: int) -> Ranking:
        """Score the forget set."""
        return by_score(
            self._call(sets.forget, sets.retain), reference=self._outside, learns_from_forget=True
        )

    def _call(self, forget: Any, retain: Any) -> Floats:
        refuse_signature(self.function, "score", "forget, retain")
        return checked(self.function(forget, retain), forget.shape[0])

    def _outside(self, sets: Sets, rows: Any, seed: int) -> Floats:
        both = [rows, sets.forget]
        joined = stacked(both)
        return self._call(joined, sets.retain)[: rows.shape[0]]
