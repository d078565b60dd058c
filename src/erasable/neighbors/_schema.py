"""Schemas of the records in the file of a lazy model."""

from __future__ import annotations

from typing import Any

import numpy as np

from erasable.core._schema import Fields, ListOf, OneOf, Part, Sizes, join, refuse
from erasable.core._schema_arrays import Array, Labels
from erasable.core._schema_models import column_map
from erasable.core.ids import as_id_array

from ._targets import LARGEST


class _Ids(Part):
    """Ids of records: integers, or integers and strings, each once."""

    def check(self, value: Any, at: str, sizes: Sizes) -> None:
        """See `Part.check`."""
        kind = value.dtype.name if isinstance(value, np.ndarray) else ""
        if kind in ("int64", "uint64"):
            Array(kind, ("n_records",)).check(value, at, sizes)
            ordered = np.sort(value)
            repeats = int(np.count_nonzero(ordered[1:] == ordered[:-1]))
        elif kind == "object" and value.shape == (sizes["n_records"],):
            try:
                repeats = value.size - len(set(as_id_array(value.tolist()).tolist()))
            except (TypeError, ValueError):
                refuse(at, "other things", "integers and strings")
        else:
            refuse(at, value, f"an array of {sizes['n_records']} integers or strings")
        if repeats:
            refuse(at, f"{repeats} ids twice", "each once")


def lazy_schema(*, labels: bool) -> Fields:
    """Return the schema of models that keep records with labels, or with numbers."""
    parts: dict[str, Part] = {
        "X": Array("float64", ("n_records", "n_features"), least=-LARGEST, most=LARGEST),
        "ids": _Ids(),
    }
    if labels:
        codes = [Array("int32", shape, least=0) for shape in _shapes()]
        parts |= {"classes": ListOf(Labels(None)), "codes": OneOf(tuple(codes))}
        records = Fields(parts, relations=(_know_every_code,))
    else:
        values = [Array("float64", shape, least=-LARGEST, most=LARGEST) for shape in _shapes()]
        records = Fields({**parts, "y": OneOf(tuple(values))}, relations=(_have_outputs,))
    return Fields({"records": records}, {"map": column_map()})


def _shapes() -> tuple[tuple[str, ...], ...]:
    return ("n_records", "n_outputs"), ("n_records",)


def _have_outputs(value: dict[str, Any], at: str, sizes: Sizes) -> None:
    if sizes.get("n_outputs", 1) == 0:
        refuse(join(at, "y"), value["y"], "an output or more")


def _know_every_code(value: dict[str, Any], at: str, sizes: Sizes) -> None:
    """Refuse codes without a label, and labels without a record."""
    codes, labels = value["codes"], value["classes"]
    columns = codes.reshape(codes.shape[0], -1).T
    if len(columns) == 0 or len(labels) != len(columns):
        refuse(join(at, "classes"), labels, f"labels of {len(columns)} outputs")
    for place, (known, column) in enumerate(zip(labels, columns, strict=True)):
        if int(column.max()) >= known.size or not np.bincount(column, minlength=known.size).all():
            told = f"codes up to {column.max()}, not all of them"
            refuse(f"{join(at, 'codes')}.{place}", told, f"each from 0 to {known.size - 1}")
