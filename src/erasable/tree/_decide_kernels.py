"""The decision whether and how to split a node, which `fit` and `delete` share.

The decision is a function of the node's records, its path and the rules. Counts that are kept equal
those of a survey of the records.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from erasable.core._jit import borrowing, inlined
from erasable.core.arrays import Ints32, Words
from erasable.tree._hash_kernels import mix32, mix64
from erasable.tree._layout import (
    BLOCK,
    CACHE,
    CAPACITY,
    COUNT,
    GAP,
    HISTOGRAM,
    NONE,
    NOTHING,
    ROW_BITS,
    SMALL,
    SQUARES,
    START,
    GrowingTree,
    NodeCandidates,
    Split,
    TreeRecords,
    TreeRules,
    TreeScratch,
)
from erasable.tree._score_kernels import gain_of, is_pure, pick
from erasable.tree._slot_kernels import by_column, weigh

_32 = np.uint64(32)
_LOW = np.uint64(0xFFFFFFFF)
_EVERYTHING = np.uint64(0xFFFFFFFFFFFFFFFF)
_LARGEST = np.uint32(0xFFFFFFFF)
_LAST = np.int32(0x7FFFFFFF)
_RECORDS = 0xFFFFFFFF
_16, _13 = np.uint32(16), np.uint32(13)
_C, _D = np.uint32(0x85EBCA6B), np.uint32(0xC2B2AE35)


@inlined
def _draw(drawn: Words, found: int, value: np.uint64) -> int:
    """Put a value among those drawn, which are sorted and of which the highest may fall out."""
    place = found
    while place > 0 and drawn[place - 1] > value:
        place -= 1
    if place > 0 and drawn[place - 1] == value:
        return found
    if found < drawn.size:
        found += 1
    for j in range(found - 1, place, -1):
        drawn[j] = drawn[j - 1]
    drawn[place] = value
    return found


@inlined
def _sort_codes(drawn: Words, found: int, code: Ints32) -> None:
    for j in range(found):
        value = np.int32(drawn[j] & _LOW)
        place = j
        while place > 0 and code[place - 1] > value:
            code[place] = code[place - 1]
            place -= 1
        code[place] = value


@inlined
def _by_value(
    packed: Words,
    n_values: int,
    m: int,
    key: np.uint64,
    rules: TreeRules,
    work: TreeScratch,
    out: NodeCandidates,
) -> tuple[Any, Any]:
    """Count the records of every value, and draw among those that there are."""
    code, count, left = out.codes, out.counts, out.lefts
    table, sizes, heads, drawn = work.histogram, work.sizes, work.heads, work.drawn
    table[:n_values] = 0
    sizes[:n_values] = 0
    for i in range(m):
        word = packed[work.rows[i]]
        own = np.int64(word & _LOW)
        heads[own] = word
        sizes[own] += 1
        if rules.criterion == SQUARES:
            table[own, 0] += work.weights[i]
            table[own, 1] += work.weights[i] * work.y[i]
        else:
            table[own, work.y[i]] += work.weights[i]
    found = 0
    for c in range(n_values):
        if sizes[c]:
            value = (mix32((heads[c] >> _32) ^ key) << _32) | (heads[c] & _LOW)
            if found < drawn.size or value < drawn[found - 1]:
                found = _draw(drawn, found, value)
    _sort_codes(drawn, found, code)
    below, c = 0, 0
    for j in range(found):
        for s in range(left.shape[1]):
            left[j, s] = left[j - 1, s] if j else 0
        while c <= code[j]:
            if sizes[c]:
                below += sizes[c]
                for s in range(left.shape[1]):
                    left[j, s] += table[c, s]
            c += 1
        count[j, 0], count[j, 1] = sizes[code[j]], below
    return found, np.int64(drawn[found - 1] & _LOW)


@inlined
def _by_rank(
    packed: Words, m: int, key: np.uint64, rules: TreeRules, work: TreeScratch, out: NodeCandidates
) -> tuple[Any, Any]:
    """Sort few records, and draw among their values only if there are more than are wanted."""
    code, count, left = out.codes, out.counts, out.lefts
    ranked, drawn = work.sorted, work.drawn
    distinct = 0
    for i in range(m):
        value = ((packed[work.rows[i]] & _LOW) << _32) | np.uint64(i)
        place = i
        while place > 0 and ranked[place - 1] > value:
            ranked[place] = ranked[place - 1]
            place -= 1
        ranked[place] = value
    for i in range(m):
        distinct += i == 0 or ranked[i] >> _32 != ranked[i - 1] >> _32
    found: Any = 0
    last: Any = 0
    every = distinct <= drawn.size
    if not every:
        for i in range(m):
            if i == 0 or ranked[i] >> _32 != ranked[i - 1] >> _32:
                word = packed[work.rows[np.int64(ranked[i] & _LOW)]]
                value = (mix32((word >> _32) ^ key) << _32) | (word & _LOW)
                if found < drawn.size or value < drawn[found - 1]:
                    found = _draw(drawn, found, value)
        _sort_codes(drawn, found, code)
        last = np.int64(drawn[found - 1] & _LOW)
    j, before = 0, 0
    for s in range(left.shape[1]):
        left[0, s] = 0
    for i in range(m):
        k = np.int64(ranked[i] & _LOW)
        if rules.criterion == SQUARES:
            left[j, 0] += work.weights[k]
            left[j, 1] += work.weights[k] * work.y[k]
        else:
            left[j, work.y[k]] += work.weights[k]
        c = np.int32(ranked[i] >> _32)
        if i > 0 and ranked[i] >> _32 != ranked[i - 1] >> _32:
            before = i
        ends = i == m - 1 or np.int32(ranked[i + 1] >> _32) != c
        if ends and (every or c == code[j]):
            code[j], count[j, 0], count[j, 1] = c, i + 1 - before, i + 1
            j += 1
            if j == code.size or (not every and j == found):
                break
            for s in range(left.shape[1]):
                left[j, s] = left[j - 1, s]
    return j, last


@inlined
def _hash(hashes: NDArray[np.uint32], n: int, key: np.uint32) -> Any:
    """Put priorities in the place of hashes, as `mix32` does; return the lowest.

    A loop of its own, of words of 32 bits, of which the processor takes eight at once.
    """
    lowest = _LARGEST
    for i in range(n):
        x = np.uint32(hashes[i] ^ key)
        x = np.uint32(np.uint32(x ^ np.uint32(x >> _16)) * _C)
        x = np.uint32(np.uint32(x ^ np.uint32(x >> _13)) * _D)
        x = np.uint32(x ^ np.uint32(x >> _16))
        hashes[i] = x
        lowest = min(lowest, x)
    return lowest


@inlined
def _draw_from_all(packed: Words, m: int, key: np.uint64, work: TreeScratch) -> Any:
    """Draw among the values of the records, and fetch their codes."""
    rows, codes, hashes, drawn = work.rows, work.codes, work.hashes, work.drawn
    found, highest = 0, _EVERYTHING
    for start in range(0, m, BLOCK):
        n = min(BLOCK, m - start)
        for i in range(n):
            word = packed[rows[start + i]]
            codes[start + i] = np.int32(word & _LOW)
            hashes[i] = np.uint32(word >> _32)
        if np.uint64(_hash(hashes, n, np.uint32(key))) << _32 > highest:
            continue
        for i in range(n):
            value = (np.uint64(hashes[i]) << _32) | np.uint64(codes[start + i])
            if value < highest:
                found = _draw(drawn, found, value)
                if found == drawn.size:
                    highest = drawn[found - 1]
    return found


@inlined
def _bound(work: TreeScratch, code: Ints32, found: int) -> Any:
    """Set out the codes drawn in fours; return how many there are, with those that fill up."""
    bounds = work.bounds
    n_bounds = (found + 3) // 4 * 4
    for j in range(bounds.size):
        bounds[j] = code[j] if j < found else _LAST
    return n_bounds


@inlined
def _find_bins(codes: Ints32, n: int, bounds: Ints32, n_bounds: int, bins: Ints32) -> None:
    """Tell for each record how many of the values drawn are below its own."""
    for i in range(n):
        bins[i] = 0
    for j in range(0, n_bounds, 4):
        a, b, c, d = bounds[j], bounds[j + 1], bounds[j + 2], bounds[j + 3]
        for i in range(n):
            x = codes[i]
            bins[i] += np.int32(x > a) + np.int32(x > b) + np.int32(x > c) + np.int32(x > d)


@inlined
def _tally(work: TreeScratch, m: int, found: int, code: Ints32, rules: TreeRules) -> None:
    """Count the records between the values drawn, and apart from these those that have them.

    Times in the bag are counted in the upper half of a word, records in the lower; there are less
    than ``2**27`` of these. Where records have weights, they are counted in a word of their own.
    Every other record is counted apart, because a sum that was just written is slow to read.
    """
    bounds, bins, tallies = work.bounds, work.bins, work.tallies
    for j in range(2 * found + 1):
        for s in range(tallies.shape[2]):
            tallies[0, j, s] = tallies[1, j, s] = 0
    n_bounds = _bound(work, code, found)
    for start in range(0, m, BLOCK):
        n = min(BLOCK, m - start)
        codes, y = work.codes[start : start + n], work.y[start : start + n]
        weights = work.weights[start : start + n]
        _find_bins(codes, n, bounds, n_bounds, bins)
        if rules.weighted:
            last = tallies.shape[2] - 1
            for i in range(n):
                j = bins[i]
                place = 2 * j + np.int64(bounds[j] == codes[i])
                if rules.criterion == SQUARES:
                    tallies[i & 1, place, 0] += weights[i]
                    tallies[i & 1, place, 1] += weights[i] * y[i]
                else:
                    tallies[i & 1, place, y[i]] += weights[i]
                tallies[i & 1, place, last] += 1
            continue
        for i in range(n):
            j = bins[i]
            place = 2 * j + np.int64(bounds[j] == codes[i])
            if rules.criterion == SQUARES:
                tallies[i & 1, place, 0] += (weights[i] << 32) + 1
                tallies[i & 1, place, 1] += weights[i] * y[i]
            else:
                tallies[i & 1, place, y[i]] += (weights[i] << 32) + 1


@inlined
def _add_up(work: TreeScratch, found: int, rules: TreeRules, out: NodeCandidates) -> None:
    """Make of tallies how many records have each value drawn, and what is up to it."""
    count, left = out.counts, out.lefts
    tallies, n_upto = work.tallies, 0
    for j in range(found):
        n_own = 0
        for s in range(left.shape[1]):
            between = tallies[0, 2 * j, s] + tallies[1, 2 * j, s]
            own = tallies[0, 2 * j + 1, s] + tallies[1, 2 * j + 1, s]
            if not rules.weighted and (rules.criterion != SQUARES or s == 0):
                n_own += own & _RECORDS
                n_upto += (between & _RECORDS) + (own & _RECORDS)
                between, own = between >> 32, own >> 32
            left[j, s] = between + own + (left[j - 1, s] if j else 0)
        if rules.weighted:
            s = tallies.shape[2] - 1
            n_own = tallies[0, 2 * j + 1, s] + tallies[1, 2 * j + 1, s]
            n_upto += tallies[0, 2 * j, s] + tallies[1, 2 * j, s] + n_own
        count[j, 0], count[j, 1] = n_own, n_upto


@inlined
def survey(
    packed: Words,
    n_values: int,
    m: int,
    key: np.uint64,
    rules: TreeRules,
    work: TreeScratch,
    out: NodeCandidates,
) -> tuple[Any, Any]:
    """Draw values of a feature among those of the `m` records in `work`, and count the records.

    `packed` has the hash and the code of each row's value; `key` has 32 bits. `out` is overwritten.
    Return how many values were drawn, `sample` or all, and the code of the one drawn last.
    """
    if m <= SMALL:
        return _by_rank(packed, m, key, rules, work, out)
    if n_values <= HISTOGRAM and n_values <= m + 8:
        return _by_value(packed, n_values, m, key, rules, work, out)
    found = _draw_from_all(packed, m, key, work)
    _sort_codes(work.drawn, found, out.codes)
    _tally(work, m, found, out.codes, rules)
    _add_up(work, found, rules, out)
    return found, np.int64(work.drawn[found - 1] & _LOW)


_ONE = np.uint64(1)
_ZERO = np.uint64(0)
_ROW = (1 << ROW_BITS) - 1


@inlined
def gather(growing: GrowingTree, table: TreeRecords, work: TreeScratch, node: int) -> int:
    """Fetch the records of a node into `work`; return how many there are."""
    start = growing.nodes[node, START]
    wide, d = by_column(table, growing.nodes[node, CAPACITY]), table.names.size
    targets = table.by_column[:, d] if wide else table.packed[:, d]
    m = 0
    for i in range(start, start + growing.nodes[node, CAPACITY]):
        entry = np.int64(growing.rows[i])
        if entry != NONE:
            row = entry & _ROW
            work.rows[m], work.weights[m] = row, weigh(table, entry)
            work.y[m] = np.int64(targets[row])
            m += 1
    return m


@inlined
def _all_equal(work: TreeScratch, m: int) -> bool:
    differing = 0
    for i in range(1, m):
        differing += work.y[i] != work.y[0]
    return differing == 0


@inlined
def _bit(f: int) -> np.uint64:
    return _ONE << np.uint64(f) if f < 64 else _ZERO


@inlined
def line_up(table: TreeRecords, work: TreeScratch, key: np.uint64, wanted: int) -> None:
    """Draw for every feature, and put those first that a node is to look at first."""
    races, order, d = work.races, work.order, table.names.size
    for f in range(d):
        races[f] = mix64(key ^ table.names[f])
    if wanted == d:
        for f in range(d):
            order[f] = f
        return
    found = 0
    for f in range(d):
        if found == wanted and races[f] >= races[order[found - 1]]:
            continue
        place = found if found < wanted else found - 1
        found = min(found + 1, wanted)
        while place > 0 and races[order[place - 1]] > races[f]:
            order[place] = order[place - 1]
            place -= 1
        order[place] = f


@inlined
def _next_in_line(work: TreeScratch, before: int) -> int:
    """Return the feature whose draw comes after that of another; -1 if there is none."""
    after = -1
    for f in range(work.races.size):
        later = work.races[f] > work.races[before]
        if later and (after < 0 or work.races[f] < work.races[after]):
            after = f
    return after


@inlined
def _candidates(growing: GrowingTree, work: TreeScratch, slot: int, place: int) -> NodeCandidates:
    """Return where to put what is found of a feature: with the node, if it keeps its counts."""
    if slot < 0:
        return NodeCandidates(work.code, work.tally, work.left, work.gaps)
    return NodeCandidates(
        growing.codes[slot, place], growing.counts[slot, place], growing.lefts[slot, place],
        growing.gaps[slot, place],
    )  # fmt: skip


@borrowing
def _set_gaps_aside(
    packed: Words, m: int, rules: TreeRules, work: TreeScratch, out: NodeCandidates
) -> Any:
    """Put the records in `work` that have a value before those that have none, and sum these.

    Return how many have a value. See `_pick_among_gaps` for why it is not inlined.
    """
    gaps = out.gaps
    for s in range(gaps.size):
        gaps[s] = 0
    told: Any = m
    rows, y, weights, i = work.rows, work.y, work.weights, 0
    while i < told:
        if np.int64(packed[rows[i]] & _LOW) != GAP:
            i += 1
            continue
        told -= 1
        if rules.criterion == SQUARES:
            gaps[0] += weights[i]
            gaps[1] += weights[i] * y[i]
        else:
            gaps[y[i]] += weights[i]
        rows[i], rows[told] = rows[told], rows[i]
        y[i], y[told] = y[told], y[i]
        weights[i], weights[told] = weights[told], weights[i]
    gaps[gaps.size - 1] = m - told
    return told


@inlined
def _search(
    growing: GrowingTree,
    table: TreeRecords,
    rules: TreeRules,
    work: TreeScratch,
    node: int,
    key: np.uint64,
    m: int,
    kept: bool,
    constants: np.uint64,
) -> tuple[int, np.uint64, Split]:
    """Find the best split, and which features are constant.

    As in scikit-learn, features beyond `max_features` are looked at only where all before them
    are constant, until one is not. Of a feature whose counts are kept, they are taken as they
    are, unless one of the values drawn is lost.
    """
    slot, q = growing.nodes[node, CACHE], rules.max_features
    best: Split = (np.int64(-1), np.int64(-1), -np.inf)
    varied, lined, looked, f = False, False, 0, -1
    while looked < table.names.size and (looked < q or not varied):
        if kept and looked == q:
            kept, looked = False, 0  # all are constant, and only a new search finds others
        if not kept and not lined:
            line_up(table, work, key, q)
            lined = True
        # The first of features that are all constant is so for ever: its place is free.
        place = looked if looked < q else 0
        found: Any = -1
        last: Any = -1
        if kept:
            f = growing.features[slot, place]
            found, last = growing.found[slot, place, 0], growing.found[slot, place, 1]
        else:
            f = work.order[looked] if looked < q else _next_in_line(work, f)
            if f < 64 and constants >> np.uint64(f) & _ONE:
                found = 0
                if slot >= 0:
                    growing.features[slot, place], growing.found[slot, place, 0] = f, 0
        if kept and found < 0 and f < 64 and constants >> np.uint64(f) & _ONE:
            found = growing.found[slot, place, 0] = 0
        looked += 1
        if found == 0:
            continue
        candidates = _candidates(growing, work, slot, place)
        if found < 0:
            if m < 0:
                m = gather(growing, table, work, node)
            race = mix64(key ^ table.names[f]) & _LOW
            wide = by_column(table, m)
            packed = table.by_column[:, f] if wide else table.packed[:, f]
            told: Any = m
            if table.n_gaps[f]:
                told = _set_gaps_aside(packed, m, rules, work, candidates)
            elif slot >= 0:
                candidates.gaps[:] = 0
            found, last = survey(packed, table.n_values[f], told, race, rules, work, candidates)
            if slot >= 0:
                growing.features[slot, place] = f
                growing.found[slot, place, 0], growing.found[slot, place, 1] = found, last
                # Few records are not drawn from: then any value that comes may be drawn.
                growing.found[slot, place, 2] = work.drawn[found - 1] >> _32 if told > SMALL else -1
        n_gaps = candidates.gaps[candidates.gaps.size - 1] if table.n_gaps[f] else 0
        if found < 2 and (found == 0 or n_gaps == 0):
            constants |= _bit(f)
            continue
        varied = True
        best = pick(
            f, table.ranks, found, last, candidates, n_gaps, growing.stats[node],
            growing.nodes[node, COUNT], rules, table.class_weight, work.sums, best,
        )  # fmt: skip
    return m, constants, best


@inlined
def decide(
    growing: GrowingTree,
    table: TreeRecords,
    rules: TreeRules,
    work: TreeScratch,
    node: int,
    depth: int,
    key: np.uint64,
    whole: float,
    m: int,
    kept: bool,
    constants: np.uint64,
) -> tuple[Any, Any, np.uint64]:
    """Decide on a node whose stats and number of records are up to date.

    `whole` is the weight of all records of the tree; `m` records have been gathered, -1 if none
    yet. `kept` tells whether the node's slot has its counts, but for features that have -1 values
    drawn; else they are counted, and kept if there is a slot. Return the feature and the code, see
    `Split`, -1 and -1 for a leaf, and the bits of the features that are now known to be constant.
    """
    n, total = growing.nodes[node, COUNT], growing.stats[node]
    gains = growing.gains
    if gains.size:
        gains[node] = -np.inf
    if n < max(rules.min_split, 2) or n < 2 * rules.min_leaf or depth >= rules.max_depth:
        return -1, -1, constants
    regression = rules.criterion == SQUARES
    if not regression and is_pure(total):
        return -1, -1, constants
    if regression and not kept:
        if m < 0:
            m = gather(growing, table, work, node)
        if _all_equal(work, m):
            return -1, -1, constants
    m, constants, best = _search(growing, table, rules, work, node, key, m, kept, constants)
    if regression and kept and best[0] >= 0 and best[2] <= NOTHING * np.float64(total[0]):
        # No split gains anything: either all targets are equal, or all means are.
        if m < 0:
            m = gather(growing, table, work, node)
        if _all_equal(work, m):
            return -1, -1, constants
    feature, code, score = best
    if feature >= 0 and gains.size:
        gain = gain_of(score, total, rules, table.class_weight)
        if gain / whole < rules.min_decrease:
            gains[node] = gain
            return -1, -1, constants
    return feature, code, constants
