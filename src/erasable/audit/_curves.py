"""ROC curves on logarithmic axes from 0.001 to 1, as places in a drawing of a page."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from erasable.audit._statistics import Separation
from erasable.core.arrays import Floats

__all__ = ["FRAME", "TICKS", "Curve", "place_curves"]

_LEAST = 1e-3
_N_POINTS = 200
_LABEL_GAP, _LONGEST_LABEL = 16, 42
_N_COLOURS = 5


class Frame(NamedTuple):
    """The sides of a drawing, and of its square of axes."""

    width: int
    height: int
    left: int
    top: int
    side: int

    @property
    def right(self) -> int:
        """Where the axes end."""
        return self.left + self.side

    @property
    def bottom(self) -> int:
        """Where the axes begin."""
        return self.top + self.side

    def across(self, rate: float) -> float:
        """Return the place of a rate of false positives."""
        return self.left + self.side * _place(rate)

    def down(self, rate: float) -> float:
        """Return the place of a rate of true positives."""
        return self.top + self.side * (1.0 - _place(rate))


FRAME = Frame(386, 360, 52, 14, 300)
TICKS = (1e-3, 1e-2, 1e-1, 1.0)


class Curve(NamedTuple):
    """A curve, and the name that is written where it begins."""

    name: str
    label: str  # the name, or its beginning
    area: float
    points: str  # as SVG has them
    colour: int  # number of a colour of the page
    dashes: str  # "" where the line is whole
    y: float  # of the label


def place_curves(drawn: Sequence[tuple[str, Separation]]) -> list[Curve]:
    """Place curves of some groups; names that would overlap are put one above another."""
    found = [_placed(number, *each) for number, each in enumerate(drawn)]
    ys, last = dict[int, float](), math.inf
    for number in sorted(range(len(found)), key=lambda number: -found[number].y):
        last = min(found[number].y - 8.0, last - _LABEL_GAP)
        ys[number] = max(last, FRAME.top + 12.0)
    return [each._replace(y=ys[number]) for number, each in enumerate(found)]


def _placed(number: int, name: str, found: Separation) -> Curve:
    points = thinned(found.curve).tolist()
    long = len(name) > _LONGEST_LABEL
    return Curve(
        name,
        f"{name[: _LONGEST_LABEL - 1]}…" if long else name,
        found.area,
        " ".join(f"{FRAME.across(x):.1f},{FRAME.down(y):.1f}" for x, y in points),
        number % _N_COLOURS,
        f"{7 - number % 3} {2 + number % 3}" if number else "",
        FRAME.down(points[0][1]),
    )


def thinned(curve: Floats) -> Floats:
    """Return a curve at rates of false positives that are evenly spaced on a logarithmic axis.

    >>> thinned(np.array([[0.0, 0.0], [0.0, 0.5], [1.0, 1.0]])).round(2).tolist()
    [[0.0, 0.5], [0.97, 0.5], [1.0, 1.0]]
    """
    at = np.geomspace(_LEAST, 1.0, _N_POINTS)
    at[[0, -1]] = _LEAST, 1.0
    # Of each rate, the most that is found without suspecting more others.
    found = curve[np.searchsorted(curve[:, 0], at, side="right") - 1, 1]
    points = np.column_stack([at, found])
    flat = np.zeros(len(points), dtype=bool)
    flat[1:-1] = (found[1:-1] == found[:-2]) & (found[1:-1] == found[2:])
    return points[~flat]


def _place(rate: float) -> float:
    """Return the place of a rate on an axis, from 0 to 1; lower rates are at its beginning."""
    return 1.0 + math.log10(max(rate, _LEAST)) / 3.0
