"""From divergences to the log-loss of a model of the edited data (Proposition 2)."""

from __future__ import annotations

import numpy as np

from erasable.core.errors import InvalidParameterError
from erasable.removal._reading import read_number
from erasable.removal.bounds._bound import Bound, read_divergence


def forget_loss_bound(alpha: float, marginal_divergence: float) -> Bound:
    """Bound from below how much the log-loss on the unwanted domain exceeds the best there is.

    Parameters
    ----------
    alpha : float
        Lower bound of ``KL(p1, p)``, inputs and labels together, in nats.
    marginal_divergence : float
        ``KL(p1, p)`` of the inputs alone. There is no default: it is at most ``KL(p1, p)``, not at
        most `alpha`, so that nothing follows where it is not known.

    Returns
    -------
    Bound
        ``alpha - marginal_divergence``, of the best predictor under p; vacuous at 0 and below.

    References
    ----------
    Proposition 2, left.

    Examples
    --------
    >>> forget_loss_bound(3.0, marginal_divergence=1.0)
    Bound(value=2.0, reason='')
    >>> forget_loss_bound(3.0, marginal_divergence=3.5).is_vacuous
    True
    """
    value = read_number(alpha, "alpha", 0.0, np.inf) - read_divergence(
        marginal_divergence, "marginal_divergence"
    )
    return Bound(value, "" if value > 0 else "the loss never is below the best there is")


def retain_loss_bound(epsilon: float, marginal_divergence: float = 0.0) -> Bound:
    """Bound from above how much the log-loss on the wanted domain exceeds the best there is.

    Parameters
    ----------
    epsilon : float
        Upper bound of ``KL(p2, p)``, inputs and labels together, in nats.
    marginal_divergence : float, default=0.0
        ``KL(p2, p)`` of the inputs alone, at most `epsilon`; 0 where it is not known.

    Returns
    -------
    Bound
        ``epsilon - marginal_divergence``, of the best predictor under p; vacuous if infinite.

    Raises
    ------
    InvalidParameterError
        A marginal divergence above epsilon, which cannot be.

    References
    ----------
    Proposition 2, right.

    Examples
    --------
    >>> retain_loss_bound(0.1).value
    0.1
    """
    whole = read_number(epsilon, "epsilon", 0.0, np.inf)
    part = read_divergence(marginal_divergence, "marginal_divergence")
    if part > whole:
        raise InvalidParameterError(
            f"marginal_divergence={part:g} is above epsilon={whole:g}; expected at most epsilon, "
            "because inputs alone differ by less than inputs and labels; pass a smaller one"
        )
    return Bound(whole - part, "" if whole < np.inf else "epsilon has no bound")


def calibrate(max_loss_increase: float, divergence: float) -> tuple[float, float]:
    """Turn "at most x nats on the retained test set" into targets for the removal.

    Parameters
    ----------
    max_loss_increase : float
        By how many nats the log-loss on the wanted domain may rise.
    divergence : float
        ``KL(p1, p2)``.

    Returns
    -------
    alpha, epsilon : float
        The largest removal at that price, and the price: ``epsilon = max_loss_increase``, and
        ``alpha = (sqrt(divergence) + sqrt(epsilon))**2``. The first holds for any distributions,
        the second for Gaussians of one covariance.

    References
    ----------
    Propositions 1 and 2.

    Examples
    --------
    >>> alpha, epsilon = calibrate(0.1, divergence=2.0)
    >>> round(alpha, 2), epsilon
    (2.99, 0.1)
    """
    epsilon = read_divergence(max_loss_increase, "max_loss_increase")
    return float((np.sqrt(read_divergence(divergence)) + np.sqrt(epsilon)) ** 2), epsilon
