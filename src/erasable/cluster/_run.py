"""A k-means run in memory that deletes and adds: seeds, levels and files of records.

After any changes a `LloydRun` holds, its files aside, what a new run on the records of now holds.
It includes the threaded passes of a fit and the schema of its state.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from erasable.core._jit import is_compiled
from erasable.core._schema import Array, Fields, FieldType, Sizes, join, refuse
from erasable.core.arrays import Floats, Ints, Words
from erasable.core.deletion import Action
from erasable.core.grid import MAX_ROWS
from erasable.core.persistent import Persistent
from erasable.core.threads import over_rows, several

from . import _pass_kernels as kernels
from ._distances import DistanceScratch, Points, new_scratch
from ._filed_levels import descend_filed, file_all, renumber_files
from ._filing import hide
from ._layout import Levels, RecordFiles, Rule, grown, new_files, new_levels
from ._levels import descend
from ._seeding import Seeding

_SPARE = 8  # one position in so many is free after an enlargement
_LEAST_SPARE = 16
FARTHEST = 2.0**490  # of a centroid from the origin of the grid: beyond all records
_FIRST_LEVELS = 16  # levels for which memory is allocated at first; most runs end before
_PATIENCE = 4  # deletions of several records at once before a run is filed
_PAIR_LIMIT = 16  # clusters up to which records are filed by pairs of clusters
_NOT_SAVED = ("_picks", "_scratch", "_read")
_NO_FLOATS = np.empty(0)
_NO_POSITIONS = np.empty(0, np.int64)

RuleFor: TypeAlias = Callable[[int], Rule]


def run_levels(
    points: Points,
    live: Ints,
    rule: Rule,
    weights: Floats,
    pairs: bool,
    levels: Levels,
    start: int,
    n_jobs: int | None,
) -> tuple[int, int, int, int, int]:
    """Run Lloyd's algorithm from level `start` on, in threads; see `descend`."""
    n_levels = levels.centers.shape[0]
    plain = rule.shift < 0.0 and rule.squares.size == 0
    examined = 0
    for t in range(start, n_levels):
        if t > 0 and kernels.begin_level(t, rule, levels) and plain:
            return t - 1, t - 1, examined, 0, t - start
        examined += _assign(t, points, live, weights, pairs, levels, n_jobs)
        final = kernels.end_level(t, rule, weights, levels)
        if final >= 0:
            return t, final, examined, 0, t + 1 - start
    return n_levels - 1, -1, examined, 0, n_levels - start


def _assign(
    t: int,
    points: Points,
    live: Ints,
    weights: Floats,
    pairs: bool,
    levels: Levels,
    n_jobs: int | None,
) -> int:
    """Assign every live position at level `t`; return how many distances were computed."""
    n, source = live.shape[0], max(t - 1, 0)
    limits, factor = _NO_FLOATS, 1.0
    before: NDArray[np.uint16] = levels.labels[source][: 0 if t == 0 else None]
    if t > 0:
        moves, stretch = kernels.movement_to(t, weights, pairs, levels)

        def at_risk(rows: slice) -> int:
            return kernels.count_at_risk(
                live[rows], moves.limits, levels.bounds[source], levels.links[source]
            )

        growth = levels.growth[source] * stretch
        k, d = levels.centers.shape[1:]
        if kernels.pays(sum(over_rows(at_risk, n, n_jobs)), n, k, d, growth):
            limits, factor = moves.limits, (1.0 - 1e-12) / stretch
        levels.growth[t] = growth if limits.size else 1.0

    def assign(rows: slice) -> tuple[Floats, Ints, int]:
        k, d = levels.centers.shape[1:]
        sums, counts = np.zeros((t + 1, k, d)), np.zeros((t + 1, k), np.int64)
        own = levels._replace(sums=sums, counts=counts)
        examined = kernels.assign_block(
            points, live[rows], weights, pairs, limits, factor, before, source, t, own,
            new_scratch(d, k),
        )  # fmt: skip
        return sums[t], counts[t], examined

    levels.sums[t] = levels.sums[source] if t > 0 else 0.0
    levels.counts[t] = levels.counts[source] if t > 0 else 0
    examined = 0
    for sums, counts, n_examined in over_rows(assign, n, n_jobs):
        levels.sums[t] += sums
        levels.counts[t] += counts
        examined += n_examined
    return examined


