"""Writes docs/selection-benchmarks.md from the results; prints which aims are met."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from aims import Aim
from data import ROOT
from results import Results, significant, table

PAGE = ROOT / "docs" / "selection-benchmarks.md"
PLAIN, EXPECTED, PEERS = 0.5, 10.0, 10.0
GIBIBYTE = 2**30 / 1e6  # in megabytes
LIMITS = {"fashion": 8.0, "million": 16.0}

HEAD = """# How fast records are selected

<!-- Written by benchmarks/selection.py from benchmarks/results; do not edit. -->

{machine}

One thread. Seconds are processor times, the lowest of several turns in which all contenders take
part, on a machine with other load. The time of a selection is from the input matrix to the chosen
records, including checks.
"""

HEAP = """
## Against ten lines of NumPy

{n:,} images of Fashion-MNIST ({d} pixels), one class, the similarities given as float32 (the
largest distance minus the distance), *k* = {k}; {rounds} turns. The ten lines are `numpy_heap` in
`benchmarks/selection_data.py`, a simple lazy heap. *objective*: the utility of the selection; for a
staying model its exact expected value, checked against a computation by ranks in NumPy. *not
anticipated*: the expected value of the plain selection.
"""

TAIL = """
A beta-binomial distribution takes longer, because it has a long tail: all {k} ranks count, and the
tables of the tails take {size:.0f} MB.
"""

PEER = """
## Against other libraries

{n:,} images of Fashion-MNIST, similarities given, *k* = {k}; {rounds} turns, each library in a
separate process, after a small selection that compiles the code.
"""

FASHION = """
## Fashion-MNIST, whole

60,000 images of 784 pixels as float32, similarities computed class by class, *k* = 1,000. *peak*:
the largest resident memory of the process; before the selection it was {before} GiB.
"""

MILLION = """
## A million records

64 random features: 200 flat clusters of 8 dimensions each, with a little noise. pynndescent
{version} finds the {neighbors} nearest neighbours of each record approximately
(`NearestNeighbor(neighbors=PyNNDescentTransformer({neighbors}))`). *distance*: the distance of a
record from the nearest selected one, averaged over 20,000; *random*: from as many random records.
Both selections use one search, whose graph stays in memory.
"""

TRUNCATION = """
## The loss with only the nearest neighbours

