"""Gradients, Hessians and losses in whole numbers.

They are functions of a record's prediction, a whole number of units, of its target and its weight.
Where a weight makes a Hessian too small for its code, it is rounded by a draw keyed by the record
and the round. Nothing here calls libm.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from erasable.core._function_kernels import expose
from erasable.core._jit import inlined, kernel, subroutine
from erasable.core._tape_kernels import log
from erasable.core.arrays import Floats, Ints, Ints32, Words
from erasable.tree._boosted._layout import COUNT_BITS, Whole
from erasable.tree._hash_kernels import mix64
from erasable.tree._layout import WEIGHT_BITS

GRADIENT_BITS = 16
"""A gradient of 1 is ``2**16``."""
HESSIAN_BITS = 10
"""A Hessian of 1 is ``2**10``; that of the log loss is 1/4 at most."""
LOSS_BITS = 20
_G, _W = np.int64(GRADIENT_BITS), np.int64(WEIGHT_BITS)
_HALF = np.int64(1 << 15)
_LOW = np.uint64(0xFFFF)
_ONE = np.float64(1 << GRADIENT_BITS)
_H_ONE = np.float64(1 << HESSIAN_BITS)
_LOSS = np.float64(1 << LOSS_BITS)
MOST_RESIDUAL = 1 << 34
_MOST_RESIDUAL = np.int64(MOST_RESIDUAL)
TARGET_BITS = 10
"""A target is in `2**-10` units."""
_TARGET = np.int64(TARGET_BITS)
_LOSS_SHIFT = np.int64(6)
_TURN = np.uint64(0x9E3779B97F4A7C15)
"""Times the number of a round, tells its draws from those of another."""
LOGISTIC, SOFTMAX, SQUARES, POISSON = range(4)
RATE_BITS = 5
"""A Hessian of the scale of Poisson targets is ``2**5``; it is ``2**11`` at most."""
_RATE_ONE, _MOST_RATE = np.float64(1 << RATE_BITS), np.int64(1 << 11)
_MOST_LOSS = np.int64(1 << 36)


class LossTables(NamedTuple):
    """What a loss is to kernels."""

    kind: int  # `LOGISTIC`, `SOFTMAX`, `SQUARES` or `POISSON`
    unit: float  # of predictions
    # shares, hessians, losses: (n_places,); of predictions from the lowest to the highest that
    # counts, in units; empty for `SQUARES`
    shares: Ints
    hessians: Ints
    losses: Ints
    powers: Floats  # (n_places,); ``powers[k]`` is ``exp(-k unit)``


class Given(NamedTuple):
    """Targets and weights of all rows, as whole numbers."""

    # (n_rows,); codes of classes, or numbers in ``2**-10`` units; in ``2**-16`` of the scale of
    # `POISSON`
    y: Ints
    weights: Ints  # (n_rows,); in ``2**-16`` of the power of two above the largest
    keys: Words  # (n_rows,); of the records, where these have weights

    def part(self, rows: Ints) -> Given:
        """Copy some rows."""
        weighted = self.weights.size > 0
        return Given(
            self.y[rows],
            self.weights[rows] if weighted else self.weights,
            self.keys[rows] if weighted else self.keys,
        )

    def placed(self, rows: Ints, n_rows: int) -> Given:
        """Return the parts in arrays of so many rows, where they are those of some."""
        if rows.size == n_rows:
            return self
        n = n_rows if self.weights.size else 0
        whole = Given(np.zeros(n_rows, np.int64), np.zeros(n, np.int64), np.zeros(n, np.uint64))
        whole.put(rows, self)
        return whole

    def knows(self, keys: Words, leaving: Ints) -> bool:
        """Tell whether any of some keys is another's, or that of a row that stays."""
        own = self.keys.copy()
        if own.size:
            own[leaving] = 0
        return bool(np.unique(keys).size < keys.size or np.isin(own, keys).any())

    def put(self, rows: Ints, part: Given) -> None:
        """Write some rows."""
        for own, values in zip(self, part, strict=True):
            if own.size:
                own[rows] = values

    def erase(self, rows: Ints) -> None:
        """Overwrite rows."""
        for own in self:
            if own.size:
                own[rows] = 0


