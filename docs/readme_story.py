"""Write the main job's output into README.md by running the demo: ``python docs/readme_story.py``.

The tests compare the page with the output of the same run.
"""

from __future__ import annotations

import contextlib
import importlib.util
import io
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
README = ROOT / "README.md"
BLOCK = re.compile(r"(?<=```console\n)\$ erasable init\n.*?(?=```)", re.DOTALL)
SHOWN = 2  # requests, of the twenty


def story() -> str:
    """Run the demo, and return the output for README.

    Raises
    ------
    RuntimeError
        A command of the demo did not end well.
    """
    spec = importlib.util.spec_from_file_location("demo", ROOT / "examples" / "demo.py")
    if spec is None or spec.loader is None:
        raise RuntimeError("examples/demo.py cannot be imported")
    demo = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(demo)
    told = io.StringIO()
    with contextlib.redirect_stdout(told), contextlib.redirect_stderr(io.StringIO()):
        if demo.main():
            raise RuntimeError("a command of the demo did not end well")
    return shorten(told.getvalue().partition("\n\n")[2])


def shorten(told: str) -> str:
    """Remove all but the first requests, and the path of the folder."""
    lines: list[str] = []
    n_requests = 0
    for line in told.rstrip().splitlines():
        if re.match(r"R-\w{10} ", line):
            n_requests += 1
            if n_requests > SHOWN:
                continue
        elif n_requests > SHOWN:
            lines.append(f"... {n_requests - SHOWN} more")
            n_requests = 0
        lines.append(line.rstrip())
    return re.sub(r"(made a workspace in) \S+", r"\1 clinic", "\n".join(lines)) + "\n"


def masked(shown: str) -> str:
    """Mask values that differ between runs: ids, days, times, widths of columns.

    Examples
    --------
    >>> masked("R-0123456789   2026-12-21 (30 days left)  1.5 s")
    'REQUEST DAY (DAYS left) TIME'
    >>> masked("in 725 ms"), masked("in 1 min 5 s")
    ('in TIME', 'in TIME')
    """
    for pattern, word in (
        (r"R-\w{10}", "REQUEST"),
        (r"\d{4}-\d\d-\d\d", "DAY"),
        (r"\d+ days", "DAYS"),
        (r"\b(?:\d+ min )?[\d.]+ (?:us|ms|s|min)\b", "TIME"),
        (r"[ \t]+", " "),
        ("─+", "─"),
    ):
        shown = re.sub(pattern, word, shown)
    return shown


def main() -> int:
    """Write README.md."""
    page = README.read_text(encoding="utf-8")
    if len(BLOCK.findall(page)) != 1:
        print("README.md has no block that begins with `$ erasable init`; expected one")
        return 1
    told = story()
    README.write_text(BLOCK.sub(lambda _: told, page), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
