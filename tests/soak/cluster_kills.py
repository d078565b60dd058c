"""Kill workers and drivers of a cluster at random: ``python tests/soak/cluster_kills.py``.

A worker is killed during fits, deletions, and while deleted rows are overwritten. After each the
model has the digest of its twin in memory; or there was a clear error, the model is as it was, and
the next call works. A driver deletes and saves its model, and is killed; another then makes the
records again of the same files, with the list of deleted ids: what was acknowledged is not there,
and the model that is loaded, or fitted where the file is older than the list, is the twin's.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

os.environ.setdefault("OMP_NUM_THREADS", "1")
HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

import dask.dataframe as dd  # noqa: E402
import numpy as np  # noqa: E402
import pyarrow.parquet as pq  # noqa: E402
from distributed import Client  # noqa: E402

from erasable import Records  # noqa: E402
from erasable.core.errors import ArtifactError, ClusterError  # noqa: E402
from erasable.core.remote import _dask  # noqa: E402
from visits_table import Visits, make  # noqa: E402
from worker_processes import LIMIT, Processes, cluster_of, forked  # noqa: E402

USES = {"ids": "id", "target": "label", "groups": "person"}
NAMES = ["KMeans", "GaussianNB", "MinMaxScaler", "LogisticRegression"]
PARTS = 7


class WrongError(Exception):
    """Something is not as it has to be."""


def frame_of(folder: Path) -> Any:
    return dd.read_parquet(folder, aggregate_files=False)


def written(folder: Path) -> Path:
    """Write the visits into files; return their folder."""
    folder.mkdir()
    table = Visits().table
    step = -(-table.num_rows // PARTS)
    for number in range(PARTS):
        pq.write_table(table.slice(number * step, step), folder / f"{number:02}.parquet")
    return folder


class Aimed(_dask.DaskWorkers):
    """Workers that are killed around the time of a job of one type."""

    at: Callable[[], None] | None = None
    kind = ""

    def ask(self, jobs: Any, aside: bool = False) -> Any:
        if Aimed.at is not None and any(type(job).__name__ == Aimed.kind for job in jobs.values()):
            Aimed.at()
        return super().ask(jobs, aside)


class Worker:
    """Kills of workers.

    Parameters
    ----------
    cluster : Processes
    folder : Path
        Where the files of the records are.
    """

    def __init__(self, cluster: Processes, folder: Path, draw: random.Random) -> None:
        self.cluster, self.folder, self.draw = cluster, folder, draw
        self.visits = Visits()
        self.told: Counter[str] = Counter()
        self.usual: dict[tuple[str, str], float] = {}

    def run(self, kind: str, kills: int, deadline: float) -> int:
        """Kill a worker so many times; return how many were killed in time."""
        done, at = 0, 0
        while done < kills and time.monotonic() < deadline:
            name = NAMES[at % len(NAMES)]
            at += 1
            done += self._life(kind, name, kills - done, deadline)
        return done

    def _life(self, kind: str, name: str, kills: int, deadline: float) -> int:
        """Fit a model, and delete of it; kill in one of the two."""
        records = Records.from_dask(frame_of(self.folder), client=self.cluster.client, **USES)
        twin = make(name).fit(self.visits.in_memory())
        model, done = make(name), 0
        if kind == "fit":
            for _ in range(min(4, kills)):
                self._during("fit", name, lambda: model.fit(records))
                self._same(model, twin, "a fit")
                done += 1
            return done
        model.fit(records)
        while done < min(12, kills) and time.monotonic() < deadline:
            gone = self.draw.sample(model.ids_.tolist(), self.draw.choice([1, 1, 3, 40]))
            before = model.digest()

            def delete(gone: list[Any] = gone) -> None:
                model.delete(gone)

            if not self._during(kind, name, delete):
                if model.digest() != before:
                    raise WrongError(f"{name} is not as it was after an error")
                model.delete(gone)
            twin.delete(gone)
            self._same(model, twin, f"a {kind}")
            done += 1
        here = records.in_memory()
        left = np.isin(self.visits.ids, here.ids)
        if here.n_rows != len(twin.ids_) or not np.array_equal(
            here.matrix, self.visits.frame.to_numpy()[left]
        ):
            raise WrongError("other records are left than those that were not deleted")
        return done

    def _same(self, model: Any, twin: Any, what: str) -> None:
        if model.digest() != twin.digest():
            raise WrongError(f"{type(model).__name__} has another digest after {what}")

    def _during(self, kind: str, name: str, call: Callable[[], Any]) -> bool:
        """Call, and kill a worker meanwhile; tell whether it was done."""
        usual = self.usual.get((kind, name), 0.2)
        killers: list[threading.Thread] = []

        def kill(after: float) -> None:
            time.sleep(after)
            self.cluster.kill(self.draw.randrange(2))
            self.cluster.start()

        def begin(longest: float) -> None:
            Aimed.at = None
            wait = self.draw.uniform(0.0, longest)
            killers.append(threading.Thread(target=kill, args=(wait,)))
            killers[0].start()

        began = time.monotonic()
        if kind == "commit":
            Aimed.kind, Aimed.at = "Forget", lambda: begin(0.004)
        else:
            begin(1.2 * usual)
        try:
            call()
        except ClusterError as error:
            self.told[f"{kind}: {type(error).__name__}"] += 1
            return False
        finally:
            took = time.monotonic() - began
            if not killers:  # nothing was to be overwritten
                begin(0.0)
            killers[0].join(2 * LIMIT)
        self.usual[kind, name] = min(2.0, 0.5 * (usual + took))
        self.told[kind] += 1
        return True


def drive(address: str, folder: str, name: str, seed: int, listed: bool, out: Any) -> None:
    """Be a driver: load or fit, then delete and save, one request after the other."""
    place, draw = Path(folder), random.Random(seed)
    with Client(address, timeout=LIMIT, set_as_default=False) as client:
        records = Records.from_dask(
            frame_of(place / "visits"), client=client, **USES,
            deleted=place / "deleted" if listed else None,
        )  # fmt: skip
        saved = place / "model"
        try:
            model = type(make(name)).load(saved, records) if saved.exists() else None
        except ArtifactError as error:
            out.send(("older", str(error)))
            model = None
        if model is None:
            model = make(name).fit(records)
            model.save(saved)
        out.send(("model", (model.digest(), model.ids_.tolist())))
        while len(model.ids_) > 300:
            gone = draw.sample(model.ids_.tolist(), draw.choice([1, 2, 5]))
            model.delete(gone)
            model.save(saved)
            out.send(("gone", gone))


def kill_drivers(cluster: Processes, folder: Path, kills: int, draw: random.Random,
                 deadline: float, told: Counter[str], listed: bool = True) -> int:  # fmt: skip
    """Kill drivers so many times; return how many were killed in time."""
    visits, done = Visits(), 0
    while done < kills and time.monotonic() < deadline:
        name = NAMES[done % len(NAMES)]
        with tempfile.TemporaryDirectory() as made:
            place = Path(made)
            (place / "visits").symlink_to(folder)
            acknowledged: set[Any] = set()
            for life in range(min(6, kills - done) + 1):
                hears, tells = forked().Pipe(duplex=False)
                driver = forked().Process(
                    target=drive,
                    args=(cluster.address, made, name, draw.randrange(2**32), listed, tells),
                    daemon=True,
                )
                driver.start()
                tells.close()
                what, said = _heard(hears)
                if what == "older":
                    told["driver: the model was older than the list"] += 1
                    if "expected those it was fitted on" not in said:
                        raise WrongError(f"a driver is told {said}")
                    what, said = _heard(hears)
                digest, ids = said
                if what != "model" or acknowledged & set(ids):
                    raise WrongError("a record whose deletion was acknowledged is back")
                twin = make(name).fit(visits.in_memory())
                twin.delete(sorted(set(visits.ids) - set(ids)))
                if twin.digest() != digest:
                    raise WrongError(f"{name} has another digest after a driver was killed")
                if life < min(6, kills - done):
                    _collect(hears, draw.uniform(0.0, 0.5), acknowledged)
                os.kill(driver.pid, signal.SIGKILL)
                driver.join(LIMIT)
                _collect(hears, 0.0, acknowledged)
            done += min(6, kills - done)
    told["driver"] += done
    return done


def _heard(hears: Any) -> Any:
    if not hears.poll(LIMIT):
        raise WrongError("a driver does not say what it has")
    try:
        return hears.recv()
    except EOFError:
        raise WrongError("a driver has ended with an error") from None


def _collect(hears: Any, seconds: float, acknowledged: set[Any]) -> None:
    """Hear for some time what was deleted."""
    until = time.monotonic() + seconds
    try:
        while hears.poll(max(0.0, until - time.monotonic())):
            acknowledged.update(hears.recv()[1])
    except (EOFError, OSError):
        return


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--kills", type=int, default=50, help="of each of the four kinds")
    parser.add_argument("--minutes", type=float, default=15.0)
    options = parser.parse_args(arguments)
    draw, began = random.Random(options.seed), time.monotonic()
    deadline = began + 60 * options.minutes
    counts = {}
    with (
        mock.patch.object(_dask, "DaskWorkers", Aimed),
        tempfile.TemporaryDirectory() as made,
        cluster_of(2, Path(made) / "workers") as cluster,
    ):
        folder = written(Path(made) / "visits")
        worker = Worker(cluster, folder, draw)
        try:
            for kind in ("fit", "delete", "commit"):
                counts[kind] = worker.run(kind, options.kills, deadline)
            counts["driver"] = kill_drivers(
                cluster, folder, options.kills, draw, deadline, worker.told
            )
        except WrongError as error:
            print(f"seed {options.seed}: {error}")
            return 1
    print(f"{counts} kills in {time.monotonic() - began:.0f} s; {dict(worker.told)}")
    if short := [kind for kind, count in counts.items() if count < options.kills]:
        print(f"too few kills in time: {', '.join(short)}")
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
