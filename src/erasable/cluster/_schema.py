"""Schemas of the runs in the file of a clustering model."""

from __future__ import annotations

import math
from typing import Any

from erasable.core._schema import Fields, Part, Sizes, join, refuse
from erasable.core._schema_arrays import Array
from erasable.core.grid import MAX_ROWS

FARTHEST = 2.0**490
"""Of a centroid from the origin of the grid: beyond all records."""


def run_schema(n_clusters: str | int, max_iter: int) -> dict[str, Part]:
    """Return the parts for what `LloydRun.state` gives; a `str` of clusters names a dimension."""

    def end_in_time(value: dict[str, Any], at: str, sizes: Sizes) -> None:
        levels = value["counts"].shape[0]
        if not 1 <= levels <= max_iter + 1:
            refuse(join(at, "counts"), f"{levels} levels", f"1 to {max_iter + 1}")

    def draw_candidates(value: dict[str, Any], at: str, sizes: Sizes) -> None:
        k, tried = value["candidates"].shape
        if k == 0 or tried != 2 + int(math.log(k)):
            refuse(join(at, "candidates"), value["candidates"], "as many as are drawn")

    levels = "n_levels"
    farthest = float(MAX_ROWS) * FARTHEST
    path = {
        "centers": Array("float64", (levels, n_clusters, "n_features"), -FARTHEST, FARTHEST),
        "counts": Array("int64", (levels, n_clusters), least=0),
        "sums": Array("float64", (levels, n_clusters, "n_features"), -farthest, farthest),
    }
    seeds = {
        "candidates": Array("uint64", (n_clusters, "n_candidates")),
        "chosen": Array("uint64", (n_clusters,)),
        "potentials": Array("int64", (n_clusters, "n_candidates")),
    }
    return {
        "path": Fields(path, relations=(end_in_time,)),
        "seeds": Fields(seeds, relations=(draw_candidates,)),
    }


class NodeSchema(Part):
    """The run of a node of a tree, whose dimensions are its own, or nothing."""

    def __init__(self, max_iter: int) -> None:
        self._run = Fields(run_schema("n_clusters", max_iter))

    def check(self, value: Any, at: str, sizes: Sizes) -> None:
        """See `Part.check`."""
        if value != {}:
            self._run.check(value, at, {"n_features": sizes["n_features"]})
