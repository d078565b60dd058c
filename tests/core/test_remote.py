"""Whatever lies on however many workers, models are those of records in memory."""

from __future__ import annotations

import copy
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from effort import examples
from erasable import Records
from erasable.core.errors import ClusterError, InvalidDataError, InvalidInputError
from erasable.core.remote._asking import Forget, RunPass
from erasable.core.remote._matrix import Call, hidden, shown
from erasable.naive_bayes import GaussianNB
from simulated_workers import Simulated, Slice, even, spread
from visits_table import BLOCKWISE, OF_COUNTS, N, Visits, live, make

FEW = ["GaussianNB", "KMeans", "Ridge"]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", BLOCKWISE)
@pytest.mark.parametrize(("n_workers", "narrow", "parts"), [(1, False, 13), (3, True, 13)])
def test_digests_are_those_of_memory(
    name: str, n_workers: int, narrow: bool, parts: int, tmp_path: Path
) -> None:
    visits = Visits(counts=name in OF_COUNTS, narrow=narrow)
    workers = Simulated(n_workers)
    model = make(name).fit(spread(visits.table, even(N, parts), workers))
    twin = make(name).fit(visits.in_memory())
    assert model.digest() == twin.digest()
    for gone in visits.requests():
        gone = live(model, gone)
        for each in (model, twin):
            each.delete(gone)
        assert model.digest() == twin.digest()
    for each in (model, twin):
        each.delete(groups=[100])
    assert model.digest() == twin.digest()
    model.save(tmp_path / "spread")
    twin.save(tmp_path / "memory")
    assert (tmp_path / "spread").read_bytes() == (tmp_path / "memory").read_bytes()


def test_shards_are_learned_by_workers() -> None:
    """A deletion has one of them learned again; what workers say is what the model is."""
    visits, workers = Visits(), Simulated(3)
    model = make("ShardedClassifier").fit(spread(visits.table, even(N, 13), workers))
    assert workers.asked["Call"] == 3
    model.delete(groups=[5])
    assert workers.asked["Call"] == 4
    before = model.digest()
    real = workers.ask

    def ask(jobs: Any, aside: bool = False) -> Any:
        """Answer for each member what the first has learned."""
        found = real(jobs, aside)
        if all(isinstance(job, Call) for job in jobs.values()):
            pad = next(iter(jobs.values())).pad
            first = shown(next(iter(found.values()))[0], pad, 0)
            found = {
                name: {number: hidden(first, pad, number) for number in each}
                for name, each in found.items()
            }
        return found

    workers.ask = ask  # type: ignore[method-assign]
    again = make("ShardedClassifier").fit(model._held.records)
    assert again.digest() != before


def spread_visits(visits: Visits, workers: Simulated, parts: int = 13) -> Records:
    return spread(visits.table, even(N, parts), workers)


@pytest.mark.parametrize("name", ["GaussianNB", "KMeans", "Ridge", "StandardScaler"])
@pytest.mark.parametrize("seed", range(examples(12)))
def test_workers_may_die_at_any_job(name: str, seed: int) -> None:
    """Blocks are read again by others, without what was deleted; fits and deletions go on."""
    rng = np.random.default_rng(seed)
    visits, workers = Visits(), Simulated(3)
    records = spread_visits(visits, workers)
    killed = workers.die(0.04, seed)
    model, twin = make(name).fit(records), make(name).fit(visits.in_memory())
    assert model.digest() == twin.digest()
    for gone in [visits.furthest, *(rng.choice(visits.ids, 7) for _ in range(4))]:
        gone = live(model, gone)
        for each in (model, twin):
            each.delete(gone)
        assert model.digest() == twin.digest()
    assert killed
    workers.before = workers.after = lambda name, job: True
    fresh = make(name).fit(records)  # in passes over all blocks
    assert fresh.digest() == twin.digest()
    left = set(live(model, visits.ids))
    bounds = [0, *even(N, 13), N]
    for number, held in workers.blocks().items():
        gone = [each not in left for each in visits.ids[bounds[number] : bounds[number + 1]]]
        assert not held.matrix[gone].any()
        assert held.matrix[~np.array(gone)].any(axis=1).all()


def test_a_cluster_that_loses_all_workers_again_and_again_changes_nothing() -> None:
    visits, workers = Visits(), Simulated(2)
    model = make("KMeans").fit(spread_visits(visits, workers))
    before = model.digest()
    workers.before = lambda name, job: False
    with pytest.raises(ClusterError, match="lost again and again while they had 1 partitions"):
        model.delete(visits.ids[:1])
    workers.before = workers.after
    assert model.digest() == before
    twin = make("KMeans").fit(visits.in_memory())
    for each in (model, twin):
        each.delete(visits.ids[:1])
    assert model.digest() == twin.digest()


@pytest.mark.parametrize("kind", ["Describe", "Keep", "Collect"])
def test_a_worker_that_dies_of_a_partition_names_the_size_to_try(kind: str) -> None:
    visits, workers = Visits(), Simulated(2)
    workers.before = lambda name, job: type(job).__name__ != kind
    with pytest.raises(ClusterError, match=r"2 workers were lost while .*partition_size=.100MB"):
        spread_visits(visits, workers)
    workers.before = workers.after
    assert len(spread_visits(visits, workers)) == N


