"""Axes of matplotlib to draw on."""

from __future__ import annotations

from typing import Any

from erasable.core._optional import needs
from erasable.core.errors import InvalidParameterError
from erasable.core.ids import shorten

__all__ = ["axes"]


def axes(ax: Any) -> Any:
    """Return the axes that were given, or new ones for None."""
    if ax is None:
        with needs("plots", "a plot"):
            from matplotlib.figure import Figure

        return Figure(figsize=(6, 4), layout="constrained").subplots()
    if not callable(getattr(ax, "axvline", None)):
        raise InvalidParameterError(
            f"ax={shorten(ax)}; expected Axes of matplotlib, or None for new ones"
        )
    return ax
