"""Draws of who stays, in many samples at once, as owners are chosen one by one (section 4.4)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from erasable.selection.staying._model import Bound


class Sampler:
    """Samples of which chosen records stay; each unit is drawn once.

    Each is drawn with numbers that depend on the record alone, not on when it is chosen: common
    random numbers, which make a difference between two selections one of the records, not of luck.
    Of two selections of other records that is not so; there numbers by the order of choice are
    common, with which as many stay of one as of the other.

    Parameters
    ----------
    bound : Bound
    n_samples : int
    random_state : int, sequence of int, Generator or None
    by_order : bool, default=False
        Whether numbers depend on when a record is chosen, not on which one it is.

    Examples
    --------
    >>> from erasable.selection import Independent
    >>> sampler = Sampler(Independent(0.5).bind(2), 4, 0)
    >>> sampler.add(1).shape, sampler.probability(0)
    ((4,), 0.5)
    """

    def __init__(
        self, bound: Bound, n_samples: int, random_state: Any = None, *, by_order: bool = False
    ) -> None:
        self.bound, self.n_samples, self.by_order = bound, n_samples, by_order
        self._seed = int(np.random.default_rng(random_state).integers(2**63))
        self._stayed = np.zeros((len(bound.laws), n_samples), dtype=np.int64)
        self._chosen = [0] * len(bound.laws)
        self._n_drawn = 0
        self._units: dict[int, NDArray[np.bool_]] = {}

    def probability(self, j: int) -> float | NDArray[np.float64]:
        """Return the probability that record j stays, given who of the others does.

        Returns
        -------
        float, or ndarray of shape (n_samples,)
        """
        unit = None if self.bound.unit is None else int(self.bound.unit[j])
        if unit in self._units:
            return self._units[unit].astype(np.float64)
        block = int(self.bound.block[j])
        if block < 0:
            return float(self.bound.probability[j])
        return self.bound.laws[block].next_stays(self._chosen[block], self._stayed[block])

    def add(self, j: int) -> NDArray[np.bool_]:
        """Choose record j; return in which samples it stays, shape (n_samples,)."""
        unit = j if self.bound.unit is None else int(self.bound.unit[j])
        if self.bound.unit is not None and unit in self._units:
            return self._units[unit]
        key = self._n_drawn if self.by_order else unit
        self._n_drawn += 1
        luck = np.random.default_rng([self._seed, key]).random(self.n_samples)
        stays: NDArray[np.bool_] = luck < self.probability(j)
        block = int(self.bound.block[j])
        if block >= 0:
            self._chosen[block] += 1
            self._stayed[block] += stays
        if self.bound.unit is not None:
            self._units[unit] = stays
        return stays
