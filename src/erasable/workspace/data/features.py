"""Features of a table: the columns that are features, and their types, gaps and scale.

Models, selections and removals of domains share these, so that they agree.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import reduce
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from erasable.core.errors import InvalidDataError, WorkspaceError
from erasable.core.frames import is_index
from erasable.core.ids import name_some
from erasable.workspace.data.arrays import width

NUMBERS = ("int64", "uint64", "double", "bool")
"""The Arrow types of numbers."""
TEXT = "string"
"""The Arrow type of text."""

_HOUR = {"s": 3600, "ms": 3600 * 10**3, "us": 3600 * 10**6, "ns": 3600 * 10**9}

FILLS = ("mean", "median", "most_frequent")
"""Strategies to fill in gaps: those of `erasable.preprocessing.SimpleImputer`."""


def default_columns(
    types: Mapping[str, str], taken: Collection[str | None], kinds: Sequence[str] = NUMBERS
) -> list[str]:
    """Return the columns that are features by default, without those of an index."""
    return [
        name
        for name, kind in types.items()
        if name not in taken and kind in kinds and not is_index(name)
    ]


def is_time(kind: str) -> bool:
    """Tell whether an Arrow type is of days, moments or times of day."""
    return kind.startswith(("date", "time"))


def times_as_numbers(table: pa.Table) -> pa.Table:
    """Return a table with numbers for times: days since 1970, or hours of a day; NaN for a gap.

    >>> from datetime import date, time
    >>> table = pa.table({"seen": [date(1970, 1, 3)], "at": [time(10, 30)], "age": [41]})
    >>> times_as_numbers(table).to_pydict()
    {'seen': [2.0], 'at': [10.5], 'age': [41]}
    """
    for place, (name, column) in enumerate(zip(table.column_names, table.columns, strict=True)):
        kind = column.type
        if not is_time(str(kind)):
            continue
        if pa.types.is_date(kind):
            ticks, unit = column.cast(pa.date32()).cast(pa.int32()), 1
        else:
            wide = pa.int32() if kind.bit_width == 32 else pa.int64()
            ticks, unit = column.cast(wide), _HOUR[kind.unit]
            unit *= 24 if pa.types.is_timestamp(kind) else 1
        numbers = pc.divide(ticks.cast(pa.float64(), safe=False), pa.scalar(float(unit)))
        made = pc.fill_null(numbers, float("nan"))
        table = table.set_column(place, name, made)
    return table


def check_columns(
    types: Mapping[str, str],
    names: Sequence[str],
    kinds: Collection[str] | None = (*NUMBERS, TEXT),
    *,
    arrays: bool = False,
) -> None:
    """Refuse columns that are not there, are named twice, or hold neither numbers nor text.

    `types` maps columns to Arrow types; None as `kinds` accepts all.
    """
    unknown = [name for name in names if name not in types]
    if unknown:
        there = f"{', '.join(map(repr, list(types)[:20]))}{', ...' if len(types) > 20 else ''}"
        raise WorkspaceError(f"there is no column {name_some(unknown)}; expected some of {there}")
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise WorkspaceError(
            f"the column {name_some(twice)} is named twice; expected each once, for one purpose"
        )
    strange = [
        name
        for name in names
        if kinds is not None and types[name] not in kinds and not (arrays and width(types[name]))
    ]
    if strange:
        raise WorkspaceError(
            f"the columns {name_some(strange)} hold {types[strange[0]]}; expected numbers or text; "
            "convert them in the source, or choose others"
        )


def check_fill(fill: str | None) -> None:
    """Refuse a strategy that is not one of `FILLS`."""
    if fill is not None and fill not in FILLS:
        raise WorkspaceError(f"fill is {str(fill)[:40]!r}; expected one of {', '.join(FILLS)}")


def count_gaps(table: pa.Table, names: Sequence[str]) -> dict[str, int]:
    """Count the gaps of each column that has any: nulls and NaN."""
    counts = {
        name: pc.sum(pc.is_null(table[name], nan_is_null=True)).as_py() or 0 for name in names
    }
    return {name: n for name, n in counts.items() if n}


def refuse_gaps(table: pa.Table, names: Sequence[str], advice: str | None = None) -> None:
    """Refuse gaps in columns that must have none."""
    gaps = count_gaps(table, names)
    if not gaps:
        return
    anywhere = reduce(pc.or_, (pc.is_null(table[name], nan_is_null=True) for name in gaps))
    if advice is None:
        how = "most_frequent" if any(str(table[name].type) == TEXT for name in gaps) else "median"
        advice = (
            f"fill them in with --fill {how}, as preprocessing.SimpleImputer does before a model, "
            "leave the records out, or choose other columns with --features"
        )
    raise InvalidDataError(
        f"{pc.sum(anywhere).as_py()} of {table.num_rows} records have gaps, in "
        f"{name_some(list(gaps))}; expected a value everywhere; {advice}"
    )


def matrix(table: pa.Table, names: Sequence[str], *, scaled: bool = True) -> Any:
    """Return columns of numbers without gaps as a float64 matrix of shape (n_records, n_columns).

    If `scaled`, each column has mean 0 and standard deviation 1.
    """
    found = np.column_stack([table[name].to_numpy().astype(np.float64) for name in names])
    with np.errstate(over="ignore", invalid="ignore"):
        deviation = found.std(axis=0)
    strange = [n for n, d in zip(names, deviation, strict=True) if not np.isfinite(d)]
    if strange:
        raise InvalidDataError(
            f"the columns {name_some(strange)} hold infinity, or numbers too large to compute "
            "with; expected finite numbers; choose others with --features"
        )
    if not scaled:
        return found
    return (found - found.mean(axis=0)) / np.where(deviation > 0, deviation, 1.0)


def positive_column(table: pa.Table, name: str) -> Any:
    """Return a column of numbers, all above 0, such as costs; refuse other values."""
    values = table[name].to_numpy().astype(np.float64)
    bad = int((~((values > 0) & (values < np.inf))).sum())
    if bad:
        raise WorkspaceError(
            f"the column {name!r} holds {bad} values that are not a number above 0; expected a "
            "number above 0 in each row"
        )
    return values


def fill_gaps(
    table: pa.Table, names: Sequence[str], fill: str | None
) -> tuple[pa.Table, list[str]]:
    """Fill in the gaps of columns, each by its own values.

    Only "most_frequent" fills text; None as `fill` leaves gaps as they are. Return the table, in
    which numbers with gaps become float64, and a line for each column filled.
    """
    messages = []
    for name, n in count_gaps(table, names).items() if fill is not None else ():
        column = table[name]
        text = pa.types.is_string(column.type)
        if text and fill != "most_frequent":
            continue
        if n == len(column):
            raise InvalidDataError(
                f"the column {name_some([name])} has nothing but gaps; expected a value to fill "
                "them in with; name other columns with --features"
            )
        values = column.to_numpy() if text else column.cast(pa.float64()).to_numpy()
        made = pa.array(_imputed(values, str(fill)), pa.string() if text else pa.float64())
        table = table.set_column(table.column_names.index(name), name, made)
        messages.append(
            f"{n:,} of {len(column):,} records have a gap in {name!r}, filled in with its "
            f"{str(fill).replace('_', ' ')}{' value' if fill == 'most_frequent' else ''}"
        )
    return table, messages


def _imputed(values: Any, fill: str) -> Any:
    from erasable.preprocessing import SimpleImputer

    column = values.reshape(-1, 1)
    missing = None if column.dtype == object else np.nan
    return SimpleImputer(missing_values=missing, strategy=fill).fit_transform(column)[:, 0]
