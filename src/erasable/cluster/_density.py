"""Density clustering: core records that are near each other, and the records near them."""

from __future__ import annotations

import math
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClusterMixin
from sklearn.utils import Tags
from sklearn.utils._param_validation import Interval, StrOptions

import erasable.cluster._density_kernels as kernels
from erasable.core.arrays import Flags, Floats, Ints
from erasable.core.ids import as_id_array
from erasable.core.threads import N_JOBS
from erasable.neighbors._lazy import WeightedLazy
from erasable.neighbors._near import Near
from erasable.neighbors._targets import StoredWeights

_WHOLE = 2.0**53  # sums of whole numbers below it are exact, in any order
_MOST = 2**600  # sums of weights stay below it


class DBSCAN(ClusterMixin, WeightedLazy):
    """Find clusters of records that lie close together, and noise between them.

    A record is a core record if the records within `eps` of it, itself among them, weigh
    `min_samples` or more. Core records within `eps` of each other are in one cluster; other records
    within `eps` of a core record are at the border of its cluster; all others are noise.

    The model is its records. It keeps lists of the records that are near each other, from which a
    deletion removes a record; clusters are found in these lists when they are asked for.

    Parameters
    ----------
    eps : float, default=0.5
        Largest distance between near records, up to ``2**500``.
    min_samples : int, default=5
        Least weight of the records near a core record.
    metric : {"euclidean"}, default="euclidean"
        Distance. Others are refused.
    n_jobs : int or None, default=None
        Threads that look for near records; None is one, and -1 are all cores.

    Attributes
    ----------
    labels_ : ndarray of shape (n_records,), int64
        Cluster of every record, in the order of ``ids_``; -1 for noise.
    core_sample_ids_ : ndarray of shape (n_core_samples,), int64, uint64 or object
        Ids of the core records, ascending, numbers before strings.
    core_sample_indices_ : ndarray of shape (n_core_samples,), int64
        Their positions in ``ids_``, ascending.
    components_ : ndarray of shape (n_core_samples, n_features), float64
        Features of the core records, in the order of ``core_sample_ids_``.
    n_samples_fit_ : int
        Number of records.
    ids_, n_features_in_, feature_names_in_
        See `erasable.core.estimator.Erasable`.

    Raises
    ------
    MagnitudeError
        From `fit`: values or weights beyond ``2**500``, or more than ``2**29`` entries in the lists
        of near records, which would need more than 2 GiB.
    TooFewRecordsError
        From `fit` and `delete`: the weights of all records are zero.

    See Also
    --------
    KMeans : For clusters around centroids, and for new records.

    Notes
    -----
    The algorithm is that of Ester et al. [1]_. **Clusters are numbered by the smallest ids of their
    core records**, numbers before strings, and a record at the border of several clusters gets the
    smallest of their numbers. So labels depend on the records and their ids alone. scikit-learn's
    rule is the same, with the places of rows instead of ids: labels are equal where ids ascend, as
    they do by default. Weights are not negative here; their sum is rounded once, from its exact
    value.

    Near are records whose squared distance, a sum over the features from the first to the last, is
    at most ``eps * eps``: nothing but two records decides it, to the last bit.

    Lists take 4 bytes for each neighbour of each record, and are made when the model is fitted.
    A model that was loaded, or copied, or whose scaler changed in a pipeline, makes them again when
    they are needed. Records in files are read twice, and once more for each block of them.

    **The saved file holds every record**, with its id and weight: this is what the model is. It is
    to be protected as the data are.

    References
    ----------
    .. [1] Ester, Kriegel, Sander and Xu, "A density-based algorithm for discovering clusters in
       large spatial databases with noise", KDD 1996.

    Examples
    --------
    >>> from erasable.cluster import DBSCAN
    >>> X = [[0.0], [1.0], [2.0], [3.0], [9.0], [10.0], [20.0]]
    >>> model = DBSCAN(eps=1.0, min_samples=2).fit(X, ids=list("abcdefg"))
    >>> model.labels_
    array([ 0,  0,  0,  0,  1,  1, -1])
    >>> model.delete(["b", "e"]).action
    'updated'
    >>> model.labels_, model.core_sample_ids_
    (array([-1,  0,  0, -1, -1]), array(['c', 'd'], dtype=object))
    >>> left = [X[i] for i in (0, 2, 3, 5, 6)]
    >>> fresh = DBSCAN(eps=1.0, min_samples=2).fit(left, ids=list("acdfg"))
    >>> model.digest() == fresh.digest()
    True
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "eps": [Interval(Real, 0.0, 2.0**500, closed="right")],
        "min_samples": [Interval(Integral, 1, None, closed="left")],
        "metric": [StrOptions({"euclidean"})],
        "n_jobs": N_JOBS,
    }

    def __init__(
        self,
        eps: float = 0.5,
        *,
        min_samples: int = 5,
        metric: str = "euclidean",
        n_jobs: int | None = None,
    ) -> None:
        self.eps = eps
        self.min_samples = min_samples
        self.metric = metric
        self.n_jobs = n_jobs

    def _fit_rows(self) -> None:
        super()._fit_rows()
        self._near()

    def _near(self) -> Near:
        eps = float(self._at_fit("eps"))
        return self._memory.near(eps * eps, self._inverse, self.n_jobs)

    def _is_core(self, near: Near) -> Flags:
        """Tell for each row whether it is a core record."""
        targets = self._memory.targets
        assert isinstance(targets, StoredWeights)
        weights = targets.values[:, 0]
        least = float(min(self._at_fit("min_samples"), _MOST))
        sums = np.zeros(weights.size)
        kernels.add_weights(near.starts, near.counts, near.rows, weights, sums)
        if not (weights == np.floor(weights)).all() or sums.max(initial=0.0) >= _WHOLE:
            error = 2.0**-52 * near.counts * sums
            for row in np.flatnonzero(np.abs(sums - least) <= error).tolist():
                first = near.starts[row]
                sums[row] = math.fsum(weights[near.rows[first : first + near.counts[row]]])
        return np.greater_equal(sums, least)

    def _by_id(self) -> Ints:
        """Return the live rows by their ids, from the smallest, numbers before strings."""
        memory = self._memory
        rows = np.flatnonzero(memory.live)
        ids = memory.ids[rows]
        if ids.dtype != object:
            return rows[np.argsort(ids)]
        names = ids.tolist()
        order = sorted(range(rows.size), key=lambda i: (isinstance(names[i], str), names[i]))
        return rows[np.array(order, dtype=np.int64)]

    def _core_rows(self) -> Ints:
        rows = self._by_id()
        return rows[self._is_core(self._near())[rows]]

    @property
    def labels_(self) -> Ints:
        """Cluster of every record, shape (n_records,), in the order of ``ids_``; -1 for noise."""
        near, live = self._near(), self._memory.live
        core, labels = self._is_core(near), np.full(live.size, -1, dtype=np.int64)
        kernels.label(self._by_id(), core, near.starts, near.counts, near.rows, labels)
        return labels[live]

    @property
    def core_sample_ids_(self) -> NDArray[Any]:
        """Ids of the core records, shape (n_core_samples,), ascending, numbers before strings."""
        rows = self._core_rows()
        ids: NDArray[Any] = self._memory.ids[rows]
        return ids if ids.dtype == np.int64 else as_id_array(ids.tolist())

    @property
    def core_sample_indices_(self) -> Ints:
        """Positions of core records in ``ids_``, ascending, shape (n_core_samples,)."""
        live = self._memory.live
        return np.flatnonzero(self._is_core(self._near())[live])

    @property
    def components_(self) -> Floats:
        """Features of core records, shape (n_core_samples, n_features), by `core_sample_ids_`."""
        components: Floats = self._mapped(self._memory.values(self._core_rows()))
        return components

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = tags.target_tags.multi_output = False
        return tags
