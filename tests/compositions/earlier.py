"""The faults that earlier versions had.

The raw part of a transformer is applied twice, and of a pipeline of maps only the last are taken.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest

from erasable.core import estimator
from erasable.pipeline import Pipeline, _chain, _chained, _stages
from erasable.pipeline._stages import Link

__all__ = ["earlier_version", "split_as_before"]

_SPLIT = _stages.split


def split_as_before(links: Sequence[Link]) -> tuple[tuple[Link, ...], tuple[Link, ...]]:
    """Cut a path in two, and keep the whole transformer among the maps."""
    before, maps = _SPLIT(links)
    if maps and maps[0].part == "map":
        maps = (replace(maps[0], part="whole"), *maps[1:])
    return before, maps


def _affine_as_before(self: Pipeline) -> Any:
    return _stages.compose(self._chain.last_maps())


@contextmanager
def earlier_version() -> Iterator[None]:
    """Plan as before, look at no widths, and write no marks."""
    with pytest.MonkeyPatch.context() as patch:
        for module in (_stages, _chain):
            patch.setattr(module, "split", split_as_before)
        patch.setattr(Pipeline, "_affine", _affine_as_before)
        patch.setattr(_chained, "learned_wrong", lambda model: False)
        # They did not look at how wide the rows between steps are.
        patch.setattr(estimator, "matrix_of", lambda rows, model: rows.matrix)
        yield
