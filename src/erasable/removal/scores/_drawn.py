"""Orders that are drawn: at random, and from strata of difficulty (CCS)."""

from __future__ import annotations

from typing import Any

import numpy as np

from erasable.core.arrays import Floats, Ints
from erasable.core.errors import InvalidInputError, InvalidParameterError
from erasable.core.ids import shorten
from erasable.core.messages import refuse_signature
from erasable.removal._inputs import as_numbers, read_count, read_number
from erasable.removal._sets import Sets, distances_to
from erasable.removal.scores._score import Ranking, Score


def in_order(order: Ints) -> Ranking:
    """Rank by an order alone: scores fall from 1 by equal steps, and all records weigh alike."""
    n = order.size
    scores = np.empty(n)
    scores[order] = 1.0 - np.arange(n) / n
    return Ranking(scores, order, np.ones(n))


class Random(Score):
    """A uniformly random order, which depends on ids and the seed alone: ``random``.

    Examples
    --------
    >>> sorted(Random().rank(Sets(np.zeros((3, 1)), np.zeros((1, 1))), 7).order.tolist())
    [0, 1, 2]
    """

    needs_retain = False
    by_passes = True

    def rank(self, sets: Sets, seed: int) -> Ranking:
        """Score the forget set."""
        return in_order(sets.drawn(seed))


class CCS(Score):
    """Coverage-centric selection: at random from strata of difficulty, evenly: ``ccs``.

    The hardest records come last. The others are divided into strata of equal width in difficulty,
    and leave by turns: one of each stratum that is left, then again. At any budget each stratum
    has given the same number, or all it has, which is the allotment of the paper's algorithm 1; so
    one order serves all budgets.

    Parameters
    ----------
    n_strata : int, default=50
    hardest : float, default=0.0
        Share of the hardest records that is kept out of the strata (the paper's beta).
    difficulty : callable, default=None
        ``difficulty(forget)``, a number for each record. By default, without a model,
        the distance to the forget mean.

    References
    ----------
    Zheng, Liu, Lai and Prakash, Coverage-centric Coreset Selection for High Pruning Rates, ICLR
    2023.

    Examples
    --------
    >>> sets = Sets(np.array([[0.0], [0.0], [0.0], [6.0]]), np.zeros((1, 1)))
    >>> 3 in CCS(n_strata=2).rank(sets, 0).order[:2]
    True
    """

    needs_retain = False

    def __init__(self, n_strata: int = 50, *, hardest: float = 0.0, difficulty: Any = None) -> None:
        self.n_strata = n_strata
        self.hardest = hardest
        self.difficulty = difficulty

    @property
    def by_passes(self) -> bool:
        """Whether it scores stored records: not with a `difficulty` of all of them."""
        return self.difficulty is None

    def rank(self, sets: Sets, seed: int) -> Ranking:
        """Score the forget set."""
        n_strata = read_count(self.n_strata, "n_strata", 1)
        hardest = read_number(self.hardest, "hardest", 0.0, 1.0, ends="[)")
        if self.difficulty is not None and not callable(self.difficulty):
            raise InvalidParameterError(
                f"difficulty={shorten(self.difficulty)}; expected a function of the forget set, or "
                "None; pass one"
            )
        difficulty = self._difficulty(sets)
        n = difficulty.size
        place = np.argsort(sets.drawn(seed))  # of each row in a random order, by ids
        ascending = np.lexsort((place, difficulty))
        easy = ascending[: n - int(hardest * n)]
        low, high = difficulty[easy[0]], difficulty[easy[-1]]
        width = (high - low) / n_strata
        stratum = np.zeros(easy.size, dtype=np.int64)
        if width > 0:
            stratum = np.minimum((difficulty[easy] - low) // width, n_strata - 1).astype(int)
        drawn = np.argsort(place[easy])
        turn = np.empty(easy.size, dtype=np.int64)
        for each in np.unique(stratum):
            members = drawn[stratum[drawn] == each]
            turn[members] = np.arange(members.size)
        # Who is first among those of one turn is drawn, too.
        order = easy[drawn[np.argsort(turn[drawn], kind="stable")]]
        return in_order(np.concatenate([order, ascending[easy.size :]]))

    def _difficulty(self, sets: Sets) -> Floats:
        if self.difficulty is None:
            return distances_to(sets.forget_moments.mean(), sets.forget)
        refuse_signature(self.difficulty, "difficulty", "forget")
        found = as_numbers(self.difficulty(sets.forget))
        if found.shape != (sets.forget.shape[0],) or not np.isfinite(found).all():
            raise InvalidInputError(
                f"difficulty returned an array of shape {found.shape}; expected a finite number "
                f"for each of {sets.forget.shape[0]} records; return one in the order of forget"
            )
        return found
