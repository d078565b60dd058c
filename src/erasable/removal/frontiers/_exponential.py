"""Frontiers of exponential families, found along one line of the mean space, and of Gaussians.

Gaussians that share a covariance have a parabola in the roots.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
from scipy.optimize import brentq

from erasable.core.arrays import Floats
from erasable.core.errors import InvalidParameterError
from erasable.core.ids import shorten
from erasable.removal._gaussians import excess, whitened
from erasable.removal._inputs import (
    as_numbers,
    outside,
    read_gaussians,
    read_number,
    read_targets,
)
from erasable.removal.divergences import KINDS


def gaussian_frontier(alpha: Any, divergence: float, kind: str = "kl") -> Any:
    r"""Return the least cost of removal where p1, p2 and p are Gaussians of one covariance.

    The least ``epsilon`` of p from p2 over all p at ``alpha`` or more from p1. The best p is on the
    line from p1 through p2, beyond p2, by whichever divergence: each grows with the distance of the
    means alone. With ``D`` that of p1 and p2, the cost is :math:`(\sqrt\alpha - \sqrt D)^2` by
    Kullback-Leibler, and by Rényi of any order; the same of :math:`\log(1 + \chi^2)` by
    chi-squared; and :math:`\alpha - D` by the distance of Wasserstein.

    Parameters
    ----------
    alpha : float or array-like
        Removal to reach, in the unit of the divergence; 0 or more.
    divergence : float
        That of the unwanted and the wanted domain, p1 and p2, by the same kind
        (`gaussian_divergence`); ``KL(p1, p2)`` is half the squared Mahalanobis distance of their
        means.
    kind : {"kl", "renyi", "chi-squared", "wasserstein"}, default="kl"
        By what removal and cost are measured.

    Returns
    -------
    float or ndarray of the shape of `alpha`
        The least epsilon. Below ``alpha = divergence`` it is 0.0: p2 itself, which is what is left
        when the whole domain is deleted, removes more than alpha at no cost. There is no largest
        alpha.

    Raises
    ------
    InvalidParameterError
        An unknown kind, or a number that is negative or not finite.

    Notes
    -----
    By the Wasserstein distance no distribution p, Gaussian or not, costs less, for any p1 and p2:
    this follows from the triangle inequality. For the other kinds and a free covariance see
    `exponential_family_frontier`, which is of Kullback-Leibler.

    References
    ----------
    Allouah et al., *Distributional Machine Unlearning via Selective Data Removal*, Proposition 1,
    for Kullback-Leibler.

    Examples
    --------
    >>> gaussian_frontier([1.0, 2.0, 4.5], divergence=2.0)
    array([0. , 0. , 0.5])
    >>> gaussian_frontier(3.0, divergence=2.0, kind="wasserstein")
    1.0
    """
    targets = read_targets(alpha)
    apart = np.array(read_number(divergence, "divergence", 0.0, np.inf, ends="[)"))
    if not isinstance(kind, str) or kind not in KINDS:
        raise InvalidParameterError(
            f"kind={shorten(kind)}; expected one of {', '.join(map(repr, KINDS))}"
        )
    if kind == "wasserstein":
        epsilon = np.maximum(targets - apart, 0.0)
    elif kind == "chi-squared":
        epsilon = np.expm1(_beyond(np.log1p(targets), np.log1p(apart)))
    else:
        epsilon = _beyond(targets, apart)
    return float(epsilon) if epsilon.ndim == 0 else epsilon


def _beyond(targets: Floats, apart: Floats) -> Floats:
    """Return the square of what roots of targets have beyond the root of a divergence."""
    cost: Floats = np.maximum(np.sqrt(targets) - np.sqrt(apart), 0.0) ** 2
    return cost


_FAR = 700.0


class Ray(Protocol):
    """The methods of a line that the search for a point of the frontier uses."""

    def divergences(self, place: float) -> tuple[float, float]:
        """Return KL(p1, p) and KL(p2, p) of the p at a place; the first grows with the place."""
        ...

    def multiplier(self, place: float) -> float:
        """Return the multiplier of the constraint, from 0 at p2 to less than 1."""
        ...


class _Line:
    """Parameters in proportion to those of p2: each is ``1 + t step``, which has to be above 0."""

    def __init__(self, step: Floats) -> None:
        falling = step < 0
        self.t_max = float((-1 / step[falling]).min()) if falling.any() else np.inf
        self.weight = step if np.isinf(self.t_max) else -step * self.t_max
        if np.isfinite(self.t_max):
            self.weight[step == step.min()] = 1.0  # it reaches 0 at t_max, without rounding

    def t(self, place: float) -> float:
        with np.errstate(over="ignore"):
            return float(
                np.expm1(place) if np.isinf(self.t_max) else -self.t_max * np.expm1(-place)
            )

    def log_ratio(self, place: float) -> Floats:
        """Return the logarithm of each parameter over that of p2."""
        scale, weight = (place if np.isinf(self.t_max) else -place), self.weight
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            change = weight * np.expm1(scale)
            apart = np.logaddexp(np.log1p(-weight), np.log(weight) + scale)
            return np.where((weight > 0) & (np.abs(change) > 0.5), apart, np.log1p(change))


class _LineRay:
    """A ray along which parameters above 0 change in proportion."""

    def __init__(self, mean1: Floats, mean2: Floats) -> None:
        self.mean1, self.mean2 = mean1, mean2
        self.line = _Line((mean2 - mean1) / mean2)

    def multiplier(self, place: float) -> float:
        return _multiplier(self.line.t(place))


class CountRay(_LineRay):
    """Poisson counts, and categories, whose probabilities sum to 1 along the line."""

    def divergences(self, place: float) -> tuple[float, float]:
        log_ratio, t = self.line.log_ratio(place), self.line.t(place)
        step = self.mean2 - self.mean1
        with np.errstate(over="ignore", invalid="ignore"):
            first = self.mean1 * _excess(
                (1 + t) * step / self.mean1, log_ratio + np.log(self.mean2 / self.mean1)
            )
            second = self.mean2 * _excess(t * step / self.mean2, log_ratio)
            return _number(first.sum()), _number(second.sum())


class WaitingRay(_LineRay):
    """Exponential waiting times."""

    def divergences(self, place: float) -> tuple[float, float]:
        second = -self.line.log_ratio(place)
        first = second + np.log(self.mean1 / self.mean2)
        with np.errstate(over="ignore", invalid="ignore"):
            return (
                _number(excess(np.expm1(first), first).sum()),
                _number(excess(np.expm1(second), second).sum()),
            )


class GaussianRay:
    """Gaussians of free mean and covariance, in the axes in which p2 is standard.

    There ``cov1 = 1 - fall`` is diagonal, the means are ``shift`` apart, and the covariance at
    ``t`` is ``D - t (1 + t) shift shift'`` with ``D = 1 + t fall``: what is linear in the second
    moment is quadratic in the covariance. It becomes singular where ``shift' D^-1 shift t (1 +
    t)``, which grows with `t`, is 1, unless D is singular before.
    """

    def __init__(self, shift: Floats, fall: Floats) -> None:
        self.shift2, self.fall = shift**2, fall
        self.line = _Line(fall)
        self.end: tuple[float, Floats] | None = None
        place = self._singular()
        if place is not None:
            self.end = self.line.t(place), np.exp(self.line.log_ratio(place))

    def multiplier(self, place: float) -> float:
        return _multiplier(self._t(place))

    def divergences(self, place: float) -> tuple[float, float]:
        t, fall = self._t(place), self.fall
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            if self.end is None:
                log_spread = self.line.log_ratio(place)
                spread = np.exp(log_spread)
            else:
                # From the end backwards, so that nothing is lost where D is nearly singular.
                t_end, spread_end = self.end
                back = t_end * np.exp(-place)
                spread = np.where(fall < 0, spread_end - back * fall, 1 + t * fall)
                log_spread = np.log(spread)
            # Where nothing is shifted, t may be infinite, and infinity times nothing is nothing.
            shifted = self.shift2.any()
            area = t * (1 + t) if shifted else 0.0
            weight, twice = self.shift2 / spread, self.shift2 / spread**2
            taken = area * weight.sum()
            if self.end is None or taken < 0.5:
                left, log_left = 1 - taken, np.log1p(-taken)
            else:
                slope = (weight * (1 + t_end + t + fall * t_end * t) / spread_end).sum()
                left, log_left = back * slope, np.log(t_end * slope) - place
            pull = push = 0.0
            if shifted:
                pull = area * ((1 - fall) * twice).sum() + (1 + t) ** 2 * weight.sum()
                push = area * twice.sum() + t**2 * weight.sum()
            first = _excess(-(1 + t) * (fall / spread), np.log1p(-fall) - log_spread).sum()
            second = _excess(-t * (fall / spread), -log_spread).sum()
            return (
                _number((first + log_left + pull / left) / 2),
                _number((second + log_left + push / left) / 2),
            )

    def _t(self, place: float) -> float:
        return self.line.t(place) if self.end is None else -self.end[0] * float(np.expm1(-place))

    def _singular(self) -> float | None:
        """Return the place where the covariance is singular and D is not."""

        def taken(place: float) -> float:
            t = self.line.t(place)
            with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
                weight = np.where(
                    self.shift2 > 0, self.shift2 / np.exp(self.line.log_ratio(place)), 0.0
                )
                amount = t * (1 + t) * weight.sum()
            return float(np.log(np.clip(amount, 1e-300, 1e300)))

        if not self.shift2.any() or taken(_FAR) <= 0:
            return None
        return float(brentq(taken, 0.0, _FAR, xtol=1e-300, maxiter=1000))


def _multiplier(t: float) -> float:
    return 1.0 if np.isinf(t) else t / (1 + t)


def _excess(change: Floats, log_ratio: Floats) -> Floats:
    """Return ``change - log(1 + change)``, without cancellation where `change` is small."""
    far = ~(np.abs(change) <= 0.5)  # or nothing, where t is infinite
    found: Floats = excess(
        np.where(far, np.expm1(log_ratio), change),
        np.where(far, log_ratio, np.log1p(np.where(far, 0.0, change))),
    )
    return found


def _number(value: Any) -> float:
    """Return a divergence: at least 0, and infinite where rounding made it NaN."""
    return np.inf if np.isnan(value) else max(float(value), 0.0)


_ROUNDING = 1e-9
_LARGEST = 1e150  # of a mean, whose ratio to another float64 holds


def _bernoulli(theta1: Any, theta2: Any) -> Ray | None:
    def read(theta: Any, name: str) -> Floats:
        (success,) = _positive(theta, name, (), "a probability above 0 and below 1")
        if success >= 1:
            raise outside(theta, name, "a probability above 0 and below 1")
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
            raise outside(theta, name, wanted)
        return np.asarray(mean / mean.sum())

    mean1 = read(theta1, "theta1", None)
    mean2 = read(theta2, "theta2", mean1.shape)
    return None if (mean1 == mean2).all() else CountRay(mean1, mean2)


def _gaussian(theta1: Any, theta2: Any) -> Ray | None:
    (mean1, cov1), (mean2, cov2) = read_gaussians(theta1, theta2, ("theta1", "theta2"))
    # The difference is whitened, not the two: what is nearly equal stays apart.
    shift, fall = whitened(mean2 - mean1, cov2 - cov1, cov2)
    return None if not (shift.any() or fall.any()) else GaussianRay(shift, fall)


def _positive(theta: Any, name: str, shape: tuple[int, ...] | None, wanted: str) -> Floats:
    mean = as_numbers(theta)
    within = mean.size > 0 and ((mean >= 1 / _LARGEST) & (mean <= _LARGEST)).all()
    if (shape is not None and mean.shape != shape) or not within:
        raise outside(theta, name, f"{wanted}, from {1 / _LARGEST:g} to {_LARGEST:g}")
    return mean if mean.ndim else mean.reshape(1)


FAMILIES: dict[str, Callable[[Any, Any], Ray | None]] = {
    "bernoulli": _bernoulli,
    "poisson": _poisson,
    "exponential": _exponential,
    "categorical": _categorical,
    "gaussian": _gaussian,
}


_MORE = 1e308  # than any target


def exponential_family_frontier(family: str, theta1: Any, theta2: Any, alpha: Any) -> Any:
    r"""Return the least cost of removal within an exponential family.

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
        Removal to reach, in nats; 0 or more.

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
    if ray is None:  # p1 is p2, so both divergences are equal
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
