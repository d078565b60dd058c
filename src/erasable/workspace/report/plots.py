"""The plots of the page, as SVG."""

from __future__ import annotations

import io
from datetime import timedelta
from typing import Any

_INK, _QUIET, _GOOD, _LATE, _SLOW = "#1f2937", "#9ca3af", "#0f766e", "#b91c1c", "#cbd5e1"


def due_dates(completed: list[dict[str, Any]]) -> str | None:
    """Draw how long requests took against the time allowed, as SVG; None if none had a due date."""
    timed = [each for each in completed if each["days_allowed"] is not None]
    if not timed:
        return None
    figure, axes = _figure(2.6)
    timed.sort(key=lambda each: each["completed_at"])
    for late, colour, label in ((False, _GOOD, "in time"), (True, _LATE, "late")):
        some = [each for each in timed if each["late"] is late]
        if some:
            axes.scatter(
                [each["completed_at"] for each in some],
                [each["days_taken"] for each in some],
                s=26, color=colour, label=label, zorder=3, alpha=0.85, linewidths=0,
            )  # fmt: skip
    axes.scatter(
        [each["completed_at"] for each in timed],
        [each["days_allowed"] for each in timed],
        s=26, color=_QUIET, marker="_", label="allowed",
    )  # fmt: skip
    first, last = timed[0]["completed_at"], timed[-1]["completed_at"]
    margin = max((last - first) * 0.03, timedelta(days=2))
    axes.set_xlim(first - margin, last + margin)
    axes.axhline(0, color=_SLOW, linewidth=1)
    axes.set_ylim(0, 1.15 * max(max(e["days_allowed"], e["days_taken"]) for e in timed))
    axes.set_ylabel("days")
    axes.legend(frameon=False, fontsize=8, loc="upper right", ncols=3)
    figure.autofmt_xdate(rotation=0, ha="center")
    return _svg(figure)


def costs(models: list[dict[str, Any]]) -> str | None:
    """Draw what an erasure took against training, per model, as SVG; None if no model has both."""
    known = [each for each in models if each["fit_seconds"] and each["erase_seconds"]]
    if not known:
        return None
    known = known[::-1]
    figure, axes = _figure(0.7 + 0.5 * len(known))
    places = range(len(known))
    axes.barh(
        [p + 0.19 for p in places], [m["fit_seconds"] for m in known], 0.34,
        color=_SLOW, label="training",
    )  # fmt: skip
    axes.barh(
        [p - 0.19 for p in places], [m["erase_seconds"] for m in known], 0.34,
        color=_GOOD, label="erasing a batch",
    )  # fmt: skip
    axes.set_yticks(list(places), [m["name"] for m in known])
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter("{x:g}")
    axes.xaxis.set_minor_formatter("")
    axes.set_xlabel("seconds")
    axes.legend(frameon=False, fontsize=8, loc="lower center", bbox_to_anchor=(0.5, 1), ncols=2)
    return _svg(figure)


def _figure(height: float) -> tuple[Any, Any]:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.2, height), layout="constrained")
    axes = figure.subplots()
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    for side in ("left", "bottom"):
        axes.spines[side].set_color(_SLOW)
    axes.tick_params(colors=_INK, labelsize=8, length=3)
    axes.yaxis.label.set_fontsize(8)
    axes.xaxis.label.set_fontsize(8)
    return figure, axes


def _svg(figure: Any) -> str:
    from matplotlib import rc_context

    text = io.StringIO()
    with rc_context({"svg.fonttype": "none", "svg.hashsalt": "erasable"}):
        figure.savefig(text, format="svg", transparent=True, metadata={"Date": None})
    drawn = text.getvalue()
    return drawn[drawn.index("<svg") :]
