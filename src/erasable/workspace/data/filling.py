"""Fill gaps of a table in, as an imputer does before a model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from erasable.core.errors import InvalidDataError, WorkspaceError
from erasable.core.ids import name_some

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["FILLS", "check_fill", "filled", "with_gaps"]

FILLS = ("mean", "median", "most_frequent")
"""What gaps may be filled with: strategies of `erasable.preprocessing.SimpleImputer`."""


def check_fill(fill: str | None) -> None:
    """Refuse what is no strategy.

    Raises
    ------
    WorkspaceError
        It is none of `FILLS`.

    Examples
    --------
    >>> check_fill("median")
    """
    if fill is not None and fill not in FILLS:
        raise WorkspaceError(f"fill is {str(fill)[:40]!r}; expected one of {', '.join(FILLS)}")


def with_gaps(table: pa.Table, names: Sequence[str]) -> dict[str, int]:
    """Count the gaps of each column that has any: nulls and NaN.

    Examples
    --------
    >>> import pyarrow as pa
    >>> with_gaps(pa.table({"age": [41, None], "dose": [0.5, 1.5]}), ["age", "dose"])
    {'age': 1}
    """
    import pyarrow.compute as pc

    counts = {
        name: pc.sum(pc.is_null(table[name], nan_is_null=True)).as_py() or 0 for name in names
    }
    return {name: n for name, n in counts.items() if n}


def filled(table: pa.Table, names: Sequence[str], fill: str | None) -> tuple[pa.Table, list[str]]:
    """Fill the gaps of columns in, each by its own values.

    Parameters
    ----------
    table : pyarrow.Table
    names : sequence of str
        Columns of numbers, or of text, which "most_frequent" alone fills.
    fill : str or None
        One of `FILLS`; None leaves gaps as they are.

    Returns
    -------
    table : pyarrow.Table
        Numbers with gaps are float64.
    told : list of str
        What was filled in, a line for each column.

    Raises
    ------
    InvalidDataError
        A column has nothing but gaps, or infinity.

    Examples
    --------
    >>> import pyarrow as pa
    >>> filled(pa.table({"age": [41, None, 43]}), ["age"], "mean")[0].to_pydict()
    {'age': [41.0, 42.0, 43.0]}
    """
    import pyarrow as pa

    told = []
    for name, n in with_gaps(table, names).items() if fill is not None else ():
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
        told.append(
            f"{n:,} of {len(column):,} records have a gap in {name!r}, filled in with its "
            f"{str(fill).replace('_', ' ')}{' value' if fill == 'most_frequent' else ''}"
        )
    return table, told


def _imputed(values: Any, fill: str) -> Any:
    from erasable.preprocessing import SimpleImputer

    column = values.reshape(-1, 1)
    missing = None if column.dtype == object else np.nan
    return SimpleImputer(missing_values=missing, strategy=fill).fit_transform(column)[:, 0]
