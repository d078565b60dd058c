"""Scores of splits: a fixed formula of exact counts, or of exact sums.

All inputs are whole numbers, so that the order in which records came or went does not matter.
`left` are the stats of the records that go to the left, `total` those of all: weights of the
classes, or the weight of all records and their sum in quanta.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from erasable.core._jit import borrowing, inlined
from erasable.core._tape_kernels import log
from erasable.core.arrays import Floats, Ints
from erasable.tree._layout import (
    ALL_VALUES,
    ENTROPY,
    GAPS_LEFT,
    GAPS_RIGHT,
    SQUARES,
    NodeCandidates,
    Split,
    TreeRules,
)

_PER_BIT = 1.4426950408889634  # 1 / ln 2


@inlined
def _x_log_x(x: float) -> float:
    return x * log(np.float64(x)) if x > 0.0 else 0.0


@inlined
def _gini_of_counts(left: Ints, total: Ints) -> float:
    in_left, in_right, squares_left, squares_right = 0, 0, 0, 0
    for c in range(total.size):
        a, b = left[c], total[c] - left[c]
        in_left += a
        in_right += b
        squares_left += a * a
        squares_right += b * b
    score = 0.0
    if in_left > 0:
        score += np.float64(squares_left) / np.float64(in_left)
    if in_right > 0:
        score += np.float64(squares_right) / np.float64(in_right)
    return score


@inlined
def _of_weights(left: Ints, total: Ints, weights: Floats, entropy: bool) -> float:
    """Score by Gini or entropy, with a weight for each class, or with none."""
    in_left, in_right, of_left, of_right = 0.0, 0.0, 0.0, 0.0
    for c in range(total.size):
        factor = weights[c] if weights.size else 1.0
        a, b = np.float64(left[c]) * factor, np.float64(total[c] - left[c]) * factor
        in_left += a
        in_right += b
        of_left += _x_log_x(a) if entropy else a * a
        of_right += _x_log_x(b) if entropy else b * b
    if entropy:
        return (of_left - _x_log_x(in_left)) + (of_right - _x_log_x(in_right))
    score = 0.0
    if in_left > 0.0:
        score += of_left / in_left
    if in_right > 0.0:
        score += of_right / in_right
    return score


@inlined
def _of_sums(left: Ints, total: Ints) -> float:
    """Return the decrease of the sum of squares, in quanta."""
    in_left, in_all = np.float64(left[0]), np.float64(total[0])
    in_right = np.float64(total[0] - left[0])
    apart = np.float64(left[1]) / in_left - np.float64(total[1] - left[1]) / in_right
    return (in_left * in_right / in_all) * apart * apart


@inlined
def score_of(left: Ints, total: Ints, rules: TreeRules, weights: Floats) -> float:
    """Score a split: the higher, the purer its parts."""
    if rules.criterion == SQUARES:
        return _of_sums(left, total)
    if rules.criterion == ENTROPY or weights.size or rules.weighted:  # whose squares are large
        return _of_weights(left, total, weights, rules.criterion == ENTROPY)
    return _gini_of_counts(left, total)


@borrowing
def gain_of(score: float, total: Ints, rules: TreeRules, weights: Floats) -> float:
    """Return a node's weight times the decrease of its impurity by a split of some score."""
    if rules.criterion == SQUARES:
        return score * rules.scale
    whole, of_whole = 0.0, 0.0
    for c in range(total.size):
        a = np.float64(total[c]) * (weights[c] if weights.size else 1.0)
        whole += a
        of_whole += _x_log_x(a) if rules.criterion == ENTROPY else a * a
    if rules.criterion == ENTROPY:
        return (score - (of_whole - _x_log_x(whole))) * _PER_BIT
    return score - (of_whole / whole if whole > 0.0 else 0.0)


@borrowing
def weight_of(total: Ints, rules: TreeRules, weights: Floats) -> float:
    """Return the weight of all records."""
    if rules.criterion == SQUARES:
        return np.float64(total[0])
    whole = 0.0
    for c in range(total.size):
        whole += np.float64(total[c]) * (weights[c] if weights.size else 1.0)
    return whole


@inlined
def is_pure(total: Ints) -> bool:
    """Tell whether all records are of one class."""
    present = 0
    for c in range(total.size):
        present += total[c] > 0
    return present < 2


@inlined
def _better(feature: int, code: Any, score: float, ranks: Ints, best: Split) -> Split:
    """Return the better of the best split so far and another, that of a feature."""
    old, _, old_score = best
    better = score > old_score
    if score == old_score and old >= 0:
        # Codes ascend, so that among equals of one feature the first is the smallest.
        better = feature != old and ranks[feature] < ranks[old]
    if better or old < 0:
        return np.int64(feature), np.int64(code), score
    return best


@borrowing
def _pick_among_gaps(
    feature: int,
    ranks: Ints,
    found: int,
    last: int,
    candidates: NodeCandidates,
    total: Ints,
    n: int,
    rules: TreeRules,
    weights: Floats,
    sums: Ints,
    best: Split,
) -> Split:
    """See `pick`. It is not inlined, which would slow down data without gaps by 5 %."""
    code, count, left, gaps = candidates
    n_gaps = gaps[gaps.size - 1]
    n_told = n - n_gaps
    full = found == rules.sample and count[found - 1, 1] < n_told
    for t in range(2 * found + 1):
        j, side = t >> 1, GAPS_LEFT if t & 1 else GAPS_RIGHT
        c: Any = ALL_VALUES
        to_left: Any = n_told
        if j < found:
            c, to_left = np.int64(code[j]), np.int64(count[j, 1])
            if to_left == n_told or (full and c == last):
                continue
            for s in range(sums.size):
                sums[s] = left[j, s] + (gaps[s] if side == GAPS_LEFT else 0)
        else:
            for s in range(sums.size):
                sums[s] = total[s] - gaps[s]
        if side == GAPS_LEFT:
            to_left += n_gaps
        if to_left < rules.min_leaf or n - to_left < rules.min_leaf:
            continue
        score = score_of(sums, total, rules, weights)
        best = _better(feature, c | side << 32, score, ranks, best)
    return best


@inlined
def pick(
    feature: int,
    ranks: Ints,
    found: int,
    last: int,
    candidates: NodeCandidates,
    n_gaps: int,
    total: Ints,
    n: int,
    rules: TreeRules,
    weights: Floats,
    sums: Ints,
    best: Split,
) -> Split:
    """Return the better of the best split so far and a feature's best.

    `found` values of the feature were drawn, the one with the code `last` after all others. The
    node's largest value is no threshold, as nothing would go to the right of it; nor is the last
    one of a full draw, which stands in for it. Where records have gaps, these go to the right of
    each threshold, then to the left; and last all values are divided from the gaps. `n_gaps` is how
    many have one, and `sums` is overwritten.
    """
    code, count, left = candidates.codes, candidates.counts, candidates.lefts
    if n_gaps:
        return _pick_among_gaps(
            feature, ranks, found, last, candidates, total, n, rules, weights, sums, best
        )
    full = found == rules.sample and count[found - 1, 1] < n
    for j in range(found):
        to_left = count[j, 1]
        if to_left < rules.min_leaf or n - to_left < rules.min_leaf or to_left == n:
            continue
        if full and code[j] == last:
            continue
        score = score_of(left[j], total, rules, weights)
        best = _better(feature, code[j], score, ranks, best)
    return best