@kernel
def exponentials(values: Floats) -> Floats:
    """Return exponentials that are the same on every machine."""
    powers = values.copy()
    expose(powers, np.empty(powers.size, np.int64))
    return powers


@kernel
def logistic_tables(unit: float, limit: int, shares: Ints, hessians: Ints, losses: Ints) -> None:
    """Fill tables of predictions from ``-limit`` to ``limit`` units.

    They hold the probability, its Hessian, and the loss of a record for which 1 is right.
    """
    powers = np.empty(2 * limit + 1)
    for i in range(powers.size):
        powers[i] = -abs(i - limit) * unit
    expose(powers, np.empty(powers.size, np.int64))
    for i in range(powers.size):
        small = powers[i]
        share = (1.0 if i >= limit else small) / (1.0 + small)
        shares[i] = np.int64(share * _ONE + 0.5)
        curved = small / ((1.0 + small) * (1.0 + small))
        hessians[i] = max(np.int64(1), np.int64(curved * _H_ONE + 0.5))
        lost = log(1.0 + small)
        if i < limit:
            lost += (limit - i) * unit
        losses[i] = np.int64(lost * _LOSS + 0.5)


@kernel
def rate_tables(unit: float, limit: int, shares: Ints, hessians: Ints, losses: Ints) -> None:
    """Fill tables of the logarithms of rates, from ``-limit`` to ``limit`` units.

    They hold the rate, its Hessian, and what it adds to the loss whatever the target is.
    """
    powers = np.empty(2 * limit + 1)
    for i in range(powers.size):
        powers[i] = (i - limit) * unit
    expose(powers, np.empty(powers.size, np.int64))
    for i in range(powers.size):
        shares[i] = np.int64(powers[i] * _ONE + 0.5)
        curved = np.int64(powers[i] * _RATE_ONE + 0.5)
        hessians[i] = max(np.int64(1), min(curved, _MOST_RATE))
        losses[i] = min(shares[i], _MOST_LOSS)


@inlined
def _pair(g: Whole, h: Whole) -> Whole:
    return np.int64((h << COUNT_BITS) | 1)


@subroutine
def _weigh(g: Any, h: Any, weight: Any, key: np.uint64, turn: np.uint64) -> tuple[Any, Any]:
    """Multiply a gradient and a Hessian by a weight."""
    draw = np.int64(mix64(key ^ turn) & _LOW)
    return (g * weight + _HALF) >> _W, (h * weight + draw) >> _W


@inlined
def _within(raw: Whole, limit: Whole) -> Whole:
    return min(max(raw, -limit), limit) + limit


