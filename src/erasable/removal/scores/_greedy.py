"""Orders built greedily from the forget set alone: k-center, CRAIG and GradMatch.

Distances are computed when needed: time is quadratic in the records, memory is not.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.optimize import nnls

from erasable.core.arrays import Floats
from erasable.core.matrices import take_rows, to_dense
from erasable.removal._inputs import read_number
from erasable.removal._sets import Sets, distances_to, products_with
from erasable.removal.scores._drawn import in_order
from erasable.removal.scores._score import Ranking, Score

_NOTHING = 1e-9  # of what a pursuit began with: below it is rounding


def _row(rows: Any, place: int) -> Floats:
    row = rows[[place]]
    dense = to_dense(row)
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

    needs_retain = False

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

    needs_retain = False

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

    Minimises ``|sum_i w_i g_i - sum_all g|**2 + lam |w|**2`` over weights of 0 or more, greedily:
    each step takes the record along whose gradient the objective falls most, and fits the weights
    of all that were taken anew by non-negative least squares. Without a model, the gradient of a
    record is that of a linear model of one class: its features and a constant. Once a pursuit has
    taken as many records as there are dimensions, or no record lowers the objective, another starts
    on the records that are left.

    The pursuit stops at a budget that is known before, a `Count` or a `Share`: each of its records
    costs a pass over the forget set. The other records follow by the product of their gradient and
    the sum of the gradients that are left.

    Parameters
    ----------
    lam : float, default=0.5
        The paper's regularisation of weights.

    References
    ----------
    Killamsetty, Sivasubramanian, Ramakrishnan, De and Iyer, GRAD-MATCH, ICML 2021.

    Bruckstein, Elad and Zibulevsky, On the Uniqueness of Nonnegative Sparse Solutions to
    Underdetermined Systems of Equations, IEEE Trans. Inf. Theory 54, 2008.

    Examples
    --------
    >>> GradMatch().rank(Sets(np.array([[1.0], [5.0], [2.0]]), np.zeros((1, 1))), 0).order[0]
    np.int64(1)
    """

    needs_retain = False

    def __init__(self, lam: float = 0.5) -> None:
        self.lam = lam

    def rank(self, sets: Sets, seed: int) -> Ranking:
        """Score the forget set."""
        return self.rank_first(sets, seed, sets.forget.shape[0])

    def rank_first(self, sets: Sets, seed: int, n_first: int) -> Ranking:
        """Score the forget set, by pursuits up to `n_first` records."""
        lam = read_number(self.lam, "lam", 0.0, np.inf, ends="[)")
        rows, left = sets.forget, np.arange(sets.forget.shape[0])
        order: list[int] = []
        while len(order) < n_first:
            taken = _pursue(rows, n_first - len(order), lam)
            order += left[taken].tolist()
            left = np.delete(left, taken)
            rows = take_rows(sets.forget, left)
        match = _products(_gradient(rows), rows)
        rest = left[np.argsort(-match, kind="stable")]
        return in_order(np.append(order, rest).astype(np.int64))


def _pursue(rows: Any, most: int, lam: float) -> list[int]:
    """Choose up to a number of records by one pursuit."""
    target = _gradient(rows)
    to_target = _products(target, rows)
    match = to_target.copy()
    least = _NOTHING * float(match.max())
    taken: list[int] = []
    weights, gram = np.empty(0), np.empty((0, 0))
    while len(taken) < min(most, target.size):
        place = int(np.argmax(match))
        if taken and match[place] <= least:
            break
        taken.append(place)
        atoms = rows[taken]
        new = _products(np.append(_row(rows, place), 1.0), atoms)
        gram = np.pad(gram, (0, 1))
        gram[-1], gram[:, -1] = new, new
        gram[-1, -1] += lam
        solved = _solved(gram, to_target[taken], np.append(weights, 1.0))
        weights = _non_negative(atoms, target, lam) if solved is None else solved
        residual = target - np.append(weights @ atoms, weights.sum())
        if np.linalg.norm(residual) <= _NOTHING * np.linalg.norm(target):
            break
        match = _products(residual, rows)
        match[taken] = -np.inf
    return taken


def _gradient(rows: Any) -> Floats:
    """Return the sum of the gradients of the rows: of their features, and their number."""
    ones = np.ones(rows.shape[0])
    return np.append(np.asarray(ones @ rows, dtype=np.float64).ravel(), float(ones.size))


def _products(direction: Floats, rows: Any) -> Floats:
    """Return the product of each row's gradient with a direction; equal rows have equal ones."""
    found: Floats = products_with(direction[:-1], rows) + direction[-1]
    return found


def _solved(gram: Floats, right: Floats, guess: Floats) -> Floats | None:
    """Return the least ``w' gram w - 2 right' w`` with ``w >= 0``, if `guess` has its support.

    Records seldom lose their weight when another is taken. The conditions of Karush, Kuhn and
    Tucker, which are sufficient, tell whether they have.
    """
    active = guess > 0
    weights = np.zeros(guess.size)
    try:
        weights[active] = np.linalg.solve(gram[np.ix_(active, active)], right[active])
    except np.linalg.LinAlgError:
        return None
    descent = right - gram @ weights
    rounding = _NOTHING * float(np.abs(right).max())
    solved = (weights >= 0).all() and (np.abs(descent[active]) <= rounding).all()
    return weights if solved and (descent <= rounding).all() else None


def _non_negative(atoms: Any, target: Floats, lam: float) -> Floats:
    """Return the non-negative weights that match a target best, regularised by `lam`."""
    dense = to_dense(atoms)
    n = dense.shape[0]
    system = np.vstack([dense.T.astype(np.float64), np.ones((1, n)), np.sqrt(lam) * np.eye(n)])
    right = np.concatenate([target, np.zeros(n)])
    weights: Floats = nnls(system, right, maxiter=100 * n)[0]
    return weights