def test_what_cannot_be_overwritten_at_once_is_before_the_next_pass() -> None:
    visits, workers = Visits(), Simulated(2)
    model = make("GaussianNB").fit(records := spread_visits(visits, workers))
    row = 200

    def is_there() -> bool:
        return any(np.isin(visits.frame.x2[row], held.matrix) for held in workers.blocks().values())

    def broken(name: str, job: Any) -> bool:
        if isinstance(job, Forget):
            raise OSError("no route")
        return True

    assert is_there()
    workers.before = broken
    with pytest.warns(RuntimeWarning, match="could not be overwritten on all workers"):
        model.delete(visits.ids[[row]])
    assert is_there()
    workers.before = workers.after
    make("StandardScaler").fit(records)
    assert not is_there()


def test_a_source_that_has_changed_is_refused() -> None:
    visits, workers = Visits(), Simulated(2)
    records = spread_visits(visits, workers)
    name = next(reversed(Slice.tables))
    changed = visits.table.set_column(4, "id", [visits.ids[::-1].tolist()])
    Slice.tables[name] = changed
    make("GaussianNB").fit(records)  # of what workers have
    workers.kill(workers.names[0])
    with pytest.raises(InvalidDataError, match="has other records than when they were first read"):
        make("GaussianNB").fit(records)
    Slice.tables[name] = visits.table
    twin = make("GaussianNB").fit(visits.in_memory())
    assert make("GaussianNB").fit(records).digest() == twin.digest()


def test_a_thousand_blocks_in_one_process() -> None:
    visits = Visits(n=5000)
    twins = {name: make(name).fit(Records(visits.frame, visits.y, ids=visits.ids)) for name in FEW}
    for n_workers, parts in [(1, 1000), (100, 1000)]:
        workers = Simulated(n_workers)
        records = spread(visits.table, even(5000, parts), workers)
        for name, twin in twins.items():
            assert make(name).fit(records).digest() == twin.digest()


def test_what_passes_send_and_how_often() -> None:
    """A pass is a trip; keys and targets are sent once, and rows that count as changes."""
    visits = Visits()
    workers = Simulated(2)
    model = make("KMeans", n_clusters=5).fit(records := spread_visits(visits, workers))
    steps, levels = 5, model._accelerator.run.built + 1
    workers.trips = workers.sent = 0
    make("KMeans", n_clusters=5).fit(records)
    assert 2 + steps < workers.trips <= 2 + steps + levels  # one for the grid, one for a seed
    keys = 8 * N
    assert workers.sent < keys + 5000 * workers.trips
    workers.trips = workers.sent = 0
    action = model.delete(live(model, visits.ids[[17]])).action
    assert workers.trips <= 2 + levels
    assert action in ("resumed", "updated")
    assert workers.sent < 5000 * workers.trips
    fitted = make("GaussianNB").fit(records)
    workers.trips = 0
    fitted.delete(live(fitted, visits.ids[300:303]))
    assert workers.trips == 1  # rows are read; other models still hold them


def test_what_is_printed_has_no_values() -> None:
    visits, workers = Visits(), Simulated(1)
    secret = "visit-"
    seen = []

    def look(name: str, job: Any) -> bool:
        seen.append(repr(job))
        if isinstance(job, RunPass):
            seen.extend(map(repr, [job.calls, job.pass_.row_arrays()]))
        return True

    workers.before = look
    make("KMeans").fit(spread_visits(visits, workers)).delete(visits.ids[:2])
    kinds = {each.partition("(")[0] for each in seen}
    assert kinds >= {"Describe", "Keep", "Collect", "RunPass", "Fetch", "Forget"}
    assert all(len(each) < 400 and secret not in each for each in seen)
    assert not any("." in each for each in seen)  # no number of the records is whole


def test_copies_are_refused_and_memory_is_offered(tmp_path: Path) -> None:
    visits, workers = Visits(), Simulated(2)
    records = spread_visits(visits, workers)
    model = make("GaussianNB").fit(records)
    model.delete(visits.ids[:3])
    for copied in (copy.deepcopy, pickle.dumps):
        for each in (model, records):
            with pytest.raises(InvalidInputError, match="cannot be copied or pickled"):
                copied(each)
    here = records.in_memory()
    assert make("GaussianNB").fit(here).digest() == model.digest()
    pickle.loads(pickle.dumps(make("GaussianNB").fit(here)))
    model.save(tmp_path / "model")
    loaded = GaussianNB.load(tmp_path / "model", here)
    again = GaussianNB.load(tmp_path / "model", records)
    for each in (model, loaded, again):
        each.delete(visits.ids[5:8])
    assert model.digest() == loaded.digest() == again.digest()
    model.save(tmp_path / "model", records=True)
    brought = GaussianNB.load(tmp_path / "model", True)
    for each in (model, brought):
        each.delete(visits.ids[10:12])
    assert model.digest() == brought.digest()


@pytest.mark.parametrize("name", ["GaussianNB", "KMeans"])
def test_what_others_hold_of_deleted_records_is_not_saved(name: str, tmp_path: Path) -> None:
    visits = Visits()
    records = spread_visits(visits, Simulated(2))
    model, other = make(name).fit(records), make(name).fit(records)
    model.delete(visits.ids[:3])
    model.save(tmp_path / "model", records=True)
    brought = type(model).load(tmp_path / "model", True)
    assert set(visits.ids[:3].tolist()) <= set(other.ids_)
    assert brought._attached().records.n_rows == len(other.ids_) - 3
    for each in (model, brought):
        each.delete(visits.ids[10:12])
    assert model.digest() == brought.digest()
