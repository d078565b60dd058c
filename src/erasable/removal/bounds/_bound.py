"""Bounds that know when they say nothing: what a number of deletions is promised to reach."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import brentq
from scipy.special import ndtr

from erasable.removal._reading import read_count, read_number


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


def random_removal_bounds(
    n_forget: int, n_retain: int, n_deleted: int, divergence: float, delta: float
) -> RemovalBounds:
    """Bound alpha and epsilon where records are deleted at random.

    Parameters
    ----------
    n_forget, n_retain : int
        How many records there are of the unwanted and of the wanted domain.
    n_deleted : int
        How many of the unwanted ones are deleted.
    divergence : float
        The true ``KL(p1, p2)``.
    delta : float
        Both hold at once with probability ``1 - delta`` or more.

    Returns
    -------
    RemovalBounds

    Notes
    -----
    The paper's proof loses a factor of 2 before the last term of alpha. What it states holds all
    the same, because the noise of the fitted mean is one Gaussian, of variance
    ``sigma**2 / (n_forget - n_deleted + n_retain)``, and not two to be added up at their worst.
    `erasable.removal.random_removal_law` has the whole distribution.

    References
    ----------
    Proposition 3.

    Examples
    --------
    >>> found = random_removal_bounds(1000, 1000, 900, divergence=0.125, delta=0.05)
    >>> round(found.alpha.value, 4), round(found.epsilon.value, 4)
    (0.0515, 0.0182)
    """
    ratio, _, log_term, apart = read_setting(n_forget, n_retain, n_deleted, divergence, delta)
    rest = 3 * log_term / int(n_retain) * (1 + ratio)
    return _bounds((0.5 - 3 * ratio**2) * apart - rest / 2, 3 * ratio**2 * apart + rest, apart)


def selective_removal_bounds(
    n_forget: int, n_retain: int, n_deleted: int, divergence: float, delta: float
) -> RemovalBounds:
    """Bound alpha and epsilon where the records farthest from the retain mean are deleted.

    Parameters
    ----------
    n_forget, n_retain, n_deleted, divergence, delta
        As for `random_removal_bounds`.

    Returns
    -------
    RemovalBounds
        Infinite, hence vacuous, where so few are deleted that the quantile in it does not exist.

    Notes
    -----
    As printed. The proof has a wrong sign before the error of the retain mean (its equation 18);
    with the right one, the last terms are up to 4 times as large. That the kept records are bounded
    by the farthest of them, and not averaged, leaves more room than that.

    References
    ----------
    Theorem 1.

    Examples
    --------
    >>> found = selective_removal_bounds(1000, 1000, 200, divergence=0.125, delta=0.05)
    >>> round(found.alpha.value, 2), found.alpha.reason
    (-0.76, 'a divergence is never below 0')
    """
    ratio, share, log_term, apart = read_setting(n_forget, n_retain, n_deleted, divergence, delta)
    quantile = _folded_quantile(1 - share + np.sqrt(log_term / (2 * int(n_forget))), apart)
    reach = 0.0 if ratio == 0 else float(ratio * quantile) ** 2
    rest = log_term / int(n_retain)
    return _bounds(apart / 2 - reach / 2 - rest, reach + 2 * rest, apart)


def _bounds(alpha: float, epsilon: float, divergence: float) -> RemovalBounds:
    return RemovalBounds(
        Bound(float(alpha), "" if alpha > 0 else "a divergence is never below 0"),
        Bound(
            float(epsilon),
            "" if epsilon < divergence else "a model of the unwanted domain alone does as well",
        ),
    )


def _folded_quantile(p: float, divergence: float) -> float:
    """Return the p-quantile of the distance from mu2 of a record of p1, in standard deviations."""
    if p >= 1:
        return np.inf
    shift = np.sqrt(2 * divergence)

    def beyond(u: float) -> float:
        return float(ndtr(u - shift) - ndtr(-u - shift) - p)

    return float(brentq(beyond, 0.0, max(shift + 40.0, shift * (1 + 1e-9))))
