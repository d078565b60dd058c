"""What forests have beside trees: how many there are, and bags."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils._param_validation import Interval

__all__ = ["OF_FORESTS", "Bagged"]

OF_FORESTS: dict[str, Any] = {
    "n_estimators": [Interval(Integral, 1, None, closed="left")],
    "bootstrap": ["boolean"],
}
"""Constraints of the parameters that forests have beside those of trees."""


class Bagged:
    """Mixin of forests; what they are was fixed at `fit`."""

    _at_fit: Any
    _leaves: Any

    def apply(self, X: Any) -> NDArray[np.int64]:
        """Return the leaf of every tree that every row comes to.

        Parameters
        ----------
        X : array-like or frame of shape (n_rows, n_features)

        Returns
        -------
        ndarray of shape (n_rows, n_estimators), int64
            Leaves are numbered from 0 on, from left to right; scikit-learn numbers all nodes.
        """
        leaves: NDArray[np.int64] = self._leaves(X)
        return leaves

    def _n_trees(self) -> int:
        return int(self._at_fit("n_estimators"))

    def _draws_bags(self) -> bool:
        return bool(self._at_fit("bootstrap"))
