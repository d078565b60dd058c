"""The log density ratio of forget and retain, by a cross-fitted classifier."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

import erasable.removal.scores._classifiers as classifiers
from erasable.core.arrays import Floats, Ints
from erasable.core.errors import InvalidInputError, InvalidParameterError
from erasable.core.ids import shorten
from erasable.core.matrices import stacked
from erasable.core.seeds import is_integer
from erasable.removal._sets import Sets, some_of
from erasable.removal.scores._score import Ranking, Score, by_score

_COMPARED = 4_000  # records on which candidates are compared


class DensityRatio(Score):
    """Log density ratio ``log p1(x) / p2(x)``, the optimal score: ``density-ratio``.

    Where it is known, deleting by it is optimal for removal at every budget: `alpha` is convex in
    what is kept, and a deleted record gains ``log(1 + n1 / n2 * p1 / p2)``. It is estimated by
    telling forget from retain with a classifier. Each record is scored by one that has not seen it,
    and log odds are corrected for the sizes of the classes.

    Parameters
    ----------
    classifier : classifier, default=None
        Any with ``predict_proba`` or ``decision_function``; its draws are made from `random_state`.
        By default the simplest whose cross-fitted log-loss, on at most 4,000 records and both sets
        weighing alike, is within a standard error of the least: logistic regression with one of
        three penalties, two Gaussians with shrunk covariances, or logistic regression on 100 radial
        kernels; of sparse rows, logistic regression with one of three penalties.
    n_folds : int, default=5
        Parts of the forget set. Fewer where there are fewer records.
    max_train : int, default=50_000
        Records that a classifier is fitted on, at most; drawn where there are more. Of `Records`
        so many are read here, and those to score a part at a time.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> sets = Sets(rng.normal(0, 1, (200, 1)), rng.normal(2, 1, (200, 1)))
    >>> order = DensityRatio().rank(sets, 0).order
    >>> bool(sets.forget[order[:20]].max() < sets.forget[order[-20:]].min())
    True
    """

    def __init__(
        self, classifier: Any = None, *, n_folds: int = 5, max_train: int = 50_000
    ) -> None:
        self.classifier = classifier
        self.n_folds = n_folds
        self.max_train = max_train

    by_passes = True

    def rank(self, sets: Sets, seed: int) -> Ranking:
        """Score the forget set."""
        n1, n2 = sets.forget.shape[0], sets.retain.shape[0]
        self._check(n1)
        rng = np.random.default_rng(seed)
        given = self.classifier is not None
        choices = [self.classifier] if given else _simplest_first(sets, rng)
        fold = np.empty(n1, dtype=np.int64)
        fold[rng.permutation(n1)] = np.arange(n1) % min(self.n_folds, n1)
        for last, classifier in enumerate(choices, start=1):
            try:
                scores = self._cross_fitted(classifier, sets, fold, rng)
                break
            except InvalidInputError:  # a column may vary in halves, and in all folds but one
                if last == len(choices):
                    raise
        # What a deletion gains (see above); log(1 + e^x), which does not overflow.
        gains = np.logaddexp(0.0, scores + np.log(n1 / n2))
        return by_score(
            scores, gains, reference=partial(self._outside, classifier), learns_from_forget=True
        )

    def _cross_fitted(self, classifier: Any, sets: Sets, fold: Ints, rng: Any) -> Floats:
        scores = np.empty(fold.size)
        everyone = np.arange(sets.retain.shape[0])
        for each in range(int(fold.max()) + 1):
            left_out, others = np.flatnonzero(fold == each), np.flatnonzero(fold != each)
            scorer = self._learn(classifier, sets, others, everyone, rng)
            scores[left_out] = scorer(some_of(sets.forget, left_out))
        return scores

    def _outside(self, classifier: Any, sets: Sets, rows: Any, seed: int) -> Floats:
        rng = np.random.default_rng(seed)
        everyone = (np.arange(sets.forget.shape[0]), np.arange(sets.retain.shape[0]))
        found: Floats = self._learn(classifier, sets, *everyone, rng)(rows)
        return found

    def _learn(self, classifier: Any, sets: Sets, own: Ints, other: Ints, rng: Any) -> Any:
        own, other = _at_most(self.max_train, own, other, rng)
        X, y = _stacked(sets, own, other)
        model = classifiers.fitted(classifier, X, y, int(rng.integers(2**32)))
        return partial(
            classifiers.log_ratio, model, correction=float(np.log(other.size / own.size))
        )

    def _check(self, n: int) -> None:
        for name, least in (("n_folds", 2), ("max_train", 4)):
            value = getattr(self, name)
            if not is_integer(type(value)) or value < least:
                raise InvalidParameterError(
                    f"{name}={shorten(value)}; expected an integer of {least} or more; pass one"
                )
        if self.classifier is not None:
            classifiers.check_classifier(self.classifier)
        if n < 2:
            raise InvalidInputError(
                "forget has 1 record, and its score is to come from the others; expected 2 or "
                "more; pass more"
            )


def _at_most(limit: int, own: Ints, other: Ints, rng: Any) -> tuple[Ints, Ints]:
    """Draw at most `limit` rows from two sets: the same number of each, if possible."""
    if own.size + other.size <= limit:
        return own, other
    n_own = min(own.size, max(limit // 2, limit - other.size))
    n_other = min(other.size, limit - n_own)
    return (
        np.sort(rng.choice(own, n_own, replace=False)),
        np.sort(rng.choice(other, n_other, replace=False)),
    )


def _stacked(sets: Sets, own: Ints, other: Ints) -> tuple[Any, Ints]:
    both = [sets.forget[own], sets.retain[other]]
    X = stacked(both)
    return X, np.repeat(np.array([1, 0]), [own.size, other.size])


def _simplest_first(sets: Sets, rng: Any) -> list[Any]:
    """List the simplest candidate of a log-loss not clearly above the least, then the simplest.

    The simplest of all can be fitted to anything. Losses are on halves that the candidate was not
    fitted on; clearly means by more than a standard error of the paired differences.
    """
    rows = _at_most(
        _COMPARED, np.arange(sets.forget.shape[0]), np.arange(sets.retain.shape[0]), rng
    )
    halves = [(part[0::2], part[1::2]) for part in (rng.permutation(r) for r in rows)]
    smallest = min(part.size for pair in halves for part in pair)
    n = sum(pair[0].size for pair in halves)
    found = classifiers.candidates(sets.sparse, n, sets.n_features)
    if smallest < 2:
        return found[:1]  # too few to compare
    seed = int(rng.integers(2**32))
    tried = [(each, _losses(sets, each, halves, seed)) for each in found]
    learnt = [(each, loss) for each, loss in tried if loss is not None]
    losses = [loss for _, loss in learnt]
    means = [0.5 * (own.mean() + other.mean()) for own, other in losses]
    least = losses[int(np.argmin(means))]
    gaps = [[mine - best for mine, best in zip(loss, least, strict=True)] for loss in losses]
    above = [sum(float(g.mean()) for g in pair) for pair in gaps]
    errors = [np.sqrt(sum(float(g.var()) / g.size for g in pair)) for pair in gaps]
    close = (gap <= error for gap, error in zip(above, errors, strict=True))
    chosen = next(each for (each, _), near in zip(learnt, close, strict=True) if near)
    return [chosen, found[0]]


def _losses(sets: Sets, candidate: Any, halves: Any, seed: int) -> Any:
    """Return log-losses of forget and of retain, by the other half's model; None without one."""
    own_losses, other_losses = [], []
    for a, b in ((0, 1), (1, 0)):
        own, other = halves[0][a], halves[1][a]
        X, y = _stacked(sets, own, other)
        try:
            model = classifiers.fitted(candidate, X, y, seed)
        except InvalidInputError:  # a covariance that cannot be inverted
            return None
        correction = float(np.log(other.size / own.size))
        own_ratios = classifiers.log_ratio(model, sets.forget[halves[0][b]], correction)
        other_ratios = classifiers.log_ratio(model, sets.retain[halves[1][b]], correction)
        own_losses.append(np.logaddexp(0.0, -own_ratios))
        other_losses.append(np.logaddexp(0.0, other_ratios))
    return np.concatenate(own_losses), np.concatenate(other_losses)
