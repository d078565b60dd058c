"""Exponential families: what a parameter in mean form is, and the line through two of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from erasable.core.errors import InvalidParameterError
from erasable.core.ids import shorten
from erasable.removal._gaussians import whitened
from erasable.removal._reading import as_numbers, refuse_singular
from erasable.removal.frontiers._rays import CountRay, GaussianRay, Ray, WaitingRay

__all__ = ["FAMILIES"]

Floats = NDArray[np.float64]
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
