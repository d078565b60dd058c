"""Draw a frontier."""

from __future__ import annotations

from typing import Any

from erasable.core.errors import InvalidParameterError
from erasable.core.ids import shorten
from erasable.removal._frontier import Frontier

__all__ = ["draw"]


def draw(frontier: Frontier, n_selected: int, ax: Any) -> Any:
    """Draw removal and shift at every budget, on new axes where none are given."""
    if ax is None:
        from matplotlib.figure import Figure

        ax = Figure(figsize=(6, 4), layout="constrained").subplots()
    elif not callable(getattr(ax, "axvline", None)):
        raise InvalidParameterError(
            f"ax={shorten(ax)}; expected Axes of matplotlib, or None for new ones"
        )
    ax.plot(frontier.n_deleted, frontier.alpha, label="removal, alpha = KL(p1, p)")
    ax.plot(frontier.n_deleted, frontier.epsilon, label="shift, epsilon = KL(p2, p)")
    ax.axvline(n_selected, color="0.5", linestyle=":", label=f"budget: {n_selected}")
    ax.set_xlabel("records deleted")
    ax.set_ylabel("nats")
    ax.legend(frameon=False)
    return ax
