"""A k-means run: its seeds and levels, and in memory also the files of its records.

After any changes a `LloydRun` holds, its files aside, what a new run on the records of now holds.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from erasable.core._jit import is_compiled
from erasable.core._schema import Array, Fields, FieldType, Sizes, join, refuse
from erasable.core.arrays import Floats, Ints, Words
from erasable.core.deletion import Action
from erasable.core.grid import MAX_ROWS
from erasable.core.persistent import Persistent
from erasable.core.threads import over_rows, several

from ._distances import DistanceScratch, Points, new_scratch
from ._filed_levels import descend_filed, file_all, hide, renumber_files
from ._layout import Levels, RecordFiles, Rule, grown, new_files, new_levels
from ._levels import assign_block, count_at_risk, descend, movement_to, pays
from ._lloyd import lloyd
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


def assign_in_threads(
    t: int,
    new: bool,
    moved: bool,
    before: Floats,
    rule: Rule,
    weights: Floats,
    levels: Levels,
    points: Points,
    live: Ints,
    pairs: bool,
    n_jobs: int | None,
) -> tuple[int, int, int]:
    """Assign the positions `live` in a new level `t`; see `lloyd`."""
    n, source = live.shape[0], max(t - 1, 0)
    limits, factor = _NO_FLOATS, 1.0
    labels: NDArray[np.uint16] = levels.labels[source][: 0 if t == 0 else None]
    if t > 0:
        moves, stretch = movement_to(t, weights, pairs, levels)

        def at_risk(rows: slice) -> int:
            return count_at_risk(
                live[rows], moves.limits, levels.bounds[source], levels.links[source]
            )

        growth = levels.growth[source] * stretch
        k, d = levels.centers.shape[1:]
        if pays(sum(over_rows(at_risk, n, n_jobs)), n, k, d, growth):
            limits, factor = moves.limits, (1.0 - 1e-12) / stretch
        levels.growth[t] = growth if limits.size else 1.0

    def assign(rows: slice) -> tuple[Floats, Ints, int]:
        k, d = levels.centers.shape[1:]
        sums, counts = np.zeros((t + 1, k, d)), np.zeros((t + 1, k), np.int64)
        own = levels._replace(sums=sums, counts=counts)
        examined = assign_block(
            points, live[rows], weights, pairs, limits, factor, labels, source, t, own,
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
    return examined, 0, 1


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


class Terms(NamedTuple):
    """The metric of a run from now on, its rule and its threads; None: the metric stays."""

    rule: RuleFor = plain_rule
    n_jobs: int | None = 1
    weights: Floats | None = None
    quantum: float | None = None  # of the `Seeding`; where it changes, all steps are run again
    seeding_weights: Floats | None = None


SAME = Terms()


class Path(Persistent):
    """The seeds and levels of a run, wherever its records are."""

    def __init__(
        self, seeding: Seeding, max_iter: int, weights: Floats, n: int, n_features: int
    ) -> None:
        self.seeding = seeding
        self.n_clusters = k = seeding.n_clusters
        self.max_iter = max_iter
        # the last level that was computed; past `final` where a stop was decided by it
        self.built = -1
        self.final = 0
        self.levels: Levels = new_levels(min(max_iter + 1, _FIRST_LEVELS), n, k, n_features)
        self._weights = weights

    @property
    def centers(self) -> Floats:
        """Centroids of the model, shape (n_clusters, n_features), on the grid's origin."""
        centers: Floats = self.levels.centers[self.final]
        return centers

    def state(self) -> dict[str, Any]:
        """Return the seeds and the path of the run, as views that the next deletion changes.

        Seeds and candidates are keys, 0 for none; the path ends at the final level.
        """
        chosen, candidates = self._seed_keys()
        last = self.final + 1
        return {
            "seeds": {
                "chosen": chosen,
                "candidates": candidates,
                "potentials": self.seeding.potentials,
            },
            "path": {
                "centers": self.levels.centers[:last],
                "sums": self.levels.sums[:last],
                "counts": self.levels.counts[:last],
            },
        }

    def _seed_keys(self) -> tuple[Words, Words]:
        """Return the keys of the seeds, and of the candidates."""
        raise NotImplementedError(f"{type(self).__name__} does not implement _seed_keys()")

    def _process(
        self, descend: Callable[[int, Rule], tuple[int, int, int, int, int]], rule: RuleFor
    ) -> list[int]:
        """Call `descend` with the first level and the rule, until the run has levels enough.

        Return how many distances were examined, labels changed, and levels assigned anew.
        """
        totals = np.zeros(3, np.int64)
        start = 0
        while True:
            n_levels = self.levels.centers.shape[0]
            self.built, self.final, *counts = descend(start, rule(n_levels))
            totals += counts
            if self.final < 0 and n_levels == self.max_iter + 1:
                self.final = self.built
            if self.final >= 0:
                return [int(each) for each in totals]
            start = n_levels
            self._grow(min(2 * n_levels, self.max_iter + 1))

    def _grow(self, n_levels: int) -> None:
        self.levels = grown(self.levels, n_levels)

    def _clear_unused(self) -> None:
        for unused in (self.levels.centers, self.levels.sums):
            unused[self.built + 1 :] = 0.0


