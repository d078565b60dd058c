"""The fault that earlier versions had: the raw part of a transformer is applied twice."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

import pytest

from erasable.pipeline import _chain, _chained, _stages
from erasable.pipeline._stages import Link

__all__ = ["earlier_version", "split_as_before"]

_SPLIT = _stages.split


def split_as_before(links: Sequence[Link]) -> tuple[tuple[Link, ...], tuple[Link, ...]]:
    """Cut a path in two, and keep the whole transformer among the maps."""
    before, maps = _SPLIT(links)
    if maps and maps[0].part == "map":
        maps = (replace(maps[0], part="whole"), *maps[1:])
    return before, maps


@contextmanager
def earlier_version() -> Iterator[None]:
    """Plan as before, and write no marks."""
    with pytest.MonkeyPatch.context() as patch:
        for module in (_stages, _chain):
            patch.setattr(module, "split", split_as_before)
        patch.setattr(_chained, "learned_wrong", lambda model: False)
        yield
