"""Kernel density estimation: the mean of kernels around the records."""

from __future__ import annotations

import math
from collections.abc import Callable
from numbers import Real
from typing import Any, ClassVar

import numpy as np
import scipy.special
from sklearn.utils import Tags
from sklearn.utils._param_validation import Interval, StrOptions

import erasable.neighbors._weigh_kernels as kernels
from erasable.core.arrays import Floats, Ints
from erasable.core.errors import InvalidInputError
from erasable.core.ids import shorten
from erasable.core.seeds import integer_below, seed_from
from erasable.core.tape import Stream, Tape
from erasable.core.threads import N_JOBS

from ._lazy import WeightedLazy, refuse_far
from ._targets import StoredNumbers
from ._weighing import Weighing

_SHAPES = {
    "gaussian": kernels.GAUSSIAN,
    "tophat": kernels.TOPHAT,
    "epanechnikov": kernels.EPANECHNIKOV,
    "exponential": kernels.EXPONENTIAL,
    "linear": kernels.LINEAR,
    "cosine": kernels.COSINE,
}
_SAMPLED = ("gaussian", "tophat")


def _cosine_moment(d: int) -> float:
    """Return d times the integral of ``r**(d - 1) cos(pi r / 2)`` from 0 to 1."""
    half = 0.5 * math.pi
    # By parts, so that no terms cancel: of ``r**d sin(pi r / 2)``, whose series alternates.
    terms = ((-1) ** k * half ** (2 * k + 1) / math.factorial(2 * k + 1) / (2 * k + 2 + d)
             for k in range(16))  # fmt: skip
    return half * math.fsum(terms)


def _log_ball(d: int) -> float:
    """Return the logarithm of the volume of the unit ball."""
    return 0.5 * d * math.log(math.pi) - math.lgamma(0.5 * d + 1.0)


_LOG_INTEGRALS: dict[str, Callable[[int], float]] = {
    "gaussian": lambda d: 0.5 * d * math.log(2.0 * math.pi),
    "tophat": _log_ball,
    "epanechnikov": lambda d: _log_ball(d) + math.log(2.0 / (d + 2)),
    "exponential": lambda d: _log_ball(d) + math.lgamma(d + 1.0),
    "linear": lambda d: _log_ball(d) - math.log(d + 1.0),
    "cosine": lambda d: _log_ball(d) + math.log(_cosine_moment(d)),
}
"""Logarithms of the integrals of the kernels, of bandwidth 1, over d features."""


