"""Writes what was measured of shards, and, into their own page, how many of them to take."""

from __future__ import annotations

import re
from typing import Any

from data import ROOT
from results import NONE, significant, table

PAGE = ROOT / "docs" / "shards.md"
BEGIN = "<!-- From here on written by benchmarks/estimators.py from benchmarks/results. -->"
END = "<!-- Up to here. -->"
LOSSES = (0.005, 0.02)  # of the score, that somebody may put up with
MANY = 32  # shards
EXAMPLES = (30_000, 100_000, 1_000_000)  # records

SHARDS = """
## Shards: what they cost in accuracy, and what they save

`ShardedClassifier` and `ShardedRegressor` over estimators of scikit-learn, on five splits of real
data (of whole people if records have owners) and of synthetic data. *against the whole*: the score
minus that of one estimator fitted to all records, and the paired t-test's p. *fit*: divided by the
time of that one. *a deletion*: how many times faster than fitting it again. The cost of small
shards depends on the estimator: boosting builds trees with the same number of leaves for few
records as for many.
"""

CHOICE = """
The table shows the largest of 1, 2, 4, ..., 32 shards whose mean score is below that of one
estimator on all records by at most the given amount; how many times faster a deletion is than
fitting that estimator again; and the time of fitting all shards divided by that of this estimator:
"""

MODEL = """
**What a shard costs.** Fitting scikit-learn's estimator takes about *a + b n* seconds for *n*
records; *a* is a fixed cost. With *N* records in *s* shards, a deletion is *(a + bN) / (a + bN/s)*
times faster than a fit to all. This is never more than *(a + bN) / a*, for any number of shards.
Fitting all shards takes *(sa + bN) / (a + bN)* times as long. The table has processor times, for
{least:,} to {most:,} records of {d} features; *off*: the largest deviation of the line from the
measurements. Values outside this range, such as a shard of fewer records, are extrapolated. The
examples have {shards} shards.
"""


def comparisons(cells: list[dict[str, Any]]) -> str:
    """Write the part of docs/estimators.md."""
    rows = [
        [
            case["title"] if line["shards"] == 1 else "",
            str(line["shards"]),
            f"{line['score']:.4f}",
            f"{line['score'] - line['whole']:+.4f}",
            f"{line['p']:.3f}",
            f"{line['fit']:.2f}",
            _times(line["speedup"]),
        ]
        for case in cells
        for line in case["lines"]
    ]
    head = ["data, estimator", "shards", "score", "against the whole", "p", "fit", "a deletion"]
    return SHARDS + "\n" + table(head, rows, left=(0,))


def write(cases: list[dict[str, Any]], costs: list[dict[str, Any]]) -> None:
    """Write how many shards to take into docs/shards.md."""
    parts = [BEGIN]
    if cases:
        parts += [CHOICE, _choices(cases)]
    if costs:
        parts += [_model(costs[0]), _costs(costs)]
    page = PAGE.read_text(encoding="utf-8")
    text = "\n".join([*parts, "", END])
    pattern = re.escape(BEGIN) + ".*?" + re.escape(END)
    PAGE.write_text(re.sub(pattern, lambda _: text, page, flags=re.DOTALL), encoding="utf-8")


def most_shards(lines: list[dict[str, float]], loss: float) -> dict[str, float] | None:
    """Return the line of the most shards that lose no more than `loss`; None if one loses it."""
    good = [line for line in lines if line["whole"] - line["score"] <= loss]
    return max(good, key=lambda line: line["shards"]) if good else None


def _choices(cases: list[dict[str, Any]]) -> str:
    rows = []
    for case in cases:
        row = [case["title"], f"{case['lines'][0]['whole']:.4f}"]
        for loss in LOSSES:
            line = most_shards(case["lines"], loss)
            row += [NONE] * 3 if line is None else [
                str(line["shards"]), _times(line["speedup"]), f"{line['fit']:.2f}"
            ]  # fmt: skip
        rows.append(row)
    head = ["data, estimator", "score of the whole"]
    for loss in LOSSES:
        head += [f"at most {loss:g} less", "a deletion", "fit"]
    return table(head, rows, left=(0,))


def _model(cell: dict[str, Any]) -> str:
    return MODEL.format(d=cell["d"], least=cell["n"][0], most=cell["n"][-1], shards=MANY)


def _costs(costs: list[dict[str, Any]]) -> str:
    rows = []
    for cell in costs:
        fixed, record = cell["fixed"], cell["record"]
        row = [cell["title"], f"{significant(1e3 * fixed)} ms", f"{significant(1e6 * record)} us",
               f"{cell['error']:.0%}"]  # fmt: skip
        for n in EXAMPLES:
            whole, one = fixed + record * n, fixed + record * n / MANY
            row += [_times(whole / one), f"{(MANY * fixed + record * n) / whole:.2f}"]
        rows.append(row)
    head = ["estimator", "a", "b", "off"]
    for n in EXAMPLES:
        head += [f"{n:,} records: a deletion", "fit"]
    return table(head, rows, left=(0,))


def _times(value: float) -> str:
    return f"{value:,.0f} x" if value >= 100 else f"{value:.3g} x"