def run_schema(n_clusters: str | int, max_iter: int) -> dict[str, FieldType]:
    """Return the parts for what `LloydRun.state` gives; a `str` of clusters names a dimension."""

    def end_in_time(value: dict[str, Any], at: str, sizes: Sizes) -> None:
        levels = value["counts"].shape[0]
        if not 1 <= levels <= max_iter + 1:
            refuse(join(at, "counts"), f"{levels} levels", f"1 to {max_iter + 1}")

    def draw_candidates(value: dict[str, Any], at: str, sizes: Sizes) -> None:
        k, tried = value["candidates"].shape
        if k == 0 or tried != 2 + int(math.log(k)):
            refuse(join(at, "candidates"), value["candidates"], "as many as are drawn")

    levels = "n_levels"
    farthest = float(MAX_ROWS) * FARTHEST
    path = {
        "centers": Array("float64", (levels, n_clusters, "n_features"), -FARTHEST, FARTHEST),
        "counts": Array("int64", (levels, n_clusters), least=0),
        "sums": Array("float64", (levels, n_clusters, "n_features"), -farthest, farthest),
    }
    seeds = {
        "candidates": Array("uint64", (n_clusters, "n_candidates")),
        "chosen": Array("uint64", (n_clusters,)),
        "potentials": Array("int64", (n_clusters, "n_candidates")),
    }
    return {
        "path": Fields(path, relations=(end_in_time,)),
        "seeds": Fields(seeds, relations=(draw_candidates,)),
    }


class NodeSchema(FieldType):
    """The run of a node of a tree, whose dimensions are its own, or nothing."""

    def __init__(self, max_iter: int) -> None:
        self._run = Fields(run_schema("n_clusters", max_iter))

    def check(self, value: Any, at: str, sizes: Sizes) -> None:
        """See `FieldType.check`."""
        if value != {}:
            self._run.check(value, at, {"n_features": sizes["n_features"]})


def plain_rule(n_levels: int, shift: float = -1.0) -> Rule:
    """Return the rule of Lloyd's algorithm: means, stopped by `shift` (never if negative)."""
    return Rule(0.0, 0.0, np.zeros((n_levels, 0)), shift, _NO_FLOATS)


@dataclass(frozen=True)
class RunReport:
    """The effect of a deletion or an addition on a run."""

    # "updated": changes were carried through; "resumed": some step or level was computed anew;
    # "refit": everything was
    action: Action
    examined: int  # record x level distances computed
    flips: int  # record x level labels that changed
    passes: int  # levels assigned anew
    seeding_steps: int  # steps of the seeding run again


