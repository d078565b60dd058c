"""What a deletion did to a grid."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class GridChange:
    """What a deletion did to a grid.

    Attributes
    ----------
    exponents : bool
        Did the top exponent or the origin of some column change?
    columns : ndarray of shape (n_features,), bool
        The columns whose top exponent or origin changed.
    values : ndarray of shape (n_features,), bool
        The columns in which the gridded value of some live row changed.
    extremes : ndarray of shape (n_features,), bool
        The columns whose lowest or highest live value changed.

    Examples
    --------
    >>> import numpy as np
    >>> from erasable.core.grid import Grid
    >>> rows = np.array([[1.0, 8.0], [2.0, 9.0], [30.0, 9.0]])
    >>> change = Grid.fit(rows).remove(rows, np.array([2]), lambda: np.array([0, 1]))
    >>> change.exponents, change.columns.tolist(), change.values.any()
    (True, [True, False], np.False_)
    """

    exponents: bool
    columns: NDArray[np.bool_]
    values: NDArray[np.bool_]
    extremes: NDArray[np.bool_]


def unchanged(n_features: int) -> GridChange:
    """Answer of a deletion that changed nothing, made once for each width."""
    if n_features not in _STILL:
        still = np.zeros(n_features, dtype=np.bool_)
        still.flags.writeable = False
        _STILL[n_features] = GridChange(False, still, still, still)
    return _STILL[n_features]


_STILL: dict[int, GridChange] = {}
