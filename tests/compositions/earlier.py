"""The fault that earlier versions had: the raw part of a transformer is applied twice."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from erasable.pipeline import _stages
from erasable.pipeline._stages import Link

__all__ = ["split_as_before"]

_SPLIT = _stages.split


def split_as_before(links: Sequence[Link]) -> tuple[tuple[Link, ...], tuple[Link, ...]]:
    """Cut a path in two, and keep the whole transformer among the maps."""
    before, maps = _SPLIT(links)
    if maps and maps[0].part == "map":
        maps = (replace(maps[0], part="whole"), *maps[1:])
    return before, maps
