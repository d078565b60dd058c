"""Tables and targets, of which every estimator takes one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np


def tables(n: int) -> Iterator[tuple[Any, Any]]:
    """Yield numbers, whole numbers and texts, each with classes, numbers, and numbers above 0."""
    rng = np.random.default_rng(0)
    X, noise = rng.normal(size=(n, 6)), rng.normal(size=n)
    words = rng.choice(["ash", "elm", "fir", "oak", "yew"], (n, 5))
    texts = np.array([" ".join(row) for row in words], dtype=object)
    for table in (X, rng.integers(0, 5, (n, 6)), texts):
        for y in ((X[:, 0] + noise > 0).astype(int), X[:, 0] + noise, np.abs(noise)):
            yield table, y
