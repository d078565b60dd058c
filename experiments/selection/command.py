"""What the commands have in common: ``--quick``, the clock, storing and writing the page."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import page
import report

Result = dict[str, Any]


def run(name: str, description: str | None, measure: Callable[[bool], Result]) -> int:
    """Measure, store the result and write the page; a quick trial only prints its tables."""
    parser = argparse.ArgumentParser(description=(description or "").partition("\n")[0])
    parser.add_argument(
        "--quick", action="store_true", help="few simulations, on part of the data; stores nothing"
    )
    quick: bool = parser.parse_args().quick
    began = time.perf_counter()
    result = measure(quick)
    result["seconds"] = time.perf_counter() - began
    for number, given in result["tables"].items():
        print(f"Table {number}\n\n{report.table(number, given)}\n")
    if quick:
        print(f"a trial of {result['seconds']:.0f} s; nothing was stored")
        return 0
    print(f"stored {report.save(name, result)}")
    page.write()
    return 0


def say(text: str) -> None:
    """Tell how far the experiment is."""
    print(f"{time.strftime('%H:%M:%S')} {text}", flush=True)
