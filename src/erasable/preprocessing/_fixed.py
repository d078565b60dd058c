"""Categories that the user has fixed: one list for each column, read against the table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from erasable.core.errors import InvalidInputError
from erasable.preprocessing._categories import has_gap


def plain(value: Any) -> Any:
    """Turn a value that a user has named into what a table of objects would hold.

    >>> plain(np.str_("a")), plain(np.int64(3)), plain(None)
    ('a', 3, nan)
    """
    if isinstance(value, np.generic):
        value = value.item()
    gap = value is None or type(value).__name__ == "NAType"
    gap = gap or (isinstance(value, float) and value != value)
    return np.nan if gap else value


def fixed_labels(
    categories: Sequence[Any], matrix: NDArray[Any], names: list[str]
) -> list[NDArray[Any]]:
    """Read the categories of each column, as float64, or as objects if they are text.

    Raise InvalidInputError if there is not one list for each column, or if one is empty, repeats
    itself, has a gap elsewhere than at its end, or has numbers that are not sorted.
    """
    if len(categories) != matrix.shape[1]:
        raise InvalidInputError(
            "Shape mismatch: if categories is an array, it has to be of shape (n_features,); got "
            f"{len(categories)} lists for {matrix.shape[1]} columns; pass one for each column"
        )
    return [
        _read(given, matrix.dtype == object, f"categories of column {name!r}")
        for given, name in zip(categories, names, strict=True)
    ]


def _read(given: Any, objects: bool, told: str) -> NDArray[Any]:
    if isinstance(given, str) or not hasattr(given, "__iter__"):
        raise InvalidInputError(
            f"the {told} are a {type(given).__name__}; expected a list; name every category once"
        )
    values = [plain(value) for value in given]
    odd = [value for value in values if not _is_value(value)]
    texts = [value for value in values if isinstance(value, str)]
    numbers = len(values) - len(texts) - sum(value != value for value in values)
    if not values or odd or (texts and (numbers or not objects)):
        expected = "text or numbers" if objects else "numbers, as those of the records are"
        raise InvalidInputError(
            f"the {told} are {len(values)} values, {len(texts)} of them text and {len(odd)} of "
            f"other types; expected {expected}; name every category once"
        )
    labels = np.empty(len(values), dtype=object)
    labels[:] = values
    if not texts:
        labels = labels.astype(np.float64)
    inner = labels[:-1] if has_gap(labels) else labels
    if (inner != inner).any():
        raise InvalidInputError(
            f"Nan should be the last element in user provided categories: it is not in the {told}; "
            "expected a gap once, at the end; move it there"
        )
    repeats = inner.size - len(set(inner.tolist()))
    if repeats:
        raise InvalidInputError(
            f"the {told}: the predefined categories contain duplicate elements ({repeats}); "
            "expected each once; leave out the repeats"
        )
    if not texts and (np.diff(inner) < 0).any():
        raise InvalidInputError(
            f"Unsorted categories are not supported for numerical categories: the {told} do not "
            "ascend; expected ascending numbers; sort them"
        )
    return labels


def _is_value(value: Any) -> bool:
    if isinstance(value, int):
        return value.bit_length() <= 1023  # of the numbers that a float reaches
    return isinstance(value, str | float) and value not in (np.inf, -np.inf)
