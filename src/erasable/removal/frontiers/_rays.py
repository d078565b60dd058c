"""Lines through a mean space from p1 through p2 and beyond, and both divergences along them.

A place on the part behind p2 is a number from 0, which is p2, to infinity, which is the boundary
of the mean space. With ``mean = mean2 + t (mean2 - mean1)``, the place is ``log(1 + t)`` where the
line never leaves the mean space, and ``-log(1 - t / t_max)`` where it does at ``t_max``: on both
scales a divergence of any size is reached in a few hundred steps at most, and no probability that
approaches 0 is lost to rounding. The multiplier of the paper is ``t / (1 + t)``.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from scipy.optimize import brentq

from erasable.core.arrays import Floats
from erasable.removal._gaussians import excess

_FAR = 700.0


class Ray(Protocol):
    """What the search for a point of the frontier asks of a line."""

    def divergences(self, place: float) -> tuple[float, float]:
        """Return KL(p1, p) and KL(p2, p) of the p at a place; the first one grows with it."""
        ...

    def multiplier(self, place: float) -> float:
        """Return the multiplier of the constraint, from 0 at p2 to less than 1."""
        ...


class _Line:
    """Parameters in proportion to those of p2: each is ``1 + t step``, and above 0 to exist."""

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
    """Poisson counts, and categories, whose probabilities add up to 1 all along the line."""

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
    moment is quadratic in the covariance. It becomes singular where
    ``shift' D^-1 shift t (1 + t)``, which grows with `t`, is 1, unless D is singular before.
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
        """Return the place on the line of D where the covariance is singular and D is not."""

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
    """Return ``change - log(1 + change)``: by the one where it is small, by the other elsewhere."""
    far = ~(np.abs(change) <= 0.5)  # or nothing, where t is infinite
    found: Floats = excess(
        np.where(far, np.expm1(log_ratio), change),
        np.where(far, log_ratio, np.log1p(np.where(far, 0.0, change))),
    )
    return found


def _number(value: Any) -> float:
    """Return a divergence: at least 0, and infinite where rounding says that it is nothing."""
    return np.inf if np.isnan(value) else max(float(value), 0.0)
