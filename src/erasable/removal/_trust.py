"""How much the order can be trusted: how far other samples of the domains would give the same."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.stats import rankdata

from erasable.core.arrays import Floats
from erasable.core.errors import InvalidInputError
from erasable.removal._sets import Sets, copied
from erasable.removal.scores._base import Ranking

_REPEATS = 4
_JUDGED = 1_000  # records of forget whose ranks are compared
_HALF = 2_000  # records of each set in a half, at most


def reliability(sets: Sets, ranking: Ranking, seed: int) -> float:
    """Estimate the rank correlation of the scores with those from other samples of this size.

    Both sets are split in halves; some records of forget are kept apart (all of them, where a score
    does not learn from forget), and scored against one half and the other. Spearman's correlation
    of the two, averaged over splits, is stepped up from the size of a half to that of the sets
    (Spearman and Brown), by the smaller of the two factors.

    Returns
    -------
    float
        From 0 (chance, or halves too small to learn from) to 1; NaN for scores that contrast
        nothing.
    """
    reference = ranking.reference
    if reference is None or sets.retain is None:
        return float("nan")
    rng = np.random.default_rng(seed)
    found, factor = [], 1.0
    for _ in range(_REPEATS):
        judged, own, other = _split(sets, ranking.learns_from_forget, rng)
        if min(part.size for part in (judged, *own, *other)) < 2:
            return 0.0
        factor = sets.retain.shape[0] / other[0].size
        if ranking.learns_from_forget:
            factor = min(factor, sets.forget.shape[0] / own[0].size)
        rows = copied(sets.forget, judged)
        draw = int(rng.integers(2**32))
        try:
            scores = [
                reference(sets.part(a, b), rows, draw) for a, b in zip(own, other, strict=True)
            ]
        except InvalidInputError:  # half of a set may be too little to learn from
            return 0.0
        found.append(spearman(*scores))
    mean = max(float(np.mean(found)), 0.0)
    return factor * mean / (1.0 + (factor - 1.0) * mean)


def spearman(a: Floats, b: Floats) -> float:
    """Return the rank correlation; 0 where one of both is constant."""
    x, y = rankdata(a), rankdata(b)
    x, y = x - x.mean(), y - y.mean()
    size = float(np.sqrt((x @ x) * (y @ y)))
    return float(x @ y) / size if size > 0 else 0.0


def _split(sets: Sets, learns_from_forget: bool, rng: Any) -> tuple[Any, Any, Any]:
    n1, n2 = sets.forget.shape[0], sets.retain.shape[0]
    mixed, other = rng.permutation(n1), rng.permutation(n2)
    if learns_from_forget:
        judged, rest = np.split(mixed, [min(_JUDGED, max(2, n1 // 3))])
        halves = rest[: len(rest) // 2][:_HALF], rest[len(rest) // 2 :][: len(rest) // 2][:_HALF]
    else:
        judged = mixed[:_JUDGED]
        halves = judged, judged
    half = n2 // 2
    others = other[:half][:_HALF], other[half : 2 * half][:_HALF]
    return judged, halves, others
