"""Published linear models: points of a lattice."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import Any, Self

import numpy as np
import scipy.special
from numpy.typing import NDArray
from scipy.sparse import issparse

from erasable.core.arrays import Floats, Ints


@dataclass(frozen=True, slots=True)
class Equations:
    """Coefficients of one score or several, as multiples of the units of a lattice."""

    # shape (number of scores, D): in units; intercepts, at the origin, last
    values: Floats
    origin: Floats
    top: Ints  # a unit of a column is 2**top

    @property
    def unit(self) -> Floats:
        """``2**-top``."""
        return np.ldexp(1.0, -self.top)

    def equals(self, other: Self) -> bool:
        """Tell whether this is the same model."""
        names = [each.name for each in fields(self)]
        return all(np.array_equal(getattr(self, name), getattr(other, name)) for name in names)

    def _split(self) -> tuple[Floats, Floats]:
        """Return coefficients and intercepts of all scores, in units and at the origin."""
        d = self.top.size
        slopes, constants = self.values[:, :d], np.zeros(self.values.shape[0])
        if self.values.shape[1] > d:
            constants = self.values[:, d]
        return slopes, constants

    def logits(self, matrix: Any) -> Floats:
        """Return the scores of rows, dense or sparse, like those of the records."""
        slopes, constants = self._split()
        slopes = slopes * self.unit
        moved = np.flatnonzero(self.origin)
        if issparse(matrix) and moved.size:
            out: Floats = matrix[:, moved].toarray() - self.origin[moved]
            out = out @ slopes[:, moved].T
            slopes[:, moved] = 0.0
            out += matrix @ slopes.T
        elif moved.size:
            out = (matrix - self.origin) @ slopes.T
        else:
            out = matrix @ slopes.T
        out += constants
        return out

    def equations(self, affine: tuple[Floats, Floats] | None) -> tuple[Floats, Floats]:
        """Return coefficients and intercepts for rows behind a map (shift, scale), if any."""
        slopes, constants = self._split()
        slopes = slopes * self.unit
        shift = np.zeros(self.top.size)
        if affine is not None:
            shift, scale = affine
            for_rows = slopes * scale
        else:
            for_rows = slopes.copy()
        moved = [
            math.fsum([*(row * shift).tolist(), *(-row * self.origin).tolist(), constant])
            if np.isfinite(constant)
            else constant
            for row, constant in zip(slopes, constants.tolist(), strict=True)
        ]
        return for_rows + 0.0, np.array(moved) + 0.0


@dataclass(frozen=True, slots=True)
class PublishedModel(Equations):
    """A classifier: the point of the lattice nearest to the optimum, for each class or for two."""

    labels: NDArray[Any]
    counts: Ints  # live records of each class
    used_counts: Ints  # those with a weight; a class of none has no coefficients

    def _split(self) -> tuple[Floats, Floats]:
        """See `Equations`; of all classes."""
        slopes, constants = Equations._split(self)
        if self.labels.size == 2:
            return slopes, constants
        every, last = (
            np.zeros((self.labels.size, self.top.size)),
            np.full(self.labels.size, -np.inf),
        )
        every[self.used_counts > 0], last[self.used_counts > 0] = slopes, constants
        return every, last


def most_probable(logits: Floats) -> Ints:
    """Return the most probable class of every row of logits, or of one for two classes."""
    best: Ints = (logits > 0).astype(np.int64) if logits.ndim == 1 else logits.argmax(axis=1)
    return best


def probabilities(logits: Floats) -> Floats:
    """Return the probabilities of the classes."""
    if logits.ndim == 1:
        return np.column_stack([scipy.special.expit(-logits), scipy.special.expit(logits)])
    shares = np.exp(logits - logits.max(axis=1, keepdims=True))
    out: Floats = shares / shares.sum(axis=1, keepdims=True)
    return out


def log_probabilities(logits: Floats) -> Floats:
    """Return the logarithms of `probabilities`."""
    if logits.ndim == 1:
        return np.column_stack([scipy.special.log_expit(-logits), scipy.special.log_expit(logits)])
    logits = logits - logits.max(axis=1, keepdims=True)
    out: Floats = logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))
    return out
