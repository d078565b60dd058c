"""A bound that knows when it says nothing, and what every bound is computed from."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from erasable.removal._reading import read_count, read_number

__all__ = ["Bound", "RemovalBounds", "read_divergence", "read_setting"]


@dataclass(frozen=True)
class Bound:
    """A bound, and whether it says anything.

    Attributes
    ----------
    value : float
    reason : str
        Why it says nothing; empty where it does say something.

    Examples
    --------
    >>> Bound(-0.7, "a divergence is never below 0").is_vacuous
    True
    """

    value: float
    reason: str = ""

    @property
    def is_vacuous(self) -> bool:
        """Whether what it says holds anyway, or is not promised at all."""
        return bool(self.reason)

    def __float__(self) -> float:
        return self.value


@dataclass(frozen=True)
class RemovalBounds:
    """What is promised of the refit Gaussian p, before the data are looked at.

    Attributes
    ----------
    alpha : Bound
        ``KL(p1, p)`` is at least this; vacuous at 0 and below.
    epsilon : Bound
        ``KL(p2, p)`` is at most this; vacuous from ``KL(p2, p1)`` on, where a model of the
        unwanted domain alone does as well.

    Examples
    --------
    >>> RemovalBounds(Bound(0.1), Bound(0.2)).alpha.value
    0.1
    """

    alpha: Bound
    epsilon: Bound


def read_setting(
    n_forget: int, n_retain: int, n_deleted: int, divergence: float, delta: float
) -> tuple[float, float, float, float]:
    """Return kept over retained records, the share deleted, log(4 / delta), and KL(p1, p2)."""
    n_forget = read_count(n_forget, "n_forget", 1)
    n_retain = read_count(n_retain, "n_retain", 1)
    n_deleted = read_count(n_deleted, "n_deleted", 0, n_forget)
    log_term = np.log(4 / read_number(delta, "delta", 0.0, 1.0, ends="()"))
    ratio = (n_forget - n_deleted) / n_retain
    return ratio, n_deleted / n_forget, float(log_term), read_divergence(divergence)


def read_divergence(value: float, name: str = "divergence") -> float:
    """Return a finite divergence."""
    return read_number(value, name, 0.0, np.inf, ends="[)")
