"""Records in the form that the wrapped estimator gets, as scikit-learn would have got them."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.base import BaseEstimator
from sklearn.utils.validation import has_fit_parameter

from erasable.core.arrays import Ints
from erasable.core.frames import make_frame
from erasable.core.passes import storage
from erasable.refit._names import Known, is_foreign, parts_of


def weights_parameter(estimator: Any) -> str | None:
    """Return the name of the weights in `fit`, None without; a pipeline's is its last step's."""
    from sklearn.pipeline import Pipeline  # late, because it takes a while to import

    if isinstance(estimator, Pipeline) and estimator.steps and len(estimator.steps[-1]) == 2:
        name, last = estimator.steps[-1]
        inner = weights_parameter(last)
        return None if inner is None else f"{name}__{inner}"
    takes = isinstance(estimator, BaseEstimator) and has_fit_parameter(estimator, "sample_weight")
    return "sample_weight" if takes else None


def needs_frame(estimator: BaseEstimator, known: Known, names: list[str] | None) -> bool:
    """Tell whether an estimator needs the names of columns: it mentions one, or it may.

    Others are given arrays, which learn the same from a frame and from an array: NumPy adds the
    columns of a frame in another order.
    """
    if names is None:
        return False
    if any(is_foreign(part) for part in known.values()):
        return True
    texts = {part for part in parts_of(estimator) if isinstance(part, str)}
    return not texts.isdisjoint(names)


def text_columns(matrix: Any, rows: Ints) -> list[int]:
    """Find the columns of a table of objects in which some of the rows have text."""
    if matrix.dtype != object:
        return []
    matrix, rows = storage(matrix).in_memory(rows)
    return [
        column
        for column in range(matrix.shape[1])
        if any(isinstance(value, str) for value in matrix[rows, column].tolist())
    ]


def as_given(matrix: Any, *, names: list[str] | None, text: list[int], documents: bool) -> Any:
    """Turn rows into the form from which the estimator learns, and in which it predicts.

    Numbers become float64, so that it learns the same from all types. `names` is None where it
    needs no frame; `text` are the columns of text.
    """
    if documents:
        return matrix[:, 0].tolist()
    if issparse(matrix):
        return matrix.astype(np.float64)
    if not text:
        numbers = np.array(matrix, dtype=np.float64, order="C")
        return numbers if names is None else make_frame(numbers, names)
    table = matrix.astype(object)
    return table if names is None else make_frame(table, names, text)
