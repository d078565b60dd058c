"""Parts of schemas that several estimators share: grids, exact sums, classes, maps of columns."""

from __future__ import annotations

from typing import Any

import numpy as np

from erasable.core._grid_kernels import MAX_TOP, MIN_TOP
from erasable.core._schema import Fields, Size, Sizes, join, refuse
from erasable.core._schema_arrays import Array, Labels
from erasable.core.grid import MAX_ROWS

MOST_QUANTA = 2.0**26
"""Of a value on a grid."""

MOST_FEATURES = 2**24
"""Of a model in whose file nothing but a number says how many features there are."""

HALVES = {"hh": 2**26, "hl": 2**25, "ll": 2**24}
"""Largest products of the halves of a gridded value, see `erasable.core.moments`."""


_IN_SQUARES = {"hh": 2.0**26, "hl": 2.0**14, "ll": 1.0}


def tops(size: Size) -> Array:
    """Return the part for exponents of a grid."""
    return Array("int64", (size,), least=MIN_TOP, most=MAX_TOP)


def grid(size: Size, *, sparse: bool = False) -> Fields:
    """Return the part for a grid; one of sparse columns has no origin."""
    origin = Array("float64", (size,), least=-(2.0 ** (MAX_TOP + 1)), most=2.0 ** (MAX_TOP + 1))
    return Fields({"top": tops(size)} if sparse else {"top": tops(size), "origin": origin})


def moments(n_rows: int, *shape: Size) -> Fields:
    """Return the part for what `Moments.state` gives, summed over at most so many rows."""
    most = n_rows * MOST_QUANTA
    sums = {"sum": Array("float64", shape, least=-most, most=most, whole=True)}
    for name, largest in HALVES.items():
        limit = n_rows * largest
        sums[name] = Array("int64", shape, least=-limit if name == "hl" else 0, most=limit)
    return Fields(sums)


def refuse_negative_variance(sums: dict[str, Any], n_rows: Any, at: str) -> None:
    """Refuse sums of `moments` of which the variance of a column would be negative.

    `n_rows` is a number, or one for each line of the sums.
    """
    n = np.broadcast_to(n_rows, sums["sum"].shape)
    parts = [n * (sums[name] * factor) for name, factor in _IN_SQUARES.items()]
    error = 2.0**-48 * sum(np.abs(part) for part in parts)
    # Exactly only where floats do not tell.
    close = sums["sum"] * sums["sum"] > sum(parts) - error
    for at_cell in zip(*np.nonzero(close), strict=True):
        squares = sum(int(sums[name][at_cell]) * int(f) for name, f in _IN_SQUARES.items())
        if int(sums["sum"][at_cell]) ** 2 > int(n[at_cell]) * squares:
            refuse(at, "squares that are too small for their sum", "those of numbers")


def column_map(size: Size = "n_features") -> Fields:
    """Return the part for the map (shift, scale) of the steps before a model in a pipeline."""
    least = float(np.finfo(np.float64).smallest_subnormal)
    return Fields(
        {"shift": Array("float64", (size,)), "scale": Array("float64", (size,), least=least)}
    )


def classes(n_records: int, *, fixed: bool = False, every: bool = True) -> Fields:
    """Return the part for labels and counts.

    Parameters
    ----------
    n_records : int
    fixed : bool
        Whether labels are fixed, so that a class may have no records.
    every : bool
        Whether counts add up to the number of records; otherwise they may be less.
    """

    def add_up(value: dict[str, Any], at: str, sizes: Sizes) -> None:
        total = int(value["counts"].sum())
        if total > n_records or (every and total < n_records):
            refuse(join(at, "counts"), f"counts that add up to {total}", f"{n_records} (n_records)")

    counts = Array("int64", ("n_classes",), least=0 if fixed else 1, most=n_records)
    return Fields({"labels": Labels("n_classes"), "counts": counts}, relations=(add_up,))


def refuse_unbounded(model: Any) -> None:
    """Refuse features without end, where neither names nor arrays say how many there are."""
    d = model.n_features_in_
    if d > MOST_FEATURES and not hasattr(model, "feature_names_in_"):
        refuse("n_features", d, f"at most {MOST_FEATURES}, as they have no names")


def gram(n_rows: int, n_columns: int, n_origins: int) -> Fields:
    """Return the part for what `Gram.state` gives of so many columns, or of no more rows."""
    n_pairs = n_columns * (n_columns + 1) // 2
    n_totals = n_columns + 3 * n_pairs
    most = n_rows * MOST_QUANTA

    def check(value: dict[str, Any], at: str, sizes: Sizes) -> None:
        refuse_wrong_totals(value["totals"], n_rows, n_columns, join(at, "totals"))

    origin = Array("float64", (n_origins,), -(2.0 ** (MAX_TOP + 1)), 2.0 ** (MAX_TOP + 1))
    totals = Array("float64", (n_totals,), least=-most, most=most, whole=True)
    parts = {"top": tops(n_columns), "origin": origin, "totals": totals}
    return Fields(parts, relations=(check,))


def refuse_wrong_totals(totals: Any, n_rows: int, n_columns: int, at: str) -> None:
    """Refuse sums of `Gram` of which the variance of a column would be negative."""
    hh, hl, ll = totals[n_columns:].reshape(3, -1)
    place = np.arange(n_columns)
    place = place * n_columns - place * (place - 1) // 2  # of a column with itself
    own = {"sum": totals[:n_columns], "hh": hh[place], "hl": hl[place] / 2.0, "ll": ll[place]}
    for name, largest in HALVES.items():
        least = -n_rows * largest if name == "hl" else 0
        if not ((own[name] >= least) & (own[name] <= n_rows * largest)).all():
            refuse(at, "sums of squares that are none", "those of numbers")
    refuse_negative_variance(own, n_rows, at)


def refuse_many(n_records: int) -> None:
    """Refuse more records than exact sums of gridded values have room for."""
    if n_records > MAX_ROWS:
        refuse("n_records", n_records, f"at most {MAX_ROWS}")
