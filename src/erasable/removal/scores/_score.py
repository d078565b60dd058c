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
    """Scores of the forget set."""

    scores: Floats  # higher leaves first
    order: Ints  # rows, first to leave first; ties in their order
    weights: Floats  # scores as shares of what there is to remove; none is negative
    # ``reference(sets, rows, seed)``; None for scores that do not learn from samples
    reference: Reference | None = None
    learns_from_forget: bool = False  # whether a score depends on the other records of forget


def by_score(scores: Floats, weights: Floats | None = None, **more: Any) -> Ranking:
    """Rank by descending score; of equal scores the earlier row comes first."""
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
    """Base of scores of single rows, given statistics of both sets."""

    by_passes = True
    _contrasts = True
    _learns_from_forget = False

    def rank(self, sets: Sets, seed: int) -> Ranking:
        """Score the forget set."""
        return by_score(
            self._scores(sets, sets.forget),
            reference=self._outside if self._contrasts else None,
            learns_from_forget=self._learns_from_forget,
        )

    def _scores(self, sets: Sets, rows: Any) -> Floats:
        raise NotImplementedError(f"{type(self).__name__} does not implement _scores()")

    def _outside(self, sets: Sets, rows: Any, seed: int) -> Floats:
        return self._scores(sets, rows)


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
        given = self.function(forget, retain)
        scores = as_numbers(given)
        n = forget.shape[0]
        if scores.shape != (n,) or not (np.abs(scores) <= _LARGEST).all():
            result = f"an array of shape {scores.shape}" if scores.size else f"{shorten(given)}"
            raise InvalidInputError(
                f"the score returned {result}; expected a finite number, up to {_LARGEST:g}, for "
                f"each of {n} records; return an array in the order of forget"
            )
        return scores

    def _outside(self, sets: Sets, rows: Any, seed: int) -> Floats:
        both = [rows, sets.forget]
        joined = stacked(both)
        return self._call(joined, sets.retain)[: rows.shape[0]]
