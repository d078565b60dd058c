"""Record ids and groups: integers or strings, told apart, in one array.

An id counts by its value and its type: 17 and ``numpy.int32(17)`` are one id, 17 and ``"17"`` are
two. Floats and booleans are refused, because 17.0 and 17 would otherwise be one record or two
depending on how a file was read.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from erasable.core.errors import InvalidIdsError

__all__ = ["as_id_array", "as_request", "name_some", "refuse_repeats"]

_EXPECTED = "expected integers or strings"
_LOWEST, _HIGHEST = -(2**63), 2**64 - 1


def as_id_array(values: Iterable[Any], *, name: str = "ids") -> NDArray[Any]:
    """Copy ids or groups into an array of one of three kinds.

    Parameters
    ----------
    values : array-like of int or str, shape (n,)
        A list, an array, or the column or index of a frame.
    name : str, default="ids"
        What the values are called in error messages.

    Returns
    -------
    ndarray of shape (n,)
        int64 where every value fits, else uint64 where every value fits, else objects that are
        Python ints and strs.

    Raises
    ------
    InvalidIdsError
        For a single value, more than one dimension, or values that are neither integers nor text.

    Examples
    --------
    >>> as_id_array([3, 5]).dtype
    dtype('int64')
    >>> as_id_array(["visit-17", 17])
    array(['visit-17', 17], dtype=object)
    """
    if (
        isinstance(values, str | bytes)
        or not hasattr(values, "__iter__")
        or (isinstance(values, np.ndarray) and values.ndim == 0)
    ):
        raise InvalidIdsError(
            f"{name}={values!r} is a single value; expected a sequence; "
            f"wrap it in a list: [{values!r}]"
        )
    if hasattr(values, "to_numpy"):
        values = values.to_numpy()
    if not isinstance(values, np.ndarray):
        return _from_objects(list(values), name)
    if values.ndim != 1:
        raise InvalidIdsError(
            f"{name} have shape {values.shape}; expected one dimension; flatten them with .ravel()"
        )
    if values.dtype.kind == "i":
        return values.astype(np.int64)
    if values.dtype.kind == "u":
        fits = values.size == 0 or int(values.max()) < 2**63
        return values.astype(np.int64 if fits else np.uint64)
    if values.dtype.kind in "OUT":
        return _from_objects(values.tolist(), name)
    if values.size == 0:
        return np.empty(0, dtype=np.int64)
    raise InvalidIdsError(
        f"{name} have dtype {values.dtype}; {_EXPECTED}; "
        f"convert them with {name}.astype('int64') or {name}.astype(str)"
    )


def as_request(values: Iterable[Any], *, name: str = "ids") -> list[int | str]:
    """Read the ids or groups that a caller asks for, as Python values, and refuse repeated ones.

    A list of plain ints and strs is taken as it is, because a deletion of one record is to cost
    microseconds.

    Examples
    --------
    >>> import numpy as np
    >>> as_request(np.array([3, 5], dtype=np.uint8))
    [3, 5]
    """
    request: list[int | str]
    if type(values) is list and all(type(value) is int or type(value) is str for value in values):
        request = values
    else:
        request = as_id_array(values, name=name).tolist()
    if len(set(request)) != len(request):
        refuse_repeats(_from_objects(request, name), name=name)
    return request


def refuse_repeats(ids: NDArray[Any], *, name: str = "ids", advice: str = "") -> None:
    """Raise InvalidIdsError, naming some, if `ids` repeat.

    Examples
    --------
    >>> refuse_repeats(as_id_array([17, 4, 17]))
    Traceback (most recent call last):
    erasable.core.errors.InvalidIdsError: 1 of the ids is repeated: 17; ...
    """
    if ids.dtype == object:
        if len(set(ids.tolist())) == ids.size:
            return
        counts: dict[int | str, int] = {}
        for value in ids.tolist():
            counts[value] = counts.get(value, 0) + 1
        repeated = [value for value, count in counts.items() if count > 1]
    else:
        if bool(np.all(ids[1:] > ids[:-1])):
            return
        ordered = np.sort(ids)
        same = ordered[1:] == ordered[:-1]
        if not same.any():
            return
        repeated = np.unique(ordered[1:][same]).tolist()
    raise InvalidIdsError(
        f"{len(repeated)} of the {name} {'is' if len(repeated) == 1 else 'are'} repeated: "
        f"{name_some(repeated)}; expected each once; {advice or 'remove the repeats'}"
    )


def name_some(values: list[Any]) -> str:
    """Name up to three of the values, for an error message.

    Examples
    --------
    >>> name_some(["a", "b", "c", "d"])
    "'a', 'b', 'c', ..."
    """
    return ", ".join(repr(value) for value in values[:3]) + (", ..." if len(values) > 3 else "")


def _from_objects(values: list[Any], name: str) -> NDArray[Any]:
    kinds = set(map(type, values))
    if not kinds <= {int, str}:
        values = [_plain(value, name) for value in values]
        kinds = set(map(type, values))
    if int in kinds:
        integers = values if len(kinds) == 1 else [value for value in values if type(value) is int]
        low, high = min(integers), max(integers)
        if low < _LOWEST or high > _HIGHEST:
            raise InvalidIdsError(
                f"{name} hold {low if low < _LOWEST else high}, which does not fit in 64 bits; "
                f"{_EXPECTED}; convert them with str()"
            )
        if len(kinds) == 1 and high < 2**63:
            return np.array(values, dtype=np.int64)
        if len(kinds) == 1 and low >= 0:
            return np.array(values, dtype=np.uint64)
    if not values:
        return np.empty(0, dtype=np.int64)
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array


def _plain(value: Any, name: str) -> int | str:
    if isinstance(value, str):
        return str(value)
    if isinstance(value, int | np.integer) and not isinstance(value, bool | np.timedelta64):
        return int(value)
    raise InvalidIdsError(
        f"{name} hold a value of type {type(value).__name__}; {_EXPECTED}; "
        "convert it with int() or str()"
    )
