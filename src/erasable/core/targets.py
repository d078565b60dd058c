"""What users hand in as y: one target, or several, for each record.

Like everything of a record it is copied, and error messages never print a value.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, is_classifier
from sklearn.exceptions import DataConversionWarning
from sklearn.utils import get_tags
from sklearn.utils.multiclass import type_of_target

from erasable.core.complaints import refuse_dates
from erasable.core.errors import InvalidDataError

__all__ = ["check_target", "read_target", "read_weights"]

_KINDS = "numbers, booleans or strings"


def read_target(y: Any, n_records: int) -> NDArray[Any]:
    """Copy targets into a plain array.

    Parameters
    ----------
    y : array-like of shape (n_records,), (n_records, 1) or (n_records, n_outputs)
        Finite numbers, booleans or strings.
    n_records : int

    Returns
    -------
    ndarray of shape (n_records,) or (n_records, n_outputs)
        int64, uint64, float64, bool, or object where they are strings.

    Raises
    ------
    InvalidDataError
        Values that are none of these, or not one for each record.

    Examples
    --------
    >>> read_target(["spam", "ham"], 2)
    array(['spam', 'ham'], dtype=object)
    >>> read_target([1, 0], 2)
    array([1, 0])
    """
    if hasattr(y, "to_numpy"):
        y = y.to_numpy()
    try:
        given = np.asarray(y)
    except ValueError:
        raise InvalidDataError(
            "y cannot be read as an array; expected one target for each row; "
            "pass a list of numbers or strings of equal lengths"
        ) from None
    if given.ndim not in (1, 2) or given.shape[0] != n_records:
        raise InvalidDataError(
            f"Found input variables with inconsistent numbers of samples: {n_records} rows of X, "
            f"and y of shape {given.shape}; expected one target for each row; "
            "pass y in the order of the rows"
        )
    if given.shape[1:] == (0,):
        raise InvalidDataError(
            f"y has shape {given.shape}; expected one target or more for each row; pass a column"
        )
    return _plain(given)


def _plain(given: NDArray[Any]) -> NDArray[Any]:
    kind = given.dtype.kind
    if kind == "O":
        kinds = {type(value) for value in given.reshape(-1).tolist()}
        if kinds and all(issubclass(each, str) for each in kinds):
            kind = "U"
        else:
            given = _unboxed(given, kinds)
            kind = given.dtype.kind
    if kind in "UT":
        out = np.empty(given.shape, dtype=object)
        out[...] = given.astype(str).astype(object) if given.dtype != object else given
        return out
    if kind == "b":
        return given.astype(np.bool_, order="C", copy=True)
    if kind in "iu":
        wide = np.uint64 if given.dtype == np.uint64 and (given > 2**63 - 1).any() else np.int64
        return given.astype(wide, order="C", copy=True)
    if kind == "c":
        raise InvalidDataError(
            f"Complex data not supported; expected {_KINDS} as y; pass y.real or abs(y)"
        )
    if kind != "f":
        raise InvalidDataError(f"y holds {given.dtype}; expected {_KINDS}; convert it")
    numbers: NDArray[Any] = given.astype(np.float64, order="C", copy=True)
    strange = int(np.count_nonzero(~np.isfinite(numbers)))
    if strange:
        raise InvalidDataError(
            f"Input y contains {'NaN' if np.isnan(numbers).any() else 'infinity'}: {strange} "
            "values; expected finite numbers; drop those records"
        )
    numbers += 0.0  # -0.0 becomes 0.0: sums cannot tell which of the two was there first
    return numbers


def _unboxed(given: NDArray[Any], kinds: set[type]) -> NDArray[Any]:
    missing = sum(value is None or value != value for value in given.reshape(-1).tolist())
    if missing:
        raise InvalidDataError(
            f"y misses {missing} values (None or NaN); expected one for each row; drop those rows"
        )
    numbers = (bool, int, float, np.generic)
    if not all(issubclass(each, numbers) for each in kinds):
        names = sorted(each.__name__ for each in kinds)
        raise InvalidDataError(
            f"y holds values of type {', '.join(names[:4])}; expected {_KINDS}, all of one type; "
            "convert them"
        )
    return np.array(given.tolist())


def read_weights(sample_weight: Any, n_records: int) -> NDArray[np.float64]:
    """Copy the weights of records.

    Returns
    -------
    ndarray of shape (n_records,), float64

    Raises
    ------
    InvalidDataError
        Negative weights, or values that are not finite numbers, one for each record.

    Examples
    --------
    >>> read_weights([1, 2], 2)
    array([1., 2.])
    """
    refuse_dates(sample_weight, "sample_weight")
    try:
        weights = np.array(sample_weight, dtype=np.float64)
    except (TypeError, ValueError):
        raise InvalidDataError(
            "sample_weight cannot be read as numbers; expected one for each row; pass a list"
        ) from None
    if weights.ndim == 0:
        weights = np.full(n_records, weights)
    if weights.shape != (n_records,):
        raise InvalidDataError(
            f"sample_weight has shape {weights.shape} (sample_weights.shape); expected "
            f"({n_records},); pass one for each row"
        )
    strange = int(np.count_nonzero(~np.isfinite(weights)))
    if strange:
        raise InvalidDataError(
            f"sample_weight holds NaN or infinity {strange} times; expected finite numbers; "
            "give records that are not to count the weight 0"
        )
    negative = int(np.count_nonzero(weights < 0))
    if negative:
        raise InvalidDataError(
            f"sample_weight is negative for {negative} records; expected 0 or more; "
            "leave such records out"
        )
    return weights + 0.0


def check_target(estimator: BaseEstimator, y: NDArray[Any]) -> NDArray[Any]:
    """Refuse targets that an estimator cannot learn; give a column of one the shape (n,).

    Returns
    -------
    ndarray
        `y`, or a view of it.

    Raises
    ------
    InvalidDataError
        Continuous targets for a classifier, text for a regressor, or too many columns.

    Examples
    --------
    >>> from sklearn.naive_bayes import GaussianNB
    >>> check_target(GaussianNB(), np.array([0.5, 0.25]))
    Traceback (most recent call last):
    erasable.core.errors.InvalidDataError: Unknown label type: continuous. GaussianNB learns ...
    """
    name = type(estimator).__name__
    tags = get_tags(estimator)
    if y.ndim == 2 and y.shape[1] == 1 and not tags.target_tags.multi_output:
        warnings.warn(
            "A column-vector y was passed when a 1d array was expected; pass y.ravel()",
            DataConversionWarning,
            stacklevel=2,
        )
        y = y[:, 0]
    if y.ndim == 2 and not tags.target_tags.multi_output:
        raise InvalidDataError(
            f"y should be a 1d array, got an array of shape {y.shape} instead; {name} expected one "
            "target for each row; pass one column, and fit one model for each"
        )
    if is_classifier(estimator):
        if y.dtype.kind == "f" and type_of_target(y).startswith("continuous"):
            raise InvalidDataError(
                f"Unknown label type: continuous. {name} learns classes; expected a few whole "
                "numbers or strings; use a regressor, or cut the values into classes"
            )
    elif tags.estimator_type == "regressor" and y.dtype == object:
        raise InvalidDataError(
            f"y holds strings; expected numbers, because {name} is a regressor; "
            "convert them with float(), or use a classifier"
        )
    return y
