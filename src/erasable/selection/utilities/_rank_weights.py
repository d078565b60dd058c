"""How much each rank counts among the nearest, and how many ranks matter at all."""

from __future__ import annotations

import math

import numpy as np

from erasable.core.arrays import Floats
from erasable.selection.staying import Bound
from erasable.selection.utilities._similarities import ClassBlock

NEGLIGIBLE = 2.0**-43  # the share of a similarity that may be lost: 1e-13


def ranks_needed(bound: Bound, block: ClassBlock, k: int) -> tuple[int, Floats | None, Floats]:
    """Return how many ranks matter, their weights, and what the records' gains are taken times.

    Parameters
    ----------
    bound : Bound
        Over all the records, those of the block of one kind.
    block : ClassBlock
    k : int
        The most that will be chosen.

    Returns
    -------
    n_ranks : int
    weights : ndarray of shape (n_ranks + 1,), or None
        The last is 0. None where owners stay with different probabilities.
    factor : ndarray of shape (n_records,)
    """
    probability = np.ascontiguousarray(bound.probability[block.records])
    k = max(1, min(k, len(probability)))
    number = int(bound.block[block.records[0]]) if len(probability) else -1
    if number >= 0:
        weights = bound.laws[number].rank_weights(k + 1)
        weights[k:] = 0.0
        np.minimum.accumulate(weights, out=weights)
        beyond = np.cumsum(weights[::-1])[::-1]
        n_ranks = max(1, min(k, int((beyond > NEGLIGIBLE).sum())))
        factor = np.ones(len(probability))
    else:
        lowest = float(min(probability[probability > 0], default=1.0))
        n_ranks = k if lowest < 1e-12 else min(k, _leave_all(lowest))
        factor = probability
        if (probability != lowest).any():
            return n_ranks, None, factor
        weights = np.asarray((1.0 - lowest) ** np.arange(n_ranks + 1), dtype=np.float64)
    weights = weights[: n_ranks + 1].copy()
    weights[n_ranks] = 0.0  # ranks from there on are negligible
    return n_ranks, weights, factor


def _leave_all(s: float) -> int:
    """Return of how many owners it is negligible that all leave."""
    return 1 if s == 1.0 else math.ceil(math.log(NEGLIGIBLE) / math.log1p(-s))
