"""Targets: one or several for each record, and the weights of records.

The type of the targets is what an array or a frame declares. Where nothing is declared (a list,
an array of objects), it is that of the values, which must be of one type: otherwise a deletion
could change how the targets of others are read. Integers and floats may be mixed where targets
are numbers and not classes.

Targets are copied, and error messages never print a value.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, is_classifier
from sklearn.exceptions import DataConversionWarning
from sklearn.utils import get_tags
from sklearn.utils.multiclass import type_of_target

from erasable.core.arrays import numpy_of, of_objects
from erasable.core.errors import InvalidDataError
from erasable.core.ids import is_missing
from erasable.core.messages import refuse_dates
from erasable.core.unencodable import refuse_surrogates

__all__ = ["check_target", "mixes_numbers", "read_target", "read_weights"]

_KINDS = "numbers, booleans or strings"
_DECLARE = "so that no record decides how the others are read, declare one: np.asarray(y, dtype={})"
_TYPES = {
    "bool": (bool, np.bool_),
    "int": (int, np.integer),
    "float": (float, np.floating, Decimal),
    "str": (str,),
}


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
        int64, uint64 (only if declared, and some value does not fit in int64), float64, bool, or
        object where they are strings. Undeclared integers and floats together are float64, see
        `mixes_numbers`.

    Raises
    ------
    InvalidDataError
        Other values, or not one for each record; undeclared values of several other types, or
        integers beyond int64.

    Examples
    --------
    >>> read_target(["spam", "ham"], 2)
    array(['spam', 'ham'], dtype=object)
    >>> read_target([1, 0], 2)
    array([1, 0])
    """
    try:
        given, undeclared = _as_array(y)
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
    return _plain(given if undeclared is None else _typed(undeclared))


def mixes_numbers(y: Any) -> bool:
    """Tell whether targets that `read_target` reads are undeclared integers and floats.

    Examples
    --------
    >>> mixes_numbers([1, 2.0]), mixes_numbers([1, 2]), mixes_numbers(np.array([1, 2.0]))
    (True, False, False)
    """
    if type(y) is list and set(map(type, y)) in ({int}, {float}):
        return False
    undeclared = _as_array(y)[1]
    return undeclared is not None and any(len(types) > 1 for types in _types_by_column(undeclared))


def _as_array(y: Any) -> tuple[NDArray[Any], NDArray[Any] | None]:
    """Return y as an array, and as one of objects where nothing declares the type."""
    if hasattr(y, "to_numpy"):
        y = numpy_of(y)
    given = np.asarray(y)
    if given.dtype == object:
        return given, given
    if type(y) is list and set(map(type, y)) == {{"i": int, "f": float}.get(given.dtype.kind)}:
        return given, None  # all of the one type that the array has
    if not isinstance(y, Sequence) or given.dtype.kind not in "UTbiuf":
        return given, None
    undeclared = np.array(y, dtype=object)
    if undeclared.shape != given.shape:  # of things that NumPy reads as arrays
        return given, None
    cells = undeclared.reshape(-1)
    if not set(map(_type_of, set(map(type, cells.tolist())))) <= _TYPES.keys():
        cells[:] = [np.asarray(cell).item() for cell in cells.tolist()]  # arrays of one value
    return given, undeclared


def _types_by_column(undeclared: NDArray[Any]) -> list[set[str]]:
    columns = undeclared.reshape(undeclared.shape[0], -1).T
    return [set(map(_type_of, set(map(type, column.tolist())))) for column in columns]


def _type_of(kind: type) -> str:
    if issubclass(kind, np.timedelta64):  # which is an np.integer
        return kind.__name__
    return next((name for name, own in _TYPES.items() if issubclass(kind, own)), kind.__name__)


def _typed(undeclared: NDArray[Any]) -> NDArray[Any]:
    """Give values the one type that each of their columns has; integers and floats are floats."""
    values = undeclared.reshape(-1).tolist()
    by_column = _types_by_column(undeclared)
    types = set().union(*by_column)
    if types == {"str"}:
        return undeclared
    numeric = types <= {"bool", "int", "float"}  # a NaN among them is found later
    if not numeric and (missing := sum(map(is_missing, values))):
        raise InvalidDataError(
            f"y misses {missing} values (None or NaN); expected one for each row; drop those rows"
        )
    if not numeric or any(len(each) > 1 and each != {"int", "float"} for each in by_column):
        advice = "convert them"
        if types <= _TYPES.keys():
            advice = _DECLARE.format(
                next(name for name in ("str", "float", "int") if name in types)
            )
        raise InvalidDataError(
            f"y holds values of type {', '.join(sorted(types)[:4])}; expected {_KINDS}, all of one "
            f"type; {advice}"
        )
    integers = [value for value in values if isinstance(value, int | np.integer)]
    if integers and not -(2**63) <= min(integers) <= max(integers) < 2**63:
        raise InvalidDataError(
            f"y holds integers beyond 64 bits with a sign; expected {_KINDS}; "
            f"{_DECLARE.format('np.uint64')}, or float"
        )
    kind = next((name for name in ("float", "int", "bool") if name in types), "float")
    return undeclared.astype({"float": np.float64, "int": np.int64, "bool": np.bool_}[kind])


def _plain(given: NDArray[Any]) -> NDArray[Any]:
    kind = given.dtype.kind
    if kind in "OUT":  # objects are strings here
        texts = [str(text) for text in given.reshape(-1).tolist()]
        refuse_surrogates(texts, "y holds")
        return of_objects(texts).reshape(given.shape)
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
    except (TypeError, ValueError, OverflowError):
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