Selections by the *m* nearest neighbours of each target (`n_neighbors=m`, exact), judged by all
pairs: the share of the gain over a random selection, by all pairs, that remains. 1 is the whole
gain, 0 is that of a random selection.
"""


def write(folder: Path) -> None:
    """Write the page."""
    results = Results(folder)
    cells = {name: results[f"selection-{name}"] for name in SECTIONS}
    there = {name: cell for name, cell in cells.items() if cell}
    if not there:
        print(f"no results of a selection in {folder}; measure something first")
        return
    aims = [aim for name, cell in there.items() for aim in AIMS.get(name, _none)(cell)]
    rows = [[a.what, a.aim, a.measured, "met" if a.met else "**missed**"] for a in aims]
    environment = next(iter(there.values()))["environment"]
    head = HEAD.format(machine=_machine(environment))
    parts = [head, *(SECTIONS[name](cell) for name, cell in there.items())]
    PAGE.write_text("\n".join(parts).rstrip() + "\n", encoding="utf-8")
    print(f"wrote {PAGE}\n")
    print(table(["what", "aim", "measured", ""], rows, left=(0, 1, 3)))


def _none(cell: dict[str, Any]) -> list[Aim]:
    return []


def _machine(environment: dict[str, Any]) -> str:
    names = ("python", "numpy", "scikit-learn", "numba")
    versions = ", ".join(f"{name} {environment[name]}" for name in names)
    return f"{environment['processor']}, {environment['cores']} cores; {versions}."


def _aims_of_heap(cell: dict[str, Any]) -> list[Aim]:
    heap = cell["heap"]
    what = f"n = {cell['n']:,}, k = {cell['k']}, kernel given: "
    plain = cell["plain"] / heap
    found = [
        Aim(f"{what}plain", f"at most {PLAIN} of the heap", _ratio(plain), plain <= PLAIN),
    ]
    for line in cell["expected"]:
        ratio = line["seconds"] / heap
        aim = f"at most {EXPECTED:g} of the heap"
        found.append(Aim(f"{what}{line['name']}", aim, _ratio(ratio), ratio <= EXPECTED))
    return found


def _aims_of_peers(cell: dict[str, Any]) -> list[Aim]:
    found = []
    for peer in cell["peers"]:
        aim = f"at least {PEERS:g} times as fast, the same objective"
        if "failed" in peer:
            found.append(Aim(peer["package"], aim, "it does not run", False))
            continue
        ratio = peer["seconds"] / peer["ours"]
        same = abs(peer["value"] - peer["our value"]) <= 1e-5 * peer["value"]
        measured = f"{significant(ratio)} times" + ("" if same else ", another objective")
        found.append(Aim(peer["name"], aim, measured, ratio >= PEERS and same))
    return found


def _aims_of_memory(name: str, title: str, cell: dict[str, Any]) -> list[Aim]:
    limit = LIMITS[name]
    done = [run for run in cell["runs"] if "failed" not in run]
    largest = max((run["n"] for run in done), default=0)
    peak = max((run["peak"] / GIBIBYTE for run in done if run["n"] == largest), default=0.0)
    met = len(done) == len(cell["runs"]) and 0 < peak < limit
    measured = f"{significant(peak)} GiB" if done else "it does not run"
    return [Aim(f"{title}, peak memory", f"below {limit:g} GiB", measured, met)]


def _ratio(value: float) -> str:
    return significant(value)


def _heap(cell: dict[str, Any]) -> str:
    heap = cell["heap"]
    rows = [
        ["ten lines of NumPy", significant(heap), "1", f"{cell['heap value']:,.2f}", ""],
        ["plain", significant(cell["plain"]), _ratio(cell["plain"] / heap),
         f"{cell['plain value']:,.2f}", ""],
    ]  # fmt: skip
    rows += [
        [
            f"expected, `{line['name']}`", significant(line["seconds"]),
            _ratio(line["seconds"] / heap), f"{line['value']:,.2f}", f"{line['plain']:,.2f}",
        ]
        for line in cell["expected"]
    ]  # fmt: skip
    head = ["", "seconds", "of the heap", "objective", "not anticipated"]
    tail = TAIL.format(k=cell["k"], size=8e-6 * cell["n"] * cell["k"])
    return HEAP.format(**cell) + "\n" + table(head, rows) + "\n" + tail.rstrip("\n")


def _peers(cell: dict[str, Any]) -> str:
    rows = []
    for peer in cell["peers"]:
        if "failed" in peer:
            rows.append([peer["package"], *([f"fails: {peer['failed']}"] + [""] * 4)])
            continue
        rows.append([
            peer["name"], significant(peer["seconds"]), significant(peer["ours"]),
            f"{significant(peer['seconds'] / peer['ours'])} x", f"{peer['value']:,.2f}",
            f"{peer['our value']:,.2f}",
        ])  # fmt: skip
    head = ["", "seconds", "ours", "faster", "its objective", "ours"]
    return PEER.format(**cell) + "\n" + table(head, rows)


def _fashion(cell: dict[str, Any]) -> str:
    done = [run for run in cell["runs"] if "failed" not in run]
    rows = [
        [_staying(run), f"{run['seconds']:,.0f}", f"{run['peak'] / GIBIBYTE:.2f}"] for run in done
    ] + _failures(cell["runs"], 3)
    before = max((run["before"] / GIBIBYTE for run in done), default=0.0)
    head = ["staying", "seconds", "peak, GiB"]
    return FASHION.format(before=f"{before:.2f}") + "\n" + table(head, rows)


def _million(cell: dict[str, Any]) -> str:
    done = [run for run in cell["runs"] if "failed" not in run]
    rows = [
        [
            f"{run['n']:,}", _staying(run), f"{run['search']:,.0f}", significant(run["select"]),
            f"{run['peak'] / GIBIBYTE:.2f}", f"{run['selected']:.3f}",
            f"{run['random']:.3f}",
        ]
        for run in done
    ]  # fmt: skip
    head = ["records", "staying", "search, s", "selection, s", "peak, GiB", "distance", "random"]
    rows += _failures(cell["runs"], len(head))
    some = done[0] if done else {"neighbors": "", "pynndescent": ""}
    text = MILLION.format(neighbors=some["neighbors"], version=some["pynndescent"])
    return text + "\n" + table(head, rows)


def _truncation(cell: dict[str, Any]) -> str:
    rows = []
    for case in cell["cases"]:
        gained = case["whole"] - case["random"]
        shares = [(line["value"] - case["random"]) / gained for line in case["lines"]]
        rows.append([
            f"{case['title']}, k = {case['k']}", _staying(case), *(f"{s:.3f}" for s in shares),
            f"{gained / case['random']:.1%}",
        ])  # fmt: skip
    kept = [f"m = {line['kept']}" for line in cell["cases"][0]["lines"]]
    head = ["data", "staying", *kept, "gained over random"]
    return TRUNCATION + "\n" + table(head, rows, left=(0, 1))


def _staying(run: dict[str, Any]) -> str:
    return "all stay" if run["staying"] == 1 else f"{run['staying']:g}, anticipated"


def _failures(runs: list[dict[str, Any]], width: int) -> list[list[str]]:
    return [[f"fails: {run['failed']}", *[""] * (width - 1)] for run in runs if "failed" in run]


SECTIONS = {
    "heap": _heap,
    "peers": _peers,
    "fashion": _fashion,
    "million": _million,
    "truncation": _truncation,
}
AIMS = {
    "heap": _aims_of_heap,
    "peers": _aims_of_peers,
    "fashion": lambda cell: _aims_of_memory("fashion", "Fashion-MNIST, whole, k = 1,000", cell),
    "million": lambda cell: _aims_of_memory("million", "1,000,000 x 64, k = 1,000", cell),
}
