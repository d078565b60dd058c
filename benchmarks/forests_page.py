"""Writes what forests take, and how good they are, for docs/estimators.md."""

from __future__ import annotations

from typing import Any

from forests import CLASSIFIER
from results import NONE, table

RESIDENT = 2.0 * 2**30 / 1e6  # megabytes: of 100 trees on 100,000 x 20

TAKEN = """
## Forests: memory, files, and deletions chosen to hurt

100 trees, one thread, each forest in a separate process. *memory*: the growth of the process during
the fit, with the forest's copy of the records, in all and for each record. *resident*: all memory
of the process after 100 deletions, including scikit-learn, compiled kernels and the input records;
*peak*: the maximum until the end of the fit. *load*: loading with the records, ready for the next
deletion; *first*: the first deletion after it.
"""

HURT = """
Deletions chosen for the worst case, one call each; *worst* of them, and the mean. *roots*: for each
tree a record on whose value the threshold of its root depends, if few records have this value:
after its deletion the tree may have to grow again from the root. *largest targets*: the records
that determine the grid of the targets. *a class*: all records of the first class, in one call.
"""

SCORES = """
### Trees, on five other splits

The defaults of trees and forests were chosen on the five splits above; these splits are others.
*error*: the standard error of the mean difference, of five pairs.
"""


def section(cells: dict[str, dict[str, Any]]) -> str:
    """Write the section on what forests take."""
    parts = [TAKEN, _taken(cells), HURT, _hurt(cells)]
    great = [cell for cell in cells.values() if cell["n"] == 100_000]
    for cell in great:
        met = cell["resident"] <= RESIDENT
        verb = "is" if met else "is **not**"
        parts.append(
            f"\nA {CLASSIFIER} of {cell['n']:,} x {cell['d']} records {verb} below 2 GiB of "
            f"resident memory: {cell['resident'] * 1e6 / 2**30:.2f} GiB."
        )
    return "\n".join(parts)


def scores(cells: dict[str, dict[str, Any]], titles: dict[str, str]) -> str:
    """Write the section on scores."""
    rows = [
        [
            f"{titles[name]}, {cell['n']:,} records",
            f"{cell['ours']:.4f}",
            f"{cell['theirs']:.4f}",
            f"{cell['ours'] - cell['theirs']:+.4f}",
            f"{cell['error']:.4f}",
            f"{cell['p']:.2f}",
        ]
        for name, cell in cells.items()
    ]
    head = ["estimator", "ours", "scikit-learn's", "difference", "error", "p, paired"]
    return SCORES + "\n" + table(head, rows, left=(0,))


def _taken(cells: dict[str, dict[str, Any]]) -> str:
    rows = [
        [
            cell["title"],
            f"{cell['n']:,} x {cell['d']}",
            f"{cell['fit']:.3g} s",
            f"{cell['fit'] / cell['peer']:.2f}",
            _micro(cell["bare"]),
            f"{cell['peer'] / cell['bare']:,.0f} x",
            f"{cell['megabytes']:,.0f} MB",
            f"{cell['megabytes'] * 1e3 / cell['n']:.1f} KB",
            f"{cell['resident']:,.0f} MB",
            f"{cell['peak']:,.0f} MB",
            f"{cell['file']:,.1f} MB",
            f"{cell['save']:.2g} s",
            f"{cell['load']:.2g} s",
            _micro(cell["first"]),
            "equal" if cell["law"] else "**BROKEN**",
        ]
        for cell in cells.values()
    ]
    head = ["estimator", "n x d", "fit", "of scikit-learn's", "a deletion", "x", "memory",
            "a record", "resident", "peak", "file", "save", "load", "first",
            "digest against a refit"]  # fmt: skip
    return table(head, rows, left=(0,))


def _hurt(cells: dict[str, dict[str, Any]]) -> str:
    rows = []
    for cell in cells.values():
        of_class = cell.get("class")
        told = f"{_micro(of_class['seconds'])} ({of_class['records']:,})" if of_class else NONE
        rows.append(
            [
                cell["title"],
                f"{cell['n']:,} x {cell['d']}",
                _micro(cell["bare"]),
                _spread(cell["roots"]),
                _spread(cell.get("largest")),
                told,
                f"{cell['fit']:.3g} s",
            ]
        )
    head = ["estimator", "n x d", "at random", "roots: worst, mean",
            "largest targets: worst, mean", "a class (records)", "a fit"]  # fmt: skip
    return table(head, rows, left=(0,))


def _spread(found: dict[str, float] | None) -> str:
    return f"{_micro(found['worst'])}, {_micro(found['mean'])}" if found else NONE


def _micro(seconds: float) -> str:
    if seconds < 1e-3:
        return f"{seconds * 1e6:.0f} us"
    return f"{seconds * 1e3:.3g} ms" if seconds < 1 else f"{seconds:.3g} s"
