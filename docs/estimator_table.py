"""Write the table of estimators in the README: ``python docs/estimator_table.py``.

A test compares the README with the output.
"""

from __future__ import annotations

import re
from importlib.util import find_spec
from pathlib import Path

import erasable

README = Path(__file__).resolve().parent.parent / "README.md"
OPTIONAL = {"neural": "torch"}
TABLE = re.compile(r"^\| package \| estimators \|\n(?:\|.*\n)+", re.M)


def table() -> str:
    """Return the table: the estimators of each package, sorted by name.

    If a requirement of a package is not installed, its estimators are taken from the README.
    """
    packages: dict[str, list[str]] = {}
    for name, cls, _ in erasable.all_estimators():
        packages.setdefault(cls.__module__.split(".")[1], []).append(f"`{name}`")
    for package, needs in OPTIONAL.items():
        row = re.search(rf"^\| `{package}` \| (.*) \|$", README.read_text("utf-8"), re.M)
        if row and find_spec(needs) is None:
            packages[package] = row[1].split(", ")
    rows = [f"| `{package}` | {', '.join(names)} |" for package, names in sorted(packages.items())]
    return "\n".join(["| package | estimators |", "|---|---|", *rows, ""])


if __name__ == "__main__":
    README.write_text(TABLE.sub(table(), README.read_text(encoding="utf-8")), encoding="utf-8")
