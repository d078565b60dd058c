"""Results as rows: one for each number that was measured."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pandas as pd

COLUMNS = ("experiment", "part", "source", "data", "panel", "method", "seed", "budget", "metric",
           "value", "error")  # fmt: skip
"""`source` is the figure, table or note; `error` what stands after ±, or a standard error."""
NUMBER = re.compile(r"\**([+-]?\d[\d,]*\.?\d*(?:e[+-]?\d+)?)\**(?: ± ([\d.,]+(?:e[+-]?\d+)?))?")
REST = re.compile(r" ?(%|s|\(.*\))?")
OWN = {"seed": "seed", "replicate": "seed", "data": "data"}  # columns of notes that name a row
Row = dict[str, Any]


def frame(rows: Sequence[Row]) -> pd.DataFrame:
    """Return a frame with all columns, each of one type."""
    made = pd.DataFrame(rows, columns=list(COLUMNS))
    numbers = {"seed": "Int64", "budget": "float64", "value": "float64", "error": "float64"}
    return made.astype({name: numbers.get(name, "string") for name in COLUMNS})


def rows(name: str, part: str, record: Mapping[str, Any]) -> list[Row]:
    """Return the numbers of a stored part."""
    own = record["settings"].get("data")
    files = sorted({file.partition("/")[0] for file in record["files"]})
    of = {"experiment": name, "part": part, "data": own if own else "+".join(files) or "drawn"}
    found = record["found"]
    made: list[Row] = []
    for number, given in found.get("figures", {}).items():
        if given["kind"] == "lines":
            made += [row | {"source": f"figure {number}"} for row in _lines(given)]
    for number, given in found.get("tables", {}).items():
        made += [row | {"source": f"table {number}"} for row in _table(given)]
    for key, given in found.get("notes", {}).items():
        made += [row | {"source": f"note {key}"} for row in _note(given)]
    for key, value in found.get("facts", {}).items():
        if number := parsed(str(value)):
            made.append({"source": "fact", "metric": key} | number)
    return [of | row for row in made]


def parsed(text: str) -> Row | None:
    """Return the number of a cell, and its error; None if it is something else."""
    found = NUMBER.match(text)
    if not found or not REST.fullmatch(text[found.end() :]):
        return None
    value, error = (each and float(each.replace(",", "")) for each in found.groups())
    return {"value": value, "error": error}


def _lines(figure: Mapping[str, Any]) -> Iterator[Row]:
    for panel in figure["panels"]:
        for line in panel["lines"]:
            of = {"panel": " ".join(panel["title"].split()), "method": line["label"],
                  "metric": panel.get("y") or figure.get("y")}  # fmt: skip
            if "runs" in line:
                for seed, run in enumerate(line["runs"]):
                    for x, value in zip(line["x"], run, strict=True):
                        yield of | {"seed": seed, "budget": x, "value": value}
                continue
            for x, value, error in zip(line["x"], line["y"], line["error"], strict=True):
                yield of | {"budget": x, "value": value, "error": error}


def _table(table: Mapping[str, Any]) -> Iterator[Row]:
    for name, row in table["rows"].items():
        for method, given in row.items():
            if not isinstance(given, dict):
                yield {"panel": name, "metric": method, "value": float(given)}
                continue
            for metric, deviation in (("utility", "utility_deviation"), ("metric", "deviation")):
                told = table["metric"] if metric == "metric" else metric
                yield {"panel": name, "method": method, "metric": told,
                       "value": float(given[metric]), "error": given.get(deviation)}  # fmt: skip


def _note(note: Mapping[str, Any]) -> Iterator[Row]:
    head = note["head"]
    for cells in note["rows"]:
        of: Row = {"method": cells[0].strip("`")}
        for column, cell in zip(head, cells, strict=True):
            if column in OWN:
                of[OWN[column]] = int(cell) if OWN[column] == "seed" else cell
        for column, cell in list(zip(head, cells, strict=True))[1:]:
            number = parsed(cell)
            if number and column not in OWN:
                yield of | {"metric": column} | number
