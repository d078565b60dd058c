"""What a number of deletions is promised to reach (Proposition 3 and Theorem 1)."""

from __future__ import annotations

import numpy as np
from scipy.optimize import brentq
from scipy.special import ndtr

from erasable.removal.bounds._bound import Bound, RemovalBounds, read_setting

__all__ = ["random_removal_bounds", "selective_removal_bounds"]


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
