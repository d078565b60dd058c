"""What utilities read: numbers, categories, classes; checked, and never kept."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils import Tags

from erasable.core.errors import InvalidInputError
from erasable.core.inputs import read_table
from erasable.selection._records import codes_of

__all__ = ["read_categories", "read_classes", "read_numbers"]


class _Numbers(BaseEstimator):
    """Takes finite numbers."""


class _Categories(BaseEstimator):
    """Takes categories: numbers or texts."""

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        return tags


def read_numbers(X: Any) -> NDArray[np.floating]:
    """Return a table of finite numbers, float32 or float64.

    Raises
    ------
    InvalidDataError
        It is none.
    """
    return np.asarray(read_table(X, estimator=_Numbers()).matrix)


def read_categories(X: Any) -> NDArray[Any]:
    """Return a table of categories: numbers, or objects where a column holds text.

    Raises
    ------
    InvalidDataError
        It is none, or numbers are missing.
    """
    return np.asarray(read_table(X, estimator=_Categories()).matrix)


def read_classes(y: Any, n: int) -> NDArray[np.int64]:
    """Return the class of each record as a number from 0.

    Raises
    ------
    InvalidInputError
        There is not one for each record, or some are missing.
    """
    labels = np.asarray(y)
    if labels.shape != (n,):
        raise InvalidInputError(
            f"y has shape {labels.shape} for {n} records; expected one class for each record; "
            "pass them in the order of the rows"
        )
    return codes_of(labels, "y")
