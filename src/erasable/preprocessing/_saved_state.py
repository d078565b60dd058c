"""Schemas of the categories of encoders, and of the statistics of imputers, in a file."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from erasable.core._schema import (
    Array,
    Fields,
    FieldType,
    Objects,
    Sizes,
    grid,
    join,
    moments,
    refuse,
    refuse_many,
)
from erasable.preprocessing._categories import has_gap


class _Cells(FieldType):
    """Floats, gaps among them, or text, numbers and gaps."""

    def __init__(self, size: str) -> None:
        self._numbers = Array("float64", (size,), gaps=True)
        self._objects = Objects((size,))

    def check(self, value: Any, at: str, sizes: Sizes) -> None:
        """See `FieldType.check`."""
        objects = isinstance(value, np.ndarray) and value.dtype == object
        (self._objects if objects else self._numbers).check(value, at, sizes)


def categories_schema(*, fixed: bool) -> Fields:
    """Return the schema of the categories of all columns, end to end.

    Records may lack categories that the user has `fixed`.
    """

    def check(value: dict[str, Any], at: str, sizes: Sizes) -> None:
        ends, n_records = np.cumsum(value["sizes"]), sizes["n_records"]
        if int(ends[-1]) != sizes["n_categories"]:
            refuse("sizes", f"{ends[-1]} categories", f"{sizes['n_categories']}")
        text = value["is_text"]
        parts = np.split(value["categories"], ends[:-1])
        counts = np.add.reduceat(value["counts"], ends - value["sizes"])
        for j, (part, is_text) in enumerate(zip(parts, text.tolist(), strict=True)):
            _check_column(part, is_text, fixed, join("categories", str(j)))
        if (counts > n_records).any() or not (fixed or (counts == n_records).all()):
            refuse("counts", "counts of other records", f"{n_records} (n_records) in every column")

    counts = Array("int64", ("n_categories",), 0 if fixed else 1, most=1, per_record=True)
    parts = {
        "categories": _Cells("n_categories"),
        "counts": counts,
        "is_text": Array("bool", ("n_features",)),
        "sizes": Array("int64", ("n_features",), least=1, most=2**31 - 1),
    }
    return Fields(parts, relations=(check,))


def _check_column(part: NDArray[Any], is_text: bool, fixed: bool, at: str) -> None:
    """Refuse labels of the wrong type, in the wrong order, or that repeat."""
    inner = part[:-1] if has_gap(part) else part
    cells = inner.tolist()
    if is_text and set(map(type, cells)) - {str}:
        refuse(at, "other things", "text")
    if not is_text and (set(map(type, cells)) - {float} or not np.isfinite(cells).all()):
        refuse(at, "other things", "finite numbers")
    distinct = len(set(cells)) == len(cells)
    if not distinct or (cells != sorted(cells) and not (is_text and fixed)):
        refuse(at, "categories that do not ascend", "each larger than the one before")


def imputer_schema(n_records: int, strategy: str, marker: Any) -> Fields:
    """Return the schema of an imputer of this strategy, which fills what equals a marker."""

    def suit_the_marker(value: dict[str, Any], at: str, sizes: Sizes) -> None:
        numbers = strategy == "mean" or value["statistics"].dtype != object
        if numbers and isinstance(marker, str):
            refuse("params.missing_values", marker, "a number, as the statistics are")

    counts = Array("int64", ("n_features",), least=0, most=1, per_record=True)
    parts: dict[str, FieldType] = {"n_values": counts}
    if strategy == "mean":
        refuse_many(n_records)
        parts |= {**grid("n_features").parts, "sum": moments("n_features").parts["sum"]}
    else:
        parts["statistics"] = _Cells("n_features")
    return Fields(parts, relations=(suit_the_marker,))
