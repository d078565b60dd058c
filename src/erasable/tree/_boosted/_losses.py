"""Losses of boosting, of classes and of numbers, in whole numbers.

Predictions are whole numbers of units. The unit, the start and the scale of the weights are coarse
functions of the live records, so that they seldom change.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import Any, ClassVar, Self

import numpy as np

from erasable.core.arrays import Floats, Ints
from erasable.core.weighted import power_below
from erasable.tree._boosted import _loss_kernels as kernels
from erasable.tree._boosted._loss_kernels import LossTables

LATTICE, FINER = 0.25, 0.125
"""Units are so many times the learning rate, or less: in log-odds, and in spreads of a target."""
START = 4
"""A start is a multiple of one by this, in log-odds or spreads."""
OFFSET = 1.0
"""What is added to gains, as much as a split gains by noise: those that are noise are alike."""
SPREADS = 0.02
"""The same of numbers, in squared spreads."""
MOST_VALUE = 2**20
"""Of a leaf, in units."""
LONGEST = 2.0
"""By how much a leaf changes the logarithm of a rate at most, before the learning rate."""
_LEAST_SCALE, _WIDEST = -960, 30
"""Exponents: of a scale, and of a spread by the scale."""
_FINEST = -12
_REACH = 16.0
"""Log-odds at which probabilities are as good as 0."""


@dataclass(frozen=True, eq=False)
class Loss(ABC):
    """Base of the losses."""

    hessian_one: ClassVar[float]
    """Code of a Hessian of 1."""

    unit: float  # of predictions; a power of two
    start: Ints  # (n_outputs,); where predictions start, in units: one for each tree of a round

    @property
    @abstractmethod
    def tables(self) -> LossTables:
        """What kernels need, which find gradients, Hessians and losses."""

    @property
    @abstractmethod
    def loss_one(self) -> float:
        """Code of a loss of 1."""

    @property
    def scales(self) -> tuple[float, ...]:
        """What all whole numbers depend on: all is learned anew where it is another."""
        return (self.unit,)

    @property
    def offset(self) -> float:
        """What is added to gains, which are squares of gradients by Hessians."""
        return OFFSET * 4.0**kernels.GRADIENT_BITS / self.hessian_one

    def most(self, learning_rate: float) -> int:
        """Return the largest value of a leaf, in units."""
        return MOST_VALUE

    def step(self, learning_rate: float) -> float:
        """Return how many units a leaf gets of gradient 1 by Hessian 1, both as codes."""
        return learning_rate * (self.hessian_one * 2.0**-kernels.GRADIENT_BITS) / self.unit


def _unit_of(learning_rate: float, part: float) -> float:
    return 2.0 ** min(max(power_below(learning_rate * part), _FINEST), -power_below(START))


def n_outputs_of(n_classes: int) -> int:
    """Return the number of trees in a round for so many classes."""
    return n_classes if n_classes > 2 else n_classes - 1


@cache
def _tables(unit: float) -> LossTables:
    """Return the tables of two classes; those of more differ by their kind."""
    limit = int(_REACH / unit)
    shares, hessians, losses = np.zeros((3, 2 * limit + 1), dtype=np.int64)
    kernels.logistic_tables(unit, limit, shares, hessians, losses)
    powers = kernels.exponentials(np.arange(0.0, 2 * limit + 1) * -unit)
    return LossTables(kernels.LOGISTIC, unit, shares, hessians, losses, powers)


@dataclass(frozen=True, eq=False)
class LogLoss(Loss):
    """Of classes: one tree a round for two, otherwise one for each.

    >>> LogLoss.of(np.array([3, 1]), 0.2).start * LogLoss.of(np.array([3, 1]), 0.2).unit
    array([-1.])
    """

    hessian_one = float(1 << kernels.HESSIAN_BITS)

    @classmethod
    def of(cls, counts: Ints, learning_rate: float) -> Self:
        """Make it for so many records of each class."""
        unit = _unit_of(learning_rate, LATTICE)
        tables, coarse, n = _tables(unit), max(1, int(1 / (START * unit))), int(counts.sum())
        if counts.size == 2:
            # The lowest log-odds on the lattice whose probability is not below the share.
            shares = tables.shares[::coarse]
            place = int(np.searchsorted(shares, (int(counts[1]) << kernels.GRADIENT_BITS) // n))
            zero = tables.shares.size // 2 // coarse
            start = np.array([(min(place, shares.size - 1) - zero) * coarse])
        elif counts.size == 1:
            start = np.zeros(0, dtype=np.int64)
        else:
            tried = -tables.powers[::coarse]
            places = np.searchsorted(tried, -counts / n)
            start = -coarse * np.minimum(places, tried.size - 1)
        return cls(unit, start.astype(np.int64))

    @classmethod
    def with_start(cls, start: Any, learning_rate: float) -> Self:
        """Make it with a known start."""
        return cls(_unit_of(learning_rate, LATTICE), np.asarray(start, np.int64))

    @property
    def tables(self) -> LossTables:
        """See `Loss.tables`."""
        kind = kernels.LOGISTIC if self.start.size == 1 else kernels.SOFTMAX
        return _tables(self.unit)._replace(kind=kind)

    @property
    def loss_one(self) -> float:
        """See `Loss.loss_one`."""
        return float(1 << kernels.LOSS_BITS)


@dataclass(frozen=True, eq=False)
class Squares(Loss):
    """Of numbers, half their squared error; the unit is in what targets are in."""

    spread: int  # exponent of the spread of the targets, in units

    hessian_one = 256.0

    @property
    def tables(self) -> LossTables:
        """See `Loss.tables`."""
        none = np.empty(0, dtype=np.int64)
        return LossTables(kernels.SQUARES, self.unit, none, none, none, np.empty(0))

    def step(self, learning_rate: float) -> float:
        """See `Loss.step`."""
        return learning_rate * 2.0 ** (8 - kernels.TARGET_BITS)

    @property
    def offset(self) -> float:
        """See `Loss.offset`: of gradients that are a part of the spread."""
        return SPREADS * 2.0 ** (2 * (self.spread + kernels.TARGET_BITS) - 8)

    @property
    def loss_one(self) -> float:
        """See `Loss.loss_one`: of half a squared error of 1, in what targets are in."""
        return 2.0 * (16.0 / self.unit) ** 2


@cache
def _rates(unit: float) -> LossTables:
    """Return the tables of targets that count something."""
    limit = int(_REACH / unit)
    shares, hessians, losses = np.zeros((3, 2 * limit + 1), dtype=np.int64)
    kernels.rate_tables(unit, limit, shares, hessians, losses)
    return LossTables(kernels.POISSON, unit, shares, hessians, losses, np.empty(0))


@dataclass(frozen=True, eq=False)
class Poisson(Loss):
    """Of numbers from 0 on, half the deviance of Poisson; predictions are logarithms of rates."""

    scale: float  # the rate whose logarithm is 0: the power of two below the mean of the targets
    noise: float  # a power of two below the variance of the targets, by the square of the scale

    hessian_one = float(1 << kernels.RATE_BITS)

    @classmethod
    def of(cls, mean: Fraction, spread: int, learning_rate: float) -> Self:
        """Make it for targets with this mean, and with a spread above ``2**spread``."""
        scale = 2.0 ** max(power_below(float(mean)), _LEAST_SCALE) if mean > 0 else 1.0
        unit = _unit_of(learning_rate, LATTICE)
        coarse = max(1, int(1 / (START * unit)))
        shares = _rates(unit).shares[::coarse]
        zero = shares.size // 2
        # The lowest logarithm on the lattice whose rate is not below the mean.
        place = int(np.searchsorted(shares, int(mean / Fraction(scale) * 2**kernels.GRADIENT_BITS)))
        start = np.array([(min(place, shares.size - 1) - zero) * coarse], dtype=np.int64)
        wider = min(max(spread - power_below(scale), -_WIDEST), _WIDEST)
        return cls(unit, start, scale, 4.0**wider)

    @classmethod
    def with_start(cls, start: Ints, scale: float, learning_rate: float) -> Self:
        """Make it with a known start and scale, for predictions."""
        return cls(_unit_of(learning_rate, LATTICE), start, scale, 1.0)

    @property
    def tables(self) -> LossTables:
        """See `Loss.tables`."""
        return _rates(self.unit)

    @property
    def scales(self) -> tuple[float, ...]:
        """See `Loss.scales`."""
        return self.unit, self.scale, self.noise

    def most(self, learning_rate: float) -> int:
        """See `Loss.most`: one step multiplies a rate by ``e**2`` at most."""
        return max(1, int(LONGEST * learning_rate / self.unit))

    @property
    def offset(self) -> float:
        """See `Loss.offset`."""
        return self.noise * super().offset

    @property
    def loss_one(self) -> float:
        """See `Loss.loss_one`."""
        return 2.0**kernels.GRADIENT_BITS / self.scale


@dataclass(eq=False, slots=True)
class Spread:
    """Sums of whole numbers and their squares, from which the unit of `Squares` follows.

    Examples
    --------
    >>> sums = Spread.of(np.array([2, 4, 4, 6]))
    >>> sums.remove(np.array([4]))
    >>> sums == Spread.of(np.array([2, 4, 6])), sums.exponent
    (True, 0)
    """

    n: int
    total: int
    squares: int

    @classmethod
    def of(cls, numbers: Ints) -> Self:
        """Sum numbers of at most 27 bits."""
        high, low = numbers >> 13, numbers & 8191
        squares = int((high * high).sum()) << 26
        squares += (int((high * low).sum()) << 14) + int((low * low).sum())
        return cls(int(numbers.size), int(numbers.sum()), squares)

    def add(self, numbers: Ints) -> None:
        """Take numbers in."""
        come = Spread.of(numbers)
        self.n, self.total = self.n + come.n, self.total + come.total
        self.squares += come.squares

    def remove(self, numbers: Ints) -> None:
        """Take numbers out."""
        gone = Spread.of(numbers)
        self.n, self.total = self.n - gone.n, self.total - gone.total
        self.squares -= gone.squares

    def __eq__(self, other: object) -> bool:
        """Compare all sums."""
        same = isinstance(other, Spread) and self.n == other.n and self.total == other.total
        return same and isinstance(other, Spread) and self.squares == other.squares

    @property
    def exponent(self) -> int:
        """Of the largest power of two that is not above the standard deviation; 0 if it is 0."""
        if self.n == 0:
            return 0
        variance = ((self.n * self.squares - self.total**2) << 64) // self.n**2
        return (variance.bit_length() - 65) // 2 if variance else 0

    def loss(self, quantum: int, learning_rate: float) -> Squares:
        """Return the loss of these numbers, which count in ``2**quantum``."""
        # A start is a multiple of a part of the spread; units are no coarser.
        parts = power_below(START)
        below = min(max(power_below(learning_rate * FINER), _FINEST), -parts)
        spread = self.exponent
        places = (self.total << 64) // (max(self.n, 1) << (spread - parts + 64))
        start = np.array([places << (-parts - below)], dtype=np.int64)
        return Squares(2.0 ** (quantum + spread + below), start, -below)


def fixed_point(numbers: Ints, quantum: int, unit: float) -> Ints:
    """Return numbers, which count in ``2**quantum``, in ``2**-10`` units.

    >>> fixed_point(np.array([3, 4]), -1, 2.0), fixed_point(np.array([3, 5]), -12, 1.0)
    (array([ 768, 1024]), array([1, 1]))
    """
    shift = quantum - power_below(unit) + kernels.TARGET_BITS
    if shift >= 0:
        return numbers << shift
    shifted: Ints = (numbers + (1 << (-shift - 1))) >> -shift
    return shifted


def rate_units(rates: Floats, scale: float) -> Ints:
    """Return rates in ``2**-16`` of a scale.

    >>> rate_units(np.array([0.0, 3.0]), 4.0)
    array([    0, 49152])
    """
    units = np.minimum(rates / scale * 2.0**kernels.GRADIENT_BITS, float(kernels.MOST_RESIDUAL))
    return np.rint(units).astype(np.int64)
