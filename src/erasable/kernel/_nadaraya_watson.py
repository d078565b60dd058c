"""Kernel regression: the mean of the targets within reach, weighed by distance."""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar

from sklearn.base import RegressorMixin
from sklearn.utils._param_validation import Interval, StrOptions

from erasable.core.arrays import Floats
from erasable.core.threads import N_JOBS
from erasable.neighbors import _weigh_kernels as kernels
from erasable.neighbors._lazy import Lazy, refuse_far
from erasable.neighbors._targets import StoredNumbers
from erasable.neighbors._weighing import Weighing

_SHAPES = {
    "gaussian": kernels.GAUSSIAN,
    "epanechnikov": kernels.EPANECHNIKOV,
    "biweight": kernels.BIWEIGHT,
    "tricube": kernels.TRICUBE,
    "linear": kernels.LINEAR,
    "tophat": kernels.TOPHAT,
}


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
    erasable.neighbors.KernelDensity : The density of the records themselves.

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
        queries, memory = self._read_queries(X), self._memory
        shape, bandwidth = _SHAPES[self._at_fit("kernel")], float(self._at_fit("bandwidth"))
        asked = Weighing(memory, self._inverse, shape, bandwidth, self.n_jobs)
        squares, rows = asked.nearest(queries)
        refuse_far(rows[:, 0] < 0)
        nearest = squares[:, 0]
        sums, total = asked.sums(queries, nearest)
        lost = total == 0.0
        if lost.any():
            alike = asked._replace(shape=kernels.TOPHAT)
            sums[lost], total[lost] = alike.sums(queries[lost], nearest[lost], nearest[lost])
        sums /= total[:, None]
        assert isinstance(memory.targets, StoredNumbers)
        return sums[:, 0] if memory.targets.flat else sums
