"""Inputs of the theory of removal: records, rows, probabilities and covariances, checked."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, issparse
from sklearn.base import BaseEstimator

from erasable.core.arrays import Flags, Floats, of_objects
from erasable.core.errors import (
    InvalidDataError,
    InvalidInputError,
    InvalidParameterError,
    MagnitudeError,
)
from erasable.core.frames import as_frame
from erasable.core.ids import shorten
from erasable.core.matrices import entries
from erasable.core.seeds import is_integer
from erasable.core.values import Accepts, read_values

_DEVIATIONS = 1e-150, 1e150  # whose squares float64 holds
_MOST = 2**53  # of whole numbers that float64 tells apart
_LARGEST = 2.0**240  # of values, whose fourth powers float64 holds
_FARTHEST = 1e300  # removal to compute with, in nats


class _Reader(BaseEstimator):
    """Stands in for an estimator where records are read without one."""


def read_dense(X: Any, name: str) -> NDArray[Any]:
    """Return records as a dense table of float64 or float32; one feature may be a vector.

    Values have to be finite and at most ``2**240``.
    """
    if issparse(X):
        raise InvalidDataError(
            f"{name} is a sparse matrix; expected a dense array, because a covariance is dense; "
            "pass fewer features, such as those of TruncatedSVD"
        )
    return np.asarray(read_table(X, name))


def read_pair(first: Any, second: Any, names: tuple[str, str], *, sparse: bool = False) -> Any:
    """Return two tables of the same features: both dense, or, where allowed, both sparse."""
    if sparse and (issparse(first) or issparse(second)):
        a, b = csr_array(read_table(first, names[0])), csr_array(read_table(second, names[1]))
    else:
        a, b = read_dense(first, names[0]), read_dense(second, names[1])
    if a.shape[1] != b.shape[1]:
        raise InvalidDataError(
            f"{names[0]} has {a.shape[1]} features and {names[1]} {b.shape[1]}; expected the same "
            "features of both; read both with one vectoriser"
        )
    return a, b


def read_table(X: Any, name: str) -> Any:
    """Return records as a dense or a sparse table of finite numbers."""
    frame = as_frame(X)
    if frame is None and not issparse(X) and len(vector := _shape(X)) == 1:
        X = np.asarray(X).reshape(vector[0], 1)
    try:
        read = read_values(_Reader(), X, frame, Accepts(sparse=True), reset=True, copy=False)
    except InvalidDataError as error:
        raise type(error)(f"{name}: {error}") from None
    values = entries(read)
    if values.size and max(-float(values.min()), float(values.max())) > _LARGEST:
        raise MagnitudeError(
            f"{name} holds values beyond 2**240; expected smaller magnitudes, whose fourth "
            "powers float64 holds; divide them by a constant"
        )
    return read


def read_mask(rows: Any, n: int) -> Flags:
    """Return a mask of `n` records."""
    given = as_array(rows)
    if given.dtype != np.bool_ or given.shape != (n,):
        raise InvalidInputError(
            f"rows={shorten(rows)} for {n} records; expected a mask with a boolean for each"
        )
    return given


def read_deleted(deleted: Any, n: int, name: str = "deleted") -> Flags:
    """Return a mask of the deleted ones of `n` records, from a mask or from rows, each once."""
    given = as_array(deleted)
    if given.dtype == np.bool_ and given.shape == (n,):
        return given
    rows = given.astype(np.int64) if given.size == 0 else given
    in_order = rows.ndim == 1 and rows.dtype.kind in "iu"
    if not in_order or (rows.size and (rows.min() < 0 or rows.max() >= n)):
        raise InvalidInputError(
            f"{name}={shorten(deleted)} for {n} records; expected rows from 0 to {n - 1}, or a "
            "mask with a boolean for each record; pass rows, not ids"
        )
    mask = np.zeros(n, dtype=np.bool_)
    mask[rows] = True
    if int(mask.sum()) != rows.size:
        raise InvalidInputError(
            f"{name} names {rows.size} rows and {int(mask.sum())} of them differ; expected each "
            f"once; pass np.unique({name})"
        )
    return mask


def read_number(
    value: Any, name: str, low: float, high: float, *, ends: str = "[]", advice: str = ""
) -> float:
    """Return a number of an interval; `ends` shows whether its ends belong to it."""
    number = _number(value)
    above = number >= low if ends[0] == "[" else number > low
    below = number <= high if ends[1] == "]" else number < high
    if not (above and below):
        raise InvalidParameterError(
            f"{name}={shorten(value)}; expected a number in {ends[0]}{low:g}, {high:g}{ends[1]}; "
            f"{advice or f'pass another {name}'}"
        )
    return number


def read_count(value: Any, name: str, low: int, high: int | None = None) -> int:
    """Return a whole number of a range; without a largest, up to ``2**53``."""
    count = int(value) if is_integer(type(value)) else low - 1
    if not low <= count <= (_MOST if high is None else high):
        wanted = f"from {low} on" if high is None else f"from {low} to {high}"
        raise InvalidParameterError(
            f"{name}={shorten(value)}; expected a whole number {wanted}; pass another {name}"
        )
    return count


def read_covariance(sigma: Any, d: int) -> Floats:
    """Return a covariance of `d` features; a number is a standard deviation of all of them."""
    given = as_array(sigma)
    if given.ndim == 0:
        deviation = read_number(sigma, "sigma", *_DEVIATIONS)
        return deviation**2 * np.eye(d)
    matrix = as_numbers(given)
    if matrix.shape != (d, d) or not np.isfinite(matrix).all():
        raise InvalidParameterError(
            f"sigma={shorten(sigma)}; expected a standard deviation, or a covariance of shape "
            f"{(d, d)}; pass one for the {d} features of the records"
        )
    if not np.allclose(matrix, matrix.T, rtol=1e-9, atol=0.0):
        raise InvalidParameterError(
            "sigma is a matrix that is not symmetric; expected a covariance; pass "
            "(sigma + sigma.T) / 2 if that is what was meant"
        )
    refuse_singular(matrix, "sigma", InvalidParameterError)
    return matrix


def refuse_label(label: Any) -> None:
    """Refuse a label that cannot equal a class."""
    if label is None:
        return
    try:
        single = not np.ma.is_masked(label) and as_array(label).ndim == 0 and bool(label == label)
    except (TypeError, ValueError):  # a gap of pandas equals nothing, and differs from nothing
        single = False
    if not single:
        raise InvalidParameterError(
            f"forget_label={shorten(label)}; expected one class, or None without one"
        )


def refuse_singular(
    covariance: Floats, name: str, kind: type[InvalidInputError] = InvalidDataError
) -> None:
    """Refuse a covariance that is singular to the accuracy of float64, by an error of `kind`."""
    variances = np.diag(covariance)
    if (variances > 0).all():
        scale = 1 / np.sqrt(variances)
        least = np.linalg.eigvalsh(covariance * scale * scale[:, None])[0]
        if least > 16 * len(covariance) * np.finfo(np.float64).eps:
            return
    raise kind(
        f"the covariance of {name} is singular; expected one of full rank; drop features that are "
        "constant or follow from others, or pass more records than features"
    )


def read_gaussians(
    theta1: Any, theta2: Any, names: tuple[str, str]
) -> tuple[tuple[Floats, Floats], tuple[Floats, Floats]]:
    """Return means and covariances of two Gaussians of as many features."""
    first, second = _gaussian(theta1, names[0]), _gaussian(theta2, names[1])
    if first[0].shape != second[0].shape:
        raise outside(theta2, names[1], f"a Gaussian of {len(first[0])} features, as {names[0]} is")
    return first, second


def _gaussian(theta: Any, name: str) -> tuple[Floats, Floats]:
    wanted = "(mean, covariance) of shapes (n_features,) and (n_features, n_features)"
    try:
        given_mean, given_covariance = theta
        mean = np.atleast_1d(as_numbers(given_mean))
        covariance = np.atleast_2d(as_numbers(given_covariance))
    except (TypeError, ValueError, NotImplementedError):
        raise outside(theta, name, wanted) from None
    finite = np.isfinite(mean).all() and np.isfinite(covariance).all()
    if mean.ndim != 1 or covariance.shape != 2 * mean.shape or not finite:
        raise outside(theta, name, wanted)
    if not np.allclose(covariance, covariance.T, rtol=1e-9, atol=0.0):
        raise outside(theta, name, f"{wanted}, the covariance symmetric")
    refuse_singular(covariance, name, InvalidParameterError)
    return mean, covariance


def outside(theta: Any, name: str, wanted: str) -> InvalidParameterError:
    """Make the error of a parameter outside the mean space."""
    return InvalidParameterError(
        f"{name}={shorten(theta)}, which is outside the mean space; expected {wanted}; pass the "
        "parameter in mean form, and leave out what never occurs"
    )


def as_array(value: Any) -> NDArray[Any]:
    """Return the input as an array; rows of different lengths as one of objects."""
    try:
        return np.asarray(value)
    except ValueError:
        return of_objects(value)


def as_numbers(value: Any) -> Floats:
    """Return numbers as float64, as a copy; anything else as an empty array of two dimensions.

    Text, dates, complex numbers and masked values are no numbers here.
    """
    none = np.empty((0, 0))
    given = none.astype(object) if np.ma.is_masked(value) else as_array(value)
    if given.dtype.kind not in "biufO":
        return none
    try:
        return np.array(given, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        return none


def length_of(X: Any) -> int:
    """Return the number of records, values or ids."""
    try:
        return int(X.shape[0]) if hasattr(X, "shape") else len(X)
    except (TypeError, IndexError):
        raise InvalidDataError(
            f"{shorten(X)} came in the place of records, one value for each, or ids; expected an "
            "array, a frame or a list; pass one"
        ) from None


def _number(value: Any) -> float:
    given = as_array(value)
    if given.ndim or given.dtype.kind not in "iufO" or np.ma.is_masked(value):
        return np.nan
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return np.nan


def _shape(X: Any) -> tuple[int, ...]:
    try:
        return np.shape(X)
    except ValueError:  # rows of different lengths, which the reader complains of
        return ()


def read_targets(alpha: Any) -> Floats:
    """Return alpha, finite and at least 0, as an array of float64 of its own shape."""
    given = as_array(alpha)
    plain = given.dtype.kind in "iuf"
    targets = given.astype(np.float64) if plain else np.zeros(0)
    if not plain or not ((targets >= 0) & (targets <= _FARTHEST)).all():
        raise InvalidParameterError(
            f"alpha={shorten(alpha)}; expected finite numbers from 0 on, up to {_FARTHEST:g} nats; "
            "pass how far from the unwanted domain the edited data are to be"
        )
    return targets
