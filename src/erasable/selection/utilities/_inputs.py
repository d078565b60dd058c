"""Inputs of utilities: numbers, categories and classes, checked and not kept."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils import Tags

from erasable.core.errors import InvalidInputError
from erasable.core.inputs import read_table
from erasable.selection._records import as_labels, codes_of
from erasable.selection._warning import SelectionWarning

_FEW = 20  # records of which each may have a class of its own, as for scikit-learn
_CALLER = 5  # frames from here to `fit`, or to who called it


class _Numbers(BaseEstimator):
    """Stands in for an estimator that takes finite numbers."""


class _Categories(BaseEstimator):
    """Stands in for an estimator that takes categories: numbers or texts."""

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        return tags


def read_numbers(X: Any) -> NDArray[np.floating]:
    """Return a table of finite numbers, float32 or float64."""
    return np.asarray(read_table(X, estimator=_Numbers()).matrix)


def read_categories(X: Any) -> NDArray[Any]:
    """Return a table of categories: numbers, or objects where a column holds text."""
    return np.asarray(read_table(X, estimator=_Categories()).matrix)


def read_classes(y: Any, n: int) -> NDArray[np.int64]:
    """Return classes as numbers from 0; warn where over half of the records have their own."""
    labels = as_labels(y, "y")
    if labels.shape != (n,):
        raise InvalidInputError(
            f"y has shape {labels.shape} for {n} records; expected one class for each record; "
            "pass them in the order of the rows"
        )
    codes = codes_of(labels, "y")
    refuse_measurements(
        labels, codes, "y", "classes",
        "leave y out where the utility can do without classes, or bin it",
    )  # fmt: skip
    return codes


def refuse_measurements(
    values: NDArray[Any], codes: NDArray[np.int64], name: str, expected: str, advice: str
) -> None:
    """Refuse numbers with a fraction as classes; warn where nearly all values are single.

    These are values that scikit-learn's `type_of_target` calls continuous; each would be a class of
    its own. `name`, `expected` and `advice` are parts of the message.
    """
    n, different = len(values), int(codes.max(initial=-1)) + 1
    numbers = _floats(values)
    if numbers is not None and not np.array_equal(numbers, np.rint(numbers)):
        raise InvalidInputError(
            f"{name} holds numbers with a fraction, {different} different ones in {n} records; "
            f"expected {expected}; {advice}"
        )
    if n > _FEW and different > n / 2:
        warnings.warn(
            f"{name} has {different} different values in {n} records; expected {expected}, each "
            f"of several records; {advice}",
            SelectionWarning,
            stacklevel=_CALLER,
        )


def _floats(values: NDArray[Any]) -> NDArray[np.floating] | None:
    """Return values as floats where some are; None where all are texts or integers."""
    if values.dtype.kind == "f":
        return values
    if values.dtype != object:
        return None
    some = [each for each in values.tolist() if isinstance(each, float | np.floating)]
    return np.array(some) if some else None
