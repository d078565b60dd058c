"""A local cluster: two workers against one, and deletions from a k-means of ten levels.

    python benchmarks/cluster.py [--records 5000000] [--deletions 1000000]

Workers have one thread each. Of each fit the seconds of the clock and the seconds of processor that
each process took are written. On a machine that is busy with other things the clock says little;
`processor` is the driver's seconds and those of the worker that took most, which is what the
clock would say with a core for each process. Writes `benchmarks/results/cluster.json`.
"""

# ruff: noqa: E402
from __future__ import annotations

import os

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ[_name] = "1"

import argparse
import gc
import json
import platform
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import dask.dataframe as dd
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from distributed import Client, LocalCluster

from erasable import Records
from erasable.cluster import KMeans
from erasable.core.remote import _dask
from erasable.ensemble import RandomForestClassifier
from erasable.linear_model import LogisticRegression

RESULTS = Path(__file__).parent / "results"
PAGE = Path(__file__).parent.parent / "docs" / "scale.md"
BEGIN, END = "<!-- measured -->", "<!-- /measured -->"
FEATURES, PARTS = 20, 16
MODELS: dict[str, Callable[[], Any]] = {
    "KMeans": lambda: KMeans(10, max_iter=10, tol=0, random_state=0),
    "LogisticRegression": LogisticRegression,
    "RandomForestClassifier": lambda: RandomForestClassifier(4, max_depth=10, random_state=0),
}


def written(folder: Path, n: int, spread: float) -> Any:
    """Write clusters in as many files as there are partitions; return a lazy frame."""
    folder.mkdir()
    rng = np.random.default_rng(0)
    centres = rng.normal(scale=2.0, size=(10, FEATURES))
    bounds = np.linspace(0, n, PARTS + 1).astype(int)
    for number, first in enumerate(bounds[:-1].tolist()):
        size = int(bounds[number + 1]) - first
        kind = rng.integers(0, 10, size)
        X = centres[kind] + spread * rng.normal(size=(size, FEATURES))
        names = {"id": np.arange(first, first + size), "label": kind % 2}
        columns = {f"x{j}": X[:, j] for j in range(FEATURES)}
        pq.write_table(pa.table(names | columns), folder / f"{number:02}.parquet")
    return dd.read_parquet(folder, aggregate_files=False)


@contextmanager
def cluster(n_workers: int, folder: Path) -> Iterator[Client]:
    """Start workers on this machine."""
    with (
        LocalCluster(
            n_workers=n_workers, threads_per_worker=1, memory_limit=0, dashboard_address=None,
            local_directory=str(folder), silence_logs=50,
        ) as made,
        Client(made, timeout=120) as client,
    ):  # fmt: skip
        yield client


class Counting(_dask.DaskWorkers):
    """Workers that count how often they are sent jobs."""

    trips = 0

    def ask(self, jobs: Any, aside: bool = False) -> Any:
        """Count, and ask."""
        Counting.trips += 1
        return super().ask(jobs, aside)


_dask.DaskWorkers = Counting


def _trips() -> int:
    return Counting.trips


def timed(client: Client, call: Callable[[], Any]) -> dict[str, Any]:
    """Call, and return what it took."""
    gc.collect()
    trips = _trips()
    before, here, began = client.run(time.process_time), time.process_time(), time.perf_counter()
    call()
    seconds, here = time.perf_counter() - began, time.process_time() - here
    after = client.run(time.process_time)
    workers = [after[name] - before[name] for name in before]
    return {
        "seconds": seconds,
        "driver": here,
        "workers": workers,
        "processor": here + max(workers),
        "trips": _trips() - trips,
        "load": os.getloadavg()[0],
    }


def fits(client: Client, frame: Any, some: Any, names: list[str], repeats: int) -> dict[str, Any]:
    """Fit each model several times, and keep the runs."""
    few = Records.from_dask(some, client=client, ids="id", target="label")
    for name in names:
        MODELS[name]().fit(few)  # loads kernels, on workers, too
    records = Records.from_dask(frame, client=client, ids="id", target="label")
    found: dict[str, Any] = {}
    for name in names:
        runs = [
            timed(client, lambda name=name: MODELS[name]().fit(records)) for _ in range(repeats)
        ]
        found[name] = runs
        print(name, len(client.nthreads()), runs, flush=True)
    return found


def deletions(client: Client, frame: Any) -> dict[str, Any]:
    """Delete from a k-means of ten levels: twenty times one record, three times a thousand."""
    records = Records.from_dask(frame, client=client, ids="id", target="label")
    model = MODELS["KMeans"]().fit(records)
    gone = np.random.default_rng(1).permutation(records.ids)[:4000].tolist()
    model.delete(gone[:1])
    model.delete(gone[1:1001])
    one = [timed(client, lambda at=at: model.delete([gone[at]])) for at in range(1001, 1021)]
    many = [
        timed(client, lambda at=at: model.delete(gone[at : at + 1000]))
        for at in range(1021, 2021, 1000)
    ]
    return {"one": one, "thousand": many, "levels": int(model.n_iter_)}


