"""What the sums of products are made of: few rows at hand, targets, and how many columns."""

from __future__ import annotations

from typing import Any

import numpy as np

from erasable.core.arrays import Floats, Ints
from erasable.core.errors import InvalidDataError
from erasable.core.passes import at_hand

MAX_FEATURES = 4096


def few(matrix: Any, targets: Floats, rows: Ints) -> tuple[Any, Floats, Ints]:
    """Return what `at_hand` does, with the targets of the same rows."""
    own, places = at_hand(matrix, rows)
    return own, targets if own is matrix else targets[rows], places


def check_widths(matrix: Any, targets: Floats) -> None:
    _check_width(matrix.shape[1], "features", "select or project features first")
    _check_width(targets.shape[1], "targets", "learn them in several models")


def _check_width(count: int, what: str, advice: str) -> None:
    """Refuse more columns than exact sums of products have room for.

    Raises
    ------
    InvalidDataError
    """
    if count > MAX_FEATURES:
        raise InvalidDataError(
            f"{count} {what} were given; expected at most {MAX_FEATURES}, because exact sums of "
            f"products take memory in their square; {advice}"
        )


def targets_of(matrix: Any, targets: Floats | None) -> Floats:
    return np.zeros((matrix.shape[0], 0)) if targets is None else targets