class LloydRun(Path):
    """A k-means run over some points, which can delete rows and take rows in."""

    def __init__(
        self, points: Points, max_iter: int, seeding: Seeding, weights: Floats | None = None
    ) -> None:
        n, d = points.rows.shape[0], points.X.shape[1]
        super().__init__(seeding, max_iter, _NO_FLOATS if weights is None else weights, n, d)
        k = self.n_clusters
        self.points = points
        self.alive = np.ones(n, np.bool_)
        self.n_alive = n
        self._n_placed = self._n_sorted = n
        self._pairs = k <= _PAIR_LIMIT and n >= 100 * k**2
        self._clock = 0
        self._files: RecordFiles = new_files(0, 0, k, d, self._weights.size, self._pairs)
        self._filed = False
        self._followed = 0
        self._read = False
        self._used = 0
        self._picks = _NO_POSITIONS
        self._n_picked = 0
        self._scratch: DistanceScratch = new_scratch(d, k)

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
    def labels(self) -> NDArray[np.uint16]:
        """Labels of all positions; those of deleted positions mean nothing."""
        labels: NDArray[np.uint16] = self.levels.labels[self.final]
        return labels

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

    def fit(self, terms: Terms = SAME) -> LloydRun:
        """Run from scratch on the positions that are left.

        The rule is called and not kept: it refers to the model, which holds this run, and only the
        garbage collector would free such a cycle, with its records.
        """
        live = self.live()
        self.seeding.fit(self.points, live, terms.n_jobs)
        self._start(live, terms)
        return self

    def remove(self, rows: Ints, terms: Terms = SAME) -> RunReport:
        """Delete rows, which are still readable, and follow changes of the metric."""
        return self.exchange(rows, _NO_POSITIONS, terms)

    def exchange(self, leaving: Ints, rows: Ints, terms: Terms = SAME) -> RunReport:
        """Delete rows, which are still readable, and take others in, in one go; see `remove`."""
        self._make_room(rows.size)
        gone = self.positions(leaving)
        self.alive[gone] = False
        self.n_alive -= gone.size
        if rows.size and not self._filed:
            self._file_if_it_pays(rows.size, self._weights)
        come = self._take_places(rows)
        self._clock += 1
        changed, steps = self._reseed(gone, come, terms)
        former, turned = self._weights, False
        if terms.weights is not None:
            turned = not np.array_equal(terms.weights, former)
            self._weights = terms.weights
        if changed:
            examined = self._start(self.live(), terms)
            self._forget(gone)
            return RunReport("refit", examined, 0, self.built + 1, steps)
        if not self._filed and come.size == 0:
            self._file_if_it_pays(gone.size, former)
        examined, flips, passes = self._descend((gone, come), terms.rule, former, turned)
        self._forget(gone)
        action: Action = "resumed" if passes or steps else "updated"
        return RunReport(action, examined, flips, passes, steps)

    @property
    def n_passes(self) -> int:
        """Passes over all records that a fit made."""
        return self.built + 1

    def _seed_keys(self) -> tuple[Words, Words]:
        tried = self.seeding.candidates
        candidates = np.where(tried < 0, np.uint64(0), self._keys_at(np.maximum(tried, 0)))
        return self._keys_at(self.seeding.chosen), candidates

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
            renumber_files(places, self.alive, self.built, before, self.levels, self._files)
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

    def _reseed(self, gone: Ints, come: Ints, terms: Terms) -> tuple[bool, int]:
        """Bring the seeding up to date; return whether a seed changed, and the steps run."""
        seeding, quantum, weights = self.seeding, terms.quantum, terms.seeding_weights
        same = quantum is None or quantum == seeding.quantum
        if same and (weights is None or np.array_equal(weights, seeding.weights)):
            return seeding.change(self.points, gone, come, self.live, terms.n_jobs)
        before = seeding.chosen.copy()
        seeding.quantum = seeding.quantum if quantum is None else quantum
        seeding.weights = seeding.weights if weights is None else weights
        seeding.fit(self.points, self.live(), terms.n_jobs)
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
        self._clear_unused()
        if gone.size == 0:
            return
        if self._filed:
            hide(self.points.values(gone), self._files.stamps[:used], self._files.snapshots[:used])
        else:
            self.levels.links[:used, gone] = 0

    def _start(self, live: Ints, terms: Terms) -> int:
        k, d = self.levels.centers.shape[1:]
        self.levels.centers[0] = self.points.values(self.seeding.chosen)
        self.built = -1
        self._filed = False
        self._followed = 0
        if self._files.head.size > 0:
            self._files = new_files(0, 0, k, d, self._weights.size, self._pairs)
        nobody = (_NO_POSITIONS, _NO_POSITIONS)
        return self._descend(nobody, terms.rule, self._weights, n_jobs=terms.n_jobs)[0]

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
        file_all(self.built, self.live(), self._clock, weights, self.levels, self._files)
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
        """Process the levels: in threads, or with bounds (`_filed_levels`), or without these."""
        live = self.live() if self.built < 0 and several(self.n_alive, n_jobs) else None

        def run_down(start: int, rule: Rule) -> tuple[int, int, int, int, int]:
            if live is not None:
                return lloyd(assign_in_threads)(
                    start, -1, False, rule, self._weights, self.levels,
                    self.points, live, self._pairs, n_jobs,
                )  # fmt: skip
            if self._filed:
                return descend_filed(
                    self.points, self.alive, *changes, self.n_alive, self._clock, self.built,
                    rule, self._weights, turned, self._pairs,
                    self.levels, self._files, self._picks, self._scratch, start,
                )  # fmt: skip
            return descend(
                self.points, self.alive, *changes, self.built,
                rule, former, self._weights, turned, self._pairs,
                self.levels, self._scratch, start,
            )  # fmt: skip

        examined, flips, passes = self._process(run_down, rule)
        self._used = max(self._used, self.built + 1)
        self._n_picked = self._picks.size if passes else min(examined, self._picks.size)
        return examined, flips, passes

    def _grow(self, n_levels: int) -> None:
        super()._grow(n_levels)
        if self._filed:
            self._files = grown(self._files, n_levels)
