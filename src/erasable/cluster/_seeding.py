"""Greedy k-means++ by exponential races, with deletion and addition of records.

A step draws candidates by races among the records, each with its squared distance to the seeds so
far as weight, and takes the candidate with the lowest potential (Arthur and Vassilvitskii 2007,
the greedy variant of scikit-learn). Potentials are sums of integers, from which a record is
subtracted exactly. A step is run again only when a candidate is deleted or another one leads.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from erasable.core.arrays import Flags, Floats, Ints
from erasable.core.tape import Stream
from erasable.core.threads import over_rows

from ._distances import Points, new_scratch
from ._seeding_kernels import admit, lower_and_sum, nearest_distance, race, retract

_NO_FLOATS = np.empty(0)
_NO_CANDIDATE = np.iinfo(np.int64).max


def quantum_for(tops: Ints, weights: Floats | None = None) -> float:
    """Return the factor that makes squared distances integers below 2**35.

    Values of column ``f`` lie within ``2**tops[f]`` of the origin, and weights are powers of two.
    So is the factor; sums of 2**27 such integers stay below 2**62.
    """
    bounds = 2 * (tops + 1)
    if weights is not None:
        bounds = bounds + np.frexp(weights)[1]
    widest = int(bounds.max()) + math.ceil(math.log2(tops.shape[0]))
    return math.ldexp(1.0, max(-1000, min(1000, 35 - widest)))


def metric_for(tops: Ints, weights: Floats) -> tuple[float, Floats]:
    """Return the quantum of the potentials, and the weights of the metric of the seeding.

    Weights are rounded down to powers of four, and so scales to powers of two, which rarely change:
    were the seeding done in the exact metric, every deletion would change every potential.
    """
    if weights.size == 0:
        return quantum_for(tops), weights
    exponents = np.frexp(weights)[1] - 1
    rounded: Floats = np.ldexp(1.0, exponents - exponents % 2)
    return quantum_for(tops, rounded), rounded


class Seeding:
    """The seeds of some points, with what is needed to know when they change."""

    def __init__(
        self,
        n_clusters: int,
        seed: int,
        quantum: float,
        weights: Floats | None = None,
        n_candidates: int | None = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.n_candidates = n_candidates or 2 + int(math.log(n_clusters))
        self.seed = np.uint64(seed)
        self.quantum = quantum
        self.weights = _NO_FLOATS if weights is None else weights
        self.chosen = np.full(n_clusters, -1, np.int64)  # (n_clusters,); positions of the seeds
        # (n_clusters, n_candidates); positions of the candidates of every step; the first step has
        # one, the rest is -1
        self.candidates = np.full((n_clusters, self.n_candidates), -1, np.int64)
        # (n_clusters, n_candidates); exact potentials of the candidates; the largest integer where
        # there is none
        self.potentials = np.full((n_clusters, self.n_candidates), _NO_CANDIDATE, np.int64)
        # (n_clusters, n_candidates); scores with which the candidates have won their races, which
        # records that come have to beat; negative where they are not known
        self.scores = np.full((n_clusters, self.n_candidates), -1.0)

    def fit(self, points: Points, live: Ints, n_jobs: int | None = None) -> None:
        """Choose seeds among the positions `live`, which are in order, in threads."""
        self._run_from(0, points, live, n_jobs)

    def change(
        self,
        points: Points,
        gone: Ints,
        come: Ints,
        live: Callable[[], Ints],
        n_jobs: int | None = None,
    ) -> tuple[bool, int]:
        """Take the positions `gone` out, and `come` in.

        The rows of `gone` are still readable; `live` is called only where steps must be run again.
        Return whether any seed is another record now, and how many steps were run again.
        """
        stands, lost = True, np.zeros(self.n_clusters, np.bool_)
        if come.size:
            stands = admit(
                points, come, self.seed, np.uint32(Stream.RACE), self.weights, self.quantum,
                self.chosen, self.candidates, self.potentials, self.scores, lost,
            )  # fmt: skip
        if gone.size and not retract(
            points, gone, self.weights, self.quantum, self.chosen, self.candidates, self.potentials
        ):
            stands = False
            lost |= np.any(np.isin(self.candidates, gone), axis=1)
        return (False, 0) if stands else self._rerun_steps(lost, points, live, n_jobs)

    def renumber(self, places: Ints) -> None:
        """Know that the record at each position is at another one now."""
        self.chosen = places[self.chosen]
        self.candidates = np.where(self.candidates < 0, -1, places[self.candidates])

    def _rerun_steps(
        self, lost: Flags, points: Points, live: Callable[[], Ints], n_jobs: int | None
    ) -> tuple[bool, int]:
        """Run the steps again whose candidates may be others, until a seed is another one."""
        steps = 0
        for step in range(self.n_clusters):
            before = self.chosen[step]
            potential = None
            if lost[step]:
                stay = live()
                potential = self._potential(step, points, stay, n_jobs)
                self._run_step(step, points, stay, potential, self._scratch(stay), n_jobs)
                steps += 1
            else:
                self.chosen[step] = self._leaders()[step]
            if self.chosen[step] != before:
                self._run_from(step + 1, points, live(), n_jobs, potential)
                return True, steps + self.n_clusters - step - 1
        return False, steps

    def _leaders(self) -> Ints:
        """Return, for every step, the candidate with the lowest potential, the first of equals."""
        best = self.potentials.argmin(axis=1)
        leaders: Ints = self.candidates[np.arange(self.n_clusters), best]
        return leaders

    def _run_from(
        self,
        step: int,
        points: Points,
        live: Ints,
        n_jobs: int | None,
        potential: Floats | None = None,
    ) -> None:
        """Run all steps from `step` on, given the potential that those before have left."""
        if step >= self.n_clusters:
            return
        if potential is None:
            potential = self._potential(step, points, live, n_jobs)
        reached = self._scratch(live)
        for later in range(step, self.n_clusters):
            self._run_step(later, points, live, potential, reached, n_jobs)

    def _scratch(self, live: Ints) -> dict[int, Floats]:
        """Room for what every candidate's potential would be, by the start of a block."""
        blocks = over_rows(lambda rows: rows, live.shape[0], 1)
        return {
            rows.start: np.empty((self.n_candidates, rows.stop - rows.start)) for rows in blocks
        }

    def _potential(self, step: int, points: Points, live: Ints, n_jobs: int | None) -> Floats:
        """Squared distance of every live position to the nearest of the first `step` seeds."""
        if step == 0:
            return np.full(live.shape[0], np.inf)
        out = np.empty(live.shape[0])
        centers = points.values(self.chosen[:step])

        def measure(rows: slice) -> None:
            scratch = new_scratch(points.X.shape[1], step)
            nearest_distance(points, live[rows], centers, self.weights, scratch, out[rows])

        for _ in over_rows(measure, live.shape[0], n_jobs):
            pass
        return out

    def _run_step(
        self,
        step: int,
        points: Points,
        live: Ints,
        potential: Floats,
        reached: dict[int, Floats],
        n_jobs: int | None,
    ) -> None:
        """Run one step; lower `potential` to what it is with the winner among the seeds."""
        n_entries = 1 if step == 0 else self.n_candidates
        stakes = np.ones(live.shape[0]) if step == 0 else potential
        picks = self._race(step, points, live, stakes, n_entries, n_jobs)
        self.candidates[step] = self.scores[step] = -1
        self.candidates[step, :n_entries] = picks
        centers = points.values(picks)

        def lower(rows: slice) -> Ints:
            sums, own = np.zeros(n_entries, np.int64), reached[rows.start]
            lower_and_sum(
                points, live[rows], centers, self.weights, self.quantum, potential[rows], own,
                sums, new_scratch(points.X.shape[1], n_entries),
            )  # fmt: skip
            return sums

        parts = list(over_rows(lower, live.shape[0], n_jobs))
        sums = parts[0] if len(parts) == 1 else np.sum(parts, axis=0)
        self.potentials[step] = _NO_CANDIDATE
        self.potentials[step, :n_entries] = sums
        best = int(np.argmin(sums))
        self.chosen[step] = picks[best]
        for start, own in reached.items():
            potential[start : start + own.shape[1]] = own[best]

    def _race(
        self,
        step: int,
        points: Points,
        live: Ints,
        stakes: Floats,
        n_entries: int,
        n_jobs: int | None,
    ) -> Ints:
        """Return the winners of a step's races: those among the winners in blocks of positions."""

        def run(entrants: Ints, own: Floats) -> Ints:
            picks = np.empty(n_entries, np.int64)
            race(
                points, entrants, own, self.seed, np.uint32(Stream.RACE), np.uint32(step * 64),
                n_entries, picks,
            )  # fmt: skip
            return picks

        blocks = over_rows(lambda rows: run(live[rows], stakes[rows]), live.shape[0], n_jobs)
        winners = list(blocks)
        if len(winners) == 1:
            return winners[0]
        best = np.unique(np.concatenate(winners))
        return run(best, stakes[np.searchsorted(live, best)])
