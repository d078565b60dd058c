"""Measure what stores leave of people who were deleted, and write docs/benchmarks/targets.md.

``python benchmarks/targets.py [STORE ...] [--page]``: results are kept in benchmarks/results, one
file a store; without names, all stores whose clients are installed, and tombstone-erase. With
``--page``, only the page is written.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import shutil
import subprocess
import sys
import tempfile
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from data import ROOT
from results import NONE, significant, table
from target_stores import MAILS, STORES, TEXTS, VECTORS, Store, leaving

from erasable.workspace.targets import residue
from erasable.workspace.targets.marks import Marks

RESULTS = ROOT / "benchmarks" / "results"
PAGE = ROOT / "docs" / "benchmarks" / "targets.md"
N_ERASED = 100
N_LIVING = 100
N_ALONE = 10
"""People that tombstone-erase forgets: it takes seconds for each."""
RIVAL = "tombstone"

TEXT = """# Erasing people from stores

<!-- Written by benchmarks/targets.py from benchmarks/results; do not edit. -->

2,000 records of 2,000 people, each with an address, a text and a vector of 64 dimensions, are
written by the store's own client; {n} people leave. Then all files of the store are searched,
decoded, for the three values of each of them: by the client's own deletion, by that and the
clean-up that its documentation describes, and by a target of a workspace. The same search has to
find the values of {living} people who stay.

## What is left

Values of the {n} people that are still in the files: addresses, texts, vectors.

{left}

What a workspace says of its own erasure, a better word than which is never said:

{words}

## What it takes

Seconds, and megabytes of files that are new or changed afterwards, in a process of its own each;
opening the store is included, importing programs is not.

{costs}

{rival}
"""

RIVAL_TEXT = """## Compared with tombstone-erase

tombstone-erase {version} follows data from where they enter a store through its wrapper, and erases
one person at a time. People leave a collection of Chroma, written through that wrapper. *Full
compaction*: all records that stay are read, and written to a new collection. *Ours*: one request
for all of them.

{table}
"""


def main() -> None:
    """Measure, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="STORE")
    parser.add_argument("--page", action="store_true", help="write the page and measure nothing")
    parser.add_argument(
        "--people", type=int, default=200, help=f"how many leave with {RIVAL} (default: 200)"
    )
    given = parser.parse_args()
    if not given.page:
        names = given.names or [
            name for name, store in STORES.items() if all(map(find_spec, store.clients))
        ]
        if not given.names and find_spec("tombstone"):
            names.append(RIVAL)
        for name in names:
            found = against_rival(given.people) if name == RIVAL else measure(STORES[name])
            path = RESULTS / f"target-{name}.json"
            path.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
            print(name, json.dumps(found), flush=True)
    PAGE.parent.mkdir(exist_ok=True)
    PAGE.write_text(page(), encoding="utf-8")


# -- measurements ----------------------------------------------------------------------------------


def measure(store: Store) -> dict[str, Any]:
    """Measure a store: its own deletion, with its clean-up, and ours."""
    name = next(name for name, each in STORES.items() if each is store)
    with tempfile.TemporaryDirectory() as top:
        made = Path(top, "made")
        made.mkdir()
        step(name, "make", made)
        ways = {"before": {"left": searched(made)}}
        for way, steps in (
            ("delete", ("delete",)), ("clean", ("delete", "clean")), ("ours", ("erase",)),
        ):  # fmt: skip
            if way == "clean" and store.clean is None:
                continue
            ways[way] = _way(name, made, steps)
    clients = {module: _version(module) for module in store.clients}
    return {"title": store.title, "clients": clients, "ways": ways}


def _way(name: str, made: Path, steps: tuple[str, ...]) -> dict[str, Any]:
    """Take steps with the corpus at its own place: stores keep absolute paths."""
    kept = made.with_name("kept")
    made.rename(kept)
    shutil.copytree(kept, made)
    before = _files(made)
    try:
        told = [step(name, each, made) for each in steps]
        after = _files(made)
        changed = [found[0] for path, found in after.items() if before.get(path) != found]
        return {
            "seconds": sum(each["seconds"] for each in told), "bytes": sum(changed),
            "left": searched(made), "told": told[-1]["told"],
        }  # fmt: skip
    except subprocess.CalledProcessError as error:
        return {"error": error.stderr.strip().splitlines()[-1][:200]}
    finally:
        shutil.rmtree(made)
        kept.rename(made)


def against_rival(n: int) -> dict[str, Any]:
    """Measure tombstone-erase, a full compaction and ours, on copies of one collection."""
    rows = []
    with tempfile.TemporaryDirectory() as top:
        made, kept = Path(top, "made"), Path(top, "kept")
        made.mkdir()
        _run("target_rival.py", "make", made, n)
        made.rename(kept)
        for way, which in (
            ("tombstone-erase", "forget"), ("full compaction", "compact"), ("ours", "erase"),
        ):  # fmt: skip
            shutil.copytree(kept, made)
            own = min(n, N_ALONE) if which == "forget" else n
            try:
                found = _run("target_rival.py", which, made, own)
            except subprocess.CalledProcessError as error:
                print(way, error.stderr[-400:], file=sys.stderr)
            else:
                left = searched(made / "chroma", own)
                rows.append({"way": way, "people": own, **found, "left": left})
            shutil.rmtree(made)
    return {"n": n, "version": version("tombstone-erase"), "rows": rows}


