"""Schemas of the sums and coefficients in the file of a linear model."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from erasable.core._grid_kernels import MAX_TOP
from erasable.core._schema import (
    MOST_QUANTA,
    Array,
    DictOf,
    Fields,
    FieldType,
    Integer,
    Maybe,
    Sizes,
    Within,
    classes,
    gram,
    grid,
    refuse,
    refuse_many,
    refuse_wrong_totals,
)
from erasable.core.gram import MAX_FEATURES

_FARTHEST = 2.0 ** (MAX_TOP + 1)
_LARGEST = 2.0**200
"""Of a coefficient in units of its column: penalties keep all of them far below."""


class LinearSchema(FieldType):
    """Exact sums of features and targets, whose number depends on other fields."""

    def __init__(
        self, n_records: int, n_columns: int, dense: bool, suit_targets: Callable[[int], None]
    ) -> None:
        refuse_many(n_records)
        # `dense`: columns have origins in the state, which those of sparse records lack
        self.n_records, self.n_columns, self.dense = n_records, n_columns, dense
        self.suit_targets = suit_targets  # raises where parameters do not suit a number of targets

    def check(self, value: Any, at: str, sizes: Sizes) -> None:
        """See `FieldType.check`."""
        if self.n_columns > MAX_FEATURES:
            refuse("n_features", self.n_columns, f"at most {MAX_FEATURES}")
        Maybe(Integer(1, MAX_FEATURES)).check(value.get("n_targets"), "n_targets", sizes)
        n_targets, weighted = value.get("n_targets") or 1, value.get("weighted")
        self.suit_targets(n_targets)
        n_rows, others = self.n_records, {}
        if weighted is not None:
            origin = Array("float64", (self.n_columns + n_targets,), -_FARTHEST, _FARTHEST)
            weights = Fields({"origin": origin, "n_rows": Integer(1, n_rows)})
            weights.check(weighted, "weighted", sizes)
            n_rows, others = weighted["n_rows"], {"weighted": weights}
        p = self.n_columns + n_targets + (weighted is not None)
        found = np.size(value.get("origin"))
        n_origins = p if self.dense or found == p else p - self.n_columns
        of_targets = Fields({"n_targets": Maybe(Integer(1))}, others)
        gram(n_rows, p, n_origins).joined(of_targets).check(value, at, sizes)


def logistic_schema(n_features: int, settings: Mapping[str, Any]) -> Fields:
    """Return the schema of a logistic regression with some parameters."""
    fixed = settings["classes"] is not None
    used = Array("int64", ("n_classes",), least=0, most=1, per_record=True)
    of_classes = classes(fixed=fixed).joined(Fields({"taught": used}))

    def check(value: dict[str, Any], at: str, sizes: Sizes) -> None:
        found, n_classes = value["classes"], sizes["n_classes"]
        n_used = int(np.count_nonzero(found["taught"]))
        if n_used < 2 or (found["taught"] > found["counts"]).any():
            refuse("classes.taught", f"records of {n_used} classes", "two or more, of counts")
        wanted = 1 if n_classes == 2 else n_used
        if sizes["n_equations"] != wanted:
            refuse("coefficients", f"{sizes['n_equations']} lines", f"{wanted}, by classes")

    width = n_features + int(settings["fit_intercept"])
    values = Array("float64", ("n_equations", width), least=-_LARGEST, most=_LARGEST)
    parts = {"classes": of_classes, "columns": grid("n_features"), "coefficients": values}
    return Fields(parts, relations=(check,))


def lattice_schema(n_features: int, settings: Mapping[str, Any]) -> Fields:
    """Return the schema of a regression that is published on a lattice."""
    width = n_features + int(settings["fit_intercept"])
    values = Array("float64", (1, width), least=-(2.0**900), most=2.0**900)
    return Fields({"columns": grid("n_features"), "coefficients": values})


def segmented_schema(n_records: int, n_features: int, n_segments: int) -> Fields:
    """Return the schema of a segmented regression, whose k-means checks itself."""
    refuse_many(n_records)
    most = n_records * MOST_QUANTA

    def check(value: dict[str, Any], at: str, sizes: Sizes) -> None:
        n_targets = value["n_targets"] or 1
        p = n_features + n_targets
        if sizes["n_targets"] != n_targets or p > 2 * MAX_FEATURES:
            refuse("target_grid.top", value["target_grid"]["top"], f"{n_targets} targets")
        counts, totals = value["segments"]["counts"], value["segments"]["totals"]
        if int(counts.sum()) != n_records:
            refuse("segments.counts", f"counts that add up to {counts.sum()}", f"{n_records}")
        if sizes["n_totals"] != p + 3 * (p * (p + 1) // 2):
            refuse("segments.totals.0", totals["0"], f"sums of {p} columns")
        for s, count in enumerate(counts.tolist()):
            refuse_wrong_totals(totals[str(s)], count, p, f"segments.totals.{s}")

    totals = Array("float64", ("n_totals",), least=-most, most=most, whole=True)
    names = [str(s) for s in range(min(n_segments, n_records))]
    segments = {
        "counts": Array("int64", (n_segments,), least=0, most=n_records),
        "totals": DictOf(totals, names),
    }
    parts = {
        "kmeans": Within({"algorithm_version"}),
        "n_targets": Maybe(Integer(1, MAX_FEATURES)),
        "segments": Fields(segments),
        "target_grid": grid("n_targets"),
    }
    return Fields(parts, relations=(check,))
