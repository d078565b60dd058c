"""Rows that a pipeline has read and checked, and passes to a step."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from erasable.core._mixed import Mixed
from erasable.core.arrays import Values
from erasable.core.errors import InvalidDataError

__all__ = ["Rows", "matrix_of"]


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows that a pipeline has read and checked; a step need not do it again.

    Attributes
    ----------
    matrix : ndarray of shape (n_rows, n_features), float64 or object; or csr_array
    unmapped : bool
        Whether the rows have not passed the map behind which the step has learned; all others
        have.

    Examples
    --------
    >>> import numpy as np
    >>> from erasable.preprocessing import MinMaxScaler
    >>> MinMaxScaler().fit([[1.0], [3.0]]).transform(Rows(np.array([[2.0]])))
    array([[0.5]])
    """

    matrix: Values
    unmapped: bool = False


def matrix_of(rows: Rows, model: Any) -> Values:
    """Return the matrix of rows for a step.

    Raises
    ------
    InvalidDataError
        It has another width than the step: steps from a file do not fit together.

    Examples
    --------
    >>> import numpy as np
    >>> from erasable.preprocessing import MinMaxScaler
    >>> matrix_of(Rows(np.zeros((1, 2))), MinMaxScaler().fit([[1.0], [3.0]]))
    Traceback (most recent call last):
    erasable.core.errors.InvalidDataError: MinMaxScaler is given 2 columns by the steps before; ...
    """
    if rows.matrix.shape[1] != model.n_features_in_:
        raise InvalidDataError(
            f"{type(model).__name__} is given {rows.matrix.shape[1]} columns by the steps before; "
            f"expected {model.n_features_in_}"
        )
    return rows.matrix.objects() if isinstance(rows.matrix, Mixed) else rows.matrix