def step(name: str, which: str, folder: Path, n: int = N_ERASED) -> Any:
    """Take a step with a store."""
    return _run("target_stores.py", name, which, folder, n)


def _run(script: str, *arguments: object) -> Any:
    """Run a script in a process of its own; return what it printed."""
    command = [sys.executable, "-W", "ignore", str(Path(__file__).with_name(script))]
    done = subprocess.run(
        [*command, *map(str, arguments)], check=True, capture_output=True, text=True
    )
    return json.loads(done.stdout.splitlines()[-1])


def searched(folder: Path, n: int = N_ERASED) -> dict[str, Any]:
    """Search the files for the values of those who leave, and of some who stay."""
    gone = leaving(n)
    stay = [at for at in range(len(MAILS)) if at not in set(gone)][:N_LIVING]
    files = [path for path in folder.rglob("*") if path.is_file()]
    found = {}
    for kind, values in (("addresses", MAILS), ("texts", TEXTS), ("vectors", VECTORS)):
        marks, living = Marks(), Marks()
        for of, rows in ((marks, gone), (living, stay)):
            for at in rows:
                of.add(values[at])
        result = residue.search(files, marks, living)
        found[kind] = {"left": result.n_left, "living": result.n_living, "reasons": result.reasons}
    return found


def _files(folder: Path) -> dict[str, tuple[int, str]]:
    """Return sizes and contents of all files."""
    return {
        str(path.relative_to(folder)): (
            path.stat().st_size, hashlib.blake2b(path.read_bytes()).hexdigest()
        )
        for path in folder.rglob("*")
        if path.is_file()
    }  # fmt: skip


def _version(module: str) -> str:
    for name in (module, module.replace("_", "-"), _PACKAGES.get(module, module)):
        try:
            return version(name)
        except PackageNotFoundError:
            continue
    return NONE


_PACKAGES = {"faiss": "faiss-cpu", "qdrant_edge": "qdrant-edge-py"}


# -- the page --------------------------------------------------------------------------------------

_WAYS = {"delete": "its deletion", "clean": "with its clean-up", "ours": "ours"}


def page() -> str:
    """Write the page from the results."""
    cells = {
        name: json.loads(path.read_text(encoding="utf-8"))
        for name in STORES
        if (path := RESULTS / f"target-{name}.json").exists()
    }
    return TEXT.format(
        n=N_ERASED, living=N_LIVING, left=_left(cells), words=_words(cells), costs=_costs(cells),
        rival=_rival(),
    ).rstrip() + "\n"  # fmt: skip


def _left(cells: dict[str, Any]) -> str:
    rows = []
    for name, cell in cells.items():
        clients = ", ".join(f"{module} {of}" for module, of in cell["clients"].items())
        row = [cell["title"], clients, STORES[name].cleaning]
        rows.append([*row, *(_values(cell["ways"].get(way)) for way in ("before", *_WAYS))])
    head = ["store", "client", "clean-up", "before", *_WAYS.values()]
    return table(head, rows, left=(0, 1, 2))


def _values(way: dict[str, Any] | None) -> str:
    """Write what is left; where the search finds nothing of those who stay, a dash."""
    if way is None or "error" in way:
        return NONE
    counts = way["left"].values()
    return ", ".join(str(each["left"]) if each["living"] else NONE for each in counts)


def _words(cells: dict[str, Any]) -> str:
    rows = []
    for cell in cells.values():
        told = cell["ways"]["ours"].get("told")
        if told is not None:
            rows.append([cell["title"], told["word"], told["reason"] or ""])
    return table(["store", "word", "reason"], rows, left=(0, 1, 2)) if rows else NONE


def _costs(cells: dict[str, Any]) -> str:
    rows = []
    for cell in cells.values():
        row = [cell["title"]]
        for way in _WAYS:
            found = cell["ways"].get(way, {})
            if "seconds" in found:
                row += [significant(found["seconds"]), significant(found["bytes"] / 1e6)]
            else:
                row += [NONE, NONE]
        rows.append(row)
    head = ["store"]
    for title in _WAYS.values():
        head += [f"{title}: s", "MB"]
    return table(head, rows, left=(0,))


def _rival() -> str:
    path = RESULTS / f"target-{RIVAL}.json"
    if not path.exists():
        return ""
    cell = json.loads(path.read_text(encoding="utf-8"))
    rows = [
        [row["way"], str(row["people"]), significant(row["seconds"]), _values(row)]
        for row in cell["rows"]
    ]
    head = ["way", "people", "seconds", "addresses, texts, vectors left"]
    return RIVAL_TEXT.format(version=cell["version"], table=table(head, rows, left=(0,)))


if __name__ == "__main__":
    main()