@subroutine
def _pairs_by_table(
    tables: LossTables, given: Given, raws: Ints32, rows: Ints32, turn: np.uint64, out: Ints
) -> None:
    limit = np.int64(tables.shares.size // 2)
    shift = np.int64(0) if tables.kind == POISSON else _G
    for k in range(rows.size):
        r = rows[k]
        place = _within(np.int64(raws[r]), limit)
        g, h = tables.shares[place] - (given.y[r] << shift), tables.hessians[place]
        g = min(max(g, -_MOST_RESIDUAL), _MOST_RESIDUAL)
        if given.weights.size:
            g, h = _weigh(g, h, given.weights[r], given.keys[r], turn)
        out[r, 0], out[r, 1] = g, _pair(g, h)


@subroutine
def _softmax_pairs(
    tables: LossTables, given: Given, raws: Ints32, rows: Ints32, turn: np.uint64, out: Ints
) -> None:
    m, limit = raws.shape[0], tables.powers.size - 1
    likely = np.empty(m)
    for k in range(rows.size):
        r = rows[k]
        most = raws[0, r]
        for j in range(1, m):
            most = max(most, raws[j, r])
        total = 0.0
        for j in range(m):
            likely[j] = tables.powers[min(np.int64(most) - raws[j, r], limit)]
            total += likely[j]
        for j in range(m):
            share = likely[j] / total
            g = np.int64(share * _ONE + 0.5) - ((1 if given.y[r] == j else 0) << _G)
            h = max(np.int64(1), np.int64(share * (1.0 - share) * _H_ONE + 0.5))
            if given.weights.size:
                g, h = _weigh(g, h, given.weights[r], given.keys[r], turn)
            out[j, r, 0], out[j, r, 1] = g, _pair(g, h)


@inlined
def _residual(raw: Any, target: Any) -> Any:
    return min(max((raw << _TARGET) - target, -_MOST_RESIDUAL), _MOST_RESIDUAL)


@subroutine
def _squares_pairs(given: Given, raws: Ints32, rows: Ints32, turn: np.uint64, out: Ints) -> None:
    """Write pairs of which a Hessian of 1 is ``2**8``."""
    for k in range(rows.size):
        r = rows[k]
        g, h = _residual(np.int64(raws[r]), given.y[r]), np.int64(256)
        if given.weights.size:
            g, h = _weigh(g, h, given.weights[r], given.keys[r], turn)
        out[r, 0], out[r, 1] = g, _pair(g, h)


@subroutine
def find_pairs(
    tables: LossTables, given: Given, raws: Ints32, rows: Ints32, t: Whole, out: Ints
) -> None:
    """Write the pairs of each row in round `t`; `raws` and `out` begin with the output."""
    turn = np.uint64(t + 1) * _TURN
    if tables.kind == LOGISTIC or tables.kind == POISSON:
        _pairs_by_table(tables, given, raws[0], rows, turn, out[0])
    elif tables.kind == SOFTMAX:
        _softmax_pairs(tables, given, raws, rows, turn, out)
    else:
        _squares_pairs(given, raws[0], rows, turn, out[0])


@kernel
def pairs_of(
    tables: LossTables, given: Given, raws: Ints32, rows: Ints32, t: int, out: Ints
) -> None:
    """Write gradients and Hessians of rows in round `t`, shape (n_outputs, n_rows, 2)."""
    find_pairs(tables, given, raws, rows, t, out)


@subroutine
def _softmax_loss(tables: LossTables, y: Whole, raws: Ints32, row: Whole) -> Any:
    limit = tables.powers.size - 1
    most = raws[0, row]
    for j in range(1, raws.shape[0]):
        most = max(most, raws[j, row])
    whole = 0.0
    for j in range(raws.shape[0]):
        whole += tables.powers[min(np.int64(most) - raws[j, row], limit)]
    away = np.float64(np.int64(most) - raws[y, row]) * tables.unit
    return np.int64((log(np.float64(whole)) + away) * _LOSS + 0.5)


@inlined
def _squares_loss(y: Whole, raw: Whole) -> Any:
    """Return the squared residual, in squares of ``2**-4`` units."""
    away = min(abs(_residual(raw, y) >> _LOSS_SHIFT), np.int64(1 << 18))
    return away * away


@subroutine
def sum_losses(tables: LossTables, given: Given, raws: Ints32, rows: Ints32) -> Any:
    """Sum the losses of rows; `raws` begins with the output."""
    limit, total = np.int64(tables.losses.size // 2), np.int64(0)
    for k in range(rows.size):
        r = rows[k]
        y, raw = given.y[r], np.int64(raws[0, r])
        if tables.kind == LOGISTIC:
            lost = tables.losses[_within(raw if y else -raw, limit)]
        elif tables.kind == SOFTMAX:
            lost = _softmax_loss(tables, y, raws, r)
        elif tables.kind == POISSON:
            place = _within(raw, limit)
            away = np.float64(y) * (np.float64(place - limit) * tables.unit)
            lost = tables.losses[place] - np.int64(np.floor(away + 0.5))
        else:
            lost = _squares_loss(y, raw)
        total += (lost * given.weights[r]) >> _W if given.weights.size else lost
    return total


@kernel
def losses_of(tables: LossTables, given: Given, raws: Ints32, rows: Ints32) -> int:
    """Sum the losses of rows."""
    return int(sum_losses(tables, given, raws, rows))
