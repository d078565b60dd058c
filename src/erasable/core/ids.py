"""Record ids and groups: integers or strings, told apart, in one array.

An id is a value and its type: 17 and ``numpy.int32(17)`` are one id, 17 and ``"17"`` are two.
Floats and booleans are refused: 17.0 and 17 could be one record or two, depending on how a file
was read.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from erasable.core.arrays import numpy_of, of_objects
from erasable.core.errors import InvalidIdsError
from erasable.core.unencodable import refuse_surrogates

_EXPECTED = "expected integers or strings"
_LOWEST, _HIGHEST = -(2**63), 2**64 - 1
_LONGEST = 60  # characters of a value in a message
_NAMED = (str, bytes, int, float, complex, type(None), np.generic)


def as_id_array(values: Iterable[Any], *, name: str = "ids") -> NDArray[Any]:
    """Copy ids or groups into an array of int64, uint64 or objects (int and str)."""
    if type(values) is list:
        return _from_objects(values, name)
    if isinstance(values, np.ndarray) and values.ndim == 0:
        values = values.item()
    if isinstance(values, str | bytes | type) or not hasattr(values, "__iter__"):
        raise _no_sequence(values, name)
    if hasattr(values, "to_numpy"):
        values = _to_numpy(values, name)
    if isinstance(values, np.ma.MaskedArray) and np.ma.is_masked(values):
        raise InvalidIdsError(f"{name} hide values under a mask; expected a value everywhere")
    if not isinstance(values, np.ndarray):
        return _from_objects(list(values), name)
    values = np.asarray(values)  # of a masked array without a mask, what it holds
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
    if values.dtype.kind == "f":
        _refuse_missing(int(np.isnan(values).sum()), name)
    raise InvalidIdsError(
        f"{name} have dtype {values.dtype}; {_EXPECTED}; "
        f"convert them with {name}.astype('int64') or {name}.astype(str)"
    )


def as_request(values: Iterable[Any], *, name: str = "ids") -> list[int | str]:
    """Read the ids or groups that a caller asks for as Python values, and refuse repeated ones.

    A list of plain ints and strs is returned as it is: to delete one record costs microseconds.
    """
    request: list[int | str]
    if type(values) is list and set(map(type, values)) <= {int, str}:
        request = values
    else:
        request = as_id_array(values, name=name).tolist()
    if len(set(request)) != len(request):
        refuse_repeats(_from_objects(request, name), name=name)
    return request


def refuse_repeats(ids: NDArray[Any], *, name: str = "ids", advice: str = "") -> None:
    """Raise InvalidIdsError, naming some, if `ids` repeat."""
    if ids.size < 2:
        return
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
    """Name up to three values in an error message."""
    return ", ".join(map(shorten, values[:3])) + (", ..." if len(values) > 3 else "")


def shorten(value: object) -> str:
    """Name a value in one line of 60 characters at most; of what may hold data, only its type."""
    if isinstance(value, tuple) and all(isinstance(item, _NAMED) for item in value):
        inner = ", ".join(map(shorten, value))
        text = f"({inner},)" if len(value) == 1 else f"({inner})"
    elif not isinstance(value, _NAMED):
        return f"a {type(value).__name__}"
    elif isinstance(value, int) and value.bit_length() > 128:
        return f"an integer of {value.bit_length()} bits"
    else:
        text = repr(value[: _LONGEST + 1] if isinstance(value, str | bytes) else value)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."


def _no_sequence(value: Any, name: str) -> InvalidIdsError:
    if isinstance(value, bool) or not isinstance(value, str | int | np.integer):
        return InvalidIdsError(
            f"{name} are a {type(value).__name__}; expected a sequence of integers or strings; "
            f"pass a list of {name}"
        )
    return InvalidIdsError(
        f"{name}={shorten(value)} is a single value; expected a sequence; "
        f"wrap it in a list: [{shorten(value)}]"
    )


def _to_numpy(values: Any, name: str) -> Any:
    try:
        return numpy_of(values)
    except Exception:  # Each library has errors of its own for a type that NumPy does not know.
        raise InvalidIdsError(
            f"{name} have dtype {getattr(values, 'dtype', 'unknown')}, which NumPy does not have; "
            f"{_EXPECTED}; cast them to integers of 64 bits, or to strings"
        ) from None


def _refuse_missing(count: int, name: str) -> None:
    if count:
        raise InvalidIdsError(
            f"{count} of the {name} {'is' if count == 1 else 'are'} missing (None or NaN); "
            f"{_EXPECTED}; drop them, or fill them in"
        )


def is_gap(value: Any) -> bool:
    """Tell whether a value is None, NA or NaT."""
    return value is None or type(value).__name__ in ("NAType", "NaTType")


def is_missing(value: Any) -> bool:
    """Tell whether a value is None, NA, NaT or NaN."""
    if isinstance(value, float | np.floating):
        return bool(value != value)
    return is_gap(value)


def _from_objects(values: list[Any], name: str) -> NDArray[Any]:
    kinds = set(map(type, values))
    if not kinds <= {int, str}:
        _refuse_missing(sum(map(is_missing, values)), name)
        values = [_plain(value, name) for value in values]
        kinds = set(map(type, values))
    if int in kinds:
        integers = values if len(kinds) == 1 else [value for value in values if type(value) is int]
        low, high = min(integers), max(integers)
        if low < _LOWEST or high > _HIGHEST:
            raise InvalidIdsError(
                f"{name} hold {shorten(low if low < _LOWEST else high)}, which does not fit in "
                f"64 bits; {_EXPECTED}; convert them with str()"
            )
        if len(kinds) == 1 and high < 2**63:
            return np.array(values, dtype=np.int64)
        if len(kinds) == 1 and low >= 0:
            return np.array(values, dtype=np.uint64)
    if not values:
        return np.empty(0, dtype=np.int64)
    if str in kinds:
        texts = values if len(kinds) == 1 else [value for value in values if type(value) is str]
        refuse_surrogates(texts, f"{name} hold", InvalidIdsError)
    return of_objects(values)


def _plain(value: Any, name: str) -> int | str:
    if isinstance(value, str):
        return str(value)
    if isinstance(value, int | np.integer) and not isinstance(value, bool | np.timedelta64):
        return int(value)
    raise InvalidIdsError(
        f"{name} hold a value of type {type(value).__name__}; {_EXPECTED}; "
        "convert it with int() or str()"
    )
