"""One k-means problem that deletes and adds: seeds, levels and files together.

`LloydRun` is a pure function of its records: what it holds after any changes, its files aside, is
what a new run on the records of now holds. Estimators are thin shells over it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from erasable.core._jit import at_hand
from erasable.core.arrays import Floats, Ints, Words
from erasable.core.deletion import Action
from erasable.core.threads import several

from ._distances import Points, Room, new_room
from ._filed_levels import descend_filed, file_all
from ._filing import hide
from ._layout import Files, Levels, Rule, grown, new_files, new_levels
from ._levels import descend
from ._passes import run_levels
from ._places import Placed
from ._seeding import Seeding

RuleFor: TypeAlias = Callable[[int], Rule]

_NO_FLOATS = np.empty(0)
_NO_POSITIONS = np.empty(0, np.int64)
_FIRST_LEVELS = 16  # levels there is room for at first; most runs end before
_PATIENCE = 4  # deletions of several records at once before a run is filed
_NOT_KEPT = ("_picks", "_room", "_read")
_PAIR_LIMIT = 16  # clusters up to which records are filed by pairs of clusters


def plain_rule(n_levels: int, shift: float = -1.0) -> Rule:
    """Return the rule of Lloyd's algorithm: means, stopped by `shift` (never if negative)."""
    return Rule(0.0, 0.0, np.zeros((n_levels, 0)), shift, _NO_FLOATS)


@dataclass(frozen=True)
class Report:
    """What a deletion or an addition did to a run.

    Attributes
    ----------
    action : {"updated", "resumed", "refit"}
        Changes were carried through; some step or level was computed anew; everything was.
    examined : int
        Record x level distances computed.
    flips : int
        Record x level labels that changed.
    passes : int
        Levels assigned anew.
    seeding_steps : int
        Steps of the seeding run again.
    """

    action: Action
    examined: int
    flips: int
    passes: int
    seeding_steps: int


class LloydRun(Placed):
    """A k-means run over some points, which can delete positions and take rows in.

    Parameters
    ----------
    points : Points
        The records.
    n_clusters, max_iter : int
        As in `KMeans`.
    seeding : Seeding
        Not fitted yet.
    weights : ndarray of shape (n_features,), optional
        Weights of the metric.
    """

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
        self._files: Files = new_files(0, 0, n_clusters, d, self._weights.size, self._pairs)
        self._filed = False
        self._followed = 0
        self._read = False
        self._used = 0
        self._picks = _NO_POSITIONS
        self._n_picked = 0
        self._room: Room = new_room(d, n_clusters)

    def _kept_attributes(self) -> dict[str, Any]:
        """Return what a file keeps: all but room to work in."""
        return {name: each for name, each in vars(self).items() if name not in _NOT_KEPT}

    def _after_reading(self) -> None:
        self._room = new_room(self.points.X.shape[1], self.n_clusters)
        self._picks = np.zeros(self.alive.size if self._filed else 0, np.int64)
        self._n_picked = 0
        self._read = True
        self._followed = _PATIENCE  # one that is kept will delete again

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
    ) -> Report:
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
    ) -> Report:
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

    def _change(
        self,
        gone: Ints,
        come: Ints,
        metric: tuple[Floats | None, float | None, Floats | None],
        rule: RuleFor,
        n_jobs: int | None,
    ) -> Report:
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
            return Report("refit", examined, 0, self._built + 1, steps)
        if not self._filed and come.size == 0:
            self._file_if_it_pays(gone.shape[0], former)
        examined, flips, passes = self._descend((gone, come), rule, former, turned)
        self._forget(gone)
        action: Action = "resumed" if passes or steps else "updated"
        return Report(action, examined, flips, passes, steps)

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

    def _forget(self, gone: Ints) -> None:
        """Overwrite what accelerators hold of deleted positions; links of lists must stay."""
        used = self._used
        self.levels.labels[:used, gone] = 0
        self.levels.bounds[:used, gone] = 0.0
        for array in self._room:
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
        return at_hand(
            (file_all, (0, _NO_POSITIONS, 0, self._weights, self.levels, files)),
            (hide, (np.empty((0, d)), files.stamps, files.snapshots)),
            (
                descend_filed,
                (
                    self.points, self.alive, _NO_POSITIONS, _NO_POSITIONS, 0, 0, 0,
                    plain_rule(0), self._weights, False, False, self.levels, files,
                    _NO_POSITIONS, self._room, 0,
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
        """Run down the levels, given which positions have gone and come since then."""
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
                    self.levels, self._files, self._picks, self._room, start,
                )  # fmt: skip
            else:
                self._built, self.final, *counts = descend(
                    self.points, self.alive, *changes, self._built,
                    rule(n_levels), former, self._weights, turned, self._pairs,
                    self.levels, self._room, start,
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
