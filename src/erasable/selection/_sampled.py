"""Objectives by sample average: any utility, any staying model, expected or in the worst cases.

Once a record is chosen, it is drawn in which of many samples it stays. The gain of a further record
is averaged over the samples, weighted by the probability that it stays in each (section 4.4).
Nothing is drawn for a record that is not chosen: fewer draws and less noise than algorithm 1.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np

from erasable.core.arrays import Flags, Floats, Ints
from erasable.selection._functions import Queue, SetFunction, Sweep
from erasable.selection.staying._model import Sampler


class Samples(ABC):
    """A utility in many samples of who stays, each growing by the records that stay in it.

    Attributes
    ----------
    is_monotone : bool
        Whether no record ever adds less than 0. True by default.
    n_jobs : int or None
        Threads; see `erasable.core.threads.N_JOBS`.

    Examples
    --------
    >>> from erasable.selection import NearestNeighbor
    >>> samples = NearestNeighbor("precomputed").problem(np.eye(2)).samples(3, 1)
    >>> samples.gains(0)
    array([1., 1., 1.])
    """

    is_monotone = True
    n_jobs: int | None = None

    def prepare(self, items: Ints) -> None:
        """Prepare for the gains of some records, before others are added."""
        return None

    @abstractmethod
    def gains(self, j: int) -> Floats:
        """Return what record j would add in each sample, shape (n_samples,)."""

    def gains_in(self, j: int, which: Ints) -> Floats:
        """Return what record j would add in some of the samples, shape (n_which,)."""
        return self.gains(j)[which]

    @abstractmethod
    def add(self, j: int, stays: Flags) -> None:
        """Add record j to the samples in which it stays."""

    def totals(self, weights: Floats) -> Floats | None:
        """Return the weighted sum over samples of what each record would add.

        None where that is no cheaper than all the gains.
        """
        return None


class SampledFunction(SetFunction):
    """The expected utility, or with a `threshold` tau the expectation below it, by samples.

    With `threshold`, the value is ``tau - mean(max(0, tau - u)) / alpha``: its maximum over tau is
    the conditional value at risk (Rockafellar and Uryasev; equation 3). `values` has the utility in
    each sample, and `short` the samples that count: those below the threshold, or all where they
    may fall below it.
    """

    def __init__(
        self,
        samples: Samples,
        sampler: Sampler,
        n: int,
        *,
        threshold: float | None = None,
        alpha: float = 1.0,
    ) -> None:
        self.samples, self.sampler, self.n = samples, sampler, n
        self.threshold, self.alpha = threshold, alpha
        self.values = np.zeros(sampler.n_samples)
        self.short = self._below_threshold()

    def gains(self, items: Ints) -> Floats:
        """Return what each of some records would add on average, shape (n_items,)."""
        self.n_evaluations += len(items)
        self.samples.prepare(items)
        return np.array([self._gain(int(j)) for j in items])

    def _gain(self, j: int) -> float:
        probability = self.sampler.probability(j)
        if self.threshold is None:
            return float(np.mean(probability * self.samples.gains(j)))
        if not len(self.short):
            return 0.0
        if not isinstance(probability, float):
            probability = probability[self.short]
        missing = self.threshold - self.values[self.short]
        gain = np.minimum(self.samples.gains_in(j, self.short), missing)
        if not self.samples.is_monotone:
            gain -= np.minimum(0.0, missing)  # of those above the threshold only what falls below
        return float(np.sum(probability * gain)) / (self.alpha * len(self.values))

    def bounds(self, near_best: int | None) -> Floats:
        """Return upper bounds of mean gains, where samples know their totals.

        They are tight for records that add about as much as record `near_best`.
        """
        share, const = np.ones(len(self.values)), np.zeros(len(self.values))
        if self.threshold is not None:
            short = np.maximum(0.0, self.threshold - self.values)
            capped = short <= (0.0 if near_best is None else self.samples.gains(near_best))
            share = np.where(capped, 0.0, 1 / self.alpha)
            const = np.where(capped, short / self.alpha, 0.0)
        bound = self.sampler.bound
        out = np.empty(self.n)
        for block in np.unique(bound.block).tolist():
            here = np.flatnonzero(bound.block == block)
            stays = 1.0 if block < 0 else self.sampler.probability(int(here[0]))
            totals = self.samples.totals(share * stays)
            assert totals is not None
            out[here] = totals[here] + (const * stays).sum()
            if block < 0:
                out[here] *= bound.probability[here]
        return out / len(self.values)

    def queue(self, items: Ints, weights: Floats | None = None) -> Queue:
        """Return the records by gain times weight, for a lazy greedy choice."""
        alone = self.sampler.bound.unit is None
        if alone and self.samples.totals(np.zeros(len(self.values))) is not None:
            return BoundedQueue(self, items, weights)
        return super().queue(items, weights)

    def add(self, j: int, gain: float | None = None) -> None:
        """Choose a record, and draw in which samples it stays."""
        stays = self.sampler.add(j)
        which = np.flatnonzero(stays)
        self.values[which] += self.samples.gains_in(j, which)
        self.samples.add(j, stays)
        self.short = self._below_threshold()

    def _below_threshold(self) -> Ints:
        """Return which samples count; those at the threshold cannot gain, but may lose."""
        if self.threshold is None or not self.samples.is_monotone:
            return np.arange(len(self.values))
        return np.flatnonzero(self.values < self.threshold)

    @property
    def outcomes(self) -> Floats:
        """The values that are averaged, shape (n_samples,)."""
        if self.threshold is None:
            return self.values
        return self.threshold - np.maximum(0.0, self.threshold - self.values) / self.alpha

    @property
    def value(self) -> float:  # type: ignore[override]
        """The sample average."""
        return float(self.outcomes.mean())

    @property
    def standard_error(self) -> float:
        """The standard error of the value over samples."""
        return float(self.outcomes.std(ddof=1) / np.sqrt(len(self.values)))


def cvar(values: Floats, alpha: float) -> float:
    """Return the conditional value at risk: the mean of the worst share alpha (equation 2)."""
    ordered = np.sort(values)
    share = alpha * len(ordered)
    whole = int(share)
    total = ordered[:whole].sum()
    if whole < len(ordered):
        total += (share - whole) * ordered[whole]
    return float(total / share)


def error_of_cvar(values: Floats, alpha: float) -> float:
    """Return the standard error of a conditional value at risk, by its influence function."""
    ordered = np.sort(values)
    tau = ordered[min(len(ordered) - 1, int(alpha * len(ordered)))]
    outcomes = tau - np.maximum(0.0, tau - values) / alpha
    return float(outcomes.std(ddof=1) / np.sqrt(len(values)))


_ROUNDING = 1e-11  # bounds and gains are summed in another order


class BoundedQueue(Sweep):
    """Records by marginal gain, computed in the order of upper bounds while these are larger.

    It chooses as if every gain were computed. Ties go to the record that comes first.

    Where only shortfalls below a threshold count, record j adds ``min(short, g_j)`` in a sample.
    For any set A of samples,

        sum min(short, g_j) <= sum over A of short + sum outside of A of g_j

    and the second sum, over samples, is a weighted total. With A the samples in which a record that
    is nearly the best adds more than is short, the bound is close to the gain of every record that
    is nearly the best. Bounds from earlier rounds are far looser, because here a choice changes
    nearly every gain.
    """

    def __init__(
        self, function: SampledFunction, items: Ints, weights: Floats | None = None
    ) -> None:
        super().__init__(function, items, weights)
        self.sampled = function
        self.bounds: Floats | None = None
        self.known = np.full(len(items), np.nan)  # gains that were computed in this round
        self.near_best: int | None = None

    def pop(self) -> tuple[int, float]:
        if self.bounds is None:
            self.bounds = self._bounds()
        best, worth = -1, -np.inf
        while True:
            at = int(np.argmax(self.bounds))
            if self.bounds[at] <= worth + _ROUNDING * abs(worth):
                # The rest can at most tie; then the first record counts.
                first = self.bounds[:best] >= worth - _ROUNDING * abs(worth)
                unknown = np.flatnonzero(first & np.isnan(self.known[:best]))
                if not len(unknown):
                    break
                at = int(unknown[0])
            here = self._gain(at)
            if (here, -at) > (worth, -best):
                best, worth = at, here
        self.left[best] = False
        self.bounds[best] = -np.inf
        return int(self.items[best]), float(self.known[best])

    def _gain(self, at: int) -> float:
        """Return a gain times its weight, computed once in a round."""
        assert self.bounds is not None
        if np.isnan(self.known[at]):
            (self.known[at],) = self.sampled.gains(self.items[at : at + 1])
            self.bounds[at] = self.known[at] * self.weights[at]
        return float(self.bounds[at])

    def _bounds(self) -> Floats:
        """Return weighted upper bounds of the gains; minus infinity for records that are gone."""
        if self.near_best is None or self.sampled.threshold is not None:
            # These bounds find a nearly best record; those below are tight for such records.
            self.near_best = int(self.items[np.argmax(self._bounds_by(self.near_best))])
        return self._bounds_by(self.near_best)

    def _bounds_by(self, near_best: int | None) -> Floats:
        bounds = self.sampled.bounds(near_best)[self.items] * self.weights
        return np.where(self.left, bounds, -np.inf)

    def next_round(self) -> None:
        self.bounds = None
        self.known[:] = np.nan
