"""An estimator of somebody else that refuses to learn, after having learned some times."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin

__all__ = ["Refusing"]


class Refusing(RegressorMixin, BaseEstimator):
    """Learns the mean, all at once or slice by slice."""

    left: ClassVar[int | None] = None
    """How often it learns before it refuses to; None: it does not refuse."""

    def fit(self, X: Any, y: Any) -> Refusing:
        self.total_, self.n_ = 0.0, 0
        return self.partial_fit(X, y)

    def partial_fit(self, X: Any, y: Any) -> Refusing:
        if Refusing.left == 0:
            raise ValueError("not today")
        if Refusing.left is not None:
            Refusing.left -= 1
        self.total_ = getattr(self, "total_", 0.0) + float(np.sum(y))
        self.n_ = getattr(self, "n_", 0) + len(y)
        return self

    def predict(self, X: Any) -> Any:
        return np.full(len(X), self.total_ / self.n_)
