"""The command line of a benchmark in parts, whose results become a section of a page."""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
Found = dict[str, Any]


def run(
    name: str,
    page: Path,
    parts: Mapping[str, Callable[[bool], Found]],
    section: Callable[[Found], str],
    about: str | None,
) -> None:
    """Measure the parts that were asked for, store them, and write the section "Measured".

    Parameters
    ----------
    name : str
        Of the file in benchmarks/results.
    page : Path
        Its section "Measured" is replaced.
    parts : dict
        By name, functions that measure; they are told whether to be quick.
    section : callable
        Writes the section from all results.
    about : str or None
        The docstring of the benchmark.
    """
    results = ROOT / "benchmarks" / "results" / f"{name}.json"
    parser = argparse.ArgumentParser(description=(about or "").partition("\n")[0])
    parser.add_argument("--parts", nargs="+", choices=parts, default=list(parts))
    parser.add_argument("--quick", action="store_true", help="measure little, and write nothing")
    parser.add_argument("--page", action="store_true", help="write the page from the results")
    asked = parser.parse_args()
    found = json.loads(results.read_text()) if results.exists() else {}
    for part in [] if asked.page else asked.parts:
        found[part] = parts[part](asked.quick)
        print(json.dumps(found[part]), flush=True)
        if not asked.quick:
            results.write_text(json.dumps(found, indent=1) + "\n")
    text = section(found)
    print(text)
    if not asked.quick:
        before = re.sub(r"## Measured\n.*?(?=\n## |\Z)", "", page.read_text(), flags=re.DOTALL)
        page.write_text(before.rstrip() + "\n\n" + text)
