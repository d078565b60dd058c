"""Semivalues of the nearest neighbour utility, exactly, by sorting each target's similarities.

A record of rank `q` adds ``E (w - M)+`` to a target, where `M` is the largest similarity of the
others that are there. Of owners that are alike, ``z_q w - sum over p > q of c_p w_p``, where all
of `q` others are absent with probability `z_q`, and of `p` only the last is there with `c_p`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from erasable.core._jit import kernel
from erasable.selection.staying import Bound
from erasable.selection.utilities._similarities import Block

__all__ = ["semivalues"]

Floats = NDArray[np.float64]


def semivalues(block: Block, bound: Bound) -> Floats:
    """Return what each record of a block adds to a random part of the others of its class.

    Parameters
    ----------
    block : Block
    bound : Bound
        Over all the records, those of the block of one kind.

    Returns
    -------
    ndarray of shape (n_records,), float64
    """
    n = len(block.records)
    out = np.zeros(n)
    number = int(bound.block[block.records[0]])
    if number >= 0:
        law = bound.laws[number]
        none = np.array([np.exp(law.log_subset_pmf(t)[0]) for t in range(n)])
        last = law.rank_weights(n)
    s = bound.probability[block.records]
    for i in range(block.n_targets):
        row = _column(block, i)
        order = np.argsort(-row, kind="stable")
        w = row[order]
        if number >= 0:
            # Of the others, one that comes later than the record has a rank less.
            later = np.cumsum((last[:-1] * w[1:])[::-1])[::-1] if n > 1 else np.zeros(0)
            out[order] += none * w - np.append(later, 0.0)
        else:
            _independent(w, s[order], order, out)
    return out


def _column(block: Block, i: int) -> Floats:
    if not len(block.starts):
        return np.asarray(block.dense[:, i], dtype=np.float64)
    row = np.zeros(len(block.records))
    of_target = np.flatnonzero(block.targets == i)
    rows = np.searchsorted(block.starts, of_target, side="right") - 1
    row[rows] = block.values[of_target]
    return row


@kernel
def _independent(w: Floats, s: Floats, order: NDArray[np.int64], out: Floats) -> None:
    n = len(w)
    absent = np.ones(n + 1)
    for q in range(n):
        absent[q + 1] = absent[q] * (1.0 - s[q])
    best = 0.0  # the expected largest similarity of those that come later
    for q in range(n - 1, -1, -1):
        out[order[q]] += absent[q] * (w[q] - best)
        best = s[q] * w[q] + (1.0 - s[q]) * best
