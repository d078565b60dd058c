"""The records of a domain, found with few labels: who labels is asked where it tells the most."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import csr_array, issparse
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from erasable.core.arrays import Flags, Floats, Ints
from erasable.core.errors import InvalidInputError, InvalidParameterError
from erasable.core.ids import shorten
from erasable.core.seeds import seed_from
from erasable.removal._inputs import as_array, read_count, read_deleted, read_table
from erasable.removal.scores import _classifiers as classifiers

__all__ = ["IdentifiedDomain", "identify_domain"]

_BACKGROUND = 1000  # records that stand for those that are not of the domain, at least
_EXPLORE = ("density-ratio", "uncertainty", "random")


@dataclass(frozen=True)
class IdentifiedDomain:
    """The records of a domain that were found, and what was asked for it.

    Attributes
    ----------
    rows : ndarray of shape (n_found,), int64
        Records of the domain: those known from the start, then those found, in the order of labels.
    asked : ndarray of shape (n_labels,), int64
        Records that were labelled, in this order.
    labels : ndarray of shape (n_labels,), bool
        Whether each of them is of the domain.
    scores : ndarray of shape (n_records,), float64
        The log density ratio of the domain and of the others, by the last fit: of records without
        a label, the highest are likely to be of the domain.

    Examples
    --------
    >>> found = IdentifiedDomain(np.array([4]), np.array([4, 1]), np.array([True, False]),
    ...                          np.zeros(5))
    >>> found.rows
    array([4])
    """

    rows: Ints
    asked: Ints
    labels: Flags
    scores: Floats


def identify_domain(
    X: Any,
    label: Callable[[Ints], Any],
    n_labels: int,
    *,
    start: Any = (),
    batch_size: int = 50,
    explore: str = "density-ratio",
    classifier: Any = None,
    random_state: Any = None,
) -> IdentifiedDomain:
    """Find the records of a domain with a budget of labels.

    Labels are asked for in batches. After each a classifier learns to tell the records known to be
    of the domain from the others, which gives the log density ratio of both for every record.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n_records, n_features)
    label : callable
        Takes rows, an ndarray of int64, and returns a boolean for each: whether the record is of
        the domain. No record is asked about twice.
    n_labels : int
        Labels to spend, at most the number of records that are not known.
    start : array-like of int, or boolean mask of shape (n_records,), default=()
        Records known to be of the domain. Without any, labels are asked at random until the first
        is found.
    batch_size : int, default=50
        Labels that are asked for at once.
    explore : {"density-ratio", "uncertainty", "random"}, default="density-ratio"
        What is asked next: what has the largest ratio, which finds the most; what the classifier
        is least certain of; or anything.
    classifier : classifier, default=None
        As for `DensityRatio`. By default a logistic regression, with both classes weighing alike.
    random_state : int, RandomState, Generator or None, default=None

    Returns
    -------
    IdentifiedDomain

    Raises
    ------
    InvalidInputError
        `label` returns something else than a boolean for each row, or `start` are no rows.
    InvalidParameterError
        A number out of range, or an unknown way to explore.

    Notes
    -----
    Records without a label stand for the others as long as few others are known: a density ratio to
    all records orders as that to the others does. What `label` finds is certain; how many records
    of the domain were missed is not known, and only a sample of labels drawn at random can tell.

    References
    ----------
    Allouah et al., *Distributional Machine Unlearning via Selective Data Removal*, section 5, which
    proposes active identification for future work.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(0, 1, (1000, 2))
    >>> X[:50] += 4
    >>> found = identify_domain(X, lambda rows: rows < 50, 100, start=[0, 1, 2], random_state=0)
    >>> len(found.rows)
    50
    """
    table = read_table(X, "X")
    table = csr_array(table) if issparse(table) else table
    n = table.shape[0]
    if explore not in _EXPLORE:
        raise InvalidParameterError(
            f"explore={shorten(explore)}; expected one of {', '.join(map(repr, _EXPLORE))}"
        )
    known = read_deleted(start, n, "start")
    read_count(n_labels, "n_labels", 1, n - int(known.sum()))
    read_count(batch_size, "batch_size", 1)
    if classifier is not None:
        classifiers.check_classifier(classifier)
    seed = int(seed_from(random_state))
    search = _Search(table, known, classifier, explore, seed)
    while len(search.asked) < n_labels:
        rows = search.next(min(batch_size, n_labels - len(search.asked)))
        search.take(rows, _read_labels(label(rows.copy()), len(rows)))
    asked = np.array(search.asked, dtype=np.int64)
    labels = search.domain[asked]
    return IdentifiedDomain(
        np.concatenate([np.flatnonzero(known), asked[labels]]), asked, labels, search.scores()
    )


class _Search:
    """What is known of records, and which are asked about next."""

    def __init__(self, X: Any, known: Flags, classifier: Any, explore: str, seed: int) -> None:
        self.X, self.classifier, self.explore, self.seed = X, classifier, explore, seed
        self.domain, self.others = known.copy(), np.zeros(len(known), dtype=np.bool_)
        self.asked: list[int] = []
        self.rng = np.random.default_rng(seed)

    def next(self, count: int) -> Ints:
        """Return the rows to ask about."""
        left = np.flatnonzero(~(self.domain | self.others))
        chance = self.rng.permutation(len(left))
        if self.explore == "random" or not self.domain.any():
            return left[chance[:count]]
        ratio = self.scores()[left]
        worth = ratio if self.explore == "density-ratio" else -np.abs(ratio)
        return left[np.lexsort((chance, -worth))[:count]]

    def take(self, rows: Ints, labels: Flags) -> None:
        """Take labels."""
        self.domain[rows[labels]] = True
        self.others[rows[~labels]] = True
        self.asked += rows.tolist()

    def scores(self) -> Floats:
        """Return the log density ratio of the domain and the others, 0 if none is known."""
        mine, others = np.flatnonzero(self.domain), np.flatnonzero(self.others)
        left = np.flatnonzero(~(self.domain | self.others))
        draws = np.random.default_rng([self.seed, len(self.asked)]).permutation(len(left))
        background = left[draws[: max(0, max(_BACKGROUND, len(mine)) - len(others))]]
        others = np.concatenate([others, background])
        if not len(mine) or not len(others):
            return np.zeros(len(self.domain))
        rows = np.sort(np.concatenate([mine, others]))
        model = classifiers.fitted(
            self._classifier(), self.X[rows], self.domain[rows].astype(np.int64), self.seed
        )
        return classifiers.log_ratio(model, self.X, float(np.log(len(others) / len(mine))))

    def _classifier(self) -> Any:
        if self.classifier is not None:
            return self.classifier
        plain = LogisticRegression(C=10.0, class_weight="balanced", max_iter=1000)
        return plain if issparse(self.X) else make_pipeline(StandardScaler(), plain)


def _read_labels(given: Any, count: int) -> Flags:
    labels = as_array(given)
    if labels.shape != (count,) or labels.dtype != np.bool_:
        raise InvalidInputError(
            f"label returned {labels.dtype} of shape {labels.shape} for {count} rows; expected a "
            "boolean for each"
        )
    return labels
