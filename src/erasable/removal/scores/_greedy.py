"""Orders that are built greedily from the forget set alone: k-center, CRAIG and GradMatch.

Distances are computed when they are asked for: time is quadratic in the records, memory is not.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import issparse

from erasable.core._grid_kernels import Floats
from erasable.core.errors import InvalidParameterError
from erasable.core.ids import shorten
from erasable.removal._sets import Sets, distances_to
from erasable.removal.scores._base import Ranking, Score
from erasable.removal.scores._drawn import in_order

__all__ = ["Craig", "GradMatch", "KCenter"]


def _row(rows: Any, place: int) -> Floats:
    row = rows[[place]]
    dense = row.toarray() if issparse(rows) else row
    return np.asarray(dense[0], dtype=np.float64)


class KCenter(Score):
    """Farthest-first traversal of the forget set: ``k-center``.

    The record nearest to the forget mean leaves first, then always the one that is farthest from
    all that left. The score is that distance; the first record's is the second's.

    References
    ----------
    Gonzalez, Clustering to minimize the maximum intercluster distance, 1985.

    Examples
    --------
    >>> KCenter().rank(Sets(np.array([[0.0], [4.0], [5.0], [9.0]]), np.zeros((1, 1))), 0).order
    array([1, 3, 0, 2])
    """

    def rank(self, sets: Sets, seed: int) -> Ranking:
        """Score the forget set."""
        rows = sets.forget
        n = rows.shape[0]
        to_mean = distances_to(sets.forget_moments.mean(), rows)
        order = np.empty(n, dtype=np.int64)
        scores = np.zeros(n)
        order[0] = np.argmin(to_mean)
        nearest = distances_to(_row(rows, int(order[0])), rows)
        nearest[order[0]] = -1.0
        for step in range(1, n):
            place = int(np.argmax(nearest))
            order[step] = place
            scores[place] = np.sqrt(nearest[place])
            np.minimum(nearest, distances_to(_row(rows, place), rows), out=nearest)
            # It is below every distance, also below one to itself that a sum may leave above 0.
            nearest[place] = -1.0
        scores[order[0]] = scores[order[min(1, n - 1)]]
        return Ranking(scores, order, scores)


class Craig(Score):
    """Greedy facility location: ``craig``, the records that represent the forget set best first.

    Each step takes the record that lowers ``sum_i min_{j taken} |x_i - x_j|`` most, from a phantom
    that is as far as twice the largest distance to the mean. The score is what it lowers. Distances
    of features bound those of gradients, as in the paper for convex losses.

    References
    ----------
    Mirzasoleiman, Bilmes and Leskovec, Coresets for Data-efficient Training of Machine Learning
    Models, ICML 2020.

    Examples
    --------
    >>> Craig().rank(Sets(np.array([[0.0], [1.0], [2.0], [9.0]]), np.zeros((1, 1))), 0).order
    array([1, 3, 0, 2])
    """

    def rank(self, sets: Sets, seed: int) -> Ranking:
        """Score the forget set."""
        rows = sets.forget
        n = rows.shape[0]
        to_mean = distances_to(sets.forget_moments.mean(), rows)
        best = np.full(n, 2.0 * float(np.sqrt(to_mean.max())))
        # Two records that are nearest to each other gain the same, but for rounding: that is a tie.
        unit = np.ldexp(1.0, int(np.frexp(n * best[0])[1]) - 44)
        bounds = np.full(n, np.inf)
        order = np.empty(n, dtype=np.int64)
        scores = np.zeros(n)
        for step in range(n):
            fresh = -1
            while True:
                place = int(np.argmax(bounds))
                if place == fresh:
                    break
                # Gains only shrink: one that is still the largest after a second look is so.
                fresh = place
                apart = np.sqrt(distances_to(_row(rows, place), rows))
                bounds[place] = np.rint(np.maximum(best - apart, 0.0).sum() / unit) * unit
            order[step], scores[place] = place, bounds[place]
            np.minimum(best, apart, out=best)
            best[place] = 0.0
            bounds[place] = -1.0
        return Ranking(scores, order, scores)


class GradMatch(Score):
    """Orthogonal matching pursuit of the forget set's gradient: ``gradmatch``.

    Minimises ``|sum_i w_i g_i - sum_all g|**2 + lam |w|**2`` greedily. Without a model, the
    gradient of a record is that of a linear model of one class: its features and a constant. Once a
    pursuit has taken as many records as there are dimensions, or left nothing, another starts on
    the records that are left, so that there is an order of all.

    Parameters
    ----------
    lam : float, default=0.5
        The paper's regularisation of weights.

    References
    ----------
    Killamsetty, Sivasubramanian, Ramakrishnan, De and Iyer, GRAD-MATCH, ICML 2021.

    Examples
    --------
    >>> GradMatch().rank(Sets(np.array([[1.0], [5.0], [2.0]]), np.zeros((1, 1))), 0).order[0]
    np.int64(1)
    """

    def __init__(self, lam: float = 0.5) -> None:
        self.lam = lam

    def rank(self, sets: Sets, seed: int) -> Ranking:
        """Score the forget set."""
        number = isinstance(self.lam, int | float | np.number) and not isinstance(self.lam, bool)
        if not number or not 0 <= self.lam < np.inf:
            raise InvalidParameterError(
                f"lam={shorten(self.lam)}; expected a number of 0 or more; pass one"
            )
        rows, n = sets.forget, sets.forget.shape[0]
        left = np.ones(n, dtype=bool)
        order: list[int] = []
        while len(order) < n:
            taken = self._pursue(rows, left)
            order += taken
            left[taken] = False
        return in_order(np.array(order, dtype=np.int64))

    def _pursue(self, rows: Any, left: Any) -> list[int]:
        target = np.append(np.asarray(left @ rows, dtype=np.float64).ravel(), float(left.sum()))
        residual, free = target, left.copy()
        taken: list[int] = []
        atoms = np.empty((0, target.size))
        while free.any() and len(taken) < target.size:
            if np.linalg.norm(residual) <= 1e-9 * np.linalg.norm(target) and taken:
                break
            match = np.asarray(rows @ residual[:-1]).ravel() + residual[-1]
            place = int(np.argmax(np.where(free, np.abs(match), -1.0)))
            taken.append(place)
            free[place] = False
            atoms = np.vstack([atoms, np.append(_row(rows, place), 1.0)])
            system = atoms @ atoms.T + self.lam * np.eye(len(taken))
            weights = np.linalg.lstsq(system, atoms @ target, rcond=None)[0]
            residual = target - weights @ atoms
        return taken
