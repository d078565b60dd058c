"""What a cluster of a thousand workers is sent, counted in one process: no clock, no network.

    python benchmarks/cluster_plan.py [--workers 1000] [--rows 500 2000]

Each worker has one block, and each job goes through a pickle, of which bytes are counted. Two sizes
of blocks tell what a pass costs a worker and what it costs a record; `docs/scale.md` has the
numbers, and what they come to with 10**9 records. Writes `benchmarks/results/cluster-plan.json`,
and with `--page` the tables of the page from it, without counting again.
"""

from __future__ import annotations

import argparse
import gc
import json
import pickle
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from erasable import Records
from erasable.cluster import KMeans
from erasable.core.remote import BlockSource, Job, Workers, do, remote_table
from erasable.core.stored_table import Uses
from erasable.ensemble import RandomForestClassifier
from erasable.linear_model import LogisticRegression
from erasable.naive_bayes import GaussianNB
from erasable.neighbors import KNeighborsClassifier

RESULTS = Path(__file__).parent / "results"
PAGE = Path(__file__).parent.parent / "docs" / "scale.md"
BEGIN, END = "<!-- counted -->", "<!-- /counted -->"
RECORDS, PLANNED = 10**9, 1000
CALLS = {"fit": "fit", "one": "delete one", "batch": "delete 1,000", "predict": "ask for 100"}
FEATURES = 20
MODELS: dict[str, Callable[[], Any]] = {
    "GaussianNB": GaussianNB,
    "KMeans": lambda: KMeans(10, max_iter=10, tol=0, random_state=0),
    "LogisticRegression": LogisticRegression,
    "RandomForestClassifier": lambda: RandomForestClassifier(4, random_state=0, max_depth=8),
    "KNeighborsClassifier": KNeighborsClassifier,
}


class Rows(BlockSource):
    """Records of one worker, drawn where they are read."""

    def __init__(self, number: int, n_rows: int) -> None:
        self._number, self._n_rows = number, n_rows

    def table(self) -> pa.Table:
        """Draw them."""
        rng = np.random.default_rng(self._number)
        label = rng.integers(0, 2, self._n_rows)
        X = rng.normal(size=(self._n_rows, FEATURES)) + label[:, None]
        first = self._number * self._n_rows
        names = {"id": np.arange(first, first + self._n_rows), "label": label}
        return pa.table(names | {f"x{j}": X[:, j] for j in range(FEATURES)})


class Counting(Workers):
    """Workers in this process, which count what they are sent and what they answer."""

    def __init__(self, n_workers: int) -> None:
        self.names = [f"worker-{number}" for number in range(n_workers)]
        self.reset()

    def reset(self) -> None:
        """Count from here."""
        self.trips, self.sent, self.received = 0, 0, 0
        self.jobs: Counter[str] = Counter()

    def threads(self) -> dict[str, int]:
        """Name them."""
        return dict.fromkeys(self.names, 1)

    def ask(self, jobs: Mapping[str, Job], aside: bool = False) -> dict[str, Any]:
        """Do jobs one after the other."""
        found = {}
        self.trips += 1
        for name, job in jobs.items():
            data = pickle.dumps(job)
            answer = pickle.dumps(do(pickle.loads(data), name, 1))
            self.jobs[type(job).__name__] += 1
            self.sent += len(data)
            self.received += len(answer)
            found[name] = pickle.loads(answer)
        return found

    def counted(self) -> dict[str, Any]:
        """Return what was counted since `reset`."""
        told = {"trips": self.trips, "sent": self.sent, "received": self.received}
        return {**told, "jobs": dict(self.jobs)}


def count(n_workers: int, n_rows: int, names: list[str]) -> dict[str, Any]:
    """Count what making the records, fits, and deletions of models take."""
    workers = Counting(n_workers)
    uses = Uses("id", "label", None, None, None)
    matrix = remote_table(workers, [Rows(at, n_rows) for at in range(n_workers)], uses)
    records = Records.from_table(matrix)
    told: dict[str, Any] = {"records": workers.counted()}
    rng = np.random.default_rng(0)
    for name in names:
        make = MODELS[name]
        gone = rng.choice(records.ids[~records._withdrawn], 1001, replace=False)
        cell: dict[str, Any] = {}
        model = make()
        calls = {
            "fit": lambda model=model: model.fit(records),
            "one": lambda model=model, gone=gone: model.delete(gone[:1]),
            "batch": lambda model=model, gone=gone: model.delete(gone[1:]),
        }
        if name == "KNeighborsClassifier":
            calls["predict"] = lambda model=model: model.predict(np.zeros((100, FEATURES)))
        for what, call in calls.items():
            workers.reset()
            call()
            cell[what] = workers.counted()
            print(n_rows, name, what, cell[what], flush=True)
        told[name] = cell
        del model, calls, call
        gc.collect()
    return told


