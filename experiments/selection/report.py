"""Results of the experiments: how they are stored as JSON, and written as tables.

A result has `settings` (what was done, in words, by name), `tables` by the paper's number: rows by
name, each with what `TableRow` or `RiskRow` holds; `figures` by the paper's number, as `figures.py`
draws them; `notes`: further small tables, `head` and `rows` of text; and `facts`: further numbers
that the words about the experiment name.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import paper

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "results"
NAMES = (
    *("nn-s", "nn-h", "nn-f", "nn-f-risk", "nb-a"),
    *("mi-f", "vr-c", "evgp-c", "mi-s", "vr-s", "contenders"),
)
NONE = "-"
EMPTY: dict[str, Any] = {"settings": {}, "seconds": {}, "tables": {}, "figures": {}}
EXACT = 12  # digits of what is exact


def table_row(edads: tuple[float, Any], ds: tuple[float, Any]) -> dict[str, Any]:
    """Make a row of tables 7 to 11: expected utility (exact) and Outcome of the metric, of each."""
    return {
        name: {"utility": exact(value), "metric": found.mean, "deviation": found.deviation}
        for name, (value, found) in (("edads", edads), ("ds", ds))
    }


def risk_row(averse: tuple[Any, Any], edads: tuple[Any, Any]) -> dict[str, Any]:
    """Make a row of tables 12 to 14: Outcomes of the utility and of the metric, of each."""
    return {
        name: {
            "utility": exact(value.mean),
            "utility_deviation": value.deviation,
            "metric": found.mean,
            "deviation": found.deviation,
        }
        for name, (value, found) in (("averse", averse), ("edads", edads))
    }


def exact(value: float) -> str:
    """Keep a number with all its digits: `save` shortens the others."""
    return f"{value:.{EXACT}g}"


def save(name: str, result: dict[str, Any], folder: Path = RESULTS) -> Path:
    """Store a result, floats with six digits."""
    path = folder / f"{name}.json"
    path.write_text(json.dumps(_tidy(result), separators=(",", ":")).replace(
        '},', '},\n') + "\n", encoding="utf-8")  # fmt: skip
    return path


def merged(name: str, found: dict[str, Any], folder: Path = RESULTS) -> dict[str, Any]:
    """Add what was found to the stored result of an experiment, in the order of numbers."""
    return added(EMPTY | load(folder, [name]).get(name, {}), found)


def added(result: dict[str, Any], found: dict[str, Any]) -> dict[str, Any]:
    """Return a result with what was found, in the order of numbers."""
    made = dict(result)
    for key, entries in found.items():
        both = result.get(key, {}) | entries
        in_order = key in ("tables", "figures")
        made[key] = (
            dict(sorted(both.items(), key=lambda entry: (len(entry[0]), entry[0])))
            if in_order
            else both
        )
    return made


def without_runs(found: dict[str, Any]) -> dict[str, Any]:
    """Return what was found, of lines the means alone: pages have no more."""
    drawn = {
        number: given | {"panels": [
            panel | {"lines": [
                {key: value for key, value in line.items() if key != "runs"}
                for line in panel["lines"]
            ]}
            for panel in given["panels"]
        ]} if given["kind"] == "lines" else given
        for number, given in found.get("figures", {}).items()
    }  # fmt: skip
    return found | {"figures": drawn}


def load(folder: Path = RESULTS, names: Sequence[str] = NAMES) -> dict[str, dict[str, Any]]:
    """Read whichever results there are."""
    paths = {name: folder / f"{name}.json" for name in names}
    return {
        name: json.loads(path.read_text(encoding="utf-8"))
        for name, path in paths.items()
        if path.exists()
    }


def _tidy(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _tidy(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple | np.ndarray):
        return [_tidy(entry) for entry in value]
    if isinstance(value, float | np.floating):
        return float(f"{value:.6g}") if math.isfinite(value) else None
    return int(value) if isinstance(value, np.integer) else value


def wins(rows: dict[str, Any], first: str, second: str, key: str) -> int:
    """Count the rows in which `first` has more than `second`."""
    return sum(float(row[first][key]) > float(row[second][key]) for row in rows.values())


def table(number: str, given: dict[str, Any]) -> str:
    """Write one of the paper's tables, with its numbers beside ours, and who wins how often."""
    risky = number in paper.RISK_AVERSE
    ours, theirs = ("averse", "edads") if risky else ("edads", "ds")
    names = {"averse": "CVaR", "edads": "EDADS", "ds": "DS"}
    rows, printed = given["rows"], paper.TABLES[number]
    head = ["share alpha of worst cases" if risky else "who stays"]
    for what in ("utility", given["metric"]):
        head += [f"{what}: {names[ours]}", names[theirs]]
        head += [f"paper: {names[ours]}", names[theirs]]
    lines = []
    for name, row in rows.items():
        there = printed[name]
        line = [f"`{name}`" if not risky else name]
        first, second = float(row[ours]["utility"]), float(row[theirs]["utility"])
        line += [_utility(first, first > second), _utility(second, second > first)]
        line += [_utility(there[0]), _utility(there[2 if risky else 1])]
        first, second = row[ours]["metric"], row[theirs]["metric"]
        line += [
            _spread(first, row[ours]["deviation"], first > second),
            _spread(second, row[theirs]["deviation"], second > first),
        ]
        line += [_spread(*there[-4:-2]), _spread(*there[-2:])]
        lines.append(line)
    return markdown(head, lines) + "\n\n" + _verdict(number, given, ours, theirs, names)


def _verdict(
    number: str, given: dict[str, Any], ours: str, theirs: str, names: dict[str, str]
) -> str:
    rows, printed = given["rows"], paper.TABLES[number].values()
    utility, metric = (wins(rows, ours, theirs, key) for key in ("utility", "metric"))
    at = 2 if number in paper.RISK_AVERSE else 1
    paper_utility = sum(row[0] > row[at] for row in printed)
    paper_metric = sum(row[-4] > row[-2] for row in printed)
    what = "CVaR of the utility" if number in paper.RISK_AVERSE else "expected utility"
    won = [(row["won"], row["runs"]) for row in rows.values() if "won" in row]
    paired = ""
    if won:
        counts = ", ".join(f"{a} of {b}" for a, b in won)
        paired = f" Run by run, on the same draws, its {what} is the higher in {counts} runs."
    return (
        f"{names[ours]} has the higher {what} in {utility} of {len(rows)} rows (in the paper "
        f"{paper_utility} of {len(printed)}), and the higher {given['metric']} in {metric} of "
        f"{len(rows)} (in the paper {paper_metric} of {len(printed)}).{paired}"
    )


def _utility(value: float, bold: bool = False) -> str:
    text = f"{value:.6e}" if abs(value) >= 1e9 else f"{value:,.2f}"
    return f"**{text}**" if bold else text


def _spread(mean: float, deviation: float, bold: bool = False) -> str:
    return f"**{mean:.4f}** ± {deviation:.4f}" if bold else f"{mean:.4f} ± {deviation:.4f}"


def markdown(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Write a Markdown table; the first column is of words."""
    rule = "|---" + "|---:" * (len(header) - 1) + "|"
    lines = ["| " + " | ".join(header) + " |", rule]
    lines += ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join(lines)
