"""An estimator that draws from NumPy's global generator, and waits there for another thread."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin

__all__ = ["Meeting"]

_barrier = threading.Barrier(2)


class Meeting(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Seeds the global generator, as it should not, and draws once another has seeded it, too.

    In the main thread, and where no other thread comes within `patience` seconds, it goes on.
    """

    def __init__(self, patience: float = 0.05, random_state: Any = None) -> None:
        self.patience = patience
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> Meeting:
        self.classes_ = np.unique(y)
        np.random.seed(self.random_state)
        if threading.current_thread() is not threading.main_thread():
            try:
                _barrier.wait(self.patience)
            except threading.BrokenBarrierError:
                _barrier.reset()
        self.draws_ = np.array([np.random.random() for _ in range(4)])
        return self

    def predict(self, X: Any) -> Any:
        return np.full(len(X), self.classes_[0])