class Told:
    """What two sizes of blocks tell of what a worker is sent, or answers.

    Attributes
    ----------
    fixed, each : float
        Bytes for a worker, and for each of its records.
    """

    def __init__(self, found: dict[str, Any], read: Callable[[dict[str, Any]], float]) -> None:
        (few, less), (many, more) = sorted(
            (int(n), read(each)) for n, each in found["rows"].items()
        )
        workers = found["workers"]
        self.each = max(0.0, (more - less) / (many - few) / workers)
        self.fixed = max(0.0, less / workers - self.each * few)

    def total(self, workers: int, records: int) -> float:
        """Return what it comes to on all workers."""
        return workers * self.fixed + records * self.each


def size(count: float) -> str:
    """Write a number of bytes.

    >>> size(1234), size(2.5e9)
    ('1.2 kB', '2.5 GB')
    """
    for unit, name in ((1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if count >= unit:
            return (
                f"{count / unit:.2g} {name}" if count < 1e2 * unit else f"{count / unit:.0f} {name}"
            )
    return f"{count:.0f} B"


def bytes_here(n_workers: int = 4, n_rows: int = 100) -> float:
    """Return how many bytes a record takes in the arrays of the process that asks."""
    workers, uses = Counting(n_workers), Uses("id", "label", None, None, None)
    records = Records.from_table(
        remote_table(workers, [Rows(at, n_rows) for at in range(n_workers)], uses)
    )
    held = [*vars(records).values(), *vars(records.attach()).values()]
    held += vars(records.matrix).values()
    arrays = [each for each in held if isinstance(each, np.ndarray) and len(each) == records.n_rows]
    return sum(each.nbytes for each in arrays) / records.n_rows


def tables(found: dict[str, Any]) -> str:
    """Return the tables of the page."""
    lines = [
        f"| {found['workers']:,} blocks | trips | to a worker | and a record | from a worker | "
        "10<sup>9</sup> records: sent | received |",
        "|---|---:|---:|---:|---:|---:|---:|",
    ]
    largest = found["rows"][max(found["rows"], key=int)]
    for name in MODELS:
        for call, title in CALLS.items():
            if call not in largest[name]:
                continue
            sent, back = (
                Told(found, lambda each, key=key, name=name, call=call: each[name][call][key])
                for key in ("sent", "received")
            )
            told = f"{sent.each:.1f} B" if sent.each >= 0.05 else "0"
            whole = [size(each.total(PLANNED, RECORDS)) for each in (sent, back)]
            cells = [f"`{name}`, {title}", f"{largest[name][call]['trips']}", size(sent.fixed)]
            lines.append("| " + " | ".join([*cells, told, size(back.fixed), *whole]) + " |")
    each = bytes_here()
    lines += [
        "",
        f"Before a fit this process holds {each:.0f} bytes a record with an integer id and a "
        "target, and a KMeans or a logistic regression 8 to 20 more: "
        f"{size(RECORDS * (each + 20))} for 10<sup>9</sup> records.",
    ]
    return "\n".join(lines)


def page(text: str, found: dict[str, Any]) -> str:
    """Return the page with its tables."""
    head, _, rest = text.partition(BEGIN)
    _, _, tail = rest.partition(END)
    return f"{head}{BEGIN}\n\n{tables(found)}\n\n{END}{tail}"


def main() -> None:
    """Count with two sizes of blocks, and write what was found."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workers", type=int, default=1000)
    parser.add_argument("--rows", type=int, nargs=2, default=[500, 2000])
    parser.add_argument("--folder", type=Path, default=RESULTS)
    parser.add_argument("--models", nargs="*", help="count these anew, and keep the others")
    parser.add_argument("--page", action="store_true")
    options = parser.parse_args()
    if options.page:
        found = json.loads((options.folder / "cluster-plan.json").read_text(encoding="utf-8"))
        PAGE.write_text(page(PAGE.read_text(encoding="utf-8"), found), encoding="utf-8")
        return
    gc.freeze()  # workers collect garbage after they have read, a thousand of them in this process
    place = options.folder / "cluster-plan.json"
    kept = json.loads(place.read_text(encoding="utf-8"))["rows"] if options.models else {}
    names = options.models or list(MODELS)
    found = {
        str(rows): {**kept.get(str(rows), {}), **count(options.workers, rows, names)}
        for rows in options.rows
    }
    told = {"workers": options.workers, "features": FEATURES, "rows": found}
    text = json.dumps(told, indent=1, sort_keys=True)
    place.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