def tables(found: dict[str, Any]) -> str:
    """Return the tables of the page."""
    names = [name for name in MODELS if name in found["1"] and name in found.get("2", {})]
    lines = [
        f"{found['records']:,} records x {found['features']}, {found['partitions']} partitions, "
        f"{found['cores']} cores; the load, with this, was {_loads(found)}. *Processor* is "
        "the seconds of this process and of the worker that took most, which is what the clock "
        "would say with a core for each. Records are ten clusters, whose centres have a "
        "standard deviation of 2; *spread* is that of a cluster.",
        "",
        "| fit of | spread | one worker: here, worker | two: here, worker | processor | clock |",
        "|---|---:|---:|---:|---:|---:|",
    ]
    for name in names:
        one, two = (min(found[k][name], key=lambda run: run["processor"]) for k in ("1", "2"))
        told = [f"{run['driver']:.1f} s, {max(run['workers']):.1f} s" for run in (one, two)]
        ratios = [f"{one[key] / two[key]:.2f} x" for key in ("processor", "seconds")]
        spread = f"{one.get('spread', 1.0):g}"
        lines.append("| " + " | ".join([f"`{name}`", spread, *told, *ratios]) + " |")
    if "delete" in found:
        lines += [
            "",
            f"Deletions from a `KMeans` of {found['delete']['levels']} iterations, of "
            f"{found['deletions_of']:,} records on two workers, medians:",
            "",
            "| | trips | here | a worker | clock |",
            "|---|---:|---:|---:|---:|",
        ]
        for what, title in (("one", "one record"), ("thousand", "1,000 records")):
            runs = found["delete"][what]
            here, worker, clock = (
                1000 * float(np.median([read(run) for run in runs]))
                for read in (
                    lambda run: run["driver"],
                    lambda run: max(run["workers"]),
                    lambda run: run["seconds"],
                )
            )
            trips = int(np.median([run["trips"] for run in runs]))
            lines.append(
                f"| {title} | {trips} | {here:.0f} ms | {worker:.0f} ms | {clock:.0f} ms |"
            )
    return "\n".join(lines)


def _loads(found: dict[str, Any]) -> str:
    runs = [run for k in ("1", "2") for each in found.get(k, {}).values() for run in each]
    loads = [run["load"] for run in runs]
    return f"{min(loads):.1f} to {max(loads):.1f}"


def main() -> None:
    """Measure, and write what was found."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=5_000_000)
    parser.add_argument("--deletions", type=int, default=1_000_000)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--models", nargs="*", help="measure these anew, and keep the others")
    parser.add_argument("--spread", type=float, default=4.0, help="of a cluster; centres: 2")
    parser.add_argument("--folder", type=Path, default=RESULTS)
    parser.add_argument("--page", action="store_true", help="write the page, and measure nothing")
    options = parser.parse_args()
    if options.page:
        found = json.loads((options.folder / "cluster.json").read_text(encoding="utf-8"))
        head, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
        _, _, tail = rest.partition(END)
        text = f"{head}{BEGIN}\n\n{tables(found)}\n\n{END}{tail}"
        PAGE.write_text(text, encoding="utf-8")
        return
    found = {
        "records": options.records, "features": FEATURES, "partitions": PARTS,
        "deletions_of": options.deletions, "python": platform.python_version(),
        "cores": os.cpu_count(),
    }  # fmt: skip
    place, names = options.folder / "cluster.json", options.models or list(MODELS)
    kept = json.loads(place.read_text(encoding="utf-8")) if options.models else {}
    with tempfile.TemporaryDirectory() as made:
        folder, spread = Path(made), options.spread
        some = written(folder / "some", 50_000, spread)
        with cluster(2, folder) as client:
            few = written(folder / "delete", options.deletions, spread)
            found["delete"] = deletions(client, few)
            print(found["delete"]["levels"], "levels", flush=True)
        frame = written(folder / "fits", options.records, spread)
        for n_workers in ("1", "2"):
            with cluster(int(n_workers), folder) as client:
                new = fits(client, frame, some, names, options.repeats)
                new = {name: [{**run, "spread": spread} for run in new[name]] for name in new}
                found[n_workers] = {**kept.get(n_workers, {}), **new}
    text = json.dumps(found, indent=1, sort_keys=True)
    place.write_text(text + "\n", encoding="utf-8")
    for name in names:
        for key in ("seconds", "processor"):
            one, two = (min(run[key] for run in found[k][name]) for k in ("1", "2"))
            print(f"{name}: {key} {one:.2f} with one worker, {two:.2f} with two: {one / two:.2f} x")
    for what in ("one", "thousand"):
        for key in ("seconds", "processor"):
            took = np.median([run[key] for run in found["delete"][what]])
            print(f"delete {what}: {key} {1000 * took:.0f} ms")


if __name__ == "__main__":
    main()