class LloydRun(Persistent):
    """A k-means run over some points, which can delete positions and take rows in."""

    def __init__(
        self,
        points: Points,
        n_clusters: int,
        max_iter: int,
        seeding: Seeding,
        weights: Floats | None = None,
    ) -> None:
        n, d = points.rows.shape[0], points.X.shape[1]
        self.points = points
        self.n_clusters = n_clusters
        self.seeding = seeding
        self.alive = np.ones(n, np.bool_)
        self.n_alive = n
        self._n_placed = self._n_sorted = n
        self.final = 0
        self.max_iter = max_iter
        self.levels: Levels = new_levels(min(max_iter + 1, _FIRST_LEVELS), n, n_clusters, d)
        self._weights = _NO_FLOATS if weights is None else weights
        self._pairs = n_clusters <= _PAIR_LIMIT and n >= 100 * n_clusters**2
        self._built = -1
        self._clock = 0
        self._files: RecordFiles = new_files(0, 0, n_clusters, d, self._weights.size, self._pairs)
        self._filed = False
        self._followed = 0
        self._read = False
        self._used = 0
        self._picks = _NO_POSITIONS
        self._n_picked = 0
        self._scratch: DistanceScratch = new_scratch(d, n_clusters)

    def _kept_attributes(self) -> dict[str, Any]:
        """Return the attributes that are saved: all but scratch memory."""
        return {name: each for name, each in vars(self).items() if name not in _NOT_SAVED}

    def _after_reading(self) -> None:
        self._scratch = new_scratch(self.points.X.shape[1], self.n_clusters)
        self._picks = np.zeros(self.alive.size if self._filed else 0, np.int64)
        self._n_picked = 0
        self._read = True
        self._followed = _PATIENCE  # a run that was saved will delete again

    @property
    def centers(self) -> Floats:
        """Centroids of the model, shape (n_clusters, n_features), on the grid's origin."""
        centers: Floats = self.levels.centers[self.final]
        return centers

    @property
    def labels(self) -> NDArray[np.uint16]:
        """Labels of all positions; those of deleted positions mean nothing."""
        labels: NDArray[np.uint16] = self.levels.labels[self.final]
        return labels

    @property
    def built(self) -> int:
        """The last level that was computed; past `final` where a stop was decided by it."""
        return self._built

    def live(self) -> Ints:
        """Return the positions that are left."""
        return np.flatnonzero(self.alive)

    def positions(self, rows: Ints) -> Ints:
        """Return the positions of rows that are left."""
        initial = self.points.rows[: self._n_sorted]
        if initial.size == self.points.X.shape[0]:
            found = rows.copy()
        else:
            found = np.minimum(np.searchsorted(initial, rows), max(initial.size - 1, 0))
        if self._n_placed == self._n_sorted:
            return found
        later = ~self.alive[found] | (self.points.rows[found] != rows)
        if later.any():
            others = self._n_sorted + np.flatnonzero(self.alive[self._n_sorted : self._n_placed])
            order = others[np.argsort(self.points.rows[others])]
            found[later] = order[np.searchsorted(self.points.rows[order], rows[later])]
        return found

    def show(self, X: NDArray[Any], keys: Words) -> None:
        """Refer to the rows where they are now, beside others."""
        self.points = self.points._replace(X=X, keys=keys)

    def fit(self, rule: RuleFor = plain_rule, n_jobs: int | None = 1) -> LloydRun:
        """Run from scratch on the positions that are left.

        `rule` is called and not kept: it refers to the model, which holds this run, and only the
        garbage collector would free such a cycle, with its records.
        """
        live = self.live()
        self.seeding.fit(self.points, live, n_jobs)
        self._start(live, rule, n_jobs)
        return self

    def remove(
        self,
        gone: Ints,
        weights: Floats | None = None,
        quantum: float | None = None,
        seeding_weights: Floats | None = None,
        rule: RuleFor = plain_rule,
        n_jobs: int | None = 1,
    ) -> RunReport:
        """Delete positions, whose rows are still readable, and follow changes of the metric.

        `weights` are the metric's from now on, `quantum` and `seeding_weights` those of the
        `Seeding`; when these change, all its steps are run again.
        """
        self.alive[gone] = False
        self.n_alive -= gone.shape[0]
        return self._change(gone, _NO_POSITIONS, (weights, quantum, seeding_weights), rule, n_jobs)

    def exchange(
        self,
        leaving: Ints,
        rows: Ints,
        metric: tuple[Floats | None, float | None, Floats | None] = (None, None, None),
        rule: RuleFor = plain_rule,
        n_jobs: int | None = 1,
    ) -> RunReport:
        """Delete rows, which are still readable, and take others in, in one go; see `remove`.

        `metric` are its `weights`, `quantum` and `seeding_weights`.
        """
        self._make_room(rows.size)
        gone = self.positions(leaving)
        self.alive[gone] = False
        self.n_alive -= gone.shape[0]
        if not self._filed:
            self._file_if_it_pays(rows.size, self._weights)
        return self._change(gone, self._take_places(rows), metric, rule, n_jobs)

    def state(self) -> dict[str, Any]:
        """Return the seeds and the path of the run, as views that the next deletion changes.

        Seeds and candidates are keys, 0 for none; the path ends at the final level.
        """
        tried = self.seeding.candidates
        last = self.final + 1
        return {
            "seeds": {
                "chosen": self._keys_at(self.seeding.chosen),
                "candidates": np.where(
                    tried < 0, np.uint64(0), self._keys_at(np.maximum(tried, 0))
                ),
                "potentials": self.seeding.potentials,
            },
            "path": {
                "centers": self.levels.centers[:last],
                "sums": self.levels.sums[:last],
                "counts": self.levels.counts[:last],
            },
        }

    def _keys_at(self, positions: Ints) -> Words:
        return self.points.keys[self.points.rows[positions]]

    def _make_room(self, n_new: int) -> None:
        """Have `n_new` free positions at the end; those of deleted records may be given up."""
        if self._n_placed + n_new <= self.alive.size:
            return
        live = self.live()
        rows = self.points.rows[live]
        order = np.argsort(rows)
        live, rows = live[order], rows[order]
        n = live.size
        size = n + n_new + max(_LEAST_SPARE, (n + n_new) // _SPARE)
        places = np.zeros(self.alive.size, np.int64)
        places[live] = np.arange(n)
        before = self.levels
        per_record = {
            name: np.zeros((array.shape[0], size), array.dtype)
            for name, array in before._asdict().items()
            if name in ("labels", "bounds", "links")
        }
        for name, array in per_record.items():
            array[:, :n] = getattr(before, name)[:, live]
        self.levels = before._replace(**per_record)
        if self._filed:
            renumber_files(places, self.alive, self._built, before, self.levels, self._files)
        self.seeding.renumber(places)
        self.points = self.points._replace(rows=np.zeros(size, np.int64))
        self.points.rows[:n] = rows
        self.alive = np.arange(size) < n
        self._picks = np.zeros(size if self._picks.size else 0, np.int64)
        self._n_placed = self._n_sorted = n

    def _take_places(self, rows: Ints) -> Ints:
        """Return positions for rows that come, which are alive from now on."""
        come = np.arange(self._n_placed, self._n_placed + rows.size)
        self.points.rows[come] = rows
        self.alive[come] = True
        self.n_alive += rows.size
        self._n_placed += rows.size
        return come

    def _change(
        self,
        gone: Ints,
        come: Ints,
        metric: tuple[Floats | None, float | None, Floats | None],
        rule: RuleFor,
        n_jobs: int | None,
    ) -> RunReport:
        weights, quantum, seeding_weights = metric
        self._clock += 1
        changed, steps = self._reseed(gone, come, quantum, seeding_weights, n_jobs)
        former, turned = self._weights, False
        if weights is not None:
            turned = not np.array_equal(weights, former)
            self._weights = weights
        if changed:
            examined = self._start(self.live(), rule, n_jobs)
            self._forget(gone)
            return RunReport("refit", examined, 0, self._built + 1, steps)
        if not self._filed and come.size == 0:
            self._file_if_it_pays(gone.shape[0], former)
        examined, flips, passes = self._descend((gone, come), rule, former, turned)
        self._forget(gone)
        action: Action = "resumed" if passes or steps else "updated"
        return RunReport(action, examined, flips, passes, steps)

    def _reseed(
        self,
        gone: Ints,
        come: Ints,
        quantum: float | None,
        weights: Floats | None,
        n_jobs: int | None,
    ) -> tuple[bool, int]:
        """Bring the seeding up to date; return whether a seed changed, and the steps run."""
        seeding = self.seeding
        same = quantum is None or quantum == seeding.quantum
        if same and (weights is None or np.array_equal(weights, seeding.weights)):
            return seeding.change(self.points, gone, come, self.live, n_jobs)
        before = seeding.chosen.copy()
        seeding.quantum = seeding.quantum if quantum is None else quantum
        seeding.weights = seeding.weights if weights is None else weights
        seeding.fit(self.points, self.live(), n_jobs)
        return not np.array_equal(before, seeding.chosen), self.n_clusters

    def _forget(self, gone: Ints) -> None:
        """Overwrite what accelerators hold of deleted positions; links of lists must stay."""
        used = self._used
        self.levels.labels[:used, gone] = 0
        self.levels.bounds[:used, gone] = 0.0
        for array in self._scratch:
            array[:] = 0.0
        self._picks[: self._n_picked] = 0
        self._n_picked = 0
        for unused in (self.levels.centers, self.levels.sums):
            unused[self._built + 1 :] = 0.0
        if gone.size == 0:
            return
        if self._filed:
            hide(self.points.values(gone), self._files.stamps[:used], self._files.snapshots[:used])
        else:
            self.levels.links[:used, gone] = 0

    def _start(self, live: Ints, rule: RuleFor, n_jobs: int | None) -> int:
        k, d = self.levels.centers.shape[1:]
        self.levels.centers[0] = self.points.values(self.seeding.chosen)
        self._built = -1
        self._filed = False
        self._followed = 0
        if self._files.head.size > 0:
            self._files = new_files(0, 0, k, d, self._weights.size, self._pairs)
        nobody = (_NO_POSITIONS, _NO_POSITIONS)
        return self._descend(nobody, rule, self._weights, n_jobs=n_jobs)[0]

    def _file_if_it_pays(self, n_gone: int, weights: Floats) -> None:
        """File the records where single deletions, or many others, are to be expected.

        Filing costs as much as following the levels a few times. While its kernels compile, which
        takes seconds, levels are followed. A run that is read from a file does not wait: in a
        process that deletes once, it would never be filed.
        """
        if n_gone > 1 and self._followed < _PATIENCE:
            self._followed += 1
            return
        if not self._read and not self._compiled():
            return
        n_levels, n = self.levels.labels.shape
        k, d = self.levels.centers.shape[1:]
        self._files = new_files(n_levels, n, k, d, weights.size, self._pairs)
        self._picks = np.zeros(n, np.int64)
        file_all(self._built, self.live(), self._clock, weights, self.levels, self._files)
        self._filed = True

    def _compiled(self) -> bool:
        """Tell whether filed levels can be used at once; they are compiled in the background."""
        k, d = self.levels.centers.shape[1:]
        files = new_files(0, 0, k, d, self._weights.size, self._pairs)
        return is_compiled(
            (file_all, (0, _NO_POSITIONS, 0, self._weights, self.levels, files)),
            (hide, (np.empty((0, d)), files.stamps, files.snapshots)),
            (
                descend_filed,
                (
                    self.points, self.alive, _NO_POSITIONS, _NO_POSITIONS, 0, 0, 0,
                    plain_rule(0), self._weights, False, False, self.levels, files,
                    _NO_POSITIONS, self._scratch, 0,
                ),
            ),
        )  # fmt: skip

    def _descend(
        self,
        changes: tuple[Ints, Ints],
        rule: RuleFor,
        former: Floats,
        turned: bool = False,
        n_jobs: int | None = 1,
    ) -> tuple[int, int, int]:
        """Run down the levels: in threads, or with bounds (`_filed_levels`), or without these."""
        totals = np.zeros(3, np.int64)
        start = 0
        live = self.live() if self._built < 0 and several(self.n_alive, n_jobs) else None
        while True:
            n_levels = self.levels.labels.shape[0]
            if live is not None:
                self._built, self.final, *counts = run_levels(
                    self.points, live, rule(n_levels), self._weights, self._pairs, self.levels,
                    start, n_jobs,
                )  # fmt: skip
            elif self._filed:
                self._built, self.final, *counts = descend_filed(
                    self.points, self.alive, *changes, self.n_alive, self._clock, self._built,
                    rule(n_levels), self._weights, turned, self._pairs,
                    self.levels, self._files, self._picks, self._scratch, start,
                )  # fmt: skip
            else:
                self._built, self.final, *counts = descend(
                    self.points, self.alive, *changes, self._built,
                    rule(n_levels), former, self._weights, turned, self._pairs,
                    self.levels, self._scratch, start,
                )  # fmt: skip
            totals += counts
            if self.final >= 0:
                break
            if n_levels == self.max_iter + 1:
                self.final = self._built
                break
            start = n_levels
            self._grow(min(2 * n_levels, self.max_iter + 1))
        self._used = max(self._used, self._built + 1)
        examined, flips, passes = totals.tolist()
        self._n_picked = self._picks.size if passes else min(examined, self._picks.size)
        return examined, flips, passes

    def _grow(self, n_levels: int) -> None:
        self.levels = grown(self.levels, n_levels)
        if self._filed:
            self._files = grown(self._files, n_levels)
