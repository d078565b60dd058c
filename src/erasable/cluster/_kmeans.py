"""k-means that deletes records exactly, without quantisation."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar

from sklearn.utils._param_validation import Interval

from erasable.core.threads import N_JOBS

from ._centroids import SEED_CONSTRAINT
from ._layout import Rule
from ._run import plain_rule
from ._single import AnyRun, SingleRunModel


class KMeans(SingleRunModel):
    """Lloyd's k-means, from which records can be deleted exactly and cheaply.

    After ``delete`` the model is, bit for bit, the one that a fit without those records makes:
    same seeds, same centroids at every iteration, same labels. Nothing is approximated or
    quantised. A deletion moves few centroids by little, and only the records that this movement
    can reach are looked at again; each of them is filed, at every iteration, by the movement it
    can bear.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters.
    max_iter : int, default=10
        Lloyd iterations. Few are better for deletion: the fixed point of a long run moves with
        nearly every deletion.
    tol : float, default=0.0
        Stop when the squared movement of the centroids is at most `tol` times the mean variance
        of the features, as in scikit-learn. 0 runs on until nothing moves, or `max_iter`.
    n_jobs : int or None, default=None
        Threads that fit and predict; None is one, and -1 are all cores. The model is the same with
        any number.
    random_state : int, RandomState, Generator or None, default=None
        Seed of the tape from which the seeding draws. None draws one from the system, kept as
        ``seed_``.

    Attributes
    ----------
    cluster_centers_ : ndarray of shape (n_clusters, n_features)
        Centroids.
    init_centers_ : ndarray of shape (n_clusters, n_features)
        The records that seeded them.
    labels_ : ndarray of shape (n_records,), int32
        Cluster of every record, in the order of ``ids_``.
    inertia_ : float
        Sum of squared distances of the records to their centroids.
    n_iter_ : int
        Iterations until the centroids stood still, or `max_iter`.
    ids_, seed_, n_features_in_, feature_names_in_
        See `erasable.core.estimator.Erasable`.

    Raises
    ------
    TooFewRecordsError
        Fewer records than clusters.

    Notes
    -----
    Seeding is greedy k-means++ by exponential races [1]_. An empty cluster keeps its centroid.
    The files of records are an accelerator of 9 bytes a record and iteration (10 above 256
    clusters) and not part of the model; they are sorted at the first deletion of one record, or
    the fifth of several.

    Records that stay in files (`erasable.Records.from_parquet`) have no such accelerator: 16 bytes
    a record are in memory while the model learns, beside what the records take themselves. A fit
    reads the files once for each cluster, once for each of ``n_iter_ + 1`` levels (one less where
    it ended because nothing moved), and once more where they do not say which extremes they have.
    A deletion reads them once for each iteration; where it takes a seed, a candidate for one, or
    an extreme that the grid depends on, the model is learned again.

    References
    ----------
    .. [1] Arthur and Vassilvitskii, "k-means++: the advantages of careful seeding", SODA 2007.

    Examples
    --------
    >>> import numpy as np
    >>> from erasable.cluster import KMeans
    >>> X = np.array([[1, 2], [1, 4], [1, 0], [10, 2], [10, 4], [10, 0]])
    >>> model = KMeans(n_clusters=2, random_state=0).fit(X, ids=list("abcdef"))
    >>> deletion = model.delete(["b"])
    >>> fresh = KMeans(n_clusters=2, random_state=0).fit(X[[0, 2, 3, 4, 5]], ids=list("acdef"))
    >>> model.digest() == fresh.digest()
    True
    """

    algorithm_version: ClassVar[int] = 1
    _takes_map: ClassVar[bool] = True
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "n_clusters": [Interval(Integral, 1, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
        "n_jobs": N_JOBS,
        "random_state": SEED_CONSTRAINT,
    }

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        max_iter: int = 10,
        tol: float = 0.0,
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.max_iter = max_iter
        self.tol = tol
        self.n_jobs = n_jobs
        self.random_state = random_state

    @property
    def n_iter_(self) -> int:
        """Iterations until the centroids stood still, or moved by `tol` at most, or all of them."""
        # Where nothing moves any more, the iteration that found it out has left no level.
        found_out = 0 if self._needs_moments() else 1
        return min(self._n_levels() - 1 + found_out, int(self._at_fit("max_iter")))

    def _needs_moments(self) -> bool:
        return bool(self._at_fit("tol") > 0)

    def _rule(self, gridded: AnyRun, n_levels: int) -> Rule:
        if gridded.moments is None:
            return plain_rule(n_levels)
        weights = self._metric()
        variance = gridded.moments.variance()
        total = 0.0
        for value in (variance * weights if weights.size else variance).tolist():
            total += value
        return plain_rule(n_levels, self._at_fit("tol") * total / variance.size)
