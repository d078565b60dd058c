"""Every table and figure of the three papers, with one command.

    python experiments/papers.py                    all, quick: few draws, on part of the data
    python experiments/papers.py --full nn-h sms    two of them, as the papers have them
    python experiments/papers.py --list             what there is
    python experiments/papers.py sms --scores mine:score --seeds 3
    python experiments/papers.py sms --help         what options it takes

Results go to ``build/papers/quick`` or ``full``: `index.md`, a page with tables and plots, and
`results.parquet`, a row for each number that was measured; and both, and a JSON file, for each
experiment. What is finished is not run again: after an interruption, give the same command. Other
options, given last, go to the experiments, which say what they take.
"""

from __future__ import annotations

import argparse
import ast
import re
import subprocess
import sys
import time
from pathlib import Path

import pandas as pd

HERE = Path(__file__).resolve().parent
FOLDER = HERE.parent / "build" / "papers"
STATES = {0: "measured", 2: "not measured: see what it said"}
INTERRUPTED = 130


def experiments() -> dict[str, Path]:
    """Return the scripts of all experiments, by name: those that run a command."""
    found = {}
    for path in sorted(HERE.glob("*/*.py")):
        named = re.search(r'command\.run\(\s*"([\w-]+)"', path.read_text(encoding="utf-8"))
        if named:
            found[named[1]] = path
    return found


def about(path: Path) -> str:
    """Return the first line of a script's docstring."""
    module = ast.parse(path.read_text(encoding="utf-8"))
    return (ast.get_docstring(module) or "").partition("\n")[0]


def run(name: str, path: Path, words: list[str]) -> tuple[int, float]:
    """Run an experiment; return its exit status, and seconds."""
    began = time.monotonic()
    done = subprocess.run([sys.executable, "-W", "ignore", str(path), *words], check=False)
    return done.returncode, time.monotonic() - began


def write(folder: Path, states: dict[str, str]) -> None:
    """Write one page and one table of all that is in a folder."""
    names = [name for name in experiments() if (folder / f"{name}.md").exists()]
    if not names:
        return
    lines = ["# The papers' experiments\n", f"Numbers: `{folder / 'results.parquet'}`.\n"]
    lines += [f"- {name}: {state}" for name, state in states.items()] + [""]
    pages = [(folder / f"{name}.md").read_text(encoding="utf-8") for name in names]
    (folder / "index.md").write_text("\n".join([*lines, *pages]), encoding="utf-8")
    tables = [pd.read_parquet(folder / f"{name}.parquet") for name in names]
    pd.concat(tables).to_parquet(folder / "results.parquet", index=False)
    print(f"wrote {folder / 'index.md'} and results.parquet")


def main(arguments: list[str] | None = None) -> int:
    """Run experiments; 2 if one lacks data or has no use for an option, 1 if one fails."""
    there = experiments()
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )  # fmt: skip
    parser.add_argument("names", nargs="*", metavar="NAME", help="experiments; by default all")
    parser.add_argument("--full", action="store_true", help="as the papers have them: hours")
    parser.add_argument("--list", action="store_true", help="list the experiments")
    parser.add_argument("--out", type=Path, metavar="DIR", help=f"in place of {FOLDER.name}")
    given = sys.argv[1:] if arguments is None else arguments
    own = ("--full", "--list", "--out")
    if not given or given[0] in ("-h", "--help"):
        own = (*own, "--help")
    strange = (
        at
        for at, word in enumerate(given)
        if (word == "-h" and at) or (word[:2] == "--" and word.partition("=")[0] not in own)
    )
    end = next(strange, len(given))
    options, words = parser.parse_args(given[:end]), given[end:]
    if options.list:
        for name, path in there.items():
            print(f"{name:10} {about(path)}")
        return 0
    if unknown := [name for name in options.names if name not in there]:
        parser.error(f"there is no {', '.join(unknown)}; expected some of {', '.join(there)}")
    if {"-h", "--help"} & set(words):
        return max(run(name, there[name], ["--help"])[0] for name in options.names or [*there][:1])
    size = "full" if options.full else "quick"
    folder = options.out or FOLDER / size
    words = [f"--{size}", "--out", str(folder), *words]
    statuses, states = [0], {}
    names = options.names or list(there)
    for at, name in enumerate(names, 1):
        print(f"== {at} of {len(names)}: {name}, {about(there[name])}", flush=True)
        try:
            status, took = run(name, there[name], words)
        except KeyboardInterrupt:
            status, took = INTERRUPTED, 0.0
        if status == INTERRUPTED:
            states[name] = "interrupted: give the same command again"
            statuses.append(INTERRUPTED)
            break
        print(f"== {name} took {took:.0f} s", flush=True)
        statuses.append(status if status in STATES else 1)
        states[name] = STATES.get(status, f"failed with {status}")
    write(folder, states)
    for name, state in states.items():
        print(f"{name}: {state}")
    return 1 if 1 in statuses and INTERRUPTED not in statuses else max(statuses)


if __name__ == "__main__":
    sys.exit(main())
