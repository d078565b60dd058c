"""The frontier of an exponential family: one line through the mean space, and how far along it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.optimize import brentq

from erasable.core.arrays import Floats
from erasable.core.errors import InvalidParameterError
from erasable.core.ids import shorten
from erasable.removal._gaussians import whitened
from erasable.removal._reading import as_numbers, read_targets, refuse_singular
from erasable.removal.frontiers._rays import CountRay, GaussianRay, Ray, WaitingRay

_ROUNDING = 1e-9
_LARGEST = 1e150  # of a mean, whose ratio to another float64 holds


def _bernoulli(theta1: Any, theta2: Any) -> Ray | None:
    def read(theta: Any, name: str) -> Floats:
        (success,) = _positive(theta, name, (), "a probability above 0 and below 1")
        if success >= 1:
            raise _outside(theta, name, "a probability above 0 and below 1")
        return np.array([1 - success, success])

    mean1, mean2 = read(theta1, "theta1"), read(theta2, "theta2")
    return None if (mean1 == mean2).all() else CountRay(mean1, mean2)


def _poisson(theta1: Any, theta2: Any) -> Ray | None:
    mean1, mean2 = (
        _positive(theta, name, (), "a mean above 0")
        for theta, name in ((theta1, "theta1"), (theta2, "theta2"))
    )
    return None if (mean1 == mean2).all() else CountRay(mean1, mean2)


def _exponential(theta1: Any, theta2: Any) -> Ray | None:
    mean1, mean2 = (
        _positive(theta, name, (), "a mean above 0, which is 1 over the rate")
        for theta, name in ((theta1, "theta1"), (theta2, "theta2"))
    )
    return None if (mean1 == mean2).all() else WaitingRay(mean1, mean2)


def _categorical(theta1: Any, theta2: Any) -> Ray | None:
    wanted = "two or more probabilities above 0 that add up to 1"

    def read(theta: Any, name: str, shape: tuple[int, ...] | None) -> Floats:
        mean = _positive(theta, name, shape, wanted)
        if mean.ndim != 1 or len(mean) < 2 or abs(mean.sum() - 1) > _ROUNDING:
            raise _outside(theta, name, wanted)
        return np.asarray(mean / mean.sum())

    mean1 = read(theta1, "theta1", None)
    mean2 = read(theta2, "theta2", mean1.shape)
    return None if (mean1 == mean2).all() else CountRay(mean1, mean2)


def _gaussian(theta1: Any, theta2: Any) -> Ray | None:
    def read(theta: Any, name: str) -> tuple[Floats, Floats]:
        wanted = "(mean, covariance) of shapes (n_features,) and (n_features, n_features)"
        try:
            given_mean, given_covariance = theta
            mean = np.atleast_1d(as_numbers(given_mean))
            covariance = np.atleast_2d(as_numbers(given_covariance))
        except (TypeError, ValueError, NotImplementedError):
            raise _outside(theta, name, wanted) from None
        finite = np.isfinite(mean).all() and np.isfinite(covariance).all()
        if mean.ndim != 1 or covariance.shape != 2 * mean.shape or not finite:
            raise _outside(theta, name, wanted)
        if not np.allclose(covariance, covariance.T, rtol=1e-9, atol=0.0):
            raise _outside(theta, name, f"{wanted}, the covariance symmetric")
        refuse_singular(covariance, name, InvalidParameterError)
        return mean, covariance

    (mean1, cov1), (mean2, cov2) = read(theta1, "theta1"), read(theta2, "theta2")
    if mean1.shape != mean2.shape:
        raise _outside(theta2, "theta2", f"a Gaussian of {len(mean1)} features, as theta1 is")
    # The difference is whitened, not the two: what is nearly equal stays apart.
    shift, fall = whitened(mean2 - mean1, cov2 - cov1, cov2)
    return None if not (shift.any() or fall.any()) else GaussianRay(shift, fall)


def _positive(theta: Any, name: str, shape: tuple[int, ...] | None, wanted: str) -> Floats:
    mean = as_numbers(theta)
    within = mean.size > 0 and ((mean >= 1 / _LARGEST) & (mean <= _LARGEST)).all()
    if (shape is not None and mean.shape != shape) or not within:
        raise _outside(theta, name, f"{wanted}, from {1 / _LARGEST:g} to {_LARGEST:g}")
    return mean if mean.ndim else mean.reshape(1)


def _outside(theta: Any, name: str, wanted: str) -> InvalidParameterError:
    return InvalidParameterError(
        f"{name}={shorten(theta)}, which is outside the mean space; expected {wanted}; pass the "
        "parameter in mean form, and leave out what never occurs"
    )


FAMILIES: dict[str, Callable[[Any, Any], Ray | None]] = {
    "bernoulli": _bernoulli,
    "poisson": _poisson,
    "exponential": _exponential,
    "categorical": _categorical,
    "gaussian": _gaussian,
}


_MORE = 1e308  # than any target


def exponential_family_frontier(family: str, theta1: Any, theta2: Any, alpha: Any) -> Any:
    r"""Say what removal costs at least, within an exponential family.

    The best p has its mean on the line from p1 through p2, behind p2:
    :math:`E_p[T] = (E_2[T] - \lambda E_1[T]) / (1 - \lambda)`, where :math:`\lambda` between 0 and
    the :math:`\lambda_{max}` at which the line leaves the mean space is such that
    ``KL(p1, p) = alpha``; its cost is ``KL(p2, p)``.

    Parameters
    ----------
    family : {"bernoulli", "poisson", "exponential", "categorical", "gaussian"}
    theta1, theta2 : float, array-like, or pair
        The unwanted and the wanted domain, in mean form: the probability of a success, the mean of
        a count or of a waiting time, the probabilities of all categories; of a Gaussian, whose
        mean and covariance are both free, ``(mean, covariance)``, which are ``(float, float)`` or
        of shapes (n_features,) and (n_features, n_features).
    alpha : float or array-like
        Removal that is asked for, in nats; 0 or more.

    Returns
    -------
    float or ndarray of the shape of `alpha`
        The least ``epsilon = KL(p2, p)`` over all p of the family with ``KL(p1, p) >= alpha``.
        0.0 up to ``alpha = KL(p1, p2)``, where p2 itself does. Every alpha can be had:
        ``KL(p1, p)`` has no upper bound in these families, however small the mean space is.

    Raises
    ------
    InvalidParameterError
        An unknown family, a parameter outside the mean space, an alpha below 0.

    Notes
    -----
    The value that the paper prints holds for Gaussians of one covariance alone: elsewhere the
    identity from which it comes misses a factor. The stationarity condition is right. It singles
    out one p: on the boundary ``KL(p1, p) = alpha``, which encloses a convex set of natural
    parameters, the cost differs from alpha by something linear, so that the least is where the
    normal of the boundary, ``E_p[T] - E_1[T]``, has the direction ``E_2[T] - E_1[T]``.

    References
    ----------
    Allouah et al., *Distributional Machine Unlearning via Selective Data Removal*, Theorem 4.

    Examples
    --------
    >>> round(exponential_family_frontier("poisson", 2.0, 5.0, 1.4009), 4)
    0.0137
    >>> exponential_family_frontier("bernoulli", 0.5, 0.1, [0.0, 0.5, 1.0]).round(4)
    array([0.    , 0.    , 0.0421])
    """
    read = FAMILIES.get(family) if isinstance(family, str) else None
    if read is None:
        raise InvalidParameterError(
            f"family={shorten(family)}; expected one of {', '.join(map(repr, FAMILIES))}; pass "
            "the one that the records are taken to follow"
        )
    targets = read_targets(alpha)
    ray = read(theta1, theta2)
    if ray is None:  # p1 is p2, and whatever is far from the one is as far from the other
        return float(targets) if targets.ndim == 0 else targets
    least = ray.divergences(0.0)[0]
    costs = [0.0 if target <= least else _cost(ray, target) for target in targets.reshape(-1)]
    epsilon = np.array(costs).reshape(targets.shape)
    return float(epsilon) if epsilon.ndim == 0 else epsilon


def _cost(ray: Ray, alpha: float) -> float:
    """Return KL(p2, p) at the one place of the ray where KL(p1, p) is alpha."""

    def beyond(place: float) -> float:
        # In logarithms, because it goes through many orders of magnitude, and may be infinite.
        return float(np.log(min(ray.divergences(place)[0], _MORE)) - np.log(alpha))

    low, high = 0.0, 1.0
    while beyond(high) < 0:
        low, high = high, 2 * high
    if beyond(low) >= 0:  # alpha is KL(p1, p2), but for rounding
        return 0.0
    place = brentq(beyond, low, high, xtol=1e-300, rtol=4 * np.finfo(np.float64).eps)
    removal, cost = ray.divergences(place)
    # The slope of the frontier is the multiplier: it takes away, to first order, what is left of
    # the distance between the place that was found and the one that was looked for.
    return max(float(cost + ray.multiplier(place) * (alpha - removal)), 0.0)
