"""The outputs of several transformers as one table."""

from __future__ import annotations

import numpy as np
from scipy.sparse import hstack, issparse

from erasable.core.sparse import canonical
from erasable.core.values import Values
from erasable.pipeline._stages import as_numbers

__all__ = ["side_by_side"]


def side_by_side(parts: dict[str, Values], rows: Values) -> Values:
    """Put what parts have made of rows side by side; sparse where one of them is."""
    if not parts:
        return np.zeros((rows.shape[0], 0))
    if any(issparse(part) for part in parts.values()):
        numbers = [
            as_numbers(part, f"a sparse output beside {name!r}") for name, part in parts.items()
        ]
        return canonical(hstack(numbers, format="csr"))
    return np.hstack(list(parts.values()))
