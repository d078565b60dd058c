"""What the commands have in common: ``--quick``, ``--parts``, the clock, storing, the page."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Mapping
from typing import Any

import page
import report

Result = dict[str, Any]
Part = Callable[[bool], Result]


def run(
    name: str, description: str | None, parts: Part | Mapping[str, Part], paper: Any = page
) -> int:
    """Measure part by part; store each, and write the page. A quick trial only prints tables.

    A part returns what it adds to the experiment's result; one that goes on from stored trainings
    also says how many seconds all of them took. `paper` is the module that writes the
    page on a paper: it has `RESULTS`, where results lie, `printed`, tables as text, and `write`.
    """
    if not isinstance(parts, Mapping):
        parts = {"all": parts}
    parser = argparse.ArgumentParser(description=(description or "").partition("\n")[0])
    parser.add_argument(
        "--quick", action="store_true", help="few simulations, on part of the data; stores nothing"
    )
    parser.add_argument(
        "--parts", nargs="+", choices=parts, default=list(parts), help="what to measure"
    )
    options = parser.parse_args()
    for part in options.parts:
        began = time.perf_counter()
        found = parts[part](options.quick)
        took = time.perf_counter() - began
        for title, table in paper.printed(found):
            print(f"{title}\n\n{table}\n")
        if options.quick:
            print(f"a trial of {part} took {took:.0f} s; nothing was stored", flush=True)
            continue
        found.setdefault("seconds", {part: round(took)})
        result = report.merged(name, found, paper.RESULTS)
        print(f"stored {report.save(name, result, paper.RESULTS)}")
        paper.write()
    return 0


def say(text: str) -> None:
    """Tell how far the experiment is."""
    print(f"{time.strftime('%H:%M:%S')} {text}", flush=True)