class KernelDensity(WeightedLazy):
    """Estimate a density as the mean of kernels around the records, any of which can be deleted.

    Nothing is learned that a record could be left in: the model is its records. A deletion
    overwrites one of them, and costs microseconds.

    Parameters
    ----------
    bandwidth : float or {"scott", "silverman"}, default=1.0
        Unit of the distance, from ``2**-500`` to ``2**500``; or a rule that makes it from the
        numbers of records, n, and of features, d: ``n**(-1 / (d + 4))`` (Scott) and
        ``(n * (d + 2) / 4)**(-1 / (d + 4))`` (Silverman). Put the features on one scale first.
    kernel : {"gaussian", "tophat", "epanechnikov", "exponential", "linear", "cosine"}
        Density at the distance u, in bandwidths, up to a constant; "gaussian" by default. In this
        order: ``exp(-u**2 / 2)``; 1 below u = 1, and 0 beyond; ``1 - u**2`` below u = 1;
        ``exp(-u)``; ``1 - u`` and ``cos(pi * u / 2)`` below u = 1.
    metric : {"euclidean"}, default="euclidean"
        The distance; a density is normalized for no other.
    n_jobs : int or None, default=None
        Threads that predict; None is one, and -1 are all cores.

    Attributes
    ----------
    bandwidth_ : float
        The bandwidth, as a number.
    n_samples_fit_ : int
        Number of records.
    ids_, n_features_in_, feature_names_in_
        See `erasable.core.estimator.Erasable`.

    Raises
    ------
    MagnitudeError
        From `fit`: values or weights beyond ``2**500``.
    TooFewRecordsError
        From `fit` and `delete`: no record would have a weight above 0.

    See Also
    --------
    erasable.kernel.NadarayaWatson : Regression by such kernels.

    Notes
    -----
    The estimator of Rosenblatt [1]_ and Parzen [2]_. All records within reach are summed, without a
    tolerance; a Gaussian or exponential kernel counts nothing below ``exp(-700)`` of that of the
    nearest record with a weight above 0. The rules of the bandwidth count records, not weights; a
    deletion changes their bandwidth. Densities are those of scikit-learn, but for the kernel
    "cosine" and an even number of features, where scikit-learn's do not integrate to 1.

    A density is one sum over the records in the order of hashes of their ids, and the exponential
    and the cosine are our own: nothing but the records and the row decides. A density takes time in
    proportion to the number of records within reach, and a little for each of the others.

    **The saved file holds every record**, with its id and weight: this is what the model is. It is
    to be protected as the data are.

    References
    ----------
    .. [1] Rosenblatt, "Remarks on some nonparametric estimates of a density function", Annals of
       Mathematical Statistics, 1956.
    .. [2] Parzen, "On estimation of a probability density function and mode", Annals of
       Mathematical Statistics, 1962.

    Examples
    --------
    >>> import numpy as np
    >>> from erasable.neighbors import KernelDensity
    >>> X = np.random.default_rng(0).normal(size=(500, 2))
    >>> model = KernelDensity(bandwidth="scott").fit(X)
    >>> model.score_samples([[0.0, 0.0], [2.0, 2.0]]).round(2)
    array([-1.94, -5.5 ])
    >>> model.delete([17, 40]).action
    'updated'
    >>> keep = np.delete(np.arange(500), [17, 40])
    >>> fresh = KernelDensity(bandwidth="scott").fit(X[keep], ids=keep)
    >>> model.score_samples(X[:1]) == fresh.score_samples(X[:1])
    array([ True])
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "bandwidth": [
            Interval(Real, 2.0**-500, 2.0**500, closed="both"),
            StrOptions({"scott", "silverman"}),
        ],
        "kernel": [StrOptions(set(_SHAPES))],
        "metric": [StrOptions({"euclidean"})],
        "n_jobs": N_JOBS,
    }

    def __init__(
        self,
        *,
        bandwidth: float | str = 1.0,
        kernel: str = "gaussian",
        metric: str = "euclidean",
        n_jobs: int | None = None,
    ) -> None:
        self.bandwidth = bandwidth
        self.kernel = kernel
        self.metric = metric
        self.n_jobs = n_jobs

    @property
    def bandwidth_(self) -> float:
        """The bandwidth, as a number."""
        n, d = self.n_samples_fit_, self.n_features_in_
        bandwidth = self._at_fit("bandwidth")
        if isinstance(bandwidth, str):
            count = n if bandwidth == "scott" else n * (d + 2) / 4
            return float(count ** (-1.0 / (d + 4)))
        return float(bandwidth)

    def _weights(self, rows: Ints) -> Floats:
        targets = self._memory.targets
        assert isinstance(targets, StoredNumbers)
        weights: Floats = targets.values[rows, 0]
        return weights

    def score_samples(self, X: Any) -> Floats:
        """Return the logarithm of the density at each row.

        Parameters
        ----------
        X : array-like or frame of shape (n_rows, n_features)
            Finite numbers.

        Returns
        -------
        ndarray of shape (n_rows,), float64
            Minus infinity where the density is 0.

        Raises
        ------
        MagnitudeError
            With a Gaussian or exponential kernel: rows are so far from all records that the
            distance is no finite number.
        """
        queries, memory = self._read_queries(X), self._memory
        kernel, bandwidth = self._at_fit("kernel"), self.bandwidth_
        asked = Weighing(memory, self._inverse, _SHAPES[kernel], bandwidth, self.n_jobs)
        with np.errstate(divide="ignore", over="ignore"):
            if kernel in ("gaussian", "exponential"):
                squares, rows = asked.nearest(queries)
                refuse_far(rows[:, 0] < 0)
                nearest = squares[:, 0]
                logs: Floats = np.log(asked.sums(queries, nearest)[0][:, 0])
                if kernel == "gaussian":
                    logs -= nearest / (2.0 * bandwidth * bandwidth)
                else:
                    logs -= np.sqrt(nearest) / bandwidth
            else:
                none = np.zeros(len(queries))
                limits = np.full(len(queries), _square_below(bandwidth))
                logs = np.log(asked.sums(queries, none, limits)[0][:, 0])
        total = float(np.cumsum(self._weights(memory.order))[-1])  # one after the other
        d = self.n_features_in_
        logs -= _LOG_INTEGRALS[kernel](d) + d * math.log(bandwidth) + math.log(total)
        return logs

    def score(self, X: Any, y: Any = None) -> float:
        """Return the sum of the logarithms of the density over the rows.

        Parameters
        ----------
        X : array-like or frame of shape (n_rows, n_features)
            Finite numbers.
        y : ignored

        Returns
        -------
        float
        """
        return float(np.sum(self.score_samples(X)))

    def sample(self, n_samples: int = 1, random_state: Any = None) -> Floats:
        """Draw rows from the density.

        Parameters
        ----------
        n_samples : int, default=1
            Number of rows.
        random_state : int, RandomState, Generator or None, default=None
            Seed of the draws.

        Returns
        -------
        ndarray of shape (n_samples, n_features), float64

        Raises
        ------
        InvalidInputError
            The kernel is neither "gaussian" nor "tophat", or `n_samples` is no positive integer.

        Notes
        -----
        Draws are keyed by the ids of the records. After a deletion, the rows that were drawn around
        other records are the same for the same seed, and those around deleted ones are drawn again.
        A row takes time in proportion to the number of records.
        """
        kernel, size = self._at_fit("kernel"), integer_below(n_samples, 2**32)
        if kernel not in _SAMPLED:
            raise InvalidInputError(
                f"the kernel is {kernel!r}, from which nothing is drawn; expected 'gaussian' or "
                "'tophat'; fit with one of these"
            )
        if not size:
            raise InvalidInputError(
                f"n_samples={shorten(n_samples)}; expected an integer of 1 or more; pass one"
            )
        tape, memory = Tape(seed_from(random_state)), self._memory
        rows = memory.order[self._weights(memory.order) > 0.0]
        keys, weights = tape.record_keys(memory.ids[rows]), self._weights(rows)
        d = self.n_features_in_
        winners, noise = np.empty(size, dtype=np.int64), np.empty((size, d))
        for i in range(size):
            # The smallest of exponential numbers with these rates: i wins in proportion to its own.
            times = -np.log(tape.uniform(keys, Stream.RACE, i)) / weights
            winners[i] = times.argmin()
            own = tape.child(int(keys[winners[i]]))
            noise[i] = own.uniform(np.arange(d, dtype=np.uint64), Stream.NOISE, i)
        noise = scipy.special.ndtri(noise)
        if kernel == "tophat":
            squares = (noise * noise).sum(axis=1)
            noise *= (
                scipy.special.gammainc(0.5 * d, 0.5 * squares) ** (1.0 / d) / np.sqrt(squares)
            )[:, None]
        drawn, places = np.unique(rows[winners], return_inverse=True)
        centers: Floats = self._mapped(memory.values(drawn))[places]
        centers += self.bandwidth_ * noise
        return centers

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = tags.target_tags.multi_output = False
        return tags


def _square_below(bandwidth: float) -> float:
    """Return the largest number whose root is below the bandwidth, where kernels end."""
    square = bandwidth * bandwidth
    while math.sqrt(square) >= bandwidth:
        square = math.nextafter(square, 0.0)
    return square
