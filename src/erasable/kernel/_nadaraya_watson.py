"""Kernel regression: the mean of the targets within reach, weighed by distance."""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.utils._param_validation import Interval, StrOptions

from erasable.core.arrays import Floats, Ints
from erasable.core.errors import MagnitudeError
from erasable.core.passes import Block, Pass, run
from erasable.core.row_arrays import PerRow
from erasable.core.threads import N_JOBS, over_rows
from erasable.linear_model._softmax_kernels import LIMIT
from erasable.neighbors._index import TREE_FEATURES, Index
from erasable.neighbors._lazy import Lazy
from erasable.neighbors._memory import Memory
from erasable.neighbors._stored import StoredMemory
from erasable.neighbors._targets import StoredNumbers

from . import _weigh_kernels as kernels

_DISTANCES = 2**23  # at once

Found = tuple[Ints, Floats]
"""Ranks of records, and their squared distances of every query."""


def weigh_stored(
    memory: StoredMemory,
    queries: Floats,
    inverse: Floats,
    targets: Floats,
    nearest: Floats,
    limits: Floats,
    bandwidth: float,
    shape: int,
    n_jobs: int | None,
) -> tuple[Floats, Floats]:
    """Return means and sums of weights; every part of the queries reads all blocks."""
    order, live = memory.order, np.flatnonzero(memory.live)
    ranks = np.zeros(memory.live.size, dtype=np.int64)
    ranks[order] = np.arange(order.size)
    per_row = PerRow(ranks)
    out, total = np.zeros((len(queries), targets.shape[1])), np.zeros(len(queries))
    step = max(1, _DISTANCES // max(order.size, 1))
    for start in range(0, len(queries), step):
        part = slice(start, start + step)
        wanted = _Squares(per_row, queries[part], inverse, limits[part])
        own, found = run(wanted, memory.matrix, live, n_jobs=n_jobs)
        squares = np.empty_like(found)
        squares[:, own] = found
        kernels.weigh_gathered(
            squares, targets, nearest[part], bandwidth, shape, out[part], total[part]
        )
    return out, total


class _Squares(Pass[Found]):
    """Find the squared distances of records within reach of queries."""

    def __init__(self, ranks: PerRow, queries: Floats, inverse: Floats, limits: Floats) -> None:
        self._ranks, self._queries, self._inverse, self._limits = ranks, queries, inverse, limits

    def of_block(self, block: Block) -> Found:
        rows = block.positions
        squares = np.full((len(self._queries), rows.size), kernels.OUTSIDE)
        if rows.size:
            tree = Index(block.matrix, rows, None).tree
            kernels.gather(self._queries, tree, self._inverse, self._limits, squares)
        return self._ranks.of(block)[rows], squares

    def merge(self, one: Found, other: Found) -> Found:
        return np.concatenate([one[0], other[0]]), np.hstack([one[1], other[1]])


_SHAPES = {
    "gaussian": kernels.GAUSSIAN,
    "epanechnikov": kernels.EPANECHNIKOV,
    "biweight": kernels.BIWEIGHT,
    "tricube": kernels.TRICUBE,
    "linear": kernels.LINEAR,
    "tophat": kernels.TOPHAT,
}
_LEAF_SIZE = 64
_QUERIES = 64  # for a thread at a time; each of them looks at all records


class NadarayaWatson(RegressorMixin, Lazy):
    """Predict the mean of the records, each weighed by a kernel of its distance.

    A smooth regression with one parameter to choose and nothing learned that a record could be
    left in: the model is its records. A deletion overwrites one of them, and costs microseconds.

    Parameters
    ----------
    bandwidth : float, default=1.0
        Unit of the distance, from ``2**-500`` to ``2**500``. Put the features on one scale first.
    kernel : {"gaussian", "epanechnikov", "biweight", "tricube", "linear", "tophat"}
        Weight of a record at the distance u, in bandwidths; "gaussian" by default. In this order:
        ``exp(-u**2 / 2)``, and, up to u = 1 and 0 beyond, ``1 - u**2``, ``(1 - u**2)**2``,
        ``(1 - u**3)**3``, ``1 - u`` and 1.
    n_jobs : int or None, default=None
        Threads that predict; None is one, and -1 are all cores.

    Attributes
    ----------
    n_samples_fit_ : int
        Number of records.
    ids_, n_features_in_, feature_names_in_
        See `erasable.core.estimator.Erasable`.

    Raises
    ------
    MagnitudeError
        From `fit`: values or targets beyond ``2**500``.

    See Also
    --------
    erasable.neighbors.KNeighborsRegressor : The mean of so many records, however far.

    Notes
    -----
    The estimator of Nadaraya [1]_ and Watson [2]_. **Where no record has any weight**, because all
    are a bandwidth away or more, the prediction is that of the nearest record, or the mean of
    those that are equally near: what a kernel tends to that reaches just as far. The Gaussian one
    weighs records against the nearest, so that this needs no rule; below ``exp(-700)`` of its
    weight they count nothing.

    A mean is one sum over the records in the order of hashes of their ids, and the exponential is
    our own: nothing but the records and the row decides, to the last bit. A prediction takes time
    in proportion to the number of records within reach, and a little for each of the others.

    **The saved file holds every record**, with its id and target: this is what the model is. It is
    to be protected as the data are.

    References
    ----------
    .. [1] Nadaraya, "On estimating regression", Theory of Probability and Its Applications, 1964.
    .. [2] Watson, "Smooth regression analysis", Sankhya A, 1964.

    Examples
    --------
    >>> import numpy as np
    >>> from erasable.kernel import NadarayaWatson
    >>> X = np.linspace(-3.0, 3.0, 200)[:, None]
    >>> y = np.sin(2.0 * X[:, 0])
    >>> model = NadarayaWatson(bandwidth=0.1).fit(X, y)
    >>> model.score(X, y) > 0.99
    True
    >>> model.delete([17, 40]).action
    'updated'
    >>> keep = np.delete(np.arange(200), [17, 40])
    >>> fresh = NadarayaWatson(bandwidth=0.1).fit(X[keep], y[keep], ids=keep)
    >>> model.predict([[0.5]]) == fresh.predict([[0.5]])
    array([ True])
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "bandwidth": [Interval(Real, 2.0**-500, 2.0**500, closed="both")],
        "kernel": [StrOptions(set(_SHAPES))],
        "n_jobs": N_JOBS,
    }
    _reads_blocks = True
    _without_effect: ClassVar[tuple[str, ...]] = ("n_jobs",)

    def __init__(
        self, bandwidth: float = 1.0, *, kernel: str = "gaussian", n_jobs: int | None = None
    ) -> None:
        self.bandwidth = bandwidth
        self.kernel = kernel
        self.n_jobs = n_jobs

    def predict(self, X: Any) -> Floats:
        """Predict targets.

        Parameters
        ----------
        X : array-like or frame of shape (n_rows, n_features)
            Finite numbers.

        Returns
        -------
        ndarray of shape (n_rows,) or (n_rows, n_outputs), float64

        Raises
        ------
        MagnitudeError
            Rows are so far from all records that the distance is no finite number.
        """
        queries = self._read_queries(X)
        memory = self._memory
        leaf_size = None if self.n_features_in_ > TREE_FEATURES else _LEAF_SIZE
        targets = memory.targets
        assert isinstance(targets, StoredNumbers)
        nearest, rows = memory.nearest(queries, 1, leaf_size, self._inverse, n_jobs=self.n_jobs)
        if (rows < 0).any():
            raise MagnitudeError(
                f"{int((rows < 0).sum())} rows of X are so far from the records that distances "
                "overflow; expected finite distances; scale X, or drop those rows"
            )
        shape = _SHAPES[self._at_fit("kernel")]
        out, total = self._means(queries, memory, leaf_size, nearest[:, 0], shape)
        lost = total == 0.0
        if lost.any():
            out[lost] = self._means(
                queries[lost], memory, leaf_size, nearest[lost, 0], shape, nearest[lost, 0]
            )[0]
        return out[:, 0] if targets.flat else out

    def _means(
        self,
        queries: Floats,
        memory: Memory,
        leaf_size: int | None,
        nearest: Floats,
        shape: int,
        limits: Floats | None = None,
    ) -> tuple[Floats, Floats]:
        """Return means and sums of weights; within `limits`, where given, of equal ones."""
        bandwidth = float(self._at_fit("bandwidth"))
        if limits is not None:
            shape = kernels.TOPHAT
        elif shape == kernels.GAUSSIAN:
            limits = nearest + 2.0 * LIMIT * bandwidth * bandwidth
        else:
            limits = np.full(nearest.size, bandwidth * bandwidth)
        inverse = np.zeros(0) if self._inverse is None else self._inverse
        assert isinstance(memory.targets, StoredNumbers)
        values = memory.targets.values
        if isinstance(memory, StoredMemory):
            return weigh_stored(
                memory, queries, inverse, values[memory.order], nearest, limits, bandwidth, shape,
                self.n_jobs,
            )  # fmt: skip
        index = memory.index(leaf_size)
        tree, by_rank = index.tree, values[index.order]
        out, total = np.zeros((nearest.size, by_rank.shape[1])), np.zeros(nearest.size)

        def weigh(rows: slice) -> None:
            kernels.weigh(
                queries[rows], tree, inverse, by_rank, nearest[rows], limits[rows], bandwidth,
                shape, out[rows], total[rows],
            )  # fmt: skip

        for _ in over_rows(weigh, nearest.size, self.n_jobs, _QUERIES):
            pass
        return out, total
